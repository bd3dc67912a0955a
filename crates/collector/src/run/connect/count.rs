//! `count`: metrics that count spans, events, metrics, data points or log records.
//!
//! Each resource of a request becomes a resource of a request of metrics, with a sum for each metric
//! that has counted something. Sums are deltas, from the first to the last time of the records.

mod rule;
mod tally;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use export::clock::now_unix_ns;
use otlp::scan::{Around, Keys, PointKind, Slots, Span, Spot as _};
use otlp::scan::{event, log, metric, metric_frame, point, span};
use otlp::view::View;
use otlp::write;
use ottl::{Failure, Record, Schemas, Subject, Told};

use super::{ConnectorDeps, Make, Maker, StartConnector};
use crate::config::Signal;
use crate::config::components::connectors::count::Count as Settings;
use crate::run::consume::{Consumer, FanOut};
use crate::run::data::Batch;
use crate::run::process::around::AroundBytes;
use crate::run::process::client::Clients;
use crate::run::process::failures::Fault;
use crate::run::process::outside::OUTSIDE;
use rule::{Compiler, Rule, Seen};
use tally::Tallies;

/// The scope of the metrics, as the Collector names it.
const SCOPE: &str =
    "github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector";

/// Field keys of attributes: of a span, an event, a scope, a resource and a log record.
const OF_SPAN: u32 = 9 << 3 | 2;
const OF_EVENT: u32 = 3 << 3 | 2;
const OF_SCOPE: u32 = 3 << 3 | 2;
const OF_RESOURCE: u32 = 1 << 3 | 2;
const OF_LOG: u32 = 6 << 3 | 2;

/// The field key of the attributes of data points.
fn of_point(kind: PointKind) -> u32 {
    let field = match kind {
        PointKind::Histogram => 9,
        PointKind::Exponential => 1,
        PointKind::Number | PointKind::Summary => 7,
    };
    field << 3 | 2
}

/// The counting, without a place between pipelines.
pub(super) struct Rules {
    takes: Signal,
    /// Of spans, metrics or log records.
    outer: Vec<Rule>,
    /// Of what is in them: events or data points.
    inner: Vec<Rule>,
    keys: Keys,
    clients: Clients,
}

/// A request of metrics, and its data points.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub request: Vec<u8>,
    pub points: u64,
}

impl StartConnector for Settings {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        Ok(vec![Arc::new(Maker {
            make: Rules::new(self, deps.takes)?,
            signal: Signal::Metrics,
            account: Arc::clone(deps.account),
            // The pipelines get the same metrics.
            next: FanOut::of(deps.next),
        })])
    }
}

impl Make for Rules {
    fn make(&self, batch: &Batch) -> Result<Option<(Vec<u8>, u64)>, String> {
        let told = self.clients.told(batch.origin.as_deref());
        let counted = self.count(&batch.bytes, told.as_ref());
        let Counted { request, points } = counted.map_err(|fault| fault.to_string())?;
        Ok((points > 0).then_some((request, points)))
    }
}

impl Rules {
    /// Compiles what counts records of a signal.
    ///
    /// # Errors
    /// Which condition cannot be read, and why.
    pub fn new(settings: &Settings, takes: Signal) -> Result<Rules, String> {
        let mut compiler = Compiler::default();
        let [outer, inner] = match takes {
            Signal::Traces => [&settings.spans[..], &settings.span_events],
            Signal::Metrics => [&settings.metrics[..], &settings.data_points],
            Signal::Logs => [&settings.logs[..], &[]],
        };
        Ok(Rules {
            takes,
            outer: compiler.rules(outer)?,
            inner: compiler.rules(inner)?,
            keys: compiler.keys,
            clients: compiler.clients,
        })
    }

