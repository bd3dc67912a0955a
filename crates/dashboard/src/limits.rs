//! Every limit on the input of a client.

use std::time::Duration;

/// Most connections at a time; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 64;
/// Most bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most header fields of a request.
pub const FIELDS_MAX: usize = 64;
/// Most bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Most time from the end of the previous answer until a request's head has arrived.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Most time from a request's head to its answer.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest life of a connection; a browser opens another one.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);
/// Most time that an answer may take after that.
pub const CONNECTION_END_MAX: Duration = Duration::from_secs(5);
/// Most time for current answers when the dashboard ends.
pub const END_MAX: Duration = Duration::from_secs(1);
/// Pause before the answer to a wrong password.
pub const REFUSAL_PAUSE: Duration = Duration::from_millis(300);
/// Pause after a failed accept (too many open files) before the next attempt.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Threads for slow requests, in addition to the control thread.
pub const SLOW_THREADS_MAX: usize = 1;
