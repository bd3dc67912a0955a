//! The receiver `kafka` as the collector starts and ends it.

use std::sync::Arc;

use super::{Counts, Member, start};
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::run::Log;
use crate::run::metrics::Sheet;
use crate::run::origin::Wanted;
use crate::run::part::Ended;
use crate::run::receive::{Intake, RunningSource, Source, SourceDeps, SourceState, StartReceiver};

impl StartReceiver for KafkaReceiver {
    fn source(&self, mut deps: SourceDeps<'_>) -> Result<Option<Box<dyn Source>>, String> {
        Ok(Some(Box::new(Waiting {
            id: deps.id.to_owned(),
            intake: deps.intake("kafka"),
            settings: self.clone(),
            wanted: { deps.wanted }.and_then(|wanted| wanted.of_receiver(true)),
            log: deps.log.clone(),
            counts: Arc::default(),
        })))
    }
}

/// A receiver that is not started yet.
struct Waiting {
    id: String,
    settings: KafkaReceiver,
    intake: Arc<Intake>,
    wanted: Option<Wanted>,
    log: Log,
    counts: Arc<Counts>,
}

impl Source for Waiting {
    fn state(&self) -> Arc<dyn SourceState> {
        Arc::<Counts>::clone(&self.counts)
    }

    fn start(self: Box<Self>) -> Result<Box<dyn RunningSource>, String> {
        let Waiting {
            id,
            settings,
            intake,
            wanted,
            log,
            counts,
        } = *self;
        let member = start(&id, &settings, (intake, wanted), (&log, &counts))?;
        Ok(Box::new(member))
    }
}

impl SourceState for Counts {
    fn describe(&self, receiver: &str, sheet: &mut Sheet) {
        self.describe_as(("receiver", receiver), sheet);
    }
}

impl RunningSource for Member {
    fn close(&self) {
        Member::close(self);
    }

    fn end(self: Box<Self>) -> Ended<'static> {
        Box::pin(Member::end(*self))
    }
}
