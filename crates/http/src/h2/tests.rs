//! What is accepted and refused, by section of RFC 9113; that no cut of the input changes anything;
//! and our client against our server.

use super::frame::{FrameHead, flag, kind, setting};
use super::*;
use crate::Head;
use crate::h1::{write_request, write_response};

mod attacks;
mod bodies;
mod counts;
mod flow;
mod frames;
mod messages;
mod peers;
mod states;

/// Bytes of the wire.
#[derive(Clone, Debug, Default)]
struct Wire(Vec<u8>);

impl Wire {
    /// What a client sends first.
    fn client() -> Wire {
        Wire(PREFACE.to_vec()).settings(&[])
    }

    /// What a server sends first.
    fn server() -> Wire {
        Wire::default().settings(&[])
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Wire {
        frame::head(kind, flags, StreamId(stream), payload.len(), &mut self.0);
        self.0.extend_from_slice(payload);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Wire {
        self.0.extend_from_slice(bytes);
        self
    }

    fn settings(mut self, settings: &[(u16, u32)]) -> Wire {
        frame::settings(settings, &mut self.0);
        self
    }

    /// A HEADERS frame with a whole block; `flags` beside END_HEADERS.
    fn headers(self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Wire {
        self.frame(
            kind::HEADERS,
            flag::END_HEADERS | flags,
            stream,
            &block(fields),
        )
    }

    /// A GET that ends its stream.
    fn get(self, stream: u32) -> Wire {
        self.headers(stream, flag::END_STREAM, GET)
    }

    /// The head of a POST.
    fn post(self, stream: u32) -> Wire {
        self.headers(stream, 0, POST)
    }

    fn data(self, stream: u32, flags: u8, payload: &[u8]) -> Wire {
        self.frame(kind::DATA, flags, stream, payload)
    }

    fn reset(mut self, stream: u32, code: Code) -> Wire {
        frame::reset(StreamId(stream), code, &mut self.0);
        self
    }

    fn credit(mut self, stream: u32, credit: u32) -> Wire {
        frame::window_update(StreamId(stream), credit, &mut self.0);
        self
    }
}

const GET: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a.example"),
    (":path", "/"),
];
const POST: &[(&str, &str)] = &[
    (":method", "POST"),
    (":scheme", "https"),
    (":authority", "a.example"),
    (":path", "/"),
];

/// A block of literals without indexing.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            match text.len() {
                0..127 => block.push(text.len() as u8),
                len => {
                    let rest = len - 127;
                    block.extend([127, (rest & 0x7f) as u8 | 0x80, (rest >> 7) as u8]);
                }
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Limits that tests reach.
fn limits() -> Limits {
    Limits {
        head_bytes_max: 2000,
        fields_max: 20,
        block_bytes_max: 4000,
        continuations_max: 5,
        streams_max: 5,
        resets_max: 10,
        idle_frames_max: 20,
        // Nothing is said of it then.
        connection_window_bytes: frame::WINDOW_DEFAULT,
        body_window_bytes: 0,
        grown_window_bytes: 0,
        ..Limits::default()
    }
}

/// The events of a connection for some input and the bytes that it answered, in order, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    events: Vec<String>,
    answers: Vec<String>,
    error: Option<Code>,
}

/// Feeds the input in pieces, and credits all payload.
fn feed(connection: &mut Connection, pieces: &[&[u8]]) -> Told {
    feed_at(0, connection, pieces)
}

/// The same at a time, in milliseconds.
fn feed_at(now_ms: u64, connection: &mut Connection, pieces: &[&[u8]]) -> Told {
    let mut told = Told::default();
    let (mut held, mut out, mut head) = (Vec::new(), Vec::new(), Head::default());
    'pieces: for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let (used, event) = match connection.read(&held, now_ms, &mut head, &mut out) {
                Ok(step) => step,
                Err(error) => {
                    told.error = Some(error.code);
                    break 'pieces;
                }
            };
            let is_more = event == Event::More;
            tell(&mut told.events, connection, &event, &held, &head, &mut out);
            held.drain(..used);
            if is_more {
                break;
            }
        }
    }
    told.answers = answers(&out);
    told
}

