//! What was said on standard error until the process served: `show startup-logs` tells it again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are kept; the first ones.
const KEPT_BYTES_MAX: usize = 64 << 10;

struct Messages {
    text: String,
    is_over: bool,
}

static MESSAGES: Mutex<Messages> = Mutex::new(Messages {
    text: String::new(),
    is_over: false,
});

fn lock() -> MutexGuard<'static, Messages> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something was said.
pub(crate) fn note(text: &str) {
    let mut messages = lock();
    if !messages.is_over && messages.text.len() + text.len() <= KEPT_BYTES_MAX {
        messages.text.push_str(text);
    }
}

/// The process serves: what is said from now on is not of the start.
pub(crate) fn is_over() {
    lock().is_over = true;
}

/// A start begins: nothing was said yet.
pub(crate) fn begin() {
    *lock() = Messages {
        text: String::new(),
        is_over: false,
    };
}

/// What was said.
pub(crate) fn messages() -> String {
    lock().text.clone()
}
