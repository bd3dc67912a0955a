//! Encoded and counted records that a worker has not handed over yet.

use crate::queue::Batch;

/// Encoded records of one worker and one filter.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Spans.
    pub spans: Batch,
    /// Log records.
    pub logs: Batch,
    /// The counts to be added to the accounts.
    pub counts: Counts,
}

/// Counts since the last hand-over: started records, and those of them that were not encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub spans_started: u64,
    pub spans_sampled_out: u64,
    pub spans_over_limit: u64,
    pub logs_started: u64,
    pub logs_sampled_out: u64,
    pub logs_over_limit: u64,
}

impl Outbox {
    /// Whether there is nothing to hand over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts == Counts::default()
    }
}
