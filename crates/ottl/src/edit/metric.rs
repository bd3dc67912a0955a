//! Editors of metrics (transformprocessor, "Metrics only functions").

use super::{Args, Edit, Editor};
use crate::Context;
use crate::parser::Term;
use crate::value::Value;

/// Bounds of a histogram that is made.
pub const BOUNDS_MAX: usize = 4096;

/// A change of a metric, or a metric that is made of it.
#[derive(Debug)]
pub enum MetricEdit {
    /// A sum becomes a gauge.
    SumToGauge,
    /// A gauge becomes a sum.
    GaugeToSum {
        /// `aggregation_temporality`
        temporality: u64,
        /// `is_monotonic`
        monotonic: bool,
    },
    /// A new sum of the counts of histograms and summaries.
    ExtractCount {
        /// `is_monotonic`
        monotonic: bool,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A new sum of the sums of histograms and summaries.
    ExtractSum {
        /// `is_monotonic`
        monotonic: bool,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A new gauge of a percentile of histograms.
    ExtractPercentile {
        /// Above 0 and below 100.
        percentile: f64,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A new sum of the counts of a summary.
    SummaryCount {
        /// `aggregation_temporality`
        temporality: u64,
        /// `is_monotonic`
        monotonic: bool,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A new sum of the sums of a summary.
    SummarySum {
        /// `aggregation_temporality`
        temporality: u64,
        /// `is_monotonic`
        monotonic: bool,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A new gauge of the quantiles of a summary.
    SummaryQuantiles {
        /// The attribute that gets the quantile.
        key: Vec<u8>,
        /// Stands behind the name.
        suffix: Vec<u8>,
    },
    /// A copy of the metric.
    Copy {
        /// Its name, where that changes.
        name: Option<Term>,
        /// Its description, where that changes.
        description: Option<Term>,
        /// Its unit, where that changes.
        unit: Option<Term>,
    },
    /// Values are multiplied.
    Scale {
        /// By this.
        factor: f64,
        /// The new unit.
        unit: Option<Term>,
    },
    /// Data points with the same attributes become one.
    Aggregate {
        /// How their values become one.
        function: Aggregation,
        /// The attributes that stay; none: all do.
        keys: Option<Vec<Vec<u8>>>,
    },
    /// Values of an attribute are replaced, and data points with the same attributes become one.
    AggregateValue {
        /// How their values become one.
        function: Aggregation,
        /// The attribute.
        key: Vec<u8>,
        /// The values that are replaced.
        values: Vec<Vec<u8>>,
        /// The value that they get.
        replacement: Vec<u8>,
    },
    /// An exponential histogram becomes one with explicit bounds.
    ToHistogram {
        /// How the counts of buckets are distributed.
        distribution: Distribution,
        /// The bounds, in the order in which they are written.
        bounds: Vec<f64>,
    },
    /// Buckets of a histogram are merged.
    MergeBuckets(Merge),
}

/// How values of data points become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Their sum.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Their arithmetic mean.
    Mean,
    /// Their median.
    Median,
    /// How many there are.
    Count,
}

const AGGREGATIONS: [(&str, Aggregation); 6] = [
    ("sum", Aggregation::Sum),
    ("max", Aggregation::Max),
    ("min", Aggregation::Min),
    ("mean", Aggregation::Mean),
    ("median", Aggregation::Median),
    ("count", Aggregation::Count),
];

/// How the count of an exponential bucket is distributed over explicit buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// By its upper bound.
    Upper,
    /// By the mean of its bounds.
    Midpoint,
    /// Evenly over the bounds that lie within it.
    Uniform,
    /// At random over the bounds that lie within it.
    Random,
}

const DISTRIBUTIONS: [(&str, Distribution); 4] = [
    ("upper", Distribution::Upper),
    ("midpoint", Distribution::Midpoint),
    ("uniform", Distribution::Uniform),
    ("random", Distribution::Random),
];

/// Which buckets of a histogram are merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Merge {
    /// The two at this bound.
    Bound(f64),
    /// Neighbours, until there are no more than so many.
    Limit(usize),
}

const METRIC: &[Context] = &[Context::Metric];
const BOTH: &[Context] = &[Context::Metric, Context::DataPoint];

const fn editor(
    name: &'static str,
    params: &'static [&'static str],
    contexts: &'static [Context],
    make: fn(&mut Args) -> Result<Edit, String>,
) -> Editor {
    Editor {
        name,
        params,
        contexts,
        make,
    }
}

/// The editors of metrics and data points.
pub const EDITORS: &[Editor] = &[
    editor("convert_sum_to_gauge", &[], BOTH, |_| {
        Ok(Edit::Metric(MetricEdit::SumToGauge))
    }),
    editor(
        "convert_gauge_to_sum",
        &["aggregation_temporality", "is_monotonic|monotonic"],
        BOTH,
        |args| {
            Ok(Edit::Metric(MetricEdit::GaugeToSum {
                temporality: args.temporality(0)?,
                monotonic: args.must_flag(1)?,
            }))
        },
    ),
    editor(
        "extract_count_metric",
        &["is_monotonic|monotonic", "?suffix"],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::ExtractCount {
                monotonic: args.must_flag(0)?,
                suffix: args.suffix(1, "_count")?,
            }))
        },
    ),
    editor(
        "extract_sum_metric",
        &["is_monotonic|monotonic", "?suffix"],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::ExtractSum {
                monotonic: args.must_flag(0)?,
                suffix: args.suffix(1, "_sum")?,
            }))
        },
    ),
    editor(
        "extract_percentile_metric",
        &["percentile", "?suffix"],
        METRIC,
        |args| {
            let percentile = args.number(0)?;
            if !(percentile > 0.0 && percentile < 100.0) {
                return Err("the percentile is above 0 and below 100".to_owned());
            }
            let suffix = args.suffix(1, &format!("_p{percentile}"))?;
            Ok(Edit::Metric(MetricEdit::ExtractPercentile {
                percentile,
                suffix,
            }))
        },
    ),
    editor(
        "convert_summary_count_val_to_sum",
        &[
            "aggregation_temporality",
            "is_monotonic|monotonic",
            "?suffix",
        ],
        BOTH,
        |args| {
            Ok(Edit::Metric(MetricEdit::SummaryCount {
                temporality: args.temporality(0)?,
                monotonic: args.must_flag(1)?,
                suffix: args.suffix(2, "_count")?,
            }))
        },
    ),
    editor(
        "convert_summary_sum_val_to_sum",
        &[
            "aggregation_temporality",
            "is_monotonic|monotonic",
            "?suffix",
        ],
        BOTH,
        |args| {
            Ok(Edit::Metric(MetricEdit::SummarySum {
                temporality: args.temporality(0)?,
                monotonic: args.must_flag(1)?,
                suffix: args.suffix(2, "_sum")?,
            }))
        },
    ),
    editor(
        "convert_summary_quantile_val_to_gauge",
        &["?attribute_key", "?suffix"],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::SummaryQuantiles {
                key: args.suffix(0, "quantile")?,
                suffix: args.suffix(1, ".quantiles")?,
            }))
        },
    ),
    editor(
        "copy_metric",
        &["?name", "?description|desc", "?unit"],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::Copy {
                name: args.take(0)?,
                description: args.take(1)?,
                unit: args.take(2)?,
            }))
        },
    ),
    editor(
        "scale_metric",
        &["factor|multiplier", "?unit"],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::Scale {
                factor: args.number(0)?,
                unit: args.take(1)?,
            }))
        },
    ),
    editor(
        "aggregate_on_attributes",
        &["function|aggregation_function", "?attributes"],
        METRIC,
        |args| {
            let function = args.word(0, &AGGREGATIONS)?;
            let keys = match args.0.get(1) {
                Some(Some(_)) => Some(args.texts(1)?),
                _ => None,
            };
            Ok(Edit::Metric(MetricEdit::Aggregate { function, keys }))
        },
    ),
    editor(
        "aggregate_on_attribute_value",
        &[
            "function|aggregation_function",
            "attribute",
            "values",
            "new_value",
        ],
        METRIC,
        |args| {
            Ok(Edit::Metric(MetricEdit::AggregateValue {
                function: args.word(0, &AGGREGATIONS)?,
                key: args.text(1)?.into_bytes(),
                values: args.texts(2)?,
                replacement: args.text(3)?.into_bytes(),
            }))
        },
    ),
    editor(
        "convert_exponential_histogram_to_histogram",
        &["distribution|distribution_fn", "explicit_bounds"],
        METRIC,
        |args| {
            let distribution = args.word(0, &DISTRIBUTIONS)?;
            let bounds = args.numbers(1)?;
            match bounds.len() {
                0 => Err("there are no explicit bounds".to_owned()),
                _ if !bounds.is_sorted_by(|left, right| left < right) => {
                    Err("the explicit bounds are not in ascending order".to_owned())
                }
                1..=BOUNDS_MAX => Ok(Edit::Metric(MetricEdit::ToHistogram {
                    distribution,
                    bounds,
                })),
                _ => Err(format!("there are more than {BOUNDS_MAX} explicit bounds")),
            }
        },
    ),
    editor(
        "merge_histogram_buckets",
        &["target_value|bound", "?method"],
        BOTH,
        |args| {
            let method = args.suffix(1, "remove_explicit_bound")?;
            let target = args.number(0)?;
            let merge = match &*method {
                b"remove_explicit_bound" => Merge::Bound(target),
                b"limit_buckets" if target >= 1.0 && target.fract() == 0.0 => {
                    Merge::Limit(target as usize)
                }
                b"limit_buckets" => return Err("the limit is a whole number from 1".to_owned()),
                _ => {
                    return Err(
                        "the method is \"remove_explicit_bound\" or \"limit_buckets\"".to_owned(),
                    );
                }
            };
            Ok(Edit::Metric(MetricEdit::MergeBuckets(merge)))
        },
    ),
];

