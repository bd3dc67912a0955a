//! Processors: what stands between receivers and exporters.

pub mod batch;
mod memory;
pub mod memory_limiter;
pub mod tail;

pub use memory::memory_bytes;
