//! `span_metrics`: counts and durations of spans as metrics.

use super::dimension::{DIMENSION, Dimension, dimensions};
use super::{Connector, ConnectorSettings, TRACES_TO_METRICS};
use crate::config::components::{Entry, Parse, TRACES, name, old_name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};

/// Measurements of spans.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanMetrics {
    /// The first part of each metric's name; empty: none.
    pub namespace: String,
    /// Attributes that all metrics have besides the default ones.
    pub dimensions: Vec<Dimension>,
    /// Attributes that only `calls` has.
    pub calls_dimensions: Vec<Dimension>,
    /// Default attributes that are left out.
    pub excluded: Vec<String>,
    /// `duration`; none: there is no such metric.
    pub histogram: Option<Histogram>,
    /// Attributes that `events` has besides those of spans; none: there is no such metric.
    pub events: Option<Vec<Dimension>>,
    /// Time between two requests of metrics.
    pub flush_interval_ns: u64,
    /// A resource without spans for so long is forgotten; 0: never.
    pub resource_expiration_ns: u64,
    /// A series without spans for so long is forgotten; 0: never.
    pub series_expiration_ns: u64,
    /// Series of a resource and metric; further ones are counted together. 0: no bound.
    pub series_max: usize,
    /// Resources whose metrics are kept.
    pub resources_max: usize,
    /// Attributes by which resources are told apart; empty: all.
    pub resource_keys: Vec<String>,
    /// Metrics say what came since the last request, not since the start.
    pub is_delta: bool,
    /// Exemplars of a data point; none: there are none.
    pub exemplars_max: Option<usize>,
    /// Scopes whose name and version are attributes, by their names.
    pub scopes: Vec<String>,
    /// Whether `sampling.method` is an attribute.
    pub tells_sampling: bool,
}

/// How durations are measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Nanoseconds of the unit.
    pub unit_ns: u64,
    /// The unit as OTLP has it.
    pub unit: &'static str,
    /// Its buckets.
    pub buckets: Buckets,
    /// Attributes that only this metric has.
    pub dimensions: Vec<Dimension>,
}

/// Buckets of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub enum Buckets {
    /// Upper bounds in the unit, in rising order.
    Explicit(Vec<f64>),
    /// An exponential histogram of so many buckets at most.
    Exponential(usize),
}

impl ConnectorSettings for SpanMetrics {}

/// Upper bounds where none are written, in nanoseconds.
#[rustfmt::skip]
pub(super) const BOUNDS_NS: [u64; 16] = [
    2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000, 50_000_000, 100_000_000, 200_000_000, 400_000_000, 800_000_000,
    1_000_000_000, 1_400_000_000, 2_000_000_000, 5_000_000_000, 10_000_000_000, 15_000_000_000,
];
/// Buckets of an exponential histogram where nothing is written, and the least that there may be.
const EXPONENTIAL_SIZE: usize = 160;
const EXPONENTIAL_SIZE_MIN: usize = 2;
const EXEMPLARS_MAX: i64 = 1000;
const RESOURCES_MAX: i64 = 100_000;
const TEMPORALITIES: &[&str] = &[
    "AGGREGATION_TEMPORALITY_CUMULATIVE",
    "AGGREGATION_TEMPORALITY_DELTA",
];

