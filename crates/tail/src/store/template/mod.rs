//! A template: what spans of one name and one field shape share, so that a record of the log keeps
//! only what differs.
//!
//! It is a list of operations over a span's bytes, from the first to the last: bytes that are the
//! same in every span (keys, lengths, the name), identifiers and times that are kept, and
//! attributes, whose values are either one of a few that were seen often (one byte) or kept. A span
//! is written with a template only if each operation finds exactly the bytes that it would make
//! again; so what is read back is byte for byte what came.
//!
//! A span that fits was also read: its bytes are those of one that was found well formed, but for
//! identifiers, times and values, and those are checked. So it need not be walked over field by
//! field any more.

mod hole;
mod layout;
mod learn;
mod record;

pub use record::Buffer;

use hole::Hole;
use layout::{Layout, Plans};
use otlp::scan::{Span, Spot, span_field};
use otlp::wire::Reader;
use otlp::write::{varint, varint_len};

/// Bytes of a span that a template is made of, at most.
pub const SPAN_BYTES_MAX: usize = 4096;
/// Spans of a window, in which values that vary are looked for.
const WINDOW_SPANS: u8 = 64;

/// What templates learn with.
#[derive(Debug, Default)]
pub struct Learner {
    /// Bytes that may still be taken in this request.
    pub left: u64,
    /// Bytes that were taken in it.
    pub taken: u64,
    plans: Plans,
}

impl Learner {
    /// A request begins, which may take so many bytes.
    pub fn begin(&mut self, bytes: u64) {
        (self.left, self.taken) = (bytes, 0);
    }

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

/// One operation: how a part of a span is read back.
#[derive(Debug)]
enum Op {
    /// The same in every span: a range of the template's bytes.
    Fixed(u32, u32),
    /// The span's identifier, which is kept.
    Id,
    /// That of its parent.
    Parent,
    /// The time of the start, which is kept.
    Start,
    /// The time of the end.
    End,
    /// The time of the end, which is kept as what came since the start.
    Since,
    /// An attribute: as it was written in the first span, a range of the template's bytes, and its
    /// values.
    Attribute(u32, u32, u16),
    /// A field of this key of one byte that holds bytes, which are kept.
    Bytes(u8),
}

/// What a step does after the bytes that are the same in every span.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Id,
    Parent,
    Start,
    End,
    Since,
    Attribute(u16),
    Bytes(u8),
    /// So many steps are done with this one, which has `values` attributes among its bytes; if it
    /// does not fit, they are done one after the other.
    Run {
        done: u8,
        values: u8,
    },
}

/// A step of comparing a span.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The first eight of the bytes that are the same in every span, and a mask of those that there
    /// are.
    head: u64,
    mask: u64,
    /// Where all of them are in the template's bytes.
    from: u32,
    len: u32,
    then: Then,
}

/// A template. It is what most spans need; the rest stands apart, so that templates of many names
/// stay near the processor.
#[derive(Debug)]
pub struct Template {
    /// For those that are as long as the first one.
    layout: Option<Layout>,
    parts: Box<Parts>,
    /// Where the name is in a span without trace_state, and its length.
    name: (u32, u32),
    has_state: bool,
    kind: i32,
    status: i32,
    flags: u32,
    /// Spans of the current window.
    window: u8,
}

/// For spans of any length.
#[derive(Debug)]
struct Parts {
    bytes: Box<[u8]>,
    ops: Box<[Op]>,
    /// What is done first: [`Parts::read_head`], with the bytes between the identifiers and the
    /// times.
    head: Option<Step>,
    steps: Box<[Step]>,
    holes: Box<[Hole]>,
}

