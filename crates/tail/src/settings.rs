//! What `tail_sampling` and `groupbytrace` are told: their options, typed, with the Collector's
//! defaults.
//!
//! Made by whoever reads a configuration; compiled by the engine. Durations are in nanoseconds.

/// A second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// `tail_sampling`
#[derive(Clone, Debug, PartialEq)]
pub struct TailSampling {
    /// `policies`, in their order.
    pub policies: Vec<Policy>,
    /// `decision_wait`
    pub decision_wait_ns: u64,
    /// `decision_wait_after_root_received`; 0 is off.
    pub wait_after_root_ns: u64,
    /// `num_traces`
    pub traces_max: u64,
    /// `block_on_overflow`
    pub block_on_overflow: bool,
    /// `expected_new_traces_per_sec`
    pub expected_new_traces_per_s: u64,
    /// `decision_cache.sampled_cache_size`
    pub sampled_cache_size: u64,
    /// `decision_cache.non_sampled_cache_size`
    pub non_sampled_cache_size: u64,
    /// `sample_on_first_match`
    pub sample_on_first_match: bool,
    /// `sampling_strategy`
    pub strategy: Strategy,
    /// `drop_pending_traces_on_shutdown`
    pub drop_pending_on_shutdown: bool,
    /// `maximum_trace_size_bytes`; 0 is no bound.
    pub trace_bytes_max: u64,
    /// `num_shards`
    pub shards: u32,
    /// `storage`: where what waits is kept over the end of the process. The engine does not look at
    /// it.
    pub storage: Option<String>,
    /// The clock and the random numbers of conditions.
    pub outside: ottl::Outside,
}

impl Default for TailSampling {
    fn default() -> TailSampling {
        TailSampling {
            policies: Vec::new(),
            decision_wait_ns: 30 * SECOND_NS,
            wait_after_root_ns: 0,
            traces_max: 50_000,
            block_on_overflow: false,
            expected_new_traces_per_s: 0,
            sampled_cache_size: 0,
            non_sampled_cache_size: 0,
            sample_on_first_match: false,
            strategy: Strategy::TraceComplete,
            drop_pending_on_shutdown: false,
            trace_bytes_max: 0,
            shards: 1,
            storage: None,
            outside: ottl::Outside::default(),
        }
    }
}

/// `sampling_strategy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// `trace-complete`
    #[default]
    TraceComplete,
    /// `span-ingest`
    SpanIngest,
}

/// `groupbytrace`
#[derive(Clone, Debug, PartialEq)]
pub struct GroupByTrace {
    /// `wait_duration`
    pub wait_ns: u64,
    /// `num_traces`
    pub traces_max: u64,
    /// `num_workers`
    pub workers: u32,
    /// `discard_orphans`
    pub discard_orphans: bool,
    /// `store_on_disk`
    pub store_on_disk: bool,
    /// `emit_strategy`
    pub emit: Emit,
    /// `storage`: where what waits is kept over the end of the process. The engine does not look at
    /// it.
    pub storage: Option<String>,
}

impl Default for GroupByTrace {
    fn default() -> GroupByTrace {
        GroupByTrace {
            wait_ns: SECOND_NS,
            traces_max: 1_000_000,
            workers: 1,
            discard_orphans: false,
            store_on_disk: false,
            emit: Emit::Trace,
            storage: None,
        }
    }
}

/// `emit_strategy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// `trace`
    #[default]
    Trace,
    /// `service`
    Service,
}

/// An entry of `policies`, or a sub-policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// `name`
    pub name: String,
    /// `type` and its options.
    pub kind: PolicyKind,
}

