//! `memory_limiter`: data are refused while too much memory is in use.

use super::order::Order;
use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// When data are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimiter {
    /// Time between looks.
    pub check_interval_ns: u64,
    /// The hard limit.
    pub limit: Limit,
    /// How far below it the soft limit is; 0: a fifth of it.
    pub spike: Limit,
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// MiB.
    Mib(u32),
    /// Per cent of what the machine or its control group has.
    Percentage(u32),
}

impl ProcessorSettings for MemoryLimiter {
    fn misplaced(&self, order: &Order<'_>) -> Option<String> {
        let (id, (first, _)) = (order.id, order.before.first()?);
        Some(format!(
            "'{id}' after '{first}' refuses data too late: put it first"
        ))
    }
}

const MIB_MAX: i64 = u32::MAX as i64;
const GC_REASON: &str = "there is no garbage collector to be run";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("check_interval", Kind::Duration, "0s", "time between looks (required)"),
    opt("limit_mib", Kind::Int(0, MIB_MAX), "0", "the hard limit in MiB"),
    opt("spike_limit_mib", Kind::Int(0, MIB_MAX), "0", "how far below it the soft limit is; 0: a fifth"),
    opt("limit_percentage", Kind::Int(0, 100), "0", "the hard limit in per cent of all memory, where `limit_mib` is 0"),
    opt("spike_limit_percentage", Kind::Int(0, 100), "0", "how far below it the soft limit is; 0: a fifth"),
    opt("min_gc_interval_when_soft_limited", Kind::Duration, "10s", "garbage collections").no_effect(GC_REASON),
    opt("min_gc_interval_when_hard_limited", Kind::Duration, "0s", "garbage collections").no_effect(GC_REASON),
    opt("max_gc_interval_when_soft_limited", Kind::Duration, "30s", "garbage collections").no_effect(GC_REASON),
    opt("max_gc_interval_when_hard_limited", Kind::Duration, "30s", "garbage collections").no_effect(GC_REASON),
    opt("ballast_size_mib", Kind::Int(0, MIB_MAX), "0", "ballast of the garbage collector").no_effect(GC_REASON),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("memory_limiter")],
    doc: "refuses data while too much memory is in use",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let (mib, spike_mib): (u32, u32) = (section.int("limit_mib"), section.int("spike_limit_mib"));
    let percentage: u32 = section.int("limit_percentage");
    let spike_percentage: u32 = section.int("spike_limit_percentage");
    let limiter = MemoryLimiter {
        check_interval_ns: section.duration_ns("check_interval"),
        limit: if mib > 0 {
            Limit::Mib(mib)
        } else {
            Limit::Percentage(percentage)
        },
        spike: if mib > 0 {
            Limit::Mib(spike_mib)
        } else {
            Limit::Percentage(spike_percentage)
        },
    };
    if limiter.check_interval_ns == 0 {
        section.error("check_interval", "must be more than 0, 1s for instance");
    }
    if mib == 0 && percentage == 0 {
        section.error(
            "limit_mib",
            "must be more than 0, or else 'limit_percentage'",
        );
    }
    if mib > 0 && spike_mib >= mib {
        section.error("spike_limit_mib", "must be less than 'limit_mib'");
    }
    if percentage > 0 && spike_percentage >= percentage {
        section.error(
            "spike_limit_percentage",
            "must be less than 'limit_percentage'",
        );
    }
    Processor::new(limiter)
}
