//! `probabilistic_sampler`: a share of the spans or log records, each decided on alone.
//!
//! A record is kept if its 56 bits of randomness are at least a threshold (OpenTelemetry:
//! probability sampling). The modes differ in where both come from.

mod log;
mod randomness;
mod span;
mod tally;

use std::sync::Arc;

use otlp::scan::Malformed;
use otlp::tracestate::THRESHOLD_MAX;

use self::randomness::{BUCKETS, threshold_of};
use self::tally::Tally;
use super::edit::{Edited, List, Outcome, edit_records, hand_on, room_for};
use super::{ProcessorDeps, StartProcessor};
use crate::config::Signal;
use crate::config::components::processors::probabilistic_sampler::{
    Mode, ProbabilisticSampler as Settings, Source,
};
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::metrics::Sheet;
use crate::run::part::{Part, PartName};

/// See the module.
pub struct ProbabilisticSampler {
    /// What it does.
    pub sampler: Sampler,
    next: Arc<dyn Consumer>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Sampler {
    rule: Rule,
    fail_closed: bool,
    precision: u32,
    /// Logs: whether identifiers of traces count.
    by_trace_id: bool,
    /// Logs: the attribute that is hashed where there is none.
    from_attribute: Box<[u8]>,
    /// Logs: the attribute that tells per cent; empty: none.
    priority: Box<[u8]>,
    tally: Tally,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Never,
    /// A hash of the identifier with this seed, against this threshold.
    Hash(u32, u64),
    /// This threshold, or that of an earlier sampler where that is above.
    Equalizing(u64),
    /// This share of what earlier samplers left.
    Proportional(f64),
}

/// What a record tells of its sampling.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// None: it has none.
    randomness: Option<u64>,
    /// What is written into it; none where that was not understood, or is another's.
    carried: Option<Carried>,
    /// Where that comes from.
    origin: Origin,
    /// Something makes no sense.
    fault: bool,
    /// What counts instead of the rule.
    priority: Option<u64>,
}

/// Where the randomness of a record comes from, as the Collector's counters call it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Missing,
    TraceId,
    Told,
    TraceIdHash,
    AttributeHash,
    Priority,
}

/// What a record carries on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carried {
    threshold: Option<u64>,
    randomness: Option<u64>,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let sampler = start(self, next);
        deps.register(Arc::new(Described {
            sampler: Arc::clone(&sampler),
            signal: deps.signal(),
        }));
        Ok(sampler)
    }
}

/// A sampler, and the signal that its metrics are named by.
struct Described {
    sampler: Arc<ProbabilisticSampler>,
    signal: Signal,
}

impl Part for Described {
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let sampler = &self.sampler.sampler;
        tally::describe(&sampler.counts(), self.signal, name, sheet);
    }
}

/// One before `next`.
#[must_use]
pub fn start(settings: &Settings, next: Arc<dyn Consumer>) -> Arc<ProbabilisticSampler> {
    let sampler = Sampler::new(settings);
    Arc::new(ProbabilisticSampler { sampler, next })
}

