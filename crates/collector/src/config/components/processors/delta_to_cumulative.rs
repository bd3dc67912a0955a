//! `deltatocumulative`: deltas are added up.

use super::{Processor, ProcessorSettings};
use crate::config::components::{Entry, METRICS, Parse, name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};

/// Settings of the addition of deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaToCumulative {
    /// A stream without data points for so long is forgotten.
    pub max_stale_ns: u64,
    /// Streams that are remembered at most.
    pub streams_max: usize,
}

impl ProcessorSettings for DeltaToCumulative {}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("max_stale", Kind::Duration, "5m", "a stream without data points for so long is forgotten"),
    opt("max_streams", Kind::Int(0, COUNT_MAX), "9223372036854775807", "streams that are remembered at most (never more than 1048576); data points of further ones are dropped"),
    opt("storage", Kind::Text, "", "where sums are kept between two starts").refused("sums are kept in memory only"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("deltatocumulative"), name("delta_to_cumulative")],
    doc: "adds up deltas of sums and histograms",
    takes: METRICS,
    carries: METRICS,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let settings = DeltaToCumulative {
        max_stale_ns: section.duration_ns("max_stale"),
        streams_max: section.int("max_streams"),
    };
    if settings.max_stale_ns == 0 {
        section.error("max_stale", "must be a positive duration");
    }
    Processor::new(settings)
}
