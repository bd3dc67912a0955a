//! Instruments, and how their values are aggregated.

use super::exponential::{SCALE_MAX, SCALE_MIN};
use super::point::Point;

/// The default bounds of a histogram (OpenTelemetry: Metrics SDK, explicit bucket histogram
/// aggregation).
pub const DEFAULT_BOUNDS: [f64; 15] = [
    0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0,
    10000.0,
];

/// The most buckets of an exponential histogram, for each sign, that a configuration may request.
const BUCKETS_MAX: u32 = 1024;

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A value to add, never negative.
    Counter,
    /// A value to add.
    UpDownCounter,
    /// One of many measured values, never negative.
    Histogram,
    /// The current state.
    Gauge,
}

/// How values are aggregated.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Aggregation {
    /// By kind: a sum for counters, the last value for gauges, [`DEFAULT_BOUNDS`] for histograms.
    #[default]
    Default,
    /// Values are dropped.
    Drop,
    /// Their sum.
    Sum,
    /// The last value.
    LastValue,
    /// Counts between bounds; each bound is the upper end of its bucket. The bounds are sorted,
    /// distinct and finite.
    ExplicitHistogram(Vec<f64>),
    /// Counts between powers of `2^(2^-scale)`.
    ExponentialHistogram {
        /// Buckets for each sign: 2 to 1024; 160 is usual.
        max_size: u32,
        /// The finest scale, -10 to 20; 20 is usual. It becomes coarser as values require.
        max_scale: i32,
    },
}

/// One instrument.
#[derive(Clone, Debug, PartialEq)]
pub struct Instrument {
    /// Its name.
    pub name: String,
    /// What a value means.
    pub kind: Kind,
    /// A description for people.
    pub description: String,
    /// The unit of its values (UCUM).
    pub unit: String,
    /// How values are aggregated. An aggregation that does not suit the kind ([`Kind::takes`]) is
    /// replaced by the default.
    pub aggregation: Aggregation,
}

impl Kind {
    /// Whether an aggregation suits the kind: any kind can be dropped or counted in buckets, values
    /// to add can be summed, and the last value is meaningful only for a gauge.
    #[must_use]
    pub fn takes(self, aggregation: &Aggregation) -> bool {
        match aggregation {
            Aggregation::Sum => self != Kind::Gauge,
            Aggregation::LastValue => self == Kind::Gauge,
            _ => true,
        }
    }

    /// Whether only values from 0 on are valid.
    #[must_use]
    #[inline]
    pub fn is_monotonic(self) -> bool {
        matches!(self, Kind::Counter | Kind::Histogram)
    }
}

/// All instruments of a pipeline, in the order of the list from which it was made.
#[derive(Debug)]
pub struct Instruments {
    pub(super) streams: Box<[Stream]>,
    pub(super) seed: u64,
}

/// An instrument with the plan of its aggregation.
#[derive(Debug)]
pub(super) struct Stream {
    pub instrument: Instrument,
    pub plan: Plan,
}

/// An aggregation, compiled.
#[derive(Debug)]
pub(super) enum Plan {
    Drop,
    Sum,
    Last,
    /// `limits` are the bounds as integers: a value is above a limit exactly if it is above the
    /// bound.
    Explicit {
        bounds: Box<[f64]>,
        limits: Box<[i64]>,
    },
    Exponential {
        max_size: i32,
        max_scale: i32,
    },
}

impl Instruments {
    /// The instruments of a list. The seed keeps outsiders from choosing series with colliding
    /// hashes.
    #[must_use]
    pub fn new(instruments: Vec<Instrument>, seed: u64) -> Instruments {
        let stream = |instrument: Instrument| Stream {
            plan: Plan::new(instrument.kind, &instrument.aggregation),
            instrument,
        };
        Instruments {
            streams: instruments.into_iter().map(stream).collect(),
            seed,
        }
    }

    /// The instruments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Instrument> {
        self.streams.iter().map(|stream| &stream.instrument)
    }
}

impl Plan {
    fn new(kind: Kind, aggregation: &Aggregation) -> Plan {
        match aggregation {
            Aggregation::Drop => Plan::Drop,
            Aggregation::Sum if kind.takes(aggregation) => Plan::Sum,
            Aggregation::LastValue if kind.takes(aggregation) => Plan::Last,
            Aggregation::ExplicitHistogram(bounds) => Plan::explicit(bounds),
            Aggregation::ExponentialHistogram {
                max_size,
                max_scale,
            } => Plan::Exponential {
                max_size: (*max_size).clamp(2, BUCKETS_MAX) as i32,
                max_scale: (*max_scale).clamp(SCALE_MIN, SCALE_MAX),
            },
            Aggregation::Default | Aggregation::Sum | Aggregation::LastValue => match kind {
                Kind::Counter | Kind::UpDownCounter => Plan::Sum,
                Kind::Gauge => Plan::Last,
                Kind::Histogram => Plan::explicit(&DEFAULT_BOUNDS),
            },
        }
    }

    fn explicit(bounds: &[f64]) -> Plan {
        let mut bounds: Vec<f64> = bounds
            .iter()
            .copied()
            .filter(|bound| bound.is_finite())
            .collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        // The conversion saturates at the range of all values.
        let limits = bounds.iter().map(|bound| bound.floor() as i64).collect();
        Plan::Explicit {
            bounds: bounds.into(),
            limits,
        }
    }

    /// The initial point of a new series.
    pub fn point(&self) -> Point {
        Point::new(self)
    }
}
