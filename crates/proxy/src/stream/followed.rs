//! What filters record of a stream.

use telemetry::Trace;
use telemetry::record::{SpanIndex, Tape};

/// What a filter recorded of a stream.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Its index among all filters.
    pub filter: usize,
    pub trace: Trace,
    /// What is not recorded yet, because nobody knows whether it will be needed.
    pub tape: Tape,
    /// A fault or `otel-stop` ended the filter's work for this stream.
    pub stopped: bool,
    /// Events with scopes that have not come yet: it sees each once, also where another filter began later.
    pub events: u32,
    /// `option tracing`
    pub requests: Requests,
}

/// The spans of a request and of its tries that go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// The request's.
    pub server: Option<SpanIndex>,
    /// The try's that is under way.
    pub client: Option<SpanIndex>,
    pub tries: u32,
}

/// Beside the events in their set: tries have spans of their own.
pub(crate) const FOLLOWS_TRIES: u32 = 1 << 31;
const _: () =
    assert!((telemetry::program::Event::ALL.len() as u32) < FOLLOWS_TRIES.trailing_zeros());

/// What a stream's filters follow.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    /// Events with scopes that have not come yet ([`telemetry::Event::bit`]).
    pub events: u32,
    /// One that is at work is taken out.
    pub attached: Vec<Option<Box<Attached>>>,
    /// The frontend's filters were asked.
    pub begun: bool,
    /// The server's side began ([`telemetry::Event::ServerSessionStart`]).
    pub server_began: bool,
}

impl Tracing {
    /// Back to a fresh state, the memory kept. What was attached was taken at the stream's end.
    pub fn reset(&mut self) {
        debug_assert!(self.attached.is_empty());
        (self.events, self.begun, self.server_began) = (0, false, false);
    }
}
