//! What is made of an object: names and values of attributes.

use std::collections::{BTreeMap, HashSet};

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;

use super::object::{Metadata, Object};
use crate::config::components::processors::k8s_attributes::{
    Extract, From, K8sAttributes as Settings, Key as KeySettings, Source,
};
use crate::config::pattern;

/// The annotation of a pod that is not to be known.
const IGNORE: &str = "opentelemetry.io/k8s-processor/ignore";
/// Annotations that name attributes.
const OTEL_PREFIX: &str = "^resource\\.opentelemetry\\.io/(.+)$";

/// Attributes by their names.
pub type Attributes = BTreeMap<String, String>;

/// The settings, compiled.
#[derive(Debug)]
pub struct Rules {
    metadata: HashSet<String>,
    labels: Vec<Rule>,
    annotations: Vec<Rule>,
    excluded: Vec<Regex>,
    /// How a pod is found.
    pub associations: Vec<Vec<Source>>,
    /// The deployment's name is made of the replica set's.
    pub deployment_of_replica_set: bool,
}

#[derive(Debug)]
struct Rule {
    from: From,
    tag: String,
    key: Key,
}

#[derive(Debug)]
enum Key {
    Is(String),
    Matches(Regex),
}

/// Labels or annotations.
#[derive(Clone, Copy)]
pub enum Field {
    /// `metadata.labels`
    Label,
    /// `metadata.annotations`
    Annotation,
}

impl Rules {
    /// # Errors
    /// Which expression cannot be compiled.
    pub fn new(settings: &Settings) -> Result<Rules, String> {
        let mut annotations = Rule::all(&settings.annotations)?;
        if settings.otel_annotations {
            annotations.push(Rule {
                from: From::Pod,
                tag: "$1".to_owned(),
                key: Key::Matches(pattern::compile(OTEL_PREFIX)?),
            });
        }
        let excluded = settings.excluded.iter();
        Ok(Rules {
            metadata: settings.metadata.iter().cloned().collect(),
            labels: Rule::all(&settings.labels)?,
            annotations,
            excluded: excluded
                .map(|text| pattern::compile(text))
                .collect::<Result<_, _>>()?,
            associations: settings.associations.clone(),
            deployment_of_replica_set: settings.deployment_name_from_replicaset,
        })
    }

    /// Whether an attribute is set.
    pub fn sets(&self, name: &str) -> bool {
        self.metadata.contains(name)
    }

    /// Whether any of these is set.
    pub fn sets_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.sets(name))
    }

    /// Whether labels or annotations of such objects are read.
    pub fn reads(&self, from: From) -> bool {
        let mut all = self.labels.iter().chain(&self.annotations);
        all.any(|rule| rule.from == from)
    }

    /// Whether a pod is not to be known.
    pub fn ignores(&self, pod: &Metadata) -> bool {
        let wish = pod.annotations.as_ref().and_then(|all| all.get(IGNORE));
        wish.is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
            || self.excluded.iter().any(|regex| regex.is_match(&pod.name))
    }

    /// Adds what labels or annotations of an object tell.
    pub fn extract(&self, from: From, field: Field, object: &Metadata, out: &mut Attributes) {
        let (rules, there) = match field {
            Field::Label => (&self.labels, &object.labels),
            Field::Annotation => (&self.annotations, &object.annotations),
        };
        let Some(there) = there else {
            return;
        };
        for rule in rules.iter().filter(|rule| rule.from == from) {
            rule.extract(field, there, out);
        }
    }

    /// Attributes of an object that is no pod, from its labels and annotations.
    pub fn all(&self, from: From, object: &Object) -> Attributes {
        let mut out = Attributes::new();
        self.extract(from, Field::Label, &object.metadata, &mut out);
        self.extract(from, Field::Annotation, &object.metadata, &mut out);
        out
    }
}

impl Rule {
    fn all(extracts: &[Extract]) -> Result<Vec<Rule>, String> {
        extracts.iter().map(Rule::new).collect()
    }

    fn new(extract: &Extract) -> Result<Rule, String> {
        Ok(Rule {
            from: extract.from,
            tag: extract.tag.clone(),
            key: match &extract.key {
                KeySettings::Is(key) => Key::Is(key.clone()),
                KeySettings::Matches(text) => {
                    Key::Matches(pattern::compile(&format!("^(?:{text})$"))?)
                }
            },
        })
    }

    fn extract(&self, field: Field, there: &Attributes, out: &mut Attributes) {
        match &self.key {
            Key::Is(key) => {
                if let Some(value) = there.get(key) {
                    let name = match self.tag.as_str() {
                        "" => default_name(self.from, field, key),
                        tag => tag.to_owned(),
                    };
                    out.insert(name, value.clone());
                }
            }
            Key::Matches(regex) => {
                let mut found = regex.create_captures();
                for (key, value) in there.iter().filter(|(_, value)| !value.is_empty()) {
                    regex.captures(key, &mut found);
                    if found.is_match() {
                        out.insert(self.name(field, key, &found), value.clone());
                    }
                }
            }
        }
    }

    fn name(&self, field: Field, key: &str, found: &Captures) -> String {
        if found.group_len() < 2 {
            return default_name(self.from, field, key);
        }
        let mut name = String::new();
        found.interpolate_string_into(key, &self.tag, &mut name);
        name
    }
}

/// As the Collector names them: of pods, namespaces and nodes in the plural.
fn default_name(from: From, field: Field, key: &str) -> String {
    let (object, is_plural) = match from {
        From::Pod => ("pod", true),
        From::Namespace => ("namespace", true),
        From::Node => ("node", true),
        From::Deployment => ("deployment", false),
        From::StatefulSet => ("statefulset", false),
        From::DaemonSet => ("daemonset", false),
        From::Job => ("job", false),
    };
    let field = match (field, is_plural) {
        (Field::Label, true) => "labels",
        (Field::Label, false) => "label",
        (Field::Annotation, true) => "annotations",
        (Field::Annotation, false) => "annotation",
    };
    format!("k8s.{object}.{field}.{key}")
}

/// The name of the deployment that has made a replica set: without the hash of ten letters.
pub fn without_hash(replica_set: &str) -> Option<&str> {
    let (name, hash) = replica_set.rsplit_once('-')?;
    let is_hash = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (hash.len() == 10 && hash.bytes().all(is_hash)).then_some(name)
}

/// The name of the cron job that has made a job: without the time.
pub fn without_time(job: &str) -> Option<&str> {
    let (name, time) = job.rsplit_once('-')?;
    (!time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}
