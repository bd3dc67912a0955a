//! Stick tables: counters and remembered values by key (manual §11), shared by all workers.
//!
//! A [`Table`] has a [`Definition`] and entries. An entry is found by its key in constant time; it
//! is read and changed under the lock of its shard, for a few instructions. [`EntryRef`] is a
//! reference that keeps an entry from being removed; [`Tracked`] holds the counters that a
//! connection or a stream tracks.
//!
//! Invariants: this crate does no I/O and reads no clock: callers pass the time. A table never has
//! more entries than its `size`, and memory is allocated only for entries that exist or existed. An
//! entry that is not held is removed when it has not been touched for `expire`, or when it is the
//! oldest entry of a full table. Only listings walk over all entries.
#![forbid(unsafe_code)]

mod data;
mod definition;
mod entry;
mod entry_ref;
mod log;
mod rate;
mod shard;
mod share_log;
mod shared;
mod table;
#[cfg(test)]
mod tests;

pub use data::{Argument, Data, Shape};
pub use definition::{ARRAY_MAX, Column, Definition, KeyType, ServerKey, StoreError};
pub use entry::{Entry, General, Stored, StoredValue};
pub use entry_ref::{EntryRef, Event, Tracked};
pub use log::{UpdateId, UpdateLog};
pub use share_log::ShareLog;
pub use shared::{Change, Password, Share, SharedField, SharedKind, Store, StoreAddress, Total};
pub use table::{Place, Removal, Table, Update};
