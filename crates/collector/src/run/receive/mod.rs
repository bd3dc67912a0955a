//! The receiver `otlp`: what comes over gRPC and HTTP goes to the pipelines that name it.

mod body;
mod cors;
mod grpc;
mod http;
mod listen;
mod status;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

pub(super) use listen::bind;
pub use listen::{Listening, Protocol, Sharing, listen};

use super::account::Account;
use super::consume::{Consumer, Refusal};
use super::count;
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
    /// It takes what the proxy records that runs the collector.
    is_of_proxy: bool,
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
            is_of_proxy: false,
        }
    }

    /// For what the proxy records that runs the collector.
    #[must_use]
    pub(super) fn of_proxy(outlets: Outlets, accounts: [Arc<Account>; 3]) -> Intake {
        Intake {
            is_of_proxy: true,
            ..Intake::new(outlets, accounts)
        }
    }

    /// From now on everything is refused: senders keep what they have.
    pub fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    /// Whether a pipeline gets a signal.
    #[must_use]
    pub fn takes(&self, signal: Signal) -> bool {
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

    /// Hands an `Export*ServiceRequest` on, whole or not at all. Does not wait; to be called within the collector's runtime.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn take(&self, signal: Signal, bytes: Bytes) -> Result<(), Refusal> {
        let account = &self.accounts[signal as usize];
        let Some(outlet) = &self.outlets[signal as usize] else {
            return Err(Refusal::Malformed(format!("no pipeline takes {signal}")));
        };
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let records = match count::records(signal, &bytes) {
            Ok(records) => records,
            Err(fault) => {
                account.add_malformed();
                return Err(Refusal::Malformed(fault.to_string()));
            }
        };
        if records == 0 {
            return Ok(());
        }
        let batch = Batch {
            signal,
            bytes,
            records,
            receipt: match self.is_of_proxy {
                true => account.accept_of_proxy(records),
                false => account.accept(records),
            },
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
