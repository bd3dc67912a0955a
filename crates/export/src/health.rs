//! The health of a pipeline: counters for metrics and status, and a log line when it changes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::lock::lock;
use crate::plan::Log;

/// The most characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 300;
/// The most log lines of one pipeline within [`LINES_WINDOW`]: a receiver that fails every other
/// request must not fill the log.
const LINES_MAX: u32 = 3;
/// See [`LINES_MAX`].
const LINES_WINDOW: Duration = Duration::from_secs(10);

/// The health of a pipeline.
pub struct Health {
    /// The name of the pipeline.
    name: String,
    log: Log,
    taken: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    failing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_taken: Option<Instant>,
    last_error: String,
    /// The start of the window, its lines, and the lines suppressed since the last one that was
    /// logged.
    window: Option<Instant>,
    lines: u32,
    untold: u32,
}

impl std::fmt::Debug for Health {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Health")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Health {
    pub(crate) fn new(name: String, log: Log) -> Health {
        Health {
            name,
            log,
            taken: AtomicU64::default(),
            failed: AtomicU64::default(),
            retried: AtomicU64::default(),
            failing: AtomicBool::default(),
            state: Mutex::default(),
        }
    }

    /// Signal, exporter and destination, as in `traces otlp_http http://localhost:4318/v1/traces`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests that the receiver accepted.
    #[must_use]
    pub fn requests_taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Requests that were given up.
    #[must_use]
    pub fn requests_failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Retries.
    #[must_use]
    pub fn attempts_again(&self) -> u64 {
        self.retried.load(Relaxed)
    }

    /// Time since the receiver last accepted a request; `None` if it never did.
    #[must_use]
    pub fn since_taken(&self) -> Option<Duration> {
        self.state().last_taken.map(|at| at.elapsed())
    }

    /// The last error; empty if there was none.
    #[must_use]
    pub fn last_error(&self) -> String {
        self.state().last_error.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn taken(&self, rejected: u64, message: &str) {
        self.taken.fetch_add(1, Relaxed);
        self.state().last_taken = Some(Instant::now());
        if rejected > 0 || !message.is_empty() {
            self.state().last_error = cut(&format!("{rejected} records rejected: {message}"));
        }
        if self.failing.swap(false, Relaxed) {
            self.say(&format!("export of {} works again", self.name));
        }
    }

    pub(crate) fn failed(&self, why: &str) {
        self.failed.fetch_add(1, Relaxed);
        self.wrong(why);
    }

    pub(crate) fn again(&self, why: &str) {
        self.retried.fetch_add(1, Relaxed);
        self.wrong(why);
    }

    fn wrong(&self, why: &str) {
        let why = cut(why);
        if !self.failing.swap(true, Relaxed) {
            self.say(&format!("export of {} fails: {why}", self.name));
        }
        self.state().last_error = why;
    }

    /// Logs a line, unless there were too many recently.
    fn say(&self, line: &str) {
        let mut state = self.state();
        if state
            .window
            .is_none_or(|window| window.elapsed() >= LINES_WINDOW)
        {
            (state.window, state.lines) = (Some(Instant::now()), 0);
        }
        if state.lines == LINES_MAX {
            state.untold = state.untold.saturating_add(1);
            return;
        }
        state.lines += 1;
        let untold = std::mem::take(&mut state.untold);
        drop(state);
        match untold {
            0 => (self.log)(line),
            _ => (self.log)(&format!("{line} ({untold} more suppressed)")),
        }
    }
}

/// Shortens a receiver's text, which is untrusted, and removes control characters.
fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(ERROR_CHARS_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_lines_are_told() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&lines);
        let log = move |line: &str| told.lock().unwrap().push(line.to_owned());
        let health = Health::new("x".to_owned(), Arc::new(log));
        for _ in 0..5 {
            health.again("a\nb");
            health.failed("c");
            health.taken(0, "");
        }
        let fails = "export of x fails: a b";
        let works = "export of x works again";
        assert_eq!(*lines.lock().unwrap(), [fails, works, fails]);
        tokio::time::advance(LINES_WINDOW).await;
        health.failed(&"c".repeat(1000));
        let last = lines.lock().unwrap().pop().unwrap();
        let expected = format!("export of x fails: {} (7 more suppressed)", "c".repeat(300));
        assert_eq!(last, expected);
        assert_eq!((health.requests_taken(), health.requests_failed()), (5, 6));
    }
}
