//! Those who empty a queue: attempt after attempt for each batch, until it is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use export::Delays;
use export::client::Outcome;
use tokio::sync::watch;

use super::Shared;
use crate::run::account::Loss;
use crate::run::data::Batch;
use crate::run::send::{Target, stored};
use crate::run::storage::{Ending, Fate};

/// One of those who empty a queue.
pub(super) async fn consume<T: Target>(
    shared: Arc<Shared>,
    target: Arc<T>,
    mut cut: watch::Receiver<bool>,
) {
    loop {
        let came = shared.came.notified();
        if shared.is_leaving() {
            return;
        }
        let Some(waiting) = shared.pop() else {
            if shared.is_over() {
                // The others may wait for what was being written.
                shared.came.notify_waiters();
                return;
            }
            came.await;
            continue;
        };
        // Others may sleep while more waits than one can send.
        shared.came.notify_one();
        count(&shared.counts.in_flight, 1);
        let delivered = tokio::select! {
            delivered = deliver(&shared, &*target, &waiting.batch) => delivered,
            () = is_cut(&mut cut) => Delivered::NotYet,
        };
        shared.counts.in_flight.fetch_sub(1, Relaxed);
        match delivered {
            Delivered::NotYet if shared.is_leaving() => shared.put_back(waiting),
            Delivered::NotYet => stored::leave_behind(waiting),
            Delivered::Settled(ending) => {
                waiting.pledge.end(ending);
                if let (Some(stored), Some(place)) = (&shared.stored, waiting.place) {
                    stored.done(place);
                }
            }
        }
    }
}

/// Ends when attempts must; also if they had to before.
async fn is_cut(cut: &mut watch::Receiver<bool>) {
    // Who could say it is there as long as anyone waits.
    let _ = cut.wait_for(|cut| *cut).await;
}

/// What became of a batch.
enum Delivered {
    /// It is settled: taken, or lost.
    Settled(Ending),
    /// It would have been sent again.
    NotYet,
}

async fn deliver<T: Target>(shared: &Shared, target: &T, batch: &Batch) -> Delivered {
    let mut delays = Delays::new(shared.retry);
    let mut prepared = T::Prepared::default();
    loop {
        let outcome = target.send(batch, &mut prepared).await;
        shared.came_to(&outcome);
        let (after, why) = match outcome {
            Outcome::Taken { rejected, message } => {
                let rejected = rejected.min(batch.records);
                count(&shared.counts.sent, batch.records - rejected);
                if rejected > 0 {
                    count(&shared.counts.failed, rejected);
                    batch.receipt.lose(rejected, Loss::Rejected);
                    shared.tell(&format!("{rejected} records rejected: {message}"));
                }
                return Delivered::Settled(Ending::Done);
            }
            Outcome::Refused(why) => {
                batch.receipt.custody.fail(Fate::Refused);
                lose(shared, batch, T::records_left(batch, &prepared), &why);
                return Delivered::Settled(Ending::Never);
            }
            Outcome::Busy { after, why } => (after, why),
        };
        match delays.next(after) {
            Some(wait) => {
                shared.tell(&format!("tried again: {why}"));
                if !shared.pause(wait).await {
                    return Delivered::NotYet;
                }
            }
            None => {
                lose(shared, batch, T::records_left(batch, &prepared), &why);
                return Delivered::Settled(Ending::Failed);
            }
        }
    }
}

/// Those records of a batch that nobody has taken are lost.
fn lose(shared: &Shared, batch: &Batch, records: u64, why: &str) {
    count(&shared.counts.sent, batch.records - records);
    count(&shared.counts.failed, records);
    batch.receipt.lose(records, Loss::ExportFailed);
    shared.tell(&format!("{records} records lost: {why}"));
}

fn count(counter: &AtomicU64, records: u64) {
    counter.fetch_add(records, Relaxed);
}
