//! `resource`: attributes of resources, changed.

use super::action::{self, Action};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// What is done to each resource, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// At least one.
    pub actions: Vec<Action>,
}

impl ProcessorSettings for Resource {
    fn ask(&self, asked: &mut Asked) {
        asked.add_actions(&self.actions);
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("attributes", Kind::Sections(action::TABLE), "", "what is done, in this order (at least one)"),
    opt("actions", Kind::Any, "", "the key of the processor 'attributes'").refused("write 'attributes'"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("resource")],
    doc: "changes attributes of resources",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let actions: Vec<Action> = action::actions(section, "attributes");
    if section.sections("attributes").is_empty() {
        section.error("attributes", "must have at least one action");
    }
    Processor::new(Resource { actions })
}
