//! One entry, lent while its shard is locked.

use crate::data::{Data, Shape};
use crate::definition::{Column, Definition};
use crate::rate;

/// A general purpose counter and its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum General {
    /// `gpc0`, `gpc0_rate`
    Gpc0,
    /// `gpc1`, `gpc1_rate`
    Gpc1,
    /// An element of `gpc` and `gpc_rate`.
    Gpc(u32),
}

/// A value as other processes store it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A count or a total; a negative number is sign-extended.
    Number(u64),
    /// A rate.
    Rate {
        /// Milliseconds since the start of its current period.
        age_ms: u32,
        /// The events of the current period.
        current: u32,
        /// The events of the previous period.
        previous: u32,
    },
}

/// A value of an entry as other processes store it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredValue {
    /// The data type.
    pub data: Data,
    /// The index in an array; else 0.
    pub index: u32,
    /// The value.
    pub stored: Stored,
}

/// An entry and the current time.
#[derive(Debug)]
pub struct Entry<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) key: &'a [u8],
    pub(crate) cells: &'a mut [u32],
    pub(crate) holders: u32,
    pub(crate) now_ms: u64,
    pub(crate) touched_ms: &'a mut u64,
    /// The number of the last update in the log.
    pub(crate) update: u32,
    /// The entry was touched under this lock.
    pub(crate) was_touched: bool,
}

