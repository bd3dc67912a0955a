//! The trace store: spans wait until their trace is decided, and leave as they came.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: bytes and `now` go in, bytes and
//! counts come out.
#![forbid(unsafe_code)]

pub mod account;
pub mod policy;
pub mod settings;
pub mod shard;
pub mod store;

// Requests for the tests are made in one place.
#[cfg(test)]
#[path = "../../otlp/src/tests/mod.rs"]
mod tests;
