//! The UDP sockets of drivers: the options that they rely on, and sockets to servers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::{Addr, Connect, sys};

/// The receive buffer that a datagram socket asks for, bytes. The system permits less without a
/// privilege (`net.core.rmem_max`).
pub const RECEIVE_BUFFER_BYTES: i32 = 4 << 20;
/// The send buffer that a datagram socket asks for, bytes (`net.core.wmem_max`).
pub const SEND_BUFFER_BYTES: i32 = 2 << 20;

/// Sets the options that a driver needs. `buffers` are the sizes in bytes of the kernel's buffers for
/// received and for sent datagrams. Without one, it is [`RECEIVE_BUFFER_BYTES`] or
/// [`SEND_BUFFER_BYTES`].
///
/// # Errors
/// What the kernel cannot do, and its error.
pub(crate) fn set_options(
    raw: RawFd,
    local: &Addr,
    buffers: (Option<i32>, Option<i32>),
) -> Result<(), (&'static str, io::Error)> {
    let is_v6 = matches!(local, Addr::Inet(SocketAddr::V6(_)));
    let set = |level, name, value, what| {
        sys::set_option(raw, level, name, value).map_err(|error| (what, error))
    };
    let ip = |name, value, what| set(libc::IPPROTO_IP, name, value, what);
    let ipv6 = |name, value, what| set(libc::IPPROTO_IPV6, name, value, what);

    // A socket of IPv6 may have IPv4 peers, for whose packets the options of IPv4 count.
    let probe = "cannot keep datagrams from being fragmented";
    ip(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, probe)?;
    let ecn = "cannot receive the ECN field";
    ip(libc::IP_RECVTOS, 1, ecn)?;
    let address = "cannot receive the local address";
    if is_v6 {
        let mode = libc::IPV6_PMTUDISC_PROBE;
        ipv6(libc::IPV6_MTU_DISCOVER, mode, probe)?;
        ipv6(libc::IPV6_RECVTCLASS, 1, ecn)?;
        ipv6(libc::IPV6_RECVPKTINFO, 1, address)?;
    } else {
        ip(libc::IP_PKTINFO, 1, address)?;
    }
    // Older kernels deliver each datagram by itself.
    sys::join_datagrams(raw);
    // If the kernel refuses a size, its own value stays.
    let (receive, send) = buffers;
    let _ = sys::set_buffer(
        raw,
        libc::SO_RCVBUF,
        receive.unwrap_or(RECEIVE_BUFFER_BYTES),
    );
    let _ = sys::set_buffer(raw, libc::SO_SNDBUF, send.unwrap_or(SEND_BUFFER_BYTES));
    Ok(())
}

/// Opens a socket that is connected to a server. The kernel delivers only datagrams of the server's
/// address to it, and reports when that address refuses datagrams.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn to_server(
    connect: &Connect<'_>,
    buffers: (Option<i32>, Option<i32>),
) -> io::Result<OwnedFd> {
    let fd = match &connect.tcp.namespace {
        Some(namespace) => sys::datagram_socket_in(namespace, connect.to)?,
        None => sys::datagram_socket(connect.to)?,
    };
    let raw = fd.as_raw_fd();
    set_options(raw, connect.to, buffers).map_err(|(_, error)| error)?;
    sys::label(raw, connect.labels);
    if let Some(interface) = connect.interface {
        sys::bind_to_interface(raw, interface)?;
    }
    if let Some(from) = connect.from {
        if connect.is_foreign {
            sys::set_transparent(raw, from.ip().is_some_and(|ip| ip.is_ipv6()))?;
        }
        sys::bind(&fd, from)?;
    }
    sys::connect(raw, connect.to)?;
    Ok(fd)
}
