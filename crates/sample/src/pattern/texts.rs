//! Texts that are looked up as a whole, as a prefix, a suffix or a part between delimiters.
//!
//! One hash table holds all texts of any length. It also keeps the lengths that occur. A lookup
//! hashes the parts of the text with those lengths. So its time depends on the number of lengths,
//! and not on the number of patterns.

use super::hash::{Direction, Parts, hash, hash_folded};
use super::index::Index;
use super::store::Store;
use super::twins::Twins;
use syntax::hex;

/// The delimiters of the method `dir`.
pub(crate) const DIR_DELIMITERS: &[u8] = b"/?";
/// The delimiters of the method `dom`.
pub(crate) const DOM_DELIMITERS: &[u8] = b"/?.:";

/// How a key becomes its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// All of it.
    Whole,
    /// Without these bytes at both ends.
    Without(&'static [u8]),
    /// The bytes that its hexadecimal digits represent.
    Hex,
}

/// Which of several matching patterns is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    /// The longest.
    Longest,
    /// The oldest one.
    First,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Texts {
    view: View,
    ignore_case: bool,
    direction: Direction,
    index: Index,
    lengths: Lengths,
    twins: Twins,
}

impl Texts {
    /// An empty set with room for this many texts.
    pub(super) fn new(view: View, ignore_case: bool, direction: Direction, room: usize) -> Texts {
        Texts {
            view,
            ignore_case,
            direction,
            index: Index::with_room(room),
            lengths: Lengths::default(),
            twins: Twins::default(),
        }
    }

    /// Adds the key of an entry.
    pub(super) fn insert(&mut self, store: &Store, number: u32) {
        let key = store.key(number);
        let hash = self.hash_of(key);
        if let Some(leader) = self.find_equal(store, hash, key) {
            return self.twins.add(leader, number);
        }
        let (view, ignore_case, direction) = (self.view, self.ignore_case, self.direction);
        let hash_of = |number| hash_of(store.key(number), view, ignore_case, direction);
        self.index.insert(hash, number, hash_of);
        self.lengths.add(view.length(key));
    }

    /// Removes the key of an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        let key = store.key(number);
        let hash = self.hash_of(key);
        match self.find_equal(store, hash, key) {
            Some(leader) if leader == number => match self.twins.next_leader(leader) {
                Some(next) => self.index.replace(hash, number, next),
                None => {
                    self.index.remove(hash, number);
                    self.lengths.remove(self.view.length(key));
                }
            },
            Some(leader) => self.twins.remove(leader, number),
            None => debug_assert!(false, "an entry without its text"),
        }
    }

    /// The first entry with this text. Here and below, the text is in lower case if case is
    /// ignored.
    #[inline]
    pub(super) fn find(&self, store: &Store, text: &[u8]) -> Option<u32> {
        let hash = hash(text, self.direction);
        self.index
            .find(hash, |number| self.is(store.key(number), text))
    }

    /// The entries with the same text as `number`, which is the first of them, in their order.
    pub(super) fn twins_of(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        self.twins.of(number)
    }

    /// The entry whose text is a prefix (or suffix) of `text`.
    pub(super) fn find_part(&self, store: &Store, text: &[u8], prefer: Prefer) -> Option<u32> {
        let mut parts = Parts::new(text, self.direction);
        let mut best = None;
        for length in self.lengths.up_to(text.len()) {
            let part = match self.direction {
                Direction::Forward => &text[..length],
                Direction::Backward => &text[text.len() - length..],
            };
            let found = self.index.find(parts.of_length(length), |number| {
                self.is(store.key(number), part)
            });
            best = better(store, best, found, prefer);
        }
        best
    }

    /// The first entry whose text occurs in `text` between delimiters or the text's ends.
    pub(super) fn find_between(
        &self,
        store: &Store,
        text: &[u8],
        delimiters: &[u8],
    ) -> Option<u32> {
        let is_end = |at: usize| text.get(at).is_none_or(|byte| delimiters.contains(byte));
        let mut best = None;
        for start in 0..text.len() {
            if is_end(start) || start > 0 && !is_end(start - 1) {
                continue;
            }
            let rest = &text[start..];
            let mut parts = Parts::new(rest, Direction::Forward);
            let lengths = self.lengths.up_to(rest.len());
            for length in lengths.filter(|length| *length > 0 && is_end(start + length)) {
                let found = self.index.find(parts.of_length(length), |number| {
                    self.is(store.key(number), &rest[..length])
                });
                best = better(store, best, found, Prefer::First);
            }
        }
        best
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes() + self.lengths.counts.capacity() * 8 + self.twins.bytes()
    }

    fn hash_of(&self, key: &[u8]) -> u64 {
        hash_of(key, self.view, self.ignore_case, self.direction)
    }

    /// The first entry whose key has the same text as this key.
    fn find_equal(&self, store: &Store, hash: u64, key: &[u8]) -> Option<u32> {
        self.index.find(hash, |number| {
            self.view.same(store.key(number), key, self.ignore_case)
        })
    }

    #[inline]
    fn is(&self, key: &[u8], text: &[u8]) -> bool {
        match self.view {
            View::Whole if !self.ignore_case => key == text,
            View::Hex => spells(key, text),
            view => same(view.of(key), text, self.ignore_case),
        }
    }
}

