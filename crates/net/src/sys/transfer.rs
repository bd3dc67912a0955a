//! Bytes in and out of a descriptor.

use std::io;
use std::mem::zeroed;
use std::os::fd::RawFd;

use libc::c_void;

use super::errno;

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

pub(super) fn transferred(rc: isize) -> Option<Io> {
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

/// Sends FIN.
pub fn shutdown_write(fd: RawFd) {
    // SAFETY: no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
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
