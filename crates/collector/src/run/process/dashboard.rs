//! Where the dashboard's trace store looks into a pipeline with a `tail_sampling`: what comes to it, and what it decides.

use std::sync::Arc;

use export::clock::now_unix_ns;
use tail::policy::Program;
use tail::settings::TailSampling;
use tail::shard::Decided;
use traces::{Decision, Stage, Store};

use crate::run::consume::{Consumer, Refused, refused};
use crate::run::data::Batch;

/// The time of the store.
pub fn now_ms() -> u64 {
    now_unix_ns() / 1_000_000
}

/// Shows the store what comes to the next component. It holds nothing and settles nothing: the store copies.
pub struct Tap {
    store: Arc<Store>,
    next: Arc<dyn Consumer>,
}

impl Tap {
    /// One before `next`.
    pub fn new(store: &Arc<Store>, next: Arc<dyn Consumer>) -> Arc<Tap> {
        Arc::new(Tap {
            store: Arc::clone(store),
            next,
        })
    }
}

impl Consumer for Tap {
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        // What is refused comes again: it need not be read twice.
        if let Err(refusal) = self.next.room() {
            return refused(batch, refusal);
        }
        // Before it is taken, so that no decision is made about a trace that is not there.
        self.store.add(&batch.bytes, Stage::Seen, now_ms());
        self.next.consume(batch)
    }

    fn next(&self) -> Option<&dyn Consumer> {
        Some(&*self.next)
    }
}

/// Tells the store what a sampler decides.
pub struct Verdicts {
    store: Arc<Store>,
    /// Names of the policies by their numbers.
    policies: Vec<String>,
}

impl Verdicts {
    /// Those of a sampler with these settings.
    ///
    /// # Errors
    /// Which policy cannot be compiled, and why.
    pub fn of(store: &Arc<Store>, settings: &TailSampling) -> Result<Verdicts, String> {
        let program = Program::new(settings).map_err(|refusal| refusal.to_string())?;
        Ok(Verdicts {
            store: Arc::clone(store),
            policies: program.votes().map(|(name, _)| name.to_owned()).collect(),
        })
    }

    /// What was decided just now.
    pub fn tell(&self, decided: &[Decided]) {
        if decided.is_empty() {
            return;
        }
        let name = |policy: u16| self.policies.get(usize::from(policy)).map(String::as_str);
        let decisions = decided.iter().map(|one| Decision {
            id: one.id,
            kept: one.kept,
            policy: one.policy.and_then(name),
        });
        self.store.decided(decisions, now_ms());
    }
}
