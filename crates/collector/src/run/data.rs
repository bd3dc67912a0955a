//! What passes through pipelines.

use std::sync::Arc;

use bytes::Bytes;

use super::account::Receipt;
use super::origin::Origin;
use crate::config::Signal;

/// Records on their way.
#[derive(Debug)]
pub struct Batch {
    /// What they are.
    pub signal: Signal,
    /// An `Export*ServiceRequest`: fields number 1, each a `Resource*`. Requests put behind each
    /// other are one.
    pub bytes: Bytes,
    /// Spans, data points or log records.
    pub records: u64,
    /// Says what becomes of them.
    pub receipt: Receipt,
    /// Where they came from, as long as that is known.
    pub origin: Option<Arc<Origin>>,
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
            origin: self.origin.clone(),
        }
    }

    /// Bytes that it holds in memory.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let origin = self.origin.as_ref().map_or(0, |origin| origin.bytes());
        self.bytes.len() as u64 + origin
    }
}
