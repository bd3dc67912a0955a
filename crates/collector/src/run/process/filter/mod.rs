//! `filter`: spans and events are dropped by conditions in OTTL, or by what spans have. What is
//! left empty goes too; all else stays as it came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use otlp::scan::{Around, Keys, Slots};
use otlp::scan::{Malformed, Span, Spot, event, span};
use ottl::{Condition, Context, Schemas, Subject, Told};
use tail::settings::ErrorMode;

use super::around::AroundBytes;
use super::client::Clients;
use super::edit::{
    Edited, FIRST, Fields, Kind, List, Outcome, SCHEMA_URL, SECOND, edit_fields, hand_on, joined,
    last_bytes, room_for,
};
use super::failures::{Failures, Fault};
use super::matching;
use super::outside::OUTSIDE;
use crate::config::components::processors::filter::Filter as Settings;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::metrics::{self, Sheet};
use crate::run::origin::Origin;
use crate::run::part::{Part, PartName};
use crate::run::process::{ProcessorDeps, StartProcessor};

/// `Span.events`
const EVENTS: u32 = 11 << 3 | 2;

/// The name that a Prometheus reader makes of `otelcol_processor_filter_spans.filtered`.
const FILTERED: &str = "otelcol_processor_filter_spans_filtered";

/// See the module.
pub struct Filter {
    rules: Rules,
    next: Arc<dyn Consumer>,
    filtered: Arc<AtomicU64>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Rules {
    /// By context.
    conditions: [Vec<Rule>; 4],
    keys: Keys,
    clients: Clients,
    /// Whether any condition reads a `schema_url`.
    reads_schemas: bool,
    include: Option<matching::Matcher>,
    exclude: Option<matching::Matcher>,
    failures: Failures,
}

#[derive(Debug)]
struct Rule {
    text: String,
    condition: Condition,
    error_mode: ErrorMode,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let failures = Failures::new(&deps.id.to_string(), &deps.setup.log);
        let filter = Arc::new(Filter {
            rules: Rules::new(self, failures)?,
            next,
            filtered: Arc::default(),
        });
        deps.register(Arc::clone(&filter) as Arc<dyn Part>);
        Ok(filter)
    }
}

impl Part for Filter {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let [pipeline, processor] = name.labels();
        sheet.about(metrics::Kind::Counter, FILTERED, "1", "as in the Collector");
        let labels = [pipeline, processor, ("filter", &name.id)];
        sheet.point(&labels, self.filtered.load(Ordering::Relaxed));
    }
}

impl Rules {
    /// Compiles the settings.
    ///
    /// # Errors
    /// Which condition or expression cannot be read, and why.
    pub fn new(settings: &Settings, failures: Failures) -> Result<Rules, String> {
        let mut conditions: [Vec<Rule>; 4] = Default::default();
        let mut reads_schemas = false;
        let (mut keys, mut clients) = (Keys::default(), Clients::default());
        for group in &settings.conditions {
            for text in &group.conditions {
                let condition = Condition::parse(text, group.context, &mut keys)
                    .map_err(|error| format!("'{text}': {error}"))?;
                clients.add(condition.client());
                reads_schemas |= condition.reads_schemas();
                conditions[group.context as usize].push(Rule {
                    text: text.clone(),
                    condition,
                    error_mode: group.error_mode,
                });
            }
        }
        let oldest = settings.conditions.is_empty();
        let matcher = |matching: &Option<_>| {
            let matching = matching.as_ref().filter(|_| oldest);
            matching.map(matching::Matcher::new).transpose()
        };
        Ok(Rules {
            conditions,
            keys,
            clients,
            reads_schemas,
            include: matcher(&settings.include)?,
            exclude: matcher(&settings.exclude)?,
            failures,
        })
    }

    /// Filters a request of traces. `origin` is the client metadata of the batch.
    ///
    /// # Errors
    /// It is malformed, or a condition failed whose failures are to be propagated.
    pub fn filter(&self, request: &[u8], origin: Option<&Origin>) -> Result<Edited, Fault> {
        let does_nothing = self.conditions.iter().all(Vec::is_empty);
        if does_nothing && self.include.is_none() && self.exclude.is_none() {
            return Ok(Edited::default());
        }
        let mut out = room_for(request);
        let told = self.clients.told(origin);
        let mut walk = Walk {
            rules: self,
            client: told.as_ref(),
            schemas: Schemas::default(),
            slots: Slots::new(&self.keys),
            list: List::default(),
            dropped: 0,
            around_bytes: AroundBytes::default(),
            fault: None,
        };
        let outcome = edit_fields(request, FIRST, &mut out, &mut |message, out| {
            walk.resource(message, out)
        });
        match walk.fault {
            Some(fault) => Err(fault),
            None => Ok(Edited::new(outcome?, out, walk.dropped)),
        }
    }

