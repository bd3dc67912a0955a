//! Substring patterns (`sub`): the first entry that occurs in a text, in the order of the entries.
//!
//! The entries of a file become one automaton, which reads a text once for all of them. Later
//! entries are searched one by one. A removed entry stays in the automaton and is ignored.

use std::collections::BTreeMap;

use aho_corasick::AhoCorasick;

use super::store::Store;

/// From this many texts on, an automaton is worth its memory.
const SEALED_MIN: usize = 16;

/// Most bytes of the texts in an automaton, which takes about ten times as much memory.
const SEALED_BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// In the order of the entries: entry and text.
    texts: BTreeMap<u64, (u32, Box<[u8]>)>,
    sealed: Option<Sealed>,
}

#[derive(Debug)]
struct Sealed {
    automaton: AhoCorasick,
    /// The order of each text by its number in the automaton; both grow together.
    orders: Vec<u64>,
}

impl Parts {
    /// Adds the text of an entry.
    pub(super) fn insert(&mut self, store: &Store, number: u32, text: Box<[u8]>) {
        self.texts.insert(store.order(number), (number, text));
    }

    /// Removes the text of an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        self.texts.remove(&store.order(number));
    }

    /// Builds the automaton after all entries of a file were added.
    pub(super) fn seal(&mut self) {
        let bytes: usize = self.texts.values().map(|(_, text)| text.len()).sum();
        if self.texts.len() < SEALED_MIN || bytes > SEALED_BYTES_MAX {
            return;
        }
        // If the automaton cannot be built, the list remains, which is slower.
        let texts = self.texts.values().map(|(_, text)| text);
        self.sealed = AhoCorasick::new(texts).ok().map(|automaton| Sealed {
            automaton,
            orders: self.texts.keys().copied().collect(),
        });
    }

    /// The first entry whose text occurs in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<u32> {
        let mut best = None;
        let mut later = 0;
        if let Some(sealed) = &self.sealed {
            later = sealed.orders.last().map_or(0, |last| last + 1);
            for found in sealed.automaton.find_overlapping_iter(text) {
                let order = sealed.orders[found.pattern().as_usize()];
                if best.is_none_or(|(known, _)| order < known)
                    && let Some((number, _)) = self.texts.get(&order)
                {
                    best = Some((order, *number));
                }
            }
        }
        best.map(|(_, number)| number).or_else(|| {
            let mut rest = self.texts.range(later..);
            let found = rest.find(|(_, (_, part))| memchr::memmem::find(text, part).is_some());
            found.map(|(_, (number, _))| *number)
        })
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.texts.values().map(|(_, text)| text.len() + 40).sum();
        let sealed = self.sealed.as_ref().map_or(0, |sealed| {
            sealed.automaton.memory_usage() + sealed.orders.len() * 8
        });
        texts + sealed
    }
}
