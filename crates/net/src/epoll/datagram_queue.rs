//! The queue of datagrams that are still to be sent on a socket.
//!
//! Datagrams to one peer that follow each other and have one length are joined, so that the kernel
//! gets them as one message and cuts it (`UDP_SEGMENT`). The queue is given to the kernel in order:
//! a message that the kernel refuses is dropped, and one that it cannot take yet stays with all that
//! follow.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::datagrams::{Outgoing, RUN_BYTES_MAX};
use crate::sys::{Io, MESSAGE_BYTES_MAX, SEGMENTS_MAX, Sending};

/// The most bytes that wait for one socket.
pub const DATAGRAM_QUEUE_BYTES_MAX: usize = 1 << 20;
/// The most runs that wait for one socket: it bounds the memory of many small ones.
const QUEUE_RUNS_MAX: usize = 4096;

/// The queue of one socket.
#[derive(Debug)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    /// Where the first run begins in `bytes`.
    start: usize,
    runs: VecDeque<Run>,
    /// The kernel cuts messages into datagrams.
    cuts: bool,
}

/// Datagrams of one peer in [`Queue::bytes`], behind those of the run before.
#[derive(Clone, Copy, Debug)]
struct Run {
    peer: SocketAddr,
    source: Option<IpAddr>,
    ecn: u8,
    /// The length of each datagram except the last; not 0 unless the run is empty.
    segment: usize,
    len: usize,
}

/// The result of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flushed {
    /// The kernel cannot take more now.
    pub blocked: bool,
    /// Datagrams that it refused.
    pub refused: usize,
}

impl Run {
    fn datagrams(&self) -> usize {
        self.len.div_ceil(self.segment.max(1)).max(1)
    }

    /// The length of the first message of this run.
    fn message(&self, cuts: bool) -> usize {
        let most = if cuts {
            (MESSAGE_BYTES_MAX / self.segment.max(1)).clamp(1, SEGMENTS_MAX)
        } else {
            1
        };
        self.len.min(most * self.segment)
    }

    /// Joins the datagrams of `next`, if they may leave as one run with these. A last datagram that
    /// is shorter is joined only to a run of several: the one before may be longer than the path
    /// permits (a probe of its MTU), and would be lost with all that it is joined to.
    fn join(&mut self, next: &Run) -> bool {
        let is_whole = self.segment > 0 && self.len.is_multiple_of(self.segment);
        let fits = next.segment == self.segment
            || next.len == next.segment && next.len < self.segment && self.len > self.segment;
        let is_same = (self.peer, self.source, self.ecn) == (next.peer, next.source, next.ecn);
        let joins = is_whole && fits && is_same && next.len > 0;
        if joins {
            self.len += next.len;
        }
        joins
    }
}

impl Queue {
    pub fn new(cuts: bool) -> Queue {
        Queue {
            bytes: Vec::new(),
            start: 0,
            runs: VecDeque::new(),
            cuts,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether a run of any size fits.
    pub fn has_room(&self) -> bool {
        self.fits(RUN_BYTES_MAX)
    }

    fn fits(&self, bytes: usize) -> bool {
        let waiting = self.bytes.len() - self.start;
        waiting + bytes <= DATAGRAM_QUEUE_BYTES_MAX && self.runs.len() < QUEUE_RUNS_MAX
    }

    /// Appends datagrams. If they do not fit, returns their number.
    pub fn push(&mut self, datagrams: &Outgoing<'_>) -> Result<(), usize> {
        let len = datagrams.bytes.len();
        let segment = datagrams
            .segment
            .filter(|segment| (1..len).contains(segment));
        let run = Run {
            peer: datagrams.peer,
            source: datagrams.source,
            ecn: datagrams.ecn,
            segment: segment.unwrap_or(len),
            len,
        };
        if !self.fits(len) {
            return Err(datagrams.count());
        }
        // Sent bytes are removed when they are most of it, so that each is moved once at most.
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(datagrams.bytes);
        if !self.runs.back_mut().is_some_and(|last| last.join(&run)) {
            self.runs.push_back(run);
        }
        Ok(())
    }

    /// Gives the queue to the kernel. `send` sends the first of some messages and returns how many
    /// the kernel took, or the error of the first.
    pub fn flush(&mut self, mut send: impl FnMut(&mut Messages<'_>) -> Io) -> Flushed {
        let mut flushed = Flushed::default();
        while let Some(first) = self.runs.front().copied() {
            let mut messages = Messages::of(self);
            match send(&mut messages) {
                Io::Done(count) if count > 0 => {
                    for _ in 0..count {
                        self.pop();
                    }
                }
                Io::Done(_) | Io::WouldBlock => {
                    flushed.blocked = true;
                    return flushed;
                }
                // The device does not cut: the datagrams leave one by one from now on.
                Io::Failed(libc::EIO) if self.cuts && first.message(true) > first.segment => {
                    self.cuts = false;
                }
                Io::Failed(_) => flushed.refused += self.pop(),
            }
        }
        self.clear();
        flushed
    }

    /// Drops all that waits; returns how many datagrams this was.
    pub fn clear(&mut self) -> usize {
        let lost = self.runs.iter().map(Run::datagrams).sum();
        self.runs.clear();
        self.bytes.clear();
        self.start = 0;
        lost
    }

    /// Removes the first message; returns the number of its datagrams.
    fn pop(&mut self) -> usize {
        let Some(first) = self.runs.front_mut() else {
            return 0;
        };
        let message = first.message(self.cuts);
        let datagrams = message.div_ceil(first.segment.max(1)).max(1);
        first.len -= message;
        self.start += message;
        if first.len == 0 {
            self.runs.pop_front();
        }
        datagrams
    }
}

/// The messages of a queue, in order.
pub(super) struct Messages<'a> {
    runs: std::collections::vec_deque::Iter<'a, Run>,
    /// What is left of the current run.
    run: Option<Run>,
    bytes: &'a [u8],
    cuts: bool,
}

impl<'a> Messages<'a> {
    fn of(queue: &'a Queue) -> Messages<'a> {
        let mut runs = queue.runs.iter();
        Messages {
            run: runs.next().copied(),
            runs,
            bytes: &queue.bytes[queue.start..],
            cuts: queue.cuts,
        }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Sending<'a>;

    fn next(&mut self) -> Option<Sending<'a>> {
        let run = self.run.as_mut()?;
        let len = run.message(self.cuts);
        let (bytes, rest) = self.bytes.split_at(len);
        let sending = Sending {
            peer: run.peer,
            source: run.source,
            ecn: run.ecn,
            // One datagram needs no cutting. Messages of several are shorter than 64 KiB.
            segment: (len > run.segment).then_some(run.segment as u16),
            bytes,
        };
        self.bytes = rest;
        run.len -= len;
        if run.len == 0 {
            self.run = self.runs.next().copied();
        }
        Some(sending)
    }
}

#[cfg(test)]
mod tests;
