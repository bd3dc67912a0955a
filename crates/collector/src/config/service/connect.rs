//! Pipelines that are joined by connectors.

use super::pipelines::Found;
use crate::config::components::Role;
use crate::config::components::id::ComponentId;
use crate::config::definitions::Definitions;
use crate::config::diagnostic::Notes;

/// Each connector must end a pipeline and begin one of the same signal, and no data may go in a
/// circle.
pub(super) fn check(pipelines: &[Found], definitions: &Definitions, notes: &Notes) {
    let is_connector = |id: &&ComponentId| definitions.find(Role::Connector, id).is_some();
    for found in pipelines {
        let (pipeline, signal) = (&found.pipeline, found.pipeline.id.signal);
        let same = || {
            let others = pipelines.iter().map(|other| &other.pipeline);
            others.filter(move |other| other.id.signal == signal)
        };
        for id in pipeline.exporters.iter().filter(is_connector) {
            if !same().any(|other| other.receivers.contains(id)) {
                let message = format!(
                    "service::pipelines::{}: the connector '{id}' begins no started pipeline of {signal}",
                    pipeline.id
                );
                notes.error(found.at, message);
            }
        }
        for id in pipeline.receivers.iter().filter(is_connector) {
            if !same().any(|other| other.exporters.contains(id)) {
                let message = format!(
                    "service::pipelines::{}: the connector '{id}' ends no started pipeline of {signal}",
                    pipeline.id
                );
                notes.error(found.at, message);
            }
        }
    }
    no_circle(pipelines, &is_connector, notes);
}

/// Takes away, again and again, the pipelines that no remaining one feeds: what is left feeds
/// itself.
fn no_circle(pipelines: &[Found], is_connector: &dyn Fn(&&ComponentId) -> bool, notes: &Notes) {
    let mut left: Vec<&Found> = pipelines.iter().collect();
    loop {
        let fed = |found: &&Found| {
            let (pipeline, all) = (&found.pipeline, &left);
            pipeline.receivers.iter().filter(is_connector).any(|id| {
                let feeds = |other: &&Found| {
                    other.pipeline.id.signal == pipeline.id.signal
                        && other.pipeline.exporters.contains(id)
                };
                all.iter().any(feeds)
            })
        };
        let remaining: Vec<&Found> = left.iter().copied().filter(fed).collect();
        if remaining.len() == left.len() {
            break;
        }
        left = remaining;
    }
    if let Some(found) = left.first() {
        let message = format!(
            "service::pipelines::{}: its data go in a circle of connectors",
            found.pipeline.id
        );
        notes.error(found.at, message);
    }
}
