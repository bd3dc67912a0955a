//! Telemetry of the proxy: spans, log records and metrics, recorded while a stream lives, sampled when it ends, and encoded
//! straight into OTLP.
//!
//! Nothing here does I/O or reads a clock. What is encoded goes into bounded queues ([`queue`]) that the exporters, on a
//! thread of their own, empty; every record is counted ([`account`]).
#![forbid(unsafe_code)]

pub mod account;
pub mod context;
pub mod id;
pub mod metrics;
pub mod program;
pub mod propagation;
pub mod proto;
pub mod queue;
pub mod record;
pub mod sampler;
pub mod sampling;
pub mod settings;

pub use context::SpanContext;
pub use id::{Ids, SpanId, TraceId};
pub use program::{Event, Program};
pub use record::Trace;
