//! One data point of a metric (`metrics.proto`).

use super::span::{span_id, trace_id};
use super::{Attributes, Malformed, attribute};
use crate::wire::{Fields, Reader, Value};

/// A kind of data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// `NumberDataPoint`, of gauges and sums.
    Number,
    /// `HistogramDataPoint`
    Histogram,
    /// `ExponentialHistogramDataPoint`
    Exponential,
    /// `SummaryDataPoint`
    Summary,
}

/// `start_time_unix_nano` and `time_unix_nano`: the numbers that all kinds share.
pub const POINT_START: u32 = 2;
/// See [`POINT_START`].
pub const POINT_TIME: u32 = 3;

impl PointKind {
    /// The field key of `attributes`.
    #[must_use]
    pub const fn attributes_key(self) -> u32 {
        let number = match self {
            PointKind::Number | PointKind::Summary => 7,
            PointKind::Histogram => 9,
            PointKind::Exponential => 1,
        };
        number << 3 | 2
    }

    /// The number of `flags`.
    #[must_use]
    pub const fn flags(self) -> u32 {
        match self {
            PointKind::Number | PointKind::Summary => 8,
            PointKind::Histogram | PointKind::Exponential => 10,
        }
    }

    /// The number of `exemplars`; summaries have none.
    #[must_use]
    pub const fn exemplars(self) -> Option<u32> {
        match self {
            PointKind::Number => Some(5),
            PointKind::Histogram => Some(8),
            PointKind::Exponential => Some(11),
            PointKind::Summary => None,
        }
    }

    /// The type of a field. None: the kind has no such field.
    const fn field(self, number: u32) -> Option<Type> {
        let kind = self;
        match number {
            POINT_START | POINT_TIME => return Some(Type::Fixed64),
            _ if number == kind.attributes_key() >> 3 => return Some(Type::Attribute),
            _ if number == kind.flags() => return Some(Type::Varint),
            _ => {}
        }
        if let Some(exemplars) = kind.exemplars()
            && exemplars == number
        {
            return Some(Type::Exemplar);
        }
        match (kind, number) {
            (PointKind::Number, 4 | 6) => Some(Type::Fixed64),
            (PointKind::Histogram, 4 | 5 | 11 | 12) => Some(Type::Fixed64),
            (PointKind::Histogram, 6 | 7) => Some(Type::Fixed64List),
            (PointKind::Exponential, 4 | 5 | 7 | 12 | 13 | 14) => Some(Type::Fixed64),
            (PointKind::Exponential, 6) => Some(Type::Varint),
            (PointKind::Exponential, 8 | 9) => Some(Type::Buckets),
            (PointKind::Summary, 4 | 5) => Some(Type::Fixed64),
            (PointKind::Summary, 6) => Some(Type::Quantile),
            _ => None,
        }
    }
}

/// The type of a field of a point.
#[derive(Clone, Copy, Debug)]
enum Type {
    Fixed64,
    Varint,
    Attribute,
    Exemplar,
    Fixed64List,
    Buckets,
    Quantile,
}

/// The value of a `NumberDataPoint`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `as_int`
    Int(i64),
    /// `as_double`
    Double(f64),
}

/// The fields of a data point.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// Its kind.
    pub kind: PointKind,
    /// `start_time_unix_nano`
    pub start_ns: u64,
    /// `time_unix_nano`
    pub time_ns: u64,
    /// `flags`
    pub flags: u32,
    /// `value`, of a number.
    pub value: Option<Number>,
    /// `count`, of what is no number.
    pub count: u64,
    /// `sum`, of what is no number; summaries always have one.
    pub sum: Option<f64>,
    /// `min`, of both kinds of histograms.
    pub min: Option<f64>,
    /// `max`, of both kinds of histograms.
    pub max: Option<f64>,
    /// `scale`, of an exponential histogram.
    pub scale: i32,
    /// `zero_count`, of an exponential histogram.
    pub zero_count: u64,
    /// `zero_threshold`, of an exponential histogram.
    pub zero_threshold: f64,
}

