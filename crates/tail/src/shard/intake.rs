//! What a request holds, before anything is changed for it: one short note a span.

use crate::policy::{Around, Matcher, Slots};
use crate::scan::{Attributes, Malformed, RESOURCE_ATTRIBUTES, span};
use crate::store::Headers;
use crate::store::log::ID_FIELD_BYTES;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Spans of a request that are noted at once; one that has more is read twice.
pub const SPANS_MAX: usize = 16 << 10;

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
}

/// Spans of one header, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The fields around them, in [`Intake::fields`].
    pub resource: (u32, u32),
    pub scope: (u32, u32),
    pub resource_hash: u64,
    pub hash: u64,
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
    pub headers: &'m Headers,
    pub seed: u64,
    /// Traces are kept apart by service.
    pub by_service: bool,
}

impl Intake {
    /// For the next request.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.runs.clear();
        self.fields.clear();
        (self.spans, self.span_bytes, self.largest, self.header_bytes) = (0, 0, 0, 0);
    }

    /// No more spans can be noted.
    pub fn is_full(&self) -> bool {
        self.notes.len() >= SPANS_MAX
    }

    /// For the next part of the same request: the last run goes on.
    pub fn go_on(&mut self) {
        self.notes.clear();
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
            resource_hash: how.headers.resource_hash(fields),
            hash: 0,
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
    pub fn scope(&mut self, how: How<'_>, resource: &Run, fields: &[u8]) {
        let run = Run {
            scope: self.push(fields),
            hash: how.headers.hash(resource.resource_hash, fields),
            ..*resource
        };
        let len = u64::from(run.resource.1 - run.resource.0) + fields.len() as u64;
        self.header_bytes += len + crate::store::header::HEADER_BYTES;
        self.runs.push(run);
    }

    /// A span; it is checked, and noted unless there is no room.
    #[inline]
    pub fn span<'a>(
        &mut self,
        how: How<'_>,
        message: &'a [u8],
        at: usize,
        slots: &mut Slots<'a, '_>,
        around: Around<'a>,
    ) -> Result<(), Malformed> {
        slots.clear();
        let span = span(message, slots)?;
        self.spans += 1;
        self.span_bytes += message.len() as u64;
        self.largest = self.largest.max(message.len() as u64);
        if self.is_full() {
            return Ok(());
        }
        let mut stripped = message.len() >= ID_FIELD_BYTES && message[..2] == [0x0a, 16];
        let (mut id, mut hash) = (span.trace_id, 0);
        if stripped && message[2..ID_FIELD_BYTES] != id {
            // It is written twice, and the last one counts.
            stripped = false;
        }
        if how.by_service {
            let run = self.runs.last().map_or(0, |run| run.service);
            id = xxh3_128_with_seed(&id, run).to_le_bytes();
            stripped = false;
        }
        hash ^= xxh3_64_with_seed(&id, how.seed);
        self.notes.push(Note {
            id,
            hash,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
            bits: how.matcher.span_bits(&span, slots, around),
            at: at as u32,
            len: message.len() as u32,
            run: self.runs.len() as u32 - 1,
            is_root: span.is_root(),
            stripped,
        });
        Ok(())
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
