//! The pod that this process runs in, and its requests to the API server of its cluster.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use export::get::Getter;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use telemetry::settings::{Pem, Tls};

use super::watch::{AGAIN, ANSWER_MAX};
use crate::config::components::exporters::load_balancing::is_label;
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

/// Which objects are asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The path of the collection, such as `/api/v1/pods`.
    pub path: String,
    /// Selectors, each `name=value` as a query has it.
    pub selectors: Vec<String>,
    /// Seconds after which the API server ends a watch, and gives up a list.
    pub timeout_s: u64,
    /// Objects of a page; none: all at once, of any state that the server has at hand.
    pub page: Option<u32>,
    /// `Accept`
    pub accept: &'static str,
}

/// Requests for objects of one kind.
pub(super) struct Api {
    /// Scheme and host.
    server: String,
    account: PathBuf,
    question: Question,
}

impl Api {
    /// # Errors
    /// The pod lacks something.
    pub(super) fn new(question: Question, pod: &Pod) -> Result<Api, String> {
        let (Some(host), Some(port)) = (&pod.host, &pod.port) else {
            return Err("works within a pod only: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set".to_owned());
        };
        let api = Api {
            server: format!("https://{}:{port}", bracketed(host)),
            account: pod.account.clone(),
            question,
        };
        // What is missing now will not come by itself.
        api.token()?;
        api.getter()?;
        Ok(api)
    }

    /// Time after which the server ends a watch.
    pub(super) fn watch_time(&self) -> Duration {
        Duration::from_secs(self.question.timeout_s)
    }

    /// Whether lists come in pages.
    pub(super) fn has_pages(&self) -> bool {
        self.question.page.is_some()
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

    /// What lists objects: all, none older than a version, or the page after another one. Pages are
    /// of the newest state.
    pub(super) fn list(
        &self,
        version: Option<&str>,
        after: Option<&str>,
    ) -> Result<(String, HeaderMap), String> {
        let Some(limit) = self.question.page else {
            return self.request("", version);
        };
        let more = match after {
            Some(after) => format!("&limit={limit}&continue={after}"),
            None => format!("&limit={limit}"),
        };
        self.request(&more, None)
    }

    /// What watches them from a version on.
    pub(super) fn watch(&self, version: Option<&str>) -> Result<(String, HeaderMap), String> {
        self.request("&watch=true&allowWatchBookmarks=true", version)
    }

    fn request(&self, more: &str, version: Option<&str>) -> Result<(String, HeaderMap), String> {
        let Question {
            path,
            selectors,
            timeout_s,
            ..
        } = &self.question;
        let mut url = format!("{}{path}?", self.server);
        for selector in selectors {
            url.push_str(selector);
            url.push('&');
        }
        url = format!("{url}timeoutSeconds={timeout_s}{more}");
        if let Some(version) = version {
            url = format!("{url}&resourceVersion={version}");
        }
        let accept = HeaderValue::from_static(self.question.accept);
        // Read for each request, for it is another every hour.
        let fields = [(ACCEPT, accept), (AUTHORIZATION, self.token()?)];
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
}

/// The namespace of the pod.
///
/// # Errors
/// Its file has no name of a namespace.
pub fn own_namespace(account: &Path, log: &Log) -> Result<String, String> {
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
pub(in crate::run) fn bracketed(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{host}]"),
        Err(_) => host.to_owned(),
    }
}
