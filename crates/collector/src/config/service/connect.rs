//! Pipelines that are joined by connectors.

use super::pipelines::Found;
use crate::config::components::connectors::{joins, pairs};
use crate::config::components::id::ComponentId;
use crate::config::components::{Role, Signal};
use crate::config::definitions::Definitions;
use crate::config::diagnostic::Notes;

/// Each connector must end a pipeline and begin one, of signals that it joins, and no data may go in
/// a circle.
pub(super) fn check(pipelines: &[Found], definitions: &Definitions, notes: &Notes) {
    let is_connector = |id: &&ComponentId| definitions.find(Role::Connector, id).is_some();
    for found in pipelines {
        let (pipeline, signal) = (&found.pipeline, found.pipeline.id.signal);
        let others = || pipelines.iter().map(|other| &other.pipeline);
        for id in pipeline.exporters.iter().filter(is_connector) {
            let begun = others().filter(|other| other.receivers.contains(id));
            let mut begun = begun.map(|other| other.id.signal).peekable();
            let why = if begun.peek().is_none() {
                let gives = pairs(id).iter().filter(|(takes, _)| *takes == signal);
                let gives = words(gives.map(|(_, gives)| *gives));
                format!("begins no started pipeline of {gives}")
            } else if begun.any(|gives| joins(id, signal, gives)) {
                continue;
            } else {
                format!(
                    "is used as exporter in {signal} pipeline but not used in any supported receiver pipeline"
                )
            };
            let message = format!(
                "service::pipelines::{}: the connector '{id}' {why}",
                pipeline.id
            );
            notes.error(found.at, message);
        }
        for id in pipeline.receivers.iter().filter(is_connector) {
            let ended = others().filter(|other| other.exporters.contains(id));
            let mut ended = ended.map(|other| other.id.signal).peekable();
            let why = if ended.peek().is_none() {
                let takes = pairs(id).iter().filter(|(_, gives)| *gives == signal);
                let takes = words(takes.map(|(takes, _)| *takes));
                format!("ends no started pipeline of {takes}")
            } else if ended.any(|takes| joins(id, takes, signal)) {
                continue;
            } else {
                format!(
                    "is used as receiver in {signal} pipeline but not used in any supported exporter pipeline"
                )
            };
            let message = format!(
                "service::pipelines::{}: the connector '{id}' {why}",
                pipeline.id
            );
            notes.error(found.at, message);
        }
    }
    no_circle(pipelines, &is_connector, notes);
}

fn words(signals: impl Iterator<Item = Signal>) -> String {
    let words: Vec<String> = signals.map(|signal| signal.to_string()).collect();
    if words.is_empty() {
        "any signal".to_owned()
    } else {
        words.join(" or ")
    }
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
                    joins(id, other.pipeline.id.signal, pipeline.id.signal)
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
