//! `transform`: statements in OTTL.

use otlp::Signal;
use tail::settings::ErrorMode;

use super::statements::{
    self, ERROR_MODES, Group, LOG_GROUP, METRIC_STATEMENTS_GROUP, NO_PROFILES, STATEMENTS,
    TRACE_GROUP,
};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// Statements by signal. The groups of a signal are run one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transform {
    /// Statements on traces.
    pub traces: Vec<Group>,
    /// Statements on metrics.
    pub metrics: Vec<Group>,
    /// Statements on logs.
    pub logs: Vec<Group>,
    /// Each log record has a resource and scope of its own for its statements.
    pub flatten_data: bool,
}

impl Transform {
    /// The groups of a signal.
    #[must_use]
    pub fn of(&self, signal: Signal) -> &[Group] {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

impl ProcessorSettings for Transform {
    fn ask(&self, asked: &mut Asked) {
        for signal in Signal::ALL {
            asked.add_groups(self.of(signal));
        }
    }
}

const FLATTEN: &str = "write 'flatten_data'";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("error_mode", Kind::Word(ERROR_MODES), "ignore", "a statement that fails is passed over; `propagate`: its batch is refused"),
    opt("trace_statements", Kind::TextsOrSections(&[TRACE_GROUP, STATEMENTS]), "", "statements on traces: a list of them, or groups"),
    opt("metric_statements", Kind::TextsOrSections(&[METRIC_STATEMENTS_GROUP, STATEMENTS]), "", "statements on metrics"),
    opt("log_statements", Kind::TextsOrSections(&[LOG_GROUP, STATEMENTS]), "", "statements on logs"),
    opt("profile_statements", Kind::Any, "", "statements on profiles").no_effect(NO_PROFILES),
    opt("flatten_data", Kind::Flag, "false", "each log record has a resource and scope of its own for its statements"),
    opt("flatten", Kind::Any, "", "the same").refused(FLATTEN),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("transform")],
    doc: "changes resources, scopes, spans, events, metrics, data points, exemplars and log records by statements in OTTL",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let mode = statements::error_mode(section, ErrorMode::Ignore);
    let groups = |name: &str, signal| statements::groups(section, name, signal, mode);
    Processor::new(Transform {
        traces: groups("trace_statements", Signal::Traces),
        metrics: groups("metric_statements", Signal::Metrics),
        logs: groups("log_statements", Signal::Logs),
        flatten_data: section.flag("flatten_data"),
    })
}
