//! Paths of exemplars (`metrics.proto`).

use super::table::{Form, Message, Root};
use super::{Path, hex_or_empty, whole_id};
use crate::eval::{Failure, Subject};
use crate::value::Value;
use otlp::scan::{EXEMPLAR_ATTRIBUTES, Exemplar, Number};

/// The root of a path of an exemplar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExemplarRoot {
    TimeNs,
    Time,
    DoubleValue,
    IntValue,
    TraceId,
    TraceIdText,
    SpanId,
    SpanIdText,
    FilteredAttributes,
}

pub const EXEMPLAR: &[(&str, Root)] = &[
    ("cache", Root::Cache),
    ("time_unix_nano", Root::Exemplar(ExemplarRoot::TimeNs)),
    ("time", Root::Exemplar(ExemplarRoot::Time)),
    ("double_value", Root::Exemplar(ExemplarRoot::DoubleValue)),
    ("int_value", Root::Exemplar(ExemplarRoot::IntValue)),
    ("trace_id", Root::Exemplar(ExemplarRoot::TraceId)),
    ("trace_id.string", Root::Exemplar(ExemplarRoot::TraceIdText)),
    ("span_id", Root::Exemplar(ExemplarRoot::SpanId)),
    ("span_id.string", Root::Exemplar(ExemplarRoot::SpanIdText)),
    (
        "filtered_attributes",
        Root::Exemplar(ExemplarRoot::FilteredAttributes),
    ),
];

/// The number of `Exemplar.as_double`.
const AS_DOUBLE: u32 = 3;

impl ExemplarRoot {
    /// The message that it is in, and how it is written.
    pub fn written(self) -> (Message, Form) {
        let form = match self {
            ExemplarRoot::TimeNs => Form::Nanoseconds(2),
            ExemplarRoot::Time => Form::Time(2),
            ExemplarRoot::DoubleValue => Form::NumberDouble(AS_DOUBLE),
            ExemplarRoot::IntValue => Form::NumberInt(AS_DOUBLE),
            ExemplarRoot::TraceId => Form::Id(5, 16),
            ExemplarRoot::TraceIdText => Form::IdText(5, 16),
            ExemplarRoot::SpanId => Form::Id(4, 8),
            ExemplarRoot::SpanIdText => Form::IdText(4, 8),
            ExemplarRoot::FilteredAttributes => Form::Attributes(EXEMPLAR_ATTRIBUTES),
        };
        (Message::Exemplar, form)
    }
}

impl Path {
    /// The value of the path in an exemplar.
    pub(super) fn of_exemplar<'a>(
        &'a self,
        root: ExemplarRoot,
        exemplar: &Exemplar<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        Ok(match root {
            ExemplarRoot::TimeNs => Value::Int(exemplar.time_ns as i64),
            ExemplarRoot::Time => Value::Time(exemplar.time_ns as i64),
            ExemplarRoot::DoubleValue => Value::Float(match exemplar.value {
                Some(Number::Double(value)) => value,
                Some(Number::Int(_)) | None => 0.0,
            }),
            ExemplarRoot::IntValue => Value::Int(match exemplar.value {
                Some(Number::Int(value)) => value,
                Some(Number::Double(_)) | None => 0,
            }),
            ExemplarRoot::TraceId => Value::Bytes(exemplar.trace_id.to_vec().into()),
            ExemplarRoot::TraceIdText => hex_or_empty(&exemplar.trace_id),
            ExemplarRoot::SpanId => Value::Bytes(whole_id(exemplar.span_id)),
            ExemplarRoot::SpanIdText => hex_or_empty(exemplar.span_id),
            ExemplarRoot::FilteredAttributes => {
                return self.attribute(exemplar.message, EXEMPLAR_ATTRIBUTES, subject);
            }
        })
    }
}
