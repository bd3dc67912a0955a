//! The walk over a request for one group of statements.

mod held;
mod metrics;

use std::borrow::Cow;
use std::mem;

use otlp::scan::{Around, Malformed, MetricKind, Span};
use otlp::scan::{event, exemplar, log, metric, point, span};
use ottl::{Context, Failure, Message, Record, Schemas, Subject, Told};

use super::super::around::AroundBytes;
use super::super::edit::{
    FIRST, Fields, Outcome, SCHEMA_URL, SECOND, edit_fields, joined, last_bytes,
};
use super::super::failures::{Failures, Fault};
use super::super::outside::OUTSIDE;
use super::apply::Applied;
use super::{Group, apply};
use held::Held;
pub use metrics::METRICS_ADDED_MAX;
use metrics::{Added, MetricState};

/// `Span.events`
const EVENTS: u32 = 11 << 3 | 2;

/// Bytes of a message that was changed.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// What a request becomes; `cache` is what records of this context share, if those of the group do.
///
/// # Errors
/// It is malformed, or a failure is to be propagated.
pub fn walk(
    group: &Group,
    client: Option<&Told>,
    failures: &Failures,
    request: &[u8],
    cache: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Outcome, Fault> {
    let mut walk = Walk {
        group,
        client,
        failures,
        resource: Held::default(),
        resource_schema: Held::default(),
        scope: Held::default(),
        scope_schema: Held::default(),
        record: Held::default(),
        inner: Held::default(),
        inner_index: 0,
        exemplar: Held::default(),
        metric: MetricState::default(),
        added: Added::default(),
        cache: Held::default(),
        scratch: Vec::new(),
        around_bytes: AroundBytes::default(),
        fault: None,
    };
    if group.shares_cache {
        walk.cache = Held::new(mem::take(cache).into());
    }
    let outcome = edit_fields(request, FIRST, out, &mut |message, out| {
        walk.resource(message, out)
    });
    if group.shares_cache {
        *cache = walk.cache.bytes.into_owned();
    }
    match walk.fault {
        Some(fault) => Err(fault),
        None => Ok(outcome?),
    }
}

struct Walk<'g, 'a> {
    group: &'g Group,
    client: Option<&'g Told>,
    failures: &'g Failures,
    resource: Held<'a>,
    resource_schema: Held<'a>,
    scope: Held<'a>,
    scope_schema: Held<'a>,
    /// The span, metric or log record. In the context of a data point: the metric without its data
    /// points, so that the cost of a point does not depend on the number of the others.
    record: Held<'a>,
    /// The event or data point. In the context of an exemplar: the data point without exemplars.
    inner: Held<'a>,
    inner_index: usize,
    exemplar: Held<'a>,
    metric: MetricState<'a>,
    added: Added,
    cache: Held<'a>,
    scratch: Vec<u8>,
    around_bytes: AroundBytes,
    /// Why the walk ended, where no message is malformed.
    fault: Option<Fault>,
}

impl<'a> Walk<'_, 'a> {
    fn resource(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        self.resource = Held::new(joined(message, FIRST)?.unwrap_or_default());
        self.resource_schema = self.schema(message)?;
        let start = out.len();
        let outcome = match self.group.context {
            Context::Resource => {
                self.run()?;
                Outcome::Same
            }
            _ => edit_fields(message, SECOND, out, &mut |scope, out| {
                self.scope(scope, out)
            })?,
        };
        let schema = &self.resource_schema;
        let outcome = schema.write_into(SCHEMA_URL, message, outcome, start, out);
        Ok(self
            .resource
            .write_into(FIRST >> 3, message, outcome, start, out))
    }

    fn scope(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        self.scope = Held::new(joined(message, FIRST)?.unwrap_or_default());
        self.scope_schema = self.schema(message)?;
        let start = out.len();
        let outcome = match self.group.context {
            Context::Scope => {
                self.run()?;
                Outcome::Same
            }
            _ => edit_fields(message, SECOND, out, &mut |record, out| {
                self.record(record, out)
            })?,
        };
        let outcome = self.write_added(outcome, out)?;
        let schema = &self.scope_schema;
        let outcome = schema.write_into(SCHEMA_URL, message, outcome, start, out);
        Ok(self
            .scope
            .write_into(FIRST >> 3, message, outcome, start, out))
    }

    /// The `schema_url` of a message; empty if the group does not read it.
    fn schema(&self, message: &'a [u8]) -> Result<Held<'a>, Malformed> {
        if !self.group.reads_schemas {
            return Ok(Held::default());
        }
        let text = last_bytes(message, SCHEMA_URL << 3 | 2)?;
        Ok(Held::new(text.unwrap_or_default().into()))
    }

    fn record(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        match self.group.context {
            Context::SpanEvent => return self.events(message, out),
            Context::DataPoint | Context::Exemplar => {
                self.metric.whole = Cow::Borrowed(message);
                return self.points(message, &Cow::Borrowed, out);
            }
            Context::Metric => metric(message)?.check_points()?,
            _ => {}
        }
        self.record = Held::new(message.into());
        self.run()?;
        Ok(self.record.write(out))
    }

    fn events(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        self.record = Held::new(message.into());
        let start = out.len();
        self.inner_index = 0;
        let outcome = edit_fields(message, EVENTS, out, &mut |event, out| {
            self.inner = Held::new(event.into());
            self.run()?;
            self.inner_index += 1;
            Ok(self.inner.write(out))
        })?;
        if !self.record.changed {
            return Ok(outcome);
        }
        // The span's own fields were changed: its events are those that were written.
        let written = out.split_off(start);
        let mut events = Fields::new(match outcome {
            Outcome::Changed => &written,
            Outcome::Same | Outcome::Gone => message,
        })
        .map_while(Result::ok)
        .filter(|field| field.key == EVENTS);
        for field in Fields::new(&self.record.bytes).map_while(Result::ok) {
            match field.key {
                EVENTS => out.extend_from_slice(events.next().map_or(b"", |event| event.whole)),
                _ => out.extend_from_slice(field.whole),
            }
        }
        Ok(Outcome::Changed)
    }

    /// Runs the statements on what is held.
    fn run(&mut self) -> Result<(), Malformed> {
        if !self.group.shares_cache {
            self.cache = Held::default();
        }
        self.count_around()?;
        let mut next = 0;
        let mut scratch = mem::take(&mut self.scratch);
        while next < self.group.statements.len() {
            scratch.clear();
            let applied = self.until_change(&mut next, &mut scratch);
            let applied = match applied {
                Ok(applied) => applied,
                Err(Fault::Malformed(fault)) => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    // Ends the walk; the fault says why.
                    return Err(Malformed::TooLarge);
                }
            };
            match applied {
                Applied::Nothing => {}
                Applied::Changed(message) => {
                    let held = self.held(message);
                    let old = mem::replace(&mut held.bytes, Cow::Owned(mem::take(&mut scratch)));
                    held.changed = true;
                    if let Cow::Owned(old) = old {
                        scratch = old;
                    }
                }
                Applied::Added => self.add(next - 1, &scratch)?,
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn count_around(&mut self) -> Result<(), Malformed> {
        let context = self.group.context;
        let mut around = self.cache.bytes.len();
        if context != Context::Resource {
            around += self.resource.bytes.len() + self.resource_schema.bytes.len();
            if context != Context::Scope {
                around += self.scope.bytes.len() + self.scope_schema.bytes.len();
            }
        }
        if matches!(
            context,
            Context::SpanEvent | Context::DataPoint | Context::Exemplar
        ) {
            around += self.record.bytes.len();
        }
        if context == Context::Exemplar {
            around += self.inner.bytes.len();
        }
        self.around_bytes.add(around)
    }

    fn held(&mut self, message: Message) -> &mut Held<'a> {
        match message {
            Message::Resource => &mut self.resource,
            Message::Scope => &mut self.scope,
            Message::Span | Message::Metric | Message::Log => &mut self.record,
            Message::Event | Message::Point => &mut self.inner,
            Message::Exemplar => &mut self.exemplar,
            Message::ResourceSchema => &mut self.resource_schema,
            Message::ScopeSchema => &mut self.scope_schema,
            Message::Cache => &mut self.cache,
        }
    }

    /// Runs statements from `next` on until one changes something, whose new bytes are in `out`.
    fn until_change(&self, next: &mut usize, out: &mut Vec<u8>) -> Result<Applied, Fault> {
        let context = self.group.context;
        let (log_view, metric_view, point_view, exemplar_view);
        let mut span_view = Span::new(b"", [0; 16]);
        let record = match context {
            Context::Resource | Context::Scope => Record::None,
            Context::Span | Context::SpanEvent => {
                span_view = span(&self.record.bytes, &mut ())?;
                Record::None
            }
            Context::Log => {
                log_view = log(&self.record.bytes)?;
                Record::Log(&log_view)
            }
            Context::Metric => {
                metric_view = metric(&self.record.bytes)?;
                Record::Metric(&metric_view)
            }
            Context::DataPoint => {
                metric_view = metric(&self.record.bytes)?;
                let kind = self.metric.kind.unwrap_or(MetricKind::Gauge);
                point_view = point(kind.point(), &self.inner.bytes)?;
                Record::Point(&metric_view, &point_view)
            }
            Context::Exemplar => {
                metric_view = metric(&self.record.bytes)?;
                let kind = self.metric.kind.unwrap_or(MetricKind::Gauge);
                point_view = point(kind.point(), &self.inner.bytes)?;
                exemplar_view = exemplar(&self.exemplar.bytes)?;
                Record::Exemplar(&metric_view, &point_view, &exemplar_view)
            }
        };
        let subject = Subject {
            span: &span_view,
            record,
            slots: None,
            around: Around {
                resource: &self.resource.bytes,
                scope: &self.scope.bytes,
            },
            event: (context == Context::SpanEvent)
                .then(|| (event(&self.inner.bytes), self.inner_index)),
            cache: &self.cache.bytes,
            client: self.client,
            schemas: Schemas {
                resource: &self.resource_schema.bytes,
                scope: &self.scope_schema.bytes,
            },
            outside: OUTSIDE,
        };
        if *next == 0 && !self.is_wanted(&subject)? {
            *next = self.group.statements.len();
            return Ok(Applied::Nothing);
        }
        while let Some((text, statement)) = self.group.statements.get(*next) {
            let place = *next;
            *next += 1;
            out.clear();
            let outcome = statement.edit(&subject).and_then(|edit| match edit {
                Some(edit) if self.was_made(place, edit) => Ok(Applied::Nothing),
                Some(edit) => apply::apply(edit, &subject, &self.metric.whole, out),
                None => Ok(Applied::Nothing),
            });
            match outcome {
                Ok(Applied::Nothing) => {}
                Ok(_) if out.len() > MESSAGE_BYTES_MAX => {
                    let mode = self.group.error_mode;
                    self.failures.take(Failure::Size, text, mode)?;
                }
                Ok(applied) => return Ok(applied),
                Err(failure) => self.failures.take(failure, text, self.group.error_mode)?,
            }
        }
        Ok(Applied::Nothing)
    }

    /// Whether one of the group's conditions is true, or there are none.
    fn is_wanted(&self, subject: &Subject<'_, '_, '_>) -> Result<bool, Fault> {
        for (text, condition) in &self.group.conditions {
            match condition.is_true(subject) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(failure) => self.failures.take(failure, text, self.group.error_mode)?,
            }
        }
        Ok(self.group.conditions.is_empty())
    }
}
