//! A set of patterns with a name in the configuration, shared by all its users and edited at run
//! time.
//!
//! The readers' lock has a separate part for each thread, so readers do not contend. An edit
//! prepares as much as possible while readers continue. Then it waits for the readers in the set,
//! and blocks others for the time of one insertion.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_utils::sync::{ShardedLock, ShardedLockWriteGuard};

use super::registry::Source;
use super::set::{Set, ValueKinds, int_of};
use super::uses::How;
use super::versions::Versions;
use super::{Lookup, Output, inline};
use crate::bytes::SAMPLE_BYTES_MAX;
use crate::cast::{cast, ip_of};
use crate::{Bytes, Value};

/// Whether entries have values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Patterns of ACLs: keys alone.
    Keys,
    /// Keys and values.
    KeysAndValues,
}

/// A pattern file, a virtual one, or the patterns of an ACL with an id. See the module.
#[derive(Debug)]
pub struct Reference {
    name: Option<Box<str>>,
    id: OnceLock<u32>,
    usage: Mutex<Usage>,
    /// Not set until something reads the reference.
    columns: OnceLock<Columns>,
    set: ShardedLock<Set>,
    versions: Versions,
    /// Entries that were added to the current content and removed from it, since the start.
    added: AtomicU64,
    removed: AtomicU64,
}

/// The users of a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// An ACL reads it.
    pub acl: bool,
    /// A map reads it, or an ACL with `-M`.
    pub map: bool,
    /// The places of use, in the format of `show map` and `show acl`.
    pub text: String,
}

/// The next content of a reference, filled while the current one is in use.
#[derive(Debug)]
pub struct Draft {
    pub(super) set: Set,
}

/// Why an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The text is not a pattern or a value of this set.
    Refused(String),
    /// There is no entry with this key.
    NotFound,
}

impl From<String> for EditError {
    fn from(message: String) -> Self {
        EditError::Refused(message)
    }
}

impl Reference {
    pub(super) fn new(name: Option<&str>) -> Reference {
        Reference {
            name: name.map(Into::into),
            id: OnceLock::new(),
            usage: Mutex::default(),
            columns: OnceLock::new(),
            set: ShardedLock::new(Set::with_room(0)),
            versions: Versions::default(),
            added: AtomicU64::new(0),
            removed: AtomicU64::new(0),
        }
    }

    pub(super) fn with_id(id: u32) -> Reference {
        let reference = Reference::new(None);
        reference.set_id(id);
        reference
    }

