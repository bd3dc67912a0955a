//! Servers: what they do with a request is what its stream is for.

use http::Head;
use http::h1::Framing;
use http::h2::{Connection, Event, Limits, StreamId};

use super::frames::{Frames, INBOX_BYTES, PAYLOAD};
use super::share::{Board, Kind};
use crate::driver::Pipe;

/// The announced length of a body that never ends in a life.
pub const ENDLESS_BYTES: usize = 1 << 40;
/// The body of a small answer.
pub const SMALL_BYTES: usize = 100;
/// What a server sends of a body before it stops in the middle of it.
const HALF_BYTES: usize = 3_000;
const HINT: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";

/// A server's connection over HTTP/1: one request at a time.
#[derive(Debug, Default)]
pub struct H1Server {
    /// What came of a head.
    came: Vec<u8>,
    flow: Option<usize>,
}

/// A server's connection over HTTP/2.
#[derive(Debug)]
pub struct H2Server {
    frames: Frames,
    asked: Vec<(StreamId, usize)>,
    /// Bodies that end, and how much of each is left.
    bodies: Vec<(StreamId, usize)>,
}

impl H1Server {
    /// It does not read any more.
    pub fn is_deaf(&self, board: &Board) -> bool {
        let kind = self.flow.and_then(|flow| board.flows.get(flow));
        kind.is_some_and(|flow| flow.kind == Kind::Unread)
    }

    pub fn act(&mut self, place: usize, pipe: &mut Pipe, bytes: &[u8], board: &mut Board) {
        let mut body = bytes.len();
        if self.flow.is_none() {
            self.came.extend_from_slice(bytes);
            let Some(end) = head_end(&self.came) else {
                return;
            };
            body = self.came.len() - end;
            // A hostile client's request has no number: it is never answered.
            let Some(flow) = flow_of(&self.came) else {
                return;
            };
            self.came.clear();
            let Some(kind) = board.asked(flow, place) else {
                return board.fault(format!("server #{place}: asked for {flow}"));
            };
            self.flow = Some(flow);
            self.answer(kind, pipe);
        }
        let Some(flow) = self.flow else { return };
        let room = INBOX_BYTES.saturating_sub(pipe.inbox.len());
        match board.flows[flow].kind {
            Kind::Up if body > 0 => board.received(flow, body),
            Kind::Down | Kind::Uncredited | Kind::Tiny if room > 0 => pipe.write(&PAYLOAD[..room]),
            Kind::Hints | Kind::Flooded => pipe.write(&HINT.repeat(room / HINT.len())),
            // The next one on this connection.
            Kind::Small => self.flow = None,
            _ => {}
        }
    }

    fn answer(&self, kind: Kind, pipe: &mut Pipe) {
        let length = if kind == Kind::Small {
            SMALL_BYTES
        } else {
            ENDLESS_BYTES
        };
        let sent = match kind {
            Kind::Small => SMALL_BYTES,
            Kind::Half => HALF_BYTES,
            Kind::Down | Kind::Uncredited | Kind::Tiny => 0,
            Kind::Up | Kind::Unread | Kind::Hints | Kind::Flooded => return,
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        pipe.write(head.as_bytes());
        pipe.write(&PAYLOAD[..sent]);
    }
}

impl H2Server {
    /// Its first words are appended to `out`.
    pub fn new(limits: Limits, out: &mut Vec<u8>) -> H2Server {
        H2Server {
            frames: Frames::new(Connection::server(limits, out)),
            asked: Vec::new(),
            bodies: Vec::new(),
        }
    }

