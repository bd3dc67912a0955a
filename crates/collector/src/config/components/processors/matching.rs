//! `include` and `exclude`: which records count.

use super::action::{AttributeValue, attribute_value};
use crate::config::options::{Kind, Opt, Section, Table, opt, required};
use crate::config::pattern;

/// Attributes by their keys; without a value: any.
pub type Attributes = Vec<(String, Option<AttributeValue>)>;

/// What a record must have: one of each list that is not empty, and all of the attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// Whether texts are regular expressions.
    pub regex: bool,
    /// `service.name` of the resource.
    pub services: Vec<String>,
    /// Names; only spans have one.
    pub span_names: Vec<String>,
    /// Kinds, such as `SPAN_KIND_SERVER`; only spans have one.
    pub span_kinds: Vec<String>,
    /// Attributes of the record; without a value: any.
    pub attributes: Attributes,
    /// Attributes of the resource.
    pub resources: Attributes,
    /// Scopes: a name, and perhaps a version.
    pub libraries: Vec<(String, Option<String>)>,
}

const KINDS: [&str; 5] = [
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

#[rustfmt::skip]
const ATTRIBUTE: &[Opt] = &[
    required("key", Kind::Text, "the attribute"),
    opt("value", Kind::Any, "", "its value; any where it is not written"),
];
#[rustfmt::skip]
const LIBRARY: &[Opt] = &[
    required("name", Kind::Text, "the scope"),
    opt("version", Kind::Text, "", "its version; any where it is not written"),
];
#[rustfmt::skip]
const CACHE: &[Opt] = &[
    opt("cacheenabled", Kind::Flag, "false", "results are remembered"),
    opt("cachemaxnumentries", Kind::Int(0, i64::MAX), "0", "how many"),
];
const OTHER_SIGNALS: &str = "match by 'attributes', 'resources' or 'libraries'";

/// Options of a match.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    required("match_type", Kind::Word(&["strict", "regexp"]), "strict or regexp"),
    opt("regexp", Kind::Section(&[CACHE]), "", "how regular expressions are kept").no_effect("results are not remembered: matches are fast without"),
    opt("services", Kind::Texts, "", "`service.name` of the resource"),
    opt("span_names", Kind::Texts, "", "names; only spans have one"),
    opt("span_kinds", Kind::Texts, "", "kinds, such as SPAN_KIND_SERVER; only spans have one"),
    opt("attributes", Kind::Sections(&[ATTRIBUTE]), "", "attributes; all of them"),
    opt("resources", Kind::Sections(&[ATTRIBUTE]), "", "attributes of the resource; all of them"),
    opt("libraries", Kind::Sections(&[LIBRARY]), "", "scopes"),
    opt("log_bodies", Kind::Texts, "", "of logs").refused(OTHER_SIGNALS),
    opt("log_severity_texts", Kind::Texts, "", "of logs").refused(OTHER_SIGNALS),
    opt("log_severity_number", Kind::Any, "", "of logs").refused(OTHER_SIGNALS),
    opt("metric_names", Kind::Texts, "", "of metrics").refused(OTHER_SIGNALS),
];

/// A match, from its section.
pub(crate) fn matching(section: &Section<'_>) -> Matching {
    let regex = section.text("match_type") == "regexp";
    let matching = Matching {
        regex,
        services: section.texts("services"),
        span_names: section.texts("span_names"),
        span_kinds: section.texts("span_kinds"),
        attributes: attributes(section, "attributes", regex),
        resources: attributes(section, "resources", regex),
        libraries: libraries(section, regex),
    };
    let names = [
        "services",
        "span_names",
        "span_kinds",
        "attributes",
        "resources",
        "libraries",
    ];
    if names.iter().all(|name| section.written(name).is_none()) {
        section.fault(&format!(
            "must say what matches: one of {}",
            names.join(", ")
        ));
    }
    for name in ["services", "span_names", "span_kinds"] {
        for (text, at) in section.texts_at(name) {
            let wrong = match (matching.regex, name) {
                (true, _) => pattern::check(&text).err(),
                (false, "span_kinds") if !KINDS.contains(&&*text) => {
                    Some(format!("'{text}' is no kind: {} are", KINDS.join(", ")))
                }
                _ => None,
            };
            if let Some(reason) = wrong {
                let message = format!("{}::{name}: {reason}", section.path);
                section.notes.error(at, message);
            }
        }
    }
    if regex {
        for name in ["services", "span_names", "span_kinds"] {
            if let Err(reason) = pattern::compile_any(&section.texts(name))
                && section.texts(name).len() > 1
            {
                section.error(name, &reason);
            }
        }
    }
    matching
}

/// Attributes under a key of a section.
pub(crate) fn attributes(section: &Section<'_>, name: &str, regex: bool) -> Attributes {
    let of = |item: &Section<'_>| {
        let key = item.text("key");
        if key.is_empty() {
            item.error("key", "must name an attribute");
        }
        let value = item.written("value");
        let value = value.and_then(|node| attribute_value(item, node));
        match &value {
            Some(AttributeValue::Text(text)) if regex => is_pattern(item, "value", text),
            Some(_) if regex => item.error("value", "must be a text where 'match_type' is regexp"),
            _ => {}
        }
        (key, value)
    };
    section.sections(name).iter().map(of).collect()
}

fn libraries(section: &Section<'_>, regex: bool) -> Vec<(String, Option<String>)> {
    let of = |item: &Section<'_>| {
        let name = item.text("name");
        let version = item.written("version").map(|_| item.text("version"));
        if regex {
            is_pattern(item, "name", &name);
            if let Some(version) = &version {
                is_pattern(item, "version", version);
            }
        }
        (name, version)
    };
    section.sections("libraries").iter().map(of).collect()
}

fn is_pattern(item: &Section<'_>, name: &str, text: &str) {
    if let Err(reason) = pattern::check(text) {
        item.error(name, &reason);
    }
}
