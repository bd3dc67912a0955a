//! One span (`trace.proto`).

use super::{Attributes, Malformed, attribute};
use crate::wire::{Reader, Value, fields};

/// `Span.attributes`
const ATTRIBUTES: u32 = 9 << 3 | 2;
/// `Span.events`
const EVENTS: u32 = 11 << 3 | 2;
/// `Span.Event.attributes`
const EVENT_ATTRIBUTES: u32 = 3 << 3 | 2;
/// `Span.Link.attributes`
const LINK_ATTRIBUTES: u32 = 4 << 3 | 2;

/// Where the fields of a span are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// `trace_id`; zero where there is none, which is a trace like others, as for the Collector.
    pub trace_id: [u8; 16],
    /// `span_id`: 8 bytes or none.
    pub span_id: &'a [u8],
    /// `trace_state`
    pub trace_state: &'a [u8],
    /// `parent_span_id`: 8 bytes or none.
    pub parent_span_id: &'a [u8],
    /// `name`
    pub name: &'a [u8],
    /// `kind`
    pub kind: i32,
    /// `start_time_unix_nano`
    pub start_ns: u64,
    /// `end_time_unix_nano`
    pub end_ns: u64,
    /// `status.code`
    pub status: i32,
    /// `flags`
    pub flags: u32,
    /// It has events.
    pub has_events: bool,
}

impl<'a> Span<'a> {
    /// It has no parent: its identifier is absent or zero.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.parent_span_id.iter().all(|byte| *byte == 0)
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, ATTRIBUTES)
    }

    /// `status.message`
    #[must_use]
    pub fn status_message(&self) -> &'a [u8] {
        let status = crate::wire::last_bytes(self.message, 15 << 3 | 2);
        crate::wire::last_bytes(status, 2 << 3 | 2)
    }
}

/// Who is told of the attributes of a span while it is read.
pub trait Spot<'a> {
    /// An attribute: its key, and its value for [`super::Any::read`].
    fn attribute(&mut self, key: &'a [u8], value: &'a [u8]);
}

/// Attributes are only checked.
impl<'a> Spot<'a> for () {
    fn attribute(&mut self, _: &'a [u8], _: &'a [u8]) {}
}

/// Reads a span and checks all that is in it.
///
/// # Errors
/// What is wrong with it.
#[inline]
pub fn span<'a>(message: &'a [u8], spot: &mut impl Spot<'a>) -> Result<Span<'a>, Malformed> {
    let mut span = Span {
        message,
        ..Span::default()
    };
    let mut reader = Reader::new(message);
    while !reader.is_empty() {
        while let Some((name, value, len)) = short_attribute(reader.rest()) {
            spot.attribute(name, value);
            reader.skip(len);
        }
        if reader.is_empty() {
            break;
        }
        let key = reader.key()?;
        match key {
            ATTRIBUTES => {
                let (name, value) = attribute(reader.bytes()?)?;
                spot.attribute(name, value);
            }
            0x0a => span.trace_id = trace_id(reader.bytes()?)?,
            0x12 => span.span_id = span_id(reader.bytes()?)?,
            0x1a => span.trace_state = reader.bytes()?,
            0x22 => span.parent_span_id = span_id(reader.bytes()?)?,
            0x2a => span.name = reader.bytes()?,
            0x30 => span.kind = reader.varint()? as i32,
            0x39 => span.start_ns = reader.fixed64()?,
            0x41 => span.end_ns = reader.fixed64()?,
            0x7a => status(reader.bytes()?, &mut span.status)?,
            0x85 => span.flags = reader.fixed32()?,
            EVENTS => {
                span.has_events = true;
                inner(reader.bytes()?, EVENT_ATTRIBUTES)?;
            }
            0x6a => link(reader.bytes()?)?,
            // Counts of what was dropped.
            0x50 | 0x60 | 0x70 => drop(reader.varint()?),
            key if key >> 3 <= 16 => return Err(Malformed::WireType),
            key => drop(reader.value(key)?),
        }
    }
    Ok(span)
}

