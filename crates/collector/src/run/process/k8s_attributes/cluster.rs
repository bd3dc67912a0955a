//! What is known of a cluster: pods, and what they belong to.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use otlp::scan::Any;
use otlp::write;
use tokio::time::Instant;

use super::identify::{text, told};
use super::kind::{Kind, SYSTEM_NAMESPACE};
use super::object::Object;
use super::pod::{Container, Pod};
use super::rules::{Attributes, Rules};
use crate::run::k8s::Fault;
use crate::run::process::edit::{List, encoded_text};

/// Objects of one kind that are kept.
const OBJECTS_MAX: usize = 200_000;
/// Identifiers of pods that are gone and that are kept all the same.
const GONE_MAX: usize = 200_000;

/// See the module. Watches write it, and resources are looked up in it.
pub struct Cluster {
    /// Rules by which attributes are made of its objects.
    pub rules: Rules,
    tables: RwLock<Tables>,
    /// Kinds that are wanted and whose first list is not there yet.
    pub missing: AtomicUsize,
    /// For metrics.
    pub counts: Counts,
    grace: Duration,
}

/// For metrics.
#[derive(Default)]
pub struct Counts {
    /// Added, updated, deleted; by kind.
    pub events: [[AtomicU64; 3]; Kind::ALL.len()],
    /// Resources whose pod is not known.
    pub misses: AtomicU64,
}

#[derive(Default)]
struct Tables {
    /// By what tells them.
    pods: HashMap<String, Arc<Pod>>,
    /// Identifiers of a pod, by its `uid`.
    by_uid: HashMap<String, Vec<String>>,
    /// Identifiers of pods that are gone, with the time since when.
    gone: VecDeque<(Instant, String, String)>,
    /// Other objects by their names or `uid`s; by kind.
    others: [HashMap<String, Arc<Other>>; Kind::ALL.len()],
}

/// An object that is no pod.
#[derive(Debug, Default)]
struct Other {
    uid: String,
    attributes: Attributes,
    /// Name and `uid` of the object that made it.
    owner: Option<(String, String)>,
}

