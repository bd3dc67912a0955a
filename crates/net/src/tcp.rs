//! Socket options of TCP connections (manual §4.2 clitcpka-*, srvtcpka-*; §5.1 and §5.2 cc,
//! tcp-md5sig, tcp-ut).

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use crate::{Addr, sys};

/// Keep-alive probes; `None` keeps the system's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Seconds without traffic before the first probe.
    pub idle_s: Option<u32>,
    /// Seconds between two probes.
    pub interval_s: Option<u32>,
    /// Unanswered probes after which the connection is dead.
    pub probes: Option<u32>,
}

/// The options of a bind line's or a server's connections. `None` keeps the system's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Milliseconds that sent data may stay unacknowledged (RFC 5482).
    pub user_timeout_ms: Option<u32>,
    /// The congestion control algorithm.
    pub congestion: Option<String>,
    /// The key of MD5 signatures (RFC 2385), at most [`MD5_KEY_BYTES_MAX`] bytes.
    pub md5_key: Option<Box<[u8]>>,
    /// The network namespace of the sockets (ip-netns(8)).
    pub namespace: Option<String>,
    /// Multipath TCP (RFC 8684), if the peer agrees.
    pub multipath: bool,
}

/// The longest key of MD5 signatures that the kernel takes.
pub const MD5_KEY_BYTES_MAX: usize = 80;

/// Turns keep-alive probes on. If the kernel refuses a value, its own stays.
///
/// # Errors
/// `errno` of `setsockopt`.
pub(crate) fn keep_alive(fd: RawFd, keepalive: Keepalive) -> io::Result<()> {
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    for (name, value) in [
        (libc::TCP_KEEPIDLE, keepalive.idle_s),
        (libc::TCP_KEEPINTVL, keepalive.interval_s),
        (libc::TCP_KEEPCNT, keepalive.probes),
    ] {
        if let Some(value) = value {
            let value = i32::try_from(value).unwrap_or(i32::MAX);
            let _ = sys::set_option(fd, libc::IPPROTO_TCP, name, value);
        }
    }
    Ok(())
}

impl TcpOptions {
    /// A new socket for connections of `addr`'s family. A UNIX socket gets no option.
    ///
    /// # Errors
    /// The namespace does not exist, this process may not enter it, or `errno` of `socket`.
    pub(crate) fn socket(&self, addr: &Addr) -> io::Result<OwnedFd> {
        let protocol = if self.multipath {
            libc::IPPROTO_MPTCP
        } else {
            0
        };
        match &self.namespace {
            _ if addr.is_unix() => sys::stream_socket(addr),
            Some(namespace) => sys::socket_in(namespace, addr, protocol),
            None => sys::socket_of(addr, protocol),
        }
    }

    /// Sets the options on the socket of a connection to `peer`, before it connects.
    ///
    /// # Errors
    /// The key of signatures cannot be set: without it the peer accepts nothing. As in HAProxy, a
    /// connection does not need the other options.
    pub(crate) fn apply(&self, fd: RawFd, peer: &Addr) -> io::Result<()> {
        let _ = self.set_congestion(fd);
        let _ = self.set_user_timeout(fd);
        self.set_md5_key(fd, peer)
    }

    /// Sets the options on a listening socket, whose connections inherit them. `local` is its
    /// address.
    ///
    /// # Errors
    /// The error of the kernel, with the option in the text.
    pub(crate) fn apply_to_listener(&self, fd: RawFd, local: &Addr) -> io::Result<()> {
        let step = |what: &str, done: io::Result<()>| {
            done.map_err(|error| {
                let why = sys::plain_error(&error);
                io::Error::new(error.kind(), format!("cannot set {what} ({why})"))
            })
        };
        step("TCP congestion control algorithm", self.set_congestion(fd))?;
        step("TCP User Timeout", self.set_user_timeout(fd))?;
        step("TCP MD5 signature", self.set_md5_key(fd, local))
    }

