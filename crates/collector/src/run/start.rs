//! Putting a configuration together, and taking it down again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use export::clock::now_unix_ns;
use journal::Space;
use tail::shard::Options;
use tail::store::Budget;
use tokio::time::Instant;

use super::Log;
use super::account::{Account, Balance};
use super::auth::Authenticators;
use super::consume::{Consumer, fan_out};
use super::own::Own;
use super::page::{self, Health};
use super::process::batch::{self, Batcher};
use super::process::probabilistic_sampler::{self, ProbabilisticSampler};
use super::process::tail::{self as tails, Rules, Tail};
use super::process::{
    attributes, filter, memory_bytes, memory_limiter, resource as resources, resource_detection,
    transform,
};
use super::receive::{Format, Intake, Listening, Opening, Protocol, Sharing, listen, listen_udp};
use super::send::{self, Balancer, Sender, SenderEnd};
use super::storage::{self, Kept, Opened, Recovery, Storages, Stored};
use crate::config::components::receivers::jaeger::Agent;
use crate::config::service::storage::storage_of;
use crate::config::service::telemetry::{MetricsLevel, Reader};
use crate::config::{
    Component, ComponentId, Config, Exporter, Extension, Pipeline, Processor, Receiver, Signal,
};

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
    /// Bytes of memory in use, for `memory_limiter`: what the allocator gave out, where it tells, for what is resident
    /// does not fall when memory is freed; [`resident_bytes`] where it does not.
    ///
    /// [`resident_bytes`]: super::process::memory::resident_bytes
    pub memory_used_bytes: fn() -> u64,
}

/// Where a collector runs.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Per cent of the memory that waiting traces may take where no `memory_limiter` says less.
    pub memory_percent: u64,
    /// Whether its ports may be those of a process that ends soon.
    pub sharing: Sharing,
    /// A trace whose root the proxy around it records is decided as long after that has come, where the settings have no
    /// `decision_wait_after_root_received`; zero: that shortens nothing.
    pub root_wait: Duration,
}

