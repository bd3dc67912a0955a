//! Data that a connector gathers, and hands on from time to time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use export::clock::now_unix_ns;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::config::Signal;
use crate::run::Log;
use crate::run::account::{Account, Loss};
use crate::run::consume::{Consumer, Refusal, Refused};
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::part::{Ended, Part, PartName};

/// Between two attempts to hand on what the next pipeline has no room for.
const AGAIN: Duration = Duration::from_millis(100);

/// Data that were gathered.
pub trait Gather: Send + 'static {
    /// The requests of now, each with its records. `now_ns` is in nanoseconds of the UNIX epoch.
    fn requests(&mut self, now_ns: u64) -> Vec<(Vec<u8>, u64)>;

    /// Whether the next requests say all that these ones do, so that these ones need not be kept.
    fn repeats(&self) -> bool;

    /// Adds the metrics of the connector itself to a sheet.
    fn describe(&mut self, _name: &PartName, _sheet: &mut Sheet) {}
}

/// Hands on what a connector gathers.
pub struct Flusher<T> {
    id: String,
    gathered: Mutex<T>,
    /// Data that the next pipeline has not taken yet.
    waiting: Mutex<VecDeque<Batch>>,
    task: OnceLock<AbortHandle>,
    account: Arc<Account>,
    next: Arc<dyn Consumer>,
    signal: Signal,
    log: Log,
}

/// Where gathered data go.
pub struct To {
    /// The pipelines.
    pub next: Arc<dyn Consumer>,
    /// Their signal.
    pub signal: Signal,
    /// The account of the signal.
    pub account: Arc<Account>,
}

impl<T: Gather> Flusher<T> {
    /// Starts one for the connector with this id. It hands on what is gathered every `interval`
    /// until it is ended or dropped. To be called within the runtime.
    pub fn start(id: &str, gathered: T, to: To, interval: Duration, log: &Log) -> Arc<Flusher<T>> {
        let flusher = Arc::new(Flusher {
            id: id.to_owned(),
            gathered: Mutex::new(gathered),
            waiting: Mutex::default(),
            task: OnceLock::new(),
            account: to.account,
            next: to.next,
            signal: to.signal,
            log: log.clone(),
        });
        let task = tokio::spawn(run(Arc::downgrade(&flusher), interval));
        // It is the first one.
        let _ = flusher.task.set(task.abort_handle());
        flusher
    }

    /// Data that were gathered.
    pub fn gathered(&self) -> MutexGuard<'_, T> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Batch>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what there is now. Requests that wait are replaced, or come first: then what was
    /// gathered since stays, and this is false.
    fn flush(&self) -> bool {
        let mut waiting = self.waiting();
        let mut gathered = self.gathered();
        if gathered.repeats() {
            waiting.drain(..).for_each(|batch| batch.receipt.refuse());
        }
        let is_first = waiting.is_empty();
        if is_first {
            let requests = gathered.requests(now_unix_ns()).into_iter();
            waiting.extend(requests.map(|(request, records)| Batch {
                signal: self.signal,
                bytes: request.into(),
                records,
                receipt: self.account.accept(records),
                origin: None,
            }));
        }
        drop(gathered);
        self.hand_on(&mut waiting);
        is_first
    }

    /// Hands on what waits, in its order, as far as there is room.
    fn hand_on(&self, waiting: &mut VecDeque<Batch>) {
        while let Some(batch) = waiting.pop_front() {
            let Err(given_back) = self.next.consume(batch) else {
                continue;
            };
            let Refused { batch, refusal } = *given_back;
            match refusal {
                Refusal::Busy(_) | Refusal::Closing => return waiting.push_front(batch),
                Refusal::Malformed(why) => {
                    let (id, records) = (&self.id, batch.records);
                    let line = format!("connector '{id}': {records} records lost: {why}");
                    self.log.error(&line);
                    batch.receipt.lose(records, Loss::Dropped);
                }
            }
        }
    }
}

/// Flushes again and again, until it is aborted.
async fn run<T: Gather>(flusher: Weak<Flusher<T>>, interval: Duration) {
    let mut due = Instant::now() + interval;
    let mut next = due;
    loop {
        tokio::time::sleep_until(next).await;
        let Some(flusher) = flusher.upgrade() else {
            return;
        };
        if Instant::now() >= due {
            due = Instant::now() + interval;
            flusher.flush();
        } else {
            flusher.hand_on(&mut flusher.waiting());
        }
        next = if flusher.waiting().is_empty() {
            due
        } else {
            due.min(Instant::now() + AGAIN)
        };
    }
}

