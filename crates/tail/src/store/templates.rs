//! The templates of one service and scope, found by the names of spans.
//!
//! They go with the last header that has them, so that a record of a segment finds its template as
//! long as the segment is there. A shape gets a template when its name comes for the second time;
//! where spans do not repeat, they are kept as they came.

use super::template::{Buffer, Learner, Template};
use otlp::scan::Keys;
use otlp::scan::{Span, Spot};

/// Templates of a set.
pub const TEMPLATES_MAX: usize = 256;
/// Names that are remembered, templates or not.
const PLACES_MAX: usize = 1024;
const PLACES_MIN: usize = 16;
/// Shapes of one tag that are tried.
const SHAPES_MAX: usize = 8;
/// Spans after which the share of those that found a template is looked at.
const TRIES: u32 = 1024;
/// Spans that are kept as they came after that share was poor.
const REST: u32 = 1 << 16;
/// A name that came once.
const SEEN: u16 = u16::MAX;
/// A name of which no template can be made.
const NEVER: u16 = u16::MAX - 1;
/// Bytes that learning takes at least.
const LEARN_BYTES_MIN: u64 = 1024;

/// Bytes of the template's number in a record.
const NUMBER_BYTES: usize = 2;

/// Templates.
#[derive(Debug, Default)]
pub struct Templates {
    list: Vec<Template>,
    /// Open addressing: a tag, the number of a template or [`SEEN`], and whether it is used.
    places: Vec<Option<(Tag, u16)>>,
    used: usize,
    tries: u32,
    misses: u32,
    rest: u32,
    worn: bool,
    held_bytes: u64,
}

impl Templates {
    /// Bytes of all of them.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// They did not do: their header is to begin anew with the next request.
    #[must_use]
    pub fn are_worn(&self) -> bool {
        self.worn && self.rest == 0
    }

    /// Reads a span, of which `rest` is all but its first field, its trace's identifier, with a
    /// template that is known, and writes it; false where there is none for it, and then something
    /// was told and written. `span` has what is known of it.
    #[inline]
    pub fn read<'a>(
        &mut self,
        tag: Tag,
        (span, rest): (&mut Span<'a>, &'a [u8]),
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> bool {
        if self.rest > 0 || self.list.is_empty() {
            return false;
        }
        let before = learn.taken;
        let found = self.find(tag, span, rest, spot, learn, out);
        self.held_bytes += learn.taken - before;
        if found.is_ok() {
            self.count(true);
        }
        found.is_ok()
    }

    /// What [`Templates::read`] will compare a span with this tag with, most likely.
    #[inline]
    #[must_use]
    pub fn first(&self, tag: Tag) -> &[u8] {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = usize::from(tag.0) & mask;
        while let Some(Some((found, number))) = self.places.get(at) {
            if *found == tag {
                let template = self.list.get(usize::from(*number));
                return template.map_or(b"", Template::first);
            }
            at = (at + 1) & mask;
        }
        b""
    }

    /// Writes a well formed span, whose trace identifier is left out, and learns its shape if it
    /// came before; false where it is to be kept as it came. What is learned is taken from `learn`;
    /// `keys` are those that policies name.
    pub fn encode(
        &mut self,
        span: &[u8],
        keys: &Keys,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let before = learn.taken;
        let tag = Tag::of(span);
        let done = match self.find(tag, &mut Span::new(b"", [0; 16]), span, &mut (), learn, out) {
            Ok(_) => Some(true),
            Err(Unknown { seen: Some(at), .. }) => self.learn(at, span, keys, learn, out),
            Err(Unknown { shapes, .. }) if shapes < SHAPES_MAX => {
                self.see(tag, learn).then_some(false)
            }
            Err(_) => Some(false),
        };
        self.held_bytes += learn.taken - before;
        if let Some(done) = done {
            self.count(done);
        }
        done == Some(true)
    }

    /// A span was written, or not.
    #[inline]
    fn count(&mut self, done: bool) {
        self.tries += 1;
        self.misses += u32::from(!done);
        if self.tries == TRIES {
            if self.misses > TRIES / 2 {
                self.rest = REST;
                self.worn = true;
            }
            (self.tries, self.misses) = (0, 0);
        }
    }