    /// Counts the records of a request. `client` is what is known of its sender.
    ///
    /// # Errors
    /// It is malformed, or a condition failed.
    pub fn count(&self, request: &[u8], client: Option<&Told>) -> Result<Counted, Fault> {
        let request = View::request(self.takes, request)?;
        let mut walk = Walk {
            rules: self,
            client,
            slots: Slots::new(&self.keys),
            around_bytes: AroundBytes::default(),
            now_ns: now_unix_ns(),
        };
        let mut counted = Counted::default();
        let (resources, _, _) = names(self.takes);
        for resource in request.all(resources) {
            walk.resource(&resource, &mut counted)?;
        }
        Ok(counted)
    }
}

/// Fields of a request, of a resource and of a scope.
fn names(signal: Signal) -> (&'static str, &'static str, &'static str) {
    match signal {
        Signal::Traces => ("resourceSpans", "scopeSpans", "spans"),
        Signal::Metrics => ("resourceMetrics", "scopeMetrics", "metrics"),
        Signal::Logs => ("resourceLogs", "scopeLogs", "logRecords"),
    }
}

/// A walk over a request.
struct Walk<'r, 'a> {
    rules: &'r Rules,
    client: Option<&'r Told>,
    slots: Slots<'a, 'r>,
    around_bytes: AroundBytes,
    /// The time of what has none.
    now_ns: u64,
}

/// The messages around a record.
#[derive(Clone, Copy)]
struct Place<'a> {
    around: Around<'a>,
    schemas: Schemas<'a>,
}

impl<'a> Place<'a> {
    /// A record there, by its message and the field key of its attributes.
    fn seen(&self, record: &'a [u8], attributes: u32) -> Seen<'a> {
        Seen([
            (record, attributes),
            (self.around.scope, OF_SCOPE),
            (self.around.resource, OF_RESOURCE),
        ])
    }

    fn bytes(&self) -> usize {
        let Place { around, schemas } = self;
        around.resource.len() + around.scope.len() + schemas.resource.len() + schemas.scope.len()
    }
}

/// Counts of one resource.
struct Counts<'r> {
    outer: Tallies<'r>,
    inner: Tallies<'r>,
}

