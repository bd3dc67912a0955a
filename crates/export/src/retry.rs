//! Retries of requests that a receiver could not accept.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::health::Health;
use crate::sink::Outcome;

/// When a request is retried. The delay grows by half each time, plus or minus a fifth, so that the requests of many proxies do
/// not arrive at the same time. A delay requested by the receiver (`Retry-After`, `RetryInfo`) is respected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The delay before the second attempt.
    pub first: Duration,
    /// The longest delay between two attempts.
    pub delay_max: Duration,
    /// The longest delay that a receiver may request.
    pub asked_max: Duration,
    /// The longest time from the first attempt to the start of the last.
    pub elapsed_max: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            first: Duration::from_secs(1),
            delay_max: Duration::from_secs(5),
            asked_max: Duration::from_secs(30),
            elapsed_max: Duration::from_secs(60),
        }
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
    /// Calls `send` until the receiver accepts the request or refuses it permanently, or no time is left.
    pub(crate) async fn deliver<F>(self, mut send: impl FnMut() -> F, health: &Health) -> End
    where
        F: Future<Output = Outcome>,
    {
        let begin = Instant::now();
        let mut delay = self.first;
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
                    let asked = after.map(|after| after.min(self.asked_max));
                    let wait = asked.unwrap_or_default().max(jittered(delay));
                    if begin.elapsed() + wait > self.elapsed_max {
                        health.failed(&why);
                        return End::Failed;
                    }
                    delay = (delay * 3 / 2).min(self.delay_max);
                    health.again(&why);
                    wait
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

/// Four to six fifths of a time, at random.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay * (800 + (random() % 401) as u32) / 1000
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
        delay_max: Duration::from_secs(2),
        asked_max: Duration::from_secs(10),
        elapsed_max: Duration::from_secs(30),
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
}
