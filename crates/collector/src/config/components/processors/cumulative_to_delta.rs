//! `cumulativetodelta`: cumulative sums and histograms become deltas.

use otlp::scan::MetricKind;

use super::records::{CACHE, NO_CACHE};
use super::{Processor, ProcessorSettings};
use crate::config::components::{Entry, METRICS, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::pattern;

/// Selects the metrics that become deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct CumulativeToDelta {
    /// Only metrics that match.
    pub include: MetricMatch,
    /// But not metrics that match.
    pub exclude: MetricMatch,
    /// A stream without data points for so long is forgotten; 0: never.
    pub max_staleness_ns: u64,
    /// Handling of the first data point of a stream.
    pub initial_value: InitialValue,
}

/// Metrics by their names and kinds. An empty list says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricMatch {
    /// Whether names are regular expressions.
    pub regex: bool,
    /// Names, of which one must match.
    pub names: Vec<String>,
    /// Kinds, of which one must match.
    pub kinds: Vec<MetricKind>,
}

/// Handling of the first data point of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialValue {
    /// Keeps it if its stream began after the collector, and before the data point.
    Auto,
    /// Keeps it.
    Keep,
    /// Drops it.
    Drop,
}

impl ProcessorSettings for CumulativeToDelta {}

#[rustfmt::skip]
const MATCH: &[Opt] = &[
    opt("match_type", Kind::Word(&["strict", "regexp"]), "", "strict or regexp; must be there with `metrics`"),
    opt("metrics", Kind::Texts, "", "names of metrics"),
    opt("metric_types", Kind::Texts, "", "`sum`, `histogram`, `exponentialhistogram`"),
    opt("regexp", Kind::Section(&[CACHE]), "", "how regular expressions are kept").no_effect(NO_CACHE),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("include", Kind::Section(&[MATCH]), "", "only metrics of one of the names and one of the types become deltas"),
    opt("exclude", Kind::Section(&[MATCH]), "", "metrics of one of the names, and metrics of one of the types, stay as they are"),
    opt("max_staleness", Kind::Duration, "1h", "a stream without data points for so long is forgotten; 0: never"),
    opt("initial_value", Kind::Word(&["auto", "keep", "drop"]), "auto", "the first data point of a stream: `auto` keeps it if its start time is later than the collector's start, and is not its time"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("cumulativetodelta"), name("cumulative_to_delta")],
    doc: "makes deltas of cumulative sums and histograms",
    takes: METRICS,
    carries: METRICS,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    Processor::new(CumulativeToDelta {
        include: metric_match(&section.section("include")),
        exclude: metric_match(&section.section("exclude")),
        max_staleness_ns: section.duration_ns("max_staleness"),
        initial_value: section.choice(
            "initial_value",
            &[
                ("auto", InitialValue::Auto),
                ("keep", InitialValue::Keep),
                ("drop", InitialValue::Drop),
            ],
        ),
    })
}

fn metric_match(section: &Section<'_>) -> MetricMatch {
    let match_type = section.text("match_type");
    let names = section.whole_texts_at("metrics");
    // The texts of the Collector.
    if !names.is_empty() && match_type.is_empty() {
        section.fault("match_type must be set if metrics are supplied");
    }
    if names.is_empty() && !match_type.is_empty() {
        section.fault("metrics must be supplied if match_type is set");
    }
    let regex = match_type == "regexp";
    let names = names.into_iter().map(|(text, at)| {
        if regex && let Err(reason) = pattern::check(&text) {
            let message = format!("{}::metrics: {reason}", section.path);
            section.notes.error(at, message);
        }
        text
    });
    MetricMatch {
        regex,
        names: names.collect(),
        kinds: kinds(section),
    }
}

fn kinds(section: &Section<'_>) -> Vec<MetricKind> {
    let mut kinds = Vec::new();
    for text in section.texts("metric_types") {
        match &*text.to_ascii_lowercase() {
            "sum" => kinds.push(MetricKind::Sum),
            "histogram" => kinds.push(MetricKind::Histogram),
            "exponentialhistogram" => kinds.push(MetricKind::Exponential),
            _ => {
                let message = format!(
                    "found invalid metric type '{text}': use sum, histogram or exponentialhistogram"
                );
                section.error("metric_types", &message);
            }
        }
    }
    kinds
}