    fn set_congestion(&self, fd: RawFd) -> io::Result<()> {
        match &self.congestion {
            Some(name) => {
                sys::set_bytes(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
            }
            None => Ok(()),
        }
    }

    fn set_user_timeout(&self, fd: RawFd) -> io::Result<()> {
        match self.user_timeout_ms {
            Some(ms) => {
                let ms = i32::try_from(ms).unwrap_or(i32::MAX);
                sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms)
            }
            None => Ok(()),
        }
    }

    fn set_md5_key(&self, fd: RawFd, peer: &Addr) -> io::Result<()> {
        match &self.md5_key {
            Some(key) => sys::set_md5_key(fd, peer, key),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn socket() -> (std::os::fd::OwnedFd, Addr) {
        let addr = Addr::Inet(([127, 0, 0, 1], 0).into());
        (sys::stream_socket(&addr).expect("a socket"), addr)
    }

    #[test]
    fn options_are_set() {
        let (fd, addr) = socket();
        let raw = fd.as_raw_fd();
        let options = TcpOptions {
            user_timeout_ms: Some(12_345),
            congestion: Some("reno".to_owned()),
            ..TcpOptions::default()
        };
        options.apply(raw, &addr).expect("options");
        let of = |name| sys::option(raw, libc::IPPROTO_TCP, name).expect("an option");
        assert_eq!(of(libc::TCP_USER_TIMEOUT), 12_345);
        // The first four bytes of its name.
        assert_eq!(of(libc::TCP_CONGESTION).to_ne_bytes(), *b"reno");
        let keepalive = Keepalive {
            idle_s: Some(61),
            interval_s: None,
            probes: Some(7),
        };
        let interval_s = of(libc::TCP_KEEPINTVL);
        keep_alive(raw, keepalive).expect("options");
        assert_eq!(of(libc::TCP_KEEPIDLE), 61);
        assert_eq!(of(libc::TCP_KEEPCNT), 7);
        assert_eq!(of(libc::TCP_KEEPINTVL), interval_s);
        let on = sys::option(raw, libc::SOL_SOCKET, libc::SO_KEEPALIVE);
        assert_eq!(on.expect("an option"), 1);
    }

    #[test]
    fn a_listener_has_several_paths_where_the_kernel_has_them() {
        let addr = Addr::Inet(([127, 0, 0, 1], 0).into());
        let options = crate::listen::ListenOptions {
            backlog: 1,
            tcp: TcpOptions {
                multipath: true,
                ..TcpOptions::default()
            },
            ..crate::listen::ListenOptions::default()
        };
        match crate::listen::open(&crate::listen::ListenAddr::Bind(addr.clone()), &options) {
            Ok(fd) => {
                let protocol = sys::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PROTOCOL);
                assert_eq!(protocol.expect("an option"), libc::IPPROTO_MPTCP);
            }
            Err(error) => assert!(
                sys::socket_of(&addr, libc::IPPROTO_MPTCP).is_err(),
                "{error}"
            ),
        }
    }

    #[test]
    fn a_namespace_that_is_not_there_is_told() {
        let options = TcpOptions {
            namespace: Some("no-such-namespace".to_owned()),
            ..TcpOptions::default()
        };
        let addr = Addr::Inet(([127, 0, 0, 1], 0).into());
        let error = options.socket(&addr).expect_err("no socket");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_listener_tells_what_the_kernel_refuses_and_a_connection_goes_without() {
        let (fd, addr) = socket();
        let options = TcpOptions {
            congestion: Some("no-such-algorithm".to_owned()),
            ..TcpOptions::default()
        };
        let error = options.apply_to_listener(fd.as_raw_fd(), &addr);
        let error = error.expect_err("an error").to_string();
        assert!(
            error.starts_with("cannot set TCP congestion control algorithm ("),
            "{error}"
        );
        options.apply(fd.as_raw_fd(), &addr).expect("options");
    }
}
