//! The collector's metrics, by the Collector's names, in Prometheus' text format (version 0.0.4)
//! and over OTLP.
//!
//! What the Collector lacks stands beside them: the account of every span.

mod dashboard;
mod exporters;
mod otlp;
mod process;
mod processors;
mod receivers;
mod sheet;

use super::start::View;
use super::storage::StorageView;
use crate::config::Signal;
use crate::config::service::telemetry::Naming;

pub(super) use otlp::Span;
pub use sheet::{Kind, Sheet};

/// What the page is.
pub(super) const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page.
#[must_use]
pub(super) fn write(view: &View, naming: Naming) -> String {
    let mut page = sheet(view);
    target(view, &mut page);
    page.prometheus(naming)
}

/// All metrics.
#[must_use]
pub(super) fn sheet(view: &View) -> Sheet {
    let mut page = Sheet::new(view.level);
    receivers::write(view, &mut page);
    exporters::write(view, &mut page);
    storages(view, &mut page);
    for (id, source) in &view.sources {
        source.describe(id, &mut page);
    }
    processors::write(view, &mut page);
    dashboard::write(view, &mut page);
    process::write(view, &mut page);
    page
}

/// The resource, as Prometheus has it.
fn target(view: &View, page: &mut Sheet) {
    page.about(Kind::Gauge, "target_info", "", "Target metadata");
    let label = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let names: Vec<String> = { view.resource.iter() }
        .map(|(name, _)| name.chars().map(label).collect())
        .collect();
    let values = view.resource.iter().map(|(_, value)| value.as_str());
    let labels: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
    page.point(&labels, 1_u64);
}

/// The word for a signal's records in metric names (`spans`, `metric_points`, `log_records`).
fn records(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spans",
        Signal::Metrics => "metric_points",
        Signal::Logs => "log_records",
    }
}

/// The unit of counts of a signal's records.
fn items(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "{span}",
        Signal::Metrics => "{datapoint}",
        Signal::Logs => "{record}",
    }
}

/// The word for a signal's records in metric names, and the unit of their counts.
pub(super) fn records_of(signal: Signal) -> (&'static str, &'static str) {
    (records(signal), items(signal))
}

fn storages(view: &View, page: &mut Sheet) {
    type Value = fn(&StorageView) -> u64;
    let values: [(Kind, &str, &'static str, &str, Value); 4] = [
        (
            Kind::Gauge,
            "otelcol_storage_bytes",
            "By",
            "bytes of all files",
            |storage| storage.space.used_bytes(),
        ),
        (
            Kind::Gauge,
            "otelcol_storage_capacity_bytes",
            "By",
            "the most that there may be",
            |storage| storage.space.bytes_max(),
        ),
        (
            Kind::Counter,
            "spangate_storage_damaged_files",
            "{file}",
            "files that the start found empty or damaged: a part of what was in them is lost",
            |storage| storage.damage.files,
        ),
        (
            Kind::Counter,
            "spangate_storage_damaged_bytes",
            "By",
            "bytes of these files that are no entry",
            |storage| storage.damage.bytes,
        ),
    ];
    for (kind, name, unit, help, value) in values {
        page.about(kind, name, unit, help);
        for (id, storage) in &view.storages {
            page.point(&[("storage", id)], value(storage));
        }
    }
}
