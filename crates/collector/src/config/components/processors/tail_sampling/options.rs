//! The options of `tail_sampling` and its policies.

use crate::config::options::{COUNT_MAX, Kind, Opt, Table, opt, required};

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

/// Types of every level.
#[rustfmt::skip]
const LEAVES: &[&str] = &[
    "always_sample", "latency", "numeric_attribute", "probabilistic", "status_code", "string_attribute", "boolean_attribute", "trace_state", "trace_flags",
    "rate_limiting", "bytes_limiting", "span_count", "ottl_condition",
];
#[rustfmt::skip]
const LEAVES_AND_NOT: &[&str] = &[
    "always_sample", "latency", "numeric_attribute", "probabilistic", "status_code", "string_attribute", "boolean_attribute", "trace_state", "trace_flags",
    "rate_limiting", "bytes_limiting", "span_count", "ottl_condition", "not",
];
#[rustfmt::skip]
const LEAVES_AND_AND: &[&str] = &[
    "always_sample", "latency", "numeric_attribute", "probabilistic", "status_code", "string_attribute", "boolean_attribute", "trace_state", "trace_flags",
    "rate_limiting", "bytes_limiting", "span_count", "ottl_condition", "and",
];
/// Types of policies that stand in no other.
#[rustfmt::skip]
const ALL: &[&str] = &[
    "always_sample", "latency", "numeric_attribute", "probabilistic", "status_code", "string_attribute", "boolean_attribute", "trace_state", "trace_flags",
    "rate_limiting", "bytes_limiting", "span_count", "ottl_condition", "and", "not", "drop", "composite",
];

#[rustfmt::skip]
pub(crate) const POLICY: Table = &[HEAD, BLOCKS, &[NOT, AND, DROP, COMPOSITE], MISPLACED];
#[rustfmt::skip]
const HEAD: &[Opt] = &[
    opt("name", Kind::Text, "", "tells it from the others (required)"),
    required("type", Kind::Word(ALL), "what it asks"),
];
#[rustfmt::skip]
const SUB_LEAF: Table = &[&[SUB_NAME, required("type", Kind::Word(LEAVES), "what it asks")], BLOCKS, MISPLACED];
#[rustfmt::skip]
const SUB_OR_NOT: Table = &[&[SUB_NAME, required("type", Kind::Word(LEAVES_AND_NOT), "what it asks")], BLOCKS, &[NOT], MISPLACED];
#[rustfmt::skip]
const SUB_OR_AND: Table = &[&[SUB_NAME, required("type", Kind::Word(LEAVES_AND_AND), "what it asks")], BLOCKS, &[AND], MISPLACED];
#[rustfmt::skip]
const SUB_NAME: Opt = opt("name", Kind::Text, "", "tells it from the others");

#[rustfmt::skip]
const NOT: Opt = opt("not", Kind::Section(&[&[
    opt("not_sub_policy", Kind::Section(SUB_LEAF), "", "the policy whose answer is turned round"),
]]), "", "options of type not");
#[rustfmt::skip]
const AND: Opt = opt("and", Kind::Section(&[&[
    opt("and_sub_policy", Kind::Sections(SUB_OR_NOT), "", "policies that must all keep a trace"),
]]), "", "options of type and");
#[rustfmt::skip]
const DROP: Opt = opt("drop", Kind::Section(&[&[
    opt("drop_sub_policy", Kind::Sections(SUB_OR_NOT), "", "policies that must all match for a trace to be dropped"),
]]), "", "options of type drop");
#[rustfmt::skip]
const COMPOSITE: Opt = opt("composite", Kind::Section(&[COMPOSITE_OPTIONS]), "", "options of type composite");
#[rustfmt::skip]
const COMPOSITE_OPTIONS: &[Opt] = &[
    opt("max_total_spans_per_second", Kind::Int(0, COUNT_MAX), "0", "spans a second of all its policies together"),
    opt("policy_order", Kind::Texts, "", "names of its policies; the order of `composite_sub_policy` counts"),
    opt("composite_sub_policy", Kind::Sections(SUB_OR_AND), "", "policies: the first that matches owns the trace"),
    opt("rate_allocation", Kind::Sections(&[&[
        required("policy", Kind::Text, "name of one of its policies"),
        opt("percent", Kind::Int(0, 100), "0", "its share of the total"),
    ]]), "", "shares of the total; all the same where none is written"),
];

