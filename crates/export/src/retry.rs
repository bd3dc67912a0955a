//! Retries of requests that a receiver could not accept.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::health::Health;
use crate::sink::Outcome;

/// When a request is retried. The delay grows each time, and is drawn from around its length, so
/// that the requests of many processes do not arrive at the same time. A delay requested by the
/// receiver (`Retry-After`, `RetryInfo`) is respected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// The delay before the second attempt.
    pub first: Duration,
    /// Each delay is longer than the one before by this factor.
    pub multiplier: f64,
    /// A delay may be shorter or longer by this share of it, 0 to 1.
    pub spread: f64,
    /// The longest delay between two attempts.
    pub delay_max: Duration,
    /// The longest delay that a receiver may request.
    pub asked_max: Duration,
    /// The longest time from the first attempt to the start of the last; none: no limit.
    pub elapsed_max: Option<Duration>,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            first: Duration::from_secs(1),
            multiplier: 1.5,
            spread: 0.2,
            delay_max: Duration::from_secs(5),
            asked_max: Duration::from_secs(30),
            elapsed_max: Some(Duration::from_secs(60)),
        }
    }
}

/// The delays of one request.
#[derive(Debug)]
pub struct Delays {
    retry: Option<Retry>,
    begin: Instant,
    delay: Duration,
}

impl Delays {
    /// Before the first attempt; without `retry` there is no second one.
    #[must_use]
    pub fn new(retry: Option<Retry>) -> Delays {
        Delays {
            retry,
            begin: Instant::now(),
            delay: retry.map_or(Duration::ZERO, |retry| retry.first),
        }
    }

    /// How long to wait before the next attempt, at least as the receiver `asked`; none if no time
    /// is left.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let retry = self.retry?;
        let asked = asked.unwrap_or_default().min(retry.asked_max);
        let wait = spread(self.delay, retry.spread).max(asked);
        let longer_s = self.delay.as_secs_f64() * retry.multiplier.max(1.0);
        let longer = Duration::try_from_secs_f64(longer_s);
        self.delay = longer.map_or(retry.delay_max, |longer| longer.min(retry.delay_max));
        let elapsed = self.begin.elapsed() + wait;
        { retry.elapsed_max }
            .is_none_or(|max| elapsed <= max)
            .then_some(wait)
    }
}

/// The final result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The receiver has it, except for the rejected records.
    Taken { rejected: u64 },
    /// It could not be delivered.
    Failed,
}

impl Retry {
    /// Calls `send` until the receiver accepts the request or refuses it permanently, or no time is
    /// left.
    pub(crate) async fn deliver<F>(self, mut send: impl FnMut() -> F, health: &Health) -> End
    where
        F: Future<Output = Outcome>,
    {
        let mut delays = Delays::new(Some(self));
        loop {
            let wait = match send().await {
                Outcome::Taken { rejected, message } => {
                    health.taken(rejected, &message);
                    return End::Taken { rejected };
                }
                Outcome::Refused(why) => {
                    health.failed(&why);
                    return End::Failed;
                }
                Outcome::Busy { after, why } => {
                    let Some(wait) = delays.next(after) else {
                        health.failed(&why);
                        return End::Failed;
                    };
                    health.again(&why);
                    wait
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

/// A time drawn from around `time`, by a share of it each way.
pub(crate) fn spread(time: Duration, share: f64) -> Duration {
    let unit = (random() >> 11) as f64 / (1_u64 << 53) as f64;
    time.mul_f64((1.0 + share * (2.0 * unit - 1.0)).max(0.0))
}

/// A random number that need not be secret.
pub(crate) fn random() -> u64 {
    // The keys of the standard hasher are random.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const RETRY: Retry = Retry {
        first: Duration::from_secs(1),
        multiplier: 1.5,
        spread: 0.2,
        delay_max: Duration::from_secs(2),
        asked_max: Duration::from_secs(10),
        elapsed_max: Some(Duration::from_secs(30)),
    };

    /// Delivers with these answers; gives the end, and the seconds at which each attempt began.
    async fn deliver(answers: Vec<Outcome>) -> (End, Vec<f64>) {
        let health = Health::new(String::new(), Arc::new(|_| {}));
        let (begin, mut at) = (Instant::now(), Vec::new());
        let mut answers = answers.into_iter();
        let send = || {
            at.push(begin.elapsed().as_secs_f64());
            let answer = answers.next().unwrap_or_else(|| Outcome::busy("still"));
            std::future::ready(answer)
        };
        let end = RETRY.deliver(send, &health).await;
        assert_eq!(health.attempts_again(), at.len() as u64 - 1);
        (end, at)
    }

    fn busy(after_s: u64) -> Outcome {
        Outcome::Busy {
            after: Some(Duration::from_secs(after_s)),
            why: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_between_grows_up_to_a_bound() {
        let (end, at) = deliver(Vec::new()).await;
        assert_eq!(end, End::Failed);
        let between: Vec<_> = at.windows(2).map(|two| two[1] - two[0]).collect();
        let expected = [1.0, 1.5].into_iter().chain(std::iter::repeat(2.0));
        for (between, expected) in between.iter().zip(expected) {
            let range = expected * 0.799..expected * 1.202;
            assert!(range.contains(between), "{between} {expected}");
        }
        assert!((13..=21).contains(&at.len()), "{at:?}");
        assert!(*at.last().unwrap() <= 30.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_says_when_is_heard() {
        let (end, at) = deliver(vec![busy(4), busy(3600), Outcome::TAKEN]).await;
        assert_eq!(end, End::Taken { rejected: 0 });
        // Ten seconds are the most that it may ask for.
        let rounded: Vec<_> = at.iter().map(|at| at.round()).collect();
        assert_eq!(rounded, [0.0, 4.0, 14.0]);
        // Nobody is asked again too late.
        let (end, at) = deliver(vec![busy(10), busy(10), busy(10), busy(10)]).await;
        assert_eq!((end, at.len()), (End::Failed, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_sent_again() {
        let (end, at) = deliver(vec![Outcome::Refused(String::new())]).await;
        assert_eq!((end, at.len()), (End::Failed, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_and_end() {
        let retry = Retry {
            multiplier: 2.0,
            spread: 0.0,
            delay_max: Duration::from_secs(4),
            asked_max: Duration::MAX,
            elapsed_max: Some(Duration::from_secs(20)),
            ..RETRY
        };
        let mut delays = Delays::new(Some(retry));
        let mut all = Vec::new();
        while let Some(wait) = delays.next(None) {
            all.push(wait.as_secs());
            tokio::time::sleep(wait).await;
        }
        assert_eq!(all, [1, 2, 4, 4, 4, 4]);
        for (asked_s, is_fitting) in [(9, true), (21, false)] {
            let asked = Some(Duration::from_secs(asked_s));
            let next = Delays::new(Some(retry)).next(asked);
            assert_eq!(next, asked.filter(|_| is_fitting));
        }
        assert_eq!(Delays::new(None).next(None), None);
        let multiplier = f64::MAX;
        let mut delays = Delays::new(Some(Retry {
            multiplier,
            ..retry
        }));
        assert_eq!(delays.next(None), Some(retry.first));
        assert_eq!(delays.next(None), Some(retry.delay_max));
    }
}
