//! `retry-budget`: allows retries as a share of the requests of the last seconds, plus a fixed
//! number per second.
//!
//! So a backend that fails completely gets little more load from retries than from its requests.
//! Both are counted by second in rings of atomics. A request costs one addition, and a backend
//! without a budget costs one branch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use config::model::{Config, RetryBudget};

use super::succession::Succession;
use crate::ids::ProxyId;

/// The window of a budget, seconds.
const SECONDS: u32 = 10;

/// By backend.
#[derive(Debug)]
pub(super) struct Budgets(Box<[Option<Arc<Budget>>]>);

impl Budgets {
    /// As configured.
    pub fn new(config: &Config) -> Budgets {
        let budget = |rule| Arc::new(Budget::new(rule));
        let proxies = config.proxies.iter();
        Budgets(
            proxies
                .map(|proxy| proxy.retry_budget.map(budget))
                .collect(),
        )
    }

    /// Takes the budgets with the same rule over.
    pub fn succeed(&mut self, before: &Budgets, both: &Succession<'_>) {
        for proxy in &both.proxies {
            let (now, then) = (&mut self.0[proxy.place()], &before.0[proxy.place()]);
            let rule = |budget: &Option<Arc<Budget>>| budget.as_ref().map(|budget| budget.rule);
            if rule(now) == rule(then) {
                now.clone_from(then);
            }
        }
    }

    /// The budget of a backend, if it has one.
    #[inline]
    pub fn of(&self, backend: ProxyId) -> Option<&Budget> {
        self.0[backend.place()].as_deref()
    }
}

/// The retry budget of a backend.
#[derive(Debug)]
pub(super) struct Budget {
    rule: RetryBudget,
    requests: Ring,
    retries: Ring,
}

impl Budget {
    fn new(rule: RetryBudget) -> Budget {
        Budget {
            rule,
            requests: Ring::default(),
            retries: Ring::default(),
        }
    }

    /// Counts a request.
    pub fn request(&self, now_ms: u64) {
        self.requests.add(second(now_ms));
    }

    /// Takes a retry from the budget; false if none is left.
    pub fn retry(&self, now_ms: u64) -> bool {
        let second = second(now_ms);
        let share = self.requests.sum(second) * u64::from(self.rule.percent) / 100;
        let most = share + u64::from(self.rule.min_per_s) * u64::from(SECONDS);
        self.retries.add_below(second, most)
    }
}

fn second(now_ms: u64) -> u32 {
    (now_ms / 1000) as u32
}

/// Events of the last [`SECONDS`]. The upper half of a cell is the number of its second, the lower
/// half its events.
#[derive(Debug, Default)]
struct Ring([AtomicU64; SECONDS as usize]);

/// The count of a cell; 0 where the cell is of an earlier second.
fn count_in(cell: u64, second: u32) -> u64 {
    if (cell >> 32) as u32 == second {
        cell & u64::from(u32::MAX)
    } else {
        0
    }
}

impl Ring {
    fn cell(&self, second: u32) -> &AtomicU64 {
        &self.0[(second % SECONDS) as usize]
    }

    fn add(&self, second: u32) {
        let cell = self.cell(second);
        if (cell.load(Relaxed) >> 32) as u32 == second {
            cell.fetch_add(1, Relaxed);
        } else {
            self.add_below(second, u64::MAX);
        }
    }

    /// Adds an event, unless there are `most` already.
    fn add_below(&self, second: u32, most: u64) -> bool {
        let cell = self.cell(second);
        // Other threads may add events between the two reads.
        let own = count_in(cell.load(Relaxed), second);
        let others = self.sum(second).saturating_sub(own);
        let more = |now: u64| {
            let count = count_in(now, second);
            let has_room = others.saturating_add(count) < most && count < u64::from(u32::MAX);
            has_room.then_some((u64::from(second) << 32) | (count + 1))
        };
        cell.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn sum(&self, second: u32) -> u64 {
        let seconds = (0..SECONDS).map(|back| second.wrapping_sub(back));
        seconds
            .map(|second| count_in(self.cell(second).load(Relaxed), second))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(percent: u32, min_per_s: u32) -> Budget {
        Budget::new(RetryBudget { percent, min_per_s })
    }

    /// How many retries a budget grants at a moment, of 1000 that ask.
    fn granted(budget: &Budget, now_ms: u64) -> usize {
        (0..1000).filter(|_| budget.retry(now_ms)).count()
    }

    #[test]
    fn a_share_of_the_requests_of_the_last_seconds_may_be_retried() {
        let budget = budget(20, 0);
        assert_eq!(granted(&budget, 50_000), 0);
        for _ in 0..100 {
            budget.request(50_000);
        }
        assert_eq!(granted(&budget, 50_400), 20);
        for _ in 0..50 {
            budget.request(55_000);
        }
        assert_eq!(granted(&budget, 55_000), 10);
        // The requests and the retries of second 50 are out of the window together.
        assert_eq!(granted(&budget, 60_000), 0);
        for _ in 0..5 {
            budget.request(60_000);
        }
        assert_eq!(granted(&budget, 60_000), 1);
        assert_eq!(granted(&budget, 80_000), 0);
    }

    #[test]
    fn a_number_a_second_is_granted_without_requests() {
        let budget = budget(0, 3);
        assert_eq!(granted(&budget, 1_000), 30);
        assert_eq!(granted(&budget, 10_999), 0);
        assert_eq!(granted(&budget, 11_000), 30);
    }

    #[test]
    fn workers_together_take_no_more_than_there_is() {
        let budget = budget(0, 10);
        let taken: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| granted(&budget, 7_000)))
                .collect();
            let taken = workers.into_iter().map(|worker| worker.join());
            taken.map(|taken| taken.expect("a count")).sum()
        });
        assert_eq!(taken, 100);
    }
}
