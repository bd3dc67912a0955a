//! Exporters: queues, attempts, and what the other side says.

mod backends;
mod balance;
mod dashboard;
mod debug;
mod file;
mod nop;
mod number;
mod outlet;
pub(in crate::run) mod prometheus;
mod queue;
mod room;
mod start;
mod stored;
mod target;

use std::sync::Arc;

use export::client::Proxies;
use journal::Left;
use tokio::time::Instant;

pub use backends::{BackendView, Backends, FailingBackends};
pub use balance::K8sSlices;
pub(in crate::run) use balance::split_by;
pub use balance::{Attempts, Balancer};
pub use queue::{Counts, Failing, Sender, SenderEnd};
pub use room::Room;
pub use start::{Exit, ExporterDeps, Page, StartExporter, Started};
pub use target::{QueueSettings, Target};

use super::Log;
use super::account::{Account, Loss};
use super::auth::Authenticators;
use super::consume::{Consumer, Refusal, Refused};
use super::data::Batch;
use super::storage::{Ending, Pledge, Stored};

/// What all exporters of a signal have in common.
#[derive(Clone)]
pub(in crate::run) struct SignalDeps {
    /// Of the signal.
    pub account: Arc<Account>,
    /// Who we are.
    pub auth: Authenticators,
    pub proxies: Proxies,
    /// What bytes may wait in all queues.
    pub room: Arc<Room>,
    pub log: Log,
}

/// Dependencies of a queue that is started.
struct QueueDeps<'a> {
    common: &'a SignalDeps,
    /// What keeps the queue over the end of the process, and what an earlier one left.
    stored: Option<(Stored, Left)>,
}

/// Hands a batch to a component as soon as there is room, or until a time: then it is lost. Senders
/// who wait by the pledge go on waiting.
async fn hand_over(to: &dyn Consumer, batch: Batch, pledge: Pledge, until: Option<Instant>) {
    let mut next = Some(batch);
    while let Some(batch) = next.take() {
        let Err(given_back) = to.consume(batch) else {
            // Whoever has it now has made a promise of their own.
            return pledge.end(Ending::Done);
        };
        let Refused { batch, refusal } = *given_back;
        let is_over = until.is_some_and(|until| Instant::now() >= until);
        let cause = match refusal {
            Refusal::Busy(no_room) if !is_over => {
                tokio::time::sleep(no_room.after).await;
                next = Some(batch);
                continue;
            }
            Refusal::Busy(_) | Refusal::Closing => Loss::Shutdown,
            Refusal::Malformed(_) => Loss::Dropped,
        };
        batch.receipt.lose(batch.records, cause);
    }
}
