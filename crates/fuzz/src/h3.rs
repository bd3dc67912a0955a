//! HTTP/3: records of QUIC, field sections and instructions of QPACK.

use std::collections::BTreeMap;

use http::h1::{write_request, write_response};
use http::h3::record::{self, HEAD_BYTES, Kind, Record};
use http::h3::{Code, Connection, Event, Limits, Scheme, StreamId};
use http::{Head, Method};

/// Small, so that inputs reach them.
fn limits() -> Limits {
    Limits {
        head_bytes_max: 4096,
        fields_max: 16,
        block_bytes_max: 8192,
        streams_max: 8,
        resets_max: 16,
        idle_frames_max: 32,
        answers_malformed: true,
        ..Limits::default()
    }
}

/// Which end reads the input, and what it has sent before.
#[derive(Clone, Copy, Debug)]
enum End {
    Server,
    Client,
}

impl End {
    fn open(self, out: &mut Vec<u8>) -> Connection {
        if let End::Server = self {
            return Connection::server(limits(), out);
        }
        let mut client = client(out);
        for (token, method) in [&b"GET"[..], b"HEAD", b"POST", b"CONNECT"]
            .iter()
            .enumerate()
        {
            let mut head = Head::default();
            assert!(head.set_method(method));
            head.set_target(if head.method() == Method::Connect {
                b"h:1"
            } else {
                b"/"
            });
            head.append(b"host", b"h");
            let end = matches!(head.method(), Method::Get | Method::Head);
            let stream = client.send_request(&head, Scheme::Https, token as u32, end, out);
            assert_eq!(stream, Some(StreamId(token as u32)));
        }
        client
    }

    /// QUIC's number of the peer's first unidirectional stream.
    fn first_of_peer(self) -> u64 {
        match self {
            End::Server => 2,
            End::Client => 3,
        }
    }
}

/// A client that may send any number of requests.
fn client(out: &mut Vec<u8>) -> Connection {
    let mut client = Connection::client(limits(), out);
    let mut streams = Vec::new();
    record::streams(1 << 20, &mut streams);
    let opened = client.read(&streams, 0, &mut Head::default(), out);
    assert_eq!(opened, Ok((streams.len(), Event::Settings)));
    client
}

/// What a connection told and sent.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    told: Vec<String>,
    out: Vec<u8>,
    /// How many bytes of each stream were used.
    consumed: BTreeMap<u64, u64>,
    error: Option<Code>,
}

impl Outcome {
    /// Counts what was used: when it is told depends on the cuts.
    fn sorted(mut self) -> Outcome {
        let out = std::mem::take(&mut self.out);
        let mut rest = &out[..];
        while let Some((record, used)) = Record::read(rest).expect("legal records") {
            if record.head.kind == Kind::Consumed {
                *self.consumed.entry(record.head.stream).or_default() += record.number();
            } else {
                self.out.extend_from_slice(&rest[..used]);
            }
            rest = &rest[used..];
        }
        assert!(rest.is_empty());
        self
    }
}

/// Records for either end: wherever the input is cut, the events and the answers are the same, and
/// the answers are not much more than what came. The first byte says whether the rest is records as
/// they are, or makes them: each a byte for kind and end, a stream, and a length before its payload.
pub fn h3_records(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    for end in [End::Server, End::Client] {
        let input = match first % 4 {
            0 => rest.to_vec(),
            _ => made(end, rest),
        };
        let whole = read(end, &input, &[]);
        assert!(
            whole.out.len() <= 2000 + 32 * input.len(),
            "{} bytes",
            whole.out.len()
        );
        for cut in crate::cuts(input.len()) {
            assert_eq!(read(end, &input, &[cut]), whole, "{end:?} cut at {cut}");
        }
        let every: Vec<_> = (0..input.len()).collect();
        assert_eq!(read(end, &input, &every), whole, "{end:?} byte by byte");
    }
}

