//! Keeps the messages on standard error from before the process served. `show startup-logs` prints
//! them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that are kept; later ones are dropped.
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

/// Adds a message.
pub(crate) fn note(text: &str) {
    let mut messages = lock();
    if !messages.is_over && messages.text.len() + text.len() <= KEPT_BYTES_MAX {
        messages.text.push_str(text);
    }
}

/// The process serves: later messages do not belong to the start.
pub(crate) fn is_over() {
    lock().is_over = true;
}

/// A start begins: drops earlier messages.
pub(crate) fn begin() {
    *lock() = Messages {
        text: String::new(),
        is_over: false,
    };
}

/// The messages of the start.
pub(crate) fn messages() -> String {
    lock().text.clone()
}
