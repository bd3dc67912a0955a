//! The version-agnostic message head: a start line and a header block in one buffer with an index.
//!
//! Invariants: every `Span` lies within the buffer; names are stored in lower case; a field marked
//! `line` is in the buffer in wire form (`name: value CRLF`), so that runs of such fields are
//! written in one copy.
//!
//! The fields that frame a body, `Content-Length` and `Transfer-Encoding`, belong to the codec:
//! they can be read like all others, but the functions that add, change or remove fields skip them.
//! Only [`Head::set_framing`] writes them, so that no edit gives a message a length that differs
//! from its body.

mod codec;

use crate::bytes::{is_token, plain_text};
use crate::field_name;
use crate::h1::Framing;
use crate::name::NameSet;
use crate::{FieldName, Method, Name, Version, target};

/// The position of a field in a [`Head`]; valid while fields are only appended or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldId(pub u32);

/// A request's or a response's start line and fields. One byte buffer, one index; edits append to
/// the buffer. `clear` keeps the memory, so a reused head allocates nothing in the steady state.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub(crate) buf: Vec<u8>,
    pub(crate) fields: Vec<Field>,
    pub(crate) start: StartLine,
    /// The names of all fields that were ever added: if a name's bit is clear, a search ends at
    /// once.
    present: NameSet,
    /// The marks of names without a table entry.
    others: u64,
    live: u32,
    /// The size of the live fields on the wire.
    fields_bytes: usize,
    /// The live fields and the empty line after them, if the buffer has them in wire form and in
    /// one piece; else empty.
    block: Span,
}

/// Bytes of a head's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub at: u32,
    pub len: u32,
}

/// A field of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub name: Span,
    pub value: Span,
    pub id: Name,
    pub live: bool,
    /// The field is in the buffer as `name: value CRLF`.
    pub line: bool,
    /// The mark of a name without a table entry, once the field is in the index.
    pub mark: u8,
}

/// The parts of the start line; a head uses those of a request or of a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartLine {
    /// The whole line with its CRLF if the buffer contains it in wire form, else empty.
    pub line: Span,
    pub method: Method,
    /// Empty if `method` is enough.
    pub method_text: Span,
    pub target: Span,
    pub authority: Span,
    /// From the target's path on; empty if there is no path.
    pub path: Span,
    /// The target was made from pseudo-header fields: an HTTP/1 server receives only its path.
    pub is_composed: bool,
    pub status: u16,
    pub reason: Span,
    pub version: Version,
    /// A version that is not one of HTTP's, forwarded unchanged; else empty.
    pub version_text: Span,
    /// The `:protocol` of an extended CONNECT, else empty.
    pub protocol: Span,
}

