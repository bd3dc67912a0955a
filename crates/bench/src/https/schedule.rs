//! The schedule of requests at a constant rate. It reads no clock: times are relative to the start.

use std::time::Duration;

/// The arrivals for one of several threads: every `threads`-th arrival of a common schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    per_second: u64,
    /// The number of the next arrival in the common schedule.
    next: u64,
    step: u64,
    /// The number of arrivals in the common schedule.
    end: u64,
}

impl Schedule {
    /// `per_second` equally spaced arrivals per second for `seconds`; of these, the ones of thread
    /// `thread` of `threads`.
    pub fn new(per_second: u32, seconds: u32, thread: u32, threads: u32) -> Self {
        Self {
            per_second: u64::from(per_second),
            next: u64::from(thread),
            step: u64::from(threads),
            end: u64::from(per_second) * u64::from(seconds),
        }
    }

    /// The time of the next arrival; `None` after the last one.
    pub fn due(&self) -> Option<Duration> {
        (self.next < self.end)
            .then(|| Duration::from_nanos(self.next * 1_000_000_000 / self.per_second))
    }

    /// Takes the next arrival if it is due at `now`; returns its scheduled time.
    pub fn take(&mut self, now: Duration) -> Option<Duration> {
        let due = self.due().filter(|&due| due <= now)?;
        self.next += self.step;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn arrivals_are_equally_far_apart_and_none_is_lost_to_a_late_look() {
        let mut schedule = Schedule::new(4, 2, 0, 1);
        assert_eq!(schedule.take(ms(0)), Some(ms(0)));
        assert_eq!(
            (schedule.take(ms(249)), schedule.due()),
            (None, Some(ms(250)))
        );
        // After a pause of 700 ms, each arrival keeps its scheduled time.
        let late: Vec<_> = std::iter::from_fn(|| schedule.take(ms(950))).collect();
        assert_eq!(late, [ms(250), ms(500), ms(750)]);
        let rest: Vec<_> = std::iter::from_fn(|| schedule.take(ms(60_000))).collect();
        assert_eq!(rest, [ms(1000), ms(1250), ms(1500), ms(1750)]);
        assert_eq!(schedule.due(), None);
    }

    #[test]
    fn threads_share_one_schedule() {
        let all = |thread, threads| {
            let mut schedule = Schedule::new(3000, 1, thread, threads);
            std::iter::from_fn(move || schedule.take(ms(1000))).collect::<Vec<_>>()
        };
        let mut shared = [all(0, 3), all(1, 3), all(2, 3)].concat();
        shared.sort();
        assert_eq!(shared.len(), 3000);
        assert_eq!(shared, all(0, 1));
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_does_not_drift() {
        let mut schedule = Schedule::new(7, 1000, 0, 1);
        let last = std::iter::from_fn(|| schedule.take(ms(1_000_000))).last();
        assert_eq!(last, Some(Duration::from_nanos(6999 * 1_000_000_000 / 7)));
    }
}
