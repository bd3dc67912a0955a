//! The names and places of proxies and servers, determined before anything else is built.

use super::previous::{Places, Previous, Wanted, server_places};
use super::reserve;
use super::values::bad_name_character;
use crate::diagnostic::Diagnostics;
use crate::tree::{Section, Tree};
use sample::Compiler;
use std::collections::HashMap;

/// A proxy's name and capabilities.
#[derive(Clone, Debug)]
struct Known {
    index: usize,
    kind: String,
    is_backend: bool,
    /// `file:line`
    origin: String,
    /// By place; empty for a place that no server of the section has.
    servers: Vec<String>,
}

/// Proxies by name; the index is the one in [`crate::model::Config::proxies`].
#[derive(Clone, Debug, Default)]
pub struct Names {
    proxies: HashMap<String, Known>,
    /// The places of proxies.
    pub places: Places,
    /// The `defaults` sections in order, by their numbers in the compiler, which treats them as
    /// extra proxies.
    pub stand_ins: Vec<u32>,
}

impl Names {
    /// Where the proxy with this name is declared.
    pub fn origin_of(&self, name: &str) -> Option<&str> {
        self.proxies.get(name).map(|known| known.origin.as_str())
    }

    /// The index of the backend or listen with this name.
    pub fn backend(&self, name: &str) -> Option<usize> {
        self.proxies
            .get(name)
            .filter(|known| known.is_backend)
            .map(|known| known.index)
    }

    /// The names of a proxy's servers, by their index; empty for the place of a removed one.
    pub fn servers(&self, proxy: &str) -> &[String] {
        let known = self.proxies.get(proxy);
        known.map_or(&[], |known| known.servers.as_slice())
    }

    /// The names that [`Names::backend`] knows.
    pub fn backends(&self) -> impl Iterator<Item = &str> {
        self.proxies
            .iter()
            .filter(|(_, known)| known.is_backend)
            .map(|(name, _)| name.as_str())
    }
}

/// Most servers of one `server-template`.
pub const TEMPLATE_SERVERS_MAX: u32 = 100_000;

/// The numbers in the second word of a `server-template`: `<num>` or `<low>-<high>`. As in HAProxy,
/// characters after the digits are ignored.
pub fn template_numbers(word: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let number = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..digits].parse::<u32>().unwrap_or(0)
    };
    let numbers = match word.split_once('-') {
        Some((low, high)) => number(low)..=number(high),
        None => 1..=number(word),
    };
    let count = u64::from(*numbers.end()) + 1;
    let count = count.checked_sub(u64::from(*numbers.start()))?;
    (1..=u64::from(TEMPLATE_SERVERS_MAX))
        .contains(&count)
        .then_some(numbers)
}

/// The names of the servers of a `server-template`.
pub fn template_names(prefix: &str, numbers: &str) -> Vec<String> {
    let numbers = template_numbers(numbers).into_iter().flatten();
    numbers.map(|number| format!("{prefix}{number}")).collect()
}

/// Whether a section is a proxy.
pub fn is_proxy(section: &Section) -> bool {
    matches!(section.kind(), "frontend" | "backend" | "listen")
}

/// Collects the names, reports missing, malformed and duplicate ones, and declares all of them to
/// the compiler, in the order of their places.
pub fn collect(
    tree: &Tree,
    previous: Option<&Previous>,
    compiler: &mut Compiler,
    diagnostics: &mut Diagnostics,
) -> Names {
    let sections = tree.sections.iter().filter(|section| is_proxy(section));
    let sections: Vec<&Section> = sections.collect();
    let wanted = sections.iter().map(|section| Wanted {
        name: section.name().map_or("", |word| word.text.as_str()),
        is_frontend: section.kind() != "backend",
        is_backend: section.kind() != "frontend",
    });
    let wanted: Vec<Wanted<'_>> = wanted.collect();
    let mut names = Names {
        places: Places::new(&wanted, &reserve::wanted(tree), previous),
        ..Names::default()
    };
    let mut servers = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let index = names.places.sections[number];
        let before = previous.filter(|_| names.places.is_kept(index));
        let before = before.map(|previous| previous.servers(index));
        servers.push(server_places(server_names(section), before));
    }
    declare(&names.places, &wanted, &servers, compiler);
    for ((number, section), servers) in sections.into_iter().enumerate().zip(servers) {
        let known = Known {
            index: names.places.sections[number],
            kind: section.kind().to_owned(),
            is_backend: wanted[number].is_backend,
            origin: section
                .name()
                .map_or_else(String::new, |word| word.span.place()),
            servers,
        };
        names.add(section, known, diagnostics);
    }
    let defaults = tree.sections.iter().filter(|s| s.kind() == "defaults");
    names.stand_ins = defaults
        .map(|_| compiler.declare_proxy("", true, true))
        .collect();
    names
}

/// The names of the servers of a section, in the order of its lines.
fn server_names(section: &Section) -> Vec<String> {
    let lines = section.statements.iter();
    let names = lines.flat_map(|statement| match statement.keyword() {
        "server" => vec![statement.arg(1).to_owned()],
        "server-template" => template_names(statement.arg(1), statement.arg(2)),
        _ => Vec::new(),
    });
    names.collect()
}

/// Declares what is at each place. Expressions cannot name removed proxies and servers, nor places
/// for backends that are added at run time.
fn declare(
    places: &Places,
    wanted: &[Wanted<'_>],
    servers: &[Vec<String>],
    compiler: &mut Compiler,
) {
    let mut at_place: Vec<Option<usize>> = vec![None; places.count];
    for (number, place) in places.sections.iter().enumerate() {
        at_place[*place] = Some(number);
    }
    for section in at_place {
        let Some(number) = section else {
            compiler.declare_proxy("", false, true);
            continue;
        };
        let one = wanted[number];
        let proxy = compiler.declare_proxy(one.name, one.is_frontend, one.is_backend);
        for name in &servers[number] {
            compiler.declare_server(proxy, name);
        }
    }
}

impl Names {
    /// Adds a proxy, and reports a missing, malformed or duplicate name.
    fn add(&mut self, section: &Section, known: Known, diagnostics: &mut Diagnostics) {
        let kind = section.kind();
        let Some(word) = section.name() else {
            diagnostics.alert(
                section.header.span(),
                format!("'{kind}' expects an <id> argument"),
            );
            return;
        };
        let name = word.text.as_str();
        if let Some(bad) = bad_name_character(word.bytes()) {
            diagnostics.alert(
                &word.span,
                format!("character '{bad}' is not permitted in '{kind}' name '{name}'."),
            );
        }
        if let Some(first) = self.proxies.get(name) {
            diagnostics.alert(
                &word.span,
                format!(
                    "{kind} '{name}' has the same name as {} '{name}' declared at {}. \
                     This is no longer supported as of 3.3. Please rename one or the other.",
                    first.kind, first.origin
                ),
            );
        } else {
            self.proxies.insert(name.to_owned(), known);
        }
    }
}
