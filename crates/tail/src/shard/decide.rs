//! Deciding: traces that are due, that make room for others, that are too large, or left at the
//! end.

use super::output::Mark;
use super::{Decider, Progress, Shard};
use crate::account::Cause;
use crate::policy::{Decision, Fate, Trace};
use crate::store::log::NONE;
use crate::store::{Entry, Form, touch};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of kept spans that a tick writes, about.
const TICK_BYTES_MAX: u64 = 8 << 20;

/// Traces that are decided together.
const GROUP: usize = 32;

/// Records whose templates are fetched together.
const RECORDS_TOGETHER: usize = 8;

/// Spans of them, but for the last one.
const GROUP_SPANS_MAX: u32 = 1024;

/// Records of a kept trace that are brought near together with those of others; what comes after
/// them is read one by one.
const TOUCHED_MAX: usize = 32;

/// Segments that a tick gives back: the system takes a part of a millisecond for each that is not
/// kept for later.
const RELEASES_MAX: usize = 8;

impl Shard {
    /// Decides on traces that are due, at most `traces_max` of them and about
    /// [`Options::tick_spans_max`] kept spans or 8 MiB of them, and gives back what they held. Call
    /// it every few milliseconds, and again soon if there is more.
    ///
    /// [`Options::tick_spans_max`]: super::Options::tick_spans_max
    pub fn tick(&mut self, now_ns: u64, traces_max: u64) -> Progress {
        self.clock(now_ns);
        self.work(traces_max, Shard::due)
    }

    /// Decides on all traces that wait, or drops them if that is how it is set; as much of them as
    /// [`Shard::tick`] does. Call it until there are no more, after the last request.
    pub fn shutdown(&mut self, now_ns: u64, traces_max: u64) -> Progress {
        self.clock(now_ns);
        if !self.drop_pending_on_shutdown {
            return self.work(traces_max, |shard| {
                shard.table.oldest().map(|(number, _)| number)
            });
        }
        let mut progress = Progress::default();
        while let Some((number, _)) = self.table.oldest() {
            if progress.traces >= traces_max {
                progress.more = true;
                break;
            }
            if let Some((entry, _)) = self.take(number) {
                self.account.lose(Cause::Shutdown, entry.spans.into());
            }
            progress.traces += 1;
        }
        self.end(progress)
    }

    /// Decides on the traces that `next` gives, in groups.
    fn work(&mut self, traces_max: u64, next: impl Fn(&mut Shard) -> Option<u64>) -> Progress {
        let mut progress = Progress::default();
        let spans_end = self
            .account
            .in_export
            .saturating_add(self.options.tick_spans_max);
        let bytes_end = self.written_bytes().saturating_add(TICK_BYTES_MAX);
        while next(self).is_some() {
            let left = traces_max - progress.traces;
            let is_long = self.account.in_export >= spans_end || self.written_bytes() >= bytes_end;
            if left == 0 || is_long || self.is_congested() {
                progress.more = true;
                break;
            }
            self.table.touch(GROUP, self.options.seed);
            progress.traces += self.settle_group(left.min(GROUP as u64), &next);
        }
        self.end(progress)
    }

    /// Decides on a group of traces, each as a whole; gives how many there were. All are decided
    /// before any is written, so that the cache misses of one step overlap.
    fn settle_group(&mut self, most: u64, next: impl Fn(&mut Shard) -> Option<u64>) -> u64 {
        let mut group = std::mem::take(&mut self.scratch.group);
        group.clear();
        let mut spans = 0_u32;
        while (group.len() as u64) < most
            && spans < GROUP_SPANS_MAX
            && let Some(number) = next(self)
        {
            let Some((entry, hash)) = self.take(number) else {
                debug_assert!(false, "a trace that is due waits");
                break;
            };
            spans = spans.saturating_add(entry.spans);
            let decision = self.decide(&entry);
            group.push((entry, hash, decision));
        }
        let kept = group
            .iter()
            .filter(|(_, _, decision)| decision.fate == Fate::Sampled);
        let chains = &mut self.scratch.addresses;
        chains.clear();
        chains.extend(kept.map(|(entry, ..)| entry.head));
        self.log.touch(chains, TOUCHED_MAX);
        for (entry, hash, decision) in &group {
            self.conclude(entry, *hash, *decision);
        }
        let traces = group.len() as u64;
        self.scratch.group = group;
        traces
    }

    fn end(&mut self, progress: Progress) -> Progress {
        // What follows soon goes with it.
        if !progress.more || self.is_congested() {
            self.flush();
        }
        self.release();
        self.counters.decisions_forgotten = self.decisions.forgotten();
        self.charge();
        progress
    }

