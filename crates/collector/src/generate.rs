//! Traces that never happened, for load: services that call each other, as their SDKs would send the spans.
//!
//! Everything comes from the seed and the number of a trace, so that two runs send the same.

use bytes::Bytes;
use telemetry::Ids;
use telemetry::proto;

/// What traces look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Services that there are.
    pub services: u32,
    /// Spans of a trace.
    pub spans: u32,
    /// Attributes of a span, besides what every span of its kind has.
    pub attributes: u32,
    /// Bytes of the value of each.
    pub attribute_bytes: u32,
    /// Per cent of traces with a span that failed.
    pub errors_percent: f64,
    /// Per cent of traces that take [`Shape::slow_ms`] or longer.
    pub slow_percent: f64,
    /// Milliseconds of a slow trace, at least.
    pub slow_ms: u64,
    /// Spans of a request.
    pub batch_spans: u32,
    /// A request has whole traces; else spans of one service each, as an SDK sends them.
    pub whole_traces: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            services: 24,
            spans: 8,
            attributes: 10,
            attribute_bytes: 12,
            errors_percent: 2.0,
            slow_percent: 2.0,
            slow_ms: 2000,
            batch_spans: 512,
            whole_traces: false,
        }
    }
}

/// A request that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// An `ExportTraceServiceRequest`.
    pub request: Bytes,
    /// Its spans.
    pub spans: u64,
}

/// Makes requests.
#[derive(Debug)]
pub struct Generator {
    shape: Shape,
    random: Ids,
    models: Vec<Vec<Model>>,
    /// Spans that wait for their request, by service; all under the first for whole traces.
    waiting: Vec<Waiting>,
}

/// A span of a trace as others like it are copied: only identifiers and times are new.
#[derive(Debug)]
struct Model {
    /// A field of `ScopeSpans`, with its key and length.
    bytes: Vec<u8>,
    /// Where in it the trace's identifier is, and behind it the span's.
    ids_at: usize,
    has_parent: bool,
    /// Where the two times are, and what is added to the beginning of the trace.
    times_at: usize,
    times_ns: (u64, u64),
    /// Of the services, from that of the first span on.
    service: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<u8>,
    count: u32,
}

/// Traces that are made once; all others are copies of them.
const MODELS: usize = 512;
const KINDS: [u64; 3] = [2, 3, 1];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
/// Milliseconds that a trace takes at most where it is not slow.
const FAST_MS: u64 = 400;
/// From a trace's identifier to its span's, and from there to the parent's: the bytes, and a key and a length.
const SPAN_ID_AFTER: usize = 16 + 2;
const PARENT_AFTER: usize = 8 + 2;

impl Generator {
    /// Two of the same shape and seed make the same requests.
    #[must_use]
    pub fn new(shape: Shape, seed: u64) -> Generator {
        let services = match shape.whole_traces {
            true => 1,
            false => shape.services.max(1),
        };
        let mut generator = Generator {
            shape,
            random: Ids::new([seed, 2, 3, 4]),
            models: Vec::new(),
            waiting: (0..services).map(|_| Waiting::default()).collect(),
        };
        generator.models = (0..MODELS).map(|_| generator.model()).collect();
        generator
    }

