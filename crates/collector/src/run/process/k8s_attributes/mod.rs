//! `k8s_attributes`: attributes of resources that a Kubernetes cluster tells of the pods they come
//! from. What the cluster tells is watched once for all pipelines that have the same processor.

mod cluster;
mod identify;
mod image;
mod kind;
mod object;
mod pod;
mod rules;
#[cfg(test)]
mod tests;
mod watch;

pub use cluster::Cluster;
pub use kind::Kind;
pub use rules::Rules;
pub use watch::Watched;

use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use otlp::scan::{Malformed, RESOURCE_ATTRIBUTES};
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::cluster::set;
use self::identify::told;
use super::edit::{Edited, List, edit_resources, hand_on, room_for};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::k8s_attributes::{K8sAttributes as Settings, Source};
use crate::run::Log;
use crate::run::consume::{Consumer, Pass, Refusal, Refused, Through, refused};
use crate::run::data::Batch;
use crate::run::k8s::{Pod as Surroundings, Watcher};
use crate::run::metrics::{self, Sheet};
use crate::run::origin::Origin;
use crate::run::part::{Part, PartName};

/// From one look at pods that are gone to the next.
const EXPIRE: Duration = Duration::from_secs(10);
/// Time after which a refused sender is to send again.
const RETRY: Duration = Duration::from_secs(1);

/// See the module.
pub struct K8sAttributes {
    /// None in passthrough mode: only the client's address is set.
    watching: Option<Arc<Watching>>,
    associations: Vec<Vec<Source>>,
    waits: bool,
    /// Told to those who are refused.
    why: Arc<str>,
    next: Arc<dyn Consumer>,
}

/// A cluster, and the tasks that watch it, which end with it.
pub struct Watching {
    cluster: Arc<Cluster>,
    _tasks: JoinSet<()>,
}

/// A cluster that is watched already, with its processor and its collector.
struct Shared {
    collector: usize,
    id: String,
    watching: Weak<Watching>,
}

/// Clusters that are watched, of all collectors of the process.
static SHARED: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let id = deps.id.to_string();
        let mut watching = None;
        if !self.passthrough {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            shared.retain(|one| one.watching.strong_count() > 0);
            let collector = Arc::as_ptr(&deps.accounts[0]).addr();
            let same = |one: &&Shared| one.collector == collector && one.id == id;
            let known = shared.iter().find(same);
            watching = known.and_then(|one| one.watching.upgrade());
            if watching.is_none() {
                let log = &deps.setup.log;
                let new = Arc::new(Watching::start(self, &id, &Surroundings::own(), log)?);
                shared.push(Shared {
                    collector,
                    id: id.clone(),
                    watching: Arc::downgrade(&new),
                });
                deps.register(Arc::clone(&new) as Arc<dyn Part>);
                watching = Some(new);
            }
        }
        Ok(Arc::new(K8sAttributes::new(self, &id, watching, next)))
    }
}

impl Watching {
    /// Starts watches. Called within the runtime.
    ///
    /// # Errors
    /// The pod lacks something, or an expression cannot be compiled.
    pub fn start(
        settings: &Settings,
        id: &str,
        pod: &Surroundings,
        log: &Log,
    ) -> Result<Watching, String> {
        let grace = Duration::from_nanos(settings.delete_grace_ns);
        let cluster = Arc::new(Cluster::new(Rules::new(settings)?, grace));
        let who = format!("processor '{id}'");
        let mut tasks = JoinSet::new();
        let kinds = Kind::ALL.into_iter();
        let kinds: Vec<Kind> = kinds
            .filter(|kind| kind.is_needed(&cluster.rules))
            .collect();
        cluster.missing.store(kinds.len(), Relaxed);
        let mut watchers = Vec::new();
        for kind in kinds {
            let question = kind.question(&settings.filter, &cluster.rules);
            let own = Arc::downgrade(&cluster);
            let objects = Watched::new(kind, own, who.clone(), log.clone());
            watchers.push(Watcher::new(question, objects, pod)?);
        }
        for watcher in watchers {
            tasks.spawn(watcher.run());
        }
        let own = Arc::downgrade(&cluster);
        tasks.spawn(async move {
            while let Some(cluster) = own.upgrade() {
                cluster.expire();
                drop(cluster);
                sleep(EXPIRE).await;
            }
        });
        if settings.wait_for_metadata {
            let (wait, log) = (Duration::from_nanos(settings.wait_ns), log.clone());
            let own = Arc::downgrade(&cluster);
            tasks.spawn(async move {
                sleep(wait).await;
                let missing = own.upgrade().map_or(0, |own| own.missing.load(Relaxed));
                if missing > 0 {
                    let line = format!("{who}: the pods are not known after {wait:?}: all data are refused until they are");
                    log.error(&line);
                }
            });
        }
        Ok(Watching {
            cluster,
            _tasks: tasks,
        })
    }
}

