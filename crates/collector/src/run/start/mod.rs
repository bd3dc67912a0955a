//! Putting a configuration together, and taking it down again.

mod build;
mod pages;
mod sources;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use export::clock::now_unix_ns;
use tail::store::Budget;
use tokio::time::Instant;
use traces::Store;

use super::Log;
use super::account::{Account, Balance};
use super::origin::Wanted;
use super::own::Own;
use super::page::Health;
use super::part::{Part, Running};
use super::process::memory_bytes;
use super::process::passage::Passage;
use super::receive::{
    Entrance, Intake, Listeners, Listening, Opening, RunningSource, Sharing, SourceState,
};
use super::send::{Backends, Exit, Sender};
use super::storage::{self, Opened, Recovery, StorageView};
use super::tasks;
use crate::config::service::telemetry::MetricsLevel;
use crate::config::{Config, Signal};
use build::Build;

/// Per cent of the memory that waiting traces may take where no `memory_limiter` says less.
const BUDGET_PERCENT: u64 = 75;
/// Time to decide on what waits and to send it, at the end.
pub const END_MAX: Duration = Duration::from_secs(25);

/// What is not in the configuration.
pub struct Setup {
    /// Where lines go.
    pub log: Log,
    /// Secret of hashes.
    pub seed: u64,
    /// `processor.tailsamplingprocessor.recordpolicy`
    pub record_policy: bool,
    /// Bytes of memory in use, for `memory_limiter`: what the allocator gave out, where it tells,
    /// for what is resident does not fall when memory is freed; [`resident_bytes`] where it does
    /// not.
    ///
    /// [`resident_bytes`]: super::process::memory::resident_bytes
    pub memory_used_bytes: fn() -> u64,
    /// Where exporters `dashboard` put traces; none: into a store of the collector's own.
    pub traces: Option<Arc<Store>>,
}

/// Where a collector runs.
#[derive(Clone, Debug)]
pub struct Host {
    /// Per cent of the memory that waiting traces may take where no `memory_limiter` says less.
    pub memory_percent: u64,
    /// Whether its ports may be those of a process that ends soon.
    pub sharing: Sharing,
    /// The sockets of the process, which this collector takes over where it listens too.
    pub listeners: Listeners,
    /// A trace whose root the proxy around it records is decided as long after that has come, where
    /// the settings have no `decision_wait_after_root_received`; zero: that shortens nothing.
    pub root_wait: Duration,
}

impl Default for Host {
    /// A process of its own.
    fn default() -> Host {
        Host {
            memory_percent: BUDGET_PERCENT,
            sharing: Sharing::Alone,
            listeners: Listeners::default(),
            root_wait: Duration::ZERO,
        }
    }
}

/// Why a configuration cannot run: the component's place and id, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError(pub String);

/// A running configuration.
pub struct Collector {
    intakes: Vec<Arc<Intake>>,
    of_proxy: Arc<Intake>,
    listening: Vec<(String, Listening)>,
    /// Receivers that fetch or make their data.
    sources: Vec<Box<dyn RunningSource>>,
    /// Of each pipeline in the order in which data pass, pipelines before those that they feed; then
    /// what puts requests together for queues.
    stages: Vec<Arc<dyn Part>>,
    exits: Vec<Exit>,
    /// Of ourselves, served to the end.
    pages: Vec<(String, Listening)>,
    /// Who are sent the own metrics.
    owns: Vec<Own>,
    /// What it knows of itself.
    pub view: Arc<View>,
    health: Arc<Health>,
    /// What an earlier process left, on its way.
    recovery: Recovery,
    storages: Vec<(String, Opened)>,
    log: Log,
}

/// A running collector as its metrics tell of it.
pub struct View {
    /// By signal.
    pub accounts: [Arc<Account>; 3],
    /// Transports of receivers.
    pub entrances: Vec<Arc<Entrance>>,
    /// What passes each processor.
    pub processors: Vec<Arc<Passage>>,
    /// Components that have metrics or a status of their own.
    pub parts: Vec<Running>,
    /// Queues of exporters, by id and signal.
    pub senders: Vec<(String, Signal, Arc<Sender>)>,
    /// Receivers that fetch or make their data, by their ids.
    pub sources: Vec<(String, Arc<dyn SourceState>)>,
    /// Exporters with several back ends, by id.
    pub backends: Vec<(String, Arc<dyn Backends>)>,
    /// What waiting traces may take.
    pub budget: Arc<Budget>,
    /// Storages by their ids.
    pub(in crate::run) storages: Vec<(String, StorageView)>,
    /// Attributes of the own resource.
    pub resource: Vec<(String, String)>,
    /// When it began, in nanoseconds of the UNIX epoch.
    pub begun_ns: u64,
    /// Where exporters `dashboard` put traces; none: there are none.
    pub traces: Option<Arc<Store>>,
    /// How many metrics there are.
    pub level: MetricsLevel,
    /// Bytes of memory in use ([`Setup::memory_used_bytes`]).
    pub memory_used_bytes: fn() -> u64,
}

