//! Connectors.

pub mod forward;

use super::Entry;

/// A connector's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connector {
    /// `forward`: pipelines of one signal, joined or split.
    Forward,
}

pub(crate) const ENTRIES: &[Entry] = &[forward::ENTRY];
