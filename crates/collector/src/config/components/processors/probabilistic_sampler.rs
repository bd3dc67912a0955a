//! `probabilistic_sampler`: a share of the traces, by their ids alone.

use super::Processor;
use crate::config::components::{Entry, Parse, Signal, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Which traces are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticSampler {
    /// Per cent; 100 and more: all.
    pub percentage: f64,
    /// Seed of the hash.
    pub hash_seed: u32,
    /// How the share is taken.
    pub mode: Mode,
    /// Spans whose `tracestate` makes no sense are dropped; else they are kept.
    pub fail_closed: bool,
    /// Hexadecimal digits of a threshold.
    pub precision: u32,
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
const LOGS_REASON: &str = "logs are not sampled here";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("sampling_percentage", Kind::Number(0.0, f64::MAX), "0", "per cent that are kept; 100 and more: all"),
    opt("hash_seed", Kind::Int(0, u32::MAX as i64), "0", "seed of the hash: the same in all collectors of a tier"),
    opt("mode", Kind::Word(MODES), "hash_seed", "how the share is taken"),
    opt("fail_closed", Kind::Flag, "true", "spans whose tracestate makes no sense are dropped"),
    opt("sampling_precision", Kind::Int(1, 14), "4", "hexadecimal digits of a threshold"),
    opt("attribute_source", Kind::Word(&["traceID", "record"]), "traceID", "of logs").no_effect(LOGS_REASON),
    opt("from_attribute", Kind::Text, "", "of logs").no_effect(LOGS_REASON),
    opt("sampling_priority", Kind::Text, "", "of logs").no_effect(LOGS_REASON),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("probabilistic_sampler")],
    doc: "keeps a share of the traces",
    takes: &[Signal::Traces, Signal::Logs],
    carries: TRACES,
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
    };
    if sampler.percentage == 0.0 {
        section.warn("sampling_percentage", "is 0: nothing is kept");
    } else if sampler.percentage < PERCENTAGE_MIN {
        section.error("sampling_percentage", "is too small to be told from 0");
    }
    Processor::ProbabilisticSampler(sampler)
}
