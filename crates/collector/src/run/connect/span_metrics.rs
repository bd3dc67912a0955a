//! `span_metrics`: the metrics `calls`, `duration` and `events` of spans, for each resource.
//!
//! Spans are counted when their batch is taken. From time to time all series are handed on.

pub(super) mod durations;
mod exponential;
mod resources;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use export::clock::now_unix_ns;
use otlp::scan::{Attributes, Malformed, Span, span};
use otlp::tracestate::{THRESHOLD_MAX, threshold};
use otlp::view::View;

use self::resources::{Resource, Resources};
use super::attributes::{Attributed, Keys, Metric};
use super::flush::{Flusher, Gather, To};
use super::series::{Exemplar, Room, Shape};
use super::spans::check;
use super::{ConnectorDeps, StartConnector};
use crate::config::Signal;
use crate::config::components::connectors::span_metrics::SpanMetrics as Settings;
use crate::run::consume::{Consumer, Does, FanOut, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;

/// The scope of the metrics, as the Collector names it.
const SCOPE: &str = "spanmetricsconnector";
/// Data points of a request; it ends with the resource that has reached so many.
const REQUEST_POINTS: u64 = 8192;
/// The unit of exemplars where there are no durations: milliseconds.
const DEFAULT_UNIT_NS: u64 = 1_000_000;
/// `Resource.attributes`
const OF_RESOURCE: u32 = 1 << 3 | 2;

impl StartConnector for Settings {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        let to = To {
            next: FanOut::of(deps.next),
            signal: Signal::Metrics,
            account: Arc::clone(deps.account),
        };
        let gathered = Gathered::new(self, deps.instance_id, now_unix_ns());
        let interval = Duration::from_nanos(self.flush_interval_ns);
        let flusher = Flusher::start(deps.id, gathered, to, interval, deps.log);
        deps.parts.push(Arc::clone(&flusher) as _);
        Ok(vec![Arc::new(SpanMetrics {
            flusher,
            reads_events: self.events.is_some(),
        })])
    }
}

/// See the module.
struct SpanMetrics {
    flusher: Arc<Flusher<Gathered>>,
    reads_events: bool,
}

impl SpanMetrics {
    /// Counts a request that was checked.
    fn add(flusher: &Flusher<Gathered>, batch: &Batch) {
        let added = flusher.gathered().add(&batch.bytes, now_unix_ns());
        debug_assert!(added.is_ok(), "it was checked: {added:?}");
    }
}

impl Consumer for SpanMetrics {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if let Err(fault) = check(&batch.bytes, self.reads_events) {
            return refused(batch, Refusal::Malformed(fault.to_string()));
        }
        let flusher = Arc::clone(&self.flusher);
        Ok(Does::new(move || SpanMetrics::add(&flusher, &batch)))
    }
}

/// Counts so far.
struct Gathered {
    settings: Settings,
    attributed: Attributed,
    resources: Resources,
    room: Room,
    names: [String; 3],
    /// The end of the requests before, in nanoseconds of the UNIX epoch.
    last_ns: u64,
}

impl Gathered {
    fn new(settings: &Settings, instance_id: &str, now_ns: u64) -> Gathered {
        let name = |name: &str| match settings.namespace.as_str() {
            "" => name.to_owned(),
            namespace => format!("{namespace}.{name}"),
        };
        Gathered {
            attributed: Attributed::new(settings, instance_id),
            resources: Resources::new(settings),
            settings: settings.clone(),
            room: Room::default(),
            names: ["calls", "duration", "events"].map(name),
            last_ns: now_ns,
        }
    }

    /// Counts the spans of a request.
    fn add(&mut self, request: &[u8], now_ns: u64) -> Result<(), Malformed> {
        let request = View::request(Signal::Traces, request)?;
        let mut keys = Keys::new(&self.attributed);
        for message in request.all("resourceSpans") {
            let encoded = message
                .one("resource")
                .map_or(&b""[..], |one| one.encoded());
            let service = Attributes::new(encoded, OF_RESOURCE).get(b"service.name");
            // As in the Collector, a resource without a service is not counted.
            let Some(service) = service else { continue };
            keys.resource(encoded, service);
            let resource = self.resources.get(encoded, &mut self.room, now_ns);
            let mut counting = Counting {
                settings: &self.settings,
                keys: &mut keys,
                room: &mut self.room,
                resource,
                now_ns,
            };
            for scope in message.all("scopeSpans") {
                counting.keys.scope(scope.one("scope"));
                for one in scope.all("spans") {
                    counting.span(&span(one.encoded(), &mut ())?, &one);
                }
            }
        }
        Ok(())
    }

