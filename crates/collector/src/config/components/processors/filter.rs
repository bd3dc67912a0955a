//! `filter`: what is dropped by conditions in OTTL, or by what it has.

use otlp::Signal;
use ottl::Context;
use tail::settings::ErrorMode;

use super::matching::{self, Matching};
use super::records::{self, LogMatching, MetricMatching};
use super::statements::{
    self, ERROR_MODES, Group, LOG_GROUP, METRIC_GROUP, NO_PROFILES, TRACE_GROUP,
};
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// Rules that drop data, by signal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Conditions on traces by their context: what any is true of is dropped.
    pub traces: Vec<Group>,
    /// The same on metrics.
    pub metrics: Vec<Group>,
    /// The same on logs.
    pub logs: Vec<Group>,
    /// Which spans are kept, where there are no conditions on traces.
    pub spans: Kept<Matching>,
    /// Which metrics are kept, where there are no conditions on metrics.
    pub kept_metrics: Kept<MetricMatching>,
    /// Which log records are kept, where there are no conditions on logs.
    pub kept_logs: Kept<LogMatching>,
}

/// Matches that decide which records are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<M> {
    /// Only what matches.
    pub include: Option<M>,
    /// And of that nothing that matches.
    pub exclude: Option<M>,
}

impl<M> Kept<M> {
    /// Whether anything is said.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.include.is_some() || self.exclude.is_some()
    }
}

impl<M> Default for Kept<M> {
    fn default() -> Kept<M> {
        Kept {
            include: None,
            exclude: None,
        }
    }
}

