//! Processors: what stands between receivers and exporters.

mod action;
pub mod attributes;
pub mod batch;
pub mod client;
pub mod dashboard;
pub mod edit;
pub mod failures;
pub mod filter;
mod matching;
pub mod memory;
pub mod memory_limiter;
pub mod outside;
pub mod passage;
pub mod probabilistic_sampler;
pub mod resource;
pub mod resource_detection;
pub mod tail;
pub mod transform;

pub use memory::memory_bytes;

#[cfg(test)]
mod tests;
