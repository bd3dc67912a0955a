//! The receiver `otlp`: what comes over gRPC and HTTP goes to the pipelines that name it.

mod body;
mod cors;
mod grpc;
mod http;
mod json;
mod listen;
mod status;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

pub(super) use listen::bind;
pub use listen::{Listening, Protocol, listen};

use super::account::Account;
use super::consume::{Consumer, Refusal};
use super::data::Batch;
use crate::config::Signal;

/// Bytes of bodies that are being read at a time, by all connections of a receiver.
pub const BODIES_BYTES_MAX: u64 = 512 << 20;

/// Where the data of a receiver go.
pub struct Intake {
    /// By signal; none is answered as a service that is not there.
    pub outlets: Outlets,
    /// By signal.
    pub accounts: [Arc<Account>; 3],
    /// Bytes of bodies that are being read.
    bodies_bytes: AtomicU64,
    /// Nothing more is taken.
    closing: std::sync::atomic::AtomicBool,
}

/// By signal, in the order of [`Signal`].
pub type Outlets = [Option<Arc<dyn Consumer>>; 3];

impl Intake {
    /// For these outlets.
    #[must_use]
    pub fn new(outlets: Outlets, accounts: [Arc<Account>; 3]) -> Intake {
        Intake {
            outlets,
            accounts,
            bodies_bytes: AtomicU64::new(0),
            closing: false.into(),
        }
    }

    /// From now on everything is refused: senders keep what they have.
    pub fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    fn takes(&self, signal: Signal) -> bool {
        self.outlets[signal as usize].is_some()
    }

    /// Room for a body, given back when the guard is dropped.
    fn reserve(self: &Arc<Intake>, bytes: u64) -> Option<Reserved> {
        let add = |held: u64| {
            let sum = held.checked_add(bytes)?;
            (sum <= BODIES_BYTES_MAX).then_some(sum)
        };
        let added = self.bodies_bytes.fetch_update(Relaxed, Relaxed, add);
        added.ok().map(|_| Reserved {
            intake: Arc::clone(self),
            bytes,
        })
    }

    /// Hands a request on.
    fn take(&self, signal: Signal, bytes: Bytes) -> Result<(), Refusal> {
        let account = &self.accounts[signal as usize];
        let Some(outlet) = &self.outlets[signal as usize] else {
            return Ok(());
        };
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let records = match count(signal, &bytes) {
            Ok(records) => records,
            Err(reason) => {
                account.add_malformed();
                return Err(Refusal::Malformed(reason.into()));
            }
        };
        if records == 0 {
            return Ok(());
        }
        let batch = Batch {
            signal,
            bytes,
            records,
            receipt: account.accept(records),
        };
        outlet.consume(batch).map_err(|given_back| {
            given_back.batch.receipt.refuse();
            if matches!(given_back.refusal, Refusal::Malformed(_)) {
                account.add_malformed();
            }
            given_back.refusal
        })
    }
}

/// Bytes of a body that is being read.
struct Reserved {
    intake: Arc<Intake>,
    bytes: u64,
}

impl Reserved {
    /// More of it; false where there is no room.
    fn grow(&mut self, bytes: u64) -> bool {
        let Some(mut more) = self.intake.reserve(bytes) else {
            return false;
        };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.intake.bodies_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// The records of an `Export*ServiceRequest`: what is in `Resource*` (fields 1), in `Scope*` (fields 2), in fields 2.
/// Data points are counted by the metrics' own lists.
fn count(signal: Signal, request: &[u8]) -> Result<u64, &'static str> {
    let mut records = 0;
    each(request, 1, &mut |resource| {
        each(resource, 2, &mut |scope| {
            each(scope, 2, &mut |record| {
                records += match signal {
                    Signal::Traces | Signal::Logs => 1,
                    Signal::Metrics => points(record)?,
                };
                Ok(())
            })
        })
    })?;
    Ok(records)
}

/// The data points of a `Metric`: gauge, sum, histogram, exponential histogram and summary are fields 5, 7, 9, 10 and 11,
/// and their points fields 1.
pub(super) fn points(metric: &[u8]) -> Result<u64, &'static str> {
    let mut points = 0;
    for field in [5, 7, 9, 10, 11] {
        each(metric, field, &mut |data| {
            each(data, 1, &mut |_| {
                points += 1;
                Ok(())
            })
        })?;
    }
    Ok(points)
}

const TRUNCATED: &str = "the protobuf ends within a field";
const WRONG: &str = "the protobuf has a field that cannot be";

/// Calls `work` with each message of a field number.
fn each(
    mut message: &[u8],
    number: u64,
    work: &mut dyn FnMut(&[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    while !message.is_empty() {
        let key = varint(&mut message).ok_or(TRUNCATED)?;
        let skip = match key & 7 {
            0 => {
                varint(&mut message).ok_or(TRUNCATED)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message).ok_or(TRUNCATED)?).map_err(|_| WRONG)?,
            5 => 4,
            _ => return Err(WRONG),
        };
        let (field, rest) = message.split_at_checked(skip).ok_or(TRUNCATED)?;
        if key >> 3 == 0 {
            return Err(WRONG);
        }
        if key == number << 3 | 2 {
            work(field)?;
        }
        message = rest;
    }
    Ok(())
}

pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted() {
        let field = |number: u8, value: &[u8]| {
            let mut field = vec![number << 3 | 2, value.len() as u8];
            field.extend_from_slice(value);
            field
        };
        let spans = [field(2, b"\x08\x01"), field(1, b""), field(2, b"")].concat();
        let scope = [field(2, &spans), field(1, b""), field(2, &spans)].concat();
        let request = field(1, &scope);
        assert_eq!(count(Signal::Traces, &request), Ok(4));
        assert_eq!(count(Signal::Traces, &request[..7]), Err(TRUNCATED));
        assert_eq!(count(Signal::Traces, b""), Ok(0));
        assert_eq!(count(Signal::Traces, b"\x07"), Err(WRONG));
        assert_eq!(count(Signal::Traces, &[0xff; 12]), Err(TRUNCATED));
        let metric = [
            field(1, b"name"),
            field(7, &[field(1, b""), field(1, b"")].concat()),
        ]
        .concat();
        let request = field(1, &field(2, &field(2, &metric)));
        assert_eq!(count(Signal::Metrics, &request), Ok(2));
    }
}
