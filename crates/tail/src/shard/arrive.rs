//! Spans arrive at their traces: those that wait, new ones, and those that were decided.

use super::Shard;
use super::accept::LATE;
use super::intake::{Intake, Note, Run};
use super::memory::Past;
use super::output::Mark;
use crate::store::log::ID_FIELD_BYTES;
use crate::store::{Buffer, Entry, Form};
use otlp::scan::{self, RESOURCE, SCOPE};
use otlp::scan::{Around, Slots};
use otlp::wire::{self, Value};
use otlp::write::varint_len;

/// Bytes of a scope's key and length, about, as the Collector sizes traces.
const SCOPE_FRAME_BYTES: u32 = 3;

/// What an arriving span needs of its run.
#[derive(Clone, Copy)]
struct Arrival {
    header: u32,
    /// Its templates.
    set: u32,
    bits: u64,
    /// Bytes of its fields around spans.
    resource_bytes: u32,
    scope_bytes: u32,
    /// Numbers of this run, and of the first of the same resource.
    number: u32,
    first: u32,
    /// The segment that is known to use the header.
    segment: Option<u32>,
}

impl Shard {
    /// Takes all that was noted; [`Shard::find`] was called for it.
    pub(super) fn commit<'b>(&mut self, intake: &'b Intake, bytes: &'b [u8]) {
        let places = std::mem::take(&mut self.scratch.places);
        let mut current: Option<(u32, Arrival)> = None;
        let mut first = 0;
        for (note, place) in intake.notes.iter().zip(&places) {
            let arrival = match &mut current {
                Some((run, arrival)) if *run == note.run => arrival,
                _ => {
                    let Some(run) = intake.runs.get(note.run as usize) else {
                        continue;
                    };
                    if run.begins_resource || current.is_none() {
                        self.decide_touched();
                        first = self.runs.wrapping_add(2);
                    }
                    let arrival = self.begin_run(intake, run, first);
                    &mut current.insert((note.run, arrival)).1
                }
            };
            let part = |bytes: &'b [u8], from: u32, len: u32| {
                let from = from as usize;
                bytes.get(from..from + len as usize)
            };
            let kept = part(&intake.kept, note.kept_at, note.kept_len);
            let (Some(span), Some(kept)) = (part(bytes, note.at, note.len), kept) else {
                debug_assert!(false, "a span is where it was noted");
                continue;
            };
            self.arrive(note, *place, arrival, (span, kept));
        }
        self.decide_touched();
        self.scratch.places = places;
        if self.builder.is_full() {
            self.flush();
        }
    }

    fn begin_run(&mut self, intake: &Intake, run: &Run, first: u32) -> Arrival {
        let (resource, scope) = intake.fields_of(run);
        // Spans that were written with a template of it stay with it.
        let known = run
            .header
            .or_else(|| self.headers.current(run.hash, resource, scope));
        let seed = self.options.seed;
        let found = known.unwrap_or_else(|| self.headers.insert(run.hash, resource, scope, seed));
        self.runs = self.runs.wrapping_add(2);
        Arrival {
            header: found.header,
            set: found.set,
            bits: run.bits,
            resource_bytes: resource.len() as u32,
            scope_bytes: scope.len() as u32 + SCOPE_FRAME_BYTES,
            number: self.runs,
            first,
            segment: None,
        }
    }

    #[inline]
    fn arrive(
        &mut self,
        note: &Note,
        place: u64,
        arrival: &mut Arrival,
        (span, kept): (&[u8], &[u8]),
    ) {
        let known = self
            .table
            .get(place)
            .is_some_and(|entry| !entry.is_gone() && entry.id == note.id);
        let number = if known {
            place
        } else {
            match self.place(note, place, *arrival, span) {
                Some(number) => number,
                None => return,
            }
        };
        if kept.is_empty() {
            self.append_unread(note, number, arrival, span);
        } else {
            self.append(note, number, arrival, (Form::Templated, kept));
        }
        if self.has_words {
            self.arrive_more(number, arrival, span);
        }
        if note.is_root && self.heeds_roots && self.wait_after_root_ns > 0 {
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
        // That it is not remembered was seen before, and holds unless traces are decided while a
        // request is taken.
        let decided =
            place == LATE || self.decided_early || self.trace_bytes_max > 0 || self.span_ingest;
        if decided {
            self.decisions.flush();
        }
        if decided && let Some(past) = self.decisions.recall(note.hash) {
            self.note_decided(note.id, past.kept, past.policy);
            self.decisions.refresh(note.hash, past, self.now_ns);
            self.late(past, arrival, span);
            return None;
        }
        if self.table.pending() >= self.traces_max {
            self.decide_oldest();
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
                policy: past.policy.filter(|_| self.options.record_policy),
                sub: None,
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

    /// The current segment uses a header; there is one afterwards, with room for a span of so many
    /// bytes.
    fn use_header(&mut self, header: u32, span_bytes: usize) {
        let segment = self
            .log
            .segment_for(span_bytes, self.table.tail(), self.now_ns);
        if self.headers.used_in(header, segment) {
            self.log.note_header(header);
        }
    }

    /// Appends a span that fitted no template when it was noted; it may get one now.
    fn append_unread(&mut self, note: &Note, number: u64, arrival: &mut Arrival, span: &[u8]) {
        if !note.stripped {
            return self.append(note, number, arrival, (Form::Whole, span));
        }
        let mut stored = (Form::Stripped, &span[ID_FIELD_BYTES..]);
        let keys = self.decider.matcher().keys();
        let learn = &mut self.learn;
        if !self.options.templates {
            return self.append(note, number, arrival, stored);
        }
        let mut kept = std::mem::take(&mut self.scratch.kept);
        kept.clear();
        kept.resize(stored.1.len(), 0);
        let mut out = Buffer::new(&mut kept);
        if self
            .headers
            .sets
            .encode(arrival.set, stored.1, keys, learn, &mut out)
        {
            let len = out.written();
            stored = (Form::Templated, &kept[..len]);
        }
        self.append(note, number, arrival, stored);
        self.scratch.kept = kept;
    }

    #[inline]
    fn append(
        &mut self,
        note: &Note,
        number: u64,
        arrival: &mut Arrival,
        (form, stored): (Form, &[u8]),
    ) {
        let segment = self
            .log
            .segment_for(stored.len(), self.table.tail(), self.now_ns);
        if arrival.segment != Some(segment) {
            arrival.segment = Some(segment);
            self.use_header(arrival.header, stored.len());
        }
        let matcher = self.decider.matcher();
        let Some(entry) = self.table.get_mut(number) else {
            debug_assert!(false, "the trace was found");
            return;
        };
        let new_resource =
            entry.spans == 0 || ((entry.mark | 1).wrapping_sub(arrival.first | 1) as i32) < 0;
        let new_scope = new_resource || entry.mark | 1 != arrival.number | 1;
        let mut size = note.len + 1 + varint_len(note.len.into()) as u32;
        if new_scope {
            size = size.saturating_add(arrival.scope_bytes);
        }
        if new_resource {
            size = size.saturating_add(arrival.resource_bytes);
            if self.span_ingest {
                // Every batch is looked at alone.
                (entry.bits, entry.start_ns, entry.end_ns) = (0, 0, 0);
                self.scratch.touched.push(number);
                self.scratch.more.is_anew = true;
            }
        }
        entry.bytes = entry.bytes.saturating_add(size);
        entry.mark = arrival.number | entry.mark & 1;
        entry.head = self.log.append(entry.head, arrival.header, form, stored);
        entry.spans += 1;
        let root = self.root_bit * u64::from(note.is_root);
        let bits = note.bits | arrival.bits | root;
        matcher.arrive(entry, bits, note.start_ns, note.end_ns);
        self.account.arrive(1);
    }

    /// Takes a span into the further words of its trace: it is read once more.
    #[cold]
    #[inline(never)]
    fn arrive_more(&mut self, number: u64, arrival: &Arrival, span: &[u8]) {
        let matcher = self.decider.matcher();
        let Some(header) = self.headers.get(arrival.header) else {
            debug_assert!(false, "the header of a span is there");
            return;
        };
        let around = Around {
            resource: part_of(header.resource_fields(), RESOURCE),
            scope: part_of(header.scope_fields(), SCOPE),
        };
        let more = &mut self.scratch.more;
        if more.run != Some(arrival.number) {
            more.run = Some(arrival.number);
            matcher.resource_words(around.resource, &mut more.resource);
        }
        let mut slots = Slots::new(matcher.keys());
        let Ok(span) = scan::span(span, &mut slots) else {
            debug_assert!(false, "it was read before");
            return;
        };
        if let Some((entry, words)) = self.table.with_words_mut(number) {
            if std::mem::take(&mut more.is_anew) {
                words.fill(0);
            }
            let resource = &more.resource;
            matcher.arrive_more((words, entry), (&span, &slots), around, resource);
        }
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
            self.rooted.push((due_ns, number));
        }
    }
}

/// A field of a message that is a message; the last one counts.
fn part_of(fields: &[u8], key: u32) -> &[u8] {
    let mut part = &[][..];
    for field in wire::fields(fields) {
        if let (true, Value::Bytes(bytes)) = (field.key == key, field.value) {
            part = bytes;
        }
    }
    part
}
