//! Delivers requests to a collector of the same process, without a socket.

use std::sync::Arc;

use bytes::Bytes;
use collector::config::Signal;
use collector::run::Intake;
use collector::run::consume::Refusal;
use export::Taking;
use export::client::Outcome;
use tokio::runtime::Handle;

/// Takes the exporters' requests into a collector.
pub(super) struct Door {
    intake: Arc<Intake>,
    runtime: Handle,
}

impl Door {
    /// Delivers to `intake`, on its collector's runtime.
    pub fn new(intake: Arc<Intake>, runtime: Handle) -> Door {
        Door { intake, runtime }
    }
}

impl export::InProcess for Door {
    fn take(&self, signal: Signal, request: Bytes) -> Taking {
        let intake = Arc::clone(&self.intake);
        // Runs on the collector's own threads, because its tasks have to be spawned there.
        let taken = self
            .runtime
            .spawn(async move { intake.take(signal, request).await });
        Box::pin(async move {
            match taken.await {
                Ok(Ok(())) => Outcome::Taken {
                    rejected: 0,
                    message: String::new(),
                },
                Ok(Err(Refusal::Busy(no_room))) => Outcome::Busy {
                    after: Some(no_room.after),
                    why: format!("the collector has no room: {}", no_room.why),
                },
                Ok(Err(Refusal::Malformed(why))) => Outcome::Refused(why),
                // The runtime has ended.
                Ok(Err(Refusal::Closing)) | Err(_) => Outcome::Busy {
                    after: None,
                    why: "the collector ends".to_owned(),
                },
            }
        })
    }
}
