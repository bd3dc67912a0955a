//! A template: what spans of one name and one field shape share, so that a record of the log keeps only what differs.
//!
//! It is a list of operations over a span's bytes, from the first to the last: bytes that are the same in every span
//! (keys, lengths, the name), identifiers and times that are kept, and attributes, whose values are either one of a few
//! that were seen often (one byte) or kept. A span is written with a template only if each operation finds exactly the
//! bytes that it would make again; so what is read back is byte for byte what came.

use crate::wire::{Reader, Value};
use telemetry::proto::varint;

/// Bytes of a span that a template is made of, at most.
pub const SPAN_BYTES_MAX: usize = 4096;
/// Operations of a template.
const OPS_MAX: usize = 96;
/// Values of an attribute that are known by a number, with the first.
const FROZEN_MAX: usize = 16;
/// Values that were not among the known ones, more than those that were, from where on they are not looked up any more.
const MISSES_MAX: u16 = 64;
/// Spans of a window, and how many of them may have another value than the first while it counts as one that does not vary.
const WINDOW_SPANS: u8 = 64;
const OTHERS_MAX: u8 = 4;
/// What attributes that are as they first were are written as.
const ZEROS: [u8; OPS_MAX] = [0; OPS_MAX];
/// Bytes that a known value takes beside its own, and an operation, about.
const FROZEN_BYTES: u64 = 64;
const OP_BYTES: u64 = 96;

/// A value's code: below, the number of a known one; from here on a length, and so many bytes of the field `value`.
const OPAQUE: u8 = FROZEN_MAX as u8;
/// From here on the length of a text, and its bytes.
const TEXT: u8 = OPAQUE + 126;

/// What may be learned in one request, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowance {
    /// Bytes that may still be taken.
    pub left: u64,
    /// Bytes that were taken.
    pub taken: u64,
}

impl Allowance {
    /// Takes so many bytes, all or none.
    pub fn take(&mut self, bytes: u64) -> bool {
        let Some(left) = self.left.checked_sub(bytes) else {
            return false;
        };
        self.left = left;
        self.taken += bytes;
        true
    }
}

/// One operation.
#[derive(Debug)]
enum Op {
    /// The same in every span: a range of the template's bytes.
    Fixed(u32, u32),
    /// Eight bytes that are kept.
    Word,
    /// The time of the start, which is kept.
    Start,
    /// A time that is kept as what came since the start.
    Since,
    /// An attribute: as it was written in the first span, a range of the template's bytes, and its other values.
    Attribute(u32, u32, u16),
    /// A field of this key of one byte that holds bytes, which are kept.
    Bytes(u8),
    /// The next `ops` operations compare a range of the template's bytes, `values` of them attributes that are nearly
    /// always as they first were: all are compared at once, and if they differ one after the other. What is written is the
    /// same, so that this may change while there are records.
    Run {
        from: u32,
        to: u32,
        ops: u8,
        values: u8,
    },
}

/// The values of an attribute but for the first.
#[derive(Debug)]
struct Hole {
    /// Where the field `key` ends in the attribute as it is written.
    key_end: u8,
    /// Known attributes as they are written, and a mark of each to find it by.
    marks: Vec<u64>,
    frozen: Vec<Box<[u8]>>,
    misses: u16,
    /// Spans of a window in which the value was not the first one, and whether they were many in one.
    others: u8,
    varies: bool,
}

/// A template.
#[derive(Debug)]
pub struct Template {
    bytes: Box<[u8]>,
    ops: Box<[Op]>,
    holes: Box<[Hole]>,
    /// Spans of the current window.
    window: u8,
}

