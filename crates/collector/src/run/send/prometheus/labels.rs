//! The labels of series.

use std::collections::BTreeMap;
use std::sync::Arc;

use otlp::scan::Any;
use otlp::view::View;

use super::names::Namer;
use super::point::Kind;
use crate::config::components::exporters::prometheus::{
    Naming, ResourceLabels, SERVICE_ATTRIBUTES,
};

/// Labels that a series may have.
const LABELS_MAX: usize = 256;
/// Bytes of the names and values of its labels.
const LABEL_BYTES_MAX: usize = 64 << 10;

const RESERVED: &str = "the name of a label begins with '__'";
const NO_NAME: &str = "nothing is left of the name of a label";
const TOO_MANY: &str = "a series has too many labels";
const TOO_LONG: &str = "the labels of a series are too long";

/// Names and values, ascending by the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels(Box<[Label]>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    pub name: Box<str>,
    pub value: Box<str>,
}

/// What Prometheus tells targets apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub job: String,
    pub instance: String,
}

/// Makes the labels of an exporter's series.
pub(super) struct Labeller {
    pub namer: Namer,
    const_labels: Vec<(String, String)>,
    const_labels_first: bool,
    resource_labels: ResourceLabels,
    with_scope: bool,
}

/// The labels of a resource.
#[derive(Default)]
pub(super) struct Resource {
    job: Option<String>,
    instance: Option<String>,
    /// Attributes that become labels of its series, by their keys.
    attributes: BTreeMap<String, String>,
    /// The labels of `target_info`, where there is one.
    pub target: Option<Target>,
}

/// A target and its `target_info`.
pub(super) struct Target {
    pub identity: Arc<Identity>,
    pub labels: Arc<Labels>,
}

impl Labels {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|label| (&*label.name, &*label.value))
    }

    /// Bytes that they take in memory, about.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = self.0.iter().map(|one| one.name.len() + one.value.len());
        bytes.sum::<usize>() + size_of::<Label>() * self.0.len()
    }

    #[cfg(test)]
    pub(super) fn from_pairs(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Labels::of(pairs.collect()).expect("few labels")
    }

    /// # Errors
    /// Which limit they exceed.
    fn of(labels: BTreeMap<String, String>) -> Result<Labels, &'static str> {
        if labels.len() > LABELS_MAX {
            return Err(TOO_MANY);
        }
        let bytes = labels.iter().map(|(name, value)| name.len() + value.len());
        if bytes.sum::<usize>() > LABEL_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let labels = labels.into_iter().map(|(name, value)| Label {
            name: name.into(),
            value: value.into(),
        });
        Ok(Labels(labels.collect()))
    }
}

impl Labeller {
    pub(super) fn new(naming: &Naming) -> Labeller {
        Labeller {
            namer: Namer::new(&naming.namespace, naming.translation),
            const_labels: naming.const_labels.clone(),
            const_labels_first: naming.const_labels_first,
            resource_labels: naming.resource_labels.clone(),
            with_scope: naming.scope_labels,
        }
    }

