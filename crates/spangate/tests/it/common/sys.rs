//! System calls for tests that the standard library does not provide.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Passes these descriptors to the program that `command` starts, with the same numbers.
pub fn inherit(command: &mut Command, fds: Vec<RawFd>) {
    let keep = move || {
        for fd in &fds {
            // SAFETY: no pointers; fcntl may be called between fork and exec.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure calls only functions that may be called between fork and exec.
    unsafe { command.pre_exec(keep) };
}

pub fn is_root() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::geteuid() == 0 }
}

/// Passes these descriptors to the program that `command` starts, as numbers from 3 on.
pub fn inherit_from_3(command: &mut Command, fds: Vec<RawFd>) {
    let place = move || {
        for (number, fd) in (3..).zip(&fds) {
            // SAFETY: no pointers; dup2 and fcntl may be called between fork and exec. The exec
            // would close the replaced descriptor anyway. If both are the same, dup2 does nothing:
            // the descriptor would still be closed by the exec.
            if unsafe { libc::dup2(*fd, number) < 0 || libc::fcntl(number, libc::F_SETFD, 0) < 0 } {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure calls only functions that may be called between fork and exec.
    unsafe { command.pre_exec(place) };
}

/// Sends a signal. Returns whether the process exists.
pub fn signal(pid: u32, signal: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid as i32, signal) == 0 }
}

/// A TCP socket that is bound to a free loopback port and does not listen. Other sockets of this
/// user with `SO_REUSEPORT` may bind to that port by its number. The system assigns it to no other
/// socket.
pub fn reserve_port() -> io::Result<OwnedFd> {
    let check = |rc| match rc {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(rc),
    };
    let on: libc::c_int = 1;
    // SAFETY: an all-zero address is valid; each pointer describes its target, and only this code
    // uses the descriptor.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let socket = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?);
        check(libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_REUSEPORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        ))?;
        let mut to: libc::sockaddr_in = std::mem::zeroed();
        to.sin_family = libc::AF_INET as _;
        to.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
        let len = size_of_val(&to) as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const to).cast(), len))?;
        Ok(socket)
    }
}

/// Requests this many descriptors. Returns the limit that holds now.
pub fn raise_descriptors(wanted: u64) -> u64 {
    // SAFETY: an all-zero rlimit is valid; the pointers describe it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
        limit.rlim_cur
    }
}

/// Sets a small kernel receive buffer for a socket. Connections of a listener inherit it.
pub fn hold_little(listener: &impl AsRawFd, bytes: libc::c_int) {
    // SAFETY: the pointer describes an int.
    let rc = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    assert_eq!(rc, 0, "{}", io::Error::last_os_error());
}
