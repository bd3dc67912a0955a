//! `k8s_attributes`: attributes of resources that the Kubernetes API server tells of pods.

use super::{Processor, ProcessorSettings};
use crate::config::components::exporters::load_balancing::is_label;
use crate::config::components::shared::context::Context;
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, Table, opt, required};
use crate::config::pattern;
use crate::config::service::context::Asked;

/// Attributes of pods, and how a resource's pod is found.
#[derive(Clone, Debug, PartialEq)]
pub struct K8sAttributes {
    /// Only the client's address is set; nobody is asked.
    pub passthrough: bool,
    /// Attributes that are set, by their names.
    pub metadata: Vec<String>,
    /// Attributes made of labels.
    pub labels: Vec<Extract>,
    /// Attributes made of annotations.
    pub annotations: Vec<Extract>,
    /// Annotations `resource.opentelemetry.io/x` become the attribute `x`.
    pub otel_annotations: bool,
    /// The deployment's name is that of the replica set without its hash.
    pub deployment_name_from_replicaset: bool,
    /// Which pods are known.
    pub filter: Filter,
    /// How a resource's pod is found, in this order; none: by its address.
    pub associations: Vec<Vec<Source>>,
    /// Pods whose names match are not known: regular expressions.
    pub excluded: Vec<String>,
    /// Data are refused until pods are known.
    pub wait_for_metadata: bool,
    /// After this time an error says that they are not.
    pub wait_ns: u64,
    /// A pod that is gone is known for so long.
    pub delete_grace_ns: u64,
}

impl ProcessorSettings for K8sAttributes {
    fn ask(&self, asked: &mut Asked) {
        let sources = self.associations.iter().flatten();
        let is_connection = |source: &Source| *source == Source::Connection;
        if self.associations.is_empty() || sources.into_iter().any(is_connection) {
            asked.add(&Context::Address);
        }
    }
}

/// An attribute that is made of a label or an annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Extract {
    /// Its name, with `$1` and the like where there is an expression with groups; empty: made of the
    /// key.
    pub tag: String,
    /// Which key.
    pub key: Key,
    /// Of which object.
    pub from: From,
}

/// Which labels or annotations.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// The one with this key.
    Is(String),
    /// All whose keys are matched whole.
    Matches(String),
}

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum From {
    /// The pod.
    Pod,
    /// Its namespace.
    Namespace,
    /// Its node.
    Node,
    /// Its deployment.
    Deployment,
    /// Its stateful set.
    StatefulSet,
    /// Its daemon set.
    DaemonSet,
    /// Its job.
    Job,
}

/// Which pods are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of a node.
    pub node: Option<String>,
    /// Those of a namespace.
    pub namespace: Option<String>,
    /// Requirements on fields and labels, as a selector of the API.
    pub fields: Vec<String>,
    /// The same of labels.
    pub labels: Vec<String>,
}

/// A part of what tells a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The client's address.
    Connection,
    /// An attribute of the resource.
    Attribute(String),
}

/// Sources of one association.
const SOURCES_MAX: usize = 4;
const DEFAULT_METADATA: &[&str] = &[
    "container.image.name",
    "container.image.tag",
    "k8s.deployment.name",
    "k8s.namespace.name",
    "k8s.node.name",
    "k8s.pod.name",
    "k8s.pod.start_time",
    "k8s.pod.uid",
];
/// What `extract::metadata` may name.
pub const METADATA: &[&str] = &[
    "container.id",
    "container.image.name",
    "container.image.repo_digests",
    "container.image.tag",
    "k8s.cluster.uid",
    "k8s.container.name",
    "k8s.cronjob.name",
    "k8s.cronjob.uid",
    "k8s.daemonset.name",
    "k8s.daemonset.uid",
    "k8s.deployment.name",
    "k8s.deployment.uid",
    "k8s.job.name",
    "k8s.job.uid",
    "k8s.namespace.name",
    "k8s.node.name",
    "k8s.node.uid",
    "k8s.pod.hostname",
    "k8s.pod.ip",
    "k8s.pod.name",
    "k8s.pod.start_time",
    "k8s.pod.uid",
    "k8s.replicaset.name",
    "k8s.replicaset.uid",
    "k8s.statefulset.name",
    "k8s.statefulset.uid",
    "service.instance.id",
    "service.name",
    "service.namespace",
    "service.version",
];
const FROM: &[(&str, From)] = &[
    ("pod", From::Pod),
    ("namespace", From::Namespace),
    ("node", From::Node),
    ("deployment", From::Deployment),
    ("statefulset", From::StatefulSet),
    ("daemonset", From::DaemonSet),
    ("job", From::Job),
];

