//! The content of the store: traces in the order of their arrival, and their index.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use syntax::hex;

use super::trace::{Shared, TRACE_BYTES_MAX};
use super::{BYTES_MIN, Decision, Fate, Limits, Stage, Trace};
use crate::answer::{HeldNow, TraceList, TraceRow};
use crate::detail::Copy;
use crate::filter::Filter;
use crate::intern::part;
use crate::query::{LIST_MAX, TraceQuery};
use crate::read::{Note, Notes, shortened};

/// Most traces, whatever their size, so that a scan of all of them is short.
const TRACES_MAX: usize = 1_000_000;
/// A trace takes at most this fraction of the store.
const TRACE_PART: u64 = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Held {
    limits: Limits,
    traces: VecDeque<Trace>,
    /// The number of the first trace; the others follow.
    front: u64,
    /// The numbers of traces by identifier.
    index: HashMap<[u8; 16], u64>,
    pub shared: Shared,
    /// Bytes of all traces, without shared texts.
    trace_bytes: u64,
    spans: u64,
    unreadable: u64,
    left_out: u64,
}

impl Held {
    pub fn new(limits: Limits) -> Held {
        let mut held = Held {
            limits,
            traces: VecDeque::new(),
            front: 0,
            index: HashMap::new(),
            shared: Shared::default(),
            trace_bytes: 0,
            spans: 0,
            unreadable: 0,
            left_out: 0,
        };
        held.limit(limits);
        held
    }

