//! `prometheus`: the last values of metrics, on a page that Prometheus scrapes.

use otlp::Signal;

use super::{Exporter, ExporterSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::shared::queue;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt, required};

/// An exporter that serves a page for Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct PrometheusExporter {
    /// The server of the page.
    pub server: HttpServer,
    /// Samples have the times of their data points.
    pub send_timestamps: bool,
    /// A series without a new data point is removed after this time.
    pub metric_expiration_ns: u64,
    /// OpenMetrics for clients that accept it.
    pub open_metrics: bool,
    /// Names and labels.
    pub naming: Naming,
}

/// How the names and the labels of Prometheus' series are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The first part of each metric's name; empty: none.
    pub namespace: String,
    /// Labels of each series, by name and value.
    pub const_labels: Vec<(String, String)>,
    /// These replace other labels of the same name; else the others count.
    pub const_labels_first: bool,
    /// How names of metrics and labels are made.
    pub translation: Translation,
    /// Series have the labels `otel_scope_*`.
    pub scope_labels: bool,
    /// The attributes of a resource that become labels of its series.
    pub resource_labels: ResourceLabels,
}

impl ExporterSettings for PrometheusExporter {
    /// Deltas are added up in the order in which they come.
    fn is_ordered(&self) -> bool {
        true
    }

    fn server_auth(&self) -> Option<&ComponentId> {
        self.server.auth.as_ref()
    }
}

/// How names of metrics and labels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Names end with the unit and the type.
    pub suffixes: bool,
    /// Names keep characters that Prometheus did not allow before version 3.
    pub utf8: bool,
}

/// Attributes of resources. Patterns choose them by their keys: `*` stands for any characters, `?`
/// for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceLabels {
    /// Keys of attributes that become labels.
    pub included: Vec<String>,
    /// Keys of attributes that do not, although they are included.
    pub excluded: Vec<String>,
}

/// Attributes that become the labels `job` and `instance`.
pub const SERVICE_ATTRIBUTES: [&str; 3] =
    ["service.name", "service.namespace", "service.instance.id"];

const STRATEGIES: [(&str, Translation); 4] = [
    (
        "UnderscoreEscapingWithSuffixes",
        Translation {
            suffixes: true,
            utf8: false,
        },
    ),
    (
        "UnderscoreEscapingWithoutSuffixes",
        Translation {
            suffixes: false,
            utf8: false,
        },
    ),
    (
        "NoUTF8EscapingWithSuffixes",
        Translation {
            suffixes: true,
            utf8: true,
        },
    ),
    (
        "NoTranslation",
        Translation {
            suffixes: false,
            utf8: true,
        },
    ),
];
#[rustfmt::skip]
pub(super) const STRATEGY_WORDS: &[&str] = &[
    "", "UnderscoreEscapingWithSuffixes", "UnderscoreEscapingWithoutSuffixes", "NoUTF8EscapingWithSuffixes", "NoTranslation",
];

#[rustfmt::skip]
pub(super) const CONVERSION: &[Opt] = &[
    opt("enabled", Kind::Flag, "false", "all attributes of the resource"),
    opt("exclude_service_attributes", Kind::Flag, "false", "without those that become `job` and `instance`"),
];
#[rustfmt::skip]
pub(super) const CONSTANT_LABELS: &[Opt] = &[
    opt("included", Kind::Texts, "", "keys of attributes, with `*` for any characters and `?` for one; where it is empty and `excluded` is not: all"),
    opt("excluded", Kind::Texts, "", "keys of attributes that are left out of these"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    required("endpoint", Kind::Text, "address to listen on; the page is `/metrics`"),
    opt("namespace", Kind::Text, "", "the first part of each metric's name"),
    opt("const_labels", Kind::Pairs, "", "labels of each series but `target_info`; one replaces a label of its name"),
    opt("send_timestamps", Kind::Flag, "false", "samples have the times of their data points"),
    opt("metric_expiration", Kind::Duration, "5m", "a series without a new data point is removed after this time"),
    opt("enable_open_metrics", Kind::Flag, "false", "OpenMetrics, with exemplars, for clients that accept it"),
    opt("translation_strategy", Kind::Word(STRATEGY_WORDS), "", "how names of metrics and labels are made; where it is not written: with underscores, and with suffixes unless `add_metric_suffixes` is false"),
    opt("add_metric_suffixes", Kind::Flag, "true", "names end with the unit and the type").deprecated("write 'translation_strategy', which counts where both are written"),
    opt("without_scope_info", Kind::Flag, "false", "series have no labels `otel_scope_*`"),
    opt("resource_constant_labels", Kind::Section(&[CONSTANT_LABELS]), "", "attributes of the resource that become labels of its series"),
    opt("resource_to_telemetry_conversion", Kind::Section(&[CONVERSION]), "", "the same, in its older form; `resource_constant_labels` counts where both are written"),
    opt("sending_queue", Kind::Section(queue::TABLE), "", "what waits before it").no_effect("values are stored at once"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("prometheus")],
    doc: "the last values of metrics, on a page that Prometheus scrapes",
    takes: &[Signal::Metrics],
    carries: &[Signal::Metrics],
    options: &[OPTIONS, http::PAGE, http::SERVER],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    Exporter::new(PrometheusExporter {
        server: http::server(section),
        send_timestamps: section.flag("send_timestamps"),
        metric_expiration_ns: section.duration_ns("metric_expiration"),
        open_metrics: section.flag("enable_open_metrics"),
        naming: Naming {
            namespace: section.text("namespace"),
            const_labels: const_labels(section),
            const_labels_first: true,
            translation: translation(section),
            scope_labels: !section.flag("without_scope_info"),
            resource_labels: resource_labels(section),
        },
    })
}

fn const_labels(section: &Section<'_>) -> Vec<(String, String)> {
    let labels = section.pairs("const_labels");
    for (label, _) in &labels {
        if label.is_empty() {
            section.error("const_labels", "a label must have a name");
        } else if label.starts_with("__") {
            let message = format!("'{label}' begins with '__', which Prometheus keeps for itself");
            section.error("const_labels", &message);
        }
    }
    labels
}

pub(super) fn translation(section: &Section<'_>) -> Translation {
    if section.text("translation_strategy").is_empty() {
        Translation {
            suffixes: section.flag("add_metric_suffixes"),
            utf8: false,
        }
    } else {
        section.choice("translation_strategy", &STRATEGIES)
    }
}

pub(super) fn resource_labels(section: &Section<'_>) -> ResourceLabels {
    let everything = || vec!["*".to_owned()];
    let chosen = section.section("resource_constant_labels");
    let (included, excluded) = (chosen.texts("included"), chosen.texts("excluded"));
    if !included.is_empty() || !excluded.is_empty() {
        let included = Some(included).filter(|included| !included.is_empty());
        return ResourceLabels {
            included: included.unwrap_or_else(everything),
            excluded,
        };
    }
    let conversion = section.section("resource_to_telemetry_conversion");
    let without_service = conversion.flag("exclude_service_attributes");
    if !conversion.flag("enabled") {
        return ResourceLabels::default();
    }
    ResourceLabels {
        included: everything(),
        excluded: if without_service {
            SERVICE_ATTRIBUTES.map(str::to_owned).to_vec()
        } else {
            Vec::new()
        },
    }
}
