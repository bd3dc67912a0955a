//! `${…}` in texts: variables, files, and YAML in place.
//!
//! Where the whole text is one `${…}`, what comes of it is typed anew (a number, a list, a map),
//! and its text is kept for options that want a text. Within a longer text it is replaced as text.
//! What comes of an expansion is expanded again. `$$` is a dollar. The forms and the order are the
//! Collector's.

use std::cell::Cell;
use std::rc::Rc;

use super::read::{Otherwise, Place, Reader};
use super::tree::{Node, Value, shortened};
use super::{DEPTH_MAX, EXPANDED_BYTES_MAX, EXPANSION_ROUNDS_MAX, EXPANSIONS_MAX};
use crate::config::diagnostic::At;

/// Expands all texts of a tree in place. What cannot be expanded is noted, and left as it is.
pub(super) fn expand(root: &mut Node, reader: &Reader<'_>) {
    let expansion = Expansion {
        reader,
        count: Cell::new(0),
        bytes: Cell::new(0),
    };
    expansion.node(root, 0);
}

struct Expansion<'a> {
    reader: &'a Reader<'a>,
    count: Cell<usize>,
    bytes: Cell<usize>,
}

/// What a `${…}` stands for.
struct Found {
    node: Node,
    /// Its text, for the middle of a longer one.
    text: Rc<str>,
}

