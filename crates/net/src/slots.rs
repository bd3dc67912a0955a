//! Slots with generations: how a driver names its connections.

use crate::ConnId;

/// A table of `T` whose entries are named by [`ConnId`]; freed slots are taken again last in, first out.
#[derive(Debug)]
pub struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Stores a value and names it.
    pub fn insert(&mut self, value: T) -> ConnId {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            entry.value = Some(value);
            return ConnId {
                slot,
                generation: entry.generation,
            };
        }
        let slot = u32::try_from(self.entries.len()).expect("fewer descriptors than u32::MAX");
        self.entries.push(Entry {
            generation: 0,
            value: Some(value),
        });
        ConnId {
            slot,
            generation: 0,
        }
    }

    /// The value, if the name is still its own.
    #[must_use]
    pub fn get(&self, id: ConnId) -> Option<&T> {
        let entry = self.entries.get(id.slot as usize)?;
        if entry.generation == id.generation {
            entry.value.as_ref()
        } else {
            None
        }
    }

    /// The value, to be changed, if the name is still its own.
    pub fn get_mut(&mut self, id: ConnId) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.slot as usize)?;
        if entry.generation == id.generation {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// Takes the value out; its name is void from now on.
    pub fn remove(&mut self, id: ConnId) -> Option<T> {
        let entry = self.entries.get_mut(id.slot as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        let value = entry.value.take()?;
        // The last generation is kept for tokens that are not connections.
        entry.generation = (entry.generation + 1) % (u32::MAX - 1);
        self.free.push(id.slot);
        Some(value)
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
        let mut slots = Slots::default();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(first.slot, second.slot);
        assert!(slots.get_mut(first).is_none());
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
        assert_eq!(slots.len(), 1);
    }
}
