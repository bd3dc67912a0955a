//! The exporter `load_balancing`: each trace, or each service, goes to a backend of its own, by a
//! [`ring::Ring`].
//!
//! A batch is taken whole or not at all: it is cut, every backend that gets a part must have room,
//! and then each part waits in its backend's queue. What a backend that is gone still held is cut
//! anew for those that remain.

mod attempts;
mod exporter;
mod k8s;
mod metrics;
mod resolve;
mod ring;
mod split;
#[cfg(test)]
mod tests;
mod tier;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use export::clock::now_unix_ns;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use attempts::Attempts;
pub use k8s::Slices as K8sSlices;
pub(in crate::run) use split::split_by;

use self::ring::Ring;
use super::{QueueDeps, QueueSettings, Sender, SenderEnd, SignalDeps, outlet, queue};
use crate::config::Signal;
use crate::config::components::exporters::load_balancing::{LoadBalancingExporter, Resolver};
use crate::run::consume::{Consumer, Permit, Permits, Refusal, Refused, refused};
use crate::run::data::Batch;
use crate::run::k8s::Pod;
use crate::run::process::batch::{self, Batcher, Rules as BatchRules};
use crate::run::storage::Pledge;
use crate::run::tasks::ended_by;

/// Backends that are used, of those that a host has.
const BACKENDS_MAX: usize = 1024;
/// Without backends, and while they change, it is tried again after this time.
const AGAIN: Duration = Duration::from_millis(100);
/// The reason why there are no backends.
const NO_BACKENDS: &str = "it knows no backend";

/// See the module.
pub struct Balancer {
    name: String,
    settings: LoadBalancingExporter,
    common: SignalDeps,
    /// Itself, for what goes on its way again.
    own: Weak<Balancer>,
    table: Mutex<Arc<Table>>,
    backends: Mutex<Backends>,
    closing: AtomicBool,
    /// A backend that takes a batch makes its sender wait for the outcome.
    backends_wait: bool,
    /// Time since when no backend is known, in nanoseconds since the UNIX epoch; 0 if backends are
    /// known.
    no_backends_since_ns: AtomicU64,
    /// What the resolver did.
    pub counts: Counts,
}

/// Who gets what, at one time.
#[derive(Default)]
struct Table {
    ring: Ring,
    /// By their numbers in the ring.
    senders: Vec<Arc<dyn Consumer>>,
}

#[derive(Default)]
struct Backends {
    /// As the ring has them.
    names: Vec<String>,
    /// By their addresses.
    running: HashMap<String, Backend>,
    /// The resolver, and backends that are going.
    tasks: JoinSet<()>,
    resolver: Option<tokio::task::AbortHandle>,
}

struct Backend {
    /// What puts requests together for its queue.
    batcher: Option<Arc<Batcher>>,
    sender: Arc<Sender>,
    end: SenderEnd,
    attempts: Arc<Attempts>,
}

impl Backend {
    /// Where its data come in.
    fn entrance(&self) -> Arc<dyn Consumer> {
        match &self.batcher {
            Some(batcher) => Arc::clone(batcher) as Arc<dyn Consumer>,
            None => Arc::clone(&self.sender) as Arc<dyn Consumer>,
        }
    }

    /// Sends what waits until a time; what is left then is lost.
    async fn end(self, until: Instant) {
        if let Some(batcher) = self.batcher {
            batcher.end(until).await;
        }
        self.end.end(until).await;
    }

    /// Ends without sending what waits; gives it back.
    async fn leave(self) -> Vec<(Batch, Pledge)> {
        let batches = match &self.batcher {
            Some(batcher) => batcher.leave().await,
            None => VecDeque::new(),
        };
        let mut left = Vec::from(batches);
        left.extend(self.end.leave().await);
        left
    }
}

/// What a resolver did.
#[derive(Default)]
pub struct Counts {
    /// Names were found.
    pub resolved: AtomicU64,
    /// Or were not.
    pub failed: AtomicU64,
    /// And were others than before.
    pub updates: AtomicU64,
}

/// Starts it. To be called within the runtime.
///
/// # Errors
/// Why its backends cannot be spoken to.
pub(in crate::run) fn start(
    name: &str,
    settings: &LoadBalancingExporter,
    common: &SignalDeps,
) -> Result<Arc<Balancer>, String> {
    start_in(&Pod::own(), name, settings, common)
}

