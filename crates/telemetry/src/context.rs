//! The context of a span, which one process sends to the next.

use crate::{SpanId, TraceId};

/// The identity of a span (W3C Trace Context §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// `trace-flags`.
    pub flags: u8,
    /// It was received from another process.
    pub remote: bool,
}

/// The flag of a recorded span (W3C Trace Context §3.2.2.5.1).
pub const SAMPLED: u8 = 1;

impl SpanContext {
    /// Whether it names a span.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.trace_id.is_valid() && self.span_id.is_valid()
    }

    /// Whether its sender records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}