impl Template {
    /// Makes one for spans like this one, whose trace identifier is left out; none where that does not pay. Gives the bytes
    /// that it takes too.
    pub fn learn(span: &[u8]) -> Option<(Template, u64)> {
        if span.len() > SPAN_BYTES_MAX {
            return None;
        }
        let (mut bytes, mut ops, mut holes) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Reader::new(span);
        let (mut started, mut fixed_from) = (false, 0);
        loop {
            let from = reader.rest();
            let Some(field) = reader.field().ok()? else {
                break;
            };
            let field_bytes = &from[..from.len() - reader.rest().len()];
            // The bytes of the field before what is kept, and how the rest is kept.
            let (head, op) = match (field.key, field.value) {
                (0x12 | 0x22, Value::Bytes(id)) if id.len() == 8 => (2, Op::Word),
                (0x39, Value::Fixed64(_)) => (1, Op::Start),
                (0x41, Value::Fixed64(_)) if started => (1, Op::Since),
                (0x41, Value::Fixed64(_)) => (1, Op::Word),
                (0x4a, Value::Bytes(_)) if let Some(key_end) = key_end(field_bytes) => {
                    let from = bytes.len() as u32;
                    let to = from + field_bytes.len() as u32;
                    let op = Op::Attribute(from, to, holes.len() as u16);
                    holes.push(Hole::new(key_end));
                    (0, op)
                }
                // Attributes that are long, trace_state, events and links.
                (key @ (0x4a | 0x1a | 0x5a | 0x6a), Value::Bytes(_)) => (0, Op::Bytes(key as u8)),
                _ => {
                    bytes.extend_from_slice(field_bytes);
                    continue;
                }
            };
            bytes.extend_from_slice(&field_bytes[..head]);
            if bytes.len() > fixed_from {
                ops.push(Op::Fixed(fixed_from as u32, bytes.len() as u32));
                fixed_from = bytes.len();
            }
            if let Op::Attribute(..) = op {
                bytes.extend_from_slice(field_bytes);
                fixed_from = bytes.len();
            }
            started |= matches!(op, Op::Start);
            ops.push(op);
            if ops.len() > OPS_MAX {
                return None;
            }
        }
        if bytes.len() > fixed_from {
            ops.push(Op::Fixed(fixed_from as u32, bytes.len() as u32));
        }
        let held = bytes.len() as u64 + ops.len() as u64 * OP_BYTES;
        let mut template = Template {
            bytes: bytes.into(),
            ops: ops.into(),
            holes: holes.into(),
            window: 0,
        };
        template.find_runs();
        Some((template, held))
    }

    /// Writes what of a span is not in the template; false where it does not fit, and then `out` has something of it. Values
    /// become known while `learn` has bytes for them.
    #[inline]
    pub fn encode(&mut self, span: &[u8], learn: &mut Allowance, out: &mut Vec<u8>) -> bool {
        self.window += 1;
        if self.window == WINDOW_SPANS {
            self.window = 0;
            let many = |hole: &Hole| !hole.varies && hole.others > OTHERS_MAX;
            let more = self.holes.iter().any(many);
            for hole in &mut self.holes {
                hole.varies |= hole.others > OTHERS_MAX;
                hole.others = 0;
            }
            if more {
                self.find_runs();
            }
        }
        self.try_encode(span, learn, out).is_some()
    }

    /// Puts runs before operations that can be done at once.
    #[cold]
    fn find_runs(&mut self) {
        let holes = &self.holes;
        let varies = |hole: u16| holes.get(usize::from(hole)).is_none_or(|hole| hole.varies);
        let old = std::mem::take(&mut self.ops).into_vec();
        let old = old.into_iter().filter(|op| !matches!(op, Op::Run { .. }));
        let (mut ops, mut run): (Vec<Op>, Option<usize>) = (Vec::new(), None);
        for op in old {
            let (range, value) = match op {
                Op::Fixed(from, to) => (Some((from, to)), 0),
                Op::Attribute(from, to, hole) if !varies(hole) => (Some((from, to)), 1),
                _ => (None, 0),
            };
            match (range, run.and_then(|at| ops.get_mut(at))) {
                (None, _) => run = None,
                (
                    Some((_, end)),
                    Some(Op::Run {
                        to, ops, values, ..
                    }),
                ) => {
                    (*to, *ops, *values) = (end, *ops + 1, *values + value);
                }
                (Some((from, to)), _) => {
                    run = Some(ops.len());
                    ops.push(Op::Run {
                        from,
                        to,
                        ops: 1,
                        values: value,
                    });
                }
            }
            ops.push(op);
        }
        // Those of one operation are no gain.
        ops.retain(|op| !matches!(op, Op::Run { ops: 1, .. }));
        self.ops = ops.into();
    }

