//! Datagrams as driver and engine exchange them, and the counts of those that were lost.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::DatagramSock;
use crate::activity::bump;

/// The most bytes of one [`Outgoing`], and the most that a run of received datagrams has: what a
/// length field of 16 bits can tell.
pub const RUN_BYTES_MAX: usize = 64 << 10;

/// Received datagrams: a run from one peer, each `segment` bytes long, the last possibly shorter.
#[derive(Debug)]
pub struct Datagrams<'a> {
    /// The socket that received them.
    pub sock: DatagramSock,
    /// The sender. Its port is not 0 and its address is a specified one. A socket that serves both
    /// families has IPv4 peers as IPv6 addresses that contain them (RFC 4291 §2.5.5.2).
    pub peer: SocketAddr,
    /// The address that the peer has sent to; `None` if the kernel does not report it.
    pub local: Option<IpAddr>,
    /// The ECN field of the IP header (RFC 3168 §5), 2 bits. The kernel joins only datagrams with
    /// equal fields.
    pub ecn: u8,
    /// The length of each datagram except the last, bytes; not 0.
    pub segment: usize,
    /// The datagrams, one behind the other; never empty. The engine may overwrite them.
    pub bytes: &'a mut [u8],
}

/// Datagrams to be sent to one peer.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The destination.
    pub peer: SocketAddr,
    /// The local address to send from. With `None`, and if it is of another family than the peer,
    /// the kernel selects the address.
    pub source: Option<IpAddr>,
    /// The ECN field of the IP header (RFC 3168 §5), 2 bits.
    pub ecn: u8,
    /// The length of each datagram except the last, bytes; with `None` all bytes are one datagram.
    pub segment: Option<usize>,
    /// The datagrams, one behind the other, at most [`RUN_BYTES_MAX`] bytes.
    pub bytes: &'a [u8],
}

impl Outgoing<'_> {
    /// The number of datagrams.
    #[must_use]
    pub fn count(&self) -> usize {
        match self.segment {
            Some(segment @ 1..) => self.bytes.len().div_ceil(segment).max(1),
            Some(0) | None => 1,
        }
    }
}

/// Counts of a worker's datagrams since its start. The worker is the only writer; other threads
/// read.
#[derive(Debug, Default)]
pub struct DatagramCounts {
    received_runs: AtomicU64,
    received_bytes: AtomicU64,
    truncated: AtomicU64,
    ignored: AtomicU64,
    receive_errors: AtomicU64,
    send_errors: AtomicU64,
    no_room: AtomicU64,
}

impl DatagramCounts {
    /// How often the engine was called with received datagrams. One call hands over a run: one or
    /// more datagrams from one peer.
    #[must_use]
    pub fn received_runs(&self) -> u64 {
        self.received_runs.load(Relaxed)
    }

    /// Their bytes.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Relaxed)
    }

    /// Received runs that were dropped because they or what the kernel reports of them did not fit.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.truncated.load(Relaxed)
    }

    /// Received runs that were dropped because they were empty or nobody could be answered: port 0
    /// or an unspecified address.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored.load(Relaxed)
    }

    /// Errors of receiving.
    #[must_use]
    pub fn receive_errors(&self) -> u64 {
        self.receive_errors.load(Relaxed)
    }

    /// Datagrams that the kernel refused to send.
    #[must_use]
    pub fn send_errors(&self) -> u64 {
        self.send_errors.load(Relaxed)
    }

    /// Datagrams that were dropped because the queue of their socket was full or the socket was
    /// closed.
    #[must_use]
    pub fn no_room(&self) -> u64 {
        self.no_room.load(Relaxed)
    }

    pub(crate) fn received(&self, bytes: usize) {
        bump(&self.received_runs, 1);
        bump(&self.received_bytes, bytes as u64);
    }

    pub(crate) fn add_truncated(&self) {
        bump(&self.truncated, 1);
    }

    pub(crate) fn add_ignored(&self) {
        bump(&self.ignored, 1);
    }

    pub(crate) fn add_receive_error(&self) {
        bump(&self.receive_errors, 1);
    }

    pub(crate) fn add_send_errors(&self, datagrams: usize) {
        bump(&self.send_errors, datagrams as u64);
    }

    pub(crate) fn add_no_room(&self, datagrams: usize) {
        bump(&self.no_room, datagrams as u64);
    }
}
