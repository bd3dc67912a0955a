//! How a receiver is started from its settings, and what the collector keeps of it.

use std::sync::Arc;

use super::socket::Socket;
use super::{Entrance, Intake};
use crate::run::Log;
use crate::run::metrics::Sheet;
use crate::run::origin::Wanted;
use crate::run::part::Ended;

/// Settings that a receiver is started from. A receiver has sockets, or a [`Source`], or neither.
pub trait StartReceiver {
    /// The sockets that it listens on.
    fn sockets(&self) -> Vec<Socket> {
        Vec::new()
    }

    /// The part that fetches or makes its data without being asked. Called once, within the runtime;
    /// [`Source::start`] starts it after all other components.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn source(&self, _deps: SourceDeps<'_>) -> Result<Option<Box<dyn Source>>, String> {
        Ok(None)
    }
}

/// Dependencies of a source that is made.
pub struct SourceDeps<'a> {
    /// The receiver's id.
    pub id: &'a str,
    /// Where its lines go.
    pub log: &'a Log,
    /// What components ask of requests.
    pub(in crate::run) wanted: Option<&'a Wanted>,
    /// Where the data of the receiver go.
    pub(super) intake: &'a Arc<Intake>,
    /// Counters of the records of each transport.
    pub(super) entrances: &'a mut Vec<Arc<Entrance>>,
}

impl<'a> SourceDeps<'a> {
    /// Dependencies of the receiver with this id. `entrances` gets the counters of its transports.
    pub(in crate::run) fn new(
        id: &'a str,
        intake: &'a Arc<Intake>,
        entrances: &'a mut Vec<Arc<Entrance>>,
        wanted: Option<&'a Wanted>,
        log: &'a Log,
    ) -> SourceDeps<'a> {
        SourceDeps {
            id,
            log,
            wanted,
            intake,
            entrances,
        }
    }

    /// Where data go that come by `transport`, which the metrics name.
    pub(in crate::run) fn intake(&mut self, transport: &'static str) -> Arc<Intake> {
        let entrance = Arc::new(Entrance::new(self.id, transport, self.log));
        self.entrances.push(Arc::clone(&entrance));
        Arc::new(self.intake.by(&entrance))
    }
}

/// A receiver that fetches or makes its data, before its start.
pub trait Source: Send {
    /// Its metrics and its health, from now to the end of the collector.
    fn state(&self) -> Arc<dyn SourceState>;

    /// Starts it. All components behind it run already.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(self: Box<Self>) -> Result<Box<dyn RunningSource>, String>;
}

/// Facts of a source while the collector runs.
pub trait SourceState: Send + Sync {
    /// Adds its metrics to a sheet, as those of the receiver with this id.
    fn describe(&self, _receiver: &str, _sheet: &mut Sheet) {}

    /// Reason why it cannot receive now, and the time since when. None if it can, or cannot know.
    fn failing(&self) -> Option<SourceFailure> {
        None
    }
}

/// Why a source cannot receive. It tries again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFailure {
    /// When that began, in nanoseconds of the UNIX epoch.
    pub since_ns: u64,
    /// Why.
    pub why: String,
}

/// A source that runs. It ends when it is dropped.
pub trait RunningSource: Send + Sync {
    /// Receives nothing more from now on.
    fn close(&self);

    /// Waits after [`RunningSource::close`] until it hands nothing more on. The components behind it
    /// still run.
    fn closed(&mut self) -> Ended<'_> {
        Box::pin(async {})
    }

    /// Ends it. All of its records that will be settled are.
    fn end(self: Box<Self>) -> Ended<'static> {
        Box::pin(async {})
    }
}
