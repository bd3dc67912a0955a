//! Taking a request, whole or not at all.

use super::intake::{How, Intake, Note, Run};
use super::memory::Past;
use super::output::Mark;
use super::{Accepted, Decider, Rejected, Shard};
use crate::policy::{Around, Matcher, Slots};
use crate::scan::{Malformed, Scanner, Visitor};
use crate::settings::Emit;
use crate::store::log::ID_FIELD_BYTES;
use crate::store::{Entry, Refused};
use telemetry::proto::varint_len;

/// Spans whose traces are looked for together, so that their cache misses overlap.
const GROUP: usize = 64;

/// No trace is known.
const NEW: u64 = u64::MAX;

/// The trace was decided.
const LATE: u64 = u64::MAX - 1;

/// Bytes of a scope's key and length, about, as the Collector sizes traces.
const SCOPE_FRAME_BYTES: u32 = 3;

/// What an arriving span needs of its run.
#[derive(Clone, Copy)]
struct Arrival {
    header: u32,
    bits: u64,
    /// Bytes of its fields around spans.
    resource_bytes: u32,
    scope_bytes: u32,
    /// Numbers of this run, and of the first of the same resource.
    number: u32,
    first: u32,
}

/// Notes what a request holds.
struct Gather<'a, 'm, 'i> {
    intake: &'i mut Intake,
    how: How<'m>,
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
                self.intake.scope(self.how, run, fields);
                run.begins_resource = false;
            }
            _ => {
                self.intake.header_bytes += fields.len() as u64 + crate::store::header::HEADER_BYTES
            }
        }
    }

    #[inline]
    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        self.overflow |= self.intake.is_full();
        // Where the span is in the request, of which it is a slice.
        let at = message.as_ptr() as usize - self.base;
        self.intake
            .span(self.how, message, at, &mut self.slots, self.around)
    }
}

/// Notes a request that is known to be well formed part by part, and takes each.
struct Parts<'a, 's> {
    shard: &'s mut Shard,
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
        let how = self.shard.how();
        if let Some((fields, resource)) = self.resource.take() {
            self.run = Some(self.intake.resource(how, &fields, resource));
        }
        if let Some(run) = &mut self.run {
            self.intake.scope(how, run, fields);
            run.begins_resource = false;
        }
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        if self.intake.is_full() {
            self.commit();
            self.intake.go_on();
            if let (Some(run), Some(last)) = (&mut self.run, self.intake.runs.last()) {
                run.resource = last.resource;
            }
        }
        let at = message.as_ptr() as usize - self.request.as_ptr() as usize;
        let how = self.shard.how();
        let mut slots = Slots::new(how.matcher);
        self.intake.span(how, message, at, &mut slots, self.around)
    }
}

impl Parts<'_, '_> {
    fn commit(&mut self) {
        self.shard.find(&self.intake);
        self.shard.commit(&self.intake, self.request);
    }
}

impl Shard {
    fn matcher(&self) -> &Matcher {
        match &self.decider {
            Decider::Policies(program) => program.matcher(),
            Decider::Group(_, matcher) => matcher,
        }
    }