/// The same within another pod than the one that we are in.
fn start_in(
    pod: &Pod,
    name: &str,
    settings: &LoadBalancingExporter,
    common: &SignalDeps,
) -> Result<Arc<Balancer>, String> {
    // What cannot be used in the settings is told now, not with the first backend.
    let probe = settings.otlp.client.to("localhost:4317");
    outlet::grpc(&probe, Signal::Traces, (&common.auth, &common.proxies))?;
    let balancer = Arc::new_cyclic(|own| Balancer {
        name: name.to_owned(),
        settings: settings.clone(),
        common: common.clone(),
        own: Weak::clone(own),
        table: Mutex::default(),
        backends: Mutex::default(),
        closing: false.into(),
        backends_wait: { settings.otlp.queue.as_ref() }.is_none_or(|queue| queue.wait_for_result),
        no_backends_since_ns: now_unix_ns().into(),
        counts: Counts::default(),
    });
    match &settings.resolver {
        Resolver::Static(names) => balancer.resolved(names.clone()),
        Resolver::Dns(dns) => {
            balancer.ask(resolve::run(Arc::downgrade(&balancer), dns.clone()));
        }
        Resolver::K8s(settings) => {
            let own = Arc::downgrade(&balancer);
            let watcher = k8s::watcher(settings, pod, &common.log, own)?;
            balancer.ask(watcher.run());
        }
    }
    Ok(balancer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Balancer {
    fn backends(&self) -> MutexGuard<'_, Backends> {
        lock(&self.backends)
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&lock(&self.table))
    }

    /// The name of its resolver.
    #[must_use]
    pub fn resolver(&self) -> &'static str {
        match self.settings.resolver {
            Resolver::Static(_) => "static",
            Resolver::Dns(_) => "dns",
            Resolver::K8s(_) => "k8s",
        }
    }

    /// Runs what asks for backends, until the end.
    fn ask(&self, resolver: impl Future<Output = ()> + Send + 'static) {
        let mut backends = self.backends();
        backends.resolver = Some(backends.tasks.spawn(resolver));
    }

    fn warn(&self, what: &str) {
        self.common
            .log
            .warn(&format!("exporter {}: {what}", self.name));
    }

    /// No names were found: those that are known stay.
    fn unresolved(&self, why: &str) {
        self.counts.failed.fetch_add(1, Relaxed);
        self.warn(why);
    }

    /// These are the backends from now on.
    fn resolved(&self, mut names: Vec<String>) {
        self.counts.resolved.fetch_add(1, Relaxed);
        names.sort();
        names.dedup();
        if names.len() > BACKENDS_MAX {
            self.warn(&format!(
                "{BACKENDS_MAX} of {} backends are used",
                names.len()
            ));
            names.truncate(BACKENDS_MAX);
        }
        let mut backends = self.backends();
        if backends.names == names || self.closing.load(Relaxed) {
            return;
        }
        self.counts.updates.fetch_add(1, Relaxed);
        let mut senders = Vec::with_capacity(names.len());
        // One that cannot be started is left out, with a word of it.
        names.retain(|name| match self.backend(&mut backends, name) {
            Ok(sender) => {
                senders.push(sender);
                true
            }
            Err(why) => {
                let line = format!("exporter {}: backend {name}: {why}", self.name);
                self.common.log.error(&line);
                false
            }
        });
        let since_ns = if names.is_empty() { now_unix_ns() } else { 0 };
        self.no_backends_since_ns.store(since_ns, Relaxed);
        let ring = Ring::new(&names);
        *lock(&self.table) = Arc::new(Table { ring, senders });
        self.remove_others(&mut backends, &names);
        backends.names = names;
    }

    /// The way into the queue of a backend, which is started where there is none.
    fn backend(&self, backends: &mut Backends, name: &str) -> Result<Arc<dyn Consumer>, String> {
        let endpoint = resolve::with_port(name);
        if let Some(backend) = backends.running.get(&endpoint) {
            return Ok(backend.entrance());
        }
        let otlp = &self.settings.otlp;
        let attempts = Arc::new(Attempts::default());
        let client = outlet::grpc(
            &otlp.client.to(&endpoint),
            Signal::Traces,
            (&self.common.auth, &self.common.proxies),
        )?;
        let target = exporter::Backend::new(client, &attempts);
        let rules = otlp.queue.as_ref().and_then(BatchRules::of_queue);
        let deps = QueueDeps {
            common: &self.common,
            stored: None,
        };
        let name = format!("{} ({endpoint})", self.name);
        let settings = QueueSettings::of(otlp);
        let (sender, end) = queue::start(&name, (target, Signal::Traces), settings, deps);
        let next = Arc::clone(&sender) as Arc<dyn Consumer>;
        let backend = Backend {
            batcher: rules.map(|rules| batch::start(rules, next)),
            sender,
            end,
            attempts,
        };
        let entrance = backend.entrance();
        backends.running.insert(endpoint, backend);
        Ok(entrance)
    }

    /// Ends the queues of backends that are none of these; what they hold goes on its way again.
    fn remove_others(&self, backends: &mut Backends, names: &[String]) {
        let endpoints: Vec<String> = names.iter().map(|name| resolve::with_port(name)).collect();
        let gone = |endpoint: &String, _: &mut Backend| !endpoints.contains(endpoint);
        let gone: Vec<_> = backends.running.extract_if(gone).collect();
        for (endpoint, backend) in gone {
            let Some(own) = self.own.upgrade() else {
                return;
            };
            let line = format!("exporter {}: backend {endpoint} is gone", self.name);
            self.common.log.info(&line);
            backends.tasks.spawn(async move {
                for (batch, pledge) in backend.leave().await {
                    super::hand_over(&*own, batch, pledge, None).await;
                }
            });
        }
        // Those that have ended need not be remembered.
        while backends.tasks.try_join_next().is_some() {}
    }

    fn take_running(&self) -> Vec<Backend> {
        self.closing.store(true, Relaxed);
        let running = std::mem::take(&mut self.backends().running);
        running.into_values().collect()
    }

    /// Asks for backends no more, and waits for those that are going, until a time.
    async fn end_resolving(&self, until: Instant) {
        if let Some(resolver) = self.backends().resolver.take() {
            resolver.abort();
        }
        // Those that are going hand their rest over before the others end.
        loop {
            let mut tasks = std::mem::take(&mut self.backends().tasks);
            if tasks.is_empty() {
                break;
            }
            // Then nobody takes what they have: they say that it is lost.
            let cut = || self.closing.store(true, Relaxed);
            ended_by(&mut tasks, until, cut).await;
        }
    }
}

