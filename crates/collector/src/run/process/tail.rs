//! `tail_sampling` and `groupbytrace`: the engine's shards, fed and emptied.

mod metrics;
mod start;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tail::account::Cause;
use tail::settings::{GroupByTrace, TailSampling};
use tail::shard::{Chunk, Decided, Options, Progress, Rejected, Shard, Splitter, shard_of};
use tail::store::{Budget, Full, Refused as NoRoom};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::config::Signal;
use crate::run::Log;
use crate::run::account::{Account, Loss};
use crate::run::buckets::Buckets;
use crate::run::consume::{Consumer, Does, Permit, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::process::dashboard::Verdicts;
use crate::run::storage::{Custody, Keeping, Until};
use crate::run::tasks;

pub(crate) use metrics::Sum;

/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(10);
/// After something had no room, nothing else has.
const FULL: Duration = Duration::from_millis(10);
/// Traces that are decided before others get a shard: about a millisecond.
const TICK_TRACES_MAX: u64 = 1024;

/// What a component decides by.
pub enum Rules<'a> {
    /// `tail_sampling`
    Sample(&'a TailSampling),
    /// `groupbytrace`
    Group(&'a GroupByTrace),
}

/// See the module.
pub struct Tail {
    shards: Arc<[Arc<Owned>]>,
    splitters: Mutex<Vec<Splitter>>,
    make_splitter: Box<dyn Fn() -> Option<Splitter> + Send + Sync>,
    account: Arc<Account>,
    next: Arc<dyn Consumer>,
    begin: Instant,
    /// Where what waits, and what was decided, outlives the process.
    keeping: Option<Keeping>,
    /// Who is told what is decided.
    verdicts: Option<Verdicts>,
    /// Nothing is decided.
    is_paused: AtomicBool,
    /// At the end nothing is decided: what waits is read again by others.
    leaves_waiting: AtomicBool,
    /// Who decides on what is due in each shard.
    drivers: Mutex<JoinSet<()>>,
    /// When there may be room again, in nanoseconds since the begin.
    full_until_ns: AtomicU64,
    /// And what senders are told then, in nanoseconds.
    retry_after_ns: AtomicU64,
    /// What is said where there is no room for bytes, and for traces.
    full: [Arc<str>; 2],
    /// What is said once, when the first trace is decided early; empty once it is.
    early: Mutex<String>,
    /// `num_traces`
    traces_max: u64,
    /// How long it took to decide on what was due, in milliseconds.
    pub decision_times: Buckets,
}

/// Upper bounds of those times, as the Collector has them.
const DECISION_BOUNDS_MS: &[u64] = &[
    1, 2, 5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000, 3000, 4000, 5000,
    10_000, 20_000, 30_000, 50_000,
];

/// A shard, and what it has told the account.
struct Owned {
    state: Mutex<State>,
}

struct State {
    shard: Shard,
    dropped: u64,
    lost_at_end: u64,
    closing: bool,
    /// Kept spans that the next one had no room for when the end came.
    left: VecDeque<Batch>,
    /// What it needs of journals.
    until: Until,
}

/// Starts one before `next`; `name` is its id in the log. To be called within the runtime.
///
/// # Errors
/// Which policy cannot be compiled, and why.
pub fn start(
    rules: &Rules<'_>,
    options: &Options,
    budget: &Arc<Budget>,
    (account, next): (&Arc<Account>, Arc<dyn Consumer>),
    (keeping, verdicts): (Option<(Keeping, Vec<Decided>)>, Option<Verdicts>),
    (name, log): (&str, &Log),
) -> Result<Arc<Tail>, String> {
    let (count, make_splitter): (u32, Box<dyn Fn() -> Option<Splitter> + Send + Sync>) = match rules
    {
        Rules::Sample(settings) => {
            let (settings, options) = ((*settings).clone(), options.clone());
            let make = move || Splitter::tail_sampling(&settings, &options).ok();
            (rules.shards(), Box::new(make))
        }
        Rules::Group(settings) => {
            let (settings, options) = ((*settings).clone(), options.clone());
            let make = move || Some(Splitter::group_by_trace(&settings, &options));
            (rules.shards(), Box::new(make))
        }
    };
    let mut decided = vec![Vec::new(); count.max(1) as usize];
    for one in keeping.iter().flat_map(|(_, decided)| decided.iter()) {
        let place = shard_of(&one.id, options.seed, count.max(1));
        decided[place as usize].push(*one);
    }
    let mut shards = Vec::new();
    for decided in decided {
        let budget = Arc::clone(budget);
        let mut shard = match rules {
            Rules::Sample(settings) => Shard::tail_sampling(settings, options.clone(), budget)
                .map_err(|refusal| refusal.to_string())?,
            Rules::Group(settings) => Shard::group_by_trace(settings, options.clone(), budget),
        };
        if keeping.is_some() || verdicts.is_some() {
            shard.note_decisions();
        }
        if keeping.is_some() {
            shard.recall_decided(&decided, 0);
        }
        let state = State {
            shard,
            dropped: 0,
            lost_at_end: 0,
            closing: false,
            left: VecDeque::new(),
            until: Until::default(),
        };
        shards.push(Arc::new(Owned {
            state: Mutex::new(state),
        }));
    }
    let tail = Arc::new(Tail {
        shards: shards.into(),
        splitters: Mutex::default(),
        make_splitter,
        account: Arc::clone(account),
        next,
        begin: Instant::now(),
        keeping: keeping.map(|(keeping, _)| keeping),
        verdicts,
        is_paused: AtomicBool::new(false),
        leaves_waiting: AtomicBool::new(false),
        drivers: Mutex::default(),
        full_until_ns: AtomicU64::new(0),
        retry_after_ns: AtomicU64::new(0),
        full: [
            format!("processor '{name}': waiting traces take all the memory that they may").into(),
            format!("processor '{name}': num_traces is reached").into(),
        ],
        early: Mutex::new(rules.early(name)),
        traces_max: rules.traces_max(),
        decision_times: Buckets::new(DECISION_BOUNDS_MS),
    });
    for place in 0..tail.shards.len() {
        let driver = drive(Arc::downgrade(&tail), place, log.clone());
        tail.drivers().spawn(driver);
    }
    Ok(tail)
}

impl Rules<'_> {
    fn shards(&self) -> u32 {
        match self {
            Rules::Sample(settings) => settings.shards,
            Rules::Group(settings) => settings.workers,
        }
    }

    fn traces_max(&self) -> u64 {
        match self {
            Rules::Sample(settings) => settings.traces_max,
            Rules::Group(settings) => settings.traces_max,
        }
    }

    /// What is said when traces are decided early.
    fn early(&self, name: &str) -> String {
        match self {
            Rules::Sample(settings) => format!(
                "processor '{name}': num_traces ({}) is reached: the oldest traces are decided before decision_wait is over, on the \
                 spans that have come; raise num_traces",
                settings.traces_max
            ),
            Rules::Group(settings) => format!(
                "processor '{name}': num_traces ({}) is reached: the oldest traces go on before wait_duration is over; raise \
                 num_traces",
                settings.traces_max
            ),
        }
    }
}

impl Owned {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Spans were taken that were kept by this custody.
    fn keep(&mut self, custody: Custody) {
        let (_, traces_end) = self.shard.window();
        self.until.take(custody, traces_end);
    }

    /// Tells the account what was dropped since the last time.
    fn tell(&mut self, account: &Account) {
        let own = self.shard.account();
        let by_policy: u64 = own.dropped.iter().sum();
        let too_large = own.lost_to(Cause::TooLarge);
        let dropped = own.not_sampled + by_policy + own.late_dropped + too_large;
        let at_end = own.lost_to(Cause::Shutdown);
        account.lose(dropped - self.dropped, Loss::Dropped);
        account.lose(at_end - self.lost_at_end, Loss::Shutdown);
        (self.dropped, self.lost_at_end) = (dropped, at_end);
    }
}

impl Tail {
    fn now_ns(&self) -> u64 {
        since(self.begin)
    }

    /// Traces that it has room for.
    #[must_use]
    pub fn traces_max(&self) -> u64 {
        self.traces_max
    }

    /// Looks at each shard: the account, the counters, how many traces wait.
    pub fn each_shard(&self, mut look: impl FnMut(&Shard)) {
        for owned in self.shards.iter() {
            look(&owned.state().shard);
        }
    }

    fn busy(&self, no_room: NoRoom) -> Refusal {
        let until_ns = self.now_ns() + FULL.as_nanos() as u64;
        self.full_until_ns.store(until_ns, Relaxed);
        self.retry_after_ns.store(no_room.retry_after_ns, Relaxed);
        let why = match no_room.full {
            Full::Budget => &self.full[0],
            Full::Traces => &self.full[1],
        };
        Refusal::busy(Duration::from_nanos(no_room.retry_after_ns), why)
    }

    fn take_whole(&self, batch: Batch) -> Result<(), Box<Refused>> {
        let now_ns = self.now_ns();
        let Some(owned) = self.shards.first() else {
            return refused(batch, Refusal::Closing);
        };
        let mut state = owned.state();
        if state.closing {
            return refused(batch, Refusal::Closing);
        }
        state.shard.heed_roots(batch.receipt.is_of_proxy());
        match state.shard.accept(&batch.bytes, now_ns) {
            Ok(accepted) => {
                debug_assert_eq!(accepted.spans, batch.records);
                // The shard holds them now.
                let custody = batch.receipt.hold(batch.records);
                state.keep(custody);
                state.tell(&self.account);
                Ok(())
            }
            Err(Rejected::Malformed(fault)) => {
                refused(batch, Refusal::Malformed(fault.to_string()))
            }
            Err(Rejected::Refused(no_room)) => refused(batch, self.busy(no_room)),
        }
    }

    /// Makes room in each shard for its part of a batch.
    fn reserve_parts(&self, batch: Batch) -> Result<(Parts, Batch), Box<Refused>> {
        let spare = self.splitters().pop();
        let Some(mut splitter) = spare.or_else(|| (self.make_splitter)()) else {
            return refused(batch, Refusal::Closing);
        };
        let mut chunks = Vec::new();
        let split = splitter.split(&batch.bytes, &mut chunks);
        self.splitters().push(splitter);
        if let Err(fault) = split {
            return refused(batch, Refusal::Malformed(fault.to_string()));
        }
        let mut parts = Parts {
            shards: Arc::clone(&self.shards),
            account: Arc::clone(&self.account),
            begin: self.begin,
            chunks,
            reserved: 0,
        };
        match parts.reserve() {
            Ok(()) => Ok((parts, batch)),
            Err(NotNow::Closing) => refused(batch, Refusal::Closing),
            Err(NotNow::Full(no_room)) => refused(batch, self.busy(no_room)),
        }
    }

    fn splitters(&self) -> MutexGuard<'_, Vec<Splitter>> {
        self.splitters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn drivers(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on what is due in a shard: what is kept is in `out`, each batch with what settles
    /// it. Whether more is due.
    fn decide(
        &self,
        owned: &Arc<Owned>,
        work: impl FnOnce(&mut Shard) -> Progress,
        out: &mut VecDeque<Batch>,
    ) -> bool {
        let mut state = owned.state();
        let (begin, before) = (Instant::now(), decided(&state.shard));
        let progress = work(&mut state.shard);
        if decided(&state.shard) != before {
            self.decision_times.add(begin.elapsed().as_millis() as u64);
        }
        state.tell(&self.account);
        // In this order: what is let go here was noted before, and all that was kept of it has
        // left.
        let decided = state.shard.take_decided();
        if let Some(keeping) = &self.keeping {
            keeping.write(&decided);
        }
        if !state.until.is_empty() {
            // What is decided and in no batch yet would leave after what keeps it is let go.
            state.shard.flush();
        }
        self.ready(&mut state, owned, out);
        let (below, _) = state.shard.window();
        state.until.release(below);
        drop(state);
        if let Some(verdicts) = &self.verdicts {
            verdicts.tell(&decided);
        }
        progress.more
    }

    /// The kept spans of a shard that are ready.
    fn ready(&self, state: &mut State, owned: &Arc<Owned>, out: &mut VecDeque<Batch>) {
        while let Some(batch) = state.shard.pop() {
            let (spans, bytes) = (batch.spans, batch.bytes.len() as u64);
            let owner = Arc::clone(owned);
            let settled = move |lost: u64| {
                let mut state = owner.state();
                if lost > 0 {
                    state.shard.lost(lost, 0, Cause::ExportFailed);
                }
                state.shard.acked(spans.saturating_sub(lost), bytes);
            };
            let mut receipt = self.account.resume_and_tell(spans, settled);
            receipt.custody = state.until.custody();
            out.push_back(Batch {
                signal: Signal::Traces,
                bytes: batch.bytes.into(),
                records: spans,
                receipt,
                // A trace may have come from several.
                origin: None,
            });
        }
    }

    /// Hands on what is ready; what the next one refuses stays first.
    fn hand_on(&self, ready: &mut VecDeque<Batch>, log: &Log) {
        while let Some(batch) = ready.pop_front() {
            let Err(given_back) = self.next.consume(batch) else {
                continue;
            };
            let Refused { batch, refusal } = *given_back;
            match refusal {
                Refusal::Malformed(reason) => {
                    log.error(&format!("{} kept spans lost: {reason}", batch.records));
                    batch.receipt.lose(batch.records, Loss::Dropped);
                }
                Refusal::Busy(_) | Refusal::Closing => {
                    ready.push_front(batch);
                    return;
                }
            }
        }
    }

    /// Says that traces are decided early, when a shard had the first.
    fn warn_once(&self, owned: &Owned, log: &Log) {
        if owned.state().shard.counters().traces_early == 0 {
            return;
        }
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if !early.is_empty() {
            log.warn(&std::mem::take(&mut *early));
        }
    }

    /// While it is paused, nothing is decided.
    pub fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Relaxed);
    }

    /// What waits at the end comes again to whoever is next, so that it is not decided on what has
    /// come of it.
    pub fn leave_waiting(&self) {
        self.leaves_waiting.store(true, Relaxed);
    }

    /// Decides on what waits, as the settings say, and hands on what is kept, until a time; what is
    /// left then is lost. What outlives the process is not decided: it waits for its other spans.
    pub async fn end(&self, until: Instant, log: &Log) {
        for owned in self.shards.iter() {
            owned.state().closing = true;
        }
        let mut drivers = std::mem::take(&mut *self.drivers());
        tasks::ended(&mut drivers).await;
        let is_kept = self.keeping.is_some() || self.leaves_waiting.load(Relaxed);
        for owned in self.shards.iter() {
            let mut ready = std::mem::take(&mut owned.state().left);
            loop {
                let work = |shard: &mut Shard| {
                    if is_kept {
                        shard.tick(self.now_ns(), 0)
                    } else {
                        shard.shutdown(self.now_ns(), TICK_TRACES_MAX)
                    }
                };
                let more = self.decide(owned, work, &mut ready) && !is_kept;
                self.hand_on(&mut ready, log);
                if (!more && ready.is_empty()) || Instant::now() >= until {
                    break;
                }
                if more && ready.is_empty() {
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(TICK).await;
                }
            }
            // What was decided and is not in a batch yet has its chance too.
            let mut state = owned.state();
            state.shard.flush();
            self.ready(&mut state, owned, &mut ready);
            drop(state);
            self.hand_on(&mut ready, log);
            for batch in ready {
                batch.receipt.lose(batch.records, Loss::Shutdown);
            }
            let state = owned.state();
            // Where it is kept, the next process has it.
            state.until.stay();
            let pending = state.shard.account().pending;
            drop(state);
            if pending > 0 && !is_kept {
                log.error(&format!("{pending} spans were not decided in time"));
                self.account.lose(pending, Loss::Shutdown);
            }
        }
    }
}

