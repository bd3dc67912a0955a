//! A comparison as text for a terminal: a block for each section, a line for each effect, with the
//! numbers of the line in the old and in the new file.

use std::collections::HashMap;
use std::fmt::Write as _;

use config::diff::{Applies, Change, Comparison, Effect, Place, SectionName, Subject, Written};

use super::options::Options;

/// Most names in the heading of a block, and most rules that use a condition.
const NAMES_MAX: usize = 5;
/// Longest values that stand on one line, in characters.
const INLINE_CHARS_MAX: usize = 40;
/// The note where two texts do not show the difference.
const HIDDEN_DIFFERENCE: &str = "  (a hidden value or a variable differs)";

/// The whole output, for the files that `options` name.
pub(super) fn text(comparison: &Comparison, options: &Options) -> String {
    let effects = &comparison.effects;
    if effects.is_empty() {
        return "No differences.\n".to_owned();
    }
    let places = Places::new(effects, options);
    let mut out = format!(
        "--- {}\n+++ {}\n{}\n",
        options.old.join(", "),
        options.new.join(", "),
        places.columns("old", "new")
    );
    for block in blocks(effects) {
        let _ = writeln!(out, "\n{}", title(&block.sections));
        for row in rows(&block.effects) {
            row.write(&places, &mut out);
        }
    }
    out.push_str(&closing(comparison));
    out
}

/// Effects on the same sections.
struct Block<'a> {
    sections: Vec<&'a SectionName>,
    effects: Vec<&'a Effect>,
}

/// The effects by section. An effect that several sections have, because they start from the same
/// `defaults`, is in one block for all of them.
fn blocks(effects: &[Effect]) -> Vec<Block<'_>> {
    let mut sections: HashMap<(&Subject, &Change), Vec<&SectionName>> = HashMap::new();
    for effect in effects {
        let known = sections
            .entry((&effect.subject, &effect.change))
            .or_default();
        if known.last() != Some(&&effect.section) {
            known.push(&effect.section);
        }
    }
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut places: HashMap<Vec<&SectionName>, usize> = HashMap::new();
    for effect in effects {
        let own = [&effect.section];
        let is_condition = matches!(effect.subject, Subject::Acl { .. });
        let of_effect = match sections.get(&(&effect.subject, &effect.change)) {
            Some(sections) if !is_condition => sections.as_slice(),
            _ => &own,
        };
        if of_effect.first() != own.first() {
            continue;
        }
        let of_effect = of_effect.to_vec();
        let at = *places.entry(of_effect.clone()).or_insert(blocks.len());
        match blocks.get_mut(at) {
            Some(block) => block.effects.push(effect),
            None => blocks.push(Block {
                sections: of_effect,
                effects: vec![effect],
            }),
        }
    }
    blocks
}

fn title(sections: &[&SectionName]) -> String {
    let names: Vec<String> = sections
        .iter()
        .map(|section| section_name(section))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    some(&names)
}

fn section_name(section: &SectionName) -> String {
    format!("{} {}", section.kind, section.name)
        .trim_end()
        .to_owned()
}

/// The lines of an effect, or of equal effects on several servers.
struct Row<'a> {
    effect: &'a Effect,
    /// The servers, if it is an effect on servers.
    servers: Vec<&'a str>,
}

/// What equal effects on servers have in common.
#[derive(PartialEq, Eq, Hash)]
enum Alike<'a> {
    /// Servers of one line, which is a `server-template`.
    Line(Option<&'a Place>, Option<&'a Place>),
    /// Values of an option, or of the address if it has no name. Their lines may differ.
    Value {
        option: Option<&'a str>,
        old: Option<&'a str>,
        new: Option<&'a str>,
    },
}

fn value<'a>(option: Option<&'a str>, change: &'a Change) -> Alike<'a> {
    let text = |written: &'a Written| &*written.text;
    Alike::Value {
        option,
        old: change.before().map(text),
        new: change.after().map(text),
    }
}

