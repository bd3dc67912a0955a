//! Writes bodies with the framing that their heads announced.

use http::Head;
use http::h1::{Framing, write_chunk_head, write_last_chunk};
use net::{Message, Sent};

/// The result of sending payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrote {
    /// The number of payload bytes that were taken.
    pub taken: usize,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// The number of bytes sent for it, including the framing.
    pub wire: usize,
}

/// The framing of a body that is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writer {
    /// No body: payload is discarded.
    #[default]
    Nothing,
    /// Unframed: its length was announced, or the end of the connection ends it.
    Plain,
    /// In chunks; `left` bytes of the last announced chunk are still to be sent.
    Chunked { left: u64 },
}

impl Writer {
    /// The writer for an announced framing.
    pub fn of(framing: Framing) -> Writer {
        match framing {
            Framing::None => Writer::Nothing,
            Framing::Length(_) | Framing::UntilClose => Writer::Plain,
            Framing::Chunked => Writer::Chunked { left: 0 },
        }
    }

    /// Sends payload. Returns how much of it was taken; `frame` is a scratch buffer for the
    /// framing.
    pub fn data(
        &mut self,
        mut bytes: &[u8],
        frame: &mut Vec<u8>,
        mut send: impl FnMut(Message<'_>) -> Sent,
    ) -> Wrote {
        let mut wrote = Wrote::default();
        match self {
            Writer::Nothing => wrote.taken = bytes.len(),
            Writer::Plain => {
                let sent = send(Message {
                    body: bytes,
                    ..Message::default()
                });
                wrote = Wrote {
                    taken: sent.taken,
                    blocked: sent.blocked,
                    wire: sent.taken,
                };
            }
            Writer::Chunked { left } => {
                while !bytes.is_empty() {
                    frame.clear();
                    if *left == 0 {
                        *left = bytes.len() as u64;
                        write_chunk_head(bytes.len(), frame);
                    }
                    let owed = usize::try_from(*left).unwrap_or(usize::MAX);
                    let len = owed.min(bytes.len());
                    let tail: &[u8] = if owed == len { b"\r\n" } else { b"" };
                    let sent = send(Message {
                        head: frame,
                        body: &bytes[..len],
                        tail,
                    });
                    *left -= sent.taken as u64;
                    wrote.taken += sent.taken;
                    wrote.blocked |= sent.blocked;
                    wrote.wire += frame.len() + sent.taken;
                    if sent.taken < len {
                        break;
                    }
                    wrote.wire += tail.len();
                    bytes = &bytes[len..];
                }
                frame.clear();
            }
        }
        wrote
    }

    /// Ends the body. Whether the bytes show the end to the peer, and how many bytes are sent for
    /// it.
    pub fn end(
        &mut self,
        trailers: &Head,
        frame: &mut Vec<u8>,
        mut send: impl FnMut(Message<'_>) -> Sent,
    ) -> (bool, usize) {
        let Writer::Chunked { left } = std::mem::take(self) else {
            return (true, 0);
        };
        if left > 0 {
            return (false, 0);
        }
        frame.clear();
        write_last_chunk(trailers, frame);
        send(Message {
            head: frame,
            ..Message::default()
        });
        let wire = frame.len();
        frame.clear();
        (true, wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a body through a peer that takes `room` bytes of payload at a time.
    fn written(framing: Framing, pieces: &[&[u8]], room: usize) -> String {
        let mut out = Vec::new();
        let mut frame = Vec::new();
        let mut writer = Writer::of(framing);
        let mut send = |message: Message<'_>| {
            let taken = message.body.len().min(room);
            out.extend_from_slice(message.head);
            out.extend_from_slice(&message.body[..taken]);
            if taken == message.body.len() {
                out.extend_from_slice(message.tail);
            }
            Sent {
                taken,
                blocked: taken < message.body.len(),
            }
        };
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let sent = writer.data(rest, &mut frame, &mut send);
                rest = &rest[sent.taken..];
            }
        }
        let mut trailers = Head::default();
        trailers.append(b"X-Sum", b"1");
        assert!(writer.end(&trailers, &mut frame, &mut send).0);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bodies_leave_as_announced_however_much_is_taken_at_a_time() {
        let pieces: [&[u8]; 2] = [b"hello", b"you"];
        for room in [1, 2, 4, 100] {
            assert_eq!(written(Framing::Length(8), &pieces, room), "helloyou");
            assert_eq!(written(Framing::UntilClose, &pieces, room), "helloyou");
            assert_eq!(written(Framing::None, &pieces, room), "");
            assert_eq!(
                written(Framing::Chunked, &pieces, room),
                "5\r\nhello\r\n3\r\nyou\r\n0\r\nx-sum: 1\r\n\r\n"
            );
        }
    }

    #[test]
    fn a_chunk_that_is_owed_is_filled_by_whatever_comes() {
        let mut out = Vec::new();
        let mut writer = Writer::Chunked { left: 0 };
        let mut frame = Vec::new();
        let mut room = 2;
        for piece in [&b"abcde"[..], b"cd", b"efg"] {
            writer.data(piece, &mut frame, |message| {
                let taken = message.body.len().min(room);
                out.extend_from_slice(message.head);
                out.extend_from_slice(&message.body[..taken]);
                if taken == message.body.len() {
                    out.extend_from_slice(message.tail);
                }
                Sent {
                    taken,
                    blocked: false,
                }
            });
            room = 100;
        }
        assert_eq!(out, b"5\r\nabcde\r\n2\r\nfg\r\n");
    }
}
