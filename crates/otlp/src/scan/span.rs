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
#[derive(Clone, Copy, Debug)]
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
    /// A span of which nothing else is known yet.
    #[inline]
    #[must_use]
    pub const fn new(message: &'a [u8], trace_id: [u8; 16]) -> Span<'a> {
        Span {
            message,
            trace_id,
            span_id: b"",
            trace_state: b"",
            parent_span_id: b"",
            name: b"",
            kind: 0,
            start_ns: 0,
            end_ns: 0,
            status: 0,
            flags: 0,
            has_events: false,
        }
    }

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
    /// Lengths of the keys that it wants, modulo 64, each a bit; all others are only checked.
    fn lengths(&self) -> u64;

    /// Another span begins, or the same one again.
    fn clear(&mut self);

    /// An attribute that it may want: its key, and its value for [`super::Any::read`].
    fn attribute(&mut self, key: &'a [u8], value: &'a [u8]);

    /// An attribute that it wants, by the place of its key among [`super::Keys`].
    fn put(&mut self, place: u8, value: &'a [u8]);
}

/// Attributes are only checked.
impl<'a> Spot<'a> for () {
    #[inline]
    fn lengths(&self) -> u64 {
        0
    }

    #[inline]
    fn clear(&mut self) {}

    #[inline]
    fn attribute(&mut self, _: &'a [u8], _: &'a [u8]) {}

    #[inline]
    fn put(&mut self, _: u8, _: &'a [u8]) {}
}

/// Reads a span and checks the structure of all that is in it: what passes is well formed at every
/// level, so that no span of one sender makes a consumer refuse the spans of others that left in
/// the same batch.
///
/// # Errors
/// What is wrong with it.
#[inline]
pub fn span<'a>(message: &'a [u8], spot: &mut impl Spot<'a>) -> Result<Span<'a>, Malformed> {
    let mut span = Span::new(message, [0; 16]);
    let mut rest = beginning(message, &mut span);
    loop {
        rest = short_attributes(rest, spot);
        if rest.is_empty() {
            return Ok(span);
        }
        let mut reader = Reader::new(rest);
        span_field(&mut reader, &mut span, spot)?;
        rest = reader.rest();
    }
}

/// The fields before the attributes, as encoders write them: in the order of their numbers, lengths
/// in one byte. Gives the bytes after them, from the first field on that is not like that.
#[inline]
fn beginning<'a>(message: &'a [u8], span: &mut Span<'a>) -> &'a [u8] {
    let mut rest = message;
    if let Some((ids, after)) = rest.split_first_chunk::<28>()
        && let [0x0a, 16, trace_id @ .., 0x12, 8, _, _, _, _, _, _, _, _] = ids
    {
        span.trace_id = *trace_id;
        span.span_id = &ids[20..];
        rest = after;
    }
    if let Some((parent, after)) = rest.split_first_chunk::<10>()
        && let [0x22, 8, id @ ..] = parent
    {
        span.parent_span_id = id;
        rest = after;
    }
    if let [0x2a, len @ 0..0x80, after @ ..] = rest
        && let Some((name, after)) = after.split_at_checked(usize::from(*len))
    {
        span.name = name;
        rest = after;
    }
    if let Some((times, after)) = rest.split_first_chunk::<20>()
        && let [0x30, kind @ 0..0x80, 0x39, times @ ..] = times
        && let Some((start, [0x41, end @ ..])) = times.split_first_chunk::<8>()
        && let Some(end) = end.first_chunk()
    {
        span.kind = i32::from(*kind);
        span.start_ns = u64::from_le_bytes(*start);
        span.end_ns = u64::from_le_bytes(*end);
        rest = after;
    }
    rest
}

/// Any field, wherever it stands.
#[inline]
pub fn span_field<'a>(
    reader: &mut Reader<'a>,
    span: &mut Span<'a>,
    spot: &mut impl Spot<'a>,
) -> Result<(), Malformed> {
    match reader.key()? {
        ATTRIBUTES => {
            let (name, value) = attribute(reader.bytes()?)?;
            if is_among(spot.lengths(), name.len()) {
                spot.attribute(name, value);
            }
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
    Ok(())
}

/// Whether a set of lengths has this one.
#[inline]
fn is_among(lengths: u64, len: usize) -> bool {
    lengths.wrapping_shr(len as u32) & 1 == 1
}

/// Passes over attributes that are written as encoders write most of them: key before value, a text
/// or a small number, and all lengths in one byte. Gives the bytes from the first field on that is
/// not like that. It stands alone so that all that the loop needs fits in registers.
#[inline(never)]
fn short_attributes<'a>(mut rest: &'a [u8], spot: &mut impl Spot<'a>) -> &'a [u8] {
    let lengths = spot.lengths();
    // Four bytes at once: the attribute's key and length, the key of its first field and its
    // length.
    while let Some(head) = rest.first_chunk() {
        let head = u32::from_le_bytes(*head);
        if head & 0x80ff_80ff != 0x000a_004a {
            break;
        }
        let Some((attribute, after)) = rest.split_at_checked(2 + (head >> 8 & 0x7f) as usize)
        else {
            break;
        };
        let key_len = (head >> 24) as usize;
        let Some(value) = attribute.get(4 + key_len..) else {
            break;
        };
        if !is_short_value(value) {
            break;
        }
        if is_among(lengths, key_len) {
            spot.attribute(&attribute[4..4 + key_len], &value[2..]);
        }
        rest = after;
    }
    rest
}

/// A field `KeyValue.value` of less than 128 bytes that is a text, a boolean or an integer, and
/// nothing else.
#[inline(always)]
pub fn is_short_value(field: &[u8]) -> bool {
    // Four bytes again: the field's key and length, the key of its text and the length of that.
    let Some(four) = field.first_chunk() else {
        return false;
    };
    let four = u32::from_le_bytes(*four);
    let len = field.len() as u32;
    // `0x12, len - 2, 0x0a, len - 4`; lengths are 4 to 127, so that no byte of it is carried over
    // to the next.
    let text = 0x000a_0012 + len * 0x0100_0100 - 0x0400_0200;
    if four == text {
        return true;
    }
    match field {
        [_, _, _, _] => four & 0x80f7_ffff == 0x0010_0212,
        [_, _, _, _, last] => four & 0x80f7_ffff == 0x8010_0312 && *last < 0x80,
        _ => is_number(field),
    }
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
pub(super) fn trace_id(bytes: &[u8]) -> Result<[u8; 16], Malformed> {
    match bytes.try_into() {
        Ok(id) => Ok(id),
        Err(_) if bytes.is_empty() => Ok([0; 16]),
        Err(_) => Err(Malformed::TraceId),
    }
}

#[inline]
pub(super) fn span_id(bytes: &[u8]) -> Result<&[u8], Malformed> {
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
