//! One direction of a stream: which part of its body was received, waits here, and was sent.

use http::Head;
use net::timers::NEVER_MS;

use super::filters::{Compressor, Filters};

/// One direction of a stream.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Received payload that waits here, where rules can see it; at most one buffer.
    pub waiting: Vec<u8>,
    /// The trailers.
    pub trailers: Head,
    /// The filters of the payload; none for most channels.
    pub filters: Option<Box<Filters>>,
    /// The head has been sent; the body may follow.
    pub is_open: bool,
    /// The body is completely received.
    pub came: bool,
    /// The body is completely received and sent.
    pub done: bool,
    /// The sender ended before its body was complete.
    pub cut: bool,
    /// Trailers are discarded.
    pub drops_trailers: bool,
    /// The receiver does not accept all that was sent to it.
    pub is_blocked: bool,
    /// Nothing is sent before this time, monotonic milliseconds; [`NEVER_MS`] where nothing delays
    /// it.
    pub delayed_until_ms: u64,
}

impl Default for Channel {
    fn default() -> Self {
        Channel {
            waiting: Vec::new(),
            trailers: Head::default(),
            filters: None,
            is_open: false,
            came: false,
            done: false,
            cut: false,
            drops_trailers: false,
            is_blocked: false,
            delayed_until_ms: NEVER_MS,
        }
    }
}

/// The largest buffer that a channel keeps from one stream to the next, bytes.
const KEPT_BYTES_MAX: usize = 4 << 10;

impl Channel {
    /// Resets it for another stream; keeps a little memory.
    pub fn reset(&mut self) {
        let Channel {
            waiting,
            trailers,
            filters,
            is_open,
            came,
            done,
            cut,
            drops_trailers,
            is_blocked,
            delayed_until_ms,
        } = self;
        *delayed_until_ms = NEVER_MS;
        if filters.is_some() {
            *filters = None;
        }
        keep_little(waiting);
        if !trailers.is_blank() {
            trailers.clear();
            trailers.keep_little();
        }
        for flag in [is_open, came, done, cut, drops_trailers, is_blocked] {
            *flag = false;
        }
    }

    /// The filters of the payload, to add one.
    pub fn filters_mut(&mut self) -> &mut Filters {
        self.filters.get_or_insert_default()
    }

    /// The compressor of the payload, if it is compressed.
    pub fn compressor_mut(&mut self) -> Option<&mut Compressor> {
        self.filters.as_mut()?.compressor.as_deref_mut()
    }

    /// Whether rules need not wait longer for the body: it is complete, `enough` bytes are here, a
    /// buffer of `bufsize` is full beside the head, or the sender has ended.
    pub fn is_here(&self, head: &Head, bufsize: usize, enough: Option<usize>) -> bool {
        let here = self.waiting.len();
        self.came
            || self.cut
            || here >= self.room(head, bufsize)
            || enough.is_some_and(|enough| here >= enough)
    }

    /// How many bytes of the body may wait here.
    pub fn room(&self, head: &Head, bufsize: usize) -> usize {
        bufsize.saturating_sub(head.wire_bytes()).max(1)
    }

    /// Whether the sender is not read, because the receiver is slow or a limit delays its bytes.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_blocked || self.delayed_until_ms != NEVER_MS
    }

    /// Whether payload may be sent.
    pub fn flows(&self) -> bool {
        self.is_open && !self.done
    }
}

/// Empties a buffer, and frees the memory of a large one.
pub(crate) fn keep_little(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}
