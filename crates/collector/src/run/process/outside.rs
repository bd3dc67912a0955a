//! The clock and the random numbers of statements and conditions.

use std::hash::{BuildHasher, RandomState};

use export::clock::now_unix_ns;
use ottl::Outside;

/// The system clock, and random numbers of this process.
pub const OUTSIDE: Outside = Outside {
    now_ns: || i64::try_from(now_unix_ns()).ok(),
    // `RandomState` is seeded by the system and has different keys each time.
    random: || Some(RandomState::new().hash_one(0)),
};
