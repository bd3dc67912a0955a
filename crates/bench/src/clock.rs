//! The one place of this crate that reads the clock.

use std::time::{Duration, Instant};

/// A point in time to be reached, or not.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// Whether it is reached.
    pub fn passed(self) -> bool {
        now() >= self.0
    }
}

/// The time now.
#[expect(
    clippy::disallowed_methods,
    reason = "measuring is what this program does"
)]
pub fn now() -> Instant {
    Instant::now()
}
