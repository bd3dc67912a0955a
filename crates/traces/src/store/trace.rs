//! A stored trace.

use std::collections::HashSet;

use crate::intern::Interned;
use crate::read::{Header, Note};

/// Most spans of a trace; further ones are counted.
pub(crate) const SPANS_MAX: usize = 10_000;
/// Most bytes of the spans of a trace.
pub(crate) const TRACE_BYTES_MAX: usize = 4 << 20;
/// Most different resources and scopes of a trace.
const HEADERS_MAX: usize = 1024;
/// Most bytes of a resource and a scope.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Most different operations of a trace that searches find.
const OPERATIONS_MAX: usize = 256;
/// Up to this many arriving spans are compared one by one with the stored ones; for more, a set is
/// built.
const COMPARED_MAX: usize = 8;

/// Bytes of a trace in addition to its spans: the trace itself, and its place in the index.
pub(crate) const TRACE_BYTES: u64 = size_of::<Trace>() as u64 + 64;

/// The decision on a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Undecided,
    Kept,
    NotKept,
}

impl Fate {
    /// The decision in answers.
    pub fn kept(self) -> Option<bool> {
        match self {
            Fate::Undecided => None,
            Fate::Kept => Some(true),
            Fate::NotKept => Some(false),
        }
    }
}

/// A trace. Numbers refer to texts in the store's tables; the trace holds one reference to each.
#[derive(Debug)]
pub(crate) struct Trace {
    pub id: [u8; 16],
    /// The arrival of its first span.
    pub came_ms: u64,
    /// The earliest start; 0: there is no span yet.
    pub start_ns: u64,
    /// The latest end.
    pub end_ns: u64,
    pub fate: Fate,
    pub is_error: bool,
    /// The policy that decided.
    pub policy: Option<u32>,
    pub root: Root,
    pub left_out: u32,
    /// The messages of its spans, one after the other.
    pub bytes: Vec<u8>,
    pub spans: Vec<Place>,
    /// Its headers, each of a resource and a scope.
    pub headers: Vec<u32>,
    /// Its operations, each of a service, a name and a route.
    pub operations: Vec<u32>,
}

/// The place of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    print: u64,
    /// The start of its message, and its length.
    at: u32,
    len: u32,
    /// The index of its header in the trace.
    header: u32,
}

/// The span that represents its trace: the root, or the earliest one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Root {
    /// Its operation; the trace holds the reference.
    pub operation: Option<u32>,
    /// The HTTP status; 0: none.
    pub status: u16,
    is_root: bool,
    start_ns: u64,
}

/// Tables of the texts that traces share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub headers: Interned,
    pub operations: Interned,
    pub policies: Interned,
    scratch: Vec<u8>,
}

impl Shared {
    pub fn bytes(&self) -> u64 {
        self.headers.bytes() + self.operations.bytes() + self.policies.bytes()
    }
}

impl Trace {
    /// A trace without spans.
    pub fn new(id: [u8; 16], came_ms: u64) -> Trace {
        Trace {
            id,
            came_ms,
            start_ns: 0,
            end_ns: 0,
            fate: Fate::Undecided,
            is_error: false,
            policy: None,
            root: Root::default(),
            left_out: 0,
            bytes: Vec::new(),
            spans: Vec::new(),
            headers: Vec::new(),
            operations: Vec::new(),
        }
    }

    /// Bytes that it takes in memory, without shared texts.
    pub fn held_bytes(&self) -> u64 {
        let places = self.spans.capacity() * size_of::<Place>();
        let numbers = (self.headers.capacity() + self.operations.capacity()) * size_of::<u32>();
        TRACE_BYTES + (self.bytes.capacity() + places + numbers) as u64
    }

    /// The time from the earliest start to the latest end.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The message of a span, and the number of its header.
    pub fn span(&self, place: &Place) -> (&[u8], u32) {
        let (range, header) = self.range(place);
        let message = self.bytes.get(range);
        let header = self.headers.get(header);
        debug_assert!(message.is_some() && header.is_some());
        (
            message.unwrap_or_default(),
            header.copied().unwrap_or_default(),
        )
    }

    /// The range of a span's message in the trace's bytes, and the index of its header in the
    /// trace.
    pub fn range(&self, place: &Place) -> (std::ops::Range<usize>, usize) {
        let at = place.at as usize;
        (at..at + place.len as usize, place.header as usize)
    }

