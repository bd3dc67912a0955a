//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, even after a panic: the guarded data is consistent after every step.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
