//! The names of proxies and servers, collected before anything else is built.

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
    place: String,
    servers: Vec<String>,
}

/// Proxies by name; the index is the one in [`crate::model::Config::proxies`].
#[derive(Clone, Debug, Default)]
pub struct Names {
    proxies: HashMap<String, Known>,
    /// The `defaults` sections in order, by their numbers in the compiler, which treats them as
    /// extra proxies.
    pub stand_ins: Vec<u32>,
}

impl Names {
    /// The place of the proxy with this name.
    pub fn place_of(&self, name: &str) -> Option<&str> {
        self.proxies.get(name).map(|known| known.place.as_str())
    }

    /// The index of the backend or listen with this name.
    pub fn backend(&self, name: &str) -> Option<usize> {
        self.proxies
            .get(name)
            .filter(|known| known.is_backend)
            .map(|known| known.index)
    }

    /// The names of a proxy's servers, by their index.
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
/// the compiler.
pub fn collect(tree: &Tree, compiler: &mut Compiler, diagnostics: &mut Diagnostics) -> Names {
    let mut names = Names::default();
    for (index, section) in tree
        .sections
        .iter()
        .filter(|section| is_proxy(section))
        .enumerate()
    {
        let kind = section.kind();
        let (is_frontend, is_backend) = (kind != "backend", kind != "frontend");
        let name = section.name().map_or("", |word| word.text.as_str());
        let proxy = compiler.declare_proxy(name, is_frontend, is_backend);
        let mut servers = Vec::new();
        for statement in &section.statements {
            let names = match statement.keyword() {
                "server" => vec![statement.arg(1).to_owned()],
                "server-template" => template_names(statement.arg(1), statement.arg(2)),
                _ => Vec::new(),
            };
            for name in names {
                compiler.declare_server(proxy, &name);
                servers.push(name);
            }
        }
        let Some(word) = section.name() else {
            diagnostics.alert(
                section.header.span(),
                format!("'{kind}' expects an <id> argument"),
            );
            continue;
        };
        if let Some(bad) = bad_name_character(word.bytes()) {
            diagnostics.alert(
                &word.span,
                format!("character '{bad}' is not permitted in '{kind}' name '{name}'."),
            );
        }
        let known = Known {
            index,
            kind: kind.to_owned(),
            is_backend,
            place: word.span.place(),
            servers,
        };
        if let Some(first) = names.proxies.get(name) {
            diagnostics.alert(
                &word.span,
                format!(
                    "{kind} '{name}' has the same name as {} '{name}' declared at {}. \
                     This is no longer supported as of 3.3. Please rename one or the other.",
                    first.kind, first.place
                ),
            );
        } else {
            names.proxies.insert(name.to_owned(), known);
        }
    }
    for _ in super::reserve::places(tree) {
        compiler.declare_proxy("", false, true);
    }
    let defaults = tree.sections.iter().filter(|s| s.kind() == "defaults");
    names.stand_ins = defaults
        .map(|_| compiler.declare_proxy("", true, true))
        .collect();
    names
}