/// A batch divided among the shards, with room for each part.
struct Parts {
    shards: Arc<[Arc<Owned>]>,
    account: Arc<Account>,
    begin: Instant,
    chunks: Vec<Chunk>,
    /// The first so many shards have room.
    reserved: usize,
}

/// Why there is no room for a part.
enum NotNow {
    Closing,
    Full(NoRoom),
}

impl Parts {
    fn reserve(&mut self) -> Result<(), NotNow> {
        let now_ns = since(self.begin);
        for (owned, chunk) in self.shards.iter().zip(&mut self.chunks) {
            let mut state = owned.state();
            if state.closing {
                return Err(NotNow::Closing);
            }
            let reserved = state.shard.reserve_chunk(chunk, now_ns);
            reserved.map_err(NotNow::Full)?;
            self.reserved += 1;
        }
        Ok(())
    }

    /// Each shard takes its part.
    fn take(mut self, batch: Batch) {
        self.reserved = 0;
        let now_ns = since(self.begin);
        let is_of_proxy = batch.receipt.is_of_proxy();
        // The shards hold them now.
        let custody = batch.receipt.hold(batch.records);
        for (owned, chunk) in self.shards.iter().zip(&mut self.chunks) {
            let mut state = owned.state();
            state.shard.heed_roots(is_of_proxy);
            state.shard.accept_chunk(chunk, now_ns);
            if !chunk.is_empty() {
                state.keep(custody.clone());
            }
            state.tell(&self.account);
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let reserved = self.reserved;
        for (owned, chunk) in self.shards.iter().zip(&mut self.chunks).take(reserved) {
            owned.state().shard.cancel_chunk(chunk);
        }
    }
}

impl Consumer for Tail {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let (parts, batch) = self.reserve_parts(batch)?;
        Ok(Does::new(move || parts.take(batch)))
    }