impl<'a> Point<'a> {
    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, self.kind.attributes_key())
    }

    /// `bucket_counts`, of a histogram.
    #[must_use]
    pub fn bucket_counts(&self) -> Vec<u64> {
        fixed64s(self.message, 6)
    }

    /// `explicit_bounds`, of a histogram.
    #[must_use]
    pub fn explicit_bounds(&self) -> Vec<f64> {
        let bits = fixed64s(self.message, 7);
        bits.into_iter().map(f64::from_bits).collect()
    }

    /// `positive`, of an exponential histogram.
    #[must_use]
    pub fn positive(&self) -> Buckets<'a> {
        Buckets {
            point: self.message,
            number: POSITIVE,
        }
    }

    /// `negative`, of an exponential histogram.
    #[must_use]
    pub fn negative(&self) -> Buckets<'a> {
        Buckets {
            point: self.message,
            number: NEGATIVE,
        }
    }

    /// `quantile_values`, of a summary: quantile and value.
    pub fn quantiles(&self) -> impl Iterator<Item = Quantile> + use<'a> {
        let fields = Fields::new(self.message).map_while(Result::ok);
        fields
            .filter_map(|field| field.message(QUANTILES))
            .map(|message| {
                let mut quantile = Quantile::default();
                for field in Fields::new(message).map_while(Result::ok) {
                    match (field.key, field.value) {
                        (0x09, Value::Fixed64(bits)) => quantile.quantile = f64::from_bits(bits),
                        (0x11, Value::Fixed64(bits)) => quantile.value = f64::from_bits(bits),
                        _ => {}
                    }
                }
                quantile
            })
    }
}

/// The number of `ExponentialHistogramDataPoint.positive`.
pub const POSITIVE: u32 = 8;
/// The number of `ExponentialHistogramDataPoint.negative`.
pub const NEGATIVE: u32 = 9;
/// The number of `SummaryDataPoint.quantile_values`.
pub const QUANTILES: u32 = 6;

/// One of `quantile_values`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantile {
    /// From 0 to 1.
    pub quantile: f64,
    /// The value at the quantile.
    pub value: f64,
}

/// Buckets of one sign of a point that was checked. Where the field is there several times, its
/// messages are merged.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'a> {
    point: &'a [u8],
    number: u32,
}

impl<'a> Buckets<'a> {
    fn fields(self) -> impl Iterator<Item = crate::wire::Whole<'a>> {
        let messages = Fields::new(self.point).map_while(Result::ok);
        let messages = messages.filter_map(move |field| field.message(self.number));
        messages.flat_map(|message| Fields::new(message).map_while(Result::ok))
    }

    /// `offset`
    #[must_use]
    pub fn offset(self) -> i32 {
        let offsets = self.fields().filter_map(|field| match field.value {
            Value::Varint(value) if field.key == 1 << 3 => Some(zigzag(value)),
            _ => None,
        });
        offsets.last().unwrap_or(0)
    }

    /// `bucket_counts`
    #[must_use]
    pub fn counts(self) -> Vec<u64> {
        let mut counts = Vec::new();
        for field in self.fields().filter(|field| field.key >> 3 == 2) {
            match field.value {
                Value::Varint(count) => counts.push(count),
                Value::Bytes(packed) => {
                    let mut reader = Reader::new(packed);
                    counts.extend(std::iter::from_fn(|| reader.varint().ok()));
                }
                Value::Fixed64(_) | Value::Fixed32(_) => {}
            }
        }
        counts
    }
}

/// A `sint32`: its sign is in the lowest bit.
fn zigzag(value: u64) -> i32 {
    let value = value as u32;
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// The numbers of a list of `fixed64` or `double`, packed or not, of a message that was checked.
fn fixed64s(message: &[u8], number: u32) -> Vec<u64> {
    let mut numbers = Vec::new();
    for field in Fields::new(message).map_while(Result::ok) {
        if field.key >> 3 != number {
            continue;
        }
        match field.value {
            Value::Fixed64(value) => numbers.push(value),
            Value::Bytes(packed) => {
                let eights = packed.as_chunks::<8>().0.iter();
                numbers.extend(eights.map(|eight| u64::from_le_bytes(*eight)));
            }
            Value::Varint(_) | Value::Fixed32(_) => {}
        }
    }
    numbers
}

/// Reads a data point and checks all that is in it, exemplars included.
///
/// # Errors
/// The first malformed field.
pub fn point(kind: PointKind, message: &[u8]) -> Result<Point<'_>, Malformed> {
    let mut point = Point {
        message,
        kind,
        start_ns: 0,
        time_ns: 0,
        flags: 0,
        value: None,
        count: 0,
        sum: None,
        min: None,
        max: None,
        scale: 0,
        zero_count: 0,
        zero_threshold: 0.0,
    };
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        let number = field.key >> 3;
        match (kind.field(number), field.value) {
            (None, _) => {}
            (Some(Type::Fixed64), Value::Fixed64(bits)) => point.set_fixed64(number, bits),
            (Some(Type::Varint), Value::Varint(value)) if number == kind.flags() => {
                point.flags = value as u32;
            }
            (Some(Type::Varint), Value::Varint(value)) => point.scale = zigzag(value),
            (Some(Type::Attribute), Value::Bytes(message)) => drop(attribute(message)?),
            (Some(Type::Exemplar), Value::Bytes(message)) => drop(exemplar(message)?),
            (Some(Type::Fixed64List), Value::Fixed64(_)) => {}
            (Some(Type::Fixed64List), Value::Bytes(packed)) if packed.len() % 8 == 0 => {}
            (Some(Type::Fixed64List), Value::Bytes(_)) => return Err(Malformed::Truncated),
            (Some(Type::Buckets), Value::Bytes(message)) => buckets(message)?,
            (Some(Type::Quantile), Value::Bytes(message)) => quantile(message)?,
            (Some(_), _) => return Err(Malformed::WireType),
        }
    }
    if kind == PointKind::Summary && point.sum.is_none() {
        point.sum = Some(0.0);
    }
    Ok(point)
}