impl Cluster {
    /// One of which nothing is known.
    pub fn new(rules: Rules, grace: Duration) -> Cluster {
        Cluster {
            rules,
            tables: RwLock::default(),
            missing: AtomicUsize::new(0),
            counts: Counts::default(),
            grace,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, kind: Kind, what: usize) {
        self.counts.events[kind as usize][what].fetch_add(1, Relaxed);
    }

    /// Identifiers of pods.
    pub fn pods_len(&self) -> usize {
        self.read().pods.len()
    }

    /// Takes an object that is new, or other than before.
    ///
    /// # Errors
    /// There are too many.
    pub fn put(&self, kind: Kind, object: Object) -> Result<(), Fault> {
        let is_new = match kind {
            Kind::Pod => self.put_pod(Pod::new(object, &self.rules))?,
            _ => self.put_other(kind, &object)?,
        };
        self.count(kind, usize::from(!is_new));
        Ok(())
    }

    fn put_pod(&self, pod: Pod) -> Result<bool, Fault> {
        let identifiers = pod.identifiers(&self.rules.associations);
        let pod = Arc::new(pod);
        let mut tables = self.write();
        let tables = &mut *tables;
        if tables.by_uid.len() >= OBJECTS_MAX && !tables.by_uid.contains_key(&pod.uid) {
            return Err(too_many(Kind::Pod));
        }
        for identifier in &identifiers {
            let other = tables.pods.get(identifier);
            // The address of a pod that has ended may be that of a newer one already.
            let is_newer = other.is_some_and(|other| {
                matches!((&pod.start, &other.start), (Some(own), Some(other)) if own < other)
            });
            if !is_newer {
                tables.pods.insert(identifier.clone(), Arc::clone(&pod));
            }
        }
        let before = tables.by_uid.insert(pod.uid.clone(), identifiers);
        let is_new = before.is_none();
        let now = Instant::now();
        let kept = tables.by_uid.get(&pod.uid).map_or(&[][..], Vec::as_slice);
        for old in before
            .into_iter()
            .flatten()
            .filter(|old| !kept.contains(old))
        {
            tables.gone.push_back((now, old, pod.uid.clone()));
        }
        Ok(is_new)
    }

    fn put_other(&self, kind: Kind, object: &Object) -> Result<bool, Fault> {
        let meta = &object.metadata;
        let key = kind.key(meta);
        let owner = meta.owners.iter().find(|owner| {
            Some(owner.kind.as_str()) == kind.owner() && owner.controller == Some(true)
        });
        let other = Other {
            uid: meta.uid.clone(),
            attributes: { kind.from() }
                .map_or(Attributes::new(), |from| self.rules.all(from, object)),
            owner: owner.map(|owner| (owner.name.clone(), owner.uid.clone())),
        };
        let mut tables = self.write();
        let all = &mut tables.others[kind as usize];
        if all.len() >= OBJECTS_MAX && !all.contains_key(key) {
            return Err(too_many(kind));
        }
        Ok(all.insert(key.clone(), Arc::new(other)).is_none())
    }

    /// Forgets an object; a pod later.
    pub fn remove(&self, kind: Kind, object: &Object) {
        let meta = &object.metadata;
        self.count(kind, 2);
        let mut tables = self.write();
        match kind {
            Kind::Pod => tables.pod_is_gone(&meta.uid),
            _ => drop(tables.others[kind as usize].remove(kind.key(meta))),
        }
    }

    /// A list was whole: what it did not have is gone. `seen` are names or `uid`s.
    pub fn keep(&self, kind: Kind, seen: &HashSet<String>) {
        let mut tables = self.write();
        if kind != Kind::Pod {
            let all = &mut tables.others[kind as usize];
            let before = all.len();
            all.retain(|key, _| seen.contains(key));
            let gone = (before - all.len()) as u64;
            self.counts.events[kind as usize][2].fetch_add(gone, Relaxed);
            return;
        }
        let gone = tables.by_uid.keys().filter(|uid| !seen.contains(*uid));
        let gone: Vec<String> = gone.cloned().collect();
        for uid in gone {
            self.count(kind, 2);
            tables.pod_is_gone(&uid);
        }
    }

    /// Forgets pods that have been gone for long enough.
    pub fn expire(&self) {
        self.write().expire(self.grace);
    }

    /// Sets the attributes of a resource that came from an address.
    pub fn apply(&self, resource: &mut List<'_>, address: Option<IpAddr>) {
        let told = told(&self.rules.associations, resource, address);
        if let Some(address) = told.as_ref().and_then(|told| told.address.as_ref())
            && self.rules.sets("k8s.pod.ip")
        {
            set(resource, "k8s.pod.ip", address);
        }
        let tables = self.read();
        let pod = told.and_then(|told| tables.pods.get(&told.identifier));
        let pod = pod.filter(|pod| !pod.is_ignored);
        match pod {
            Some(pod) => self.apply_pod(&tables, pod, resource),
            None => drop(self.counts.misses.fetch_add(1, Relaxed)),
        }
        self.apply_owners(&tables, pod.map(|pod| &**pod), resource);
    }

    fn apply_pod(&self, tables: &Tables, pod: &Pod, resource: &mut List<'_>) {
        for (name, value) in &pod.attributes {
            set(resource, name, value);
        }
        let rules = &self.rules;
        let mut late = |name: &str, value: &str| {
            if rules.sets(name) && !value.is_empty() && !pod.attributes.contains_key(name) {
                set(resource, name, value);
            }
        };
        let deployment = { tables.others[Kind::ReplicaSet as usize].get(&pod.replica_set) }
            .and_then(|set| set.owner.as_ref());
        if let Some((name, uid)) = deployment {
            if !rules.deployment_of_replica_set {
                late("k8s.deployment.name", name);
                late("service.name", name);
            }
            late("k8s.deployment.uid", uid);
        }
        late("service.name", &pod.owner);
        let cron_job =
            { tables.others[Kind::Job as usize].get(&pod.job) }.and_then(|job| job.owner.as_ref());
        if let Some((_, uid)) = cron_job {
            late("k8s.cronjob.uid", uid);
        }
        if let Some(system) = tables.others[Kind::Namespace as usize].get(SYSTEM_NAMESPACE) {
            late("k8s.cluster.uid", &system.uid);
        }
        self.apply_container(pod, resource);
    }

    fn apply_container(&self, pod: &Pod, resource: &mut List<'_>) {
        let Some(container) = container(pod, resource) else {
            return;
        };
        let rules = &self.rules;
        if rules.sets("k8s.container.name") {
            set(resource, "k8s.container.name", &container.name);
        }
        let told = [
            ("container.image.name", &container.repository),
            ("container.image.tag", &container.tag),
            ("service.version", &container.version),
        ];
        for (name, value) in told {
            if let Some(value) = value {
                set(resource, name, value);
            }
        }
        if rules.sets("service.instance.id") {
            let instance = [&*pod.namespace, &*pod.name, &*container.name].join(".");
            set(resource, "service.instance.id", &instance);
        }
        let restarts = match resource.get(b"k8s.container.restart_count") {
            None => None,
            Some(Any::Int(count)) => Some(count),
            Some(Any::Text(text)) => match str::from_utf8(text).map(str::parse) {
                Ok(Ok(count)) => Some(count),
                _ => return,
            },
            Some(_) => return,
        };
        let Some(run) = container.run(restarts) else {
            return;
        };
        if rules.sets("container.id") && !run.id.is_empty() && is_missing(resource, "container.id")
        {
            set(resource, "container.id", &run.id);
        }
        let digests = "container.image.repo_digests";
        if let Some(digest) = &run.digest
            && rules.sets(digests)
            && is_missing(resource, digests)
        {
            let list = resource.make(|out| {
                write::message(out, 5, |out| {
                    write::message(out, 1, |out| encoded_text(digest.as_bytes(), out));
                });
            });
            resource.put(digests.as_bytes(), list);
        }
    }

    /// What the namespace, the node and other owners of a pod tell, or those that the resource names.
    fn apply_owners(&self, tables: &Tables, pod: Option<&Pod>, resource: &mut List<'_>) {
        let rules = &self.rules;
        let named = |of_pod: &str, resource: &List<'_>, name: &str| {
            if of_pod.is_empty() {
                text(resource, name).unwrap_or_default()
            } else {
                of_pod.to_owned()
            }
        };
        let deployment = pod.and_then(|pod| {
            let set = tables.others[Kind::ReplicaSet as usize].get(&pod.replica_set)?;
            set.owner.as_ref().map(|(_, uid)| uid.as_str())
        });
        let of_pod = |part: fn(&Pod) -> &String| pod.map_or("", |pod| part(pod));
        let owners = [
            (
                Kind::Namespace,
                of_pod(|pod| &pod.namespace),
                "k8s.namespace.name",
            ),
            (Kind::Node, of_pod(|pod| &pod.node), "k8s.node.name"),
            (
                Kind::Deployment,
                deployment.unwrap_or_default(),
                "k8s.deployment.uid",
            ),
            (
                Kind::StatefulSet,
                of_pod(|pod| &pod.stateful_set),
                "k8s.statefulset.uid",
            ),
            (
                Kind::DaemonSet,
                of_pod(|pod| &pod.daemon_set),
                "k8s.daemonset.uid",
            ),
            (Kind::Job, of_pod(|pod| &pod.job), "k8s.job.uid"),
        ];
        for (kind, key, name) in owners {
            let is_wanted =
                kind.is_needed(rules) || kind == Kind::Namespace && rules.sets("service.namespace");
            if !is_wanted {
                continue;
            }
            let key = named(key, resource, name);
            if kind == Kind::Namespace && rules.sets("service.namespace") && !key.is_empty() {
                set(resource, "service.namespace", &key);
            }
            let Some(other) = tables.others[kind as usize].get(&key) else {
                continue;
            };
            for (name, value) in &other.attributes {
                set(resource, name, value);
            }
            if kind == Kind::Node && rules.sets("k8s.node.uid") && !other.uid.is_empty() {
                set(resource, "k8s.node.uid", &other.uid);
            }
        }
    }
}