impl Expansion<'_> {
    fn node(&self, node: &mut Node, depth: usize) {
        if depth > DEPTH_MAX {
            let message = format!("deeper than {DEPTH_MAX} levels, expansions written out");
            self.reader.notes.error(node.at, message);
            node.value = Value::Null;
            return;
        }
        match &mut node.value {
            Value::List(items) => {
                for item in items {
                    self.node(item, depth + 1);
                }
            }
            Value::Map(entries) => {
                for (_, value) in entries {
                    self.node(value, depth + 1);
                }
            }
            Value::Text(text) if text.contains('$') => {
                let text = std::mem::take(text);
                if let Some(whole) = self.text(text, node) {
                    *node = whole;
                    self.node(node, depth + 1);
                }
                if let Some(text) = &node.verbatim {
                    node.verbatim = Some(unescaped(text).into());
                }
            }
            _ => {}
        }
    }

    /// Expands the text of a node into it. Where a map or a list comes of it, that is given, itself
    /// not expanded yet.
    fn text(&self, mut text: String, node: &mut Node) -> Option<Node> {
        for _ in 0..EXPANSION_ROUNDS_MAX {
            let Some(range) = innermost(&text) else {
                node.value = Value::Text(unescaped(&text));
                return None;
            };
            let reference = &text[range.clone()];
            let Some(found) = self.reference(reference, node.at) else {
                node.value = Value::Text(text);
                return None;
            };
            if range != (0..text.len()) {
                match replaced(&text, reference, &found.text) {
                    Some(replaced) => text = replaced,
                    None => {
                        self.too_long(node.at);
                        return None;
                    }
                }
                continue;
            }
            match found.node.value {
                Value::Text(again) => text = again,
                value @ (Value::List(_) | Value::Map(_)) => {
                    return Some(Node {
                        at: found.node.at,
                        value,
                        verbatim: Some(found.text),
                    });
                }
                value => {
                    node.value = value;
                    node.verbatim = Some(found.text);
                    return None;
                }
            }
        }
        let message = format!(
            "'{}' is still to be expanded after {EXPANSION_ROUNDS_MAX} expansions: does it name itself?",
            shortened(&text)
        );
        self.reader.notes.error(node.at, message);
        None
    }

    /// What a reference stands for; what is wrong with it is noted.
    fn reference(&self, reference: &str, at: At) -> Option<Found> {
        self.count.set(self.count.get() + 1);
        if self.count.get() > EXPANSIONS_MAX {
            let message = format!("more than {EXPANSIONS_MAX} expansions");
            self.reader.notes.error(at, message);
            return None;
        }
        let name = reference.strip_prefix("${")?.strip_suffix('}')?;
        let found = match name.split_once(':') {
            None => self.variable(name, None, at),
            Some(("env", name)) => match name.split_once(":-") {
                Some((name, default)) => self.variable(name, Some(default), at),
                None => self.variable(name, None, at),
            },
            Some(("file", path)) => self.file(path, at),
            Some(("yaml", text)) => self.typed(text, at),
            Some((name, default)) if default.starts_with('-') => {
                let message = format!(
                    "'{reference}' is read as '${{env:{name}:{default}}}': the Collector wants 'env:' before a default"
                );
                self.reader.notes.warn(at, message);
                self.variable(name, default.get(1..), at)
            }
            Some((scheme, _)) => {
                let message = format!(
                    "'{}': '{}' is no source of values: env, file and yaml are (a '$' alone is written '$$')",
                    shortened(reference),
                    shortened(scheme)
                );
                self.reader.notes.error(at, message);
                None
            }
        }?;
        self.bytes.set(self.bytes.get() + found.text.len());
        if self.bytes.get() > EXPANDED_BYTES_MAX {
            self.too_long(at);
            return None;
        }
        Some(found)
    }

    fn too_long(&self, at: At) {
        let message = format!("expansions make more than {EXPANDED_BYTES_MAX} bytes");
        self.reader.notes.error(at, message);
    }

    fn variable(&self, name: &str, default: Option<&str>, at: At) -> Option<Found> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = name.as_bytes().first();
        if !name.bytes().all(word) || first.is_none_or(u8::is_ascii_digit) {
            let message = format!(
                "'{}' is no name of a variable: letters, digits and '_' are (a '$' alone is written '$$')",
                shortened(name)
            );
            self.reader.notes.error(at, message);
            return None;
        }
        match ((self.reader.outside.variable)(name), default) {
            (Some(text), _) => self.typed(&text, at),
            // Not nothing, but a text without a character.
            (None, Some("")) => Some(Found {
                node: Node::new(at, Value::Text(String::new())),
                text: "".into(),
            }),
            (None, Some(default)) => self.typed(default, at),
            (None, None) => {
                let message = format!("the variable '{name}' is not set: it stands for nothing");
                self.reader.notes.warn(at, message);
                self.typed("", at)
            }
        }
    }

    /// A file in the place of a value. A map or a list keeps its own places.
    fn file(&self, path: &str, at: At) -> Option<Found> {
        let (file, text) = self.reader.file(path, Some(at))?;
        let node = self.reader.parse(&text, Place::File(file), Otherwise::Text);
        Some(self.found(node, text, at))
    }

    /// A text in the place of a value, all of it placed where it is named.
    fn typed(&self, text: &str, at: At) -> Option<Found> {
        let node = self.reader.parse(text, Place::At(at), Otherwise::Text);
        Some(self.found(node, text.to_owned(), at))
    }

    fn found(&self, node: Option<Node>, text: String, at: At) -> Found {
        let node = match node {
            // An empty document is read as an empty map.
            _ if text.trim().is_empty() => Node::new(at, Value::Null),
            None => Node::new(at, Value::Text(text.clone())),
            Some(node) => match node.value {
                // A text counts as it stands: its quotes too.
                Value::Text(_) => Node::new(at, Value::Text(text.clone())),
                Value::List(_) | Value::Map(_) => node,
                value => Node::new(at, value),
            },
        };
        Found {
            node,
            text: text.into(),
        }
    }
}

/// The first `${…}` that holds no other and is not escaped.
fn innermost(text: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while let Some(close) = text[from..].find('}') {
        let end = from + close + 1;
        if let Some(open) = text[from..end].rfind("${") {
            let start = from + open;
            if !is_escaped(text, start) {
                return Some(start..end);
            }
        }
        from = end;
    }
    None
}

/// The text with each unescaped occurrence of a reference replaced; nothing where that makes it too
/// long.
fn replaced(text: &str, reference: &str, by: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + by.len());
    let mut from = 0;
    for (start, found) in text.match_indices(reference) {
        if is_escaped(text, start) {
            continue;
        }
        out.push_str(&text[from..start]);
        out.push_str(by);
        if out.len() > EXPANDED_BYTES_MAX {
            return None;
        }
        from = start + found.len();
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// Whether the dollar at `start` belongs to one before it: an odd number of dollars stands there.
fn is_escaped(text: &str, start: usize) -> bool {
    let dollars = text[..start].bytes().rev().take_while(|byte| *byte == b'$');
    dollars.count() % 2 == 1
}

/// `$$` as one dollar.
fn unescaped(text: &str) -> String {
    text.replace("$$", "$")
}
