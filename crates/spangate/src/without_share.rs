//! Without the cargo feature `share-redis`: replacements for the sharing of tables through a store,
//! which is refused.

use std::io;
use std::sync::Arc;

use config::diagnostic::{Diagnostics, Severity};
use config::model::Config;
use proxy::RuntimeConfig;

use crate::event_reporter::EventReporter;

/// Refuses all tables that are to be shared.
pub(crate) fn check(config: &Config, out: &mut Diagnostics) {
    for table in &config.tables {
        let definition = table.definition();
        if definition.share().is_some() {
            let message = format!(
                "Proxy '{}': stick-table: 'share' : this program was built without it (cargo feature 'share-redis').",
                definition.name
            );
            out.add(Severity::Alert, None, message);
        }
    }
}

/// No table uses a descriptor.
pub(crate) fn descriptors(_: &Config) -> u64 {
    0
}

/// Tables that are shared: none.
#[derive(Default)]
pub(crate) struct Shares {}

/// A look at shared tables: no value of it exists.
#[derive(Clone, Debug)]
pub(crate) enum View {}

impl Shares {
    pub fn report_to(&self, _: &Arc<EventReporter>) {}

    pub fn follow(&mut self, _: &RuntimeConfig) -> io::Result<()> {
        Ok(())
    }

    pub fn view(&self) -> Option<View> {
        None
    }

    pub fn stop(self) {}
}

impl View {
    pub fn describe(&self, _: &mut String) {
        match *self {}
    }
}
