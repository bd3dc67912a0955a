//! Stick tables: tracking, counting and stickiness (manual §11).

use std::sync::Arc;

use tables::{General, Table};

/// Actions of rules on stick tables.
#[derive(Debug)]
pub enum TableAction {
    /// `track-sc0` and related actions.
    Track {
        /// The counter's number.
        counter: usize,
        /// The key.
        key: sample::Expr,
        /// The table of the key.
        table: Arc<Table>,
    },
    /// `sc-inc-gpc`, `sc-inc-gpc0`, `sc-inc-gpc1`, `sc-add-gpc`
    Add {
        /// The counter's number.
        counter: usize,
        /// The counter of its entry that grows.
        general: General,
        /// The increment.
        amount: TableNumber,
    },
    /// `sc-set-gpt`, `sc-set-gpt0`
    SetTag {
        /// The counter's number.
        counter: usize,
        /// The index of the tag in `gpt`; None means `gpt0`.
        index: Option<u32>,
        /// Its value.
        value: TableNumber,
    },
}

/// A number of a [`TableAction`].
#[derive(Debug)]
pub enum TableNumber {
    /// As written.
    Fixed(i64),
    /// Computed at run time; without an integer as the result, the action does nothing.
    Computed(sample::Expr),
}

/// A `stick` rule.
#[derive(Debug)]
pub struct StickRule {
    /// The request goes to the server that the table stores.
    pub matches: bool,
    /// The server of the request is stored.
    pub stores: bool,
    /// The key of the client.
    pub key: sample::Expr,
    /// The table that stores servers.
    pub table: Arc<Table>,
    /// None means always.
    pub condition: Option<sample::Condition>,
}

/// A set of statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet([u64; 8]);

impl StatusSet {
    /// The lowest status, and the number of statuses.
    const FIRST: u16 = 100;

    /// The statuses from `low` to `high`.
    #[must_use]
    pub fn range(low: u16, high: u16) -> StatusSet {
        let mut set = StatusSet::default();
        set.put(low, high, true);
        set
    }

    /// Adds or removes a range.
    pub fn put(&mut self, low: u16, high: u16, is_in: bool) {
        for status in low..=high {
            let Some((word, bit)) = StatusSet::place(status) else {
                continue;
            };
            if is_in {
                self.0[word] |= bit
            } else {
                self.0[word] &= !bit
            }
        }
    }

    /// Whether the set contains a status.
    #[must_use]
    pub fn has(&self, status: u16) -> bool {
        StatusSet::place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    fn place(status: u16) -> Option<(usize, u64)> {
        let number = usize::from(status.checked_sub(StatusSet::FIRST)?);
        (number < 500).then_some((number / 64, 1 << (number % 64)))
    }
}

/// The statuses that tables count (`http-err-codes`, `http-fail-codes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedStatuses {
    /// Errors of clients.
    pub errors: StatusSet,
    /// Failures of servers.
    pub failures: StatusSet,
}

impl Default for CountedStatuses {
    fn default() -> Self {
        let mut failures = StatusSet::range(500, 599);
        // Clients can cause these statuses.
        failures.put(501, 501, false);
        failures.put(505, 505, false);
        CountedStatuses {
            errors: StatusSet::range(400, 499),
            failures,
        }
    }
}
