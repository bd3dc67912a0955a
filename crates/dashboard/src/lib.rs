//! The dashboard: pages and a JSON API about the process that serves them (section `dashboard`).
//!
//! One control thread with its own runtime serves everything over HTTP/1.1. No worker ever waits
//! for it. It reads the state that workers share, like `show stat`. It changes servers and reloads
//! only through commands of the runtime interface.
//!
//! | file | holds |
//! |---|---|
//! | `limits` | every limit on the input of a client |
//! | `serve` | the thread, the sockets, one connection |
//! | `gate` | access control: the `Host`, passwords, the origin of an action |
//! | `routes` | the table of addresses and their handlers |
//! | `reply` | answers, and the header fields of all answers |
//! | `assets` | the files of the pages, which are embedded in the program |
//! | `now`, `traced`, `sampling`, `configuration`, `actions`, `reload`, `explained` | one part of the API each |
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
mod reload;
mod reply;
mod routes;
mod sampling;
mod serve;
mod traced;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proxy::Current;
use syntax::octets::Octets;

pub use actions::{Action, Change};
pub use configuration::{CurrentFiles, Files, Notice, Text};
pub use explained::{Explain, Question};
pub use reload::{Reload, Reloader};
pub use sampling::{Refused, Sampling};
pub use serve::Dashboard;

/// The inputs of the dashboard.
pub struct Setup {
    /// The configuration and the counters of the workers.
    pub current: Arc<Current>,
    /// Listening sockets.
    pub sockets: Vec<Socket>,
    /// Users and their passwords; if empty, no password is requested.
    pub users: Vec<(Octets, Octets)>,
    /// The version of the program.
    pub version: &'static str,
    /// The files of the configuration.
    pub files: Arc<CurrentFiles>,
    /// Changes a server; None if the section does not permit it.
    pub change: Option<Box<Change>>,
    /// Reloads in place; None if the section does not permit it.
    pub reload: Option<Box<Reloader>>,
    /// Explains what the configuration does with a request.
    pub explain: Box<Explain>,
    /// The traces of the last minutes; None without an exporter `dashboard` of a collector.
    pub traces: Option<Arc<traces::Store>>,
    /// The sampling of collectors.
    pub sampling: Sampling,
    /// Random numbers for the token that actions must carry.
    pub seed: [u64; 2],
    /// Bytes of memory that the process uses.
    pub memory_used_bytes: fn() -> u64,
}

/// A listening socket.
#[derive(Debug)]
pub enum Socket {
    /// A TCP socket.
    Tcp(OwnedFd),
    /// A UNIX socket.
    Unix(OwnedFd),
}

/// Parses bytes as everything that a client may send: a query, a question, an action, a reload. For fuzzing.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // The results are not used here.
    let _ = (
        query::pairs(&text),
        explained::read(&text),
        actions::read(bytes),
        reload::read(bytes),
    );
}
