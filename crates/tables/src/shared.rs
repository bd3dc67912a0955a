//! Entries of a table whose counters several proxies share through a store.
//!
//! Every shared value has cells beside it, its shadow: the value after the last exchange with the
//! store, and the sum of all changes of this process. The difference between value and shadow is
//! what the store does not know yet. So the code that counts is the same for all tables, nothing is
//! queued while the store is away, and changes of an entry take no more memory than the entry.
//!
//! Counts are exact modulo the width of their cells: differences and sums wrap in the same way.

use crate::data::{Data, Shape};
use crate::definition::Definition;
use crate::entry::Entry;
use crate::rate;

/// Where the counters of a table are shared (`share`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The store.
    pub store: Store,
    /// The time between two exchanges with the store, milliseconds.
    pub every_ms: u32,
    /// The first part of all names in the store.
    pub prefix: String,
}

/// A store: a server that speaks the protocol of Redis and Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its address.
    pub address: StoreAddress,
    /// The number of the database.
    pub database: u32,
    /// The user, where the store asks for one.
    pub user: Option<String>,
    /// The password, where the store asks for one.
    pub password: Option<Password>,
}

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// A name or an address, and a port.
    Inet {
        /// The name or the address.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a UNIX socket.
    Unix(String),
}

impl std::fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreAddress::Inet { host, port } if host.contains(':') => {
                write!(f, "redis://[{host}]:{port}")
            }
            StoreAddress::Inet { host, port } => write!(f, "redis://{host}:{port}"),
            StoreAddress::Unix(path) => write!(f, "redis+unix://{path}"),
        }
    }
}

/// A password, which no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// How a value is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// The sum of what all proxies count.
    Sum,
    /// The sum of the events of periods of the store's clock.
    Rate {
        /// The period, milliseconds.
        period_ms: u32,
    },
    /// The last value that any proxy set.
    Tag,
}

/// A value that is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedField {
    /// The data type.
    pub data: Data,
    /// The index in an array; else 0.
    pub index: u32,
    /// How it is shared.
    pub kind: SharedKind,
    /// The first cell of the value.
    at: usize,
    /// The first cell of the shadow.
    shadow: usize,
}

/// A change of a value that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// What a sum grew by, modulo the width of its cells.
    Add(i64),
    /// Events of a rate.
    Events(u32),
    /// The value of a tag.
    Set(u32),
}

/// The value of all proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// The store has none.
    Unknown,
    /// A sum, modulo the width of its cells.
    Sum(u64),
    /// A rate.
    Rate {
        /// Milliseconds since the start of its current period.
        age_ms: u32,
        /// The events of the current period.
        current: u32,
        /// The events of the previous period.
        previous: u32,
    },
    /// A tag.
    Tag(u32),
}

/// How a data type is shared; none if it is not.
fn kind_of(data: Data, period_ms: u32) -> Option<SharedKind> {
    match data.shape() {
        // Connections that are open now: they belong to this process.
        Shape::Count if data == Data::ConnCur => None,
        Shape::Count if matches!(data, Data::Gpt | Data::Gpt0) => Some(SharedKind::Tag),
        Shape::Count | Shape::Total => Some(SharedKind::Sum),
        Shape::Rate => Some(SharedKind::Rate { period_ms }),
        Shape::Signed | Shape::Name => None,
    }
}

/// The shared values of a table, whose first free cell is `cells`. Returns them with the number of
/// cells that they need with their shadows.
pub(crate) fn lay_out(definition: &Definition, mut cells: usize) -> (Vec<SharedField>, usize) {
    let mut fields = Vec::new();
    for data in Data::all() {
        let Some(column) = definition.column(data) else {
            continue;
        };
        let Some(kind) = kind_of(data, column.period_ms) else {
            continue;
        };
        let width = data.shape().cells();
        for index in 0..column.elements {
            fields.push(SharedField {
                data,
                index,
                kind,
                at: column.at as usize + index as usize * width,
                shadow: cells,
            });
            cells += match kind {
                // The value, and the changes of this process.
                SharedKind::Sum => 2 * width,
                // The start of the period, and its events.
                SharedKind::Rate { .. } => 2,
                SharedKind::Tag => 1,
            };
        }
    }
    (fields, cells)
}

