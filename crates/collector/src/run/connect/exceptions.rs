//! `exceptions`: the events of spans that are exceptions, counted or as log records.
//!
//! Counts are cumulative. They are handed on soon after spans have come; log records at once.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use export::clock::now_unix_ns;
use otlp::scan::{Any, Attributes, Event, Malformed, Span, events, span};
use otlp::view::View;
use otlp::write;

use super::attributes::{Attributed, Keys};
use super::flush::{Flusher, Gather, To};
use super::series::{Count, Exemplar, Room, Shape, Table, entry};
use super::spans::check;
use super::{ConnectorDeps, Make, Maker, StartConnector};
use crate::config::Signal;
use crate::config::components::connectors::exceptions::Exceptions as Settings;
use crate::run::consume::{Consumer, Does, FanOut, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;

/// The name of events that are exceptions.
const EXCEPTION: &[u8] = b"exception";
const STACKTRACE: &[u8] = b"exception.stacktrace";
/// The name of the metric, and its scope, as the Collector names them.
const METRIC: &str = "exceptions";
const SCOPE: &str = "exceptionsconnector";
/// `Resource.attributes`
const OF_RESOURCE: u32 = 1 << 3 | 2;
/// `LogRecord.attributes`
const OF_RECORD: u32 = 6;
/// `SEVERITY_NUMBER_ERROR`
const ERROR: u64 = 17;

/// From the first spans to the request of metrics that counts them.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Exemplars of a data point.
const EXEMPLARS_MAX: usize = 1000;
/// Bytes of log records that are made of one request: one span may have many exceptions, and each
/// record has the span's attributes.
const LOGS_BYTES_MAX: usize = 128 << 20;

impl StartConnector for Settings {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        let (next, account) = (FanOut::of(deps.next), Arc::clone(deps.account));
        let attributed = Attributed::plain(&self.dimensions);
        if deps.gives == Signal::Logs {
            return Ok(vec![Arc::new(Maker {
                make: Logs { attributed },
                signal: Signal::Logs,
                account,
                next,
            })]);
        }
        let to = To {
            next,
            signal: Signal::Metrics,
            account,
        };
        let gathered = Counted::new(attributed, self.has_exemplars);
        let flusher = Flusher::start(deps.id, gathered, to, FLUSH_INTERVAL, deps.log);
        deps.parts.push(Arc::clone(&flusher) as _);
        Ok(vec![Arc::new(Counter { flusher })])
    }
}

/// An exception, and what is around it.
struct Exception<'a, 's> {
    span: &'s Span<'a>,
    event: Event<'a>,
    /// The scope, encoded, and which one of the request it is.
    scope: &'a [u8],
    place: usize,
    /// The attributes that the settings ask for, as a `KeyValueList`.
    attributes: &'s [u8],
}