impl Default for Host {
    /// A process of its own.
    fn default() -> Host {
        Host {
            memory_percent: BUDGET_PERCENT,
            sharing: Sharing::Alone,
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
    /// Of each pipeline in the order in which data pass, pipelines before those that they feed.
    stages: Vec<Stage>,
    senders: Vec<SenderEnd>,
    balancers: Vec<Arc<Balancer>>,
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
    /// Each `tail_sampling` and `groupbytrace` by its pipeline and id.
    pub tails: Vec<(String, String, Arc<Tail>)>,
    /// Each `filter` likewise.
    pub filters: Vec<(String, String, Arc<filter::Filter>)>,
    /// Queues of exporters, by id and signal.
    pub senders: Vec<(String, Signal, Arc<Sender>)>,
    /// Load balancers, by id.
    pub balancers: Vec<(String, Arc<Balancer>)>,
    /// Each `probabilistic_sampler`.
    pub samplers: Vec<SamplerView>,
    /// What waiting traces may take.
    pub budget: Arc<Budget>,
    /// Room of each storage, by its id.
    pub storages: Vec<(String, Arc<Space>)>,
    /// Attributes of the own resource.
    pub resource: Vec<(String, String)>,
    /// When it began, in nanoseconds of the UNIX epoch.
    pub begun_ns: u64,
}

/// A `probabilistic_sampler` of a pipeline.
pub struct SamplerView {
    /// The pipeline.
    pub pipeline: String,
    /// Its id.
    pub id: String,
    /// What it samples.
    pub signal: Signal,
    /// It.
    pub sampler: Arc<ProbabilisticSampler>,
}

enum Stage {
    Batch(Arc<Batcher>),
    Tail(Arc<Tail>),
}

/// A receiver, and where its data go.
type Fed<'a> = (&'a Component<Receiver>, Arc<Intake>);

/// What is being put together.
struct Build<'a> {
    config: &'a Config,
    setup: &'a Setup,
    host: &'a Host,
    accounts: [Arc<Account>; 3],
    budget: Arc<Budget>,
    senders: HashMap<(ComponentId, Signal), Arc<Sender>>,
    balancers: HashMap<ComponentId, Arc<Balancer>>,
    batchers: HashMap<(ComponentId, Signal), Arc<Batcher>>,
    files: send::Files,
    auth: Authenticators,
    ends: Vec<SenderEnd>,
    heads: HashMap<usize, Arc<dyn Consumer>>,
    /// The last first.
    stages: Vec<Stage>,
    tails: Vec<(String, String, Arc<Tail>)>,
    storages: Storages<'a>,
    filters: Vec<(String, String, Arc<filter::Filter>)>,
    samplers: Vec<SamplerView>,
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
        let mut build = Build {
            config,
            setup: &setup,
            host,
            accounts: Default::default(),
            budget,
            senders: HashMap::new(),
            balancers: HashMap::new(),
            batchers: HashMap::new(),
            files: send::Files::new(),
            auth: Authenticators::start(config).map_err(StartError)?,
            ends: Vec::new(),
            heads: HashMap::new(),
            stages: Vec::new(),
            tails: Vec::new(),
            storages: Storages::new(config, &setup.log),
            filters: Vec::new(),
            samplers: Vec::new(),
        };
        for place in 0..config.pipelines.len() {
            build.head(place)?;
        }
        let auth = std::mem::take(&mut build.auth);
        let opening = Opening {
            auth: &auth,
            sharing: host.sharing,
        };
        let of_proxy = build.intake_of_proxy();
        let intakes = build.intakes()?;
        let mut listening = Vec::new();
        for (component, intake) in &intakes {
            listening.extend(receivers(component, intake, opening)?);
        }
        let outsets = build.storages.outsets();
        let storages = build.storages.into_opened();
        let spaces = storages.iter();
        let spaces = spaces.map(|(id, opened)| (id.clone(), Arc::clone(&opened.space)));
        let senders = build.senders.into_iter();
        let balancers = build.balancers.into_iter();
        let balancers: Vec<_> = balancers.map(|(id, one)| (id.to_string(), one)).collect();
        let ends = balancers.iter().map(|(_, one)| Arc::clone(one)).collect();
        let view = Arc::new(View {
            accounts: build.accounts,
            tails: build.tails,
            filters: build.filters,
            senders: senders
                .map(|((id, signal), sender)| (id.to_string(), signal, sender))
                .collect(),
            balancers,
            samplers: build.samplers,
            budget: build.budget,
            storages: spaces.collect(),
            resource: resource(config),
            begun_ns: now_unix_ns(),
        });
        let health = Arc::new(Health::default());
        let pages = pages(config, &view, &health, opening)?;
        let owns = owns(config, &view, &setup.log)?;
        build.stages.reverse();
        let intakes: Vec<_> = intakes.into_iter().map(|(_, intake)| intake).collect();
        let tails: Vec<_> = view
            .tails
            .iter()
            .map(|(.., tail)| Arc::clone(tail))
            .collect();
        let ready = Arc::clone(&health);
        let recovery = storage::start(&outsets, &intakes, &tails, &setup.log, move || {
            ready.ready(true);
        });
        Ok(Collector {
            intakes,
            of_proxy,
            listening,
            stages: build.stages,
            senders: build.ends,
            balancers: ends,
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

    /// Listens no more, for another process does: connections end once their requests are answered. What the proxy
    /// records is still taken.
    pub fn stop_listening(&self) {
        for (_, listening) in &self.listening {
            listening.close();
        }
        for (_, page) in &self.pages {
            page.close();
        }
    }

    /// Takes nothing more, decides on what waits, sends what is kept, and ends; what is not sent by then is lost, and
    /// counted. The account at the end, by signal.
    pub async fn end(self) -> [Balance; 3] {
        let until = Instant::now() + END_MAX;
        self.health.ready(false);
        for intake in self.intakes.iter().chain([&self.of_proxy]) {
            intake.close();
        }
        self.recovery.end().await;
        let mut ends = tokio::task::JoinSet::new();
        for (_, listening) in self.listening {
            ends.spawn(listening.end());
        }
        while ends.join_next().await.is_some() {}
        for stage in &self.stages {
            match stage {
                Stage::Batch(batcher) => batcher.end(until).await,
                Stage::Tail(tail) => tail.end(until, &self.log).await,
            }
        }
        let mut ends = tokio::task::JoinSet::new();
        for sender in self.senders {
            ends.spawn(sender.end(until));
        }
        for balancer in self.balancers {
            ends.spawn(async move { balancer.end(until).await });
        }
        while ends.join_next().await.is_some() {}
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
        while ends.join_next().await.is_some() {}
        self.view
            .accounts
            .each_ref()
            .map(|account| account.balance())
    }
}

fn budget_bytes(config: &Config, memory_percent: u64) -> u64 {
    let limits = config.processors.iter().filter_map(|component| {
        let Processor::MemoryLimiter(settings) = &component.settings else {
            return None;
        };
        Some(memory_limiter::soft_limit_bytes(settings))
    });
    limits
        .min()
        .unwrap_or(memory_bytes() / 100 * memory_percent)
}

impl<'a> Build<'a> {
    fn fault(&self, what: &str, id: &ComponentId, why: &str) -> StartError {
        let places = [
            place_of(&self.config.exporters, id),
            place_of(&self.config.processors, id),
            place_of(&self.config.receivers, id),
        ];
        let place = places.into_iter().flatten().next().unwrap_or_default();
        StartError(format!("{place}: {what} '{id}': {why}"))
    }

    /// The first component of a pipeline.
    fn head(&mut self, place: usize) -> Result<Arc<dyn Consumer>, StartError> {
        if let Some(head) = self.heads.get(&place) {
            return Ok(Arc::clone(head));
        }
        let config = self.config;
        let pipeline = &config.pipelines[place];
        let mut outs: Vec<Arc<dyn Consumer>> = Vec::new();
        for id in &pipeline.exporters {
            match config.connector(id) {
                None => outs.push(self.exporter(id, pipeline.id.signal)?),
                Some(_) => {
                    for (next, fed) in config.pipelines.iter().enumerate() {
                        // Circles were refused with the configuration.
                        if fed.receivers.contains(id) && fed.id.signal == pipeline.id.signal {
                            outs.push(self.head(next)?);
                        }
                    }
                }
            }
        }
        let mut next = fan_out(outs);
        for id in pipeline.processors.iter().rev() {
            next = self.processor(pipeline, id, next)?;
        }
        self.heads.insert(place, Arc::clone(&next));
        Ok(next)
    }

    /// An exporter, behind what puts requests together for it.
    fn exporter(
        &mut self,
        id: &ComponentId,
        signal: Signal,
    ) -> Result<Arc<dyn Consumer>, StartError> {
        let Some(Exporter::LoadBalancing(settings)) = self.config.exporter(id) else {
            return self.queued(id, signal);
        };
        if let Some(balancer) = self.balancers.get(id) {
            return Ok(Arc::clone(balancer) as Arc<dyn Consumer>);
        }
        let started = {
            let account = &self.accounts[signal as usize];
            send::balance(
                &id.to_string(),
                settings,
                (account, &self.auth),
                &self.setup.log,
            )
        };
        let balancer = started.map_err(|why| self.fault("exporter", id, &why))?;
        self.balancers.insert(id.clone(), Arc::clone(&balancer));
        Ok(balancer)
    }

    /// An exporter with a queue, and what puts requests together for it.
    fn queued(
        &mut self,
        id: &ComponentId,
        signal: Signal,
    ) -> Result<Arc<dyn Consumer>, StartError> {
        let key = (id.clone(), signal);
        if let Some(batcher) = self.batchers.get(&key) {
            return Ok(Arc::clone(batcher) as Arc<dyn Consumer>);
        }
        let sender = self.sender(id, signal)?;
        let queue = self.config.exporter(id).and_then(Exporter::queue);
        let Some(settings) = queue.and_then(|queue| queue.batch.as_ref()) else {
            return Ok(sender);
        };
        let batcher = batch::start(&settings.as_processor(), sender);
        // It ends when all is in that comes, and before the exporter.
        self.stages.insert(0, Stage::Batch(Arc::clone(&batcher)));
        self.batchers.insert(key, Arc::clone(&batcher));
        Ok(batcher)
    }

    fn sender(&mut self, id: &ComponentId, signal: Signal) -> Result<Arc<Sender>, StartError> {
        if let Some(sender) = self.senders.get(&(id.clone(), signal)) {
            return Ok(Arc::clone(sender));
        }
        let missing = || self.fault("exporter", id, "is not defined");
        let exporter = self.config.exporter(id).ok_or_else(missing)?;
        let storage = exporter.queue().and_then(|queue| queue.storage.as_ref());
        let stored = storage.map(|storage| {
            let name = format!("exporter {id} {signal}");
            let (journal, left) = self.storages.journal(storage, &name)?;
            Ok((Stored::new(journal), left))
        });
        let stored = stored.transpose();
        let stored = stored.map_err(|why: String| self.fault("exporter", id, &why))?;
        let outside = send::Outside {
            account: &self.accounts[signal as usize],
            stored,
            files: &mut self.files,
            auth: &self.auth,
            log: &self.setup.log,
        };
        let name = id.to_string();
        let started = send::start(&name, exporter, signal, outside);
        let (sender, end) = started.map_err(|why| self.fault("exporter", id, &why))?;
        self.ends.push(end);
        self.senders
            .insert((id.clone(), signal), Arc::clone(&sender));
        Ok(sender)
    }

    fn processor(
        &mut self,
        pipeline: &Pipeline,
        id: &ComponentId,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, StartError> {
        let missing = || self.fault("processor", id, "is not defined");
        let processor = self.config.processor(id).ok_or_else(missing)?;
        let rules = match processor {
            Processor::Batch(settings) => {
                let batcher = batch::start(settings, next);
                self.stages.push(Stage::Batch(Arc::clone(&batcher)));
                return Ok(batcher);
            }
            Processor::MemoryLimiter(settings) => {
                let used_bytes = self.setup.memory_used_bytes;
                let limiter = memory_limiter::start(settings, used_bytes, next, &self.setup.log);
                return Ok(limiter);
            }
            Processor::TailSampling(settings) => Rules::Sample(settings),
            Processor::GroupByTrace(settings) => Rules::Group(settings),
            Processor::ProbabilisticSampler(settings) => {
                let sampler = probabilistic_sampler::start(settings, next);
                self.samplers.push(SamplerView {
                    pipeline: pipeline.id.to_string(),
                    id: id.to_string(),
                    signal: pipeline.id.signal,
                    sampler: Arc::clone(&sampler),
                });
                return Ok(sampler);
            }
            Processor::Resource(settings) => {
                let started = resources::start(settings, next);
                return Ok(started.map_err(|why| self.fault("processor", id, &why))?);
            }
            Processor::Attributes(settings) => {
                let started = attributes::start(settings, next);
                return Ok(started.map_err(|why| self.fault("processor", id, &why))?);
            }
            Processor::Filter(settings) => {
                let started = filter::start(&id.to_string(), settings, next, &self.setup.log);
                let filter = started.map_err(|why| self.fault("processor", id, &why))?;
                let names = (pipeline.id.to_string(), id.to_string());
                self.filters.push((names.0, names.1, Arc::clone(&filter)));
                return Ok(filter);
            }
            Processor::Transform(settings) => {
                let started = transform::start(&id.to_string(), settings, next, &self.setup.log);
                return Ok(started.map_err(|why| self.fault("processor", id, &why))?);
            }
            Processor::ResourceDetection(settings) => {
                let (id, log) = (id.to_string(), &self.setup.log);
                return Ok(resource_detection::start(&id, settings, next, log));
            }
        };
        let options = Options {
            seed: self.setup.seed,
            record_policy: self.setup.record_policy,
            export_bytes_max: self.budget.bytes_max() / 2,
            end_wait_ns: u64::try_from(self.host.root_wait.as_nanos()).unwrap_or(u64::MAX),
            ..Options::default()
        };
        let outset = storage_of(processor).map(|storage| self.storages.kept(&storage));
        let outset = outset.transpose();
        let outset = outset.map_err(|why| self.fault("processor", id, &why))?;
        let component = format!("{} {id}", pipeline.id);
        let keeping = outset.as_ref().map(|outset| {
            let keeping = outset.keeping(&component);
            (keeping, outset.take_decided(&component))
        });
        let account = &self.accounts[Signal::Traces as usize];
        let started = tails::start(
            &rules,
            &options,
            &self.budget,
            (account, next),
            keeping,
            &self.setup.log,
        );
        let tail = started.map_err(|why| self.fault("processor", id, &why))?;
        self.stages.push(Stage::Tail(Arc::clone(&tail)));
        let names = (pipeline.id.to_string(), id.to_string());
        self.tails.push((names.0, names.1, Arc::clone(&tail)));
        Ok(tail)
    }

    /// What the proxy feeds that runs the collector.
    fn intake_of_proxy(&self) -> Arc<Intake> {
        let outlet = |signal: Signal| self.outlet(self.config.pipelines_of_proxy(signal));
        let outlets = Signal::ALL.map(outlet);
        Arc::new(Intake::of_proxy(outlets, self.accounts.clone()))
    }

    /// The way into some pipelines; none where there are none.
    fn outlet(&self, places: Vec<usize>) -> Option<Arc<dyn Consumer>> {
        let heads = places.iter().filter_map(|place| self.heads.get(place));
        let heads: Vec<_> = heads.map(Arc::clone).collect();
        (!heads.is_empty()).then(|| fan_out(heads))
    }

    /// What each receiver feeds.
    fn intakes(&mut self) -> Result<Vec<Fed<'a>>, StartError> {
        let config = self.config;
        let waits = config.exporters.iter().any(|exporter| {
            let queue = exporter.settings.queue();
            queue.is_some_and(|queue| queue.storage.is_some())
        });
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
            let intake = Intake::new(outlets, self.accounts.clone()).keeping(kept, waits);
            intakes.push((component, Arc::new(intake)));
        }
        Ok(intakes)
    }
}

fn place_of<T>(components: &[Component<T>], id: &ComponentId) -> Option<String> {
    let found = components.iter().find(|component| component.id == *id);
    found.map(|component| component.place.clone())
}

fn receivers(
    component: &Component<Receiver>,
    intake: &Arc<Intake>,
    opening: Opening<'_>,
) -> Result<Vec<(String, Listening)>, StartError> {
    let Component { id, place, .. } = component;
    let mut listening = Vec::new();
    for (name, socket) in sockets(&component.settings) {
        let intake = Arc::clone(intake);
        let opened = match socket {
            Socket::Listen(protocol) => listen(protocol, intake, opening),
            Socket::Agent(agent, is_compact) => {
                listen_udp(agent, is_compact, intake, opening.sharing)
            }
        };
        let opened =
            opened.map_err(|why| StartError(format!("{place}: receiver '{id}', {name}: {why}")))?;
        listening.push((format!("{id} {name}"), opened));
    }
    Ok(listening)
}

/// What a receiver opens.
enum Socket<'a> {
    Listen(Protocol),
    /// UDP, in the compact protocol or the binary one.
    Agent(&'a Agent, bool),
}

/// The sockets of a receiver, by the names of their protocols.
fn sockets(receiver: &Receiver) -> Vec<(&'static str, Socket<'_>)> {
    let listen = |protocol| Some(Socket::Listen(protocol));
    let sockets = match receiver {
        Receiver::Nop | Receiver::Proxy => Vec::new(),
        Receiver::Otlp(otlp) => {
            let grpc = otlp.grpc.clone().map(Box::new).map(Protocol::Grpc);
            let http = otlp.http.clone().map(Box::new).map(Protocol::Http);
            vec![
                ("grpc", grpc.and_then(listen)),
                ("http", http.and_then(listen)),
            ]
        }
        Receiver::Zipkin(zipkin) => {
            let parse_tags = zipkin.parse_string_tags;
            let server = Box::new(zipkin.server.clone());
            vec![(
                "http",
                listen(Protocol::Spans(server, Format::Zipkin { parse_tags })),
            )]
        }
        Receiver::Jaeger(jaeger) => {
            let grpc = jaeger.grpc.clone().map(Box::new).map(Protocol::JaegerGrpc);
            let http = jaeger.thrift_http.clone().map(Box::new);
            let http = http.map(|server| Protocol::Spans(server, Format::Jaeger));
            let agent = |agent, is_compact| Socket::Agent(agent, is_compact);
            let (compact, binary) = (&jaeger.thrift_compact, &jaeger.thrift_binary);
            vec![
                ("grpc", grpc.and_then(listen)),
                ("thrift_http", http.and_then(listen)),
                (
                    "thrift_compact",
                    compact.as_ref().map(|one| agent(one, true)),
                ),
                (
                    "thrift_binary",
                    binary.as_ref().map(|one| agent(one, false)),
                ),
            ]
        }
    };
    let open = sockets.into_iter();
    open.filter_map(|(name, socket)| Some((name, socket?)))
        .collect()
}

fn pages(
    config: &Config,
    view: &Arc<View>,
    health: &Arc<Health>,
    opening: Opening<'_>,
) -> Result<Vec<(String, Listening)>, StartError> {
    let mut pages = Vec::new();
    for component in &config.extensions {
        let Component { id, place, .. } = component;
        let (view, health) = (Arc::clone(view), Arc::clone(health));
        let page = match &component.settings {
            Extension::HealthCheck(settings) => page::health(settings, health, opening),
            Extension::HealthCheckV2(settings) => {
                page::status(settings, config, (view, health), opening)
            }
            _ => continue,
        };
        let failed = |why| StartError(format!("{place}: extension '{id}': {why}"));
        pages.push((id.to_string(), page.map_err(failed)?));
    }
    if config.telemetry.metrics.level == MetricsLevel::None {
        return Ok(pages);
    }
    for reader in &config.telemetry.metrics.readers {
        if let Reader::Prometheus { host, port } = reader {
            let page = page::metrics(host, *port, Arc::clone(view), opening.sharing);
            let page = page.map_err(|why| {
                StartError(format!("service::telemetry::metrics::readers: {why}"))
            })?;
            pages.push(("metrics".to_owned(), page));
        }
    }
    Ok(pages)
}

/// Those who are sent the own metrics.
fn owns(config: &Config, view: &Arc<View>, log: &Log) -> Result<Vec<Own>, StartError> {
    let mut owns = Vec::new();
    if config.telemetry.metrics.level == MetricsLevel::None {
        return Ok(owns);
    }
    for reader in &config.telemetry.metrics.readers {
        if let Reader::Otlp(settings) = reader {
            let own = Own::start(settings, Arc::clone(view), log);
            let failed = |why| StartError(format!("service::telemetry::metrics::readers: {why}"));
            owns.push(own.map_err(failed)?);
        }
    }
    Ok(owns)
}

/// The own resource: what it is called, with what the settings add and take away.
fn resource(config: &Config) -> Vec<(String, String)> {
    let default = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut attributes = vec![
        default("service.name", "spangate"),
        default("service.version", env!("CARGO_PKG_VERSION")),
    ];
    for (name, value) in &config.telemetry.resource {
        attributes.retain(|(other, _)| other != name);
        attributes.extend(value.clone().map(|value| (name.clone(), value)));
    }
    attributes
}
