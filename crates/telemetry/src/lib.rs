//! Telemetry of the proxy: spans, log records and metrics, recorded during a stream, sampled at its
//! end, and encoded directly as OTLP.
//!
//! This crate does no I/O and reads no clock. Encoded records go into bounded queues ([`queue`]),
//! which the exporters empty on a thread of their own; every record is counted ([`account`]).
#![forbid(unsafe_code)]

pub mod account;
pub mod context;
pub mod id;
pub mod metrics;
pub mod program;
pub mod propagation;
pub mod queue;
pub mod record;
pub mod sampler;
pub mod sampling;
pub mod settings;

pub use context::SpanContext;
pub use id::{Ids, SpanId, TraceId};
pub use program::{Event, Program};
pub use record::Trace;
