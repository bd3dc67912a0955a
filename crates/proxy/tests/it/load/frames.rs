//! An end of HTTP/2 of a peer.

use http::Head;
use http::h2::{Connection, Event, StreamId};

/// How much a peer keeps on its way, bytes: what its kernel would take.
pub const INBOX_BYTES: usize = 64 << 10;

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
}

impl Frames {
    pub fn new(codec: Connection) -> Frames {
        Frames {
            codec,
            came: Vec::new(),
            turn: 0,
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

    /// Sends payload on these streams, one frame of each at a time, as long as windows and the
    /// room of `most` bytes allow. A stream whose frame the room cuts off is the next one again:
    /// otherwise the same stream may get the rest of the room each time.
    pub fn fill(&mut self, streams: &[StreamId], most: usize, out: &mut Vec<u8>) {
        let mut idle = 0;
        while !streams.is_empty() && idle < streams.len() && out.len() < most {
            let stream = streams[self.turn % streams.len()];
            let allowed = self.codec.data_room(stream);
            let count = allowed.min(most - out.len());
            if count == allowed {
                self.turn += 1;
            }
            if count == 0 || !self.codec.send_data_head(stream, count, false, out) {
                idle += 1;
                continue;
            }
            idle = 0;
            out.extend_from_slice(&PAYLOAD[..count]);
        }
    }
}
