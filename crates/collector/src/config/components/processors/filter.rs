//! `filter`: what is dropped by conditions in OTTL, or by what it has.

use ottl::Context;
use tail::settings::ErrorMode;

use super::matching::{self, Matching};
use super::statements::{self, ERROR_MODES, GROUP, Group};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// What is dropped of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Conditions by their context: what any is true of is dropped.
    pub conditions: Vec<Group>,
    /// Only spans that match are kept (where there are no conditions).
    pub include: Option<Matching>,
    /// And of these none that matches.
    pub exclude: Option<Matching>,
}

impl ProcessorSettings for Filter {
    fn ask(&self, asked: &mut Asked) {
        asked.add_groups(&self.conditions);
    }
}

const TRACES_ONLY: &str =
    "only traces are filtered yet: a pipeline of another signal with this processor is not started";

#[rustfmt::skip]
const CONDITIONS: &[Opt] = &[
    opt("resource", Kind::Texts, "", "conditions on resources: all of their spans are dropped"),
    opt("span", Kind::Texts, "", "conditions on spans"),
    opt("spanevent", Kind::Texts, "", "conditions on events of spans"),
];
#[rustfmt::skip]
const SPANS: &[Opt] = &[
    opt("include", Kind::Maybe(matching::TABLE), "", "only spans that match are kept"),
    opt("exclude", Kind::Maybe(matching::TABLE), "", "spans that match are dropped"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("error_mode", Kind::Word(ERROR_MODES), "ignore", "a condition that fails is false; `propagate`: the batch is refused"),
    opt("trace_conditions", Kind::TextsOrSections(&[GROUP]), "", "what any is true of is dropped: a list of conditions, or groups"),
    opt("traces", Kind::Section(&[CONDITIONS]), "", "the same by context, as it was written before; `trace_conditions` counts before it"),
    opt("spans", Kind::Section(&[SPANS]), "", "the oldest way; conditions count before it"),
    opt("metric_conditions", Kind::Any, "", "conditions on metrics").no_effect(TRACES_ONLY),
    opt("log_conditions", Kind::Any, "", "conditions on logs").no_effect(TRACES_ONLY),
    opt("profile_conditions", Kind::Any, "", "conditions on profiles").no_effect(TRACES_ONLY),
    opt("metrics", Kind::Any, "", "conditions on metrics").no_effect(TRACES_ONLY),
    opt("logs", Kind::Any, "", "conditions on logs").no_effect(TRACES_ONLY),
    opt("profiles", Kind::Any, "", "conditions on profiles").no_effect(TRACES_ONLY),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("filter")],
    doc: "drops spans and events by conditions in OTTL",
    takes: EVERY,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let mode = statements::error_mode(section, ErrorMode::Ignore);
    let newer = statements::groups(section, "trace_conditions", mode);
    let by_context = section.section("traces");
    let older = [Context::Resource, Context::Span, Context::SpanEvent];
    let older = older.iter().filter_map(|context| {
        statements::conditions(&by_context, &context.to_string(), *context, mode)
    });
    let older: Vec<Group> = older.collect();
    let spans = section.section("spans");
    let of = |name: &str| {
        let section = spans.maybe_filled(name);
        section.map(|section| matching::matching(&section))
    };
    let (include, exclude) = (of("include"), of("exclude"));
    if !newer.is_empty() && !older.is_empty() {
        section.warn("traces", "has no effect: there are 'trace_conditions'");
    }
    let conditions = if newer.is_empty() { older } else { newer };
    if !conditions.is_empty() && (include.is_some() || exclude.is_some()) {
        section.warn("spans", "has no effect: there are conditions");
    }
    Processor::new(Filter {
        conditions,
        include,
        exclude,
    })
}
