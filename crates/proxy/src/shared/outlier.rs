//! `outlier-ejection`: the outcomes of a server's requests, counted by window in atomics.
//!
//! Errors and the success rate are judged with each error, the mean latency when a window ends. The
//! states of servers ([`super::health`]) act on a verdict.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use config::model::{OutlierEjection, Server};

/// The reason for an ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This many errors in a row.
    Errors(u32),
    /// The successful requests and all requests.
    SuccessRate(u32, u32),
    /// The mean latency of the server and of the other servers, microseconds.
    Latency(u64, u64),
}

/// The sum and the number of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies {
    sum_us: u64,
    count: u64,
}

impl Latencies {
    /// The sum of both.
    pub fn and(self, other: Latencies) -> Latencies {
        Latencies {
            sum_us: self.sum_us.saturating_add(other.sum_us),
            count: self.count + other.count,
        }
    }

    fn mean_us(self) -> u64 {
        self.sum_us / self.count.max(1)
    }
}

/// A server's rules and its current window.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The length of a window, milliseconds; 0 where the server is not watched.
    interval_ms: AtomicU64,
    errors: AtomicU32,
    success_percent: AtomicU32,
    latency_percent: AtomicU32,
    requests: AtomicU32,
    /// How long to wait for a probe before another request may be one, milliseconds.
    probe_ms: AtomicU64,
    /// When the next request may be a probe, monotonic milliseconds.
    probe_at_ms: AtomicU64,
    /// Errors in a row.
    in_a_row: AtomicU32,
    /// The number of the current window.
    window: AtomicU64,
    good: AtomicU32,
    bad: AtomicU32,
    sum_us: AtomicU64,
    /// The latencies of the previous window.
    before_sum_us: AtomicU64,
    before_count: AtomicU64,
}

impl Watch {
    /// Sets the rules of a server line. No thread may count at the same time.
    pub fn begin(&self, line: &Server) {
        let rules = line.checks.ejection;
        let interval_ms = rules.map_or(0, |rules| rules.interval.as_millis() as u64);
        self.interval_ms.store(interval_ms, Relaxed);
        let rules = rules.unwrap_or_default();
        let OutlierEjection {
            errors,
            success_percent,
            latency_percent,
            requests,
            interval: _,
            ejection,
            max_percent: _,
        } = rules;
        self.errors.store(errors, Relaxed);
        self.success_percent.store(success_percent, Relaxed);
        self.latency_percent.store(latency_percent, Relaxed);
        self.requests.store(requests, Relaxed);
        self.probe_ms.store(ejection.as_millis() as u64, Relaxed);
        self.probe_at_ms.store(0, Relaxed);
        self.forget();
    }

    /// Whether the server is watched at all.
    pub fn is_on(&self) -> bool {
        self.interval_ms.load(Relaxed) > 0
    }

    /// Resets all counts.
    fn forget(&self) {
        self.in_a_row.store(0, Relaxed);
        self.good.store(0, Relaxed);
        self.bad.store(0, Relaxed);
        self.sum_us.store(0, Relaxed);
        self.before_sum_us.store(0, Relaxed);
        self.before_count.store(0, Relaxed);
    }

    /// The latencies of this window and of the previous one.
    pub fn latencies(&self) -> Latencies {
        let before = Latencies {
            sum_us: self.before_sum_us.load(Relaxed),
            count: self.before_count.load(Relaxed),
        };
        before.and(self.current())
    }

    fn current(&self) -> Latencies {
        Latencies {
            sum_us: self.sum_us.load(Relaxed),
            count: self.good.load(Relaxed).into(),
        }
    }

    /// Counts a request that failed, or its latency in microseconds. `others` gives the latencies
    /// of the other servers.
    pub fn count(
        &self,
        latency_us: Option<u64>,
        now_ms: u64,
        others: impl FnOnce() -> Latencies,
    ) -> Option<Verdict> {
        let slow = self.turn(now_ms / self.interval_ms.load(Relaxed).max(1), others);
        let verdict = match latency_us {
            None => self.count_error(),
            Some(latency_us) => {
                self.in_a_row.store(0, Relaxed);
                self.good.fetch_add(1, Relaxed);
                self.sum_us.fetch_add(latency_us, Relaxed);
                None
            }
        };
        let verdict = verdict.or(slow);
        if verdict.is_some() {
            self.forget();
        }
        verdict
    }

    fn count_error(&self) -> Option<Verdict> {
        let bad = self.bad.fetch_add(1, Relaxed) + 1;
        let in_a_row = self.in_a_row.fetch_add(1, Relaxed) + 1;
        let most = self.errors.load(Relaxed);
        if most > 0 && in_a_row >= most {
            return Some(Verdict::Errors(in_a_row));
        }
        let good = self.good.load(Relaxed);
        let all = good.saturating_add(bad);
        let least_percent = u64::from(self.success_percent.load(Relaxed));
        let is_judged = all >= self.requests.load(Relaxed);
        let is_bad = u64::from(good) * 100 < u64::from(all) * least_percent;
        (is_judged && is_bad).then_some(Verdict::SuccessRate(good, all))
    }

