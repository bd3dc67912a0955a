//! The wall clock. Nothing that decides about traces reads it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the UNIX epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "no driver gives the time here, and nothing of the data path asks for it"
)]
#[must_use]
pub fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