    /// Sets other limits. The next call of [`Held::expire`] applies them.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = Limits {
            bytes_max: limits.bytes_max.max(BYTES_MIN),
            ..limits
        };
    }

    /// Lowers the limit of bytes to this, if it is higher. The next call of [`Held::expire`]
    /// applies it.
    pub fn cap_bytes(&mut self, bytes_max: u64) {
        self.limit(Limits {
            bytes_max: self.limits.bytes_max.min(bytes_max),
            ..self.limits
        });
    }

    /// Bytes of the whole content.
    pub fn bytes(&self) -> u64 {
        self.trace_bytes + self.shared.bytes()
    }

    /// The numbers of the stored traces.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.front..self.front + self.traces.len() as u64
    }

    /// A trace by its number.
    pub fn by_number(&self, number: u64) -> Option<&Trace> {
        let at = number.checked_sub(self.front)?;
        self.traces.get(usize::try_from(at).ok()?)
    }

    /// A trace by its identifier.
    pub fn by_id(&self, id: &[u8; 16]) -> Option<&Trace> {
        self.by_number(*self.index.get(id)?)
    }

    /// All traces with spans, oldest first, with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Trace)> {
        let numbered = self.numbers().zip(&self.traces);
        numbered.filter(|(_, trace)| !trace.spans.is_empty())
    }

    /// Adds a parsed request.
    pub fn add(&mut self, mut notes: Notes<'_>, stage: Stage, now_ms: u64) {
        self.unreadable += notes.unreadable;
        // The sort is stable: spans of a trace stay in the order of their arrival.
        notes.spans.sort_by_key(|note| note.trace);
        for group in notes.spans.chunk_by(|one, next| one.trace == next.trace) {
            self.add_group(group, &notes, stage, now_ms);
            // One request may be larger than the store.
            self.expire(now_ms);
        }
    }

    fn add_group(&mut self, group: &[Note<'_>], notes: &Notes<'_>, stage: Stage, now_ms: u64) {
        let Some(first) = group.first() else { return };
        let bytes_max = self.limits.bytes_max / TRACE_PART;
        let bytes_max = TRACE_BYTES_MAX.min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        self.change(first.trace, now_ms, |trace, shared| {
            if stage == Stage::Kept {
                trace.fate = Fate::Kept;
            }
            trace.add(group, &notes.headers, shared, bytes_max)
        });
    }

    /// Records a decision.
    pub fn decided(&mut self, decision: &Decision<'_>, now_ms: u64) {
        if !decision.kept && !self.index.contains_key(&decision.id) {
            return;
        }
        let fate = if decision.kept {
            Fate::Kept
        } else {
            Fate::NotKept
        };
        let policy = decision.policy.map(|policy| shortened(policy.as_bytes()));
        self.change(decision.id, now_ms, |trace, shared| {
            trace.decide(fate, policy, shared);
            0
        });
    }

    /// Changes the trace with this identifier, or creates it, and updates the size. `change`
    /// returns the number of spans that did not fit.
    fn change(
        &mut self,
        id: [u8; 16],
        now_ms: u64,
        change: impl FnOnce(&mut Trace, &mut Shared) -> u64,
    ) {
        let next = self.front + self.traces.len() as u64;
        let number = *self.index.entry(id).or_insert(next);
        if number == next {
            let trace = Trace::new(id, now_ms);
            self.trace_bytes += trace.held_bytes();
            self.traces.push_back(trace);
        }
        let Some(trace) = self.traces.get_mut((number - self.front) as usize) else {
            debug_assert!(false, "what the index names is there");
            return;
        };
        let before = (trace.held_bytes(), trace.spans.len() as u64);
        self.left_out += change(trace, &mut self.shared);
        self.trace_bytes = self.trace_bytes - before.0 + trace.held_bytes();
        self.spans = self.spans - before.1 + trace.spans.len() as u64;
    }

    /// Removes the oldest traces until all are within the age and size limits.
    pub fn expire(&mut self, now_ms: u64) {
        let came_min_ms = now_ms.saturating_sub(self.limits.age_max_ms);
        while let Some(first) = self.traces.front()
            && (first.came_ms < came_min_ms
                || self.bytes() > self.limits.bytes_max
                || self.traces.len() > TRACES_MAX)
        {
            let Some(trace) = self.traces.pop_front() else {
                break;
            };
            self.front += 1;
            self.index.remove(&trace.id);
            self.trace_bytes -= trace.held_bytes();
            self.spans -= trace.spans.len() as u64;
            trace.release(&mut self.shared);
        }
    }

    pub fn now(&self) -> HeldNow {
        HeldNow {
            traces: self.all().count() as u64,
            spans: self.spans,
            bytes: self.bytes(),
            bytes_max: self.limits.bytes_max,
            age_max_ms: self.limits.age_max_ms,
            oldest_ms: self.all().next().map(|(_, trace)| trace.came_ms),
            unreadable: self.unreadable,
            left_out: self.left_out,
        }
    }

    /// See [`super::Store::list`].
    pub fn list(&self, query: &TraceQuery) -> TraceList {
        let filter = Filter::new(query, self);
        let mut matched = 0;
        // The newest matches so far; the heap's top is the oldest of them.
        let mut newest = BinaryHeap::new();
        for (number, trace) in self.all().filter(|(_, trace)| filter.matches(trace)) {
            matched += 1;
            newest.push(Reverse((trace.start_ns, number)));
            if newest.len() > query.limit.min(LIST_MAX) {
                newest.pop();
            }
        }
        let newest = newest.into_sorted_vec().into_iter();
        let rows = newest.filter_map(|Reverse((_, number))| self.by_number(number));
        TraceList {
            traces: rows.map(|trace| self.row(trace)).collect(),
            matched,
            held: self.now(),
        }
    }

    /// The row of a trace in lists.
    pub fn row(&self, trace: &Trace) -> TraceRow {
        let operation = trace.root.operation;
        let operation = operation.map_or(&[][..], |one| self.shared.operations.text(one));
        let text = |at| String::from_utf8_lossy(part(operation, at)).into_owned();
        TraceRow {
            id: hex::text(&trace.id),
            start_ms: crate::value::time_ms(trace.start_ns),
            duration_ms: crate::value::duration_ms(trace.duration_ns()),
            service: text(0),
            name: text(1),
            route: Some(text(2)).filter(|route| !route.is_empty()),
            status: Some(trace.root.status).filter(|status| *status > 0),
            error: trace.is_error,
            spans: trace.spans.len() as u64,
            kept: trace.fate.kept(),
            policy: self.policy(trace),
        }
    }

    /// The policy that decided on a trace.
    fn policy(&self, trace: &Trace) -> Option<String> {
        let policy = self.shared.policies.text(trace.policy?);
        Some(String::from_utf8_lossy(policy).into_owned())
    }

    /// The data of a trace for [`crate::detail`], so that the answer is built without the lock.
    pub fn copy(&self, id: &[u8; 16]) -> Option<Copy> {
        let trace = self.by_id(id).filter(|trace| !trace.spans.is_empty())?;
        let header = |number: &u32| self.shared.headers.text(*number).to_vec();
        let spans = trace.spans.iter();
        let spans = spans.map(|place| trace.range(place));
        Some(Copy {
            id: trace.id,
            kept: trace.fate.kept(),
            policy: self.policy(trace),
            start_ns: trace.start_ns,
            end_ns: trace.end_ns,
            left_out: trace.left_out.into(),
            bytes: trace.bytes.clone(),
            spans: spans.collect(),
            headers: trace.headers.iter().map(header).collect(),
        })
    }

    /// See [`super::Store::check`].
    pub fn check(&self) {
        let mut holders = [HashMap::new(), HashMap::new(), HashMap::new()];
        let (mut bytes, mut spans) = (0, 0);
        for (number, trace) in self.numbers().zip(&self.traces) {
            assert_eq!(self.index.get(&trace.id), Some(&number));
            bytes += trace.held_bytes();
            spans += trace.spans.len() as u64;
            for place in &trace.spans {
                let (message, header) = trace.span(place);
                assert!(!self.shared.headers.text(header).is_empty());
                let span = otlp::scan::span(message, &mut ()).expect("what is held is a span");
                assert_eq!(span.trace_id, trace.id);
            }
            let numbers = [&trace.headers, &trace.operations];
            for (holders, numbers) in holders.iter_mut().zip(numbers) {
                for number in numbers {
                    *holders.entry(*number).or_insert(0) += 1;
                }
            }
            if let Some(policy) = trace.policy {
                *holders[2].entry(policy).or_insert(0) += 1;
            }
        }
        assert_eq!(self.index.len(), self.traces.len());
        assert_eq!((bytes, spans), (self.trace_bytes, self.spans));
        let Shared {
            headers,
            operations,
            policies,
            ..
        } = &self.shared;
        let tables = [headers, operations, policies];
        assert_eq!(holders, tables.map(|table| table.holders()));
    }
}
