//! `batch`: records put together before they are sent on.

use super::order::Order;
use super::{Processor, ProcessorSettings};
use crate::config::components::shared::context::keys;
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// When a batch is sent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// At this age; 0: at once.
    pub timeout_ns: u64,
    /// From this many records on; 0: at once.
    pub send_size: u32,
    /// A batch has no more than these; 0: no bound.
    pub send_size_max: u32,
    /// What has the same values of these header fields goes together, by names in small letters;
    /// empty: everything.
    pub metadata_keys: Vec<String>,
    /// Combinations of such values that are taken; 0: no bound.
    pub cardinality_limit: u32,
}

impl ProcessorSettings for Batch {
    fn ask(&self, asked: &mut Asked) {
        asked.fields.extend(self.metadata_keys.iter().cloned());
    }

    fn misplaced(&self, order: &Order<'_>) -> Option<String> {
        let (id, later) = (order.id, order.later_wait()?);
        Some(format!(
            "'{id}' before '{later}' only delays spans, which are put together anew there: put it after"
        ))
    }
}

const COUNT_MAX: i64 = u32::MAX as i64;
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("timeout", Kind::Duration, "200ms", "a batch is sent on at this age; 0: at once"),
    opt("send_batch_size", Kind::Int(0, COUNT_MAX), "8192", "or from this many records on; 0: at once"),
    opt("send_batch_max_size", Kind::Int(0, COUNT_MAX), "0", "a batch has no more than these; 0: no bound"),
    opt("metadata_keys", Kind::Texts, "", "header fields that tell batches apart, and stay known behind them; see [A client's metadata](#a-clients-metadata)"),
    opt("metadata_cardinality_limit", Kind::Int(0, COUNT_MAX), "1000", "combinations of their values that are taken; 0: no bound, and they are forgotten once they are sent"),
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
        metadata_keys: keys(section, "metadata_keys"),
        cardinality_limit: section.int("metadata_cardinality_limit"),
    };
    if batch.send_size_max > 0 && batch.send_size_max < batch.send_size {
        let message = "must not be less than 'send_batch_size'";
        section.error("send_batch_max_size", message);
    }
    Processor::new(batch)
}
