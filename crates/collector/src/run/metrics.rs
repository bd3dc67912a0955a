//! The collector's metrics, by the Collector's names, in Prometheus' text format (version 0.0.4)
//! and over OTLP.
//!
//! What the Collector lacks stands beside them: the account of every span.

mod balance;
mod dashboard;
mod exporters;
mod kafka;
mod otlp;
mod process;
mod processors;
mod receivers;
mod sheet;
mod tail;

use super::start::View;
use crate::config::Signal;
use crate::config::service::telemetry::Naming;

use sheet::Kind;

pub(super) use otlp::Span;
pub(super) use sheet::Sheet;
pub(crate) use tail::Sum;

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
    let mut page = Sheet::default();
    receivers::write(view, &mut page);
    exporters::write(view, &mut page);
    storages(view, &mut page);
    balance::write(view, &mut page);
    kafka::write(view, &mut page);
    processors::write(view, &mut page);
    tail::write(view, &mut page);
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

fn storages(view: &View, page: &mut Sheet) {
    type Value = fn(&journal::Space) -> u64;
    let gauges: [(&str, &str, Value); 2] = [
        ("otelcol_storage_bytes", "bytes of all files", |space| {
            space.used_bytes()
        }),
        (
            "otelcol_storage_capacity_bytes",
            "the most that there may be",
            |space| space.bytes_max(),
        ),
    ];
    for (name, help, value) in gauges {
        page.about(Kind::Gauge, name, "By", help);
        for (id, space) in &view.storages {
            page.point(&[("storage", id)], value(space));
        }
    }
}
