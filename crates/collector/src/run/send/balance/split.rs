//! A request cut into those of several backends, in one pass over its bytes: spans, resources and
//! scopes stay as they came.

use bytes::Bytes;
use otlp::scan::{Any, Attributes, Malformed, RESOURCE, RESOURCE_ATTRIBUTES};
use otlp::write;

use super::ring::Ring;
use crate::config::Signal;
use crate::config::components::exporters::load_balancing::Routing;
use otlp::count;
use otlp::wire::{Fields, Whole, one_bytes};

/// What a backend gets: its number, the request and how many spans it has.
pub type Part = (usize, Bytes, u64);

/// The parts of a request of so many spans; one that is a single backend's is its only part, as it
/// came.
///
/// # Errors
/// What is malformed.
pub fn split(
    request: &Bytes,
    spans: u64,
    ring: &Ring,
    to: Routing,
) -> Result<Vec<Part>, Malformed> {
    split_by(request, spans, &mut |key| ring.owner(key), to)
}

/// The same where `owner` says whose a key is: numbers from 0 on, of which each that is there has a
/// part.
///
/// # Errors
/// What is malformed.
pub fn split_by(
    request: &Bytes,
    spans: u64,
    owner: &mut dyn FnMut(&[u8]) -> usize,
    to: Routing,
) -> Result<Vec<Part>, Malformed> {
    let mut cut = Cut {
        owner,
        outs: Vec::new(),
        touched: Vec::new(),
    };
    let mut unknown = Vec::new();
    for field in Fields::new(request) {
        let field = field?;
        match (field.message(1), to) {
            (Some(resource), Routing::TraceId) => cut.resource(resource)?,
            (Some(resource), Routing::Service) => cut.service(&field, resource)?,
            (None, _) => unknown.extend_from_slice(field.whole),
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    for (number, out) in cut.outs.into_iter().enumerate() {
        if out.spans == spans {
            return Ok(vec![(number, request.clone(), spans)]);
        }
        if out.spans > 0 {
            parts.push((number, out.request.into(), out.spans));
        }
    }
    // What nobody knows goes with the first one.
    if let (Some((_, first, _)), false) = (parts.first_mut(), unknown.is_empty()) {
        unknown.extend_from_slice(first);
        *first = unknown.into();
    }
    Ok(parts)
}

struct Cut<'a> {
    /// Whose a key is.
    owner: &'a mut dyn FnMut(&[u8]) -> usize,
    /// By the numbers of backends.
    outs: Vec<Out>,
    /// Who has spans of the scope, or scopes of the resource, that is being read.
    touched: Vec<usize>,
}

/// What a backend gets.
#[derive(Default)]
struct Out {
    request: Vec<u8>,
    /// Scopes of the resource that is being read.
    scopes: Vec<u8>,
    /// Spans of the scope that is being read.
    spans_of_scope: Vec<u8>,
    spans: u64,
}

impl Cut<'_> {
    fn out(&mut self, owner: usize) -> &mut Out {
        if self.outs.len() <= owner {
            self.outs.resize_with(owner + 1, Out::default);
        }
        &mut self.outs[owner]
    }

    fn resource(&mut self, resource: &[u8]) -> Result<(), Malformed> {
        let around = others(resource)?;
        let mut owners = Vec::new();
        for field in Fields::new(resource) {
            if let Some(scope) = field?.message(2) {
                self.scope(scope)?;
                owners.append(&mut self.touched);
            }
        }
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            let out = self.out(owner);
            let scopes = std::mem::take(&mut out.scopes);
            wrap(&mut out.request, 1, &around, &scopes);
        }
        Ok(())
    }

    /// Adds the spans of a scope to what their owners get; those are [`Cut::touched`] then.
    fn scope(&mut self, scope: &[u8]) -> Result<(), Malformed> {
        let around = others(scope)?;
        for field in Fields::new(scope) {
            let field = field?;
            let Some(span) = field.message(2) else {
                continue;
            };
            let owner = (self.owner)(&trace_id(span)?);
            let out = self.out(owner);
            let is_first = out.spans_of_scope.is_empty();
            out.spans_of_scope.extend_from_slice(field.whole);
            out.spans += 1;
            if is_first {
                self.touched.push(owner);
            }
        }
        for place in 0..self.touched.len() {
            let out = self.out(self.touched[place]);
            wrap(&mut out.scopes, 2, &around, &out.spans_of_scope);
            out.spans_of_scope.clear();
        }
        Ok(())
    }

    /// A resource as it came goes to the owner of its service.
    fn service(&mut self, field: &Whole<'_>, resource: &[u8]) -> Result<(), Malformed> {
        let message = one_bytes(resource, RESOURCE)?.unwrap_or_default();
        let name = Attributes::new(message, RESOURCE_ATTRIBUTES).get(b"service.name");
        // Without a name, or with one that is no text, it is the empty one.
        let name = match name {
            Some(Any::Text(name)) => name,
            _ => b"",
        };
        let spans = count::records(Signal::Traces, field.whole)?;
        let owner = (self.owner)(name);
        let out = self.out(owner);
        out.request.extend_from_slice(field.whole);
        out.spans += spans;
        Ok(())
    }
}

