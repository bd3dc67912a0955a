//! Components that a configuration defines, each with its kind and its settings.

use std::cell::Cell;

use syntax::suggest::closest;

use super::components::connectors::Connector;
use super::components::exporters::Exporter;
use super::components::extensions::Extension;
use super::components::id::ComponentId;
use super::components::processors::Processor;
use super::components::receivers::Receiver;
use super::components::{Entry, Parse, Role, known};
use super::diagnostic::{At, Notes};
use super::options::{Section, check};
use super::source::{Key, Node};

/// All components of a configuration.
pub(crate) struct Definitions {
    all: Vec<Definition>,
}

/// One component.
pub(crate) struct Definition {
    pub role: Role,
    pub id: ComponentId,
    pub at: At,
    /// Its kind, or why there is none.
    pub entry: Result<&'static Entry, String>,
    /// Its settings; none of a kind that is not run.
    pub settings: Option<Settings>,
    /// Whether a pipeline or the service names it.
    pub used: Cell<bool>,
}

/// Settings of any role.
pub(crate) enum Settings {
    Receiver(Receiver),
    Processor(Processor),
    Exporter(Exporter),
    Extension(Extension),
    Connector(Connector),
}

impl Definitions {
    /// All components of a tree. Their options are checked, whether they are used or not.
    pub(crate) fn read(root: &Node, notes: &Notes) -> Definitions {
        let mut definitions = Definitions { all: Vec::new() };
        for role in Role::ALL {
            let components = root.get(role.key()).map_or(&[][..], Node::entries);
            for (key, node) in components {
                definitions.define(role, key, node, notes);
            }
        }
        definitions.ambiguous(notes);
        definitions
    }

    fn define(&mut self, role: Role, key: &Key, node: &Node, notes: &Notes) {
        let path = format!("{}::{}", role.key(), key.text);
        let id = match ComponentId::parse(&key.text) {
            Ok(id) => id,
            Err(reason) => return notes.error(key.at, format!("{}: {reason}", role.key())),
        };
        if let Some(other) = self.find(role, &id) {
            let message = format!("{path}: is defined at {} too", notes.place(other.at));
            return notes.error(key.at, message);
        }
        let entry = role.entry(&id.kind);
        let settings = entry.and_then(|entry| settings(entry, &id, node, (&path, key.at), notes));
        self.all.push(Definition {
            role,
            at: key.at,
            entry: entry.ok_or_else(|| no_entry(role, &id.kind)),
            id,
            settings,
            used: Cell::new(false),
        });
    }

    /// An id may be a connector's, or a receiver's and an exporter's.
    fn ambiguous(&self, notes: &Notes) {
        let connectors = self.all.iter().filter(|one| one.role == Role::Connector);
        for connector in connectors {
            for role in [Role::Receiver, Role::Exporter] {
                if let Some(other) = self.find(role, &connector.id) {
                    let message = format!(
                        "connectors::{}: {} defines a {role} of the same id: give one of the two another name",
                        connector.id,
                        notes.place(other.at)
                    );
                    notes.error(connector.at, message);
                }
            }
        }
    }

    /// The component of a role and an id.
    pub(crate) fn find(&self, role: Role, id: &ComponentId) -> Option<&Definition> {
        let is_it = |one: &&Definition| one.role == role && one.id == *id;
        self.all.iter().find(is_it)
    }

    /// Ids of a role.
    pub(crate) fn ids(&self, role: Role) -> impl Iterator<Item = String> {
        let of_role = self.all.iter().filter(move |one| one.role == role);
        of_role.map(|one| one.id.to_string())
    }

    /// All components, in the order of roles and files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter()
    }

    /// All components for good.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Definition> {
        self.all.into_iter()
    }
}

/// The settings of a component, after a check of its options.
fn settings(
    entry: &Entry,
    id: &ComponentId,
    node: &Node,
    (path, at): (&str, At),
    notes: &Notes,
) -> Option<Settings> {
    let name = entry.names.iter().find(|name| name.text == id.kind);
    if let Some(instead) = name.and_then(|name| name.old) {
        notes.warn(at, format!("{path}: {instead}"));
    }
    match entry.parse {
        Parse::Refused(_) => return None,
        // It had options, but nobody knows them any more.
        Parse::LeftOut(_) if entry.options.is_empty() => return None,
        _ => check(node, entry.options, path, at, notes),
    }
    let section = Section::new(Some(node), entry.options, path.to_owned(), at, notes);
    Some(match entry.parse {
        Parse::Receiver(parse) => Settings::Receiver(parse(&section)),
        Parse::Processor(parse) => Settings::Processor(parse(&section)),
        Parse::Exporter(parse) => Settings::Exporter(parse(&section)),
        Parse::Extension(parse) => Settings::Extension(parse(&section)),
        Parse::Connector { parse, .. } => Settings::Connector(parse(&section)),
        Parse::LeftOut(_) | Parse::Refused(_) => return None,
    })
}

/// Why a type has no kind here.
fn no_entry(role: Role, kind: &str) -> String {
    if known::is_known(role, kind) {
        return format!("is of the type '{kind}', which is not built in");
    }
    let ours = role.entries().iter().flat_map(|entry| entry.names);
    let ours = ours.map(|name| name.text);
    match closest(kind, ours.chain(known::names(role).iter().copied())) {
        Some(other) => format!("is of the unknown type '{kind}' (did you mean '{other}'?)"),
        None => format!("is of the unknown type '{kind}'"),
    }
}
