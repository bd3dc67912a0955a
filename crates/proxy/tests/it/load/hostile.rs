//! Peers that mean no good: they send without reading, or stop in the middle.

use http::Head;
use http::h2::{Code, Connection, Limits, Scheme};

use super::share::Board;
use crate::driver::Pipe;

/// What floods keep on their way, bytes.
const FLOOD_BYTES: usize = 32 << 10;

/// What a hostile peer sends without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Pipelined HEAD requests over HTTP/1.
    PipelinedHeads,
    /// HEAD requests over HTTP/2, beside a stream that stays open.
    Heads,
    /// Requests over HTTP/2 that are reset at once.
    Cancels,
    Pings,
    Settings,
    /// Credits of one byte for the connection.
    Credits,
    /// Nothing follows the middle of something: of the preface, a frame, a head, a body.
    Stop(usize),
}

/// The attacks of clients.
pub const ATTACKS: &[Attack] = &[
    Attack::PipelinedHeads,
    Attack::Heads,
    Attack::Heads,
    Attack::Cancels,
    Attack::Pings,
    Attack::Settings,
    Attack::Credits,
    Attack::Stop(0),
    Attack::Stop(1),
    Attack::Stop(2),
    Attack::Stop(3),
    Attack::Stop(4),
];

const HEAD_REQUEST: &[u8] = b"HEAD /local HTTP/1.1\r\nHost: a\r\n\r\n";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingping";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const CREDIT: &[u8] = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";

impl Attack {
    /// It needs no HTTP/2.
    pub fn is_h1(self) -> bool {
        matches!(self, Attack::PipelinedHeads | Attack::Stop(2..))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Hostile {
    attack: Attack,
    /// How many pieces it sends in a round.
    pace: usize,
    codec: Option<Connection>,
}

impl Hostile {
    /// A client; its first words are appended to `out`.
    pub fn client(attack: Attack, pace: usize, out: &mut Vec<u8>) -> Hostile {
        let mut codec = None;
        match attack {
            Attack::PipelinedHeads => {}
            Attack::Stop(0) => out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM"),
            Attack::Stop(1) => {
                let _ = Connection::client(Limits::default(), out);
                out.extend_from_slice(b"\0\x10\0\0\0\0\0\0\x01half a frame");
            }
            Attack::Stop(2) => out.extend_from_slice(b"GET /half HTTP/1.1\r\nHost: "),
            Attack::Stop(3) => out.extend_from_slice(
                b"POST /local HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\nhalf",
            ),
            Attack::Stop(_) => out.extend_from_slice(
                b"POST /local HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
            ),
            Attack::Heads
            | Attack::Cancels
            | Attack::Pings
            | Attack::Settings
            | Attack::Credits => {
                codec = Some(Connection::client(Limits::default(), out));
            }
        }
        if let (Attack::Heads, Some(codec)) = (attack, &mut codec) {
            // A stream whose request never ends.
            let _ = codec.send_request(&request(b"POST"), Scheme::Http, 0, false, out);
        }
        Hostile {
            attack,
            pace,
            codec,
        }
    }

    /// A server of HTTP/2.
    pub fn server(attack: Attack, pace: usize, out: &mut Vec<u8>) -> Hostile {
        let _ = Connection::server(Limits::default(), out);
        Hostile {
            attack,
            pace,
            codec: None,
        }
    }

    /// Sends on. What came is nothing to it.
    pub fn act(&mut self, pipe: &mut Pipe, _board: &mut Board) {
        let mut out = Vec::new();
        for _ in 0..self.pace {
            if pipe.inbox.len() + out.len() >= FLOOD_BYTES {
                break;
            }
            self.piece(&mut out);
        }
        if !out.is_empty() {
            pipe.write(&out);
        }
    }

    fn piece(&mut self, out: &mut Vec<u8>) {
        match self.attack {
            Attack::PipelinedHeads => out.extend_from_slice(HEAD_REQUEST),
            Attack::Pings => out.extend_from_slice(PING),
            Attack::Settings => out.extend_from_slice(SETTINGS),
            Attack::Credits => out.extend_from_slice(CREDIT),
            Attack::Stop(_) => {}
            Attack::Heads | Attack::Cancels => {
                let Some(codec) = &mut self.codec else { return };
                let head = request(b"HEAD");
                let Some(stream) = codec.send_request(&head, Scheme::Http, 0, true, out) else {
                    return;
                };
                // Nothing is read: the codec would wait for answers.
                if self.attack == Attack::Cancels {
                    codec.send_reset(stream, Code::CANCEL, out);
                } else {
                    codec.send_reset(stream, Code::CANCEL, &mut Vec::new());
                }
            }
        }
    }
}

fn request(method: &[u8]) -> Head {
    let mut head = Head::default();
    assert!(head.set_method(method));
    head.set_target(b"/local");
    head.append(b"host", b"a");
    head
}