impl Head {
    /// Clears everything but keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.fields.clear();
        self.start = StartLine::default();
        self.present = NameSet::default();
        self.others = 0;
        self.live = 0;
        self.fields_bytes = 0;
        self.block = Span::default();
    }

    /// Whether nothing was written to it since it was cleared, apart from values of the start line
    /// that are not text.
    #[inline]
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.buf.is_empty()
    }

    /// Frees the memory that a large message took. Call it on a cleared head.
    pub fn keep_little(&mut self) {
        if self.buf.capacity() > KEPT_BYTES_MAX {
            self.buf = Vec::new();
        }
    }

    /// The request method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.start.method
    }

    /// The request method as it is written.
    #[must_use]
    pub fn method_bytes(&self) -> &[u8] {
        match self.start.method {
            Method::Other => self.slice(self.start.method_text),
            method => method.as_str().as_bytes(),
        }
    }

    /// The request target as it was written (RFC 9112 §3.2): origin, absolute, authority or
    /// asterisk form.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.slice(self.start.target)
    }

    /// The target as an HTTP/1 server receives it: without the scheme and the authority that HTTP/2
    /// sends with every request.
    pub(crate) fn line_target(&self) -> &[u8] {
        if self.start.is_composed && self.start.path.len > 0 {
            self.path_and_query()
        } else {
            self.target()
        }
    }

    /// The client sent scheme, authority and path separately, as HTTP/2 does; the target was made
    /// from them.
    #[must_use]
    pub fn has_composed_target(&self) -> bool {
        self.start.is_composed
    }

    /// Path with the query, without scheme and authority. For origin form the whole target; empty
    /// for authority and asterisk form.
    #[must_use]
    pub fn path_and_query(&self) -> &[u8] {
        self.slice(self.start.path)
    }

    /// The path up to the first `?`.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        let path = self.path_and_query();
        &path[..memchr::memchr(b'?', path).unwrap_or(path.len())]
    }

    /// The target after the first `?`; none if there is no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        let path = self.path_and_query();
        memchr::memchr(b'?', path).map(|at| &path[at + 1..])
    }

    /// The authority of an absolute or authority form, without user information.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        (self.start.authority.len > 0).then(|| self.slice(self.start.authority))
    }

    /// The scheme of an absolute form.
    #[must_use]
    pub fn scheme(&self) -> Option<&[u8]> {
        let authority = self.start.authority;
        if authority.len == 0 || authority.at == self.start.target.at {
            return None;
        }
        let parts = target::split(self.target());
        (!parts.scheme.is_empty()).then(|| &self.target()[parts.scheme])
    }

    /// Appends the request line without its CRLF: method, target and version with one space
    /// between them.
    #[inline]
    pub fn append_request_line(&self, out: &mut Vec<u8>) {
        match self.slice(self.start.line).strip_suffix(b"\r\n") {
            // The start line of a head of HTTP/2 or HTTP/3 names another version.
            Some(line) if self.start.version < Version::Http2 => out.extend_from_slice(line),
            _ => {
                let method = self.method_bytes();
                for part in [method, b" ", self.target(), b" ", self.version_bytes()] {
                    out.extend_from_slice(part);
                }
            }
        }
    }

    /// Sets the request method. If it is not a token, the method stays and the result is false.
    #[must_use]
    pub fn set_method(&mut self, method: &[u8]) -> bool {
        if !is_token(method) {
            return false;
        }
        let text = self.push(method);
        self.start.line = Span::default();
        self.start.method = Method::from_bytes(method);
        self.start.method_text = text;
        true
    }

    /// Sets the request target, in any of its forms. White space and control characters are
    /// percent-encoded (RFC 3986 §2.1), and an empty target becomes `/`, so the target cannot end
    /// early within its line.
    pub fn set_target(&mut self, target: &[u8]) {
        let at = self.buf.len();
        let target = if target.is_empty() { b"/" } else { target };
        for part in target.split_inclusive(|byte| ends_target(*byte)) {
            match part.split_last() {
                Some((last, rest)) if ends_target(*last) => {
                    self.buf.extend_from_slice(rest);
                    self.buf.extend_from_slice(&percent(*last));
                }
                _ => self.buf.extend_from_slice(part),
            }
        }
        let span = span(at, self.buf.len() - at);
        self.start.line = Span::default();
        self.locate_target(span);
    }

    /// Replaces the target's authority; user information before it stays. Does nothing if the
    /// target has no authority, or the new one contains a byte that a target must not.
    pub fn set_authority(&mut self, authority: &[u8]) {
        let (target, old) = (self.start.target, self.start.authority);
        if old.len == 0 || authority.iter().any(|byte| ends_target(*byte)) {
            return;
        }
        let at = self.buf.len();
        self.buf
            .extend_from_within(target.at as usize..old.at as usize);
        self.buf.extend_from_slice(authority);
        let rest = (old.at + old.len) as usize..(target.at + target.len) as usize;
        self.buf.extend_from_within(rest);
        self.start.line = Span::default();
        self.locate_target(span(at, self.buf.len() - at));
    }

    /// The status code of a response.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.start.status
    }

    /// The reason phrase of a response; may be empty.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.slice(self.start.reason)
    }

    /// Sets a response's status code and reason phrase. CR, LF and NUL become spaces.
    pub fn set_status(&mut self, status: u16, reason: &[u8]) {
        let text = self.push_text(reason);
        self.start.line = Span::default();
        self.start.status = status;
        self.start.reason = text;
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.start.version
    }

    /// The version in wire form.
    #[must_use]
    pub fn version_bytes(&self) -> &[u8] {
        match self.start.version_text.len {
            0 => self.start.version.as_str().as_bytes(),
            _ => self.slice(self.start.version_text),
        }
    }

    /// Sets the protocol version.
    pub fn set_version(&mut self, version: Version) {
        // The start line of a head of HTTP/2 or HTTP/3 is that of HTTP/1.1.
        let is_old = |version| version == Version::Http10;
        if is_old(version) != is_old(self.start.version) || self.start.version_text.len > 0 {
            self.start.line = Span::default();
        }
        self.start.version = version;
        self.start.version_text = Span::default();
    }

    /// The protocol of an extended CONNECT (RFC 8441 §4), for instance `websocket`. HTTP/1 sends it
    /// in `Upgrade`.
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        (self.start.protocol.len > 0).then(|| self.slice(self.start.protocol))
    }

    /// Sets the protocol of an extended CONNECT; an empty one makes it a plain CONNECT. If it is
    /// not a token, the protocol stays and the result is false.
    #[must_use]
    pub fn set_protocol(&mut self, protocol: &[u8]) -> bool {
        if !protocol.is_empty() && !is_token(protocol) {
            return false;
        }
        self.start.protocol = self.push(protocol);
        true
    }

    /// The live fields in order: position, interned name, name in lower case, value.
    pub fn fields(&self) -> impl Iterator<Item = (FieldId, Name, &[u8], &[u8])> {
        let live = self
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.live);
        live.map(|(at, field)| {
            (
                field_id(at),
                field.id,
                self.slice(field.name),
                self.slice(field.value),
            )
        })
    }

    /// Number of live fields.
    #[must_use]
    pub fn field_count(&self) -> usize {
        self.live as usize
    }

    /// The name and value of a live field.
    #[must_use]
    pub fn field(&self, field: FieldId) -> Option<(&[u8], &[u8])> {
        let field = self
            .fields
            .get(field.0 as usize)
            .filter(|field| field.live)?;
        Some((self.slice(field.name), self.slice(field.value)))
    }

    /// Whether a live field of an interned name exists.
    #[must_use]
    pub fn has(&self, name: Name) -> bool {
        self.first(name).is_some()
    }

    /// The value of the first live field of an interned name.
    #[must_use]
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        self.first(name).map(|at| self.slice(self.fields[at].value))
    }

    /// The live fields of an interned name, in order.
    pub fn get_all(&self, name: Name) -> impl Iterator<Item = (FieldId, &[u8])> {
        let found = self.first(name).unwrap_or(self.fields.len());
        let rest = self.fields[found..].iter().enumerate();
        rest.filter(move |(_, field)| field.id == name && field.live)
            .map(move |(at, field)| (field_id(found + at), self.slice(field.value)))
    }

    /// The live fields of a name given in any case.
    pub fn find<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = (FieldId, &'a [u8])> + 'a {
        let id = Name::from_any(name);
        let maybe = if self.present.contains(id) {
            &self.fields[..]
        } else {
            &[]
        };
        maybe
            .iter()
            .enumerate()
            .filter(move |(_, field)| self.is_named(field, id, name))
            .map(|(at, field)| (field_id(at), self.slice(field.value)))
    }

    /// The first live field of a name, given in any case, from position `from` on; for callers that
    /// change fields one by one.
    #[must_use]
    pub fn find_from(&self, name: &[u8], from: FieldId) -> Option<(FieldId, &[u8])> {
        let id = Name::from_any(name);
        let from = from.0 as usize;
        if !self.present.contains(id) {
            return None;
        }
        let mut rest = self.fields.get(from..)?.iter().enumerate();
        rest.find(|(_, field)| self.is_named(field, id, name))
            .map(|(at, field)| (field_id(from + at), self.slice(field.value)))
    }

    /// As [`Head::find_from`], for a name looked up before.
    #[must_use]
    #[inline]
    pub fn next_named(&self, name: &FieldName, from: usize) -> Option<(usize, &[u8])> {
        if !self.may_have(name) {
            return None;
        }
        let mut rest = self.fields.get(from..)?.iter().enumerate();
        rest.find(|(_, field)| field.live && self.has_name(field, name))
            .map(|(at, field)| (from + at, self.slice(field.value)))
    }

    /// False if certainly no field has this name.
    #[inline]
    fn may_have(&self, name: &FieldName) -> bool {
        match name.id() {
            Name::Other => self.others & 1 << name.mark() != 0,
            id => self.present.contains(id),
        }
    }

    #[inline]
    fn has_name(&self, field: &Field, name: &FieldName) -> bool {
        field.id == name.id()
            && (field.id != Name::Other
                || (field.mark == name.mark() && self.slice(field.name) == name.as_bytes()))
    }

    /// The first live field from position `from` on.
    #[must_use]
    pub fn next_live(&self, from: usize) -> Option<(usize, &[u8])> {
        let mut rest = self.fields.get(from..)?.iter().enumerate();
        rest.find(|(_, field)| field.live)
            .map(|(at, field)| (from + at, self.slice(field.value)))
    }

    /// Removes every field of a name looked up before, and invalidates every [`FieldId`]. Repeated
    /// adding and removing leaves no dead entries to search.
    pub fn remove_named(&mut self, name: &FieldName) {
        if !self.may_have(name) {
            return;
        }
        let mut fields = std::mem::take(&mut self.fields);
        self.others = 0;
        self.block = Span::default();
        fields.retain(|field| {
            if !field.live {
                return false;
            }
            let meant = !field.id.is_framing() && self.has_name(field, name);
            if meant {
                self.live -= 1;
                self.fields_bytes -= field.wire_bytes();
            } else if field.id == Name::Other {
                self.others |= 1 << field.mark;
            }
            !meant
        });
        self.fields = fields;
    }

    /// As [`Head::append`], for a name looked up before.
    pub fn append_named(&mut self, name: &FieldName, value: &[u8]) {
        if name.id().is_framing() {
            return;
        }
        let at = self.buf.len();
        self.buf.extend_from_slice(name.as_bytes());
        self.append_value(at, name.id(), value);
    }

    /// Adds a field at the end, unless it frames the body or its name contains a byte that would
    /// end it early. The name may be in any case. CR, LF and NUL in the value become spaces.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        let ends_name = |byte: &u8| ends_target(*byte) || *byte == b':';
        if name.is_empty() || name.iter().any(ends_name) {
            return;
        }
        let at = self.buf.len();
        self.buf.extend_from_slice(name);
        self.buf[at..].make_ascii_lowercase();
        let id = Name::from_lower(&self.buf[at..]);
        if id.is_framing() {
            self.buf.truncate(at);
            return;
        }
        self.append_value(at, id, value);
    }

    /// Writes the field for this framing of the body and removes the framing fields that were
    /// there. If the body ends with the connection, or there is none, there is no such field.
    pub fn set_framing(&mut self, framing: Framing) {
        if self.is_framed_so(framing) {
            return;
        }
        self.remove_id(Name::ContentLength);
        self.remove_id(Name::TransferEncoding);
        let mut digits = [0; LENGTH_DIGITS_MAX];
        let (id, value) = match framing {
            Framing::None | Framing::UntilClose => return,
            Framing::Length(length) => (Name::ContentLength, decimal_text(length, &mut digits)),
            Framing::Chunked => (Name::TransferEncoding, &b"chunked"[..]),
        };
        let at = self.buf.len();
        self.buf.extend_from_slice(id.as_str().as_bytes());
        self.append_value(at, id, value);
    }

    /// Whether the fields already give exactly this framing.
    fn is_framed_so(&self, framing: Framing) -> bool {
        let mut fields = self
            .fields
            .iter()
            .filter(|field| field.live && field.id.is_framing());
        let field = fields.next().copied();
        let is_only = fields.next().is_none();
        let mut digits = [0; LENGTH_DIGITS_MAX];
        match (field, framing) {
            (None, Framing::None | Framing::UntilClose) => true,
            (Some(field), Framing::Length(length)) => {
                let value = decimal_text(length, &mut digits);
                is_only && field.id == Name::ContentLength && self.slice(field.value) == value
            }
            (Some(field), Framing::Chunked) => {
                is_only
                    && field.id == Name::TransferEncoding
                    && self.slice(field.value) == b"chunked"
            }
            _ => false,
        }
    }

    /// Completes a field whose name is the end of the buffer, from `at` on.
    #[inline]
    fn append_value(&mut self, at: usize, id: Name, value: &[u8]) {
        let name = span(at, self.buf.len() - at);
        self.buf.extend_from_slice(b": ");
        let value = self.push_text(value);
        self.buf.extend_from_slice(b"\r\n");
        let mut field = Field {
            name,
            value,
            id,
            live: true,
            line: true,
            mark: 0,
        };
        if id == Name::Other {
            field.mark = field_name::mark(self.slice(name));
        }
        self.count_in(field);
    }

    /// Changes the value of a live field; does nothing for a removed one or one that frames the
    /// body. CR, LF and NUL become spaces.
    pub fn set_value(&mut self, field: FieldId, value: &[u8]) {
        let is_open = |field: &&Field| field.live && !field.id.is_framing();
        let Some(&old) = self.fields.get(field.0 as usize).filter(is_open) else {
            return;
        };
        self.fields_bytes -= old.wire_bytes();
        self.block = Span::default();
        let at = old.value.at as usize;
        let new = if value.len() <= old.value.len as usize {
            self.buf[at..at + value.len()].copy_from_slice(value);
            plain_text(&mut self.buf[at..at + value.len()]);
            Field {
                value: span(at, value.len()),
                line: old.line && value.len() == old.value.len as usize,
                ..old
            }
        } else {
            Field {
                value: self.push_text(value),
                line: false,
                ..old
            }
        };
        self.fields_bytes += new.wire_bytes();
        self.fields[field.0 as usize] = new;
    }

    /// Removes a field; does nothing for one that is already removed or that frames the body.
    pub fn remove(&mut self, field: FieldId) {
        let is_framing = |field: &Field| field.id.is_framing();
        if !self.fields.get(field.0 as usize).is_some_and(is_framing) {
            self.take_out(field);
        }
    }

    fn take_out(&mut self, field: FieldId) {
        if let Some(found) = self
            .fields
            .get_mut(field.0 as usize)
            .filter(|field| field.live)
        {
            found.live = false;
            self.block = Span::default();
            self.live -= 1;
            self.fields_bytes -= found.wire_bytes();
        }
    }

    /// Removes every field of this name; returns how many there were.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        let id = Name::from_any(name);
        if !self.present.contains(id) {
            return 0;
        }
        let before = self.live;
        for at in 0..self.fields.len() {
            if self.is_named(&self.fields[at], id, name) {
                self.remove(field_id(at));
            }
        }
        (before - self.live) as usize
    }

    /// Removes every field whose lower-case name satisfies `is_meant`.
    pub fn remove_where(&mut self, is_meant: impl Fn(&[u8]) -> bool) {
        for at in 0..self.fields.len() {
            let field = self.fields[at];
            if field.live && is_meant(self.slice(field.name)) {
                self.remove(field_id(at));
            }
        }
    }

    /// The size that `write_request`/`write_response` will write, for the `tune.maxrewrite` check.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        const CRLF: usize = 2;
        let start = &self.start;
        let line = match (start.line.len, start.status) {
            (0, 0) => {
                self.method_bytes().len()
                    + 1
                    + start.target.len as usize
                    + 1
                    + self.version_bytes().len()
                    + CRLF
            }
            (0, status) => {
                self.version_bytes().len()
                    + 1
                    + status_digits(status)
                    + 1
                    + start.reason.len as usize
                    + CRLF
            }
            (len, _) => len as usize,
        };
        line + self.fields_bytes + CRLF
    }

    /// Removes user information from an absolute target: no server behind a proxy needs it, and
    /// some parsers mistake it for the host (RFC 9110 §4.2.4).
    pub fn drop_user_info(&mut self) {
        let (target, authority) = (self.start.target, self.start.authority);
        if authority.len == 0 || self.buf[..authority.at as usize].last() != Some(&b'@') {
            return;
        }
        let (from, to) = (target.at as usize, authority.at as usize);
        let scheme = self.buf[from..to]
            .windows(3)
            .position(|bytes| bytes == b"://");
        if let Some(scheme) = scheme {
            let mut plain = self.buf[from..from + scheme + 3].to_vec();
            plain.extend_from_slice(&self.buf[to..from + target.len as usize]);
            self.set_target(&plain);
        }
    }

    /// Removes the options that `keep` rejects from `Connection`; a field that becomes empty is
    /// removed.
    pub fn filter_connection(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.filter_list(Name::Connection, keep);
    }

    /// The position of the first live field of an interned name.
    fn first(&self, name: Name) -> Option<usize> {
        if !self.present.contains(name) {
            return None;
        }
        self.fields
            .iter()
            .position(|field| field.id == name && field.live)
    }

    fn is_named(&self, field: &Field, id: Name, name: &[u8]) -> bool {
        field.live
            && field.id == id
            && (id != Name::Other || self.slice(field.name).eq_ignore_ascii_case(name))
    }

    /// Appends a text whose line end follows.
    fn push_text(&mut self, text: &[u8]) -> Span {
        let span = self.push(text);
        plain_text(&mut self.buf[span.at as usize..]);
        span
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let at = self.buf.len();
        self.buf.extend_from_slice(bytes);
        span(at, bytes.len())
    }
}

