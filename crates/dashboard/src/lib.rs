//! The dashboard: pages and a JSON API about the process that serves them (section `dashboard`).
//!
//! One control thread with its own runtime serves everything over HTTP/1.1; no worker ever waits for it. It reads what the
//! workers share as `show stat` does, and changes servers only through the commands of the runtime interface.
//!
//! | file | holds |
//! |---|---|
//! | `limits` | every bound of what a client may ask |
//! | `serve` | the thread, the sockets, one connection |
//! | `gate` | who may ask: the `Host`, passwords, where an action comes from |
//! | `routes` | the table of addresses, and what answers each |
//! | `reply` | answers, with the fields that all of them have |
//! | `assets` | the files of the pages, which are part of the program |
//! | `now`, `traced`, `sampling`, `configuration`, `actions`, `explained` | one part of the API each |
#![forbid(unsafe_code)]

mod actions;
mod assets;
mod configuration;
mod explained;
mod gate;
mod limits;
mod now;
mod percentile;
mod query;
mod reply;
mod routes;
mod sampling;
mod serve;
mod traced;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proxy::{Running, Shared};
use syntax::octets::Octets;

pub use actions::{Action, Change};
pub use configuration::{Notice, Text};
pub use explained::{Explain, Question};
pub use sampling::{Refused, Sampling};
pub use serve::Dashboard;

/// What the dashboard is told of its process.
pub struct Setup {
    /// The configuration that runs.
    pub running: Arc<Running>,
    /// What the workers have counted.
    pub shared: Arc<Shared>,
    /// Sockets that listen.
    pub sockets: Vec<Socket>,
    /// Users and their passwords; none: nobody is asked.
    pub users: Vec<(Octets, Octets)>,
    /// The version of the program.
    pub version: &'static str,
    /// The files of the configuration.
    pub texts: Vec<Text>,
    /// What was said of them at the start.
    pub notices: Vec<Notice>,
    /// Carries out a change of a server; none where the section does not permit it.
    pub change: Option<Box<Change>>,
    /// Explains what the configuration does with a request.
    pub explain: Box<Explain>,
    /// The traces of the last minutes; none without a collector's exporter `dashboard`.
    pub traces: Option<Arc<traces::Store>>,
    /// What collectors sample.
    pub sampling: Sampling,
    /// Random numbers for the token that actions must carry.
    pub seed: [u64; 2],
    /// Bytes of memory that the process uses.
    pub memory_used_bytes: fn() -> u64,
}

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// Of TCP.
    Tcp(OwnedFd),
    /// A UNIX socket.
    Unix(OwnedFd),
}

/// Reads bytes as everything that a client may send: a query, a question, an action. For fuzzing.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // What they come to is for the callers of these.
    let _ = (
        query::pairs(&text),
        explained::read(&text),
        actions::read(bytes),
    );
}