#[rustfmt::skip]
const EXTRACT: &[Opt] = &[
    opt("tag_name", Kind::Text, "", "the attribute; may name groups of 'key_regex' such as `$$1`; made of the key where it is not written"),
    opt("key", Kind::Text, "", "the label or annotation"),
    opt("key_regex", Kind::Text, "", "those whose whole key it matches"),
    opt("from", Kind::Word(&["pod", "namespace", "node", "deployment", "statefulset", "daemonset", "job"]), "pod", "whose it is"),
];
#[rustfmt::skip]
const EXTRACTS: &[Opt] = &[
    opt("metadata", Kind::Words(METADATA), "container.image.name,container.image.tag,k8s.deployment.name,k8s.namespace.name,k8s.node.name,k8s.pod.name,k8s.pod.start_time,k8s.pod.uid", "attributes that are set"),
    opt("labels", Kind::Sections(&[EXTRACT]), "", "attributes made of labels"),
    opt("annotations", Kind::Sections(&[EXTRACT]), "", "attributes made of annotations"),
    opt("otel_annotations", Kind::Flag, "false", "annotations `resource.opentelemetry.io/x` of the pod become the attribute `x`"),
    opt("deployment_name_from_replicaset", Kind::Flag, "false", "the deployment's name is that of the replica set without its hash; replica sets are not watched for it"),
];
#[rustfmt::skip]
const FIELD: &[Opt] = &[
    required("key", Kind::Text, "the field, such as `status.phase`"),
    opt("value", Kind::Text, "", "its value"),
    opt("op", Kind::Word(&["equals", "not-equals"]), "equals", "how it compares"),
];
#[rustfmt::skip]
const LABEL: &[Opt] = &[
    required("key", Kind::Text, "the label"),
    opt("value", Kind::Text, "", "its value"),
    opt("op", Kind::Word(&["equals", "not-equals", "exists", "does-not-exist"]), "equals", "how it compares"),
];
#[rustfmt::skip]
const FILTER: &[Opt] = &[
    opt("node", Kind::Text, "", "pods of this node"),
    opt("node_from_env_var", Kind::Text, "", "the variable that has the node's name"),
    opt("namespace", Kind::Text, "", "pods of this namespace"),
    opt("fields", Kind::Sections(&[FIELD]), "", "pods whose fields compare"),
    opt("labels", Kind::Sections(&[LABEL]), "", "pods whose labels compare"),
];
#[rustfmt::skip]
const SOURCE: &[Opt] = &[
    required("from", Kind::Word(&["resource_attribute", "connection"]), "an attribute of the resource, or the client's address"),
    opt("name", Kind::Text, "", "the attribute"),
];
#[rustfmt::skip]
const ASSOCIATION: &[Opt] = &[opt("sources", Kind::Sections(&[SOURCE]), "", "what is compared together (four at most)")];
#[rustfmt::skip]
const EXCLUDED: &[Opt] = &[required("name", Kind::Text, "a regular expression, looked for anywhere in the pod's name")];
#[rustfmt::skip]
const EXCLUDE: &[Opt] = &[opt("pods", Kind::Sections(&[EXCLUDED]), "", "pods that are not known; `jaeger-agent` and `jaeger-collector` where it is not written")];
const AUTH: &str = "the API server is asked as the pod's service account only";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("auth_type", Kind::Word(&["none", "serviceAccount", "kubeConfig", "tls"]), "serviceAccount", "who asks the API server: the pod's service account, which may get, list and watch `pods` and what else is asked for"),
    opt("context", Kind::Text, "", "of a `kubeConfig`").refused(AUTH),
    opt("kube_api_qps", Kind::Number(0.0, f64::MAX), "0", "requests a second").no_effect("few requests are made: a list and watches"),
    opt("kube_api_burst", Kind::Int(0, i64::MAX), "0", "requests at once").no_effect("few requests are made: a list and watches"),
    opt("passthrough", Kind::Flag, "false", "only `k8s.pod.ip` is set, to the client's address; the API server is not asked"),
    opt("extract", Kind::Section(&[EXTRACTS]), "", "which attributes are set"),
    opt("filter", Kind::Section(&[FILTER]), "", "which pods are known"),
    opt("pod_association", Kind::Sections(&[ASSOCIATION]), "", "how a resource's pod is found: the first whose sources are all there; by `k8s.pod.ip`, `ip`, the client's address, or `host.name` where none is written"),
    opt("exclude", Kind::Section(&[EXCLUDE]), "", "which pods are not known"),
    opt("wait_for_metadata", Kind::Flag, "false", "data are refused, for senders to send again, until the pods are known"),
    opt("wait_for_metadata_timeout", Kind::Duration, "10s", "after this time an error in the log says that they are not"),
    opt("watch_sync_period", Kind::Duration, "5m", "all is looked at again").no_effect("nothing that was seen is lost"),
    opt("pod_delete_grace_period", Kind::Duration, "120s", "a pod that is gone is known for so long"),
];
const TABLE: Table = &[OPTIONS];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("k8s_attributes"), name("k8sattributes")],
    doc: "sets attributes of resources that a Kubernetes cluster tells of pods",
    takes: EVERY,
    carries: EVERY,
    options: TABLE,
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let passthrough = section.flag("passthrough");
    let auth = section.text("auth_type");
    if auth != "serviceAccount" && !passthrough {
        section.error("auth_type", &format!("'{auth}' is not built in: {AUTH}"));
    }
    let extract = section.section("extract");
    let mut metadata = extract.texts("metadata");
    if metadata.is_empty() {
        metadata = DEFAULT_METADATA.iter().map(|&one| one.to_owned()).collect();
    }
    let mut associations = Vec::new();
    for association in section.sections("pod_association") {
        let sources: Vec<Source> = association.sections("sources").iter().map(source).collect();
        if sources.len() > SOURCES_MAX {
            let message = format!("more than {SOURCES_MAX} sources");
            association.error("sources", &message);
        }
        associations.push(sources);
    }
    let mut excluded = Vec::new();
    for pod in section.section("exclude").sections("pods") {
        let text = pod.text("name");
        if let Err(why) = pattern::check(&text) {
            pod.error("name", &why);
        }
        excluded.push(text);
    }
    if excluded.is_empty() {
        excluded = vec!["jaeger-agent".to_owned(), "jaeger-collector".to_owned()];
    }
    let extracts = |name| -> Vec<Extract> {
        let sections = extract.sections(name);
        sections.iter().filter_map(one).collect()
    };
    Processor::new(K8sAttributes {
        passthrough,
        metadata,
        labels: extracts("labels"),
        annotations: extracts("annotations"),
        otel_annotations: extract.flag("otel_annotations"),
        deployment_name_from_replicaset: extract.flag("deployment_name_from_replicaset"),
        filter: filter(&section.section("filter")),
        associations,
        excluded,
        wait_for_metadata: section.flag("wait_for_metadata"),
        wait_ns: section.duration_ns("wait_for_metadata_timeout"),
        delete_grace_ns: section.duration_ns("pod_delete_grace_period"),
    })
}

