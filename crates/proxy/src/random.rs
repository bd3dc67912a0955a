//! The worker's random numbers. They come from a seed that the driver's owner gives.

use std::cell::Cell;

/// SplitMix64.
#[derive(Debug)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Cell::new(seed))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        let seed = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(seed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
