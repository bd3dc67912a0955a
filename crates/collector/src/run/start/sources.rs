//! Receivers: opens their sockets, and starts those that fetch or make their data.

use std::sync::Arc;

use super::StartError;
use super::build::Fed;
use crate::config::Component;
use crate::run::Log;
use crate::run::origin::Wanted;
use crate::run::receive::{
    Entrance, Listening, Opening, RunningSource, Source, SourceDeps, SourceState,
};

/// Sources by the ids of their receivers.
pub(super) type Started = Vec<Box<dyn RunningSource>>;

/// A receiver that fetches or makes its data, and is not started yet.
pub(super) struct Waiting<'a> {
    id: String,
    place: &'a str,
    source: Box<dyn Source>,
}

/// Opens the sockets of all receivers. Returns them by the id of the receiver and the name of the
/// protocol. The counters of what comes in are added to `entrances`.
pub(super) fn open(
    intakes: &[Fed<'_>],
    opening: Opening<'_>,
    entrances: &mut Vec<Arc<Entrance>>,
    log: &Log,
) -> Result<Vec<(String, Listening)>, StartError> {
    let mut listening = Vec::new();
    for (component, intake) in intakes {
        let Component { id, place, .. } = component;
        for socket in component.settings.sockets() {
            let name = socket.name;
            let opened = socket.open(&id.to_string(), intake, opening, log);
            let (entrance, opened) = opened
                .map_err(|why| StartError(format!("{place}: receiver '{id}', {name}: {why}")))?;
            entrances.push(entrance);
            listening.push((format!("{id} {name}"), opened));
        }
    }
    Ok(listening)
}

/// The receivers that fetch or make their data. Their counters are added to `entrances`.
pub(super) fn of<'a>(
    intakes: &[Fed<'a>],
    entrances: &mut Vec<Arc<Entrance>>,
    wanted: Option<&Wanted>,
    log: &Log,
) -> Result<Vec<Waiting<'a>>, StartError> {
    let mut waiting = Vec::new();
    for (component, intake) in intakes {
        let id = component.id.to_string();
        let deps = SourceDeps::new(&id, intake, entrances, wanted, log);
        let source = component.settings.source(deps);
        let source = source.map_err(|why| failed(&component.place, &id, &why))?;
        waiting.extend(source.map(|source| Waiting {
            id,
            place: &component.place,
            source,
        }));
    }
    Ok(waiting)
}

/// Their metrics and health, by their ids.
pub(super) fn states(waiting: &[Waiting<'_>]) -> Vec<(String, Arc<dyn SourceState>)> {
    let all = waiting.iter();
    all.map(|one| (one.id.clone(), one.source.state()))
        .collect()
}

/// Starts them. All components behind them must run already.
pub(super) fn start(waiting: Vec<Waiting<'_>>) -> Result<Started, StartError> {
    let started = waiting.into_iter().map(|one| {
        let Waiting { id, place, source } = one;
        source.start().map_err(|why| failed(place, &id, &why))
    });
    started.collect()
}

fn failed(place: &str, id: &str, why: &str) -> StartError {
    StartError(format!("{place}: receiver '{id}': {why}"))
}
