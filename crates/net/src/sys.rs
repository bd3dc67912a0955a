//! The system calls of the data path. This is the only module of the crate with `unsafe` code.
//!
//! Thin wrappers: safe types as arguments, `errno` returned as [`io::Error`] or a small enum.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, socklen_t};

use crate::boundary::Labels;
use crate::tcp::MD5_KEY_BYTES_MAX;
use crate::{Addr, TcpInfo};

/// Longest path of a UNIX socket, without the terminating NUL.
pub const UNIX_PATH_BYTES_MAX: usize = 107;

/// The result of a non-blocking read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// The number of bytes; 0 for a read is the end of the stream.
    Done(usize),
    /// The call would block.
    WouldBlock,
    /// The connection failed with this `errno`.
    Failed(i32),
}

/// An error's text without Rust's "(os error N)".
#[must_use]
pub fn plain_error(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn check(rc: c_int) -> io::Result<c_int> {
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}

fn transferred(rc: isize) -> Option<Io> {
    if let Ok(bytes) = usize::try_from(rc) {
        return Some(Io::Done(bytes));
    }
    match errno() {
        libc::EAGAIN => Some(Io::WouldBlock),
        libc::EINTR => None,
        code => Some(Io::Failed(code)),
    }
}

/// Reads the available bytes into `buffer` without blocking.
///
/// The calls of the data path bypass the C library's wrappers: these prepare for thread
/// cancellation, which is not used here, and that takes a good part of the call's time.
pub fn recv(fd: RawFd, buffer: &mut [u8]) -> Io {
    loop {
        // SAFETY: the pointer and length are those of a live, writable slice; the address pointer
        // is null.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                fd,
                buffer.as_mut_ptr(),
                buffer.len(),
                libc::MSG_DONTWAIT,
                0_usize,
                0_usize,
            )
        };
        if let Some(done) = transferred(rc as isize) {
            return done;
        }
    }
}

/// Discards up to `bytes_max` bytes of input, so that a close sends FIN rather than RST.
pub fn discard_input(fd: RawFd, bytes_max: usize) {
    // SAFETY: with MSG_TRUNC on TCP the kernel drops the data and never writes through the pointer.
    unsafe {
        libc::recv(
            fd,
            std::ptr::null_mut(),
            bytes_max,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC | libc::MSG_NOSIGNAL,
        )
    };
}

/// Reads the available bytes into `buffer` and leaves them in the kernel.
pub fn peek(fd: RawFd, buffer: &mut [u8]) -> Io {
    loop {
        // SAFETY: the pointer and length are those of a live, writable slice.
        let rc = unsafe {
            libc::recv(
                fd,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT | libc::MSG_PEEK,
            )
        };
        if let Some(done) = transferred(rc) {
            return done;
        }
    }
}

/// Sends bytes without blocking.
pub fn send(fd: RawFd, bytes: &[u8]) -> Io {
    loop {
        // SAFETY: pointer and length of a live slice that is only read; no address is given.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                fd,
                bytes.as_ptr(),
                bytes.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                0_usize,
                0_usize,
            )
        };
        if let Some(done) = transferred(rc as isize) {
            return done;
        }
    }
}

/// The most pieces per message.
pub const PIECES_MAX: usize = 8;

/// A message in pieces, which is sent in one call.
#[derive(Debug, Default)]
pub struct Pieces<'a> {
    parts: [&'a [u8]; PIECES_MAX],
    len: usize,
}

impl<'a> Pieces<'a> {
    /// Adds a piece; ignores an empty one. There is room for [`PIECES_MAX`].
    pub fn push(&mut self, part: &'a [u8]) {
        if !part.is_empty() {
            self.parts[self.len] = part;
            self.len += 1;
        }
    }

