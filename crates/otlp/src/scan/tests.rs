//! Requests that the walk is shown, beside what a full decoder makes of them.

use super::*;
use crate::tests::{Model, request};
use crate::write;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

/// Writes down all that it is told.
#[derive(Default)]
struct Notes {
    resources: usize,
    scopes: usize,
    spans: Vec<Vec<u8>>,
    attributes: usize,
    ids: Vec<[u8; 16]>,
}

struct Count(usize);

impl<'a> Spot<'a> for Count {
    fn lengths(&self) -> u64 {
        u64::MAX
    }

    fn clear(&mut self) {
        self.0 = 0;
    }

    fn attribute(&mut self, _: &'a [u8], _: &'a [u8]) {
        self.0 += 1;
    }

    fn put(&mut self, _: u8, _: &'a [u8]) {
        self.0 += 1;
    }
}

impl<'a> Visitor<'a> for Notes {
    fn resource(&mut self, _: &[u8], _: &'a [u8]) {
        self.resources += 1;
    }

    fn scope(&mut self, _: &[u8], _: &'a [u8]) {
        self.scopes += 1;
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        let mut count = Count(0);
        let span = span(message, &mut count)?;
        self.attributes += count.0;
        self.ids.push(span.trace_id);
        self.spans.push(message.to_vec());
        Ok(())
    }
}

fn walk(request: &[u8]) -> Result<Notes, Malformed> {
    let mut notes = Notes::default();
    Scanner::default().walk(request, &mut notes)?;
    Ok(notes)
}

#[test]
fn all_spans_are_found() {
    let mut model = Model::new(1);
    for _ in 0..200 {
        let decoded = request(&mut model);
        let notes = walk(&decoded.encode_to_vec()).unwrap();
        let scopes = || {
            decoded
                .resource_spans
                .iter()
                .flat_map(|resource| &resource.scope_spans)
        };
        let spans: Vec<_> = scopes().flat_map(|scope| &scope.spans).collect();
        assert_eq!(
            notes.scopes,
            scopes().filter(|s| !s.spans.is_empty()).count()
        );
        assert_eq!(
            notes.spans,
            spans.iter().map(|s| s.encode_to_vec()).collect::<Vec<_>>()
        );
        let attributes: usize = spans.iter().map(|span| span.attributes.len()).sum();
        assert_eq!(notes.attributes, attributes);
        for (id, span) in notes.ids.iter().zip(&spans) {
            assert_eq!(id[..], span.trace_id[..]);
        }
    }
}

#[test]
fn what_a_decoder_refuses_is_refused() {
    let mut model = Model::new(2);
    let bytes = request(&mut model).encode_to_vec();
    for end in 0..bytes.len().min(4000) {
        let decoded = ExportTraceServiceRequest::decode(&bytes[..end]);
        assert_eq!(walk(&bytes[..end]).is_ok(), decoded.is_ok(), "cut at {end}");
    }
}

fn one_span(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 2, |out| write::message(out, 2, write));
    });
    out
}

#[test]
fn identifiers_have_one_length() {
    let id = |field, len| one_span(move |out| write::bytes(out, field, &vec![1; len]));
    for (field, good, error) in [
        (1, 16, Malformed::TraceId),
        (2, 8, Malformed::SpanId),
        (4, 8, Malformed::SpanId),
    ] {
        assert!(walk(&id(field, 0)).is_ok());
        assert!(walk(&id(field, good)).is_ok());
        for bad in [1, 7, 15, 17, 32] {
            assert_eq!(walk(&id(field, bad)).err(), Some(error));
        }
    }
    let none = walk(&one_span(|_| ())).unwrap();
    assert_eq!(none.ids, [[0; 16]], "no identifier is the trace zero");
}

#[test]
fn values_nest_only_so_deep() {
    let nested = |depth| {
        let mut value = vec![0x0a, 0x00];
        for _ in 0..depth {
            let (mut array, mut outer) = (Vec::new(), Vec::new());
            write::bytes(&mut array, 1, &value);
            write::bytes(&mut outer, 5, &array);
            value = outer;
        }
        one_span(move |out| {
            write::message(out, 9, |out| {
                write::bytes(out, 1, b"key");
                write::bytes(out, 2, &value);
            });
        })
    };
    assert!(walk(&nested(VALUE_DEPTH_MAX)).is_ok());
    assert_eq!(
        walk(&nested(VALUE_DEPTH_MAX + 1)).err(),
        Some(Malformed::TooDeep)
    );
    assert_eq!(walk(&nested(2000)).err(), Some(Malformed::TooDeep));
}

#[test]
fn unknown_fields_stay_with_what_they_stand_in() {
    struct Fields(Vec<Vec<u8>>);
    impl<'a> Visitor<'a> for Fields {
        fn resource(&mut self, fields: &[u8], _: &'a [u8]) {
            self.0.push(fields.to_vec());
        }
        fn scope(&mut self, fields: &[u8], _: &'a [u8]) {
            self.0.push(fields.to_vec());
        }
        fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
            self.0.push(message.to_vec());
            Ok(())
        }
    }
    let mut bytes = Vec::new();
    write::message(&mut bytes, 1, |out| {
        write::bytes(out, 999, b"before");
        write::message(out, 2, |out| {
            write::uint(out, 77, 5);
            write::message(out, 2, |out| write::bytes(out, 500, b"in the span"));
            write::bytes(out, 3, b"url");
        });
        write::bytes(out, 3, b"after");
    });
    let mut seen = Fields(Vec::new());
    Scanner::default().walk(&bytes, &mut seen).unwrap();
    let field = |number, text: &[u8]| {
        let mut out = Vec::new();
        write::bytes(&mut out, number, text);
        out
    };
    let mut scope = Vec::new();
    write::uint(&mut scope, 77, 5);
    scope.extend(field(3, b"url"));
    let resource = [field(999, b"before"), field(3, b"after")].concat();
    assert_eq!(seen.0, [resource, scope, field(500, b"in the span")]);
}
