//! `memory_limiter`: refuses while the process has too much memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::memory::{memory_bytes, resident_bytes};
use crate::config::components::processors::memory_limiter::{Limit, MemoryLimiter};
use crate::run::Log;
use crate::run::consume::{Consumer, Refusal, Refused, refused};
use crate::run::data::Batch;

/// See the module.
pub struct Limiter {
    over: Arc<AtomicBool>,
    again: Duration,
    next: Arc<dyn Consumer>,
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

/// Starts one before `next`. To be called within the runtime.
#[must_use]
pub fn start(settings: &MemoryLimiter, next: Arc<dyn Consumer>, log: &Log) -> Arc<Limiter> {
    let soft = soft_limit_bytes(settings);
    let every = Duration::from_nanos(settings.check_interval_ns.max(1_000_000));
    let over = Arc::new(AtomicBool::new(false));
    let (watched, log) = (Arc::downgrade(&over), log.clone());
    tokio::spawn(async move {
        // Ends with the limiter.
        while let Some(over) = watched.upgrade() {
            let used = resident_bytes();
            let is_over = used > soft;
            if over.swap(is_over, Relaxed) != is_over {
                let what = if is_over { "refuses" } else { "takes again" };
                let (used, soft) = (used >> 20, soft >> 20);
                log.warn(&format!(
                    "memory_limiter {what}: {used} MiB in use, limit {soft} MiB"
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
    })
}

impl Consumer for Limiter {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        match self.over.load(Relaxed) {
            true => refused(batch, Refusal::Busy(self.again)),
            false => self.next.consume(batch),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        match self.over.load(Relaxed) {
            true => Err(Refusal::Busy(self.again)),
            false => self.next.room(),
        }
    }
}
