//! The unique id of a stream: created at its first use, then constant (manual §4.2
//! unique-id-format).

use std::cell::{Cell, OnceCell};

use crate::Scope;

/// See the module. Readers share the facts, so the id is created behind a cell.
#[derive(Clone, Debug, Default)]
pub struct UniqueId {
    made: OnceCell<Box<[u8]>>,
    /// The id's format is being rendered. A format that contains the id itself gets no value.
    busy: Cell<bool>,
}

impl UniqueId {
    /// The id, if it was created.
    #[must_use]
    pub fn get(&self) -> Option<&[u8]> {
        self.made.get().map(|id| &**id)
    }

    /// The id; `make` creates it at the first call. None while it is being created.
    pub fn get_or_make(&self, make: impl FnOnce(&mut Vec<u8>)) -> Option<&[u8]> {
        if self.made.get().is_none() {
            if self.busy.replace(true) {
                return None;
            }
            let mut id = Vec::new();
            make(&mut id);
            self.busy.set(false);
            // No other code can have set it meanwhile.
            let _ = self.made.set(id.into());
        }
        self.get()
    }
}

/// The id of the scope's stream; created from its frontend's format at the first use.
pub(crate) fn unique_id<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    let txn = scope.txn.filter(|txn| !txn.unread)?;
    let id = &txn.unique_id;
    match scope.world.unique_id_format(scope.session.frontend) {
        Some(format) => id.get_or_make(|out| format.render(scope, out)),
        None => id.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_and_not_within_itself() {
        let id = UniqueId::default();
        assert_eq!(id.get(), None);
        let first = id.get_or_make(|out| {
            assert_eq!(id.get_or_make(|out| out.push(b'x')), None);
            out.extend_from_slice(b"one");
        });
        assert_eq!(first, Some(&b"one"[..]));
        assert_eq!(
            id.get_or_make(|out| out.extend_from_slice(b"two")),
            Some(&b"one"[..])
        );
    }
}
