//! Files and texts as trees, within the bounds of a load.

use std::cell::Cell;

use syntax::yaml;

use super::merge::merge;
use super::tree::{Key, Node, Value};
use super::{DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, NODES_MAX, Outside, typing};
use crate::config::diagnostic::{At, Notes};

/// The Collector's separator of keys within keys.
const KEY_SEPARATOR: &str = "::";
/// Keys in one such key; the rest is the last one's.
const KEY_WORDS_MAX: usize = 16;

const RULES: yaml::Rules = yaml::Rules {
    bytes_max: FILE_BYTES_MAX,
    depth_max: DEPTH_MAX,
    empty_is_absent: false,
};

/// Reads files, and counts what one load has taken.
pub(super) struct Reader<'a> {
    pub outside: Outside<'a>,
    pub notes: &'a Notes,
    files: Cell<usize>,
    nodes: Cell<usize>,
}

/// Whether a text that is no YAML is an error, or a text after all (a variable, a certificate).
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Otherwise {
    Error,
    Text,
}

/// Where a text stands: it is a file, or it came from elsewhere to one place.
#[derive(Clone, Copy)]
pub(super) enum Place {
    File(u32),
    At(At),
}

impl<'a> Reader<'a> {
    pub(super) fn new(outside: Outside<'a>, notes: &'a Notes) -> Reader<'a> {
        Reader {
            outside,
            notes,
            files: Cell::new(0),
            nodes: Cell::new(0),
        }
    }

    /// The tree of a source: a map, or an error.
    pub(super) fn source(&self, source: &str) -> Option<Node> {
        let (file, text) = self.source_text(source)?;
        let node = self.parse(&text, Place::File(file), Otherwise::Error)?;
        if !matches!(node.value, Value::Map(_)) {
            let message =
                "a configuration is a map of receivers, processors, exporters and service";
            self.notes.error(node.at, message);
            return None;
        }
        Some(unflattened(node, self.notes))
    }

    /// The number of the file and the text of a source.
    fn source_text(&self, source: &str) -> Option<(u32, String)> {
        let start = |file| At {
            file,
            line: 1,
            column: 1,
        };
        match source.split_once(':') {
            Some(("env", name)) => {
                let file = self.notes.file(source);
                let text = (self.outside.variable)(name);
                if text.is_none() {
                    let message = format!("the variable '{name}' is not set");
                    self.notes.error(start(file), message);
                }
                Some((file, text?))
            }
            Some(("yaml", text)) => Some((self.notes.file("yaml:"), text.to_owned())),
            Some((scheme @ ("http" | "https"), _)) => {
                let file = self.notes.file(source);
                let message = format!("'{scheme}:' is not read: give a file");
                self.notes.error(start(file), message);
                None
            }
            Some(("file", path)) => self.file(path, None),
            _ => self.file(source, None),
        }
    }

    /// A file's number and text. `at` is where it is named; a source is named nowhere.
    pub(super) fn file(&self, path: &str, at: Option<At>) -> Option<(u32, String)> {
        let file = self.notes.file(path);
        let at = at.unwrap_or(At {
            file,
            line: 1,
            column: 1,
        });
        if self.files.get() >= FILES_MAX {
            let message = format!("more than {FILES_MAX} files make this configuration");
            self.notes.error(at, message);
            return None;
        }
        self.files.set(self.files.get() + 1);
        let bytes = match (self.outside.read_file)(path) {
            Ok(bytes) => bytes,
            Err(reason) => {
                self.notes
                    .error(at, format!("cannot read '{path}': {reason}"));
                return None;
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) => Some((file, text)),
            Err(_) => {
                self.notes.error(at, format!("'{path}' is not UTF-8"));
                None
            }
        }
    }

    /// A text's tree.
    pub(super) fn parse(&self, text: &str, place: Place, otherwise: Otherwise) -> Option<Node> {
        let mut errors = Vec::new();
        let document = yaml::parse(text, &RULES, &mut errors);
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let placed = |at: yaml::At| match place {
            Place::At(at) => at,
            Place::File(file) => At {
                file,
                line: number(at.line),
                column: number(at.column),
            },
        };
        let whole = document.is_some();
        if otherwise == Otherwise::Error || whole {
            for error in errors {
                self.notes.error(placed(error.at), error.message);
            }
        }
        let document = document?;
        if let Some(next) = document.next {
            let message = "another document begins here: only the first one counts";
            self.notes.warn(placed(next), message);
        }
        let convert = Convert {
            reader: self,
            placed: &placed,
        };
        convert.node(&document.root)
    }

    /// Counts a node; an error past the bound.
    pub(super) fn count(&self, at: At) -> Option<()> {
        let nodes = self.nodes.get() + 1;
        self.nodes.set(nodes);
        if nodes > NODES_MAX {
            let message = format!("more than {NODES_MAX} values, aliases written out");
            let start = At {
                line: 1,
                column: 1,
                ..at
            };
            self.notes.error(start, message);
            return None;
        }
        Some(())
    }
}

