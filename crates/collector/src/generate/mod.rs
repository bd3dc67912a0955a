//! Traces that never happened, for load: services that call each other, as their SDKs would send
//! the spans.
//!
//! Everything comes from the seed, the number of a trace and the time, so that two runs send the
//! same.

mod model;
mod shape;

use std::collections::VecDeque;

use bytes::Bytes;
use otlp::write;
use telemetry::Ids;

use model::{Maker, Model, Stamp, percent};
pub use shape::{Latency, Shape};

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
    /// Spans that wait for their request, by process; all under the first for whole traces.
    waiting: Vec<Waiting>,
    /// Spans that come later, in the order of their times.
    late: VecDeque<Late>,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<u8>,
    count: u32,
    /// When the first of them came.
    since_ns: u64,
}

#[derive(Debug)]
struct Late {
    due_ns: u64,
    place: usize,
    span: Vec<u8>,
}

/// Traces that are made once; all others are copies of them.
const MODELS: usize = 512;

impl Generator {
    /// Two of the same shape and seed make the same requests.
    #[must_use]
    pub fn new(shape: Shape, seed: u64) -> Generator {
        let processes = if shape.whole_traces {
            1
        } else {
            shape.services.max(1) * shape.instances.max(1)
        };
        let mut random = Ids::new([seed, 2, 3, 4]);
        let mut maker = Maker {
            shape: &shape,
            random: &mut random,
        };
        Generator {
            models: (0..MODELS).map(|_| maker.trace()).collect(),
            waiting: (0..processes).map(|_| Waiting::default()).collect(),
            late: VecDeque::new(),
            random,
            shape,
        }
    }

    /// Adds a trace that began at `now_ns` (nanoseconds since the UNIX epoch); requests that are
    /// full go to `out`.
    pub fn trace(&mut self, now_ns: u64, out: &mut Vec<Generated>) {
        let draw = self.random.next_u64();
        // Every span has an identifier of its own, and so has its parent.
        let step = self.random.next_u64() | 1;
        let mut stamp = Stamp {
            trace_id: self.random.trace_id().0,
            span_id: self.random.next_u64(),
            parent_id: 0,
            begin_ns: now_ns,
        };
        let instances = u64::from(self.shape.instances.max(1));
        let instance = (draw >> 32) % instances;
        let models = std::mem::take(&mut self.models);
        for model in &models[draw as usize % MODELS] {
            (stamp.parent_id, stamp.span_id) = (stamp.span_id, stamp.span_id.wrapping_add(step));
            let process = u64::from(model.service) * instances + instance;
            let place = process as usize % self.waiting.len();
            if self.shape.late_percent > 0.0 && percent(&mut self.random) < self.shape.late_percent
            {
                let mut span = Vec::new();
                model.copy(&stamp, &mut self.random, &mut span);
                self.late.push_back(Late {
                    due_ns: now_ns + self.shape.late_by_ns,
                    place,
                    span,
                });
                continue;
            }
            let waiting = &mut self.waiting[place];
            model.copy(&stamp, &mut self.random, &mut waiting.spans);
            waiting.add(now_ns);
            if !self.shape.whole_traces && waiting.count >= self.shape.batch_spans {
                self.end(place, out);
            }
        }
        self.models = models;
        if self.shape.whole_traces && self.waiting[0].count >= self.shape.batch_spans {
            self.end(0, out);
        }
    }

    /// What is due by now: late spans, and requests that have waited long enough.
    pub fn due(&mut self, now_ns: u64, out: &mut Vec<Generated>) {
        while let Some(late) = self.late.pop_front_if(|late| late.due_ns <= now_ns) {
            let waiting = &mut self.waiting[late.place];
            waiting.spans.extend_from_slice(&late.span);
            waiting.add(now_ns);
            if waiting.count >= self.shape.batch_spans {
                self.end(late.place, out);
            }
        }
        for place in 0..self.waiting.len() {
            if self.waiting[place].since_ns + self.shape.batch_delay_ns <= now_ns {
                self.end(place, out);
            }
        }
    }

