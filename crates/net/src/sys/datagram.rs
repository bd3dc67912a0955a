//! Datagrams, many per call.

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use libc::c_void;

use super::address::RawAddr;
use super::set_option;
use crate::Addr;

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
