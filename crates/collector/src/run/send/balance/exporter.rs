//! The exporter from its settings; its backends as the collector sees them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use export::client::Outcome;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Attempts, Balancer, NO_BACKENDS, metrics, start, tier};
use crate::config::Signal;
use crate::config::components::exporters::load_balancing::LoadBalancingExporter;
use crate::run::consume::Consumer;
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::part::Ended;
use crate::run::send::outlet::Outlet;
use crate::run::send::{
    BackendView, Backends, ExporterDeps, FailingBackends, QueueSettings, StartExporter, Started,
    Target, hand_over,
};
use crate::run::tasks::ended;

impl StartExporter for LoadBalancingExporter {
    /// Without a queue of its own, data go to the queues of the backends at once.
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let balancer = start(deps.name, self, &deps.of(Signal::Traces))?;
        let mut started = match &self.own {
            Some(_) => {
                let settings = || QueueSettings::of(self);
                deps.queues(settings, |_, _| Ok(Tier(Arc::clone(&balancer))))?
            }
            None => {
                let entrance = |signal| (signal, Arc::clone(&balancer) as Arc<dyn Consumer>);
                let entrances = deps.signals.into_iter().map(entrance);
                let mut started = Started::default();
                started.entrances.extend(entrances);
                started
            }
        };
        started.backends = Some(balancer);
        Ok(started)
    }
}

/// The backends behind a queue of the exporter's own.
struct Tier(Arc<Balancer>);

impl Target for Tier {
    type Prepared = Option<tier::Remains>;

    async fn send(&self, batch: &Batch, prepared: &mut Option<tier::Remains>) -> Outcome {
        self.0.attempt(batch, prepared).await
    }

    fn records_left(batch: &Batch, prepared: &Option<tier::Remains>) -> u64 {
        let left = prepared.as_ref().map(|remains| remains.records);
        left.unwrap_or(batch.records)
    }
}

/// One of the backends, and what became of what was sent to it.
pub(super) struct Backend {
    outlet: Outlet,
    attempts: Arc<Attempts>,
}

impl Backend {
    pub(super) fn new(outlet: Outlet, attempts: &Arc<Attempts>) -> Backend {
        Backend {
            outlet,
            attempts: Arc::clone(attempts),
        }
    }
}

impl Target for Backend {
    type Prepared = <Outlet as Target>::Prepared;

    async fn send(&self, batch: &Batch, prepared: &mut Self::Prepared) -> Outcome {
        let begin = Instant::now();
        let outcome = self.outlet.send(batch, prepared).await;
        let is_success = matches!(outcome, Outcome::Taken { .. });
        self.attempts.add(begin.elapsed(), is_success);
        outcome
    }

    fn server(&self) -> Option<&(String, String)> {
        self.outlet.server()
    }
}

impl Backends for Balancer {
    fn view(&self) -> Vec<BackendView> {
        let name = { self.name.split_once('/') }.map(|(_, name)| format!("{name}_"));
        let name = name.unwrap_or_default();
        let backends = self.backends();
        let running = backends.running.iter();
        let running = running.map(|(endpoint, backend)| BackendView {
            endpoint: endpoint.clone(),
            exporter: format!("otlp/{name}{endpoint}"),
            signal: Signal::Traces,
            sender: Arc::clone(&backend.sender),
            attempts: Arc::clone(&backend.attempts),
        });
        let mut view: Vec<_> = running.collect();
        view.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        view
    }

    fn failing(&self) -> Option<FailingBackends> {
        let since_ns = self.no_backends_since_ns.load(Relaxed);
        if since_ns > 0 {
            return Some(FailingBackends {
                since_ns,
                why: NO_BACKENDS.to_owned(),
                are_all: true,
            });
        }
        let backends = self.view();
        let failing = backends.iter().filter_map(|backend| {
            let failing = backend.sender.failing()?;
            Some((&backend.endpoint, failing))
        });
        let failing: Vec<_> = failing.collect();
        let (endpoint, first) = failing.first()?;
        Some(FailingBackends {
            since_ns: { failing.iter().map(|(_, failing)| failing.since_ns) }.max()?,
            why: format!(
                "{} of {} backends fail, such as {endpoint}: {}",
                failing.len(),
                backends.len(),
                first.why
            ),
            are_all: failing.len() == backends.len(),
        })
    }

    fn describe(&self, exporter: &str, sheet: &mut Sheet) {
        metrics::write(exporter, self, sheet);
    }

    fn end(&self, until: Instant) -> Ended<'_> {
        Box::pin(async move {
            self.end_resolving(until).await;
            let mut ends = JoinSet::new();
            for backend in self.take_running() {
                ends.spawn(backend.end(until));
            }
            ended(&mut ends).await;
        })
    }

    fn hand_to(&self, heir: Arc<dyn Backends>, until: Instant) -> Ended<'_> {
        Box::pin(async move {
            self.end_resolving(until).await;
            let mut ends = JoinSet::new();
            for backend in self.take_running() {
                let heir = Arc::clone(&heir);
                ends.spawn(async move {
                    for (batch, pledge) in backend.leave().await {
                        hand_over(&*heir, batch, pledge, Some(until)).await;
                    }
                });
            }
            ended(&mut ends).await;
        })
    }
}
