//! Entries with the same pattern: a table holds the first of them; the others wait here to take its
//! place.

use std::collections::{HashMap, VecDeque};

/// See the module. For the first entry of each pattern with several entries: the others in their
/// order.
#[derive(Debug, Default)]
pub(super) struct Twins {
    waiting: HashMap<u32, VecDeque<u32>>,
}

impl Twins {
    /// Adds another entry with the pattern of `leader`, the first entry.
    pub(super) fn add(&mut self, leader: u32, number: u32) {
        self.waiting.entry(leader).or_default().push_back(number);
    }

    /// The first entry is removed: returns its successor.
    pub(super) fn next_leader(&mut self, leader: u32) -> Option<u32> {
        let mut waiting = self.waiting.remove(&leader)?;
        let next = waiting.pop_front()?;
        if !waiting.is_empty() {
            self.waiting.insert(next, waiting);
        }
        Some(next)
    }

    /// Removes an entry other than the first.
    pub(super) fn remove(&mut self, leader: u32, number: u32) {
        if let Some(waiting) = self.waiting.get_mut(&leader) {
            waiting.retain(|other| *other != number);
            if waiting.is_empty() {
                self.waiting.remove(&leader);
            }
        }
    }

    /// The other entries with the pattern of this one.
    pub(super) fn of(&self, leader: u32) -> impl Iterator<Item = u32> + '_ {
        self.waiting.get(&leader).into_iter().flatten().copied()
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let waiting = self.waiting.values().map(|waiting| waiting.capacity() * 4);
        self.waiting.capacity() * 40 + waiting.sum::<usize>()
    }
}
