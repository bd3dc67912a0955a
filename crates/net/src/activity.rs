//! What a worker's driver does: rounds, events and processor time, for other threads to read.
//!
//! The worker is the only writer, so that counting needs no lock. A worker that sleeps writes
//! nothing; the reader then measures its processor time since the last sample.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::sys::{self, ThreadClock};
use crate::{DatagramCounts, Now};

/// The shortest interval over which the share of idle time is measured, nanoseconds.
const SAMPLE_NS: u64 = 500_000_000;

/// The activity of one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Activity {
    rounds: AtomicU64,
    events: AtomicU64,
    accepted: AtomicU64,
    datagrams: DatagramCounts,
    /// Events of the current round.
    waiting: AtomicU32,
    clock: ThreadClock,
    /// When the last sample was taken, monotonic nanoseconds, and the processor time at that time.
    sampled_ns: AtomicU64,
    sampled_cpu_ns: AtomicU64,
    /// The share of idle time before the last sample, per cent.
    idle_percent: AtomicU32,
}

/// Adds to a cell that only the calling thread writes.
#[inline(always)]
pub(crate) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Activity {
    /// The calling thread becomes the worker.
    pub(crate) fn begin(&self, now: Now) {
        self.clock.bind();
        self.sampled_cpu_ns.store(sys::thread_cpu_ns(), Relaxed);
        self.sampled_ns.store(now.mono_ns, Relaxed);
        self.idle_percent.store(100, Relaxed);
    }

    /// Counts a round, which begins with this many events.
    #[inline(always)]
    pub(crate) fn begin_round(&self, events: usize, now: Now) {
        bump(&self.rounds, 1);
        bump(&self.events, events as u64);
        self.waiting.store(events as u32, Relaxed);
        if now.mono_ns.saturating_sub(self.sampled_ns.load(Relaxed)) >= SAMPLE_NS {
            self.sample(now);
        }
    }

    /// The worker waits for events.
    #[inline(always)]
    pub(crate) fn end_round(&self) {
        self.waiting.store(0, Relaxed);
    }

    /// Counts an accepted connection.
    #[inline(always)]
    pub(crate) fn accepted_one(&self) {
        bump(&self.accepted, 1);
    }

    #[cold]
    fn sample(&self, now: Now) {
        self.add_sample(now, sys::thread_cpu_ns());
    }

    fn add_sample(&self, now: Now, cpu_ns: u64) {
        self.idle_percent
            .store(self.idle_since_sample(now, cpu_ns), Relaxed);
        self.sampled_cpu_ns.store(cpu_ns, Relaxed);
        self.sampled_ns.store(now.mono_ns, Relaxed);
    }

    /// The share of idle time between the last sample and now, per cent.
    fn idle_since_sample(&self, now: Now, cpu_ns: u64) -> u32 {
        let passed_ns = now
            .mono_ns
            .saturating_sub(self.sampled_ns.load(Relaxed))
            .max(1);
        let used_ns = cpu_ns.saturating_sub(self.sampled_cpu_ns.load(Relaxed));
        let used_percent = u128::from(used_ns) * 100 / u128::from(passed_ns);
        100 - used_percent.min(100) as u32
    }

    /// Rounds since the start.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Relaxed)
    }

    /// Events that the kernel has reported since the start.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Client connections that were accepted since the start.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Counts of datagrams.
    #[must_use]
    pub fn datagrams(&self) -> &DatagramCounts {
        &self.datagrams
    }

    /// Events of the current round; 0 while the worker waits for events.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// Processor time of the worker, nanoseconds. After its end: that of its last sample.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        let sampled_ns = self.sampled_cpu_ns.load(Relaxed);
        self.clock.cpu_ns().unwrap_or(sampled_ns)
    }

    /// The share of time in which the worker used no processor, per cent: over the last half second
    /// to second, or since it began to sleep.
    #[must_use]
    pub fn idle_percent(&self, now: Now) -> u32 {
        if now.mono_ns.saturating_sub(self.sampled_ns.load(Relaxed)) < SAMPLE_NS {
            return self.idle_percent.load(Relaxed);
        }
        self.idle_since_sample(now, self.cpu_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now::new(ms * 1_000_000, 0)
    }

    #[test]
    fn rounds_and_events_are_counted() {
        let activity = Activity::default();
        activity.begin(at(1_000));
        activity.begin_round(3, at(1_001));
        assert_eq!(activity.waiting(), 3);
        activity.end_round();
        activity.begin_round(0, at(1_002));
        activity.end_round();
        activity.accepted_one();
        let counted = [activity.rounds(), activity.events(), activity.accepted()];
        assert_eq!((counted, activity.waiting()), ([2, 3, 1], 0));
    }

    #[test]
    fn idle_time_is_what_was_not_used() {
        let activity = Activity::default();
        activity.add_sample(at(1_000), 7_000_000);
        activity.add_sample(at(2_000), 257_000_000);
        assert_eq!(activity.idle_percent(at(2_100)), 75, "of the last interval");
        activity.add_sample(at(3_000), 9_000_000_000);
        assert_eq!(activity.idle_percent(at(3_100)), 0, "at most all of it");
    }

    #[test]
    fn a_worker_that_sleeps_is_idle() {
        let activity = Activity::default();
        activity.begin(at(1_000));
        activity.add_sample(at(2_000), sys::thread_cpu_ns() + 900_000_000);
        // An hour without a sample: this thread is the worker, and used less than that.
        assert!(activity.idle_percent(at(3_600_000)) >= 99);
    }

    #[test]
    fn another_thread_reads_the_processor_time() {
        let activity = Activity::default();
        activity.begin(at(1_000));
        let own_ns = sys::thread_cpu_ns();
        let read = std::thread::scope(|scope| scope.spawn(|| activity.cpu_ns()).join());
        assert!(read.expect("a time") >= own_ns);
    }
}
