//! Other formats of traces, made requests of OTLP as they come in: nothing behind a receiver knows
//! of them.
//!
//! Each format has a reader of its bytes and a translation of its spans, as the Collector's
//! `pkg/translator` has them; what they write is a `request::Request`.

pub mod jaeger;
mod request;
mod span;
mod thrift;
pub mod zipkin;

use otlp::wire::{Reader, Value};

/// Attributes, events, links and the like of one span, which are read before they are written.
const SPAN_PARTS_MAX: usize = 100_000;

/// Nanoseconds of microseconds since the epoch; what is before it or beyond 64 bits is at the end
/// of the range.
fn micros_to_ns(micros: u64) -> u64 {
    micros.saturating_mul(1000)
}

/// Calls `work` with the number and value of each field of a protobuf message.
fn fields<'a>(
    message: &'a [u8],
    mut work: impl FnMut(u32, Value<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.field().map_err(|fault| fault.to_string())? {
        work(field.key >> 3, field.value)?;
    }
    Ok(())
}
