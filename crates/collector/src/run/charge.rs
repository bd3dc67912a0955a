//! Bytes of requests, charged to the budget of the collector from when they are read until their
//! records are settled, or are a sampler's, which charges what it keeps itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tail::store::Budget;
use tokio::sync::Semaphore;

/// Bytes that all bodies may have that are being read: a part of the budget within these bounds, so
/// that who sends slowly takes no room from what waits, and bodies of the usual bounds find some.
const BODIES_PART: u64 = 4;
const BODIES_BYTES_MIN: u64 = 64 << 20;
const BODIES_BYTES_MAX: u64 = 512 << 20;

/// What receivers may hold, all of them together.
#[derive(Debug)]
pub struct Memory {
    budget: Arc<Budget>,
    /// Bytes of bodies that are being read.
    bodies_bytes: AtomicU64,
    bodies_bytes_max: u64,
    /// Limit of large bodies that are decoded at the same time.
    decoders: Arc<Semaphore>,
}

/// Limit of large bodies decoded at the same time when the number of processors is unknown.
const DECODERS_DEFAULT: usize = 2;

impl Memory {
    /// Within a budget.
    #[must_use]
    pub fn new(budget: &Arc<Budget>) -> Arc<Memory> {
        let part = budget.bytes_max() / BODIES_PART;
        Arc::new(Memory {
            budget: Arc::clone(budget),
            bodies_bytes: AtomicU64::new(0),
            bodies_bytes_max: part.clamp(BODIES_BYTES_MIN, BODIES_BYTES_MAX),
            // Decoding is CPU-bound: more tasks than processors gain nothing.
            decoders: Arc::new(Semaphore::new(
                std::thread::available_parallelism().map_or(DECODERS_DEFAULT, usize::from),
            )),
        })
    }

    /// Room for a body that is read; none where there is not so much.
    pub(super) fn body(self: &Arc<Memory>, bytes: u64) -> Option<Body> {
        let mut body = Body {
            memory: Arc::clone(self),
            bytes: 0,
            charged: 0,
        };
        body.grow(bytes).then_some(body)
    }

    /// Charges a request that was not read here; none where there is no room.
    pub(super) fn charge(&self, bytes: u64) -> Option<Charge> {
        self.budget.reserve(bytes).then(|| Charge {
            budget: Arc::clone(&self.budget),
            bytes,
        })
    }
}

/// Bytes of a body that is being read, given back with this.
#[derive(Debug)]
pub(super) struct Body {
    memory: Arc<Memory>,
    bytes: u64,
    charged: u64,
}

impl Body {
    /// Permits to decode large bodies.
    pub fn decoders(&self) -> Arc<Semaphore> {
        Arc::clone(&self.memory.decoders)
    }

    /// More of it; false where there is no room.
    pub fn grow(&mut self, bytes: u64) -> bool {
        if bytes == 0 {
            return true;
        }
        let memory = &self.memory;
        let add = |held: u64| {
            let sum = held.checked_add(bytes)?;
            (sum <= memory.bodies_bytes_max).then_some(sum)
        };
        let bodies = &memory.bodies_bytes;
        if bodies.fetch_update(Relaxed, Relaxed, add).is_err() {
            return false;
        }
        if !memory.budget.reserve(bytes) {
            bodies.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.bytes += bytes;
        self.charged += bytes;
        true
    }

    /// It was read, and so many bytes are what waits from now on.
    pub fn into_charge(mut self, bytes: u64) -> Charge {
        let charged = std::mem::take(&mut self.charged);
        self.memory.budget.adjust(charged, bytes);
        Charge {
            budget: Arc::clone(&self.memory.budget),
            bytes,
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.memory.bodies_bytes.fetch_sub(self.bytes, Relaxed);
        self.memory.budget.release(self.charged);
    }
}

/// Bytes that wait, given back with this.
pub struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl fmt::Debug for Charge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Charge({})", self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_budget_is_given_back() {
        let budget = Arc::new(Budget::new(100 << 20));
        let memory = Memory::new(&budget);
        let mut body = memory.body(40 << 20).expect("there is room");
        assert!(memory.body(30 << 20).is_none(), "bodies have a bound");
        assert!(body.grow(20 << 20) && !body.grow(10 << 20));
        assert_eq!(budget.used_bytes(), 60 << 20);
        let charge = body.into_charge(90 << 20);
        assert_eq!(budget.used_bytes(), 90 << 20);
        // What waits leaves no room for bodies, though few are read.
        assert!(memory.body(20 << 20).is_none());
        assert!(memory.charge(20 << 20).is_none());
        drop(memory.body(10 << 20).expect("there is room"));
        drop(charge);
        assert_eq!(budget.used_bytes(), 0);
        assert!(memory.body(64 << 20).is_some());
    }
}
