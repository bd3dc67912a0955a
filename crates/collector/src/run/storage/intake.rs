//! The journal of what receivers take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use journal::{Failed, Journal, Left, Place};
use tail::shard::Decided;
use tokio::sync::oneshot;

use super::{Keeping, entry};
use crate::config::Signal;
use crate::run::consume::Refusal;
use crate::run::origin::Origin;

/// When there may be room again.
const ROOM_AFTER: Duration = Duration::from_secs(1);
/// When what was left may have been taken.
const RECOVERED_AFTER: Duration = Duration::from_millis(500);

/// The journal as it was opened.
pub struct Outset {
    journal: Arc<Journal>,
    /// What was left is being taken: nothing else is.
    is_recovering: AtomicBool,
    left: Mutex<Option<Left>>,
    /// What was decided, by component.
    decided: Mutex<HashMap<String, Vec<Decided>>>,
}

impl Outset {
    pub(super) fn new(journal: Arc<Journal>, mut left: Left) -> Outset {
        let mut decided: HashMap<String, Decisions> = HashMap::new();
        for note in std::mem::take(&mut left.notes) {
            if let Some((component, all)) = entry::read_decisions(&note) {
                let known = decided.entry(component.to_owned()).or_default();
                all.for_each(|one| known.add(one));
            }
        }
        let decided = decided.into_iter();
        let decided = decided.map(|(component, all)| (component, all.in_order()));
        Outset {
            journal,
            is_recovering: AtomicBool::new(!left.is_empty()),
            left: Mutex::new(Some(left).filter(|left| !left.is_empty())),
            decided: Mutex::new(decided.collect()),
        }
    }

    /// For the decisions of a component.
    #[must_use]
    pub fn keeping(&self, component: &str) -> Keeping {
        Keeping::new(Arc::clone(&self.journal), component)
    }

    /// What a component decided before, once.
    #[must_use]
    pub fn take_decided(&self, component: &str) -> Vec<Decided> {
        let decided = self.decided.lock();
        let mut decided = decided.unwrap_or_else(PoisonError::into_inner);
        decided.remove(component).unwrap_or_default()
    }

    /// What was left, once.
    pub(super) fn take_left(&self) -> Option<Left> {
        let left = self.left.lock();
        left.unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn recovered(&self) {
        self.is_recovering.store(false, Relaxed);
    }
}

/// Decisions in the order in which they were said last: those that are remembered longest are the
/// last ones.
#[derive(Default)]
struct Decisions {
    said: Vec<Option<Decided>>,
    /// Where the decision on a trace stands.
    places: HashMap<[u8; 16], usize>,
}

impl Decisions {
    /// What was said before of the same trace does not count any more.
    fn add(&mut self, one: Decided) {
        if let Some(before) = self.places.insert(one.id, self.said.len()) {
            self.said[before] = None;
        }
        self.said.push(Some(one));
    }

    fn in_order(self) -> Vec<Decided> {
        self.said.into_iter().flatten().collect()
    }
}

/// The journal as one receiver sees it.
pub struct Kept {
    outset: Arc<Outset>,
    receiver: String,
}

impl Kept {
    /// For a receiver by its id.
    #[must_use]
    pub fn new(outset: &Arc<Outset>, receiver: &str) -> Kept {
        Kept {
            outset: Arc::clone(outset),
            receiver: receiver.to_owned(),
        }
    }

    /// Writes a request and what is known of its client; where it is then.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn write(
        &self,
        signal: Signal,
        request: Bytes,
        origin: Option<&Origin>,
    ) -> Result<Place, Refusal> {
        if self.outset.is_recovering.load(Relaxed) {
            let why = "what an earlier process left is taken first";
            return Err(Refusal::busy(RECOVERED_AFTER, &why.into()));
        }
        let head = entry::request_head(signal, &self.receiver, origin);
        let (tell, told) = oneshot::channel();
        let written = Box::new(move |written| {
            // Whoever asked may be gone.
            let _ = tell.send(written);
        });
        let journal = &self.outset.journal;
        journal.append(head, request, written).map_err(refusal)?;
        told.await.unwrap_or(Err(Failed::Closed)).map_err(refusal)
    }

    /// A request that was written was not taken after all.
    pub fn forget(&self, place: Place) {
        self.outset.journal.done(place);
    }

    /// It is of this journal.
    pub(super) fn is_of(&self, outset: &Arc<Outset>) -> bool {
        Arc::ptr_eq(&self.outset, outset)
    }

    pub(super) fn receiver(&self) -> &str {
        &self.receiver
    }
}

fn refusal(failed: Failed) -> Refusal {
    match failed {
        Failed::Full => Refusal::busy(ROOM_AFTER, &"the storage is full".into()),
        Failed::Disk => Refusal::busy(ROOM_AFTER, &"the storage cannot be written".into()),
        Failed::Closed => Refusal::Closing,
        Failed::TooLarge => Refusal::Malformed("it is larger than can be kept".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_come_back_in_the_order_in_which_they_were_said_last() {
        let mut decisions = Decisions::default();
        let one = |id: u8, kept| Decided {
            id: [id; 16],
            kept,
            policy: None,
        };
        // Later ones of the first traces are late spans, which keep their decisions fresh.
        for id in (0..100).chain([3, 1]) {
            decisions.add(one(id, id % 2 == 0));
        }
        decisions.add(one(2, false));
        let order: Vec<u8> = decisions.in_order().iter().map(|one| one.id[0]).collect();
        let wanted: Vec<u8> = [0].into_iter().chain(4..100).chain([3, 1, 2]).collect();
        assert_eq!(order, wanted);
    }
}