impl<T> Drop for Flusher<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

impl<T: Gather> Part for Flusher<T> {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        self.gathered().describe(name, sheet);
    }

    /// Hands on what was gathered since the last time.
    fn end<'a>(&'a self, until: Instant, _: &'a Log) -> Ended<'a> {
        Box::pin(async move {
            if let Some(task) = self.task.get() {
                task.abort();
            }
            let mut is_all = self.flush();
            while !(is_all && self.waiting().is_empty()) && Instant::now() < until {
                tokio::time::sleep(AGAIN).await;
                if is_all {
                    self.hand_on(&mut self.waiting());
                } else {
                    is_all = self.flush();
                }
            }
            for batch in self.waiting().drain(..) {
                batch.receipt.lose(batch.records, Loss::Shutdown);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::consume::{Does, Permit, refused};

    /// Hands on how often it was asked.
    struct Asked {
        times: u64,
        repeats: bool,
    }

    impl Gather for Asked {
        fn requests(&mut self, _: u64) -> Vec<(Vec<u8>, u64)> {
            self.times += 1;
            vec![(vec![self.times as u8], 1)]
        }

        fn repeats(&self) -> bool {
            self.repeats
        }
    }

    /// Takes what it has room for.
    #[derive(Default)]
    struct Next {
        is_full: Mutex<bool>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Next {
        fn fill(&self, is_full: bool) {
            *self.is_full.lock().unwrap() = is_full;
        }

        fn taken(&self) -> Vec<u8> {
            self.taken.lock().unwrap().clone()
        }
    }

    impl Consumer for Next {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            if *self.is_full.lock().unwrap() {
                return refused(batch, Refusal::busy(Duration::ZERO, &"full".into()));
            }
            let taken = Arc::clone(&self.taken);
            Ok(Does::new(move || {
                taken.lock().unwrap().push(batch.bytes[0]);
            }))
        }
    }

    const INTERVAL: Duration = Duration::from_secs(10);

    fn started(repeats: bool) -> (Arc<Flusher<Asked>>, Arc<Next>, Arc<Account>) {
        let (next, account) = (Arc::<Next>::default(), Arc::<Account>::default());
        let to = To {
            next: Arc::clone(&next) as Arc<dyn Consumer>,
            signal: Signal::Metrics,
            account: Arc::clone(&account),
        };
        let asked = Asked { times: 0, repeats };
        let flusher = Flusher::start("c", asked, to, INTERVAL, &Log::new(|_, _| {}));
        (flusher, next, account)
    }

    /// Lets so many intervals pass, and a moment.
    async fn pass(intervals: u32) {
        tokio::time::sleep(INTERVAL * intervals + AGAIN / 2).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_repeats_is_replaced_while_there_is_no_room() {
        let (flusher, next, account) = started(true);
        pass(1).await;
        assert_eq!(next.taken(), [1]);
        next.fill(true);
        pass(2).await;
        assert_eq!(account.balance().held(), 1, "one waits");
        next.fill(false);
        tokio::time::sleep(2 * AGAIN).await;
        assert_eq!(next.taken(), [1, 3], "the newest");
        let balance = account.balance();
        assert_eq!((balance.exported, balance.refused), (2, 1));
        drop(flusher);
        pass(3).await;
        assert_eq!(next.taken(), [1, 3], "it ends when it is dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_repeat_is_gathered_while_there_is_no_room() {
        let (flusher, next, account) = started(false);
        next.fill(true);
        pass(3).await;
        assert_eq!((account.balance().held(), flusher.gathered().times), (1, 1));
        next.fill(false);
        tokio::time::sleep(2 * AGAIN).await;
        assert_eq!(next.taken(), [1]);
        let log = Log::new(|_, _| {});
        flusher.end(Instant::now() + INTERVAL, &log).await;
        assert_eq!(next.taken(), [1, 2], "the rest");

        next.fill(true);
        flusher.end(Instant::now() + INTERVAL, &log).await;
        let balance = account.balance();
        assert_eq!((balance.shutdown, balance.held()), (1, 0));
    }
}