    /// What the labels of a resource's series need of it. It has no `target_info` where its
    /// attributes cannot be labels.
    pub(super) fn resource(&self, resource: Option<&View<'_>>) -> Resource {
        let Some(resource) = resource else {
            return Resource::default();
        };
        let mut attributes = attributes(resource);
        let [name, namespace, instance] = SERVICE_ATTRIBUTES.map(|key| attributes.get(key));
        let job = name.map(|name| match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        });
        let instance = instance.cloned();
        let identity = Option::zip(job.clone(), instance.clone());
        let identity = identity.filter(|(job, instance)| !job.is_empty() && !instance.is_empty());
        let target = identity.and_then(|(job, instance)| {
            let rest = attributes.iter();
            let rest = rest.filter(|(key, _)| !SERVICE_ATTRIBUTES.contains(&key.as_str()));
            let mut labels = joined(rest, &self.namer).ok()?;
            labels.insert("job".to_owned(), job.clone());
            labels.insert("instance".to_owned(), instance.clone());
            Some(Target {
                identity: Arc::new(Identity { job, instance }),
                labels: Arc::new(Labels::of(labels).ok()?),
            })
        });
        attributes.retain(|key, _| self.resource_labels.choose(key));
        Resource {
            job,
            instance,
            attributes,
            target,
        }
    }

    /// The labels that all series of a scope have.
    ///
    /// # Errors
    /// Why its attributes cannot be labels.
    pub(super) fn scope(
        &self,
        scopes: &View<'_>,
    ) -> Result<BTreeMap<String, String>, &'static str> {
        if !self.with_scope {
            return Ok(BTreeMap::new());
        }
        let scope = scopes.one("scope");
        let text = |name| match &scope {
            Some(scope) => scope.text(name).into_owned(),
            None => String::new(),
        };
        let attributes = scope.as_ref().map(attributes).unwrap_or_default();
        let attributes = attributes.into_iter();
        let attributes: BTreeMap<_, _> = attributes
            .map(|(key, value)| (format!("otel_scope_{key}"), value))
            .collect();
        let mut labels = joined(&attributes, &self.namer)?;
        let schema = scopes.text("schemaUrl").into_owned();
        for (name, value) in [
            ("otel_scope_name", text("name")),
            ("otel_scope_version", text("version")),
            ("otel_scope_schema_url", schema),
        ] {
            labels.insert(name.to_owned(), value);
        }
        Ok(labels)
    }

    /// The labels of a data point. The resource's attributes count where the point has one of the
    /// same key; labels of the scope, the target and the settings count before all attributes.
    ///
    /// # Errors
    /// Why there cannot be such labels.
    pub(super) fn series(
        &self,
        point: &View<'_>,
        resource: &Resource,
        scope: &BTreeMap<String, String>,
        kind: Kind,
    ) -> Result<Labels, &'static str> {
        let mut attributes = attributes(point);
        for (key, value) in &resource.attributes {
            attributes.insert(key.clone(), value.clone());
        }
        let mut labels = joined(&attributes, &self.namer)?;
        let target = [("job", &resource.job), ("instance", &resource.instance)];
        let target = target
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let scope = scope
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in scope.chain(target) {
            labels.insert(name.to_owned(), value.to_owned());
        }
        self.add_const_labels(&mut labels);
        rename_own(&mut labels, kind);
        Labels::of(labels)
    }

    fn add_const_labels(&self, labels: &mut BTreeMap<String, String>) {
        for (name, value) in &self.const_labels {
            if self.const_labels_first || !labels.contains_key(name) {
                labels.insert(name.clone(), value.clone());
            }
        }
    }

    /// The labels of a resource's `target_info` as it is pushed: a part of its identity is enough. None
    /// where it would tell nothing, or its attributes cannot be labels.
    pub(super) fn pushed_target(&self, resource: &View<'_>) -> Option<Labels> {
        let mut attributes = attributes(resource);
        let [name, namespace, instance] = SERVICE_ATTRIBUTES.map(|key| attributes.remove(key));
        let job = name.map(|name| match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        });
        if attributes.is_empty() || job.is_none() && instance.is_none() {
            return None;
        }
        let mut labels = joined(&attributes, &self.namer).ok()?;
        for (name, value) in [("job", job), ("instance", instance)] {
            labels.extend(value.map(|value| (name.to_owned(), value)));
        }
        self.add_const_labels(&mut labels);
        Labels::of(labels).ok()
    }
}

/// Gives a label another name that the samples of such a metric have themselves: the name that
/// Prometheus gives it when a target's labels clash with its own.
fn rename_own(labels: &mut BTreeMap<String, String>, kind: Kind) {
    let own = match kind {
        Kind::Histogram => "le",
        Kind::Summary => "quantile",
        Kind::Counter | Kind::Gauge => return,
    };
    if let Some(value) = labels.remove(own) {
        labels.insert(format!("exported_{own}"), value);
    }
}

impl ResourceLabels {
    /// Whether the attribute of this key becomes a label.
    fn choose(&self, key: &str) -> bool {
        let is_of = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, key));
        is_of(&self.included) && !is_of(&self.excluded)
    }
}

