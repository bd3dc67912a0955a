//! What the tests of this crate and of the sampler share: random requests, and what a plain program
//! makes of them.
#![allow(
    unused_imports,
    dead_code,
    reason = "each of the two crates uses a part"
)]

mod model;
mod random;

pub use model::{Model, key_value, request, trace_id};
pub use random::Random;
