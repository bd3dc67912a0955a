//! The open streams of a connection.
//!
//! A list of stream numbers, in order, leads to slots that are used again and again. A search is binary and adding a stream appends, so
//! that no choice of numbers makes either slow; removing moves at most as many numbers as streams may be open.

use super::StreamId;

/// An open stream: one that is neither idle nor closed (RFC 9113 §5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    pub id: StreamId,
    /// The caller's name of it.
    pub token: u32,
    /// How many bytes may be sent; negative where the peer made its window smaller.
    pub send_window: i32,
    /// How many bytes the peer may send.
    pub recv_window: i32,
    /// Bytes that were consumed and not credited yet.
    pub due: u32,
    /// What is left of the announced body.
    pub body_left: Option<u64>,
    pub flags: StreamFlags,
}

/// What happened to a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamFlags {
    /// The peer has ended its side.
    pub recv_end: bool,
    /// We have ended ours.
    pub send_end: bool,
    /// The peer's head came, an interim one not counted.
    pub has_head: bool,
    /// We sent our head.
    pub sent_head: bool,
    /// The response is that to HEAD.
    pub is_head: bool,
    /// The request is CONNECT.
    pub is_connect: bool,
    /// Nothing may be in the body.
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

/// Slots that a connection without streams keeps.
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
        // A free slot has no stream that anyone could tell from an open one: it is left out.
        let index = &self.index;
        self.slots.iter_mut().filter(|stream| {
            index
                .binary_search_by_key(&stream.id, |(id, _)| *id)
                .is_ok()
        })
    }

    /// Gives back memory that is not in use.
    pub fn slim(&mut self) {
        if self.is_empty() && self.slots.len() > IDLE_SLOTS_MAX {
            *self = Streams::default();
        }
    }

    #[inline]
    fn place(&self, id: StreamId) -> Option<usize> {
        // Most frames are about the newest stream or the only one.
        let last = self.index.len().checked_sub(1)?;
        if self.index[last].0 == id {
            return Some(last);
        }
        self.index.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

/// The streams that we reset last: frames that the peer sent before it knew are ignored (RFC 9113 §5.1).
#[derive(Debug, Default)]
pub(super) struct ResetStreams {
    ids: std::collections::VecDeque<StreamId>,
}

/// As many as a peer may have had open twice over.
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
        streams.slim();
        assert_eq!(streams.slots.capacity(), 0);
    }
}