impl Entry<'_> {
    /// The key as stored ([`Definition::comparable`]).
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// The number of connections and streams that hold the entry.
    #[must_use]
    pub fn trackers(&self) -> u32 {
        self.holders
    }

    /// Milliseconds until an untouched entry expires; 0 if its table has no `expire`.
    #[must_use]
    pub fn expires_in_ms(&self) -> u64 {
        let expire_ms = self.definition.expire_ms.unwrap_or(0);
        (*self.touched_ms + expire_ms).saturating_sub(self.now_ms)
    }

    /// Milliseconds since the last touch; 0 if its table has no `expire`.
    #[must_use]
    pub fn idle_ms(&self) -> u64 {
        let expire_ms = self.definition.expire_ms.unwrap_or(0);
        expire_ms.saturating_sub(self.expires_in_ms())
    }

    /// Restarts the entry's expiry.
    pub fn touch(&mut self) {
        // Workers read the clock at different moments: a worker that is behind must not make the
        // entry older.
        *self.touched_ms = self.now_ms.max(*self.touched_ms);
        self.was_touched = true;
    }

    /// A value as a number: a count, a total, or the events of the last period. None if it is not
    /// stored or is a name.
    #[must_use]
    pub fn get(&self, data: Data, index: u32) -> Option<i64> {
        let (at, column) = self.place(data, index)?;
        Some(match data.shape() {
            Shape::Signed => i64::from(self.cells[at] as i32),
            Shape::Count => i64::from(self.cells[at]),
            Shape::Total => total(self.cells[at], self.cells[at + 1]) as i64,
            Shape::Rate => {
                let cells = [self.cells[at], self.cells[at + 1], self.cells[at + 2]];
                let events = rate::read(&cells, column.period_ms, self.now_ms as u32);
                let factor = if data.counts_bytes() {
                    self.definition.bytes_factor
                } else {
                    1
                };
                i64::from(events) * i64::from(factor)
            }
            Shape::Name => return None,
        })
    }

    /// Adds to a value and returns the new value; for a rate, the events of the current period.
    /// None if it is not stored or is a name. The amount of a byte rate is in bytes.
    pub fn add(&mut self, data: Data, index: u32, amount: u64) -> Option<i64> {
        let (at, column) = self.place(data, index)?;
        Some(match data.shape() {
            Shape::Signed | Shape::Count => {
                self.cells[at] = self.cells[at].wrapping_add(amount as u32);
                i64::from(self.cells[at])
            }
            Shape::Total => {
                let sum = total(self.cells[at], self.cells[at + 1]).wrapping_add(amount);
                self.set_total(at, sum);
                sum as i64
            }
            Shape::Rate => {
                let events = if data.counts_bytes() {
                    amount.div_ceil(u64::from(self.definition.bytes_factor))
                } else {
                    amount
                };
                let now_ms = self.now_ms as u32;
                let cells = self.rate_at(at)?;
                i64::from(rate::add(cells, column.period_ms, now_ms, events as u32))
            }
            Shape::Name => return None,
        })
    }

    /// Adds to a general counter: to its rate and to its count, if stored. Returns the count, or
    /// else the events of the rate's current period; none if neither is stored.
    pub fn add_general(&mut self, counter: General, amount: u64) -> Option<i64> {
        let (count, rate, index) = match counter {
            General::Gpc0 => (Data::Gpc0, Data::Gpc0Rate, 0),
            General::Gpc1 => (Data::Gpc1, Data::Gpc1Rate, 0),
            General::Gpc(index) => (Data::Gpc, Data::GpcRate, index),
        };
        let events = self.add(rate, index, amount);
        let sum = self.add(count, index, amount);
        let result = sum.or(events);
        if result.is_some() {
            self.touch();
        }
        result
    }

    /// Decrements a count that is not 0.
    pub fn take_one(&mut self, data: Data) {
        if let Some((at, _)) = self.place(data, 0) {
            self.cells[at] = self.cells[at].saturating_sub(1);
        }
    }

    /// Sets a value; for a rate, the value that it shows from now on. Returns whether it is stored.
    pub fn set(&mut self, data: Data, index: u32, value: i64) -> bool {
        let Some((at, _)) = self.place(data, index) else {
            return false;
        };
        match data.shape() {
            Shape::Signed | Shape::Count => self.cells[at] = value as u32,
            Shape::Total => self.set_total(at, value as u64),
            Shape::Rate => {
                let now_ms = self.now_ms as u32;
                if let Some(cells) = self.rate_at(at) {
                    rate::set(cells, now_ms, value as u32);
                }
            }
            // `Table::store_server` sets names.
            Shape::Name => {}
        }
        true
    }

    /// A value as it is stored. None for names, for elements that do not exist, and for data types
    /// that the table does not store itself.
    #[must_use]
    pub fn stored(&self, data: Data, index: u32) -> Option<Stored> {
        self.definition.column(data)?;
        let (at, _) = self.place(data, index)?;
        Some(match data.shape() {
            Shape::Signed => Stored::Number(i64::from(self.cells[at] as i32) as u64),
            Shape::Count => Stored::Number(self.cells[at].into()),
            Shape::Total => Stored::Number(total(self.cells[at], self.cells[at + 1])),
            Shape::Rate => Stored::Rate {
                age_ms: (self.now_ms as u32).wrapping_sub(self.cells[at]),
                current: self.cells[at + 1],
                previous: self.cells[at + 2],
            },
            Shape::Name => return None,
        })
    }

    /// Replaces a value by one from another process. Without effect where [`Entry::stored`] has
    /// none, or where the value does not suit the data type.
    pub fn restore(&mut self, value: StoredValue) {
        let StoredValue {
            data,
            index,
            stored,
        } = value;
        if self.definition.column(data).is_none() {
            return;
        }
        let Some((at, _)) = self.place(data, index) else {
            return;
        };
        match (data.shape(), stored) {
            (Shape::Signed | Shape::Count, Stored::Number(number)) => {
                self.cells[at] = number as u32;
            }
            (Shape::Total, Stored::Number(number)) => self.set_total(at, number),
            (
                Shape::Rate,
                Stored::Rate {
                    age_ms,
                    current,
                    previous,
                },
            ) => {
                let now_ms = self.now_ms as u32;
                if let Some(cells) = self.rate_at(at) {
                    *cells = rate::aged(now_ms, age_ms, current, previous);
                }
            }
            (Shape::Rate, Stored::Number(_))
            | (Shape::Signed | Shape::Count | Shape::Total, Stored::Rate { .. })
            | (Shape::Name, _) => {}
        }
    }

    /// Makes the entry expire in this many milliseconds, and at most in the table's `expire`.
    /// Unlike [`Entry::touch`], this is no update of the entry.
    pub fn expire_in(&mut self, ms: u64) {
        if let Some(expire_ms) = self.definition.expire_ms {
            let idle_ms = expire_ms.saturating_sub(ms);
            *self.touched_ms = self.now_ms.saturating_sub(idle_ms);
        }
    }

    /// The number of a name in the table's list; 0 for none.
    pub(crate) fn name(&self, data: Data) -> u32 {
        self.place(data, 0).map_or(0, |(at, _)| self.cells[at])
    }

    pub(crate) fn set_name(&mut self, data: Data, number: u32) {
        if let Some((at, _)) = self.place(data, 0) {
            self.cells[at] = number;
        }
    }

    fn set_total(&mut self, at: usize, total: u64) {
        self.cells[at] = total as u32;
        self.cells[at + 1] = (total >> 32) as u32;
    }

    fn rate_at(&mut self, at: usize) -> Option<&mut rate::Cells> {
        self.cells.get_mut(at..)?.first_chunk_mut()
    }

    /// The first cell of an element, or of the array element that replaces it; none if neither is
    /// stored.
    #[inline]
    fn place(&self, data: Data, index: u32) -> Option<(usize, Column)> {
        let Some(column) = self.definition.column(data) else {
            let (array, index) = data.in_array()?;
            return self.place(array, index);
        };
        if index >= column.elements {
            return None;
        }
        let at = column.at as usize + index as usize * data.shape().cells();
        Some((at, column))
    }
}

fn total(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
