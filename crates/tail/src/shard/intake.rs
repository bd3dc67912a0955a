//! What a request holds, before anything is changed for it: one short note a span.

use crate::policy::Matcher;
use crate::store::log::ID_FIELD_BYTES;
use crate::store::{Buffer, Found, Headers, Learner, Tag, touch};
use otlp::scan::{self, Attributes, GROUP, Malformed, RESOURCE_ATTRIBUTES, Span, Spot};
use otlp::scan::{Around, Slots};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Spans of a request that are noted at once; one that has more is read twice.
pub const SPANS_MAX: usize = 16 << 10;

/// Bytes of spans that are written with templates while a request is read; those of others are
/// written when they are taken.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A span.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// What its trace is found by.
    pub id: [u8; 16],
    pub hash: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bits: u64,
    /// Where it is in the bytes that it came with.
    pub at: u32,
    pub len: u32,
    /// Its run.
    pub run: u32,
    /// It has no parent.
    pub is_root: bool,
    /// Its first field is its trace's identifier, which is left out of the log.
    pub stripped: bool,
    /// Where it is in [`Intake::kept`], written with that template; no bytes if it is not.
    pub kept_at: u32,
    pub kept_len: u32,
}

/// Spans of one header, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The fields around them, in [`Intake::fields`].
    pub resource: (u32, u32),
    pub scope: (u32, u32),
    pub resource_hash: u64,
    pub hash: u64,
    /// The header, if it was there when the run was noted.
    pub header: Option<Found>,
    /// Policy bits of the resource.
    pub bits: u64,
    /// It is the first of its `ResourceSpans`.
    pub begins_resource: bool,
    /// A hash of the service, where traces are kept apart by it.
    service: u64,
}

/// Notes on a request, or on a part of a large one.
#[derive(Debug, Default)]
pub struct Intake {
    pub notes: Vec<Note>,
    pub runs: Vec<Run>,
    pub fields: Vec<u8>,
    /// Spans as they are kept, and how much of it is used.
    pub kept: Vec<u8>,
    pub kept_bytes: usize,
    /// Spans and their bytes, also those that were not noted.
    pub spans: u64,
    pub span_bytes: u64,
    pub largest: u64,
    /// Bytes of headers, as if all were new.
    pub header_bytes: u64,
}

/// How spans are noted.
#[derive(Clone, Copy, Debug)]
pub struct How<'m> {
    pub matcher: &'m Matcher,
    pub seed: u64,
    /// Traces are kept apart by service.
    pub by_service: bool,
}

/// Headers that are there, by whose templates spans are read.
#[derive(Debug)]
pub struct Known<'h> {
    pub headers: &'h mut Headers,
    pub learn: &'h mut Learner,
}

