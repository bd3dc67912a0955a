//! The options of `tail_sampling`.

use super::policies::POLICY;
use crate::config::options::{COUNT_MAX, Kind, Opt, Table, opt};

/// Parts that the traces can be spread over.
const SHARDS_MAX: i64 = 256;

/// Options of the processor.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("policies", Kind::Sections(POLICY), "", "ordered list of policies, each with a `name` and a `type`"),
    opt("decision_wait", Kind::Duration, "30s", "from a trace's first span to its decision"),
    opt("decision_wait_after_root_received", Kind::Duration, "0s", "the decision comes earlier once the root is there; 0: off"),
    opt("num_traces", Kind::Int(1, COUNT_MAX), "50000", "traces that wait; the oldest is decided early for one more"),
    opt("block_on_overflow", Kind::Flag, "false", "senders wait instead"),
    opt("expected_new_traces_per_sec", Kind::Int(0, COUNT_MAX), "0", "new traces a second: a warning tells where `num_traces` is too small for them; room grows as they come"),
    opt("decision_cache", Kind::Section(&[DECISION_CACHE]), "", "decisions that outlive their traces"),
    opt("sample_on_first_match", Kind::Flag, "false", "the first policy that keeps decides"),
    opt("sampling_strategy", Kind::Word(&["trace-complete", "span-ingest"]), "trace-complete", "whether traces wait at all"),
    opt("drop_pending_traces_on_shutdown", Kind::Flag, "false", "what waits at the end is dropped; else it is decided with what is there"),
    opt("maximum_trace_size_bytes", Kind::Int(0, COUNT_MAX), "0", "a larger trace is dropped at once; 0: no bound"),
    opt("num_shards", Kind::Int(1, SHARDS_MAX), "1", "parts that the traces and the limits are spread over"),
    opt("tail_storage", Kind::Any, "", "an extension that keeps traces").refused("traces are kept in memory; 'storage' keeps them over the end of the process too"),
    opt("storage", Kind::Text, "", "id of the extension that keeps what waits, and what was decided, over the end of the process (not in the Collector)"),
];

/// Options of `policysampling`.
#[rustfmt::skip]
pub(super) const AT_ONCE: Table = &[&[
    opt("policies", Kind::Sections(POLICY), "", "as those of `tail_sampling`"),
    opt("sample_on_first_match", Kind::Flag, "false", "the first policy that keeps decides"),
]];

#[rustfmt::skip]
const DECISION_CACHE: &[Opt] = &[
    opt("sampled_cache_size", Kind::Int(0, COUNT_MAX), "0", "traces that were kept: at least so many are remembered, and `num_traces`; 0, as the other: the last `num_traces` of both"),
    opt("non_sampled_cache_size", Kind::Int(0, COUNT_MAX), "0", "traces that were dropped, likewise"),
];
