//! One direction of a stream: what of its body came, waits here, and left.

use http::Head;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Payload that came and waits here, in the sight of rules; at most a buffer of it.
    pub waiting: Vec<u8>,
    /// What follows the body.
    pub trailers: Head,
    /// The head has left, the body may follow.
    pub is_open: bool,
    /// All of it came.
    pub came: bool,
    /// All of it came, and all of it left.
    pub done: bool,
    /// The sender's end came before that of the body.
    pub cut: bool,
    /// Trailers do not leave.
    pub drops_trailers: bool,
}

/// Memory that a channel keeps from one stream to the next.
const KEPT_BYTES_MAX: usize = 4 << 10;

impl Channel {
    /// Back to a fresh state, a little memory kept.
    pub fn reset(&mut self) {
        let Channel {
            waiting,
            trailers,
            is_open,
            came,
            done,
            cut,
            drops_trailers,
        } = self;
        keep_little(waiting);
        trailers.clear();
        trailers.keep_little();
        for flag in [is_open, came, done, cut, drops_trailers] {
            *flag = false;
        }
    }

    /// Whether as much of it waits here as can be waited for: all of it, `enough` bytes, what a buffer of `bufsize` has room
    /// for beside the head, or what came before the sender's end.
    pub fn is_here(&self, head: &Head, bufsize: usize, enough: Option<usize>) -> bool {
        let here = self.waiting.len();
        self.came
            || self.cut
            || here >= self.room(head, bufsize)
            || enough.is_some_and(|enough| here >= enough)
    }

    /// How much of it may wait here.
    pub fn room(&self, head: &Head, bufsize: usize) -> usize {
        bufsize.saturating_sub(head.wire_bytes()).max(1)
    }

    /// Payload may be sent on.
    pub fn flows(&self) -> bool {
        self.is_open && !self.done
    }
}

/// Empties a buffer, and gives back the memory of a large one.
pub(crate) fn keep_little(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}
