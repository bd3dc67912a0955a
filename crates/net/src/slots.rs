//! Slots with generations: the names of sockets and of the engine's own objects.

use std::marker::PhantomData;

use crate::SockId;

/// A name made of a slot and the generation of the value in it.
pub trait Key: Copy {
    /// The name of a slot's value.
    fn new(slot: u32, generation: u32) -> Self;
    /// The slot, dense from 0.
    fn slot(self) -> u32;
    /// Grows each time the slot is reused.
    fn generation(self) -> u32;
}

impl Key for SockId {
    fn new(slot: u32, generation: u32) -> Self {
        SockId { slot, generation }
    }
    fn slot(self) -> u32 {
        self.slot
    }
    fn generation(self) -> u32 {
        self.generation
    }
}

/// A table of `T` whose entries are named by `K`. Freed slots are reused last in, first out.
#[derive(Debug)]
pub struct Slots<T, K = SockId> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    key: PhantomData<K>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T, K> Default for Slots<T, K> {
    fn default() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
            key: PhantomData,
        }
    }
}

impl<T, K: Key> Slots<T, K> {
    /// Stores a value and names it.
    pub fn insert(&mut self, value: T) -> K {
        self.insert_with(|_| value)
    }

    /// Stores a value that is made from its own name.
    pub fn insert_with(&mut self, make: impl FnOnce(K) -> T) -> K {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            let key = K::new(slot, entry.generation);
            entry.value = Some(make(key));
            return key;
        }
        let slot = u32::try_from(self.entries.len()).expect("fewer than u32::MAX");
        let key = K::new(slot, 0);
        self.entries.push(Entry {
            generation: 0,
            value: Some(make(key)),
        });
        key
    }

    /// The value, if the name is still valid.
    #[must_use]
    #[inline]
    pub fn get(&self, key: K) -> Option<&T> {
        let entry = self.entries.get(key.slot() as usize)?;
        if entry.generation == key.generation() {
            entry.value.as_ref()
        } else {
            None
        }
    }

    /// The value, mutable, if the name is still valid.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.slot() as usize)?;
        if entry.generation == key.generation() {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// Removes and returns the value; its name is invalid from now on.
    pub fn remove(&mut self, key: K) -> Option<T> {
        let entry = self.entries.get_mut(key.slot() as usize)?;
        if entry.generation != key.generation() {
            return None;
        }
        let value = entry.value.take()?;
        // The last generation is reserved for tokens that name no value.
        entry.generation = (entry.generation + 1) % (u32::MAX - 1);
        self.free.push(key.slot());
        Some(value)
    }

    /// The name of the value in a slot.
    #[must_use]
    pub fn key_at(&self, slot: u32) -> Option<K> {
        let entry = self.entries.get(slot as usize)?;
        entry
            .value
            .is_some()
            .then(|| K::new(slot, entry.generation))
    }

    /// All values with their names.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        (0..).zip(&self.entries).filter_map(|(slot, entry)| {
            let value = entry.value.as_ref()?;
            Some((K::new(slot, entry.generation), value))
        })
    }

    /// How many slots there are, including free ones.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.entries.len() as u32
    }

    /// How many values are stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether none is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_name_finds_nothing_when_its_slot_is_taken_again() {
        let mut slots: Slots<char> = Slots::default();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(first.slot, second.slot);
        assert!(slots.get_mut(first).is_none());
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
        assert_eq!(slots.len(), 1);
        assert_eq!(slots.key_at(0), Some(second));
        assert_eq!(slots.iter().count(), 1);
    }
}
