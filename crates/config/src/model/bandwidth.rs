//! Bandwidth limits (manual §9.7).

use std::sync::Arc;

use tables::Table;

use super::Amount;

/// A filter `bwlim-in` or `bwlim-out`. It applies to streams for which a rule `set-bandwidth-limit`
/// enables it.
#[derive(Debug)]
pub struct BandwidthLimit {
    /// Its name in rules.
    pub name: String,
    /// The direction of the limited payload.
    pub direction: Direction,
    /// The least bytes that pass at a time; the end of the payload may be smaller.
    pub min_bytes: u32,
    /// The rate.
    pub rate: BandwidthRate,
    /// Where it stands among the filters of its direction.
    pub place: FilterPlace,
}

/// Where a filter stands in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPlace {
    /// It gets the payload as it was received.
    First,
    /// It gets what the compression of its proxy makes of the payload.
    AfterCompression,
    /// `filter-sequence` does not name it: it does not run.
    LeftOut,
}

/// The direction of payload in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server (`bwlim-in`).
    Up,
    /// From the server to the client (`bwlim-out`).
    Down,
}

/// The rate of a [`BandwidthLimit`].
#[derive(Debug)]
pub enum BandwidthRate {
    /// A number of bytes per stream and period, unless the rule sets other values.
    Stream {
        /// Bytes, at least 1.
        bytes: u32,
        /// Milliseconds, at least 1.
        period_ms: u32,
    },
    /// A number of bytes for all streams with the same key, in the period of the table's byte rate.
    Shared {
        /// Bytes, at least 1.
        bytes: u32,
        /// The key.
        key: sample::Expr,
        /// The table that stores the rate.
        table: Arc<Table>,
    },
}

/// `set-bandwidth-limit`: enables a limit for a stream.
#[derive(Debug)]
pub struct BandwidthSwitch {
    /// The index in [`super::Proxy::bandwidth_limits`] of the rule's proxy.
    pub limit: usize,
    /// Bytes per period, instead of those of the filter.
    pub bytes: Option<Amount>,
    /// The period in milliseconds, instead of the filter's.
    pub period_ms: Option<Amount>,
}
