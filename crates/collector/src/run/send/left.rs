//! What an earlier process left in a queue waits again.

use std::sync::Arc;
use std::time::Duration;

use journal::Left;

use super::queue::Shared;
use crate::config::Signal;
use crate::run::account::Account;
use crate::run::consume::Refusal;
use crate::run::data::Batch;
use crate::run::storage::{LeftBatch, Waiting, next_left};

/// Between two looks whether a full queue has room.
const AGAIN: Duration = Duration::from_millis(20);

/// Puts all of it in the queue, as there is room. What has no room before the end stays where it is.
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
                place,
            } = one;
            let batch = Batch {
                signal,
                bytes: request,
                records,
                receipt: account.accept(records),
            };
            account.add_recovered(records);
            records_all += records;
            let place = Some(place);
            let mut waiting = Some(Waiting { batch, place });
            wait(&shared, &mut waiting).await;
            if let Some(waiting) = waiting {
                super::queue::leave_behind(waiting);
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
