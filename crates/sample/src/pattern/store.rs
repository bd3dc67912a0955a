//! The entries of a pattern set: the key and the value of each, and their order.
//!
//! An entry takes 16 bytes plus its texts. Texts from a file are stored one after the other in
//! blocks. Texts of later or changed entries are separate allocations, so that removing them frees
//! their memory. Entries are numbered, and a free number is used again; [`Store::order`] tells
//! which entry is older.
//!
//! No operation moves more than one block, so an edit takes the same short time in a set of any
//! size.

use std::ops::{Index, IndexMut};

/// The longest key. A longer one in a line of a file or in a command is refused.
pub(super) const KEY_BYTES_MAX: usize = 16 * 1024;
/// The longest value.
pub(super) const VALUE_BYTES_MAX: usize = crate::SAMPLE_BYTES_MAX;
/// Most entries of a set.
pub(super) const ENTRIES_MAX: usize = 1 << 28;
/// Most bytes of the texts from a file.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 31;

const BLOCK_BYTES: usize = 1 << 18;
/// Items of a chunk.
const CHUNK: usize = 1 << 12;
/// Set in the place of a text that is a separate allocation.
const SINGLE: u32 = 1 << 31;
/// The order of a number without an entry.
const FREE: u64 = u64::MAX;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// The entries by number.
    entries: Chunked<Entry>,
    blocks: Vec<Vec<u8>>,
    singles: Chunked<Box<[u8]>>,
    free_numbers: Vec<u32>,
    free_singles: Vec<u32>,
    live: usize,
    next_order: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Larger for every later entry; [`FREE`] for none.
    order: u64,
    /// The place of key and value: an offset in the blocks, or with [`SINGLE`] the number of a
    /// separate allocation.
    place: u32,
    key_bytes: u16,
    value_bytes: u16,
}

impl Store {
    /// An empty store, whose first entry gets this order.
    pub(super) fn starting_at(order: u64) -> Store {
        Store {
            next_order: order,
            ..Store::default()
        }
    }

    /// Adds an entry at the end. The texts of one from a file are stored in the blocks.
    ///
    /// # Errors
    /// A text is too long, or the set is full.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], of_file: bool) -> Result<u32, String> {
        if self.live >= ENTRIES_MAX {
            return Err(format!("more than {ENTRIES_MAX} entries"));
        }
        check_lengths(key, value)?;
        let place = if of_file {
            self.put_in_block(key, value)?
        } else {
            self.put_single(key, value)
        };
        let entry = Entry {
            order: self.next_order,
            place,
            key_bytes: key.len() as u16,
            value_bytes: value.len() as u16,
        };
        self.next_order += 1;
        self.live += 1;
        if let Some(number) = self.free_numbers.pop() {
            *self.entry_mut(number) = entry;
            return Ok(number);
        }
        self.entries.push(entry);
        Ok(self.entries.len() as u32 - 1)
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, number: u32) {
        let entry = *self.entry(number);
        self.free_text(entry.place);
        self.entry_mut(number).order = FREE;
        self.free_numbers.push(number);
        self.live -= 1;
    }

    /// Changes the value of an entry. The caller has checked its length.
    pub(super) fn set_value(&mut self, number: u32, value: &[u8]) {
        let key = self.key(number).to_vec();
        let place = self.put_single(&key, value);
        let entry = self.entry_mut(number);
        let old = std::mem::replace(&mut entry.place, place);
        entry.value_bytes = value.len() as u16;
        self.free_text(old);
    }

    /// The key of an entry.
    #[inline]
    pub(super) fn key(&self, number: u32) -> &[u8] {
        let entry = self.entry(number);
        &self.text(entry)[..usize::from(entry.key_bytes)]
    }

    /// The value of an entry; empty if it has none.
    #[inline]
    pub(super) fn value(&self, number: u32) -> &[u8] {
        let entry = self.entry(number);
        &self.text(entry)[usize::from(entry.key_bytes)..]
    }

    /// The order of an entry: smaller for an older entry.
    #[inline]
    pub(super) fn order(&self, number: u32) -> u64 {
        self.entry(number).order
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// The entries among `count` numbers from `from` on, with their orders; None after the last
    /// number.
    pub(super) fn numbers(&self, from: u32, count: u32) -> Option<Vec<(u64, u32)>> {
        let end = self.entries.len();
        let last = (from as usize + count as usize).min(end) as u32;
        (from < last).then(|| {
            (from..last)
                .map(|number| (self.order(number), number))
                .filter(|(order, _)| *order != FREE)
                .collect()
        })
    }

    /// Whether this number still belongs to the entry with that order.
    pub(super) fn is(&self, number: u32, order: u64) -> bool {
        let entry = self.entries.get(number);
        entry.is_some_and(|entry| entry.order == order)
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.capacity());
        let singles = self.singles.iter().map(|text| text.len());
        (self.entries.room() * size_of::<Entry>())
            + blocks.sum::<usize>()
            + self.singles.room() * size_of::<Box<[u8]>>()
            + singles.sum::<usize>()
            + (self.free_numbers.capacity() + self.free_singles.capacity()) * 4
    }

    #[inline]
    fn entry(&self, number: u32) -> &Entry {
        &self.entries[number]
    }

    fn entry_mut(&mut self, number: u32) -> &mut Entry {
        &mut self.entries[number]
    }

    #[inline]
    fn text(&self, entry: &Entry) -> &[u8] {
        if entry.place & SINGLE != 0 {
            return &self.singles[entry.place & !SINGLE];
        }
        let (block, at) = (
            entry.place as usize / BLOCK_BYTES,
            entry.place as usize % BLOCK_BYTES,
        );
        let bytes = usize::from(entry.key_bytes) + usize::from(entry.value_bytes);
        &self.blocks[block][at..at + bytes]
    }

    fn put_in_block(&mut self, key: &[u8], value: &[u8]) -> Result<u32, String> {
        let bytes = key.len() + value.len();
        if self
            .blocks
            .last()
            .is_none_or(|block| block.len() + bytes > BLOCK_BYTES)
        {
            if self.blocks.len() >= TEXT_BYTES_MAX / BLOCK_BYTES {
                return Err(format!("more than {TEXT_BYTES_MAX} bytes"));
            }
            self.blocks.push(if self.blocks.is_empty() {
                Vec::new()
            } else {
                Vec::with_capacity(BLOCK_BYTES)
            });
        }
        let number = self.blocks.len() - 1;
        let block = &mut self.blocks[number];
        let place = number * BLOCK_BYTES + block.len();
        block.extend_from_slice(key);
        block.extend_from_slice(value);
        // An empty text at the end of a full block would begin in the next one.
        Ok(if bytes == 0 { 0 } else { place as u32 })
    }

    fn put_single(&mut self, key: &[u8], value: &[u8]) -> u32 {
        let text = [key, value].concat().into_boxed_slice();
        let number = match self.free_singles.pop() {
            Some(number) => {
                self.singles[number] = text;
                number
            }
            None => {
                self.singles.push(text);
                self.singles.len() as u32 - 1
            }
        };
        number | SINGLE
    }

    fn free_text(&mut self, place: u32) {
        if place & SINGLE != 0 {
            let number = place & !SINGLE;
            self.singles[number] = Box::default();
            self.free_singles.push(number);
        }
    }
}

