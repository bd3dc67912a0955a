//! What waits for a decision: the span log, the headers its records name, and the table of traces.

pub mod budget;
pub mod header;
pub mod index;
pub mod log;
mod queue;
mod sets;
pub mod table;
mod template;
mod templates;

pub use budget::{Budget, Full, Refused};
pub use header::{Found, Header, Headers};
pub use log::{Form, Log, Record};
pub use queue::Queue;
pub use table::{Entry, Table};
pub use template::{Buffer, Learner};
pub use templates::Tag;

const CACHE_LINE: usize = 64;

/// Reads a byte of each cache line, so that all are near when they are used.
#[inline]
pub fn touch(all: &[&[u8]]) {
    let lines = all
        .iter()
        .flat_map(|bytes| bytes.iter().step_by(CACHE_LINE));
    std::hint::black_box(lines.fold(0, |touched, byte| touched ^ byte));
}
