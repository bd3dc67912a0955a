//! The only place of this crate that reads the clock.

use std::time::{Duration, Instant, SystemTime};

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(now() + time)
    }

    /// Whether it has passed.
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

/// The time since the UNIX epoch.
#[expect(clippy::disallowed_methods, reason = "certificates hold from now on")]
pub fn since_epoch() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}
