//! Editors of metrics (transformprocessor, "Metrics only functions"): they change a metric, or make
//! another one of it.

mod aggregate;
mod buckets;
mod build;
mod extract;
mod percentile;
mod scale;

use otlp::scan::{Malformed, Metric, MetricKind, POINTS, Point, metric, point};
use otlp::wire::Fields;
use otlp::write;
use ottl::{Failure, Message, MetricEdit, Record, Subject, Term, Value};

use super::super::edit::{Outcome, edit_data, replace_field};
use super::apply::Applied;

/// Bytes of a metric that is made: small data points may become large ones.
const METRIC_BYTES_MAX: usize = 64 << 20;

/// Carries an edit out: see [`super::apply::apply`].
///
/// # Errors
/// The metric is of a kind that the edit does not know, or a value is of another type than it must
/// be.
pub fn apply(
    edit: &MetricEdit,
    subject: &Subject<'_, '_, '_>,
    whole: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    match subject.record {
        Record::Metric(metric) => of_metric(edit, metric, subject, out),
        Record::Point(metric, point) => of_point(edit, metric, point, whole, out),
        Record::None | Record::Log(_) | Record::Exemplar(..) => Err(Failure::Type),
    }
}

fn of_metric(
    edit: &MetricEdit,
    metric: &Metric<'_>,
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    match edit {
        MetricEdit::SumToGauge | MetricEdit::GaugeToSum { .. } => Ok(convert(edit, metric, out)),
        MetricEdit::ExtractCount { monotonic, suffix } => {
            extract::count(metric, *monotonic, suffix, out)
        }
        MetricEdit::ExtractSum { monotonic, suffix } => {
            extract::sum(metric, *monotonic, suffix, out)
        }
        MetricEdit::ExtractPercentile { percentile, suffix } => {
            percentile::extract(metric, *percentile, suffix, out)
        }
        MetricEdit::SummaryCount { .. } | MetricEdit::SummarySum { .. } => {
            Ok(extract::of_summary(edit, metric, metric, out))
        }
        MetricEdit::SummaryQuantiles { key, suffix } => {
            extract::quantiles(metric, key, suffix, out)
        }
        MetricEdit::Copy {
            name,
            description,
            unit,
        } => {
            let texts = [(1, name), (2, description), (3, unit)];
            copy(metric, texts, subject, out)
        }
        MetricEdit::Scale { factor, unit } => {
            scale::scale(metric, *factor, text(unit.as_ref(), subject)?, out)
        }
        MetricEdit::Aggregate { function, keys } => {
            aggregate::on_attributes(metric, *function, keys.as_deref(), out)
        }
        MetricEdit::AggregateValue {
            function,
            key,
            values,
            replacement,
        } => {
            let replaced = aggregate::Replaced {
                key,
                values,
                replacement,
            };
            aggregate::on_value(metric, *function, &replaced, out)
        }
        MetricEdit::ToHistogram {
            distribution,
            bounds,
        } => buckets::to_histogram(metric, *distribution, bounds, subject.outside, out),
        MetricEdit::MergeBuckets(merge) => edit_points(metric, out, &mut |point, out| {
            Ok(buckets::merge(point, *merge, out))
        }),
    }
}

/// In the context of a data point. `metric` has no data points, `whole` has.
fn of_point(
    edit: &MetricEdit,
    metric: &Metric<'_>,
    point: &Point<'_>,
    whole: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    match edit {
        MetricEdit::SumToGauge | MetricEdit::GaugeToSum { .. } => Ok(convert(edit, metric, out)),
        MetricEdit::SummaryCount { .. } | MetricEdit::SummarySum { .. } => {
            let whole = self::metric(whole).map_err(|_| Failure::Type)?;
            Ok(extract::of_summary(edit, metric, &whole, out))
        }
        MetricEdit::MergeBuckets(merge) => Ok(match buckets::merge(point, *merge, out) {
            Outcome::Changed => Applied::Changed(Message::Point),
            Outcome::Same | Outcome::Gone => Applied::Nothing,
        }),
        // No statement of this context has them.
        MetricEdit::ExtractCount { .. }
        | MetricEdit::ExtractSum { .. }
        | MetricEdit::ExtractPercentile { .. }
        | MetricEdit::SummaryQuantiles { .. }
        | MetricEdit::Copy { .. }
        | MetricEdit::Scale { .. }
        | MetricEdit::Aggregate { .. }
        | MetricEdit::AggregateValue { .. }
        | MetricEdit::ToHistogram { .. } => Err(Failure::Type),
    }
}

