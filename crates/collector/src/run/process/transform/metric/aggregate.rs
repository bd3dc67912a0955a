//! `aggregate_on_attributes`, `aggregate_on_attribute_value`: data points with the same attributes
//! and time become one.

use std::collections::HashMap;

use otlp::scan::point;
use otlp::scan::{Any, Metric, MetricKind, NEGATIVE, Number, POINTS, POSITIVE, Point, PointKind};
use otlp::wire::Fields;
use otlp::write;
use ottl::{Aggregation, Failure, Message};

use super::super::super::edit::{List, Outcome};
use super::super::apply::Applied;
use super::super::number::{packed, point_value, varints};
use super::{points, with_data};

/// `AGGREGATION_TEMPORALITY_DELTA`
const DELTA: i32 = 1;

/// Leaves these attributes, or all of them, and aggregates.
///
/// # Errors
/// The metric is a summary, or has no data.
pub fn on_attributes(
    metric: &Metric<'_>,
    function: Aggregation,
    keys: Option<&[Vec<u8>]>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    aggregate(metric, function, out, |list| {
        let Some(keys) = keys else {
            return;
        };
        for place in list.places() {
            let is_kept = |name: &[u8]| keys.iter().any(|key| key == name);
            if list.name(place).is_some_and(|name| !is_kept(name)) {
                list.remove(place);
            }
        }
    })
}

/// Which values of an attribute are replaced.
pub struct Replaced<'e> {
    /// The attribute.
    pub key: &'e [u8],
    /// The values.
    pub values: &'e [Vec<u8>],
    /// The value that they get.
    pub replacement: &'e [u8],
}

/// Replaces values of an attribute, and aggregates.
///
/// # Errors
/// As [`on_attributes`].
pub fn on_value(
    metric: &Metric<'_>,
    function: Aggregation,
    replaced: &Replaced<'_>,
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    aggregate(metric, function, out, |list| {
        let Some(place) = list.find(replaced.key) else {
            return;
        };
        let is_one = match list.any(place) {
            Any::Text(text) => replaced.values.iter().any(|value| value == text),
            _ => false,
        };
        if is_one {
            let value = list.make_text(replaced.replacement);
            list.set(place, value);
        }
    })
}