    /// Adds a trace that began at `now_ns` (nanoseconds since the UNIX epoch); requests that are full go to `out`.
    pub fn trace(&mut self, now_ns: u64, out: &mut Vec<Generated>) {
        let trace_id = self.random.trace_id().0;
        let (first_service, number) = (self.random.next_u64(), self.random.next_u64());
        // Every span has an identifier of its own, and so has its parent.
        let (mut span_id, step) = (self.random.next_u64(), self.random.next_u64() | 1);
        let models = std::mem::take(&mut self.models);
        for model in &models[number as usize % MODELS] {
            let place = first_service.wrapping_add(model.service) as usize % self.waiting.len();
            let waiting = &mut self.waiting[place];
            let start = waiting.spans.len();
            waiting.spans.extend_from_slice(&model.bytes);
            waiting.count += 1;
            let span = &mut waiting.spans[start..];
            let ids = &mut span[model.ids_at..];
            ids[..16].copy_from_slice(&trace_id);
            let parent_id = span_id;
            span_id = span_id.wrapping_add(step);
            ids[SPAN_ID_AFTER..][..8].copy_from_slice(&span_id.max(1).to_be_bytes());
            if model.has_parent {
                let parent = &mut ids[SPAN_ID_AFTER + PARENT_AFTER..][..8];
                parent.copy_from_slice(&parent_id.max(1).to_be_bytes());
            }
            let times = &mut span[model.times_at..];
            let (start_ns, end_ns) = model.times_ns;
            times[..8].copy_from_slice(&(now_ns + start_ns).to_le_bytes());
            times[9..17].copy_from_slice(&(now_ns + end_ns).to_le_bytes());
            if !self.shape.whole_traces && waiting.count >= self.shape.batch_spans {
                self.end(place, out);
            }
        }
        self.models = models;
        if self.shape.whole_traces && self.waiting[0].count >= self.shape.batch_spans {
            self.end(0, out);
        }
    }

    /// What still waits becomes requests.
    pub fn flush(&mut self, out: &mut Vec<Generated>) {
        for place in 0..self.waiting.len() {
            self.end(place, out);
        }
    }

    fn percent(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * 100.0
    }

    /// A trace to be copied.
    fn model(&mut self) -> Vec<Model> {
        let draws = [self.percent(), self.percent()];
        let (failed, slow) = (
            draws[0] < self.shape.errors_percent,
            draws[1] < self.shape.slow_percent,
        );
        let lasts_ms = match slow {
            true => self.shape.slow_ms + 1 + self.random.next_u64() % 1000,
            false => 1 + self.random.next_u64() % FAST_MS.min(self.shape.slow_ms.max(2) - 1),
        };
        let spans = self.shape.spans.max(1);
        let span = |number: u32| {
            // Each is within the one before it.
            let inset_ns = lasts_ms * 1_000_000 / u64::from(2 * spans + 1) * u64::from(number);
            let times_ns = (inset_ns, lasts_ms * 1_000_000 - inset_ns);
            self.span(number, times_ns, failed && number + 1 == spans)
        };
        (0..spans).map(span).collect()
    }

    fn span(&mut self, number: u32, times_ns: (u64, u64), failed: bool) -> Model {
        let has_parent = number > 0;
        let mut span = Vec::with_capacity(512);
        proto::bytes(&mut span, 1, &[1; 16]);
        proto::bytes(&mut span, 2, &[1; 8]);
        if has_parent {
            proto::bytes(&mut span, 4, &[1; 8]);
        }
        let method = METHODS[self.random.next_u64() as usize % METHODS.len()];
        let name = format!("{method} /resource/{}", number % 16);
        proto::bytes(&mut span, 5, name.as_bytes());
        proto::uint(&mut span, 6, KINDS[number as usize % KINDS.len()]);
        let times_at = span.len() + 1;
        proto::fixed64(&mut span, 7, 1);
        proto::fixed64(&mut span, 8, 1);
        attribute(&mut span, 9, "http.request.method", method);
        let status = if failed { "500" } else { "200" };
        attribute(&mut span, 9, "http.response.status_code", status);
        let bytes = self.shape.attribute_bytes as usize;
        for place in 0..self.shape.attributes {
            let random = self.random.next_u64() % 1000;
            let mut value = format!("value-{random}-{place}");
            while value.len() < bytes {
                value.push('x');
            }
            value.truncate(bytes.max(1));
            attribute(&mut span, 9, &format!("attribute.{place}"), &value);
        }
        if failed {
            proto::message(&mut span, 15, |out| {
                proto::bytes(out, 2, b"it failed");
                proto::uint(out, 3, 2);
            });
        }
        proto::fixed32(&mut span, 16, 0x101);
        let mut bytes = Vec::with_capacity(span.len() + 4);
        proto::bytes(&mut bytes, 2, &span);
        let framed = bytes.len() - span.len();
        Model {
            bytes,
            // Behind the key and the length of the first field.
            ids_at: framed + 2,
            has_parent,
            times_at: framed + times_at,
            times_ns,
            service: u64::from(number) / 2,
        }
    }

