//! Queues that outlive the process: what comes is written before it waits, and what an earlier
//! process left waits again.

use std::sync::Arc;
use std::time::Duration;

use journal::{Failed, Left};

use super::queue::Shared;
use crate::config::Signal;
use crate::run::account::{Account, Loss};
use crate::run::consume::Refusal;
use crate::run::data::Batch;
use crate::run::storage::{Custody, Ending, LeftBatch, Pledge, Stored, Waiting, next_left};

/// Between two looks whether a full queue has room.
const AGAIN: Duration = Duration::from_millis(20);

/// Puts all of it in the queue, as there is room. What has no room before the end stays where it
/// is.
pub(super) async fn again(
    shared: Arc<Shared>,
    signal: Signal,
    account: Arc<Account>,
    mut left: Left,
) {
    let mut records_all = 0;
    loop {
        let read = tokio::task::spawn_blocking(move || (next_left(&mut left), left)).await;
        let Ok((batches, rest)) = read else { return };
        left = rest;
        let batches = match batches {
            None => break,
            Some(Ok(batches)) => batches,
            Some(Err(why)) => {
                shared.log.error(&format!("not recovered: {why}"));
                continue;
            }
        };
        let mut batches = batches.into_iter();
        while let Some(one) = batches.next() {
            let LeftBatch {
                records,
                request,
                origin,
                place,
            } = one;
            let batch = Batch {
                signal,
                bytes: request,
                records,
                receipt: account.accept(records),
                origin,
            };
            account.add_recovered(records);
            records_all += records;
            let place = Some(place);
            let mut waiting = Some(Waiting {
                batch,
                place,
                pledge: Pledge::default(),
            });
            wait(&shared, &mut waiting).await;
            if let Some(waiting) = waiting {
                leave_behind(waiting);
                batches.for_each(|one| one.place.hold.stay());
                return;
            }
        }
    }
    let name = &shared.name;
    let line = format!("exporter {name}: {records_all} records recovered");
    shared.log.info(&line);
}

/// Puts a batch in the queue once it has room; at the end it is still there.
async fn wait(shared: &Shared, waiting: &mut Option<Waiting>) {
    while let Err(Refusal::Busy(_)) = shared.offer(waiting) {
        tokio::time::sleep(AGAIN).await;
    }
}

/// Writes a batch that has room; then it waits. Whoever waits for that is told.
///
/// A batch that cannot be written is refused as a whole if a sender waits for the result: the
/// sender keeps it and retries. If no sender waits, because a processor held the records, the batch
/// stays in memory.
pub(super) fn write(shared: &Arc<Shared>, stored: &Stored, batch: Batch) {
    let pledge = batch.receipt.custody.pledge();
    let waits = Arc::clone(shared);
    let written = move |waiting| take_in(&waits, waiting, (pledge, Ending::Failed));
    let Err(given_back) = stored.write(batch, written) else {
        return;
    };
    let (batch, failed) = *given_back;
    let pledge = batch.receipt.custody.pledge();
    let waiting = Waiting {
        batch,
        place: None,
        pledge: Pledge::default(),
    };
    let ending = match failed {
        Failed::TooLarge => Ending::Never,
        Failed::Full | Failed::Disk | Failed::Closed => Ending::Failed,
    };
    take_in(shared, waiting, (pledge, ending));
}

/// A batch was written, or could not be: then it has no place, and this is what its sender hears.
fn take_in(shared: &Shared, mut waiting: Waiting, (pledge, ending): (Pledge, Ending)) {
    let is_written = waiting.place.is_some();
    let is_refused = !is_written && waiting.batch.receipt.custody.is_awaited();
    let mut state = shared.state();
    state.coming -= 1;
    if is_refused {
        shared.leave(&mut state, &waiting.batch);
        drop(state);
        shared.came.notify_one();
        waiting.batch.receipt.refuse();
        return pledge.end(ending);
    }
    if is_written {
        // It is kept here now.
        waiting.batch.receipt.custody = Custody::default();
    }
    shared.push(state, waiting);
    pledge.end(Ending::Done);
}

/// The collector ends with a batch that waits: it is lost, unless the next process has it.
pub(super) fn leave_behind(Waiting { batch, place, .. }: Waiting) {
    match place {
        Some(place) => {
            place.hold.stay();
            let _ = batch.receipt.hold(batch.records);
        }
        None => batch.receipt.lose(batch.records, Loss::Shutdown),
    }
}
