//! Time within a round, read from the processor's counter.
//!
//! Asking the kernel for the time takes 20 to 60 ns, and a traced request reads the time at about
//! two dozen moments. Where the kernel's clock is the processor's counter, reading that counter
//! takes a quarter of the time. Its pace is measured against the times of rounds; a counter that
//! disagrees with them is never used again.

use crate::{Now, sys};

/// The shortest time between two measurements of the pace, nanoseconds.
const MEASURE_NS: u64 = 50_000_000;
/// The most ticks between two readings of the counter around a reading of the clock: some
/// microseconds.
const TICKS_APART_MAX: u64 = 10_000;
/// How far a prediction may be off, nanoseconds, plus 1/[`OFF_PARTS`] of the elapsed time.
const OFF_NS: u64 = 100_000;
const OFF_PARTS: u64 = 100;

/// A clock for times within a round.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    /// The round's time, and the counter at that time.
    round: Now,
    ticks: u64,
    /// Nanoseconds per tick, in units of 2^-32; none until measured.
    pace: Option<u64>,
    /// The start of the current measurement: nanoseconds and ticks.
    since: (u64, u64),
    /// The counter exists and is trusted.
    counts: bool,
    /// Times within rounds are read.
    is_used: bool,
}

impl Stopwatch {
    /// `used`: see [`Stopwatch::is_used`].
    pub fn new(used: bool) -> Stopwatch {
        Stopwatch {
            round: Now::default(),
            ticks: 0,
            pace: None,
            since: (0, 0),
            counts: used && sys::clock_is_counter(),
            is_used: used,
        }
    }

    /// Starts a round and returns its time.
    #[inline]
    pub fn start(&mut self) -> Now {
        if self.counts {
            return self.start_counted();
        }
        if !self.is_used {
            return sys::now();
        }
        self.round = sys::now_after(self.round);
        self.round
    }

    fn start_counted(&mut self) -> Now {
        let before = sys::counter();
        let round = sys::now_after(self.round);
        let ticks = sys::counter();
        if ticks.wrapping_sub(before) > TICKS_APART_MAX {
            // The thread was interrupted between the readings at an unknown place: the pair of the
            // last round is more exact.
            return round;
        }
        if self.pace.is_some() {
            let off = self.at(ticks).abs_diff(round.mono_ns);
            let passed = round.mono_ns.saturating_sub(self.round.mono_ns);
            if off > OFF_NS + passed / OFF_PARTS {
                (self.counts, self.pace) = (false, None);
            }
        }
        (self.round, self.ticks) = (round, ticks);
        let (since_ns, since_ticks) = self.since;
        let passed = round.mono_ns.saturating_sub(since_ns);
        if since_ns == 0 {
            self.since = (round.mono_ns, ticks);
        } else if passed >= MEASURE_NS {
            let counted = ticks.saturating_sub(since_ticks).max(1);
            self.pace = u64::try_from((u128::from(passed) << 32) / u128::from(counted)).ok();
            self.since = (round.mono_ns, ticks);
        }
        round
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Now {
        let mono_ns = match self.pace {
            Some(_) => self.at(sys::counter()),
            None if !self.is_used => return sys::now(),
            None => sys::monotonic_ns(),
        };
        // The wall clock advances from the round's time: one reading instead of two.
        Now::new(
            mono_ns,
            self.round.wall_ns + mono_ns.saturating_sub(self.round.mono_ns),
        )
    }

    /// The monotonic time, nanoseconds, at a value of the counter.
    #[inline]
    fn at(&self, ticks: u64) -> u64 {
        let counted = ticks.saturating_sub(self.ticks);
        let passed = (u128::from(counted) * u128::from(self.pace.unwrap_or(0))) >> 32;
        self.round.mono_ns.saturating_add(passed as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_clock() {
        let mut watch = Stopwatch::new(true);
        let began = watch.start();
        let mut worst = 0;
        // For long enough to measure the pace a few times.
        while sys::monotonic_ns() < began.mono_ns + 4 * MEASURE_NS {
            watch.start();
            let before = sys::monotonic_ns();
            let read = watch.now();
            let after = sys::monotonic_ns();
            // A reading lies between two of the clock, but for what it may be off.
            let early = before.saturating_sub(read.mono_ns);
            worst = worst.max(early.max(read.mono_ns.saturating_sub(after)));
            assert!(read.wall_ns >= began.wall_ns);
        }
        assert!(worst <= OFF_NS, "{worst} ns off");
        assert_eq!(watch.counts, sys::clock_is_counter());
    }

    #[test]
    fn a_counter_that_does_not_agree_is_not_believed() {
        let mut watch = Stopwatch {
            counts: true,
            pace: Some(1 << 50),
            round: sys::now(),
            ..Stopwatch::new(false)
        };
        while watch.counts {
            watch.start();
            if !sys::clock_is_counter() {
                return;
            }
        }
        assert!(watch.pace.is_none());
    }
}
