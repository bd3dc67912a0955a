//! The servers of a backend, with the options that they have from `default-server` and from other
//! lines.

use super::align;
use super::item::{self, Item};
use super::options::{self, Kind, Options};
use super::{Applies, Change, Effect, SectionName, Subject, Written};
use crate::build::names;
use crate::tree::{Statement, Word};
use std::collections::HashMap;
use std::sync::Arc;

/// Most servers of one proxy that come from its `server-template` lines. Further lines count as one
/// server each.
const TEMPLATE_SERVERS_MAX: usize = 10_000;

/// A server of a `server` or a `server-template` line.
pub(super) struct Server<'t> {
    name: String,
    statement: &'t Statement,
    /// The index of the address.
    address_at: usize,
    options: Arc<Options<'t>>,
}

/// The servers of a proxy: its `server`, `server-template` and `default-server` lines in order.
pub(super) fn of_lines<'t>(lines: &[Item<'t>]) -> Vec<Server<'t>> {
    let mut reader = Reader::default();
    for line in lines {
        reader.line(line.statement);
    }
    reader.servers
}

#[derive(Default)]
struct Reader<'t> {
    servers: Vec<Server<'t>>,
    of_templates: usize,
    /// `default-server` so far.
    default: Arc<Options<'t>>,
    /// Each `default-server name` so far.
    named: HashMap<&'t str, Arc<Options<'t>>>,
    /// The options of each server so far, by its name.
    by_server: HashMap<String, Arc<Options<'t>>>,
}

impl<'t> Reader<'t> {
    fn line(&mut self, statement: &'t Statement) {
        match statement.keyword() {
            "default-server" => self.defaults(statement),
            "server-template" => {
                let (prefix, numbers) = (statement.arg(1), statement.arg(2));
                let count = names::template_numbers(numbers).map_or(0, |numbers| numbers.count());
                let fits = self.of_templates.saturating_add(count) <= TEMPLATE_SERVERS_MAX;
                let names = if fits {
                    self.of_templates += count;
                    names::template_names(prefix, numbers)
                } else {
                    vec![format!("{prefix}{numbers}")]
                };
                self.servers(statement, names, 3);
            }
            _ => self.servers(statement, vec![statement.arg(1).to_owned()], 2),
        }
    }

    fn servers(&mut self, statement: &'t Statement, names: Vec<String>, address_at: usize) {
        let default = self.default.clone();
        let options = self.options(statement, address_at + 1, default);
        for name in names {
            self.by_server.insert(name.clone(), options.clone());
            self.servers.push(Server {
                name,
                statement,
                address_at,
                options: options.clone(),
            });
        }
    }

    fn defaults(&mut self, statement: &'t Statement) {
        if statement.arg(1) == "name" {
            let name = statement.arg(2);
            let so_far = self.named.get(name).cloned().unwrap_or_default();
            let options = self.options(statement, 3, so_far);
            self.named.insert(name, options);
        } else {
            let so_far = self.default.clone();
            self.default = self.options(statement, 1, so_far);
        }
    }

    /// The options of a line, whose words begin at `at`, on top of others.
    fn options(
        &self,
        statement: &'t Statement,
        mut at: usize,
        mut start: Arc<Options<'t>>,
    ) -> Arc<Options<'t>> {
        if statement.arg(at) == "from" {
            start = self.origin(statement.arg(at + 1));
            at += 2;
        }
        if at < statement.words.len() {
            Kind::Server.read(statement, at, Arc::make_mut(&mut start));
        }
        start
    }

    /// The options that `from` names.
    fn origin(&self, name: &str) -> Arc<Options<'t>> {
        let known = match name.split_once(':') {
            Some(("be", _)) => Some(&self.default),
            Some((_, server)) => {
                let server = server.rsplit('/').next().unwrap_or_default();
                self.named
                    .get(server)
                    .or_else(|| self.by_server.get(server))
            }
            None => None,
        };
        known.cloned().unwrap_or_default()
    }
}

impl<'t> Server<'t> {
    fn address(&self) -> Option<&'t Word> {
        self.statement.words.get(self.address_at)
    }

    fn is_at(&self, other: &Server<'_>) -> bool {
        self.address().map(Word::bytes) == other.address().map(Word::bytes)
    }

    /// The words after a server's name, and the name.
    fn written(&self) -> Written {
        let count = self.statement.words.len();
        let options = item::part(self.statement, self.address_at + 1..count);
        let address = self.written_address().text;
        let text = format!("server {} {address} {options}", self.name);
        Written {
            text: text.trim_end().to_owned(),
            place: item::place(self.statement.span()),
        }
    }

    fn written_address(&self) -> Written {
        Written {
            text: self
                .address()
                .map_or_else(String::new, |word| word.text.to_string()),
            place: item::place(self.statement.span()),
        }
    }
}

/// The effects on the servers of a section.
pub(super) fn compare(
    section: &SectionName,
    old: &[Server<'_>],
    new: &[Server<'_>],
) -> Vec<Effect> {
    let names = |servers: &[Server<'_>]| {
        let names = servers.iter().map(|server| server.name.clone());
        names.collect::<Vec<_>>()
    };
    let partners = align::partners(&names(old), &names(new));
    let mut of_new = vec![None; new.len()];
    let mut effects = Vec::new();
    for (server, partner) in old.iter().zip(&partners) {
        match partner.and_then(|partner| of_new.get_mut(partner)) {
            Some(slot) => *slot = Some(server),
            None => {
                let subject = server.subject();
                effects.push(effect(section, subject, Change::Removed(server.written())));
            }
        }
    }
    let mut moved = vec![true; new.len()];
    for pair in align::longest_in_order(&partners) {
        if let Some(moved) = moved.get_mut(pair.new) {
            *moved = false;
        }
    }
    for ((server, before), is_moved) in new.iter().zip(of_new).zip(moved) {
        match before {
            None => effects.push(effect(
                section,
                server.subject(),
                Change::Added(server.written()),
            )),
            Some(before) => {
                if is_moved {
                    let change = Change::Moved {
                        old: before.written(),
                        new: server.written(),
                    };
                    effects.push(effect(section, server.subject(), change));
                }
                effects.extend(kept(section, before, server));
            }
        }
    }
    effects
}

impl Server<'_> {
    fn subject(&self) -> Subject {
        Subject::Server {
            server: self.name.clone(),
        }
    }
}

/// The effects on a server that stays.
fn kept(section: &SectionName, old: &Server<'_>, new: &Server<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !old.is_at(new) {
        let subject = Subject::ServerAddress {
            server: new.name.clone(),
        };
        let change = Change::Changed {
            old: old.written_address(),
            new: new.written_address(),
        };
        effects.push(effect(section, subject, change));
    }
    for difference in options::compare(&old.options, &new.options) {
        let subject = Subject::ServerOption {
            server: new.name.clone(),
            option: difference.option,
        };
        effects.push(effect(section, subject, difference.change));
    }
    effects
}

fn effect(section: &SectionName, subject: Subject, change: Change) -> Effect {
    Effect::new(section, subject, change, Applies::InPlace)
}
