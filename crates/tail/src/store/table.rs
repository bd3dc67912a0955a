//! The table of traces: entries of 64 bytes in the order of arrival, with an index over their
//! identifiers.
//!
//! The entry of a trace that is decided stays as a tombstone until all on its page are decided; so
//! passing over them takes no longer than a page for each trace that waits, however many were
//! decided out of their order.

use super::index::Index;
use super::log::NONE;
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Entries of a page.
const PAGE_ENTRIES: usize = 1024;
const PAGE_BYTES: u64 = (PAGE_ENTRIES * size_of::<Entry>()) as u64;

/// Free pages that are kept for later.
const POOL_PAGES: usize = 4;

/// What is known of a trace that waits.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Entry {
    /// Its identifier (groupbytrace by service: a hash of identifier and service).
    pub id: [u8; 16],
    /// Its last record; [`NONE`] for a tombstone.
    pub head: u64,
    /// The earliest start of its spans, as the Collector's latency policy walks over them: 0 gives
    /// way to any.
    pub start_ns: u64,
    /// Their latest end.
    pub end_ns: u64,
    /// Policy bits of its spans and their resources.
    pub bits: u64,
    /// Its spans.
    pub spans: u32,
    /// Their bytes, with their headers once a request.
    pub bytes: u32,
    /// When it came, in ms; it wraps.
    pub arrived_ms: u32,
    /// The last run of spans that it had one in, and in the lowest bit whether its root came.
    pub mark: u32,
}

impl Entry {
    /// One for a trace that comes now.
    #[must_use]
    pub fn new(id: [u8; 16], arrived_ms: u32) -> Entry {
        Entry {
            id,
            head: NONE,
            start_ns: 0,
            end_ns: 0,
            bits: 0,
            spans: 0,
            bytes: 0,
            arrived_ms,
            mark: 0,
        }
    }

    /// It was decided.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.spans == 0
    }
}

/// Its length is known, so that no place in it has to be checked.
type Page = Box<[Entry; PAGE_ENTRIES]>;

fn fresh_page() -> Page {
    // Made where it is to be: an array would be made on the stack first.
    let page = vec![Entry::new([0; 16], 0); PAGE_ENTRIES].try_into();
    page.unwrap_or_else(|_| unreachable!("it has that many entries"))
}

/// A page, until all traces on it are decided.
#[derive(Debug)]
struct Leaf {
    page: Option<Page>,
    /// Further words of bits of each, where there are some.
    words: Box<[u64]>,
    /// Traces on it that wait, and those that are still to come.
    waiting: u32,
}

/// Entries and their index.
#[derive(Debug, Default)]
pub struct Table {
    pages: VecDeque<Leaf>,
    pool: Vec<Page>,
    /// Pages that are there.
    live: usize,
    /// Number of the oldest entry; the pages begin with its page.
    head: u64,
    /// Number of the next.
    tail: u64,
    pending: u64,
    /// Further words of bits of each trace.
    words: usize,
    index: Index,
}

impl Table {
    /// One whose traces have so many words of bits besides the one in their entries.
    #[must_use]
    pub fn with_words(words: usize) -> Table {
        Table {
            words,
            ..Table::default()
        }
    }

    fn words_bytes(&self) -> u64 {
        (self.words * PAGE_ENTRIES * size_of::<u64>()) as u64
    }

