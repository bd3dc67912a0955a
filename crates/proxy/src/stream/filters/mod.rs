//! The filters of a channel: what its payload passes between the end that receives it and the end
//! that sends it.
//!
//! Limits let a part of the payload pass, a compressor replaces what passed, and further limits let
//! a part of that pass. Most channels have no filter.

mod compressor;
mod limits;

pub(crate) use compressor::{Compressor, Compressors};
pub(crate) use limits::{FULL, Limit, Limits, rate_of};

/// The filters of one direction, in the order in which payload passes them.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// Limits of the payload as it was received.
    pub limits: Limits,
    pub compressor: Option<Box<Compressor>>,
    /// Limits of what the compressor makes; without one, of the payload as it was received.
    pub output_limits: Limits,
}

impl Filters {
    /// How much of `len` received bytes may pass now.
    pub fn most(&mut self, len: usize, now_us: u64) -> usize {
        let most = self.limits.most(len, now_us);
        if self.compressor.is_some() {
            most
        } else {
            self.output_limits.most(most, now_us)
        }
    }

    /// Notes that `bytes` have passed, which [`Filters::most`] allowed, while `rest` bytes are held
    /// back. Returns how long they wait, milliseconds.
    pub fn take(&mut self, bytes: usize, rest: usize, now_us: u64) -> u64 {
        let wait_ms = self.limits.take(bytes, rest, now_us);
        if self.compressor.is_some() {
            wait_ms
        } else {
            wait_ms.max(self.output_limits.take(bytes, rest, now_us))
        }
    }
}
