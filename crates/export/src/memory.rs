//! The exporter `memory`: keeps the newest records for readers in the process.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;

use crate::lock::lock;
use crate::request::messages;

/// A ring of encoded records.
#[derive(Debug)]
pub struct Memory {
    records_max: usize,
    ring: Mutex<VecDeque<Vec<u8>>>,
}

impl Memory {
    pub(crate) fn new(records_max: usize) -> Memory {
        Memory {
            records_max,
            ring: Mutex::default(),
        }
    }

    /// Takes all records, the oldest first: each is an OTLP message `Span`, `Metric` or
    /// `LogRecord`.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut ring = lock(&self.ring);
        ring.drain(..).collect()
    }

    pub(crate) fn keep(&self, fields: &[Bytes]) {
        let mut ring = lock(&self.ring);
        for message in fields.iter().flat_map(|fields| messages(fields)) {
            if ring.len() == self.records_max {
                ring.pop_front();
            }
            // Copied, because a slice would keep the buffer of a whole batch.
            ring.push_back(message.to_vec());
        }
    }
}
