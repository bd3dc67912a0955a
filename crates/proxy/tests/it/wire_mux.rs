//! HTTP/2 or HTTP/3 below peers that speak HTTP/1: requests that a client pipelines are streams at a
//! time, and a server gets the streams of its connection one behind the other. The bytes of HTTP/3
//! are the records of its streams ([`http::h3::record`]).

use std::collections::VecDeque;

use http::h1::body::{BodyDecoder, Piece};
use http::h1::{
    self, Framing, Limits as H1Limits, ParseError, Strictness, write_chunk_head, write_last_chunk,
};
use http::h2::{self, Code, Event, Limits, Scheme, StreamId};
use http::h3::{self, record};
use http::{Codec, Head, Method, Version};

use super::wire::{Whim, Wire};

/// The streams of HTTP/3 with the control frames of each side, which are the first that it opens of
/// their kind (RFC 9000 §2.1).
const CLIENT_CONTROL_STREAM: u64 = 2;
const SERVER_CONTROL_STREAM: u64 = 3;

fn limits() -> Limits {
    Limits {
        // Small ones, so that windows matter.
        stream_window_bytes: 3000,
        ..Limits::default()
    }
}

/// Payload that leaves as windows allow.
#[derive(Debug, Default)]
struct Payload {
    bytes: Vec<u8>,
    /// Nothing follows.
    came: bool,
    end_sent: bool,
}

impl Payload {
    /// The next piece of a body of HTTP/1, taken from what was said. False where more of that is
    /// needed.
    fn fill(&mut self, decoder: &mut BodyDecoder, said: &mut Vec<u8>) -> Result<bool, ParseError> {
        let mut trailers = Head::default();
        let (used, piece) = decoder.next(said, &mut trailers)?;
        let goes_on = !matches!(piece, Piece::More);
        match piece {
            Piece::Data(data) => self.bytes.extend_from_slice(data),
            Piece::End => self.came = true,
            Piece::More => {}
        }
        said.drain(..used);
        Ok(goes_on)
    }

    fn send(&mut self, codec: &mut Codec, stream: StreamId, out: &mut Vec<u8>) {
        while !self.bytes.is_empty() {
            let count = codec.data_room(stream).min(self.bytes.len());
            let ends = self.came && count == self.bytes.len();
            if count == 0 || !codec.send_data_head(stream, count, ends, out) {
                if codec.token(stream).is_none() {
                    self.bytes.clear();
                }
                break;
            }
            out.extend(self.bytes.drain(..count));
            self.end_sent |= ends;
        }
        if self.came && self.bytes.is_empty() && !std::mem::replace(&mut self.end_sent, true) {
            codec.send_data_head(stream, 0, true, out);
        }
    }

    fn is_sent(&self) -> bool {
        self.came && self.bytes.is_empty()
    }
}

/// Text of HTTP/1 that is written.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    chunked: bool,
}

