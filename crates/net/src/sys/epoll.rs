//! Readiness: epoll, and the eventfd that wakes a worker.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::c_int;

use super::check;

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

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

    /// Changes what a registered descriptor waits for. What it is ready for is reported anew.
    ///
    /// # Errors
    /// `errno` of `epoll_ctl`.
    pub fn modify(&self, fd: RawFd, bits: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: bits,
            u64: token,
        };
        // SAFETY: the pointer describes `event`.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_MOD, fd, &mut event) })
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