    /// Adds the spans of one request; the trace may take at most `bytes_max` bytes. Returns the
    /// number of spans that did not fit.
    pub fn add(
        &mut self,
        notes: &[Note<'_>],
        headers: &[Header<'_>],
        shared: &mut Shared,
        bytes_max: usize,
    ) -> u64 {
        let mut known: Option<HashSet<u64>> = (notes.len() > COMPARED_MAX)
            .then(|| self.spans.iter().map(|place| place.print).collect());
        let before = self.left_out;
        let mut header_numbers: (u32, u32) = (u32::MAX, 0);
        for note in notes {
            let is_known = match &mut known {
                Some(known) => !known.insert(note.print),
                None => self.spans.iter().any(|place| place.print == note.print),
            };
            if note.print != 0 && is_known {
                continue;
            }
            let is_full =
                self.spans.len() >= SPANS_MAX || self.bytes.len() + note.message.len() > bytes_max;
            let header = headers.get(note.header as usize).copied();
            let header = header.unwrap_or_default();
            if !is_full && header_numbers.0 != note.header {
                header_numbers = match self.header(&header, shared) {
                    Some(number) => (note.header, number),
                    None => (u32::MAX, 0),
                };
            }
            if is_full || header_numbers.0 != note.header {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            self.push(note, header_numbers.1);
            self.describe(note, &header, shared);
        }
        u64::from(self.left_out - before)
    }

    fn push(&mut self, note: &Note<'_>, header: u32) {
        let at = self.bytes.len();
        grow(&mut self.bytes, note.message.len());
        self.bytes.extend_from_slice(note.message);
        grow(&mut self.spans, 1);
        self.spans.push(Place {
            print: note.print,
            at: at as u32,
            len: note.message.len() as u32,
            header,
        });
    }

    /// The index of a header in the trace; None if there are too many, or it is too large.
    fn header(&mut self, header: &Header<'_>, shared: &mut Shared) -> Option<u32> {
        if header.resource.len() + header.scope.len() > HEADER_BYTES_MAX {
            return None;
        }
        let Shared {
            headers, scratch, ..
        } = shared;
        crate::intern::join(&[header.resource, header.scope], scratch);
        place(&mut self.headers, headers, scratch, HEADERS_MAX)
    }

    /// Updates the values of the whole trace from a span.
    fn describe(&mut self, note: &Note<'_>, header: &Header<'_>, shared: &mut Shared) {
        if self.start_ns == 0 || (note.start_ns > 0 && note.start_ns < self.start_ns) {
            self.start_ns = note.start_ns;
        }
        self.end_ns = self.end_ns.max(note.end_ns);
        self.is_error |= note.is_error;
        let Shared {
            operations,
            policies,
            scratch,
            ..
        } = shared;
        if self.policy.is_none() && !note.policy.is_empty() {
            self.policy = Some(policies.hold(note.policy));
        }
        crate::intern::join(&[header.service, note.name, note.route], scratch);
        let place = place(&mut self.operations, operations, scratch, OPERATIONS_MAX);
        let is_better = match (note.is_root, self.root.is_root) {
            (true, false) => true,
            (false, true) => false,
            _ => note.start_ns < self.root.start_ns,
        };
        if self.root.operation.is_none() || is_better {
            let operation = place.and_then(|place| self.operations.get(place as usize).copied());
            self.root = Root {
                operation: operation.or(self.root.operation),
                status: note.status,
                is_root: note.is_root,
                start_ns: note.start_ns,
            };
        }
    }

    /// Records the decision.
    pub fn decide(&mut self, fate: Fate, policy: Option<&[u8]>, shared: &mut Shared) {
        self.fate = fate;
        let policy = policy.map(|policy| shared.policies.hold(policy));
        let before = std::mem::replace(&mut self.policy, policy);
        if let Some(before) = before {
            shared.policies.release(before);
        }
    }

    /// Drops its references to shared texts.
    pub fn release(&self, shared: &mut Shared) {
        self.headers
            .iter()
            .for_each(|one| shared.headers.release(*one));
        self.operations
            .iter()
            .for_each(|one| shared.operations.release(*one));
        if let Some(policy) = self.policy {
            shared.policies.release(policy);
        }
    }
}

/// The index of a text's number in a list, to which it is added if it is missing; None if the list
/// is full.
fn place(list: &mut Vec<u32>, table: &mut Interned, text: &[u8], most: usize) -> Option<u32> {
    if let Some(number) = table.find(text)
        && let Some(place) = list.iter().position(|own| *own == number)
    {
        return Some(place as u32);
    }
    if list.len() >= most {
        return None;
    }
    grow(list, 1);
    list.push(table.hold(text));
    Some(list.len() as u32 - 1)
}

/// Reserves room for more items, plus a quarter when it grows: this wastes little memory, and
/// growing is rare.
fn grow<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4));
    }
}