    pub fn act(&mut self, place: usize, pipe: &mut Pipe, bytes: &[u8], board: &mut Board) {
        let (asked, bodies) = (&mut self.asked, &mut self.bodies);
        let mut out = Vec::new();
        let read = self.frames.read(
            bytes,
            board.now_ms,
            &mut out,
            |codec, event, _, head, out| match event {
                Event::Head { stream, .. } => {
                    let target = std::str::from_utf8(head.target()).unwrap_or_default();
                    // A hostile client's request has no number: it is never answered.
                    let Some(flow) = number_of(target) else {
                        return;
                    };
                    let Some(kind) = board.asked(flow, place) else {
                        return board.fault(format!("server #{place}: asked for {flow}"));
                    };
                    asked.push((stream, flow));
                    codec.set_token(stream, flow as u32);
                    answer(codec, stream, kind, out);
                    if kind == Kind::Small {
                        bodies.push((stream, SMALL_BYTES));
                    }
                }
                Event::Data {
                    stream,
                    token,
                    range,
                    ..
                } => {
                    let kind = board.flows.get(token as usize).map(|flow| flow.kind);
                    if kind.is_some_and(|kind| kind != Kind::Unread) {
                        codec.consumed(stream, range.len(), out);
                        board.received(token as usize, range.len());
                    }
                }
                Event::Reset { stream, .. } => asked.retain(|(other, _)| *other != stream),
                _ => {}
            },
        );
        if let Err(error) = read {
            board.fault(format!("server #{place}: {error}"));
        }
        let codec = &mut self.frames.codec;
        self.bodies.retain_mut(|(stream, left)| {
            let count = codec.data_room(*stream).min(*left);
            if count > 0 && codec.send_data_head(*stream, count, count == *left, &mut out) {
                out.extend_from_slice(&PAYLOAD[..count]);
                *left -= count;
            }
            *left > 0 && codec.token(*stream).is_some()
        });
        let of_kind = |wanted: &[Kind]| {
            let asked = self.asked.iter();
            let asked = asked.filter(|(_, flow)| wanted.contains(&board.flows[*flow].kind));
            asked.map(|(stream, _)| *stream).collect::<Vec<_>>()
        };
        let room = INBOX_BYTES.saturating_sub(pipe.inbox.len());
        let hinting = of_kind(&[Kind::Hints]);
        while !hinting.is_empty() && out.len() < room / 2 {
            let mut head = Head::default();
            head.set_status(103, b"Early Hints");
            head.append(b"link", b"</style.css>; rel=preload");
            for stream in &hinting {
                self.frames
                    .codec
                    .send_response(*stream, &head, false, &mut out);
            }
        }
        let downloads = of_kind(&[Kind::Down, Kind::Uncredited, Kind::Tiny]);
        self.frames.fill(&downloads, room, &mut out);
        if !out.is_empty() {
            pipe.write(&out);
        }
    }
}

/// Begins an answer; its body follows, unless it stops in the middle of it.
fn answer(codec: &mut Connection, stream: StreamId, kind: Kind, out: &mut Vec<u8>) {
    let sent = match kind {
        Kind::Half => HALF_BYTES,
        Kind::Down | Kind::Uncredited | Kind::Tiny | Kind::Small => 0,
        Kind::Up | Kind::Unread | Kind::Hints | Kind::Flooded => return,
    };
    let mut head = Head::default();
    head.set_status(200, b"OK");
    if kind == Kind::Small {
        head.set_framing(Framing::Length(SMALL_BYTES as u64));
    }
    codec.send_response(stream, &head, false, out);
    let count = codec.data_room(stream).min(sent);
    if count > 0 && codec.send_data_head(stream, count, false, out) {
        out.extend_from_slice(&PAYLOAD[..count]);
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(at + 4)
}

/// The stream that a request's path names.
fn flow_of(head: &[u8]) -> Option<usize> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let target = std::str::from_utf8(line).ok()?.split(' ').nth(1)?;
    number_of(target)
}

/// The same of a target, in origin form or in absolute form.
fn number_of(target: &str) -> Option<usize> {
    let (_, number) = target.rsplit_once('/')?;
    number.trim_end_matches('!').parse().ok()
}
