//! One part of a table: entries by key, and a queue of entries by age.
//!
//! Entries lie in segments that never move, so that growth copies only the index. The queue by age
//! has at most one note per place: the time of the last touch that the queue knows of. A note that
//! comes up too early is put back with the correct time, so that touching an entry is one store.
//! The queue drops the note of a held entry when it comes up, and adds one when the entry is
//! released.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::definition::Definition;
use crate::entry::Entry;

/// Approximate size of a segment, bytes.
const SEGMENT_BYTES: usize = 64 << 10;
const SEGMENT_SLOTS_MIN: usize = 16;
const SEGMENT_SLOTS_MAX: usize = 1024;
/// The most expired entries that are removed when a new one is made.
const PURGED_AT_ONCE: u32 = 4;
/// The end of a chain.
const NONE: u32 = u32::MAX;

/// The state of a place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    touched_ms: u64,
    hash: u32,
    /// The next place of the chain.
    next: u32,
    key_bytes: u32,
    holders: u32,
    /// The number of the entry's last update in [`crate::UpdateLog`]; 0 for none.
    update: u32,
    /// The queue by age has a note for this place.
    is_noted: bool,
    is_used: bool,
    /// The place is in [`Shard::updated`].
    is_updated: bool,
}

const EMPTY: Slot = Slot {
    touched_ms: 0,
    hash: 0,
    next: NONE,
    key_bytes: 0,
    holders: 0,
    update: 0,
    is_noted: false,
    is_used: false,
    is_updated: false,
};

#[derive(Debug)]
struct Segment {
    slots: Box<[Slot]>,
    keys: Box<[u8]>,
    cells: Box<[u32]>,
}

/// One shard of a table.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    segments: Vec<Segment>,
    /// Slots of a segment, a power of two; 0 before the first one.
    segment_slots: usize,
    /// First places of chains; the length is a power of two.
    index: Vec<u32>,
    /// Places that are empty again.
    free: Vec<u32>,
    /// The number of places ever used.
    places: u32,
    used: u32,
    /// Entries removed since the last [`Shard::take_removed`].
    removed: u32,
    /// Entries removed while a log had not seen their last update, since
    /// [`Shard::take_removed_unsent`].
    removed_unsent: u32,
    ages: BinaryHeap<Reverse<(u64, u32)>>,
    /// Places whose entries were updated and that no log has seen; each at most once.
    updated: Vec<u32>,
}

