//! Kept spans, put together to requests: those of one header beside each other.

use crate::store::Header;
use otlp::scan::{RESOURCE_SPANS, SCOPE, SCOPE_SPANS, SPANS};
use otlp::wire::{Fields, Value, fields};
use otlp::write;
use std::collections::HashMap;

/// Groups whose buffers are kept for the next batch.
const SPARE_GROUPS: usize = 256;
/// Bytes of a buffer that is kept.
const SPARE_BYTES: usize = 64 << 10;

/// `InstrumentationScope.attributes`
const ATTRIBUTES: u32 = 3;
/// What is recorded in the scopes of kept spans.
const POLICY: &str = "tailsampling.policy";
/// The same of the sub-policy of a `composite`.
const COMPOSITE: &str = "tailsampling.composite_policy";
/// The same, where spans came late.
const CACHED: &str = "tailsampling.cached_decision";

/// An `ExportTraceServiceRequest` that is ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The request.
    pub bytes: Vec<u8>,
    /// Its spans.
    pub spans: u64,
    /// Traces that it has spans of, late ones counted again.
    pub traces: u64,
}

/// Why spans are kept: which groups they go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The policy that is recorded.
    pub policy: Option<u16>,
    /// And its sub-policy that owns the trace, of a `composite`.
    pub sub: Option<u16>,
    /// They came after the decision.
    pub late: bool,
}

/// Gives the name that is recorded for a policy, or for a sub-policy of it.
type Names<'f, 'n> = dyn Fn(u16, Option<u16>) -> Option<&'n str> + 'f;

/// Spans with the same header and mark.
#[derive(Debug, Default)]
struct Group {
    resource: Vec<u8>,
    scope: Vec<u8>,
    mark: Mark,
    spans: Vec<u8>,
}

/// Puts batches together.
#[derive(Debug)]
pub struct Builder {
    groups: Vec<Group>,
    spare: Vec<Group>,
    places: HashMap<(u64, Mark), usize>,
    last: Option<((u64, Mark), usize)>,
    bytes: usize,
    spans: u64,
    traces: u64,
    spans_max: u64,
    bytes_max: usize,
}

impl Builder {
    /// One for batches of about so many spans and bytes.
    pub fn new(spans_max: u64, bytes_max: usize) -> Builder {
        Builder {
            groups: Vec::new(),
            spare: Vec::new(),
            places: HashMap::new(),
            last: None,
            bytes: 0,
            spans: 0,
            traces: 0,
            spans_max: spans_max.max(1),
            bytes_max,
        }
    }

    /// Bytes that are gathered so far.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// A batch is large enough to be sent.
    pub fn is_full(&self) -> bool {
        self.spans >= self.spans_max || self.bytes >= self.bytes_max
    }

    /// Spans of another trace follow.
    pub fn begin_trace(&mut self) {
        self.traces += 1;
    }

