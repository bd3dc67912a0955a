//! The answers to queries, which are serialized to JSON. Times are milliseconds of the UNIX epoch,
//! durations are milliseconds, and identifiers are lower-case hexadecimal.

use serde::Serialize;
use serde_json::{Map, Value};

/// The content of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeldNow {
    /// The number of traces.
    pub traces: u64,
    /// The number of their spans.
    pub spans: u64,
    /// Bytes that they take in memory, including shared texts.
    pub bytes: u64,
    /// The limit of these bytes.
    pub bytes_max: u64,
    /// The maximum age of a trace.
    pub age_max_ms: u64,
    /// The arrival of the oldest trace; None if there is none.
    pub oldest_ms: Option<u64>,
    /// Spans that could not be parsed, since the start.
    pub unreadable: u64,
    /// Spans that did not fit in their traces, since the start.
    pub left_out: u64,
}

/// A trace in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceRow {
    /// Its identifier.
    pub id: String,
    /// The earliest start of its spans.
    pub start_ms: f64,
    /// The time from there to their latest end.
    pub duration_ms: f64,
    /// The service of its root span, or of the earliest span if the root has not arrived.
    pub service: String,
    /// The name of that span.
    pub name: String,
    /// Its `http.route`.
    pub route: Option<String>,
    /// Its HTTP status.
    pub status: Option<u16>,
    /// Whether a span has the status `Error`.
    pub error: bool,
    /// The number of stored spans.
    pub spans: u64,
    /// Whether it was kept; None if it is not decided yet.
    pub kept: Option<bool>,
    /// The policy that decided.
    pub policy: Option<String>,
}

/// The traces that match a query, newest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceList {
    /// At most as many as the query requested.
    pub traces: Vec<TraceRow>,
    /// The number of all matches.
    pub matched: u64,
    /// The content of the store.
    pub held: HeldNow,
}

/// One trace with all its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceDetail {
    /// Its identifier.
    pub id: String,
    /// See [`TraceRow::kept`].
    pub kept: Option<bool>,
    /// See [`TraceRow::policy`].
    pub policy: Option<String>,
    /// The earliest start.
    pub start_ms: f64,
    /// The time from there to the latest end.
    pub duration_ms: f64,
    /// The number of spans that did not fit.
    pub left_out: u64,
    /// The spans in the order of their starts.
    pub spans: Vec<SpanDetail>,
}

/// A span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanDetail {
    /// Its identifier.
    pub id: String,
    /// The identifier of its parent; None for a root.
    pub parent: Option<String>,
    /// `service.name` of its resource.
    pub service: String,
    /// Its name.
    pub name: String,
    /// `internal`, `server`, `client`, `producer`, `consumer` or `unspecified`.
    pub kind: &'static str,
    /// Its start.
    pub start_ms: f64,
    /// The time from the start of the trace, exact to the nanosecond.
    pub offset_ms: f64,
    /// Its duration.
    pub duration_ms: f64,
    /// Its status.
    pub status: Status,
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// Its events.
    pub events: Vec<EventDetail>,
    /// Its links.
    pub links: Vec<Link>,
    /// Attributes of its resource.
    pub resource: Map<String, Value>,
    /// The instrumentation scope.
    pub scope: Scope,
    /// `tracestate`
    pub trace_state: String,
}

/// Status of a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// `unset`, `ok` or `error`.
    pub code: &'static str,
    /// The error message.
    pub message: String,
}

/// An event of a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventDetail {
    /// Its name.
    pub name: String,
    /// Its time.
    pub time_ms: f64,
    /// The time from the start of the trace.
    pub offset_ms: f64,
    /// Its attributes.
    pub attributes: Map<String, Value>,
}

/// A link to another span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// The other trace.
    pub trace: String,
    /// The span in it.
    pub span: String,
    /// The link's attributes.
    pub attributes: Map<String, Value>,
}

/// An instrumentation scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Latency over time: the number of traces that began in each column and have the duration of each
/// row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMap {
    /// The start of the first column.
    pub since: u64,
    /// The end of the last column.
    pub until: u64,
    /// Bounds of the rows, one more than there are rows: row `i` has the durations from bound `i`
    /// to below bound `i + 1`.
    pub bounds_ms: Vec<f64>,
    /// The columns from left to right, each with its rows from the shortest durations on.
    pub columns: Vec<Vec<u32>>,
    /// The traces with an error among them.
    pub errors: Vec<Vec<u32>>,
    /// The number of all matches.
    pub matched: u64,
}

/// Values for the search fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Services {
    /// Sorted by name.
    pub services: Vec<Service>,
    /// Policies that decided on stored traces, sorted by name.
    pub policies: Vec<String>,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Names of its spans.
    pub names: Vec<String>,
    /// Their routes.
    pub routes: Vec<String>,
}

/// The result of other policies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRun {
    /// Evaluated traces.
    pub traces: u64,
    /// Traces that the policies keep.
    pub kept: u64,
    /// Spans of all evaluated traces.
    pub spans: u64,
    /// Spans of the traces that the policies keep.
    pub kept_spans: u64,
    /// Bytes of all spans, as OTLP.
    pub bytes: u64,
    /// Bytes of the spans that the policies keep.
    pub kept_bytes: u64,
    /// Traces among the evaluated ones that the running configuration kept.
    pub running_kept: u64,
    /// Traces among them on which it has not decided yet.
    pub undecided: u64,
    /// The policies; those that drop come first.
    pub policies: Vec<PolicyOutcome>,
    /// The arrival of the oldest evaluated trace.
    pub since_ms: u64,
    /// Whether older traces of the requested period were skipped, because enough spans were
    /// evaluated.
    pub is_cut: bool,
    /// Some of the kept traces, newest first.
    pub sample: Vec<TraceRow>,
}

/// The result of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyOutcome {
    /// Its name.
    pub name: String,
    /// Traces for which this policy is recorded as the one that keeps them.
    pub kept: u64,
    /// Traces that it votes to keep, including those for which another policy is recorded.
    pub sampled: u64,
    /// Traces that it drops.
    pub dropped: u64,
    /// Evaluations that failed.
    pub errors: u64,
}
