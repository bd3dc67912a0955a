//! What this side keeps of each stream, besides the library.

use bytes::Bytes;
use quinn_proto::{Dir, Side};
use rustc_hash::FxHashMap;

/// The number of a stream (RFC 9000 §2.1).
pub type StreamId = u64;

/// How much of a stream is handed out before [`crate::Connection::consumed`] is told of it, bytes.
pub(crate) const AHEAD_BYTES_MAX: u64 = 64 << 10;
/// A stream's writer is told of this many bytes at once, or when nothing of the stream waits.
const TOLD_BYTES_MIN: u64 = 32 << 10;
/// The same for the whole connection.
const CONNECTION_TOLD_BYTES_MIN: u64 = 128 << 10;

/// What came on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The next bytes of a stream.
    Data {
        /// The stream.
        stream: StreamId,
        /// Never empty.
        bytes: Bytes,
        /// The stream ends after them. Otherwise [`Received::Fin`] follows at its end.
        ends: bool,
    },
    /// The peer has sent all of a stream.
    Fin(StreamId),
    /// The peer has given up sending on a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The peer's reason.
        code: u64,
    },
    /// The peer wants no more of a stream. What is written to it is discarded.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's reason.
        code: u64,
    },
    /// This side may open so many streams of both directions, all those included that it has opened.
    /// Only clients are told.
    Streams(u64),
    /// Bytes that were written have gone into packets or are discarded, and more may be written.
    Written {
        /// The stream; none: bytes of the whole connection, in which those of streams count too.
        stream: Option<StreamId>,
        /// How many since this was told last.
        bytes: u64,
    },
}

/// A stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Bytes that were handed out and not consumed.
    pub ahead: u64,
    /// The peer may send more.
    pub receives: bool,
    /// It is among those that may have something to read.
    pub is_listed: bool,
    /// More may be written.
    pub sends: bool,
    /// What the library does not take yet.
    pub queue: Vec<u8>,
    /// The stream ends after the queue.
    pub ends: bool,
    /// Bytes that have gone since the writer was told.
    pub written: u64,
}

impl Stream {
    /// Whether nothing more can happen on it.
    pub fn is_over(&self) -> bool {
        !self.receives && !self.sends
    }
}

/// All streams of a connection.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// A peer that chooses numbers whose hashes collide has at most the permitted streams to do so.
    all: FxHashMap<StreamId, Stream>,
    /// Bytes that have gone since the writer was told.
    written: u64,
    /// Bytes in the queues.
    queued: usize,
}

impl Streams {
    pub fn add(&mut self, id: StreamId, receives: bool, sends: bool) {
        self.all.insert(
            id,
            Stream {
                receives,
                sends,
                ..Stream::default()
            },
        );
    }

    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.all.get_mut(&id)
    }

    /// The streams of requests whose end was not written yet, by their numbers.
    pub fn unfinished(&self) -> Vec<StreamId> {
        let open = self.all.iter().filter(|(id, stream)| {
            let (_, dir, _) = parts(**id);
            dir == Dir::Bi && stream.sends && !stream.ends
        });
        let mut ids: Vec<StreamId> = open.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// All streams, in no order.
    pub fn all(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        self.all.iter().map(|(id, stream)| (*id, stream))
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn contains(&self, id: StreamId) -> bool {
        self.all.contains_key(&id)
    }

    /// Forgets a stream if it is over.
    pub fn forget(&mut self, id: StreamId) {
        if self.all.get(&id).is_some_and(Stream::is_over) {
            self.all.remove(&id);
        }
    }

    /// The bytes that wait in all queues.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Adds bytes to a stream's queue.
    pub fn queue(&mut self, id: StreamId, bytes: &[u8]) {
        if let Some(stream) = self.all.get_mut(&id) {
            stream.queue.extend_from_slice(bytes);
            self.queued += bytes.len();
        }
    }

    /// The first bytes of a stream's queue have gone.
    pub fn dequeue(&mut self, id: StreamId, bytes: usize) {
        if let Some(stream) = self.all.get_mut(&id) {
            stream.queue.drain(..bytes);
            self.queued -= bytes;
            if stream.queue.is_empty() {
                stream.queue = Vec::new();
            }
        }
    }

    /// Bytes of a stream have gone. Returns what the writer is to be told.
    pub fn wrote(&mut self, id: StreamId, bytes: u64) -> [Option<Received>; 2] {
        self.written += bytes;
        let of_connection =
            (self.written >= CONNECTION_TOLD_BYTES_MIN).then(|| Received::Written {
                stream: None,
                bytes: std::mem::take(&mut self.written),
            });
        let of_stream = self.all.get_mut(&id).and_then(|stream| {
            stream.written += bytes;
            (stream.sends && stream.written >= TOLD_BYTES_MIN).then(|| Received::Written {
                stream: Some(id),
                bytes: std::mem::take(&mut stream.written),
            })
        });
        [of_stream, of_connection]
    }

    /// Discards what a stream was to send. Returns how many bytes that were.
    pub fn stop_sending(&mut self, id: StreamId) -> usize {
        let Some(stream) = self.all.get_mut(&id) else {
            return 0;
        };
        stream.sends = false;
        let discarded = std::mem::take(&mut stream.queue).len();
        self.queued -= discarded;
        discarded
    }
}

/// Who opens a stream with this number, in which direction, and its place among those.
pub(crate) fn parts(id: StreamId) -> (Side, Dir, u64) {
    let side = if id & 1 == 0 {
        Side::Client
    } else {
        Side::Server
    };
    let dir = if id & 2 == 0 { Dir::Bi } else { Dir::Uni };
    (side, dir, id >> 2)
}
