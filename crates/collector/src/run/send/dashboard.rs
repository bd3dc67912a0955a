//! The exporter `dashboard`: into the process's trace store.

use std::sync::Arc;

use export::client::Outcome;
use traces::Stage;

use super::target::TAKEN;
use super::{ExporterDeps, QueueSettings, StartExporter, Started, Target};
use crate::config::components::exporters::dashboard::DashboardExporter;
use crate::run::data::Batch;
use crate::run::process::dashboard::Shown;

impl StartExporter for DashboardExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let store = Arc::clone(deps.traces.ok_or("there is no trace store")?);
        let settings = || QueueSettings::of(self);
        deps.queues(settings, |_, _| Ok(ToStore(Arc::clone(&store))))
    }
}

struct ToStore(Arc<Shown>);

impl Target for ToStore {
    type Prepared = ();

    async fn send(&self, batch: &Batch, (): &mut ()) -> Outcome {
        self.0.add(&batch.bytes, Stage::Kept);
        TAKEN
    }
}
