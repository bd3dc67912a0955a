//! Spans of the same length as the first one of their template: all that is the same in them is
//! compared at once, and what differs is where it was there.

use super::{Buffer, Hole, Learner, Op, Parts, hole};
use otlp::scan::{Span, Spot};
use otlp::wire::Reader;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes that are compared together.
const CHUNK: usize = 32;
/// Bytes of a field `value` that are the same in all that fit, at least: its key, its length, and
/// the key of what is in it.
const VALUE_HEAD_BYTES: u32 = 3;

/// The first span, and where everything is.
#[derive(Debug)]
pub struct Layout {
    first: Box<[u8]>,
    plan: Arc<Plan>,
}

/// Where everything is: the same for the spans of many names, so that most of them are read by few
/// plans, which stay near the processor.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Plan {
    /// Which bits are the same in all spans that fit.
    mask: Box<[u8]>,
    parts: Box<[Part]>,
}

/// Plans that are known.
#[derive(Debug, Default)]
pub struct Plans {
    known: HashSet<Arc<Plan>>,
    /// Of so many those that are not used any more are left out.
    sweep_at: usize,
}

/// Plans before any are left out.
const SWEEP_MIN: usize = 64;

/// A part that is read, in the order in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// Identifiers and times, and where they are.
    Head {
        id: u32,
        parent: u32,
        start: u32,
        end: u32,
    },
    Id(u32),
    Parent(u32),
    Start(u32),
    End(u32),
    Since(u32),
    /// So many attributes are as they first were.
    Same(u32),
    /// An attribute.
    Attribute(Place),
}

/// An attribute that is looked at alone: its range, and all that is needed of its [`Hole`] as long
/// as its value is the first one or none that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    from: u32,
    to: u32,
    hole: u16,
    /// Bytes of it before the field `value`.
    key_end: u8,
    /// Its place, if a policy names it.
    place: Option<u8>,
    /// Values are not looked up any more.
    is_worn: bool,
}

impl Plans {
    /// The plan that is like this one.
    fn shared(&mut self, plan: Plan) -> Arc<Plan> {
        if let Some(known) = self.known.get(&plan) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|plan| Arc::strong_count(plan) > 1);
            self.sweep_at = (self.known.len() * 2).max(SWEEP_MIN);
        }
        let plan = Arc::new(plan);
        self.known.insert(Arc::clone(&plan));
        plan
    }
}

impl Plan {
    /// That of a span by the operations of its template; none if parts of it can be of any length.
    fn new(span: &[u8], ops: &[Op], holes: &[Hole]) -> Option<Plan> {
        let mut mask = vec![0xff; span.len()];
        let (mut parts, mut at) = (Vec::new(), 0_u32);
        for op in ops {
            let (part, len) = match op {
                Op::Fixed(from, to) => (None, to - from),
                Op::Id => (Some(Part::Id(at)), 8),
                Op::Parent => (Some(Part::Parent(at)), 8),
                Op::Start => (Some(Part::Start(at)), 8),
                Op::End => (Some(Part::End(at)), 8),
                Op::Since => (Some(Part::Since(at)), 8),
                Op::Attribute(from, to, hole) => {
                    let (len, number) = (to - from, *hole);
                    let hole = holes.get(usize::from(number))?;
                    let place = mask.get_mut(at as usize..(at + len) as usize)?;
                    match (hole.is_alone(), parts.last_mut()) {
                        (true, _) => hole.mask(place)?,
                        (false, Some(Part::Same(values))) => *values += 1,
                        (false, _) => parts.push(Part::Same(1)),
                    }
                    let place = Place {
                        from: at,
                        to: at + len,
                        hole: number,
                        key_end: hole.key_end(),
                        place: hole.place(),
                        is_worn: hole.is_worn(),
                    };
                    (hole.is_alone().then_some(Part::Attribute(place)), len)
                }
                Op::Bytes(_) => return None,
            };
            match part {
                None | Some(Part::Attribute(..)) => {}
                Some(_) => mask.get_mut(at as usize..at as usize + 8)?.fill(0),
            }
            parts.extend(part);
            at += len;
        }
        if at as usize != span.len() || span.len() < 8 {
            return None;
        }
        if let [
            Part::Id(id),
            Part::Parent(parent),
            Part::Start(start),
            Part::Since(end),
            ..,
        ] = parts[..]
        {
            let head = Part::Head {
                id,
                parent,
                start,
                end,
            };
            parts.splice(..4, [head]);
        }
        Some(Plan {
            mask: mask.into(),
            parts: parts.into(),
        })
    }
}