impl Tables {
    fn pod_is_gone(&mut self, uid: &str) {
        for identifier in self.by_uid.remove(uid).into_iter().flatten() {
            self.gone_later(identifier, uid);
        }
    }

    fn gone_later(&mut self, identifier: String, uid: &str) {
        if self.gone.len() >= GONE_MAX {
            self.forget_first();
        }
        let now = Instant::now();
        self.gone.push_back((now, identifier, uid.to_owned()));
    }

    fn expire(&mut self, grace: Duration) {
        let now = Instant::now();
        let is_over = |(since, ..): &(Instant, String, String)| now.duration_since(*since) >= grace;
        while self.gone.front().is_some_and(is_over) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((_, identifier, uid)) = self.gone.pop_front() else {
            return;
        };
        // It may tell another pod by now, or the same one again.
        let is_same = { self.pods.get(&identifier) }.is_some_and(|pod| pod.uid == uid);
        let is_back = { self.by_uid.get(&uid) }.is_some_and(|all| all.contains(&identifier));
        if is_same && !is_back {
            self.pods.remove(&identifier);
        }
    }
}

/// The container that a resource names, or the only one.
fn container<'p>(pod: &'p Pod, resource: &List<'_>) -> Option<&'p Container> {
    let mut all = pod.containers.iter();
    if let Some(name) = text(resource, "k8s.container.name") {
        return all.find(|container| container.name == name);
    }
    let has = |container: &&Container, id: &str| container.runs.iter().any(|run| run.id == id);
    if let Some(id) = text(resource, "container.id") {
        return all.find(|container| has(container, &id));
    }
    let ids = pod.containers.iter().flat_map(|one| &one.runs);
    let ids: HashSet<&str> = ids.map(|run| run.id.as_str()).collect();
    if ids.len() == 1 {
        return all.find(|container| !container.runs.is_empty());
    }
    (pod.containers.len() == 1).then(|| all.next()).flatten()
}

/// Sets an attribute that a resource lacks, or that is empty.
pub fn set(resource: &mut List<'_>, name: &str, value: &str) {
    let is_there = |any: Any<'_>| !matches!(any, Any::Empty | Any::Text(b""));
    if !resource.get(name.as_bytes()).is_some_and(is_there) {
        let value = resource.make_text(value.as_bytes());
        resource.put(name.as_bytes(), value);
    }
}

fn is_missing(resource: &List<'_>, name: &str) -> bool {
    resource.find(name.as_bytes()).is_none()
}

fn too_many(kind: Kind) -> Fault {
    Fault::Wrong(format!("more than {OBJECTS_MAX} {}", kind.plural()))
}