impl Part for Watching {
    /// By the names that a Prometheus reader makes of `otelcol_otelsvc_k8s_pod_added` and its like.
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let labels = &[("processor", name.id.as_str())];
        let counts = &self.cluster.counts;
        for kind in Kind::ALL {
            if !kind.is_needed(&self.cluster.rules) {
                continue;
            }
            let values = &counts.events[kind as usize];
            for (what, value) in ["added", "updated", "deleted"].iter().zip(values) {
                let metric = format!("otelcol_otelsvc_k8s_{}_{what}", kind.name());
                sheet.about(metrics::Kind::Counter, &metric, "1", "as in the Collector");
                sheet.point(labels, value.load(Relaxed));
            }
        }
        let miss = "otelcol_otelsvc_k8s_ip_lookup_miss";
        sheet.about(metrics::Kind::Counter, miss, "1", "as in the Collector");
        sheet.point(labels, counts.misses.load(Relaxed));
        let size = "otelcol_otelsvc_k8s_pod_table_size";
        sheet.about(metrics::Kind::Gauge, size, "1", "as in the Collector");
        sheet.point(labels, self.cluster.pods_len() as u64);
    }
}

impl K8sAttributes {
    fn new(
        settings: &Settings,
        id: &str,
        watching: Option<Arc<Watching>>,
        next: Arc<dyn Consumer>,
    ) -> K8sAttributes {
        K8sAttributes {
            watching,
            associations: settings.associations.clone(),
            waits: settings.wait_for_metadata,
            why: format!("processor '{id}': the pods are not known yet").into(),
            next,
        }
    }

    /// What a request of any signal becomes that came from somewhere.
    ///
    /// # Errors
    /// It is malformed.
    fn edit(&self, request: &[u8], origin: Option<&Origin>) -> Result<Edited, Malformed> {
        let address = origin.and_then(Origin::address);
        let mut out = room_for(request);
        let outcome = edit_resources(request, &mut out, &mut |resource, out| {
            let mut list = List::default();
            list.read(resource, RESOURCE_ATTRIBUTES)?;
            self.apply(&mut list, address);
            Ok(list.write(resource, RESOURCE_ATTRIBUTES, out))
        })?;
        Ok(Edited::new(outcome, out, 0))
    }

    fn apply(&self, list: &mut List<'_>, address: Option<IpAddr>) {
        if let Some(watching) = &self.watching {
            return watching.cluster.apply(list, address);
        }
        let told = told(&self.associations, list, address);
        if let Some(address) = told.and_then(|told| told.address) {
            set(list, "k8s.pod.ip", &address);
        }
    }
}

impl Through for K8sAttributes {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        if let Err(refusal) = self.open() {
            return refused(batch, refusal);
        }
        let edited = self.edit(&batch.bytes, batch.origin.as_deref());
        hand_on::<P>(&self.next, batch, edited)
    }

    fn open(&self) -> Result<(), Refusal> {
        let is_missing = |watching: &Arc<Watching>| watching.cluster.missing.load(Relaxed) > 0;
        if self.waits && self.watching.as_ref().is_some_and(is_missing) {
            return Err(Refusal::busy(RETRY, &self.why));
        }
        Ok(())
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