fn rows<'a>(effects: &[&'a Effect]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::with_capacity(effects.len());
    let mut known: HashMap<Alike<'a>, usize> = HashMap::new();
    for &effect in effects {
        let place = |written: Option<&'a Written>| written.map(|written| &written.place);
        let alike = match &effect.subject {
            Subject::Server { server } => {
                let change = &effect.change;
                Some((
                    server,
                    Alike::Line(place(change.before()), place(change.after())),
                ))
            }
            Subject::ServerAddress { server } => Some((server, value(None, &effect.change))),
            Subject::ServerOption { server, option } => {
                Some((server, value(Some(option), &effect.change)))
            }
            _ => None,
        };
        let Some((server, alike)) = alike else {
            let servers = Vec::new();
            rows.push(Row { effect, servers });
            continue;
        };
        let at = *known.entry(alike).or_insert(rows.len());
        match rows.get_mut(at) {
            Some(row) => row.servers.push(server),
            None => rows.push(Row {
                effect,
                servers: vec![server],
            }),
        }
    }
    rows
}

/// The first of some names, and the number of the others.
fn some(names: &[&str]) -> String {
    let first = names.iter().take(NAMES_MAX).copied();
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The columns with the places.
struct Places {
    old: Column,
    new: Column,
}

/// The places in the files of one side.
struct Column {
    /// Whether the heading names the only file.
    has_one_file: bool,
    width: usize,
}

impl Column {
    fn new(written: &[&Written], has_one_file: bool) -> Self {
        let mut column = Column {
            has_one_file,
            width: 0,
        };
        let widths = written
            .iter()
            .map(|one| column.shown(Some(&one.place)).chars().count());
        column.width = widths.max().unwrap_or(0).max(3);
        column
    }

    fn shown(&self, place: Option<&Place>) -> String {
        match place {
            None => String::new(),
            Some(place) if self.has_one_file => place.line.to_string(),
            Some(place) => format!("{}:{}", place.file, place.line),
        }
    }
}

impl Places {
    fn new(effects: &[Effect], options: &Options) -> Self {
        let old = effects.iter().filter_map(|effect| effect.change.before());
        let old: Vec<&Written> = old.collect();
        let new = effects.iter().flat_map(|effect| {
            let rules = effect.used_by.iter();
            effect.change.after().into_iter().chain(rules)
        });
        let new: Vec<&Written> = new.collect();
        let is_of = |files: &[String], written: &[&Written]| matches!(files, [file] if written.iter().all(|one| one.place.file == *file));
        let has_one_file = is_of(&options.old, &old) && is_of(&options.new, &new);
        Places {
            old: Column::new(&old, has_one_file),
            new: Column::new(&new, has_one_file),
        }
    }

    fn columns(&self, old: &str, new: &str) -> String {
        let (old_width, new_width) = (self.old.width, self.new.width);
        format!("{old:>old_width$}  {new:>new_width$}")
    }

    /// The beginning of a line.
    fn of(&self, old: Option<&Written>, new: Option<&Written>) -> String {
        let place = |column: &Column, written: Option<&Written>| {
            column.shown(written.map(|written| &written.place))
        };
        self.columns(&place(&self.old, old), &place(&self.new, new))
    }
}

impl Row<'_> {
    fn write(&self, places: &Places, out: &mut String) {
        let effect = self.effect;
        let (old, new) = (effect.change.before(), effect.change.after());
        let line = Line {
            both: places.of(old, new),
            object: self.object(),
            end: self.end(),
        };
        let is_part = !line.object.is_empty();
        match &effect.change {
            // A part of a line that stays.
            Change::Added(text) if is_part => line.write("~", &format!("+ {}", text.text), out),
            Change::Removed(text) if is_part => line.write("~", &format!("- {}", text.text), out),
            Change::Added(text) => line.write("+", &text.text, out),
            Change::Removed(text) => line.write("-", &text.text, out),
            Change::Moved { new, .. } => line.write(">", &new.text, out),
            Change::Changed { old: was, new: is } => match inline(&was.text, &is.text) {
                Some(text) => line.write("~", &text, out),
                None => {
                    let (both, end) = (places.of(old, None), String::new());
                    let object = line.object.clone();
                    Line { both, object, end }.write("~", &was.text, out);
                    let both = places.of(None, new);
                    Line { both, ..line }.write("→", &is.text, out);
                }
            },
        }
        for rule in effect.used_by.iter().take(NAMES_MAX) {
            let _ = writeln!(
                out,
                "{}      in: {}",
                places.of(None, Some(rule)),
                rule.text
            );
        }
        let more = effect.used_by.len().saturating_sub(NAMES_MAX);
        if more > 0 {
            let _ = writeln!(out, "{}      and in {more} more", places.columns("", ""));
        }
    }

    /// What an option or an address belongs to.
    fn object(&self) -> String {
        match (&self.effect.subject, &*self.servers) {
            (Subject::ListenerOption { address, .. }, _) => format!("bind {address} "),
            (Subject::ServerAddress { .. } | Subject::ServerOption { .. }, [server]) => {
                format!("server {server} ")
            }
            (Subject::ServerAddress { .. } | Subject::ServerOption { .. }, servers) => {
                format!("servers {} ", some(servers))
            }
            _ => String::new(),
        }
    }

    /// The remarks after the texts.
    fn end(&self) -> String {
        let mut end = String::new();
        let others = self.servers.get(1..).unwrap_or_default();
        match (&self.effect.subject, &self.effect.change) {
            (Subject::Listener { .. }, Change::Added(_)) => end.push_str("  (opened)"),
            (Subject::Listener { .. }, Change::Removed(_)) => end.push_str("  (closed)"),
            (Subject::Server { .. }, _) if !others.is_empty() => {
                let _ = write!(end, "  (also {})", some(others));
            }
            _ => {}
        }
        if matches!(self.effect.change, Change::Moved { .. }) {
            end.push_str("  (moved)");
        }
        if matches!(self.effect.applies, Applies::Restart(_)) {
            end.push_str("  [restart]");
        }
        end
    }
}

