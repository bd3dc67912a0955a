//! What is measured, and how it is summarised.

use super::exponential::{SCALE_MAX, SCALE_MIN};
use super::point::Point;

/// The buckets of a histogram that says nothing else (OpenTelemetry: Metrics SDK, explicit bucket histogram aggregation).
pub const DEFAULT_BOUNDS: [f64; 15] = [
    0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0,
    10000.0,
];

/// Buckets of an exponential histogram, for each sign, that a configuration may ask for.
const BUCKETS_MAX: u32 = 1024;

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Something to add, never negative.
    Counter,
    /// Something to add.
    UpDownCounter,
    /// One of many, never negative.
    Histogram,
    /// The present state.
    Gauge,
}

/// How values are summarised.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Aggregation {
    /// As suits the kind: a sum of counters, the last value of gauges, [`DEFAULT_BOUNDS`] of histograms.
    #[default]
    Default,
    /// Not at all: nothing is kept.
    Drop,
    /// Their sum.
    Sum,
    /// The last of them.
    LastValue,
    /// Counts between bounds; each is the upper end of its bucket. Put in order, without doubles and what is not finite.
    ExplicitHistogram(Vec<f64>),
    /// Counts between powers of `2^(2^-scale)`.
    ExponentialHistogram {
        /// Buckets for each sign: 2 to 1024; 160 is usual.
        max_size: u32,
        /// The finest scale, -10 to 20, which is usual. It gets coarser as values need it.
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
    /// What it is, for people.
    pub description: String,
    /// The unit of its values (UCUM).
    pub unit: String,
    /// How values are summarised. One that does not suit the kind ([`Kind::takes`]) is replaced by the default.
    pub aggregation: Aggregation,
}

impl Kind {
    /// Whether values may be summarised so: all may be dropped or counted in buckets, what adds up may be added, and the
    /// last value says something of a gauge only.
    #[must_use]
    pub fn takes(self, aggregation: &Aggregation) -> bool {
        match aggregation {
            Aggregation::Sum => self != Kind::Gauge,
            Aggregation::LastValue => self == Kind::Gauge,
            _ => true,
        }
    }

    /// Whether only values from 0 on mean anything.
    #[must_use]
    #[inline]
    pub fn is_monotonic(self) -> bool {
        matches!(self, Kind::Counter | Kind::Histogram)
    }
}

/// All instruments of a pipeline. Places in it are those of the list that it was made of.
#[derive(Debug)]
pub struct Instruments {
    pub(super) streams: Box<[Stream]>,
    pub(super) seed: u64,
}

/// An instrument with what its values are put into.
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
    /// `limits` are the bounds as integers: a value above a limit is one above the bound.
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
    /// Of this list; the seed keeps outsiders from choosing series whose hashes meet.
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

    /// The instruments, in their order.
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
        // The conversion saturates, which is where all values are.
        let limits = bounds.iter().map(|bound| bound.floor() as i64).collect();
        Plan::Explicit {
            bounds: bounds.into(),
            limits,
        }
    }

    /// What a new series begins with.
    pub fn point(&self) -> Point {
        Point::new(self)
    }
}
