//! Numbers and ranges of numbers: the first entry that contains a number, in the order of the
//! entries.

use std::collections::BTreeMap;

use super::hash::hash_number;
use super::index::Index;
use super::parse::Range;
use super::store::Store;
use super::twins::Twins;

/// Parses a pattern.
type Parse = fn(&str) -> Result<Range, String>;

/// Single numbers are hashed; ranges are checked one after the other.
#[derive(Debug)]
pub(super) struct Numbers {
    parse: Parse,
    single: Index,
    twins: Twins,
    /// Ranges in the order of the entries.
    ranges: BTreeMap<u64, (Range, u32)>,
}

impl Numbers {
    /// An empty set with room for this many single numbers.
    pub(super) fn new(parse: Parse, room: usize) -> Numbers {
        Numbers {
            parse,
            single: Index::with_room(room),
            twins: Twins::default(),
            ranges: BTreeMap::new(),
        }
    }

    /// Adds the key of an entry.
    pub(super) fn insert(&mut self, store: &Store, number: u32) {
        let Some(range) = self.range(store, number) else {
            return debug_assert!(false, "an entry that was not checked");
        };
        if range.min != range.max {
            let order = store.order(number);
            self.ranges.insert(order, (range, number));
        } else if let Some(leader) = self.find_single(store, range.min) {
            self.twins.add(leader, number);
        } else {
            let parse = self.parse;
            let hash_of =
                |number| range_of(store, number, parse).map_or(0, |range| hash(range.min));
            self.single.insert(hash(range.min), number, hash_of);
        }
    }

    /// Removes the key of an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        let Some(range) = self.range(store, number) else {
            return debug_assert!(false, "an entry that was not checked");
        };
        if range.min != range.max {
            self.ranges.remove(&store.order(number));
            return;
        }
        match self.find_single(store, range.min) {
            Some(leader) if leader == number => match self.twins.next_leader(leader) {
                Some(next) => self.single.replace(hash(range.min), number, next),
                None => self.single.remove(hash(range.min), number),
            },
            Some(leader) => self.twins.remove(leader, number),
            None => debug_assert!(false, "an entry without its number"),
        }
    }

    /// The first entry that contains the value.
    pub(super) fn find(&self, store: &Store, value: i64) -> Option<u32> {
        let single = self.find_single(store, value);
        let before = single.map_or(u64::MAX, |number| store.order(number));
        let mut ranges = self.ranges.range(..before);
        let range = ranges.find(|(_, (range, _))| range.contains(value));
        range.map(|(_, (_, number))| *number).or(single)
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.single.bytes() + self.twins.bytes() + self.ranges.len() * 40
    }

    fn find_single(&self, store: &Store, value: i64) -> Option<u32> {
        self.single.find(hash(value), |number| {
            self.range(store, number)
                .is_some_and(|range| range.min == value)
        })
    }

    fn range(&self, store: &Store, number: u32) -> Option<Range> {
        range_of(store, number, self.parse)
    }
}

fn range_of(store: &Store, number: u32, parse: Parse) -> Option<Range> {
    parse(std::str::from_utf8(store.key(number)).ok()?).ok()
}

fn hash(value: i64) -> u64 {
    hash_number(u128::from(value as u64), 0)
}
