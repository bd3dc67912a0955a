//! The result of a comparison.

use super::Applies;

/// All effects of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In a stable order: section by section.
    pub effects: Vec<Effect>,
}

impl Comparison {
    /// Whether the change has no effect.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// The effects that need a restart of the process.
    pub fn restarts(&self) -> impl Iterator<Item = &Effect> {
        let effects = self.effects.iter();
        effects.filter(|effect| matches!(effect.applies, Applies::Restart(_)))
    }
}

/// One difference in what the process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The section that changes. For a setting of a `defaults`, each proxy that starts from it.
    pub section: SectionName,
    /// What of the section changes.
    pub subject: Subject,
    /// How it changes.
    pub change: Change,
    /// For the last effect on a [`Subject::Acl`]: the rules of the new configuration that use the
    /// condition, or of the old one if none does.
    pub used_by: Vec<Written>,
    /// Whether a process can take it over while it runs.
    pub applies: Applies,
}

impl Effect {
    pub(super) fn new(
        section: &SectionName,
        subject: Subject,
        change: Change,
        applies: Applies,
    ) -> Self {
        Effect {
            section: section.clone(),
            subject,
            change,
            used_by: Vec::new(),
            applies,
        }
    }
}

/// The name of a section.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionName {
    /// `global`, `frontend`, `peers`, …
    pub kind: String,
    /// Empty for a section without a name.
    pub name: String,
}

/// What changes in a section.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The whole section.
    Section,
    /// `mode` of a proxy.
    Mode,
    /// An address of a frontend that is opened or closed.
    Listener {
        /// In one form for all ways to write it: `*:80`.
        address: String,
    },
    /// An option of an address that stays open.
    ListenerOption {
        /// As in [`Subject::Listener`].
        address: String,
        /// The option's name, without a leading `no-`.
        option: String,
    },
    /// A server. Those of a `server-template` are servers of their own.
    Server {
        /// Its name.
        server: String,
    },
    /// The address of a server that stays.
    ServerAddress {
        /// The server's name.
        server: String,
    },
    /// An option of a server that stays, its own or from `default-server`.
    ServerOption {
        /// The server's name.
        server: String,
        /// The option's name, without a leading `no-`.
        option: String,
    },
    /// A condition with a name.
    Acl {
        /// Its name.
        acl: String,
    },
    /// A line of a list in which each line counts: rules, log targets, captured headers, ….
    Rule {
        /// The words that the lines of the list have in common: `http-request`, `use_backend`, ….
        list: String,
    },
    /// A setting of which a section has one value.
    Setting {
        /// `maxconn`, `timeout client`, `option forwardfor`, `error page 503`, ….
        setting: String,
    },
}

/// How something changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Only the new configuration has it.
    Added(Written),
    /// Only the old configuration has it.
    Removed(Written),
    /// It has another value.
    Changed {
        /// The old value.
        old: Written,
        /// The new value.
        new: Written,
    },
    /// It has another place in its list.
    Moved {
        /// The old place.
        old: Written,
        /// The new place.
        new: Written,
    },
}

impl Change {
    /// The change of something that stays in its place. None if neither side has it.
    pub(super) fn between(old: Option<Written>, new: Option<Written>) -> Option<Change> {
        Some(match (old, new) {
            (Some(old), Some(new)) => Change::Changed { old, new },
            (Some(old), None) => Change::Removed(old),
            (None, new) => Change::Added(new?),
        })
    }

    /// The text and the place in the old configuration.
    #[must_use]
    pub fn before(&self) -> Option<&Written> {
        match self {
            Change::Added(_) => None,
            Change::Removed(old) | Change::Changed { old, .. } | Change::Moved { old, .. } => {
                Some(old)
            }
        }
    }

    /// The text and the place in the new configuration.
    #[must_use]
    pub fn after(&self) -> Option<&Written> {
        match self {
            Change::Removed(_) => None,
            Change::Added(new) | Change::Changed { new, .. } | Change::Moved { new, .. } => {
                Some(new)
            }
        }
    }
}

/// Words of a configuration, without their secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// The words in a common form: one space between them, quotes only where they are needed. A
    /// word with a variable of the environment is as in the file, an address has the variable's
    /// value. Two texts may be equal although the values differ: in a secret or in a variable.
    pub text: String,
    /// The place of the line.
    pub place: Place,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The name of the file as given.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}
