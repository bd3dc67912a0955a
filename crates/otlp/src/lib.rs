//! OTLP: requests read, written, counted and split without building messages; the JSON form;
//! `tracestate`.
//!
//! Nothing here does I/O, reads a clock or draws random numbers. What is read may be any bytes:
//! each function says what it checks.
#![forbid(unsafe_code)]

pub mod count;
pub mod json;
pub mod plain;
pub mod scan;
mod schema;
mod signal;
pub mod split;
pub mod text;
pub mod tracestate;
pub mod view;
pub mod wire;
pub mod write;

pub use signal::Signal;

#[cfg(test)]
mod tests;