impl Layout {
    /// That of a span by the operations of its template; none if parts of it can be of any length.
    pub fn new(span: &[u8], ops: &[Op], holes: &[Hole], plans: &mut Plans) -> Option<Layout> {
        Some(Layout {
            plan: plans.shared(Plan::new(span, ops, holes)?),
            first: span.into(),
        })
    }

    /// Bytes that it takes, as if no other had its plan.
    pub fn held_bytes(&self) -> u64 {
        let plan = self.plan.mask.len() + self.plan.parts.len() * size_of::<Part>();
        (self.first.len() + plan) as u64
    }

    /// The same with what is known of the values now.
    pub fn renewed(self, ops: &[Op], holes: &[Hole], plans: &mut Plans) -> Option<Layout> {
        Some(Layout {
            plan: plans.shared(Plan::new(&self.first, ops, holes)?),
            first: self.first,
        })
    }

    /// Appends a span that is as long as the first one; none, and nothing, if it is not.
    #[inline]
    pub fn decode(&self, kept: &[u8], others: &Parts, out: &mut Vec<u8>) -> Option<()> {
        let from = out.len();
        out.extend_from_slice(&self.first);
        let done = out
            .get_mut(from..)
            .and_then(|span| self.patch(kept, others, span));
        if done.is_none() {
            out.truncate(from);
        }
        done
    }

    /// Writes what differs over the first span.
    fn patch(&self, kept: &[u8], others: &Parts, span: &mut [u8]) -> Option<()> {
        let (mut reader, mut began) = (Reader::new(kept), 0_u64);
        for part in &self.plan.parts {
            match *part {
                Part::Head {
                    id,
                    parent,
                    start,
                    end,
                } => {
                    put(span, id, reader.take(8)?)?;
                    put(span, parent, reader.take(8)?)?;
                    began = reader.fixed64().ok()?;
                    put(span, start, &began.to_le_bytes())?;
                    let time = began.wrapping_add(reader.varint().ok()?);
                    put(span, end, &time.to_le_bytes())?;
                }
                Part::Id(at) | Part::Parent(at) | Part::End(at) => put(span, at, reader.take(8)?)?,
                Part::Start(at) => {
                    began = reader.fixed64().ok()?;
                    put(span, at, &began.to_le_bytes())?;
                }
                Part::Since(at) => {
                    let time = began.wrapping_add(reader.varint().ok()?);
                    put(span, at, &time.to_le_bytes())?;
                }
                Part::Same(values) => {
                    let codes = reader.take(values as usize)?;
                    if codes.iter().any(|code| *code != 0) {
                        return None;
                    }
                }
                Part::Attribute(part) => {
                    let code = reader.byte()?;
                    if code != 0 {
                        let place = span.get_mut(part.from as usize..part.to as usize)?;
                        part.patch(code, others, &mut reader, place)?;
                    }
                }
            }
        }
        Some(())
    }

    /// The first span.
    #[inline]
    pub fn first(&self) -> &[u8] {
        &self.first
    }

    /// A span is laid out so.
    #[inline]
    pub fn fits(&self, span: &[u8]) -> bool {
        if span.len() != self.first.len() {
            return false;
        }
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let differ = |span: &[u8; 8], first: &[u8; 8], mask: &[u8; 8]| {
            (word(span) ^ word(first)) & word(mask)
        };
        let (chunks, span_rest) = span.as_chunks::<CHUNK>();
        let (firsts, first_rest) = self.first.as_chunks::<CHUNK>();
        let (masks, mask_rest) = self.plan.mask.as_chunks::<CHUNK>();
        let mut all = [0; CHUNK];
        for ((chunk, first), mask) in chunks.iter().zip(firsts).zip(masks) {
            for at in 0..CHUNK {
                all[at] |= (chunk[at] ^ first[at]) & mask[at];
            }
        }
        let (words, _) = all.as_chunks::<8>();
        let mut any = words.iter().fold(0, |any, bytes| any | word(bytes));
        let rest = span_rest.as_chunks().0.iter().zip(first_rest.as_chunks().0);
        for ((span, first), mask) in rest.zip(mask_rest.as_chunks().0) {
            any |= differ(span, first, mask);
        }
        // The last eight, of which some were compared already.
        if let (Some(span), Some(first), Some(mask)) = (
            span.last_chunk(),
            self.first.last_chunk(),
            self.plan.mask.last_chunk(),
        ) {
            any |= differ(span, first, mask);
        }
        any == 0
    }

