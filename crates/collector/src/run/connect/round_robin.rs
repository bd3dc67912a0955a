//! `round_robin`: each batch goes to one of the pipelines that it begins, in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{ConnectorDeps, StartConnector};
use crate::config::components::connectors::round_robin::RoundRobin as Settings;
use crate::run::consume::{Consumer, Permit, Refusal, Refused};
use crate::run::data::Batch;

/// See the module. As in the Collector, a pipeline that refuses its batch is not replaced by
/// another: the sender hears of it, and its next attempt is the next pipeline's.
struct RoundRobin {
    /// At least one.
    next: Vec<Arc<dyn Consumer>>,
    turns: AtomicUsize,
}

impl StartConnector for Settings {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        let connector = RoundRobin {
            next: deps.next,
            turns: AtomicUsize::new(0),
        };
        Ok(vec![Arc::new(connector)])
    }
}

impl RoundRobin {
    fn turn(&self) -> &dyn Consumer {
        let turn = self.turns.fetch_add(1, Relaxed);
        &*self.next[turn % self.next.len()]
    }
}

impl Consumer for RoundRobin {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        self.turn().reserve(batch)
    }

    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        self.turn().consume(batch)
    }

    /// A batch is refused for certain only if no pipeline has room.
    fn room(&self) -> Result<(), Refusal> {
        let mut room = Ok(());
        for next in &self.next {
            room = next.room();
            if room.is_ok() {
                break;
            }
        }
        room
    }

    fn is_failing(&self) -> bool {
        self.next.iter().all(|next| next.is_failing())
    }

    fn mixes(&self) -> bool {
        self.next.iter().any(|next| next.mixes())
    }

    fn pass_by(&self, batch: Batch) {
        self.turn().pass_by(batch);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;
    use crate::config::Signal;
    use crate::run::Log;
    use crate::run::account::Account;
    use crate::run::consume::{Does, refused};

    /// Counts what it takes, unless it is full.
    #[derive(Default)]
    struct Next {
        taken: Arc<AtomicU64>,
        is_full: bool,
    }

    impl Consumer for Next {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            if let Err(refusal) = self.room() {
                return refused(batch, refusal);
            }
            let taken = Arc::clone(&self.taken);
            Ok(Does::new(move || {
                taken.fetch_add(batch.records, Relaxed);
            }))
        }

        fn room(&self) -> Result<(), Refusal> {
            if self.is_full {
                Err(Refusal::busy(Duration::ZERO, &"full".into()))
            } else {
                Ok(())
            }
        }
    }

    fn started(next: &[&Arc<Next>], account: &Arc<Account>) -> Arc<dyn Consumer> {
        let next = next
            .iter()
            .map(|next| Arc::clone(*next) as Arc<dyn Consumer>);
        let deps = ConnectorDeps {
            id: "round_robin",
            takes: Signal::Logs,
            gives: Signal::Logs,
            log: &Log::new(|_, _| {}),
            instance_id: "",
            parts: &mut Vec::new(),
            account,
            next: next.collect(),
        };
        Settings.start(deps).expect("it starts").remove(0)
    }

    fn batch(account: &Arc<Account>) -> Batch {
        Batch {
            signal: Signal::Logs,
            bytes: Default::default(),
            records: 1,
            receipt: account.accept(1),
            origin: None,
        }
    }

    #[test]
    fn each_batch_goes_to_the_next_pipeline() {
        let account = Arc::default();
        let all = [(); 3].map(|()| Arc::<Next>::default());
        let connector = started(&all.each_ref(), &account);
        for _ in 0..3 {
            connector.consume(batch(&account)).unwrap();
        }
        for _ in 0..3 {
            let permit = connector.reserve(batch(&account)).expect("room");
            permit.send();
        }
        let taken = all.each_ref().map(|next| next.taken.load(Relaxed));
        assert_eq!(taken, [2, 2, 2]);
    }

    #[test]
    fn a_full_pipeline_refuses_its_turn_and_not_those_of_others() {
        let account = Arc::default();
        let (full, good) = (
            Arc::new(Next {
                is_full: true,
                ..Next::default()
            }),
            Arc::<Next>::default(),
        );
        let connector = started(&[&full, &good], &account);
        assert!(connector.room().is_ok(), "one has room");
        let outcomes = [(); 4].map(|()| match connector.consume(batch(&account)) {
            Ok(()) => true,
            Err(given_back) => {
                given_back.batch.receipt.refuse();
                false
            }
        });
        assert_eq!(outcomes, [false, true, false, true]);
        assert!(started(&[&full], &account).room().is_err());
        assert_eq!(
            (account.balance().exported, account.balance().held()),
            (2, 0)
        );
    }
}
