//! One metric (`metrics.proto`).

use super::{Malformed, Point, PointKind, attribute, point};
use crate::wire::{Fields, Reader, Value};
use crate::write;

/// `data_points` of each kind of data.
pub const POINTS: u32 = 1 << 3 | 2;
/// `aggregation_temporality` of sums and both kinds of histograms.
pub const TEMPORALITY: u32 = 2 << 3;
/// `Sum.is_monotonic`
pub const MONOTONIC: u32 = 3 << 3;
/// `Metric.metadata`
pub const METADATA: u32 = 12 << 3 | 2;

/// The kind of a metric's data. The values are those of the Collector's `pmetric.MetricType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// `gauge`
    Gauge = 1,
    /// `sum`
    Sum = 2,
    /// `histogram`
    Histogram = 3,
    /// `exponential_histogram`
    Exponential = 4,
    /// `summary`
    Summary = 5,
}

impl MetricKind {
    /// All kinds.
    pub const ALL: [MetricKind; 5] = [
        MetricKind::Gauge,
        MetricKind::Sum,
        MetricKind::Histogram,
        MetricKind::Exponential,
        MetricKind::Summary,
    ];

    /// The number of the field of `Metric` that holds this kind.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            MetricKind::Gauge => 5,
            MetricKind::Sum => 7,
            MetricKind::Histogram => 9,
            MetricKind::Exponential => 10,
            MetricKind::Summary => 11,
        }
    }

    /// The kind whose field of `Metric` has this number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<MetricKind> {
        MetricKind::ALL
            .into_iter()
            .find(|kind| kind.number() == number)
    }

    /// The kind of its data points.
    #[must_use]
    pub const fn point(self) -> PointKind {
        match self {
            MetricKind::Gauge | MetricKind::Sum => PointKind::Number,
            MetricKind::Histogram => PointKind::Histogram,
            MetricKind::Exponential => PointKind::Exponential,
            MetricKind::Summary => PointKind::Summary,
        }
    }

    /// Whether its data have an aggregation temporality.
    #[must_use]
    pub const fn has_temporality(self) -> bool {
        match self {
            MetricKind::Sum | MetricKind::Histogram | MetricKind::Exponential => true,
            MetricKind::Gauge | MetricKind::Summary => false,
        }
    }
}

/// The fields of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// `name`
    pub name: &'a [u8],
    /// `description`
    pub description: &'a [u8],
    /// `unit`
    pub unit: &'a [u8],
    /// Which of `data` is set; none where nothing is.
    pub kind: Option<MetricKind>,
    /// The message of its data.
    pub data: &'a [u8],
    /// `aggregation_temporality`, where the kind has one.
    pub temporality: i32,
    /// `is_monotonic`, of a sum.
    pub is_monotonic: bool,
}

impl<'a> Metric<'a> {
    /// The messages of its data points. It ends at a malformed one.
    pub fn point_messages(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let fields = Fields::new(self.data).map_while(Result::ok);
        fields.filter_map(|field| field.message(POINTS >> 3))
    }

    /// Its data points, each of which is checked.
    pub fn points(&self) -> impl Iterator<Item = Result<Point<'a>, Malformed>> + use<'a> {
        let kind = self.kind.map(MetricKind::point);
        let messages = self.point_messages();
        messages.filter_map(move |message| Some(point(kind?, message)))
    }

    /// Checks all of its data points.
    ///
    /// # Errors
    /// The first malformed one.
    pub fn check_points(&self) -> Result<(), Malformed> {
        self.points().try_for_each(|point| point.map(drop))
    }
}

/// Reads a metric and checks all that is in it but its data points, of which only the lengths are
/// checked. Of data of several kinds the last counts.
///
/// # Errors
/// The first malformed field.
pub fn metric(message: &[u8]) -> Result<Metric<'_>, Malformed> {
    let mut metric = Metric {
        message,
        name: b"",
        description: b"",
        unit: b"",
        kind: None,
        data: b"",
        temporality: 0,
        is_monotonic: false,
    };
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field()? {
        match (field.key, field.value) {
            (0x0a, Value::Bytes(text)) => metric.name = text,
            (0x12, Value::Bytes(text)) => metric.description = text,
            (0x1a, Value::Bytes(text)) => metric.unit = text,
            (METADATA, Value::Bytes(message)) => drop(attribute(message)?),
            (key, _) if matches!(key >> 3, 1 | 2 | 3 | 12) => return Err(Malformed::WireType),
            (key, Value::Bytes(data)) => {
                if let Some(kind) = MetricKind::of_number(key >> 3) {
                    data_fields(data, kind, &mut metric)?;
                }
            }
            (key, _) if MetricKind::of_number(key >> 3).is_some() => {
                return Err(Malformed::WireType);
            }
            _ => {}
        }
    }
    Ok(metric)
}

/// Reads the fields around the data points.
fn data_fields<'a>(
    data: &'a [u8],
    kind: MetricKind,
    metric: &mut Metric<'a>,
) -> Result<(), Malformed> {
    (metric.kind, metric.data) = (Some(kind), data);
    (metric.temporality, metric.is_monotonic) = (0, false);
    let mut reader = Reader::new(data);
    loop {
        reader.pass(POINTS)?;
        let Some(field) = reader.field()? else {
            return Ok(());
        };
        match (field.key, field.value) {
            // The key was written with more bytes than it needs.
            (POINTS, Value::Bytes(_)) => {}
            (TEMPORALITY, Value::Varint(value)) if kind.has_temporality() => {
                metric.temporality = value as i32;
            }
            (MONOTONIC, Value::Varint(value)) if kind == MetricKind::Sum => {
                metric.is_monotonic = value != 0;
            }
            (key, _) if key >> 3 == 1 => return Err(Malformed::WireType),
            (key, _) if key >> 3 == 2 && kind.has_temporality() => {
                return Err(Malformed::WireType);
            }
            (key, _) if key >> 3 == 3 && kind == MetricKind::Sum => {
                return Err(Malformed::WireType);
            }
            _ => {}
        }
    }
}

/// Appends a metric without its data points: what stands around them.
///
/// # Errors
/// The metric or its data are malformed.
pub fn metric_frame(message: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    for field in Fields::new(message) {
        let field = field?;
        let number = field.key >> 3;
        match (MetricKind::of_number(number), field.value) {
            (Some(_), Value::Bytes(data)) => {
                let mut outcome = Ok(());
                write::message(out, number, |out| outcome = without_points(data, out));
                outcome?;
            }
            (Some(_), _) => return Err(Malformed::WireType),
            (None, _) => out.extend_from_slice(field.whole),
        }
    }
    Ok(())
}

fn without_points(data: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    for field in Fields::new(data) {
        let field = field?;
        match field.value {
            Value::Bytes(_) if field.key == POINTS => {}
            _ if field.key >> 3 == POINTS >> 3 => return Err(Malformed::WireType),
            _ => out.extend_from_slice(field.whole),
        }
    }
    Ok(())
}
