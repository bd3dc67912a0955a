//! What is accepted and refused, by section of RFC 9114; that no cut of the input changes anything;
//! and our client against our server.

use std::collections::BTreeMap;

use super::frame::{self, kind, setting, stream_type};
use super::record::{HEAD_BYTES, Kind, Record};
use super::*;
use crate::Head;
use crate::h1::{write_request, write_response};

mod attacks;
mod bodies;
mod control;
mod flow;
mod messages;
mod peers;
mod states;
mod waiting;

/// Records of QUIC.
#[derive(Clone, Debug, Default)]
struct Wire(Vec<u8>);

/// The peer's unidirectional streams in tests of a server.
const CONTROL: u64 = 2;
const ENCODER: u64 = 6;
const DECODER: u64 = 10;
/// Those in tests of a client.
const CONTROL_OF_SERVER: u64 = 3;

impl Wire {
    /// What a client sends first.
    fn client() -> Wire {
        Wire::default().data(CONTROL, &control(&[]))
    }

    /// What a server sends first.
    fn server() -> Wire {
        Wire::default().data(CONTROL_OF_SERVER, &control(&[]))
    }

    /// Bytes of a stream.
    fn data(mut self, stream: u64, bytes: &[u8]) -> Wire {
        record::data(stream, bytes, false, &mut self.0);
        self
    }

    /// The last bytes of a stream.
    fn last(mut self, stream: u64, bytes: &[u8]) -> Wire {
        record::data(stream, bytes, true, &mut self.0);
        self
    }

    fn fin(mut self, stream: u64) -> Wire {
        record::fin(stream, &mut self.0);
        self
    }

    fn reset(mut self, stream: u64, code: u64) -> Wire {
        record::reset(stream, code, &mut self.0);
        self
    }

    fn stopped(mut self, stream: u64, code: u64) -> Wire {
        record::stopped(stream, code, &mut self.0);
        self
    }

    fn written(mut self, stream: u64, count: u64) -> Wire {
        record::written(stream, count, &mut self.0);
        self
    }

    /// A frame on a stream.
    fn frame(self, stream: u64, kind: u64, payload: &[u8]) -> Wire {
        self.data(stream, &frame_of(kind, payload))
    }

    fn headers(self, stream: u64, fields: &[(&str, &str)]) -> Wire {
        self.frame(stream, kind::HEADERS, &section(fields))
    }

    /// The same, and the end of the stream.
    fn all(self, stream: u64, fields: &[(&str, &str)]) -> Wire {
        self.last(stream, &frame_of(kind::HEADERS, &section(fields)))
    }

    fn get(self, stream: u64) -> Wire {
        self.all(stream, GET)
    }

    fn post(self, stream: u64) -> Wire {
        self.headers(stream, POST)
    }

    /// A DATA frame.
    fn body(self, stream: u64, payload: &[u8]) -> Wire {
        self.frame(stream, kind::DATA, payload)
    }

