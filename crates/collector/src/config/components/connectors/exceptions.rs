//! `exceptions`: the exceptions of spans as metrics or as log records.

use super::dimension::{DIMENSION, Dimension, dimensions};
use super::{Connector, ConnectorSettings, Pair};
use crate::config::components::{Entry, Parse, Signal, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Settings of the data that are made of exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceptions {
    /// Attributes of metrics and records besides the default ones.
    pub dimensions: Vec<Dimension>,
    /// Whether data points name spans.
    pub has_exemplars: bool,
}

impl ConnectorSettings for Exceptions {}

/// The dimensions where none are written.
const DEFAULTS: [&str; 2] = ["exception.type", "exception.message"];

#[rustfmt::skip]
const EXEMPLARS: &[Opt] = &[
    opt("enabled", Kind::Flag, "false", "data points name spans"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("dimensions", Kind::Sections(DIMENSION), "", "attributes besides `service.name`, `span.name`, `span.kind`, `status.code`; `exception.type` and `exception.message` where it is not written"),
    opt("exemplars", Kind::Section(&[EXEMPLARS]), "", "spans as examples, in metrics"),
];

const PAIRS: &[Pair] = &[
    (Signal::Traces, Signal::Metrics),
    (Signal::Traces, Signal::Logs),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("exceptions")],
    doc: "counts the exceptions of spans, or makes log records of them",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Connector {
        pairs: PAIRS,
        parse,
    },
};

fn parse(section: &Section<'_>) -> Connector {
    let default = |name: &str| Dimension {
        name: name.to_owned(),
        default: None,
    };
    let dimensions = match section.written("dimensions") {
        Some(_) => dimensions(section, "dimensions", &[]),
        None => DEFAULTS.map(default).into(),
    };
    Connector::new(Exceptions {
        dimensions,
        has_exemplars: section.section("exemplars").flag("enabled"),
    })
}
