//! An end of HTTP/2 of a peer.

use http::Head;
use http::h2::{Connection, Event, StreamId};

/// How much a peer keeps on its way, bytes: what its kernel would take.
pub const INBOX_BYTES: usize = 64 << 10;

/// What a stream sends in its turn, bytes.
const TURN_BYTES: usize = 16 << 10;

/// Payload: what it says does not matter here.
pub static PAYLOAD: [u8; INBOX_BYTES] = [b'x'; INBOX_BYTES];

/// See the module.
#[derive(Debug)]
pub struct Frames {
    pub codec: Connection,
    /// What came and is not a whole frame yet.
    came: Vec<u8>,
    /// The upload or download that sends next.
    turn: usize,
    /// What it has sent in its turn.
    sent: usize,
}

impl Frames {
    pub fn new(codec: Connection) -> Frames {
        Frames {
            codec,
            came: Vec::new(),
            turn: 0,
            sent: 0,
        }
    }

    /// Reads what came; each event is told with its payload and its head. What is answered is
    /// appended to `out`.
    ///
    /// # Errors
    /// The proxy broke a rule of the protocol.
    pub fn read(
        &mut self,
        bytes: &[u8],
        now_ms: u64,
        out: &mut Vec<u8>,
        mut told: impl FnMut(&mut Connection, Event, &[u8], &Head, &mut Vec<u8>),
    ) -> Result<(), String> {
        self.came.extend_from_slice(bytes);
        let (mut at, mut head) = (0, Head::default());
        let outcome = loop {
            match self.codec.read(&self.came[at..], now_ms, &mut head, out) {
                Ok((used, Event::More)) => {
                    at += used;
                    break Ok(());
                }
                Ok((used, event)) => {
                    told(&mut self.codec, event, &self.came[at..], &head, out);
                    at += used;
                }
                Err(error) => break Err(format!("{error:?}")),
            }
        };
        self.came.drain(..at);
        outcome
    }

    /// Sends payload on these streams, [`TURN_BYTES`] of each at a time, as long as windows and the
    /// room of `most` bytes allow. A turn that the room cuts off goes on with the next call:
    /// otherwise the same stream may get the small rest of the room each time.
    pub fn fill(&mut self, streams: &[StreamId], most: usize, out: &mut Vec<u8>) {
        let mut idle = 0;
        while !streams.is_empty() && idle < streams.len() && out.len() < most {
            let stream = streams[self.turn % streams.len()];
            let room = self.codec.data_room(stream).min(most - out.len());
            let count = room.min(TURN_BYTES - self.sent);
            if count == 0 || !self.codec.send_data_head(stream, count, false, out) {
                // Its turn is over, or it has no window.
                idle += usize::from(self.sent == 0);
                (self.turn, self.sent) = (self.turn + 1, 0);
                continue;
            }
            idle = 0;
            self.sent += count;
            out.extend_from_slice(&PAYLOAD[..count]);
        }
    }
}