/// Notes an event. Payload of the same stream is joined, for where it is cut says nothing.
fn tell(
    events: &mut Vec<String>,
    connection: &mut Connection,
    event: &Event,
    input: &[u8],
    head: &Head,
    out: &mut Vec<u8>,
) {
    let text = match event {
        Event::More | Event::Settings => return,
        Event::Head {
            stream,
            end,
            framing,
            scheme,
            ..
        } => {
            let mut wire = Vec::new();
            match head.status() {
                0 => write_request(head, None, &mut wire),
                _ => write_response(head, None, &mut wire),
            }
            assert_eq!(wire.len(), head.wire_bytes());
            assert!(wire.starts_with(head.slice(head.start.line)));
            let wire = String::from_utf8_lossy(&wire).replace("\r\n", "|");
            let end = if *end { " end" } else { "" };
            let scheme = scheme.map_or("", Scheme::as_str);
            format!("head {} {framing:?} {scheme}{end} {wire}", stream.0)
        }
        Event::Data {
            stream, range, end, ..
        } => {
            connection.consumed(*stream, range.len(), out);
            let text = String::from_utf8_lossy(&input[range.clone()]).into_owned();
            let begin = format!("data {} ", stream.0);
            let end = if *end { "$" } else { "" };
            if let Some(last) = events.last_mut().filter(|last| last.starts_with(&begin)) {
                last.push_str(&text);
                last.push_str(end);
                return;
            }
            begin + &text + end
        }
        Event::Trailers { stream, .. } => {
            let fields = head.fields().map(|(_, _, name, value)| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                format!(" {}={}", text(name), text(value))
            });
            format!("trailers {}{}", stream.0, fields.collect::<String>())
        }
        Event::Reset {
            stream,
            code,
            error,
            ..
        } => match error {
            None => format!("reset {} {}", stream.0, code.name()),
            Some(error) => format!("refused {} {}: {error}", stream.0, code.name()),
        },
        Event::Refused { stream, error } => {
            format!("refused {} {}: {error}", stream.0, error.code.name())
        }
        Event::WindowOpen { stream, .. } => format!("window {}", stream.0),
        Event::WindowsOpen => "windows".to_owned(),
        Event::Goaway { last, code } => format!("goaway {} {}", last.0, code.name()),
        Event::Pong(payload) => format!("pong {payload}"),
    };
    events.push(text);
}

/// Frames that were sent, but for settings and their acknowledgement.
fn answers(mut out: &[u8]) -> Vec<String> {
    let mut answers = Vec::new();
    while let Some(bytes) = out.first_chunk() {
        let head = FrameHead::read(*bytes);
        let (payload, rest) = out[9..].split_at(head.len as usize);
        out = rest;
        let stream = head.stream.0;
        answers.push(match head.kind {
            kind::SETTINGS => continue,
            kind::RST_STREAM => format!("reset {stream} {}", Code(frame::number(payload)).name()),
            kind::GOAWAY => format!(
                "goaway {} {}",
                frame::number(payload),
                Code(frame::number(&payload[4..])).name()
            ),
            kind::PING => format!("ping {} {}", head.flags, frame::number(&payload[4..])),
            kind::WINDOW_UPDATE => format!("credit {stream} {}", frame::number(payload)),
            kind => format!("frame {kind} {} {stream} {}", head.flags, payload.len()),
        });
    }
    answers
}

/// What a server or a client says to this input, whole, byte by byte and cut in two anywhere:
/// always the same.
fn outcome(make: impl Fn() -> Connection, wire: &Wire) -> Told {
    let bytes = &wire.0;
    let whole = feed(&mut make(), &[bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(feed(&mut make(), &single), whole, "byte by byte");
    let step = (bytes.len() / 500).max(1);
    for at in (0..bytes.len()).step_by(step) {
        let (first, second) = bytes.split_at(at);
        assert_eq!(feed(&mut make(), &[first, second]), whole, "cut at {at}");
    }
    whole
}

fn new_server() -> Connection {
    Connection::server(limits(), &mut Vec::new())
}

/// What a server says.
fn server(wire: &Wire) -> Told {
    outcome(new_server, wire)
}

/// A client that has sent requests with these methods; a GET has ended, a POST has not.
fn new_client(methods: &[&str]) -> Connection {
    let mut out = Vec::new();
    let mut client = Connection::client(limits(), &mut out);
    for (token, method) in methods.iter().enumerate() {
        let mut head = Head::default();
        assert!(head.set_method(method.as_bytes()));
        head.set_target(if *method == "CONNECT" { b"a:1" } else { b"/" });
        head.append(b"host", b"a");
        let end = matches!(*method, "GET" | "HEAD");
        let stream = client.send_request(&head, Scheme::Http, token as u32, end, &mut out);
        assert_eq!(stream, Some(StreamId(2 * token as u32 + 1)));
    }
    client
}

/// What a client says.
fn client(methods: &[&str], wire: &Wire) -> Told {
    outcome(|| new_client(methods), wire)
}

/// The connection ends with this code.
#[track_caller]
fn assert_ends(told: &Told, code: Code) {
    assert_eq!(told.error, Some(code), "{told:?}");
    let last = told.answers.last().expect("an answer");
    assert!(
        last.starts_with("goaway ") && last.ends_with(code.name()),
        "{told:?}"
    );
}

/// A stream is reset with this code, and the connection goes on.
#[track_caller]
fn assert_resets(told: &Told, stream: u32, code: Code) {
    assert_eq!(told.error, None, "{told:?}");
    let reset = format!("reset {stream} {}", code.name());
    assert!(told.answers.contains(&reset), "{told:?}");
    let refused = format!("refused {stream} {}", code.name());
    assert!(
        told.events.iter().any(|event| event.starts_with(&refused)),
        "{told:?}"
    );
}

/// Nothing is wrong.
#[track_caller]
fn assert_fine(told: &Told) {
    assert_eq!(told.error, None, "{told:?}");
    assert!(
        !told.events.iter().any(|event| event.starts_with("refused")),
        "{told:?}"
    );
}
