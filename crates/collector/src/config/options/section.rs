//! Typed values of a checked map.

use std::borrow::Cow;

use super::check::is_off;
use super::table::{Kind, Opt, Table, find};
use super::value;
use crate::config::diagnostic::{At, Notes};
use crate::config::source::{Key, Node, Value, typing};

/// A map of options that [`super::check()`] has seen. What is wrong there gives zeros here: it was
/// told, and nothing runs.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    node: Option<&'a Node>,
    table: Table,
    /// Where it is told that something is missing.
    pub at: At,
    /// The path of its keys, for messages.
    pub path: String,
    pub notes: &'a Notes,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        node: Option<&'a Node>,
        table: Table,
        path: String,
        at: At,
        notes: &'a Notes,
    ) -> Section<'a> {
        Section {
            node,
            table,
            at,
            path,
            notes,
        }
    }

    /// Whether the table has a key.
    pub(crate) fn knows(&self, name: &str) -> bool {
        find(self.table, name).is_some()
    }

    /// Whether the table has a key and something is written under it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.knows(name) && self.written(name).is_some()
    }

    /// What is written under a key, where something is.
    pub(crate) fn written(&self, name: &str) -> Option<&'a Node> {
        debug_assert!(find(self.table, name).is_some(), "{}: {name}", self.path);
        let node = self.entry(name)?;
        (!node.is_null() || node.verbatim.is_some()).then_some(node)
    }

    /// What stands under a key, perhaps nothing.
    fn entry(&self, name: &str) -> Option<&'a Node> {
        let (_, node) = self.node?.entry(name)?;
        #[cfg(feature = "mute")]
        if super::mute::is_muted(&self.path, name) {
            return None;
        }
        Some(node)
    }

    /// What counts for a key: what is written, or the default.
    fn node(&self, name: &str) -> Cow<'a, Node> {
        match self.written(name) {
            Some(node) => Cow::Borrowed(node),
            None => Cow::Owned(default(find(self.table, name))),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        value::flag(&self.node(name)).unwrap_or_default()
    }

    /// A whole number that the table's range fits into `T`.
    pub(crate) fn int<T: TryFrom<i128> + Default>(&self, name: &str) -> T {
        let value = value::int(&self.node(name)).unwrap_or_default();
        T::try_from(value).unwrap_or_default()
    }

    /// A whole number where it is written and not 0.
    pub(crate) fn int_unless_zero<T: TryFrom<i128> + Default + PartialEq>(
        &self,
        name: &str,
    ) -> Option<T> {
        let value = self.int(name);
        (value != T::default()).then_some(value)
    }

    /// Whole numbers that the table's range fits into `T`.
    pub(crate) fn ints<T: TryFrom<i128> + Default>(&self, name: &str) -> Vec<T> {
        let node = self.node(name);
        let values = value::ints(&node).unwrap_or_default().into_iter();
        values
            .map(|(_, value)| T::try_from(value).unwrap_or_default())
            .collect()
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        value::number(&self.node(name)).unwrap_or_default()
    }

    pub(crate) fn duration_ns(&self, name: &str) -> u64 {
        value::duration_ns(&self.node(name)).unwrap_or_default()
    }

    /// Durations of a list, in nanoseconds.
    pub(crate) fn durations_ns(&self, name: &str) -> Vec<u64> {
        value::durations_ns(&self.node(name)).unwrap_or_default()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        value::text(&self.node(name)).unwrap_or_default().to_owned()
    }

    /// A text that is not empty.
    pub(crate) fn text_unless_empty(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let node = self.node(name);
        let texts = value::texts(&node).unwrap_or_default();
        texts.into_iter().map(|(_, text)| text).collect()
    }

    /// Texts and the place of each. One text is one: commas are part of it.
    pub(crate) fn whole_texts_at(&self, name: &str) -> Vec<(String, At)> {
        match self.written(name) {
            Some(node) if matches!(node.value, Value::Text(_)) => vec![(self.text(name), node.at)],
            _ => self.texts_at(name),
        }
    }

    /// Texts and the place of each.
    pub(crate) fn texts_at(&self, name: &str) -> Vec<(String, At)> {
        let node = self.node(name);
        let texts = value::texts(&node).unwrap_or_default();
        texts
            .into_iter()
            .map(|(node, text)| (text, node.at))
            .collect()
    }

    pub(crate) fn pairs(&self, name: &str) -> Vec<(String, String)> {
        value::pairs(&self.node(name)).unwrap_or_default()
    }

    /// What a word stands for, in any case; the first of the choices where it is none of them.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> T {
        let text = self.text(name);
        let is_it = |(word, _): &&(&str, T)| word.eq_ignore_ascii_case(&text);
        choices.iter().find(is_it).unwrap_or(&choices[0]).1
    }

    /// The section under a key; where nothing is written, all of its defaults.
    pub(crate) fn section(&self, name: &str) -> Section<'a> {
        let table = match find(self.table, name).map(|opt| opt.kind) {
            Some(Kind::Section(table) | Kind::Maybe(table)) => table,
            _ => &[],
        };
        let at = self.key_at(name).unwrap_or(self.at);
        let path = format!("{}::{name}", self.path);
        Section::new(self.written(name), table, path, at, self.notes)
    }

    /// The section under a key that is written, null too, and not disabled.
    pub(crate) fn maybe(&self, name: &str) -> Option<Section<'a>> {
        let node = self.entry(name)?;
        (!is_off(node)).then(|| self.section(name))
    }

    /// The section under a key that holds something.
    pub(crate) fn maybe_filled(&self, name: &str) -> Option<Section<'a>> {
        self.written(name).and_then(|_| self.maybe(name))
    }

    /// The sections of a list.
    pub(crate) fn sections(&self, name: &str) -> Vec<Section<'a>> {
        let table = match find(self.table, name).map(|opt| opt.kind) {
            Some(Kind::Sections(table) | Kind::TextsOrSections(table)) => table,
            _ => &[],
        };
        let items = self.written(name).map_or(&[][..], Node::items);
        let section = |(index, item): (usize, &'a Node)| {
            let path = format!("{}::{name}[{index}]", self.path);
            Section::new(Some(item), table, path, item.at, self.notes)
        };
        items.iter().enumerate().map(section).collect()
    }

    /// The sections of a map, each with its name, in their order.
    pub(crate) fn named(&self, name: &str) -> Vec<(String, Section<'a>)> {
        let table = match find(self.table, name).map(|opt| opt.kind) {
            Some(Kind::Named(table)) => table,
            _ => &[],
        };
        let entries = self.written(name).map_or(&[][..], Node::entries);
        let section = |(key, node): &'a (Key, Node)| {
            let path = format!("{}::{name}[{}]", self.path, key.text);
            let section = Section::new(Some(node), table, path, key.at, self.notes);
            (key.text.clone(), section)
        };
        entries.iter().map(section).collect()
    }

    /// Whether the maps of a list have a key.
    pub(crate) fn sections_know(&self, name: &str, key: &str) -> bool {
        let table = find(self.table, name).map(|opt| opt.kind);
        matches!(table, Some(Kind::Sections(table) | Kind::TextsOrSections(table)) if find(table, key).is_some())
    }

    /// Where a key stands.
    pub(crate) fn key_at(&self, name: &str) -> Option<At> {
        self.node?.entry(name).map(|(key, _)| key.at)
    }

    /// Where the value of a key stands, or else the section.
    pub(crate) fn value_at(&self, name: &str) -> At {
        self.written(name).map_or(self.at, |node| node.at)
    }

    /// An error about a key, written or missing.
    pub(crate) fn error(&self, name: &str, message: &str) {
        let at = self.value_at(name);
        self.notes
            .error(at, format!("{}::{name}: {message}", self.path));
    }

    /// A warning about a key.
    pub(crate) fn warn(&self, name: &str, message: &str) {
        let at = self.value_at(name);
        self.notes
            .warn(at, format!("{}::{name}: {message}", self.path));
    }

    /// An error about the section as a whole.
    pub(crate) fn fault(&self, message: &str) {
        self.notes
            .error(self.at, format!("{}: {message}", self.path));
    }
}

/// The default of an option as a node.
fn default(opt: Option<&Opt>) -> Node {
    let value = match opt.map(|opt| (opt.kind, opt.default)) {
        Some((Kind::Flag | Kind::Int(..) | Kind::Number(..), text)) => typing::plain(text),
        Some((Kind::Duration | Kind::Durations, "")) | None => Value::Null,
        Some((_, text)) => Value::Text(text.to_owned()),
    };
    let mut node = Node::new(At::default(), value);
    // So that an option without a default is an empty text.
    node.verbatim = Some("".into());
    node
}