impl Shard {
    /// The place of a key. Removes the entry if it has expired.
    pub fn find(&mut self, of: &Definition, hash: u32, key: &[u8], now_ms: u64) -> Option<u32> {
        let mut at = *self.index.get(self.bucket(hash))?;
        while at != NONE {
            let slot = self.slot(at);
            if slot.hash == hash && self.key(of, at) == key {
                if is_over(of, slot, now_ms) {
                    self.remove(at);
                    return None;
                }
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// Makes an entry for a key that has none; there must be room. Its values are 0.
    pub fn insert(&mut self, of: &Definition, hash: u32, key: &[u8], now_ms: u64) -> u32 {
        self.grow_index();
        let at = match self.free.pop() {
            Some(at) => at,
            None => self.build(of),
        };
        let bucket = self.bucket(hash);
        let next = std::mem::replace(&mut self.index[bucket], at);
        let Slot {
            is_noted,
            is_updated,
            ..
        } = *self.slot(at);
        *self.slot_mut(at) = Slot {
            touched_ms: now_ms,
            hash,
            next,
            key_bytes: key.len() as u32,
            holders: 0,
            update: 0,
            is_noted,
            is_used: true,
            is_updated,
        };
        let (segment, place) = self.split(at);
        let segment = &mut self.segments[segment];
        let start = place * of.key_bytes as usize;
        segment.keys[start..start + key.len()].copy_from_slice(key);
        let cells = of.cells();
        segment.cells[place * cells..(place + 1) * cells].fill(0);
        self.used += 1;
        self.note(at);
        at
    }

    /// Removes at most `most` expired entries that are not held.
    pub fn purge(&mut self, of: &Definition, now_ms: u64, most: u32) {
        let Some(expire_ms) = of.expire_ms else {
            return;
        };
        let mut removed = 0;
        while removed < most
            && let Some(Reverse((age_ms, _))) = self.ages.peek()
            && age_ms.saturating_add(expire_ms) <= now_ms
        {
            let Some(at) = self.oldest() else { break };
            if !is_over(of, self.slot(at), now_ms) {
                self.note(at);
                break;
            }
            self.remove(at);
            removed += 1;
        }
    }

    /// Removes as many expired entries as the creation of an entry may remove.
    pub fn purge_some(&mut self, of: &Definition, now_ms: u64) {
        self.purge(of, now_ms, PURGED_AT_ONCE);
    }

    /// Removes the oldest entry that is not held; returns whether there was one.
    pub fn evict(&mut self) -> bool {
        let oldest = self.oldest();
        if let Some(at) = oldest {
            self.remove(at);
        }
        oldest.is_some()
    }

    /// Takes the oldest entry that is not held off the queue by age.
    fn oldest(&mut self) -> Option<u32> {
        while let Some(Reverse((age_ms, at))) = self.ages.pop() {
            let slot = self.slot_mut(at);
            slot.is_noted = false;
            if !slot.is_used || slot.holders > 0 {
                continue;
            }
            if slot.touched_ms > age_ms {
                self.note(at);
                continue;
            }
            return Some(at);
        }
        None
    }

    /// Removes an entry.
    pub fn remove(&mut self, at: u32) {
        let Slot { hash, next, .. } = *self.slot(at);
        let bucket = self.bucket(hash);
        if self.index[bucket] == at {
            self.index[bucket] = next;
        } else {
            let mut before = self.index[bucket];
            while before != NONE {
                let slot = self.slot_mut(before);
                if slot.next == at {
                    slot.next = next;
                    break;
                }
                before = slot.next;
            }
        }
        let slot = self.slot_mut(at);
        slot.is_used = false;
        let is_updated = slot.is_updated;
        self.removed_unsent = self.removed_unsent.saturating_add(is_updated.into());
        self.used -= 1;
        self.removed += 1;
        self.free.push(at);
    }

    /// Adds a hold to an entry.
    pub fn hold(&mut self, at: u32) {
        self.slot_mut(at).holders += 1;
    }

    /// Releases a hold of an entry.
    pub fn let_go(&mut self, at: u32) {
        let slot = self.slot_mut(at);
        slot.holders = slot.holders.saturating_sub(1);
        if slot.holders == 0 {
            self.note(at);
        }
    }

    /// Whether the entry is held.
    pub fn is_held(&self, at: u32) -> bool {
        self.slot(at).holders > 0
    }

    /// Notes an update for the log.
    pub fn note_update(&mut self, at: u32) {
        if !std::mem::replace(&mut self.slot_mut(at).is_updated, true) {
            self.updated.push(at);
        }
    }

    /// The number of places that [`Shard::take_update`] returns.
    pub fn updates(&self) -> usize {
        self.updated.len()
    }

    /// Takes a place whose entry was updated; the place may be empty again.
    pub fn take_update(&mut self) -> Option<u32> {
        let at = self.updated.pop()?;
        self.slot_mut(at).is_updated = false;
        Some(at)
    }

    /// The number of the last update of the entry at a place, 0 before its first update; none if
    /// the place is empty.
    pub fn update(&self, at: u32) -> Option<u32> {
        let slot = self.slot(at);
        slot.is_used.then_some(slot.update)
    }

    /// Sets the number of the last update.
    pub fn set_update(&mut self, at: u32, number: u32) {
        self.slot_mut(at).update = number;
    }

    /// Whether the entry has expired and is not held.
    pub fn is_over(&self, of: &Definition, at: u32, now_ms: u64) -> bool {
        is_over(of, self.slot(at), now_ms)
    }

    /// An entry.
    pub fn entry<'a>(&'a mut self, of: &'a Definition, at: u32, now_ms: u64) -> Entry<'a> {
        let (segment, place) = self.split(at);
        let Segment { slots, keys, cells } = &mut self.segments[segment];
        let slot = &mut slots[place];
        let start = place * of.key_bytes as usize;
        let count = of.cells();
        Entry {
            definition: of,
            key: &keys[start..start + slot.key_bytes as usize],
            cells: &mut cells[place * count..(place + 1) * count],
            holders: slot.holders,
            now_ms,
            update: slot.update,
            touched_ms: &mut slot.touched_ms,
            was_touched: false,
        }
    }

    /// The first place from `at` on with an entry that has not expired.
    pub fn next_used(&self, of: &Definition, at: u32, now_ms: u64) -> Option<u32> {
        let is_there = |slot: &Slot| slot.is_used && !is_over(of, slot, now_ms);
        (at..self.places).find(|at| is_there(self.slot(*at)))
    }

    /// Entries removed since the last call.
    pub fn take_removed(&mut self) -> u32 {
        std::mem::take(&mut self.removed)
    }

    /// Entries removed before a log saw their last update, since the last call.
    pub fn removed_unsent(&self) -> u32 {
        self.removed_unsent
    }

    /// The same, and none any more.
    pub fn take_removed_unsent(&mut self) -> u32 {
        std::mem::take(&mut self.removed_unsent)
    }

    fn note(&mut self, at: u32) {
        let slot = self.slot_mut(at);
        if !std::mem::replace(&mut slot.is_noted, true) {
            let touched_ms = slot.touched_ms;
            self.ages.push(Reverse((touched_ms, at)));
        }
    }

    /// Makes a new empty place.
    fn build(&mut self, of: &Definition) -> u32 {
        if self.segment_slots == 0 {
            let bytes = size_of::<Slot>() + of.key_bytes as usize + of.cells() * 4;
            let slots = (SEGMENT_BYTES / bytes).clamp(SEGMENT_SLOTS_MIN, SEGMENT_SLOTS_MAX);
            self.segment_slots = 1 << slots.ilog2();
        }
        let at = self.places;
        self.places += 1;
        let (segment, _) = self.split(at);
        if segment == self.segments.len() {
            let slots = self.segment_slots;
            self.segments.push(Segment {
                slots: vec![EMPTY; slots].into(),
                keys: vec![0; slots * of.key_bytes as usize].into(),
                cells: vec![0; slots * of.cells()].into(),
            });
        }
        at
    }

    /// Doubles the index when chains become long.
    fn grow_index(&mut self) {
        const INDEX_MIN: usize = 16;
        if (self.used as usize) < self.index.len() {
            return;
        }
        let length = (self.index.len() * 2).max(INDEX_MIN);
        let old = std::mem::replace(&mut self.index, vec![NONE; length]);
        for first in old {
            let mut at = first;
            while at != NONE {
                let Slot { hash, next, .. } = *self.slot(at);
                let bucket = self.bucket(hash);
                self.slot_mut(at).next = std::mem::replace(&mut self.index[bucket], at);
                at = next;
            }
        }
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & self.index.len().wrapping_sub(1)
    }

    fn split(&self, at: u32) -> (usize, usize) {
        let at = at as usize;
        (at / self.segment_slots, at % self.segment_slots)
    }

    fn slot(&self, at: u32) -> &Slot {
        let (segment, place) = self.split(at);
        &self.segments[segment].slots[place]
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot {
        let (segment, place) = self.split(at);
        &mut self.segments[segment].slots[place]
    }

    fn key(&self, of: &Definition, at: u32) -> &[u8] {
        let (segment, place) = self.split(at);
        let Segment { slots, keys, .. } = &self.segments[segment];
        let start = place * of.key_bytes as usize;
        &keys[start..start + slots[place].key_bytes as usize]
    }
}

/// Whether an entry has expired and is not held.
fn is_over(of: &Definition, slot: &Slot, now_ms: u64) -> bool {
    let expire_ms = of.expire_ms.unwrap_or(u64::MAX);
    slot.holders == 0 && slot.touched_ms.saturating_add(expire_ms) <= now_ms
}