    /// Its name: the file's name without prefix, `virt@…`, or none for the patterns of an ACL with
    /// an id (`-u`).
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its number for `#<id>` (`-u`, otherwise assigned in order).
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id.get().copied().unwrap_or(u32::MAX)
    }

    /// Whether its entries have values.
    #[must_use]
    pub fn columns(&self) -> Columns {
        self.columns.get().copied().unwrap_or(Columns::Keys)
    }

    /// The users and the places of use.
    #[must_use]
    pub fn usage(&self) -> Usage {
        lock(&self.usage).clone()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|set| set.store().len())
    }

    /// The number of entries that were added since the start, those of files included.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// The number of entries that were removed since the start.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of entries and tables in memory, in bytes, without compiled regular expressions.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.read(Set::bytes)
    }

    /// The value of the first entry with this key; empty if entries have no values. The key is
    /// compared by name, not matched as a pattern.
    #[must_use]
    pub fn value_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.read(|set| Some(set.store().value(set.find_key(key)?).to_vec()))
    }

    /// Calls `each` with key and value of every entry, in order. The set is not locked during the
    /// whole time, so concurrent edits may or may not be seen.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8])) {
        let mut listing = self.listing(self.versions().current());
        while self.list(&mut listing, |_, key, value| each(key, value)) {}
    }

    /// The number of ways in which its entries are compared: one for each matching method and its
    /// flags.
    #[must_use]
    pub fn ways(&self) -> usize {
        self.read(Set::ways)
    }

    /// Calls `found` with key and value of the entry that matches a sample, in one of the
    /// [`Reference::ways`]. Returns None if no entry matches.
    pub fn look_up(&self, way: usize, value: Value<'_>, found: impl FnOnce(&[u8], &[u8])) -> bool {
        self.read(|set| {
            let Some(how) = set.how(way) else {
                return false;
            };
            let Some(value) = cast(value, how.method.kind()) else {
                return false;
            };
            let folded = inline::folded(&value, how.folds());
            let Some(number) = set.find(way, folded.as_ref().unwrap_or(&value)) else {
                return false;
            };
            found(set.store().key(number), set.store().value(number));
            true
        })
    }

    /// Adds an entry at the end, even if the key exists already.
    ///
    /// # Errors
    /// A key that is not valid for a matching method in use, a value that is not valid for a
    /// converter in use, or a text that is too long.
    pub fn add(&self, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        let prepared = self.read(|set| set.prepare(key, value))?;
        Ok(self.write(|set| set.add(prepared, false))?)
    }

    /// Changes the value of all entries with this key.
    ///
    /// # Errors
    /// No such entry, or a value that is not valid for a converter in use.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        if self.write(|set| set.set(key, value))? {
            Ok(())
        } else {
            Err(EditError::NotFound)
        }
    }

    /// Changes the value of all entries with this key, or adds one (`http-request set-map`).
    ///
    /// # Errors
    /// As for [`Reference::add`].
    pub fn set_or_add(&self, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        // Traffic mostly sets the current value again, which needs no edit.
        let known = self.read(|set| set.find_key(key).map(|at| set.store().value(at) == value));
        match known {
            Some(true) => Ok(()),
            Some(false) => match self.set(key, value) {
                Err(EditError::NotFound) => self.add_if_new(key, value),
                done => done,
            },
            None => self.add_if_new(key, value),
        }
    }

    /// Adds an entry unless the key exists (`http-request add-acl`).
    ///
    /// # Errors
    /// As for [`Reference::add`].
    pub fn add_if_new(&self, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        if self.read(|set| set.find_key(key).is_some()) {
            return Ok(());
        }
        let prepared = self.read(|set| set.prepare(key, value))?;
        Ok(self.write(|set| match set.find_key(key) {
            Some(_) => Ok(()),
            None => set.add(prepared, false),
        })?)
    }

    /// Removes the first entry with this key.
    ///
    /// # Errors
    /// No such entry.
    pub fn remove(&self, key: &[u8]) -> Result<(), EditError> {
        if self.read(|set| set.find_key(key).is_none()) {
            return Err(EditError::NotFound);
        }
        if self.write(|set| set.remove(key)) {
            Ok(())
        } else {
            Err(EditError::NotFound)
        }
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let draft = self.draft(0);
        self.commit(draft);
    }

    /// Empty content for about this many entries. It is filled while the current content is in use,
    /// and replaces it at once with [`Reference::commit`].
    #[must_use]
    pub fn draft(&self, entries: usize) -> Draft {
        self.draft_from(entries, self.versions.first_order())
    }

    /// The first content of a reference: the order of an entry is its index in the file.
    pub(super) fn first_draft(&self, entries: usize) -> Draft {
        self.draft_from(entries, 0)
    }

    fn draft_from(&self, entries: usize, first_order: u64) -> Draft {
        Draft {
            set: self.read(|set| set.emptied(entries, first_order)),
        }
    }

    /// Replaces the current content by one from [`Reference::draft`] of the same reference.
    pub fn commit(&self, mut draft: Draft) {
        draft.set.seal();
        let new = draft.set.store().len();
        let old = {
            let mut set = self.locked();
            std::mem::replace(&mut *set, draft.set)
        };
        self.added.fetch_add(new as u64, Ordering::Relaxed);
        self.removed
            .fetch_add(old.store().len() as u64, Ordering::Relaxed);
        // The old content is freed after the lock was released.
        drop(old);
    }

    /// The versions of its content.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    pub(super) fn set_id(&self, id: u32) {
        // The id is set once, when the configuration is complete.
        let _ = self.id.set(id);
    }

    pub(super) fn given_id(&self) -> Option<u32> {
        self.id.get().copied()
    }

    /// Sets the columns if they are not set yet. Returns whether they are as given.
    pub(super) fn claim(&self, columns: Columns) -> bool {
        *self.columns.get_or_init(|| columns) == columns
    }

    /// Records that an ACL or a map uses it under this name.
    pub(super) fn used(&self, written: &str, by_map: bool, source: &Source) {
        let mut usage = lock(&self.usage);
        let what = if by_map { "map" } else { "acl" };
        usage.map |= by_map;
        usage.acl |= !by_map;
        let (file, line) = (&source.file, source.line);
        let place = format!("by {what} at file '{file}' line {line}");
        if usage.text.is_empty() {
            usage.text = format!("pattern loaded from file '{written}' used {place}");
        } else if !usage.text.ends_with(&place) && !usage.text.contains(&format!("{place},")) {
            // A log format in `defaults` is compiled for each frontend, so the same place may come
            // again.
            usage.text.push_str(&format!(", {place}"));
        }
    }

    /// Records the ACL whose patterns it holds.
    pub(super) fn owned(&self, keyword: &str, source: &Source) {
        let (file, line) = (&source.file, source.line);
        *lock(&self.usage) = Usage {
            acl: true,
            map: false,
            text: format!("acl '{keyword}' file '{file}' line {line}"),
        };
    }

    /// Whether something reads it.
    pub(super) fn is_read(&self) -> bool {
        self.columns.get().is_some()
    }

    /// The use of this kind, see [`Set::use_for`].
    pub(super) fn use_for(&self, how: How, values: ValueKinds) -> Result<usize, (u64, String)> {
        self.write(|set| {
            let one = set.use_for(how)?;
            set.require(values)?;
            Ok(one)
        })
    }

    /// Whether an entry matches a value that was cast to the method's type.
    pub(super) fn matches(&self, lookup: &Lookup, value: &Value<'_>) -> bool {
        self.read(|set| set.find(lookup.number, value).is_some())
    }

    /// The output of the entry that matches a value; the outer None if no entry matches.
    pub(super) fn output<'a>(
        &self,
        lookup: &Lookup,
        output: Output,
        value: &Value<'_>,
    ) -> Option<Option<Value<'a>>> {
        self.read(|set| {
            let number = set.find(lookup.number, value)?;
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
                    let regex = set.one(lookup.number).regex(set.store(), number)?;
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

impl Draft {
    /// Adds an entry at the end.
    ///
    /// # Errors
    /// As for [`Reference::add`].
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        let prepared = self.set.prepare(key, value)?;
        Ok(self.set.add(prepared, true)?)
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set.store().len()
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn lock(usage: &Mutex<Usage>) -> MutexGuard<'_, Usage> {
    usage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text of the set in a recycled buffer.
fn copied<'a>(text: &[u8]) -> Value<'a> {
    let mut buffer = Bytes::buffer();
    buffer.extend(&text[..text.len().min(SAMPLE_BYTES_MAX)]);
    Value::Str(buffer.into())
}
