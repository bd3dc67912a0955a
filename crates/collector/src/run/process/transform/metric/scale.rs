//! `scale_metric`

use otlp::scan::{Metric, MetricKind, Number, Point, PointKind, QUANTILES};
use otlp::wire::{Fields, Value, Whole};
use otlp::write;
use ottl::{Failure, Message};

use super::super::super::edit::{Outcome, replace_field};
use super::super::apply::Applied;
use super::super::number::point_value;
use super::edit_points;

/// Multiplies the values of a metric; `unit` replaces its unit.
///
/// # Errors
/// The metric is an exponential histogram, or has no data.
pub fn scale(
    metric: &Metric<'_>,
    factor: f64,
    unit: Option<Vec<u8>>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    if matches!(metric.kind, None | Some(MetricKind::Exponential)) {
        return Err(Failure::Type);
    }
    let start = out.len();
    let applied = edit_points(metric, out, &mut |point, out| {
        let start = out.len();
        scale_point(point, factor, out);
        Ok(if out.get(start..) == Some(point.message) {
            Outcome::Same
        } else {
            Outcome::Changed
        })
    })?;
    let Some(unit) = unit else {
        return Ok(applied);
    };
    let scaled = out.split_off(start);
    let base = match applied {
        Applied::Changed(_) => &scaled,
        Applied::Nothing | Applied::Added => metric.message,
    };
    replace_field(base, 3, out, |out| {
        if !unit.is_empty() {
            write::bytes(out, 3, &unit);
        }
    });
    Ok(Applied::Changed(Message::Metric))
}

fn scale_point(point: &Point<'_>, factor: f64, out: &mut Vec<u8>) {
    match (point.kind, point.value) {
        (PointKind::Number, Some(value)) => point_value(point.message, out, |out| match value {
            Number::Int(value) => write::fixed64(out, 6, (value as f64 * factor) as i64 as u64),
            Number::Double(value) => write::double(out, 4, value * factor),
        }),
        (PointKind::Number, None) => out.extend_from_slice(point.message),
        (PointKind::Histogram | PointKind::Exponential, _) => {
            rewrite(point.message, out, |field, out| match field.key >> 3 {
                // Sum, least and greatest value.
                5 | 11 | 12 => double(field, factor, out),
                7 => bounds(field, factor, out),
                8 => inner(field, out, |field, out| match field.key >> 3 {
                    3 => double(field, factor, out),
                    6 => int(field, factor, out),
                    _ => false,
                }),
                _ => false,
            });
        }
        (PointKind::Summary, _) => rewrite(point.message, out, |field, out| match field.key >> 3 {
            5 => double(field, factor, out),
            QUANTILES => inner(field, out, |field, out| {
                field.key >> 3 == 2 && double(field, factor, out)
            }),
            _ => false,
        }),
    }
}

/// Appends a message: fields that `change` does not write stay as they came.
fn rewrite(
    message: &[u8],
    out: &mut Vec<u8>,
    mut change: impl FnMut(&Whole<'_>, &mut Vec<u8>) -> bool,
) {
    for field in Fields::new(message).map_while(Result::ok) {
        if !change(&field, out) {
            out.extend_from_slice(field.whole);
        }
    }
}

fn inner(
    field: &Whole<'_>,
    out: &mut Vec<u8>,
    change: impl FnMut(&Whole<'_>, &mut Vec<u8>) -> bool,
) -> bool {
    let number = field.key >> 3;
    let Some(message) = field.message(number) else {
        return false;
    };
    write::message(out, number, |out| rewrite(message, out, change));
    true
}

fn double(field: &Whole<'_>, factor: f64, out: &mut Vec<u8>) -> bool {
    let Value::Fixed64(bits) = field.value else {
        return false;
    };
    write::double(out, field.key >> 3, f64::from_bits(bits) * factor);
    true
}

fn int(field: &Whole<'_>, factor: f64, out: &mut Vec<u8>) -> bool {
    let Value::Fixed64(bits) = field.value else {
        return false;
    };
    let value = (bits as i64) as f64 * factor;
    write::fixed64(out, field.key >> 3, value as i64 as u64);
    true
}

/// Bounds, packed or one by one.
fn bounds(field: &Whole<'_>, factor: f64, out: &mut Vec<u8>) -> bool {
    let Value::Bytes(packed) = field.value else {
        return double(field, factor, out);
    };
    let eights = packed.as_chunks::<8>().0.iter();
    let scaled = eights.map(|eight| (f64::from_le_bytes(*eight) * factor).to_bits());
    write::packed(out, field.key >> 3, scaled);
    true
}
