//! How a processor is started: from its settings, before the component that gets its output.

use std::sync::Arc;

use tail::store::Budget;

use super::dashboard::Shown;
use super::passage::Passage;
use crate::config::{ComponentId, Config, Pipeline, Signal};
use crate::run::account::Account;
use crate::run::consume::Consumer;
use crate::run::metrics::Sheet;
use crate::run::part::{Part, PartName, Running};
use crate::run::start::{Host, Setup};
use crate::run::storage::Storages;

/// Settings that a processor is started from.
pub trait StartProcessor {
    /// Starts the processor of one pipeline before `next`. Called within the runtime.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String>;

    /// Bytes that data of the collector may take because of this processor; none: it sets no limit.
    fn memory_limit_bytes(&self) -> Option<u64> {
        None
    }

    /// Writes metrics that are made of the records which pass the processor. Those of all processors
    /// are there anyway.
    fn describe_passage(&self) -> fn(&Passage, &mut Sheet) {
        |_, _| {}
    }
}

/// Dependencies of a processor that is started.
pub struct ProcessorDeps<'a, 'c> {
    /// Its id.
    pub id: &'a ComponentId,
    /// The pipeline that it is a part of.
    pub pipeline: &'a Pipeline,
    /// The whole configuration.
    pub config: &'a Config,
    /// What is not in the configuration.
    pub setup: &'a Setup,
    /// Where the collector runs.
    pub host: &'a Host,
    /// Memory that data may take.
    pub budget: &'a Arc<Budget>,
    /// Accounts by signal.
    pub accounts: &'a [Arc<Account>; 3],
    /// Where exporters `dashboard` put traces; none: there are none.
    pub traces: Option<&'a Arc<Shown>>,
    pub(in crate::run) storages: &'a mut Storages<'c>,
    pub(in crate::run) parts: &'a mut Vec<Running>,
}

impl ProcessorDeps<'_, '_> {
    /// The signal of the pipeline.
    #[must_use]
    pub fn signal(&self) -> Signal {
        self.pipeline.id.signal
    }

    /// Adds a component that has metrics or a status to tell, or an end that is waited for.
    pub fn register(&mut self, part: Arc<dyn Part>) {
        let name = PartName {
            pipeline: self.pipeline.id.to_string(),
            id: self.id.to_string(),
        };
        self.parts.push(Running { name, part });
    }
}
