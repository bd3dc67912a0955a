//! A decoded header block as a head (RFC 9113 §8): what is malformed, and how the start line is made.
//!
//! The buffer first takes the pseudo-header fields as they come. Once the first other field comes, the start line and `Host` are written
//! behind them as HTTP/1.1 has them, and then each field, so that all of the message stands in one run that an HTTP/1 writer copies.

use super::hpack::{Found, Kind, Sink};
use super::{Limits, Scheme};
use crate::bytes::{decimal, is_token};
use crate::head::{Field, Span, span};
use crate::target::{is_bad_host, is_same_host};
use crate::{Head, Method, Name, Version};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A request; whether it may be an extended CONNECT.
    Request {
        extended_connect: bool,
    },
    Response,
    Trailers,
    /// Decoded for the state of the tables only.
    Nothing,
}

/// Why a head was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed(&'static str),
    TooLarge,
    /// See [`Part::Nothing`].
    Unwanted,
}

/// Facts of a head, found on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub length: Option<u64>,
    pub scheme: Option<Scheme>,
    pub expect_continue: bool,
}

/// The pseudo-header fields that came.
#[derive(Clone, Copy, Debug, Default)]
struct Pseudo {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    status: Option<Span>,
    protocol: Option<Span>,
}

/// A head in the making.
pub(super) struct Fields<'a> {
    head: &'a mut Head,
    part: Part,
    pseudo: Pseudo,
    facts: Facts,
    fault: Option<Fault>,
    /// The start line stands.
    has_start: bool,
    /// The last `Cookie`, by its place in the index.
    cookie: Option<usize>,
    /// Several `Cookie` fields with others between them.
    has_split_cookies: bool,
    bytes_left: usize,
    fields_max: usize,
}

impl Sink for Fields<'_> {
    fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.head.buf
    }

    fn is_lost(&self) -> bool {
        self.fault.is_some()
    }

    #[inline]
    fn field(&mut self, found: Found) {
        if self.fault.is_none() {
            self.fault = self.take(found).err();
        }
        if self.fault.is_some() {
            self.head.buf.truncate(found.at);
        }
    }
}

impl<'a> Fields<'a> {
    /// Clears the head.
    pub fn new(head: &'a mut Head, part: Part, limits: &Limits) -> Fields<'a> {
        head.clear();
        Fields {
            head,
            part,
            pseudo: Pseudo::default(),
            facts: Facts::default(),
            fault: (part == Part::Nothing).then_some(Fault::Unwanted),
            has_start: part == Part::Trailers,
            cookie: None,
            has_split_cookies: false,
            bytes_left: limits.head_bytes_max as usize,
            fields_max: limits.fields_max as usize,
        }
    }

    /// The block is over.
    pub fn finish(mut self) -> Result<Facts, Fault> {
        if self.fault.is_none() && !self.has_start {
            self.fault = self.start().err();
        }
        if let Some(fault) = self.fault {
            self.head.clear();
            return Err(fault);
        }
        if self.has_split_cookies {
            self.join_cookies();
        }
        if self.head.method() == Method::Connect {
            // What follows is a tunnel's, not a body (RFC 9110 §9.3.6).
            self.head.remove_id(Name::ContentLength);
            self.facts.length = None;
        }
        Ok(self.facts)
    }

    #[inline]
    fn take(&mut self, found: Found) -> Result<(), Fault> {
        let bytes = found.name_len + found.value_len + 4;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        if found.is_bad {
            return Err(Fault::Malformed("a malformed field"));
        }
        if found.kind != Kind::Field {
            return self.pseudo(found);
        }
        let mut at = found.at;
        if !self.has_start {
            self.start()?;
            at = self.head.buf.len();
            self.head.buf.extend_from_within(found.at..found.at + bytes);
        }
        let value = span(at + found.name_len + 2, found.value_len);
        if found.id.is_deciding() && !self.decides(found.id, value)? {
            self.head.buf.truncate(at);
            return Ok(());
        }
        if found.id == Name::Cookie
            && let Some(cookie) = self.cookie
        {
            if cookie + 1 == self.head.fields.len() {
                self.head.join_line(at, value.at as usize, *b"; ");
                return Ok(());
            }
            self.has_split_cookies = true;
        }
        if self.head.fields.len() >= self.fields_max {
            return Err(Fault::TooLarge);
        }
        if found.id == Name::Cookie {
            self.cookie = Some(self.head.fields.len());
        }
        self.push(at, found.name_len, value, found.id);
        Ok(())
    }

    /// Takes a line that stands in the buffer into the index.
    #[inline]
    fn push(&mut self, at: usize, name_len: usize, value: Span, id: Name) {
        let mut field = Field {
            name: span(at, name_len),
            value,
            id,
            live: true,
            line: true,
            mark: 0,
        };
        if id == Name::Other {
            field.mark = crate::field_name::mark(&self.head.buf[at..at + name_len]);
        }
        self.head.push_marked(field);
    }

    /// RFC 9113 §8.3: each at most once, only those of the part, and before all other fields.
    fn pseudo(&mut self, found: Found) -> Result<(), Fault> {
        if self.has_start {
            return Err(Fault::Malformed("a pseudo-header field behind others"));
        }
        let is_response = self.part == Part::Response;
        let pseudo = &mut self.pseudo;
        let place = match found.kind {
            Kind::Status if is_response => &mut pseudo.status,
            _ if is_response => return Err(Fault::Malformed("a pseudo-header field of requests")),
            Kind::Method => &mut pseudo.method,
            Kind::Scheme => &mut pseudo.scheme,
            Kind::Authority => &mut pseudo.authority,
            Kind::Path => &mut pseudo.path,
            Kind::Protocol => &mut pseudo.protocol,
            Kind::Status | Kind::UnknownPseudo | Kind::Field => {
                return Err(Fault::Malformed("an unknown pseudo-header field"));
            }
        };
        let value = span(found.at + found.name_len + 2, found.value_len);
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(Fault::Malformed("a pseudo-header field twice")),
        }
    }

