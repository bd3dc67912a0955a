//! A pod, as attributes are made of it.

use super::identify::identifier;
use super::image::{Image, with_digest};
use super::object::{Object, Owner};
use super::rules::{Attributes, Field, Rules, without_hash, without_time};
use crate::config::components::processors::k8s_attributes::{From, Source};

/// Facts of a pod.
#[derive(Debug, Default)]
pub struct Pod {
    pub uid: String,
    pub name: String,
    pub namespace: String,
    pub node: String,
    /// Empty where it has none yet, or shares that of its node.
    pub address: String,
    pub has_host_network: bool,
    /// RFC 3339, in UTC.
    pub start: Option<String>,
    /// Nothing is set for it.
    pub is_ignored: bool,
    pub attributes: Attributes,
    /// What `service.name` is where neither labels nor a deployment tell another.
    pub owner: String,
    pub replica_set: String,
    pub stateful_set: String,
    pub daemon_set: String,
    pub job: String,
    pub containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Debug, Default)]
pub struct Container {
    pub name: String,
    /// `container.image.name`
    pub repository: Option<String>,
    /// `container.image.tag`
    pub tag: Option<String>,
    /// `service.version`
    pub version: Option<String>,
    /// None before it was started.
    pub runs: Vec<Run>,
}

/// A run of a container: it is another one after each restart.
#[derive(Debug, Default)]
pub struct Run {
    pub restarts: i64,
    pub id: String,
    pub digest: Option<String>,
}

/// Attributes that containers tell.
const OF_CONTAINERS: &[&str] = &[
    "container.id",
    "container.image.name",
    "container.image.repo_digests",
    "container.image.tag",
    "k8s.container.name",
    "service.instance.id",
    "service.version",
];

impl Pod {
    /// Of an object.
    pub fn new(mut object: Object, rules: &Rules) -> Pod {
        let status = object.take_status();
        let spec = object.spec.take().unwrap_or_default();
        let meta = object.metadata;
        let owned = |kind: &str| {
            let owner = meta.owners.iter().find(|owner| owner.kind == kind);
            owner.map_or(String::new(), |owner| owner.uid.clone())
        };
        let mut pod = Pod {
            node: spec.node.clone(),
            address: status.address.clone(),
            has_host_network: spec.has_host_network,
            start: status.start.clone(),
            is_ignored: rules.ignores(&meta),
            replica_set: owned("ReplicaSet"),
            stateful_set: owned("StatefulSet"),
            daemon_set: owned("DaemonSet"),
            job: owned("Job"),
            ..Pod::default()
        };
        if !pod.is_ignored {
            let attributes = &mut pod.attributes;
            let mut set = |name: &str, value: &str| {
                if rules.sets(name) {
                    attributes.insert(name.to_owned(), value.to_owned());
                }
            };
            set("k8s.pod.name", &meta.name);
            set("k8s.pod.uid", &meta.uid);
            set("k8s.pod.hostname", &spec.hostname);
            set("k8s.pod.ip", &status.address);
            set("k8s.namespace.name", &meta.namespace);
            set("service.namespace", &meta.namespace);
            set("k8s.node.name", &spec.node);
            // The Collector's `k8s.pod.start_time` is that of its creation.
            if let Some(created) = &meta.created {
                set("k8s.pod.start_time", created);
            }
            pod.owner = meta.name.clone();
            for owner in &meta.owners {
                pod.add_owner(owner, rules);
            }
            let attributes = &mut pod.attributes;
            rules.extract(From::Pod, Field::Label, &meta, attributes);
            let labels = meta.labels.iter().flatten();
            let labels: Attributes = labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            for (name, key) in [
                ("service.name", "app.kubernetes.io/name"),
                ("service.name", "app.kubernetes.io/instance"),
                ("service.version", "app.kubernetes.io/version"),
            ] {
                if let Some(value) = labels.get(key).filter(|_| rules.sets(name)) {
                    attributes.insert(name.to_owned(), value.clone());
                }
            }
            rules.extract(From::Pod, Field::Annotation, &meta, attributes);
            if rules.sets_any(OF_CONTAINERS) {
                let specs = spec.containers.into_iter().chain(spec.init_containers);
                for spec in specs {
                    pod.containers
                        .push(Container::new(spec.name, &spec.image, rules));
                }
            }
            for status in status.containers.into_iter().chain(status.init_containers) {
                let known = pod.containers.iter_mut();
                let known = known.into_iter().find(|one| one.name == status.name);
                let Some(container) = known else {
                    continue;
                };
                let id = status
                    .id
                    .split_once("://")
                    .map_or(&*status.id, |(_, id)| id);
                container.runs.push(Run {
                    restarts: status.restarts,
                    id: id.to_owned(),
                    digest: with_digest(&status.image_id).map(str::to_owned),
                });
            }
        }
        pod.uid = meta.uid;
        pod.name = meta.name;
        pod.namespace = meta.namespace;
        pod
    }