    #[inline]
    fn find<'a>(
        &mut self,
        tag: Tag,
        span: &mut Span<'a>,
        rest: &'a [u8],
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Result<(), Unknown> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = usize::from(tag.0) & mask;
        let mut unknown = Unknown {
            seen: None,
            shapes: 0,
        };
        while let Some(Some((found, number))) = self.places.get(at) {
            if *found == tag {
                match self.list.get_mut(usize::from(*number)) {
                    Some(template) => {
                        out.clear();
                        if out.bytes(&number.to_le_bytes()).is_some()
                            && template.read(span, rest, spot, learn, out).is_some()
                        {
                            return Ok(());
                        }
                        unknown.shapes += 1;
                    }
                    None if *number == SEEN => unknown.seen = Some(at),
                    None => unknown.shapes = SHAPES_MAX,
                }
            }
            at = (at + 1) & mask;
        }
        Err(unknown)
    }

    /// Notes that a name, or another shape of it, came for the first time, unless there are too
    /// many; false if that cannot be done in this request.
    fn see(&mut self, tag: Tag, learn: &mut Learner) -> bool {
        if (self.used + 1) * 2 > self.places.len() {
            let len = (self.places.len() * 2).max(PLACES_MIN);
            let bytes = (len - self.places.len()) as u64 * size_of::<Option<(Tag, u16)>>() as u64;
            if len > PLACES_MAX {
                return true;
            }
            if !learn.take(bytes) {
                return false;
            }
            let old = std::mem::replace(&mut self.places, vec![None; len]);
            old.into_iter()
                .flatten()
                .for_each(|(tag, number)| self.put(tag, number));
        }
        self.put(tag, SEEN);
        self.used += 1;
        true
    }

    fn put(&mut self, tag: Tag, number: u16) {
        let mask = self.places.len() - 1;
        let mut at = usize::from(tag.0) & mask;
        while self.places[at].is_some() {
            at = (at + 1) & mask;
        }
        self.places[at] = Some((tag, number));
    }

    /// A shape came again: it gets a template. None if there is one to be made, but not of this
    /// request: it says nothing of how well templates do.
    #[cold]
    fn learn(
        &mut self,
        at: usize,
        span: &[u8],
        keys: &Keys,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> Option<bool> {
        if self.list.len() >= TEMPLATES_MAX {
            return Some(false);
        }
        if learn.left < LEARN_BYTES_MIN {
            return None;
        }
        let Some(Some((_, place))) = self.places.get_mut(at) else {
            return Some(false);
        };
        let Some((mut template, bytes)) = Template::learn(span, keys, learn) else {
            *place = NEVER;
            return Some(false);
        };
        if !learn.take(bytes) {
            // No more of this in this request.
            learn.left = 0;
            return None;
        }
        *place = self.list.len() as u16;
        out.clear();
        let number = out.bytes(&place.to_le_bytes());
        let read = template.read(&mut Span::new(b"", [0; 16]), span, &mut (), learn, out);
        let done = number.is_some() && read.is_some();
        self.list.push(template);
        Some(done)
    }

    /// Appends the span that [`Templates::encode`] wrote so.
    pub fn decode(&self, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (template, kept) = self.template_of(kept)?;
        template.decode(kept, out)
    }

    /// The first span of the template that a span was written with.
    #[must_use]
    pub fn first_of(&self, kept: &[u8]) -> &[u8] {
        self.template_of(kept)
            .map_or(b"", |(template, _)| template.first())
    }

    fn template_of<'k>(&self, kept: &'k [u8]) -> Option<(&Template, &'k [u8])> {
        let (number, kept) = kept.split_first_chunk::<NUMBER_BYTES>()?;
        let number = usize::from(u16::from_le_bytes(*number));
        Some((self.list.get(number)?, kept))
    }
}

/// No template fits a span.
struct Unknown {
    /// Its name came once: its place.
    seen: Option<usize>,
    /// Templates of the same name that were tried.
    shapes: usize,
}

/// What a template is looked for by: a hash of the name of a span and of what of its shape is seen
/// at once, as encoders write it; others have one too. It need not be secret: whoever makes names
/// collide makes his own spans be kept as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tag(u16);

impl Tag {
    /// That of a span without its first field, its trace's identifier.
    #[inline]
    #[must_use]
    pub fn of(span: &[u8]) -> Tag {
        let (name, shape) = name(span);
        let eight = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |eight| u64::from_le_bytes(*eight));
        let first = match name.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => name.iter().fold(1, |all, byte| all << 8 | u64::from(*byte)),
        };
        let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ eight(name.last_chunk()).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ (name.len() as u64 | u64::from(shape) << 32).wrapping_mul(0x1656_67b1_9e37_79f9);
        Tag((mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u16)
    }
}