    /// One shard takes a batch in one step, which is quicker.
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        match self.shards.len() {
            1 => self.take_whole(batch),
            _ => { self.reserve_parts(batch) }.map(|(parts, batch)| parts.take(batch)),
        }
    }

    fn next(&self) -> Option<&dyn Consumer> {
        Some(&*self.next)
    }

    /// It reads every span before it takes a request.
    fn mixes(&self) -> bool {
        false
    }

    /// It is full for a moment after something had no room: what would be written to a disk before
    /// it is refused is not.
    fn room(&self) -> Result<(), Refusal> {
        let until_ns = self.full_until_ns.load(Relaxed);
        if until_ns == 0 || self.now_ns() >= until_ns {
            return Ok(());
        }
        let retry_after_ns = self.retry_after_ns.load(Relaxed);
        let after = Duration::from_nanos(retry_after_ns);
        Err(Refusal::busy(after, &self.full[0]))
    }
}

/// The time of the shards.
fn since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Traces that a shard has decided on.
fn decided(shard: &Shard) -> u64 {
    let counters = shard.counters();
    counters.traces_sampled + counters.traces_not_sampled + counters.traces_dropped
}

/// Decides on what is due in a shard, again and again, as long as it is there.
async fn drive(tail: Weak<Tail>, place: usize, log: Log) {
    let mut ready = VecDeque::new();
    while let Some(tail) = tail.upgrade() {
        let owned = &tail.shards[place];
        let mut more = false;
        {
            let mut state = owned.state();
            if state.closing {
                state.left = ready;
                return;
            }
        }
        if !tail.is_paused.load(Relaxed) {
            let work = |shard: &mut Shard| shard.tick(tail.now_ns(), TICK_TRACES_MAX);
            more = tail.decide(owned, work, &mut ready);
        }
        tail.hand_on(&mut ready, &log);
        tail.warn_once(owned, &log);
        drop(tail);
        if more && ready.is_empty() {
            tokio::task::yield_now().await
        } else {
            tokio::time::sleep(TICK).await
        }
    }
}
