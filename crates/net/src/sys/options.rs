//! Options of sockets, and what the kernel reports about a connection.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, RawFd};

use libc::{c_int, socklen_t};

use super::address::RawAddr;
use super::socket::socket;
use super::{check, errno};
use crate::boundary::Labels;
use crate::tcp::MD5_KEY_BYTES_MAX;
use crate::{Addr, TcpInfo};

/// Reads an integer option.
///
/// # Errors
/// `errno` of `getsockopt`.
pub fn option(fd: RawFd, level: c_int, name: c_int) -> io::Result<i32> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: the pointers describe `value` and `len`.
    check(unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut len) })?;
    Ok(value)
}

/// Sets an integer option.
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn set_option(fd: RawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as socklen_t;
    // SAFETY: the pointer describes `value`.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) }).map(drop)
}

/// Sets an option whose value is bytes.
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn set_bytes(fd: RawFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            value.as_ptr().cast(),
            value.len() as socklen_t,
        )
    })
    .map(drop)
}

/// The type of a socket (`SOCK_STREAM`, `SOCK_DGRAM`), to check an inherited descriptor.
///
/// # Errors
/// The descriptor is not open or is not a socket.
pub fn socket_type(fd: RawFd) -> io::Result<i32> {
    option(fd, libc::SOL_SOCKET, libc::SO_TYPE)
}

/// The pending error of a socket, 0 for none.
#[must_use]
pub fn pending_error(fd: RawFd) -> i32 {
    option(fd, libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or_else(|_| errno())
}

/// Whether an IPv6 socket refuses IPv4.
///
/// # Errors
/// `errno` of `getsockopt`.
pub fn is_v6only(fd: RawFd) -> io::Result<bool> {
    Ok(option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)? != 0)
}

/// Whether IPv6 sockets refuse IPv4 by default; false without IPv6.
#[must_use]
pub fn v6only_by_default() -> bool {
    let fd = socket(libc::AF_INET6, libc::SOCK_STREAM, 0);
    fd.and_then(|fd| is_v6only(fd.as_raw_fd())).unwrap_or(false)
}

/// Permits addresses that are not this machine's (`IP_TRANSPARENT`): a listening socket accepts
/// connections to them, another socket may be bound to them.
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn set_transparent(fd: RawFd, v6: bool) -> io::Result<()> {
    if v6 {
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)
    } else {
        set_option(fd, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)
    }
}

/// Binds a socket to an interface (`SO_BINDTODEVICE`).
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn bind_to_interface(fd: RawFd, interface: &str) -> io::Result<()> {
    // SAFETY: pointer and length describe the name.
    check(unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            interface.len() as socklen_t,
        )
    })
    .map(drop)
}

/// Labels a socket's packets. A mark needs a privilege; without it the call has no effect.
pub fn label(fd: RawFd, labels: Labels) {
    if let Some(mark) = labels.mark {
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_MARK, mark as c_int);
    }
    if let Some(tos) = labels.tos {
        let _ = set_option(fd, libc::IPPROTO_IP, libc::IP_TOS, tos.into());
        let _ = set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos.into());
    }
}

/// Makes closing the socket send RST.
pub fn set_linger_zero(fd: RawFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the pointer describes `linger`.
    unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as socklen_t,
        );
    }
}

/// Makes the close of a TCP socket invisible. In repair mode nothing is sent at all (this needs a
/// privilege); otherwise, or if a hop limit is given, the RST gets a hop limit, by default 1: it
/// reaches only the first router.
pub fn silence(fd: RawFd, rst_ttl: Option<u8>) {
    if rst_ttl.is_none() && set_option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR, 1).is_ok() {
        return;
    }
    set_linger_zero(fd);
    let hops = c_int::from(rst_ttl.unwrap_or(1));
    let _ = set_option(fd, libc::IPPROTO_IP, libc::IP_TTL, hops);
    let _ = set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, hops);
}

/// `TCP_MD5SIG` (linux/tcp.h), which libc does not define, and its argument.
const TCP_MD5SIG: c_int = 14;

#[repr(C)]
struct TcpMd5sig {
    addr: libc::sockaddr_storage,
    flags: u8,
    prefix_len: u8,
    key_len: u16,
    interface: c_int,
    key: [u8; MD5_KEY_BYTES_MAX],
}

/// Signs the segments exchanged with `peer` with MD5 and this key (`TCP_MD5SIG`, RFC 2385).
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn set_md5_key(fd: RawFd, peer: &Addr, key: &[u8]) -> io::Result<()> {
    let key_len = key.len().min(MD5_KEY_BYTES_MAX);
    let mut sig = TcpMd5sig {
        addr: RawAddr::of(peer)?.storage,
        flags: 0,
        prefix_len: 0,
        key_len: key_len as u16,
        interface: 0,
        key: [0; MD5_KEY_BYTES_MAX],
    };
    sig.key[..key_len].copy_from_slice(&key[..key_len]);
    // SAFETY: pointer and length describe `sig`.
    check(unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            TCP_MD5SIG,
            (&raw const sig).cast(),
            size_of::<TcpMd5sig>() as socklen_t,
        )
    })
    .map(drop)
}

/// Kernel facts of a TCP connection (`TCP_INFO`).
#[must_use]
pub fn tcp_info(fd: RawFd) -> Option<TcpInfo> {
    // SAFETY: an all-zero tcp_info is valid.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut len = size_of::<libc::tcp_info>() as socklen_t;
    // SAFETY: the pointers describe `info` and `len`.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut len,
        )
    };
    (rc == 0).then_some(TcpInfo {
        rtt_us: info.tcpi_rtt,
        rttvar_us: info.tcpi_rttvar,
        unacked: info.tcpi_unacked,
        sacked: info.tcpi_sacked,
        lost: info.tcpi_lost,
        retrans: info.tcpi_retrans,
        fackets: info.tcpi_fackets,
        reordering: info.tcpi_reordering,
    })
}

/// Makes a listener keep the SYN packets of its connections (Linux, `include/uapi/linux/tcp.h`).
pub const TCP_SAVE_SYN: c_int = 27;
const TCP_SAVED_SYN: c_int = 28;

/// The largest packet that [`saved_syn`] returns: at most 60 bytes each of link, IP and TCP header.
const SAVED_SYN_BYTES_MAX: usize = 256;

/// Appends the packet that opened an accepted connection (`TCP_SAVED_SYN`); false if the system
/// does not return it.
pub fn saved_syn(fd: RawFd, out: &mut Vec<u8>) -> bool {
    let mut packet = [0_u8; SAVED_SYN_BYTES_MAX];
    let mut len = packet.len() as socklen_t;
    // SAFETY: the pointers describe `packet` and `len`.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            TCP_SAVED_SYN,
            packet.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if rc == 0 {
        out.extend_from_slice(&packet[..packet.len().min(len as usize)]);
    }
    rc == 0
}
