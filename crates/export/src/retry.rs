//! Sending again what a receiver could not take.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::health::Health;
use crate::sink::{Outcome, Prepared, Sink};

/// When a request is sent again: the time between grows by half each time, give or take a fifth, so that the requests of
/// many proxies do not come at once. A receiver that says when (`Retry-After`, `RetryInfo`) is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Before the second attempt.
    pub first: Duration,
    /// Between two attempts.
    pub delay_max: Duration,
    /// The most that a receiver may ask for.
    pub asked_max: Duration,
    /// From the first attempt to the beginning of the last.
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

/// What became of a request in the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The receiver has it, but for so many records.
    Taken { rejected: u64 },
    /// It could not be delivered.
    Failed,
}

impl Retry {
    /// Sends until the receiver takes it, refuses it for good, or there is no time left.
    pub(crate) async fn deliver(self, sink: &Sink, request: &Prepared, health: &Health) -> End {
        let begin = Instant::now();
        let mut delay = self.first;
        loop {
            let wait = match sink.send(request).await {
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

/// Four to six fifths of a time.
fn jittered(delay: Duration) -> Duration {
    // Its keys are random: randomness enough for this, and at hand.
    let random = RandomState::new().build_hasher().finish() % 401;
    delay * (800 + random as u32) / 1000
}