    /// Reads a span that fits, and writes what of it differs.
    #[inline]
    pub fn read<'a>(
        &self,
        others: &mut Parts,
        span: &mut Span<'a>,
        bytes: &'a [u8],
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<()> {
        let word = |at: u32| -> Option<&'a [u8; 8]> { bytes.get(at as usize..)?.first_chunk() };
        let number = |at: u32| word(at).map(|word| u64::from_le_bytes(*word));
        for part in &self.plan.parts {
            match *part {
                Part::Head {
                    id,
                    parent,
                    start,
                    end,
                } => {
                    let (id, parent) = (word(id)?, word(parent)?);
                    (span.span_id, span.parent_span_id) = (id, parent);
                    (span.start_ns, span.end_ns) = (number(start)?, number(end)?);
                    let mut kept = [0; 24];
                    kept[..8].copy_from_slice(id);
                    kept[8..16].copy_from_slice(parent);
                    kept[16..].copy_from_slice(&span.start_ns.to_le_bytes());
                    out.bytes(&kept)?;
                    out.varint(span.end_ns.wrapping_sub(span.start_ns))?;
                }
                Part::Since(at) => {
                    span.end_ns = number(at)?;
                    out.varint(span.end_ns.wrapping_sub(span.start_ns))?;
                }
                Part::Same(values) => out.zeros(values as usize)?,
                Part::Attribute(part) => {
                    let range = part.from as usize..part.to as usize;
                    let attribute = bytes.get(range.clone())?;
                    let value = attribute.get(usize::from(part.key_end)..)?;
                    if part.is_first(attribute, self.first.get(range)?) {
                        out.byte(0)?;
                    } else if part.is_worn {
                        hole::keep(value, out)?;
                    } else {
                        let hole = others.holes.get_mut(usize::from(part.hole))?;
                        hole.write_other(attribute, learn, out)?;
                    }
                    if let Some(place) = part.place {
                        // A key and a length of one byte each.
                        spot.put(place, value.get(2..)?);
                    }
                }
                Part::Id(at) | Part::Parent(at) | Part::Start(at) | Part::End(at) => {
                    let word = word(at)?;
                    let number = u64::from_le_bytes(*word);
                    match part {
                        Part::Id(_) => span.span_id = word,
                        Part::Parent(_) => span.parent_span_id = word,
                        Part::Start(_) => span.start_ns = number,
                        _ => span.end_ns = number,
                    }
                    out.bytes(word)?;
                }
            }
        }
        Some(())
    }
}

impl Place {
    /// Writes the attribute with this code, which is not that of the first one, over it; none if it
    /// is not as long.
    fn patch(
        &self,
        code: u8,
        others: &Parts,
        reader: &mut Reader<'_>,
        attribute: &mut [u8],
    ) -> Option<()> {
        if code >= hole::OPAQUE {
            let value = attribute.get_mut(usize::from(self.key_end)..)?;
            return hole::patch(code, value, reader);
        }
        let hole = others.holes.get(usize::from(self.hole))?;
        let known = hole.frozen.get(usize::from(code) - 1)?;
        (known.len() == attribute.len()).then(|| attribute.copy_from_slice(known))
    }

    /// An attribute is as it first was; only its value may differ.
    #[inline(always)]
    fn is_first(&self, attribute: &[u8], first: &[u8]) -> bool {
        if attribute.last_chunk::<8>() != first.last_chunk::<8>() {
            return false;
        }
        // Of a value so short the last eight bytes are all that may differ.
        self.to - self.from <= u32::from(self.key_end) + VALUE_HEAD_BYTES + 8 || attribute == first
    }
}

/// Writes eight bytes.
#[inline(always)]
fn put(span: &mut [u8], at: u32, word: &[u8]) -> Option<()> {
    let place = span.get_mut(at as usize..at as usize + 8)?;
    place.copy_from_slice(word);
    Some(())
}
