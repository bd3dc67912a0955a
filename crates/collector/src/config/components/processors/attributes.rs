//! `attributes`: attributes of spans, log records and data points, changed.

use super::action::{self, Action};
use super::matching::{self, Matching};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// What is done to each record that counts, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// Only records that match; none: all.
    pub include: Option<Matching>,
    /// But not records that match.
    pub exclude: Option<Matching>,
    /// At least one.
    pub actions: Vec<Action>,
}

impl ProcessorSettings for Attributes {
    fn ask(&self, asked: &mut Asked) {
        asked.add_actions(&self.actions);
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("actions", Kind::Sections(action::TABLE), "", "what is done, in this order (at least one)"),
    opt("include", Kind::Maybe(matching::TABLE), "", "only records that match"),
    opt("exclude", Kind::Maybe(matching::TABLE), "", "but not records that match"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("attributes")],
    doc: "changes attributes of spans, log records and data points",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let of = |name: &str| {
        let section = section.maybe_filled(name);
        section.map(|section| matching::matching(&section))
    };
    let attributes = Attributes {
        include: of("include"),
        exclude: of("exclude"),
        actions: action::actions(section, "actions"),
    };
    if section.sections("actions").is_empty() {
        section.error("actions", "must have at least one action");
    }
    Processor::new(attributes)
}
