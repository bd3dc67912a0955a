//! The account of all records: started = exported + sampled out + dropped (by cause) + those on
//! their way. A record on its way is in a worker, in the queue, or in flight.
//!
//! Workers add their counts when they hand over a batch, exporters when a batch has ended; readers
//! see the sums.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use otlp::Signal;

/// Why a record was not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// A sampler or a policy did not keep it. This is not an error.
    SampledOut,
    /// Its stream exceeded a limit.
    StreamLimit,
    /// The queue was full.
    QueueFull,
    /// The receiver refused it for good, or every retry failed.
    ExportFailed,
    /// The receiver accepted the request and rejected some of its records (OTLP partial success).
    Rejected,
    /// The process ended before it was sent.
    Shutdown,
}

impl Loss {
    /// All causes, in the order of their declaration.
    pub const ALL: [Loss; 6] = [
        Loss::SampledOut,
        Loss::StreamLimit,
        Loss::QueueFull,
        Loss::ExportFailed,
        Loss::Rejected,
        Loss::Shutdown,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Loss::SampledOut => "sampled_out",
            Loss::StreamLimit => "stream_limit",
            Loss::QueueFull => "queue_full",
            Loss::ExportFailed => "export_failed",
            Loss::Rejected => "rejected",
            Loss::Shutdown => "shutdown",
        }
    }
}

/// The account of one signal of one pipeline.
#[derive(Debug, Default)]
pub struct Account {
    started: AtomicU64,
    exported: AtomicU64,
    in_flight: AtomicU64,
    lost: [AtomicU64; Loss::ALL.len()],
}

impl Account {
    /// Adds started records.
    pub fn add_started(&self, records: u64) {
        self.started.fetch_add(records, Relaxed);
    }

    /// Adds records that the receiver has.
    pub fn add_exported(&self, records: u64) {
        self.exported.fetch_add(records, Relaxed);
    }

    /// Adds records lost for this cause.
    pub fn add_lost(&self, why: Loss, records: u64) {
        self.lost[why as usize].fetch_add(records, Relaxed);
    }

    /// Adds records that an exporter took out of the queue.
    pub fn add_in_flight(&self, records: u64) {
        self.in_flight.fetch_add(records, Relaxed);
    }

    /// Subtracts in-flight records that were exported or lost. Call this after adding them there: a
    /// reader may then count them twice, but never misses them.
    pub fn end_flight(&self, records: u64) {
        self.in_flight.fetch_sub(records, Relaxed);
    }

    /// Records in flight: taken by an exporter, and neither exported nor lost yet.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Started records.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    /// Exported records.
    #[must_use]
    pub fn exported(&self) -> u64 {
        self.exported.load(Relaxed)
    }

    /// Records lost for this cause.
    #[must_use]
    pub fn lost(&self, why: Loss) -> u64 {
        self.lost[why as usize].load(Relaxed)
    }
}
