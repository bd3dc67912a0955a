//! Turns a decoded header block into a head (RFC 9113 §8, RFC 9114 §4): validates it and makes the
//! start line. HTTP/2 and HTTP/3 share this code.
//!
//! The buffer first receives the pseudo-header fields. At the first other field, the start line and
//! `Host` are written after them in the form of HTTP/1.1, followed by each field, so that the whole
//! message is one run that an HTTP/1 writer copies.

mod start;

use super::hpack::{Found, Kind, Sink};
use super::{Limits, Scheme};
use crate::bytes::{decimal, trim};
use crate::head::{Field, Span, span};
use crate::target::{is_bad_host, is_same_host};
use crate::{Head, Method, Name, Version};

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A request; the flag says whether it may be an extended CONNECT.
    Request {
        extended_connect: bool,
    },
    Response,
    Trailers,
    /// The block is decoded only for the state of the tables.
    Nothing,
}

/// Why a head was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed(&'static str),
    /// The start line is not valid HTTP: the stream is answered with 400.
    BadRequest(&'static str),
    TooLarge,
    /// See [`Part::Nothing`].
    Unwanted,
}

/// Facts of a head, found while it is decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub length: Option<u64>,
    pub scheme: Option<Scheme>,
    pub expect_continue: bool,
}

/// The pseudo-header fields received so far.
#[derive(Clone, Copy, Debug, Default)]
struct Pseudo {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    status: Option<Span>,
    protocol: Option<Span>,
}

/// A head under construction.
pub(crate) struct Fields<'a> {
    head: &'a mut Head,
    part: Part,
    pseudo: Pseudo,
    facts: Facts,
    fault: Option<Fault>,
    /// The start line is written.
    has_start: bool,
    /// The last `Cookie`, by its position in the index.
    cookie: Option<usize>,
    /// There are several `Cookie` fields with others between them.
    has_split_cookies: bool,
    bytes_left: usize,
    fields_max: usize,
    version: Version,
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
            match self.take(found) {
                Ok(()) => return,
                Err(fault) => self.fault = Some(fault),
            }
        }
        self.head.buf.truncate(found.at);
    }
}

impl<'a> Fields<'a> {
    /// Starts a head, which is of this version; clears `head`.
    pub fn new(head: &'a mut Head, part: Part, version: Version, limits: &Limits) -> Fields<'a> {
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
            version,
        }
    }

    /// Finishes the block.
    pub fn finish(mut self) -> Result<Facts, Fault> {
        if self.fault.is_none() && !self.has_start {
            self.fault = self.start().err();
        }
        if self.version == Version::Http3 && self.fault.is_none() && self.lacks_host() {
            self.fault = Some(Fault::Malformed("no :authority and no Host"));
        }
        if let Some(fault) = self.fault {
            self.head.clear();
            return Err(fault);
        }
        if self.has_split_cookies {
            self.join_cookies();
        }
        if self.head.method() == Method::Connect {
            // The bytes that follow belong to a tunnel, not to a body (RFC 9110 §9.3.6).
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
        let mut value = self.trimmed(span(at + found.name_len + 2, found.value_len));
        if found.id == Name::ContentLength {
            value = self.one_length(value)?;
        }
        if found.id.is_deciding() && !self.decides(found.id, value)? {
            self.head.buf.truncate(at);
            return Ok(());
        }
        if found.id == Name::Cookie
            && let Some(cookie) = self.cookie
        {
            // An empty cookie would leave a value that ends with a space.
            if value.len == 0 {
                self.head.buf.truncate(at);
                return Ok(());
            }
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

    /// The value at the end of the buffer without surrounding white space: HTTP/1 trims it, and
    /// some clients send it (RFC 9113 §8.2.1 treats it as malformed).
    #[inline(always)]
    fn trimmed(&mut self, value: Span) -> Span {
        match self.head.slice(value) {
            [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => self.trim(value),
            _ => value,
        }
    }

    #[cold]
    fn trim(&mut self, value: Span) -> Span {
        let at = value.at as usize;
        let text = self.head.slice(value);
        let blanks = text.len() - text.trim_ascii_start().len();
        let len = trim(text).len();
        let buf = &mut self.head.buf;
        buf.copy_within(at + blanks..at + blanks + len, at);
        buf.truncate(at + len);
        buf.extend_from_slice(b"\r\n");
        span(at, len)
    }

    /// Reduces a list of lengths at the end of the buffer to one; all must be equal (RFC 9110
    /// §8.6).
    fn one_length(&mut self, value: Span) -> Result<Span, Fault> {
        let text = self.head.slice(value);
        if !text.contains(&b',') {
            return Ok(value);
        }
        let mut words = text.split(|byte| *byte == b',').map(trim).map(decimal);
        let malformed = Fault::Malformed("malformed content-length");
        let length = words.next().flatten().ok_or(malformed)?;
        if words.any(|word| word != Some(length)) {
            return Err(malformed);
        }
        let at = value.at as usize;
        let buf = &mut self.head.buf;
        buf.truncate(at);
        buf.extend_from_slice(length.to_string().as_bytes());
        let len = buf.len() - at;
        buf.extend_from_slice(b"\r\n");
        Ok(span(at, len))
    }

    /// Adds a line that is in the buffer to the index.
    #[inline(always)]
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

    /// RFC 9113 §8.3: each pseudo-header field at most once, only those of this kind of block, and
    /// before all other fields.
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

    /// Handles a field about the connection or framing (RFC 9113 §8.2.2); returns whether it is
    /// kept.
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

    /// RFC 9114 §4.3.1; HTTP/2 permits it.
    fn lacks_host(&self) -> bool {
        matches!(self.part, Part::Request { .. })
            && self.head.get(Name::Host).is_none_or(<[u8]>::is_empty)
    }

    /// `Host` is kept only without `:authority`, which takes precedence as in HAProxy (RFC 9113
    /// §8.3.1 refuses a `Host` that differs). In HTTP/3 one that differs is refused (RFC 9114 §4.3.1),
    /// by HAProxy too.
    fn check_host(&mut self, value: Span) -> Result<bool, Fault> {
        let text = self.head.slice(value);
        if is_bad_host(text, false) {
            return Err(Fault::Malformed("malformed Host"));
        }
        let Some(known) = self.head.get(Name::Host) else {
            return Ok(true);
        };
        if self.pseudo.authority.is_some() && self.version != Version::Http3 {
            return Ok(false);
        }
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
