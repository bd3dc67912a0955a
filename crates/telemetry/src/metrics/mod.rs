//! Metrics: each worker records into a [`Local`], without locks; from time to time it merges that into the [`Shared`] of a
//! reader, which a thread of the exporters collects as OTLP.
//!
//! Values are integers, as all that is measured here. A series is an instrument with a set of attributes, which are given
//! encoded: concatenated fields number 1, each a `KeyValue`
//! (opentelemetry/proto/common/v1/common.proto). Sets are the same if their bytes are, so whoever records writes the
//! attributes of an instrument in one order.

mod encode;
mod exponential;
mod instrument;
mod local;
mod point;
mod shared;
mod table;

pub use instrument::{Aggregation, DEFAULT_BOUNDS, Instrument, Instruments, Kind};
pub use local::Local;
pub use shared::{Shared, Temporality};

/// Series of one instrument, the one of what overflows among them (OpenTelemetry: Metrics SDK, cardinality limits).
pub const SERIES_MAX: usize = 2000;

/// Bytes of a series' attributes; what has more counts to the series of what overflows.
pub const ATTRIBUTES_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