/// Legal records, behind the beginning of a control stream.
fn made(end: End, mut rest: &[u8]) -> Vec<u8> {
    let mut input = Vec::new();
    record::data(
        end.first_of_peer(),
        &[0, 4, 2, 1, 0x40 - 1],
        false,
        &mut input,
    );
    while let [op, stream, len, payload @ ..] = rest {
        let (payload, behind) = payload.split_at(payload.len().min(usize::from(*len)));
        rest = behind;
        let stream = match stream {
            // The streams of the peer's encoder and decoder, whichever end it is.
            0xfe => end.first_of_peer() + 4,
            0xff => end.first_of_peer() + 8,
            stream => u64::from(*stream),
        };
        let number = payload
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        match op % 8 {
            0..=2 => record::data(stream, payload, op & 8 != 0, &mut input),
            3 => record::fin(stream, &mut input),
            4 => record::reset(stream, number, &mut input),
            5 => record::stopped(stream, number, &mut input),
            6 => record::written(stream, number, &mut input),
            _ => record::echo(stream, payload, op & 8 != 0, &mut input),
        }
    }
    input
}

fn read(end: End, input: &[u8], cuts: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut connection = end.open(&mut outcome.out);
    let from = outcome.out.len();
    let mut at = 0;
    for &to in cuts.iter().chain([&input.len()]) {
        if !read_part(&mut connection, &input[..to], &mut at, &mut outcome) {
            return outcome.sorted();
        }
    }
    // What was not usable comes back.
    let mut seen = from;
    loop {
        let echoes = echoes(&outcome.out[seen..]);
        if echoes.is_empty() || at < input.len() {
            return outcome.sorted();
        }
        seen = outcome.out.len();
        if !read_part(&mut connection, &echoes, &mut 0, &mut outcome) {
            return outcome.sorted();
        }
    }
}

/// The records among these that QUIC sends back.
fn echoes(mut out: &[u8]) -> Vec<u8> {
    let mut echoes = Vec::new();
    while let Some((record, used)) = Record::read(out).expect("legal records") {
        if record.head.kind == Kind::Echo {
            echoes.extend_from_slice(&out[..used]);
        }
        out = &out[used..];
    }
    assert!(out.is_empty());
    echoes
}

/// Reads up to the end of a part; false if the connection ends.
fn read_part(
    connection: &mut Connection,
    input: &[u8],
    at: &mut usize,
    outcome: &mut Outcome,
) -> bool {
    let mut head = Head::default();
    loop {
        let piece = &input[*at..];
        let (used, event) = match connection.read(piece, 0, &mut head, &mut outcome.out) {
            Ok(step) => step,
            Err(error) => {
                outcome.error = Some(error.code);
                // Before the end, what was used is told as it comes.
                let close = last(&outcome.out);
                outcome.out.drain(..close);
                return false;
            }
        };
        *at += used;
        if event == Event::More {
            assert!(input.len() - *at < 2 * HEAD_BYTES);
            return true;
        }
        heed(connection, &event, piece, &head, outcome);
    }
}

/// Where the last record begins, which closes the connection.
fn last(out: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let (record, used) = Record::read(&out[at..]).expect("legal").expect("whole");
        if at + used == out.len() {
            assert_eq!(record.head.kind, Kind::Close);
            return at;
        }
        at += used;
    }
}

/// Notes an event, and answers requests.
fn heed(
    connection: &mut Connection,
    event: &Event,
    piece: &[u8],
    head: &Head,
    outcome: &mut Outcome,
) {
    let Outcome { told, out, .. } = outcome;
    match event {
        Event::Data {
            stream, range, end, ..
        } => {
            // Credits depend on the cuts, so that they are left to the end.
            let text = format!("{}", piece[range.clone()].escape_ascii());
            let begin = format!("data {} ", stream.0);
            match told.last_mut().filter(|last| last.starts_with(&begin)) {
                Some(last) => last.push_str(&text),
                None => told.push(begin + &text),
            }
            if *end {
                told.push(format!("end {}", stream.0));
                connection.consumed(*stream, 5000, out);
            }
        }
        Event::Head { stream, end, .. } => {
            told.push(format!("{event:?} {:?}", wire(head)));
            assert!(connection.token(*stream).is_some() || *end);
            connection.set_token(*stream, 7);
            if head.status() == 0 && stream.0 % 4 == 1 {
                let mut response = Head::default();
                response.set_status(200, b"");
                response.append(b"server", b"s");
                assert!(connection.send_response(*stream, &response, false, out));
                let room = connection.data_room(*stream).min(3);
                if room > 0 {
                    assert!(connection.send_data_head(*stream, room, true, out));
                    out.resize(out.len() + room, b'.');
                }
            }
        }
        Event::Trailers { .. } => told.push(format!("{event:?} {:?}", wire(head))),
        event => told.push(format!("{event:?}")),
    }
}

