//! The kinds of components: one file a kind, one entry of a table each.
//!
//! The entry holds the type's names, the options, and the parser that makes typed settings of them.
//! A kind that others have and we lack is in `known`, so that its name is told from a slip of the
//! hand.

pub mod connectors;
pub mod exporters;
pub mod extensions;
pub mod id;
pub(crate) mod known;
pub mod processors;
pub mod receivers;
pub mod settings;
pub mod shared;

use std::fmt;

pub use otlp::Signal;

use self::connectors::{Connector, Pair};
use self::exporters::Exporter;
use self::extensions::Extension;
use self::processors::Processor;
use self::receivers::Receiver;
use super::options::{Section, Table};

/// What a component is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Takes data in.
    Receiver,
    /// Changes data, or chooses among them.
    Processor,
    /// Sends data on.
    Exporter,
    /// Serves the others, or people.
    Extension,
    /// Ends one pipeline and begins another.
    Connector,
}

impl Role {
    pub(crate) const ALL: [Role; 5] = [
        Role::Receiver,
        Role::Processor,
        Role::Exporter,
        Role::Extension,
        Role::Connector,
    ];

    /// The key that its components stand under.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Role::Receiver => "receivers",
            Role::Processor => "processors",
            Role::Exporter => "exporters",
            Role::Extension => "extensions",
            Role::Connector => "connectors",
        }
    }

    /// All kinds of it.
    pub(crate) fn entries(self) -> &'static [Entry] {
        match self {
            Role::Receiver => receivers::ENTRIES,
            Role::Processor => processors::ENTRIES,
            Role::Exporter => exporters::ENTRIES,
            Role::Extension => extensions::ENTRIES,
            Role::Connector => connectors::ENTRIES,
        }
    }

    /// The kind that a type names.
    pub(crate) fn entry(self, kind: &str) -> Option<&'static Entry> {
        let named = |entry: &&Entry| entry.names.iter().any(|name| name.text == kind);
        self.entries().iter().find(named)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Role::Receiver => "receiver",
            Role::Processor => "processor",
            Role::Exporter => "exporter",
            Role::Extension => "extension",
            Role::Connector => "connector",
        })
    }
}

/// All signals.
pub(crate) const EVERY: &[Signal] = &Signal::ALL;
/// Metrics only.
pub(crate) const METRICS: &[Signal] = &[Signal::Metrics];
/// Spans only.
pub(crate) const TRACES: &[Signal] = &[Signal::Traces];

/// One kind of component.
pub(crate) struct Entry {
    /// The name of the type that the reference uses, and the others.
    pub names: &'static [Name],
    /// What it is for, in a few words.
    pub doc: &'static str,
    /// Signals that the Collector's component takes.
    pub takes: &'static [Signal],
    /// Those of them that ours takes.
    pub carries: &'static [Signal],
    pub options: Table,
    pub parse: Parse,
}

/// A name of a type.
pub(crate) struct Name {
    pub text: &'static str,
    /// Why it is better not used.
    pub old: Option<&'static str>,
}

/// The name that a type has.
pub(crate) const fn name(text: &'static str) -> Name {
    Name { text, old: None }
}

/// A name that a type had.
pub(crate) const fn old_name(text: &'static str, instead: &'static str) -> Name {
    Name {
        text,
        old: Some(instead),
    }
}

/// How options become settings.
pub(crate) enum Parse {
    Receiver(fn(&Section<'_>) -> Receiver),
    Processor(fn(&Section<'_>) -> Processor),
    Exporter(fn(&Section<'_>) -> Exporter),
    Extension(fn(&Section<'_>) -> Extension),
    Connector {
        /// The signals that it takes, and what it makes of them.
        pairs: &'static [Pair],
        parse: fn(&Section<'_>) -> Connector,
    },
    /// It is taken and left out, for a reason that a warning tells. Without a table its options are
    /// not looked at.
    LeftOut(&'static str),
    /// It is gone, for a reason that the error tells.
    Refused(&'static str),
}
