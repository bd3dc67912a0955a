//! Stick tables: what tracks, counts and remembers (manual §11).

use std::sync::Arc;

use tables::{General, Table};

/// What rules do with stick tables.
#[derive(Debug)]
pub enum TableAction {
    /// `track-sc0` and its kin.
    Track {
        /// The counter's number.
        counter: usize,
        /// The key.
        key: sample::Expr,
        /// Where it is looked up.
        table: Arc<Table>,
    },
    /// `sc-inc-gpc`, `sc-inc-gpc0`, `sc-inc-gpc1`, `sc-add-gpc`
    Add {
        /// The counter's number.
        counter: usize,
        /// What of its entry grows.
        general: General,
        /// By how much.
        amount: TableNumber,
    },
    /// `sc-set-gpt`, `sc-set-gpt0`
    SetTag {
        /// The counter's number.
        counter: usize,
        /// The tag's place in `gpt`; none is `gpt0`.
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
    /// Made at run time; nothing happens where it gives no integer.
    Computed(sample::Expr),
}

/// A `stick` rule.
#[derive(Debug)]
pub struct StickRule {
    /// The server that the table remembers takes the request.
    pub matches: bool,
    /// The server that takes the request is remembered.
    pub stores: bool,
    /// What a client sticks by.
    pub key: sample::Expr,
    /// Where servers are remembered.
    pub table: Arc<Table>,
    /// None is always.
    pub condition: Option<sample::Condition>,
}

/// A set of statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet([u64; 8]);

impl StatusSet {
    /// The lowest status and how many there may be.
    const FIRST: u16 = 100;

    /// The statuses from `low` to `high`.
    #[must_use]
    pub fn range(low: u16, high: u16) -> StatusSet {
        let mut set = StatusSet::default();
        set.put(low, high, true);
        set
    }

    /// Adds a range, or removes it.
    pub fn put(&mut self, low: u16, high: u16, is_in: bool) {
        for status in low..=high {
            let Some((word, bit)) = StatusSet::place(status) else {
                continue;
            };
            match is_in {
                true => self.0[word] |= bit,
                false => self.0[word] &= !bit,
            }
        }
    }

    /// Whether a status is in it.
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
    /// The client's fault.
    pub errors: StatusSet,
    /// The server's fault.
    pub failures: StatusSet,
}

impl Default for CountedStatuses {
    fn default() -> Self {
        let mut failures = StatusSet::range(500, 599);
        // Clients can provoke these.
        failures.put(501, 501, false);
        failures.put(505, 505, false);
        CountedStatuses {
            errors: StatusSet::range(400, 499),
            failures,
        }
    }
}
