//! The clock and the random numbers of statements and conditions.

use std::hash::{BuildHasher, RandomState};

use export::clock::now_unix_ns;
use ottl::Outside;

/// Those of the process.
pub const OUTSIDE: Outside = Outside {
    now_ns: || i64::try_from(now_unix_ns()).ok(),
    // Each state has other keys, which begin with the random numbers of the system.
    random: || Some(RandomState::new().hash_one(0)),
};
