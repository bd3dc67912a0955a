//! HTTP/2: frames and header blocks.

use http::h1::{write_request, write_response};
use http::h2::{Code, Connection, Event, Limits, PREFACE, Scheme, StreamId};
use http::{Head, Method};

/// Small, so that inputs reach them.
fn limits() -> Limits {
    Limits {
        head_bytes_max: 4096,
        fields_max: 16,
        block_bytes_max: 8192,
        continuations_max: 4,
        streams_max: 8,
        resets_max: 16,
        idle_frames_max: 32,
        stream_window_bytes: 4000,
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
        let mut client = Connection::client(limits(), out);
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
            assert_eq!(stream, Some(StreamId(2 * token as u32 + 1)));
        }
        client
    }
}

/// What a connection told and sent.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    told: Vec<String>,
    out: Vec<u8>,
    error: Option<Code>,
}

/// Frames for either end: wherever the input is cut, the events and the answers are the same, and
/// the answers are not much more than what came. The first byte says whether a legal beginning goes
/// before.
pub fn h2_frames(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for end in [End::Server, End::Client] {
        let mut input = match (end, first % 4) {
            (_, 0) => Vec::new(),
            (End::Server, _) => [&PREFACE[..], SETTINGS].concat(),
            (End::Client, _) => SETTINGS.to_vec(),
        };
        input.extend_from_slice(rest);
        let whole = read(end, &input, &[]);
        assert!(
            whole.out.len() <= 1000 + 32 * input.len(),
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

fn read(end: End, input: &[u8], cuts: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut connection = end.open(&mut outcome.out);
    let (mut head, mut at) = (Head::default(), 0);
    for &to in cuts.iter().chain([&input.len()]) {
        loop {
            let (used, event) =
                match connection.read(&input[at..to], 0, &mut head, &mut outcome.out) {
                    Ok(step) => step,
                    Err(error) => {
                        outcome.error = Some(error.code);
                        return outcome;
                    }
                };
            let piece = &input[at..to];
            at += used;
            if event == Event::More {
                break;
            }
            heed(&mut connection, &event, piece, &head, &mut outcome);
        }
    }
    outcome
}

/// Notes an event, credits payload, and answers requests.
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

/// Header blocks of requests, each behind a byte with its length: what is accepted is sent by our
/// client so that it is accepted again as the same, and an HTTP/1 parser takes it.
pub fn hpack(data: &[u8]) {
    let (mut to_server, mut out) = (PREFACE.to_vec(), Vec::new());
    let mut server = Connection::server(limits(), &mut out);
    to_server.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let (mut rest, mut stream) = (data, 1u32);
    while let Some((&len, blocks)) = rest.split_first() {
        let (block, behind) = blocks.split_at(blocks.len().min(usize::from(len)));
        to_server.extend([0, 0, block.len() as u8, 1, 5]);
        to_server.extend(stream.to_be_bytes());
        to_server.extend(block);
        (rest, stream) = (behind, stream + 2);
    }
    let mut again = Vec::new();
    let mut client = Connection::client(limits(), &mut again);
    let mut second = Connection::server(limits(), &mut out);
    let (mut head, mut copy, mut at) = (Head::default(), Head::default(), 0);
    while let Ok((used, event)) = server.read(&to_server[at..], 0, &mut head, &mut out) {
        at += used;
        let Event::Head { stream, scheme, .. } = event else {
            if event == Event::More {
                return;
            }
            continue;
        };
        server.send_reset(stream, Code::CANCEL, &mut out);
        let scheme = scheme.unwrap_or(Scheme::Http);
        let sent = client.send_request(&head, scheme, 0, true, &mut again);
        let sent = sent.expect("room for a stream");
        let mut from = 0;
        // Time passes between the requests, so that their resets are no attack.
        let now_ms = 1000 * at as u64;
        let came = loop {
            let (used, event) = second
                .read(&again[from..], now_ms, &mut copy, &mut out)
                .expect("what is written is legal");
            from += used;
            match event {
                Event::Head { stream, .. } => break stream,
                // Of the request before.
                Event::Settings | Event::Reset { .. } => {}
                event => panic!("{event:?} for {:?}", wire(&head)),
            }
        };
        assert_eq!(came, sent);
        again.drain(..from);
        client.send_reset(sent, Code::CANCEL, &mut again);
        assert_eq!(lines(&head), lines(&copy));
        assert_eq!(head.protocol(), copy.protocol());
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