impl View {
    /// The queue of an exporter, by its id and signal.
    pub(super) fn sender(&self, of: &(String, Signal)) -> Option<Arc<Sender>> {
        let mut senders = self.senders.iter();
        let found = senders.find(|(id, signal, _)| (id, signal) == (&of.0, &of.1));
        found.map(|(.., sender)| Arc::clone(sender))
    }

    /// The back ends of an exporter, by its id.
    pub(super) fn backends_of(&self, id: &str) -> Option<Arc<dyn Backends>> {
        let found = self.backends.iter().find(|(own, _)| own == id);
        found.map(|(_, backends)| Arc::clone(backends))
    }

    /// What the end of the collector waits for, in words.
    #[must_use]
    pub fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for Running { name, part } in &self.parts {
            let (id, spans) = (&name.id, part.pending().unwrap_or_default().spans);
            if spans > 0 {
                waiting.push(format!("{spans} spans that '{id}' has not decided on"));
            }
        }
        for (id, _, sender) in &self.senders {
            waiting.extend(sending(id, sender));
        }
        for (id, backends) in &self.backends {
            for backend in backends.view() {
                let name = format!("{id} to {}", backend.endpoint);
                waiting.extend(sending(&name, &backend.sender));
            }
        }
        waiting
    }
}

/// What waits for an exporter, if anything does.
fn sending(id: &str, sender: &Sender) -> Option<String> {
    let (batches, _) = sender.depth();
    let batches = batches as u64 + sender.counts().in_flight.load(Relaxed);
    let failing = sender.failing().map(|failing| failing.why);
    let failing = failing.map(|why| format!(" (its last attempt failed: {why})"));
    let failing = failing.unwrap_or_default();
    (batches > 0).then(|| format!("{batches} batches for exporter '{id}'{failing}"))
}

impl Collector {
    /// Starts everything, in a process of its own. To be called within the runtime.
    ///
    /// # Errors
    /// What cannot be started, and why; nothing is left running.
    pub fn start(config: &Config, setup: Setup) -> Result<Collector, StartError> {
        Collector::start_in(config, setup, &Host::default())
    }

    /// Starts everything. To be called within the runtime.
    ///
    /// # Errors
    /// What cannot be started, and why; nothing is left running.
    pub fn start_in(config: &Config, setup: Setup, host: &Host) -> Result<Collector, StartError> {
        let budget = Arc::new(Budget::new(budget_bytes(config, host.memory_percent)));
        let resource = pages::resource(config);
        let instance = resource
            .iter()
            .find(|(key, _)| key == "service.instance.id");
        let instance_id = instance.map_or("", |(_, id)| id);
        let mut build = Build::new(config, &setup, host, budget, instance_id)?;
        for place in 0..config.pipelines.len() {
            build.head(place)?;
        }
        let auth = std::mem::take(&mut build.auth);
        let wanted = Wanted::by(config);
        host.listeners.begin();
        let opening = Opening {
            auth: &auth,
            sharing: host.sharing,
            listeners: &host.listeners,
            wanted: wanted.as_ref(),
        };
        let of_proxy = build.intake_of_proxy();
        let intakes = build.intakes()?;
        let mut entrances = vec![Arc::clone(&of_proxy.entrance)];
        let listening = sources::open(&intakes, opening, &mut entrances, &setup.log)?;
        // A receiver that the configuration lacks has no metrics.
        entrances.retain(|one| !one.receiver.is_empty());
        let waiting = sources::of(&intakes, &mut entrances, wanted.as_ref(), &setup.log)?;
        let outsets = build.storages.outsets();
        let storages = build.storages.into_opened();
        let views = storages.iter();
        let views = views.map(|(id, opened)| (id.clone(), opened.view()));
        let view = Arc::new(View {
            accounts: build.accounts,
            entrances,
            processors: build.processors,
            parts: build.parts,
            senders: build.senders,
            sources: sources::states(&waiting),
            backends: build.backends,
            budget: build.budget,
            storages: views.collect(),
            resource: resource.clone(),
            begun_ns: now_unix_ns(),
            traces: build.traces.map(|shown| Arc::clone(&shown.store)),
            level: config.telemetry.metrics.level,
            memory_used_bytes: setup.memory_used_bytes,
        });
        let health = Arc::new(Health::default());
        let mut pages = pages::serve(config, &view, &health, opening)?;
        pages.extend(pages::expose(config, build.pages, opening)?);
        let owns = pages::send(config, &view, &setup.log)?;
        let intakes: Vec<_> = intakes.into_iter().map(|(_, intake)| intake).collect();
        let parts = view.parts.iter().map(|one| Arc::clone(&one.part));
        let parts: Vec<_> = parts.collect();
        let stages = parts.iter().rev().cloned().chain(build.batchers_last);
        let stages = stages.collect();
        let ready = Arc::clone(&health);
        let recovery = storage::start(&outsets, &intakes, &parts, &setup.log, move || {
            ready.ready(true);
        });
        let sources = sources::start(waiting)?;
        Ok(Collector {
            intakes,
            of_proxy,
            listening,
            sources,
            stages,
            exits: build.exits,
            pages,
            owns,
            view,
            health,
            recovery,
            storages,
            log: setup.log,
        })
    }

