//! What was decided, for spans that come late: as the Collector remembers it.
//!
//! Without `decision_cache` one memory has the last decisions of both kinds. With it each kind has
//! a memory of its own, so that many traces that are dropped push out none that is kept, and a
//! decision that a late span follows is as new as one just made.

use super::memory::{Memory, Past};
use crate::settings::TailSampling;

/// Decisions by trace.
#[derive(Debug)]
pub enum Decisions {
    /// Both kinds in one memory, in the order in which they were made.
    Together(Memory),
    /// `decision_cache`
    Apart {
        /// `sampled_cache_size`
        kept: Memory,
        /// `non_sampled_cache_size`
        not_kept: Box<Memory>,
    },
}

impl Decisions {
    /// None are remembered.
    pub fn none() -> Decisions {
        Decisions::Together(Memory::new(0))
    }

    /// For one of `settings.shards` shards, within so many bytes.
    ///
    /// Each kind has at least as many as its cache is to have, and as the Collector remembers
    /// without one: `num_traces`.
    pub fn new(settings: &TailSampling, bytes_max: u64) -> Decisions {
        let shards = u64::from(settings.shards.max(1));
        let least = settings.traces_max;
        let own = |cached: u64| cached.max(least).div_ceil(shards);
        let (kept, not_kept) = (settings.sampled_cache_size, settings.non_sampled_cache_size);
        if kept == 0 && not_kept == 0 {
            return Decisions::Together(Memory::within(own(0), bytes_max));
        }
        Decisions::Apart {
            kept: Memory::within(own(kept), bytes_max / 2),
            not_kept: Box::new(Memory::within(own(not_kept), bytes_max / 2)),
        }
    }

    /// Room for so many more of each kind; what is remembered is forgotten.
    pub fn grow(&mut self, more: u64) {
        let grown = |memory: &Memory| Memory::new(memory.decisions() + more);
        *self = match &*self {
            Decisions::Together(memory) => Decisions::Together(grown(memory)),
            Decisions::Apart { kept, not_kept } => Decisions::Apart {
                kept: grown(kept),
                not_kept: Box::new(grown(not_kept)),
            },
        };
    }

    /// Remembers a decision. It is known from [`Decisions::flush`] on.
    pub fn remember(&mut self, hash: u64, is_kept: bool, policy: Option<u16>, now_ns: u64) {
        let memory = match self {
            Decisions::Together(memory) => memory,
            Decisions::Apart { kept, not_kept } => {
                if is_kept {
                    kept
                } else {
                    not_kept
                }
            }
        };
        memory.remember(hash, is_kept, policy, now_ns);
    }

    /// Puts what waits in its places.
    #[inline]
    pub fn flush(&mut self) {
        match self {
            Decisions::Together(memory) => memory.flush(),
            Decisions::Apart { kept, not_kept } => {
                kept.flush();
                not_kept.flush();
            }
        }
    }

    /// Reads what [`Decisions::recall`] will, so that the cache misses of many traces overlap.
    #[inline]
    #[must_use]
    pub fn touch(&self, hash: u64) -> u64 {
        match self {
            Decisions::Together(memory) => memory.touch(hash),
            Decisions::Apart { kept, not_kept } => kept.touch(hash) ^ not_kept.touch(hash),
        }
    }

    /// The decision on a trace; none if it was not made or is forgotten.
    #[inline]
    #[must_use]
    pub fn recall(&self, hash: u64) -> Option<Past> {
        match self {
            Decisions::Together(memory) => memory.recall(hash),
            Decisions::Apart { kept, not_kept } => {
                kept.recall(hash).or_else(|| not_kept.recall(hash))
            }
        }
    }

    /// A late span followed a decision: it is remembered as long as one that is made now.
    pub fn refresh(&mut self, hash: u64, past: Past, now_ns: u64) {
        if let Decisions::Apart { kept, not_kept } = self {
            let memory = if past.kept { kept } else { not_kept };
            memory.refresh(hash, now_ns);
        }
    }

    /// Bytes of all memories.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        match self {
            Decisions::Together(memory) => memory.held_bytes(),
            Decisions::Apart { kept, not_kept } => kept.held_bytes() + not_kept.held_bytes(),
        }
    }

    /// Decisions that were forgotten early.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        match self {
            Decisions::Together(memory) => memory.forgotten(),
            Decisions::Apart { kept, not_kept } => kept.forgotten() + not_kept.forgotten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes())
    }

    fn decisions(sampled_cache_size: u64, non_sampled_cache_size: u64) -> Decisions {
        let settings = TailSampling {
            traces_max: 100,
            sampled_cache_size,
            non_sampled_cache_size,
            ..TailSampling::default()
        };
        Decisions::new(&settings, 64 << 20)
    }

    /// Of 100 kept traces, how many are known after so many others were dropped.
    fn known(decisions: &mut Decisions, dropped: u64) -> usize {
        for n in 0..100 {
            decisions.remember(hash(n), true, Some(3), n);
        }
        for n in 0..dropped {
            decisions.remember(hash(1000 + n), false, None, n);
        }
        decisions.flush();
        (0..100)
            .filter(|n| decisions.recall(hash(*n)).is_some_and(|past| past.kept))
            .count()
    }

    #[test]
    fn what_is_dropped_pushes_out_nothing_that_is_kept() {
        assert_eq!(known(&mut decisions(0, 0), 10_000), 0);
        for (kept, not_kept) in [(100, 0), (100, 1000), (0, 1000)] {
            assert_eq!(known(&mut decisions(kept, not_kept), 10_000), 100);
        }
    }

    #[test]
    fn sizes_are_those_of_each_kind() {
        let mut wide = decisions(100, 5000);
        assert_eq!(known(&mut wide, 5000), 100);
        let dropped = |n: &u64| wide.recall(hash(1000 + n)).is_some_and(|past| !past.kept);
        assert_eq!((0..5000).filter(dropped).count(), 5000);
    }

    #[test]
    fn a_decision_that_late_spans_follow_stays() {
        let mut decisions = decisions(1000, 0);
        decisions.remember(hash(0), true, Some(7), 0);
        decisions.remember(hash(1), true, Some(7), 0);
        for n in 2..100_000 {
            decisions.remember(hash(n), true, None, n);
            if n % 500 == 0 {
                decisions.flush();
                let past = decisions
                    .recall(hash(0))
                    .expect("it was asked for not long ago");
                assert_eq!(past.policy, Some(7));
                decisions.refresh(hash(0), past, n);
            }
        }
        decisions.flush();
        assert_eq!(decisions.recall(hash(1)), None);
        assert!(
            decisions.held_bytes() < 200_000,
            "{}",
            decisions.held_bytes()
        );
    }
}
