//! Operations for the runtime interface: versions that are prepared while the current one is in
//! use, entries by their ids, and the matches of a sample (management guide §9.3, `prepare map` and
//! related commands).

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::method::{METHODS, Method};
use super::reference::{Draft, EditError, Reference};
use super::set::Set;
use crate::cast::ip_of;

/// Entries that are read under one lock when a reference is listed.
const LISTED_AT_ONCE: u32 = 1024;
/// Most versions of a reference with entries that are not committed.
const PREPARED_MAX: usize = 16;
/// Bits of an order within one content. The orders of one content are below those of the next one.
const ORDERS_OF_A_CONTENT: u32 = 40;

/// Identifies an entry for as long as its reference contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(u64);

impl EntryId {
    /// Parses the text of an [`EntryId`]: `0x` and hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<EntryId> {
        let digits = text.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok().map(EntryId)
    }

    fn of(order: u64) -> EntryId {
        EntryId(order + 1)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The versions of a reference's content.
#[derive(Debug, Default)]
pub struct Versions {
    current: AtomicU32,
    next: AtomicU32,
    /// The number of contents created, without the first one.
    contents: AtomicU64,
    prepared: Mutex<BTreeMap<u32, Draft>>,
}

impl Versions {
    /// The version in use.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.current.load(Ordering::Acquire)
    }

    /// The latest version.
    #[must_use]
    pub fn latest(&self) -> u32 {
        self.next.load(Ordering::Acquire)
    }

    /// Reserves a new version. Returns its number.
    pub fn prepare(&self) -> u32 {
        self.next.fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// The order of the first entry of a new content.
    pub(super) fn first_order(&self) -> u64 {
        (self.contents.fetch_add(1, Ordering::Relaxed) + 1) << ORDERS_OF_A_CONTENT
    }

    fn prepared(&self) -> MutexGuard<'_, BTreeMap<u32, Draft>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version does not exist any more, or does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// The entries of a version that were not listed yet. See [`Reference::list`].
#[derive(Debug)]
pub struct Listing {
    version: u32,
    /// The order and the number of each.
    entries: Vec<(u64, u32)>,
    at: usize,
}

/// A way in which entries are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The name for `-m`.
    pub method: &'static str,
    /// `-i`.
    pub ignores_case: bool,
    /// Whether HAProxy finds the entry in a tree; otherwise it searches a list.
    pub is_tree: bool,
}

impl Reference {
    /// Adds an entry to a version, even if the key exists already.
    ///
    /// # Errors
    /// As for [`Reference::add`]; or too many versions.
    pub fn add_to(&self, version: u32, key: &[u8], value: &[u8]) -> Result<(), EditError> {
        if version == self.versions().current() {
            return self.add(key, value);
        }
        let mut prepared = self.versions().prepared();
        if !prepared.contains_key(&version) {
            if prepared.len() >= PREPARED_MAX {
                let message = format!("more than {PREPARED_MAX} versions are prepared");
                return Err(EditError::Refused(message));
            }
            prepared.insert(version, self.draft(0));
        }
        match prepared.get_mut(&version) {
            Some(draft) => draft.add(key, value),
            None => Err(EditError::NotFound),
        }
    }

    /// Removes all entries of a version.
    pub fn clear_version(&self, version: u32) {
        if version == self.versions().current() {
            self.clear()
        } else {
            drop(self.versions().prepared().remove(&version))
        }
    }

    /// Replaces the current version by this one, and drops older versions.
    ///
    /// # Errors
    /// The version was not prepared, or is not newer than the current one.
    pub fn commit_version(&self, version: u32) -> Result<(), OutOfRange> {
        let versions = self.versions();
        let mut prepared = versions.prepared();
        let current = versions.current();
        let is_newer = |one: u32, than: u32| one.wrapping_sub(than) as i32 > 0;
        if !is_newer(version, current) || is_newer(version, versions.latest()) {
            return Err(OutOfRange);
        }
        let draft = prepared.remove(&version);
        prepared.retain(|one, _| is_newer(*one, version));
        self.commit(draft.unwrap_or_else(|| self.draft(0)));
        versions.current.store(version, Ordering::Release);
        Ok(())
    }

    /// Begins a listing of the entries of a version.
    #[must_use]
    pub fn listing(&self, version: u32) -> Listing {
        let mut entries = Vec::new();
        let mut from = 0;
        let next = |from| move |set: &Set| set.store().numbers(from, LISTED_AT_ONCE);
        while let Some(Some(some)) = self.read_version(version, next(from)) {
            entries.extend(some);
            from += LISTED_AT_ONCE;
        }
        entries.sort_unstable();
        Listing {
            version,
            entries,
            at: 0,
        }
    }

    /// Calls `each` with id, key and value of the next entries of a listing, in order. Returns
    /// false if there is none left. No lock is held between calls, so concurrent edits may or may
    /// not be seen.
    pub fn list(&self, listing: &mut Listing, mut each: impl FnMut(EntryId, &[u8], &[u8])) -> bool {
        let some = &listing.entries[listing.at..];
        let some = &some[..some.len().min(LISTED_AT_ONCE as usize)];
        let mut texts = Vec::new();
        let mut found = Vec::with_capacity(some.len());
        self.read_version(listing.version, |set| {
            let store = set.store();
            for (order, number) in some.iter().filter(|(order, at)| store.is(*at, *order)) {
                texts.extend_from_slice(store.key(*number));
                let key_end = texts.len();
                texts.extend_from_slice(store.value(*number));
                found.push((EntryId::of(*order), key_end, texts.len()));
            }
        });
        let mut start = 0;
        for (id, key_end, end) in found {
            each(id, &texts[start..key_end], &texts[key_end..end]);
            start = end;
        }
        listing.at += some.len();
        listing.at < listing.entries.len()
    }

    /// Changes the value of one entry of the current version.
    ///
    /// # Errors
    /// No such entry, or a value that is not valid for a converter in use.
    pub fn set_entry(&self, id: EntryId, value: &[u8]) -> Result<(), EditError> {
        let (order, number) = self.entry(id).ok_or(EditError::NotFound)?;
        self.write(|set| {
            if set.store().is(number, order) {
                Ok(set.set_one(number, value)?)
            } else {
                Err(EditError::NotFound)
            }
        })
    }

    /// Removes one entry of the current version.
    ///
    /// # Errors
    /// No such entry.
    pub fn remove_entry(&self, id: EntryId) -> Result<(), EditError> {
        let (order, number) = self.entry(id).ok_or(EditError::NotFound)?;
        self.write(|set| {
            if set.store().is(number, order) {
                set.remove_one(number);
                Ok(())
            } else {
                Err(EditError::NotFound)
            }
        })
    }

    /// Removes all entries with this key.
    ///
    /// # Errors
    /// No such entry.
    pub fn remove_all(&self, key: &[u8]) -> Result<(), EditError> {
        self.remove(key)?;
        while self.remove(key).is_ok() {}
        Ok(())
    }

    /// One of the [`Reference::ways`] in which entries are compared.
    #[must_use]
    pub fn way(&self, way: usize) -> Option<Way> {
        let one = self.use_of_way(way)?;
        let how = self.read(|set| set.how(one))?;
        let mut names = METHODS.iter();
        let name = names.find(|(_, method)| *method == how.method);
        Some(Way {
            method: name.map_or("str", |(name, _)| name),
            ignores_case: how.ignore_case,
            is_tree: match how.method {
                Method::Str | Method::Beg => !how.ignore_case,
                Method::Ip => true,
                _ => false,
            },
        })
    }

    /// The type of a value for converters, by HAProxy's name.
    #[must_use]
    pub fn type_of(&self, value: &[u8]) -> &'static str {
        let kinds = self.read(Set::values);
        match (kinds.int, kinds.ip.then(|| ip_of(value)).flatten()) {
            (true, _) => "sint",
            (_, Some(IpAddr::V4(_))) => "ipv4",
            (_, Some(IpAddr::V6(_))) => "ipv6",
            _ => "str",
        }
    }

    /// The order and the number of an entry.
    fn entry(&self, id: EntryId) -> Option<(u64, u32)> {
        let order = id.0.checked_sub(1)?;
        let mut from = 0;
        while let Some(some) = self.read(|set| set.store().numbers(from, LISTED_AT_ONCE)) {
            let found = some.into_iter().find(|(known, _)| *known == order);
            if found.is_some() {
                return found;
            }
            from += LISTED_AT_ONCE;
        }
        None
    }

    fn read_version<R>(&self, version: u32, work: impl FnOnce(&Set) -> R) -> Option<R> {
        if version == self.versions().current() {
            Some(self.read(work))
        } else {
            let prepared = self.versions().prepared();
            prepared.get(&version).map(|draft| work(&draft.set))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::ValueKinds;
    use super::super::uses::How;
    use super::*;

    fn reference() -> Reference {
        let reference = Reference::new(Some("virt@x"));
        let how = How {
            method: Method::Str,
            ignore_case: false,
            strict_addresses: false,
        };
        let used = reference.use_for(how, ValueKinds::default());
        assert_eq!(used, Ok(0));
        reference
    }

    /// Keys and values of a version, and its ids.
    fn listed(reference: &Reference, version: u32) -> (String, Vec<EntryId>) {
        let (mut text, mut ids) = (String::new(), Vec::new());
        let mut listing = reference.listing(version);
        loop {
            let more = reference.list(&mut listing, |id, key, value| {
                let part = |bytes| String::from_utf8_lossy(bytes);
                text += &format!("{}={} ", part(key), part(value));
                ids.push(id);
            });
            if !more {
                return (text, ids);
            }
        }
    }

    #[test]
    fn a_version_takes_the_place_of_the_current_one() {
        let reference = reference();
        reference.add(b"a", b"1").expect("added");
        let (one, two) = (
            reference.versions().prepare(),
            reference.versions().prepare(),
        );
        assert_eq!((one, two, reference.versions().latest()), (1, 2, 2));
        reference.add_to(one, b"b", b"2").expect("added");
        reference.add_to(two, b"c", b"3").expect("added");
        assert_eq!(listed(&reference, 0).0, "a=1 ");
        assert_eq!(listed(&reference, one).0, "b=2 ");
        assert_eq!(reference.commit_version(3), Err(OutOfRange));
        assert_eq!(reference.commit_version(0), Err(OutOfRange));
        assert_eq!(reference.commit_version(two), Ok(()));
        assert_eq!(listed(&reference, two).0, "c=3 ");
        assert_eq!(listed(&reference, one).0, "", "it is forgotten");
        assert_eq!(reference.commit_version(one), Err(OutOfRange));
        assert_eq!(reference.value_of(b"a"), None);
        reference.add_to(two, b"d", b"4").expect("the current one");
        assert_eq!(reference.value_of(b"d"), Some(b"4".to_vec()));
        reference.clear_version(two);
        assert!(reference.is_empty());
    }

    #[test]
    fn prepared_versions_have_a_bound() {
        let reference = reference();
        for version in 1..=PREPARED_MAX as u32 {
            reference.add_to(version, b"a", b"").expect("added");
        }
        let refused = reference.add_to(99, b"a", b"");
        assert!(matches!(refused, Err(EditError::Refused(_))));
        reference.clear_version(1);
        assert_eq!(reference.add_to(99, b"a", b""), Ok(()));
    }

    #[test]
    fn entries_have_ids() {
        let reference = reference();
        for (key, value) in [("a", "1"), ("a", "2"), ("b", "3")] {
            let added = reference.add(key.as_bytes(), value.as_bytes());
            added.expect("added");
        }
        let (text, ids) = listed(&reference, 0);
        assert_eq!(text, "a=1 a=2 b=3 ");
        let shown = ids[1].to_string();
        assert_eq!(EntryId::parse(&shown), Some(ids[1]));
        assert_eq!(reference.set_entry(ids[1], b"5"), Ok(()));
        assert_eq!(reference.remove_entry(ids[0]), Ok(()));
        assert_eq!(reference.remove_entry(ids[0]), Err(EditError::NotFound));
        assert_eq!(listed(&reference, 0).0, "a=5 b=3 ");
        reference.add(b"a", b"6").expect("added");
        assert_eq!(reference.remove_all(b"a"), Ok(()));
        assert_eq!(reference.remove_all(b"a"), Err(EditError::NotFound));
        assert_eq!(listed(&reference, 0).0, "b=3 ");
        // An id never identifies an entry of another content.
        reference.clear();
        reference.add(b"x", b"").expect("added");
        assert_eq!(reference.set_entry(ids[0], b"7"), Err(EditError::NotFound));
        assert_eq!(reference.set_entry(ids[2], b"7"), Err(EditError::NotFound));
    }

    #[test]
    fn long_lists_come_in_parts() {
        let reference = reference();
        let count = 2 * LISTED_AT_ONCE + 1;
        for number in 0..count {
            reference.add(&number.to_be_bytes(), b"").expect("added");
        }
        let mut listing = reference.listing(0);
        let mut parts = Vec::new();
        loop {
            let mut part = 0;
            let more = reference.list(&mut listing, |_, _, _| part += 1);
            parts.push(part);
            if !more {
                break;
            }
        }
        assert_eq!(parts, [LISTED_AT_ONCE, LISTED_AT_ONCE, 1]);
    }
}