/// What a policy asks. `and`, `not`, `drop` and `composite` hold others.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// `always_sample`
    AlwaysSample,
    /// `latency`
    Latency {
        /// `threshold_ms`
        threshold_ms: u64,
        /// `upper_threshold_ms`; 0 is none.
        upper_threshold_ms: u64,
    },
    /// `numeric_attribute`
    NumericAttribute {
        /// `key`
        key: String,
        /// `min_value`, where it is set (not 0).
        min: Option<i64>,
        /// `max_value`, likewise.
        max: Option<i64>,
        /// `invert_match`
        invert: bool,
    },
    /// `probabilistic`
    Probabilistic {
        /// `sampling_percentage`, 0 to 100.
        percentage: f64,
        /// `hash_salt`; empty is the Collector's default.
        hash_salt: String,
    },
    /// `status_code`
    StatusCode(StatusCodes),
    /// `string_attribute`
    StringAttribute {
        /// `key`
        key: String,
        /// `values`: texts, or regular expressions.
        values: Vec<String>,
        /// `enabled_regex_matching`
        regex: bool,
        /// `invert_match`
        invert: bool,
    },
    /// `boolean_attribute`
    BooleanAttribute {
        /// `key`
        key: String,
        /// `value`
        value: bool,
        /// `invert_match`
        invert: bool,
    },
    /// `trace_state`
    TraceState {
        /// `key`
        key: String,
        /// `values`
        values: Vec<String>,
    },
    /// `trace_flags`
    TraceFlags,
    /// `rate_limiting`
    RateLimiting {
        /// `spans_per_second`
        spans_per_second: u64,
        /// `burst_capacity`; 0 is twice the rate.
        burst_capacity: u64,
    },
    /// `bytes_limiting`
    BytesLimiting {
        /// `bytes_per_second`
        bytes_per_second: u64,
        /// `burst_capacity`; 0 is twice the rate.
        burst_capacity: u64,
    },
    /// `span_count`
    SpanCount {
        /// `min_spans`
        min: u64,
        /// `max_spans`; 0 is none.
        max: u64,
    },
    /// `ottl_condition`: conditions as they are written.
    OttlCondition {
        /// `span`
        span: Vec<String>,
        /// `spanevent`
        span_event: Vec<String>,
        /// `error_mode`
        error_mode: ErrorMode,
    },
    /// `and`
    And(Vec<Policy>),
    /// `not`
    Not(Box<Policy>),
    /// `drop`
    Drop(Vec<Policy>),
    /// `composite`
    Composite {
        /// `max_total_spans_per_second`
        spans_per_second_max: u64,
        /// `composite_sub_policy`, in their order.
        policies: Vec<Policy>,
        /// `rate_allocation`: a sub-policy's name and its per cent.
        rates: Vec<(String, u64)>,
    },
}

impl Policy {
    /// The name of a policy that is, or holds, one that counts over spans or traces: its vote can
    /// change from sampled to not sampled as spans arrive, or depends on other traces.
    #[must_use]
    pub fn stateful(&self) -> Option<&str> {
        let is_stateful = match &self.kind {
            PolicyKind::RateLimiting { .. }
            | PolicyKind::BytesLimiting { .. }
            | PolicyKind::Composite { .. } => true,
            PolicyKind::Latency {
                upper_threshold_ms, ..
            } => *upper_threshold_ms > 0,
            PolicyKind::SpanCount { max, .. } => *max > 0,
            PolicyKind::And(policies) | PolicyKind::Drop(policies) => {
                return policies.iter().find_map(Policy::stateful);
            }
            PolicyKind::Not(policy) => return policy.stateful(),
            _ => false,
        };
        is_stateful.then_some(&self.name)
    }
}

impl PolicyKind {
    /// `type`
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            PolicyKind::AlwaysSample => "always_sample",
            PolicyKind::Latency { .. } => "latency",
            PolicyKind::NumericAttribute { .. } => "numeric_attribute",
            PolicyKind::Probabilistic { .. } => "probabilistic",
            PolicyKind::StatusCode(_) => "status_code",
            PolicyKind::StringAttribute { .. } => "string_attribute",
            PolicyKind::BooleanAttribute { .. } => "boolean_attribute",
            PolicyKind::TraceState { .. } => "trace_state",
            PolicyKind::TraceFlags => "trace_flags",
            PolicyKind::RateLimiting { .. } => "rate_limiting",
            PolicyKind::BytesLimiting { .. } => "bytes_limiting",
            PolicyKind::SpanCount { .. } => "span_count",
            PolicyKind::OttlCondition { .. } => "ottl_condition",
            PolicyKind::And(_) => "and",
            PolicyKind::Not(_) => "not",
            PolicyKind::Drop(_) => "drop",
            PolicyKind::Composite { .. } => "composite",
        }
    }
}

/// `status_codes`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StatusCodes {
    pub unset: bool,
    pub ok: bool,
    pub error: bool,
}

/// `error_mode` of OTTL: what becomes of a condition that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// `propagate`: no vote, and counted.
    #[default]
    Propagate,
    /// `ignore`: logged, and as if it were false.
    Ignore,
    /// `silent`: as if it were false.
    Silent,
}
