//! `stats otlp`: exports statistics as metrics over OTLP.

use telemetry::settings::{Histogram, Settings, Temporality};

use super::super::collector;
use super::super::global::GlobalBuild;
use super::super::line::{Cursor, Line, Parse};
use super::instrumentation::time_ms_at;
use super::tracing::{endpoint_url, variable};

const USAGE: &str =
    "'stats otlp [endpoint <url>|collector://<name>] [service <name>] [interval <time>]'";
/// Milliseconds between two exports; `OTEL_METRIC_EXPORT_INTERVAL` has the same limits.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// `stats otlp …`, from its third word on. OpenTelemetry's environment variables are the defaults.
pub fn stats_otlp(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 2 };
    let (mut endpoint, mut service, mut interval) = (None, None, None);
    // The word with the endpoint. For one from the environment, it is the keyword itself.
    let mut endpoint_at = 1;
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "endpoint" => {
                endpoint = Some(endpoint_url(&mut cursor)?);
                endpoint_at = cursor.at - 1;
            }
            "service" => service = Some(cursor.value("a name")?.to_owned()),
            "interval" => {
                cursor.value("a time")?;
                let ms = time_ms_at(line, cursor.at - 1, "interval")?;
                if !INTERVAL_MS.contains(&ms) {
                    return Err(cursor.fault("'interval' expects a time from 100ms to 1h."));
                }
                interval = Some(ms);
            }
            word => {
                return Err(cursor.fault(format!("'{word}' : unexpected. Usage: {USAGE}")));
            }
        }
    }
    let files = &build.shared.filter_files;
    let own = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
    let get = |name: &str| match (name, interval) {
        ("OTEL_METRIC_EXPORT_INTERVAL", Some(ms)) => Some(ms.to_string()),
        _ => variable(files, name, own, endpoint.as_ref(), service.as_ref()),
    };
    let (settings, mut warnings) = Settings::from_environment(&get);
    let settings = Settings {
        metrics: settings.metrics,
        ..Settings::default()
    };
    if let Some(metrics) = &settings.metrics {
        if metrics.temporality != Temporality::Cumulative {
            warnings.push("'stats otlp' exports cumulative sums, whatever OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE says".to_owned());
        }
        if metrics.histogram != Histogram::Explicit {
            warnings.push("'stats otlp' exports histograms with explicit bounds, whatever OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION says".to_owned());
        }
    }
    let names = &build.shared.collector_names;
    if let Some(name) = collector::unknown_of(&settings, names) {
        return Err(line.fault(endpoint_at, collector::no_such(name, names)));
    }
    build.global.stats_otlp = Some(Box::new(settings));
    for warning in warnings {
        build
            .shared
            .settle(Err(line.fault(1, warning).as_warning()));
    }
    Ok(())
}
