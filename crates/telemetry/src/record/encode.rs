//! Encodes records as OTLP protobuf (`opentelemetry/proto/trace/v1/trace.proto`,
//! `logs/v1/logs.proto`).

use super::{Arena, Attribute, Log, Next, Outbox, Span, Text, Trace};
use crate::SpanContext;
use crate::program::{Evaluated, Program};
use otlp::write::{bytes, fixed32, fixed64, key, message, uint, varint, varint_len};

/// Data about the decision that the spans of a kept stream carry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept<'a> {
    /// A `KeyValue` with the name of the policy that kept it; none if there were no policies.
    pub policy: Option<&'a [u8]>,
    /// The threshold of the decision (`ot=th`).
    pub threshold: Option<u64>,
}

/// `SpanFlags`: the bit that says that the next one is valid, and the bit for a remote parent.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

impl Trace {
    /// Encodes all records; spans that are still open end at `end_mono_ns`.
    pub fn encode(&self, program: &Program, kept: Kept<'_>, end_mono_ns: u64, out: &mut Outbox) {
        for span in &self.spans {
            if span.is_recorded {
                self.encode_span(program, span, kept, end_mono_ns, &mut out.spans.bytes);
                out.spans.records += 1;
            }
        }
        self.encode_logs(program, out);
    }

    pub(super) fn encode_logs(&self, program: &Program, out: &mut Outbox) {
        for log in &self.logs {
            self.encode_log(program, log, &mut out.logs.bytes);
            out.logs.records += 1;
        }
    }

    /// Encodes a finished span.
    pub(super) fn encode_one(
        &self,
        program: &Program,
        span: &Span,
        kept: Kept<'_>,
        out: &mut Outbox,
    ) {
        self.encode_span(program, span, kept, 0, &mut out.spans.bytes);
        out.spans.records += 1;
    }

    fn encode_span(
        &self,
        program: &Program,
        span: &Span,
        kept: Kept<'_>,
        end_mono_ns: u64,
        out: &mut Vec<u8>,
    ) {
        let end_mono_ns = match span.end_mono_ns {
            0 => end_mono_ns,
            ended => ended,
        };
        let lasted_ns = end_mono_ns.saturating_sub(span.start.mono_ns);
        message(out, 2, |out| {
            out.extend_from_slice(&identity(1, &span.context));
            if !span.state.is_empty() || kept.threshold.is_some() {
                self.state(out, span.state, kept);
            }
            if span.parent.is_valid() {
                let mut field = [0; 10];
                field[..2].copy_from_slice(&[0x22, 8]);
                field[2..].copy_from_slice(&span.parent.0);
                out.extend_from_slice(&field);
            }
            if !span.name_text.is_empty() {
                self.text(out, 5, span.name_text);
            } else if let Some(name) = program.span_fields.get(usize::from(span.name)) {
                out.extend_from_slice(name);
            }
            out.extend_from_slice(&kind_and_times(span, lasted_ns));
            if span.first_attribute != 0 {
                self.attributes(program, out, 9, span.first_attribute);
            }
            if let Some(policy) = kept.policy {
                bytes(out, 9, policy);
            }
            dropped(out, 10, span.dropped.attributes);
            if span.first_event != 0 {
                self.events(program, out, span.first_event);
            }
            dropped(out, 12, span.dropped.events);
            if span.first_link != 0 {
                self.links(program, out, span.first_link);
            }
            dropped(out, 14, span.dropped.links);
            if span.status as u8 != 0 || !span.status_text.is_empty() {
                message(out, 15, |out| {
                    self.text(out, 2, span.status_text);
                    if span.status as u8 != 0 {
                        uint(out, 3, span.status as u64);
                    }
                });
            }
            let remote = if span.parent_is_remote { IS_REMOTE } else { 0 };
            let flags = u32::from(span.context.flags) | HAS_IS_REMOTE | remote;
            let [a, b, c, d] = flags.to_le_bytes();
            // A field number above 15 has a key of two bytes.
            out.extend_from_slice(&[0x85, 0x01, a, b, c, d]);
        });
    }

    fn state(&self, out: &mut Vec<u8>, state: Text, kept: Kept<'_>) {
        match kept.threshold {
            None => self.text(out, 3, state),
            Some(threshold) => message(out, 3, |out| {
                let state = self.arena.get(state);
                otlp::tracestate::set_threshold(state, Some(threshold), out);
            }),
        }
    }

    fn text(&self, out: &mut Vec<u8>, field: u32, text: Text) {
        if !text.is_empty() {
            utf8(out, field, self.arena.get(text));
        }
    }

    fn attributes(&self, program: &Program, out: &mut Vec<u8>, field: u32, first: Next) {
        let mut next = first;
        while let Some(place) = next.checked_sub(1) {
            let attribute = &self.attributes[place as usize];
            self.attribute_field(program, out, field, attribute);
            next = attribute.next;
        }
    }

    fn attribute_field(
        &self,
        program: &Program,
        out: &mut Vec<u8>,
        field: u32,
        attribute: &Attribute,
    ) {
        let name = &program.texts[usize::from(attribute.key)];
        key_value(out, field, name, attribute.value, &self.arena);
    }

    fn events(&self, program: &Program, out: &mut Vec<u8>, first: Next) {
        let mut next = first;
        while let Some(place) = next.checked_sub(1) {
            let event = &self.events[place as usize];
            message(out, 11, |out| {
                fixed64(out, 1, event.wall_ns);
                // Texts are encoded as field 1; here the name is field 2.
                out.push(0x12);
                out.extend_from_slice(&program.texts[usize::from(event.name)][1..]);
                self.attributes(program, out, 3, event.first_attribute);
                dropped(out, 4, event.attributes_dropped);
            });
            next = event.next;
        }
    }

