//! Replaces the Kafka client in builds without the feature `kafka`. Its types cannot be created,
//! because a configuration that names Kafka is refused before.

use std::convert::Infallible;
use std::sync::Arc;

use export::client::Outcome;

use super::Counts;
use crate::config::components::exporters::kafka::KafkaExporter;
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::run::Log;
use crate::run::data::Batch;
use crate::run::origin::Wanted;
use crate::run::receive::Intake;

/// The error text. Users do not see it, because their configuration is refused before.
const ABSENT: &str = "this build has no Kafka client";

/// A receiver; it cannot be created.
pub struct Member(Infallible);

/// Always fails.
///
/// # Errors
/// Always.
pub fn start(
    _: &str,
    _: &KafkaReceiver,
    _: (Arc<Intake>, Option<Wanted>),
    _: (&Log, &Arc<Counts>),
) -> Result<Member, String> {
    Err(ABSENT.to_owned())
}

impl Member {
    pub fn close(&self) {
        match self.0 {}
    }

    pub async fn end(self) {
        match self.0 {}
    }
}

/// The rest of a batch; it cannot be created.
#[derive(Debug)]
pub struct Pending(Infallible);

/// A producer; it cannot be created.
pub struct Producer {
    never: Infallible,
    pub counts: Arc<Counts>,
}

impl Producer {
    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: &str, _: &KafkaExporter, _: &Log) -> Result<Producer, String> {
        Err(ABSENT.to_owned())
    }

    pub async fn produce(&self, _: &Batch, _: &mut Option<Pending>) -> Outcome {
        match self.never {}
    }
}
