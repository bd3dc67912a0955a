//! Variables of scope `proc`: all workers may read and set them. Reads are lock-free.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use sample::Value;
use sample::vars::{Change, VAR_BYTES};

/// By slot; none where the variable is not set.
#[derive(Debug, Default)]
pub(crate) struct ProcVars {
    /// A configuration shares those of the one before it.
    values: Vec<Arc<ArcSwapOption<Value<'static>>>>,
}

impl ProcVars {
    /// Slots for all variables that the configuration names; none is set.
    pub fn new(slots: u32) -> ProcVars {
        ProcVars {
            values: (0..slots).map(|_| Arc::default()).collect(),
        }
    }

    /// The same variables, with slots for those that a later configuration adds.
    pub fn grown(&self, slots: u32) -> ProcVars {
        let mut values = self.values.clone();
        values.resize_with(values.len().max(slots as usize), Arc::default);
        ProcVars { values }
    }

    /// A copy of a variable's value.
    pub fn get(&self, slot: u32) -> Option<Value<'static>> {
        let value = self.values.get(slot as usize)?.load();
        value.as_deref().cloned()
    }

    /// Changes a variable. Returns its accounted size before and after (see
    /// [`sample::vars::VarLimits`]).
    pub fn change(&self, slot: u32, change: Change) -> (usize, usize) {
        let new = match change {
            Change::Keep => return (0, 0),
            Change::Unset => None,
            Change::Set(value) => Some(Arc::new(value)),
        };
        let Some(cell) = self.values.get(slot as usize) else {
            return (0, 0);
        };
        let bytes =
            |value: Option<&Value<'_>>| value.map_or(0, |value| VAR_BYTES + value.text_len());
        let after = bytes(new.as_deref());
        let old = cell.swap(new);
        (bytes(old.as_deref()), after)
    }
}
