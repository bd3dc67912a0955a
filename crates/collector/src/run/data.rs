//! What passes through pipelines.

use bytes::Bytes;

use super::account::Receipt;
use crate::config::Signal;

/// Records on their way.
#[derive(Debug)]
pub struct Batch {
    /// What they are.
    pub signal: Signal,
    /// An `Export*ServiceRequest`: fields number 1, each a `Resource*`. Requests put behind each other are one.
    pub bytes: Bytes,
    /// Spans, data points or log records.
    pub records: u64,
    /// Says what becomes of them.
    pub receipt: Receipt,
}

impl Batch {
    /// The same for another consumer: the records count as settled when both are done.
    #[must_use]
    pub fn shared(&self) -> Batch {
        Batch {
            signal: self.signal,
            bytes: self.bytes.clone(),
            records: self.records,
            receipt: self.receipt.clone(),
        }
    }
}
