//! Requests cut into smaller ones, without decoding records.

use crate::write;
use bytes::{BufMut, Bytes, BytesMut};

use crate::Signal;
use crate::count;
use crate::wire::{Fields, Whole};

/// Surroundings that are written more than once are no more than this in all: then nothing more is
/// cut.
const REPEATED_BYTES_MAX: usize = 256 << 20;
/// A field's key and its length, at most.
const FIELD_BYTES_MAX: usize = 1 + 10;

/// How large a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many records; 0: no bound.
    Records(u64),
    /// So many bytes; 0: no bound. A record alone may be larger.
    Bytes(u64),
}

impl Bound {
    fn holds(self, bytes: usize, records: u64) -> bool {
        match self {
            Bound::Records(0) | Bound::Bytes(0) => true,
            Bound::Records(max) => records <= max,
            Bound::Bytes(max) => bytes as u64 <= max,
        }
    }
}

/// Cuts a request into requests within a bound. Resources and scopes are repeated in each. Metrics
/// are cut between metrics, not within one, so that a request of theirs may be larger.
#[must_use]
pub fn split(signal: Signal, request: Bytes, records: u64, bound: Bound) -> Vec<(Bytes, u64)> {
    if bound.holds(request.len(), records) {
        return vec![(request, records)];
    }
    let mut cut = Cut {
        signal,
        bound,
        out: Vec::new(),
        request: BytesMut::new(),
        records: 0,
        repeated: 0,
    };
    for resource in fields(&request) {
        match resource.message(1) {
            Some(resource) => cut.resource(resource),
            None => cut.request.put_slice(resource.whole),
        }
    }
    cut.end();
    cut.out
}

struct Cut {
    signal: Signal,
    bound: Bound,
    out: Vec<(Bytes, u64)>,
    request: BytesMut,
    records: u64,
    /// Bytes of surroundings that are there again.
    repeated: usize,
}

impl Cut {
    fn end(&mut self) {
        if !self.request.is_empty() {
            self.out.push((self.request.split().freeze(), self.records));
            self.records = 0;
        }
    }

    fn resource(&mut self, resource: &[u8]) {
        let around: Vec<u8> = others(resource);
        for scope in fields(resource).filter_map(|field| field.message(2)) {
            let scope_around = others(scope);
            let around_bytes = around.len() + scope_around.len() + 2 * FIELD_BYTES_MAX;
            let mut records = Vec::new();
            let mut count = 0;
            for field in fields(scope) {
                let Some(record) = field.message(2) else {
                    continue;
                };
                let weight = match self.signal {
                    Signal::Traces | Signal::Logs => 1,
                    Signal::Metrics => count::points(record).unwrap_or(0),
                };
                let bytes = around_bytes + records.len() + field.whole.len();
                let is_first = self.records + count == 0;
                if !is_first && !self.fits(bytes, count + weight) {
                    self.put(&around, &scope_around, &records, count);
                    self.end();
                    records.clear();
                    count = 0;
                    self.repeated += around_bytes;
                }
                records.extend_from_slice(field.whole);
                count += weight;
            }
            self.put(&around, &scope_around, &records, count);
        }
    }

    /// Whether so much more has room in the request.
    fn fits(&self, bytes: usize, records: u64) -> bool {
        let is_within = self
            .bound
            .holds(self.request.len() + bytes, self.records + records);
        is_within || self.repeated >= REPEATED_BYTES_MAX
    }

    fn put(&mut self, resource: &[u8], scope: &[u8], records: &[u8], count: u64) {
        if records.is_empty() {
            return;
        }
        let mut inner = scope.to_vec();
        inner.extend_from_slice(records);
        let mut outer = resource.to_vec();
        write::bytes(&mut outer, 2, &inner);
        let mut whole = Vec::new();
        write::bytes(&mut whole, 1, &outer);
        self.request.put_slice(&whole);
        self.records += count;
    }
}

/// All fields but those that are records or scopes (number 2).
fn others(message: &[u8]) -> Vec<u8> {
    let rest = fields(message).filter(|field| field.key >> 3 != 2);
    rest.flat_map(|field| field.whole.iter().copied()).collect()
}

