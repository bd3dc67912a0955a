//! `ottl_condition`: conditions on spans and on span events; any that is true is enough. The walk
//! over the spans of a trace ends at the first that is true, or at the first that fails unless
//! errors are to be ignored.

use crate::settings::ErrorMode;
use otlp::scan::{Around, Keys, Slots};
use otlp::scan::{Span, events};
use ottl::{self, Context, Outside, Subject};

/// The reason to refuse a condition that reads data which traces do not keep; none if it reads no
/// such data.
#[must_use]
pub fn unknown(condition: &ottl::Condition) -> Option<&'static str> {
    if !condition.client().is_empty() {
        return Some(
            "client metadata is lost when spans are grouped into traces: copy it to an attribute with a transform processor in front",
        );
    }
    condition.reads_schemas().then_some(
        "schema_url is lost when spans are grouped into traces: copy it to an attribute with a transform processor in front",
    )
}

/// The conditions of one policy.
#[derive(Debug)]
pub struct Condition {
    span: Vec<ottl::Condition>,
    event: Vec<ottl::Condition>,
    ignore_errors: bool,
    yes: u64,
    error: u64,
    outside: Outside,
}

impl Condition {
    pub fn new(
        span: &[String],
        event: &[String],
        error_mode: ErrorMode,
        keys: &mut Keys,
        (yes, error): (u64, u64),
    ) -> Result<Condition, String> {
        if span.is_empty() && event.is_empty() {
            return Err("at least one condition is needed".to_owned());
        }
        let mut parse = |texts: &[String], context| {
            let parse = |text: &String| {
                let condition = ottl::Condition::parse(text, context, keys)
                    .map_err(|error| format!("condition `{text}`: {error}"))?;
                match unknown(&condition) {
                    None => Ok(condition),
                    Some(why) => Err(format!("condition `{text}`: {why}")),
                }
            };
            texts.iter().map(parse).collect::<Result<Vec<_>, String>>()
        };
        Ok(Condition {
            span: parse(span, Context::Span)?,
            event: parse(event, Context::SpanEvent)?,
            ignore_errors: error_mode != ErrorMode::Propagate,
            yes,
            error,
            outside: Outside::default(),
        })
    }

    /// The same, with a clock and random numbers.
    pub fn with(self, outside: Outside) -> Condition {
        Condition { outside, ..self }
    }

    /// Both bits.
    pub fn both(&self) -> u64 {
        self.yes | self.error
    }

    /// The bit that a span sets, or none.
    pub fn bits(&self, span: &Span<'_>, slots: &Slots<'_, '_>, around: Around<'_>) -> u64 {
        let mut subject = Subject {
            span,
            slots: Some(slots),
            around,
            event: None,
            record: ottl::Record::None,
            cache: b"",
            client: None,
            schemas: ottl::Schemas::default(),
            outside: self.outside,
        };
        let bits = self.any(&self.span, &subject);
        if bits != 0 || self.event.is_empty() || !span.has_events {
            return bits;
        }
        for (at, event) in events(span).enumerate() {
            subject.event = Some((event, at));
            let bits = self.any(&self.event, &subject);
            if bits != 0 {
                return bits;
            }
        }
        0
    }

    fn any(&self, conditions: &[ottl::Condition], subject: &Subject<'_, '_, '_>) -> u64 {
        for condition in conditions {
            match condition.is_true(subject) {
                Ok(true) => return self.yes,
                Err(_) if !self.ignore_errors => return self.error,
                _ => {}
            }
        }
        0
    }
}
