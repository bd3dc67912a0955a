//! Starts the receivers of Kafka, which connect to brokers and have no listeners.

use std::sync::Arc;

use super::StartError;
use super::build::Fed;
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::config::{Component, Receiver};
use crate::run::Log;
use crate::run::kafka::{self, Counts, Member};
use crate::run::origin::Wanted;
use crate::run::receive::{Entrance, Intake};

/// A receiver that is not started yet.
pub(super) struct Waiting<'a> {
    id: String,
    place: &'a str,
    settings: &'a KafkaReceiver,
    intake: Arc<Intake>,
    counts: Arc<Counts>,
}

/// The Kafka receivers of a configuration that are in a traces pipeline. Adds their counters to
/// `entrances`.
pub(super) fn of<'a>(
    intakes: &[Fed<'a>],
    entrances: &mut Vec<Arc<Entrance>>,
    log: &Log,
) -> Vec<Waiting<'a>> {
    let mut waiting = Vec::new();
    for (component, intake) in intakes {
        let component: &'a Component<Receiver> = component;
        let Receiver::Kafka(settings) = &component.settings else {
            continue;
        };
        let id = component.id.to_string();
        let entrance = Arc::new(Entrance::new(&id, "kafka", log));
        entrances.push(Arc::clone(&entrance));
        waiting.push(Waiting {
            id,
            place: &component.place,
            settings,
            intake: Arc::new(intake.by(&entrance)),
            counts: Arc::default(),
        });
    }
    waiting
}

/// The counts of each, by its id.
pub(super) fn counts(waiting: &[Waiting<'_>]) -> Vec<(String, Arc<Counts>)> {
    let all = waiting.iter();
    all.map(|one| (one.id.clone(), Arc::clone(&one.counts)))
        .collect()
}

/// Starts them. All components behind them must run already.
pub(super) fn start(
    waiting: Vec<Waiting<'_>>,
    wanted: Option<&Wanted>,
    log: &Log,
) -> Result<Vec<Member>, StartError> {
    let started = waiting.into_iter().map(|one| {
        let Waiting {
            id,
            place,
            settings,
            intake,
            counts,
        } = one;
        let member = kafka::start(&id, settings, (intake, wanted), (log, &counts));
        member.map_err(|why| StartError(format!("{place}: receiver '{id}': {why}")))
    });
    started.collect()
}
