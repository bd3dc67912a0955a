//! Rings (manual §12.5): bounded buffers of log messages, shared by all threads.
//!
//! A message that does not fit replaces the oldest ones, so a reader that is slow or gone never
//! delays a writer. Each reader has a position of its own. The lock is held only while bytes are
//! copied.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ring_file::RingFile;

/// Bytes before each message: its length.
const LENGTH_BYTES: usize = 4;

/// How messages are separated in the output of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A line feed follows each message (RFC 6587 §3.4.2).
    LineFeed,
    /// A NUL follows each message.
    Nul,
    /// The length in bytes and a space precede each message (RFC 6587 §3.4.1).
    OctetCount,
}

impl Framing {
    /// Appends a message.
    pub fn append(self, message: &[u8], out: &mut Vec<u8>) {
        self.write(message, &[], out);
    }

    /// The bytes of the messages that are within the first `sent` bytes of a batch of whole
    /// messages.
    #[must_use]
    pub fn whole(self, batch: &[u8], sent: usize) -> usize {
        self.ends(&batch[..sent], batch).last().unwrap_or(0)
    }

    /// The number of messages in a batch of whole ones.
    #[must_use]
    pub fn count(self, batch: &[u8]) -> u64 {
        self.ends(batch, batch).count() as u64
    }