    /// Forgets what no span has come for.
    fn expire(&mut self, now_ns: u64) {
        let Gathered {
            settings,
            resources,
            room,
            ..
        } = self;
        if settings.is_delta {
            resources.clear(room);
        }
        resources.forget_evicted(room);
        let before = |expiration_ns: u64| now_ns.saturating_sub(expiration_ns);
        if settings.resource_expiration_ns > 0 {
            resources.expire(before(settings.resource_expiration_ns), room);
        }
        if settings.series_expiration_ns > 0 {
            let before_ns = before(settings.series_expiration_ns);
            resources.each(|resource| resource.expire(before_ns, room));
        }
    }
}

impl Gather for Gathered {
    fn requests(&mut self, now_ns: u64) -> Vec<(Vec<u8>, u64)> {
        let Gathered {
            settings,
            names,
            last_ns,
            ..
        } = self;
        let [calls, duration, events] = names;
        let shape = |name, unit| Shape {
            name,
            unit,
            is_delta: settings.is_delta,
            last_ns: *last_ns,
            now_ns,
        };
        let unit = settings.histogram.as_ref().map_or("", |one| one.unit);
        let shapes = [shape(calls, ""), shape(duration, unit), shape(events, "")];
        let mut requests = Vec::new();
        let (mut request, mut points) = (Vec::new(), 0);
        self.resources.each(|resource| {
            points += resource.write(SCOPE, &shapes, &mut request);
            if points >= REQUEST_POINTS {
                requests.push((std::mem::take(&mut request), std::mem::take(&mut points)));
            }
        });
        if points > 0 {
            requests.push((request, points));
        }
        self.room.exemplars = 0;
        self.expire(now_ns);
        self.last_ns = now_ns;
        requests
    }

    fn repeats(&self) -> bool {
        !self.settings.is_delta
    }
}

/// Counts the spans of one resource.
struct Counting<'g, 'k, 'd, 'a> {
    settings: &'g Settings,
    keys: &'k mut Keys<'d, 'a>,
    room: &'g mut Room,
    resource: &'g mut Resource,
    now_ns: u64,
}

impl<'a> Counting<'_, '_, '_, 'a> {
    fn span(&mut self, span: &Span<'a>, message: &View<'a>) {
        let threshold = threshold(span.trace_state);
        let times = threshold.map_or(1, |threshold| times(threshold, span.span_id));
        self.keys.span(span, threshold.is_some());
        let (settings, now_ns) = (self.settings, self.now_ns);
        let elapsed_ns = span.end_ns.saturating_sub(span.start_ns) as f64;
        let unit_ns = settings.histogram.as_ref().map(|one| one.unit_ns);
        let duration = elapsed_ns / unit_ns.unwrap_or(DEFAULT_UNIT_NS) as f64;
        let has_id = span.trace_id != [0; 16];
        let exemplars_max = settings.exemplars_max.filter(|_| has_id).unwrap_or(0);
        let exemplar = || Exemplar::new(span, duration);
        let (series_max, room) = (settings.series_max, &mut *self.room);
        let key = self.keys.of_span(Metric::Calls);
        let calls = &mut self.resource.calls;
        if let Some(series) = calls.series(key, series_max, room, now_ns) {
            series.value.add(times);
            series.example(exemplars_max, room, exemplar);
        }
        if let Some(durations) = &mut self.resource.durations {
            let key = self.keys.of_span(Metric::Duration);
            if let Some(series) = durations.series(key, series_max, room, now_ns) {
                series.value.add(duration, times);
                series.example(exemplars_max, room, exemplar);
            }
        }
        if settings.events.is_none() {
            return;
        }
        for one in message.all("events") {
            let key = self.keys.of_event(one.encoded());
            let events = &mut self.resource.events;
            if let Some(series) = events.series(key, series_max, room, now_ns) {
                series.value.add(times);
                series.example(exemplars_max, room, exemplar);
            }
        }
    }
}

/// How many spans one stands for that was sampled with a threshold (OpenTelemetry: probability
/// sampling), rounded up as often as the share says: by the span's identifier, which is random.
fn times(threshold: u64, span_id: &[u8]) -> u64 {
    let kept = THRESHOLD_MAX.saturating_sub(threshold).max(1);
    let (whole, rest) = (THRESHOLD_MAX / kept, THRESHOLD_MAX % kept);
    let random = span_id
        .iter()
        .fold(0, |all, byte| all << 8 | u64::from(*byte));
    whole + u64::from(random % kept < rest)
}