    fn add_owner(&mut self, owner: &Owner, rules: &Rules) {
        let kind = match owner.kind.as_str() {
            "ReplicaSet" => "replicaset",
            "DaemonSet" => "daemonset",
            "StatefulSet" => "statefulset",
            "Job" => "job",
            _ => return,
        };
        for (what, value) in [("name", &owner.name), ("uid", &owner.uid)] {
            let name = format!("k8s.{kind}.{what}");
            if rules.sets(&name) {
                self.attributes.insert(name, value.clone());
            }
        }
        self.owner.clone_from(&owner.name);
        let (by_name, made) = match kind {
            "job" => ("k8s.cronjob.name", without_time(&owner.name)),
            "replicaset" if rules.deployment_of_replica_set => {
                ("k8s.deployment.name", without_hash(&owner.name))
            }
            _ => return,
        };
        if let Some(made) = made {
            made.clone_into(&mut self.owner);
            if rules.sets(by_name) {
                self.attributes.insert(by_name.to_owned(), made.to_owned());
            }
        }
    }

    /// Its identifiers, as [`identifier`] writes them.
    pub fn identifiers(&self, associations: &[Vec<Source>]) -> Vec<String> {
        let mut all = Vec::new();
        for sources in associations {
            let ids = self.containers.iter().flat_map(|one| &one.runs);
            let is_id = |source: &Source| matches!(source, Source::Attribute(name) if name == "container.id");
            if sources.iter().any(is_id) {
                all.extend(ids.filter_map(|run| self.identifier(sources, &run.id)));
            } else {
                all.extend(self.identifier(sources, ""));
            }
        }
        let by = |source: Source, value: &str| identifier([(&source, value)]);
        if !self.uid.is_empty() {
            all.push(by(Source::Attribute("k8s.pod.uid".into()), &self.uid));
        }
        if !self.address.is_empty() && !self.has_host_network {
            all.push(by(Source::Connection, &self.address));
            all.push(by(Source::Attribute("k8s.pod.ip".into()), &self.address));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// None where it lacks a source.
    fn identifier(&self, sources: &[Source], container_id: &str) -> Option<String> {
        let mut parts = Vec::new();
        for source in sources {
            let value = match source {
                // Pods in the network of their node have all the same address.
                Source::Connection if self.has_host_network => "",
                Source::Connection => &self.address,
                Source::Attribute(name) => match name.as_str() {
                    "k8s.namespace.name" => &self.namespace,
                    "k8s.pod.name" => &self.name,
                    "k8s.pod.uid" => &self.uid,
                    "host.name" | "k8s.pod.ip" => &self.address,
                    "container.id" => container_id,
                    name => self.attributes.get(name).map_or("", String::as_str),
                },
            };
            if value.is_empty() {
                return None;
            }
            parts.push((source, value));
        }
        (!parts.is_empty()).then(|| identifier(parts))
    }
}

impl Container {
    fn new(name: String, image: &str, rules: &Rules) -> Container {
        let mut container = Container {
            name,
            ..Container::default()
        };
        let Some(image) = Image::parse(image) else {
            return container;
        };
        if rules.sets("container.image.name") {
            container.repository = Some(image.repository.to_owned());
        }
        if rules.sets("container.image.tag") {
            container.tag = Some(image.tag.unwrap_or("latest").to_owned());
        }
        if rules.sets("service.version") {
            container.version = image.version();
        }
        container
    }

    /// The run after so many restarts; without a number the last one.
    pub fn run(&self, restarts: Option<i64>) -> Option<&Run> {
        match restarts {
            Some(restarts) => self.runs.iter().find(|run| run.restarts == restarts),
            None => self.runs.iter().max_by_key(|run| run.restarts),
        }
    }
}