impl Template {
    /// Reads a span like this one, of which `rest` is all but its first field, its trace's
    /// identifier, and writes what of it is not in the template; none where it does not fit, and
    /// then something was told and written. `span` is as by default but for what is known of it.
    /// Values become known while `learn` has bytes for them.
    #[inline]
    pub fn read<'a>(
        &mut self,
        span: &mut Span<'a>,
        rest: &'a [u8],
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<()> {
        // Another template may have been tried before.
        spot.clear();
        (span.kind, span.status, span.flags) = (self.kind, self.status, self.flags);
        (span.span_id, span.parent_span_id, span.trace_state) = (b"", b"", b"");
        (span.start_ns, span.end_ns, span.has_events) = (0, 0, false);
        self.end_window(learn);
        match &self.layout {
            Some(layout) if layout.fits(rest) => {
                layout.read(&mut self.parts, span, rest, spot, learn, out)?;
            }
            _ => self.parts.read(span, rest, spot, learn, out)?,
        }
        self.read_name(span, rest)
    }

    /// The first span, if those of its length are compared with it.
    #[inline]
    pub fn first(&self) -> &[u8] {
        self.layout.as_ref().map_or(b"", Layout::first)
    }

    #[inline(always)]
    fn read_name<'a>(&self, span: &mut Span<'a>, whole: &'a [u8]) -> Option<()> {
        let (mut at, len) = (self.name.0 as usize, self.name.1 as usize);
        if self.has_state {
            // It is the only field before the name that is not of the same length in all spans.
            at += span.trace_state.len() + 1 + varint_len(span.trace_state.len() as u64);
        }
        span.name = whole.get(at..at + len)?;
        Some(())
    }

    #[inline]
    fn end_window(&mut self, learn: &mut Learner) {
        self.window += 1;
        if self.window == WINDOW_SPANS {
            self.window = 0;
            let parts = &mut *self.parts;
            let varying = parts.holes.iter_mut().map(Hole::end_window);
            if varying.fold(false, |any, more| any | more) {
                parts.find_steps();
                let layout = self.layout.take();
                self.layout = layout
                    .and_then(|layout| layout.renewed(&parts.ops, &parts.holes, &mut learn.plans));
            }
        }
    }

    /// Appends the span that [`Template::read`] wrote so; none if it did not.
    pub fn decode(&self, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if let Some(layout) = &self.layout
            && layout.decode(kept, &self.parts, out).is_some()
        {
            return Some(());
        }
        self.parts.decode(kept, out)
    }
}

impl Parts {
    /// Reads a span as [`Template::read`] does.
    #[inline]
    fn read<'a>(
        &mut self,
        span: &mut Span<'a>,
        mut rest: &'a [u8],
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<()> {
        if let Some(head) = &self.head {
            rest = self.read_head(head, span, rest, out)?;
        }
        let mut steps = &*self.steps;
        while let Some((step, others)) = steps.split_first() {
            steps = others;
            let Some(after) = step.strip(&self.bytes, rest) else {
                if let Then::Run { .. } = step.then {
                    continue;
                }
                return None;
            };
            rest = after;
            match step.then {
                Then::Nothing => {}
                Then::Run { done, values } => {
                    out.zeros(usize::from(values))?;
                    steps = others.get(usize::from(done)..)?;
                }
                Then::Attribute(hole) => {
                    let hole = self.holes.get_mut(usize::from(hole))?;
                    rest = hole.read(rest, spot, learn, out)?;
                }
                Then::Bytes(key) => rest = bytes(key, rest, span, spot, out)?,
                Then::Id => span.span_id = word(&mut rest, out)?,
                Then::Parent => span.parent_span_id = word(&mut rest, out)?,
                Then::Start => span.start_ns = u64::from_le_bytes(*word(&mut rest, out)?),
                Then::End => span.end_ns = u64::from_le_bytes(*word(&mut rest, out)?),
                Then::Since => {
                    let (end, after) = rest.split_first_chunk()?;
                    span.end_ns = u64::from_le_bytes(*end);
                    rest = after;
                    out.varint(span.end_ns.wrapping_sub(span.start_ns))?;
                }
            }
        }
        rest.is_empty().then_some(())
    }