    /// Where each receiver listens: its id and protocol, and the address where it has one.
    #[must_use]
    pub fn addresses(&self) -> Vec<(String, Option<SocketAddr>)> {
        let all = self.listening.iter().chain(&self.pages);
        all.map(|(name, listening)| (name.clone(), listening.address))
            .collect()
    }

    /// Where the records of the proxy go that runs it ([`Config::pipelines_of_proxy`]).
    #[must_use]
    pub fn of_proxy(&self) -> Arc<Intake> {
        Arc::clone(&self.of_proxy)
    }

    /// Listens no more, for another process does: connections end once their requests are answered.
    /// What the proxy records is still taken.
    pub fn stop_listening(&self) {
        for (_, listening) in &self.listening {
            listening.close();
        }
        self.sources.iter().for_each(|source| source.close());
        for (_, page) in &self.pages {
            page.close();
        }
    }

    /// Takes nothing more, decides on what waits, sends what is kept, and ends; what is not sent by
    /// then is lost, and counted. The account at the end, by signal.
    pub async fn end(self) -> [Balance; 3] {
        self.end_with(None).await
    }

    /// The same with a collector that runs in its place: what an exporter has not sent is sent by
    /// that one's exporter of the same id. Its records count as held here until then.
    pub async fn end_for(self, next: &View) -> [Balance; 3] {
        self.end_with(Some(next)).await
    }

    async fn end_with(mut self, next: Option<&View>) -> [Balance; 3] {
        let until = Instant::now() + END_MAX;
        self.health.ready(false);
        let intakes = || self.intakes.iter().chain([&self.of_proxy]);
        if next.is_none() {
            intakes().for_each(|intake| intake.close());
        }
        self.sources.iter().for_each(|source| source.close());
        self.recovery.end().await;
        let mut ends = tokio::task::JoinSet::new();
        for (_, listening) in self.listening {
            match next {
                None => ends.spawn(listening.end()),
                // Nothing is refused: what comes on these connections is taken.
                Some(_) => ends.spawn(listening.drained()),
            };
        }
        tasks::ended(&mut ends).await;
        for source in &mut self.sources {
            source.closed().await;
        }
        intakes().for_each(|intake| intake.close());
        for stage in &self.stages {
            stage.end(until, &self.log).await;
        }
        let mut ends = tokio::task::JoinSet::new();
        for exit in self.exits {
            ends.spawn(exit.end(next, until));
        }
        tasks::ended(&mut ends).await;
        // All that will be settled is.
        for source in self.sources {
            source.end().await;
        }
        for (_, storage) in self.storages {
            storage.end(&self.log).await;
        }
        for own in self.owns {
            own.end(until).await;
        }
        let mut ends = tokio::task::JoinSet::new();
        for (_, page) in self.pages {
            ends.spawn(page.end());
        }
        tasks::ended(&mut ends).await;
        self.view
            .accounts
            .each_ref()
            .map(|account| account.balance())
    }
}

fn budget_bytes(config: &Config, memory_percent: u64) -> u64 {
    let processors = config.processors.iter();
    let limits = processors.filter_map(|component| component.settings.memory_limit_bytes());
    limits
        .min()
        .unwrap_or(memory_bytes() / 100 * memory_percent)
}
