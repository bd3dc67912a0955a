//! Rates: events of the last second, counted by one writer and read by all threads.
//!
//! HAProxy's measure: the events of the current second, plus those of the previous second in
//! proportion to its part within the last 1000 ms. Counting costs two stores, and a few more once
//! per second.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The period of a rate, milliseconds.
pub(super) const PERIOD_MS: u64 = 1000;

/// How often a reader tries again while a meter changes its second; then it uses the values it has
/// read.
const LOOKS_MAX: u32 = 8;

/// The value of a meter's time while it changes its second.
const CHANGING: u64 = u64::MAX;

/// The events of one writer.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// When the current second began, monotonic milliseconds; [`CHANGING`] while it changes.
    began_ms: AtomicU64,
    current: AtomicU32,
    previous: AtomicU32,
    /// Events before the current second.
    earlier: AtomicU64,
}

/// The sum of the values of meters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Events weighted by milliseconds.
    weighted: u64,
    current: u64,
    previous: u64,
}

impl Meter {
    /// Counts an event, unless the current second is over. Whether it was counted. Only one thread
    /// may call this.
    #[inline]
    pub fn count(&self, now_ms: u64) -> bool {
        let began_ms = self.began_ms.load(Ordering::Relaxed);
        let current = self.current.load(Ordering::Relaxed);
        let is_current = now_ms.saturating_sub(began_ms) < PERIOD_MS;
        if is_current {
            self.current
                .store(current.wrapping_add(1), Ordering::Relaxed);
        }
        is_current
    }

    /// The start of the second in which the last event occurred, milliseconds; none before the
    /// first event.
    pub fn last_ms(&self) -> Option<u64> {
        let began_ms = self.began_ms.load(Ordering::Acquire);
        let current_ms = match began_ms {
            CHANGING => self.began_ms.load(Ordering::Acquire),
            began_ms => began_ms,
        };
        (self.total() > 0 && current_ms != CHANGING).then_some(current_ms)
    }

    /// Counts the first event of a new second. Only one thread may call this.
    pub fn next_second(&self, now_ms: u64) {
        let began_ms = self.began_ms.load(Ordering::Relaxed);
        let current = self.current.load(Ordering::Relaxed);
        let follows = now_ms.saturating_sub(began_ms) < 2 * PERIOD_MS;
        let (previous, begins_ms) = if follows {
            (current, began_ms + PERIOD_MS)
        } else {
            (0, now_ms)
        };
        let earlier = self.earlier.load(Ordering::Relaxed) + u64::from(current);
        self.began_ms.store(CHANGING, Ordering::Release);
        self.earlier.store(earlier, Ordering::Release);
        self.previous.store(previous, Ordering::Release);
        self.current.store(1, Ordering::Release);
        self.began_ms.store(begins_ms, Ordering::Release);
    }

    /// Resets the meter. No thread may count at the same time.
    pub fn reset(&self) {
        self.began_ms.store(0, Ordering::Release);
        self.current.store(0, Ordering::Release);
        self.previous.store(0, Ordering::Release);
        self.earlier.store(0, Ordering::Release);
    }

    /// Copies another meter. No thread may count with either at the same time.
    pub fn copy(&self, from: &Meter) {
        let earlier = from.earlier.load(Ordering::Relaxed);
        self.earlier.store(earlier, Ordering::Relaxed);
        for (to, from) in [
            (&self.current, &from.current),
            (&self.previous, &from.previous),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let began_ms = from.began_ms.load(Ordering::Relaxed);
        self.began_ms.store(began_ms, Ordering::Release);
    }

    /// Events since the start. While the second changes, those of one second may be missing or
    /// counted twice.
    pub fn total(&self) -> u64 {
        self.earlier.load(Ordering::Acquire) + u64::from(self.current.load(Ordering::Acquire))
    }

    /// Adds the current values to `sum`.
    pub fn read(&self, now_ms: u64, sum: &mut Reading) {
        let mut look = (0, 0, 0);
        for _ in 0..LOOKS_MAX {
            let began_ms = self.began_ms.load(Ordering::Acquire);
            let previous = self.previous.load(Ordering::Acquire);
            let current = self.current.load(Ordering::Acquire);
            look = (began_ms, previous, current);
            if began_ms != CHANGING && began_ms == self.began_ms.load(Ordering::Acquire) {
                break;
            }
            std::hint::spin_loop();
        }
        let (began_ms, mut previous, mut current) = look;
        // Another worker's clock may be slightly ahead.
        let mut age_ms = now_ms.saturating_sub(began_ms);
        if age_ms > PERIOD_MS {
            age_ms -= PERIOD_MS;
            previous = if age_ms <= PERIOD_MS { current } else { 0 };
            current = 0;
        }
        let left_ms = PERIOD_MS.saturating_sub(age_ms);
        sum.weighted += u64::from(previous) * left_ms + u64::from(current) * PERIOD_MS;
        sum.current += u64::from(current);
        sum.previous += u64::from(previous);
    }
}

impl Reading {
    /// Events per second. A single event of the previous second counts until that second is over,
    /// so that rare events do not make the rate flicker.
    pub fn per_second(self) -> u32 {
        let rate = if self.is_lone() {
            self.previous
        } else {
            self.weighted / PERIOD_MS
        };
        u32::try_from(rate).unwrap_or(u32::MAX)
    }

    /// Events per second with a fraction.
    pub fn exact(self) -> f64 {
        if self.is_lone() {
            self.previous as f64
        } else {
            self.weighted as f64 / PERIOD_MS as f64
        }
    }

    fn is_lone(self) -> bool {
        self.current == 0 && self.previous <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(meter: &Meter, now_ms: u64) {
        if !meter.count(now_ms) {
            meter.next_second(now_ms);
        }
    }

    fn rate(meters: &[&Meter], now_ms: u64) -> u32 {
        let mut sum = Reading::default();
        for meter in meters {
            meter.read(now_ms, &mut sum);
        }
        sum.per_second()
    }

    #[test]
    fn the_last_second_counts_and_the_one_before_in_part() {
        let meter = Meter::default();
        assert_eq!(rate(&[&meter], 5_000), 0);
        for _ in 0..100 {
            event(&meter, 10_000);
        }
        assert_eq!(rate(&[&meter], 10_000), 100);
        assert_eq!(rate(&[&meter], 10_999), 100);
        assert_eq!(rate(&[&meter], 11_250), 75);
        assert_eq!(rate(&[&meter], 12_000), 0);
        event(&meter, 11_500);
        assert_eq!(rate(&[&meter], 11_500), 51);
        assert_eq!(rate(&[&meter], 60_000), 0);
        event(&meter, 60_000);
        assert_eq!(rate(&[&meter], 60_000), 1);
    }

    #[test]
    fn one_lone_event_is_seen_for_two_seconds() {
        let meter = Meter::default();
        event(&meter, 10_000);
        assert_eq!(rate(&[&meter], 11_900), 1);
        assert_eq!(rate(&[&meter], 12_100), 0);
    }

    #[test]
    fn workers_are_summed_before_the_fraction_is_dropped() {
        let (one, other) = (Meter::default(), Meter::default());
        for meter in [&one, &other] {
            for _ in 0..3 {
                event(meter, 10_000);
            }
        }
        assert_eq!(rate(&[&one, &other], 11_500), 3);
    }

    #[test]
    fn a_clock_a_little_behind_the_writers_does_not_matter() {
        let meter = Meter::default();
        event(&meter, 10_000);
        event(&meter, 10_000);
        assert_eq!(rate(&[&meter], 9_998), 2);
    }
}