/// Attributes by their keys; of several with one key the last.
fn attributes(message: &View<'_>) -> BTreeMap<String, String> {
    let text = |value: Any<'_>| String::from_utf8_lossy(&otlp::text::text_of(value)).into_owned();
    let attributes = message.attributes("attributes");
    attributes
        .map(|(key, value)| (key.into_owned(), text(value)))
        .collect()
}

/// Attributes as labels. Values whose keys make the same name are joined with `;`, in the order of
/// the keys (OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility").
fn joined<'a>(
    attributes: impl IntoIterator<Item = (&'a String, &'a String)>,
    namer: &Namer,
) -> Result<BTreeMap<String, String>, &'static str> {
    let mut labels = BTreeMap::<String, String>::new();
    for (key, value) in attributes {
        let name = namer.label(key).ok_or(NO_NAME)?;
        if name.starts_with("__") {
            return Err(RESERVED);
        }
        match labels.get_mut(&name) {
            Some(values) => {
                values.push(';');
                values.push_str(value);
            }
            None => {
                labels.insert(name, value.clone());
            }
        }
    }
    Ok(labels)
}

/// Whether a text is what a pattern says: `*` stands for any characters, `?` for one.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Where to go on when the rest does not fit: after the last `*`, one character further.
    let mut again = None;
    loop {
        let (mut next, mut rest) = (pattern.clone(), text.clone());
        match (next.next(), rest.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                pattern = next.clone();
                again = Some((next, text.clone()));
                continue;
            }
            (Some(wanted), Some(c)) if wanted == '?' || wanted == c => {
                (pattern, text) = (next, rest);
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = &mut again else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        (pattern, text) = (after.clone(), from.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::components::exporters::prometheus::Translation;

    fn namer() -> Namer {
        let translation = Translation {
            suffixes: true,
            utf8: false,
        };
        Namer::new("", translation)
    }

    #[test]
    fn values_of_keys_that_collide_are_joined() {
        let attributes = ["a.b", "a_b", "a-b", "c"].map(|key| (key.to_owned(), key.to_owned()));
        let labels = joined(&BTreeMap::from(attributes), &namer());
        let wanted = [("a_b", "a-b;a.b;a_b"), ("c", "c")];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(labels, Ok(BTreeMap::from(wanted)));
        for (key, reason) in [("__name__", RESERVED), ("", NO_NAME)] {
            let attributes = BTreeMap::from([(key.to_owned(), String::new())]);
            assert_eq!(joined(&attributes, &namer()), Err(reason));
        }
    }

    #[test]
    fn labels_that_samples_have_themselves_are_renamed() {
        for (kind, wanted) in [
            (Kind::Histogram, ["exported_le", "quantile"]),
            (Kind::Summary, ["exported_quantile", "le"]),
            (Kind::Gauge, ["le", "quantile"]),
        ] {
            let labels = ["le", "quantile"].map(|name| (name.to_owned(), String::new()));
            let mut labels = BTreeMap::from(labels);
            rename_own(&mut labels, kind);
            assert!(labels.keys().eq(&wanted), "{labels:?}");
        }
    }

    #[test]
    fn labels_have_limits() {
        let many = (0..=LABELS_MAX).map(|number| (number.to_string(), String::new()));
        assert_eq!(Labels::of(many.collect()), Err(TOO_MANY));
        let long = BTreeMap::from([("a".to_owned(), "x".repeat(LABEL_BYTES_MAX))]);
        assert_eq!(Labels::of(long), Err(TOO_LONG));
    }

    #[test]
    fn patterns_choose_attributes() {
        for (pattern, text, wanted) in [
            ("*", "", true),
            ("service*", "service.name", true),
            ("k8s.*.name", "k8s.pod.name", true),
            ("k8s.*.name", "k8s.pod.uid", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaab", true),
            ("a", "ab", false),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
        let chosen = ResourceLabels {
            included: vec!["a*".to_owned()],
            excluded: vec!["ab".to_owned()],
        };
        assert_eq!(
            ["ac", "ab", "b"].map(|key| chosen.choose(key)),
            [true, false, false]
        );
    }
}
