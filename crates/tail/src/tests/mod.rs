//! What the tests share: random requests, and what a plain program makes of them.

mod model;
mod random;

pub use model::{Model, key_value, request, trace_id};
pub use random::Random;
