//! What filters record of a stream.

use telemetry::Trace;
use telemetry::record::{SpanIndex, Tape};

/// What one filter recorded of a stream.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Its index among all filters.
    pub filter: usize,
    pub trace: Trace,
    /// Data that is not recorded yet, because it is not known whether it will be needed.
    pub tape: Tape,
    /// A fault or `otel-stop` ended the filter's work for this stream.
    pub stopped: bool,
    /// Events with scopes that have not happened yet. The filter sees each event once, even if it
    /// began later than another filter.
    pub events: u32,
    /// `option tracing`
    pub requests: Requests,
}

/// The open spans of a request and of its current try.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// The span of the request.
    pub server: Option<SpanIndex>,
    /// The span of the current try.
    pub client: Option<SpanIndex>,
    pub tries: u32,
}

/// A bit beside the events of a set: the filter records spans of tries.
pub(crate) const FOLLOWS_TRIES: u32 = 1 << 31;
const _: () =
    assert!((telemetry::program::Event::ALL.len() as u32) < FOLLOWS_TRIES.trailing_zeros());

/// The filters that follow a stream.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    /// Events with scopes that have not happened yet ([`telemetry::Event::bit`]).
    pub events: u32,
    /// The recorded data; a filter's entry is taken out while the filter runs.
    pub attached: Vec<Option<Box<Attached>>>,
    /// The frontend's filters have decided whether they follow the stream.
    pub begun: bool,
    /// The server's side began ([`telemetry::Event::ServerSessionStart`]).
    pub server_began: bool,
}

impl Tracing {
    /// Resets it and keeps the memory. The attached data was taken at the stream's end.
    pub fn reset(&mut self) {
        debug_assert!(self.attached.is_empty());
        (self.events, self.begun, self.server_began) = (0, false, false);
    }
}
