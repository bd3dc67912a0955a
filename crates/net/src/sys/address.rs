//! Socket addresses as the kernel has them.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::{c_int, socklen_t};

use crate::Addr;

/// Longest path of a UNIX socket, without the terminating NUL.
pub const UNIX_PATH_BYTES_MAX: usize = 107;

/// The error of a UNIX socket whose path is too long.
pub(crate) fn path_too_long(path: &[u8], bytes_max: usize) -> io::Error {
    let text = format!(
        "socket path '{}' is too long ({} bytes, at most {bytes_max})",
        String::from_utf8_lossy(path),
        path.len(),
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

pub(super) fn family(addr: &Addr) -> c_int {
    match addr {
        Addr::Inet(SocketAddr::V4(_)) => libc::AF_INET,
        Addr::Inet(SocketAddr::V6(_)) => libc::AF_INET6,
        Addr::Unix(_) => libc::AF_UNIX,
    }
}

/// A kernel socket address with its length.
pub(super) struct RawAddr {
    pub(super) storage: libc::sockaddr_storage,
    pub(super) len: socklen_t,
}

impl RawAddr {
    pub(super) fn empty() -> Self {
        // SAFETY: an all-zero sockaddr_storage is valid (family AF_UNSPEC).
        let storage = unsafe { zeroed() };
        RawAddr {
            storage,
            len: size_of::<libc::sockaddr_storage>() as socklen_t,
        }
    }

    pub(super) fn of_inet(addr: SocketAddr) -> Self {
        let mut raw = RawAddr::empty();
        match addr {
            SocketAddr::V4(v4) => {
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
            SocketAddr::V6(v6) => {
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
        }
        raw
    }

    /// # Errors
    /// The path does not fit.
    pub(super) fn of(addr: &Addr) -> io::Result<Self> {
        let mut raw = RawAddr::empty();
        match addr {
            Addr::Inet(inet) => return Ok(RawAddr::of_inet(*inet)),
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

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    pub(super) fn to_addr(&self) -> Addr {
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
