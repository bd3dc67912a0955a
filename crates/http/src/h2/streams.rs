//! The open streams of a connection.
//!
//! A list of stream numbers, in order, refers to slots that are reused. A search is binary and
//! adding a stream appends, so that no choice of numbers makes either slow; removing a stream moves
//! at most as many numbers as streams may be open.

use super::StreamId;

/// An open stream: one that is neither idle nor closed (RFC 9113 §5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    pub id: StreamId,
    /// The caller's name for the stream.
    pub token: u32,
    /// How many bytes we may send; negative if the peer shrank its window.
    pub send_window: i32,
    /// How many bytes the peer may send.
    pub recv_window: i32,
    /// How many bytes the peer may send before it is credited.
    pub window: u32,
    /// Bytes consumed and not credited yet.
    pub due: u32,
    /// The rest of the announced body.
    pub body_left: Option<u64>,
    pub flags: StreamFlags,
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
    /// We sent our head.
    pub sent_head: bool,
    /// The response answers a HEAD request.
    pub is_head: bool,
    /// The request is CONNECT.
    pub is_connect: bool,
    /// The body must be empty.
    pub is_bodyless: bool,
    /// The caller was told that nothing can be sent.
    pub is_blocked: bool,
}

/// The open streams.
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
        self.index
            .last()
            .map(|(_, slot)| &self.slots[*slot as usize])
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        self.slots.get(self.index[self.place(id)?].1 as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.slots.get_mut(self.index[place].1 as usize)
    }

    /// Adds a stream, whose number is higher than that of all others.
    pub fn add(&mut self, stream: Stream) {
        debug_assert!(self.last().is_none_or(|last| last.id < stream.id));
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
        self.index.push((stream.id, slot));
    }

    /// Forgets a stream.
    pub fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let (_, slot) = self.index.remove(self.place(id)?);
        self.free.push(slot);
        Some(self.slots[slot as usize])
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        // A free slot looks like an open stream: only slots in the index are returned.
        let index = &self.index;
        self.slots.iter_mut().filter(|stream| {
            index
                .binary_search_by_key(&stream.id, |(id, _)| *id)
                .is_ok()
        })
    }

    /// Frees unused memory.
    pub fn release_spare(&mut self) {
        if self.is_empty() && self.slots.len() > IDLE_SLOTS_MAX {
            *self = Streams::default();
        }
    }

    #[inline]
    fn place(&self, id: StreamId) -> Option<usize> {
        // Most frames belong to the newest stream or the only one.
        let last = self.index.len().checked_sub(1)?;
        if self.index[last].0 == id {
            return Some(last);
        }
        self.index.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

/// The streams that we reset last: frames that the peer sent before it knew of the reset are
/// ignored (RFC 9113 §5.1).
#[derive(Debug, Default)]
pub(super) struct ResetStreams {
    ids: std::collections::VecDeque<StreamId>,
}

/// Twice the streams that a peer may have open.
const RESET_STREAMS_MAX: usize = 256;

impl ResetStreams {
    pub fn add(&mut self, id: StreamId) {
        if self.ids.len() == RESET_STREAMS_MAX {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
    }

    pub fn contains(&self, id: StreamId) -> bool {
        self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_until_they_are_removed() {
        let mut streams = Streams::default();
        for round in 0..50u32 {
            for id in [1, 3, 5, 7, 11].map(|id| StreamId(round * 20 + id)) {
                streams.add(Stream {
                    id,
                    token: id.0,
                    ..Stream::default()
                });
            }
            let id = |id| StreamId(round * 20 + id);
            assert_eq!(
                streams.remove(id(3)).map(|stream| stream.token),
                Some(id(3).0)
            );
            assert!(streams.remove(id(3)).is_none() && streams.get(id(9)).is_none());
            assert_eq!(streams.iter_mut().count(), 4);
            for id in [id(1), id(5), id(7), id(11)] {
                assert_eq!(streams.get_mut(id).map(|stream| stream.token), Some(id.0));
                assert!(streams.remove(id).is_some());
            }
        }
        assert_eq!((streams.len(), streams.slots.len()), (0, 5));
        streams.release_spare();
        assert_eq!(streams.slots.capacity(), 0);
    }
}