    /// A DATA frame and the end of the stream.
    fn end(self, stream: u64, payload: &[u8]) -> Wire {
        self.last(stream, &frame_of(kind::DATA, payload))
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

fn frame_of(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::head(kind, payload.len(), &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// The type of a control stream and its settings.
fn control(settings: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![stream_type::CONTROL as u8];
    frame::settings(settings, &mut bytes);
    bytes
}

/// A section of literals, without references.
fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        integer(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name.as_bytes());
        integer(0, 7, value.len(), &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    section
}

fn integer(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let mask = (1 << bits) - 1;
    if value < mask {
        return out.push(first | value as u8);
    }
    out.push(first | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Limits that tests reach.
fn limits() -> Limits {
    Limits {
        head_bytes_max: 2000,
        fields_max: 20,
        block_bytes_max: 4000,
        streams_max: 5,
        resets_max: 10,
        idle_frames_max: 20,
        ..Limits::default()
    }
}

/// The events of a connection for some input and the records that it answered, in order, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    events: Vec<String>,
    answers: Vec<String>,
    /// How many bytes of each stream were used.
    consumed: BTreeMap<u64, u64>,
    error: Option<Code>,
}

/// Feeds the input in pieces, and credits all payload. Echoes come back in the end.
fn feed(connection: &mut Connection, pieces: &[&[u8]]) -> Told {
    feed_at(0, connection, pieces)
}

/// The same at a time, in milliseconds.
fn feed_at(now_ms: u64, connection: &mut Connection, pieces: &[&[u8]]) -> Told {
    let mut told = Told::default();
    let (mut held, mut out, mut seen) = (Vec::new(), Vec::new(), 0);
    let mut echoes = Vec::new();
    let mut pieces = pieces.iter();
    loop {
        match pieces.next() {
            Some(piece) => held.extend_from_slice(piece),
            None if echoes.is_empty() => break,
            None => held.append(&mut echoes),
        }
        if let Err(error) = feed_all(now_ms, connection, &mut held, &mut told, &mut out) {
            told.error = Some(error.code);
            assert!(
                connection
                    .read(b"", 0, &mut Head::default(), &mut out)
                    .is_err()
            );
            answers(&out[seen..], &mut told, &mut echoes);
            // Nobody reads it.
            told.consumed.clear();
            return told;
        }
        answers(&out[seen..], &mut told, &mut echoes);
        seen = out.len();
    }
    told
}

fn feed_all(
    now_ms: u64,
    connection: &mut Connection,
    held: &mut Vec<u8>,
    told: &mut Told,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut head = Head::default();
    loop {
        let (used, event) = connection.read(held, now_ms, &mut head, out)?;
        let is_more = event == Event::More;
        tell(&mut told.events, connection, &event, held, &head, out);
        held.drain(..used);
        if is_more {
            assert!(held.len() < 32);
            return Ok(());
        }
    }
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
            assert_eq!(head.version(), crate::Version::Http3);
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
        Event::Pong(_) => panic!("a pong"),
    };
    events.push(text);
}

/// Notes the records that were sent, but for what opens our streams.
fn answers(mut out: &[u8], told: &mut Told, echoes: &mut Vec<u8>) {
    while !out.is_empty() {
        let (record, used) = Record::read(out).expect("legal").expect("whole");
        let (bytes, rest) = out.split_at(used);
        out = rest;
        let stream = record.head.stream;
        told.answers.push(match record.head.kind {
            Kind::Data => {
                let end = if record.head.end { "$" } else { "" };
                format!("data {stream} {:02x?}{end}", record.payload)
            }
            Kind::Fin => format!("fin {stream}"),
            Kind::Reset => format!("reset {stream} {:x}", record.number()),
            Kind::Stop => format!("stop {stream} {:x}", record.number()),
            Kind::Close => format!("close {:x}", record.number()),
            Kind::Priority => format!("priority {stream} {}", record.priority()),
            Kind::Consumed => {
                *told.consumed.entry(stream).or_default() += record.number();
                continue;
            }
            Kind::Echo => {
                echoes.extend_from_slice(bytes);
                continue;
            }
            Kind::Stopped | Kind::Written | Kind::Streams => panic!("{record:?}"),
        });
    }
}

/// How many bytes of each stream are in these records.
fn sizes(mut wire: &[u8]) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    while let Ok(Some((record, used))) = Record::read(wire) {
        wire = &wire[used..];
        if record.head.kind == Kind::Data && !record.payload.is_empty() {
            *sizes.entry(record.head.stream).or_default() += record.payload.len() as u64;
        }
    }
    sizes
}

/// What a server or a client says to this input, whole, byte by byte and cut in two anywhere:
/// always the same. If nothing is wrong, all bytes of all streams are used.
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
    if whole.error.is_none() {
        assert_eq!(whole.consumed, sizes(bytes), "{whole:?}");
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

/// A client that may send some requests.
fn idle_client(out: &mut Vec<u8>) -> Connection {
    let mut client = Connection::client(limits(), out);
    let mut streams = Vec::new();
    record::streams(100, &mut streams);
    let told = client.read(&streams, 0, &mut Head::default(), out);
    assert_eq!(told, Ok((streams.len(), Event::Settings)));
    client
}

/// A client that has sent requests with these methods; a GET has ended, a POST has not.
fn new_client(methods: &[&str]) -> Connection {
    let mut out = Vec::new();
    let mut client = idle_client(&mut out);
    for (token, method) in methods.iter().enumerate() {
        let mut head = Head::default();
        assert!(head.set_method(method.as_bytes()));
        head.set_target(if *method == "CONNECT" { b"a:1" } else { b"/" });
        head.append(b"host", b"a");
        let end = matches!(*method, "GET" | "HEAD");
        let stream = client.send_request(&head, Scheme::Http, token as u32, end, &mut out);
        assert_eq!(stream, Some(StreamId(token as u32)));
    }
    client
}

/// What a client says.
fn client(methods: &[&str], wire: &Wire) -> Told {
    outcome(|| new_client(methods), wire)
}

/// The connection ends with this code of HTTP/3.
#[track_caller]
fn assert_ends(told: &Told, code: u64) {
    assert_eq!(told.error, Some(code::to_h2(code)), "{told:?}");
    let last = told.answers.last().expect("an answer");
    assert_eq!(*last, format!("close {code:x}"), "{told:?}");
}

/// A request is reset with this code of HTTP/3, and the connection goes on.
#[track_caller]
fn assert_resets(told: &Told, request: u32, code: u64) {
    assert_eq!(told.error, None, "{told:?}");
    let stream = request * 4;
    let resets = [
        format!("reset {stream} {code:x}"),
        format!("stop {stream} {code:x}"),
    ];
    assert!(
        told.answers.iter().any(|answer| resets.contains(answer)),
        "{told:?}"
    );
    let refused = format!("refused {request} {}", code::to_h2(code).name());
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
