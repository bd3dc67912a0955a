//! Sections `log-forward` (manual §12.6).

use super::{Bind, BindAddress, LogTarget};
use std::time::Duration;

/// A relay of log messages.
#[derive(Clone, Debug)]
pub struct LogForward {
    /// Its name.
    pub name: String,
    /// `dgram-bind`: the addresses that receive datagrams.
    pub dgram_binds: Vec<DgramBind>,
    /// `bind`: the addresses that receive streams.
    pub binds: Vec<Bind>,
    /// `backlog`: the length of the kernel's accept queues.
    pub backlog: Option<u32>,
    /// `maxconn`: the most connections at a time.
    pub maxconn: u32,
    /// `timeout client`: the longest silence of a connection.
    pub timeout_client: Option<Duration>,
    /// `log`: the targets.
    pub log: Vec<LogTarget>,
    /// `option dont-parse-log`: messages are relayed without a look at their headers.
    pub dont_parse: bool,
    /// `option assume-rfc6587-ntf`: messages of streams always end in a line feed.
    pub assume_lines: bool,
    /// `option host`: what becomes of the name of the host.
    pub host: HostStrategy,
    /// `file:line`
    pub origin: String,
}

impl LogForward {
    /// A section with the default settings; `origin` is its place.
    #[must_use]
    pub fn new(name: &str, origin: &str) -> LogForward {
        /// The default of `maxconn`, as in HAProxy.
        const MAXCONN: u32 = 10;
        LogForward {
            name: name.to_owned(),
            dgram_binds: Vec::new(),
            binds: Vec::new(),
            backlog: None,
            maxconn: MAXCONN,
            timeout_client: None,
            log: Vec::new(),
            dont_parse: false,
            assume_lines: false,
            host: HostStrategy::default(),
            origin: origin.to_owned(),
        }
    }
}

/// An address that receives datagrams.
#[derive(Clone, Debug)]
pub struct DgramBind {
    /// The address.
    pub address: BindAddress,
    /// The network interface to receive from.
    pub interface: Option<String>,
    /// `file:line`
    pub origin: String,
}

/// What becomes of the name of the host in a message (`option host`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostStrategy {
    /// The address of the sender replaces it.
    Replace,
    /// The address of the sender is used where it is missing.
    #[default]
    Fill,
    /// It stays.
    Keep,
    /// The address of the sender follows it.
    Append,
}