/// A sum becomes a gauge, or a gauge a sum; other kinds stay.
fn convert(edit: &MetricEdit, metric: &Metric<'_>, out: &mut Vec<u8>) -> Applied {
    let points = |out: &mut Vec<u8>| {
        for message in metric.point_messages() {
            write::bytes(out, POINTS >> 3, message);
        }
    };
    match (edit, metric.kind) {
        (MetricEdit::SumToGauge, Some(MetricKind::Sum)) => {
            with_data(metric, MetricKind::Gauge, out, points);
        }
        (
            MetricEdit::GaugeToSum {
                temporality,
                monotonic,
            },
            Some(MetricKind::Gauge),
        ) => with_data(metric, MetricKind::Sum, out, |out| {
            points(out);
            build::sum_fields(*temporality, *monotonic, out);
        }),
        _ => return Applied::Nothing,
    }
    Applied::Changed(Message::Metric)
}

/// Appends a metric with other data, which stand where the last of the old ones did. Only the last
/// count.
fn with_data(
    metric: &Metric<'_>,
    kind: MetricKind,
    out: &mut Vec<u8>,
    data: impl FnOnce(&mut Vec<u8>),
) {
    let is_data = |key: u32| MetricKind::of_number(key >> 3).is_some();
    let fields = || Fields::new(metric.message).map_while(Result::ok);
    let mut left = fields().filter(|field| is_data(field.key)).count();
    let mut data = Some(data);
    for field in fields() {
        if !is_data(field.key) {
            out.extend_from_slice(field.whole);
            continue;
        }
        left -= 1;
        if left == 0
            && let Some(data) = data.take()
        {
            write::message(out, kind.number(), data);
        }
    }
}

/// Gets a data point, and writes what it becomes.
type EditPoint<'e> = dyn FnMut(&Point<'_>, &mut Vec<u8>) -> Result<Outcome, Failure> + 'e;

/// Appends a metric whose data points `edit` changes.
fn edit_points(
    metric: &Metric<'_>,
    out: &mut Vec<u8>,
    edit: &mut EditPoint<'_>,
) -> Result<Applied, Failure> {
    let mut failed = None;
    let outcome = edit_data(metric.message, out, &mut |kind, message, out| {
        let point = point(kind.point(), message)?;
        edit(&point, out).map_err(|failure| {
            failed = Some(failure);
            // Ends the walk; the failure says why.
            Malformed::TooLarge
        })
    });
    match (failed, outcome) {
        (Some(failure), _) => Err(failure),
        (None, Err(_)) => Err(Failure::Type),
        (None, Ok(Outcome::Changed)) => Ok(Applied::Changed(Message::Metric)),
        (None, Ok(Outcome::Same | Outcome::Gone)) => Ok(Applied::Nothing),
    }
}

/// Appends a copy of a metric, of which some texts may be others.
fn copy(
    metric: &Metric<'_>,
    texts: [(u32, &Option<Term>); 3],
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    let mut message = metric.message.to_vec();
    for (number, term) in texts {
        if let Some(text) = text(term.as_ref(), subject)? {
            let mut changed = Vec::with_capacity(message.len() + text.len());
            replace_field(&message, number, &mut changed, |out| {
                write::bytes(out, number, &text);
            });
            message = changed;
        }
    }
    out.extend_from_slice(&message);
    Ok(Applied::Added)
}

/// The text that a term is; none where there is no term.
fn text(term: Option<&Term>, subject: &Subject<'_, '_, '_>) -> Result<Option<Vec<u8>>, Failure> {
    match term.map(|term| term.get(subject)).transpose()? {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.into_owned())),
        Some(_) => Err(Failure::Type),
    }
}

/// The data points of a metric, all of which were checked.
fn points<'a>(metric: &Metric<'a>) -> impl Iterator<Item = Point<'a>> + use<'a> {
    metric.points().map_while(Result::ok)
}
