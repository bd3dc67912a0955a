//! What the client of one run has counted, and the run's outcome.

use std::time::{Duration, Instant};

use super::latency::Latencies;
use crate::clock;
use crate::sys;
use crate::wrk::Outcome;

/// From this share of a core on, the client may limit the rate.
const CLIENT_SHARE_MAX: f64 = 0.95;

/// The answers and errors of a run, whose client is one thread.
pub struct Tally {
    start: Instant,
    /// The CPU time that the thread had used at the start.
    busy: Duration,
    latencies: Latencies,
    errors: u64,
    /// The first error as text.
    example: Option<String>,
}

impl Tally {
    /// Begins a run on this thread.
    pub fn start() -> Tally {
        Tally {
            start: clock::now(),
            busy: sys::thread_time(),
            latencies: Latencies::default(),
            errors: 0,
            example: None,
        }
    }

    /// When the run began.
    pub fn started(&self) -> Instant {
        self.start
    }

    /// Counts an answer, which took `time`.
    pub fn answered(&mut self, time: Duration) {
        self.latencies.record(time);
    }

    /// Counts an error.
    pub fn failed(&mut self, why: String) {
        self.errors += 1;
        self.example.get_or_insert(why);
    }

    /// The times of all answers, and the number of errors. Prints the first error.
    pub fn into_times(self) -> (Latencies, u64) {
        if let Some(example) = &self.example {
            eprintln!("{} errors; the first: {example}", self.errors);
        }
        (self.latencies, self.errors)
    }

    /// The outcome of the run, which ends now. Prints the first error, and whether the client may
    /// have been the limit.
    pub fn outcome(mut self) -> Outcome {
        let seconds = (clock::now() - self.start).as_secs_f64();
        let share = (sys::thread_time() - self.busy).as_secs_f64() / seconds;
        if share > CLIENT_SHARE_MAX {
            eprintln!(
                "the client used {:.0} % of its core and may limit the rate; this does not affect the CPU per request",
                100.0 * share
            );
        }
        let (requests, errors) = (self.latencies.count(), self.errors);
        if let Some(example) = &self.example {
            eprintln!("{errors} errors and {requests} responses; the first error: {example}");
        }
        let [p50_us, p99_us] = self.latencies.percentiles([50, 99]);
        Outcome {
            requests,
            per_second: requests as f64 / seconds,
            p50_us,
            p99_us,
            errors,
        }
    }
}
