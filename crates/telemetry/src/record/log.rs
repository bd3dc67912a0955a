//! Log records of a stream.

use super::{Next, Text};
use crate::SpanContext;

/// A log record as it is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// Its line in the program: scope and index.
    pub line: (u32, u32),
    /// When it happened.
    pub wall_ns: u64,
    /// When it was recorded.
    pub observed_ns: u64,
    /// Its span; invalid if it has none.
    pub span: SpanContext,
    /// Its text.
    pub body: Text,
    pub(super) first_attribute: Next,
    pub(super) last_attribute: Next,
    pub(super) attributes_dropped: u16,
}

impl Log {
    /// A record without attributes.
    #[must_use]
    pub fn new(
        line: (u32, u32),
        wall_ns: u64,
        observed_ns: u64,
        span: SpanContext,
        body: Text,
    ) -> Log {
        Log {
            line,
            wall_ns,
            observed_ns,
            span,
            body,
            first_attribute: 0,
            last_attribute: 0,
            attributes_dropped: 0,
        }
    }
}