impl Entry<'_> {
    /// Takes the changes that the store does not know, one per shared value of the table. Returns
    /// whether there are any.
    pub fn take_changes(&mut self, changes: &mut Vec<Change>) -> bool {
        let mut any = false;
        for field in self.definition.shared_fields() {
            let change = match field.kind {
                SharedKind::Sum => self.take_sum(field),
                SharedKind::Rate { period_ms } => self.take_events(field, period_ms),
                SharedKind::Tag => self.take_tag(field),
            };
            any |= change != Change::None;
            changes.push(change);
        }
        any
    }

    /// Replaces the values by those of all proxies, with what was counted here since the changes
    /// were taken. This is no update of the entry: it does not live longer by it.
    pub fn merge_totals(&mut self, totals: &[Total]) {
        for (field, total) in self.definition.shared_fields().iter().zip(totals) {
            match (field.kind, *total) {
                (SharedKind::Sum, Total::Sum(total)) => {
                    let unsent = self.sum(field).wrapping_sub(self.base(field));
                    self.put(field.data, field.at, total.wrapping_add(unsent));
                    self.put(field.data, field.shadow, total);
                }
                (
                    SharedKind::Rate { period_ms },
                    Total::Rate {
                        age_ms,
                        current,
                        previous,
                    },
                ) => {
                    let unsent = self.unsent_events(field, period_ms);
                    let now_ms = self.now_ms as u32;
                    let cells =
                        rate::aged(now_ms, age_ms, current.saturating_add(unsent), previous);
                    self.cells[field.at..field.at + 3].copy_from_slice(&cells);
                    self.cells[field.shadow] = cells[0];
                    self.cells[field.shadow + 1] = current;
                }
                // A tag that was set here meanwhile is newer.
                (SharedKind::Tag, Total::Tag(tag))
                    if self.cells[field.at] == self.cells[field.shadow] =>
                {
                    self.cells[field.at] = tag;
                    self.cells[field.shadow] = tag;
                }
                _ => {}
            }
        }
    }

    /// Makes all changes of this process changes that the store does not know: it has lost its
    /// data. Returns whether there are any. Events of rates are not counted again.
    pub(crate) fn forget_exchanges(&mut self) -> bool {
        let mut any = false;
        for field in self.definition.shared_fields() {
            match field.kind {
                SharedKind::Sum => {
                    let own_at = field.shadow + field.data.shape().cells();
                    let own = self.number(field.data, own_at);
                    let base = self.base(field).wrapping_sub(own);
                    self.put(field.data, field.shadow, base);
                    self.put(field.data, own_at, 0);
                    any |= self.sum(field) != base;
                }
                SharedKind::Tag => {
                    let tag = self.cells[field.at];
                    if tag != 0 {
                        self.cells[field.shadow] = !tag;
                        any = true;
                    }
                }
                SharedKind::Rate { .. } => {}
            }
        }
        any
    }

    fn take_sum(&mut self, field: &SharedField) -> Change {
        let now = self.sum(field);
        let change = now.wrapping_sub(self.base(field));
        let is_total = field.data.shape() == Shape::Total;
        let change = if is_total {
            change as i64
        } else {
            i64::from(change as u32 as i32)
        };
        if change == 0 {
            return Change::None;
        }
        let own_at = field.shadow + field.data.shape().cells();
        let own = self.number(field.data, own_at);
        self.put(field.data, own_at, own.wrapping_add(change as u64));
        self.put(field.data, field.shadow, now);
        Change::Add(change)
    }

    fn take_events(&mut self, field: &SharedField, period_ms: u32) -> Change {
        let events = self.unsent_events(field, period_ms);
        self.cells[field.shadow] = self.cells[field.at];
        self.cells[field.shadow + 1] = self.cells[field.at + 1];
        if events == 0 {
            Change::None
        } else {
            Change::Events(events)
        }
    }

    fn take_tag(&mut self, field: &SharedField) -> Change {
        let tag = self.cells[field.at];
        if std::mem::replace(&mut self.cells[field.shadow], tag) == tag {
            Change::None
        } else {
            Change::Set(tag)
        }
    }

    /// The events of a rate since its shadow. Those of periods that are over for long are not among
    /// them.
    fn unsent_events(&self, field: &SharedField, period_ms: u32) -> u32 {
        let began = self.cells[field.at];
        let current = self.cells[field.at + 1];
        let previous = self.cells[field.at + 2];
        let base_began = self.cells[field.shadow];
        let base_current = self.cells[field.shadow + 1];
        if began == base_began {
            current.saturating_sub(base_current)
        } else if began == base_began.wrapping_add(period_ms) & !1 {
            // One period has ended since then.
            current.saturating_add(previous.saturating_sub(base_current))
        } else {
            current
        }
    }

    fn sum(&self, field: &SharedField) -> u64 {
        self.number(field.data, field.at)
    }

    /// The value after the last exchange.
    fn base(&self, field: &SharedField) -> u64 {
        self.number(field.data, field.shadow)
    }

    fn number(&self, data: Data, at: usize) -> u64 {
        let low = u64::from(self.cells[at]);
        if data.shape() == Shape::Total {
            u64::from(self.cells[at + 1]) << 32 | low
        } else {
            low
        }
    }

    fn put(&mut self, data: Data, at: usize, number: u64) {
        self.cells[at] = number as u32;
        if data.shape() == Shape::Total {
            self.cells[at + 1] = (number >> 32) as u32;
        }
    }
}
