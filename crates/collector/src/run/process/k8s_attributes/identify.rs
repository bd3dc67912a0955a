//! How the pod of a resource is found: by sources and their values, as `pod_association` has them.

use std::net::IpAddr;

use otlp::scan::Any;

use crate::config::components::processors::k8s_attributes::Source;
use crate::run::process::edit::List;

/// Identity of a pod.
pub struct Told {
    /// As [`identifier`] writes it.
    pub identifier: String,
    /// The address of the connection, where it is a part of that.
    pub address: Option<String>,
}

/// What a resource that came from an address tells of its pod: by the first association whose
/// sources are all there; without associations by its address.
pub fn told(
    associations: &[Vec<Source>],
    resource: &List<'_>,
    address: Option<IpAddr>,
) -> Option<Told> {
    let address = address.map(|address| address.to_canonical().to_string());
    let attribute = |name: &str| {
        let value = text(resource, name)?;
        // In a pod the host's name may be its address; otherwise it tells nothing.
        let is_told = name != "host.name" || value.parse::<IpAddr>().is_ok();
        is_told.then_some(value)
    };
    if associations.is_empty() {
        let found = attribute("k8s.pod.ip").or_else(|| attribute("ip"));
        let found = found.or(address).or_else(|| attribute("host.name"))?;
        return Some(Told {
            identifier: identifier([(&Source::Connection, found.as_str())]),
            address: Some(found),
        });
    }
    for sources in associations {
        let value = |source: &Source| match source {
            Source::Connection => address.clone(),
            Source::Attribute(name) => attribute(name),
        };
        let values: Option<Vec<String>> = sources.iter().map(value).collect();
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            continue;
        };
        let parts = sources.iter().zip(values.iter().map(String::as_str));
        let identifier = identifier(parts);
        let has_address = sources.contains(&Source::Connection);
        return Some(Told {
            identifier,
            address: address.filter(|_| has_address),
        });
    }
    None
}

/// An attribute that is a text, and not empty.
pub fn text(resource: &List<'_>, name: &str) -> Option<String> {
    match resource.get(name.as_bytes())? {
        Any::Text(text) if !text.is_empty() => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// Sources and their values as one text.
pub fn identifier<'a>(parts: impl IntoIterator<Item = (&'a Source, &'a str)>) -> String {
    let mut text = String::new();
    for (source, value) in parts {
        if let Source::Attribute(name) = source {
            text.push_str(name);
        }
        text.push('\u{1f}');
        text.push_str(value);
        text.push('\u{1e}');
    }
    text
}