    /// Too much waits for the exporter.
    pub(super) fn is_congested(&self) -> bool {
        self.written_bytes() >= self.options.export_bytes_max
    }

    /// Bytes of kept spans that are not settled yet.
    fn written_bytes(&self) -> u64 {
        self.export_bytes + self.builder.bytes()
    }

    /// When the next trace is due at the latest; none if none waits. A driver need not tick before.
    pub fn next_due_ns(&mut self) -> Option<u64> {
        let rooted = self.rooted.first().map(|(due_ns, _)| due_ns);
        let (now_ms, now_ns, wait_ms) = (self.now_ms(), self.now_ns, self.wait_ms);
        let oldest = self.table.oldest().map(|(_, entry)| {
            let left_ms = wait_ms.saturating_sub(now_ms.wrapping_sub(entry.arrived_ms));
            now_ns + u64::from(left_ms) * 1_000_000
        });
        rooted.into_iter().chain(oldest).min()
    }

    /// A trace that is due.
    fn due(&mut self) -> Option<u64> {
        while let Some((due_ns, number)) = self.rooted.first() {
            if due_ns > self.now_ns {
                break;
            }
            if self.table.get(number).is_some_and(|entry| !entry.is_gone()) {
                // It stays first until it is taken: asking twice gives the same.
                return Some(number);
            }
            self.rooted.pop();
        }
        let (now_ms, wait_ms) = (self.now_ms(), self.wait_ms);
        let (number, entry) = self.table.oldest()?;
        (now_ms.wrapping_sub(entry.arrived_ms) >= wait_ms).then_some(number)
    }

    /// Takes a trace out of the table: what was known of it, and its hash. Its further words of
    /// bits are in the scratch space until the next one is taken.
    fn take(&mut self, number: u64) -> Option<(Entry, u64)> {
        let id = self.table.get(number)?.id;
        let hash = xxh3_64_with_seed(&id, self.options.seed);
        let (words, own) = (&mut self.scratch.words, self.table.words(number));
        words.clear();
        words.extend_from_slice(own);
        let entry = self.table.remove(number, hash)?;
        let age_ms = self.now_ms().wrapping_sub(entry.arrived_ms);
        self.counters
            .trace_removal_ages
            .add(u64::from(age_ms) * 1_000_000);
        Some((entry, hash))
    }

    fn decide(&mut self, entry: &Entry) -> Decision {
        match &mut self.decider {
            Decider::Policies(_) if self.span_ingest => Decision {
                fate: Fate::NotSampled,
                policy: None,
                sub: None,
            },
            Decider::Policies(program) => {
                program.decide(&trace(entry, &self.scratch.words), self.now_ns)
            }
            Decider::Group(..) => Decision {
                fate: if entry.bits & self.root_bit == self.root_bit {
                    Fate::Sampled
                } else {
                    Fate::NotSampled
                },
                policy: None,
                sub: None,
            },
        }
    }

    fn conclude(&mut self, entry: &Entry, hash: u64, decision: Decision) {
        let spans = u64::from(entry.spans);
        match decision.fate {
            Fate::Sampled => {
                self.counters.traces_sampled += 1;
                self.account.keep(spans);
                self.decisions
                    .remember(hash, true, decision.policy, self.now_ns);
                self.note_decided(entry.id, true, decision.policy);
                self.emit(entry, decision);
            }
            Fate::Dropped => {
                self.counters.traces_dropped += 1;
                self.account
                    .drop_by(decision.policy.unwrap_or_default(), spans);
                self.decisions
                    .remember(hash, false, decision.policy, self.now_ns);
                self.note_decided(entry.id, false, decision.policy);
            }
            Fate::NotSampled | Fate::Pending => {
                self.counters.traces_not_sampled += 1;
                self.account.not_sampled(spans);
                if self.remember_not_sampled {
                    self.decisions.remember(hash, false, None, self.now_ns);
                    self.note_decided(entry.id, false, None);
                }
            }
        }
    }