    /// The ends of the messages of a batch that are within a part at its beginning.
    fn ends<'a>(self, part: &'a [u8], batch: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            let end = match self {
                Framing::LineFeed => at + part[at..].iter().position(|byte| *byte == b'\n')? + 1,
                Framing::Nul => at + part[at..].iter().position(|byte| *byte == 0)? + 1,
                Framing::OctetCount => counted_end(batch, at)?,
            };
            at = end;
            (end <= part.len()).then_some(end)
        })
    }

    fn write(self, head: &[u8], tail: &[u8], out: &mut Vec<u8>) {
        if self == Framing::OctetCount {
            out.extend_from_slice((head.len() + tail.len()).to_string().as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(head);
        out.extend_from_slice(tail);
        match self {
            Framing::LineFeed => out.push(b'\n'),
            Framing::Nul => out.push(0),
            Framing::OctetCount => {}
        }
    }
}

/// The end of the message that begins at `at`, after its length in decimal digits and a space.
fn counted_end(batch: &[u8], at: usize) -> Option<usize> {
    let rest = batch.get(at..)?;
    let digits = rest.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    (at + digits + 1).checked_add(length)
}

/// A place between two messages of a ring. It stays valid when messages are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Messages before it since the start.
    message: u64,
    /// Bytes before it since the start.
    byte: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Ring {
    bytes_max: usize,
    dropped: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Messages, each after its length.
    bytes: VecDeque<u8>,
    oldest: Position,
    next: Position,
    servers: Vec<Server>,
    /// A copy that outlives the process.
    file: Option<RingFile>,
}

/// A reader whose unread messages count as dropped when they are replaced.
struct Server {
    at: Position,
    /// It has read everything, and waits for the next message.
    waits: bool,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// An empty ring. It takes at most `bytes_max` bytes of memory, and each message takes 4 bytes
    /// more than its text.
    #[must_use]
    pub fn new(bytes_max: usize) -> Ring {
        Ring {
            bytes_max,
            dropped: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// A ring whose messages are copied to a file.
    #[must_use]
    pub fn with_file(bytes_max: usize, file: RingFile) -> Ring {
        let ring = Ring::new(bytes_max);
        ring.state().file = Some(file);
        ring
    }

    /// The longest message that fits in a ring of this size, bytes.
    #[must_use]
    pub const fn message_bytes_max(bytes_max: usize) -> usize {
        bytes_max.saturating_sub(LENGTH_BYTES)
    }

    /// Messages that were replaced before every server of the ring had taken them, and messages
    /// that are longer than the ring.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends messages.
    pub fn push<'a>(&self, messages: impl Iterator<Item = &'a [u8]>) {
        let mut state = self.state();
        let mut dropped = 0;
        for message in messages {
            dropped += state.push(message, self.bytes_max);
        }
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        if state.servers.iter().all(|server| !server.waits) {
            return;
        }
        let waiting = state.servers.iter_mut().filter(|server| server.waits);
        let wakes: Vec<_> = waiting
            .map(|server| {
                server.waits = false;
                Arc::clone(&server.wake)
            })
            .collect();
        drop(state);
        for wake in wakes {
            wake();
        }
    }

    /// The position before the oldest message.
    #[must_use]
    pub fn oldest(&self) -> Position {
        self.state().oldest
    }

    /// The position after the newest message.
    #[must_use]
    pub fn newest(&self) -> Position {
        self.state().next
    }

    /// Appends messages from a position on to `out`, until it has `bytes_max` bytes or more, and
    /// moves the position behind them. Messages that were replaced in the meantime are skipped.
    pub fn read(&self, at: &mut Position, framing: Framing, bytes_max: usize, out: &mut Vec<u8>) {
        self.state().read(at, framing, bytes_max, out);
    }

    /// Adds a server, which begins with the oldest message. `wake` is called once after each
    /// [`RingReader::read`] without a result, when there is a message; it must not block.
    pub fn attach(self: &Arc<Ring>, wake: Arc<dyn Fn() + Send + Sync>) -> RingReader {
        let mut state = self.state();
        let at = state.oldest;
        state.servers.push(Server {
            at,
            waits: false,
            wake,
        });
        RingReader {
            number: state.servers.len() - 1,
            ring: Arc::clone(self),
        }
    }
}

impl State {
    /// Appends a message. Returns the number of dropped messages.
    fn push(&mut self, message: &[u8], bytes_max: usize) -> u64 {
        let needed = LENGTH_BYTES + message.len();
        let Ok(length) = u32::try_from(message.len()) else {
            return 1;
        };
        if needed > bytes_max {
            return 1;
        }
        let mut dropped = 0;
        while self.bytes.len() + needed > bytes_max {
            dropped += self.remove_oldest();
        }
        if let Some(file) = &mut self.file {
            file.push(message);
        }
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(message);
        self.next.message += 1;
        self.next.byte += needed as u64;
        dropped
    }

    /// Removes the oldest message. Returns 1 if a server had not taken it.
    fn remove_oldest(&mut self) -> u64 {
        let gone = self.oldest.message;
        let needed = LENGTH_BYTES + self.length_at(0);
        self.bytes.drain(..needed);
        self.oldest.message += 1;
        self.oldest.byte += needed as u64;
        u64::from(self.servers.iter().any(|server| server.at.message <= gone))
    }

    /// The length of the message at this index of the bytes.
    fn length_at(&self, index: usize) -> usize {
        let mut length = [0; LENGTH_BYTES];
        for (to, from) in length.iter_mut().zip(self.bytes.range(index..)) {
            *to = *from;
        }
        u32::from_le_bytes(length) as usize
    }

    fn read(&self, at: &mut Position, framing: Framing, bytes_max: usize, out: &mut Vec<u8>) {
        if at.message < self.oldest.message {
            *at = self.oldest;
        }
        let (front, back) = self.bytes.as_slices();
        let part = |from: usize, to: usize| -> (&[u8], &[u8]) {
            let split = front.len();
            let head = &front[from.min(split)..to.min(split)];
            (
                head,
                &back[from.saturating_sub(split)..to.saturating_sub(split)],
            )
        };
        while at.message < self.next.message && out.len() < bytes_max {
            let index = (at.byte - self.oldest.byte) as usize;
            let start = index + LENGTH_BYTES;
            let end = start + self.length_at(index);
            let (head, tail) = part(start, end);
            framing.write(head, tail, out);
            at.message += 1;
            at.byte += (end - index) as u64;
        }
    }
}

/// The position of a server in a ring.
#[derive(Debug)]
pub struct RingReader {
    ring: Arc<Ring>,
    number: usize,
}

impl RingReader {
    /// Takes messages as [`Ring::read`]. Returns false if there are none; then the next one wakes
    /// the reader.
    pub fn read(&mut self, framing: Framing, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let mut state = self.ring.state();
        let before = state.servers[self.number].at;
        let mut at = before;
        state.read(&mut at, framing, bytes_max, out);
        let server = &mut state.servers[self.number];
        server.waits = at == before;
        server.at = at;
        !server.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn push(ring: &Ring, messages: &[&str]) {
        ring.push(messages.iter().map(|message| message.as_bytes()));
    }

    #[test]
    fn whole_messages_of_a_batch() {
        let counted = b"3 one10 012345\n789";
        for (sent, expected) in [(0, 0), (4, 0), (5, 5), (9, 5), (17, 5), (18, 18)] {
            assert_eq!(Framing::OctetCount.whole(counted, sent), expected, "{sent}");
        }
        assert_eq!(Framing::LineFeed.whole(b"one\ntwo\n", 6), 4);
        assert_eq!(Framing::Nul.whole(b"one\0two\0", 8), 8);
        assert_eq!(Framing::OctetCount.count(counted), 2);
        assert_eq!(Framing::LineFeed.count(b"one\ntwo\n"), 2);
        assert_eq!(Framing::OctetCount.count(b"x 99999999999999999999 "), 0);
    }

    fn all(ring: &Ring, at: &mut Position, framing: Framing) -> String {
        let mut out = Vec::new();
        ring.read(at, framing, usize::MAX, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_oldest_messages_go_when_it_is_full() {
        // Room for three messages of one byte.
        let ring = Ring::new(15);
        let mut at = ring.oldest();
        push(&ring, &["a", "b"]);
        assert_eq!(all(&ring, &mut at, Framing::LineFeed), "a\nb\n");
        assert_eq!(all(&ring, &mut at, Framing::LineFeed), "");
        push(&ring, &["c", "d", "e", "f", "g"]);
        // This reader is late: it gets what is there.
        assert_eq!(all(&ring, &mut at, Framing::LineFeed), "e\nf\ng\n");
        assert_eq!(all(&ring, &mut ring.oldest(), Framing::Nul), "e\0f\0g\0");
        assert_eq!(all(&ring, &mut ring.newest(), Framing::Nul), "");
        // Nobody needed what is gone.
        assert_eq!(ring.dropped(), 0);
        push(&ring, &["a message that is longer than the ring"]);
        assert_eq!(ring.dropped(), 1);
        push(&ring, &["elevenbytes"]);
        assert_eq!(all(&ring, &mut at, Framing::OctetCount), "11 elevenbytes");
    }

    #[test]
    fn messages_cross_the_end_of_the_memory_unchanged() {
        let ring = Ring::new(64);
        let mut at = ring.oldest();
        for number in 0..1000 {
            let message = format!("{number}{}", "x".repeat(number % 23));
            push(&ring, &[&message]);
            assert_eq!(all(&ring, &mut at, Framing::LineFeed), message + "\n");
            assert!(ring.state().bytes.len() <= 64);
        }
    }

    #[test]
    fn what_a_server_has_not_taken_counts_as_dropped() {
        static WOKEN: AtomicU32 = AtomicU32::new(0);
        let ring = Arc::new(Ring::new(15));
        push(&ring, &["before"]);
        let mut server = ring.attach(Arc::new(|| {
            WOKEN.fetch_add(1, Ordering::Relaxed);
        }));
        let mut out = Vec::new();
        assert!(server.read(Framing::LineFeed, 1, &mut out));
        assert!(!server.read(Framing::LineFeed, usize::MAX, &mut out));
        assert_eq!(out, b"before\n");
        push(&ring, &["a"]);
        push(&ring, &["b"]);
        assert_eq!(WOKEN.load(Ordering::Relaxed), 1);
        // A limit is reached after one message.
        out.clear();
        assert!(server.read(Framing::LineFeed, 1, &mut out));
        assert_eq!((&*out, ring.dropped()), (&b"a\n"[..], 0));
        push(&ring, &["c", "d", "e", "f"]);
        // `b` and `c`.
        assert_eq!(ring.dropped(), 2);
        out.clear();
        assert!(server.read(Framing::LineFeed, usize::MAX, &mut out));
        assert_eq!(out, b"d\ne\nf\n");
    }
}
