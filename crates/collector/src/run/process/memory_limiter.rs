//! `memory_limiter`: refuses while the process has too much memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::memory::memory_bytes;
use super::passage::Passage;
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::memory_limiter::{Limit, MemoryLimiter};
use crate::run::Log;
use crate::run::consume::{Consumer, Pass, Refusal, Refused, Through, refused};
use crate::run::data::Batch;
use crate::run::metrics::{self, Sheet};

/// See the module.
pub struct Limiter {
    over: Arc<AtomicBool>,
    again: Duration,
    next: Arc<dyn Consumer>,
    /// What is said of it.
    full: Arc<str>,
}

/// The soft limit, above which it refuses, in bytes.
#[must_use]
pub fn soft_limit_bytes(settings: &MemoryLimiter) -> u64 {
    let bytes = |limit: Limit| match limit {
        Limit::Mib(mib) => u64::from(mib) << 20,
        Limit::Percentage(share) => memory_bytes() / 100 * u64::from(share),
    };
    let (limit, spike) = (bytes(settings.limit), bytes(settings.spike));
    limit
        - if spike == 0 {
            limit / 5
        } else {
            spike.min(limit)
        }
}

impl StartProcessor for MemoryLimiter {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let (id, setup) = (deps.id.to_string(), deps.setup);
        Ok(start(
            self,
            setup.memory_used_bytes,
            next,
            (&id, &setup.log),
        ))
    }

    fn memory_limit_bytes(&self) -> Option<u64> {
        Some(soft_limit_bytes(self))
    }

    fn describe_passage(&self) -> fn(&Passage, &mut Sheet) {
        describe
    }
}

/// The metrics of all limiters with one id and signal: what passes them, and what does not.
fn describe(passage: &Passage, sheet: &mut Sheet) {
    let (what, unit) = metrics::records_of(passage.signal);
    let counts = [
        ("accepted", passage.incoming()),
        ("refused", passage.refused()),
    ];
    for (name, count) in counts {
        let help = format!("{what} that were {name}");
        let name = format!("otelcol_processor_memory_limiter_{name}_{what}");
        sheet.about(metrics::Kind::Counter, &name, unit, &help);
        sheet.point(&[("processor", &passage.processor)], count);
    }
}

/// Starts one before `next`, by what `used_bytes` says is in use. To be called within the runtime.
#[must_use]
pub fn start(
    settings: &MemoryLimiter,
    used_bytes: fn() -> u64,
    next: Arc<dyn Consumer>,
    (name, log): (&str, &Log),
) -> Arc<Limiter> {
    let soft = soft_limit_bytes(settings);
    let every = Duration::from_nanos(settings.check_interval_ns.max(1_000_000));
    let over = Arc::new(AtomicBool::new(false));
    let (watched, log, own) = (Arc::downgrade(&over), log.clone(), name.to_owned());
    tokio::spawn(async move {
        // Ends with the limiter.
        while let Some(over) = watched.upgrade() {
            let used = used_bytes();
            let is_over = used > soft;
            if over.swap(is_over, Relaxed) != is_over {
                let what = if is_over { "refuses" } else { "takes again" };
                let (used, soft) = (used >> 20, soft >> 20);
                log.warn(&format!(
                    "processor '{own}' {what}: {used} MiB in use, limit {soft} MiB"
                ));
            }
            drop(over);
            tokio::time::sleep(every).await;
        }
    });
    Arc::new(Limiter {
        over,
        again: every,
        next,
        full: format!("processor '{name}': more memory is in use than its limit").into(),
    })
}

impl Through for Limiter {
    fn next(&self) -> &dyn Consumer {
        &*self.next
    }

    fn open(&self) -> Result<(), Refusal> {
        if self.over.load(Relaxed) {
            Err(Refusal::busy(self.again, &self.full))
        } else {
            Ok(())
        }
    }

    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        match self.open() {
            Ok(()) => P::on(&*self.next, batch),
            Err(refusal) => refused(batch, refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::config::Signal;
    use crate::run::account::Account;
    use crate::run::consume::{Does, Permit};

    struct Taker;

    impl Consumer for Taker {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            Ok(Does::new(|| drop(batch)))
        }
    }

    static USED_BYTES: AtomicU64 = AtomicU64::new(0);

    #[tokio::test(start_paused = true)]
    async fn it_refuses_while_there_is_too_much_and_takes_again_after() {
        let settings = MemoryLimiter {
            check_interval_ns: 1_000_000_000,
            limit: Limit::Mib(10),
            spike: Limit::Mib(0),
        };
        let used = || USED_BYTES.load(Relaxed);
        let limiter = start(
            &settings,
            used,
            Arc::new(Taker),
            ("m", &Log::new(|_, _| ())),
        );
        let account = Arc::new(Account::default());
        let consume = || {
            let batch = Batch {
                signal: Signal::Traces,
                bytes: Default::default(),
                records: 1,
                receipt: account.accept(1),
                origin: None,
            };
            limiter.consume(batch).map_err(|refused| {
                refused.batch.receipt.refuse();
                refused.refusal
            })
        };
        for (mib, taken) in [(7, true), (9, false), (8, true)] {
            USED_BYTES.store(mib << 20, Relaxed);
            tokio::time::sleep(Duration::from_secs(2)).await;
            let busy = Err(Refusal::busy(Duration::from_secs(1), &limiter.full));
            assert_eq!(consume(), if taken { Ok(()) } else { busy.clone() });
            assert_eq!(limiter.room(), if taken { Ok(()) } else { busy });
        }
        assert_eq!(account.balance().refused, 1);
    }
}
