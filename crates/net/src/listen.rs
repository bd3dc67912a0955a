//! Opening the listening sockets of a `bind` line.

mod datagram;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use crate::{Addr, Keepalive, TcpOptions, sys, tcp};

pub use datagram::{
    DatagramFacts, DatagramOptions, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, datagram_facts,
    from_fd, open_datagram, set_again,
};

/// The source of a listener's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// A new socket bound to this address.
    Bind(Addr),
    /// An inherited, bound socket with this descriptor (`fd@`).
    Inherited(RawFd),
}

/// Socket options of a listener (manual §5.1).
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// Length of the kernel's accept queue.
    pub backlog: i32,
    /// Whether an IPv6 wildcard refuses IPv4 (`v6only`) or accepts it too (`v4v6`); `None` keeps
    /// the system's default.
    pub v6only: Option<bool>,
    /// Accept only from this interface.
    pub interface: Option<String>,
    /// TCP fast open.
    pub tfo: bool,
    /// Accept only once data has arrived.
    pub defer_accept: bool,
    /// Largest segment; if negative, that much less than the kernel's value.
    pub mss: Option<i32>,
    /// Keep the SYN packet of connections (`tcp-ss`): 0, 1, or 2 with its link header.
    pub save_syn: u8,
    /// TCP keep-alive probes on accepted connections (`option clitcpka`).
    pub keepalive: Option<Keepalive>,
    /// Other options of its connections.
    pub tcp: TcpOptions,
    /// Accept connections to addresses that are not this machine's (`transparent`).
    pub transparent: bool,
    /// Permissions of a UNIX socket.
    pub unix_mode: Option<u32>,
    /// Owner of a UNIX socket.
    pub unix_uid: Option<u32>,
    /// Group of a UNIX socket.
    pub unix_gid: Option<u32>,
    /// Each worker opens its own socket.
    pub reuse_port: bool,
}

/// Opens a listening socket.
///
/// A UNIX path that a dead process left behind is replaced.
///
/// # Errors
/// The error of the kernel, with the step that failed in the text.
pub fn open(addr: &ListenAddr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let fd = match addr {
        ListenAddr::Inherited(fd) => return inherited(*fd, options),
        ListenAddr::Bind(addr) => bound(addr, options)?,
    };
    sys::listen(fd.as_raw_fd(), options.backlog)
        .map_err(|error| step("cannot listen to socket", error))?;
    Ok(fd)
}

fn inherited(fd: RawFd, options: &ListenOptions) -> io::Result<OwnedFd> {
    let kind = sys::socket_type(fd).map_err(|error| step("cannot use file descriptor", error))?;
    if kind != libc::SOCK_STREAM {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("file descriptor {fd} is not a stream socket"),
        ));
    }
    let fd = sys::inherit(fd)?;
    sys::set_nonblocking_cloexec(fd.as_raw_fd())?;
    let local = sys::local_addr(fd.as_raw_fd())?;
    if !local.is_unix() {
        tcp_options(fd.as_raw_fd(), &local, options)?;
    }
    sys::listen(fd.as_raw_fd(), options.backlog)
        .map_err(|error| step("cannot listen to socket", error))?;
    Ok(fd)
}

