//! A set of patterns with a name in the configuration, shared by all its users and edited at run
//! time.
//!
//! A reference belongs to one configuration. Its content ([`Content`]) may be that of the reference
//! of the same name in the previous configuration, which still runs. A reference holds the uses of
//! its configuration, and releases them when it is dropped.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::content::{Content, HeldUses};
use super::inline;
use super::registry::Source;
use super::set::{Set, ValueKinds};
use super::uses::How;
use super::versions::Versions;
use crate::Value;
use crate::cast::cast;

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
    /// Not set until something reads the reference.
    content: OnceLock<Arc<Content>>,
    held: Mutex<HeldUses>,
}

impl Drop for Reference {
    fn drop(&mut self) {
        if let Some(content) = self.content.get() {
            content.release(&lock(&self.held));
        }
    }
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
            content: OnceLock::new(),
            held: Mutex::default(),
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
        self.content().added()
    }

    /// The number of entries that were removed since the start.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.content().removed()
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

    /// The number of ways in which its configuration compares its entries: one for each matching
    /// method and its flags.
    #[must_use]
    pub fn ways(&self) -> usize {
        lock(&self.held).numbers.len()
    }

    /// The use for one of the [`Reference::ways`].
    pub(super) fn use_of_way(&self, way: usize) -> Option<usize> {
        lock(&self.held).numbers.get(way).copied()
    }

    /// Calls `found` with key and value of the entry that matches a sample, in one of the
    /// [`Reference::ways`]. Returns None if no entry matches.
    pub fn look_up(&self, way: usize, value: Value<'_>, found: impl FnOnce(&[u8], &[u8])) -> bool {
        let Some(one) = self.use_of_way(way) else {
            return false;
        };
        self.read(|set| {
            let Some(how) = set.how(one) else {
                return false;
            };
            let Some(value) = cast(value, how.method.kind()) else {
                return false;
            };
            let folded = inline::folded(&value, how.folds());
            let Some(number) = set.find(one, folded.as_ref().unwrap_or(&value)) else {
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
        self.draft_from(entries, self.versions().first_order())
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

    /// Replaces the current content by one from [`Reference::draft`] of a reference with the same
    /// content. Entries that are not valid for a use that was added since are dropped.
    pub fn commit(&self, draft: Draft) {
        self.content().commit(draft);
    }

    /// The versions of its content.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        self.content().versions()
    }

    /// Its content; empty if nothing reads the reference.
    pub(super) fn content(&self) -> &Arc<Content> {
        self.content.get_or_init(|| Arc::new(Content::new(None)))
    }

    /// Sets its content before its first use.
    pub(super) fn set_content(&self, content: Arc<Content>) {
        // The first reader sets it, once.
        let _ = self.content.set(content);
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

    /// The use of this kind, see [`Content::hold`].
    pub(super) fn use_for(&self, how: How, values: ValueKinds) -> Result<usize, (u64, String)> {
        self.content().hold(&mut lock(&self.held), how, values)
    }

    #[inline]
    pub(super) fn read<R>(&self, work: impl FnOnce(&Set) -> R) -> R {
        self.content().read(work)
    }

    pub(super) fn write<R>(&self, work: impl FnOnce(&mut Set) -> R) -> R {
        self.content().write(work)
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

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