/// Shows all exceptions of a request that was checked. As in the Collector, a resource without a
/// service has none.
///
/// # Errors
/// The request is malformed, or what `see` says.
fn each(
    request: &[u8],
    attributed: &Attributed,
    mut see: impl FnMut(&Exception<'_, '_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut keys = Keys::new(attributed);
    let mut place = 0;
    for resource in View::request(Signal::Traces, request)?.all("resourceSpans") {
        let around = encoded(&resource, "resource");
        let service = Attributes::new(around, OF_RESOURCE).get(b"service.name");
        let Some(service) = service else { continue };
        keys.resource(around, service);
        for scope_spans in resource.all("scopeSpans") {
            let scope = encoded(&scope_spans, "scope");
            place += 1;
            for message in scope_spans.all("spans") {
                let span = span(message.encoded(), &mut ())?;
                let exceptions = events(&span).filter(|event| event.name == EXCEPTION);
                for (index, event) in exceptions.enumerate() {
                    if index == 0 {
                        keys.span(&span, false);
                    }
                    see(&Exception {
                        span: &span,
                        event,
                        scope,
                        place,
                        attributes: keys.of_event(event.message),
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// A message within another, as it came; empty if there is none.
fn encoded<'a>(view: &View<'a>, name: &str) -> &'a [u8] {
    view.one(name).map_or(b"", |one| one.encoded())
}

/// Counts the exceptions of batches that it takes.
struct Counter {
    flusher: Arc<Flusher<Counted>>,
}

impl Consumer for Counter {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if let Err(fault) = check(&batch.bytes, true) {
            return refused(batch, Refusal::Malformed(fault.to_string()));
        }
        let flusher = Arc::clone(&self.flusher);
        Ok(Does::new(move || {
            let added = flusher.gathered().add(&batch.bytes, now_unix_ns());
            debug_assert!(added.is_ok(), "it was checked: {added:?}");
        }))
    }
}

/// Counts so far.
struct Counted {
    attributed: Attributed,
    exemplars_max: usize,
    counts: Table<Count>,
    room: Room,
    /// Spans have come since the last request.
    is_new: bool,
    /// The time of the last request, in nanoseconds of the UNIX epoch.
    last_ns: u64,
}

impl Counted {
    fn new(attributed: Attributed, has_exemplars: bool) -> Counted {
        Counted {
            attributed,
            exemplars_max: if has_exemplars { EXEMPLARS_MAX } else { 0 },
            counts: Table::new(Count::default()),
            room: Room::default(),
            is_new: false,
            last_ns: 0,
        }
    }

    fn add(&mut self, request: &[u8], now_ns: u64) -> Result<(), Malformed> {
        self.is_new = true;
        let (room, counts) = (&mut self.room, &mut self.counts);
        each(request, &self.attributed, |exception| {
            let Some(series) = counts.series(exception.attributes, 0, room, now_ns) else {
                return Ok(());
            };
            series.value.add(1);
            let (span, value) = (exception.span, series.value.get() as f64);
            if span.trace_id != [0; 16] {
                series.example(self.exemplars_max, room, || Exemplar::new(span, value));
            }
            Ok(())
        })
    }
}

impl Gather for Counted {
    /// All counts, as soon as there are spans: a count that is not told again may be forgotten by
    /// who gets it.
    fn requests(&mut self, now_ns: u64) -> Vec<(Vec<u8>, u64)> {
        let shape = Shape {
            name: METRIC,
            unit: "",
            is_delta: false,
            last_ns: std::mem::replace(&mut self.last_ns, now_ns),
            now_ns,
        };
        let (mut request, mut points) = (Vec::new(), 0);
        if std::mem::take(&mut self.is_new) {
            write::message(&mut request, 1, |out| {
                write::message(out, 2, |out| {
                    write::message(out, 1, |out| write::bytes(out, 1, SCOPE.as_bytes()));
                    points = self.counts.write(&shape, out);
                });
            });
        }
        self.room.exemplars = 0;
        Vec::from_iter((points > 0).then_some((request, points)))
    }

    fn repeats(&self) -> bool {
        self.is_new
    }
}

/// Makes log records of exceptions.
struct Logs {
    attributed: Attributed,
}

impl Make for Logs {
    fn make(&self, batch: &Batch) -> Result<Option<(Vec<u8>, u64)>, String> {
        let made = check(&batch.bytes, true).and_then(|()| self.logs(&batch.bytes));
        let (request, records) = made.map_err(|fault| fault.to_string())?;
        Ok((records > 0).then_some((request, records)))
    }
}

impl Logs {
    /// A request of log records, and how many there are.
    fn logs(&self, request: &[u8]) -> Result<(Vec<u8>, u64), Malformed> {
        let (mut out, mut records) = (Vec::new(), 0);
        let mut last = None;
        // The `ScopeLogs` of the last scope.
        let mut logs = Vec::new();
        each(request, &self.attributed, |exception| {
            if last != Some(exception.place) {
                end_scope(&mut logs, &mut out);
                write::bytes(&mut logs, 1, exception.scope);
                last = Some(exception.place);
            }
            write::message(&mut logs, 2, |out| exception.record(out));
            records += 1;
            if out.len() + logs.len() > LOGS_BYTES_MAX {
                return Err(Malformed::TooLarge);
            }
            Ok(())
        })?;
        end_scope(&mut logs, &mut out);
        Ok((out, records))
    }
}

/// Appends a `ResourceLogs`, as in the Collector without a resource, if there are log records.
fn end_scope(logs: &mut Vec<u8>, out: &mut Vec<u8>) {
    if !logs.is_empty() {
        write::message(out, 1, |out| write::bytes(out, 2, logs));
        logs.clear();
    }
}

impl Exception<'_, '_> {
    /// Appends a `LogRecord`: the attributes of the span, and those of the exception.
    fn record(&self, out: &mut Vec<u8>) {
        let span = self.span;
        write::fixed64(out, 1, self.event.time_ns);
        write::uint(out, 2, ERROR);
        write::bytes(out, 3, b"ERROR");
        write::bytes(out, 9, &span.trace_id);
        write::bytes(out, 10, span.span_id);
        let own = || Attributes::of_map(self.attributes).filter(|(key, _)| *key != STACKTRACE);
        let is_own = |key: &[u8]| key == STACKTRACE || own().any(|(own, _)| own == key);
        let of_span = span.attributes().filter(|(key, _)| !is_own(key));
        for (key, value) in of_span.chain(own()) {
            entry(out, OF_RECORD, key, value);
        }
        let stacktrace = match self.event.attributes().get(STACKTRACE) {
            Some(Any::Text(text)) => text,
            _ => b"",
        };
        write::key_value(out, OF_RECORD, STACKTRACE, |out| {
            write::bytes(out, 1, stacktrace)
        });
    }
}