fn better(store: &Store, best: Option<u32>, found: Option<u32>, prefer: Prefer) -> Option<u32> {
    match (best, found) {
        // Lengths grow, so a later match is longer.
        (Some(best), Some(found)) => Some(match prefer {
            Prefer::First if store.order(best) < store.order(found) => best,
            Prefer::First | Prefer::Longest => found,
        }),
        (best, found) => found.or(best),
    }
}

fn hash_of(key: &[u8], view: View, ignore_case: bool, direction: Direction) -> u64 {
    match view {
        View::Hex => hash(&hex::decode(key).unwrap_or_default(), direction),
        view if ignore_case => hash_folded(view.of(key), direction),
        view => hash(view.of(key), direction),
    }
}

fn same(left: &[u8], right: &[u8], ignore_case: bool) -> bool {
    if ignore_case {
        left.eq_ignore_ascii_case(right)
    } else {
        left == right
    }
}

/// Whether hexadecimal digits represent these bytes.
fn spells(digits: &[u8], bytes: &[u8]) -> bool {
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => http::hex_byte(*high, *low),
        _ => None,
    });
    digits.len() == 2 * bytes.len() && pairs.zip(bytes).all(|(pair, byte)| pair == Some(*byte))
}

impl View {
    /// The text of a key; empty for one in hexadecimal.
    fn of(self, key: &[u8]) -> &[u8] {
        match self {
            View::Whole | View::Hex => key,
            View::Without(delimiters) => trimmed(key, delimiters),
        }
    }

    fn length(self, key: &[u8]) -> usize {
        match self {
            View::Hex => key.len() / 2,
            view => view.of(key).len(),
        }
    }

    fn same(self, left: &[u8], right: &[u8], ignore_case: bool) -> bool {
        same(
            self.of(left),
            self.of(right),
            // The case of hexadecimal digits has no meaning.
            ignore_case || self == View::Hex,
        )
    }
}

/// A text without delimiters at its ends.
pub(crate) fn trimmed<'t>(text: &'t [u8], delimiters: &[u8]) -> &'t [u8] {
    let is_delimiter = |byte: &u8| delimiters.contains(byte);
    let start = text.iter().take_while(|byte| is_delimiter(byte)).count();
    let rest = &text[start..];
    let end = rest
        .iter()
        .rev()
        .take_while(|byte| is_delimiter(byte))
        .count();
    &rest[..rest.len() - end]
}

/// The number of texts of each length, by length.
#[derive(Debug, Default)]
struct Lengths {
    counts: Vec<(u16, u32)>,
}

impl Lengths {
    fn add(&mut self, length: usize) {
        match self.find(length) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (length as u16, 1)),
        }
    }

    fn remove(&mut self, length: usize) {
        if let Ok(at) = self.find(length) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.remove(at);
            }
        }
    }

    fn find(&self, length: usize) -> Result<usize, usize> {
        self.counts
            .binary_search_by_key(&length, |(known, _)| usize::from(*known))
    }

    /// The lengths that occur, up to `longest`, in growing order.
    fn up_to(&self, longest: usize) -> impl Iterator<Item = usize> + '_ {
        let lengths = self.counts.iter().map(|(length, _)| usize::from(*length));
        lengths.take_while(move |length| *length <= longest)
    }
}
