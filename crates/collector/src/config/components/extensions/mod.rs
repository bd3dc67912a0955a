//! Extensions.

pub mod file_storage;
mod gone;
pub mod health_check;
mod pprof;
mod zpages;

use super::Entry;

/// An extension's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Extension {
    /// `health_check`
    HealthCheck(Box<health_check::HealthCheck>),
    /// `file_storage`
    FileStorage(file_storage::FileStorage),
}

pub(crate) const ENTRIES: &[Entry] = &[
    health_check::ENTRY,
    pprof::ENTRY,
    zpages::ENTRY,
    file_storage::ENTRY,
    gone::MEMORY_BALLAST,
];
