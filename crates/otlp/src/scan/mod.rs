//! Walking over the bytes of an `ExportTraceServiceRequest` (OTLP 1.9, `trace_service.proto`,
//! `trace.proto`).
//!
//! Nothing is decoded into objects: the walk checks the structure of all that it passes, tells
//! where things are, and calls a [`Visitor`] for each resource, scope and span. What it does not
//! know it passes over; whoever keeps the slices keeps that too. Text is not checked to be UTF-8,
//! as the Collector does not check it either.

mod any;
mod log;
mod metric;
mod point;
mod slots;
mod span;

pub use any::{Any, Attributes, attribute};
pub use log::{LOG_ATTRIBUTES, Log, log};
pub use metric::{METADATA, MONOTONIC, POINTS, TEMPORALITY};
pub use metric::{Metric, MetricKind, metric, metric_frame};
pub use point::{Buckets, Exemplar, Number, Point, PointKind, Quantile};
pub use point::{EXEMPLAR_ATTRIBUTES, NEGATIVE, POINT_START, POINT_TIME, POSITIVE, QUANTILES};
pub use point::{exemplar, point, point_frame};
pub use slots::{Around, KEYS_MAX, Keys, Slots};
pub use span::{Event, Span, Spot, event, events, span};
pub use span::{is_short_value, span_field};

use crate::wire::{Reader, Value};
use std::fmt;

/// Levels of an attribute's value: arrays and maps inside each other.
pub const VALUE_DEPTH_MAX: u32 = 64;

/// Bytes of a request, so that lengths of what is in it fit in 30 bits.
pub const REQUEST_BYTES_MAX: usize = 1 << 30;

/// What is wrong with a request. The sender is to blame, and the same bytes will not do better
/// (HTTP 400, gRPC `INVALID_ARGUMENT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A message ends inside a field.
    Truncated,
    /// A varint has more than 64 bits.
    Varint,
    /// A field's number is 0 or above 2^29.
    FieldNumber,
    /// A known field has another type than it should, or a field is of a type that there is not.
    WireType,
    /// A trace's identifier is neither empty nor 16 bytes.
    TraceId,
    /// A span's identifier is neither empty nor 8 bytes.
    SpanId,
    /// A value is nested deeper than [`VALUE_DEPTH_MAX`].
    TooDeep,
    /// The request has more bytes than [`REQUEST_BYTES_MAX`].
    TooLarge,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Truncated => "a message ends inside a field",
            Malformed::Varint => "a number has more than 64 bits",
            Malformed::FieldNumber => "a field has an impossible number",
            Malformed::WireType => "a field has the wrong type",
            Malformed::TraceId => "a trace_id is not of 16 bytes",
            Malformed::SpanId => "a span_id is not of 8 bytes",
            Malformed::TooDeep => "an attribute is nested too deeply",
            Malformed::TooLarge => "the request is too large",
        })
    }
}

impl std::error::Error for Malformed {}

/// Field keys of `ExportTraceServiceRequest`, `ResourceSpans` and `ScopeSpans`: in each, the first
/// field that is repeated.
pub const RESOURCE_SPANS: u32 = 1 << 3 | 2;
/// `ResourceSpans.resource`
pub const RESOURCE: u32 = 1 << 3 | 2;
/// `ResourceSpans.scope_spans`
pub const SCOPE_SPANS: u32 = 2 << 3 | 2;
/// `ScopeSpans.scope`
pub const SCOPE: u32 = 1 << 3 | 2;
/// `ScopeSpans.spans`
pub const SPANS: u32 = 2 << 3 | 2;
/// `ResourceSpans.schema_url`, `ScopeSpans.schema_url`
const SCHEMA_URL: u32 = 3 << 3 | 2;
/// `Resource.attributes`
pub const RESOURCE_ATTRIBUTES: u32 = 1 << 3 | 2;
/// `InstrumentationScope.attributes`
pub const SCOPE_ATTRIBUTES: u32 = 3 << 3 | 2;

