//! Taking a request, whole or not at all.

use super::intake::{How, Intake, Known, Run, SPANS_MAX};
use super::{Accepted, Decider, LEARN_BYTES_MAX, LEARN_PART, Rejected, Shard};
use crate::settings::Emit;
use crate::store::{Entry, Full, Refused, Tag};
use otlp::scan::{Around, Slots};
use otlp::scan::{GROUP, Malformed, Scanner, Visitor};

/// Spans whose traces are looked for together, so that their cache misses overlap.
const FOUND_TOGETHER: usize = 64;

/// Bytes that a trace takes on its way out beside its spans, about.
const TRACE_OUT_BYTES: u64 = 64;

/// No trace is known.
pub(super) const NEW: u64 = u64::MAX;

/// The trace was decided.
pub(super) const LATE: u64 = u64::MAX - 1;

/// Notes what a request holds.
struct Gather<'a, 'm, 'i> {
    intake: &'i mut Intake,
    how: How<'m>,
    known: Option<Known<'i>>,
    slots: Slots<'a, 'm>,
    base: usize,
    run: Option<Run>,
    around: Around<'a>,
    /// More spans than can be noted at once.
    overflow: bool,
}

impl<'a> Visitor<'a> for Gather<'a, '_, '_> {
    fn resource(&mut self, fields: &[u8], resource: &'a [u8]) {
        self.around.resource = resource;
        self.run = None;
        if !self.intake.is_full() {
            self.run = Some(self.intake.resource(self.how, fields, resource));
        }
    }

    fn scope(&mut self, fields: &[u8], scope: &'a [u8]) {
        self.around.scope = scope;
        match &mut self.run {
            Some(run) if !self.intake.is_full() => {
                self.intake.scope(self.known.as_mut(), run, fields);
                run.begins_resource = false;
            }
            _ => {
                self.intake.header_bytes += fields.len() as u64 + crate::store::header::HEADER_BYTES
            }
        }
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        self.spans(&[message])
    }

    #[inline]
    fn spans(&mut self, messages: &[&'a [u8]]) -> Result<(), Malformed> {
        let mut tags = [Tag::default(); GROUP];
        if let Some(known) = &self.known {
            self.intake.touch(known, messages, &mut tags);
        }
        for (message, tag) in messages.iter().zip(tags) {
            self.overflow |= self.intake.is_full();
            // Where the span is in the request, of which it is a slice.
            let at = message.as_ptr() as usize - self.base;
            self.intake.span(
                self.how,
                self.known.as_mut().map(|known| (known, tag)),
                (message, at),
                &mut self.slots,
                self.around,
            )?;
        }
        Ok(())
    }
}

/// What is done with each part of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The hashes of traces that do not wait are gathered.
    Count,
    /// It is taken.
    Take,
}

/// Notes a request that is known to be well formed part by part.
struct Parts<'a, 's> {
    shard: &'s mut Shard,
    purpose: Purpose,
    intake: Intake,
    request: &'a [u8],
    resource: Option<(Vec<u8>, &'a [u8])>,
    run: Option<Run>,
    around: Around<'a>,
}

impl<'a> Visitor<'a> for Parts<'a, '_> {
    fn resource(&mut self, fields: &[u8], resource: &'a [u8]) {
        self.around.resource = resource;
        self.run = None;
        self.resource = Some((fields.to_vec(), resource));
    }

    fn scope(&mut self, fields: &[u8], scope: &'a [u8]) {
        self.around.scope = scope;
        let (how, mut known) = self.shard.how();
        if let Some((fields, resource)) = self.resource.take() {
            self.run = Some(self.intake.resource(how, &fields, resource));
        }
        if let Some(run) = &mut self.run {
            self.intake.scope(known.as_mut(), run, fields);
            run.begins_resource = false;
        }
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        if self.intake.is_full() {
            self.end_part();
            self.intake.go_on();
            if let (Some(run), Some(last)) = (&mut self.run, self.intake.runs.last()) {
                run.resource = last.resource;
            }
        }
        let at = message.as_ptr() as usize - self.request.as_ptr() as usize;
        let (how, mut known) = self.shard.how();
        let mut slots = Slots::new(how.matcher.keys());
        let mut tags = [Tag::default(); GROUP];
        if let Some(known) = &known {
            self.intake.touch(known, &[message], &mut tags);
        }
        let known = known.as_mut().map(|known| (known, tags[0]));
        self.intake
            .span(how, known, (message, at), &mut slots, self.around)
    }
}

impl Parts<'_, '_> {
    fn end_part(&mut self) {
        self.shard.find(&self.intake);
        match self.purpose {
            Purpose::Count => self.shard.gather_new(&self.intake),
            Purpose::Take => self.shard.commit(&self.intake, self.request),
        }
    }
}

impl Shard {
    /// How spans are noted, and what is known of them.
    fn how(&mut self) -> (How<'_>, Option<Known<'_>>) {
        let by_service = matches!(self.decider, Decider::Group(Emit::Service, _));
        let how = How {
            matcher: self.decider.matcher(),
            seed: self.options.seed,
            by_service,
        };
        let known = Known {
            headers: &mut self.headers,
            learn: &mut self.learn,
        };
        // Identifiers of traces that are kept apart are not those of their spans, which are kept
        // whole.
        let reads = self.options.templates && !by_service;
        (how, reads.then_some(known))
    }

