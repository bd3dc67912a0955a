//! Objects of a cluster as the API server writes them (Kubernetes API reference, `v1` and `apps/v1`),
//! of what matters here.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::run::k8s::at_most;

/// Objects of a page.
const ITEMS_MAX: usize = 10_000;
/// Containers of a pod, and owners of an object.
const PARTS_MAX: usize = 1024;

/// A page of a list.
#[derive(Deserialize)]
pub struct Page {
    pub metadata: Metadata,
    #[serde(deserialize_with = "at_most::<_, _, ITEMS_MAX>")]
    pub items: Vec<Object>,
}

/// An object of any kind, or the status that an error is.
#[derive(Default, Deserialize)]
pub struct Object {
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Option<Spec>,
    #[serde(default)]
    status: Option<StatusOr>,
    pub code: Option<u16>,
    pub message: Option<String>,
}

impl Object {
    /// The status of a pod.
    pub fn take_status(&mut self) -> Status {
        match self.status.take() {
            Some(StatusOr::Pod(status)) => *status,
            _ => Status::default(),
        }
    }
}

/// A pod's status; that of an error is a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum StatusOr {
    Pod(Box<Status>),
    Other(serde::de::IgnoredAny),
}

#[derive(Default, Deserialize)]
pub struct Metadata {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub uid: String,
    #[serde(rename = "resourceVersion")]
    pub version: Option<String>,
    /// Of a list: where the next page begins.
    #[serde(rename = "continue")]
    pub next: Option<String>,
    #[serde(rename = "creationTimestamp")]
    pub created: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    #[serde(
        rename = "ownerReferences",
        default,
        deserialize_with = "at_most::<_, _, PARTS_MAX>"
    )]
    pub owners: Vec<Owner>,
}

#[derive(Clone, Deserialize)]
pub struct Owner {
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub uid: String,
    pub controller: Option<bool>,
}

/// `spec` of a pod.
#[derive(Default, Deserialize)]
pub struct Spec {
    #[serde(rename = "nodeName", default)]
    pub node: String,
    #[serde(default)]
    pub hostname: String,
    #[serde(rename = "hostNetwork", default)]
    pub has_host_network: bool,
    #[serde(default, deserialize_with = "at_most::<_, _, PARTS_MAX>")]
    pub containers: Vec<Container>,
    #[serde(
        rename = "initContainers",
        default,
        deserialize_with = "at_most::<_, _, PARTS_MAX>"
    )]
    pub init_containers: Vec<Container>,
}

#[derive(Deserialize)]
pub struct Container {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub image: String,
}

/// `status` of a pod.
#[derive(Default, Deserialize)]
pub struct Status {
    #[serde(rename = "podIP", default)]
    pub address: String,
    #[serde(rename = "startTime")]
    pub start: Option<String>,
    #[serde(
        rename = "containerStatuses",
        default,
        deserialize_with = "at_most::<_, _, PARTS_MAX>"
    )]
    pub containers: Vec<ContainerStatus>,
    #[serde(
        rename = "initContainerStatuses",
        default,
        deserialize_with = "at_most::<_, _, PARTS_MAX>"
    )]
    pub init_containers: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
pub struct ContainerStatus {
    #[serde(default)]
    pub name: String,
    #[serde(rename = "containerID", default)]
    pub id: String,
    #[serde(rename = "imageID", default)]
    pub image_id: String,
    #[serde(rename = "restartCount", default)]
    pub restarts: i64,
}
