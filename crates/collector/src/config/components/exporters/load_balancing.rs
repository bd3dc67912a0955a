//! `load_balancing`: each trace or service to a backend of its own.

use super::otlp_grpc::{self, OtlpGrpcExporter};
use super::{Exporter, ExporterSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::address::host_port;
use crate::config::components::shared::grpc;
use crate::config::components::shared::queue::{self, Queue};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{EVERY, Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt, required};

/// An exporter to several receivers of OTLP over gRPC.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancingExporter {
    /// How each backend is spoken to; its target is the backend's.
    pub otlp: OtlpGrpcExporter,
    /// Who the backends are.
    pub resolver: Resolver,
    /// What goes to one backend.
    pub routing: Routing,
    /// What waits before all backends, and what becomes of what a backend did not take.
    pub own: Option<Own>,
}

/// `sending_queue`, `retry_on_failure` and `timeout` of the exporter itself. With any of them, data
/// that a backend did not take are divided again among the backends of then.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// What waits before all backends.
    pub queue: Option<Queue>,
    /// Treatment of failures.
    pub retry: Option<Retry>,
    /// Time for all backends to take a batch; 0: no bound.
    pub timeout_ns: u64,
}

impl ExporterSettings for LoadBalancingExporter {
    /// Each backend has a queue of its own besides.
    fn queue(&self) -> Option<&Queue> {
        self.own.as_ref()?.queue.as_ref()
    }

    fn retry(&self) -> Option<Retry> {
        self.own.as_ref()?.retry
    }

    fn any_queue(&self) -> Option<&Queue> {
        match &self.own {
            Some(own) => own.queue.as_ref(),
            None => self.otlp.queue.as_ref(),
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn auth(&self) -> Option<&ComponentId> {
        self.otlp.client.auth.as_ref()
    }

    fn is_plain_grpc(&self) -> bool {
        !self.otlp.client.is_tls()
    }
}

/// `resolver`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// `static`: names, each with a port or without; at least one.
    Static(Vec<String>),
    /// `dns`
    Dns(Dns),
    /// `k8s`
    K8s(K8s),
}

/// All addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns {
    /// The host.
    pub hostname: String,
    /// Port of each address, where it is not 4317.
    pub port: Option<u16>,
    /// Time between two questions.
    pub interval_ns: u64,
    /// Time for an answer.
    pub timeout_ns: u64,
}

/// The endpoints of a Kubernetes service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct K8s {
    /// The service.
    pub service: String,
    /// Its namespace; none: the one of the pod that we are in.
    pub namespace: Option<String>,
    /// Ports of each address, where it is not 4317 only.
    pub ports: Vec<u16>,
    /// Time of a watch.
    pub timeout_ns: u64,
    /// Whether backends are named by the names of their pods.
    pub return_hostnames: bool,
}

/// `routing_key`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Spans of one trace go to one backend.
    TraceId,
    /// Spans of one `service.name`.
    Service,
}

#[rustfmt::skip]
const ENDPOINT: &[Opt] = &[opt("endpoint", Kind::Text, "", "the server").no_effect("the resolver tells the backends")];
#[rustfmt::skip]
const PROTOCOL: &[Opt] = &[opt("otlp", Kind::Section(&[ENDPOINT, grpc::CLIENT, otlp_grpc::OPTIONS]), "", "OTLP over gRPC to each backend, with a queue and retries of its own")];
#[rustfmt::skip]
const STATIC: &[Opt] = &[required("hostnames", Kind::Texts, "`host` or `host:port`; without a port it is 4317")];
#[rustfmt::skip]
const DNS: &[Opt] = &[
    opt("hostname", Kind::Text, "", "the host whose addresses are the backends (required)"),
    opt("port", Kind::Text, "", "port of each address, in quotes; 4317 where it is not written"),
    opt("interval", Kind::Duration, "5s", "time between two questions; 0: 5s"),
    opt("timeout", Kind::Duration, "1s", "time for an answer; 0: 1s"),
];
#[rustfmt::skip]
const K8S: &[Opt] = &[
    required("service", Kind::Text, "`name.namespace`; without a namespace it is that of the pod"),
    opt("ports", Kind::Ints(1, 65535), "", "ports of each address, each a backend; 4317 where it is not written"),
    opt("timeout", Kind::Duration, "1m", "time of a watch, after which the next one begins; whole seconds; 0: 1m"),
    opt("return_hostnames", Kind::Flag, "false", "backends are `pod.service.namespace` and not addresses: for a headless service of a StatefulSet"),
];
#[rustfmt::skip]
const RESOLVERS: &[Opt] = &[
    opt("static", Kind::Maybe(&[STATIC]), "", "the backends by their names"),
    opt("dns", Kind::Maybe(&[DNS]), "", "all addresses of a host"),
    opt("k8s", Kind::Maybe(&[K8S]), "", "the ready endpoints of a Kubernetes service, of whose namespace the pod's service account may list and watch `endpointslices`"),
    opt("aws_cloud_map", Kind::Any, "", "the instances of a service in AWS Cloud Map").refused("not yet: use 'dns'"),
];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("protocol", Kind::Section(&[PROTOCOL]), "", "how backends are spoken to"),
    required("resolver", Kind::Section(&[RESOLVERS]), "who the backends are: one of these"),
    opt("routing_key", Kind::Text, "traceID", "what goes to one backend: `traceID` or `service`; others are refused"),
    opt("routing_attributes", Kind::Texts, "", "attributes that go to one backend").refused("not yet: 'routing_key' is traceID or service"),
    opt("timeout", Kind::Duration, "0s", "time for all backends to take a batch; 0: no bound"),
    opt("sending_queue", Kind::Maybe(queue::TABLE), "", "what waits before all backends, beside the queue of each"),
    opt("retry_on_failure", Kind::Maybe(retry::TABLE), "", "what a backend did not take is divided again among the backends of then; only with `enabled: true`"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("load_balancing"), name("loadbalancing")],
    doc: "each trace, or each service, to a backend of its own: the one that the Collector's exporter chooses",
    takes: EVERY,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Exporter(parse),
};

