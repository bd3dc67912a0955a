//! The endpoints of a Kubernetes service.

mod slices;
#[cfg(test)]
mod tests;

use std::sync::Weak;

pub use slices::Slices;

use super::Balancer;
use crate::config::components::exporters::load_balancing::K8s;
use crate::run::Log;
use crate::run::k8s::{Fault, Objects, Pod, Question, Watcher, bracketed, own_namespace};

/// Asks for the endpoints of a service, as the pod that we are in sees it.
///
/// # Errors
/// The pod lacks something.
pub(super) fn watcher(
    settings: &K8s,
    pod: &Pod,
    log: &Log,
    balancer: Weak<Balancer>,
) -> Result<Watcher<Endpoints>, String> {
    let namespace = match &settings.namespace {
        Some(namespace) => namespace.clone(),
        None => own_namespace(&pod.account, log)?,
    };
    let question = Question {
        path: format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
        selectors: vec![format!(
            "labelSelector=kubernetes.io%2Fservice-name%3D{}",
            settings.service
        )],
        timeout_s: settings.timeout_ns.div_ceil(1_000_000_000),
        page: None,
        accept: "application/json",
    };
    let endpoints = Endpoints {
        slices: Slices::new(settings.return_hostnames),
        settings: settings.clone(),
        namespace,
        balancer,
    };
    let watcher = Watcher::new(question, endpoints, pod);
    watcher.map_err(|why| format!("resolver 'k8s': {why}"))
}

/// The endpoints, which become backends.
pub(super) struct Endpoints {
    slices: Slices,
    settings: K8s,
    namespace: String,
    balancer: Weak<Balancer>,
}

impl Endpoints {
    /// As messages call it.
    fn service(&self) -> String {
        format!("service {}.{}", self.settings.service, self.namespace)
    }

    /// Backends as the Collector's exporter names them, so that both have one ring.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for host in self.slices.hosts() {
            let host = if self.settings.return_hostnames {
                format!("{host}.{}.{}", self.settings.service, self.namespace)
            } else {
                bracketed(host)
            };
            match &self.settings.ports[..] {
                [] => names.push(host),
                ports => names.extend(ports.iter().map(|port| format!("{host}:{port}"))),
            }
        }
        names
    }
}

impl Objects for Endpoints {
    fn page(&mut self, body: &[u8], _: bool) -> Result<Option<String>, Fault> {
        self.slices.list(body).map(|()| None)
    }

    fn event(&mut self, line: &[u8]) -> Result<bool, Fault> {
        self.slices.event(line)
    }

    fn version(&self) -> Option<&str> {
        self.slices.version()
    }

    fn changed(&mut self) -> bool {
        let Some(balancer) = self.balancer.upgrade() else {
            return false;
        };
        let names = self.names();
        if names.is_empty() {
            balancer.warn(&format!("{} has no ready endpoints", self.service()));
        }
        balancer.resolved(names);
        if let Some(why) = self.slices.lacking() {
            balancer.unresolved(&format!("{}: {why}", self.service()));
        }
        true
    }

    fn failed(&mut self, why: &str) -> bool {
        let Some(balancer) = self.balancer.upgrade() else {
            return false;
        };
        balancer.unresolved(&format!("{}: {why}", self.service()));
        true
    }
}
