//! What stands for the client in a build without it: nothing of it can be made, and no configuration asks for it.

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

/// Configurations are refused before this is told.
const ABSENT: &str = "this build has no Kafka client";

/// A receiver: there is none.
pub struct Member(Infallible);

/// Cannot.
///
/// # Errors
/// Always.
pub fn start(
    _: &str,
    _: &KafkaReceiver,
    _: (Arc<Intake>, Option<&Wanted>),
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

/// What is left of a batch: there is none.
#[derive(Debug)]
pub struct Pending(Infallible);

/// A producer: there is none.
pub struct Producer {
    never: Infallible,
    pub counts: Arc<Counts>,
}

impl Producer {
    /// Cannot.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: &str, _: &KafkaExporter, _: &Log) -> Result<Producer, String> {
        Err(ABSENT.to_owned())
    }

    pub async fn send(&self, _: &Batch, _: &mut Option<Pending>) -> Outcome {
        match self.never {}
    }
}