    fn has(&self, context: Context) -> bool {
        !self.conditions[context as usize].is_empty()
    }

    fn looks_within(&self, context: Context) -> bool {
        let within = Context::ALL.into_iter().filter(|other| *other > context);
        within.into_iter().any(|other| self.has(other))
            || self.include.is_some()
            || self.exclude.is_some()
    }
}

struct Walk<'r, 'a> {
    rules: &'r Rules,
    client: Option<&'r Told>,
    schemas: Schemas<'a>,
    slots: Slots<'a, 'r>,
    list: List<'a>,
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
        if self.rules.has(Context::Resource) && self.is_true_around(Context::Resource, around)? {
            for scope in inner(message) {
                self.dropped += inner(scope).count() as u64;
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
            self.dropped += inner(message).count() as u64;
            return Ok(Outcome::Gone);
        }
        if !self.rules.looks_within(Context::Scope) {
            return Ok(emptied(Outcome::Same, message));
        }
        let outcome = edit_fields(message, SECOND, out, &mut |span, out| {
            self.span(around, span, out)
        })?;
        Ok(emptied(outcome, message))
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
        self.count_around(around.resource.len() + around.scope.len())?;
        self.slots.clear();
        let span = span(message, &mut self.slots)?;
        let is_dropped = if self.rules.has(Context::Span) {
            let subject = subject(&span, &self.slots, around, self.client, self.schemas);
            let outcome = self.rules.is_true(Context::Span, &subject);
            self.settled(outcome)?
        } else {
            !self.is_matched(around, message)?
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
            let mut subject = subject(&span, &self.slots, around, self.client, self.schemas);
            subject.event = Some((event(bytes_of_event), index));
            let outcome = self.rules.is_true(Context::SpanEvent, &subject);
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

    /// Whether a span is included, and not excluded.
    fn is_matched(&mut self, around: Around<'_>, message: &'a [u8]) -> Result<bool, Malformed> {
        if self.rules.include.is_none() && self.rules.exclude.is_none() {
            return Ok(true);
        }
        self.list.read(message, Kind::Span.attributes_key())?;
        let is_in = |matcher: &Option<matching::Matcher>, unless: bool| match matcher {
            Some(matcher) => matcher.matches(Kind::Span, around, message, &self.list),
            None => Ok(unless),
        };
        Ok(is_in(&self.rules.include, true)? && !is_in(&self.rules.exclude, false)?)
    }

    fn is_true_around(&mut self, context: Context, around: Around<'_>) -> Result<bool, Malformed> {
        if context == Context::Scope {
            self.count_around(around.resource.len())?;
        }
        let no_span = Span::new(b"", [0; 16]);
        let no_slots = Slots::new(&self.rules.keys);
        let subject = subject(&no_span, &no_slots, around, self.client, self.schemas);
        let outcome = self.rules.is_true(context, &subject);
        self.settled(outcome)
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

impl Rules {
    /// Whether any condition is true; one that fails is false.
    fn is_true(&self, context: Context, subject: &Subject<'_, '_, '_>) -> Result<bool, Fault> {
        for rule in &self.conditions[context as usize] {
            match rule.condition.is_true(subject) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(failure) => self.failures.take(failure, &rule.text, rule.error_mode)?,
            }
        }
        Ok(false)
    }
}

fn subject<'a, 's, 'k>(
    span: &'s Span<'a>,
    slots: &'s Slots<'a, 'k>,
    around: Around<'a>,
    client: Option<&'a Told>,
    schemas: Schemas<'a>,
) -> Subject<'a, 's, 'k> {
    Subject {
        span,
        slots: Some(slots),
        around,
        event: None,
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

/// What was empty when it came goes as well.
fn emptied(outcome: Outcome, message: &[u8]) -> Outcome {
    if outcome == Outcome::Same && inner(message).next().is_none() {
        Outcome::Gone
    } else {
        outcome
    }
}

impl Through for Filter {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let filtered = self.rules.filter(&batch.bytes, batch.origin.as_deref());
        let dropped = filtered.as_ref().map_or(0, |edited| edited.dropped);
        let taken = hand_on::<P>(&self.next, batch, filtered)?;
        // Only once: a batch that is given back comes again.
        let count = Arc::clone(&self.filtered);
        let count = move || {
            count.fetch_add(dropped, Ordering::Relaxed);
        };
        Ok(P::then(taken, count))
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