    fn end(&mut self, place: usize, out: &mut Vec<Generated>) {
        let Waiting { spans, count } = &mut self.waiting[place];
        if *count == 0 {
            return;
        }
        let mut request = Vec::with_capacity(spans.len() + 256);
        proto::message(&mut request, 1, |out| {
            proto::message(out, 1, |out| {
                attribute(out, 1, "service.name", &format!("service-{place}"));
                attribute(out, 1, "service.instance.id", &format!("instance-{place}"));
            });
            proto::message(out, 2, |out| {
                proto::message(out, 1, |out| proto::bytes(out, 1, b"tracegen"));
                out.extend_from_slice(spans);
            });
        });
        out.push(Generated {
            request: request.into(),
            spans: u64::from(*count),
        });
        spans.clear();
        *count = 0;
    }
}

/// A `KeyValue` with a text.
fn attribute(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    proto::message(out, field, |out| {
        proto::bytes(out, 1, key.as_bytes());
        proto::message(out, 2, |out| proto::bytes(out, 1, value.as_bytes()));
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message;

    use super::*;

    fn made(shape: &Shape, traces: u64) -> Vec<Generated> {
        let mut generator = Generator::new(shape.clone(), 5);
        let mut out = Vec::new();
        for number in 0..traces {
            generator.trace(1_000_000_000 * number, &mut out);
        }
        generator.flush(&mut out);
        out
    }

    #[test]
    fn what_is_asked_for_is_made() {
        for whole_traces in [false, true] {
            let shape = Shape {
                errors_percent: 20.0,
                slow_percent: 10.0,
                batch_spans: 100,
                whole_traces,
                ..Shape::default()
            };
            let requests = made(&shape, 2000);
            assert_eq!(requests, made(&shape, 2000));
            let mut traces: HashMap<Vec<u8>, Vec<_>> = HashMap::new();
            for one in &requests {
                let request = ExportTraceServiceRequest::decode(&one.request[..]).unwrap();
                let resources = request.resource_spans.iter();
                let scopes = resources.flat_map(|resource| &resource.scope_spans);
                let spans: Vec<_> = scopes.flat_map(|scope| &scope.spans).cloned().collect();
                assert_eq!(spans.len() as u64, one.spans);
                assert!(one.spans <= 100 + u64::from(shape.spans));
                for span in spans {
                    traces.entry(span.trace_id.clone()).or_default().push(span);
                }
            }
            assert_eq!(traces.len(), 2000);
            let share = |count: usize| count as f64 / 20.0;
            let failed = traces.values().filter(|spans| {
                let failed =
                    |span: &opentelemetry_proto::tonic::trace::v1::Span| span.status.is_some();
                spans.iter().any(failed)
            });
            assert!((15.0..25.0).contains(&share(failed.count())));
            let slow = traces.values().filter(|spans| {
                let start = spans.iter().map(|span| span.start_time_unix_nano).min();
                let end = spans.iter().map(|span| span.end_time_unix_nano).max();
                end.unwrap_or(0) - start.unwrap_or(0) > 2_000_000_000
            });
            assert!((6.0..14.0).contains(&share(slow.count())));
            for spans in traces.values() {
                assert_eq!(spans.len(), 8);
                assert!(spans.iter().all(|span| span.attributes.len() == 12));
                let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
                assert_eq!(roots.count(), 1);
                let ids: Vec<_> = spans.iter().map(|span| &span.span_id).collect();
                let parents = spans.iter().map(|span| &span.parent_span_id);
                let mut parents = parents.filter(|id| !id.is_empty());
                assert!(parents.all(|id| ids.contains(&id)));
            }
        }
    }
}