    /// Puts the spans of a trace into the batch, in the order in which they came.
    fn emit(&mut self, entry: &Entry, Decision { policy, sub, .. }: Decision) {
        let addresses = &mut self.scratch.addresses;
        addresses.clear();
        let mut at = entry.head;
        while at != NONE {
            let Some(record) = self.log.read(at) else {
                debug_assert!(false, "records of a trace that waits are there");
                break;
            };
            addresses.push(at);
            at = record.prev;
        }
        let is_recorded = self.options.record_policy;
        let mark = Mark {
            policy: policy.filter(|_| is_recorded),
            sub: sub.filter(|_| is_recorded),
            late: false,
        };
        self.builder.begin_trace();
        let mut written = 0;
        let addresses = std::mem::take(&mut self.scratch.addresses);
        self.touch_templates(&addresses);
        for at in addresses.iter().rev() {
            let Some(record) = self.log.read(*at) else {
                continue;
            };
            let Some(header) = self.headers.get(record.header) else {
                debug_assert!(false, "the header of a record is there");
                continue;
            };
            let id = (record.form != Form::Whole).then_some(&entry.id);
            let mut span = record.span;
            if record.form == Form::Templated {
                self.scratch.whole.clear();
                let decoded = self.headers.decode(header, span, &mut self.scratch.whole);
                debug_assert!(decoded.is_some(), "what was written is read back");
                span = &self.scratch.whole;
            }
            self.builder.add(header, mark, id, span);
            written += 1;
            if self.builder.bytes() >= self.options.batch_bytes_max as u64 {
                self.flush();
            }
        }
        debug_assert_eq!(
            written, entry.spans,
            "every span of a kept trace is written"
        );
        if self.builder.is_full() {
            self.flush();
        }
    }

    /// Reads what records are written back with, so that the cache misses of many overlap.
    fn touch_templates(&self, addresses: &[u64]) {
        let templated = |at: &u64| {
            let record = self.log.read(*at);
            record.filter(|record| record.form == Form::Templated)
        };
        for group in addresses.chunks(RECORDS_TOGETHER) {
            let mut firsts: [&[u8]; RECORDS_TOGETHER] = [b""; RECORDS_TOGETHER];
            for (first, record) in firsts.iter_mut().zip(group.iter().filter_map(templated)) {
                *first = self.headers.first(record.header, record.span);
            }
            touch(&firsts);
        }
    }

    /// Makes room for a new trace: the oldest is decided before its time, on the spans that have
    /// come.
    pub(super) fn decide_oldest(&mut self) {
        let Some((number, _)) = self.table.oldest() else {
            return;
        };
        let Some((entry, hash)) = self.take(number) else {
            return;
        };
        let decision = self.decide(&entry);
        self.counters.traces_early += 1;
        self.counters.traces_dropped_early += u64::from(decision.fate != Fate::Sampled);
        self.decided_early = true;
        self.conclude(&entry, hash, decision);
    }

    /// A trace that became too large is not sampled, at once.
    pub(super) fn check_size(&mut self, number: u64, hash: u64) {
        let too_large = |entry: &Entry| u64::from(entry.bytes) > self.trace_bytes_max;
        if !self.table.get(number).is_some_and(too_large) {
            return;
        }
        if let Some((entry, _)) = self.take(number) {
            self.counters.traces_too_large += 1;
            self.account.lose(Cause::TooLarge, entry.spans.into());
            self.decisions.remember(hash, false, None, self.now_ns);
            self.note_decided(entry.id, false, None);
        }
    }

    /// Decides on the traces that a batch of spans belonged to, where each batch is decided on as
    /// it comes.
    pub(super) fn decide_touched(&mut self) {
        if self.scratch.touched.is_empty() {
            return;
        }
        let touched = std::mem::take(&mut self.scratch.touched);
        for number in &touched {
            let Decider::Policies(program) = &mut self.decider else {
                break;
            };
            let Some(entry) = self.table.get(*number).filter(|entry| !entry.is_gone()) else {
                continue;
            };
            let decision =
                program.decide_batch(&trace(entry, self.table.words(*number)), self.now_ns);
            if decision.fate != Fate::Pending
                && let Some((entry, hash)) = self.take(*number)
            {
                self.conclude(&entry, hash, decision);
            }
        }
        self.scratch.touched = touched;
        self.scratch.touched.clear();
    }

    /// Gives back segments whose traces are all decided, with the headers that only they used.
    fn release(&mut self) {
        if self.table.oldest().is_none() && self.table.pending() == 0 {
            self.log.seal(self.table.tail(), self.now_ns);
        }
        for _ in 0..RELEASES_MAX {
            let decided = self.table.head();
            let Some(segment) = self.log.release(decided, &mut self.scratch.headers) else {
                break;
            };
            for header in &self.scratch.headers {
                self.headers.segment_gone(*header, segment);
            }
        }
        if self.budget.used_bytes() > self.budget.bytes_max() / 4 * 3 {
            self.log.trim();
        }
    }
}

/// What policies see of an entry.
fn trace<'a>(entry: &'a Entry, more: &'a [u64]) -> Trace<'a> {
    Trace {
        id: &entry.id,
        bits: entry.bits,
        more,
        spans: entry.spans.into(),
        bytes: entry.bytes.into(),
    }
}