    /// Writes the start line, and `Host`.
    fn start(&mut self) -> Result<(), Fault> {
        self.has_start = true;
        self.head.start.version = Version::Http2;
        match self.part {
            Part::Request { extended_connect } => self.request_line(extended_connect),
            Part::Response => self.status_line(),
            Part::Trailers | Part::Nothing => Ok(()),
        }
    }

    /// RFC 9113 §8.3.1, §8.5, RFC 8441 §4.
    fn request_line(&mut self, extended_connect: bool) -> Result<(), Fault> {
        let malformed = |message| Err(Fault::Malformed(message));
        let Pseudo {
            scheme,
            authority,
            path,
            protocol,
            ..
        } = self.pseudo;
        let Some(method) = self.pseudo.method else {
            return malformed("a request without :method");
        };
        let text = self.head.slice(method);
        if !is_token(text) {
            return malformed("the method is not a token");
        }
        self.head.start.method = Method::from_bytes(text);
        if let Some(authority) = authority {
            let text = self.head.slice(authority);
            if text.is_empty() || is_bad_host(text, false) {
                return malformed("malformed :authority");
            }
        }
        if let Some(protocol) = protocol {
            let is_good = extended_connect && is_token(self.head.slice(protocol));
            if self.head.start.method != Method::Connect || !is_good || authority.is_none() {
                return malformed(":protocol where it must not be");
            }
            self.head.start.protocol = protocol;
        } else if self.head.start.method == Method::Connect {
            return match (scheme, authority, path) {
                (None, Some(authority), None) => self.connect(method, authority),
                _ => malformed("CONNECT with :scheme or :path, or without :authority"),
            };
        }
        let (Some(scheme), Some(path)) = (scheme, path) else {
            return malformed("a request without :scheme or :path");
        };
        if !is_path(self.head.slice(path), self.head.start.method) {
            return malformed("malformed :path");
        }
        self.facts.scheme = match self.head.slice(scheme) {
            b"https" => Some(Scheme::Https),
            b"http" => Some(Scheme::Http),
            text if text.eq_ignore_ascii_case(b"https") => Some(Scheme::Https),
            text if text.eq_ignore_ascii_case(b"http") => Some(Scheme::Http),
            text if is_scheme(text) => None,
            _ => return malformed("malformed :scheme"),
        };
        match (self.facts.scheme, authority) {
            (None, Some(authority)) if self.head.slice(path) != b"*" => {
                self.absolute_line(method, [scheme, authority, path]);
            }
            _ => self.line(method, &[path]),
        }
        if let Some(authority) = authority {
            self.host(authority);
        }
        Ok(())
    }

    fn connect(&mut self, method: Span, authority: Span) -> Result<(), Fault> {
        if !matches!(
            crate::target::host_port(self.head.slice(authority)),
            (_, Some([_, ..]))
        ) {
            return Err(Fault::Malformed("CONNECT without a port"));
        }
        self.line(method, &[authority]);
        self.host(authority);
        Ok(())
    }

    /// A scheme that HTTP/1 does not imply stays in the target.
    #[cold]
    fn absolute_line(&mut self, method: Span, [scheme, authority, path]: [Span; 3]) {
        let at = self.head.buf.len();
        self.head.buf.extend_from_slice(b"://");
        self.line(method, &[scheme, span(at, 3), authority, path]);
    }

