//! Assignments by converters while an expression is evaluated.

use std::cell::{OnceCell, RefCell};

use super::{Change, VarRef};
use crate::Value;

/// Changes that the owner of the variables (a stream or a session) has not applied yet. At most one
/// per variable.
#[derive(Clone, Debug, Default)]
pub struct Assigned {
    /// Created at the first use: an idle connection must be small.
    changes: OnceCell<Box<Changes>>,
}

type Changes = RefCell<Vec<(VarRef, Change)>>;

impl Assigned {
    /// Whether there are changes. Nearly always there are none.
    #[must_use]
    #[inline]
    pub fn any(&self) -> bool {
        self.changes
            .get()
            .is_some_and(|changes| !changes.borrow().is_empty())
    }

    /// Stores a change; replaces an earlier one of that variable.
    pub(crate) fn put(&self, var: VarRef, change: Change) {
        let mut changes = self.changes.get_or_init(Box::default).borrow_mut();
        changes.retain(|(known, _)| *known != var);
        changes.push((var, change));
    }

    /// The pending value of a variable: the outer None if there is no change, the inner None if it
    /// will be unset.
    pub(crate) fn get(&self, var: VarRef) -> Option<Option<Value<'static>>> {
        let changes = self.changes.get()?.borrow();
        let (_, change) = changes.iter().find(|(known, _)| *known == var)?;
        match change {
            Change::Keep => None,
            Change::Unset => Some(None),
            Change::Set(value) => Some(Some(value.clone())),
        }
    }

    /// The size of the pending values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let Some(changes) = self.changes.get() else {
            return 0;
        };
        let bytes = |(_, change): &(VarRef, Change)| match change {
            Change::Set(value) => super::VAR_BYTES + value.text_len(),
            _ => 0,
        };
        changes.borrow().iter().map(bytes).sum()
    }

    /// Passes every change, oldest first, to `make`.
    pub(crate) fn settle(&mut self, mut make: impl FnMut(VarRef, Change)) {
        if let Some(changes) = self.changes.get_mut() {
            for (var, change) in changes.get_mut().drain(..) {
                make(var, change);
            }
        }
    }
}
