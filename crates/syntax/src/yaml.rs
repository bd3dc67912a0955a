//! YAML text as a tree with source places.
//!
//! The tree is built from the parser's events, so that all limits are our own. An alias shares the
//! node that it names (aliases do not multiply text), and no branch is deeper than
//! [`Rules::depth_max`]. Scalars stay text; the caller interprets them.

mod flow;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use flow::Pushed;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

/// The limits and options of parsing.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Most bytes of a text.
    pub bytes_max: usize,
    /// Most nested maps and lists.
    pub depth_max: usize,
    /// Whether an empty quoted text counts as absent.
    pub empty_is_absent: bool,
}

/// A place; line and column are counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl From<Span> for At {
    fn from(span: Span) -> At {
        At {
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The place.
    pub at: At,
    /// The message.
    pub message: String,
}

impl At {
    /// An error at this place.
    pub fn error(self, message: impl Into<String>) -> Error {
        Error {
            at: self,
            message: message.into(),
        }
    }
}

/// A value and its start.
#[derive(Debug)]
pub struct Node {
    /// Its first character.
    pub at: At,
    /// The value.
    pub value: Value,
    /// Whether a text has no quotes and no tag, so that it may be a number or a flag.
    pub plain: bool,
    /// The number of levels including itself.
    height: usize,
}

/// The written value.
#[derive(Debug)]
pub enum Value {
    /// Nothing, `~` or `null` (and an empty text, by [`Rules::empty_is_absent`]): like a missing
    /// key.
    Absent,
    /// A scalar.
    Text(String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// Entries in the order of the file, without duplicate keys.
    Map(Vec<(Key, Rc<Node>)>),
}

/// A key of a map.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its first character.
    pub at: At,
    /// The key itself.
    pub text: String,
}

impl Node {
    fn new(at: At, value: Value, height: usize) -> Node {
        Node {
            at,
            value,
            plain: false,
            height,
        }
    }

    /// The entries of a map; empty for other values.
    #[must_use]
    pub fn entries(&self) -> &[(Key, Rc<Node>)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, if there is one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Rc<Node>> {
        let (_, node) = self.entries().iter().find(|(k, _)| k.text == key)?;
        (!matches!(node.value, Value::Absent)).then_some(node)
    }

    /// Whether it is a map.
    #[must_use]
    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }
}

/// The first document of a text.
#[derive(Debug)]
pub struct Document {
    /// Its value; an empty map for an empty document.
    pub root: Rc<Node>,
    /// The start of another document, which is not read.
    pub next: Option<At>,
}

/// Parses the first document of a text. Faults are added to `errors`; None if the text is not YAML.
pub fn parse(text: &str, rules: &Rules, errors: &mut Vec<Error>) -> Option<Document> {
    let start = At { line: 1, column: 1 };
    if text.len() > rules.bytes_max {
        let message = format!("the file is larger than {} bytes", rules.bytes_max);
        errors.push(start.error(message));
        return None;
    }
    let mut pushed = Pushed::default();
    loop {
        let mut found = Vec::new();
        let fault = match attempt(text, &pushed, rules, &mut found) {
            Ok(document) => {
                errors.append(&mut found);
                return Some(document);
            }
            Err(fault) => fault,
        };
        let is_flow = fault.message.starts_with(FLOW_INDENTATION);
        if !is_flow || !pushed.push(text, fault.at.line, rules.bytes_max) {
            errors.append(&mut found);
            errors.push(fault);
            return None;
        }
    }
}

/// The parser's message for a line in a flow list or map with too little indentation, and for no
/// other fault.
const FLOW_INDENTATION: &str = "invalid indentation";

/// Parses the first document, with some lines indented.
fn attempt(
    text: &str,
    pushed: &Pushed,
    rules: &Rules,
    errors: &mut Vec<Error>,
) -> Result<Document, Error> {
    let mut builder = Builder {
        rules,
        errors,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
    };
    let text = pushed.text(text);
    let mut parser = Parser::new_from_str(&text);
    let mut next = None;
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let error = syntax(&error);
            pushed.unpushed(error.at).error(error.message)
        })?;
        if !builder.event(event, pushed.unpushed(span.into()))? {
            next = following(&mut parser);
            break;
        }
    }
    let root = builder.root.take();
    let root = root.filter(|node| !matches!(node.value, Value::Absent));
    // An empty file is an empty map.
    let start = At { line: 1, column: 1 };
    let root = root.unwrap_or_else(|| Rc::new(Node::new(start, Value::Map(Vec::new()), 1)));
    Ok(Document { root, next })
}

/// The start of the next document, whose content is not checked.
fn following(parser: &mut Parser<'_, saphyr_parser::StrInput<'_>>) -> Option<At> {
    match parser.next_event()? {
        Ok((Event::DocumentStart(_), span)) => Some(span.into()),
        _ => None,
    }
}

