//! Where the dashboard's trace store looks into a pipeline with a `tail_sampling`: what comes to
//! it, and what it decides.

use std::sync::{Arc, Mutex, PoisonError};

use export::clock::now_unix_ms;
use tail::policy::Program;
use tail::settings::TailSampling;
use tail::shard::Decided;
use tail::store::Budget;
use traces::{Decision, Limits, Stage, Store};

use crate::run::consume::{Consumer, Does, Permit, Refused, refused};
use crate::run::data::Batch;

/// The store has this part of the budget at most: it refuses nothing, and leaves the rest to what
/// is on its way.
const STORE_PART: u64 = 4;

/// The store as one collector feeds it. What it holds is charged to the budget of that collector.
pub struct Shown {
    /// The store.
    pub store: Arc<Store>,
    budget: Arc<Budget>,
    /// What is charged.
    charged_bytes: Mutex<u64>,
}

impl Shown {
    /// The store that the process has, or else one of its own with these limits. Either takes no
    /// more than its part of the budget.
    #[must_use]
    pub fn new(given: Option<Arc<Store>>, limits: Limits, budget: &Arc<Budget>) -> Arc<Shown> {
        let store = given.unwrap_or_else(|| Arc::new(Store::new(limits)));
        store.cap_bytes(budget.bytes_max() / STORE_PART, now_unix_ms());
        let shown = Shown {
            store,
            budget: Arc::clone(budget),
            charged_bytes: Mutex::new(0),
        };
        shown.charge();
        Arc::new(shown)
    }

    /// Adds the spans of a request.
    pub fn add(&self, request: &[u8], stage: Stage) {
        self.store.add(request, stage, now_unix_ms());
        self.charge();
    }

    fn decided<'a>(&self, decisions: impl Iterator<Item = Decision<'a>>) {
        self.store.decided(decisions, now_unix_ms());
        self.charge();
    }

    /// Charges the budget with what is held now.
    fn charge(&self) {
        let charged = self.charged_bytes.lock();
        let mut charged = charged.unwrap_or_else(PoisonError::into_inner);
        let held_bytes = self.store.held_bytes();
        self.budget.adjust(*charged, held_bytes);
        *charged = held_bytes;
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let charged = self.charged_bytes.get_mut();
        let charged = charged.unwrap_or_else(PoisonError::into_inner);
        self.budget.release(*charged);
    }
}

/// Shows the store what comes to the next component. It holds nothing and settles nothing: the
/// store copies.
pub struct Tap {
    store: Arc<Shown>,
    next: Arc<dyn Consumer>,
}

impl Tap {
    /// One before `next`.
    pub fn new(store: &Arc<Shown>, next: Arc<dyn Consumer>) -> Arc<Tap> {
        Arc::new(Tap {
            store: Arc::clone(store),
            next,
        })
    }
}

impl Consumer for Tap {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let (store, request) = (Arc::clone(&self.store), batch.bytes.clone());
        let permit = self.next.reserve(batch)?;
        Ok(Does::new(move || {
            // Before it is taken, so that no decision is made about a trace that is not there.
            store.add(&request, Stage::Seen);
            permit.send();
        }))
    }

    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        // What is refused comes again: it need not be read twice.
        if let Err(refusal) = self.next.room() {
            return refused(batch, refusal);
        }
        self.store.add(&batch.bytes, Stage::Seen);
        self.next.consume(batch)
    }

    fn next(&self) -> Option<&dyn Consumer> {
        Some(&*self.next)
    }
}

/// Tells the store what a sampler decides.
pub struct Verdicts {
    store: Arc<Shown>,
    /// Names of the policies by their numbers.
    policies: Vec<String>,
}

impl Verdicts {
    /// Those of a sampler with these settings.
    ///
    /// # Errors
    /// Which policy cannot be compiled, and why.
    pub fn of(store: &Arc<Shown>, settings: &TailSampling) -> Result<Verdicts, String> {
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
        self.store.decided(decisions);
    }
}