    /// Takes an `ExportTraceServiceRequest`, whole or not at all.
    ///
    /// # Errors
    /// [`Rejected::Malformed`]: never send it again. [`Rejected::Refused`]: there is no room, try
    /// later.
    pub fn accept(&mut self, request: &[u8], now_ns: u64) -> Result<Accepted, Rejected> {
        self.clock(now_ns);
        let mut scanner = std::mem::take(&mut self.scanner);
        let mut intake = std::mem::take(&mut self.intake);
        let accepted = self.accept_with(request, &mut scanner, &mut intake);
        (self.scanner, self.intake) = (scanner, intake);
        match &accepted {
            Ok(_) => self.counters.requests += 1,
            Err(Rejected::Malformed(_)) => self.counters.malformed_requests += 1,
            Err(Rejected::Refused(_)) => {
                self.counters.refused_requests += 1;
                self.counters.refused_bytes += request.len() as u64;
            }
        }
        accepted
    }

    fn accept_with(
        &mut self,
        request: &[u8],
        scanner: &mut Scanner,
        intake: &mut Intake,
    ) -> Result<Accepted, Rejected> {
        intake.clear();
        let learning = self.reserve_learning();
        let taken = self.take_request(request, scanner, intake);
        self.charge();
        self.budget.release(learning);
        taken.map(|()| Accepted {
            spans: intake.spans,
        })
    }

    fn take_request(
        &mut self,
        request: &[u8],
        scanner: &mut Scanner,
        intake: &mut Intake,
    ) -> Result<(), Rejected> {
        let (how, known) = self.how();
        let mut gather = Gather {
            how,
            known,
            slots: Slots::new(how.matcher.keys()),
            base: request.as_ptr() as usize,
            run: None,
            around: Around::default(),
            overflow: false,
            intake,
        };
        let walked = scanner.walk(request, &mut gather);
        let overflow = gather.overflow;
        walked.map_err(Rejected::Malformed)?;
        let reserved;
        if overflow {
            let mut new = intake.spans;
            if self.may_be_full(new) {
                self.scratch.hashes.clear();
                self.in_parts(Purpose::Count, request, scanner, intake);
                new = self.count_gathered();
            }
            reserved = self.admit(intake, new, request.len() as u64)?;
            self.in_parts(Purpose::Take, request, scanner, intake);
        } else {
            let (new, late_bytes) = self.find(intake);
            let new = self.new_traces(intake, new);
            reserved = self.admit(intake, new, late_bytes)?;
            self.commit(intake, request);
        }
        self.charge();
        self.budget.release(reserved);
        Ok(())
    }

    /// Goes over a request of more spans than are noted at once.
    fn in_parts(
        &mut self,
        purpose: Purpose,
        request: &[u8],
        scanner: &mut Scanner,
        intake: &mut Intake,
    ) {
        let spans = intake.spans;
        intake.clear();
        let mut parts = Parts {
            shard: self,
            purpose,
            intake: std::mem::take(intake),
            request,
            resource: None,
            run: None,
            around: Around::default(),
        };
        let again = scanner.walk(request, &mut parts);
        debug_assert!(again.is_ok(), "it was well formed before");
        parts.end_part();
        *intake = parts.intake;
        debug_assert_eq!(intake.spans, spans, "the same spans were found");
    }