impl<'a> Walk<'_, 'a> {
    fn resource(&mut self, message: &View<'a>, counted: &mut Counted) -> Result<(), Fault> {
        let mut counts = Counts {
            outer: Tallies::new(&self.rules.outer),
            inner: Tallies::new(&self.rules.inner),
        };
        let (_, scopes, records) = names(self.rules.takes);
        let resource = message.one("resource");
        for scope_message in message.all(scopes) {
            let scope = scope_message.one("scope");
            let place = Place {
                around: Around {
                    resource: resource.map_or(b"", |resource| resource.encoded()),
                    scope: scope.map_or(b"", |scope| scope.encoded()),
                },
                schemas: Schemas {
                    resource: message.bytes("schemaUrl"),
                    scope: scope_message.bytes("schemaUrl"),
                },
            };
            for record in scope_message.all(records) {
                self.around_bytes.add(place.bytes())?;
                match self.rules.takes {
                    Signal::Traces => self.span(&record, place, &mut counts)?,
                    Signal::Metrics => self.metric(&record, place, &mut counts)?,
                    Signal::Logs => self.log(&record, place, &mut counts)?,
                }
            }
        }
        if counts.outer.is_empty() && counts.inner.is_empty() {
            return Ok(());
        }
        let out = &mut counted.request;
        write::message(out, 1, |out| {
            write::message(out, 1, |out| {
                let attributes = resource.into_iter().flat_map(|one| one.all("attributes"));
                attributes.for_each(|one| write::bytes(out, 1, one.encoded()));
            });
            write::message(out, 2, |out| {
                write::message(out, 1, |out| write::bytes(out, 1, SCOPE.as_bytes()));
                counted.points += counts.outer.write(self.now_ns, out);
                counted.points += counts.inner.write(self.now_ns, out);
            });
        });
        Ok(())
    }

    fn span(
        &mut self,
        message: &View<'a>,
        place: Place<'a>,
        counts: &mut Counts<'_>,
    ) -> Result<(), Fault> {
        self.slots.clear();
        let span = span(message.encoded(), &mut self.slots)?;
        counts.outer.see(span.start_ns);
        counts.outer.see(span.end_ns);
        let subject = subject(&span, &self.slots, place, self.client);
        let seen = place.seen(message.encoded(), OF_SPAN);
        let is_true = |rule: &Rule| rule.is_true(&subject);
        counts.outer.add(&seen, is_true)?;
        if self.rules.inner.is_empty() {
            return Ok(());
        }
        let bytes = place.bytes() + message.encoded().len();
        for (index, one) in message.all("events").enumerate() {
            self.around_bytes.add(bytes)?;
            let event = event(one.encoded());
            counts.inner.see(event.time_ns);
            let subject = Subject {
                event: Some((event, index)),
                ..subject
            };
            let seen = place.seen(one.encoded(), OF_EVENT);
            counts.inner.add(&seen, |rule| rule.is_true(&subject))?;
        }
        Ok(())
    }

    fn metric(
        &mut self,
        message: &View<'a>,
        place: Place<'a>,
        counts: &mut Counts<'_>,
    ) -> Result<(), Fault> {
        let metric = metric(message.encoded())?;
        if self.rules.outer.iter().any(Rule::has_conditions) {
            metric.check_points()?;
        }
        // A metric has no attributes of its own.
        let seen = place.seen(b"", 0);
        let record = Record::Metric(&metric);
        counts
            .outer
            .add(&seen, |rule| self.is_true(rule, place, record))?;
        let Some(kind) = metric.kind else {
            return Ok(());
        };
        // Conditions on data points read of their metric what is not a data point.
        let mut frame = Vec::new();
        let has_conditions = self.rules.inner.iter().any(Rule::has_conditions);
        if has_conditions {
            metric_frame(message.encoded(), &mut frame)?;
        }
        let frame = otlp::scan::metric(&frame)?;
        for message in metric.point_messages() {
            self.around_bytes.add(place.bytes() + frame.message.len())?;
            let point = point(kind.point(), message)?;
            counts.inner.see(point.time_ns);
            let seen = place.seen(message, of_point(kind.point()));
            let record = Record::Point(&frame, &point);
            counts
                .inner
                .add(&seen, |rule| self.is_true(rule, place, record))?;
        }
        Ok(())
    }

    fn log(
        &mut self,
        message: &View<'a>,
        place: Place<'a>,
        counts: &mut Counts<'_>,
    ) -> Result<(), Fault> {
        let log = log(message.encoded())?;
        counts.outer.see(log.time_ns);
        let seen = place.seen(message.encoded(), OF_LOG);
        let record = Record::Log(&log);
        counts
            .outer
            .add(&seen, |rule| self.is_true(rule, place, record))
    }

    /// Whether a rule counts what is no span.
    fn is_true(
        &self,
        rule: &Rule,
        place: Place<'_>,
        record: Record<'_, '_>,
    ) -> Result<bool, Failure> {
        if !rule.has_conditions() {
            return Ok(true);
        }
        let no_span = Span::new(b"", [0; 16]);
        let no_slots = Slots::new(&self.rules.keys);
        let subject = subject(&no_span, &no_slots, place, self.client);
        rule.is_true(&Subject { record, ..subject })
    }
}

fn subject<'a, 's, 'k>(
    span: &'s Span<'a>,
    slots: &'s Slots<'a, 'k>,
    place: Place<'a>,
    client: Option<&'a Told>,
) -> Subject<'a, 's, 'k> {
    Subject {
        span,
        slots: Some(slots),
        around: place.around,
        schemas: place.schemas,
        event: None,
        record: Record::None,
        cache: b"",
        client,
        outside: OUTSIDE,
    }
}
