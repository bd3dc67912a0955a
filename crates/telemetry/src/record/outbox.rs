//! What a worker has encoded and counted, and not yet handed over.

use crate::queue::Batch;

/// Encoded records of one worker and one filter.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Spans.
    pub spans: Batch,
    /// Log records.
    pub logs: Batch,
    /// What is to be added to the accounts.
    pub counts: Counts,
}

/// Records since the last time: what began, and what of it was not encoded.
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
    /// Nothing is to be handed over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts == Counts::default()
    }
}