    /// Bytes of pages and index.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        (self.live + self.pool.len()) as u64 * PAGE_BYTES
            + self.live as u64 * self.words_bytes()
            + self.index.held_bytes()
    }

    /// Bytes that so many more traces make it grow by at most.
    #[must_use]
    pub fn growth_bytes(&self, traces: u64) -> u64 {
        let room = self.pages.len() as u64 * PAGE_ENTRIES as u64
            - (self.tail - self.head / PAGE_ENTRIES as u64 * PAGE_ENTRIES as u64);
        let pages = traces.saturating_sub(room).div_ceil(PAGE_ENTRIES as u64);
        pages.saturating_sub(self.pool.len() as u64) * PAGE_BYTES
            + pages * self.words_bytes()
            + self.index.growth_bytes(traces)
    }

    /// Traces that wait.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// The number of the oldest trace that may wait; all below are decided.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The number that the next trace gets.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// A trace by the low 32 bits of its number.
    #[inline]
    fn full(&self, number: u32) -> u64 {
        self.head + u64::from(number.wrapping_sub(self.head as u32))
    }

    /// Reads the index's word of a hash, so that it is near when it is used.
    #[inline]
    pub fn touch_word(&self, hash: u64) -> u64 {
        self.index.touch(hash)
    }

    /// The number that the index has for a hash, which need not be that of the right trace: for a
    /// first pass.
    #[inline]
    #[must_use]
    pub fn guess(&self, hash: u64) -> Option<u64> {
        let number = self.index.find(hash, |_| true)?;
        Some(self.full(number))
    }

    /// The number of the trace that waits with this identifier.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, id: &[u8; 16]) -> Option<u64> {
        let is_it = |number| {
            self.get(self.full(number))
                .is_some_and(|entry| entry.id == *id)
        };
        let number = self.index.find(hash, is_it)?;
        Some(self.full(number))
    }

    /// A trace by its number, perhaps a tombstone.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Entry> {
        let page = (number / PAGE_ENTRIES as u64).wrapping_sub(self.head / PAGE_ENTRIES as u64);
        let leaf = self.pages.get(page as usize)?;
        leaf.page.as_ref()?.get(number as usize % PAGE_ENTRIES)
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let page = (number / PAGE_ENTRIES as u64).wrapping_sub(self.head / PAGE_ENTRIES as u64);
        let leaf = self.pages.get_mut(page as usize)?;
        leaf.page.as_mut()?.get_mut(number as usize % PAGE_ENTRIES)
    }

    /// The further words of bits of a trace.
    #[must_use]
    pub fn words(&self, number: u64) -> &[u64] {
        let page = (number / PAGE_ENTRIES as u64).wrapping_sub(self.head / PAGE_ENTRIES as u64);
        let from = number as usize % PAGE_ENTRIES * self.words;
        let leaf = self.pages.get(page as usize);
        let words = leaf.and_then(|leaf| leaf.words.get(from..from + self.words));
        words.unwrap_or_default()
    }

    /// A trace and its further words of bits, to change them.
    pub fn with_words_mut(&mut self, number: u64) -> Option<(&mut Entry, &mut [u64])> {
        let page = (number / PAGE_ENTRIES as u64).wrapping_sub(self.head / PAGE_ENTRIES as u64);
        let at = number as usize % PAGE_ENTRIES;
        let leaf = self.pages.get_mut(page as usize)?;
        let words = leaf.words.get_mut(at * self.words..(at + 1) * self.words)?;
        Some((leaf.page.as_mut()?.get_mut(at)?, words))
    }

    /// Adds a trace, which is not there; gives its number.
    pub fn insert(&mut self, hash: u64, entry: Entry) -> u64 {
        let number = self.tail;
        let base = self.head / PAGE_ENTRIES as u64;
        if number / PAGE_ENTRIES as u64 - base == self.pages.len() as u64 {
            let page = self.pool.pop().unwrap_or_else(fresh_page);
            self.live += 1;
            self.pages.push_back(Leaf {
                page: Some(page),
                words: vec![0; self.words * PAGE_ENTRIES].into(),
                waiting: PAGE_ENTRIES as u32,
            });
        }
        self.tail += 1;
        self.pending += 1;
        self.index.insert(hash, number as u32);
        if let Some(place) = self.get_mut(number) {
            *place = entry;
        }
        number
    }

    /// Takes a trace out, if it waits: what was known of it.
    pub fn remove(&mut self, number: u64, hash: u64) -> Option<Entry> {
        let place = self.get_mut(number).filter(|entry| !entry.is_gone())?;
        let entry = *place;
        place.spans = 0;
        self.pending -= 1;
        self.index.remove(hash, number as u32);
        self.leave(number);
        Some(entry)
    }

    /// A trace is decided; its page goes if it was the last on it.
    #[inline]
    fn leave(&mut self, number: u64) {
        let at = number / PAGE_ENTRIES as u64 - self.head / PAGE_ENTRIES as u64;
        let Some(leaf) = self.pages.get_mut(at as usize) else {
            return;
        };
        leaf.waiting -= 1;
        if leaf.waiting == 0
            && let Some(page) = leaf.page.take()
        {
            self.live -= 1;
            leaf.words = Box::default();
            if self.pool.len() < POOL_PAGES {
                self.pool.push(page);
            }
        }
    }

    /// Passes over tombstones; gives the oldest trace that waits.
    #[inline]
    pub fn oldest(&mut self) -> Option<(u64, &Entry)> {
        while self.head < self.tail {
            let leaf = self.pages.front()?;
            let Some(page) = &leaf.page else {
                self.pages.pop_front();
                self.head = (self.head / PAGE_ENTRIES as u64 + 1) * PAGE_ENTRIES as u64;
                continue;
            };
            let at = self.head as usize % PAGE_ENTRIES;
            let written = (self.tail - self.head + at as u64).min(PAGE_ENTRIES as u64) as usize;
            let gone = page.get(at..written)?.iter().take_while(|e| e.is_gone());
            self.head += gone.count() as u64;
            if self.head < self.tail {
                let head = self.head;
                return self.get(head).map(|entry| (head, entry));
            }
        }
        None
    }

    /// The oldest traces that wait, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &Entry> {
        // All places of a page that are not written are those of tombstones.
        let pages = self.pages.iter().filter_map(|leaf| leaf.page.as_ref());
        pages
            .flat_map(|page| page.iter())
            .filter(|entry| !entry.is_gone())
    }

    /// Reads what removing the oldest `traces` will need, so that the cache misses overlap; `seed`
    /// is that of the hashes.
    pub fn touch(&self, traces: usize, seed: u64) {
        let oldest = (self.head..self.tail).take(traces);
        let words = oldest.filter_map(|number| {
            let hash = xxh3_64_with_seed(&self.get(number)?.id, seed);
            Some(self.index.touch(hash))
        });
        std::hint::black_box(words.fold(0, |all, word| all ^ word));
    }

    /// The numbers that entries have now, gone or not.
    #[must_use]
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.head..self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_cache_line() {
        assert_eq!(size_of::<Entry>(), 64);
    }

    #[test]
    fn traces_come_and_go() {
        let mut table = Table::default();
        let id = |n: u64| u128::from(n).to_le_bytes();
        let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in 0..5000 {
            let mut entry = Entry::new(id(n), 0);
            entry.spans = 1;
            assert_eq!(table.insert(hash(n), entry), n);
        }
        for n in (0..5000).filter(|n| n % 7 != 0) {
            assert_eq!(table.find(hash(n), &id(n)), Some(n));
            assert_eq!(table.remove(n, hash(n)).unwrap().id, id(n));
            assert!(table.remove(n, hash(n)).is_none());
            assert_eq!(table.find(hash(n), &id(n)), None);
        }
        for n in (0..5000).filter(|n| n % 7 == 0) {
            assert_eq!(table.oldest().map(|(number, _)| number), Some(n));
            table.remove(n, hash(n));
        }
        assert!(table.oldest().is_none());
        assert_eq!((table.pending(), table.head()), (0, 5000));
        assert!(table.pages.len() <= 1);
    }

    #[test]
    fn one_that_stays_keeps_one_page() {
        let mut table = Table::default();
        let (id, hash) = ([7; 16], |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut entry = Entry::new(id, 0);
        entry.spans = 1;
        for n in 0..20_000 {
            table.insert(hash(n), entry);
            if n > 0 {
                table.remove(n, hash(n));
            }
        }
        let pages = table.live + table.pool.len();
        assert!(table.head() == 0 && pages <= 4, "{pages}");
        assert_eq!(table.oldest().map(|(number, _)| number), Some(0));
        table.remove(0, hash(0));
        assert!(table.oldest().is_none());
        assert_eq!((table.head(), table.live), (20_000, 1));
    }
}
