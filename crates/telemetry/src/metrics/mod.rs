//! Metrics: each worker records into a [`Local`], without locks, and periodically merges it into
//! the [`Shared`] of a reader, which a thread of the exporters collects as OTLP.
//!
//! All values are integers. A series is an instrument with a set of attributes. The attributes are
//! given encoded: concatenated fields number 1, each a `KeyValue`
//! (opentelemetry/proto/common/v1/common.proto). Sets are equal if their bytes are, so the recorder
//! must write the attributes of an instrument in a fixed order.

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

/// The most series of one instrument, including the overflow series (OpenTelemetry: Metrics SDK,
/// cardinality limits).
pub const SERIES_MAX: usize = 2000;

/// The most bytes of a series' attributes; values with more are counted in the overflow series.
pub const ATTRIBUTES_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