impl Sampler {
    /// Of the settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Sampler {
        Sampler {
            rule: rule(settings),
            fail_closed: settings.fail_closed,
            precision: settings.precision,
            by_trace_id: settings.source == Source::TraceId,
            from_attribute: settings.from_attribute.as_bytes().into(),
            priority: settings.sampling_priority.as_bytes().into(),
            tally: Tally::default(),
        }
    }

    /// Records by what was decided on: the Collector's name of it, whether they were kept, and how
    /// many.
    pub fn counts(&self) -> Vec<(String, bool, u64)> {
        self.tally.counts(&self.from_attribute)
    }

    /// What a request becomes. Data points all stay.
    ///
    /// # Errors
    /// It is malformed.
    pub fn sample(&self, signal: Signal, request: &[u8]) -> Result<Edited, Malformed> {
        let mut out = room_for(request);
        let mut list = List::default();
        let mut dropped = 0;
        let outcome = edit_records(signal, request, &mut out, &mut |kind, _, record, out| {
            list.read(record, kind.attributes_key())?;
            let outcome = match signal {
                Signal::Traces => self.span(record, &list, out)?,
                Signal::Logs => self.log(record, &mut list, out)?,
                Signal::Metrics => Outcome::Same,
            };
            dropped += u64::from(outcome == Outcome::Gone);
            Ok(outcome)
        })?;
        Ok(Edited::new(outcome, out, dropped))
    }

    /// What the rule makes of what a record tells. `hash`: the randomness of a hash with a seed,
    /// and where it comes from; `missing`: what is written where there is none.
    fn ruled(
        &self,
        mut found: Found,
        hash: impl FnOnce(u32) -> (Option<u64>, Origin),
        missing: Option<u64>,
    ) -> Found {
        match (self.rule, found.carried) {
            (Rule::Never, _) => found.randomness = Some(THRESHOLD_MAX - 1),
            (Rule::Hash(seed, _), carried) => {
                (found.randomness, found.origin) = hash(seed);
                let is_free = carried == Some(Carried::default());
                // Another sampler's numbers have nothing to do with this hash.
                found.fault |= !is_free;
                found.carried = is_free.then_some(Carried {
                    threshold: None,
                    randomness: found.randomness.or(missing),
                });
            }
            (
                _,
                Some(Carried {
                    randomness: Some(told),
                    ..
                }),
            ) => {
                found.randomness = Some(told);
                found.origin = Origin::Told;
            }
            (_, Some(_)) => {}
            // As the Collector: what was not understood has no randomness either.
            (_, None) => {
                found.randomness = None;
                found.origin = Origin::Missing;
            }
        }
        found
    }

    /// What the record carries on; none: it is dropped.
    fn decide(&self, found: Found) -> Option<Option<Carried>> {
        let origin = match found.priority {
            Some(_) => Origin::Priority,
            None => found.origin,
        };
        let kept = self.kept(found);
        self.tally.add(origin, kept.is_some());
        kept
    }

    fn kept(&self, mut found: Found) -> Option<Option<Carried>> {
        match (found.randomness, &mut found.carried) {
            (None, _) => found.fault = true,
            // By its own threshold it should not have come here.
            (Some(randomness), Some(carried))
                if !found.fault && carried.threshold.is_some_and(|at| at > randomness) =>
            {
                carried.threshold = None;
                found.fault = true;
            }
            _ => {}
        }
        let before = found.carried.and_then(|carried| carried.threshold);
        let threshold = match (found.fault, self.fail_closed) {
            (true, true) => THRESHOLD_MAX,
            (true, false) => 0,
            (false, _) => self.threshold(before),
        };
        let threshold = found.priority.unwrap_or(threshold);
        // Without randomness all is kept that has a share at all.
        if found.randomness.unwrap_or(THRESHOLD_MAX - 1) < threshold {
            return None;
        }
        Some(found.carried.map(|carried| Carried {
            // A share that an earlier sampler left can only become smaller.
            threshold: Some(before.map_or(threshold, |before| before.max(threshold))),
            ..carried
        }))
    }

    fn threshold(&self, before: Option<u64>) -> u64 {
        match self.rule {
            Rule::Never => THRESHOLD_MAX,
            Rule::Hash(_, threshold) => threshold,
            Rule::Equalizing(threshold) => before.map_or(threshold, |before| before.max(threshold)),
            Rule::Proportional(share) => {
                let left = THRESHOLD_MAX - before.unwrap_or(0).min(THRESHOLD_MAX);
                let left = left as f64 / THRESHOLD_MAX as f64;
                threshold_of(left * share, self.precision).unwrap_or(THRESHOLD_MAX)
            }
        }
    }
}

fn rule(settings: &Settings) -> Rule {
    // The Collector reckons per cent in 32 bits.
    let percentage = settings.percentage.min(100.0) as f32;
    if percentage <= 0.0 {
        return Rule::Never;
    }
    let share = (f64::from(percentage) / 100.0).max(1.0 / THRESHOLD_MAX as f64);
    match settings.mode {
        Mode::Equalizing => Rule::Equalizing(threshold_of(share, settings.precision).unwrap_or(0)),
        Mode::Proportional => Rule::Proportional(share),
        Mode::HashSeed => {
            let kept = (percentage * (BUCKETS as f32 / 100.0)) as u64;
            match kept {
                0 => Rule::Never,
                kept => {
                    let left_out = BUCKETS - kept.min(BUCKETS);
                    Rule::Hash(settings.hash_seed, left_out * (THRESHOLD_MAX / BUCKETS))
                }
            }
        }
    }
}

impl Through for ProbabilisticSampler {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let sampled = self.sampler.sample(batch.signal, &batch.bytes);
        hand_on::<P>(&self.next, batch, sampled)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}

#[cfg(test)]
mod tests;
