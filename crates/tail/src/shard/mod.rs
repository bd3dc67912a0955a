//! A shard: takes requests, keeps their spans until their traces are decided, and gives out those
//! that are kept.
//!
//! The driver calls [`Shard::accept`] with a request and [`Shard::tick`] every few milliseconds,
//! sends what [`Shard::pop`] gives, and says what became of it with [`Shard::acked`] or
//! [`Shard::lost`]. A shard is used by one thread; only the [`Budget`] is shared.
//!
//! Invariants, which tests check after every step: the [`Account`] adds up; its pending spans are
//! those of the table; what the shard holds is what it charges the budget with.

mod accept;
mod arrive;
mod decide;
mod decisions;
mod intake;
mod memory;
mod output;
mod recover;
mod split;

pub use memory::Past;
pub use output::Batch;
pub use recover::{Decided, shard_of};
pub use split::{Chunk, Splitter};

use crate::account::{Account, Cause, Counters};
use crate::policy::{Decision, Matcher, Program, Refusal};
use crate::settings::{Emit, GroupByTrace, Strategy, TailSampling};
use crate::store::{Budget, Entry, Headers, Learner, Log, Queue, Refused, Table};
use decisions::Decisions;
use intake::Intake;
use otlp::scan::{Malformed, Scanner};
use output::Builder;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the engine is told beside the options of the Collector's component.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a segment of the log.
    pub segment_bytes: usize,
    /// Spans of a batch of kept spans, about.
    pub batch_spans_max: u64,
    /// Bytes of one, about; a trace that is larger is split.
    pub batch_bytes_max: usize,
    /// Bytes of kept spans that are not settled yet, from where on no more traces are decided.
    pub export_bytes_max: u64,
    /// Wait after a root that ends its trace ([`Shard::heed_roots`]), where `wait_after_root_ns` is
    /// not set; 0: none.
    pub end_wait_ns: u64,
    /// Kept spans that a tick writes, about, so that it takes a millisecond or two; a trace is not
    /// divided.
    pub tick_spans_max: u64,
    /// Secret of the hashes.
    pub seed: u64,
    /// Keep only what differs from a template of spans with the same name, which takes about a
    /// quarter of the memory.
    pub templates: bool,
    /// Record the policy in the scopes of kept spans (`tailsampling.policy`).
    pub record_policy: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 4 << 20,
            batch_spans_max: 8192,
            batch_bytes_max: 3 << 20,
            export_bytes_max: 1 << 30,
            end_wait_ns: 0,
            tick_spans_max: 4096,
            seed: 0,
            templates: true,
            record_policy: false,
        }
    }
}

/// A request was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Its spans.
    pub spans: u64,
}

/// A request was not accepted; nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It is malformed.
    Malformed(Malformed),
    /// There is no room now.
    Refused(Refused),
}

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Traces that were decided.
    pub traces: u64,
    /// More are due: the work of one tick was used up, or too much waits for the exporter.
    pub more: bool,
}

/// Who decides.
#[derive(Debug)]
enum Decider {
    Policies(Box<Program>),
    /// groupbytrace: everything is kept.
    Group(Emit, Box<Matcher>),
}

impl Decider {
    fn matcher(&self) -> &Matcher {
        match self {
            Decider::Policies(program) => program.matcher(),
            Decider::Group(_, matcher) => matcher,
        }
    }
}

/// A shard.
#[derive(Debug)]
pub struct Shard {
    decider: Decider,
    /// Set in traces whose root came, where those without one are dropped (`discard_orphans`, which
    /// has no policies beside it).
    root_bit: u64,
    /// Policies ask more than the first word of bits holds.
    has_words: bool,
    options: Options,
    wait_ms: u32,
    /// After a root: that of the settings, else that of the options, which counts for some roots
    /// only.
    wait_after_root_ns: u64,
    /// Every root counts.
    every_root: bool,
    /// Roots of the request that is taken count.
    heeds_roots: bool,
    traces_max: u64,
    block_on_overflow: bool,
    trace_bytes_max: u64,
    drop_pending_on_shutdown: bool,
    span_ingest: bool,
    /// A trace made room for another one since the traces of a request were looked for.
    decided_early: bool,
    /// Late spans of a trace that was not sampled are dropped; else they begin it anew.
    remember_not_sampled: bool,

