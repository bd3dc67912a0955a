//! Components and pipelines, put together from the exporters on.

use std::collections::HashMap;
use std::sync::Arc;

use tail::store::Budget;

use super::{Host, Setup, StartError};
use crate::config::components::connectors;
use crate::config::{Component, ComponentId, Config, Pipeline, Receiver, Signal};
use crate::run::account::Account;
use crate::run::auth::Authenticators;
use crate::run::charge::Memory;
use crate::run::connect::ConnectorDeps;
use crate::run::consume::{Consumer, FanOut};
use crate::run::part::{Part, PartName, Running};
use crate::run::process::ProcessorDeps;
use crate::run::process::dashboard::Shown;
use crate::run::process::passage::{End, Passage};
use crate::run::receive::{Entrance, Intake};
use crate::run::send::{Backends, Exit, ExporterDeps, Page, Room, Sender};
use crate::run::storage::{Kept, Storages};

/// Queues have this part of the budget: less than kept spans that are on their way out, so that a
/// queue that is full never takes all that samplers may hand on.
const QUEUES_PART: u64 = 3;

/// A receiver, and where its data go.
pub(super) type Fed<'a> = (&'a Component<Receiver>, Arc<Intake>);

/// What is being put together.
pub(super) struct Build<'a> {
    config: &'a Config,
    setup: &'a Setup,
    host: &'a Host,
    instance_id: &'a str,
    pub(super) accounts: [Arc<Account>; 3],
    pub(super) budget: Arc<Budget>,
    /// Where data come into exporters.
    entrances: HashMap<(ComponentId, Signal), Arc<dyn Consumer>>,
    /// Queues of exporters.
    pub(super) senders: Vec<(String, Signal, Arc<Sender>)>,
    /// Exporters with several back ends.
    pub(super) backends: Vec<(String, Arc<dyn Backends>)>,
    /// Ends of exporters.
    pub(super) exits: Vec<Exit>,
    /// Pages that exporters serve.
    pub(super) pages: Vec<(ComponentId, Arc<dyn Page>)>,
    /// What bytes may wait in queues.
    room: Arc<Room>,
    /// What receivers may hold.
    memory: Arc<Memory>,
    pub(super) auth: Authenticators,
    heads: HashMap<usize, Arc<dyn Consumer>>,
    /// Where data come into connectors, by the signals that each takes and gives.
    connectors: HashMap<(ComponentId, Signal, Signal), Vec<Arc<dyn Consumer>>>,
    /// Components with metrics or a status of their own, the last of each pipeline first.
    pub(super) parts: Vec<Running>,
    /// What puts requests together for queues. It ends after all parts, and before the exporters.
    pub(super) batchers_last: Vec<Arc<dyn Part>>,
    pub(super) storages: Storages<'a>,
    pub(super) processors: Vec<Arc<Passage>>,
    /// Where exporters `dashboard` put traces; none: there are none.
    pub(super) traces: Option<Arc<Shown>>,
}

