//! The exchange of an HTTP check over HTTP/1, HTTP/2 or HTTP/3: encodes its request and parses the
//! response.

use config::model::CheckProto;
use http::h1::{self, BodyDecoder, Framing, Piece, Strictness};
use http::h2::{self, Event, Scheme, StreamId};
use http::{Codec, Head, Method, Name, h3};
use net::Addr;

/// A request.
pub(crate) struct Request {
    pub method: Vec<u8>,
    pub uri: Vec<u8>,
    pub version: Vec<u8>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Option<Vec<u8>>,
}

/// The HTTP exchange of a check on one connection.
pub(crate) struct Exchange {
    wire: Wire,
    address: String,
    method: Method,
    head: Head,
    has_head: bool,
    body: Vec<u8>,
    is_whole: bool,
    /// The response violated the protocol.
    is_broken: bool,
}

enum Wire {
    H1(Option<BodyDecoder>),
    Streams(Box<Streams>),
}

/// A connection with streams.
struct Streams {
    connection: Codec,
    out: Vec<u8>,
    scratch: Head,
}

impl Exchange {
    /// An exchange with the configured protocol or, without one, the negotiated protocol. `is_quic`:
    /// it is HTTP/3. `address`: the host of requests that name none, except in HTTP/1.
    pub fn new(
        proto: Option<CheckProto>,
        agreed: Option<&[u8]>,
        is_quic: bool,
        address: &Addr,
    ) -> Exchange {
        let is_h2 = match proto {
            Some(proto) => proto == CheckProto::H2,
            None => agreed == Some(b"h2"),
        };
        let mut out = Vec::new();
        let limits = h2::Limits::default();
        let connection = if is_quic {
            let connection = h3::Connection::client(limits, &mut out);
            Some(Codec::H3(Box::new(connection)))
        } else {
            is_h2.then(|| Codec::H2(h2::Connection::client(limits, &mut out)))
        };
        let wire = match connection {
            Some(connection) => Wire::Streams(Box::new(Streams {
                connection,
                out,
                scratch: Head::default(),
            })),
            None => Wire::H1(None),
        };
        Exchange {
            address: address.to_string(),
            ..Exchange::with(wire)
        }
    }

    /// An exchange over HTTP/1.
    pub fn over_h1() -> Exchange {
        Exchange::with(Wire::H1(None))
    }

    fn with(wire: Wire) -> Exchange {
        Exchange {
            wire,
            address: String::new(),
            method: Method::default(),
            head: Head::default(),
            has_head: false,
            body: Vec::new(),
            is_whole: false,
            is_broken: false,
        }
    }

    // ---- the request

    /// The bytes of a request; none if it cannot be encoded.
    pub fn send(&mut self, request: &Request, is_secure: bool) -> Option<Vec<u8>> {
        let is_line = |bytes: &[u8]| !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        let is_word = |bytes: &[u8]| is_line(bytes) && !bytes.is_empty() && !bytes.contains(&b' ');
        let are_fields = request
            .headers
            .iter()
            .all(|(name, value)| is_word(name) && is_line(value));
        let is_good = is_word(&request.method)
            && is_word(&request.uri)
            && is_word(&request.version)
            && are_fields;
        if !is_good {
            return None;
        }
        let mut head = Head::default();
        if !head.set_method(&request.method) {
            return None;
        }
        self.method = head.method();
        (self.has_head, self.is_whole) = (false, false);
        self.body.clear();
        match &mut self.wire {
            Wire::H1(decoder) => {
                *decoder = None;
                Some(h1_request(request))
            }
            Wire::Streams(wire) => {
                head.set_target(&request.uri);
                for (name, value) in &request.headers {
                    let name = name.to_ascii_lowercase();
                    if name != b"connection" {
                        head.append(&name, value);
                    }
                }
                // Servers refuse requests to nobody (RFC 9114 §4.3.1).
                if head.get(Name::Host).is_none() {
                    head.append(b"host", self.address.as_bytes());
                }
                if let Some(length) = length_of(request) {
                    head.append(b"content-length", length.to_string().as_bytes());
                }
                wire.send(&head, request.body.as_deref().unwrap_or(b""), is_secure)
            }
        }
    }

    // ---- the response

    /// Processes input; bytes of a later response stay in `input`. Returns bytes to be sent in
    /// reply. `max`: the most bytes of a body.
    pub fn take(&mut self, input: &mut Vec<u8>, at_end: bool, max: usize) -> Vec<u8> {
        let used = match &self.wire {
            Wire::H1(_) => self.take_h1(input, at_end),
            Wire::Streams(_) => self.take_streams(input, max),
        };
        input.drain(..used);
        if self.body.len() >= max {
            self.body.truncate(max);
            self.is_whole = true;
        }
        self.is_whole |= at_end;
        match &mut self.wire {
            Wire::H1(_) => Vec::new(),
            Wire::Streams(wire) => std::mem::take(&mut wire.out),
        }
    }

