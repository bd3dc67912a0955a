//! What a component that holds records has to do with journals.

use std::sync::Arc;

use journal::Journal;
use tail::shard::Decided;

use super::{Custody, Hold, entry};

/// Decisions of a component, on their way to the journal.
pub struct Keeping {
    journal: Arc<Journal>,
    component: String,
}

impl Keeping {
    pub(super) fn new(journal: Arc<Journal>, component: &str) -> Keeping {
        Keeping {
            journal,
            component: component.to_owned(),
        }
    }

    /// Notes decisions. They are on the disk before any segment is removed that is let go
    /// afterwards.
    pub fn write(&self, decided: &[Decided]) {
        if !decided.is_empty() {
            let note = entry::decisions(&self.component, decided);
            self.journal.note(note);
        }
    }
}

/// The segments and messages that a shard needs, each until all traces below a number are decided.
#[derive(Default)]
pub struct Until(Vec<(u64, Hold)>);

impl Until {
    /// Records came with this custody; `traces_end` is the number that the next trace gets.
    pub fn take(&mut self, custody: Custody, traces_end: u64) {
        for hold in custody.into_holds() {
            // The last one is the likely one.
            let mut latest = self.0.iter_mut().rev();
            match latest.find(|(_, other)| other.is_same(&hold)) {
                Some((until, _)) => *until = traces_end,
                None => self.0.push((traces_end, hold)),
            }
        }
    }

    /// Of what leaves now: it may be from any of the segments.
    #[must_use]
    pub fn custody(&self) -> Custody {
        let holds = self.0.iter().map(|(_, hold)| hold.clone());
        Custody::of(holds.collect())
    }

    /// Nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All traces below this number are decided, and what was kept of them has left.
    pub fn release(&mut self, decided: u64) {
        self.0.retain(|(until, _)| *until > decided);
    }

    /// What is here stays for the next process.
    pub fn stay(&self) {
        self.0.iter().for_each(|(_, hold)| hold.stay());
    }
}
