//! One address type for local and remote ends of every connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A transport address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Addr {
    /// IPv4 or IPv6 with its port.
    Inet(SocketAddr),
    /// A UNIX socket's path; an abstract one starts with a NUL byte. Empty for an unnamed peer.
    Unix(Arc<[u8]>),
}

impl Addr {
    /// The IP address, unless this is a UNIX socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Addr::Inet(addr) => Some(addr.ip()),
            Addr::Unix(_) => None,
        }
    }

    /// The port, 0 for a UNIX socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Addr::Inet(addr) => addr.port(),
            Addr::Unix(_) => 0,
        }
    }

    /// Whether the address stands for any address of its family (`0.0.0.0`, `::`).
    #[must_use]
    pub fn is_unspecified(&self) -> bool {
        matches!(self, Addr::Inet(addr) if addr.ip().is_unspecified())
    }

    /// Whether this is a UNIX socket's address.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        matches!(self, Addr::Unix(_))
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Addr::Inet(addr) => addr.fmt(out),
            Addr::Unix(path) => match path.split_first() {
                Some((0, name)) => {
                    let name = String::from_utf8_lossy(name);
                    write!(out, "abns@{}", name.trim_end_matches('\0'))
                }
                _ => write!(out, "unix@{}", String::from_utf8_lossy(path)),
            },
        }
    }
}
