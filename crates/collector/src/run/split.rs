//! Requests cut into smaller ones, without decoding records.

use bytes::{BufMut, Bytes, BytesMut};
use telemetry::proto;

use super::count;
use super::wire::{Field, Fields};
use crate::config::Signal;

/// Cuts a request into requests of `records_max` records at most; 0 is no bound. Resources and scopes are repeated in each.
/// Metrics are cut between metrics, not within one, so that a request of theirs may be larger.
#[must_use]
pub fn split(signal: Signal, request: Bytes, records: u64, records_max: u64) -> Vec<(Bytes, u64)> {
    if records_max == 0 || records <= records_max {
        return vec![(request, records)];
    }
    let mut cut = Cut {
        signal,
        records_max,
        out: Vec::new(),
        request: BytesMut::new(),
        records: 0,
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
    records_max: u64,
    out: Vec<(Bytes, u64)>,
    request: BytesMut,
    records: u64,
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
                if self.records + count > 0 && self.records + count + weight > self.records_max {
                    self.put(&around, &scope_around, &records, count);
                    self.end();
                    records.clear();
                    count = 0;
                }
                records.extend_from_slice(field.whole);
                count += weight;
            }
            self.put(&around, &scope_around, &records, count);
        }
    }

    fn put(&mut self, resource: &[u8], scope: &[u8], records: &[u8], count: u64) {
        if records.is_empty() {
            return;
        }
        let mut inner = scope.to_vec();
        inner.extend_from_slice(records);
        let mut outer = resource.to_vec();
        proto::bytes(&mut outer, 2, &inner);
        let mut whole = Vec::new();
        proto::bytes(&mut whole, 1, &outer);
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
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
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
                let parts = split(Signal::Traces, bytes.clone(), count, records_max);
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
}
