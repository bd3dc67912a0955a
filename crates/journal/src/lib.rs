//! A journal: entries that are on the disk before they count, and that are gone once nobody needs them.
//!
//! - **Group commit.** One thread writes and syncs; all entries that came meanwhile share the next write and its sync.
//! - **Holds.** An entry's [`Place`] holds its segment. When the last hold of a segment is gone, and all older segments are
//!   gone too, its file is removed. So an entry, and all that was noted after it, are there as long as it is held.
//! - **Notes** are entries without a hold; they are on the disk before any segment is removed that was let go after them.
//! - **Recovery.** What a process left is read by the next one ([`Left`]): entries that were not marked as done, and notes.
//!
//! What is in an entry is the caller's affair.
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
pub use left::{Entry, Left, Segment};
pub use space::Space;

/// Why an entry is not in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The journal may not grow any more, or too much waits to be written.
    Full,
    /// The disk does not take it now.
    Disk,
    /// The journal ends.
    Closed,
    /// It is larger than [`format::ENTRY_BYTES_MAX`].
    TooLarge,
}

#[cfg(test)]
mod tests;