impl Text {
    fn data(&mut self, data: &[u8]) {
        if self.chunked && !data.is_empty() {
            write_chunk_head(data.len(), &mut self.bytes);
        }
        self.bytes.extend_from_slice(data);
        if self.chunked && !data.is_empty() {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    fn end(&mut self, trailers: &Head) {
        if self.chunked {
            write_last_chunk(trailers, &mut self.bytes);
        }
    }
}

/// A request of a client.
#[derive(Debug, Default)]
struct Asked {
    /// Its head, until it has left.
    head: Option<Head>,
    stream: Option<StreamId>,
    body: Payload,
    answer: Text,
    is_answered: bool,
    is_reset: bool,
}

/// A client's end.
#[derive(Debug)]
pub struct MuxClient {
    codec: Codec,
    /// What the client said that is not taken apart yet, and what came that is not.
    said: Vec<u8>,
    came: Vec<u8>,
    body: Option<BodyDecoder>,
    asked: Vec<Asked>,
    /// How many are answered in full.
    answered: usize,
    broken: bool,
}

impl MuxClient {
    /// Its first words are appended to `out`.
    pub fn h2(out: &mut Vec<u8>) -> MuxClient {
        MuxClient::new(Codec::H2(h2::Connection::client(limits(), out)))
    }

    /// The same of HTTP/3: records.
    pub fn h3(out: &mut Vec<u8>) -> MuxClient {
        MuxClient::new(Codec::H3(Box::new(h3::Connection::client(limits(), out))))
    }

    fn new(codec: Codec) -> MuxClient {
        MuxClient {
            codec,
            said: Vec::new(),
            came: Vec::new(),
            body: None,
            asked: Vec::new(),
            answered: 0,
            broken: false,
        }
    }

    fn take_apart(&mut self, out: &mut Vec<u8>) {
        loop {
            match &mut self.body {
                None => {
                    let mut head = Head::default();
                    let limits = H1Limits::default();
                    match h1::parse_request(&self.said, limits, Strictness::Relaxed, &mut head) {
                        Ok(None) => return,
                        Ok(Some(parsed)) => {
                            self.said.drain(..parsed.consumed);
                            let has_body =
                                !matches!(parsed.framing, Framing::None | Framing::Length(0));
                            self.body = has_body.then(|| {
                                BodyDecoder::with(parsed.framing, limits, Strictness::Strict)
                            });
                            let mut asked = Asked {
                                head: Some(head),
                                ..Asked::default()
                            };
                            asked.body.came = !has_body;
                            asked.body.end_sent = !has_body;
                            self.asked.push(asked);
                        }
                        Err(_) => return self.break_down(out),
                    }
                }
                Some(decoder) => {
                    let Some(asked) = self.asked.last_mut() else {
                        return;
                    };
                    match asked.body.fill(decoder, &mut self.said) {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(_) => return self.break_down(out),
                    }
                    if asked.body.came {
                        self.body = None;
                    }
                }
            }
        }
    }

    /// Bytes that are no HTTP/1 are sent as bytes that are no HTTP/2 or HTTP/3.
    fn break_down(&mut self, out: &mut Vec<u8>) {
        self.broken = true;
        say_garbage(&self.codec, CLIENT_CONTROL_STREAM, &self.said, out);
    }

    fn pump(&mut self, out: &mut Vec<u8>) {
        if self.broken {
            return;
        }
        for (place, asked) in self.asked.iter_mut().enumerate() {
            if let Some(head) = &asked.head {
                if self.codec.room_for_streams() == 0 {
                    return;
                }
                let ends = asked.body.end_sent;
                let token = place as u32;
                let scheme = if self.codec.is_h3() {
                    Scheme::Https
                } else {
                    Scheme::Http
                };
                let opened = self.codec.send_request(head, scheme, token, ends, out);
                asked.stream = opened;
                asked.head = None;
            }
            if let Some(stream) = asked.stream {
                asked.body.send(&mut self.codec, stream, out);
            }
        }
    }

    fn event(&mut self, event: Event, bytes: &[u8], head: &mut Head, out: &mut Vec<u8>) {
        let token = match &event {
            Event::Head { token, .. }
            | Event::Data { token, .. }
            | Event::Trailers { token, .. }
            | Event::Reset { token, .. } => *token as usize,
            _ => return,
        };
        let Some(asked) = self.asked.get_mut(token) else {
            return;
        };
        match event {
            Event::Head { end, framing, .. } => {
                head.set_version(Version::Http11);
                let is_final = head.status() >= 200;
                if is_final && !end && framing == Framing::Chunked {
                    head.set_framing(Framing::Chunked);
                    asked.answer.chunked = true;
                }
                h1::write_response(head, None, &mut asked.answer.bytes);
                asked.is_answered = end && is_final;
            }
            Event::Data {
                stream, range, end, ..
            } => {
                let data = &bytes[range];
                asked.answer.data(data);
                self.codec.consumed(stream, data.len(), out);
                if end {
                    asked.answer.end(&Head::default());
                    asked.is_answered = true;
                }
            }
            Event::Trailers { .. } => {
                asked.answer.end(head);
                asked.is_answered = true;
            }
            // An answer that is whole stays so.
            Event::Reset { .. } => asked.is_reset = !asked.is_answered,
            _ => {}
        }
    }
}

impl Wire for MuxClient {
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.said.extend_from_slice(bytes);
        if !self.broken {
            self.take_apart(out);
        }
        self.pump(out);
    }

    fn read(&mut self, bytes: &[u8], got: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.came.extend_from_slice(bytes);
        let came = std::mem::take(&mut self.came);
        let mut head = Head::default();
        let mut at = 0;
        loop {
            match self.codec.read(&came[at..], 0, &mut head, out) {
                Ok((used, Event::More)) => {
                    at += used;
                    break;
                }
                Ok((used, event)) => {
                    self.event(event, &came[at..], &mut head, out);
                    at += used;
                }
                Err(_) => {
                    self.broken = true;
                    at = came.len();
                    break;
                }
            }
        }
        self.came = came[at..].to_vec();
        self.pump(out);
        while let Some(asked) = self.asked.get_mut(self.answered) {
            got.append(&mut asked.answer.bytes);
            // To a client of HTTP/1 it is the end of the connection, behind the answers before.
            self.broken |= asked.is_reset;
            if !asked.is_answered {
                break;
            }
            self.answered += 1;
        }
    }

    fn is_quiet(&self) -> bool {
        // Who sends no more opens no windows either.
        let is_over = |asked: &Asked| asked.is_reset || (asked.body.is_sent() && asked.is_answered);
        self.broken || self.asked.iter().all(is_over)
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn is_over(&self) -> bool {
        self.broken
    }

    /// Acts on the first request that waits for its answer.
    fn whim(&mut self, whim: Whim, out: &mut Vec<u8>) {
        let waits = |asked: &&mut Asked| !asked.is_answered && !asked.is_reset;
        let mut asked = self.asked.iter_mut().filter(waits);
        match whim {
            Whim::Reset | Whim::Refuse => {
                if let Some(asked) = asked.next()
                    && let Some(stream) = asked.stream
                {
                    asked.is_reset = true;
                    self.codec.send_reset(stream, Code::CANCEL, out);
                }
            }
            Whim::GoAway => self.codec.goaway(Code::NO_ERROR, out),
        }
    }
}

/// A request that a server gets.
#[derive(Debug)]
struct Wanted {
    stream: StreamId,
    method: Method,
    text: Text,
    came: bool,
    has_head: bool,
    answer: Payload,
}

/// A server's end.
#[derive(Debug)]
pub struct MuxServer {
    codec: Codec,
    came: Vec<u8>,
    /// What the server said that is not taken apart yet.
    said: Vec<u8>,
    body: Option<BodyDecoder>,
    /// The first one is the server's now.
    wanted: VecDeque<Wanted>,
    broken: bool,
}

impl MuxServer {
    /// Its first words are appended to `out`.
    pub fn h2(out: &mut Vec<u8>) -> MuxServer {
        MuxServer::new(Codec::H2(h2::Connection::server(limits(), out)))
    }

    /// The same of HTTP/3: records.
    pub fn h3(out: &mut Vec<u8>) -> MuxServer {
        MuxServer::new(Codec::H3(Box::new(h3::Connection::server(limits(), out))))
    }

    fn new(codec: Codec) -> MuxServer {
        MuxServer {
            codec,
            came: Vec::new(),
            said: Vec::new(),
            body: None,
            wanted: VecDeque::new(),
            broken: false,
        }
    }

    fn find(&mut self, stream: StreamId) -> Option<&mut Wanted> {
        self.wanted.iter_mut().find(|each| each.stream == stream)
    }

    fn event(&mut self, event: Event, bytes: &[u8], head: &mut Head, out: &mut Vec<u8>) {
        match event {
            Event::Head {
                stream,
                end,
                framing,
                ..
            } => {
                let mut text = Text::default();
                if !end && framing == Framing::Chunked {
                    head.set_framing(Framing::Chunked);
                    text.chunked = true;
                }
                let method = head.method();
                head.set_version(Version::Http11);
                h1::write_request(head, None, &mut text.bytes);
                self.wanted.push_back(Wanted {
                    stream,
                    method,
                    text,
                    came: end,
                    has_head: false,
                    answer: Payload::default(),
                });
            }
            Event::Data {
                stream, range, end, ..
            } => {
                let data = &bytes[range];
                self.codec.consumed(stream, data.len(), out);
                if let Some(wanted) = self.find(stream) {
                    wanted.text.data(data);
                    wanted.came |= end;
                    if end {
                        wanted.text.end(&Head::default());
                    }
                }
            }
            Event::Trailers { stream, .. } => {
                if let Some(wanted) = self.find(stream) {
                    wanted.text.end(head);
                    wanted.came = true;
                }
            }
            Event::Reset { stream, .. } => {
                let is_first = self
                    .wanted
                    .front()
                    .is_some_and(|each| each.stream == stream);
                // The server has heard of it: it cannot go on with the next one.
                self.broken |= is_first;
                self.wanted.retain(|each| each.stream != stream);
            }
            _ => {}
        }
    }

    /// The server's answer, as far as it is there.
    fn answer(&mut self, out: &mut Vec<u8>) {
        loop {
            let Some(wanted) = self.wanted.front_mut() else {
                return;
            };
            if wanted.answer.came {
                return;
            }
            match &mut self.body {
                None => {
                    let mut head = Head::default();
                    let limits = H1Limits::default();
                    let parsed = h1::parse_response(
                        &self.said,
                        wanted.method,
                        limits,
                        Strictness::Relaxed,
                        &mut head,
                    );
                    match parsed {
                        Ok(None) => return,
                        Ok(Some(parsed)) => {
                            self.said.drain(..parsed.consumed);
                            let is_final = head.status() >= 200;
                            let ends = is_final
                                && matches!(parsed.framing, Framing::None | Framing::Length(0));
                            self.codec.send_response(wanted.stream, &head, ends, out);
                            if !is_final {
                                continue;
                            }
                            wanted.has_head = true;
                            if ends {
                                wanted.answer.came = true;
                                wanted.answer.end_sent = true;
                            } else {
                                self.body = Some(BodyDecoder::with(
                                    parsed.framing,
                                    limits,
                                    Strictness::Strict,
                                ));
                            }
                        }
                        Err(_) => {
                            self.broken = true;
                            say_garbage(&self.codec, SERVER_CONTROL_STREAM, &self.said, out);
                            return;
                        }
                    }
                }
                Some(decoder) => {
                    match wanted.answer.fill(decoder, &mut self.said) {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(_) => {
                            self.broken = true;
                            return;
                        }
                    }
                    if wanted.answer.came {
                        self.body = None;
                    }
                }
            }
        }
    }

    fn pump(&mut self, out: &mut Vec<u8>) {
        if self.broken {
            return;
        }
        self.answer(out);
        if let Some(wanted) = self.wanted.front_mut() {
            wanted.answer.send(&mut self.codec, wanted.stream, out);
        }
    }
}

impl Wire for MuxServer {
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.said.extend_from_slice(bytes);
        self.pump(out);
    }

    fn read(&mut self, bytes: &[u8], got: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.came.extend_from_slice(bytes);
        let came = std::mem::take(&mut self.came);
        let mut head = Head::default();
        let mut at = 0;
        while !self.broken {
            match self.codec.read(&came[at..], 0, &mut head, out) {
                Ok((used, Event::More)) => {
                    at += used;
                    break;
                }
                Ok((used, event)) => {
                    self.event(event, &came[at..], &mut head, out);
                    at += used;
                }
                Err(_) => {
                    self.broken = true;
                    at = came.len();
                }
            }
        }
        self.came = came[at..].to_vec();
        self.pump(out);
        self.more(got);
    }

    fn more(&mut self, got: &mut Vec<u8>) {
        if self.broken {
            return;
        }
        while let Some(wanted) = self.wanted.front_mut() {
            got.append(&mut wanted.text.bytes);
            if !(wanted.came && wanted.answer.is_sent()) {
                return;
            }
            self.wanted.pop_front();
        }
    }

    fn is_quiet(&self) -> bool {
        self.broken || self.wanted.iter().all(|each| each.answer.is_sent())
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn is_over(&self) -> bool {
        self.broken
    }

    /// Acts on the first request, which the server is answering.
    fn whim(&mut self, whim: Whim, out: &mut Vec<u8>) {
        let code = match whim {
            Whim::Reset => Code::INTERNAL_ERROR,
            Whim::Refuse => Code::REFUSED_STREAM,
            Whim::GoAway => return self.codec.goaway(Code::NO_ERROR, out),
        };
        if let Some(wanted) = self.wanted.front() {
            self.codec.send_reset(wanted.stream, code, out);
            self.broken = true;
        }
    }
}

/// Bytes that are no protocol. Those of HTTP/3 are sent on the peer's control stream.
fn say_garbage(codec: &Codec, control: u64, bytes: &[u8], out: &mut Vec<u8>) {
    if codec.is_h3() {
        for piece in bytes.chunks(record::DATA_BYTES_MAX) {
            record::data(control, piece, false, out);
        }
    } else {
        out.extend_from_slice(bytes);
    }
}
