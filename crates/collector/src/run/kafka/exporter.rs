//! The exporter `kafka`, from its settings.

use export::client::Outcome;

use super::{Pending, Producer};
use crate::config::components::exporters::kafka::KafkaExporter;
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::send::{ExporterDeps, QueueSettings, StartExporter, Started, Target};

impl StartExporter for KafkaExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let (name, log) = (deps.name, deps.log);
        let producer = |_: &_, _| Producer::start(name, self, log);
        deps.queues(|| QueueSettings::of(self), producer)
    }
}

impl Target for Producer {
    type Prepared = Option<Pending>;

    async fn send(&self, batch: &Batch, prepared: &mut Option<Pending>) -> Outcome {
        self.produce(batch, prepared).await
    }

    fn describe(&self, exporter: &str, sheet: &mut Sheet) {
        self.counts.describe_as(("exporter", exporter), sheet);
    }
}
