//! Variables: names become slots when the configuration is loaded; at run time a variable is an
//! index.
//!
//! [`Vars`] holds the values of one scope. An [`Assignment`] implements `set-var` and related
//! actions. It computes a [`Change`] from a scope, and the engine, which owns the scope's facts,
//! applies the change. Converters cannot change the facts, which are borrowed. Their assignments
//! are kept in [`Assigned`], which reads check first, until the engine applies them.

mod assigned;
mod assignment;

pub use assigned::Assigned;
pub use assignment::{Assignment, Change, SetConditions, Source};

use crate::Value;

/// The lifetime of a variable (manual §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// The process.
    Proc,
    /// The client connection.
    Sess,
    /// The request and its response.
    Txn,
    /// The processing of the request.
    Req,
    /// The processing of the response.
    Res,
    /// A health check.
    Check,
    /// A parent stream's. No stream here has a parent, so such a variable is never set.
    Parent,
}

impl VarScope {
    /// Scopes by their prefixes.
    pub const PREFIXES: &'static [(&'static str, VarScope)] = &[
        ("proc.", VarScope::Proc),
        ("sess.", VarScope::Sess),
        ("txn.", VarScope::Txn),
        ("req.", VarScope::Req),
        ("res.", VarScope::Res),
        ("check.", VarScope::Check),
        ("psess.", VarScope::Parent),
        ("ptxn.", VarScope::Parent),
        ("preq.", VarScope::Parent),
        ("pres.", VarScope::Parent),
    ];
}

/// A variable of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// Its scope.
    pub scope: VarScope,
    /// Its index in the [`Vars`] of that scope.
    pub slot: u32,
}

/// The number of variables in the configuration, by scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// Of scope `proc`.
    pub proc: u32,
    /// Of scope `sess`.
    pub sess: u32,
    /// Of scope `txn`.
    pub txn: u32,
    /// Of scope `req`.
    pub req: u32,
    /// Of scope `res`.
    pub res: u32,
    /// Of scope `check`.
    pub check: u32,
}

/// The names of all variables, without their scope, by scope and slot.
#[derive(Clone, Debug, Default)]
pub struct VarNames {
    names: Vec<(VarRef, String)>,
}

impl VarNames {
    /// Adds a variable.
    pub(crate) fn push(&mut self, var: VarRef, name: &str) {
        self.names.push((var, name.to_owned()));
    }

    /// All variables with their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (VarRef, &str)> {
        self.names.iter().map(|(var, name)| (*var, name.as_str()))
    }

    /// Variables of a scope with their names, in the order of their first occurrence in the
    /// configuration.
    pub fn of(&self, scope: VarScope) -> impl Iterator<Item = (u32, &str)> {
        let named = self.names.iter().filter(move |(var, _)| var.scope == scope);
        named.map(|(var, name)| (var.slot, name.as_str()))
    }
}

/// Limits of the memory of variables in bytes; 0 means no limit (`tune.vars.*-max-size`). The size
/// of a variable is [`VAR_BYTES`] plus the size of its text. A variable that does not fit is not
/// set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VarLimits {
    /// All variables of the process, all workers together: the lower one of `global-max-size` and
    /// `proc-max-size`.
    pub process: u32,
    /// Variables of a client connection, including its stream.
    pub sess: u32,
    /// Variables of a stream, including scopes `req` and `res`.
    pub txn: u32,
    /// Variables of scopes `req` and `res` of a stream.
    pub reqres: u32,
    /// Variables of a health check.
    pub check: u32,
}

impl VarLimits {
    /// Whether any limit applies to variables that traffic sets.
    #[must_use]
    pub fn any(&self) -> bool {
        *self
            != VarLimits {
                check: self.check,
                ..VarLimits::default()
            }
    }
}

/// The fixed part of a variable's size in [`VarLimits`].
pub const VAR_BYTES: usize = 64;

/// A variable's state. A variable that was unset differs from one that was never set (`ifexists`).
#[derive(Clone, Debug, Default)]
pub(crate) enum Entry {
    #[default]
    Absent,
    Unset,
    Set(Value<'static>),
}

/// Values of the variables of one scope, by the slot that the compiler gave each name.
///
/// `clear` keeps the storage; the bytes of old values go back to the thread's recycled buffers.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Vars {
    /// The value of a variable; none when it is not set.
    #[must_use]
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Value<'static>> {
        match self.entries.get(slot as usize) {
            Some(Entry::Set(value)) => Some(value),
            _ => None,
        }
    }

    /// All entries, by slot.
    #[inline]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the variable was ever set, even if it was unset since.
    #[must_use]
    pub fn exists(&self, slot: u32) -> bool {
        !matches!(self.entries.get(slot as usize), None | Some(Entry::Absent))
    }

    /// Sets a variable.
    #[inline]
    pub fn set(&mut self, slot: u32, value: Value<'static>) {
        let slot = slot as usize;
        self.bytes += VAR_BYTES + value.text_len();
        match self.entries.get_mut(slot) {
            Some(entry) => {
                self.bytes -= entry.bytes();
                *entry = Entry::Set(value);
            }
            None => {
                self.make_room(slot);
                self.entries.push(Entry::Set(value));
            }
        }
    }

    /// Adds entries so that `slot` is the next one.
    #[inline]
    fn make_room(&mut self, slot: usize) {
        if self.entries.len() < slot {
            self.entries.resize(slot, Entry::Absent);
        }
    }

    /// Unsets a variable.
    pub fn unset(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && let Entry::Set(value) = entry
        {
            self.bytes -= value.text_len();
            *entry = Entry::Unset;
        }
    }

    /// Applies a change.
    #[inline]
    pub fn change(&mut self, slot: u32, change: Change) {
        match change {
            Change::Keep => {}
            Change::Unset => self.unset(slot),
            Change::Set(value) => self.set(slot, value),
        }
    }

    /// Removes all variables and keeps the storage.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Whether nothing was set since the last `clear`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their size for [`VarLimits`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Entry::Absent => 0,
            Entry::Unset => VAR_BYTES,
            Entry::Set(value) => VAR_BYTES + value.text_len(),
        }
    }
}

#[cfg(test)]
mod tests;
