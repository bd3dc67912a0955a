//! The way into a collector of the same process, without a socket.

use std::sync::Arc;

use bytes::Bytes;
use collector::config::Signal;
use collector::run::Intake;
use collector::run::consume::Refusal;
use export::client::Outcome;
use telemetry::settings;
use tokio::runtime::Handle;

/// The way of the exporters' requests into a collector.
pub(super) struct Door {
    intake: Arc<Intake>,
    runtime: Handle,
}

impl Door {
    /// To what an intake takes, within its collector's runtime.
    pub fn new(intake: Arc<Intake>, runtime: Handle) -> Door {
        Door { intake, runtime }
    }
}

impl export::InProcess for Door {
    fn take(&self, signal: settings::Signal, request: Bytes) -> Outcome {
        // What its parts start runs on its own threads.
        let _within = self.runtime.enter();
        match self.intake.take(signal_of(signal), request) {
            Ok(()) => Outcome::Taken {
                rejected: 0,
                message: String::new(),
            },
            Err(Refusal::Busy(after)) => Outcome::Busy {
                after: Some(after),
                why: "the collector has no room".to_owned(),
            },
            Err(Refusal::Closing) => Outcome::Busy {
                after: None,
                why: "the collector ends".to_owned(),
            },
            Err(Refusal::Malformed(why)) => Outcome::Refused(why),
        }
    }
}

/// The same signal in the collector's words.
pub(super) fn signal_of(signal: settings::Signal) -> Signal {
    match signal {
        settings::Signal::Traces => Signal::Traces,
        settings::Signal::Metrics => Signal::Metrics,
        settings::Signal::Logs => Signal::Logs,
    }
}