#[rustfmt::skip]
const EXPLICIT: &[Opt] = &[
    opt("buckets", Kind::Durations, "", "upper bounds; 2ms to 15s where it is not written"),
];
#[rustfmt::skip]
const EXPONENTIAL: &[Opt] = &[
    opt("max_size", Kind::Int(0, 16384), "160", "buckets at most; with more, they are made wider"),
];
#[rustfmt::skip]
const HISTOGRAM: &[Opt] = &[
    opt("disable", Kind::Flag, "false", "there is no `duration`"),
    opt("unit", Kind::Word(&["ms", "s"]), "ms", "the unit of durations"),
    opt("explicit", Kind::Maybe(&[EXPLICIT]), "", "buckets with bounds"),
    opt("exponential", Kind::Maybe(&[EXPONENTIAL]), "", "an exponential histogram instead"),
    opt("dimensions", Kind::Sections(DIMENSION), "", "attributes that only `duration` has"),
];
#[rustfmt::skip]
const EXEMPLARS: &[Opt] = &[
    opt("enabled", Kind::Flag, "false", "data points name spans"),
    opt("max_per_data_point", Kind::Int(0, EXEMPLARS_MAX), "5", "spans of a data point at most"),
];
#[rustfmt::skip]
const EVENTS: &[Opt] = &[
    opt("enabled", Kind::Flag, "false", "there is a metric `events`"),
    opt("dimensions", Kind::Sections(DIMENSION), "", "its attributes besides those of spans (at least one)"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("namespace", Kind::Text, "traces.span.metrics", "first part of the names of `calls`, `duration` and `events`"),
    opt("dimensions", Kind::Sections(DIMENSION), "", "attributes of all metrics besides `service.name`, `span.name`, `span.kind`, `status.code`, `collector.instance.id`"),
    opt("calls_dimensions", Kind::Sections(DIMENSION), "", "attributes that only `calls` has"),
    opt("exclude_dimensions", Kind::Texts, "", "default attributes that are left out"),
    opt("histogram", Kind::Section(&[HISTOGRAM]), "", "durations"),
    opt("events", Kind::Section(&[EVENTS]), "", "counts of events"),
    opt("exemplars", Kind::Section(&[EXEMPLARS]), "", "spans as examples"),
    opt("aggregation_temporality", Kind::Text, "AGGREGATION_TEMPORALITY_CUMULATIVE", "`AGGREGATION_TEMPORALITY_DELTA`: what came since the last request"),
    opt("metrics_flush_interval", Kind::Duration, "60s", "time between two requests of metrics"),
    opt("metrics_expiration", Kind::Duration, "0s", "a resource without spans for so long is forgotten; 0: never"),
    opt("series_expiration", Kind::Duration, "0s", "likewise a series"),
    opt("aggregation_cardinality_limit", Kind::Int(0, COUNT_MAX), "0", "series of a resource and metric; further ones become one with `otel.metric.overflow`; 0: no bound but that of the connector"),
    opt("resource_metrics_cache_size", Kind::Int(1, RESOURCES_MAX), "1000", "resources that are known; the one that is silent for longest is forgotten for a new one"),
    opt("resource_metrics_key_attributes", Kind::Texts, "", "attributes that tell resources apart; all where it is not written"),
    opt("include_instrumentation_scope", Kind::Texts, "", "scopes whose name and version are attributes (`span.instrumentation.scope.*`)"),
    opt("enable_metrics_sampling_method", Kind::Flag, "false", "an attribute `sampling.method`: `extrapolated` where a span counts for several, as its `tracestate` says"),
    opt("add_resource_attributes", Kind::Flag, "false", "the resource's attributes").no_effect("they are always there, as in the Collector without its feature gate"),
    opt("dimensions_cache_size", Kind::Int(0, COUNT_MAX), "0", "old form of `aggregation_cardinality_limit`").no_effect("nothing is cached"),
    opt("metric_timestamp_cache_size", Kind::Int(0, COUNT_MAX), "1000", "times of deltas").no_effect("deltas follow each other without gaps: nothing is cached"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[
        name("span_metrics"),
        old_name(
            "spanmetrics",
            "the connector 'spanmetrics' is now 'span_metrics': it is taken for that",
        ),
    ],
    doc: "counts spans, and measures their durations",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Connector {
        pairs: TRACES_TO_METRICS,
        parse,
    },
};

fn parse(section: &Section<'_>) -> Connector {
    let exemplars = section.section("exemplars");
    let common = dimensions(section, "dimensions", &[]);
    let temporality = section.text("aggregation_temporality");
    if !TEMPORALITIES.contains(&&*temporality) {
        // As in the Collector.
        let message = "is not known: it is taken for AGGREGATION_TEMPORALITY_CUMULATIVE";
        section.warn("aggregation_temporality", message);
    }
    let settings = SpanMetrics {
        namespace: section.text("namespace"),
        calls_dimensions: dimensions(section, "calls_dimensions", &common),
        histogram: histogram(&section.section("histogram"), &common),
        events: events(&section.section("events"), &common),
        excluded: section.texts("exclude_dimensions"),
        flush_interval_ns: section.duration_ns("metrics_flush_interval"),
        resource_expiration_ns: section.duration_ns("metrics_expiration"),
        series_expiration_ns: section.duration_ns("series_expiration"),
        series_max: section.int("aggregation_cardinality_limit"),
        resources_max: section.int("resource_metrics_cache_size"),
        resource_keys: section.texts("resource_metrics_key_attributes"),
        is_delta: temporality == TEMPORALITIES[1],
        exemplars_max: exemplars
            .flag("enabled")
            .then(|| exemplars.int("max_per_data_point")),
        scopes: section.texts("include_instrumentation_scope"),
        tells_sampling: section.flag("enable_metrics_sampling_method"),
        dimensions: common,
    };
    if settings.flush_interval_ns == 0 {
        section.error("metrics_flush_interval", "must be more than 0");
    }
    Connector::new(settings)
}

fn histogram(section: &Section<'_>, common: &[Dimension]) -> Option<Histogram> {
    let (unit, unit_ns) = section.choice(
        "unit",
        &[("ms", ("ms", 1_000_000)), ("s", ("s", 1_000_000_000))],
    );
    let (explicit, exponential) = (section.maybe("explicit"), section.maybe("exponential"));
    if explicit.is_some() && exponential.is_some() {
        section.fault("use either `explicit` or `exponential` buckets histogram");
    }
    let buckets = match (explicit, exponential) {
        (_, Some(exponential)) => {
            let size: usize = exponential.int("max_size");
            let size = if size == 0 { EXPONENTIAL_SIZE } else { size };
            Buckets::Exponential(size.max(EXPONENTIAL_SIZE_MIN))
        }
        (explicit, None) => {
            let written = explicit.map(|explicit| (explicit.durations_ns("buckets"), explicit));
            let bounds = match written {
                Some((bounds, explicit)) if explicit.written("buckets").is_some() => {
                    if !bounds.is_sorted_by(|a, b| a < b) {
                        explicit.error("buckets", "must rise");
                    }
                    bounds
                }
                _ => BOUNDS_NS.to_vec(),
            };
            let in_unit = |bound: &u64| *bound as f64 / unit_ns as f64;
            Buckets::Explicit(bounds.iter().map(in_unit).collect())
        }
    };
    let histogram = Histogram {
        unit_ns,
        unit,
        buckets,
        dimensions: dimensions(section, "dimensions", common),
    };
    (!section.flag("disable")).then_some(histogram)
}

fn events(section: &Section<'_>, common: &[Dimension]) -> Option<Vec<Dimension>> {
    let dimensions = dimensions(section, "dimensions", common);
    if !section.flag("enabled") {
        return None;
    }
    if dimensions.is_empty() {
        section.error("dimensions", "no dimensions configured for events");
    }
    Some(dimensions)
}
