//! What queries answer, as it is serialized to JSON. Times are milliseconds of the UNIX epoch, durations milliseconds;
//! identifiers are lower-case hexadecimal.

use serde::Serialize;
use serde_json::{Map, Value};

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeldNow {
    /// Traces.
    pub traces: u64,
    /// Their spans.
    pub spans: u64,
    /// Bytes that they take in memory, with what they share.
    pub bytes: u64,
    /// The most bytes.
    pub bytes_max: u64,
    /// The greatest age of a trace.
    pub age_max_ms: u64,
    /// When the oldest trace came; none: there is none.
    pub oldest_ms: Option<u64>,
    /// Spans that could not be read, since the start.
    pub unreadable: u64,
    /// Spans that their traces had no room for, since the start.
    pub left_out: u64,
}

/// A trace in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceRow {
    /// Its identifier.
    pub id: String,
    /// The earliest start of its spans.
    pub start_ms: f64,
    /// From there to their latest end.
    pub duration_ms: f64,
    /// Service of its root, or of the earliest span where the root did not come.
    pub service: String,
    /// Name of that span.
    pub name: String,
    /// Its `http.route`.
    pub route: Option<String>,
    /// Its status of HTTP.
    pub status: Option<u16>,
    /// A span has the status `Error`.
    pub error: bool,
    /// Spans that are held.
    pub spans: u64,
    /// Whether it was kept; none: it was not decided yet.
    pub kept: Option<bool>,
    /// The policy that decided.
    pub policy: Option<String>,
}

/// Traces that a query matches, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceList {
    /// As many as the query asked for.
    pub traces: Vec<TraceRow>,
    /// All that match.
    pub matched: u64,
    /// What is held in all.
    pub held: HeldNow,
}

/// One trace with everything that is known of it.
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
    /// From there to the latest end.
    pub duration_ms: f64,
    /// Spans that it had no room for.
    pub left_out: u64,
    /// In the order of their starts.
    pub spans: Vec<SpanDetail>,
}

/// A span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanDetail {
    /// Its identifier.
    pub id: String,
    /// Its parent's; none of a root.
    pub parent: Option<String>,
    /// `service.name` of its resource.
    pub service: String,
    /// Its name.
    pub name: String,
    /// `internal`, `server`, `client`, `producer`, `consumer` or `unspecified`.
    pub kind: &'static str,
    /// When it began.
    pub start_ms: f64,
    /// How long after the start of the trace, exact to the nanosecond.
    pub offset_ms: f64,
    /// How long it took.
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
    /// What recorded it.
    pub scope: Scope,
    /// `tracestate`
    pub trace_state: String,
}

/// Status of a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// `unset`, `ok` or `error`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

/// An event of a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventDetail {
    /// Its name.
    pub name: String,
    /// When it was.
    pub time_ms: f64,
    /// How long after the start of the trace.
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

/// Latency over time: how many traces began in each column and took as long as each row says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMap {
    /// Where the first column begins.
    pub since: u64,
    /// Where the last one ends.
    pub until: u64,
    /// Edges of the rows, one more than there are rows: row `i` holds durations from edge `i` on and below edge `i + 1`.
    pub bounds_ms: Vec<f64>,
    /// The columns from left to right, each with its rows from the shortest durations on.
    pub columns: Vec<Vec<u32>>,
    /// Of those, traces with an error.
    pub errors: Vec<Vec<u32>>,
    /// All of them.
    pub matched: u64,
}

/// Words for the search fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Services {
    /// By name.
    pub services: Vec<Service>,
    /// Policies that decided on traces that are held, by name.
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

/// What policies would have kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRun {
    /// Traces that were evaluated.
    pub traces: u64,
    /// Those that the policies keep.
    pub kept: u64,
    /// Spans of all.
    pub spans: u64,
    /// Spans of those that the policies keep.
    pub kept_spans: u64,
    /// Bytes of all spans, as OTLP.
    pub bytes: u64,
    /// Bytes of those that the policies keep.
    pub kept_bytes: u64,
    /// Of the same traces, those that the running configuration kept.
    pub running_kept: u64,
    /// And those that it has not decided yet.
    pub undecided: u64,
    /// Each policy, those that drop first.
    pub policies: Vec<PolicyOutcome>,
    /// When the oldest evaluated trace came.
    pub since_ms: u64,
    /// Older traces of the time asked for were passed over, because enough spans were evaluated.
    pub is_cut: bool,
    /// Some of the traces that are kept, the newest first.
    pub sample: Vec<TraceRow>,
}

/// What one policy said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyOutcome {
    /// Its name.
    pub name: String,
    /// Traces that are kept by it: of those that sample a trace, the policy that is recorded for it.
    pub kept: u64,
    /// Traces that it votes to keep, also where another one is recorded.
    pub sampled: u64,
    /// Traces that it drops.
    pub dropped: u64,
    /// Evaluations that failed.
    pub errors: u64,
}
