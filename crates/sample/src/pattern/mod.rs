//! Patterns: the values with which ACLs and maps compare samples.
//!
//! Patterns written in the configuration are compiled for one use and never change (`inline`).
//! Those of files, `virt@` sets and ACLs with an id form a [`Reference`]: loaded once, shared by
//! all users of its name, and edited at run time. A reference keeps its entries (`store`) and a
//! compiled form for each way to use them (`uses`): hash tables (`index`) for texts, prefixes,
//! suffixes, words (`texts`), networks and numbers, and lists for the rest. Each edit updates all
//! of them in a time that does not depend on their size.
//!
//! Invariants: all uses of a set have checked its content, so a search never meets a faulty
//! pattern. A search allocates nothing.

pub(crate) mod inline;
pub(crate) mod method;
pub mod regex;

mod content;
mod file;
mod hash;
mod index;
mod networks;
mod numbers;
mod parse;
mod parts;
mod reference;
mod registry;
mod set;
mod store;
mod texts;
mod twins;
mod uses;
mod versions;

#[cfg(test)]
mod generations;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::Value;
use crate::cast::cast;

pub use file::{FileLine, lines};
pub use reference::{Columns, Draft, EditError, Reference, Usage};
pub use registry::References;
pub(crate) use registry::{Source, Wanted};
pub(crate) use set::ValueKinds;
pub(crate) use uses::How;
pub use versions::{EntryId, Listing, OutOfRange, Versions, Way};

/// A lookup of values in a reference.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// It holds the use.
    reference: Arc<Reference>,
    /// That of the reference.
    content: Arc<content::Content>,
    /// The index of the use in its set.
    number: usize,
    how: How,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The value.
    Str,
    /// The value as a number.
    Int,
    /// The value as an address.
    Ip,
    /// The key.
    Key,
    /// The value, in which `\0` to `\9` stand for the matches of the groups in the key's regular
    /// expression.
    Groups,
}

impl Lookup {
    /// Adds a use of a reference whose content is loaded.
    ///
    /// # Errors
    /// The order of the first entry that is not valid for it, and the reason.
    fn new(reference: Arc<Reference>, wanted: Wanted) -> Result<Lookup, (u64, String)> {
        let number = reference.use_for(wanted.how, wanted.values)?;
        Ok(Lookup {
            content: Arc::clone(reference.content()),
            reference,
            number,
            how: wanted.how,
        })
    }

    /// Whether a pattern matches; the value was cast to the method's type.
    pub(crate) fn matches(&self, value: &Value<'_>) -> bool {
        match self.how.method {
            method::Method::Found => true,
            method::Method::Bool => inline::is_true(value),
            _ => match inline::folded(value, self.how.folds()) {
                Some(folded) => self.content.matches(self.number, &folded),
                None => self.content.matches(self.number, value),
            },
        }
    }

    /// Adds a pattern while the configuration is loaded.
    pub(crate) fn add(&self, pattern: &[u8]) -> Result<(), String> {
        match self.reference.add(pattern, b"") {
            Err(EditError::Refused(message)) => Err(message),
            Err(EditError::NotFound) | Ok(()) => Ok(()),
        }
    }

    /// The output of the matching entry for a value: None if no entry matches, `Some(None)` if the
    /// entry has no such output.
    pub(crate) fn output<'a>(&self, output: Output, value: Value<'_>) -> Option<Option<Value<'a>>> {
        let value = cast(value, self.how.method.kind())?;
        self.content.output(self.number, output, &value)
    }
}