    /// The sum of the pieces' sizes, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts[..self.len].iter().map(|part| part.len()).sum()
    }

    /// Appends the bytes between two offsets to `out`.
    pub fn copy(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let mut at = 0;
        for part in &self.parts[..self.len] {
            let inside = |place: usize| place.saturating_sub(at).min(part.len());
            out.extend_from_slice(&part[inside(from)..inside(to)]);
            at += part.len();
        }
    }

    /// Sends the pieces without blocking. An empty message succeeds without a call.
    #[must_use]
    pub fn send(&self, fd: RawFd) -> Io {
        let parts = &self.parts[..self.len];
        if parts.is_empty() {
            return Io::Done(0);
        }
        if let [only] = parts {
            return send(fd, only);
        }
        // SAFETY: an all-zero iovec is valid.
        let mut vectors: [libc::iovec; PIECES_MAX] = unsafe { zeroed() };
        for (vector, part) in vectors.iter_mut().zip(parts) {
            vector.iov_base = part.as_ptr() as *mut c_void;
            vector.iov_len = part.len();
        }
        // SAFETY: an all-zero msghdr is valid.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = self.len as _;
        loop {
            // SAFETY: `message` points to `vectors`, which point to live slices that sendmsg only
            // reads.
            let rc =
                unsafe { libc::sendmsg(fd, &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
            if let Some(done) = transferred(rc) {
                return done;
            }
        }
    }
}

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
    let own = std::fs::File::open("/proc/thread-self/ns/net")?;
    let other = std::fs::File::open(format!("{NAMESPACES}/{namespace}"))?;
    enter_namespace(&other)?;
    let made = socket_of(addr, protocol);
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

fn family(addr: &Addr) -> c_int {
    match addr {
        Addr::Inet(SocketAddr::V4(_)) => libc::AF_INET,
        Addr::Inet(SocketAddr::V6(_)) => libc::AF_INET6,
        Addr::Unix(_) => libc::AF_UNIX,
    }
}

fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe {
        let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        libc::socket(family, kind, protocol)
    })?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The error of a UNIX socket whose path is too long.