impl Point<'_> {
    fn set_fixed64(&mut self, number: u32, bits: u64) {
        let double = f64::from_bits(bits);
        match (self.kind, number) {
            (_, POINT_START) => self.start_ns = bits,
            (_, POINT_TIME) => self.time_ns = bits,
            (PointKind::Number, 4) => self.value = Some(Number::Double(double)),
            (PointKind::Number, _) => self.value = Some(Number::Int(bits as i64)),
            (_, 4) => self.count = bits,
            (_, 5) => self.sum = Some(double),
            (PointKind::Histogram, 11) | (PointKind::Exponential, 12) => self.min = Some(double),
            (PointKind::Histogram, 12) | (PointKind::Exponential, 13) => self.max = Some(double),
            (PointKind::Exponential, 7) => self.zero_count = bits,
            (PointKind::Exponential, 14) => self.zero_threshold = double,
            _ => {}
        }
    }
}

fn buckets(message: &[u8]) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        let field = field?;
        match (field.key >> 3, field.value) {
            (1 | 2, Value::Varint(_)) => {}
            (2, Value::Bytes(packed)) => {
                let mut reader = Reader::new(packed);
                while !reader.rest().is_empty() {
                    reader.varint()?;
                }
            }
            (1 | 2, _) => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

fn quantile(message: &[u8]) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        let field = field?;
        match (field.key >> 3, field.value) {
            (1 | 2, Value::Fixed64(_)) => {}
            (1 | 2, _) => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(())
}

/// The fields of an exemplar.
#[derive(Clone, Copy, Debug)]
pub struct Exemplar<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// `time_unix_nano`
    pub time_ns: u64,
    /// `value`
    pub value: Option<Number>,
    /// `trace_id`; zero where there is none.
    pub trace_id: [u8; 16],
    /// `span_id`: 8 bytes or none.
    pub span_id: &'a [u8],
}

/// `Exemplar.filtered_attributes`
pub const EXEMPLAR_ATTRIBUTES: u32 = 7 << 3 | 2;

impl<'a> Exemplar<'a> {
    /// `filtered_attributes`
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, EXEMPLAR_ATTRIBUTES)
    }
}

/// Reads an exemplar and checks all that is in it.
///
/// # Errors
/// The first malformed field.
pub fn exemplar(message: &[u8]) -> Result<Exemplar<'_>, Malformed> {
    let mut exemplar = Exemplar {
        message,
        time_ns: 0,
        value: None,
        trace_id: [0; 16],
        span_id: b"",
    };
    for field in Fields::new(message) {
        let field = field?;
        match (field.key >> 3, field.value) {
            (2, Value::Fixed64(ns)) => exemplar.time_ns = ns,
            (3, Value::Fixed64(bits)) => {
                exemplar.value = Some(Number::Double(f64::from_bits(bits)));
            }
            (6, Value::Fixed64(bits)) => exemplar.value = Some(Number::Int(bits as i64)),
            (4, Value::Bytes(id)) => exemplar.span_id = span_id(id)?,
            (5, Value::Bytes(id)) => exemplar.trace_id = trace_id(id)?,
            (7, Value::Bytes(message)) => drop(attribute(message)?),
            (2..=7, _) => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(exemplar)
}

/// Appends a data point without its exemplars: what stands around them.
///
/// # Errors
/// The point is malformed.
pub fn point_frame(kind: PointKind, message: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        let field = field?;
        match field.value {
            Value::Bytes(_) if kind.exemplars() == Some(field.key >> 3) => {}
            _ => out.extend_from_slice(field.whole),
        }
    }
    Ok(())
}