    budget: Arc<Budget>,
    charged_bytes: u64,
    scanner: Scanner,
    intake: Intake,
    table: Table,
    log: Log,
    headers: Headers,
    decisions: Decisions,
    /// Traces whose root came, and when they are due; the wait after a root is constant, so that
    /// they are in order.
    rooted: Queue<(u64, u64)>,
    builder: Builder,
    ready: VecDeque<Batch>,
    /// Bytes of batches that are ready or with the exporter.
    export_bytes: u64,
    now_ns: u64,
    /// Counts runs of spans, in steps of two.
    runs: u32,
    account: Account,
    counters: Counters,
    scratch: Scratch,
    /// What templates may learn from the request that is taken.
    learn: Learner,
    /// Decisions that must outlive the process; none where none must.
    decided: Option<Vec<Decided>>,
}

/// The part of the budget that remembered decisions may take.
const MEMORY_PART: u64 = 8;
/// Bytes that templates may learn from one request, at most, and the part of the budget that they
/// are.
const LEARN_BYTES_MAX: u64 = 64 << 10;
const LEARN_PART: u64 = 16;

/// Buffers that are used again.
#[derive(Debug, Default)]
struct Scratch {
    places: Vec<u64>,
    addresses: Vec<u64>,
    headers: Vec<u32>,
    touched: Vec<u64>,
    hashes: Vec<u64>,
    /// Traces that are decided together.
    group: Vec<(Entry, u64, Decision)>,
    /// A span as it is kept, and as it came.
    kept: Vec<u8>,
    whole: Vec<u8>,
    /// Further words of bits of the trace that was taken out last.
    words: Vec<u64>,
    more: More,
}

/// Further words of bits of the resource of a run.
#[derive(Debug, Default)]
struct More {
    run: Option<u32>,
    resource: Vec<u64>,
    /// The trace of the current span is looked at as if it began.
    is_anew: bool,
}

impl Shard {
    /// A shard of `tail_sampling`; limits of the settings are divided by their number of shards.
    ///
    /// # Errors
    /// Which policy cannot be compiled, and why.
    pub fn tail_sampling(
        settings: &TailSampling,
        options: Options,
        budget: Arc<Budget>,
    ) -> Result<Shard, Refusal> {
        let program = Box::new(Program::new(settings)?);
        let divided = |all: u64| match all {
            0 => 0,
            all => (all / u64::from(settings.shards.max(1))).max(1),
        };
        let traces_max = divided(settings.traces_max);
        let mut shard = Shard::new(Decider::Policies(program), options, budget);
        shard.wait(settings.decision_wait_ns);
        shard.every_root = settings.wait_after_root_ns > 0;
        shard.heed_roots(false);
        shard.wait_after_root_ns = match settings.wait_after_root_ns {
            0 => shard.options.end_wait_ns,
            wait_ns => wait_ns,
        };
        shard.traces_max = traces_max;
        shard.block_on_overflow = settings.block_on_overflow;
        shard.trace_bytes_max = settings.trace_bytes_max;
        shard.drop_pending_on_shutdown = settings.drop_pending_on_shutdown;
        shard.span_ingest = settings.strategy == Strategy::SpanIngest;
        // There the Collector forgets what was never decided, unless it has a cache for it.
        shard.remember_not_sampled = !shard.span_ingest || settings.non_sampled_cache_size > 0;
        let bytes_max = shard.budget.bytes_max() / MEMORY_PART / u64::from(settings.shards.max(1));
        shard.decisions = Decisions::new(settings, bytes_max);
        Ok(shard)
    }

    /// A shard of `groupbytrace`; limits are divided by the number of workers.
    #[must_use]
    pub fn group_by_trace(settings: &GroupByTrace, options: Options, budget: Arc<Budget>) -> Shard {
        let decider = Decider::Group(settings.emit, Box::default());
        let mut shard = Shard::new(decider, options, budget);
        shard.wait(settings.wait_ns);
        shard.traces_max = (settings.traces_max / u64::from(settings.workers.max(1))).max(1);
        shard.root_bit = u64::from(settings.discard_orphans);
        shard
    }