fn bound(addr: &Addr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let fd = options
        .tcp
        .socket(addr)
        .map_err(|error| step("cannot create listening socket", error))?;
    let raw = fd.as_raw_fd();
    match addr {
        Addr::Inet(inet) => {
            sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
            if options.reuse_port {
                sys::set_option(raw, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
            }
            if inet.is_ipv6()
                && let Some(v6only) = options.v6only
            {
                sys::set_option(
                    raw,
                    libc::IPPROTO_IPV6,
                    libc::IPV6_V6ONLY,
                    i32::from(v6only),
                )?;
            }
            if let Some(interface) = &options.interface {
                sys::bind_to_interface(raw, interface)
                    .map_err(|error| step("cannot bind listener to device", error))?;
            }
            if options.transparent {
                sys::set_transparent(raw, inet.is_ipv6())
                    .map_err(|error| step("cannot make listening socket transparent", error))?;
            }
            tcp_options(raw, addr, options)?;
            sys::bind(&fd, addr).map_err(|error| step("cannot bind socket", error))?;
        }
        Addr::Unix(path) => bind_unix(&fd, addr, path, options)?,
    }
    Ok(fd)
}

/// Listens on a socket that another process opened, with these options instead of its own.
///
/// # Errors
/// The error of the kernel, with the step that failed in the text.
pub fn again(fd: &OwnedFd, addr: &Addr, options: &ListenOptions) -> io::Result<()> {
    let raw = fd.as_raw_fd();
    sys::set_nonblocking_cloexec(raw)?;
    match addr {
        Addr::Inet(_) => {
            // Options that only some listeners have are turned off first.
            for (level, name) in [
                (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
                (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
                (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
                (libc::IPPROTO_TCP, sys::TCP_SAVE_SYN),
                (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
                (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            ] {
                // A kernel without the option has nothing to turn off.
                let _ = sys::set_option(raw, level, name, 0);
            }
            tcp_options(raw, addr, options)?;
        }
        Addr::Unix(path) if path.first() == Some(&0) => {}
        Addr::Unix(path) => set_owner(std::ffi::OsStr::from_bytes(path), options)?,
    }
    sys::listen(raw, options.backlog).map_err(|error| step("cannot listen to socket", error))
}

/// Whether there is a socket at a path.
#[must_use]
pub fn is_socket(path: &[u8]) -> bool {
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Sets the options that accepted connections inherit from their listener, so that they need no
/// system call per connection.
fn tcp_options(raw: RawFd, local: &Addr, options: &ListenOptions) -> io::Result<()> {
    if options.defer_accept {
        sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, 1)?;
    }
    if options.tfo {
        sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, options.backlog)?;
    }
    if let Some(mss) = options.mss {
        let default = if mss < 0 {
            sys::option(raw, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?
        } else {
            0
        };
        let mss = (default + mss).max(1);
        sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_MAXSEG, mss)
            .map_err(|error| step("cannot set MSS", error))?;
    }
    if options.save_syn > 0 {
        let mode = i32::from(options.save_syn);
        sys::set_option(raw, libc::IPPROTO_TCP, sys::TCP_SAVE_SYN, mode)
            .map_err(|error| step("cannot set TCP Save SYN", error))?;
    }
    if let Some(keepalive) = options.keepalive {
        tcp::keep_alive(raw, keepalive)?;
    }
    options.tcp.apply_to_listener(raw, local)?;
    sys::set_option(raw, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

fn bind_unix(fd: &OwnedFd, addr: &Addr, path: &[u8], options: &ListenOptions) -> io::Result<()> {
    if path.first() == Some(&0) {
        return sys::bind(fd, addr).map_err(|error| step("cannot bind UNIX socket", error));
    }
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    // The socket is bound under another name first, so that a client never finds the path without a
    // socket behind it.
    let suffix = format!(".{}.tmp", std::process::id());
    let bytes_max = sys::UNIX_PATH_BYTES_MAX - suffix.len();
    if path.as_os_str().len() > bytes_max {
        return Err(sys::path_too_long(path.as_os_str().as_bytes(), bytes_max));
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(suffix);
    if let Ok(meta) = std::fs::symlink_metadata(path)
        && !meta.file_type().is_socket()
    {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "cannot bind UNIX socket: the path is not a socket",
        ));
    }
    // A file left by a process with the same number that died between the two steps.
    drop(std::fs::remove_file(&fresh));
    let temporary = Addr::Unix(fresh.as_bytes().into());
    sys::bind(fd, &temporary).map_err(|error| step("cannot bind UNIX socket", error))?;
    set_owner(&fresh, options)?;
    sys::listen(fd.as_raw_fd(), options.backlog)?;
    std::fs::rename(&fresh, path).map_err(|error| step("cannot bind UNIX socket", error))
}

/// Sets permissions and owner of a UNIX socket's file.
fn set_owner(path: &std::ffi::OsStr, options: &ListenOptions) -> io::Result<()> {
    if let Some(mode) = options.unix_mode {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    if options.unix_uid.is_some() || options.unix_gid.is_some() {
        std::os::unix::fs::chown(path, options.unix_uid, options.unix_gid)
            .map_err(|error| step("cannot change UNIX socket ownership", error))?;
    }
    Ok(())
}

fn step(what: &str, error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("{what} ({})", sys::plain_error(&error)),
    )
}
