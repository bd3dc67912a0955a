//! The journal of a sending queue.

use std::sync::Arc;

use bytes::Bytes;
use journal::{Failed, Journal, Left, Place};

use super::{Pledge, entry};
use crate::run::data::Batch;
use crate::run::origin::Origin;

/// The journal that keeps what waits in a queue.
pub struct Stored {
    journal: Arc<Journal>,
}

/// A batch that waits, and where it is kept.
pub struct Waiting {
    pub batch: Batch,
    pub place: Option<Place>,
    /// Senders that wait for its outcome.
    pub pledge: Pledge,
}

impl Stored {
    pub fn new(journal: Arc<Journal>) -> Stored {
        Stored { journal }
    }

    /// Writes a batch, which `written` gets with its place, or without one where it could not be
    /// written.
    ///
    /// # Errors
    /// The batch, and why it is not taken.
    pub fn write(
        &self,
        batch: Batch,
        written: impl FnOnce(Waiting) + Send + 'static,
    ) -> Result<(), Box<(Batch, Failed)>> {
        let head = entry::queued_head(batch.records, batch.origin.as_deref());
        let body = batch.bytes.clone();
        // The journal refuses, or calls back; the batch goes to whoever it turns to.
        let (give, given) = std::sync::mpsc::sync_channel(1);
        let told = Box::new(move |place: Result<Place, Failed>| {
            if let Ok(batch) = given.recv() {
                let place = place.ok();
                let pledge = Pledge::default();
                written(Waiting {
                    batch,
                    place,
                    pledge,
                });
            }
        });
        match self.journal.append(head, body, told) {
            Ok(()) => {
                // Nobody hears it only where the journal is gone.
                let _ = give.send(batch);
                Ok(())
            }
            Err(failed) => Err(Box::new((batch, failed))),
        }
    }

    /// A batch need not be sent any more.
    pub fn done(&self, place: Place) {
        self.journal.done(place);
    }
}

/// A batch that an earlier process left.
pub struct LeftBatch {
    pub records: u64,
    pub request: Bytes,
    pub origin: Option<Arc<Origin>>,
    pub place: Place,
}

/// The batches of the next segment; none at the end.
pub fn next_left(left: &mut Left) -> Option<Result<Vec<LeftBatch>, String>> {
    let segment = left.next_segment()?;
    Some(segment.map(|segment| {
        let queued = segment.entries().filter_map(|one| {
            let (records, origin, request) = entry::queued(&one.payload)?;
            // A copy, so that one request that waits does not hold the memory of all.
            Some(LeftBatch {
                records,
                request: Bytes::copy_from_slice(&request),
                origin,
                place: one.place,
            })
        });
        queued.collect()
    }))
}
