//! Limits of bandwidth (manual §9.7).

use std::sync::Arc;

use tables::Table;

use super::Amount;

/// A filter `bwlim-in` or `bwlim-out`: takes effect for streams that a rule `set-bandwidth-limit` turns it on for.
#[derive(Debug)]
pub struct BandwidthLimit {
    /// What rules call it.
    pub name: String,
    /// Which payload it slows down.
    pub direction: Direction,
    /// The least that passes at a time, bytes; the end of the payload may be smaller.
    pub min_bytes: u32,
    /// How much passes.
    pub rate: BandwidthRate,
}

/// The way of payload through a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server (`bwlim-in`).
    Up,
    /// From the server to the client (`bwlim-out`).
    Down,
}

/// How much passes a [`BandwidthLimit`].
#[derive(Debug)]
pub enum BandwidthRate {
    /// So many bytes of each stream in a period, unless the rule says otherwise.
    Stream {
        /// Bytes, at least 1.
        bytes: u32,
        /// Milliseconds, at least 1.
        period_ms: u32,
    },
    /// So many bytes of all streams with the same key in the period of the table's rate of bytes.
    Shared {
        /// Bytes, at least 1.
        bytes: u32,
        /// The key.
        key: sample::Expr,
        /// The table, which stores that rate.
        table: Arc<Table>,
    },
}

/// `set-bandwidth-limit`: turns a limit on for a stream.
#[derive(Debug)]
pub struct BandwidthSwitch {
    /// The place in [`super::Proxy::bandwidth_limits`] of the rule's proxy.
    pub limit: usize,
    /// Bytes in a period instead of those of the filter.
    pub bytes: Option<Amount>,
    /// The period instead of the filter's, milliseconds.
    pub period_ms: Option<Amount>,
}