impl Args {
    fn temporality(&mut self, at: usize) -> Result<u64, String> {
        self.word(at, &[("delta", 1), ("cumulative", 2)])
    }

    fn must_flag(&mut self, at: usize) -> Result<bool, String> {
        match self.term(at)? {
            Term::Literal(Value::Bool(flag)) => Ok(flag),
            _ => Err("true or false is expected here".to_owned()),
        }
    }

    /// One of some words.
    fn word<T: Copy>(&mut self, at: usize, words: &[(&str, T)]) -> Result<T, String> {
        let text = self.text(at)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            format!("{text:?} is not one of {}", words.join(", "))
        })
    }

    fn suffix(&mut self, at: usize, default: &str) -> Result<Vec<u8>, String> {
        let text = match self.0.get(at) {
            Some(Some(_)) => self.text(at)?,
            _ => default.to_owned(),
        };
        Ok(text.into_bytes())
    }

    fn number(&mut self, at: usize) -> Result<f64, String> {
        number(&self.term(at)?)
    }

    fn numbers(&mut self, at: usize) -> Result<Vec<f64>, String> {
        match self.term(at)? {
            Term::List(terms) => terms.iter().map(number).collect(),
            _ => Err("a list of numbers is expected here".to_owned()),
        }
    }

    fn texts(&mut self, at: usize) -> Result<Vec<Vec<u8>>, String> {
        let wrong = || "a list of texts in quotes is expected here".to_owned();
        let Term::List(terms) = self.term(at)? else {
            return Err(wrong());
        };
        let text = |term: &Term| term.literal_text().map(|text| text.as_bytes().to_vec());
        terms
            .iter()
            .map(|term| text(term).ok_or_else(wrong))
            .collect()
    }
}

fn number(term: &Term) -> Result<f64, String> {
    match term {
        Term::Literal(Value::Int(value)) => Ok(*value as f64),
        Term::Literal(Value::Float(value)) => Ok(*value),
        _ => Err("a number is expected here".to_owned()),
    }
}
