//! What a pod knows of its cluster: where the API server is, and who we are to it.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use export::get::Getter;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use telemetry::settings::{Pem, Tls};

use super::{AGAIN, ANSWER_MAX};
use crate::config::components::exporters::load_balancing::{K8s, is_label};
use crate::config::components::shared::retry::Retry;
use crate::run::Log;
use crate::run::auth::read;

/// Where Kubernetes puts what a pod needs to ask.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The namespace of a service that tells none, outside of all.
const NAMESPACE: &str = "default";

/// The surroundings of a pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// `KUBERNETES_SERVICE_HOST`
    pub host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`
    pub port: Option<String>,
    /// The folder of `token`, `ca.crt` and `namespace`.
    pub account: PathBuf,
    /// When the API server is asked again.
    pub again: &'static Retry,
}

impl Pod {
    /// The one that this process is in.
    #[must_use]
    pub fn own() -> Pod {
        Pod {
            host: std::env::var("KUBERNETES_SERVICE_HOST").ok(),
            port: std::env::var("KUBERNETES_SERVICE_PORT").ok(),
            account: ACCOUNT.into(),
            again: &AGAIN,
        }
    }
}

/// Requests for the slices of a service.
pub(super) struct Api {
    /// Up to the query.
    base: String,
    service: String,
    namespace: String,
    account: PathBuf,
    /// Of one request, as the server is told.
    timeout_s: u64,
}

impl Api {
    pub(super) fn new(settings: &K8s, pod: &Pod, log: &Log) -> Result<Api, String> {
        let (Some(host), Some(port)) = (&pod.host, &pod.port) else {
            return Err("the resolver 'k8s' works within a pod only: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set".to_owned());
        };
        let host = bracketed(host);
        let namespace = match &settings.namespace {
            Some(namespace) => namespace.clone(),
            None => own_namespace(&pod.account, log)?,
        };
        let api = Api {
            base: format!(
                "https://{host}:{port}/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{}",
                settings.service
            ),
            service: settings.service.clone(),
            namespace,
            account: pod.account.clone(),
            timeout_s: settings.timeout_ns.div_ceil(1_000_000_000),
        };
        // What is missing now will not come by itself.
        api.token()?;
        api.getter()?;
        Ok(api)
    }

    /// As messages call it.
    pub(super) fn service(&self) -> String {
        format!("service {}.{}", self.service, self.namespace)
    }

    /// Time after which the server ends a watch.
    pub(super) fn watch_time(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    /// A client that trusts the cluster's authority.
    pub(super) fn getter(&self) -> Result<Getter, String> {
        let authority = self.account.join("ca.crt");
        let tls = Tls {
            ca: Some(Pem::Path(authority.display().to_string())),
            ..Tls::default()
        };
        Getter::new(&tls, ANSWER_MAX)
    }

    /// What lists all slices, none older than a version.
    pub(super) fn list(&self, version: Option<&str>) -> Result<(String, HeaderMap), String> {
        self.request("", version)
    }

    /// What watches them from a version on.
    pub(super) fn watch(&self, version: Option<&str>) -> Result<(String, HeaderMap), String> {
        self.request("&watch=true&allowWatchBookmarks=true", version)
    }

    fn request(&self, more: &str, version: Option<&str>) -> Result<(String, HeaderMap), String> {
        let mut url = format!("{}&timeoutSeconds={}{more}", self.base, self.timeout_s);
        if let Some(version) = version {
            url = format!("{url}&resourceVersion={version}");
        }
        let json = HeaderValue::from_static("application/json");
        // Read for each request, for it is another every hour.
        let fields = [(ACCEPT, json), (AUTHORIZATION, self.token()?)];
        Ok((url, HeaderMap::from_iter(fields)))
    }

    fn token(&self) -> Result<HeaderValue, String> {
        let path = self.account.join("token").display().to_string();
        let token = read(&path)?;
        let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        let mut value = value.map_err(|_| format!("{path}: no token"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Backends as the Collector's exporter names them, so that both have one ring.
    pub(super) fn names<'a>(
        &self,
        hosts: impl Iterator<Item = &'a str>,
        settings: &K8s,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for host in hosts {
            let host = if settings.return_hostnames {
                format!("{host}.{}.{}", self.service, self.namespace)
            } else {
                bracketed(host)
            };
            match &settings.ports[..] {
                [] => names.push(host),
                ports => names.extend(ports.iter().map(|port| format!("{host}:{port}"))),
            }
        }
        names
    }
}

/// The namespace of the pod.
fn own_namespace(account: &Path, log: &Log) -> Result<String, String> {
    let path = account.join("namespace").display().to_string();
    match read(&path) {
        Ok(text) if is_label(text.trim()) => Ok(text.trim().to_owned()),
        Ok(_) => Err(format!("{path}: no name of a namespace")),
        Err(why) => {
            log.warn(&format!("{why}: the namespace is taken to be {NAMESPACE}"));
            Ok(NAMESPACE.to_owned())
        }
    }
}

/// A host as it stands before a port.
fn bracketed(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{host}]"),
        Err(_) => host.to_owned(),
    }
}