    fn links(&self, program: &Program, out: &mut Vec<u8>, first: Next) {
        let mut next = first;
        while let Some(place) = next.checked_sub(1) {
            let link = &self.links[place as usize];
            message(out, 13, |out| {
                out.extend_from_slice(&identity(1, &link.to));
                self.text(out, 3, link.state);
                self.attributes(program, out, 4, link.first_attribute);
                dropped(out, 5, link.attributes_dropped);
                let remote = if link.to.remote { IS_REMOTE } else { 0 };
                fixed32(out, 6, u32::from(link.to.flags) | HAS_IS_REMOTE | remote);
            });
            next = link.next;
        }
    }

    fn encode_log(&self, program: &Program, log: &Log, out: &mut Vec<u8>) {
        let (scope, line) = log.line;
        let line = &program.scopes[scope as usize].logs[line as usize];
        message(out, 2, |out| {
            fixed64(out, 1, log.wall_ns);
            uint(out, 2, u64::from(line.severity));
            bytes(out, 3, severity_text(line.severity).as_bytes());
            message(out, 5, |out| utf8(out, 1, self.arena.get(log.body)));
            self.attributes(program, out, 6, log.first_attribute);
            dropped(out, 7, log.attributes_dropped);
            if log.span.is_valid() {
                // A flag of 0 is omitted, as in every encoder.
                if log.span.flags != 0 {
                    fixed32(out, 8, u32::from(log.span.flags));
                }
                out.extend_from_slice(&identity(9, &log.span));
            }
            fixed64(out, 11, log.observed_ns);
            if let Some(event) = &line.event {
                bytes(out, 12, event.as_bytes());
            }
        });
    }
}

/// A `KeyValue` field whose lengths are computed before it is written. `name` is the key, encoded
/// as field number 1.
#[inline]
pub fn key_value(out: &mut Vec<u8>, field: u32, name: &[u8], value: Evaluated, arena: &Arena) {
    match value {
        Evaluated::Text(text) => {
            let text = arena.get(text);
            let Ok(_) = std::str::from_utf8(text) else {
                return lossy(out, field, name, text);
            };
            let value = 1 + varint_len(text.len() as u64) + text.len();
            let whole = name.len() + 1 + varint_len(value as u64) + value;
            key(out, field, 2);
            varint(out, whole as u64);
            out.extend_from_slice(name);
            key(out, 2, 2);
            varint(out, value as u64);
            bytes(out, 1, text);
        }
        Evaluated::Int(number) => {
            let value = 1 + varint_len(number as u64);
            key(out, field, 2);
            varint(out, (name.len() + 2 + value) as u64);
            out.extend_from_slice(name);
            key(out, 2, 2);
            varint(out, value as u64);
            uint(out, 3, number as u64);
        }
        Evaluated::Bool(value) => {
            key(out, field, 2);
            varint(out, (name.len() + 4) as u64);
            out.extend_from_slice(name);
            out.extend_from_slice(&[0x12, 2, 0x10, u8::from(value)]);
        }
    }
}

/// The fields for trace ID and span ID, with the numbers `field` (below 15) and the next.
#[inline]
fn identity(field: u8, context: &SpanContext) -> [u8; 28] {
    let mut fields = [0; 28];
    fields[..2].copy_from_slice(&[field << 3 | 2, 16]);
    fields[2..18].copy_from_slice(&context.trace_id.0);
    fields[18..20].copy_from_slice(&[(field + 1) << 3 | 2, 8]);
    fields[20..].copy_from_slice(&context.span_id.0);
    fields
}

/// `kind`, `start_time_unix_nano`, `end_time_unix_nano`.
#[inline]
fn kind_and_times(span: &Span, lasted_ns: u64) -> [u8; 20] {
    let start = span.start.wall_ns;
    let mut fields = [0; 20];
    fields[..3].copy_from_slice(&[0x30, span.kind as u8, 0x39]);
    fields[3..11].copy_from_slice(&start.to_le_bytes());
    fields[11] = 0x41;
    fields[12..].copy_from_slice(&(start + lasted_ns).to_le_bytes());
    fields
}

/// Writes the number of dropped items.
#[inline]
fn dropped(out: &mut Vec<u8>, field: u32, count: u16) {
    if count > 0 {
        uint(out, field, u64::from(count));
    }
}

/// A field of type `string`: invalid UTF-8 is replaced, because a receiver would refuse the whole
/// request.
fn utf8(out: &mut Vec<u8>, field: u32, text: &[u8]) {
    match std::str::from_utf8(text) {
        Ok(_) => bytes(out, field, text),
        Err(_) => bytes(out, field, String::from_utf8_lossy(text).as_bytes()),
    }
}

#[cold]
fn lossy(out: &mut Vec<u8>, field: u32, name: &[u8], text: &[u8]) {
    message(out, field, |out| {
        out.extend_from_slice(name);
        message(out, 2, |out| utf8(out, 1, text));
    });
}

/// The short name of a severity (`SeverityNumber` of `logs.proto`).
#[must_use]
pub fn severity_text(severity: u8) -> &'static str {
    const NAMES: [&str; 24] = [
        "TRACE", "TRACE2", "TRACE3", "TRACE4", "DEBUG", "DEBUG2", "DEBUG3", "DEBUG4", "INFO",
        "INFO2", "INFO3", "INFO4", "WARN", "WARN2", "WARN3", "WARN4", "ERROR", "ERROR2", "ERROR3",
        "ERROR4", "FATAL", "FATAL2", "FATAL3", "FATAL4",
    ];
    NAMES
        .get(usize::from(severity).wrapping_sub(1))
        .copied()
        .unwrap_or_default()
}