    fn new(decider: Decider, options: Options, budget: Arc<Budget>) -> Shard {
        let words = decider.matcher().words();
        let table = Table::with_words(words);
        Shard {
            has_words: words > 0,
            decider,
            root_bit: 0,
            wait_ms: 0,
            wait_after_root_ns: 0,
            every_root: false,
            heeds_roots: false,
            traces_max: u64::MAX,
            block_on_overflow: false,
            trace_bytes_max: 0,
            drop_pending_on_shutdown: false,
            span_ingest: false,
            decided_early: false,
            remember_not_sampled: true,
            budget,
            charged_bytes: 0,
            scanner: Scanner::default(),
            intake: Intake::default(),
            table,
            log: Log::new(options.segment_bytes),
            headers: Headers::default(),
            decisions: Decisions::none(),
            rooted: Queue::default(),
            builder: Builder::new(options.batch_spans_max, options.batch_bytes_max),
            ready: VecDeque::new(),
            export_bytes: 0,
            now_ns: 0,
            runs: 0,
            account: Account::default(),
            counters: Counters::default(),
            scratch: Scratch::default(),
            learn: Learner::default(),
            decided: None,
            options,
        }
    }

    fn wait(&mut self, wait_ns: u64) {
        // Times of arrival are kept in 32 bits of milliseconds.
        self.wait_ms = (wait_ns / 1_000_000).min(1 << 30) as u32;
    }

    /// Whether roots of requests to come end their traces: nothing but stragglers comes after them,
    /// so that the trace is due [`Options::end_wait_ns`] later even where the settings have no wait
    /// after a root.
    pub fn heed_roots(&mut self, they_end: bool) {
        self.heeds_roots = self.every_root || they_end;
    }

    /// The account; it adds up at every moment.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What happened.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The policies and their votes; none for groupbytrace.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        match &self.decider {
            Decider::Policies(program) => Some(program),
            Decider::Group(..) => None,
        }
    }

    /// Traces that wait (`sampling_traces_on_memory`).
    #[must_use]
    pub fn pending_traces(&self) -> u64 {
        self.table.pending()
    }

    /// Bytes that the shard holds: what it charges the budget with.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.log.held_bytes()
            + self.table.held_bytes()
            + self.headers.held_bytes()
            + self.decisions.held_bytes()
            + self.builder.bytes()
            + self.export_bytes
            + self.rooted.held_bytes()
    }

    /// Charges the budget with what is held now.
    fn charge(&mut self) {
        let held = self.held_bytes();
        self.budget.adjust(self.charged_bytes, held);
        self.charged_bytes = held;
    }

    fn clock(&mut self, now_ns: u64) {
        // A clock that goes back stands still here.
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }

    /// The next batch of kept spans to send.
    pub fn pop(&mut self) -> Option<Batch> {
        self.ready.pop_front()
    }

    /// The back end has spans of a batch that [`Shard::pop`] gave; `bytes` of it are not held any
    /// more (all of them at once, or none until the last).
    pub fn acked(&mut self, spans: u64, bytes: u64) {
        self.settle(spans, bytes, None);
    }

    /// Spans of such a batch are lost, for a cause of the exporter.
    pub fn lost(&mut self, spans: u64, bytes: u64, cause: Cause) {
        self.settle(spans, bytes, Some(cause));
    }

    fn settle(&mut self, spans: u64, bytes: u64, lost: Option<Cause>) {
        debug_assert!(bytes <= self.export_bytes, "what is settled was in export");
        self.export_bytes = self.export_bytes.saturating_sub(bytes);
        self.account.settle(spans, lost);
        self.charge();
    }

    /// Makes a batch of the kept spans that are gathered, however few they are.
    pub fn flush(&mut self) {
        let batch = match &self.decider {
            Decider::Policies(program) if self.options.record_policy => {
                self.builder.finish(Some(&|policy, sub| match sub {
                    None => program.name(policy),
                    Some(sub) => program.sub_name(policy, sub),
                }))
            }
            _ => self.builder.finish(None),
        };
        if let Some(batch) = batch {
            self.export_bytes += batch.bytes.len() as u64;
            self.ready.push_back(batch);
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.budget.release(self.charged_bytes);
    }
}

#[cfg(test)]
mod tests;
