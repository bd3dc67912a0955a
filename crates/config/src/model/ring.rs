//! Sections `ring` (manual §12.5).

use super::{LogWire, ServerTls};
use net::ring::Framing;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A ring: a buffer of log messages.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Its name.
    pub name: String,
    /// `description`, by default the name.
    pub description: String,
    /// `format`: the format of its messages, whatever `log` lines say.
    pub format: LogWire,
    /// `maxlen`: longer messages are cut to this length, bytes.
    pub message_bytes_max: Option<usize>,
    /// `size`: the memory for messages, bytes.
    pub bytes_max: usize,
    /// `backing-file`: the file to which its messages are copied.
    pub backing_file: Option<PathBuf>,
    /// `timeout connect`: the time limit of a connection attempt to a server.
    pub timeout_connect: Option<Duration>,
    /// `timeout server`: the longest time in which a server takes no byte although messages wait.
    pub timeout_server: Option<Duration>,
    /// The servers that get its messages.
    pub servers: Vec<RingServer>,
}

/// A server of a ring.
#[derive(Clone, Debug)]
pub struct RingServer {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// `log-proto`: how messages are separated.
    pub framing: Framing,
    /// Its TLS; none for plain connections.
    pub tls: Option<Box<ServerTls>>,
}

impl Ring {
    /// A ring with the default settings. `size_bytes`: the default size (`tune.bufsize`).
    #[must_use]
    pub fn new(name: &str, size_bytes: usize) -> Ring {
        Ring {
            name: name.to_owned(),
            description: name.to_owned(),
            format: LogWire::Raw,
            message_bytes_max: None,
            bytes_max: size_bytes,
            backing_file: None,
            timeout_connect: None,
            timeout_server: None,
            servers: Vec::new(),
        }
    }
}