/// A head as HTTP/1 has it.
fn wire(head: &Head) -> String {
    let mut wire = Vec::new();
    match head.status() {
        0 => write_request(head, None, &mut wire),
        _ => write_response(head, None, &mut wire),
    }
    assert_eq!(wire.len(), head.wire_bytes());
    String::from_utf8_lossy(&wire).into_owned()
}

/// What one end sent, as the other receives it; and what comes back.
fn relay(out: &mut Vec<u8>, to_peer: &mut Vec<u8>, back: &mut Vec<u8>) {
    let mut rest = &out[..];
    while let Some((record, used)) = Record::read(rest).expect("legal records") {
        let stream = record.head.stream;
        match record.head.kind {
            Kind::Stop => record::stopped(stream, record.number(), to_peer),
            Kind::Data | Kind::Fin | Kind::Reset => to_peer.extend_from_slice(&rest[..used]),
            Kind::Echo => back.extend_from_slice(&rest[..used]),
            Kind::Close => panic!("closed: {}", record.reason().escape_ascii()),
            _ => {}
        }
        rest = &rest[used..];
    }
    out.clear();
}

/// Field sections of requests and instructions of encoders, each behind a byte that says which and
/// one with its length: what is accepted is sent by our client, with its own table, so that it is
/// accepted again as the same.
pub fn qpack(data: &[u8]) {
    let mut input = Vec::new();
    record::data(2, &[0, 4, 0], false, &mut input);
    record::data(6, &[2], false, &mut input);
    let (mut rest, mut stream) = (data, 0);
    while let [op, len, bytes @ ..] = rest {
        let (bytes, behind) = bytes.split_at(bytes.len().min(usize::from(*len)));
        rest = behind;
        if op % 4 == 1 {
            record::data(6, bytes, false, &mut input);
            continue;
        }
        let mut frame = vec![1, 0x40, bytes.len() as u8];
        frame.extend_from_slice(bytes);
        record::data(stream, &frame, true, &mut input);
        stream += 4;
    }
    let mut out = Vec::new();
    let mut server = Connection::server(limits(), &mut out);
    out.clear();
    let (mut client_out, mut second_out) = (Vec::new(), Vec::new());
    let mut client = client(&mut client_out);
    let mut second = Connection::server(limits(), &mut second_out);
    let (mut to_client, mut to_second) = (Vec::new(), Vec::new());
    let (mut head, mut copy, mut at) = (Head::default(), Head::default(), 0);
    while let Ok((used, event)) = server.read(&input[at..], 0, &mut head, &mut out) {
        at += used;
        let Event::Head { stream, scheme, .. } = event else {
            if event == Event::More {
                return;
            }
            continue;
        };
        server.send_reset(stream, Code::CANCEL, &mut out);
        let scheme = scheme.unwrap_or(Scheme::Http);
        let sent = client.send_request(&head, scheme, 0, true, &mut client_out);
        let sent = sent.expect("room for a stream");
        relay(&mut client_out, &mut to_second, &mut to_client);
        // Time passes between the requests, so that their resets are no attack.
        let now_ms = 1000 * at as u64;
        let mut came = None;
        loop {
            let (used, event) = second
                .read(&to_second, now_ms, &mut copy, &mut second_out)
                .expect("what is written is legal");
            to_second.drain(..used);
            match event {
                Event::Head { stream, .. } => {
                    came = Some(stream);
                    assert_eq!(lines(&head), lines(&copy));
                    assert_eq!(head.protocol(), copy.protocol());
                    second.send_reset(stream, Code::CANCEL, &mut second_out);
                }
                Event::Settings | Event::Reset { .. } => {}
                Event::More => break,
                event => panic!("{event:?} for {:?}", wire(&head)),
            }
        }
        assert_eq!(came, Some(sent));
        relay(&mut second_out, &mut to_client, &mut to_second);
        loop {
            let (used, event) = client
                .read(&to_client, now_ms, &mut copy, &mut client_out)
                .expect("what is written is legal");
            to_client.drain(..used);
            if event == Event::More {
                break;
            }
        }
        relay(&mut client_out, &mut to_second, &mut to_client);
    }
}

/// The lines of a head in the order of their text: `Host` comes first from `:authority`; an empty
/// one does not come.
fn lines(head: &Head) -> Vec<String> {
    let text = wire(head);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.retain(|line| line != "host: ");
    lines.sort();
    lines
}
