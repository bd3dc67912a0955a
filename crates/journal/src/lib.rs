//! A journal: entries are on the disk before they are acknowledged, and removed once they are no
//! longer needed.
//!
//! - **Group commit.** One thread writes and syncs; all entries that arrive meanwhile share the
//!   next write and its sync.
//! - **Holds.** An entry's [`Place`] holds its segment. A segment's file is removed when its last
//!   hold is gone and all older segments are removed. So an entry, and every note after it, exists
//!   as long as the entry is held.
//! - **Notes** are entries without a hold. A note is on the disk before any segment is removed
//!   whose last hold is dropped later.
//! - **Recovery.** The next process reads what a process left ([`Left`]): entries that were not
//!   marked as done, and notes.
//!
//! The journal does not interpret the content of entries.
#![forbid(unsafe_code)]

mod folder;
pub mod format;
mod hold;
mod journal;
mod left;
mod space;
mod writer;

pub use folder::{Lock, names};
pub use hold::{Hold, Place};
pub use journal::{Journal, Report, Settings, Written};
pub use left::{Damage, Entry, Left, Segment};
pub use space::Space;

/// Why an entry was not written to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The journal has reached its size limit, or too much waits to be written.
    Full,
    /// The disk does not accept it now.
    Disk,
    /// The journal is closed.
    Closed,
    /// The entry is larger than [`format::ENTRY_BYTES_MAX`].
    TooLarge,
}

#[cfg(test)]
mod tests;