    /// Reads identifiers, name and times, as most encoders write them; gives the bytes after them.
    #[inline(always)]
    fn read_head<'a>(
        &self,
        head: &Step,
        span: &mut Span<'a>,
        rest: &'a [u8],
        out: &mut Buffer<'_>,
    ) -> Option<&'a [u8]> {
        let (ids, rest) = rest.split_first_chunk::<20>()?;
        let [0x12, 8, ids @ ..] = ids else {
            return None;
        };
        let (id, parent) = ids.split_first_chunk::<8>()?;
        let [0x22, 8, parent @ ..] = parent else {
            return None;
        };
        let times = head.strip(&self.bytes, rest)?;
        let (times, after) = times.split_first_chunk::<17>()?;
        let (start, [0x41, end @ ..]) = times.split_first_chunk::<8>()? else {
            return None;
        };
        (span.span_id, span.parent_span_id) = (id, parent);
        span.start_ns = u64::from_le_bytes(*start);
        span.end_ns = u64::from_le_bytes(*end.first_chunk()?);
        let mut kept = [0; 24];
        kept[..8].copy_from_slice(id);
        kept[8..16].copy_from_slice(parent);
        kept[16..].copy_from_slice(start);
        out.bytes(&kept)?;
        out.varint(span.end_ns.wrapping_sub(span.start_ns))?;
        Some(after)
    }

    /// Appends the span part by part.
    fn decode(&self, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (mut reader, mut start) = (Reader::new(kept), 0);
        for op in &self.ops {
            match op {
                Op::Fixed(from, to) => {
                    out.extend_from_slice(self.bytes.get(*from as usize..*to as usize)?);
                }
                Op::Id | Op::Parent | Op::End => out.extend_from_slice(reader.take(8)?),
                Op::Start => {
                    start = reader.fixed64().ok()?;
                    out.extend_from_slice(&start.to_le_bytes());
                }
                Op::Since => {
                    let time = start.wrapping_add(reader.varint().ok()?);
                    out.extend_from_slice(&time.to_le_bytes());
                }
                Op::Attribute(_, _, hole) => {
                    self.holes
                        .get(usize::from(*hole))?
                        .decode(&mut reader, out)?;
                }
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

impl Step {
    /// Passes over the bytes that are the same in every span; none where these are others.
    #[inline(always)]
    fn strip<'s>(&self, bytes: &[u8], rest: &'s [u8]) -> Option<&'s [u8]> {
        let len = self.len as usize;
        if let Some(eight) = rest.first_chunk() {
            if (u64::from_le_bytes(*eight) ^ self.head) & self.mask != 0 {
                return None;
            }
            if len <= 8 {
                return rest.get(len..);
            }
        }
        let from = self.from as usize;
        rest.strip_prefix(bytes.get(from..from + len)?)
    }
}

/// Reads eight bytes and writes them.
#[inline(always)]
fn word<'a>(rest: &mut &'a [u8], out: &mut Buffer<'_>) -> Option<&'a [u8; 8]> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    out.bytes(word)?;
    Some(word)
}

/// Reads a field that holds bytes and writes those; gives the bytes after it.
#[inline(never)]
fn bytes<'a>(
    key: u8,
    rest: &'a [u8],
    span: &mut Span<'a>,
    spot: &mut impl Spot<'a>,
    out: &mut Buffer<'_>,
) -> Option<&'a [u8]> {
    let mut reader = Reader::new(rest);
    if !reader.next_is(key.into()) {
        return None;
    }
    let value = reader.bytes().ok()?;
    let after = reader.rest();
    // A length that is written with more bytes than it needs would not come back.
    let len = varint_len(value.len() as u64);
    if rest.len() - after.len() != 1 + len + value.len() {
        return None;
    }
    span_field(&mut Reader::new(rest), span, spot).ok()?;
    out.varint(value.len() as u64)?;
    out.bytes(value)?;
    Some(after)
}

#[cfg(test)]
mod tests;
