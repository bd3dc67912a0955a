//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[must_use]
pub fn now_unix_ms() -> u64 {
    now_unix_ns() / 1_000_000
}

/// Nanoseconds since 1970.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where exporters read the wall clock"
)]
pub fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
