//! Reports a panic: one alert with its place, once for each place.
//!
//! A panic is a fault of this program. It ends the connection or the request on which it happened
//! (crate `proxy`, `engine/contain`; crate `collector`, `run/receive`). So the same panic may
//! repeat with every request.

use std::collections::BTreeSet;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

/// Most places that are reported; panics in others are only counted.
const PLACES_MAX: usize = 64;

/// The places that were reported.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Installs this report for all panics.
pub(crate) fn hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        let place = place.unwrap_or_else(|| "an unknown place".to_owned());
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < PLACES_MAX && told.insert(place.clone()) {
            drop(told);
            crate::alert(&text(&place, info));
        }
    }));
}

fn text(place: &str, info: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name").to_owned();
    let message = info.payload_as_str().unwrap_or("no message");
    // The frames have names only if the program has its symbols.
    let trace = std::backtrace::Backtrace::capture();
    let trace = match trace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
        _ => String::new(),
    };
    format!(
        "Internal error at {place} in thread {thread} : {message}. The affected work ends. Please report this error. This place is not reported again.{trace}"
    )
}
