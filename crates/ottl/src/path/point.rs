//! Paths of data points (`metrics.proto`). Each kind of point has some of the fields: a path to
//! another field gives nil, and writing it does nothing, as in the Collector.

use super::Path;
use super::table::{Form, Message, Root};
use crate::eval::{Failure, Record, Subject};
use crate::value::{self, Value};
use otlp::scan::{NEGATIVE, Number, POSITIVE, Point, PointKind, QUANTILES};

/// The root of a path of a data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointRoot {
    Attributes,
    StartNs,
    Start,
    TimeNs,
    Time,
    ValueDouble,
    ValueInt,
    Exemplars,
    Flags,
    Count,
    Sum,
    BucketCounts,
    ExplicitBounds,
    Scale,
    ZeroCount,
    PositiveOffset,
    PositiveCounts,
    NegativeOffset,
    NegativeCounts,
    QuantileValues,
}

pub const POINT: &[(&str, Root)] = &[
    ("attributes", Root::Point(PointRoot::Attributes)),
    ("cache", Root::Cache),
    ("start_time_unix_nano", Root::Point(PointRoot::StartNs)),
    ("start_time", Root::Point(PointRoot::Start)),
    ("time_unix_nano", Root::Point(PointRoot::TimeNs)),
    ("time", Root::Point(PointRoot::Time)),
    ("value_double", Root::Point(PointRoot::ValueDouble)),
    ("value_int", Root::Point(PointRoot::ValueInt)),
    ("exemplars", Root::Point(PointRoot::Exemplars)),
    ("flags", Root::Point(PointRoot::Flags)),
    ("count", Root::Point(PointRoot::Count)),
    ("sum", Root::Point(PointRoot::Sum)),
    ("bucket_counts", Root::Point(PointRoot::BucketCounts)),
    ("explicit_bounds", Root::Point(PointRoot::ExplicitBounds)),
    ("scale", Root::Point(PointRoot::Scale)),
    ("zero_count", Root::Point(PointRoot::ZeroCount)),
    ("positive.offset", Root::Point(PointRoot::PositiveOffset)),
    (
        "positive.bucket_counts",
        Root::Point(PointRoot::PositiveCounts),
    ),
    ("negative.offset", Root::Point(PointRoot::NegativeOffset)),
    (
        "negative.bucket_counts",
        Root::Point(PointRoot::NegativeCounts),
    ),
    ("quantile_values", Root::Point(PointRoot::QuantileValues)),
];

impl PointRoot {
    /// The message that it is in, and how it is written for a subject.
    pub fn written(self, record: Record<'_, '_>) -> (Message, Form) {
        use PointKind::{Exponential, Histogram, Number, Summary};
        let Some(kind) = record.point().map(|point| point.kind) else {
            return (Message::Point, Form::Nothing);
        };
        let form = match (self, kind) {
            (PointRoot::Attributes, kind) => Form::Attributes(kind.attributes_key()),
            (PointRoot::StartNs, _) => Form::Nanoseconds(2),
            (PointRoot::Start, _) => Form::Time(2),
            (PointRoot::TimeNs, _) => Form::Nanoseconds(3),
            (PointRoot::Time, _) => Form::Time(3),
            (PointRoot::ValueDouble, Number) => Form::NumberDouble(4),
            (PointRoot::ValueInt, Number) => Form::NumberInt(4),
            (PointRoot::Exemplars | PointRoot::QuantileValues, _) => Form::Fixed,
            (PointRoot::Flags, kind) => Form::Number(kind.flags()),
            (PointRoot::Count, Histogram | Exponential | Summary) => Form::Fixed64(4),
            (PointRoot::Sum, Histogram | Exponential | Summary) => Form::Double(5),
            (PointRoot::BucketCounts, Histogram) => Form::Fixed64List(6),
            (PointRoot::ExplicitBounds, Histogram) => Form::DoubleList(7),
            (PointRoot::Scale, Exponential) => Form::Sint32(6),
            (PointRoot::ZeroCount, Exponential) => Form::Fixed64(7),
            (PointRoot::PositiveOffset, Exponential) => Form::BucketOffset(POSITIVE),
            (PointRoot::PositiveCounts, Exponential) => Form::BucketCounts(POSITIVE),
            (PointRoot::NegativeOffset, Exponential) => Form::BucketOffset(NEGATIVE),
            (PointRoot::NegativeCounts, Exponential) => Form::BucketCounts(NEGATIVE),
            _ => Form::Nothing,
        };
        (Message::Point, form)
    }
}

impl Path {
    /// The value of the path in a data point.
    pub(super) fn of_point<'a>(
        &'a self,
        root: PointRoot,
        point: &Point<'a>,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<Value<'a>, Failure> {
        use PointKind::{Exponential, Histogram, Number as NumberPoint, Summary};
        let counts = |counts: Vec<u64>| list(counts, |count| Value::Int(count as i64));
        Ok(match (root, point.kind) {
            (PointRoot::Attributes, kind) => {
                return self.attribute(point.message, kind.attributes_key(), subject);
            }
            (PointRoot::StartNs, _) => Value::Int(point.start_ns as i64),
            (PointRoot::Start, _) => Value::Time(point.start_ns as i64),
            (PointRoot::TimeNs, _) => Value::Int(point.time_ns as i64),
            (PointRoot::Time, _) => Value::Time(point.time_ns as i64),
            (PointRoot::ValueDouble, NumberPoint) => Value::Float(match point.value {
                Some(Number::Double(value)) => value,
                Some(Number::Int(_)) | None => 0.0,
            }),
            (PointRoot::ValueInt, NumberPoint) => Value::Int(match point.value {
                Some(Number::Int(value)) => value,
                Some(Number::Double(_)) | None => 0,
            }),
            (PointRoot::Exemplars, kind) => match kind.exemplars() {
                Some(number) => Value::Messages(point.message.into(), number << 3 | 2),
                None => Value::Nil,
            },
            (PointRoot::Flags, _) => Value::Int(point.flags.into()),
            (PointRoot::Count, Histogram | Exponential | Summary) => Value::Int(point.count as i64),
            (PointRoot::Sum, Histogram | Exponential | Summary) => {
                Value::Float(point.sum.unwrap_or_default())
            }
            (PointRoot::BucketCounts, Histogram) => counts(point.bucket_counts())?,
            (PointRoot::ExplicitBounds, Histogram) => list(point.explicit_bounds(), Value::Float)?,
            (PointRoot::Scale, Exponential) => Value::Int(point.scale.into()),
            (PointRoot::ZeroCount, Exponential) => Value::Int(point.zero_count as i64),
            (PointRoot::PositiveOffset, Exponential) => {
                Value::Int(point.positive().offset().into())
            }
            (PointRoot::PositiveCounts, Exponential) => counts(point.positive().counts())?,
            (PointRoot::NegativeOffset, Exponential) => {
                Value::Int(point.negative().offset().into())
            }
            (PointRoot::NegativeCounts, Exponential) => counts(point.negative().counts())?,
            (PointRoot::QuantileValues, Summary) => {
                Value::Messages(point.message.into(), QUANTILES << 3 | 2)
            }
            _ => Value::Nil,
        })
    }
}

fn list<'a, T>(items: Vec<T>, value: impl Fn(T) -> Value<'static>) -> Result<Value<'a>, Failure> {
    value::list(items.into_iter().map(value))
}
