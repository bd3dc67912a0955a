//! The content of a pattern set, which the references of one or more configurations share.
//!
//! The readers' lock has a separate part for each thread, so readers do not contend. An edit
//! prepares as much as possible while readers continue. Then it waits for the readers in the set,
//! and blocks others for the time of one insertion.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::sync::{ShardedLock, ShardedLockWriteGuard};

use super::Output;
use super::reference::Draft;
use super::set::{Set, ValueKinds, int_of};
use super::uses::How;
use super::versions::Versions;
use crate::bytes::SAMPLE_BYTES_MAX;
use crate::cast::ip_of;
use crate::{Bytes, Value};

/// See the module.
#[derive(Debug)]
pub(super) struct Content {
    set: ShardedLock<Set>,
    versions: Versions,
    /// Entries that were added to the current content and removed from it, since the start.
    added: AtomicU64,
    removed: AtomicU64,
    /// The hash of the text from which it was loaded.
    loaded_from: Option<u128>,
}

/// The uses of a content that one reference holds.
#[derive(Debug, Default)]
pub(super) struct HeldUses {
    /// The numbers of the uses, in the order of their first occurrence in the configuration.
    pub numbers: Vec<usize>,
    values: ValueKinds,
}

impl Content {
    /// Empty content. `loaded_from` is the hash of the text that it will be loaded from.
    pub(super) fn new(loaded_from: Option<u128>) -> Content {
        Content {
            set: ShardedLock::new(Set::with_room(0)),
            versions: Versions::default(),
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            loaded_from,
        }
    }

    /// Whether it was loaded from a text with this hash.
    pub(super) fn is_of(&self, hash: u128) -> bool {
        self.loaded_from == Some(hash)
    }

    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    pub(super) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    pub(super) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Adds a use to those that a reference holds. Returns its number.
    ///
    /// # Errors
    /// The order of the first entry that is not valid for it, and the reason.
    pub(super) fn hold(
        &self,
        held: &mut HeldUses,
        how: How,
        values: ValueKinds,
    ) -> Result<usize, (u64, String)> {
        let known = held.numbers.iter().copied();
        let known = self.read(|set| known.into_iter().find(|at| set.how(*at) == Some(how)));
        let number = match known {
            Some(number) => number,
            None => {
                // Readers continue while the use is compiled.
                let compiled = self.read(|set| set.compile(how))?;
                let number = self.write(|set| set.hold(how, compiled))?;
                held.numbers.push(number);
                number
            }
        };
        let new = ValueKinds {
            int: values.int && !held.values.int,
            ip: values.ip && !held.values.ip,
        };
        if new != ValueKinds::default() {
            let edits = self.read(|set| set.check_values(new).map(|()| set.edits()))?;
            self.write(|set| {
                if set.edits() != edits {
                    set.check_values(new)?;
                }
                set.require(new);
                Ok(())
            })?;
            held.values.int |= new.int;
            held.values.ip |= new.ip;
        }
        Ok(number)
    }

    /// Releases the uses that a reference held. Uses that nothing else holds are freed.
    pub(super) fn release(&self, held: &HeldUses) {
        let freed: Vec<_> = self.write(|set| {
            set.no_longer_require(held.values);
            held.numbers
                .iter()
                .map(|number| set.release(*number))
                .collect()
        });
        // They are freed after the lock was released.
        drop(freed);
    }

    /// Replaces the current content by a draft.
    pub(super) fn commit(&self, draft: Draft) {
        let mut new = draft.set;
        // A configuration that was loaded meanwhile may have more uses.
        self.read(|set| new.adopt(set));
        new.seal();
        let entries = new.store().len();
        let old = {
            let mut set = self.locked();
            new.adopt(&set);
            std::mem::replace(&mut *set, new)
        };
        self.added.fetch_add(entries as u64, Ordering::Relaxed);
        self.removed
            .fetch_add(old.store().len() as u64, Ordering::Relaxed);
        // The old content is freed after the lock was released.
        drop(old);
    }

    /// Whether an entry matches a value that was cast to the method's type.
    pub(super) fn matches(&self, number: usize, value: &Value<'_>) -> bool {
        self.read(|set| set.find(number, value).is_some())
    }

    /// The output of the entry that matches a value; the outer None if no entry matches.
    pub(super) fn output<'a>(
        &self,
        use_number: usize,
        output: Output,
        value: &Value<'_>,
    ) -> Option<Option<Value<'a>>> {
        self.read(|set| {
            let number = set.find(use_number, value)?;
            let text = set.store().value(number);
            Some(match output {
                Output::Key => Some(copied(set.store().key(number))),
                Output::Str => Some(copied(text)),
                Output::Int => int_of(text).map(Value::Int),
                Output::Ip => ip_of(text).map(Value::from),
                Output::Groups => {
                    let Value::Str(subject) = value else {
                        return Some(None);
                    };
                    let regex = set.one(use_number)?.regex(set.store(), number)?;
                    let groups = regex.captures(subject)?;
                    let mut out = Bytes::buffer();
                    super::regex::expand(text, &groups, out.as_vec(), SAMPLE_BYTES_MAX)
                        .then(|| Value::Str(out.into()))
                }
            })
        })
    }

    #[inline]
    pub(super) fn read<R>(&self, work: impl FnOnce(&Set) -> R) -> R {
        // After a panic in this lock, a release build has ended. So no reader meets a half-made
        // change.
        work(
            &self
                .set
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        )
    }

    /// Edits the content, and counts the entries that come and go.
    pub(super) fn write<R>(&self, work: impl FnOnce(&mut Set) -> R) -> R {
        let mut set = self.locked();
        let before = set.store().len();
        let result = work(&mut set);
        let after = set.store().len();
        drop(set);
        let (count, by) = if after > before {
            (&self.added, after - before)
        } else {
            (&self.removed, before - after)
        };
        count.fetch_add(by as u64, Ordering::Relaxed);
        result
    }

    fn locked(&self) -> ShardedLockWriteGuard<'_, Set> {
        self.set
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A text of the set in a recycled buffer.
fn copied<'a>(text: &[u8]) -> Value<'a> {
    let mut buffer = Bytes::buffer();
    buffer.extend(&text[..text.len().min(SAMPLE_BYTES_MAX)]);
    Value::Str(buffer.into())
}
