//! The account of all records: started = exported + sampled out + dropped, by cause, and what is on its way: in a worker's
//! hands, waiting in the queue, or in flight.
//!
//! Workers add what they counted when they hand a batch over, exporters when a batch has ended; a reader sees sums.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Data points.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// `traces`, `metrics` or `logs`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
            Signal::Logs => "logs",
        }
    }
}

/// What became of a record that was not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// A sampler or a policy did not keep it. No fault.
    SampledOut,
    /// Its stream had more than it may have.
    StreamLimit,
    /// The queue was full.
    QueueFull,
    /// The receiver refused it for good, or every retry failed.
    ExportFailed,
    /// The receiver took the request and refused some of its records (OTLP partial success).
    Rejected,
    /// The process ended before it could be sent.
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
    /// Records that began.
    pub fn add_started(&self, records: u64) {
        self.started.fetch_add(records, Relaxed);
    }

    /// Records that the receiver has.
    pub fn add_exported(&self, records: u64) {
        self.exported.fetch_add(records, Relaxed);
    }

    /// Records that ended otherwise.
    pub fn add_lost(&self, why: Loss, records: u64) {
        self.lost[why as usize].fetch_add(records, Relaxed);
    }

    /// Records that an exporter took out of the queue.
    pub fn add_in_flight(&self, records: u64) {
        self.in_flight.fetch_add(records, Relaxed);
    }

    /// Records that an exporter took, and that are exported or lost now. To be called after they were added there, so that
    /// a reader may find them twice, but never nowhere.
    pub fn end_flight(&self, records: u64) {
        self.in_flight.fetch_sub(records, Relaxed);
    }

    /// Records that an exporter took, and that are neither exported nor lost yet.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Records that began.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    /// Records that the receiver has.
    #[must_use]
    pub fn exported(&self) -> u64 {
        self.exported.load(Relaxed)
    }

    /// Records that ended so.
    #[must_use]
    pub fn lost(&self, why: Loss) -> u64 {
        self.lost[why as usize].load(Relaxed)
    }
}
