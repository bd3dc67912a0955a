//! Clients that behave: each has one stream over HTTP/1, or several over HTTP/2.

use http::Head;
use http::h2::{Connection, Event, Limits, Scheme, StreamId};

use super::frames::{Frames, INBOX_BYTES, PAYLOAD};
use super::servers::{ENDLESS_BYTES, SMALL_BYTES};
use super::share::{Board, Kind};
use crate::driver::Pipe;

/// A client of HTTP/1, with one stream.
#[derive(Debug)]
pub struct H1Client {
    flow: usize,
    /// What came of a small answer.
    came: Vec<u8>,
    is_asked: bool,
}

/// A client of HTTP/2.
#[derive(Debug)]
pub struct H2Client {
    frames: Frames,
    streams: Vec<Asked>,
    /// The proxy has ended the connection.
    is_over: bool,
}

#[derive(Debug)]
struct Asked {
    flow: usize,
    stream: Option<StreamId>,
}

impl H1Client {
    pub fn new(flow: usize) -> H1Client {
        H1Client {
            flow,
            came: Vec::new(),
            is_asked: false,
        }
    }

    /// Takes what came, and goes on.
    pub fn act(&mut self, place: usize, pipe: &mut Pipe, bytes: &[u8], board: &mut Board) {
        let Some(kind) = board.flows.get(self.flow).map(|flow| flow.kind) else {
            return;
        };
        match kind {
            Kind::Small => {
                self.came.extend_from_slice(bytes);
                if let Some(end) = answer_end(&self.came) {
                    if !self.came.starts_with(b"HTTP/1.1 200") {
                        board.fault(format!("client #{place}: {:?}", first_line(&self.came)));
                    }
                    self.came.drain(..end);
                    self.is_asked = false;
                    board.received(self.flow, 1);
                }
            }
            Kind::Down if !bytes.is_empty() => board.received(self.flow, bytes.len()),
            Kind::Up if !bytes.is_empty() => {
                board.fault(format!("client #{place}: {:?}", first_line(bytes)));
            }
            _ => {}
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            let flow = target(self.flow, kind);
            let ask = if kind.is_upload() {
                format!(
                    "POST {flow} HTTP/1.1\r\nHost: a\r\nContent-Length: {ENDLESS_BYTES}\r\n\r\n"
                )
            } else {
                format!("GET {flow} HTTP/1.1\r\nHost: a\r\n\r\n")
            };
            pipe.write(ask.as_bytes());
        }
        if kind.is_upload() {
            let room = INBOX_BYTES.saturating_sub(pipe.inbox.len());
            if room > 0 {
                pipe.write(&PAYLOAD[..room]);
            }
        }
    }
}

impl H2Client {
    /// Its first words are appended to `out`.
    pub fn new(limits: Limits, flows: &[usize], out: &mut Vec<u8>) -> H2Client {
        let asked = flows.iter().map(|flow| Asked {
            flow: *flow,
            stream: None,
        });
        H2Client {
            frames: Frames::new(Connection::client(limits, out)),
            streams: asked.collect(),
            is_over: false,
        }
    }

    pub fn act(&mut self, place: usize, pipe: &mut Pipe, bytes: &[u8], board: &mut Board) {
        if self.is_over {
            return;
        }
        let flows = self.streams.iter().map(|asked| asked.flow);
        let behaves = flows
            .map(|flow| board.flows[flow].kind)
            .any(Kind::is_runnable);
        let (streams, is_over) = (&mut self.streams, &mut self.is_over);
        let mut out = Vec::new();
        let read = self.frames.read(
            bytes,
            board.now_ms,
            &mut out,
            |codec, event, came, head, out| match event {
                Event::Head { token, end, .. } => {
                    let status = head.status();
                    let is_right = status < 200 || (status == 200 && !end);
                    if !is_right && board.flows[token as usize].kind.is_runnable() {
                        board.fault(format!("client #{place}: stream {token} got {status}"));
                    }
                }
                Event::Data {
                    stream,
                    token,
                    range,
                    end,
                } => {
                    let flow = token as usize;
                    let kind = board.flows[flow].kind;
                    debug_assert!(came.len() >= range.end);
                    if kind != Kind::Uncredited {
                        codec.consumed(stream, range.len(), out);
                    }
                    match kind {
                        Kind::Small if end => {
                            board.received(flow, 1);
                            let asked = streams.iter_mut().find(|asked| asked.flow == flow);
                            if let Some(asked) = asked {
                                asked.stream = None;
                            }
                        }
                        Kind::Down => board.received(flow, range.len()),
                        _ => {}
                    }
                }
                Event::Reset { token, code, .. } => {
                    let kind = board.flows.get(token as usize).map(|flow| flow.kind);
                    if kind.is_some_and(Kind::is_runnable) {
                        board.fault(format!(
                            "client #{place}: stream {token} ends with {code:?}"
                        ));
                    }
                }
                Event::Goaway { .. } if !behaves => *is_over = true,
                Event::Goaway { code, .. } => {
                    board.fault(format!("client #{place}: GOAWAY {code:?}"));
                }
                _ => {}
            },
        );
        if let Err(error) = read {
            board.fault(format!("client #{place}: {error}"));
        }
        for asked in &mut self.streams {
            let kind = board.flows[asked.flow].kind;
            if asked.stream.is_none() && self.frames.codec.can_open() {
                let mut head = Head::default();
                let is_upload = kind.is_upload();
                assert!(head.set_method(if is_upload { b"POST" } else { b"GET" }));
                head.set_target(target(asked.flow, kind).as_bytes());
                head.append(b"host", b"a");
                let token = asked.flow as u32;
                let codec = &mut self.frames.codec;
                asked.stream = codec.send_request(&head, Scheme::Http, token, !is_upload, &mut out);
            }
        }
        let uploads = self.streams.iter();
        let uploads = uploads.filter(|asked| board.flows[asked.flow].kind.is_upload());
        let uploads: Vec<StreamId> = uploads.filter_map(|asked| asked.stream).collect();
        let room = INBOX_BYTES.saturating_sub(pipe.inbox.len());
        self.frames.fill(&uploads, room, &mut out);
        if !out.is_empty() {
            pipe.write(&out);
        }
    }
}

/// The path of a stream's requests.
fn target(flow: usize, kind: Kind) -> String {
    let mark = if kind == Kind::Flooded { "!" } else { "" };
    format!("/{flow}{mark}")
}

/// Where a small answer ends, once it is whole.
fn answer_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let end = head + 4 + SMALL_BYTES;
    (bytes.len() >= end).then_some(end)
}

fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\r').next();
    String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
}
