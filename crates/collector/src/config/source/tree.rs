//! The tree of a configuration: typed scalars, and where each was written.

use std::rc::Rc;

use crate::config::diagnostic::At;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
    /// The text behind a value that came of an expansion: where a text is wanted, it counts,
    /// whatever it looks like.
    pub verbatim: Option<Rc<str>>,
}

/// What a node is, by YAML's core schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// As if it were not there.
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; no key is there twice.
    Map(Vec<(Key, Node)>),
}

/// A key of a map and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub at: At,
    pub text: String,
}

impl PartialEq for Node {
    /// Places do not count.
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl Node {
    pub(crate) fn new(at: At, value: Value) -> Node {
        Node {
            at,
            value,
            verbatim: None,
        }
    }

    /// A map's entries; none of what is no map.
    pub(crate) fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// A list's items; none of what is no list.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The key and the value under a name, null too.
    pub(crate) fn entry(&self, key: &str) -> Option<&(Key, Node)> {
        self.entries().iter().find(|(k, _)| k.text == key)
    }

    /// The value under a name, where one is written.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let (_, node) = self.entry(key)?;
        (!node.is_null()).then_some(node)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The text that it is, or that it came of.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => self.verbatim.as_deref(),
        }
    }

    /// What it is, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Text(text) => format!("'{}'", shortened(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// Characters of a text that a message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// A text as a message shows it: not too long.
pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