/// Whether a byte ends a target, or must not occur in one.
fn ends_target(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

fn percent(byte: u8) -> [u8; 3] {
    let digit = |half: u8| b"0123456789ABCDEF"[usize::from(half)];
    [b'%', digit(byte >> 4), digit(byte & 15)]
}

impl Field {
    /// The size of `name: value CRLF`.
    fn wire_bytes(&self) -> usize {
        (self.name.len + self.value.len) as usize + 4
    }
}

/// The parser's limits bound heads far below 4 GiB.
#[inline]
pub(crate) fn span(at: usize, len: usize) -> Span {
    debug_assert!(at + len <= u32::MAX as usize);
    Span {
        at: at as u32,
        len: len as u32,
    }
}

/// At least three digits, as the grammar requires.
fn status_digits(status: u16) -> usize {
    if status > 9999 {
        5
    } else if status > 999 {
        4
    } else {
        3
    }
}

/// Memory that a cleared head keeps for the next message.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// The most digits of a length.
const LENGTH_DIGITS_MAX: usize = 20;

fn decimal_text(number: u64, digits: &mut [u8; LENGTH_DIGITS_MAX]) -> &[u8] {
    let (mut at, mut rest) = (LENGTH_DIGITS_MAX, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[at..];
        }
    }
}

fn field_id(at: usize) -> FieldId {
    FieldId(at as u32)
}

#[cfg(test)]
mod tests;