    /// Adds a span; `id` goes before it where it was left out.
    pub fn add(&mut self, header: &Header, mark: Mark, id: Option<&[u8; 16]>, span: &[u8]) {
        let key = (header.serial, mark);
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.place(key, header),
        };
        self.last = Some((key, place));
        let out = &mut self.groups[place].spans;
        let before = out.len();
        let len = span.len() + if id.is_some() { 18 } else { 0 };
        write::varint(out, SPANS.into());
        write::varint(out, len as u64);
        if let Some(id) = id {
            out.extend_from_slice(&[0x0a, 16]);
            out.extend_from_slice(id);
        }
        out.extend_from_slice(span);
        self.bytes += out.len() - before;
        self.spans += 1;
    }

    fn place(&mut self, key: (u64, Mark), header: &Header) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let mut group = self.spare.pop().unwrap_or_default();
        group.resource.extend_from_slice(header.resource_fields());
        group.scope.extend_from_slice(header.scope_fields());
        group.mark = key.1;
        self.bytes += group.resource.len() + group.scope.len() + 24;
        self.groups.push(group);
        self.places.insert(key, self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// All that was added, as one request; none if that is nothing. `name` gives the name that is
    /// recorded for a policy; without it nothing is.
    pub fn finish<'n>(&mut self, name: Option<&Names<'_, 'n>>) -> Option<Batch> {
        if self.spans == 0 {
            return None;
        }
        let mut bytes = Vec::with_capacity(self.bytes + self.groups.len() * 64);
        // Scopes of one resource stand together.
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by(|left, right| {
            self.groups[*left]
                .resource
                .cmp(&self.groups[*right].resource)
        });
        let mut scope = Vec::new();
        for same in order
            .chunk_by(|left, right| self.groups[*left].resource == self.groups[*right].resource)
        {
            write::message(&mut bytes, RESOURCE_SPANS >> 3, |out| {
                out.extend_from_slice(&self.groups[same[0]].resource);
                for at in same {
                    let group = &self.groups[*at];
                    scope.clear();
                    match name {
                        Some(name) => record(&group.scope, group.mark, name, &mut scope),
                        None => scope.extend_from_slice(&group.scope),
                    }
                    let len = scope.len() + group.spans.len();
                    write::varint(out, SCOPE_SPANS.into());
                    write::varint(out, len as u64);
                    out.extend_from_slice(&scope);
                    out.extend_from_slice(&group.spans);
                }
            });
        }
        let batch = Batch {
            bytes,
            spans: self.spans,
            traces: self.traces,
        };
        self.clear();
        Some(batch)
    }

    fn clear(&mut self) {
        self.places.clear();
        self.last = None;
        (self.bytes, self.spans, self.traces) = (0, 0, 0);
        for mut group in self.groups.drain(..) {
            if self.spare.len() < SPARE_GROUPS && group.spans.capacity() <= SPARE_BYTES {
                group.resource.clear();
                group.scope.clear();
                group.spans.clear();
                self.spare.push(group);
            }
        }
    }
}

/// Writes the fields of a `ScopeSpans` again, with what was decided among the attributes of its
/// scope.
fn record<'n>(scope_fields: &[u8], mark: Mark, name: &Names<'_, 'n>, out: &mut Vec<u8>) {
    let policy = mark.policy.and_then(|policy| name(policy, None));
    let sub = mark.policy.zip(mark.sub);
    let sub = sub.and_then(|(policy, sub)| name(policy, Some(sub)));
    if policy.is_none() && !mark.late {
        out.extend_from_slice(scope_fields);
        return;
    }
    write::message(out, SCOPE >> 3, |out| {
        for field in fields(scope_fields) {
            if let (SCOPE, Value::Bytes(scope)) = (field.key, field.value) {
                copy_scope(scope, out);
            }
        }
        if let Some(policy) = policy {
            write::text_value(out, ATTRIBUTES, POLICY, policy);
        }
        if let Some(sub) = sub {
            write::text_value(out, ATTRIBUTES, COMPOSITE, sub);
        }
        if mark.late {
            let kept = |out: &mut Vec<u8>| write::uint(out, 2, 1);
            write::key_value(out, ATTRIBUTES, CACHED.as_bytes(), kept);
        }
    });
    copy_fields(scope_fields, out, |key, _| key != SCOPE);
}

/// The scope's fields, but for what an earlier sampler recorded.
fn copy_scope(scope: &[u8], out: &mut Vec<u8>) {
    copy_fields(scope, out, |key, value| {
        let Value::Bytes(message) = value else {
            return true;
        };
        let recorded = |name: &[u8]| {
            [POLICY, COMPOSITE, CACHED]
                .iter()
                .any(|own| name == own.as_bytes())
        };
        key != otlp::scan::SCOPE_ATTRIBUTES
            || !otlp::scan::attribute(message).is_ok_and(|(name, _)| recorded(name))
    });
}

/// Copies the fields of a message, byte for byte, that are wanted.
fn copy_fields(message: &[u8], out: &mut Vec<u8>, wanted: impl Fn(u32, Value<'_>) -> bool) {
    for field in Fields::new(message).map_while(Result::ok) {
        if wanted(field.key, field.value) {
            out.extend_from_slice(field.whole);
        }
    }
}
