//! Entries that stand for the same pattern: a table holds the first of them, the others wait here for their turn.

use std::collections::{HashMap, VecDeque};

/// See the module. By the first entry of each pattern that has several, the others in their order.
#[derive(Debug, Default)]
pub(super) struct Twins {
    waiting: HashMap<u32, VecDeque<u32>>,
}

impl Twins {
    /// Another entry of the pattern whose first entry is `leader`.
    pub(super) fn add(&mut self, leader: u32, number: u32) {
        self.waiting.entry(leader).or_default().push_back(number);
    }

    /// The first entry goes: gives the one that takes its place.
    pub(super) fn next_leader(&mut self, leader: u32) -> Option<u32> {
        let mut waiting = self.waiting.remove(&leader)?;
        let next = waiting.pop_front()?;
        if !waiting.is_empty() {
            self.waiting.insert(next, waiting);
        }
        Some(next)
    }

    /// One that waits goes.
    pub(super) fn remove(&mut self, leader: u32, number: u32) {
        if let Some(waiting) = self.waiting.get_mut(&leader) {
            waiting.retain(|other| *other != number);
            if waiting.is_empty() {
                self.waiting.remove(&leader);
            }
        }
    }

    /// Those that wait behind this one.
    pub(super) fn of(&self, leader: u32) -> impl Iterator<Item = u32> + '_ {
        self.waiting.get(&leader).into_iter().flatten().copied()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let waiting = self.waiting.values().map(|waiting| waiting.capacity() * 4);
        self.waiting.capacity() * 40 + waiting.sum::<usize>()
    }
}