/// A shared tree of texts as an own tree of typed values.
struct Convert<'a> {
    reader: &'a Reader<'a>,
    placed: &'a dyn Fn(yaml::At) -> At,
}

impl Convert<'_> {
    fn node(&self, node: &yaml::Node) -> Option<Node> {
        let at = (self.placed)(node.at);
        self.reader.count(at)?;
        let value = match &node.value {
            yaml::Value::Absent => Value::Null,
            yaml::Value::Text(text) if node.plain => typing::plain(text),
            yaml::Value::Text(text) => Value::Text(text.clone()),
            yaml::Value::List(items) => {
                let items = items.iter().map(|item| self.node(item));
                Value::List(items.collect::<Option<_>>()?)
            }
            yaml::Value::Map(entries) => Value::Map(self.map(entries)?),
        };
        Some(Node::new(at, value))
    }

    fn map(&self, entries: &[(yaml::Key, std::rc::Rc<yaml::Node>)]) -> Option<Vec<(Key, Node)>> {
        let mut map = Vec::with_capacity(entries.len());
        let mut merged = Vec::new();
        for (key, node) in entries {
            let at = (self.placed)(key.at);
            if key.text == "<<" {
                self.merged(node, at, &mut merged)?;
                continue;
            }
            let text = key.text.clone();
            map.push((Key { at, text }, self.node(node)?));
        }
        // What is written in the map itself wins over what `<<` brings, and the first that it
        // brings over the rest.
        for (key, node) in merged {
            if !map.iter().any(|(k, _): &(Key, Node)| k.text == key.text) {
                map.push((key, node));
            }
        }
        Some(map)
    }

    fn merged(&self, node: &yaml::Node, at: At, into: &mut Vec<(Key, Node)>) -> Option<()> {
        match &node.value {
            yaml::Value::Map(entries) => into.extend(self.map(entries)?),
            yaml::Value::List(items) => {
                for item in items {
                    match &item.value {
                        yaml::Value::Map(entries) => into.extend(self.map(entries)?),
                        _ => self.no_merge(at),
                    }
                }
            }
            _ => self.no_merge(at),
        }
        Some(())
    }

    fn no_merge(&self, at: At) {
        let message = "'<<' takes a map, or a list of maps";
        self.reader.notes.error(at, message);
    }
}

/// Keys such as `processors::batch::timeout` at the top of a source, as maps within maps.
fn unflattened(node: Node, notes: &Notes) -> Node {
    let Value::Map(entries) = node.value else {
        return node;
    };
    let mut root = Node::new(node.at, Value::Map(Vec::new()));
    for (key, mut value) in entries {
        let words: Vec<&str> = key.text.splitn(KEY_WORDS_MAX, KEY_SEPARATOR).collect();
        for word in words.into_iter().rev() {
            let key = Key {
                at: key.at,
                text: word.to_owned(),
            };
            value = Node::new(key.at, Value::Map(vec![(key, value)]));
        }
        merge(&mut root, value, notes);
    }
    root
}