impl<'a> Build<'a> {
    /// Nothing yet.
    pub fn new(
        config: &'a Config,
        setup: &'a Setup,
        host: &'a Host,
        budget: Arc<Budget>,
        instance_id: &'a str,
    ) -> Result<Build<'a>, StartError> {
        Ok(Build {
            config,
            setup,
            host,
            instance_id,
            accounts: Default::default(),
            traces: { config.trace_store() }
                .map(|limits| Shown::new(setup.traces.clone(), limits, &budget)),
            room: Room::new(budget.bytes_max() / QUEUES_PART),
            memory: Memory::new(&budget),
            budget,
            entrances: HashMap::new(),
            senders: Vec::new(),
            backends: Vec::new(),
            exits: Vec::new(),
            pages: Vec::new(),
            auth: Authenticators::start(config).map_err(StartError)?,
            heads: HashMap::new(),
            connectors: HashMap::new(),
            parts: Vec::new(),
            batchers_last: Vec::new(),
            storages: Storages::new(config, &setup.log),
            processors: Vec::new(),
        })
    }

    fn fault(&self, what: &str, id: &ComponentId, why: &str) -> StartError {
        let places = [
            place_of(&self.config.exporters, id),
            place_of(&self.config.processors, id),
            place_of(&self.config.receivers, id),
            place_of(&self.config.connectors, id),
        ];
        let place = places.into_iter().flatten().next().unwrap_or_default();
        StartError(format!("{place}: {what} '{id}': {why}"))
    }

    /// The first component of a pipeline.
    pub fn head(&mut self, place: usize) -> Result<Arc<dyn Consumer>, StartError> {
        if let Some(head) = self.heads.get(&place) {
            return Ok(Arc::clone(head));
        }
        let config = self.config;
        let pipeline = &config.pipelines[place];
        let mut outs: Vec<Arc<dyn Consumer>> = Vec::new();
        for id in &pipeline.exporters {
            match config.connector(id) {
                None => outs.push(self.exporter(id, pipeline.id.signal)?),
                Some(_) => outs.extend(self.connector(id, pipeline.id.signal)?),
            }
        }
        let mut next = FanOut::of(outs);
        for id in pipeline.processors.iter().rev() {
            let passage = self.passage(id, pipeline.id.signal);
            next = self.processor(pipeline, id, passage.counted(End::Out, next))?;
            next = passage.counted(End::In, next);
        }
        self.heads.insert(place, Arc::clone(&next));
        Ok(next)
    }

    /// Where data of a signal come into a connector. There is one for each signal that it gives to
    /// started pipelines.
    fn connector(
        &mut self,
        id: &ComponentId,
        takes: Signal,
    ) -> Result<Vec<Arc<dyn Consumer>>, StartError> {
        let mut outs = Vec::new();
        for gives in Signal::ALL {
            if !connectors::joins(id, takes, gives) {
                continue;
            }
            let key = (id.clone(), takes, gives);
            if !self.connectors.contains_key(&key) {
                let started = self.start_connector(id, takes, gives)?;
                self.connectors.insert(key.clone(), started);
            }
            outs.extend(self.connectors.get(&key).into_iter().flatten().cloned());
        }
        Ok(outs)
    }

    fn start_connector(
        &mut self,
        id: &ComponentId,
        takes: Signal,
        gives: Signal,
    ) -> Result<Vec<Arc<dyn Consumer>>, StartError> {
        let (config, mut next) = (self.config, Vec::new());
        for (place, fed) in config.pipelines.iter().enumerate() {
            // Circles were refused with the configuration.
            if fed.id.signal == gives && fed.receivers.contains(id) {
                next.push(self.head(place)?);
            }
        }
        let missing = || self.fault("connector", id, "is not defined");
        let connector = config.connector(id).ok_or_else(missing)?;
        if next.is_empty() {
            return Ok(next);
        }
        let (name, mut parts) = (id.to_string(), Vec::new());
        let started = connector.start(ConnectorDeps {
            id: &name,
            takes,
            gives,
            log: &self.setup.log,
            instance_id: self.instance_id,
            parts: &mut parts,
            account: &self.accounts[gives as usize],
            next,
        });
        let started = started.map_err(|why| self.fault("connector", id, &why))?;
        // It belongs to several pipelines: behind all that it ends, and before all that it begins.
        let name = PartName {
            pipeline: String::new(),
            id: name,
        };
        let parts = parts.into_iter().map(|part| Running {
            name: name.clone(),
            part,
        });
        self.parts.extend(parts);
        Ok(started)
    }

    /// Counter of the records of a processor.
    fn passage(&mut self, id: &ComponentId, signal: Signal) -> Arc<Passage> {
        let (name, settings) = (id.to_string(), self.config.processor(id));
        let known = { self.processors.iter() }
            .find(|passage| passage.processor == name && passage.signal == signal);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let describe = settings.map(|settings| settings.describe_passage());
        let passage = Passage::new(&name, signal, describe.unwrap_or(|_, _| {}));
        self.processors.push(Arc::clone(&passage));
        passage
    }

    /// Where data of a signal come into an exporter, which is started with all its signals.
    fn exporter(
        &mut self,
        id: &ComponentId,
        signal: Signal,
    ) -> Result<Arc<dyn Consumer>, StartError> {
        let key = (id.clone(), signal);
        if !self.entrances.contains_key(&key) {
            self.start_exporter(id)?;
        }
        let missing = || self.fault("exporter", id, "has no entrance");
        self.entrances.get(&key).cloned().ok_or_else(missing)
    }

    fn start_exporter(&mut self, id: &ComponentId) -> Result<(), StartError> {
        let missing = || self.fault("exporter", id, "is not defined");
        let exporter = self.config.exporter(id).ok_or_else(missing)?;
        let pipelines = &self.config.pipelines;
        let is_used = |signal: &Signal| {
            let mut of_signal = pipelines.iter().filter(|one| one.id.signal == *signal);
            of_signal.any(|pipeline| pipeline.exporters.contains(id))
        };
        let name = id.to_string();
        let deps = ExporterDeps {
            name: &name,
            signals: Signal::ALL.into_iter().filter(is_used).collect(),
            traces: self.traces.as_ref(),
            log: &self.setup.log,
            accounts: &self.accounts,
            auth: &self.auth,
            proxies: &self.config.proxies,
            room: &self.room,
            storages: &mut self.storages,
        };
        let started = exporter.start(deps);
        let mut started = started.map_err(|why| self.fault("exporter", id, &why))?;
        self.exits.push(started.exit(&name));
        let senders = started.queues.into_iter();
        let senders = senders.map(|(signal, sender)| (name.clone(), signal, sender));
        self.senders.extend(senders);
        let entrances = started.entrances.into_iter();
        let entrances = entrances.map(|(signal, entrance)| ((id.clone(), signal), entrance));
        self.entrances.extend(entrances);
        self.batchers_last.extend(started.batchers);
        let pages = started.pages.into_iter().map(|page| (id.clone(), page));
        self.pages.extend(pages);
        let backends = started.backends.map(|backends| (name, backends));
        self.backends.extend(backends);
        Ok(())
    }

    fn processor(
        &mut self,
        pipeline: &Pipeline,
        id: &ComponentId,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, StartError> {
        let missing = || self.fault("processor", id, "is not defined");
        let processor = self.config.processor(id).ok_or_else(missing)?;
        let deps = ProcessorDeps {
            id,
            pipeline,
            config: self.config,
            setup: self.setup,
            host: self.host,
            budget: &self.budget,
            accounts: &self.accounts,
            traces: self.traces.as_ref(),
            storages: &mut self.storages,
            parts: &mut self.parts,
        };
        let started = processor.start(deps, next);
        started.map_err(|why| self.fault("processor", id, &why))
    }

    /// What the proxy feeds that runs the collector.
    pub fn intake_of_proxy(&mut self) -> Arc<Intake> {
        let outlet = |signal: Signal| self.outlet(self.config.pipelines_of_proxy(signal));
        let outlets = Signal::ALL.map(outlet);
        let receivers = self.config.receivers_of_proxy();
        let receiver = receivers.first().map(|receiver| receiver.id.to_string());
        let entrance = Entrance::new(&receiver.unwrap_or_default(), "proxy", &self.setup.log);
        let intake = Intake::of_proxy(outlets, self.accounts.clone(), &self.memory);
        Arc::new(intake.by(&Arc::new(entrance)))
    }

    /// The way into some pipelines; none where there are none.
    fn outlet(&mut self, places: Vec<usize>) -> Option<Arc<dyn Consumer>> {
        let heads = places.iter().filter_map(|place| self.heads.get(place));
        let heads: Vec<_> = heads.map(Arc::clone).collect();
        (!heads.is_empty()).then(|| FanOut::of(heads))
    }

    /// What each receiver feeds.
    pub fn intakes(&mut self) -> Result<Vec<Fed<'a>>, StartError> {
        let config = self.config;
        let mut exporters = config.exporters.iter();
        let waits = exporters.any(|exporter| exporter.settings.makes_wait());
        let mut intakes = Vec::new();
        for component in &config.receivers {
            let outlet = |signal: Signal| {
                let pipelines = config.pipelines.iter().enumerate();
                let fed = pipelines.filter(|(_, pipeline)| {
                    pipeline.id.signal == signal && pipeline.receivers.contains(&component.id)
                });
                self.outlet(fed.map(|(place, _)| place).collect())
            };
            let outlets = Signal::ALL.map(outlet);
            // There is one at most: more were refused with the configuration.
            let storage = config.storages(&component.id).into_iter().next();
            let outset = storage.map(|storage| self.storages.kept(&storage));
            let outset = outset.transpose();
            let outset = outset.map_err(|why| self.fault("receiver", &component.id, &why))?;
            let kept = outset.map(|outset| Kept::new(&outset, &component.id.to_string()));
            let intake = Intake::new(outlets, self.accounts.clone(), &self.memory);
            let intake = intake.keeping(kept, waits);
            intakes.push((component, Arc::new(intake)));
        }
        Ok(intakes)
    }
}

fn place_of<T>(components: &[Component<T>], id: &ComponentId) -> Option<String> {
    let found = components.iter().find(|component| component.id == *id);
    found.map(|component| component.place.clone())
}