/// Appends a field that is a message of two pieces.
fn wrap(out: &mut Vec<u8>, field: u32, around: &[u8], inner: &[u8]) {
    write::key(out, field, 2);
    write::varint(out, (around.len() + inner.len()) as u64);
    out.extend_from_slice(around);
    out.extend_from_slice(inner);
}

/// All fields but those of number 2: scopes of a resource, spans of a scope.
fn others(message: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut others = Vec::new();
    for field in Fields::new(message) {
        let field = field?;
        if field.key >> 3 != 2 {
            others.extend_from_slice(field.whole);
        }
    }
    Ok(others)
}

/// The trace of a span; zeros where it says none.
fn trace_id(span: &[u8]) -> Result<[u8; 16], Malformed> {
    // As every encoder writes it.
    if let [0x0a, 16, rest @ ..] = span
        && let Some(id) = rest.first_chunk()
    {
        return Ok(*id);
    }
    match one_bytes(span, 1 << 3 | 2)?.unwrap_or_default() {
        b"" => Ok([0; 16]),
        id => id.try_into().map_err(|_| Malformed::TraceId),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{
        AnyValue, InstrumentationScope, KeyValue, any_value,
    };
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
    use prost::Message;

    use super::*;

    fn ring() -> Ring {
        let names = ["a:1", "b:1", "c:1"].map(str::to_owned);
        Ring::new(&names)
    }

    fn request(resources: u64, scopes: u64, spans: u64) -> ExportTraceServiceRequest {
        let span = |id: u64| Span {
            trace_id: u128::from(id / 3).to_be_bytes().to_vec(),
            span_id: id.to_be_bytes().to_vec(),
            name: format!("span {id}"),
            ..Span::default()
        };
        let scope = |number: u64| ScopeSpans {
            scope: Some(InstrumentationScope {
                name: format!("scope {number}"),
                ..InstrumentationScope::default()
            }),
            spans: (number * spans..(number + 1) * spans).map(span).collect(),
            schema_url: "s".into(),
        };
        let resource = |number: u64| ResourceSpans {
            resource: Some(Resource {
                attributes: vec![KeyValue {
                    key: "service.name".into(),
                    value: Some(AnyValue {
                        value: Some(any_value::Value::StringValue(format!("service {number}"))),
                    }),
                    ..KeyValue::default()
                }],
                ..Resource::default()
            }),
            scope_spans: (number * scopes..(number + 1) * scopes)
                .map(scope)
                .collect(),
            schema_url: "r".into(),
        };
        ExportTraceServiceRequest {
            resource_spans: (0..resources).map(resource).collect(),
        }
    }

    /// Each span with all that is around it, and its trace and service.
    fn flat(request: &ExportTraceServiceRequest) -> Vec<(String, Vec<u8>, String)> {
        let mut all = Vec::new();
        for resource in &request.resource_spans {
            let service = resource.resource.as_ref().unwrap().attributes[0]
                .value
                .clone();
            let Some(any_value::Value::StringValue(service)) = service.unwrap().value else {
                panic!("no service");
            };
            for scope in &resource.scope_spans {
                for span in &scope.spans {
                    let text = format!(
                        "{:?}{}{:?}{}{span:?}",
                        resource.resource, resource.schema_url, scope.scope, scope.schema_url
                    );
                    all.push((text, span.trace_id.clone(), service.clone()));
                }
            }
        }
        all
    }

    #[test]
    fn each_span_goes_to_its_owner_with_what_is_around_it() {
        let ring = ring();
        for (resources, scopes, spans) in [(1, 1, 9), (3, 2, 10), (5, 1, 1), (2, 3, 40)] {
            let whole = request(resources, scopes, spans);
            let bytes = Bytes::from(whole.encode_to_vec());
            let count = resources * scopes * spans;
            for to in [Routing::TraceId, Routing::Service] {
                let parts = split(&bytes, count, &ring, to).unwrap();
                let mut all = Vec::new();
                for (owner, part, spans) in &parts {
                    let part = ExportTraceServiceRequest::decode(&part[..]).unwrap();
                    let lines = flat(&part);
                    assert_eq!(lines.len() as u64, *spans);
                    for (_, trace, service) in &lines {
                        let id = match to {
                            Routing::TraceId => trace.as_slice(),
                            Routing::Service => service.as_bytes(),
                        };
                        assert_eq!(ring.owner(id), *owner);
                    }
                    all.extend(lines);
                }
                let mut expected = flat(&whole);
                expected.sort();
                all.sort();
                assert_eq!(all, expected);
                let mut owners: Vec<_> = parts.iter().map(|part| part.0).collect();
                owners.dedup();
                assert_eq!(owners.len(), parts.len());
            }
        }
    }

    #[test]
    fn what_is_one_backends_stays_as_it_came() {
        let mut bytes = request(1, 1, 3).encode_to_vec();
        // A field that nobody knows, and a span whose trace stands last.
        write::bytes(&mut bytes, 99, b"unknown");
        let bytes = Bytes::from(bytes);
        let parts = split(&bytes, 3, &ring(), Routing::TraceId).unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].1, bytes);
        assert_eq!(parts[0].0, ring().owner(&[0; 16]));
    }

    #[test]
    fn unknown_fields_stay_and_stand_once() {
        let mut bytes = request(2, 1, 30).encode_to_vec();
        write::bytes(&mut bytes, 99, b"unknown");
        let parts = split(&bytes.into(), 60, &ring(), Routing::TraceId).unwrap();
        assert!(parts.len() > 1);
        let have = |part: &&Part| part.1.windows(7).any(|window| window == b"unknown");
        assert_eq!(parts.iter().filter(have).count(), 1);
        assert!(have(&&parts[0]));
    }

    #[test]
    fn spans_are_copied_byte_by_byte() {
        // Fields in an order of their own, an unknown one, and a length with more bytes than it
        // needs.
        let span = |trace: u8| {
            let mut span = b"\x2a\x81\x00n".to_vec();
            write::bytes(&mut span, 1, &[&[0; 15][..], &[trace]].concat());
            write::bytes(&mut span, 200, b"x");
            span
        };
        let mut scope = Vec::new();
        for trace in 0..20 {
            write::bytes(&mut scope, 2, &span(trace));
        }
        let mut resource = Vec::new();
        write::bytes(&mut resource, 2, &scope);
        let mut request = Vec::new();
        write::bytes(&mut request, 1, &resource);
        let parts = split(&request.into(), 20, &ring(), Routing::TraceId).unwrap();
        assert!(parts.len() > 1);
        for (owner, part, spans) in parts {
            let traces =
                (0..20).filter(|trace| ring().owner(&[&[0; 15][..], &[*trace]].concat()) == owner);
            let mut found = 0;
            for trace in traces {
                let span = span(trace);
                assert!(part.windows(span.len()).any(|window| window == span));
                found += 1;
            }
            assert_eq!(found, spans);
        }
    }

    #[test]
    fn what_is_malformed_is_told() {
        let whole = Bytes::from(request(2, 2, 5).encode_to_vec());
        for cut in 1..whole.len() {
            // Cut between two resources it is a request.
            let _ = split(&whole.slice(..cut), 99, &ring(), Routing::TraceId);
            let _ = split(&whole.slice(..cut), 99, &ring(), Routing::Service);
        }
        let short = Bytes::from_static(b"\x0a\x08\x12\x06\x12\x04\x0a\x02ab");
        let fault = split(&short, 1, &ring(), Routing::TraceId).unwrap_err();
        assert_eq!(fault, Malformed::TraceId);
    }
}