/// The fields of a message that was walked before: what is malformed ends it.
fn fields(message: &[u8]) -> impl Iterator<Item = Whole<'_>> {
    Fields::new(message).map_while(Result::ok)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
    use prost::Message;

    use super::*;

    fn request(resources: u32, scopes: u32, spans: u32) -> ExportTraceServiceRequest {
        let span = |number| Span {
            name: format!("span {number}"),
            ..Span::default()
        };
        let scope = |number| ScopeSpans {
            scope: Some(InstrumentationScope {
                name: format!("scope {number}"),
                ..InstrumentationScope::default()
            }),
            spans: (0..spans).map(span).collect(),
            schema_url: "s".into(),
        };
        let resource = |number| ResourceSpans {
            resource: Some(Resource {
                dropped_attributes_count: number,
                ..Resource::default()
            }),
            scope_spans: (0..scopes).map(scope).collect(),
            schema_url: "r".into(),
        };
        ExportTraceServiceRequest {
            resource_spans: (0..resources).map(resource).collect(),
        }
    }

    /// Each span with what is around it.
    fn flat(request: &ExportTraceServiceRequest) -> Vec<String> {
        let resources = request.resource_spans.iter();
        let lines = resources.flat_map(|resource| {
            let scopes = resource.scope_spans.iter();
            scopes.flat_map(move |scope| {
                let around = format!(
                    "{:?} {} {:?} {}",
                    resource.resource, resource.schema_url, scope.scope, scope.schema_url
                );
                let spans = scope.spans.iter();
                spans.map(move |span| format!("{around} {}", span.name))
            })
        });
        lines.collect()
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_too_large() {
        for (resources, scopes, spans) in [(1, 1, 10), (3, 2, 4), (5, 1, 1), (2, 3, 7)] {
            let whole = request(resources, scopes, spans);
            let bytes = Bytes::from(whole.encode_to_vec());
            let count = u64::from(resources * scopes * spans);
            for records_max in [0, 1, 2, 3, 5, 100] {
                let bound = Bound::Records(records_max);
                let parts = split(Signal::Traces, bytes.clone(), count, bound);
                let mut all = Vec::new();
                for (part, records) in &parts {
                    let part = ExportTraceServiceRequest::decode(&part[..]).unwrap();
                    let lines = flat(&part);
                    assert_eq!(lines.len() as u64, *records);
                    assert!(records_max == 0 || *records <= records_max);
                    all.extend(lines);
                }
                assert_eq!(all, flat(&whole), "{records_max}");
                if records_max > 0 {
                    assert_eq!(parts.len() as u64, count.div_ceil(records_max));
                }
            }
        }
    }

    #[test]
    fn bytes_are_a_bound_too() {
        for (resources, scopes, spans) in [(1, 1, 100), (3, 2, 40), (50, 1, 1)] {
            let whole = request(resources, scopes, spans);
            let bytes = Bytes::from(whole.encode_to_vec());
            let count = u64::from(resources * scopes * spans);
            for bytes_max in [1, 60, 200, 1000, 1 << 20] {
                let bound = Bound::Bytes(bytes_max);
                let parts = split(Signal::Traces, bytes.clone(), count, bound);
                let mut all = Vec::new();
                for (part, records) in &parts {
                    let is_within = part.len() as u64 <= bytes_max;
                    assert!(is_within || *records == 1, "{bytes_max}: {}", part.len());
                    let part = ExportTraceServiceRequest::decode(&part[..]).unwrap();
                    let lines = flat(&part);
                    assert_eq!(lines.len() as u64, *records);
                    all.extend(lines);
                }
                assert_eq!(all, flat(&whole), "{bytes_max}");
                // No more of them than there must be, but for what a prefix is taken to need.
                let fewest = (bytes.len() as u64).div_ceil(bytes_max);
                assert!(bytes_max < 1000 || parts.len() as u64 <= 2 * fewest);
            }
        }
    }

    /// A resource of some size before many spans, of which each is to be alone.
    #[test]
    fn what_is_repeated_is_bounded() {
        let mut whole = request(1, 1, 600);
        whole.resource_spans[0].schema_url = "r".repeat(1 << 20);
        let bytes = Bytes::from(whole.encode_to_vec());
        let parts = split(Signal::Traces, bytes, 600, Bound::Records(1));
        let sum: usize = parts.iter().map(|(part, _)| part.len()).sum();
        assert!(sum <= REPEATED_BYTES_MAX + (4 << 20), "{sum}");
        assert_eq!(parts.iter().map(|(_, records)| records).sum::<u64>(), 600);
    }
}
