//! YAML text as a tree that knows where everything was written.
//!
//! Built from the parser's events, so that every bound is ours: an alias shares the node it names (no text grows by
//! aliases), and no branch is deeper than [`DEPTH_MAX`].

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::Error;

/// Bytes of a file that is read.
pub(super) const FILE_BYTES_MAX: usize = 1 << 20;
/// Levels of maps and lists within each other.
pub(super) const DEPTH_MAX: usize = 32;

/// Where something stands, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub line: usize,
    pub column: usize,
}

impl At {
    pub(super) fn error(self, message: impl Into<String>) -> Error {
        Error {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }
}

impl From<Span> for At {
    fn from(span: Span) -> At {
        At {
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub at: At,
    pub value: Value,
    /// Levels below, itself included.
    height: usize,
}

#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, `~`, `null`, or an empty text: as if the key were not there.
    Absent,
    Text(String),
    List(Vec<Rc<Node>>),
    /// In the order of the file; no key is there twice.
    Map(Vec<(Key, Rc<Node>)>),
}

#[derive(Debug)]
pub(super) struct Key {
    pub at: At,
    pub text: String,
}

impl Node {
    /// A map's entries; none of what is no map.
    pub(super) fn entries(&self) -> &[(Key, Rc<Node>)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, where one is written.
    pub(super) fn get(&self, key: &str) -> Option<&Rc<Node>> {
        let (_, node) = self.entries().iter().find(|(k, _)| k.text == key)?;
        (!matches!(node.value, Value::Absent)).then_some(node)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }
}

/// The first document of a text. What is wrong is added to `errors`; nothing is given where the text is no YAML.
pub(super) fn parse(text: &str, errors: &mut Vec<Error>) -> Option<Rc<Node>> {
    let start = At { line: 1, column: 1 };
    if text.len() > FILE_BYTES_MAX {
        errors.push(start.error(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
        return None;
    }
    let mut builder = Builder {
        errors,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let done = event
            .map_err(|error| syntax(&error))
            .and_then(|(event, span)| builder.event(event, span.into()));
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                builder.errors.push(error);
                return None;
            }
        }
    }
    let root = builder.root.take();
    let root = root.filter(|node| !matches!(node.value, Value::Absent));
    // An empty file is an empty map.
    root.or_else(|| Some(Rc::new(Node::new(start, Value::Map(Vec::new()), 1))))
}

fn syntax(error: &ScanError) -> Error {
    let marker = error.marker();
    let at = At {
        line: marker.line(),
        column: marker.col() + 1,
    };
    at.error(error.info())
}

impl Node {
    fn new(at: At, value: Value, height: usize) -> Node {
        Node { at, value, height }
    }
}

struct Builder<'e> {
    errors: &'e mut Vec<Error>,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
}

/// A map or a list that is being read.
struct Open {
    at: At,
    anchor: usize,
    height: usize,
    what: What,
}

enum What {
    List(Vec<Rc<Node>>),
    Map {
        entries: Vec<(Key, Rc<Node>)>,
        key: Option<Key>,
    },
}

impl Builder<'_> {
    /// Takes the next event; false after the first document.
    fn event(&mut self, event: Event<'_>, at: At) -> Result<bool, Error> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let absent =
                    text.is_empty() || plain && (text == "~" || text.eq_ignore_ascii_case("null"));
                let value = match absent {
                    true => Value::Absent,
                    false => Value::Text(text.into_owned()),
                };
                self.put(Rc::new(Node::new(at, value, 1)), anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, What::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                let entries = Vec::new();
                self.open(at, anchor, What::Map { entries, key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| at.error("an alias of what it is part of"))?;
                self.put(node, 0)?;
            }
            Event::DocumentEnd => return Ok(false),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
        Ok(true)
    }

    fn open(&mut self, at: At, anchor: usize, what: What) -> Result<(), Error> {
        if let Some(Open {
            what: What::Map { key: None, .. },
            ..
        }) = self.open.last()
        {
            return Err(at.error("a key must be a plain word, not a map or a list"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(at.error(format!("deeper than {DEPTH_MAX} levels")));
        }
        self.open.push(Open {
            at,
            anchor,
            height: 1,
            what,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.what {
            What::List(items) => Value::List(items),
            What::Map { entries, .. } => Value::Map(entries),
        };
        self.put(Rc::new(Node::new(open.at, value, open.height)), open.anchor)
    }

    /// A whole value: a key, a value of a map, an item of a list, or the document.
    fn put(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), Error> {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        // An alias may be as deep as what it names.
        open.height = open.height.max(node.height + 1);
        if open.height > DEPTH_MAX {
            return Err(node.at.error(format!("deeper than {DEPTH_MAX} levels")));
        }
        match &mut open.what {
            What::List(items) => items.push(node),
            What::Map { entries, key } => match key.take() {
                None => {
                    let text = match &node.value {
                        Value::Text(text) => text.clone(),
                        Value::Absent => String::new(),
                        _ => return Err(node.at.error("a key must be a plain word")),
                    };
                    *key = Some(Key { at: node.at, text });
                }
                Some(key) => {
                    if entries.iter().any(|(other, _)| other.text == key.text) {
                        let text = format!("the key '{}' is there twice", key.text);
                        self.errors.push(key.at.error(text));
                    } else {
                        entries.push((key, node));
                    }
                }
            },
        }
        Ok(())
    }
}
