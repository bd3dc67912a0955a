//! A comparison as text for a terminal: a block for each section, a line for each effect, with the
//! numbers of the line in the old and in the new file.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use config::diff::{Applies, Change, Comparison, Effect, Place, SectionName, Subject, Written};

/// Most names in the heading of a block, and most rules that use a condition.
const NAMES_MAX: usize = 5;
/// Longest values that stand on one line, in characters.
const INLINE_CHARS_MAX: usize = 40;
/// The note where two texts do not show the difference.
const HIDDEN_DIFFERENCE: &str = "  (a hidden value or a variable differs)";

/// The whole output.
pub(super) fn text(comparison: &Comparison) -> String {
    let effects = &comparison.effects;
    if effects.is_empty() {
        return "No differences.\n".to_owned();
    }
    let places = Places {
        old: Column::new(effects.iter().filter_map(|effect| effect.change.old())),
        new: Column::new(effects.iter().flat_map(|effect| {
            let of_rules = effect.used_by.iter();
            effect.change.new().into_iter().chain(of_rules)
        })),
    };
    let mut out = places.heading();
    for block in blocks(effects) {
        let _ = writeln!(out, "\n{}", title(&block.sections));
        let mut rest = &*block.effects;
        while let Some((effect, _)) = rest.split_first() {
            let alike = rest
                .iter()
                .take_while(|other| is_alike(effect, other))
                .count();
            lines(effect, alike, &places, &mut out);
            rest = &rest[alike.max(1)..];
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
        let is_condition = matches!(effect.subject, Subject::Acl { .. });
        let of_effect = match sections.get(&(&effect.subject, &effect.change)) {
            Some(sections) if !is_condition => sections.clone(),
            _ => vec![&effect.section],
        };
        if of_effect.first() != Some(&&effect.section) {
            continue;
        }
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
    let names = sections.iter().take(NAMES_MAX);
    let names: Vec<String> = names.map(|section| section_name(section)).collect();
    match sections.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn section_name(section: &SectionName) -> String {
    format!("{} {}", section.kind, section.name)
        .trim_end()
        .to_owned()
}

/// Whether two effects next to each other differ only in the server: all servers of a
/// `server-template` or after a `default-server`.
fn is_alike(one: &Effect, other: &Effect) -> bool {
    match (&one.subject, &other.subject) {
        (Subject::Server { .. }, Subject::Server { .. }) => {
            let place = |written: Option<&Written>| written.map(|written| written.place.clone());
            let kind = std::mem::discriminant;
            kind(&one.change) == kind(&other.change)
                && place(one.change.old()) == place(other.change.old())
                && place(one.change.new()) == place(other.change.new())
        }
        (
            Subject::ServerOption {
                option: one_name, ..
            },
            Subject::ServerOption { option, .. },
        ) => one_name == option && one.change == other.change,
        (Subject::ServerAddress { .. }, Subject::ServerAddress { .. }) => {
            one.change == other.change
        }
        _ => false,
    }
}

/// The columns with the places.
struct Places {
    old: Column,
    new: Column,
}

/// The places in the files of one side.
struct Column {
    /// The file, if all places are in one.
    file: Option<String>,
    width: usize,
}

impl Column {
    fn new<'a>(written: impl Iterator<Item = &'a Written> + Clone) -> Self {
        let files: BTreeSet<&str> = written.clone().map(|one| &*one.place.file).collect();
        let mut column = Column {
            file: (files.len() == 1).then(|| files.into_iter().collect()),
            width: 0,
        };
        let widths = written.map(|one| column.shown(Some(&one.place)).chars().count());
        column.width = widths.max().unwrap_or(0).max(3);
        column
    }

    fn shown(&self, place: Option<&Place>) -> String {
        match place {
            None => String::new(),
            Some(place) if self.file.is_some() => place.line.to_string(),
            Some(place) => format!("{}:{}", place.file, place.line),
        }
    }
}

impl Places {
    /// The files, and the names of the columns.
    fn heading(&self) -> String {
        let mut out = String::new();
        for (mark, column) in [("---", &self.old), ("+++", &self.new)] {
            if let Some(file) = &column.file {
                let _ = writeln!(out, "{mark} {file}");
            }
        }
        let _ = writeln!(out, "{}", self.columns("old", "new"));
        out
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

/// The lines of an effect, which `alike` effects share.
fn lines(effect: &Effect, alike: usize, places: &Places, out: &mut String) {
    let object = object(effect);
    let others = match alike {
        0 | 1 => String::new(),
        2 => "  (and 1 more server)".to_owned(),
        count => format!("  (and {} more servers)", count - 1),
    };
    let restart = match effect.applies {
        Applies::InPlace => "",
        Applies::Restart(_) => "  [restart]",
    };
    let end = format!("{others}{restart}");
    let (old, new) = (effect.change.old(), effect.change.new());
    match &effect.change {
        Change::Added(text) => {
            let text = &text.text;
            let _ = writeln!(out, "{}  + {object}{text}{end}", places.of(old, new));
        }
        Change::Removed(text) => {
            let text = &text.text;
            let _ = writeln!(out, "{}  - {object}{text}{end}", places.of(old, new));
        }
        Change::Moved { new: text, .. } => {
            let text = &text.text;
            let _ = writeln!(
                out,
                "{}  > {object}{text}  (moved){end}",
                places.of(old, new)
            );
        }
        Change::Changed { old: was, new: is } => match inline(&was.text, &is.text) {
            Some(text) => {
                let _ = writeln!(out, "{}  ~ {object}{text}{end}", places.of(old, new));
            }
            None => {
                let (was, is) = (&was.text, &is.text);
                let _ = writeln!(out, "{}  ~ {object}{was}", places.of(old, None));
                let _ = writeln!(out, "{}  → {object}{is}{end}", places.of(None, new));
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
        let _ = writeln!(
            out,
            "{}      and in {more} more rules",
            places.columns("", "")
        );
    }
}

/// What an option or an address belongs to.
fn object(effect: &Effect) -> String {
    match &effect.subject {
        Subject::ListenerOption { address, .. } => format!("bind {address} "),
        Subject::ServerAddress { server } | Subject::ServerOption { server, .. } => {
            format!("server {server} ")
        }
        Subject::Section
        | Subject::Mode
        | Subject::Listener { .. }
        | Subject::Server { .. }
        | Subject::Acl { .. }
        | Subject::Rule { .. }
        | Subject::Setting { .. } => String::new(),
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
    let restarts: Vec<&Effect> = comparison.restarts().collect();
    let effects = if count == 1 { "effect" } else { "effects" };
    let mut out = format!(
        "\n{count} {effects}, {} with a restart only",
        restarts.len()
    );
    let mut by_reason: Vec<(&str, BTreeSet<String>)> = Vec::new();
    for effect in restarts {
        let Applies::Restart(reason) = effect.applies else {
            continue;
        };
        let name = named(effect);
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => {
                names.insert(name);
            }
            None => by_reason.push((reason, BTreeSet::from([name]))),
        }
    }
    out.push_str(if by_reason.is_empty() { ".\n" } else { ":\n" });
    for (reason, names) in by_reason {
        let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let _ = writeln!(out, "  {}{more}: {reason}", shown.join(", "));
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
