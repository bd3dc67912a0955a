//! `redaction`: attributes that are not allowed are removed; what must not be seen is masked in
//! values and in the bodies of log records.
//!
//! As in the Collector, links of spans, exemplars, metadata of metrics and names are not looked at.

mod body;
mod mask;
mod rules;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use otlp::Signal;
use otlp::scan::{LOG_ATTRIBUTES, Malformed, RESOURCE_ATTRIBUTES, SCOPE_ATTRIBUTES};

use super::edit::{
    Edited, FIRST, Fields, Kind, List, Outcome, edit_both, edit_data, edit_fields, hand_on, joined,
    replace_field, room_for,
};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::redaction::Redaction as Settings;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use mask::MaskedBytes;
use rules::Rules;
use summary::{BODY, Found, RECORD};

/// `Span.events`, and `Event.attributes`.
const EVENTS: u32 = 11 << 3 | 2;
const EVENT_ATTRIBUTES: u32 = 3 << 3 | 2;
/// `LogRecord.body`
const LOG_BODY: u32 = 5 << 3 | 2;

/// See the module.
pub struct Redaction {
    editor: Editor,
    next: Arc<dyn Consumer>,
}

/// The redaction without a place in a pipeline.
#[derive(Debug)]
pub struct Editor(Rules);

impl StartProcessor for Settings {
    fn start(
        &self,
        _: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let editor = Editor::new(self)?;
        Ok(Arc::new(Redaction { editor, next }))
    }
}

impl Through for Redaction {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let edited = self.editor.edit(batch.signal, &batch.bytes);
        hand_on::<P>(&self.next, batch, edited)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}

impl Editor {
    /// Compiles the settings.
    ///
    /// # Errors
    /// An expression cannot be compiled; the text names it.
    pub fn new(settings: &Settings) -> Result<Editor, String> {
        Rules::new(settings).map(Editor)
    }

    /// Redacts a request.
    ///
    /// # Errors
    /// The request is malformed, or masking makes it too large.
    pub fn edit(&self, signal: Signal, request: &[u8]) -> Result<Edited, Malformed> {
        let masked = MaskedBytes::default();
        let mut walk = Walk {
            rules: &self.0,
            signal,
            masked: &masked,
            list: List::default(),
        };
        let mut out = room_for(request);
        let outcome = edit_fields(request, FIRST, &mut out, &mut |message, out| {
            walk.resource(message, out)
        })?;
        Ok(Edited::new(outcome, out, 0))
    }
}

/// The walk over a request.
struct Walk<'r, 'a> {
    rules: &'r Rules,
    signal: Signal,
    masked: &'r MaskedBytes,
    /// The attributes of a record; kept for its memory.
    list: List<'a>,
}

impl<'a> Walk<'_, 'a> {
    fn resource(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        let (rules, masked) = (self.rules, self.masked);
        let around = |message: &[u8], out: &mut Vec<u8>| {
            attributes(rules, masked, message, RESOURCE_ATTRIBUTES, out)
        };
        let mut inner = |scope: &'a [u8], out: &mut Vec<u8>| self.scope(scope, out);
        edit_both(message, out, around, &mut inner)
    }

    fn scope(&mut self, message: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        let (rules, masked) = (self.rules, self.masked);
        let around = |message: &[u8], out: &mut Vec<u8>| {
            attributes(rules, masked, message, SCOPE_ATTRIBUTES, out)
        };
        let mut inner = |record: &'a [u8], out: &mut Vec<u8>| match self.signal {
            Signal::Traces => self.span(record, out),
            Signal::Logs => self.log(record, out),
            Signal::Metrics => edit_data(record, out, &mut |kind, point, out| {
                self.record(point, kind.point().attributes_key(), out)
            }),
        };
        edit_both(message, out, around, &mut inner)
    }

    /// Redacts the attributes of a record.
    fn record(
        &mut self,
        record: &'a [u8],
        key: u32,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        self.list.read(record, key)?;
        let mut found = Found::new(self.rules.summary);
        self.rules
            .attributes(&mut self.list, &mut found, self.masked)?;
        found.tell(&RECORD, &mut self.list);
        Ok(self.list.write(record, key, out))
    }

    fn span(&mut self, span: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        let start = out.len();
        let outcome = self.record(span, Kind::Span.attributes_key(), out)?;
        if !has_events(span) {
            return Ok(outcome);
        }
        let edited = match outcome {
            Outcome::Changed => Some(out.split_off(start)),
            _ => None,
        };
        out.truncate(start);
        let span = edited.as_deref().unwrap_or(span);
        let of_events = edit_fields(span, EVENTS, out, &mut |event, out| {
            attributes(self.rules, self.masked, event, EVENT_ATTRIBUTES, out)
        })?;
        Ok(match of_events {
            Outcome::Same => outcome,
            _ => Outcome::Changed,
        })
    }

    fn log(&mut self, record: &'a [u8], out: &mut Vec<u8>) -> Result<Outcome, Malformed> {
        otlp::scan::log(record)?;
        self.list.read(record, LOG_ATTRIBUTES)?;
        let mut found = Found::new(self.rules.summary);
        self.rules
            .attributes(&mut self.list, &mut found, self.masked)?;
        found.tell(&RECORD, &mut self.list);
        let body = joined(record, LOG_BODY)?.unwrap_or_default();
        let mut found = Found::new(self.rules.summary);
        let body = body::redact(self.rules, &body, &mut found, self.masked)?;
        found.tell(&BODY, &mut self.list);
        let start = out.len();
        let outcome = self.list.write(record, LOG_ATTRIBUTES, out);
        let Some(body) = body else {
            return Ok(outcome);
        };
        let edited = match outcome {
            Outcome::Changed => Some(out.split_off(start)),
            _ => None,
        };
        out.truncate(start);
        let record = edited.as_deref().unwrap_or(record);
        replace_field(record, LOG_BODY >> 3, out, |out| {
            otlp::write::bytes(out, LOG_BODY >> 3, &body);
        });
        Ok(Outcome::Changed)
    }
}

fn has_events(span: &[u8]) -> bool {
    let mut fields = Fields::new(span).map_while(Result::ok);
    fields.any(|field| field.key == EVENTS)
}

/// Redacts the attributes of a resource, a scope or an event.
fn attributes(
    rules: &Rules,
    masked: &MaskedBytes,
    message: &[u8],
    key: u32,
    out: &mut Vec<u8>,
) -> Result<Outcome, Malformed> {
    let mut list = List::default();
    list.read(message, key)?;
    let mut found = Found::new(rules.summary);
    rules.attributes(&mut list, &mut found, masked)?;
    found.tell(&RECORD, &mut list);
    Ok(list.write(message, key, out))
}