    /// Starts another window if the current one is over, and judges its latency.
    fn turn(&self, number: u64, others: impl FnOnce() -> Latencies) -> Option<Verdict> {
        let before = self.window.load(Relaxed);
        // The clock of another worker may be slightly behind.
        if before >= number {
            return None;
        }
        let turned = self
            .window
            .compare_exchange(before, number, Relaxed, Relaxed);
        turned.ok()?;
        let of_window = self.current();
        self.forget_window();
        if number > before + 1 {
            self.before_sum_us.store(0, Relaxed);
            self.before_count.store(0, Relaxed);
            return None;
        }
        self.before_sum_us.store(of_window.sum_us, Relaxed);
        self.before_count.store(of_window.count, Relaxed);
        let most_percent = self.latency_percent.load(Relaxed);
        let least = u64::from(self.requests.load(Relaxed));
        if most_percent == 0 || of_window.count < least {
            return None;
        }
        let others = others();
        let (mean_us, others_us) = (of_window.mean_us(), others.mean_us());
        let is_slow = u128::from(mean_us) * 100 > u128::from(others_us) * u128::from(most_percent);
        (others.count >= least && is_slow).then_some(Verdict::Latency(mean_us, others_us))
    }

    fn forget_window(&self) {
        self.good.store(0, Relaxed);
        self.bad.store(0, Relaxed);
        self.sum_us.store(0, Relaxed);
    }

    /// The server may be probed from now on.
    pub fn allow_probe(&self) {
        self.probe_at_ms.store(0, Relaxed);
    }

    /// Whether a request may be a probe.
    pub fn may_probe(&self, now_ms: u64) -> bool {
        self.probe_at_ms.load(Relaxed) <= now_ms
    }

    /// Makes a request the probe. If that request has no outcome, because its client left, another
    /// one may be a probe later.
    pub fn take_probe(&self, now_ms: u64) -> bool {
        let next_ms = now_ms.saturating_add(self.probe_ms.load(Relaxed).max(1));
        let take = |at_ms| (at_ms <= now_ms).then_some(next_ms);
        self.probe_at_ms
            .fetch_update(Relaxed, Relaxed, take)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn watch(rules: OutlierEjection) -> Watch {
        let watch = Watch::default();
        watch.errors.store(rules.errors, Relaxed);
        watch.success_percent.store(rules.success_percent, Relaxed);
        watch.latency_percent.store(rules.latency_percent, Relaxed);
        watch.requests.store(rules.requests, Relaxed);
        let ms = |time: Duration| time.as_millis() as u64;
        watch.interval_ms.store(ms(rules.interval), Relaxed);
        watch.probe_ms.store(ms(rules.ejection), Relaxed);
        watch
    }

    fn good(watch: &Watch, now_ms: u64) -> Option<Verdict> {
        watch.count(Some(1000), now_ms, Latencies::default)
    }

    fn bad(watch: &Watch, now_ms: u64) -> Option<Verdict> {
        watch.count(None, now_ms, Latencies::default)
    }

    #[test]
    fn errors_in_a_row_are_broken_by_a_success() {
        let watch = watch(OutlierEjection {
            errors: 3,
            ..OutlierEjection::default()
        });
        assert_eq!(bad(&watch, 1), None);
        assert_eq!(bad(&watch, 1), None);
        assert_eq!(good(&watch, 1), None);
        assert_eq!(bad(&watch, 20_000), None);
        // A row goes on over the end of a window.
        assert_eq!(bad(&watch, 40_000), None);
        assert_eq!(bad(&watch, 60_000), Some(Verdict::Errors(3)));
        assert_eq!(bad(&watch, 60_000), None);
    }

    #[test]
    fn the_success_rate_is_judged_within_a_window_of_enough_requests() {
        let watch = watch(OutlierEjection {
            success_percent: 80,
            requests: 10,
            ..OutlierEjection::default()
        });
        for _ in 0..6 {
            assert_eq!(good(&watch, 10_000), None);
        }
        for _ in 0..3 {
            assert_eq!(bad(&watch, 11_000), None);
        }
        assert_eq!(bad(&watch, 19_999), Some(Verdict::SuccessRate(6, 10)));
        // Another window knows nothing of the last one.
        for _ in 0..9 {
            assert_eq!(bad(&watch, 20_000), None);
        }
        assert_eq!(bad(&watch, 30_000), None);
    }

    #[test]
    fn the_latency_of_a_window_is_compared_when_it_ends() {
        let watch = watch(OutlierEjection {
            latency_percent: 300,
            requests: 2,
            ..OutlierEjection::default()
        });
        let others = || Latencies {
            sum_us: 20_000,
            count: 20,
        };
        let slow = |now_ms| watch.count(Some(3500), now_ms, others);
        assert_eq!(slow(10_000), None);
        assert_eq!(slow(12_000), None);
        assert_eq!(slow(20_000), Some(Verdict::Latency(3500, 1000)));
        // Too few requests of its own, then none of others, then a gap of a window.
        assert_eq!(slow(21_000), None);
        assert_eq!(slow(30_000), None);
        assert_eq!(slow(30_001), None);
        assert_eq!(good(&watch, 40_000), None);
        assert_eq!(slow(40_000), None);
        assert_eq!(slow(60_000), None);
    }

    #[test]
    fn one_request_probes_at_a_time() {
        let watch = watch(OutlierEjection::default());
        assert!(watch.may_probe(5) && watch.take_probe(5));
        assert!(!watch.may_probe(6) && !watch.take_probe(30_004));
        assert!(watch.take_probe(30_005));
        watch.allow_probe();
        assert!(watch.take_probe(30_006));
    }
}
