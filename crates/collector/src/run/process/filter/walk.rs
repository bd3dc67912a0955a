//! The walk over a request.

use otlp::scan::{
    Around, Malformed, Metric, Slots, Span, Spot, event, log, metric, metric_frame, point, span,
};
use otlp::{Signal, count};
use ottl::{Context, Record, Schemas, Subject, Told};

use super::super::around::AroundBytes;
use super::super::edit::{
    FIRST, Fields, List, Outcome, SCHEMA_URL, SECOND, edit_data, edit_fields, joined, last_bytes,
};
use super::super::failures::Fault;
use super::super::outside::OUTSIDE;
use super::{Rules, SignalRules};

/// `Span.events`
const EVENTS: u32 = 11 << 3 | 2;

/// Writes what a request becomes, and tells how many records are dropped.
///
/// # Errors
/// The request is malformed, or a condition failed whose failures are to be propagated.
pub fn walk(
    rules: &Rules,
    signal: Signal,
    client: Option<&Told>,
    request: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Outcome, u64), Fault> {
    let mut walk = Walk {
        all: rules,
        rules: rules.of(signal),
        signal,
        client,
        schemas: Schemas::default(),
        slots: Slots::new(&rules.keys),
        list: List::default(),
        frame: Vec::new(),
        dropped: 0,
        around_bytes: AroundBytes::default(),
        fault: None,
    };
    let outcome = edit_fields(request, FIRST, out, &mut |message, out| {
        walk.resource(message, out)
    });
    match walk.fault {
        Some(fault) => Err(fault),
        None => Ok((outcome?, walk.dropped)),
    }
}

struct Walk<'r, 'a> {
    all: &'r Rules,
    rules: &'r SignalRules,
    signal: Signal,
    client: Option<&'r Told>,
    schemas: Schemas<'a>,
    slots: Slots<'a, 'r>,
    list: List<'a>,
    /// A metric without its data points; kept for its memory.
    frame: Vec<u8>,
    dropped: u64,
    around_bytes: AroundBytes,
    /// Why the walk ended, where no message is malformed.
    fault: Option<Fault>,
}

