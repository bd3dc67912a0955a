//! Orders to end streams.

use std::sync::mpsc::Sender;

/// Streams to end.
#[derive(Clone, Debug)]
pub enum Killed {
    /// The stream with this number, by a command. The worker that finds it reports that.
    Stream(u64, Sender<()>),
    /// All streams of a server, by a command: the place of its backend, and its own place there.
    Server(usize, usize),
    /// Streams connected to a server that went down (`on-marked-down shutdown-sessions` and related
    /// options).
    ServerDown(usize, usize),
    /// All streams: the process has waited for them long enough (`hard-stop-after`).
    All,
}
