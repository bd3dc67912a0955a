//! Processors: what stands between receivers and exporters.

mod action;
pub(in crate::run) mod around;
pub mod attributes;
pub mod batch;
pub mod client;
pub mod cumulative_to_delta;
pub mod dashboard;
pub mod delta_to_cumulative;
pub mod edit;
pub mod failures;
pub mod filter;
pub mod k8s_attributes;
mod matching;
pub mod memory;
pub mod memory_limiter;
pub mod outside;
pub mod passage;
pub mod probabilistic_sampler;
pub mod redaction;
pub mod resource;
pub mod resource_detection;
mod start;
pub mod streams;
pub mod tail;
pub mod transform;

pub use memory::memory_bytes;
pub use start::{ProcessorDeps, StartProcessor};

#[cfg(test)]
pub(in crate::run) mod tests;
