//! Policies that decide at the end of a stream whether its spans are kept (`sampling` of an
//! instrumentation).
//!
//! Certain policies are evaluated first, then those with memory, then those that draw, whatever the
//! order of the file. A stream that a certain policy keeps has probability 1, and its threshold
//! must say so, even if the draw would have kept it too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sample::Condition;

use crate::program::Value;

/// A `sampling` line.
#[derive(Debug)]
pub struct Policy {
    /// Its name as written; kept spans carry it.
    pub name: Box<str>,
    /// A `KeyValue` with the name, for the spans that the policy keeps.
    pub mark: Box<[u8]>,
    /// Its criterion.
    pub rule: Rule,
    /// None: always.
    pub condition: Option<Condition>,
}

/// The criterion of a policy.
#[derive(Debug)]
pub enum Rule {
    /// Only the policy's condition.
    Always,
    /// Ranges of statuses, the first and the last of each.
    Status(Vec<(u16, u16)>),
    /// The stream took at least this many milliseconds.
    DurationMs(u64),
    /// The request went to a server more than once.
    Retry,
    /// It was redispatched to another server.
    Redispatch,
    /// The client or the server aborted it.
    Abort,
    /// A timeout expired.
    Timeout,
    /// The first two characters of the termination state, `*` for any.
    Termination(Vec<[u8; 2]>),
    /// The first stream with this key.
    FirstSeen(Value, Seen),
    /// A number of streams per second, for each key.
    Rate(Option<Value>, Rates),
    /// A share of all traces: those with a randomness below this threshold are not kept.
    Probability(u64),
}

impl Rule {
    /// Its place in the order of evaluation.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self {
            Rule::FirstSeen(..) => 1,
            Rule::Rate(..) => 2,
            Rule::Probability(_) => 3,
            _ => 0,
        }
    }
}

/// Keys seen before, by their hash; shared by all workers, without a lock.
#[derive(Debug)]
pub struct Seen {
    slots: Box<[AtomicU64]>,
}

/// The places examined for a key; if all are taken, the key counts as seen.
const PROBES: usize = 16;

impl Seen {
    /// Room for `keys_max` keys.
    #[must_use]
    pub fn new(keys_max: usize) -> Seen {
        let len = (keys_max * 2).next_power_of_two().max(PROBES);
        Seen {
            slots: (0..len).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Whether the key is new; marks it as seen.
    pub fn is_first(&self, hash: u64) -> bool {
        let hash = hash.max(1);
        let mask = self.slots.len() - 1;
        for probe in 0..PROBES {
            let slot = &self.slots[(hash as usize + probe) & mask];
            let there = slot.load(Relaxed);
            if there == hash {
                return false;
            }
            if there == 0 {
                match slot.compare_exchange(0, hash, Relaxed, Relaxed) {
                    Ok(_) => return true,
                    Err(other) if other == hash => return false,
                    Err(_) => {}
                }
            }
        }
        false
    }
}

/// Budgets per second and key; shared by all workers, without a lock. Keys that map to the same
/// place share a budget.
#[derive(Debug)]
pub struct Rates {
    /// Nanoseconds that one stream uses.
    each_ns: u64,
    /// By key: the time up to which the budget is used (the generic cell rate algorithm).
    spent_until_ns: Box<[AtomicU64]>,
}

/// The approximate number of keys with separate budgets.
const RATE_KEYS: usize = 4096;
/// The budget of a whole second may be used at once.
const BURST_NS: u64 = 1_000_000_000;

impl Rates {
    /// This many per second, at least 1; with `by_key`, keys have separate budgets.
    #[must_use]
    pub fn new(per_second: u32, by_key: bool) -> Rates {
        let keys = if by_key { RATE_KEYS } else { 1 };
        Rates {
            each_ns: BURST_NS / u64::from(per_second.max(1)),
            spent_until_ns: (0..keys).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Takes one from a key's budget; false if the budget is used up. `now_ns` is monotonic.
    pub fn take(&self, hash: u64, now_ns: u64) -> bool {
        let slot = &self.spent_until_ns[hash as usize & (self.spent_until_ns.len() - 1)];
        let mut spent = slot.load(Relaxed);
        loop {
            let from = spent.max(now_ns);
            let until = from + self.each_ns;
            if until - now_ns > BURST_NS.max(self.each_ns) {
                return false;
            }
            match slot.compare_exchange_weak(spent, until, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(other) => spent = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once() {
        let seen = Seen::new(100);
        assert!(seen.is_first(7));
        assert!(!seen.is_first(7));
        assert!(seen.is_first(8));
        assert!(seen.is_first(0));
        assert!(!seen.is_first(0));
    }

    #[test]
    fn a_full_table_says_seen() {
        let seen = Seen::new(8);
        let first = (1..1000).filter(|key| seen.is_first(*key)).count();
        assert_eq!(first, seen.slots.len());
    }

    #[test]
    fn a_budget_is_a_second_s_worth() {
        let rates = Rates::new(10, false);
        let at = |ms: u64| (0..100).filter(|_| rates.take(0, ms * 1_000_000)).count();
        assert_eq!(at(5000), 10);
        assert_eq!(at(5000), 0);
        assert_eq!(at(5100), 1);
        assert_eq!(at(5350), 2);
        assert_eq!(at(9000), 10);
    }

    #[test]
    fn keys_have_their_own_budgets() {
        let rates = Rates::new(1, true);
        assert!(rates.take(1, 5));
        assert!(!rates.take(1, 5));
        assert!(rates.take(2, 5));
    }
}
