//! Texts that are looked for anywhere in others (`sub`): the first that stands in one, in the entries' order.
//!
//! What a file brought is one automaton, which reads a text once for all of them; what comes later is tried one by one. An
//! entry that goes stays in the automaton and no longer counts.

use std::collections::BTreeMap;

use aho_corasick::AhoCorasick;

use super::store::Store;

/// An automaton is worth its memory from so many texts on.
const SEALED_MIN: usize = 16;

/// Bytes of texts that an automaton is made of; it takes about ten times as many.
const SEALED_BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By the entries' order: entry and text.
    texts: BTreeMap<u64, (u32, Box<[u8]>)>,
    sealed: Option<Sealed>,
}

#[derive(Debug)]
struct Sealed {
    automaton: AhoCorasick,
    /// By the automaton's numbers, which grow with them.
    orders: Vec<u64>,
}

impl Parts {
    /// Takes in the text of an entry.
    pub(super) fn insert(&mut self, store: &Store, number: u32, text: Box<[u8]>) {
        self.texts.insert(store.order(number), (number, text));
    }

    /// Forgets the text of an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        self.texts.remove(&store.order(number));
    }

    /// All of a file are there: makes their automaton.
    pub(super) fn seal(&mut self) {
        let bytes: usize = self.texts.values().map(|(_, text)| text.len()).sum();
        if self.texts.len() < SEALED_MIN || bytes > SEALED_BYTES_MAX {
            return;
        }
        // One that cannot be made leaves the list, which does the same more slowly.
        let texts = self.texts.values().map(|(_, text)| text);
        self.sealed = AhoCorasick::new(texts).ok().map(|automaton| Sealed {
            automaton,
            orders: self.texts.keys().copied().collect(),
        });
    }

    /// The first entry whose text stands in this one.
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

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.texts.values().map(|(_, text)| text.len() + 40).sum();
        let sealed = self.sealed.as_ref().map_or(0, |sealed| {
            sealed.automaton.memory_usage() + sealed.orders.len() * 8
        });
        texts + sealed
    }
}
