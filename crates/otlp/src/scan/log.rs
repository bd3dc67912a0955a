//! One log record (`logs.proto`).

use super::any::any_value;
use super::span::{span_id, trace_id};
use super::{Any, Attributes, Malformed, VALUE_DEPTH_MAX, attribute};
use crate::wire::{Reader, Value};

/// `LogRecord.attributes`
pub const LOG_ATTRIBUTES: u32 = 6 << 3 | 2;

/// The fields of a log record.
#[derive(Clone, Copy, Debug)]
pub struct Log<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// `time_unix_nano`
    pub time_ns: u64,
    /// `observed_time_unix_nano`
    pub observed_ns: u64,
    /// `severity_number`
    pub severity: i32,
    /// `severity_text`
    pub severity_text: &'a [u8],
    /// `body`: an `AnyValue`, empty where there is none.
    pub body: &'a [u8],
    /// `dropped_attributes_count`
    pub dropped_attributes: u32,
    /// `flags`
    pub flags: u32,
    /// `trace_id`; zero where there is none.
    pub trace_id: [u8; 16],
    /// `span_id`: 8 bytes or none.
    pub span_id: &'a [u8],
    /// `event_name`
    pub event_name: &'a [u8],
}

impl<'a> Log<'a> {
    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, LOG_ATTRIBUTES)
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> Any<'a> {
        Any::read(self.body)
    }
}

/// Reads a log record and checks all that is in it, attributes and body included.
///
/// # Errors
/// The first malformed field.
pub fn log(message: &[u8]) -> Result<Log<'_>, Malformed> {
    let mut log = Log {
        message,
        time_ns: 0,
        observed_ns: 0,
        severity: 0,
        severity_text: b"",
        body: b"",
        dropped_attributes: 0,
        flags: 0,
        trace_id: [0; 16],
        span_id: b"",
        event_name: b"",
    };
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (0x09, Value::Fixed64(ns)) => log.time_ns = ns,
            (0x10, Value::Varint(number)) => log.severity = number as i32,
            (0x1a, Value::Bytes(text)) => log.severity_text = text,
            (0x2a, Value::Bytes(value)) => {
                any_value(value, VALUE_DEPTH_MAX)?;
                log.body = value;
            }
            (LOG_ATTRIBUTES, Value::Bytes(message)) => drop(attribute(message)?),
            (0x38, Value::Varint(count)) => log.dropped_attributes = count as u32,
            (0x45, Value::Fixed32(flags)) => log.flags = flags,
            (0x4a, Value::Bytes(id)) => log.trace_id = trace_id(id)?,
            (0x52, Value::Bytes(id)) => log.span_id = span_id(id)?,
            (0x59, Value::Fixed64(ns)) => log.observed_ns = ns,
            (0x62, Value::Bytes(name)) => log.event_name = name,
            // Field 4 was removed from `LogRecord`.
            (key, _) if key >> 3 <= 12 && key >> 3 != 4 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(log)
}