fn syntax(error: &ScanError) -> Error {
    let marker = error.marker();
    let at = At {
        line: marker.line(),
        column: marker.col() + 1,
    };
    at.error(error.info())
}

struct Builder<'e> {
    rules: &'e Rules,
    errors: &'e mut Vec<Error>,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
}

/// A map or a list during parsing.
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
        seen: HashSet<String>,
        key: Option<Key>,
    },
}

impl Builder<'_> {
    /// Processes the next event; false after the first document.
    fn event(&mut self, event: Event<'_>, at: At) -> Result<bool, Error> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !tag.is_some_and(|tag| is_text(&tag));
                let absent = text.is_empty() && (plain || self.rules.empty_is_absent)
                    || plain && (text == "~" || text.eq_ignore_ascii_case("null"));
                let value = if absent {
                    Value::Absent
                } else {
                    Value::Text(text.into_owned())
                };
                let mut node = Node::new(at, value, 1);
                node.plain = plain;
                self.put(Rc::new(node), anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, What::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                let what = What::Map {
                    entries: Vec::new(),
                    seen: HashSet::new(),
                    key: None,
                };
                self.open(at, anchor, what)?;
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
        if self.open.len() >= self.rules.depth_max {
            return Err(self.too_deep(at));
        }
        self.open.push(Open {
            at,
            anchor,
            height: 1,
            what,
        });
        Ok(())
    }

    fn too_deep(&self, at: At) -> Error {
        at.error(format!("deeper than {} levels", self.rules.depth_max))
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

    /// Adds a complete value: a key, a value of a map, an item of a list, or the document.
    fn put(&mut self, node: Rc<Node>, anchor: usize) -> Result<(), Error> {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        // An alias is as deep as the node that it names.
        open.height = open.height.max(node.height + 1);
        if open.height > self.rules.depth_max {
            return Err(self.too_deep(node.at));
        }
        match &mut open.what {
            What::List(items) => items.push(node),
            What::Map { entries, seen, key } => match key.take() {
                None => {
                    let text = match &node.value {
                        Value::Text(text) => text.clone(),
                        Value::Absent => String::new(),
                        _ => return Err(node.at.error("a key must be a plain word")),
                    };
                    *key = Some(Key { at: node.at, text });
                }
                Some(key) => {
                    if seen.insert(key.text.clone()) {
                        entries.push((key, node));
                    } else {
                        let text = format!("the key '{}' is there twice", key.text);
                        self.errors.push(key.at.error(text));
                    }
                }
            },
        }
        Ok(())
    }
}

/// `!` or `!!str`: a text, whatever its content.
fn is_text(tag: &Tag) -> bool {
    tag.is_yaml_core_schema() && tag.suffix == "str" || tag.handle.is_empty() && tag.suffix == "!"
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        bytes_max: 1000,
        depth_max: 4,
        empty_is_absent: false,
    };

    fn errors(text: &str) -> Vec<(usize, usize, String)> {
        let mut errors = Vec::new();
        parse(text, &RULES, &mut errors);
        let errors = errors.into_iter();
        errors
            .map(|error| (error.at.line, error.at.column, error.message))
            .collect()
    }

    #[test]
    fn places_and_bounds() {
        let twice = "a: 1\nb: 2\na: 3\n";
        assert_eq!(
            errors(twice),
            [(3, 1, "the key 'a' is there twice".to_owned())]
        );
        let deep = "a: [[[[]]]]";
        assert_eq!(errors(deep), [(1, 7, "deeper than 4 levels".to_owned())]);
        // An alias adds the levels of the node that it names.
        let alias = "a: &a [[]]\nb: [[*a]]";
        assert_eq!(errors(alias), [(2, 4, "deeper than 4 levels".to_owned())]);
        let own = "a: &a [*a]";
        assert_eq!(
            errors(own),
            [(1, 8, "an alias of what it is part of".to_owned())]
        );
        let large = format!("a: {}", "x".repeat(1000));
        assert_eq!(
            errors(&large),
            [(1, 1, "the file is larger than 1000 bytes".to_owned())]
        );
    }

    #[test]
    fn plain_text_is_told_from_the_rest() {
        let mut errors = Vec::new();
        let text = "a: 1\nb: '1'\nc: !!str 1\nd:\ne: ''\nf: null\ng: 'null'\n--- x\n";
        let document = parse(text, &RULES, &mut errors).expect("YAML");
        let plain = |key: &str| document.root.get(key).map(|node| node.plain);
        assert_eq!(plain("a"), Some(true));
        assert_eq!(plain("b"), Some(false));
        assert_eq!(plain("c"), Some(false));
        assert_eq!(plain("d"), None);
        assert_eq!(plain("e"), Some(false));
        assert_eq!(plain("f"), None);
        assert_eq!(plain("g"), Some(false));
        assert_eq!(document.next.map(|at| at.line), Some(8));
        assert_eq!(errors, []);
    }
}
