//! The data points of one metric, changed or left out.

use otlp::scan::{Malformed, MetricKind, POINTS, PointKind};
use otlp::wire::{Fields, Value, Whole};
use otlp::write;

use super::{Outcome, edit_fields, put};

/// Gets a data point, and writes what it becomes.
pub type EditPoint<'e, 'a> =
    dyn FnMut(MetricKind, &'a [u8], &mut Vec<u8>) -> Result<Outcome, Malformed> + 'e;

/// Changes the data points of a metric. With all of them gone the metric is gone. `out` gets the
/// new metric.
///
/// # Errors
/// The metric is malformed. What `out` has then is not to be used.
pub fn edit_data<'a>(
    metric: &'a [u8],
    out: &mut Vec<u8>,
    edit: &mut EditPoint<'_, 'a>,
) -> Result<Outcome, Malformed> {
    let (mut kept, mut gone, mut changed) = (0_u64, 0_u64, 0_u64);
    for field in Fields::new(metric) {
        let field = field?;
        let number = field.key >> 3;
        let Some(kind) = MetricKind::of_number(number) else {
            out.extend_from_slice(field.whole);
            continue;
        };
        let Value::Bytes(data) = field.value else {
            return Err(Malformed::WireType);
        };
        let outcome = put(out, field.key, field.whole, |out| {
            edit_fields(data, POINTS, out, &mut |point, out| edit(kind, point, out))
        })?;
        match outcome {
            Outcome::Same => kept += 1,
            Outcome::Changed => changed += 1,
            Outcome::Gone => gone += 1,
        }
    }
    Ok(match (kept, changed, gone) {
        (_, 0, 0) => Outcome::Same,
        (0, 0, _) => Outcome::Gone,
        _ => Outcome::Changed,
    })
}

/// Appends a metric that was changed without its data points, with the data points of `whole`. Of
/// data that are there several times only the last counts, so that the last of one get the points
/// of the last of the other. Both were checked before.
pub fn with_points(frame: &[u8], whole: &[u8], out: &mut Vec<u8>) {
    let (data, wholes) = (data_of(frame).count(), data_of(whole).count());
    let mut wholes = data_of(whole).skip(wholes.saturating_sub(data));
    for field in fields(frame) {
        if MetricKind::of_number(field.key >> 3).is_none() {
            out.extend_from_slice(field.whole);
            continue;
        }
        let points = fields(wholes.next().unwrap_or_default());
        let number = field.key >> 3;
        write::message(out, number, |out| {
            for point in points.filter(|field| field.key == POINTS) {
                out.extend_from_slice(point.whole);
            }
            out.extend_from_slice(field.message(number).unwrap_or_default());
        });
    }
}

/// The messages of a metric's data.
fn data_of(metric: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(metric).filter_map(|field| {
        let number = field.key >> 3;
        MetricKind::of_number(number).and_then(|_| field.message(number))
    })
}

fn fields(message: &[u8]) -> impl Iterator<Item = Whole<'_>> {
    Fields::new(message).map_while(Result::ok)
}

/// Appends a data point that was changed without its exemplars, with the exemplars of `whole`. Both
/// were checked before.
pub fn with_exemplars(kind: PointKind, frame: &[u8], whole: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(frame);
    for field in fields(whole) {
        if kind.exemplars() == Some(field.key >> 3) {
            out.extend_from_slice(field.whole);
        }
    }
}
