//! Changes of attributes, as `resource` and `attributes` make them.

use crate::config::components::shared::context::Context;
use crate::config::options::{Kind, Opt, Section, Table, opt, required};
use crate::config::pattern;
use crate::config::source::{Node, Value};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Sets a key, where it may be set.
    Set {
        /// The key.
        key: String,
        /// What it is set to.
        source: Source,
        /// Whether it must be there, or must not.
        when: When,
    },
    /// Removes a key, and the keys that match.
    Delete {
        /// The key; empty: none.
        key: String,
        /// A regular expression of keys.
        pattern: Option<String>,
    },
    /// Replaces values by their hash (SHA-256).
    Hash {
        /// The key; empty: none.
        key: String,
        /// A regular expression of keys.
        pattern: Option<String>,
    },
    /// Sets the keys that are the names of groups to what those match in a text.
    Extract {
        /// The key of the text.
        key: String,
        /// A regular expression whose groups all have names.
        pattern: String,
    },
    /// Makes a value of another type, where that can be done.
    Convert {
        /// The key.
        key: String,
        /// The type.
        to: Type,
    },
}

/// Whether a key must be there to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// `insert`: it must not.
    Missing,
    /// `update`: it must.
    Present,
    /// `upsert`: it need not.
    Always,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `value`
    Value(AttributeValue),
    /// `from_attribute`
    Attribute(String),
    /// `from_context`
    Context(Context),
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A flag.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// Values of any types.
    List(Vec<AttributeValue>),
    /// Values by keys, in the order of the file.
    Map(Vec<(String, AttributeValue)>),
}

/// `converted_type`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `string`
    Text,
    /// `int`
    Int,
    /// `double`
    Double,
}

#[rustfmt::skip]
const ACTIONS: &[&str] = &["insert", "update", "upsert", "delete", "hash", "extract", "convert"];

/// Options of one change.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("key", Kind::Text, "", "the attribute"),
    required("action", Kind::WordAnyCase(ACTIONS), "what is done"),
    opt("value", Kind::Any, "", "what it is set to: any type"),
    opt("from_attribute", Kind::Text, "", "or the attribute whose value it gets"),
    opt("from_context", Kind::Text, "", "or what came with the request: `metadata.x` (a header field), `client.address`, `auth.x`"),
    opt("pattern", Kind::Text, "", "a regular expression: of keys (delete, hash), of the text (extract)"),
    opt("converted_type", Kind::Word(&["string", "int", "double"]), "", "the type (convert)"),
];

/// The changes of a list. Errors are noted, and what has one is left out.
pub(crate) fn actions(section: &Section<'_>, name: &str) -> Vec<Action> {
    let sections = section.sections(name);
    sections.iter().filter_map(action).collect()
}

fn action(section: &Section<'_>) -> Option<Action> {
    let word = section.text("action").to_ascii_lowercase();
    let key = section.text("key");
    let pattern = pattern_of(section);
    let by_pattern = matches!(&*word, "delete" | "hash");
    if key.is_empty() && !(by_pattern && pattern.is_some()) {
        let or = if by_pattern { ", or 'pattern'" } else { "" };
        section.error("key", &format!("must name an attribute{or}"));
    }
    let used: &[&str] = match &*word {
        "insert" | "update" | "upsert" => &["value", "from_attribute", "from_context"],
        "delete" | "hash" | "extract" => &["pattern"],
        "convert" => &["converted_type"],
        _ => return None,
    };
    for option in [
        "value",
        "from_attribute",
        "from_context",
        "pattern",
        "converted_type",
    ] {
        if section.written(option).is_some() && !used.contains(&option) {
            section.error(option, &format!("means nothing to the action '{word}'"));
        }
    }
    match &*word {
        "insert" => set(section, key, When::Missing),
        "update" => set(section, key, When::Present),
        "upsert" => set(section, key, When::Always),
        "delete" => Some(Action::Delete { key, pattern }),
        "hash" => Some(Action::Hash { key, pattern }),
        "extract" => extract(section, key, pattern),
        _ => convert(section, key),
    }
}

fn pattern_of(section: &Section<'_>) -> Option<String> {
    let text = section.text_unless_empty("pattern")?;
    if let Err(reason) = pattern::check(&text) {
        section.error("pattern", &reason);
    }
    Some(text)
}

fn set(section: &Section<'_>, key: String, when: When) -> Option<Action> {
    let value = section.written("value");
    let value = value.and_then(|node| attribute_value(section, node));
    let attribute = section.text_unless_empty("from_attribute");
    let context = section.text_unless_empty("from_context");
    let sources = [
        value.map(Source::Value),
        attribute.map(Source::Attribute),
        context.map(|text| Source::Context(Context::of_action(&text))),
    ];
    let mut sources = sources.into_iter().flatten();
    let Some(source) = sources.next() else {
        section.error(
            "value",
            "or 'from_attribute' or 'from_context' must be there",
        );
        return None;
    };
    if sources.next().is_some() {
        section.error(
            "value",
            "'from_attribute' and 'from_context': more than one is there, one is enough",
        );
        return None;
    }
    Some(Action::Set { key, source, when })
}

/// A value of any type. The depth is that of the tree.
pub(crate) fn attribute_value(section: &Section<'_>, node: &Node) -> Option<AttributeValue> {
    Some(match &node.value {
        // What an unset variable left is a text without a character.
        Value::Null => AttributeValue::Text(node.text()?.to_owned()),
        Value::Text(text) => AttributeValue::Text(text.clone()),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Float(value) => AttributeValue::Double(*value),
        Value::Int(value) => match i64::try_from(*value) {
            Ok(value) => AttributeValue::Int(value),
            Err(_) => {
                let message = format!("{}::value: does not fit 64 bits", section.path);
                section.notes.error(node.at, message);
                return None;
            }
        },
        Value::List(items) => {
            let items = items.iter().map(|item| attribute_value(section, item));
            AttributeValue::List(items.collect::<Option<_>>()?)
        }
        Value::Map(entries) => {
            let entry = |(key, node): &(crate::config::source::Key, Node)| {
                Some((key.text.clone(), attribute_value(section, node)?))
            };
            AttributeValue::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

fn extract(section: &Section<'_>, key: String, pattern: Option<String>) -> Option<Action> {
    let Some(pattern) = pattern else {
        section.error("pattern", "must be there for the action 'extract'");
        return None;
    };
    match pattern::groups_have_names(&pattern) {
        Some(true) | None => {}
        Some(false) => section.error("pattern", "must have groups, and each a name: (?P<name>…)"),
    }
    Some(Action::Extract { key, pattern })
}

fn convert(section: &Section<'_>, key: String) -> Option<Action> {
    if section.text("converted_type").is_empty() {
        section.error("converted_type", "must be string, int or double");
        return None;
    }
    let types = [
        ("string", Type::Text),
        ("int", Type::Int),
        ("double", Type::Double),
    ];
    let to = section.choice("converted_type", &types);
    Some(Action::Convert { key, to })
}