/// An attribute at the beginning of these bytes, as encoders write most of them: key before value, a text or a small number,
/// and all lengths in one byte. Gives its key, its value, and the bytes that it takes.
#[inline]
fn short_attribute(rest: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    // Four bytes at once: the attribute's key and length, the key of its first field and its length.
    let head = u32::from_le_bytes(*rest.first_chunk()?);
    if head & 0x80ff_80ff != 0x000a_004a {
        return None;
    }
    let end = 2 + (head >> 8 & 0x7f) as usize;
    let (key, tail) = rest.get(4..end)?.split_at_checked((head >> 24) as usize)?;
    // And four again: the value's key and length, the key of its text and the length of that.
    let four = tail
        .first_chunk()
        .map_or(0, |four| u32::from_le_bytes(*four));
    let len = tail.len() as u32;
    let text = 0x000a_0012 | len.wrapping_sub(2) << 8 | len.wrapping_sub(4) << 24;
    if four == text || is_number(tail) {
        return Some((key, &tail[2..], end));
    }
    None
}

/// A field `KeyValue.value` that is a boolean or an integer, and nothing else.
#[inline(never)]
fn is_number(field: &[u8]) -> bool {
    let [0x12, len, 0x10 | 0x18, number @ ..] = field else {
        return false;
    };
    let Some((last, others)) = number.split_last() else {
        return false;
    };
    usize::from(*len) == number.len() + 1
        && others.len() < 9
        && *last < 0x80
        && others.iter().all(|byte| *byte >= 0x80)
}

#[inline]
fn trace_id(bytes: &[u8]) -> Result<[u8; 16], Malformed> {
    match bytes.try_into() {
        Ok(id) => Ok(id),
        Err(_) if bytes.is_empty() => Ok([0; 16]),
        Err(_) => Err(Malformed::TraceId),
    }
}

#[inline]
fn span_id(bytes: &[u8]) -> Result<&[u8], Malformed> {
    if matches!(bytes.len(), 0 | 8) {
        return Ok(bytes);
    }
    Err(Malformed::SpanId)
}

#[inline]
fn status(message: &[u8], code: &mut i32) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (0x18, Value::Varint(value)) => *code = value as i32,
            (0x12, _) => {}
            (key, _) if matches!(key >> 3, 2 | 3) => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

/// Checks an event or a link, whose attributes have this key.
fn inner(message: &[u8], attributes: u32) -> Result<(), Malformed> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match field.value {
            Value::Bytes(message) if field.key == attributes => drop(attribute(message)?),
            _ if field.key >> 3 == attributes >> 3 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

fn link(message: &[u8]) -> Result<(), Malformed> {
    inner(message, LINK_ATTRIBUTES)?;
    for field in fields(message) {
        match (field.key, field.value) {
            (0x0a, Value::Bytes(id)) => drop(trace_id(id)?),
            (0x12, Value::Bytes(id)) => drop(span_id(id)?),
            (key, _) if key >> 3 <= 2 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

/// An event of a span.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// `name`
    pub name: &'a [u8],
    /// `time_unix_nano`
    pub time_ns: u64,
}

impl<'a> Event<'a> {
    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, EVENT_ATTRIBUTES)
    }
}

/// The events of a span that was checked.
pub fn events<'a>(span: &Span<'a>) -> impl Iterator<Item = Event<'a>> + 'a {
    fields(span.message).filter_map(|field| match (field.key, field.value) {
        (EVENTS, Value::Bytes(message)) => Some(event(message)),
        _ => None,
    })
}

/// Reads an event that was checked.
#[must_use]
pub fn event(message: &[u8]) -> Event<'_> {
    let mut event = Event {
        message,
        name: b"",
        time_ns: 0,
    };
    for field in fields(message) {
        match (field.key, field.value) {
            (0x09, Value::Fixed64(time)) => event.time_ns = time,
            (0x12, Value::Bytes(name)) => event.name = name,
            _ => {}
        }
    }
    event
}
