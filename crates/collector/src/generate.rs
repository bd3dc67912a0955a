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
    /// Spans that wait for their request, by service; all under the first for whole traces.
    waiting: Vec<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<u8>,
    count: u32,
}

const KINDS: [u64; 3] = [2, 3, 1];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
/// Milliseconds that a trace takes at most where it is not slow.
const FAST_MS: u64 = 400;

impl Generator {
    /// Two of the same shape and seed make the same requests.
    #[must_use]
    pub fn new(shape: Shape, seed: u64) -> Generator {
        let services = match shape.whole_traces {
            true => 1,
            false => shape.services.max(1),
        };
        Generator {
            shape,
            random: Ids::new([seed, 2, 3, 4]),
            waiting: (0..services).map(|_| Waiting::default()).collect(),
        }
    }

    /// Adds a trace that began at `now_ns` (nanoseconds since the UNIX epoch); requests that are full go to `out`.
    pub fn trace(&mut self, now_ns: u64, out: &mut Vec<Generated>) {
        let trace_id = self.random.trace_id().0;
        let draws = [self.percent(), self.percent()];
        let (failed, slow) = (
            draws[0] < self.shape.errors_percent,
            draws[1] < self.shape.slow_percent,
        );
        let lasts_ms = match slow {
            true => self.shape.slow_ms + 1 + self.random.next_u64() % 1000,
            false => 1 + self.random.next_u64() % FAST_MS.min(self.shape.slow_ms.max(2) - 1),
        };
        let first_service = self.random.next_u64();
        let mut parent: Option<[u8; 8]> = None;
        let spans = self.shape.spans.max(1);
        for number in 0..spans {
            let span_id = self.random.span_id().0;
            let service = (first_service.wrapping_add(u64::from(number) / 2))
                % u64::from(self.shape.services.max(1));
            // Each is within the one before it.
            let inset_ns = lasts_ms * 1_000_000 / u64::from(2 * spans + 1) * u64::from(number);
            let times = (now_ns + inset_ns, now_ns + lasts_ms * 1_000_000 - inset_ns);
            let is_failed = failed && number + 1 == spans;
            let span = self.span(&trace_id, &span_id, parent, (number, times, is_failed));
            self.put(service, &span, out);
            parent = Some(span_id);
        }
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

    fn span(
        &mut self,
        trace_id: &[u8; 16],
        span_id: &[u8; 8],
        parent: Option<[u8; 8]>,
        (number, (start_ns, end_ns), failed): (u32, (u64, u64), bool),
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        proto::bytes(&mut out, 1, trace_id);
        proto::bytes(&mut out, 2, span_id);
        if let Some(parent) = parent {
            proto::bytes(&mut out, 4, &parent);
        }
        let method = METHODS[self.random.next_u64() as usize % METHODS.len()];
        let name = format!("{method} /resource/{}", number % 16);
        proto::bytes(&mut out, 5, name.as_bytes());
        proto::uint(&mut out, 6, KINDS[number as usize % KINDS.len()]);
        proto::fixed64(&mut out, 7, start_ns);
        proto::fixed64(&mut out, 8, end_ns.max(start_ns));
        attribute(&mut out, 9, "http.request.method", method);
        let status = if failed { "500" } else { "200" };
        attribute(&mut out, 9, "http.response.status_code", status);
        let bytes = self.shape.attribute_bytes as usize;
        for place in 0..self.shape.attributes {
            let random = self.random.next_u64() % 1000;
            let mut value = format!("value-{random}-{place}");
            while value.len() < bytes {
                value.push('x');
            }
            value.truncate(bytes.max(1));
            attribute(&mut out, 9, &format!("attribute.{place}"), &value);
        }
        if failed {
            proto::message(&mut out, 15, |out| {
                proto::bytes(out, 2, b"it failed");
                proto::uint(out, 3, 2);
            });
        }
        proto::fixed32(&mut out, 16, 0x101);
        out
    }

    fn put(&mut self, service: u64, span: &[u8], out: &mut Vec<Generated>) {
        let place = service as usize % self.waiting.len();
        proto::bytes(&mut self.waiting[place].spans, 2, span);
        self.waiting[place].count += 1;
        if !self.shape.whole_traces && self.waiting[place].count >= self.shape.batch_spans {
            self.end(place, out);
        }
    }

    fn end(&mut self, place: usize, out: &mut Vec<Generated>) {
        let Waiting { spans, count } = std::mem::take(&mut self.waiting[place]);
        if count == 0 {
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
                out.extend_from_slice(&spans);
            });
        });
        out.push(Generated {
            request: request.into(),
            spans: count.into(),
        });
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
            }
        }
    }
}