    /// Writes the request line, whose target is of these parts.
    fn line(&mut self, method: Span, target: &[Span]) {
        let buf = &mut self.head.buf;
        let at = buf.len();
        copy(buf, method);
        buf.push(b' ');
        let target_at = buf.len();
        target.iter().for_each(|part| copy(buf, *part));
        let target_len = buf.len() - target_at;
        buf.extend_from_slice(b" HTTP/1.1\r\n");
        let start = &mut self.head.start;
        start.method_text = method;
        start.line = span(at, self.head.buf.len() - at);
        let target = span(target_at, target_len);
        if self.head.buf[target_at] == b'/' {
            start.target = target;
            start.path = target;
        } else {
            self.head.locate_target(target);
        }
    }

    fn host(&mut self, authority: Span) {
        let at = self.head.buf.len();
        self.head.buf.extend_from_slice(b"host: ");
        copy(&mut self.head.buf, authority);
        self.head.buf.extend_from_slice(b"\r\n");
        self.push(at, 4, span(at + 6, authority.len as usize), Name::Host);
    }

    /// RFC 9113 §8.3.2. HTTP/2 has no reason phrase.
    fn status_line(&mut self) -> Result<(), Fault> {
        let Some(status) = self.pseudo.status else {
            return Err(Fault::Malformed("a response without :status"));
        };
        let status = match *self.head.slice(status) {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
            }
            _ => return Err(Fault::Malformed("malformed :status")),
        };
        // RFC 9113 §8.6.
        if status == 101 {
            return Err(Fault::Malformed("status 101"));
        }
        let buf = &mut self.head.buf;
        let at = buf.len();
        buf.extend_from_slice(b"HTTP/1.1 ");
        copy(buf, self.pseudo.status.unwrap_or_default());
        buf.extend_from_slice(b" \r\n");
        self.head.start.line = span(at, self.head.buf.len() - at);
        self.head.start.status = status;
        Ok(())
    }

    /// What a field says about connection and framing (RFC 9113 §8.2.2); whether it stays.
    #[inline(never)]
    fn decides(&mut self, id: Name, value: Span) -> Result<bool, Fault> {
        let text = self.head.slice(value);
        match id {
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => return Err(Fault::Malformed("a field of HTTP/1 connections")),
            Name::Te if !text.eq_ignore_ascii_case(b"trailers") => {
                return Err(Fault::Malformed("TE with more than trailers"));
            }
            _ if self.part == Part::Trailers => return Ok(false),
            Name::ContentLength => {
                let length = decimal(text).ok_or(Fault::Malformed("malformed content-length"))?;
                return match self.facts.length.replace(length) {
                    None => Ok(true),
                    Some(other) if other == length => Ok(false),
                    Some(_) => Err(Fault::Malformed("content-length values that differ")),
                };
            }
            Name::Host if self.part != Part::Response => return self.check_host(value),
            Name::Expect => {
                self.facts.expect_continue |= text.eq_ignore_ascii_case(b"100-continue")
            }
            _ => {}
        }
        Ok(true)
    }

    /// `Host` must name what `:authority` names (RFC 9113 §8.3.1), and stays only where that is not there.
    fn check_host(&mut self, value: Span) -> Result<bool, Fault> {
        let text = self.head.slice(value);
        if is_bad_host(text, false) {
            return Err(Fault::Malformed("malformed Host"));
        }
        let Some(known) = self.head.get(Name::Host) else {
            return Ok(true);
        };
        let scheme: &[u8] = self
            .facts
            .scheme
            .map_or(b"", |scheme| scheme.as_str().as_bytes());
        if is_same_host(scheme, known, text) {
            return Ok(false);
        }
        Err(Fault::Malformed("Host differs from :authority"))
    }

    /// RFC 9113 §8.2.3.
    #[cold]
    fn join_cookies(&mut self) {
        let at = self.head.buf.len();
        let mut line = b"cookie: ".to_vec();
        for (nth, (_, value)) in self.head.get_all(Name::Cookie).enumerate() {
            line.extend_from_slice(if nth == 0 { b"" } else { b"; " });
            line.extend_from_slice(value);
        }
        line.extend_from_slice(b"\r\n");
        self.head.buf.extend_from_slice(&line);
        self.head.remove_id(Name::Cookie);
        self.push(at, 6, span(at + 8, line.len() - 10), Name::Cookie);
    }
}

fn copy(buf: &mut Vec<u8>, part: Span) {
    buf.extend_from_within(part.at as usize..(part.at + part.len) as usize);
}

/// Whether this is an absolute path with a query, or `*` where the method allows it.
fn is_path(path: &[u8], method: Method) -> bool {
    let is_good = |byte: &u8| (0x21..0x7f).contains(byte) && *byte != b'#';
    match path {
        [b'/', rest @ ..] => rest.iter().all(is_good),
        b"*" => matches!(method, Method::Options | Method::Other),
        _ => false,
    }
}

/// RFC 3986 §3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    let in_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(in_scheme)
}
