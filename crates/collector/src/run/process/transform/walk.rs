//! The walk over a request for one group of statements.

use std::borrow::Cow;
use std::mem;

use otlp::scan::Around;
use otlp::scan::{Malformed, Span, event, span};
use otlp::write;
use ottl::{Context, Failure, Message, Schemas, Subject, Told};

use super::super::edit::{
    FIRST, Fields, Outcome, SCHEMA_URL, SECOND, edit_fields, joined, last_bytes, replace_field,
};
use super::super::failures::{Failures, Fault};
use super::super::outside::OUTSIDE;
use super::{Group, apply};

/// `Span.events`
const EVENTS: u32 = 11 << 3 | 2;

/// What stands around a record, and a cache that records share, is read, and perhaps written, once
/// for each record: a sender could make that the product of both. So much of it costs nothing in
/// the account;
const AROUND_BYTES_FREE: usize = 16 << 10;
/// and of what is larger, so many bytes a request are read, with its records: more is refused.
const AROUND_BYTES_MAX: usize = 512 << 20;
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
        span: Held::default(),
        event: Held::default(),
        event_index: 0,
        cache: Held::default(),
        scratch: Vec::new(),
        around_bytes: 0,
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
    span: Held<'a>,
    event: Held<'a>,
    event_index: usize,
    cache: Held<'a>,
    scratch: Vec<u8>,
    around_bytes: usize,
    /// Why the walk ended, where no message is malformed.
    fault: Option<Fault>,
}

/// A message as it is now.
#[derive(Debug, Default)]
struct Held<'a> {
    bytes: Cow<'a, [u8]>,
    changed: bool,
}

impl<'a> Held<'a> {
    fn new(bytes: Cow<'a, [u8]>) -> Held<'a> {
        Held {
            bytes,
            changed: false,
        }
    }

    /// What a record becomes, to be written into `out`.
    fn write(&self, out: &mut Vec<u8>) -> Outcome {
        if !self.changed {
            return Outcome::Same;
        }
        out.extend_from_slice(&self.bytes);
        Outcome::Changed
    }

    /// If the held value changed, replaces the field `number` of the current message with it. The
    /// current message is `out[start..]`, or `message` if nothing is written yet. An empty
    /// `schema_url` is left out.
    fn write_into(
        &self,
        number: u32,
        message: &[u8],
        outcome: Outcome,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if !self.changed {
            return outcome;
        }
        let written = out.split_off(start);
        let base = match outcome {
            Outcome::Changed => &written,
            Outcome::Same | Outcome::Gone => message,
        };
        replace_field(base, number, out, |out| {
            if number != SCHEMA_URL || !self.bytes.is_empty() {
                write::bytes(out, number, &self.bytes);
            }
        });
        Outcome::Changed
    }
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
            _ => edit_fields(message, SECOND, out, &mut |span, out| self.span(span, out))?,
        };
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

    fn span(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        self.span = Held::new(message.into());
        if self.group.context == Context::Span {
            self.run()?;
            return Ok(self.span.write(out));
        }
        let start = out.len();
        self.event_index = 0;
        let outcome = edit_fields(message, EVENTS, out, &mut |event, out| {
            self.event = Held::new(event.into());
            self.run()?;
            self.event_index += 1;
            Ok(self.event.write(out))
        })?;
        if !self.span.changed {
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
        for field in Fields::new(&self.span.bytes).map_while(Result::ok) {
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
            let changed = self.until_change(&mut next, &mut scratch);
            let changed = match changed {
                Ok(changed) => changed,
                Err(Fault::Malformed(fault)) => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    // Ends the walk; the fault says why.
                    return Err(Malformed::TooLarge);
                }
            };
            if let Some(message) = changed {
                let held = self.held(message);
                let old = mem::replace(&mut held.bytes, Cow::Owned(mem::take(&mut scratch)));
                held.changed = true;
                if let Cow::Owned(old) = old {
                    scratch = old;
                }
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn count_around(&mut self) -> Result<(), Malformed> {
        let context = self.group.context;
        let bytes = |held: &Held<'_>, of: Context| if context > of { held.bytes.len() } else { 0 };
        let around = bytes(&self.resource, Context::Resource)
            + bytes(&self.resource_schema, Context::Resource)
            + bytes(&self.scope, Context::Scope)
            + bytes(&self.scope_schema, Context::Scope)
            + bytes(&self.span, Context::Span)
            + self.cache.bytes.len();
        if around > AROUND_BYTES_FREE {
            self.around_bytes += around;
        }
        if self.around_bytes > AROUND_BYTES_MAX {
            Err(Malformed::TooLarge)
        } else {
            Ok(())
        }
    }

    fn held(&mut self, message: Message) -> &mut Held<'a> {
        match message {
            Message::Resource => &mut self.resource,
            Message::Scope => &mut self.scope,
            Message::Span => &mut self.span,
            Message::Event => &mut self.event,
            Message::ResourceSchema => &mut self.resource_schema,
            Message::ScopeSchema => &mut self.scope_schema,
            Message::Cache => &mut self.cache,
        }
    }

    /// Runs statements from `next` on until one changes something: tells which message, whose new
    /// bytes are in `out`.
    fn until_change(&self, next: &mut usize, out: &mut Vec<u8>) -> Result<Option<Message>, Fault> {
        let context = self.group.context;
        let span = match context {
            Context::Span | Context::SpanEvent => span(&self.span.bytes, &mut ())?,
            Context::Resource | Context::Scope => Span::new(b"", [0; 16]),
        };
        let subject = Subject {
            span: &span,
            slots: None,
            around: Around {
                resource: &self.resource.bytes,
                scope: &self.scope.bytes,
            },
            event: (context == Context::SpanEvent)
                .then(|| (event(&self.event.bytes), self.event_index)),
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
            return Ok(None);
        }
        while let Some((text, statement)) = self.group.statements.get(*next) {
            *next += 1;
            out.clear();
            let outcome = statement.edit(&subject).and_then(|edit| match edit {
                Some(edit) => apply::apply(edit, &subject, out),
                None => Ok(None),
            });
            match outcome {
                Ok(None) => {}
                Ok(Some(_)) if out.len() > MESSAGE_BYTES_MAX => {
                    let mode = self.group.error_mode;
                    self.failures.take(Failure::Size, text, mode)?;
                }
                Ok(changed) => return Ok(changed),
                Err(failure) => self.failures.take(failure, text, self.group.error_mode)?,
            }
        }
        Ok(None)
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
