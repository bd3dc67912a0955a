//! `sending_queue`: what waits before an exporter.

use crate::config::components::extensions::file_storage::FileStorage;
use crate::config::components::id::ComponentId;
use crate::config::components::shared::context::keys;
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, Table, opt};

/// What waits to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// What `size_max` counts.
    pub sizer: Sizer,
    /// The most that waits.
    pub size_max: u64,
    /// A full queue makes senders wait; else it refuses.
    pub block_on_overflow: bool,
    /// Senders wait for the outcome.
    pub wait_for_result: bool,
    /// The extension that keeps it over a restart.
    pub storage: Option<ComponentId>,
    /// A folder of its own that does.
    pub folder: Option<FileStorage>,
    /// Requests in flight at a time.
    pub consumers: u32,
    /// How requests are put together, where they are.
    pub batch: Option<QueueBatch>,
}

impl Queue {
    /// Whether a sender waits until its data is stored, or delivered.
    #[must_use]
    pub fn makes_wait(&self) -> bool {
        self.is_stored() || self.wait_for_result
    }

    /// Whether senders wait for room. What puts requests together before the queue, or writes them,
    /// has no place for them.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.block_on_overflow && !self.is_stored() && self.batch.is_none()
    }

    /// Whether it is kept over a restart.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.storage.is_some() || self.folder.is_some()
    }
}

/// What a size counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizer {
    /// Batches as they came.
    Requests,
    /// Spans, data points, log records.
    Items,
    /// Bytes of the protocol.
    Bytes,
}

/// `batch` of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueBatch {
    /// A batch is sent after this time.
    pub flush_timeout_ns: u64,
    /// What the sizes count.
    pub sizer: Sizer,
    /// It is sent from this size on.
    pub size_min: u64,
    /// Its largest size; 0: no bound.
    pub size_max: u64,
    /// What has the same values of these header fields goes together, by names in small letters;
    /// empty: everything.
    pub metadata_keys: Vec<String>,
}

const SIZERS: [(&str, Sizer); 3] = [
    ("requests", Sizer::Requests),
    ("items", Sizer::Items),
    ("bytes", Sizer::Bytes),
];
#[rustfmt::skip]
const SIZER_WORDS: &[&str] = &["requests", "items", "bytes"];

#[rustfmt::skip]
const PARTITION: &[Opt] = &[opt("metadata_keys", Kind::Texts, "", "header fields that tell batches apart, and stay known behind them")];

#[rustfmt::skip]
const BATCH: &[Opt] = &[
    opt("flush_timeout", Kind::Duration, "200ms", "a batch is sent after this time"),
    opt("sizer", Kind::Word(&["items", "bytes"]), "items", "what the sizes count; the queue's where only that is written"),
    opt("min_size", Kind::Int(0, COUNT_MAX), "8192", "it is sent from this size on"),
    opt("max_size", Kind::Int(0, COUNT_MAX), "0", "its largest size; 0: no bound; one record may be larger in bytes"),
    opt("partition", Kind::Section(&[PARTITION]), "", "which data go together"),
];

/// Options of `sending_queue`.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("enabled", Kind::Flag, "true", "data wait in a queue; else senders do, until what they sent was sent on, or given up, as with `wait_for_result`"),
    opt("sizer", Kind::Word(SIZER_WORDS), "requests", "what `queue_size` counts"),
    opt("queue_size", Kind::Int(1, COUNT_MAX), "1000", "the most that waits"),
    opt("num_consumers", Kind::Int(1, u32::MAX as i64), "10", "requests in flight at a time"),
    opt("block_on_overflow", Kind::Flag, "false", "a full queue makes senders wait for room, 1024 requests at most; else, and with `storage` or `batch`, it tells them when to come back"),
    opt("wait_for_result", Kind::Flag, "false", "senders are answered when what they sent was sent on, or given up; not where a processor in between holds it (`batch`, a sampler)"),
    opt("storage", Kind::Text, "", "id of the extension that keeps it over a restart"),
    opt("batch", Kind::Maybe(&[BATCH]), "", "requests are put together before they wait (and, with `storage`, before they are written and answered); they are not where it is not written"),
    opt("blocking", Kind::Flag, "false", "old name of `block_on_overflow`").deprecated("write 'block_on_overflow'"),
];

/// From its section; nothing where it is disabled.
pub(crate) fn queue(section: &Section<'_>) -> Option<Queue> {
    if !section.flag("enabled") {
        return None;
    }
    let sizer = section.choice("sizer", &SIZERS);
    let queue = Queue {
        sizer,
        size_max: section.int("queue_size"),
        block_on_overflow: section.flag("block_on_overflow") || section.flag("blocking"),
        wait_for_result: section.flag("wait_for_result"),
        storage: super::storage::storage(section),
        folder: None,
        consumers: section.int("num_consumers"),
        batch: section
            .maybe("batch")
            .map(|batch| queue_batch(&batch, section, sizer)),
    };
    if queue.storage.is_some() && queue.wait_for_result {
        section.error("wait_for_result", "a queue in a 'storage' cannot wait");
    }
    if queue.block_on_overflow && !queue.blocks() {
        section.warn(
            "block_on_overflow",
            "has no effect with 'storage' or 'batch': a full queue tells senders when to come back",
        );
    }
    if let Some(batch) = &queue.batch
        && batch.sizer == queue.sizer
        && batch.size_min > queue.size_max
    {
        section
            .section("batch")
            .error("min_size", "is larger than 'queue_size'");
    }
    Some(queue)
}

fn queue_batch(batch: &Section<'_>, queue: &Section<'_>, queue_sizer: Sizer) -> QueueBatch {
    let inherits = batch.written("sizer").is_none() && queue.written("sizer").is_some();
    let is_filled = queue.written("batch").is_some();
    let made = QueueBatch {
        flush_timeout_ns: batch.duration_ns("flush_timeout"),
        sizer: if inherits && is_filled {
            queue_sizer
        } else {
            batch.choice("sizer", &SIZERS)
        },
        size_min: batch.int("min_size"),
        size_max: batch.int("max_size"),
        metadata_keys: keys(&batch.section("partition"), "metadata_keys"),
    };
    if made.sizer == Sizer::Requests {
        batch.error("sizer", "must be items or bytes");
    }
    if made.flush_timeout_ns == 0 {
        batch.error("flush_timeout", "must be more than 0");
    }
    if made.size_max > 0 && made.size_max < made.size_min {
        batch.error("max_size", "must not be less than 'min_size'");
    }
    made
}
