//! Paths of log records (`logs.proto`).

use super::table::{Form, Message, Root};
use super::{Path, hex_or_empty, whole_id};
use crate::eval::{Failure, Subject};
use crate::value::Value;
use otlp::scan::{LOG_ATTRIBUTES, Log};
use otlp::text::text_of;

/// The root of a path of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRoot {
    Attributes,
    TimeNs,
    Time,
    ObservedNs,
    Observed,
    Severity,
    SeverityText,
    Body,
    BodyText,
    DroppedAttributes,
    Flags,
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    EventName,
}

pub const LOG: &[(&str, Root)] = &[
    ("attributes", Root::Log(LogRoot::Attributes)),
    ("cache", Root::Cache),
    ("time_unix_nano", Root::Log(LogRoot::TimeNs)),
    ("time", Root::Log(LogRoot::Time)),
    ("observed_time_unix_nano", Root::Log(LogRoot::ObservedNs)),
    ("observed_time", Root::Log(LogRoot::Observed)),
    ("severity_number", Root::Log(LogRoot::Severity)),
    ("severity_text", Root::Log(LogRoot::SeverityText)),
    ("body", Root::Log(LogRoot::Body)),
    ("body.string", Root::Log(LogRoot::BodyText)),
    (
        "dropped_attributes_count",
        Root::Log(LogRoot::DroppedAttributes),
    ),
    ("flags", Root::Log(LogRoot::Flags)),
    ("trace_id", Root::Log(LogRoot::TraceId)),
    ("trace_id.string", Root::Log(LogRoot::TraceIdText)),
    ("span_id", Root::Log(LogRoot::SpanId)),
    ("span_id.string", Root::Log(LogRoot::SpanIdText)),
    ("event_name", Root::Log(LogRoot::EventName)),
];

impl LogRoot {
    /// The message that it is in, and how it is written.
    pub fn written(self) -> (Message, Form) {
        let form = match self {
            LogRoot::Attributes => Form::Attributes(LOG_ATTRIBUTES),
            LogRoot::TimeNs => Form::Nanoseconds(1),
            LogRoot::Time => Form::Time(1),
            LogRoot::ObservedNs => Form::Nanoseconds(11),
            LogRoot::Observed => Form::Time(11),
            LogRoot::Severity => Form::Number(2),
            LogRoot::SeverityText => Form::Text(3),
            LogRoot::Body => Form::Any(5),
            LogRoot::BodyText => Form::AnyText(5),
            LogRoot::DroppedAttributes => Form::Number(7),
            LogRoot::Flags => Form::Fixed32(8),
            LogRoot::TraceId => Form::Id(9, 16),
            LogRoot::TraceIdText => Form::IdText(9, 16),
            LogRoot::SpanId => Form::Id(10, 8),
            LogRoot::SpanIdText => Form::IdText(10, 8),
            LogRoot::EventName => Form::Text(12),
        };
        (Message::Log, form)
    }
}

impl Path {
    /// The value of the path in a log record.
    pub(super) fn of_log<'a>(
        &'a self,
        root: LogRoot,
        log: &Log<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        Ok(match root {
            LogRoot::Attributes => return self.attribute(log.message, LOG_ATTRIBUTES, subject),
            LogRoot::TimeNs => Value::Int(log.time_ns as i64),
            LogRoot::Time => Value::Time(log.time_ns as i64),
            LogRoot::ObservedNs => Value::Int(log.observed_ns as i64),
            LogRoot::Observed => Value::Time(log.observed_ns as i64),
            LogRoot::Severity => Value::Int(log.severity.into()),
            LogRoot::SeverityText => Value::Text(log.severity_text.into()),
            LogRoot::Body => return self.body(Value::from(log.body()), subject),
            LogRoot::BodyText => Value::text(text_of(log.body())),
            LogRoot::DroppedAttributes => Value::Int(log.dropped_attributes.into()),
            LogRoot::Flags => Value::Int(log.flags.into()),
            LogRoot::TraceId => Value::Bytes(log.trace_id.to_vec().into()),
            LogRoot::TraceIdText => hex_or_empty(&log.trace_id),
            LogRoot::SpanId => Value::Bytes(whole_id(log.span_id)),
            LogRoot::SpanIdText => hex_or_empty(log.span_id),
            LogRoot::EventName => Value::Text(log.event_name.into()),
        })
    }

    /// A body, or what keys find in it. Only maps and lists have keys.
    fn body<'a>(
        &'a self,
        body: Value<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        let mut value = body;
        if !self.keys.is_empty() && value == Value::Nil {
            return Err(Failure::Type);
        }
        for key in &self.keys {
            value = key.get(subject)?.of(&value)?;
        }
        Ok(value)
    }
}
