//! `probabilistic_sampler`: a share of the spans or log records, each decided on alone.

use super::order::Order;
use super::{Processor, ProcessorSettings};
use crate::config::components::{Entry, Parse, Signal, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Which spans or log records are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticSampler {
    /// Per cent; 100 and more: all.
    pub percentage: f64,
    /// Seed of the hash.
    pub hash_seed: u32,
    /// How the share is taken.
    pub mode: Mode,
    /// Records whose sampling makes no sense are dropped; else they are kept.
    pub fail_closed: bool,
    /// Hexadecimal digits of a threshold.
    pub precision: u32,
    /// What is hashed of log records.
    pub source: Source,
    /// The attribute of log records that is hashed where `source` gives none; empty: none.
    pub from_attribute: String,
    /// The attribute of log records that tells per cent for each; empty: none.
    pub sampling_priority: String,
}

impl ProcessorSettings for ProbabilisticSampler {
    fn misplaced(&self, order: &Order<'_>) -> Option<String> {
        let (id, later) = (order.id, order.later_sampler()?);
        Some(format!(
            "'{id}' before '{later}': traces that it drops can be kept by no policy"
        ))
    }
}

/// `attribute_source`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The trace's id.
    TraceId,
    /// An attribute.
    Record,
}

/// `mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A hash of the id and the seed.
    HashSeed,
    /// Randomness of the id, whatever was sampled before.
    Proportional,
    /// Randomness of the id, and no more than this share at the end.
    Equalizing,
}

#[rustfmt::skip]
const MODES: &[&str] = &["hash_seed", "proportional", "equalizing"];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("sampling_percentage", Kind::Number(0.0, f64::MAX), "0", "per cent that are kept; 100 and more: all"),
    opt("hash_seed", Kind::Int(0, u32::MAX as i64), "0", "seed of the hash: the same in all collectors of a tier"),
    opt("mode", Kind::Word(MODES), "hash_seed", "how the share is taken"),
    opt("fail_closed", Kind::Flag, "true", "what is dropped too: records whose sampling makes no sense"),
    opt("sampling_precision", Kind::Int(1, 14), "4", "hexadecimal digits of a threshold"),
    opt("attribute_source", Kind::Word(&["traceID", "record"]), "traceID", "what is hashed of log records (hash_seed)"),
    opt("from_attribute", Kind::Text, "", "attribute of log records that is hashed where there is no trace id, or with `record`"),
    opt("sampling_priority", Kind::Text, "", "attribute of log records that tells per cent for each"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("probabilistic_sampler")],
    doc: "keeps a share of the spans or log records",
    takes: &[Signal::Traces, Signal::Logs],
    carries: &[Signal::Traces, Signal::Logs],
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

/// The least share that 56 bits can tell, in per cent.
const PERCENTAGE_MIN: f64 = 100.0 / (1_u64 << 56) as f64;

fn parse(section: &Section<'_>) -> Processor {
    let sampler = ProbabilisticSampler {
        percentage: section.number("sampling_percentage"),
        hash_seed: section.int("hash_seed"),
        mode: section.choice(
            "mode",
            &[
                ("hash_seed", Mode::HashSeed),
                ("proportional", Mode::Proportional),
                ("equalizing", Mode::Equalizing),
            ],
        ),
        fail_closed: section.flag("fail_closed"),
        precision: section.int("sampling_precision"),
        source: section.choice(
            "attribute_source",
            &[("traceID", Source::TraceId), ("record", Source::Record)],
        ),
        from_attribute: section.text("from_attribute"),
        sampling_priority: section.text("sampling_priority"),
    };
    if sampler.percentage == 0.0 {
        section.warn("sampling_percentage", "is 0: nothing is kept");
    } else if sampler.percentage < PERCENTAGE_MIN {
        section.error("sampling_percentage", "is too small to be told from 0");
    }
    Processor::new(sampler)
}
