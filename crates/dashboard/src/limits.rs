//! Every bound of what a client may ask.

use std::time::Duration;

/// Connections at once; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Header fields of a request.
pub const FIELDS_MAX: usize = 64;
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Until a request's head is there, from the end of the answer before it on.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// From a request's head to its answer.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// The life of a connection; a browser opens another one.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);
/// How long an answer may still take then.
pub const CONNECTION_END_MAX: Duration = Duration::from_secs(5);
/// How long answers may still take when the dashboard ends.
pub const END_MAX: Duration = Duration::from_secs(1);
/// Before an answer to a wrong password.
pub const REFUSAL_PAUSE: Duration = Duration::from_millis(300);
/// After an error of accepting (too many open files), before the next attempt.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Threads beside the control thread, for what takes longer.
pub const SLOW_THREADS_MAX: usize = 1;