/// Who is told what is in a request, in its order.
pub trait Visitor<'a> {
    /// A `ResourceSpans` with scopes begins. `fields` is all of it but its scopes: what stands
    /// around them when it is written again. `resource` is the message `Resource`.
    fn resource(&mut self, fields: &[u8], resource: &'a [u8]);

    /// A `ScopeSpans` with spans begins; `fields` and `scope` likewise.
    fn scope(&mut self, fields: &[u8], scope: &'a [u8]);

    /// A span: its message, which the visitor checks with [`span()`].
    ///
    /// # Errors
    /// As [`span()`]; they end the walk.
    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed>;

    /// Spans of one scope, one after the other and no more than [`GROUP`], so that what is needed
    /// of all can be fetched at once.
    ///
    /// # Errors
    /// As [`Visitor::span`].
    #[inline]
    fn spans(&mut self, messages: &[&'a [u8]]) -> Result<(), Malformed> {
        messages.iter().try_for_each(|message| self.span(message))
    }
}

/// Spans that a visitor is told of together.
pub const GROUP: usize = 8;

/// Walks over requests; it keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub struct Scanner {
    resource_fields: Vec<u8>,
    scope_fields: Vec<u8>,
}

impl Scanner {
    /// Walks over a request.
    ///
    /// # Errors
    /// What is wrong with it. What came before that was told to the visitor.
    pub fn walk<'a>(
        &mut self,
        request: &'a [u8],
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), Malformed> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(Malformed::TooLarge);
        }
        let mut reader = Reader::new(request);
        while let Some(field) = reader.field()? {
            match (field.key, field.value) {
                (RESOURCE_SPANS, Value::Bytes(message)) => self.resource_spans(message, visitor)?,
                (key, _) if key >> 3 == 1 => return Err(Malformed::WireType),
                _ => {}
            }
        }
        Ok(())
    }

    fn resource_spans<'a>(
        &mut self,
        message: &'a [u8],
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), Malformed> {
        self.resource_fields.clear();
        let (resource, any) = frame(message, &mut self.resource_fields)?;
        attributes(resource, RESOURCE_ATTRIBUTES)?;
        if !any {
            return Ok(());
        }
        visitor.resource(&self.resource_fields, resource);
        let mut reader = Reader::new(message);
        while let Some(field) = reader.field()? {
            if let (SCOPE_SPANS, Value::Bytes(message)) = (field.key, field.value) {
                self.scope_spans(message, visitor)?;
            }
        }
        Ok(())
    }

    fn scope_spans<'a>(
        &mut self,
        message: &'a [u8],
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), Malformed> {
        self.scope_fields.clear();
        let (scope, any) = frame(message, &mut self.scope_fields)?;
        attributes(scope, SCOPE_ATTRIBUTES)?;
        if !any {
            return Ok(());
        }
        visitor.scope(&self.scope_fields, scope);
        let mut reader = Reader::new(message);
        let (mut group, mut held): ([&[u8]; GROUP], _) = ([b""; GROUP], 0);
        loop {
            while reader.next_is(SPANS) {
                group[held] = reader.bytes()?;
                held += 1;
                if held == GROUP {
                    visitor.spans(&group)?;
                    held = 0;
                }
            }
            if reader.field()?.is_none() {
                return visitor.spans(&group[..held]);
            }
        }
    }
}

/// Appends all fields but those of number 2; gives the message of field 1 and whether there is a
/// field 2. `ResourceSpans` and `ScopeSpans` have the same shape.
pub fn frame<'a>(message: &'a [u8], fields: &mut Vec<u8>) -> Result<(&'a [u8], bool), Malformed> {
    let mut reader = Reader::new(message);
    let (mut inner, mut any): (&[u8], bool) = (b"", false);
    loop {
        any |= reader.pass(SPANS)? > 0;
        let from = reader.rest();
        let Some(field) = reader.field()? else {
            return Ok((inner, any));
        };
        match (field.key, field.value) {
            // Its key was written with more bytes than it needs.
            (SPANS, _) => return Err(Malformed::FieldNumber),
            (RESOURCE, Value::Bytes(message)) => inner = message,
            (SCHEMA_URL, _) => {}
            (key, _) if key >> 3 <= 3 => return Err(Malformed::WireType),
            _ => {}
        }
        fields.extend_from_slice(&from[..from.len() - reader.rest().len()]);
    }
}

/// Checks a `Resource` or an `InstrumentationScope`, whose attributes have this key.
fn attributes(message: &[u8], attributes: u32) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match field.value {
            Value::Bytes(message) if field.key == attributes => {
                attribute(message)?;
            }
            _ if field.key >> 3 == attributes >> 3 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod records_tests;
#[cfg(test)]
mod tests;