/// What surrounds the text of a line.
struct Line {
    /// The places.
    both: String,
    object: String,
    end: String,
}

impl Line {
    fn write(&self, mark: &str, text: &str, out: &mut String) {
        let Line { both, object, end } = self;
        let _ = writeln!(out, "{both}  {mark} {object}{text}{end}");
    }
}

/// A change on one line, if one word differs; None if two lines are clearer.
fn inline(old: &str, new: &str) -> Option<String> {
    if old == new {
        return Some(format!("{old}{HIDDEN_DIFFERENCE}"));
    }
    let (was, is): (Vec<&str>, Vec<&str>) = (old.split(' ').collect(), new.split(' ').collect());
    let before = was
        .iter()
        .zip(&is)
        .take_while(|(was, is)| was == is)
        .count();
    let (was_rest, is_rest) = (was.get(before..)?, is.get(before..)?);
    let ends = was_rest.iter().rev().zip(is_rest.iter().rev());
    let after = ends.take_while(|(was, is)| was == is).count();
    match (
        &was_rest[..was_rest.len() - after],
        &is_rest[..is_rest.len() - after],
    ) {
        ([was_word], [is_word])
            if was_word.len() <= INLINE_CHARS_MAX && is_word.len() <= INLINE_CHARS_MAX =>
        {
            let mut words = was[..before].to_vec();
            words.extend([*was_word, "→", *is_word]);
            words.extend(&was_rest[1..]);
            Some(words.join(" "))
        }
        _ => None,
    }
}

/// How many effects there are, and which need a restart.
fn closing(comparison: &Comparison) -> String {
    let count = comparison.effects.len();
    let effects = if count == 1 { "effect" } else { "effects" };
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for effect in comparison.restarts() {
        let Applies::Restart(reason) = effect.applies else {
            continue;
        };
        let name = named(effect);
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) if names.last() == Some(&name) => {}
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let restarts = comparison.restarts().count();
    if restarts == 0 {
        return format!("\n{count} {effects}; none needs a restart of the process.\n");
    }
    let need = if restarts == 1 { "needs" } else { "need" };
    let mut out = format!("\n{count} {effects}; {restarts} {need} a restart of the process:\n");
    for (reason, names) in by_reason {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let _ = writeln!(out, "  {}: {reason}", some(&names));
    }
    out
}

/// The name of an effect in the list of those that need a restart.
fn named(effect: &Effect) -> String {
    let section = section_name(&effect.section);
    match &effect.subject {
        Subject::Section | Subject::Acl { .. } => section,
        Subject::Mode => format!("{section} mode"),
        Subject::Listener { address } => format!("{section} bind {address}"),
        Subject::ListenerOption { address, option } => {
            format!("{section} bind {address} {option}")
        }
        Subject::Server { server } | Subject::ServerAddress { server } => {
            format!("{section} server {server}")
        }
        Subject::ServerOption { server, option } => format!("{section} server {server} {option}"),
        Subject::Rule { list } => format!("{section} {list}"),
        Subject::Setting { setting } => format!("{section} {setting}"),
    }
}