/// A vector in chunks, so that growth moves no items.
#[derive(Debug)]
struct Chunked<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Chunked { chunks: Vec::new() }
    }
}

impl<T> Chunked<T> {
    fn push(&mut self, item: T) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            // The first chunk grows, so that small sets are small.
            self.chunks.push(if self.chunks.is_empty() {
                Vec::new()
            } else {
                Vec::with_capacity(CHUNK)
            });
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(item);
        }
    }

    fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK + last
    }

    /// The number of items for which memory is allocated.
    fn room(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }

    fn get(&self, at: u32) -> Option<&T> {
        self.chunks
            .get(at as usize / CHUNK)?
            .get(at as usize % CHUNK)
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<u32> for Chunked<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Chunked<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

/// Refuses texts that are too long.
pub(super) fn check_lengths(key: &[u8], value: &[u8]) -> Result<(), String> {
    if key.len() > KEY_BYTES_MAX {
        return Err(format!("a pattern is longer than {KEY_BYTES_MAX} bytes"));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("a value is longer than {VALUE_BYTES_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_with_their_entries() {
        let mut store = Store::default();
        let mut wanted: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
        for round in 0..20_000_usize {
            let key = format!("key {round}").into_bytes();
            let value = vec![b'v'; round * 7 % 90];
            let number = store.push(&key, &value, round < 10_000).expect("room");
            wanted.push((number, key, value));
            if round % 3 == 0 {
                let (gone, ..) = wanted.swap_remove(round * 31 % wanted.len());
                store.remove(gone);
            }
            if round % 5 == 0 && !wanted.is_empty() {
                let at = round * 17 % wanted.len();
                wanted[at].2 = vec![b'w'; round % 50];
                store.set_value(wanted[at].0, &wanted[at].2.clone());
            }
        }
        assert_eq!(store.len(), wanted.len());
        for (number, key, value) in &wanted {
            assert_eq!(
                (store.key(*number), store.value(*number)),
                (&key[..], &value[..])
            );
        }
    }

    #[test]
    fn order_is_that_of_coming() {
        let mut store = Store::default();
        let first = store.push(b"a", b"", true).expect("room");
        let second = store.push(b"b", b"", true).expect("room");
        store.remove(first);
        let third = store.push(b"c", b"", false).expect("room");
        assert_eq!(first, third);
        assert!(store.order(second) < store.order(third));
        assert_eq!(store.numbers(0, 10).map(|all| all.len()), Some(2));
        assert_eq!(store.numbers(2, 10), None);
        assert!(store.is(second, store.order(second)) && !store.is(7, 0));
    }

    #[test]
    fn too_long_texts_are_refused() {
        let mut store = Store::default();
        assert!(store.push(&[b'k'; KEY_BYTES_MAX + 1], b"", true).is_err());
        assert!(store.push(b"", &[b'v'; VALUE_BYTES_MAX + 1], true).is_err());
        assert!(
            store
                .push(&[b'k'; KEY_BYTES_MAX], &[b'v'; VALUE_BYTES_MAX], true)
                .is_ok()
        );
    }
}
