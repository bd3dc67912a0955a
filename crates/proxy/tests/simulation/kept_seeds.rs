//! Seeds that found something, each in its configuration, with what it was; they run first.

/// A configuration's name, a seed, and what it found.
pub const KEPT: &[(&str, u64, &str)] = &[];
