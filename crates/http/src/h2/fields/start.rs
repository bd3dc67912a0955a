//! Makes the start line from pseudo-header fields (RFC 9113 §8.3).

use super::{Fault, Fields, Part, Pseudo};
use crate::bytes::{is_target, is_token};
use crate::h2::Scheme;
use crate::head::{Span, span};
use crate::target::{host_port, is_bad_host, is_default_port};
use crate::{Method, Name};

impl Fields<'_> {
    /// Writes the start line, and `Host`.
    pub(super) fn start(&mut self) -> Result<(), Fault> {
        self.has_start = true;
        self.head.start.version = self.version;
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
        let known = Method::from_bytes(text);
        if known == Method::Other && !is_token(text) {
            return Err(Fault::BadRequest("the method is not a token"));
        }
        // The preface of a connection, sent as a request (RFC 9113 §3.4).
        if text == b"PRI" {
            return Err(Fault::BadRequest("the method PRI"));
        }
        self.head.start.method = known;
        if let Some(authority) = authority {
            let text = self.head.slice(authority);
            if text.is_empty() || is_bad_host(text, false) {
                return malformed("malformed :authority");
            }
        }
        if let Some(protocol) = protocol {
            let text = self.head.slice(protocol);
            // RFC 9113 §3.1: `h2c` stands for HTTP/2 itself.
            let is_good = extended_connect && is_token(text) && !text.eq_ignore_ascii_case(b"h2c");
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
            _ => return Err(Fault::BadRequest("malformed :scheme")),
        };
        let Some(authority) = authority else {
            self.line(method, &[path]);
            return Ok(());
        };
        let authority = self.without_default_port(scheme, authority);
        match self.facts.scheme {
            // Without an authority the target cannot be absolute.
            None if authority.len == 0 => self.line(method, &[path]),
            _ if self.head.slice(path) == b"*" => self.line(method, &[path]),
            None => self.absolute_line(method, [scheme, authority, path]),
            Some(_) => self.composed_line(method, [scheme, authority, path]),
        }
        self.host(authority);
        Ok(())
    }

    /// RFC 3986 §6.2.3.
    fn without_default_port(&self, scheme: Span, authority: Span) -> Span {
        let text = self.head.slice(authority);
        match host_port(text) {
            (host, Some(port)) if is_default_port(self.head.slice(scheme), port) => {
                span(authority.at as usize, host.len())
            }
            _ => authority,
        }
    }

    /// The target has all parts; an HTTP/1 server receives only the path.
    fn composed_line(&mut self, method: Span, [scheme, authority, path]: [Span; 3]) {
        let buf = &mut self.head.buf;
        let at = buf.len();
        copy(buf, scheme);
        buf.extend_from_slice(b"://");
        let authority_at = buf.len();
        copy(buf, authority);
        let path_at = buf.len();
        copy(buf, path);
        let end = buf.len();
        self.line(method, &[path]);
        let start = &mut self.head.start;
        start.target = span(at, end - at);
        start.authority = span(authority_at, path_at - authority_at);
        start.path = span(path_at, end - path_at);
        start.is_composed = true;
    }

    fn connect(&mut self, method: Span, authority: Span) -> Result<(), Fault> {
        if !matches!(host_port(self.head.slice(authority)), (_, Some([_, ..]))) {
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

    /// Writes the request line, with a target made of these parts.
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
}

fn copy(buf: &mut Vec<u8>, part: Span) {
    buf.extend_from_within(part.at as usize..(part.at + part.len) as usize);
}

/// Whether this is an absolute path with a query, or `*` where the method allows it.
fn is_path(path: &[u8], method: Method) -> bool {
    match path {
        [b'/', ..] => is_target(path),
        b"*" => matches!(method, Method::Options | Method::Other),
        _ => false,
    }
}

/// RFC 3986 §3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    let in_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(in_scheme)
}