fn one(section: &Section<'_>) -> Option<Extract> {
    let (key, regex) = (section.text("key"), section.text("key_regex"));
    let key = match (key.is_empty(), regex.is_empty()) {
        (false, false) => {
            section.error("key_regex", "write 'key' or 'key_regex', not both");
            return None;
        }
        (_, true) => Key::Is(key),
        (true, false) => {
            if let Err(why) = pattern::check(&regex) {
                section.error("key_regex", &why);
                return None;
            }
            Key::Matches(regex)
        }
    };
    Some(Extract {
        tag: section.text("tag_name"),
        key,
        from: section.choice("from", FROM),
    })
}

fn source(section: &Section<'_>) -> Source {
    match section.text("from").as_str() {
        "connection" => Source::Connection,
        _ => {
            let name = section.text("name");
            if name.is_empty() && section.has("from") {
                section.fault("'name' is required: which attribute");
            }
            Source::Attribute(name)
        }
    }
}

fn filter(section: &Section<'_>) -> Filter {
    let mut node = section.text_unless_empty("node");
    if let Some(variable) = section.text_unless_empty("node_from_env_var") {
        match std::env::var(&variable) {
            Ok(value) => node = Some(value).filter(|value| !value.is_empty()),
            Err(_) => {
                let message = format!("the environment has no variable '{variable}'");
                section.error("node_from_env_var", &message);
            }
        }
    }
    let namespace = section.text_unless_empty("namespace");
    if namespace.as_deref().is_some_and(|name| !is_label(name)) {
        section.error("namespace", "is no name of a namespace");
    }
    let requirement = |one: &Section<'_>| {
        let (key, value) = (one.text("key"), one.text("value"));
        match one.text("op").as_str() {
            "not-equals" => format!("{key}!={value}"),
            "exists" => key,
            "does-not-exist" => format!("!{key}"),
            _ => format!("{key}={value}"),
        }
    };
    Filter {
        node,
        namespace,
        fields: section.sections("fields").iter().map(requirement).collect(),
        labels: section.sections("labels").iter().map(requirement).collect(),
    }
}
