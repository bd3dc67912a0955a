//! The samplers that decide at the start of a span (OpenTelemetry: Trace SDK, Sampling).
//!
//! A decision depends only on its arguments, so every process decides alike for the same trace.

use crate::settings;
use crate::{SpanContext, TraceId};
use otlp::tracestate;

/// Decides whether spans are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampler {
    /// All spans.
    AlwaysOn,
    /// No spans.
    AlwaysOff,
    /// A share of all traces.
    TraceIdRatio(Ratio),
    /// The same decision as the parent's.
    ParentBased(ParentBased),
    /// A share of all traces, with the threshold sent in `tracestate`.
    Composite(Composite),
}

/// The samplers of [`Sampler::ParentBased`], by the kind of the parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentBased {
    /// There is no parent.
    pub root: Simple,
    /// The parent is remote and sampled.
    pub remote_sampled: Simple,
    /// The parent is remote and not sampled.
    pub remote_not_sampled: Simple,
    /// The parent is a span of this process and is sampled.
    pub local_sampled: Simple,
    /// The parent is a span of this process and is not sampled.
    pub local_not_sampled: Simple,
}

/// A sampler that does not delegate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Simple {
    /// All spans.
    AlwaysOn,
    /// No spans.
    AlwaysOff,
    /// A share of all traces.
    TraceIdRatio(Ratio),
}

/// A share of all traces: those for which the first 63 bits of the identifier's last 8 bytes are
/// below `share * 2^63`. The SDKs for Go and Rust use the same rule, so decisions agree; it differs
/// from the threshold of [`Composite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    bound: u64,
}

/// Consistent probability sampling (OpenTelemetry: TraceState, Probability Sampling): a trace is
/// kept if its 56 random bits (`rv` of its state, or the end of its identifier) are at least a
/// threshold, which is propagated as `th`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Composite {
    /// With this threshold, whatever the parent's ([`tracestate::threshold_of`]): 0 keeps every
    /// trace, `None` keeps none.
    Probability(Option<u64>),
    /// With the parent's threshold; without a parent, with this one.
    ParentThreshold(Option<u64>),
}

/// The decision of a sampler about a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// It is recorded.
    pub sampled: bool,
    /// The threshold with which it was kept, for its `tracestate`. See
    /// [`Sampler::writes_threshold`].
    pub threshold: Option<u64>,
}

impl Default for ParentBased {
    /// Follows the parent; samples every span without one.
    fn default() -> ParentBased {
        ParentBased {
            root: Simple::AlwaysOn,
            remote_sampled: Simple::AlwaysOn,
            remote_not_sampled: Simple::AlwaysOff,
            local_sampled: Simple::AlwaysOn,
            local_not_sampled: Simple::AlwaysOff,
        }
    }
}

impl Ratio {
    /// A share from 0 to 1; NaN counts as 1.
    #[must_use]
    pub fn new(share: f64) -> Ratio {
        let share = if share.is_nan() {
            1.0
        } else {
            share.clamp(0.0, 1.0)
        };
        Ratio {
            bound: (share * (1_u64 << 63) as f64) as u64,
        }
    }

    #[inline]
    fn keeps(self, trace: TraceId) -> bool {
        let [.., a, b, c, d, e, f, g, h] = trace.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < self.bound
    }
}

impl From<&settings::Sampler> for Sampler {
    fn from(written: &settings::Sampler) -> Sampler {
        let simple = |keeps: bool| {
            if keeps {
                Simple::AlwaysOn
            } else {
                Simple::AlwaysOff
            }
        };
        match written {
            settings::Sampler::AlwaysOn => Sampler::AlwaysOn,
            settings::Sampler::AlwaysOff => Sampler::AlwaysOff,
            settings::Sampler::Ratio(share) => Sampler::TraceIdRatio(Ratio::new(*share)),
            settings::Sampler::ParentBased(by) => Sampler::ParentBased(ParentBased {
                root: match by.delegate {
                    settings::Delegate::AlwaysOn => Simple::AlwaysOn,
                    settings::Delegate::AlwaysOff => Simple::AlwaysOff,
                    settings::Delegate::Ratio(share) => Simple::TraceIdRatio(Ratio::new(share)),
                },
                remote_sampled: simple(by.remote_sampled),
                remote_not_sampled: simple(by.remote_not_sampled),
                local_sampled: simple(by.local_sampled),
                local_not_sampled: simple(by.local_not_sampled),
            }),
            settings::Sampler::Composite(by) => Sampler::Composite(match by {
                settings::Composable::Probability(share) => {
                    Composite::Probability(tracestate::threshold_of(*share))
                }
                settings::Composable::AlwaysOn => Composite::Probability(Some(0)),
                settings::Composable::AlwaysOff => Composite::Probability(None),
                settings::Composable::ParentThreshold(share) => {
                    Composite::ParentThreshold(tracestate::threshold_of(*share))
                }
            }),
        }
    }
}