pub(crate) fn path_too_long(path: &[u8], bytes_max: usize) -> io::Error {
    let text = format!(
        "socket path '{}' is too long ({} bytes, at most {bytes_max})",
        String::from_utf8_lossy(path),
        path.len(),
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// A kernel socket address with its length.
struct RawAddr {
    storage: libc::sockaddr_storage,
    len: socklen_t,
}

impl RawAddr {
    fn empty() -> Self {
        // SAFETY: an all-zero sockaddr_storage is valid (family AF_UNSPEC).
        let storage = unsafe { zeroed() };
        RawAddr {
            storage,
            len: size_of::<libc::sockaddr_storage>() as socklen_t,
        }
    }

    /// # Errors
    /// The path does not fit.
    fn of(addr: &Addr) -> io::Result<Self> {
        let mut raw = RawAddr::empty();
        match addr {
            Addr::Inet(SocketAddr::V4(v4)) => {
                let sin = libc::sockaddr_in {
                    sin_family: libc::AF_INET as _,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(v4.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                raw.put(sin, size_of::<libc::sockaddr_in>());
            }
            Addr::Inet(SocketAddr::V6(v6)) => {
                let sin6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as _,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                raw.put(sin6, size_of::<libc::sockaddr_in6>());
            }
            Addr::Unix(path) => {
                // An abstract name has no terminating NUL.
                let is_abstract = path.first() == Some(&0);
                let bytes_max = UNIX_PATH_BYTES_MAX + usize::from(is_abstract);
                if path.len() > bytes_max {
                    return Err(path_too_long(path, bytes_max));
                }
                // SAFETY: an all-zero sockaddr_un is valid.
                let mut sun: libc::sockaddr_un = unsafe { zeroed() };
                sun.sun_family = libc::AF_UNIX as _;
                let len = path.len();
                for (to, from) in sun.sun_path.iter_mut().zip(&**path) {
                    *to = *from as _;
                }
                // An abstract name's length counts; a path carries its terminating NUL.
                let terminator = usize::from(!is_abstract);
                raw.put(sun, size_of::<libc::sa_family_t>() + len + terminator);
            }
        }
        Ok(raw)
    }

    fn put<T>(&mut self, addr: T, len: usize) {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: sockaddr_storage is at least as large and as aligned as every socket address
        // type.
        unsafe { std::ptr::write((&raw mut self.storage).cast::<T>(), addr) };
        self.len = len as socklen_t;
    }

    fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    fn to_addr(&self) -> Addr {
        match c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that a sockaddr_in lies here.
                let sin = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(sin.sin_addr.s_addr.to_ne_bytes());
                Addr::Inet(SocketAddr::V4(SocketAddrV4::new(
                    ip,
                    u16::from_be(sin.sin_port),
                )))
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that a sockaddr_in6 lies here.
                let sin6 = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(sin6.sin6_addr.s6_addr);
                let port = u16::from_be(sin6.sin6_port);
                Addr::Inet(SocketAddr::V6(SocketAddrV6::new(
                    ip,
                    port,
                    sin6.sin6_flowinfo,
                    sin6.sin6_scope_id,
                )))
            }
            _ => {
                let header = size_of::<libc::sa_family_t>();
                let len = (self.len as usize)
                    .saturating_sub(header)
                    .min(UNIX_PATH_BYTES_MAX + 1);
                // SAFETY: `len` bytes after the family lie inside the storage.
                let bytes = unsafe {
                    std::slice::from_raw_parts(
                        (&raw const self.storage).cast::<u8>().add(header),
                        len,
                    )
                };
                let end = match bytes.first() {
                    Some(0) | None => bytes.len(),
                    Some(_) => bytes
                        .iter()
                        .position(|byte| *byte == 0)
                        .unwrap_or(bytes.len()),
                };
                Addr::Unix(bytes[..end].into())
            }
        }
    }
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

/// The type of a socket (`SOCK_STREAM`, `SOCK_DGRAM`), to check an inherited descriptor.
///
/// # Errors
/// The descriptor is not open or is not a socket.
pub fn socket_type(fd: RawFd) -> io::Result<i32> {
    option(fd, libc::SOL_SOCKET, libc::SO_TYPE)
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

/// The pending error of a socket, 0 for none.
#[must_use]
pub fn pending_error(fd: RawFd) -> i32 {
    option(fd, libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or_else(|_| errno())
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

/// Sends FIN.
pub fn shutdown_write(fd: RawFd) {
    // SAFETY: no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
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

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// One event: interest bits and the token given at registration.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// `EPOLL*` bits.
    pub bits: u32,
    /// The token.
    pub token: u64,
}

/// The buffer of one `epoll_wait`.
pub struct Events {
    raw: Vec<libc::epoll_event>,
}

impl Events {
    /// A buffer for this many events per call.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Events {
            raw: vec![libc::epoll_event { events: 0, u64: 0 }; count],
        }
    }

    /// The event at `index` of the last call.
    #[must_use]
    pub fn get(&self, index: usize) -> Event {
        let raw = self.raw[index];
        Event {
            bits: raw.events,
            token: raw.u64,
        }
    }
}

impl Epoll {
    /// # Errors
    /// `errno` of `epoll_create1`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Registers a descriptor.
    ///
    /// # Errors
    /// `errno` of `epoll_ctl`.
    pub fn add(&self, fd: RawFd, bits: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: bits,
            u64: token,
        };
        // SAFETY: the pointer describes `event`.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })
            .map(drop)
    }

    /// Deregisters a descriptor.
    pub fn remove(&self, fd: RawFd) {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the pointer describes `event`.
        unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, &mut event) };
    }

    /// Waits for events, at most `timeout_ms` (-1: without limit). Returns their number.
    ///
    /// # Errors
    /// `errno` of `epoll_wait`, except `EINTR`, which returns 0 events.
    pub fn wait(&self, events: &mut Events, timeout_ms: i32) -> io::Result<usize> {
        let room = events.raw.len() as c_int;
        // SAFETY: pointer and length describe the buffer.
        let rc = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.raw.as_mut_ptr(),
                room,
                timeout_ms,
            )
        };
        match check(rc) {
            Ok(count) => Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// A new eventfd, to wake a worker.
///
/// # Errors
/// `errno` of `eventfd`.
pub fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
    // SAFETY: the descriptor was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Signals an eventfd.
pub fn eventfd_ring(fd: RawFd) {
    let one: u64 = 1;
    // SAFETY: the pointer describes `one`.
    unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
}

/// Resets an eventfd.
pub fn eventfd_reset(fd: RawFd) {
    let mut count: u64 = 0;
    // SAFETY: the pointer describes `count`.
    unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
}

/// The result of sending datagrams.
#[derive(Debug, Default)]
pub struct Delivery {
    /// Datagrams known to be lost: not taken by the kernel, or earlier ones refused at their
    /// destination.
    pub lost: u64,
    /// The reason, unless all were lost for lack of room.
    pub error: Option<io::Error>,
}

/// How often a send is repeated after errors of earlier datagrams.
const SENDS_BEHIND_ERRORS_MAX: u32 = 4;

/// Sends datagrams in as few calls as possible, without blocking; `get` returns each of `count`.
pub fn send_datagrams<'a>(
    fd: RawFd,
    to: &Addr,
    count: usize,
    get: impl Fn(usize) -> &'a [u8],
    batch: &mut DatagramBatch,
) -> Delivery {
    let mut delivery = Delivery::default();
    let mut raw = match RawAddr::of(to) {
        Ok(raw) => raw,
        Err(error) => {
            (delivery.lost, delivery.error) = (count as u64, Some(error));
            return delivery;
        }
    };
    let (mut next, mut behind_errors) = (0, 0);
    while next < count {
        let last = count.min(next + DATAGRAMS_A_CALL);
        batch.fill(&mut raw, (next..last).map(&get));
        // SAFETY: every header is filled and points into `batch` and to live datagrams, which are
        // only read.
        let rc = unsafe {
            libc::sendmmsg(
                fd,
                batch.headers.as_mut_ptr(),
                batch.headers.len() as _,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        if let Ok(sent) = usize::try_from(rc) {
            next += sent;
            continue;
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => continue,
            Some(libc::EAGAIN | libc::ENOBUFS) => {
                delivery.lost += (count - next) as u64;
                break;
            }
            _ => {}
        }
        delivery.error = Some(error);
        // Errors of earlier datagrams make this send fail once.
        match take_datagram_errors(fd) {
            0 => (delivery.lost, next) = (delivery.lost + 1, next + 1),
            _ if behind_errors == SENDS_BEHIND_ERRORS_MAX => {
                delivery.lost += (count - next) as u64;
                break;
            }
            errors => {
                delivery.lost += errors;
                behind_errors += 1;
            }
        }
    }
    batch.headers.clear();
    batch.parts.clear();
    delivery
}

/// Requests reports of errors that arrive later, such as a refused port (`ip(7)` `IP_RECVERR`).
pub fn tell_datagram_errors(fd: RawFd, addr: &Addr) {
    let (level, name) = match addr {
        Addr::Inet(SocketAddr::V4(_)) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        Addr::Inet(SocketAddr::V6(_)) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        Addr::Unix(_) => return,
    };
    let _ = set_option(fd, level, name, 1);
}

/// Empties a socket's error queue; returns the number of errors.
fn take_datagram_errors(fd: RawFd) -> u64 {
    let mut errors = 0;
    loop {
        // SAFETY: an all-zero msghdr is valid; it has no buffers, so the kernel drops the data.
        let mut message: libc::msghdr = unsafe { zeroed() };
        // SAFETY: the pointer describes `message`.
        let rc =
            unsafe { libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if rc < 0 {
            return errors;
        }
        errors += 1;
    }
}

/// The most datagrams per system call.
const DATAGRAMS_A_CALL: usize = 64;

/// The headers of a batch of datagrams, kept so that a call fills only what it sends. Empty between
/// calls.
#[derive(Default)]
pub struct DatagramBatch {
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers inside live only during one call of `send_datagrams`; between calls the
// batch is empty.
unsafe impl Send for DatagramBatch {}

impl std::fmt::Debug for DatagramBatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("DatagramBatch")
    }
}

impl DatagramBatch {
    fn fill<'a>(&mut self, to: &mut RawAddr, datagrams: impl Iterator<Item = &'a [u8]>) {
        self.parts.clear();
        self.headers.clear();
        self.parts.extend(datagrams.map(|datagram| libc::iovec {
            iov_base: datagram.as_ptr() as *mut c_void,
            iov_len: datagram.len(),
        }));
        for part in &mut self.parts {
            // SAFETY: an all-zero mmsghdr is valid.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = to.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = to.len;
            self.headers.push(header);
        }
    }
}

/// Writes to a descriptor and blocks; for the log writer's thread.
///
/// # Errors
/// `errno` of `write`.
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length of a live slice.
    let rc = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc as usize)
    }
}

