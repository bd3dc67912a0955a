//! A load balancer behind a queue of its own: what a backend did not take is divided again among the
//! backends of then.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use export::client::Outcome;
use tokio::time::Instant;

use super::{Balancer, split};
use crate::run::account::Account;
use crate::run::consume::Refusal;
use crate::run::data::Batch;
use crate::run::storage::{Commit, Ending};

/// What earlier attempts have left of a batch.
pub(in crate::run::send) struct Remains {
    bytes: Bytes,
    /// Records that wait to be taken.
    pub records: u64,
    /// Records that a backend rejected for good.
    rejected: u64,
}

/// A part that a backend tries to send, for which somebody waits here.
struct Trial {
    bytes: Bytes,
    records: u64,
    commit: Arc<Commit>,
    /// Its records are those of the batch: they are settled there.
    account: Arc<Account>,
}

impl Trial {
    fn new(bytes: Bytes, records: u64, like: &Batch) -> (Trial, Batch) {
        let (account, commit) = (Arc::<Account>::default(), Arc::<Commit>::default());
        let mut receipt = account.accept(records);
        receipt.custody.wait(Arc::clone(&commit));
        let part = Batch {
            signal: like.signal,
            bytes: bytes.clone(),
            records,
            receipt,
            origin: like.origin.clone(),
        };
        let trial = Trial {
            bytes,
            records,
            commit,
            account,
        };
        (trial, part)
    }
}

/// One attempt.
struct Attempt {
    left: BytesMut,
    left_records: u64,
    rejected: u64,
    why: Option<String>,
}

impl Attempt {
    /// A part stays.
    fn keep(&mut self, bytes: &Bytes, records: u64, why: String) {
        self.left.extend_from_slice(bytes);
        self.left_records += records;
        self.why.get_or_insert(why);
    }
}

impl Balancer {
    /// Sends a batch once, or what the attempts before have left of it.
    pub(in crate::run::send) async fn attempt(
        &self,
        batch: &Batch,
        remains: &mut Option<Remains>,
    ) -> Outcome {
        let (bytes, records, rejected) = match remains {
            Some(remains) => (remains.bytes.clone(), remains.records, remains.rejected),
            None => (batch.bytes.clone(), batch.records, 0),
        };
        let table = self.table();
        if table.senders.is_empty() {
            return busy(super::NO_BACKENDS.to_owned());
        }
        let parts = match split::split(&bytes, records, &table.ring, self.settings.routing) {
            Ok(parts) => parts,
            Err(fault) => return Outcome::Refused(fault.to_string()),
        };
        let mut attempt = Attempt {
            left: BytesMut::new(),
            left_records: 0,
            rejected,
            why: None,
        };
        let mut trials = Vec::new();
        for (number, bytes, records) in parts {
            let sender = &table.senders[number];
            let taken = if self.backends_wait {
                let (trial, part) = Trial::new(bytes.clone(), records, batch);
                let taken = sender.consume(part);
                if taken.is_ok() {
                    trials.push(trial);
                }
                taken
            } else {
                // The queue of the backend settles its part.
                sender.consume(Batch {
                    bytes: bytes.clone(),
                    records,
                    ..batch.shared()
                })
            };
            match taken.map_err(|given_back| given_back.refusal) {
                Ok(()) => {}
                Err(Refusal::Malformed(_)) => attempt.rejected += records,
                Err(refusal) => attempt.keep(&bytes, records, why_of(refusal)),
            }
        }
        self.await_all(trials, &mut attempt).await;
        if attempt.left_records == 0 {
            return Outcome::Taken {
                rejected: attempt.rejected,
                message: "a backend rejected them".to_owned(),
            };
        }
        *remains = Some(Remains {
            bytes: attempt.left.freeze(),
            records: attempt.left_records,
            rejected: attempt.rejected,
        });
        busy(attempt.why.unwrap_or_default())
    }

    /// Waits until all backends have answered, or the time is over.
    async fn await_all(&self, trials: Vec<Trial>, attempt: &mut Attempt) {
        let timeout_ns = self.settings.own.as_ref().map_or(0, |own| own.timeout_ns);
        let until = Instant::now() + Duration::from_nanos(timeout_ns);
        for trial in trials {
            let ending = if timeout_ns == 0 {
                Some(trial.commit.outcome().await)
            } else {
                let outcome = tokio::time::timeout_at(until, trial.commit.outcome());
                outcome.await.ok()
            };
            match ending {
                Some(Ending::Done) => attempt.rejected += trial.account.balance().rejected,
                Some(Ending::Never) => attempt.rejected += trial.records,
                Some(Ending::Failed) => {
                    let why = "a backend did not take its part".to_owned();
                    attempt.keep(&trial.bytes, trial.records, why);
                }
                None => {
                    let why = "a backend did not answer in time".to_owned();
                    attempt.keep(&trial.bytes, trial.records, why);
                }
            }
        }
    }
}

fn busy(why: String) -> Outcome {
    Outcome::Busy { after: None, why }
}

fn why_of(refusal: Refusal) -> String {
    match refusal {
        Refusal::Busy(no_room) => no_room.why.to_string(),
        Refusal::Closing => "a backend is going".to_owned(),
        Refusal::Malformed(why) => why,
    }
}
