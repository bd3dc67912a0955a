//! When a batch is sent again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::components::shared::retry::Retry;

/// The waits of one batch.
pub(super) struct Waits<'a> {
    retry: Option<&'a Retry>,
    begin: Instant,
    interval: Duration,
}

impl<'a> Waits<'a> {
    pub(super) fn new(retry: Option<&'a Retry>) -> Waits<'a> {
        let first = retry.map_or(0, |retry| retry.initial_interval_ns);
        Waits {
            retry,
            begin: Instant::now(),
            interval: Duration::from_nanos(first),
        }
    }

    /// How long to wait before the next attempt, `asked` or longer; none when it is given up.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let retry = self.retry?;
        let longest = Duration::from_nanos(retry.max_interval_ns);
        let wait = spread(self.interval, retry.randomization_factor);
        self.interval = self
            .interval
            .mul_f64(retry.multiplier.max(1.0))
            .min(longest);
        let wait = wait.max(asked.unwrap_or_default());
        let allowed = Duration::from_nanos(retry.max_elapsed_ns);
        let fits = retry.max_elapsed_ns == 0 || self.begin.elapsed() + wait <= allowed;
        fits.then_some(wait)
    }
}

/// A time drawn from around `interval`, by a share of it each way.
fn spread(interval: Duration, share: f64) -> Duration {
    // Its keys are random: randomness enough for this, and at hand.
    let random = RandomState::new().build_hasher().finish() >> 11;
    let unit = random as f64 / (1_u64 << 53) as f64;
    interval.mul_f64((1.0 + share * (2.0 * unit - 1.0)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Exporter, exporter};

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_end() {
        let exporter = exporter(
            "otlphttp: { endpoint: 'http://x', retry_on_failure: { initial_interval: 1s, randomization_factor: 0, \
             multiplier: 2, max_interval: 4s, max_elapsed_time: 20s } }",
        );
        let Exporter::OtlpHttp(exporter) = exporter else {
            panic!("{exporter:?}");
        };
        let retry = exporter.retry.as_ref();
        let mut waits = Waits::new(retry);
        let mut all = Vec::new();
        while let Some(wait) = waits.next(None) {
            all.push(wait.as_secs());
            tokio::time::sleep(wait).await;
        }
        assert_eq!(all, [1, 2, 4, 4, 4, 4]);
        let asked = Some(Duration::from_secs(9));
        assert_eq!(Waits::new(retry).next(asked), asked);
        let asked = Some(Duration::from_secs(21));
        assert_eq!(Waits::new(retry).next(asked), None);
        assert_eq!(Waits::new(None).next(None), None);
    }

    #[test]
    fn waits_are_spread() {
        for _ in 0..1000 {
            let wait = spread(Duration::from_secs(10), 0.5).as_secs_f64();
            assert!((5.0..=15.0).contains(&wait));
        }
    }
}
