//! Metrics made of the counts, sums and quantiles of others.

use otlp::scan::{Metric, MetricKind, Number, Point, PointKind};
use otlp::write;
use ottl::{Failure, MetricEdit};

use super::super::super::edit::List;
use super::super::apply::Applied;
use super::{METRIC_BYTES_MAX, build, points};

/// `extract_count_metric`
///
/// # Errors
/// The metric is neither a histogram nor a summary, or has no temporality.
pub fn count(
    metric: &Metric<'_>,
    monotonic: bool,
    suffix: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    let value = |point: &Point<'_>| Some(Number::Int(point.count as i64));
    // The unit of a metric is not that of its counts.
    let parts = Parts {
        suffix,
        unit: b"1",
        monotonic,
        temporality: temporality(metric)?,
    };
    Ok(sum_of(metric, &parts, value, out))
}

/// `extract_sum_metric`
///
/// # Errors
/// As [`count`].
pub fn sum(
    metric: &Metric<'_>,
    monotonic: bool,
    suffix: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    let parts = Parts {
        suffix,
        unit: metric.unit,
        monotonic,
        temporality: temporality(metric)?,
    };
    Ok(sum_of(
        metric,
        &parts,
        |point| point.sum.map(Number::Double),
        out,
    ))
}

/// The properties of a new sum.
struct Parts<'p> {
    suffix: &'p [u8],
    unit: &'p [u8],
    monotonic: bool,
    temporality: u64,
}

/// Appends a sum of a value of each data point; nothing where no point has one.
fn sum_of(
    metric: &Metric<'_>,
    parts: &Parts<'_>,
    value: impl Fn(&Point<'_>) -> Option<Number>,
    out: &mut Vec<u8>,
) -> Applied {
    let values: Vec<(Point<'_>, Number)> = points(metric)
        .filter_map(|point| Some((point, value(&point)?)))
        .collect();
    if values.is_empty() {
        return Applied::Nothing;
    }
    write_sum(metric, parts, &values, out);
    Applied::Added
}

fn write_sum(
    of: &Metric<'_>,
    parts: &Parts<'_>,
    values: &[(Point<'_>, Number)],
    out: &mut Vec<u8>,
) {
    build::metric(of, parts.suffix, parts.unit, MetricKind::Sum, out, |out| {
        for (point, value) in values {
            build::number(point, *value, out, |out| {
                build::attributes(point, PointKind::Number, out);
            });
        }
        build::sum_fields(parts.temporality, parts.monotonic, out);
    });
}

/// The temporality of the sum that is made of a histogram or a summary, which has none of its own.
fn temporality(metric: &Metric<'_>) -> Result<u64, Failure> {
    match metric.kind {
        Some(MetricKind::Summary) => Ok(build::CUMULATIVE),
        Some(MetricKind::Histogram | MetricKind::Exponential) => {
            let temporality = u64::try_from(metric.temporality).unwrap_or(0);
            if temporality == 0 {
                Err(Failure::Type)
            } else {
                Ok(temporality)
            }
        }
        Some(MetricKind::Gauge | MetricKind::Sum) | None => Err(Failure::Type),
    }
}

/// `convert_summary_count_val_to_sum` and `convert_summary_sum_val_to_sum`; nothing for other kinds
/// of metrics. `names` has the name, `metric` the data points.
pub fn of_summary(
    edit: &MetricEdit,
    names: &Metric<'_>,
    metric: &Metric<'_>,
    out: &mut Vec<u8>,
) -> Applied {
    let (temporality, monotonic, suffix, counts) = match edit {
        MetricEdit::SummaryCount {
            temporality,
            monotonic,
            suffix,
        } => (*temporality, *monotonic, suffix, true),
        MetricEdit::SummarySum {
            temporality,
            monotonic,
            suffix,
        } => (*temporality, *monotonic, suffix, false),
        _ => return Applied::Nothing,
    };
    if metric.kind != Some(MetricKind::Summary) {
        return Applied::Nothing;
    }
    let value = |point: Point<'_>| {
        if counts {
            Number::Int(point.count as i64)
        } else {
            Number::Double(point.sum.unwrap_or_default())
        }
    };
    let values: Vec<_> = points(metric).map(|point| (point, value(point))).collect();
    let parts = Parts {
        suffix,
        unit: names.unit,
        monotonic,
        temporality,
    };
    write_sum(names, &parts, &values, out);
    Applied::Added
}

/// `convert_summary_quantile_val_to_gauge`; nothing for other kinds of metrics.
///
/// # Errors
/// The new metric is too large: each quantile gets all attributes of its data point.
pub fn quantiles(
    metric: &Metric<'_>,
    key: &[u8],
    suffix: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    if metric.kind != Some(MetricKind::Summary) {
        return Ok(Applied::Nothing);
    }
    let mut is_small = true;
    build::metric(metric, suffix, metric.unit, MetricKind::Gauge, out, |out| {
        for point in points(metric) {
            for quantile in point.quantiles() {
                is_small &= out.len() <= METRIC_BYTES_MAX;
                if !is_small {
                    return;
                }
                let value = Number::Double(quantile.value);
                build::number(&point, value, out, |out| {
                    with_attribute(&point, key, &quantile_text(quantile.quantile), out);
                });
            }
        }
    });
    if is_small {
        Ok(Applied::Added)
    } else {
        Err(Failure::Size)
    }
}

/// Appends the attributes of a summary's point, one of them set.
fn with_attribute(point: &Point<'_>, key: &[u8], text: &str, out: &mut Vec<u8>) {
    let mut attributes = Vec::new();
    build::attributes(point, PointKind::Number, &mut attributes);
    let mut list = List::default();
    let attributes_key = PointKind::Number.attributes_key();
    if list.read(&attributes, attributes_key).is_err() {
        return out.extend_from_slice(&attributes);
    }
    let value = list.make(|out| write::bytes(out, 1, text.as_bytes()));
    list.put(key, value);
    let start = out.len();
    list.write(&attributes, attributes_key, out);
    if out.len() == start {
        out.extend_from_slice(&attributes);
    }
}

/// A quantile as the Collector writes it: two digits behind the point at least, but for 0 and 1.
fn quantile_text(quantile: f64) -> String {
    let mut text = quantile.to_string();
    if text.len() < 4 && text != "0" && text != "1" {
        text.push('0');
    }
    text
}