    /// When the last late span is due.
    #[must_use]
    pub fn last_due_ns(&self) -> Option<u64> {
        self.late.back().map(|late| late.due_ns)
    }

    /// What still waits becomes requests, but for spans that come later.
    pub fn flush(&mut self, out: &mut Vec<Generated>) {
        for place in 0..self.waiting.len() {
            self.end(place, out);
        }
    }

    fn end(&mut self, place: usize, out: &mut Vec<Generated>) {
        let instances = self.shape.instances.max(1) as usize;
        let (service, instance) = (place / instances, place % instances);
        let Waiting { spans, count, .. } = &mut self.waiting[place];
        if *count == 0 {
            return;
        }
        let mut request = Vec::with_capacity(spans.len() + 512);
        write::message(&mut request, 1, |out| {
            write::message(out, 1, |out| {
                write::text_value(out, 1, "service.name", &format!("service-{service}"));
                let id = format!("instance-{instance}-0123456789abcdef");
                write::text_value(out, 1, "service.instance.id", &id);
                write::text_value(out, 1, "telemetry.sdk.name", "opentelemetry");
                let pod = format!("service-{service}-6f7d8c9b5-x{instance}");
                write::text_value(out, 1, "k8s.pod.name", &pod);
            });
            write::message(out, 2, |out| {
                write::message(out, 1, |out| write::bytes(out, 1, b"tracegen"));
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

impl Waiting {
    fn add(&mut self, now_ns: u64) {
        if self.count == 0 {
            self.since_ns = now_ns;
        }
        self.count += 1;
    }
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
                latency: Latency::parse("50:100").unwrap(),
                unique_attributes: 1,
                attributes: 12,
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
                assert!(spans.iter().all(|span| span.attributes.len() == 13));
                let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
                assert_eq!(roots.count(), 1);
                let ids: Vec<_> = spans.iter().map(|span| &span.span_id).collect();
                let parents = spans.iter().map(|span| &span.parent_span_id);
                let mut parents = parents.filter(|id| !id.is_empty());
                assert!(parents.all(|id| ids.contains(&id)));
            }
        }
    }

    #[test]
    fn late_spans_come_later() {
        let shape = Shape {
            late_percent: 25.0,
            late_by_ns: 1_000,
            batch_delay_ns: u64::MAX / 2,
            ..Shape::default()
        };
        let mut generator = Generator::new(shape, 5);
        let mut out = Vec::new();
        let spans = |out: &mut Vec<Generated>| out.drain(..).map(|one| one.spans).sum::<u64>();
        for number in 0..1000 {
            generator.trace(number, &mut out);
        }
        generator.flush(&mut out);
        let at_once = spans(&mut out);
        assert!((5500..6500).contains(&at_once), "{at_once}");
        assert_eq!(generator.last_due_ns(), Some(1_999));
        generator.due(1_499, &mut out);
        generator.flush(&mut out);
        let half = spans(&mut out);
        assert!((800..1200).contains(&half), "{half}");
        generator.due(1_999, &mut out);
        generator.flush(&mut out);
        assert_eq!(at_once + half + spans(&mut out), 8000);
        assert_eq!(generator.last_due_ns(), None);
    }

    #[test]
    fn requests_do_not_wait_for_ever() {
        let mut generator = Generator::new(Shape::default(), 5);
        let mut out = Vec::new();
        generator.trace(7, &mut out);
        generator.due(7 + 4_999_999_999, &mut out);
        assert!(out.is_empty());
        generator.due(7 + 5_000_000_000, &mut out);
        assert_eq!(out.iter().map(|one| one.spans).sum::<u64>(), 8);
    }

    #[test]
    fn the_reference_load_has_its_size() {
        let requests = made(&Shape::default(), 8000);
        let bytes: usize = requests.iter().map(|one| one.request.len()).sum();
        let spans: u64 = requests.iter().map(|one| one.spans).sum();
        let bytes = bytes as f64 / spans as f64;
        assert!((445.0..470.0).contains(&bytes), "{bytes}");
    }
}
