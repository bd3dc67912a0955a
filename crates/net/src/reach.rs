//! Whether a log target can be reached, and how many messages were lost.
//!
//! Sinks record failures; the thread that `wake` wakes reports each once. A message that arrives
//! costs one relaxed load.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sys;

/// Messages dropped since the start of the process, all targets together.
#[derive(Debug, Default)]
pub struct Dropped(AtomicU64);

impl Dropped {
    /// The count so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts lost messages.
    pub fn add(&self, messages: u64) {
        self.0.fetch_add(messages, Ordering::Relaxed);
    }
}

/// One log target, shared by its sinks.
#[derive(Debug)]
pub struct Reach {
    name: String,
    /// A failure is recorded.
    fails: AtomicBool,
    state: Mutex<State>,
    /// The time without an error after which the target counts as reached again.
    quiet: Duration,
    /// Wakes the reporter of [`Reach::news`].
    wake: fn(),
}

#[derive(Debug, Default)]
struct State {
    error: Option<Failure>,
    lost: u64,
    /// The failure was reported.
    told: bool,
    /// The cause of a failure that ended before it was reported.
    untold: Option<String>,
}

#[derive(Debug)]
struct Failure {
    text: String,
    last_ns: u64,
}

/// A change of a target's state, to be reported.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// The target cannot be reached, for this reason.
    Fails(String),
    /// The target is reached again; `lost` messages were lost.
    Works {
        /// Lost messages.
        lost: u64,
    },
}

impl Reach {
    /// A target of unknown state. Where errors arrive late, as with UDP, it counts as reached again
    /// only after `quiet` without an error. `wake` is called when there is something to report.
    #[must_use]
    pub fn new(name: String, quiet: Duration, wake: fn()) -> Reach {
        Reach {
            name,
            fails: AtomicBool::new(false),
            state: Mutex::default(),
            quiet,
            wake,
        }
    }

    /// The target's name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failed attempt and the messages lost with it.
    pub fn failed(&self, error: &io::Error, lost: u64) {
        let mut state = self.state();
        state.lost += lost;
        let last_ns = sys::monotonic_ns();
        match &mut state.error {
            Some(failure) => failure.last_ns = last_ns,
            None => {
                let text = sys::plain_error(error);
                state.error = Some(Failure { text, last_ns });
                self.fails.store(true, Ordering::Relaxed);
                drop(state);
                (self.wake)();
            }
        }
    }

    /// Counts messages lost for lack of room while the target fails.
    pub(crate) fn lost(&self, messages: u64) {
        let mut state = self.state();
        if state.error.is_some() {
            state.lost += messages;
        }
    }

    /// Records that messages arrived, as far as is known.
    #[inline]
    pub fn worked(&self) {
        if self.fails.load(Ordering::Relaxed) {
            self.works_again();
        }
    }

    #[cold]
    fn works_again(&self) {
        let mut state = self.state();
        let passed = |since_ns| Duration::from_nanos(sys::monotonic_ns().saturating_sub(since_ns));
        let quiet = |failure: &Failure| passed(failure.last_ns) >= self.quiet;
        if !state.error.as_ref().is_some_and(quiet) {
            return;
        }
        let ended = state.error.take();
        if !std::mem::replace(&mut state.told, true) {
            state.untold = ended.map(|failure| failure.text);
        }
        self.fails.store(false, Ordering::Relaxed);
        drop(state);
        (self.wake)();
    }

    /// The next change to report; each is returned once.
    #[must_use]
    pub fn news(&self) -> Option<News> {
        let mut state = self.state();
        if let Some(text) = state.untold.take() {
            return Some(News::Fails(text));
        }
        match (&state.error, state.told) {
            (Some(failure), false) => {
                let news = News::Fails(failure.text.clone());
                state.told = true;
                Some(news)
            }
            (None, true) => {
                state.told = false;
                let lost = std::mem::take(&mut state.lost);
                Some(News::Works { lost })
            }
            _ => None,
        }
    }

    /// Messages lost in a failure that is not over yet.
    #[must_use]
    pub fn lost_in_the_end(&self) -> u64 {
        self.state().lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_failure_is_told_once_and_its_end_with_a_count() {
        static WOKEN: AtomicU32 = AtomicU32::new(0);
        let wake = || {
            WOKEN.fetch_add(1, Ordering::Relaxed);
        };
        let woken = || WOKEN.load(Ordering::Relaxed);
        let reach = Reach::new("t".to_owned(), Duration::ZERO, wake);
        reach.worked();
        assert_eq!((reach.news(), woken()), (None, 0));
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        for _ in 0..3 {
            reach.failed(&refused, 2);
        }
        reach.lost(1);
        let told = News::Fails("Connection refused".to_owned());
        assert_eq!((reach.news(), reach.news(), woken()), (Some(told), None, 1));
        assert_eq!(reach.lost_in_the_end(), 7);
        reach.worked();
        assert_eq!(reach.news(), Some(News::Works { lost: 7 }));
        assert_eq!(
            (reach.news(), reach.lost_in_the_end(), woken()),
            (None, 0, 2)
        );
    }

    #[test]
    fn a_failure_that_is_over_is_told_before_its_end() {
        let reach = Reach::new("t".to_owned(), Duration::ZERO, || ());
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        reach.failed(&refused, 2);
        reach.worked();
        let told = News::Fails("Connection refused".to_owned());
        assert_eq!(reach.news(), Some(told));
        assert_eq!(reach.news(), Some(News::Works { lost: 2 }));
        assert_eq!(reach.news(), None);
    }

    #[test]
    fn where_errors_come_late_one_message_without_is_no_proof() {
        let reach = Reach::new("t".to_owned(), Duration::from_secs(3600), || {});
        reach.failed(&io::Error::from_raw_os_error(libc::ECONNREFUSED), 1);
        assert!(reach.news().is_some());
        reach.worked();
        assert_eq!(reach.news(), None);
    }
}
