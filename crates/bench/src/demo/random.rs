//! Random numbers for what the demo shows: nothing depends on their quality.

use std::hash::{BuildHasher as _, RandomState};

/// SplitMix64, seeded by the system.
pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        Random(RandomState::new().hash_one(0_u8))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Times between events that come by themselves, around a mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}