/// Waits until a descriptor accepts bytes again.
pub fn wait_writable(fd: RawFd, timeout_ms: i32) {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the pointer describes one pollfd.
    unsafe { libc::poll(&mut poll, 1, timeout_ms) };
}

/// A clock's nanoseconds.
fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: an all-zero timespec is valid and the pointer describes it.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(id, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The current time of both clocks. Only drivers call this.
#[must_use]
pub fn now() -> crate::Now {
    crate::Now {
        mono_ns: clock(libc::CLOCK_MONOTONIC),
        wall_ns: clock(libc::CLOCK_REALTIME),
    }
}

/// The most that the wall clock may differ from the time predicted by the monotonic clock,
/// nanoseconds.
const WALL_APART_NS_MAX: u64 = 100_000;

/// The current time. Unless the wall clock was set, it is advanced from `before` by the monotonic
/// clock: two moments have the same distance on both clocks, however long the two readings are
/// apart.
#[must_use]
pub fn now_after(before: crate::Now) -> crate::Now {
    going_on(before, now())
}

fn going_on(before: crate::Now, now: crate::Now) -> crate::Now {
    let passed_ns = now.mono_ns.saturating_sub(before.mono_ns);
    let wall_ns = before.wall_ns.saturating_add(passed_ns);
    if wall_ns.abs_diff(now.wall_ns) <= WALL_APART_NS_MAX {
        crate::Now { wall_ns, ..now }
    } else {
        now
    }
}

/// Whether the kernel's clock is the counter that [`counter`] reads.
#[must_use]
pub fn clock_is_counter() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// The processor's counter, which counts at a steady pace; 0 where there is none.
#[must_use]
#[inline]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, and the kernel lets
    // processes use it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// The monotonic clock alone, in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
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

/// Nanoseconds of processor time that this thread has used.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of processor time that all threads of the process have used.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;

    #[test]
    fn the_wall_clock_goes_on_until_it_is_set() {
        let at = |mono_ns, wall_ns| Now { mono_ns, wall_ns };
        let before = at(1_000_000, 50_000_000);
        for late in [0, 1, 100_000] {
            let now = going_on(before, at(3_000_000, 52_000_000 + late));
            assert_eq!(now, at(3_000_000, 52_000_000));
        }
        assert_eq!(
            going_on(before, at(3_000_000, 51_900_000)).wall_ns,
            52_000_000
        );
        for set in [at(3_000_000, 52_100_001), at(3_000_000, 0)] {
            assert_eq!(going_on(before, set), set);
        }
    }
}
