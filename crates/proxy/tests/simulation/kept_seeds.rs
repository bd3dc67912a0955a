//! Seeds that found something, with what it was; they run first.

/// A seed and what it found.
pub const KEPT: &[(u64, &str)] = &[];
