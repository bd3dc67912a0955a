//! From a trace's identifier to its place: open addressing over words of 64 bits.
//!
//! A word is a tag (31 bits of the hash, and one that says that it is used) and the low 32 bits of
//! the trace's number. The place of a word follows from its tag, so that nothing but the words is
//! read to grow or to remove. There are many small tables, so that growing one is no stall.

/// Tables of an index.
const TABLES: usize = 256;

/// Places of the smallest table.
const PLACES_MIN: usize = 16;

/// Set in the tag of every word.
const USED: u64 = 1 << 63;

/// Tags and numbers.
#[derive(Debug)]
pub struct Index {
    tables: Box<[Table]>,
    held_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Table {
    words: Vec<u64>,
    used: usize,
}

fn tag(hash: u64) -> u64 {
    hash << 32 | USED
}

impl Default for Index {
    fn default() -> Index {
        Index {
            tables: vec![Table::default(); TABLES].into(),
            held_bytes: 0,
        }
    }
}

impl Index {
    /// Bytes of all tables.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Bytes that it grows by at most for so many more traces.
    #[must_use]
    pub fn growth_bytes(&self, traces: u64) -> u64 {
        // Each trace may be the one that doubles a table which is three quarters full.
        let doubled = self.held_bytes.min(traces.saturating_mul(self.largest()));
        let fresh = traces.min(TABLES as u64) * (PLACES_MIN * 8) as u64;
        doubled + fresh + traces * 8 * 4
    }

    fn largest(&self) -> u64 {
        let places = self.tables.iter().map(|table| table.words.len()).max();
        places.unwrap_or_default() as u64 * 8
    }

    /// The numbers (low 32 bits) that a hash may stand for, until one is taken.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = &self.tables[(hash >> 56) as usize];
        let tag = tag(hash) >> 32;
        let mask = table.words.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        while let Some(word) = table.words.get(at) {
            if *word == 0 {
                return None;
            }
            if word >> 32 == tag && is_it(*word as u32) {
                return Some(*word as u32);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Reads the place of a hash, so that it is near when it is used.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let table = &self.tables[(hash >> 56) as usize];
        let mask = table.words.len().wrapping_sub(1);
        let word = table.words.get(hash as usize & mask);
        word.copied().unwrap_or_default()
    }

    /// Adds a number.
    pub fn insert(&mut self, hash: u64, number: u32) {
        let table = &mut self.tables[(hash >> 56) as usize];
        if (table.used + 1) * 4 > table.words.len() * 3 {
            self.held_bytes += table.grow();
        }
        table.put(tag(hash) | u64::from(number));
        table.used += 1;
    }

    /// Removes a number that was added with this hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let table = &mut self.tables[(hash >> 56) as usize];
        let removed = table.remove(tag(hash) | u64::from(number));
        debug_assert!(removed, "what is removed was added");
    }
}

impl Table {
    fn place(&self, word: u64) -> usize {
        (word >> 32) as usize & (self.words.len() - 1)
    }

    fn put(&mut self, word: u64) {
        let mask = self.words.len() - 1;
        let mut at = self.place(word);
        while self.words[at] != 0 {
            at = (at + 1) & mask;
        }
        self.words[at] = word;
    }

    /// Doubles the table; gives the bytes that it grew by.
    #[cold]
    fn grow(&mut self) -> u64 {
        let len = (self.words.len() * 2).max(PLACES_MIN);
        let old = std::mem::replace(&mut self.words, vec![0; len]);
        old.iter()
            .filter(|word| **word != 0)
            .for_each(|word| self.put(*word));
        (len - old.len()) as u64 * 8
    }

    fn remove(&mut self, word: u64) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let mask = self.words.len() - 1;
        let mut hole = self.place(word);
        while self.words[hole] != word {
            if self.words[hole] == 0 {
                return false;
            }
            hole = (hole + 1) & mask;
        }
        // Those behind move up, unless they would come before their place.
        let mut at = (hole + 1) & mask;
        while self.words[at] != 0 {
            let place = self.place(self.words[at]);
            if at.wrapping_sub(place) & mask >= at.wrapping_sub(hole) & mask {
                self.words[hole] = self.words[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.words[hole] = 0;
        self.used -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, hash_map::Entry};

    #[test]
    fn like_a_map() {
        let (mut index, mut map) = (Index::default(), HashMap::new());
        let mut random = crate::tests::Random::new(5);
        for number in 0..20_000_u32 {
            // Few tables and few places, so that words push each other.
            let hash = random.next() & 0x0300_0000_0000_00ff | u64::from(number) << 8;
            if random.below(3) == 0 && !map.is_empty() {
                let key = *map.keys().next().unwrap();
                let number = map.remove(&key).unwrap();
                index.remove(key, number);
                assert_eq!(index.find(key, |found| found == number), None);
            } else if let Entry::Vacant(place) = map.entry(hash) {
                let before = index.held_bytes();
                let bound = index.growth_bytes(1);
                index.insert(hash, number);
                assert!(index.held_bytes() - before <= bound);
                place.insert(number);
            }
        }
        for (hash, number) in &map {
            assert_eq!(index.find(*hash, |found| found == *number), Some(*number));
        }
    }
}