    fn take_h1(&mut self, input: &[u8], at_end: bool) -> usize {
        let Wire::H1(decoder) = &mut self.wire else {
            return 0;
        };
        let mut used = 0;
        if !self.has_head {
            let limits = h1::Limits::default();
            let relaxed = Strictness::Relaxed;
            let rest = &input[used..];
            match h1::parse_response(rest, self.method, limits, relaxed, &mut self.head) {
                Ok(Some(parsed)) => {
                    used += parsed.consumed;
                    // An interim response: another one follows.
                    if self.head.status() < 200 && self.head.status() != 101 {
                        return used;
                    }
                    self.has_head = true;
                    *decoder = Some(BodyDecoder::with(parsed.framing, limits, relaxed));
                    self.is_whole |= parsed.framing == Framing::None;
                }
                Ok(None) => {
                    self.is_broken |= at_end && !rest.is_empty();
                    return used;
                }
                Err(_) => {
                    self.is_broken = true;
                    return input.len();
                }
            }
        }
        let Some(decoder) = decoder else { return used };
        let mut trailers = Head::default();
        loop {
            match decoder.next(&input[used..], &mut trailers) {
                Ok((count, Piece::Data(data))) => {
                    self.body.extend_from_slice(data);
                    used += count;
                }
                Ok((count, Piece::More)) => return used + count,
                Ok((count, Piece::End)) => {
                    self.is_whole = true;
                    return used + count;
                }
                Err(_) => {
                    self.is_broken = true;
                    return input.len();
                }
            }
        }
    }

    fn take_streams(&mut self, input: &[u8], max: usize) -> usize {
        let Wire::Streams(wire) = &mut self.wire else {
            return 0;
        };
        let Streams {
            connection,
            out,
            scratch,
        } = &mut **wire;
        let mut used = 0;
        loop {
            // The connection lives for one check, in which nothing is forgotten.
            let step = connection.read(&input[used..], 0, scratch, out);
            let Ok((count, event)) = step else {
                self.is_broken = true;
                return input.len();
            };
            let from = used;
            used += count;
            match event {
                Event::More => return used,
                Event::Head { end, .. } if scratch.status() >= 200 => {
                    std::mem::swap(&mut self.head, scratch);
                    self.has_head = true;
                    self.is_whole |= end;
                }
                Event::Data {
                    stream, range, end, ..
                } => {
                    let data = &input[from..][range];
                    let room = max.saturating_sub(self.body.len());
                    self.body.extend_from_slice(&data[..data.len().min(room)]);
                    connection.consumed(stream, data.len(), out);
                    self.is_whole |= end;
                }
                Event::Trailers { .. } => self.is_whole = true,
                Event::Reset { .. } | Event::Goaway { .. } => {
                    self.is_broken |= !self.has_head;
                    self.is_whole = true;
                }
                _ => {}
            }
        }
    }

    /// The head of the response, once it has arrived.
    pub fn head(&self) -> Option<&Head> {
        self.has_head.then_some(&self.head)
    }

    /// The body received so far.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The status; 0 until the head has arrived.
    pub fn status(&self) -> u16 {
        self.head().map_or(0, Head::status)
    }

    /// Whether the response is complete.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the response violated the protocol.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}

impl Streams {
    fn send(&mut self, head: &Head, body: &[u8], is_secure: bool) -> Option<Vec<u8>> {
        let scheme = if is_secure {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let Streams {
            connection, out, ..
        } = self;
        let stream: StreamId = connection.send_request(head, scheme, 0, body.is_empty(), out)?;
        let mut rest = body;
        while !rest.is_empty() {
            let room = connection.data_room(stream).min(rest.len());
            if room == 0 {
                return None;
            }
            let (data, after) = rest.split_at(room);
            if !connection.send_data_head(stream, room, after.is_empty(), out) {
                return None;
            }
            out.extend_from_slice(data);
            rest = after;
        }
        Some(std::mem::take(out))
    }
}

/// The length that a request announces; none if it has neither a body nor a method that implies
/// one.
fn length_of(request: &Request) -> Option<usize> {
    let body = request.body.as_ref().map_or(0, Vec::len);
    let without = [&b"OPTIONS"[..], b"GET", b"HEAD", b"DELETE"];
    let is_without = without.contains(&request.method.as_slice());
    (body > 0 || !is_without).then_some(body)
}

fn h1_request(request: &Request) -> Vec<u8> {
    let mut out = [&request.method[..], &request.uri, &request.version].join(&b' ');
    let mut field = |name: &[u8], value: &[u8]| {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
    };
    let mut has_connection = false;
    for (name, value) in &request.headers {
        has_connection |= name.eq_ignore_ascii_case(b"connection");
        field(&name.to_ascii_lowercase(), value);
    }
    if !has_connection {
        field(b"connection", b"close");
    }
    if let Some(length) = length_of(request) {
        field(b"content-length", length.to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(request.body.as_deref().unwrap_or(b""));
    out
}