    /// Looks for the traces of all spans; gives how many spans are of none that waits, and the
    /// bytes of those that come after their decision.
    pub(super) fn find(&mut self, intake: &Intake) -> (u64, u64) {
        self.decisions.flush();
        self.decided_early = false;
        let places = &mut self.scratch.places;
        places.clear();
        let (mut new, mut late_bytes) = (0, 0);
        for group in intake.notes.chunks(FOUND_TOGETHER) {
            let start = places.len();
            // The words of the index first, then what they say, which need not be right, then the
            // decisions on traces that do not wait, then the entries: loops of misses that do not
            // wait for each other.
            let touched = group.iter().fold(0, |touched, note| {
                touched ^ self.table.touch_word(note.hash)
            });
            std::hint::black_box(touched);
            places.extend(
                group
                    .iter()
                    .map(|note| self.table.guess(note.hash).unwrap_or(NEW)),
            );
            let new_ones = places[start..].iter().zip(group);
            let touched = new_ones
                .filter(|(place, _)| **place == NEW)
                .fold(0, |touched, (_, note)| {
                    touched ^ self.decisions.touch(note.hash)
                });
            std::hint::black_box(touched);
            for (place, note) in places[start..].iter_mut().zip(group) {
                let is_it = |entry: &Entry| entry.id == note.id;
                if *place != NEW && !self.table.get(*place).is_some_and(is_it) {
                    *place = self.table.find(note.hash, &note.id).unwrap_or(NEW);
                }
            }
            for (place, note) in places[start..].iter_mut().zip(group) {
                if *place != NEW {
                    continue;
                }
                match self.decisions.recall(note.hash) {
                    None => new += 1,
                    Some(past) => {
                        *place = LATE;
                        late_bytes += if past.kept { u64::from(note.len) } else { 0 };
                    }
                }
            }
        }
        (new, late_bytes)
    }

    /// So many more traces may pass `num_traces`.
    fn may_be_full(&self, new: u64) -> bool {
        self.table.pending().saturating_add(new) > self.traces_max
    }

    /// The new traces of a request that was looked for; exact where they may pass `num_traces`,
    /// else the spans of them.
    pub(super) fn new_traces(&mut self, intake: &Intake, new_spans: u64) -> u64 {
        if !self.may_be_full(new_spans) {
            return new_spans;
        }
        self.scratch.hashes.clear();
        self.gather_new(intake);
        self.count_gathered()
    }

    /// Adds the hashes of the new traces of what was looked for.
    fn gather_new(&mut self, intake: &Intake) {
        let notes = intake.notes.iter().zip(&self.scratch.places);
        let new = notes.filter(|(_, place)| **place == NEW);
        self.scratch.hashes.extend(new.map(|(note, _)| note.hash));
    }

    fn count_gathered(&mut self) -> u64 {
        let hashes = &mut self.scratch.hashes;
        hashes.sort_unstable();
        hashes.dedup();
        let traces = hashes.len() as u64;
        hashes.clear();
        hashes.shrink_to(SPANS_MAX);
        traces
    }

    /// Bytes of what leaves so that so many more traces have places: the oldest are decided, and
    /// may be kept.
    fn early_bytes(&self, early: u64, intake: &Intake) -> u64 {
        let oldest = self.table.waiting().take(early as usize);
        let mut bytes = oldest
            .map(|entry| u64::from(entry.bytes) + TRACE_OUT_BYTES)
            .sum();
        if early > self.table.pending() {
            // Traces of the request itself.
            bytes += intake.span_bytes + intake.header_bytes + intake.spans * TRACE_OUT_BYTES;
        }
        bytes
    }

    /// Reserves room for what a request brings, at most; gives the bytes, which are released once
    /// it is taken.
    ///
    /// Where `num_traces` has no room for its new traces, and nobody waits for that
    /// (`block_on_overflow`), the oldest are decided early as it is taken. A request that brings
    /// more of them than there can ever be is taken when nothing waits.
    pub(super) fn admit(
        &mut self,
        intake: &Intake,
        new: u64,
        late_bytes: u64,
    ) -> Result<u64, Rejected> {
        let pending = self.table.pending();
        let early = pending.saturating_add(new).saturating_sub(self.traces_max);
        let waits = self.block_on_overflow && pending > 0;
        if early > 0 && (waits || self.is_congested()) {
            return Err(Rejected::Refused(self.refused(Full::Traces)));
        }
        let growth = self
            .log
            .growth_bytes(intake.spans, intake.span_bytes, intake.largest)
            + self.table.growth_bytes(new)
            + intake.header_bytes
            + late_bytes * 2
            + self.early_bytes(early, intake);
        if !self.budget.reserve(growth) {
            self.log.trim();
            return Err(Rejected::Refused(self.refused(Full::Budget)));
        }
        Ok(growth)
    }

    /// Reserves what templates may learn from a request, if there is room; gives the bytes, which
    /// are released once it is taken.
    pub(super) fn reserve_learning(&mut self) -> u64 {
        let mut left = (self.budget.bytes_max() / LEARN_PART).min(LEARN_BYTES_MAX);
        if !self.options.templates || !self.budget.reserve(left) {
            left = 0;
        }
        self.learn.begin(left);
        left
    }

    /// When there will be room: when the traces of the oldest segment are all decided.
    fn refused(&self, full: Full) -> Refused {
        let wait_ns = u64::from(self.wait_ms) * 1_000_000;
        let since = self.log.oldest_sealed_ns().unwrap_or(self.now_ns);
        let retry_after_ns = (since + wait_ns).saturating_sub(self.now_ns);
        Refused {
            retry_after_ns: retry_after_ns.max(1_000_000),
            full,
        }
    }
}
