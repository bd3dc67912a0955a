//! The kinds of objects that are watched.

use syntax::escape::{escaped, is_unreserved};

use super::object::Metadata;
use super::rules::Rules;
use crate::config::components::processors::k8s_attributes::{Filter, From};
use crate::run::k8s::Question;

/// Objects of a page.
const PAGE: u32 = 250;
/// A watch ends after this time, in seconds.
const WATCH_S: u64 = 300;
/// Kinds of which only the metadata are wanted: the server leaves out what else they have.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `pods`
    Pod,
    /// `namespaces`
    Namespace,
    /// `nodes`
    Node,
    /// `replicasets`
    ReplicaSet,
    /// `deployments`
    Deployment,
    /// `statefulsets`
    StatefulSet,
    /// `daemonsets`
    DaemonSet,
    /// `jobs`
    Job,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Pod,
        Kind::Namespace,
        Kind::Node,
        Kind::ReplicaSet,
        Kind::Deployment,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Job,
    ];

    /// As metrics name it, and where its collection is: the group and the name.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Kind::Pod => ("pod", "/api/v1", "pods"),
            Kind::Namespace => ("namespace", "/api/v1", "namespaces"),
            Kind::Node => ("node", "/api/v1", "nodes"),
            Kind::ReplicaSet => ("replicaset", "/apis/apps/v1", "replicasets"),
            Kind::Deployment => ("deployment", "/apis/apps/v1", "deployments"),
            Kind::StatefulSet => ("statefulset", "/apis/apps/v1", "statefulsets"),
            Kind::DaemonSet => ("daemonset", "/apis/apps/v1", "daemonsets"),
            Kind::Job => ("job", "/apis/batch/v1", "jobs"),
        }
    }

    /// As metrics name it.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// As the API names many.
    pub fn plural(self) -> &'static str {
        self.names().2
    }

    /// Whose labels and annotations are those of its objects; none: of nothing.
    pub fn from(self) -> Option<From> {
        Some(match self {
            Kind::Pod => From::Pod,
            Kind::Namespace => From::Namespace,
            Kind::Node => From::Node,
            Kind::ReplicaSet => return None,
            Kind::Deployment => From::Deployment,
            Kind::StatefulSet => From::StatefulSet,
            Kind::DaemonSet => From::DaemonSet,
            Kind::Job => From::Job,
        })
    }

    /// The kind of the owner that made its objects, where that matters.
    pub fn owner(self) -> Option<&'static str> {
        match self {
            Kind::ReplicaSet => Some("Deployment"),
            Kind::Job => Some("CronJob"),
            _ => None,
        }
    }

    /// Whether its objects are in no namespace.
    fn is_of_cluster(self) -> bool {
        matches!(self, Kind::Namespace | Kind::Node)
    }

    /// Key of an object in the tables: the name where that is unique in the cluster, else the `uid`.
    pub fn key(self, object: &Metadata) -> &String {
        if self.is_of_cluster() {
            &object.name
        } else {
            &object.uid
        }
    }

    /// Whether the rules need it.
    pub fn is_needed(self, rules: &Rules) -> bool {
        let by_label = self.from().is_some_and(|from| rules.reads(from));
        by_label
            || match self {
                Kind::Pod => true,
                Kind::Namespace => rules.sets("k8s.cluster.uid"),
                Kind::Node => rules.sets("k8s.node.uid"),
                Kind::ReplicaSet => {
                    let by_name = rules.sets_any(&["k8s.deployment.name", "service.name"])
                        && !rules.deployment_of_replica_set;
                    by_name || rules.sets("k8s.deployment.uid") || rules.reads(From::Deployment)
                }
                Kind::Job => rules.sets("k8s.cronjob.uid"),
                Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => false,
            }
    }

    /// Request to the API server.
    pub fn question(self, filter: &Filter, rules: &Rules) -> Question {
        let (_, group, name) = self.names();
        let path = match &filter.namespace {
            Some(namespace) if !self.is_of_cluster() => {
                format!("{group}/namespaces/{namespace}/{name}")
            }
            _ => format!("{group}/{name}"),
        };
        let (mut fields, mut labels) = (Vec::new(), Vec::new());
        match self {
            Kind::Pod => {
                fields.clone_from(&filter.fields);
                labels.clone_from(&filter.labels);
                fields.extend(
                    filter
                        .node
                        .iter()
                        .map(|node| format!("spec.nodeName={node}")),
                );
            }
            Kind::Node => {
                fields.extend(
                    filter
                        .node
                        .iter()
                        .map(|node| format!("metadata.name={node}")),
                );
            }
            Kind::Namespace if !rules.reads(From::Namespace) => {
                fields.push(format!("metadata.name={SYSTEM_NAMESPACE}"));
            }
            _ => {}
        }
        let selectors = [("labelSelector", labels), ("fieldSelector", fields)];
        let selectors = selectors.iter().filter(|(_, all)| !all.is_empty());
        Question {
            path,
            selectors: selectors
                .map(|(name, all)| format!("{name}={}", escaped(&all.join(","), is_unreserved)))
                .collect(),
            timeout_s: WATCH_S,
            page: Some(PAGE),
            accept: match self {
                Kind::Pod => "application/json",
                _ => METADATA,
            },
        }
    }
}

/// The namespace whose `uid` is that of the cluster.
pub const SYSTEM_NAMESPACE: &str = "kube-system";