impl Intake {
    /// For the next request.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.runs.clear();
        self.fields.clear();
        self.kept_bytes = 0;
        (self.spans, self.span_bytes, self.largest, self.header_bytes) = (0, 0, 0, 0);
    }

    /// No more spans can be noted.
    pub fn is_full(&self) -> bool {
        self.notes.len() >= SPANS_MAX
    }

    /// For the next part of the same request: the last run goes on.
    pub fn go_on(&mut self) {
        self.notes.clear();
        self.kept_bytes = 0;
        if let Some(mut run) = self.runs.pop() {
            let resource = self.fields[run.resource.0 as usize..run.resource.1 as usize].to_vec();
            let scope = self.fields[run.scope.0 as usize..run.scope.1 as usize].to_vec();
            self.runs.clear();
            self.fields.clear();
            run.resource = self.push(&resource);
            run.scope = self.push(&scope);
            self.runs.push(run);
        }
    }

    fn push(&mut self, fields: &[u8]) -> (u32, u32) {
        let start = self.fields.len() as u32;
        self.fields.extend_from_slice(fields);
        (start, self.fields.len() as u32)
    }

    /// Takes over a run of another one.
    pub fn copy_run(&mut self, from: &Intake, run: &Run) {
        let (resource, scope) = from.fields_of(run);
        let mut copy = Run {
            resource: self.push(resource),
            ..*run
        };
        copy.scope = self.push(scope);
        self.header_bytes +=
            (resource.len() + scope.len()) as u64 + crate::store::header::HEADER_BYTES;
        self.runs.push(copy);
    }

    /// Takes over a note; its span is in the last run.
    pub fn add(&mut self, note: Note) {
        let len = u64::from(note.len);
        self.spans += 1;
        self.span_bytes += len;
        self.largest = self.largest.max(len);
        self.notes.push(note);
    }

    /// The fields of a run: of `ResourceSpans`, and of `ScopeSpans`.
    pub fn fields_of(&self, run: &Run) -> (&[u8], &[u8]) {
        let slice = |(from, to): (u32, u32)| {
            self.fields
                .get(from as usize..to as usize)
                .unwrap_or_default()
        };
        (slice(run.resource), slice(run.scope))
    }

    /// A `ResourceSpans` begins.
    pub fn resource(&mut self, how: How<'_>, fields: &[u8], resource: &[u8]) -> Run {
        let range = self.push(fields);
        Run {
            resource: range,
            scope: (0, 0),
            resource_hash: Headers::resource_hash(fields, how.seed),
            hash: 0,
            header: None,
            bits: how.matcher.resource_bits(resource),
            begins_resource: true,
            service: if how.by_service {
                service(resource, how.seed)
            } else {
                0
            },
        }
    }

    /// A `ScopeSpans` begins, in a resource.
    pub fn scope(&mut self, known: Option<&mut Known<'_>>, resource: &Run, fields: &[u8]) {
        let mut run = Run {
            scope: self.push(fields),
            hash: Headers::hash(resource.resource_hash, fields),
            ..*resource
        };
        if let Some(known) = known {
            let (resource, scope) = self.fields_of(&run);
            run.header = known.headers.current(run.hash, resource, scope);
        }
        let len = u64::from(run.resource.1 - run.resource.0) + fields.len() as u64;
        self.header_bytes += len + crate::store::header::HEADER_BYTES;
        self.runs.push(run);
    }

    /// Reads what [`Intake::span`] will of the templates of spans, so that the cache misses
    /// overlap, and gives their tags.
    #[inline]
    pub fn touch(&self, known: &Known<'_>, messages: &[&[u8]], tags: &mut [Tag; GROUP]) {
        let found = self.runs.last().and_then(|run| run.header);
        let Some(templates) = found.and_then(|found| known.headers.sets.get(found.set)) else {
            return;
        };
        for (message, tag) in messages.iter().zip(&mut *tags) {
            *tag = Tag::of(message.get(ID_FIELD_BYTES..).unwrap_or_default());
        }
        // Where the templates are first, then what they say: loops of misses that do not wait for
        // each other. Plans are few, and near anyway.
        let firsts = tags.map(|tag| templates.first(tag));
        touch(&firsts);
    }

    /// A span; it is checked, and noted unless there is no room. [`Intake::touch`] gave its tag.
    #[inline]
    pub fn span<'a>(
        &mut self,
        how: How<'_>,
        known: Option<(&mut Known<'_>, Tag)>,
        (message, at): (&'a [u8], usize),
        slots: &mut Slots<'a, '_>,
        around: Around<'a>,
    ) -> Result<(), Malformed> {
        self.spans += 1;
        self.span_bytes += message.len() as u64;
        self.largest = self.largest.max(message.len() as u64);
        let kept_at = self.kept_bytes;
        let mut span = Span::new(message, [0; 16]);
        let fits = match known {
            Some(known) if !self.is_full() => self.read(known, message, &mut span, slots),
            _ => false,
        };
        if !fits {
            slots.clear();
            span = scan::span(message, slots)?;
        }
        if self.is_full() {
            return Ok(());
        }
        let first = message.first_chunk::<ID_FIELD_BYTES>();
        // If it is written twice, the last one counts.
        let mut stripped =
            first.is_some_and(|first| first[..2] == [0x0a, 16] && first[2..] == span.trace_id);
        let mut id = span.trace_id;
        if how.by_service {
            let run = self.runs.last().map_or(0, |run| run.service);
            id = xxh3_128_with_seed(&id, run).to_le_bytes();
            stripped = false;
        }
        self.notes.push(Note {
            id,
            hash: xxh3_64_with_seed(&id, how.seed),
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            bits: how.matcher.span_bits(&span, slots, around),
            at: at as u32,
            len: message.len() as u32,
            run: self.runs.len() as u32 - 1,
            is_root: span.is_root(),
            stripped,
            kept_at: kept_at as u32,
            kept_len: (self.kept_bytes - kept_at) as u32,
        });
        Ok(())
    }

    /// Reads a span with a template of its service, and writes it; false if there is none that it
    /// fits.
    #[inline]
    fn read<'a>(
        &mut self,
        (known, tag): (&mut Known<'_>, Tag),
        message: &'a [u8],
        span: &mut Span<'a>,
        slots: &mut Slots<'a, '_>,
    ) -> bool {
        let Some(found) = self.runs.last().and_then(|run| run.header) else {
            return false;
        };
        let Some((first, rest)) = message.split_first_chunk::<ID_FIELD_BYTES>() else {
            return false;
        };
        if first[..2] != [0x0a, 16] {
            return false;
        }
        span.trace_id.copy_from_slice(&first[2..]);
        let Some(room) = self.room(rest.len()) else {
            return false;
        };
        let mut out = Buffer::new(room);
        let fits =
            known
                .headers
                .sets
                .read(found.set, tag, (span, rest), slots, known.learn, &mut out);
        let len = if fits { out.written() } else { 0 };
        self.kept_bytes += len;
        fits
    }

    /// Room for a span as it is kept.
    #[inline]
    fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let end = self.kept_bytes + bytes;
        if end > self.kept.len() {
            self.grow_kept(end)?;
        }
        self.kept.get_mut(self.kept_bytes..end)
    }

    #[cold]
    fn grow_kept(&mut self, bytes: usize) -> Option<()> {
        (bytes <= KEPT_BYTES_MAX).then_some(())?;
        self.kept.resize(bytes.next_power_of_two(), 0);
        Some(())
    }
}

/// A hash of `service.namespace`, `service.name` and `service.instance.id`.
fn service(resource: &[u8], seed: u64) -> u64 {
    let hash = |hash, name: &str| {
        let attributes = Attributes::new(resource, RESOURCE_ATTRIBUTES);
        let mut found = attributes.filter(|(key, _)| *key == name.as_bytes());
        found
            .next()
            .map_or(hash ^ 1, |(_, value)| xxh3_64_with_seed(value, hash))
    };
    ["service.namespace", "service.name", "service.instance.id"]
        .into_iter()
        .fold(seed, hash)
}