impl Filter {
    /// The conditions of a signal.
    #[must_use]
    pub fn of(&self, signal: Signal) -> &[Group] {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

impl ProcessorSettings for Filter {
    fn ask(&self, asked: &mut Asked) {
        for signal in Signal::ALL {
            asked.add_groups(self.of(signal));
        }
    }
}

#[rustfmt::skip]
const TRACES: &[Opt] = &[
    opt("resource", Kind::Texts, "", "conditions on resources: all of their spans are dropped"),
    opt("span", Kind::Texts, "", "conditions on spans"),
    opt("spanevent", Kind::Texts, "", "conditions on events of spans"),
];
#[rustfmt::skip]
const METRICS: &[Opt] = &[
    opt("resource", Kind::Texts, "", "conditions on resources: all of their metrics are dropped"),
    opt("metric", Kind::Texts, "", "conditions on metrics"),
    opt("datapoint", Kind::Texts, "", "conditions on data points; a metric without any is dropped"),
    opt("include", Kind::Maybe(records::METRICS), "", "only metrics that match are kept"),
    opt("exclude", Kind::Maybe(records::METRICS), "", "metrics that match are dropped"),
    opt("regexp", Kind::Any, "", "how regular expressions are kept").no_effect("results are not remembered: matches are fast without"),
];
#[rustfmt::skip]
const LOGS: &[Opt] = &[
    opt("resource", Kind::Texts, "", "conditions on resources: all of their log records are dropped"),
    opt("log_record", Kind::Texts, "", "conditions on log records"),
    opt("include", Kind::Maybe(records::LOGS), "", "only log records that match are kept"),
    opt("exclude", Kind::Maybe(records::LOGS), "", "log records that match are dropped"),
];
#[rustfmt::skip]
const SPANS: &[Opt] = &[
    opt("include", Kind::Maybe(matching::TABLE), "", "only spans that match are kept"),
    opt("exclude", Kind::Maybe(matching::TABLE), "", "spans that match are dropped"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("error_mode", Kind::Word(ERROR_MODES), "ignore", "a condition that fails is false; `propagate`: the batch is refused"),
    opt("trace_conditions", Kind::TextsOrSections(&[TRACE_GROUP]), "", "what any is true of is dropped: a list of conditions, or groups"),
    opt("metric_conditions", Kind::TextsOrSections(&[METRIC_GROUP]), "", "the same of metrics and data points"),
    opt("log_conditions", Kind::TextsOrSections(&[LOG_GROUP]), "", "the same of log records"),
    opt("traces", Kind::Section(&[TRACES]), "", "the same by context, as it was written before; `trace_conditions` counts before it"),
    opt("metrics", Kind::Section(&[METRICS]), "", "the same of metrics; conditions count before `include` and `exclude`"),
    opt("logs", Kind::Section(&[LOGS]), "", "the same of log records"),
    opt("spans", Kind::Section(&[SPANS]), "", "the oldest way; conditions count before it"),
    opt("profile_conditions", Kind::Any, "", "conditions on profiles").no_effect(NO_PROFILES),
    opt("profiles", Kind::Any, "", "conditions on profiles").no_effect(NO_PROFILES),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("filter")],
    doc: "drops spans, events, metrics, data points and log records by conditions in OTTL",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

/// The options of a signal.
struct Place {
    signal: Signal,
    /// Conditions, or groups of them.
    newer: &'static str,
    /// Conditions by context.
    older: &'static str,
    /// The contexts there, with their keys.
    contexts: &'static [(&'static str, Context)],
}

const OF_TRACES: Place = Place {
    signal: Signal::Traces,
    newer: "trace_conditions",
    older: "traces",
    contexts: &[
        ("resource", Context::Resource),
        ("span", Context::Span),
        ("spanevent", Context::SpanEvent),
    ],
};
const OF_METRICS: Place = Place {
    signal: Signal::Metrics,
    newer: "metric_conditions",
    older: "metrics",
    contexts: &[
        ("resource", Context::Resource),
        ("metric", Context::Metric),
        ("datapoint", Context::DataPoint),
    ],
};
const OF_LOGS: Place = Place {
    signal: Signal::Logs,
    newer: "log_conditions",
    older: "logs",
    contexts: &[
        ("resource", Context::Resource),
        ("log_record", Context::Log),
    ],
};

fn parse(section: &Section<'_>) -> Processor {
    let filter = Filter {
        traces: conditions(section, &OF_TRACES),
        metrics: conditions(section, &OF_METRICS),
        logs: conditions(section, &OF_LOGS),
        spans: kept(&section.section("spans"), matching::matching),
        kept_metrics: kept(&section.section("metrics"), records::metrics),
        kept_logs: kept(&section.section("logs"), records::logs),
    };
    if !filter.traces.is_empty() && filter.spans.is_given() {
        section.warn("spans", "has no effect: there are conditions");
    }
    let older = "'include' and 'exclude' have no effect: there are conditions";
    if !filter.metrics.is_empty() && filter.kept_metrics.is_given() {
        section.warn("metrics", older);
    }
    if !filter.logs.is_empty() && filter.kept_logs.is_given() {
        section.warn("logs", older);
    }
    Processor::new(filter)
}

/// The conditions of a signal: the newer ones, or those by context.
fn conditions(section: &Section<'_>, place: &Place) -> Vec<Group> {
    let mode = statements::error_mode(section, ErrorMode::Ignore);
    let newer = statements::groups(section, place.newer, place.signal, mode);
    let by_context = section.section(place.older);
    let older = place.contexts.iter().filter_map(|(key, context)| {
        statements::conditions(&by_context, key, place.signal, *context, mode)
    });
    let older: Vec<Group> = older.collect();
    if newer.is_empty() {
        return older;
    }
    if !older.is_empty() {
        let message = format!("has no effect: there are '{}'", place.newer);
        section.warn(place.older, &message);
    }
    newer
}

fn kept<M>(section: &Section<'_>, matching: impl Fn(&Section<'_>) -> M) -> Kept<M> {
    let of = |name: &str| section.maybe_filled(name).map(|section| matching(&section));
    Kept {
        include: of("include"),
        exclude: of("exclude"),
    }
}
