//! What a configuration that follows this one in a running process has to know of it (a reload in
//! place).

use std::sync::Arc;

use config::build::previous::{Held, Previous, PreviousProxy};
use config::model::Config;
use tables::Table;

use super::RuntimeConfig;
use crate::shared::Shared;

/// The name of a server's place that is deleted and still in use: no server has it.
const NO_NAME: &str = " ";

impl RuntimeConfig {
    /// The names of this configuration's objects by their places. `shared`: its state.
    #[must_use]
    pub fn previous(self: &Arc<Self>, shared: &Shared) -> Previous {
        let proxies = self.config.proxies.iter().enumerate();
        let proxies = proxies.map(|(place, proxy)| PreviousProxy {
            name: if shared.is_place_free(place) {
                String::new()
            } else {
                proxy.name.to_string()
            },
            servers: shared.server_names(place, NO_NAME),
        });
        Previous {
            proxies: proxies.collect(),
            config: Held::of(Arc::clone(self)),
        }
    }

    /// Whether filters, their exporters and the rings have the same numbers in the configuration
    /// before, and peers share the same tables: they are set up when the process starts.
    #[must_use]
    pub fn numbers_alike(&self, before: &RuntimeConfig) -> bool {
        let (now, then) = (&self.config, &before.config);
        let mut filters = now.otel.iter().zip(&then.otel);
        let mut rings = now.rings.iter().zip(&then.rings);
        let shared = |config: &Config| -> Vec<*const Table> {
            let tables = config.tables.iter();
            let shared = tables.filter(|table| table.definition().peers.is_some());
            let mut shared: Vec<_> = shared.map(Arc::as_ptr).collect();
            shared.sort_unstable();
            shared
        };
        shared(now) == shared(then)
            && now.otel.len() == then.otel.len()
            && now.rings.len() == then.rings.len()
            && rings.all(|(now, then)| now.name == then.name)
            && filters.all(|(now, then)| {
                now.proxy == then.proxy && now.id == then.id && now.settings == then.settings
            })
    }
}
