//! Parses a request: the places of its spans, and the values that the store keeps for searches.

use otlp::scan::{
    Any, Attributes, Malformed, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES, Scanner, Spot, Visitor, span,
};
use xxhash_rust::xxh3::Xxh3Default;

/// Most bytes of a service, a name, a route or a policy that are kept for searches.
pub(crate) const TEXT_BYTES_MAX: usize = 256;
/// The attribute in which samplers record their policy.
const POLICY: &[u8] = b"tailsampling.policy";

/// A parsed span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'a> {
    /// Its trace.
    pub trace: [u8; 16],
    /// Its message.
    pub message: &'a [u8],
    /// Identifies the span if it arrives again; 0: it is not identified.
    pub print: u64,
    /// The index of its header in the request.
    pub header: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub name: &'a [u8],
    pub route: &'a [u8],
    /// The HTTP status; 0: none.
    pub status: u16,
    pub is_root: bool,
    pub is_error: bool,
    /// The policy recorded in the span, which kept it.
    pub policy: &'a [u8],
}

/// The context of spans in a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header<'a> {
    /// The message `Resource`.
    pub resource: &'a [u8],
    /// The message `InstrumentationScope`.
    pub scope: &'a [u8],
    /// `service.name`
    pub service: &'a [u8],
    policy: &'a [u8],
}

/// A parsed request.
#[derive(Debug, Default)]
pub(crate) struct Notes<'a> {
    pub spans: Vec<Note<'a>>,
    pub headers: Vec<Header<'a>>,
    /// The number of spans that could not be parsed; a part that cannot be split counts as one.
    pub unreadable: u64,
    current: Header<'a>,
}

/// Parses a request as far as possible.
pub(crate) fn read(request: &[u8]) -> Notes<'_> {
    let mut notes = Notes::default();
    if Scanner::default().walk(request, &mut notes).is_err() {
        notes.unreadable += 1;
    }
    notes
}

impl<'a> Visitor<'a> for Notes<'a> {
    fn resource(&mut self, _: &[u8], resource: &'a [u8]) {
        let attributes = Attributes::new(resource, RESOURCE_ATTRIBUTES);
        self.current = Header {
            resource,
            service: text(attributes.get(b"service.name")),
            ..Header::default()
        };
    }

    fn scope(&mut self, _: &[u8], scope: &'a [u8]) {
        self.current.scope = scope;
        self.current.policy = text(Attributes::new(scope, SCOPE_ATTRIBUTES).get(POLICY));
        self.headers.push(self.current);
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        let mut wanted = Wanted::default();
        match span(message, &mut wanted) {
            Ok(span) => {
                let policy = if wanted.policy.is_empty() {
                    self.current.policy
                } else {
                    wanted.policy
                };
                self.spans.push(Note {
                    trace: span.trace_id,
                    message,
                    print: print(span.span_id, span.kind, span.start_ns, span.end_ns),
                    header: self.headers.len().saturating_sub(1) as u32,
                    start_ns: span.start_ns,
                    end_ns: span.end_ns,
                    name: shortened(span.name),
                    route: wanted.route,
                    status: wanted.status,
                    is_root: span.is_root(),
                    is_error: span.status == 2,
                    policy,
                });
            }
            Err(_) => self.unreadable += 1,
        }
        Ok(())
    }
}

/// Attributes that the store keeps.
#[derive(Debug, Default)]
struct Wanted<'a> {
    route: &'a [u8],
    status: u16,
    policy: &'a [u8],
}

const fn lengths(names: &[&[u8]]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < names.len() {
        bits |= 1 << (names[at].len() % 64);
        at += 1;
    }
    bits
}

impl<'a> Spot<'a> for Wanted<'a> {
    fn lengths(&self) -> u64 {
        const LENGTHS: u64 = lengths(&[
            b"http.route",
            b"http.response.status_code",
            b"http.status_code",
            POLICY,
        ]);
        LENGTHS
    }

    fn clear(&mut self) {
        *self = Wanted::default();
    }

    fn attribute(&mut self, key: &'a [u8], value: &'a [u8]) {
        match key {
            b"http.route" => self.route = text(Some(Any::read(value))),
            // The second name is from before the conventions became stable.
            b"http.response.status_code" | b"http.status_code" => {
                if let Any::Int(status) = Any::read(value) {
                    self.status = u16::try_from(status).unwrap_or(0);
                }
            }
            POLICY => self.policy = text(Some(Any::read(value))),
            _ => {}
        }
    }

    fn put(&mut self, _: u8, _: &'a [u8]) {}
}

/// The text of an attribute, shortened; empty if it is not a text.
fn text(value: Option<Any<'_>>) -> &[u8] {
    match value {
        Some(Any::Text(text)) => shortened(text),
        _ => b"",
    }
}

/// At most [`TEXT_BYTES_MAX`] bytes of a text, cut between characters.
pub(crate) fn shortened(text: &[u8]) -> &[u8] {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let begins = |at: &usize| text[*at] & 0xc0 != 0x80;
    let end = (TEXT_BYTES_MAX - 3..=TEXT_BYTES_MAX).rev().find(begins);
    &text[..end.unwrap_or(TEXT_BYTES_MAX)]
}

/// A number that two spans hardly ever share. Client and server may share an identifier (Zipkin),
/// so the kind and the times are included.
fn print(id: &[u8], kind: i32, start_ns: u64, end_ns: u64) -> u64 {
    if id.iter().all(|byte| *byte == 0) {
        return 0;
    }
    let mut hash = Xxh3Default::new();
    hash.update(id);
    hash.update(&kind.to_le_bytes());
    hash.update(&start_ns.to_le_bytes());
    hash.update(&end_ns.to_le_bytes());
    hash.digest().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(shortened(b"short"), b"short");
        let long = "é".repeat(200);
        let cut = shortened(long.as_bytes());
        assert_eq!(cut.len(), TEXT_BYTES_MAX);
        let odd = format!("a{long}");
        let cut = std::str::from_utf8(shortened(odd.as_bytes()));
        assert_eq!(cut.map(str::len), Ok(TEXT_BYTES_MAX - 1));
        assert_eq!(shortened(&[0x80; 300]).len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn prints_tell_client_from_server() {
        assert_eq!(print(&[0; 8], 2, 1, 2), 0);
        assert_eq!(print(b"", 2, 1, 2), 0);
        let one = print(b"12345678", 2, 1, 2);
        assert_eq!(one, print(b"12345678", 2, 1, 2));
        assert_ne!(one, print(b"12345678", 3, 1, 2));
        assert_ne!(one, print(b"12345678", 2, 1, 3));
    }
}
