//! The open request streams of a connection, and which ones were opened.
//!
//! Streams of QUIC may become known in any order.

use crate::h2::{Code, StreamId};

/// An open request stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The request's number: a quarter of QUIC's number.
    pub id: StreamId,
    /// The caller's name for the stream.
    pub token: u32,
    /// How many bytes may be sent; negative if heads or frame headers exceeded it.
    pub room: i64,
    /// The rest of the announced body.
    pub body_left: Option<u64>,
    pub flags: StreamFlags,
    /// What the next bytes are.
    pub part: Part,
    /// The bytes of a frame header or a field section that is not complete, or of a section that
    /// waits for instructions.
    pub block: Vec<u8>,
    /// Bytes that came behind a section that waits.
    pub held: Option<Box<Held>>,
    /// How many sections of this stream have waited.
    pub waits: u8,
    /// The peer wants no more of what we send; the stream ends with this code.
    pub stopped: Option<Code>,
}

/// What the next bytes of a stream are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// The header of a frame.
    #[default]
    Head,
    /// Payload of a DATA frame; so many bytes are left.
    Data(u64),
    /// The section of a HEADERS frame; so many bytes are left.
    Section(u64),
    /// A frame that is ignored.
    Skip(u64),
    /// Held back until the section in `block` can be decoded.
    Waiting,
}

/// Bytes of a stream that cannot be used yet. They go to the QUIC layer and come back as Echo
/// records, because payload is lent from the caller's input only.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Bytes that are on their way back.
    pub echoing: usize,
    /// Bytes that came back too early: another section waits.
    pub returned: Vec<u8>,
    /// New bytes.
    pub fresh: Vec<u8>,
    /// The stream ends after them.
    pub end: bool,
}

impl Held {
    /// How many bytes are kept.
    pub fn len(&self) -> usize {
        self.returned.len() + self.fresh.len()
    }
}

/// What happened to a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamFlags {
    /// The peer has ended its side.
    pub recv_end: bool,
    /// We have ended our side.
    pub send_end: bool,
    /// The peer's head arrived; interim ones do not count.
    pub has_head: bool,
    /// The peer's trailers arrived.
    pub has_trailers: bool,
    /// We sent our head.
    pub sent_head: bool,
    /// The response answers a HEAD request.
    pub is_head: bool,
    /// The request is CONNECT.
    pub is_connect: bool,
    /// The bytes belong to a tunnel: no trailers end them.
    pub is_tunnel: bool,
    /// The body must be empty.
    pub is_bodyless: bool,
    /// The caller was told that nothing can be sent.
    pub is_blocked: bool,
}

/// The open streams, by number.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// The number and the slot of each, by number.
    index: Vec<(StreamId, u32)>,
    slots: Vec<Stream>,
    free: Vec<u32>,
}

/// Slots that a connection keeps when it has no streams.
const IDLE_SLOTS_MAX: usize = 4;

impl Streams {
    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The open stream with the highest number.
    pub fn last(&self) -> Option<&Stream> {
        let (_, slot) = self.index.last()?;
        self.slots.get(*slot as usize)
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        let place = self.place(id).ok()?;
        self.slots.get(self.index[place].1 as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.place(id).ok()?;
        self.slots.get_mut(self.index[place].1 as usize)
    }

    /// Adds a stream that is not open.
    pub fn add(&mut self, stream: Stream) {
        let Err(place) = self.place(stream.id) else {
            return;
        };
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(place, (id, slot));
    }

    /// Forgets a stream.
    pub fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let place = self.place(id).ok()?;
        let (_, slot) = self.index.remove(place);
        self.free.push(slot);
        Some(std::mem::take(&mut self.slots[slot as usize]))
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        let slots = self.index.iter().map(|(_, slot)| *slot as usize);
        slots.map(|slot| &self.slots[slot])
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        if self.is_empty() && self.slots.len() > IDLE_SLOTS_MAX {
            *self = Streams::default();
        }
    }

    #[inline]
    fn place(&self, id: StreamId) -> Result<usize, usize> {
        // Most bytes belong to the newest stream or the only one.
        match self.index.last() {
            Some((last, _)) if *last == id => Ok(self.index.len() - 1),
            Some((last, _)) if *last < id => Err(self.index.len()),
            _ => self.index.binary_search_by_key(&id, |(id, _)| *id),
        }
    }
}

/// Which request streams were opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The first stream number above all streams that the peer has opened.
    pub next: u64,
    /// The streams below `next` that the peer has not opened yet, as ranges of stream numbers. The
    /// end of a range is not part of it.
    gaps: Vec<(u64, u64)>,
}

impl Opened {
    /// Whether a stream was opened.
    pub fn contains(&self, number: u64) -> bool {
        number < self.next && self.gap(number).is_err()
    }

    /// Opens a stream, and leaves a gap below it if streams are missing. Returns whether it was not
    /// opened before.
    pub fn open(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number > self.next {
                self.gaps.push((self.next, number));
            }
            self.next = number + 1;
            return true;
        }
        let Ok(place) = self.gap(number) else {
            return false;
        };
        let (from, to) = self.gaps[place];
        match (number == from, number + 1 == to) {
            (true, true) => {
                self.gaps.remove(place);
            }
            (true, false) => self.gaps[place].0 = number + 1,
            (false, true) => self.gaps[place].1 = number,
            (false, false) => {
                self.gaps[place].1 = number;
                self.gaps.insert(place + 1, (number + 1, to));
            }
        }
        true
    }

    /// How many gaps there are.
    pub fn gaps(&self) -> usize {
        self.gaps.len()
    }

    fn gap(&self, number: u64) -> Result<usize, usize> {
        use std::cmp::Ordering;
        self.gaps.binary_search_by(|(from, to)| {
            if number < *from {
                Ordering::Greater
            } else if number >= *to {
                Ordering::Less
            } else {
                Ordering::Equal
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use testing::Random;

    use super::*;

    #[test]
    fn streams_are_found_until_they_are_removed() {
        let mut streams = Streams::default();
        for round in 0..50u32 {
            let id = |id| StreamId(round * 20 + id);
            for number in [7, 1, 11, 5, 3] {
                streams.add(Stream {
                    id: id(number),
                    token: number,
                    ..Stream::default()
                });
            }
            assert_eq!(streams.last().map(|stream| stream.token), Some(11));
            assert_eq!(streams.remove(id(3)).map(|stream| stream.token), Some(3));
            assert!(streams.remove(id(3)).is_none() && streams.get(id(9)).is_none());
            for number in [1, 5, 7, 11] {
                let found = streams.get_mut(id(number));
                assert_eq!(found.map(|stream| stream.token), Some(number));
                assert!(streams.remove(id(number)).is_some());
            }
        }
        assert_eq!((streams.len(), streams.slots.len()), (0, 5));
        streams.release_spare();
        assert_eq!(streams.slots.capacity(), 0);
    }

    #[test]
    fn every_stream_opens_once() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut opened, mut known) = (Opened::default(), [false; 40]);
            for _ in 0..60 {
                let number = random.below(40);
                assert_eq!(opened.contains(number as u64), known[number]);
                assert_eq!(opened.open(number as u64), !known[number]);
                known[number] = true;
                assert!(opened.gaps() <= 20);
            }
        }
        let mut opened = Opened::default();
        assert!(opened.open(u64::from(u32::MAX)) && opened.open(5) && !opened.open(5));
        assert_eq!(opened.gaps(), 2);
    }
}