impl<'a> Walk<'_, 'a> {
    fn resource(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        let resource = joined(message, FIRST)?.unwrap_or_default();
        self.schemas = Schemas {
            resource: self.schema(message)?,
            scope: b"",
        };
        let around = Around {
            resource: &resource,
            scope: b"",
        };
        let is_dropped = if self.rules.has(Context::Resource) {
            self.is_true_around(Context::Resource, around)?
        } else {
            !self.rules.kept.keeps_resource(&resource)
        };
        if is_dropped {
            for scope in inner(message) {
                self.drop_scope(scope)?;
            }
            return Ok(Outcome::Gone);
        }
        if !self.rules.looks_within(Context::Resource) {
            return Ok(emptied(Outcome::Same, message));
        }
        let outcome = edit_fields(message, SECOND, out, &mut |scope, out| {
            self.scope(&resource, scope, out)
        })?;
        Ok(emptied(outcome, message))
    }

    fn scope(
        &mut self,
        resource: &[u8],
        message: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let scope = joined(message, FIRST)?.unwrap_or_default();
        self.schemas.scope = self.schema(message)?;
        let around = Around {
            resource,
            scope: &scope,
        };
        if self.rules.has(Context::Scope) && self.is_true_around(Context::Scope, around)? {
            self.drop_scope(message)?;
            return Ok(Outcome::Gone);
        }
        if !self.rules.looks_within(Context::Scope) {
            return Ok(emptied(Outcome::Same, message));
        }
        let outcome = edit_fields(message, SECOND, out, &mut |record, out| {
            self.count_around(around.resource.len() + around.scope.len())?;
            match self.signal {
                Signal::Traces => self.span(around, record, out),
                Signal::Metrics => self.metric(around, record, out),
                Signal::Logs => self.log(around, record),
            }
        })?;
        Ok(emptied(outcome, message))
    }

    /// Counts the records of a scope that is dropped.
    fn drop_scope(&mut self, scope: &[u8]) -> Result<(), Malformed> {
        for record in inner(scope) {
            self.dropped += match self.signal {
                Signal::Traces | Signal::Logs => 1,
                Signal::Metrics => count::points(record)?,
            };
        }
        Ok(())
    }

    /// The `schema_url` of a message; empty if no condition reads it.
    fn schema(&self, message: &'a [u8]) -> Result<&'a [u8], Malformed> {
        if !self.rules.reads_schemas {
            return Ok(b"");
        }
        let text = last_bytes(message, SCHEMA_URL << 3 | 2)?;
        Ok(text.unwrap_or_default())
    }

    fn span(
        &mut self,
        around: Around<'_>,
        message: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        self.slots.clear();
        let span = span(message, &mut self.slots)?;
        let is_dropped = if self.rules.has(Context::Span) {
            let subject = subject(&span, Some(&self.slots), around, self.client, self.schemas);
            let outcome = self.is_true(Context::Span, &subject);
            self.settled(outcome)?
        } else {
            let kept = &self.rules.kept;
            !kept.keeps_span(around, message, &mut self.list)?
        };
        if is_dropped {
            self.dropped += 1;
            return Ok(Outcome::Gone);
        }
        if !self.rules.has(Context::SpanEvent) || !span.has_events {
            return Ok(Outcome::Same);
        }
        let mut index = 0;
        let bytes = around.resource.len() + around.scope.len() + message.len();
        let outcome = edit_fields(message, EVENTS, out, &mut |bytes_of_event, _| {
            self.count_around(bytes)?;
            let mut subject = subject(&span, Some(&self.slots), around, self.client, self.schemas);
            subject.event = Some((event(bytes_of_event), index));
            let outcome = self.is_true(Context::SpanEvent, &subject);
            index += 1;
            Ok(if self.settled(outcome)? {
                Outcome::Gone
            } else {
                Outcome::Same
            })
        })?;
        // A span stays without its events.
        Ok(match outcome {
            Outcome::Gone => Outcome::Changed,
            outcome => outcome,
        })
    }

    fn metric(
        &mut self,
        around: Around<'_>,
        message: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let view = metric(message)?;
        let is_dropped = if self.rules.has(Context::Metric) {
            view.check_points()?;
            self.is_true_of(Context::Metric, around, Record::Metric(&view))?
        } else {
            !self.rules.kept.keeps_metric(&view)
        };
        if is_dropped {
            self.dropped += count::points(message)?;
            return Ok(Outcome::Gone);
        }
        if !self.rules.has(Context::DataPoint) {
            return Ok(Outcome::Same);
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        metric_frame(message, &mut frame)?;
        let outcome = self.points(around, message, &metric(&frame)?, out)?;
        self.frame = frame;
        // A metric without data points goes as well.
        let is_empty = view.kind.is_some() && view.point_messages().next().is_none();
        Ok(if outcome == Outcome::Same && is_empty {
            Outcome::Gone
        } else {
            outcome
        })
    }

    fn points(
        &mut self,
        around: Around<'_>,
        message: &[u8],
        frame: &Metric<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let bytes = around.resource.len() + around.scope.len() + frame.message.len();
        edit_data(message, out, &mut |kind, message, _| {
            self.count_around(bytes)?;
            let view = point(kind.point(), message)?;
            let record = Record::Point(frame, &view);
            Ok(if self.is_true_of(Context::DataPoint, around, record)? {
                self.dropped += 1;
                Outcome::Gone
            } else {
                Outcome::Same
            })
        })
    }

    fn log(&mut self, around: Around<'_>, message: &'a [u8]) -> Result<Outcome, Malformed> {
        let view = log(message)?;
        let is_dropped = if self.rules.has(Context::Log) {
            self.is_true_of(Context::Log, around, Record::Log(&view))?
        } else {
            !self.rules.kept.keeps_log(around.resource, &view)
        };
        Ok(if is_dropped {
            self.dropped += 1;
            Outcome::Gone
        } else {
            Outcome::Same
        })
    }

    fn is_true_around(&mut self, context: Context, around: Around<'_>) -> Result<bool, Malformed> {
        if context == Context::Scope {
            self.count_around(around.resource.len())?;
        }
        self.is_true_of(context, around, Record::None)
    }

    /// Whether any condition is true of what is no span.
    fn is_true_of(
        &mut self,
        context: Context,
        around: Around<'_>,
        record: Record<'_, '_>,
    ) -> Result<bool, Malformed> {
        let no_span = Span::new(b"", [0; 16]);
        let mut subject = subject(&no_span, None, around, self.client, self.schemas);
        subject.record = record;
        let outcome = self.is_true(context, &subject);
        self.settled(outcome)
    }

    fn is_true(&self, context: Context, subject: &Subject<'_, '_, '_>) -> Result<bool, Fault> {
        self.rules.is_true(context, subject, &self.all.failures)
    }

    fn count_around(&mut self, bytes: usize) -> Result<(), Malformed> {
        let bytes = bytes + self.schemas.resource.len() + self.schemas.scope.len();
        self.around_bytes.add(bytes)
    }

    fn settled(&mut self, outcome: Result<bool, Fault>) -> Result<bool, Malformed> {
        outcome.map_err(|fault| {
            self.fault = Some(fault);
            // Ends the walk; the fault says why.
            Malformed::TooLarge
        })
    }
}

fn subject<'a, 's, 'k>(
    span: &'s Span<'a>,
    slots: Option<&'s Slots<'a, 'k>>,
    around: Around<'a>,
    client: Option<&'a Told>,
    schemas: Schemas<'a>,
) -> Subject<'a, 's, 'k> {
    Subject {
        span,
        slots,
        around,
        event: None,
        record: Record::None,
        cache: b"",
        client,
        schemas,
        outside: OUTSIDE,
    }
}

/// The messages under key 2 of one that is well formed; it ends where it is not.
fn inner(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::new(message).map_while(Result::ok);
    fields.filter_map(|field| field.message(SECOND >> 3))
}

/// A message that was empty when it came is dropped as well.
fn emptied(outcome: Outcome, message: &[u8]) -> Outcome {
    if outcome == Outcome::Same && inner(message).next().is_none() {
        Outcome::Gone
    } else {
        outcome
    }
}
