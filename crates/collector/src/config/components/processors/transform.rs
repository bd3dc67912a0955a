//! `transform`: statements in OTTL.

use tail::settings::ErrorMode;

use super::statements::{self, ERROR_MODES, GROUP, Group, STATEMENTS};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// What is done to each resource, scope, span or event, one group after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    /// Statements by their context.
    pub traces: Vec<Group>,
}

impl ProcessorSettings for Transform {
    fn ask(&self, asked: &mut Asked) {
        asked.add_groups(&self.traces);
    }
}

const TRACES_ONLY: &str =
    "only traces are changed yet: a pipeline of another signal with this processor is not started";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("error_mode", Kind::Word(ERROR_MODES), "ignore", "a statement that fails is passed over; `propagate`: its batch is refused"),
    opt("trace_statements", Kind::TextsOrSections(&[GROUP, STATEMENTS]), "", "statements on traces: a list of them, or groups"),
    opt("metric_statements", Kind::Any, "", "statements on metrics").no_effect(TRACES_ONLY),
    opt("log_statements", Kind::Any, "", "statements on logs").no_effect(TRACES_ONLY),
    opt("profile_statements", Kind::Any, "", "statements on profiles").no_effect(TRACES_ONLY),
    opt("flatten_data", Kind::Flag, "false", "each log record with a resource and scope of its own").no_effect(TRACES_ONLY),
    opt("flatten", Kind::Any, "", "the same").no_effect(TRACES_ONLY),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("transform")],
    doc: "changes resources, scopes, spans and events by statements in OTTL",
    takes: EVERY,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let mode = statements::error_mode(section, ErrorMode::Ignore);
    Processor::new(Transform {
        traces: statements::groups(section, "trace_statements", mode),
    })
}