    fn try_encode(&mut self, span: &[u8], learn: &mut Allowance, out: &mut Vec<u8>) -> Option<()> {
        let (mut rest, mut start, mut at) = (span, 0, 0);
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match op {
                Op::Run {
                    from,
                    to,
                    ops,
                    values,
                } => {
                    let same = self.bytes.get(*from as usize..*to as usize)?;
                    if let Some(after) = rest.strip_prefix(same) {
                        out.extend_from_slice(ZEROS.get(..usize::from(*values))?);
                        at += usize::from(*ops);
                        rest = after;
                    }
                }
                Op::Fixed(from, to) => {
                    let fixed = self.bytes.get(*from as usize..*to as usize)?;
                    let (found, after) = rest.split_at_checked(fixed.len())?;
                    if found != fixed {
                        return None;
                    }
                    rest = after;
                }
                Op::Word | Op::Start => {
                    let (word, after) = rest.split_first_chunk::<8>()?;
                    start = u64::from_le_bytes(*word);
                    out.extend_from_slice(word);
                    rest = after;
                }
                Op::Since => {
                    let (word, after) = rest.split_first_chunk()?;
                    varint(out, u64::from_le_bytes(*word).wrapping_sub(start));
                    rest = after;
                }
                Op::Attribute(from, to, hole) => {
                    let first = self.bytes.get(*from as usize..*to as usize)?;
                    if let Some((attribute, after)) = rest.split_at_checked(first.len())
                        && attribute == first
                    {
                        out.push(0);
                        rest = after;
                        continue;
                    }
                    let hole = self.holes.get_mut(usize::from(*hole))?;
                    rest = hole.encode(first, rest, learn, out)?;
                    hole.others += 1;
                }
                Op::Bytes(key) => {
                    let mut reader = Reader::new(rest);
                    if !reader.next_is(u32::from(*key)) {
                        return None;
                    }
                    let value = reader.bytes().ok()?;
                    let (from, after) = (out.len(), reader.rest());
                    varint(out, value.len() as u64);
                    // A length that is written with more bytes than it needs would not come back.
                    if rest.len() - after.len() != 1 + out.len() - from + value.len() {
                        return None;
                    }
                    out.extend_from_slice(value);
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(())
    }

    /// Appends the span that [`Template::encode`] wrote so; none if it did not.
    pub fn decode(&self, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (mut reader, mut start) = (Reader::new(kept), 0);
        for op in &self.ops {
            match op {
                Op::Fixed(from, to) => {
                    out.extend_from_slice(self.bytes.get(*from as usize..*to as usize)?);
                }
                Op::Word | Op::Start => {
                    start = reader.fixed64().ok()?;
                    out.extend_from_slice(&start.to_le_bytes());
                }
                Op::Since => {
                    let time = start.wrapping_add(reader.varint().ok()?);
                    out.extend_from_slice(&time.to_le_bytes());
                }
                Op::Attribute(from, to, hole) => {
                    let first = self.bytes.get(*from as usize..*to as usize)?;
                    let hole = self.holes.get(usize::from(*hole))?;
                    hole.decode(first, &mut reader, out)?;
                }
                Op::Run { .. } => {}
                Op::Bytes(key) => {
                    let value = reader.bytes().ok()?;
                    out.push(*key);
                    varint(out, value.len() as u64);
                    out.extend_from_slice(value);
                }
            }
        }
        Some(())
    }
}

/// Where the field `key` of a field `attributes` ends, if it is the first in it and their lengths take one byte each.
fn key_end(attribute: &[u8]) -> Option<u8> {
    match attribute {
        [0x4a, 0..0x80, 0x0a, len @ 0..0x80, rest @ ..] if rest.len() >= usize::from(*len) => {
            Some(4 + len)
        }
        _ => None,
    }
}

/// Something to find a known attribute by: its last eight bytes and its length.
#[inline]
fn mark(attribute: &[u8]) -> u64 {
    let last = attribute
        .last_chunk()
        .map_or(0, |last| u64::from_le_bytes(*last));
    last ^ (attribute.len() as u64) << 32
}

impl Hole {
    fn new(key_end: u8) -> Hole {
        Hole {
            key_end,
            marks: Vec::new(),
            frozen: Vec::new(),
            misses: 0,
            others: 0,
            varies: false,
        }
    }

    /// Writes the attribute at the beginning of these bytes, which is not the first known; gives the bytes after it.
    #[inline(never)]
    fn encode<'s>(
        &mut self,
        first: &[u8],
        rest: &'s [u8],
        learn: &mut Allowance,
        out: &mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        let [0x4a, len @ 0..0x80, ..] = rest else {
            return None;
        };
        let (attribute, after) = rest.split_at_checked(usize::from(*len) + 2)?;
        if self.misses < MISSES_MAX {
            let mark = mark(attribute);
            for ((code, known), frozen) in (1..).zip(&self.marks).zip(&self.frozen) {
                if *known == mark && **frozen == *attribute {
                    self.misses = self.misses.saturating_sub(1);
                    out.push(code);
                    return Some(after);
                }
            }
            self.keep(first, attribute, out)?;
            self.miss(attribute, learn);
            return Some(after);
        }
        self.keep(first, attribute, out)?;
        Some(after)
    }

    /// A value was not known: from now on it is, if there is room.
    #[cold]
    fn miss(&mut self, attribute: &[u8], learn: &mut Allowance) {
        if self.frozen.len() + 1 == FROZEN_MAX {
            self.misses += 1;
        } else if learn.take(attribute.len() as u64 + FROZEN_BYTES) {
            self.marks.push(mark(attribute));
            self.frozen.push(attribute.into());
        }
    }

    /// The field `key` of all attributes.
    fn key<'b>(&self, first: &'b [u8]) -> Option<&'b [u8]> {
        first.get(2..usize::from(self.key_end))
    }

    /// Writes the value of an attribute of this key.
    #[inline]
    fn keep(&self, first: &[u8], attribute: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let value = attribute.get(2..)?.strip_prefix(self.key(first)?)?;
        match value {
            [0x12, value_len, 0x0a, len, text @ ..]
                if usize::from(*len) == text.len()
                    && usize::from(*value_len) == text.len() + 2
                    && text.len() <= usize::from(u8::MAX - TEXT) =>
            {
                out.push(TEXT + len);
                out.extend_from_slice(text);
            }
            // Less than 126 bytes: the key takes two at least, and all of it less than 128.
            _ => {
                out.push(OPAQUE + value.len() as u8);
                out.extend_from_slice(value);
            }
        }
        Some(())
    }

    fn decode(&self, first: &[u8], reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Option<()> {
        let code = reader.byte()?;
        if code == 0 {
            out.extend_from_slice(first);
            return Some(());
        }
        if code < OPAQUE {
            out.extend_from_slice(self.frozen.get(usize::from(code) - 1)?);
            return Some(());
        }
        let text = code >= TEXT;
        let len = code - if text { TEXT } else { OPAQUE };
        let value = reader.take(usize::from(len))?;
        let key = self.key(first)?;
        let value_len = len + if text { 4 } else { 0 };
        out.extend_from_slice(&[0x4a, key.len() as u8 + value_len]);
        out.extend_from_slice(key);
        if text {
            out.extend_from_slice(&[0x12, len + 2, 0x0a, len]);
        }
        out.extend_from_slice(value);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Model, Random, request};
    use prost::Message;

    /// Spans without their trace identifiers.
    fn spans(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut model = Model::new(seed);
        let mut spans = Vec::new();
        while spans.len() < count {
            let request = request(&mut model);
            for resource in request.resource_spans {
                let scopes = resource.scope_spans.into_iter();
                spans.extend(scopes.flat_map(|scope| scope.spans).map(|mut span| {
                    span.trace_id.clear();
                    span.encode_to_vec()
                }));
            }
        }
        spans
    }

    fn allowance(left: u64) -> Allowance {
        Allowance { left, taken: 0 }
    }

    /// What is written with a template is read back as it was.
    fn same(template: &mut Template, span: &[u8]) -> bool {
        let (mut kept, mut back) = (Vec::new(), Vec::new());
        if !template.encode(span, &mut allowance(300), &mut kept) {
            return false;
        }
        template.decode(&kept, &mut back).unwrap();
        assert_eq!(back, span);
        true
    }

    #[test]
    fn its_own_span_fits() {
        for span in spans(3, 1000) {
            let (mut template, held) = Template::learn(&span).unwrap();
            assert!(held >= span.len() as u64 / 4);
            assert!(same(&mut template, &span));
        }
    }

    #[test]
    fn no_changed_byte_is_lost() {
        let mut random = Random::new(9);
        let mut hits = 0;
        for span in spans(5, 400) {
            let Some((mut template, _)) = Template::learn(&span) else {
                continue;
            };
            for _ in 0..200 {
                let mut changed = span.clone();
                for _ in 0..1 + random.below(2) {
                    let at = random.below(changed.len().max(1) as u64) as usize;
                    if let Some(byte) = changed.get_mut(at) {
                        *byte = random.next() as u8;
                    }
                }
                hits += usize::from(same(&mut template, &changed));
                // Templates of bytes that are no span do no harm either.
                if let Some((mut odd, _)) = Template::learn(&changed) {
                    same(&mut odd, &changed);
                    same(&mut odd, &span);
                }
            }
        }
        assert!(hits > 10_000, "{hits}");
    }

    #[test]
    fn values_that_never_come_again_are_not_looked_up() {
        let span = |value: u32| {
            let mut out = b"\x12\x0812345678\x2a\x01n".to_vec();
            telemetry::proto::message(&mut out, 9, |out| {
                telemetry::proto::bytes(out, 1, b"id");
                telemetry::proto::message(out, 2, |out| {
                    telemetry::proto::bytes(out, 1, value.to_string().as_bytes());
                });
            });
            out
        };
        let (mut template, _) = Template::learn(&span(0)).unwrap();
        let (mut learn, mut kept) = (allowance(1 << 20), Vec::new());
        for value in 1000..1100 {
            kept.clear();
            assert!(template.encode(&span(value), &mut learn, &mut kept));
            // The identifier, a code and four digits.
            assert_eq!(kept.len(), 8 + 1 + 4);
        }
        assert_eq!(template.holes[0].frozen.len() + 1, FROZEN_MAX);
        assert_eq!(template.holes[0].misses, MISSES_MAX);
        assert!(same(&mut template, &span(1001)));
    }
}
