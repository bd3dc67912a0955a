//! `batch`: records put together before they are sent on.

use super::Processor;
use crate::config::components::shared::grpc::METADATA_REASON;
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// When a batch is sent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// At this age; 0: at once.
    pub timeout_ns: u64,
    /// From this many records on; 0: at once.
    pub send_size: u32,
    /// A batch has no more than these; 0: no bound.
    pub send_size_max: u32,
}

const COUNT_MAX: i64 = u32::MAX as i64;
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("timeout", Kind::Duration, "200ms", "a batch is sent on at this age; 0: at once"),
    opt("send_batch_size", Kind::Int(0, COUNT_MAX), "8192", "or from this many records on; 0: at once"),
    opt("send_batch_max_size", Kind::Int(0, COUNT_MAX), "0", "a batch has no more than these; 0: no bound"),
    opt("metadata_keys", Kind::Texts, "", "a client's metadata that tell batches apart").refused(METADATA_REASON),
    opt("metadata_cardinality_limit", Kind::Int(0, COUNT_MAX), "1000", "how many batches they may make").no_effect("there are no 'metadata_keys'"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("batch")],
    doc: "puts records together",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let batch = Batch {
        timeout_ns: section.duration_ns("timeout"),
        send_size: section.int("send_batch_size"),
        send_size_max: section.int("send_batch_max_size"),
    };
    if batch.send_size_max > 0 && batch.send_size_max < batch.send_size {
        let message = "must not be less than 'send_batch_size'";
        section.error("send_batch_max_size", message);
    }
    Processor::Batch(batch)
}
