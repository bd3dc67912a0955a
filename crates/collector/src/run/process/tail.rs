//! `tail_sampling` and `groupbytrace`: the engine's shards, fed and emptied.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tail::account::Cause;
use tail::settings::{GroupByTrace, TailSampling};
use tail::shard::{Chunk, Options, Rejected, Shard, Splitter};
use tail::store::{Budget, Refused as NoRoom};
use tokio::time::Instant;

use crate::config::Signal;
use crate::run::Log;
use crate::run::account::{Account, Loss};
use crate::run::consume::{Consumer, Refusal, Refused, refused};
use crate::run::data::Batch;

/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(10);
/// Traces that are decided before others get a shard.
const TICK_TRACES_MAX: u64 = 4096;

/// What a component decides by.
pub enum Rules<'a> {
    /// `tail_sampling`
    Sample(&'a TailSampling),
    /// `groupbytrace`
    Group(&'a GroupByTrace),
}

/// See the module.
pub struct Tail {
    shards: Vec<Arc<Owned>>,
    splitters: Mutex<Vec<Splitter>>,
    make_splitter: Box<dyn Fn() -> Option<Splitter> + Send + Sync>,
    account: Arc<Account>,
    next: Arc<dyn Consumer>,
    begin: Instant,
}

/// A shard, and what it has told the account.
struct Owned {
    state: Mutex<State>,
}

struct State {
    shard: Shard,
    dropped: u64,
    lost_at_end: u64,
    closing: bool,
}

/// Starts one before `next`. To be called within the runtime.
///
/// # Errors
/// Which policy cannot be compiled, and why.
pub fn start(
    rules: &Rules<'_>,
    options: &Options,
    budget: &Arc<Budget>,
    (account, next): (&Arc<Account>, Arc<dyn Consumer>),
    log: &Log,
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
    if let Rules::Group(settings) = rules
        && (settings.discard_orphans || settings.store_on_disk)
    {
        return Err("'discard_orphans' and 'store_on_disk' do not work yet".into());
    }
    let mut shards = Vec::new();
    for _ in 0..count.max(1) {
        let budget = Arc::clone(budget);
        let shard = match rules {
            Rules::Sample(settings) => Shard::tail_sampling(settings, options.clone(), budget)
                .map_err(|refusal| refusal.to_string())?,
            Rules::Group(settings) => Shard::group_by_trace(settings, options.clone(), budget),
        };
        let state = State {
            shard,
            dropped: 0,
            lost_at_end: 0,
            closing: false,
        };
        shards.push(Arc::new(Owned {
            state: Mutex::new(state),
        }));
    }
    let tail = Arc::new(Tail {
        shards,
        splitters: Mutex::default(),
        make_splitter,
        account: Arc::clone(account),
        next,
        begin: Instant::now(),
    });
    for place in 0..tail.shards.len() {
        tokio::spawn(drive(Arc::clone(&tail), place, log.clone()));
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
}

impl Owned {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Tells the account what was dropped since the last time.
    fn tell(&mut self, account: &Account) {
        let own = self.shard.account();
        let by_policy: u64 = own.dropped.iter().sum();
        let pushed_out = own.lost_to(Cause::TooEarly) + own.lost_to(Cause::TooLarge);
        let dropped = own.not_sampled + by_policy + own.late_dropped + pushed_out;
        let at_end = own.lost_to(Cause::Shutdown);
        account.lose(dropped - self.dropped, Loss::Dropped);
        account.lose(at_end - self.lost_at_end, Loss::Shutdown);
        (self.dropped, self.lost_at_end) = (dropped, at_end);
    }
}

impl Tail {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Looks at each shard: the account, the counters, how many traces wait.
    pub fn each_shard(&self, mut look: impl FnMut(&Shard)) {
        for owned in &self.shards {
            look(&owned.state().shard);
        }
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
                batch.receipt.hold(batch.records);
                state.tell(&self.account);
                Ok(())
            }
            Err(Rejected::Malformed(fault)) => {
                refused(batch, Refusal::Malformed(fault.to_string()))
            }
            Err(Rejected::Refused(no_room)) => refused(batch, busy(no_room)),
        }
    }

    fn take_split(&self, batch: Batch) -> Result<(), Box<Refused>> {
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
        let now_ns = self.now_ns();
        // Room in all shards first: a request is taken whole or not at all.
        for place in 0..chunks.len() {
            let refusal = {
                let mut state = self.shards[place].state();
                match state.closing {
                    true => Some(Refusal::Closing),
                    false => {
                        let reserved = state.shard.reserve_chunk(&mut chunks[place], now_ns);
                        reserved.err().map(busy)
                    }
                }
            };
            if let Some(refusal) = refusal {
                for (owned, chunk) in self.shards.iter().zip(&mut chunks[..place]) {
                    owned.state().shard.cancel_chunk(chunk);
                }
                return refused(batch, refusal);
            }
        }
        let is_of_proxy = batch.receipt.is_of_proxy();
        batch.receipt.hold(batch.records);
        for (owned, chunk) in self.shards.iter().zip(&mut chunks) {
            self.take_chunk(owned, chunk, is_of_proxy, now_ns);
        }
        Ok(())
    }

    fn take_chunk(&self, owned: &Owned, chunk: &mut Chunk, is_of_proxy: bool, now_ns: u64) {
        let mut state = owned.state();
        state.shard.heed_roots(is_of_proxy);
        state.shard.accept_chunk(chunk, now_ns);
        state.tell(&self.account);
    }

    fn splitters(&self) -> MutexGuard<'_, Vec<Splitter>> {
        self.splitters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The kept spans of a shard that are ready, each with what settles it.
    fn ready(&self, owned: &Arc<Owned>, out: &mut VecDeque<Batch>) {
        let mut state = owned.state();
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
            out.push_back(Batch {
                signal: Signal::Traces,
                bytes: batch.bytes.into(),
                records: spans,
                receipt: self.account.resume_and_tell(spans, settled),
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

    /// Decides on what waits, as the settings say, and hands on what is kept, until a time; what is left then is lost.
    pub async fn end(&self, until: Instant, log: &Log) {
        for owned in &self.shards {
            owned.state().closing = true;
        }
        for owned in &self.shards {
            let mut ready = VecDeque::new();
            loop {
                let more = {
                    let mut state = owned.state();
                    let progress = state.shard.shutdown(self.now_ns(), TICK_TRACES_MAX);
                    state.tell(&self.account);
                    progress.more
                };
                self.ready(owned, &mut ready);
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
            for batch in ready {
                batch.receipt.lose(batch.records, Loss::Shutdown);
            }
            let pending = owned.state().shard.account().pending;
            if pending > 0 {
                log.error(&format!("{pending} spans were not decided in time"));
                self.account.lose(pending, Loss::Shutdown);
            }
        }
    }
}

fn busy(no_room: NoRoom) -> Refusal {
    Refusal::Busy(Duration::from_nanos(no_room.retry_after_ns))
}

impl Consumer for Tail {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        match self.shards.len() {
            1 => self.take_whole(batch),
            _ => self.take_split(batch),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Decides on what is due in a shard, again and again.
async fn drive(tail: Arc<Tail>, place: usize, log: Log) {
    let mut ready = VecDeque::new();
    let owned = &tail.shards[place];
    loop {
        let (more, closing) = {
            let mut state = owned.state();
            if state.closing {
                (false, true)
            } else {
                let progress = state.shard.tick(tail.now_ns(), TICK_TRACES_MAX);
                state.tell(&tail.account);
                (progress.more, false)
            }
        };
        if closing {
            // What is ready here is handed on here.
            if ready.is_empty() {
                return;
            }
        } else {
            tail.ready(owned, &mut ready);
        }
        tail.hand_on(&mut ready, &log);
        match more && ready.is_empty() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(TICK).await,
        }
    }
}