fn aggregate(
    metric: &Metric<'_>,
    function: Aggregation,
    out: &mut Vec<u8>,
    change: impl Fn(&mut List<'_>),
) -> Result<Applied, Failure> {
    let kind = match metric.kind {
        Some(MetricKind::Summary) | None => return Err(Failure::Type),
        Some(kind) => kind,
    };
    let messages = changed(metric, kind.point(), change)?;
    let mut groups: Vec<Vec<Point<'_>>> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for message in &messages {
        let point = point(kind.point(), message).map_err(|_| Failure::Type)?;
        let place = *places
            .entry(group_key(&point, metric))
            .or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    let mut data = Vec::new();
    for group in &groups {
        write::message(&mut data, POINTS >> 3, |out| merged(group, function, out));
    }
    for field in Fields::new(metric.data).map_while(Result::ok) {
        if field.key != POINTS {
            data.extend_from_slice(field.whole);
        }
    }
    with_data(metric, kind, out, |out| out.extend_from_slice(&data));
    if out == metric.message {
        return Ok(Applied::Nothing);
    }
    Ok(Applied::Changed(Message::Metric))
}

/// The data points with other attributes.
fn changed(
    metric: &Metric<'_>,
    kind: PointKind,
    change: impl Fn(&mut List<'_>),
) -> Result<Vec<Vec<u8>>, Failure> {
    let key = kind.attributes_key();
    let changed = points(metric).map(|point| {
        let mut list = List::default();
        list.read(point.message, key).map_err(|_| Failure::Type)?;
        change(&mut list);
        let mut out = Vec::new();
        Ok(match list.write(point.message, key, &mut out) {
            Outcome::Changed => out,
            Outcome::Same | Outcome::Gone => point.message.to_vec(),
        })
    });
    changed.collect()
}

/// The common properties of the data points of a group: attributes in whatever order, the time, with deltas also
/// the beginning, and what buckets must have in common to be added.
fn group_key(point: &Point<'_>, metric: &Metric<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    let mut attributes: Vec<(&[u8], &[u8])> = point.attributes().collect();
    attributes.sort_by_key(|(name, _)| *name);
    for (name, value) in attributes {
        write::bytes(&mut key, 1, name);
        match Any::read(value) {
            Any::Empty => {}
            Any::Text(text) => write::bytes(&mut key, 2, text),
            Any::Bool(value) => write::uint(&mut key, 3, u64::from(value)),
            Any::Int(value) => write::uint(&mut key, 4, value as u64),
            Any::Double(value) => write::double(&mut key, 5, value),
            Any::Array(message) => write::bytes(&mut key, 6, message),
            Any::Map(message) => write::bytes(&mut key, 7, message),
            Any::Bytes(bytes) => write::bytes(&mut key, 8, bytes),
        }
    }
    write::fixed64(&mut key, 9, point.time_ns);
    if metric.temporality == DELTA {
        write::fixed64(&mut key, 10, point.start_ns);
    }
    if point.kind == PointKind::Number {
        return key;
    }
    write::uint(&mut key, 11, u64::from(point.min.is_some()));
    write::uint(&mut key, 12, u64::from(point.max.is_some()));
    write::uint(&mut key, 13, u64::from(point.flags));
    if point.kind == PointKind::Histogram {
        let bounds: Vec<u64> = point
            .explicit_bounds()
            .iter()
            .map(|bound| bound.to_bits())
            .collect();
        packed(&mut key, 14, &bounds);
    } else {
        for number in [
            point.scale,
            point.positive().offset(),
            point.negative().offset(),
        ] {
            write::fixed32(&mut key, 15, number as u32);
        }
    }
    key
}

/// Appends the point that a group becomes: the first, with the values of all.
fn merged(group: &[Point<'_>], function: Aggregation, out: &mut Vec<u8>) {
    let Some((first, others)) = group.split_first() else {
        return;
    };
    if others.is_empty() && function != Aggregation::Count {
        return out.extend_from_slice(first.message);
    }
    let start = group.iter().map(|point| point.start_ns).min();
    let start = start.filter(|start| *start != first.start_ns);
    match first.kind {
        PointKind::Number => {
            let mut valued = Vec::new();
            match value(group, function) {
                Some(value) => point_value(first.message, &mut valued, |out| match value {
                    Number::Int(value) => write::fixed64(out, 6, value as u64),
                    Number::Double(value) => write::double(out, 4, value),
                }),
                None => valued.extend_from_slice(first.message),
            }
            match start {
                Some(start) => {
                    without(&valued, &[2], out);
                    started(start, out);
                }
                None => out.extend_from_slice(&valued),
            }
        }
        PointKind::Histogram if others.is_empty() => out.extend_from_slice(first.message),
        PointKind::Histogram => histogram(group, start, out),
        _ if others.is_empty() => out.extend_from_slice(first.message),
        _ => exponential(group, start, out),
    }
}

/// Appends all fields but those of some numbers.
fn without(message: &[u8], numbers: &[u32], out: &mut Vec<u8>) {
    for field in Fields::new(message).map_while(Result::ok) {
        if !numbers.contains(&(field.key >> 3)) {
            out.extend_from_slice(field.whole);
        }
    }
}

fn started(start: u64, out: &mut Vec<u8>) {
    if start != 0 {
        write::fixed64(out, 2, start);
    }
}

/// The aggregated value of a group, of the first point's number type. None if the first point has
/// no value.
fn value(group: &[Point<'_>], function: Aggregation) -> Option<Number> {
    let count = group.len();
    Some(match group.first()?.value? {
        Number::Int(_) => {
            let ints = || group.iter().map(|point| int(point.value));
            let sum = || ints().fold(0_i64, i64::wrapping_add);
            Number::Int(match function {
                Aggregation::Sum => sum(),
                Aggregation::Mean => sum() / count as i64,
                Aggregation::Max => ints().max()?,
                Aggregation::Min => ints().min()?,
                Aggregation::Count => count as i64,
                Aggregation::Median => {
                    let mut sorted: Vec<i64> = ints().collect();
                    sorted.sort_unstable();
                    match (sorted[(count - 1) / 2], sorted[count / 2]) {
                        (low, high) if count.is_multiple_of(2) => low.wrapping_add(high) / 2,
                        (low, _) => low,
                    }
                }
            })
        }
        Number::Double(_) => {
            let doubles = || group.iter().map(|point| double(point.value));
            Number::Double(match function {
                Aggregation::Sum => doubles().sum(),
                Aggregation::Mean => doubles().sum::<f64>() / count as f64,
                Aggregation::Max => doubles().reduce(f64::max)?,
                Aggregation::Min => doubles().reduce(f64::min)?,
                Aggregation::Count => count as f64,
                Aggregation::Median => {
                    let mut sorted: Vec<f64> = doubles().collect();
                    sorted.sort_unstable_by(f64::total_cmp);
                    match (sorted[(count - 1) / 2], sorted[count / 2]) {
                        (low, high) if count.is_multiple_of(2) => (low + high) / 2.0,
                        (low, _) => low,
                    }
                }
            })
        }
    })
}

fn int(value: Option<Number>) -> i64 {
    match value {
        Some(Number::Int(value)) => value,
        Some(Number::Double(value)) => value as i64,
        None => 0,
    }
}

fn double(value: Option<Number>) -> f64 {
    match value {
        Some(Number::Int(value)) => value as f64,
        Some(Number::Double(value)) => value,
        None => 0.0,
    }
}

/// Values that both kinds of histograms add in the same way. Points without values count nothing.
struct Totals {
    count: u64,
    sum: f64,
    min: Option<f64>,
    max: Option<f64>,
}

impl Totals {
    fn of(group: &[Point<'_>]) -> Totals {
        let with_values = || group.iter().filter(|point| point.count > 0);
        let add = |total: u64, point: &Point<'_>| total.saturating_add(point.count);
        Totals {
            count: group.iter().fold(0, add),
            sum: with_values().filter_map(|point| point.sum).sum(),
            min: with_values().filter_map(|point| point.min).reduce(f64::min),
            max: with_values().filter_map(|point| point.max).reduce(f64::max),
        }
    }

    /// `min` and `max` are the numbers of these fields.
    fn write(&self, min: u32, max: u32, out: &mut Vec<u8>) {
        if self.count != 0 {
            write::fixed64(out, 4, self.count);
        }
        write::double(out, 5, self.sum);
        for (number, value) in [(min, self.min), (max, self.max)] {
            if let Some(value) = value {
                write::double(out, number, value);
            }
        }
    }
}

fn histogram(group: &[Point<'_>], start: Option<u64>, out: &mut Vec<u8>) {
    let Some((first, others)) = group.split_first() else {
        return;
    };
    let start = start.unwrap_or(first.start_ns);
    without(first.message, &[2, 4, 5, 6, 11, 12], out);
    started(start, out);
    Totals::of(group).write(11, 12, out);
    packed(out, 6, &added(group.iter().map(Point::bucket_counts)));
    exemplars(others, out);
}

fn exponential(group: &[Point<'_>], start: Option<u64>, out: &mut Vec<u8>) {
    let Some((first, others)) = group.split_first() else {
        return;
    };
    let start = start.unwrap_or(first.start_ns);
    without(
        first.message,
        &[2, 4, 5, 7, POSITIVE, NEGATIVE, 12, 13],
        out,
    );
    started(start, out);
    Totals::of(group).write(12, 13, out);
    let add = |total: u64, point: &Point<'_>| total.saturating_add(point.zero_count);
    let zeros = group.iter().fold(0, add);
    if zeros != 0 {
        write::fixed64(out, 7, zeros);
    }
    for (number, offset, counts) in [
        (
            POSITIVE,
            first.positive().offset(),
            added(group.iter().map(|point| point.positive().counts())),
        ),
        (
            NEGATIVE,
            first.negative().offset(),
            added(group.iter().map(|point| point.negative().counts())),
        ),
    ] {
        write::message(out, number, |out| {
            if offset != 0 {
                write::uint(out, 1, u64::from((offset << 1 ^ offset >> 31) as u32));
            }
            varints(out, 2, &counts);
        });
    }
    exemplars(others, out);
}

/// The sums of counts, one after the other.
fn added(lists: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for counts in lists {
        if counts.len() > sums.len() {
            sums.resize(counts.len(), 0);
        }
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count);
        }
    }
    sums
}

fn exemplars(points: &[Point<'_>], out: &mut Vec<u8>) {
    for point in points.iter().filter(|point| point.count > 0) {
        let Some(number) = point.kind.exemplars() else {
            continue;
        };
        super::build::messages(point, number, number, out);
    }
}