impl Consumer for Balancer {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if self.closing.load(Relaxed) {
            return refused(batch, Refusal::Closing);
        }
        let table = self.table();
        if table.senders.is_empty() {
            return refused(batch, self.no_backends());
        }
        let routing = self.settings.routing;
        let parts = match split::split(&batch.bytes, batch.records, &table.ring, routing) {
            Ok(parts) => parts,
            Err(fault) => return refused(batch, Refusal::Malformed(fault.to_string())),
        };
        let mut permits = Permits::default();
        for (number, bytes, records) in parts {
            let part = Batch {
                signal: batch.signal,
                bytes,
                records,
                receipt: batch.receipt.clone(),
                origin: batch.origin.clone(),
            };
            if let Err(refusal) = permits.add(&table.senders[number], part) {
                return refused(batch, self.busy(refusal));
            }
        }
        match permits.nobody() {
            Some(refusal) if self.is_failing() => refused(batch, refusal.clone()),
            // Other backends work, and the next batch may be theirs.
            _ => Ok(Box::new(permits)),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let table = self.table();
        if table.senders.is_empty() {
            return Err(self.no_backends());
        }
        let mut senders = table.senders.iter();
        let room = senders.try_for_each(|sender| sender.room());
        room.map_err(|refusal| self.busy(refusal))
    }

    /// A part of a request waits with parts of others, and not all of it is read when it is cut.
    fn mixes(&self) -> bool {
        true
    }

    fn is_failing(&self) -> bool {
        let table = self.table();
        !table.senders.is_empty() && table.senders.iter().all(|sender| sender.is_failing())
    }
}

impl Balancer {
    fn no_backends(&self) -> Refusal {
        let why = format!("exporter '{}': {NO_BACKENDS}", self.name);
        Refusal::busy(AGAIN, &why.into())
    }

    /// A queue that ends while the balancer does not: its backend is going, and others take what
    /// was its.
    fn busy(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::Closing if !self.closing.load(Relaxed) => {
                let why = format!("exporter '{}': a backend is going", self.name);
                Refusal::busy(AGAIN, &why.into())
            }
            other => other,
        }
    }
}
