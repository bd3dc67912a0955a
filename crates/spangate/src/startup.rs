//! Keeps the messages on standard error from before the process served. `show startup-logs` prints
//! them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that are kept; later ones are dropped.
const KEPT_BYTES_MAX: usize = 64 << 10;

struct Messages {
    text: String,
    is_over: bool,
    warnings: u32,
}

static MESSAGES: Mutex<Messages> = Mutex::new(Messages {
    text: String::new(),
    is_over: false,
    warnings: 0,
});

/// The prefix of warnings, as HAProxy writes it.
const WARNING: &str = "[WARNING]";

fn lock() -> MutexGuard<'static, Messages> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the start began, monotonic nanoseconds.
static BEGAN_NS: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since the start began.
pub(crate) fn passed_ms() -> u32 {
    let passed_ns = net::sys::monotonic_ns().saturating_sub(BEGAN_NS.load(Relaxed));
    (passed_ns / 1_000_000) as u32
}

/// The number of warnings of the start.
pub(crate) fn warnings() -> u32 {
    lock().warnings
}

/// Adds a message.
pub(crate) fn note(text: &str) {
    let mut messages = lock();
    let warnings = text.lines().filter(|line| line.starts_with(WARNING));
    messages.warnings = messages.warnings.saturating_add(warnings.count() as u32);
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
    let mut messages = lock();
    messages.text.clear();
    messages.is_over = false;
    messages.warnings = 0;
    BEGAN_NS.store(net::sys::monotonic_ns(), Relaxed);
}

/// The messages of the start.
pub(crate) fn messages() -> String {
    lock().text.clone()
}