/// The name, and how spans of one name differ most often: the fields before it, and the kind.
#[inline]
fn name(span: &[u8]) -> (&[u8], u32) {
    let Some([0x12, 8, rest @ ..]) = span.get(..2).map(|_| span) else {
        return (b"", 0);
    };
    let (mut rest, mut before) = (rest.get(8..).unwrap_or_default(), 0);
    if let [0x1a, len @ 0..0x80, after @ ..] = rest {
        rest = after.get(usize::from(*len)..).unwrap_or_default();
        before |= 1;
    }
    if let [0x22, 8, after @ ..] = rest {
        rest = after.get(8..).unwrap_or_default();
        before |= 2;
    }
    let [0x2a, len @ 0..0x80, rest @ ..] = rest else {
        return (b"", before);
    };
    let Some((name, after)) = rest.split_at_checked(usize::from(*len)) else {
        return (b"", before);
    };
    let kind = match after {
        [0x30, kind, ..] => u32::from(*kind) + 1,
        _ => 0,
    };
    (name, before << 16 | kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, value: u64) -> Vec<u8> {
        let mut out = b"\x12\x0812345678".to_vec();
        otlp::write::bytes(&mut out, 5, name.as_bytes());
        if value.is_multiple_of(2) {
            otlp::write::uint(&mut out, 6, 3);
        }
        otlp::write::fixed64(&mut out, 7, value);
        otlp::write::fixed64(&mut out, 8, value + 5);
        out
    }

    fn learn() -> Learner {
        let mut learn = Learner::default();
        learn.begin(1 << 16);
        learn
    }

    fn encode(templates: &mut Templates, span: &[u8], learn: &mut Learner) -> Option<Vec<u8>> {
        let mut kept = vec![0; span.len()];
        let mut out = Buffer::new(&mut kept);
        let done = templates.encode(span, &Keys::default(), learn, &mut out);
        let len = out.written();
        kept.truncate(len);
        done.then_some(kept)
    }

    #[test]
    fn shapes_of_a_name_have_their_own() {
        let (mut templates, mut hits) = (Templates::default(), 0);
        for value in 0..1000 {
            let span = span(["GET /", "query"][value as usize / 2 % 2], value);
            if let Some(kept) = encode(&mut templates, &span, &mut learn()) {
                let mut back = Vec::new();
                templates.decode(&kept, &mut back).unwrap();
                assert_eq!(back, span);
                // Its number, the identifier, a time, and what came since.
                assert_eq!(kept.len(), 2 + 8 + 8 + 1);
                hits += 1;
            }
        }
        assert_eq!((templates.list.len(), hits), (4, 1000 - 4));
    }

    #[test]
    fn many_shapes_are_learned_over_many_requests() {
        let (mut templates, mut hits) = (Templates::default(), 0);
        let mut learn = Learner::default();
        let names: Vec<_> = (0..60).map(|name| format!("GET /{name}")).collect();
        for value in 0..20 * u64::from(TRIES) {
            if value % 61 == 0 {
                // A template or two a request: far from enough for the first thousand spans.
                learn.left = 2 * LEARN_BYTES_MIN;
            }
            let span = span(&names[(value / 2 % 60) as usize], value);
            let kept = encode(&mut templates, &span, &mut learn);
            hits += u32::from(kept.is_some());
        }
        assert!(
            !templates.worn && templates.list.len() == 120,
            "{}",
            templates.list.len()
        );
        assert!(hits > 15 * TRIES, "{hits}");
    }

    #[test]
    fn names_that_never_come_again_are_kept_as_they_are() {
        let mut templates = Templates::default();
        for value in 0..u64::from(TRIES) {
            encode(&mut templates, &span(&value.to_string(), 0), &mut learn());
        }
        assert!(templates.worn && !templates.are_worn() && templates.list.len() < 30);
        for _ in 0..REST {
            assert!(encode(&mut templates, &span("n", 0), &mut learn()).is_none());
        }
        assert!(templates.are_worn());
    }

    #[test]
    fn nothing_is_learned_without_leave() {
        let mut templates = Templates::default();
        for _ in 0..100 {
            let span = span("n", 0);
            assert!(encode(&mut templates, &span, &mut Learner::default()).is_none());
        }
        assert_eq!(templates.held_bytes(), 0);
    }
}