/// Keys that are often written into a policy, and where they belong.
#[rustfmt::skip]
const MISPLACED: &[Opt] = &[
    opt("decision", Kind::Any, "", "no option").refused("a policy that drops traces has `type: drop`"),
    opt("sampling_percentage", Kind::Any, "", "no option here").refused("write `probabilistic: { sampling_percentage: … }`"),
    opt("percentage", Kind::Any, "", "no option").refused("write `probabilistic: { sampling_percentage: … }`"),
    opt("policies", Kind::Any, "", "no option here").refused("policies within a policy are in `and: { and_sub_policy: […] }` or the like"),
];

/// Options of the types that hold no others.
#[rustfmt::skip]
const BLOCKS: &[Opt] = &[
    opt("always_sample", Kind::Any, "", "has no options").no_effect("always_sample has no options"),
    opt("trace_flags", Kind::Any, "", "has no options").no_effect("trace_flags has no options"),
    opt("latency", Kind::Section(&[&[
        opt("threshold_ms", Kind::Int(0, COUNT_MAX), "0", "a trace that takes longer is kept"),
        opt("upper_threshold_ms", Kind::Int(0, COUNT_MAX), "0", "but not one that takes longer than this; 0: no bound"),
    ]]), "", "options of type latency"),
    opt("numeric_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("min_value", Kind::Int(i64::MIN, i64::MAX), "0", "its least value; 0: not set"),
        opt("max_value", Kind::Int(i64::MIN, i64::MAX), "0", "its largest value; 0: not set"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type numeric_attribute"),
    opt("probabilistic", Kind::Section(&[&[
        opt("sampling_percentage", Kind::Number(0.0, f64::MAX), "0", "per cent that are kept; 100 and more: all"),
        opt("hash_salt", Kind::Text, "", "makes the choice differ from others'; empty: the Collector's own"),
    ]]), "", "options of type probabilistic"),
    opt("status_code", Kind::Section(&[&[
        opt("status_codes", Kind::Texts, "", "OK, ERROR, UNSET: one of them keeps a trace"),
    ]]), "", "options of type status_code"),
    opt("string_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("values", Kind::Texts, "", "whole texts, or regular expressions"),
        opt("enabled_regex_matching", Kind::Flag, "false", "they are regular expressions"),
        opt("cache_max_size", Kind::Int(i64::MIN, i64::MAX), "0", "answers of expressions that are remembered").no_effect("an expression takes as much time as its text is long, and no answers are remembered"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type string_attribute"),
    opt("boolean_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("value", Kind::Flag, "false", "its value"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type boolean_attribute"),
    opt("trace_state", Kind::Section(&[&[
        opt("key", Kind::Text, "", "key of the tracestate"),
        opt("values", Kind::Texts, "", "one of these values keeps a trace"),
    ]]), "", "options of type trace_state"),
    opt("rate_limiting", Kind::Section(&[&[
        opt("spans_per_second", Kind::Int(0, COUNT_MAX), "0", "spans a second that are kept"),
        opt("burst_capacity", Kind::Int(0, COUNT_MAX), "0", "and at once; 0: twice as many"),
    ]]), "", "options of type rate_limiting"),
    opt("bytes_limiting", Kind::Section(&[&[
        opt("bytes_per_second", Kind::Int(0, COUNT_MAX), "0", "bytes a second that are kept"),
        opt("burst_capacity", Kind::Int(0, COUNT_MAX), "0", "and at once; 0: twice as many"),
    ]]), "", "options of type bytes_limiting"),
    opt("span_count", Kind::Section(&[&[
        opt("min_spans", Kind::Int(0, COUNT_MAX), "0", "least number of spans"),
        opt("max_spans", Kind::Int(0, COUNT_MAX), "0", "largest number of spans; 0: no bound"),
    ]]), "", "options of type span_count"),
    opt("ottl_condition", Kind::Section(&[&[
        opt("error_mode", Kind::WordAnyCase(&["propagate", "ignore", "silent"]), "propagate", "what becomes of a condition that fails"),
        opt("span", Kind::Texts, "", "conditions of spans; one of them keeps a trace"),
        opt("spanevent", Kind::Texts, "", "conditions of events"),
        opt("span_event", Kind::Any, "", "no option").refused("write 'spanevent'"),
        opt("span_conditions", Kind::Any, "", "no option").refused("write 'span'"),
        opt("span_event_conditions", Kind::Any, "", "no option").refused("write 'spanevent'"),
        opt("conditions", Kind::Any, "", "no option").refused("write 'span' or 'spanevent'"),
    ]]), "", "options of type ottl_condition"),
];
