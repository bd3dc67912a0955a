//! Creates, binds, connects, accepts and inherits sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::c_int;

use super::address::{RawAddr, family};
use super::{check, errno};
use crate::Addr;

/// A new non-blocking stream socket for an address' family.
///
/// # Errors
/// `errno` of `socket`.
pub fn stream_socket(addr: &Addr) -> io::Result<OwnedFd> {
    socket_of(addr, 0)
}

/// A new non-blocking stream socket with a protocol other than the family's default.
///
/// # Errors
/// `errno` of `socket`.
pub fn socket_of(addr: &Addr, protocol: c_int) -> io::Result<OwnedFd> {
    socket(family(addr), libc::SOCK_STREAM, protocol)
}

/// The directory of named network namespaces (ip-netns(8)).
const NAMESPACES: &str = "/var/run/netns";

/// The same as [`socket_of`], in a network namespace. This thread enters the namespace for the
/// duration of the call.
///
/// # Errors
/// The namespace does not exist, this process may not enter it, or `errno` of `socket`.
pub fn socket_in(namespace: &str, addr: &Addr, protocol: c_int) -> io::Result<OwnedFd> {
    in_namespace(namespace, || socket_of(addr, protocol))
}

fn in_namespace(
    namespace: &str,
    make: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let own = std::fs::File::open("/proc/thread-self/ns/net")?;
    let other = std::fs::File::open(format!("{NAMESPACES}/{namespace}"))?;
    enter_namespace(&other)?;
    let made = make();
    // A thread that cannot return must not continue in the other namespace.
    enter_namespace(&own).expect("a thread returns to its own network namespace");
    made
}

fn enter_namespace(namespace: &std::fs::File) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// A new non-blocking datagram socket for an address' family.
///
/// # Errors
/// `errno` of `socket`.
pub fn datagram_socket(addr: &Addr) -> io::Result<OwnedFd> {
    socket(family(addr), libc::SOCK_DGRAM, 0)
}

/// The same as [`datagram_socket`], in a network namespace, as [`socket_in`].
///
/// # Errors
/// The namespace does not exist, this process may not enter it, or `errno` of `socket`.
pub fn datagram_socket_in(namespace: &str, addr: &Addr) -> io::Result<OwnedFd> {
    in_namespace(namespace, || datagram_socket(addr))
}

pub(super) fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe {
        let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        libc::socket(family, kind, protocol)
    })?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket.
///
/// # Errors
/// `errno` of `bind`.
pub fn bind(fd: &OwnedFd, addr: &Addr) -> io::Result<()> {
    let raw = RawAddr::of(addr)?;
    // SAFETY: pointer and length describe `raw`.
    check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len) }).map(drop)
}

/// Listens on a bound socket.
///
/// # Errors
/// `errno` of `listen`.
pub fn listen(fd: RawFd, backlog: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd, backlog) }).map(drop)
}

/// Starts connecting; `true` if the connection is established at once.
///
/// # Errors
/// `errno` of `connect`, except `EINPROGRESS`.
pub fn connect(fd: RawFd, addr: &Addr) -> io::Result<bool> {
    let raw = RawAddr::of(addr)?;
    // SAFETY: pointer and length describe `raw`.
    match check(unsafe { libc::connect(fd, raw.as_ptr(), raw.len) }) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The result of an accept.
#[derive(Debug)]
pub enum Accept {
    /// A connection and its peer.
    Conn(OwnedFd, Addr),
    /// None is waiting.
    WouldBlock,
    /// Descriptors or memory are exhausted: try again later.
    Exhausted,
    /// The waiting connection was gone already, or the listener failed.
    Failed,
}

/// Accepts one connection, non-blocking.
#[must_use]
pub fn accept(listener: RawFd) -> Accept {
    let mut raw = RawAddr::empty();
    // SAFETY: address pointer and length describe `raw`.
    let fd = unsafe {
        libc::accept4(
            listener,
            raw.as_mut_ptr(),
            &mut raw.len,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    if fd >= 0 {
        // SAFETY: the descriptor was just made.
        return Accept::Conn(unsafe { OwnedFd::from_raw_fd(fd) }, raw.to_addr());
    }
    match errno() {
        libc::EAGAIN => Accept::WouldBlock,
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Accept::Exhausted,
        _ => Accept::Failed,
    }
}

/// The local address of a socket.
///
/// # Errors
/// `errno` of `getsockname`.
pub fn local_addr(fd: RawFd) -> io::Result<Addr> {
    let mut raw = RawAddr::empty();
    // SAFETY: address pointer and length describe `raw`.
    check(unsafe { libc::getsockname(fd, raw.as_mut_ptr(), &mut raw.len) })?;
    Ok(raw.to_addr())
}

/// The address of a socket's peer.
///
/// # Errors
/// `errno` of `getpeername`; `ENOTCONN` without a peer.
pub fn peer_addr(fd: RawFd) -> io::Result<Addr> {
    let mut raw = RawAddr::empty();
    // SAFETY: address pointer and length describe `raw`.
    check(unsafe { libc::getpeername(fd, raw.as_mut_ptr(), &mut raw.len) })?;
    Ok(raw.to_addr())
}

/// Whether an address belongs to this machine: a datagram socket can be bound only to such an
/// address, and can connect to itself there (a multicast group can be bound but not connected).
/// None if the system does not say.
#[must_use]
pub fn is_local(ip: IpAddr) -> Option<bool> {
    let addr = Addr::Inet(SocketAddr::new(ip, 0));
    let fd = datagram_socket(&addr).ok()?;
    match bind(&fd, &addr) {
        Ok(()) => Some(connect(fd.as_raw_fd(), &addr).is_ok()),
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Some(false),
        Err(_) => None,
    }
}

/// Makes a descriptor non-blocking and not inherited.
///
/// # Errors
/// `errno` of `fcntl`.
pub fn set_nonblocking_cloexec(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// Takes over an inherited descriptor: duplicates it and closes the original number, so that the
/// socket closes with the duplicate. The caller passes each number once.
///
/// # Errors
/// The descriptor is not open.
pub fn inherit(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let copy = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: no pointers; nobody in this process owns an inherited number.
    unsafe { libc::close(fd) };
    // SAFETY: the duplicate was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
