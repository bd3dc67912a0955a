//! `forward`: all pipelines that it begins get every batch.

use std::sync::Arc;

use super::{ConnectorDeps, StartConnector};
use crate::config::components::connectors::forward::Forward;
use crate::run::consume::Consumer;

impl StartConnector for Forward {
    fn start(&self, deps: ConnectorDeps<'_>) -> Result<Vec<Arc<dyn Consumer>>, String> {
        Ok(deps.next)
    }
}
