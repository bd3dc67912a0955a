//! The filters of a channel: what its payload passes between the end that receives it and the end
//! that sends it.
//!
//! Limits come first and let a part of the payload pass. A compressor comes last and replaces what
//! passed. Most channels have no filter.

mod compressor;
mod limits;

pub(crate) use compressor::{Compressor, Compressors};
pub(crate) use limits::{FULL, Limit, Limits, rate_of};

/// The filters of one direction, in the order in which payload passes them.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    pub limits: Limits,
    pub compressor: Option<Box<Compressor>>,
}
