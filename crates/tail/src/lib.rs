//! The trace store: spans wait until their trace is decided, and leave as they came.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: bytes and `now` go in, bytes and counts come out.
#![forbid(unsafe_code)]

pub mod account;
mod fnv;
pub mod ottl;
pub mod pattern;
pub mod policy;
pub mod scan;
pub mod settings;
pub mod shard;
pub mod store;
pub mod text;
pub mod wire;

#[cfg(test)]
mod tests;
