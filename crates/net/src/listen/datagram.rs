//! Opening the datagram sockets of a `bind` line (`quic4@`, `quic6@`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{ListenAddr, step};
pub use crate::udp::{RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES};
use crate::{Addr, sys, udp};

/// Options of a datagram socket (manual §5.1).
#[derive(Clone, Debug, Default)]
pub struct DatagramOptions {
    /// Whether an IPv6 wildcard refuses IPv4 (`v6only`) or accepts it too (`v4v6`); `None` keeps
    /// the system's default.
    pub v6only: Option<bool>,
    /// Receive only from this interface.
    pub interface: Option<String>,
    /// The network namespace of the socket (ip-netns(8)).
    pub namespace: Option<String>,
    /// Receive datagrams to addresses that are not this machine's (`transparent`).
    pub transparent: bool,
    /// Size of the receive buffer, bytes; `None` for [`RECEIVE_BUFFER_BYTES`].
    pub receive_buffer: Option<i32>,
    /// Size of the send buffer, bytes; `None` for [`SEND_BUFFER_BYTES`].
    pub send_buffer: Option<i32>,
}

/// What the kernel does for a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFacts {
    /// It joins datagrams of a peer into runs (`UDP_GRO`, Linux 5.0).
    pub joins: bool,
    /// It cuts runs into datagrams (`UDP_SEGMENT`, Linux 4.18).
    pub cuts: bool,
    /// Size of its receive buffer as the kernel counts: with its own overhead, bytes.
    pub receive_buffer: i32,
    /// Size of its send buffer, likewise.
    pub send_buffer: i32,
}

/// Opens a datagram socket for a driver. All sockets of an address share its port
/// (`SO_REUSEPORT`): each worker opens its own. An inherited descriptor is taken over as
/// [`super::open`] does, and [`set_again`] says what it must be.
///
/// # Errors
/// The error of the kernel, with the step that failed in the text.
pub fn open_datagram(addr: &ListenAddr, options: &DatagramOptions) -> io::Result<OwnedFd> {
    match addr {
        ListenAddr::Bind(Addr::Inet(inet)) => bound(*inet, options),
        ListenAddr::Bind(Addr::Unix(_)) => Err(unfit("a UNIX address has no QUIC".to_owned())),
        ListenAddr::Inherited(fd) => {
            check(*fd, options)?;
            from_fd(sys::inherit(*fd)?, options)
        }
    }
}

/// Takes over a bound datagram socket that another process or another part of this one has opened,
/// with these options instead of its own.
///
/// # Errors
/// As [`set_again`].
pub fn from_fd(fd: OwnedFd, options: &DatagramOptions) -> io::Result<OwnedFd> {
    set_again(&fd, options)?;
    Ok(fd)
}

/// Sets the options of a bound datagram socket again. Interface, namespace and `transparent` stay
/// as they are, as those of a listening socket do.
///
/// # Errors
/// The descriptor is not a bound UDP socket without a peer, or is `v6only` where the options say
/// `v4v6` or the reverse; otherwise the error of the kernel, with the step that failed in the text.
pub fn set_again(fd: &OwnedFd, options: &DatagramOptions) -> io::Result<()> {
    let raw = fd.as_raw_fd();
    let local = check(raw, options)?;
    sys::set_nonblocking_cloexec(raw)?;
    // Options that a driver's sockets do not have are turned off first.
    for (level, name) in [
        (libc::IPPROTO_IP, libc::IP_RECVERR),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        (libc::SOL_UDP, libc::UDP_SEGMENT),
        (libc::SOL_UDP, libc::UDP_CORK),
    ] {
        // A kernel or a family without the option has nothing to turn off.
        let _ = sys::set_option(raw, level, name, 0);
    }
    set_options(raw, &local, options)?;
    share_port(raw)
}

/// What the kernel does for this socket. Asking turns `UDP_GRO` on, which a driver's sockets have.
///
/// # Errors
/// `errno` of `getsockopt`.
pub fn datagram_facts(fd: &OwnedFd) -> io::Result<DatagramFacts> {
    let raw = fd.as_raw_fd();
    Ok(DatagramFacts {
        joins: sys::join_datagrams(raw),
        cuts: sys::cuts_datagrams(raw),
        receive_buffer: sys::option(raw, libc::SOL_SOCKET, libc::SO_RCVBUF)?,
        send_buffer: sys::option(raw, libc::SOL_SOCKET, libc::SO_SNDBUF)?,
    })
}

fn bound(inet: SocketAddr, options: &DatagramOptions) -> io::Result<OwnedFd> {
    let addr = Addr::Inet(inet);
    let fd = match &options.namespace {
        Some(namespace) => sys::datagram_socket_in(namespace, &addr),
        None => sys::datagram_socket(&addr),
    };
    let fd = fd.map_err(|error| step("cannot create receiving socket", error))?;
    let raw = fd.as_raw_fd();
    if inet.is_ipv6()
        && let Some(v6only) = options.v6only
    {
        let v6only = i32::from(v6only);
        sys::set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, v6only)?;
    }
    if let Some(interface) = &options.interface {
        sys::bind_to_interface(raw, interface)
            .map_err(|error| step("cannot bind listener to device", error))?;
    }
    if options.transparent {
        sys::set_transparent(raw, inet.is_ipv6())
            .map_err(|error| step("cannot make listening socket transparent", error))?;
    }
    set_options(raw, &addr, options)?;
    // Of a socket that shares its port, the kernel would select one that is in use by others that
    // share theirs.
    if inet.port() != 0 {
        share_port(raw)?;
    }
    sys::bind(&fd, &addr).map_err(|error| step("cannot bind socket", error))?;
    share_port(raw)?;
    Ok(fd)
}

/// The local address of a descriptor that a driver can serve.
fn check(fd: RawFd, options: &DatagramOptions) -> io::Result<Addr> {
    let option = |name| {
        sys::option(fd, libc::SOL_SOCKET, name)
            .map_err(|error| step("cannot use file descriptor", error))
    };
    let is_udp = option(libc::SO_TYPE)? == libc::SOCK_DGRAM
        && option(libc::SO_PROTOCOL)? == libc::IPPROTO_UDP;
    let local = sys::local_addr(fd)?;
    if !is_udp || local.is_unix() {
        return Err(unfit(format!("file descriptor {fd} is not a UDP socket")));
    }
    if local.port() == 0 {
        return Err(unfit(format!("file descriptor {fd} is not bound")));
    }
    if sys::peer_addr(fd).is_ok() {
        return Err(unfit(format!("file descriptor {fd} is connected")));
    }
    // The kernel does not change this after the bind, and it matters only to a wildcard.
    if let Addr::Inet(SocketAddr::V6(v6)) = &local
        && v6.ip().is_unspecified()
        && let Some(v6only) = options.v6only
        && sys::is_v6only(fd)? != v6only
    {
        let other = if v6only { "v4v6" } else { "v6only" };
        return Err(unfit(format!("file descriptor {fd} is {other}")));
    }
    Ok(local)
}

fn unfit(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn share_port(raw: RawFd) -> io::Result<()> {
    sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
        .map_err(|error| step("cannot share the port of a socket", error))
}

fn set_options(raw: RawFd, local: &Addr, options: &DatagramOptions) -> io::Result<()> {
    let buffers = (options.receive_buffer, options.send_buffer);
    let set = udp::set_options(raw, local, buffers);
    set.map_err(|(what, error)| step(what, error))
}