    fn how(&self) -> How<'_> {
        How {
            matcher: self.matcher(),
            headers: &self.headers,
            seed: self.options.seed,
            by_service: matches!(self.decider, Decider::Group(Emit::Service, _)),
        }
    }

    /// Takes an `ExportTraceServiceRequest`, whole or not at all.
    ///
    /// # Errors
    /// [`Rejected::Malformed`]: never send it again. [`Rejected::Refused`]: there is no room, try later.
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
        let mut gather = Gather {
            how: self.how(),
            slots: Slots::new(self.matcher()),
            base: request.as_ptr() as usize,
            run: None,
            around: Around::default(),
            overflow: false,
            intake,
        };
        let walked = scanner.walk(request, &mut gather);
        let overflow = gather.overflow;
        walked.map_err(Rejected::Malformed)?;
        let spans = intake.spans;
        let reserved;
        if overflow {
            reserved = self.admit(intake, spans, request.len() as u64)?;
            intake.clear();
            let mut parts = Parts {
                shard: self,
                intake: std::mem::take(intake),
                request,
                resource: None,
                run: None,
                around: Around::default(),
            };
            let again = scanner.walk(request, &mut parts);
            debug_assert!(again.is_ok(), "it was well formed before");
            parts.commit();
            *intake = parts.intake;
        } else {
            let (new, late_bytes) = self.find(intake);
            reserved = self.admit(intake, new, late_bytes)?;
            self.commit(intake, request);
        }
        self.charge();
        self.budget.release(reserved);
        Ok(Accepted { spans })
    }

    /// Looks for the traces of all spans; gives how many spans are of none that waits, and the bytes of those that come
    /// after their decision.
    pub(super) fn find(&mut self, intake: &Intake) -> (u64, u64) {
        let places = &mut self.scratch.places;
        places.clear();
        let (mut new, mut late_bytes) = (0, 0);
        for group in intake.notes.chunks(GROUP) {
            let start = places.len();
            // The words of the index first, which need not be right, then the entries: two loops of independent misses.
            places.extend(
                group
                    .iter()
                    .map(|note| self.table.guess(note.hash).unwrap_or(NEW)),
            );
            for (place, note) in places[start..].iter_mut().zip(group) {
                if *place == NEW {
                    continue;
                }
                if self
                    .table
                    .get(*place)
                    .is_none_or(|entry| entry.id != note.id)
                {
                    *place = self.table.find(note.hash, &note.id).unwrap_or(NEW);
                }
            }
            for (place, note) in places[start..].iter_mut().zip(group) {
                if *place != NEW {
                    continue;
                }
                match self.memory.recall(note.hash) {
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

    /// Reserves room for what a request brings, at most; gives the bytes, which are released once it is taken.
    pub(super) fn admit(
        &mut self,
        intake: &Intake,
        new: u64,
        late_bytes: u64,
    ) -> Result<u64, Rejected> {
        if self.block_on_overflow && !self.has_places(intake, new) {
            return Err(Rejected::Refused(self.refused()));
        }
        let growth = self
            .log
            .growth_bytes(intake.spans, intake.span_bytes, intake.largest)
            + self.table.growth_bytes(new)
            + intake.header_bytes
            + late_bytes * 2;
        if !self.budget.reserve(growth) {
            self.log.trim();
            self.charge();
            return Err(Rejected::Refused(self.refused()));
        }
        Ok(growth)
    }

    /// `num_traces` has room for the new traces, which have so many spans. A request that brings more than there can ever
    /// be is taken when nothing waits.
    fn has_places(&mut self, intake: &Intake, new: u64) -> bool {
        let free = self.traces_max.saturating_sub(self.table.pending());
        if new <= free || self.table.pending() == 0 {
            return true;
        }
        let hashes = &mut self.scratch.hashes;
        hashes.clear();
        let notes = intake.notes.iter().zip(&self.scratch.places);
        hashes.extend(
            notes
                .filter(|(_, place)| **place == NEW)
                .map(|(note, _)| note.hash),
        );
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len() as u64 <= free
    }

    /// When there will be room: when the traces of the oldest segment are all decided.
    fn refused(&self) -> Refused {
        let wait_ns = u64::from(self.wait_ms) * 1_000_000;
        let since = self.log.oldest_sealed_ns().unwrap_or(self.now_ns);
        let retry_after_ns = (since + wait_ns).saturating_sub(self.now_ns);
        Refused {
            retry_after_ns: retry_after_ns.max(1_000_000),
        }
    }

    /// Takes all that was noted; [`Shard::find`] was called for it.
    pub(super) fn commit(&mut self, intake: &Intake, bytes: &[u8]) {
        let places = std::mem::take(&mut self.scratch.places);
        let mut current: Option<(u32, Arrival)> = None;
        let mut first = 0;
        for (note, place) in intake.notes.iter().zip(&places) {
            let arrival = match current {
                Some((run, arrival)) if run == note.run => arrival,
                _ => {
                    let Some(run) = intake.runs.get(note.run as usize) else {
                        continue;
                    };
                    if run.begins_resource || current.is_none() {
                        self.decide_touched();
                        first = self.runs.wrapping_add(2);
                    }
                    let arrival = self.begin_run(intake, run, first);
                    current = Some((note.run, arrival));
                    arrival
                }
            };
            let from = note.at as usize;
            let Some(span) = bytes.get(from..from + note.len as usize) else {
                debug_assert!(false, "a span is where it was noted");
                continue;
            };
            self.arrive(note, *place, arrival, span);
        }
        self.decide_touched();
        self.scratch.places = places;
        if self.builder.is_full() {
            self.flush();
        }
    }

    fn begin_run(&mut self, intake: &Intake, run: &Run, first: u32) -> Arrival {
        let (resource, scope) = intake.fields_of(run);
        let header = match self.headers.find(run.hash, resource, scope) {
            Some(header) => header,
            None => self.headers.insert(run.hash, resource, scope, run.bits),
        };
        self.runs = self.runs.wrapping_add(2);
        Arrival {
            header,
            bits: run.bits,
            resource_bytes: resource.len() as u32,
            scope_bytes: scope.len() as u32 + SCOPE_FRAME_BYTES,
            number: self.runs,
            first,
        }
    }

    #[inline]
    fn arrive(&mut self, note: &Note, place: u64, arrival: Arrival, span: &[u8]) {
        let known = self
            .table
            .get(place)
            .is_some_and(|entry| !entry.is_gone() && entry.id == note.id);
        let number = if known {
            place
        } else {
            match self.place(note, place, arrival, span) {
                Some(number) => number,
                None => return,
            }
        };
        self.append(note, number, arrival, span);
        if note.is_root && self.wait_after_root_ns > 0 {
            self.root(number);
        }
        if self.trace_bytes_max > 0 {
            self.check_size(number, note.hash);
        }
    }

    /// The trace of a span that was not waiting: a new one, or none if it was decided.
    #[cold]
    #[inline(never)]
    fn place(&mut self, note: &Note, place: u64, arrival: Arrival, span: &[u8]) -> Option<u64> {
        if let Some(number) = self.table.find(note.hash, &note.id) {
            return Some(number);
        }
        // That it is not remembered was seen before, and holds unless traces are decided while a request is taken.
        let decided = place == LATE || self.trace_bytes_max > 0 || self.span_ingest;
        if decided && let Some(past) = self.memory.recall(note.hash) {
            self.late(past, arrival, span);
            return None;
        }
        if self.table.pending() >= self.traces_max && !self.block_on_overflow {
            self.evict();
        }
        self.counters.new_traces += 1;
        Some(
            self.table
                .insert(note.hash, Entry::new(note.id, self.now_ms())),
        )
    }

    /// A span whose trace was decided goes the same way.
    fn late(&mut self, past: Past, arrival: Arrival, span: &[u8]) {
        let age_ns = self.now_ns.saturating_sub(past.about_ns);
        self.counters.late_span_ages.add(age_ns);
        if past.kept {
            self.counters.late_sampled += 1;
            self.account.late_kept(1);
            let mark = Mark {
                policy: past.policy,
                late: true,
            };
            if let Some(header) = self.headers.get(arrival.header) {
                self.builder.begin_trace();
                self.builder.add(header, mark, None, span);
            }
        } else {
            self.counters.late_not_sampled += 1;
            self.account.late_dropped(1);
        }
        // A header that no record names would stay for ever; this one goes with the next segment.
        self.use_header(arrival.header, 0);
    }

    /// The current segment uses a header; there is one afterwards, with room for a span of so many bytes.
    fn use_header(&mut self, header: u32, span_bytes: usize) {
        let segment = self
            .log
            .segment_for(span_bytes, self.table.tail(), self.now_ns);
        if self.headers.used_in(header, segment) {
            self.log.note_header(header);
        }
    }

    #[inline]
    fn append(&mut self, note: &Note, number: u64, arrival: Arrival, span: &[u8]) {
        let stored = if note.stripped {
            &span[ID_FIELD_BYTES..]
        } else {
            span
        };
        self.use_header(arrival.header, stored.len());
        let matcher = match &self.decider {
            Decider::Policies(program) => program.matcher(),
            Decider::Group(_, matcher) => matcher,
        };
        let Some(entry) = self.table.get_mut(number) else {
            debug_assert!(false, "the trace was found");
            return;
        };
        let new_resource =
            entry.spans == 0 || ((entry.mark | 1).wrapping_sub(arrival.first | 1) as i32) < 0;
        let new_scope = new_resource || entry.mark | 1 != arrival.number | 1;
        let mut size = (span.len() + 1 + varint_len(span.len() as u64)) as u32;
        if new_scope {
            size = size.saturating_add(arrival.scope_bytes);
        }
        if new_resource {
            size = size.saturating_add(arrival.resource_bytes);
            if self.span_ingest {
                // Every batch is looked at alone.
                (entry.bits, entry.start_ns, entry.end_ns) = (0, 0, 0);
                self.scratch.touched.push(number);
            }
        }
        entry.bytes = entry.bytes.saturating_add(size);
        entry.mark = arrival.number | entry.mark & 1;
        entry.head = self
            .log
            .append(entry.head, arrival.header, note.stripped, stored);
        entry.spans += 1;
        matcher.arrive(entry, note.bits | arrival.bits, note.start_ns, note.end_ns);
        self.account.arrive(1);
    }

    /// A root came: its trace is due after the shorter wait, unless it is due before.
    fn root(&mut self, number: u64) {
        let due_ns = self.now_ns + self.wait_after_root_ns;
        let (now_ms, wait_ms) = (self.now_ms(), self.wait_ms);
        let wait_ns = self.wait_after_root_ns;
        let Some(entry) = self
            .table
            .get_mut(number)
            .filter(|entry| entry.mark & 1 == 0)
        else {
            return;
        };
        entry.mark |= 1;
        let left_ms = wait_ms.saturating_sub(now_ms.wrapping_sub(entry.arrived_ms));
        if wait_ns < u64::from(left_ms) * 1_000_000 {
            self.rooted.push_back((due_ns, number));
        }
    }
}
