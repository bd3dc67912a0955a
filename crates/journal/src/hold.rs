//! Holds: references that keep segments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::journal::Shared;

/// Keeps a segment's file. Clones keep it too.
#[derive(Clone, Debug)]
pub struct Hold(Arc<Held>);

#[derive(Debug)]
struct Held {
    segment: u64,
    stays: AtomicBool,
    shared: Arc<Shared>,
}

impl Hold {
    pub(crate) fn new(segment: u64, shared: &Arc<Shared>) -> Hold {
        Hold(Arc::new(Held {
            segment,
            stays: AtomicBool::new(false),
            shared: Arc::clone(shared),
        }))
    }

    /// The segment's number.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.0.segment
    }

    /// Whether both hold the same segment of the same journal.
    #[must_use]
    pub fn is_same(&self, other: &Hold) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Keeps the segment for the next process, even after its last hold is dropped.
    pub fn stay(&self) {
        self.0.stays.store(true, Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !*self.stays.get_mut() {
            self.shared.let_go(self.segment);
        }
    }
}

/// The place of an entry.
#[derive(Clone, Debug)]
pub struct Place {
    /// Keeps the entry's segment.
    pub hold: Hold,
    /// The position in the segment's file.
    pub at: u64,
}