impl Sampler {
    /// Decides on a span of this trace. `parent` is its parent and `parent_state` the parent's
    /// `tracestate`; an invalid parent counts as none.
    #[must_use]
    #[inline]
    pub fn decide(
        &self,
        parent: Option<&SpanContext>,
        parent_state: &[u8],
        trace: TraceId,
    ) -> Decision {
        let parent = parent.filter(|parent| parent.is_valid());
        match self {
            Sampler::AlwaysOn => Decision::of(true),
            Sampler::AlwaysOff => Decision::of(false),
            Sampler::TraceIdRatio(ratio) => Decision::of(ratio.keeps(trace)),
            Sampler::ParentBased(samplers) => Decision::of(samplers.of(parent).keeps(trace)),
            Sampler::Composite(composite) => composite.decide(parent, parent_state, trace),
        }
    }

    /// Whether the threshold of the decision is written to a span's `tracestate`, and removed there
    /// if it is none ([`tracestate::set_threshold`]). Otherwise the parent's state is passed on
    /// unchanged.
    #[must_use]
    pub fn writes_threshold(&self) -> bool {
        matches!(self, Sampler::Composite(_))
    }
}

impl ParentBased {
    #[inline]
    fn of(&self, parent: Option<&SpanContext>) -> Simple {
        let Some(parent) = parent else {
            return self.root;
        };
        match (parent.remote, parent.is_sampled()) {
            (true, true) => self.remote_sampled,
            (true, false) => self.remote_not_sampled,
            (false, true) => self.local_sampled,
            (false, false) => self.local_not_sampled,
        }
    }
}

impl Simple {
    #[inline]
    fn keeps(self, trace: TraceId) -> bool {
        match self {
            Simple::AlwaysOn => true,
            Simple::AlwaysOff => false,
            Simple::TraceIdRatio(ratio) => ratio.keeps(trace),
        }
    }
}

impl From<Simple> for Sampler {
    fn from(simple: Simple) -> Sampler {
        match simple {
            Simple::AlwaysOn => Sampler::AlwaysOn,
            Simple::AlwaysOff => Sampler::AlwaysOff,
            Simple::TraceIdRatio(ratio) => Sampler::TraceIdRatio(ratio),
        }
    }
}

impl Composite {
    fn decide(self, parent: Option<&SpanContext>, state: &[u8], trace: TraceId) -> Decision {
        let randomness = || tracestate::randomness(state).unwrap_or_else(|| trace.randomness());
        match (self, parent) {
            (Composite::Probability(threshold), None)
            | (Composite::ParentThreshold(threshold), None) => {
                // Without a parent, any state is ignored.
                Decision::by_threshold(threshold, trace.randomness())
            }
            (Composite::Probability(threshold), Some(_)) => {
                Decision::by_threshold(threshold, randomness())
            }
            (Composite::ParentThreshold(_), Some(parent)) => {
                let sampled = parent.is_sampled();
                let threshold = tracestate::threshold(state);
                // A threshold that contradicts the parent's flag is wrong and is removed.
                let agrees =
                    threshold.is_some_and(|threshold| (randomness() >= threshold) == sampled);
                Decision {
                    sampled,
                    threshold: threshold.filter(|_| sampled && agrees),
                }
            }
        }
    }
}

impl Decision {
    #[inline]
    fn of(sampled: bool) -> Decision {
        Decision {
            sampled,
            threshold: None,
        }
    }

    #[inline]
    fn by_threshold(threshold: Option<u64>, randomness: u64) -> Decision {
        let threshold = threshold.filter(|threshold| randomness >= *threshold);
        Decision {
            sampled: threshold.is_some(),
            threshold,
        }
    }
}

#[cfg(test)]
mod tests;