/// Keys that the Collector knows besides.
const KEYS_LACKING: [&str; 4] = ["resource", "metric", "streamID", "attributes"];

fn parse(section: &Section<'_>) -> Exporter {
    let otlp = section.section("protocol").section("otlp");
    let settings = otlp_grpc::of(&otlp, grpc::client_of_any(&otlp));
    if settings
        .queue
        .as_ref()
        .is_some_and(|queue| queue.is_stored())
    {
        let queue = otlp.section("sending_queue");
        queue.error("storage", "the queues of backends are not kept yet");
    }
    let own = own(section);
    let key = section.text("routing_key");
    let routing = match key.as_str() {
        "" | "traceID" => Routing::TraceId,
        "service" => Routing::Service,
        key => {
            let why = if KEYS_LACKING.contains(&key) {
                format!("'{key}' is not supported yet: traceID and service are")
            } else {
                format!("must be traceID or service, not '{key}'")
            };
            section.error("routing_key", &why);
            Routing::TraceId
        }
    };
    Exporter::new(LoadBalancingExporter {
        otlp: settings,
        resolver: resolver(&section.section("resolver")),
        routing,
        own,
    })
}

/// None where nothing of it is written: then batches go to the queues of the backends at once.
fn own(section: &Section<'_>) -> Option<Own> {
    let queue = section.maybe("sending_queue");
    let retry = section.maybe("retry_on_failure");
    // As in the Collector, which does not try again here unless it is told to.
    if let Some(retry) = &retry
        && retry.written("enabled").is_none()
    {
        section.warn("retry_on_failure", "has no effect without 'enabled: true'");
    }
    let retry = retry.filter(|retry| retry.written("enabled").is_some());
    let own = Own {
        queue: queue.as_ref().and_then(queue::queue),
        retry: retry.as_ref().and_then(retry::retry),
        timeout_ns: section.duration_ns("timeout"),
    };
    (own.queue.is_some() || own.retry.is_some() || own.timeout_ns > 0).then_some(own)
}

fn resolver(section: &Section<'_>) -> Resolver {
    let fixed = section.maybe("static");
    let fixed = fixed.map(|names| Resolver::Static(hostnames(&names)));
    let dns = section.maybe("dns").map(|host| Resolver::Dns(dns(&host)));
    let k8s = section.maybe("k8s").map(|of| Resolver::K8s(k8s(&of)));
    let mut written = [fixed, dns, k8s].into_iter().flatten();
    let first = written.next();
    if written.next().is_some() {
        section.fault("must have one resolver only");
    }
    // One that is refused was told as that.
    if first.is_none() && !section.has("aws_cloud_map") {
        section.fault("must have 'static', 'dns' or 'k8s'");
    }
    first.unwrap_or(Resolver::Static(Vec::new()))
}

fn hostnames(section: &Section<'_>) -> Vec<String> {
    let names = section.texts("hostnames");
    if names.is_empty() && section.has("hostnames") {
        section.error("hostnames", "must name a backend at least");
    }
    for name in &names {
        let wrong = if name.contains(':') && !name.ends_with(']') {
            host_port(name).err()
        } else {
            name.is_empty().then_some("is no host")
        };
        if let Some(why) = wrong {
            section.error("hostnames", &format!("'{name}' {why}"));
        }
    }
    names
}

fn dns(section: &Section<'_>) -> Dns {
    let hostname = section.text("hostname");
    if hostname.is_empty() {
        section.error(
            "hostname",
            "is missing: the host whose addresses are the backends",
        );
    }
    let port = section.text_unless_empty("port");
    let port = port.and_then(|text| {
        let port = text.parse().ok();
        if port.is_none() {
            section.error("port", &format!("'{text}' is no port from 0 to 65535"));
        }
        port
    });
    Dns {
        hostname,
        port,
        interval_ns: duration_or(section, "interval", 5_000_000_000),
        timeout_ns: duration_or(section, "timeout", 1_000_000_000),
    }
}

fn k8s(section: &Section<'_>) -> K8s {
    let text = section.text("service");
    let (service, namespace) = match text.split_once('.') {
        Some((service, namespace)) => (service, Some(namespace.to_owned())),
        None => (text.as_str(), None),
    };
    let is_right = is_label(service) && namespace.as_deref().is_none_or(is_label);
    if !is_right && section.has("service") {
        let why = format!("'{text}' must be the name of a service, or name.namespace");
        section.error("service", &why);
    }
    K8s {
        service: service.to_owned(),
        namespace,
        ports: section.ints("ports"),
        timeout_ns: duration_or(section, "timeout", 60_000_000_000),
        return_hostnames: section.flag("return_hostnames"),
    }
}

/// Whether it is a name of a service or a namespace (RFC 1123 section 2.1, in lower case).
pub(crate) fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A time that has a default where it is 0.
fn duration_or(section: &Section<'_>, name: &str, default_ns: u64) -> u64 {
    match section.duration_ns(name) {
        0 => default_ns,
        ns => ns,
    }
}
