//! Variables: names become slots when the configuration is loaded; at run time a variable is an index.

use crate::Value;

/// Where a variable lives and dies (manual §2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// The process.
    Proc,
    /// The client connection.
    Sess,
    /// The request and its answer.
    Txn,
    /// While the request is processed.
    Req,
    /// While the response is processed.
    Res,
    /// A health check.
    Check,
}

/// A variable of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// Its scope.
    pub scope: VarScope,
    /// Its place in the [`Vars`] of that scope.
    pub slot: u32,
}

/// How many variables the configuration names, by scope: what [`Vars::with_slots`] needs.
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

/// Values of the variables of one scope, by the slot that the compiler gave each name.
///
/// `clear` keeps the storage; the bytes of old values go back to the thread's recycled buffers.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    values: Vec<Option<Value<'static>>>,
}

impl Vars {
    /// Room for `slots` variables, all unset.
    #[must_use]
    pub fn with_slots(slots: u32) -> Vars {
        Vars {
            values: vec![None; slots as usize],
        }
    }

    /// The value of a variable; none when it is not set.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&Value<'static>> {
        self.values.get(slot as usize)?.as_ref()
    }

    /// Sets a variable. The value is detached from what it was borrowed from.
    pub fn set(&mut self, slot: u32, value: Value<'_>) {
        let slot = slot as usize;
        if slot >= self.values.len() {
            self.values.resize(slot + 1, None);
        }
        self.values[slot] = Some(value.detach());
    }

    /// Unsets a variable.
    pub fn unset(&mut self, slot: u32) {
        if let Some(value) = self.values.get_mut(slot as usize) {
            *value = None;
        }
    }

    /// Unsets all variables and keeps the storage.
    pub fn clear(&mut self) {
        self.values.fill(None);
    }
}
