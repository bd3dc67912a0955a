//! `ParseXML` and `ParseSimplifiedXML`: maps of XML documents.

mod read;

use super::text::utf8;
use super::{Function, eval};
use crate::eval::Failure;
use crate::value::{ENTRIES, VALUE_BYTES_MAX, Value, entry};
use otlp::write;
use read::{Element, Node};
use std::collections::HashMap;

pub const FUNCTIONS: &[Function] = &[
    eval("ParseSimplifiedXML", &["target"], |args| {
        let nodes = read::nodes(utf8(&args[0])?)?;
        let mut out = Vec::new();
        simplified(&nodes, &mut out);
        map(out)
    }),
    eval("ParseXML", &["target"], |args| {
        let element = read::document(utf8(&args[0])?)?;
        let mut out = Vec::new();
        whole(&element, &mut out);
        map(out)
    }),
];

fn map<'a>(entries: Vec<u8>) -> Result<Value<'a>, Failure> {
    if entries.len() > VALUE_BYTES_MAX {
        return Err(Failure::Size);
    }
    Ok(Value::Map(entries.into(), ENTRIES))
}

/// Appends the entries of an element: its name, its trimmed and joined texts, its attributes (the
/// last of a repeated name wins) and its child elements.
fn whole(element: &Element, out: &mut Vec<u8>) {
    write::text_value(out, 1, "tag", &element.name);
    let texts = element.children.iter().filter_map(|child| match child {
        Node::Text(text) => Some(text.trim()),
        _ => None,
    });
    let content: String = texts.collect();
    if !content.is_empty() {
        write::text_value(out, 1, "content", &content);
    }
    if !element.attributes.is_empty() {
        let mut last: HashMap<&str, &str> = element
            .attributes
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        write::key_value(out, 1, b"attributes", |out| {
            write::message(out, 6, |out| {
                for (name, _) in &element.attributes {
                    if let Some(value) = last.remove(&**name) {
                        write::text_value(out, 1, name, value);
                    }
                }
            });
        });
    }
    let mut elements = elements(&element.children).peekable();
    if elements.peek().is_none() {
        return;
    }
    write::key_value(out, 1, b"children", |out| {
        write::message(out, 5, |out| {
            for child in elements {
                write::message(out, 1, |out| {
                    write::message(out, 6, |out| whole(child, out));
                });
            }
        });
    });
}

fn elements(nodes: &[Node]) -> impl Iterator<Item = &Element> {
    nodes.iter().filter_map(|node| match node {
        Node::Element(element) => Some(element),
        _ => None,
    })
}

/// Appends an entry per element name, without attributes: a text for an element with text only, a
/// map for one with child elements, a list for several of the same name. Empty elements are
/// dropped.
fn simplified(nodes: &[Node], out: &mut Vec<u8>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for element in elements(nodes) {
        *counts.entry(&element.name).or_default() += 1;
    }
    // `ArrayValue`s in the order of their first items.
    let mut lists: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut any = Vec::new();
    for element in elements(nodes) {
        if element.children.is_empty() {
            continue;
        }
        any.clear();
        let has_value = simplified_value(element, &mut any);
        let name = &*element.name;
        if counts.get(name).is_some_and(|count| *count > 1) {
            let place = *places.entry(name).or_insert(lists.len());
            if place == lists.len() {
                lists.push((name, Vec::new()));
            }
            if has_value {
                write::bytes(&mut lists[place].1, 1, &any);
            }
        } else if has_value {
            entry(out, name.as_bytes(), &any);
        }
    }
    for (name, list) in lists {
        any.clear();
        write::bytes(&mut any, 5, &list);
        entry(out, name.as_bytes(), &any);
    }
}

/// Appends the value of an element as an `AnyValue`. Returns false if the element is empty.
fn simplified_value(element: &Element, out: &mut Vec<u8>) -> bool {
    if elements(&element.children).next().is_none() {
        let first = element.children.iter().find_map(|child| match child {
            Node::Text(text) => Some(text),
            _ => None,
        });
        let leaf = first.filter(|text| !text.is_empty());
        if let Some(leaf) = leaf {
            write::bytes(out, 1, leaf.as_bytes());
        }
        return leaf.is_some();
    }
    let mut inner = Vec::new();
    simplified(&element.children, &mut inner);
    if inner.is_empty() {
        return false;
    }
    write::bytes(out, 6, &inner);
    true
}
