//! A hash table of entry numbers that grows in small steps.
//!
//! It stores numbers only; the caller hashes and compares the entries. The table consists of
//! segments of at most [`SEGMENT_SLOTS_MAX`] slots. The first bits of the hash select a segment
//! through a directory. A full segment is split in two, so the most expensive insertion moves one
//! segment (extendible hashing). In a segment, eight slots share a word of tags: seven bits of each
//! entry's hash, which are compared at once.
//!
//! Invariants: a segment is never full, so a search ends; a number occurs in it once.

/// Slots of a segment.
const SEGMENT_SLOTS_MAX: usize = 1024;

/// Most splits of a segment.
const DEPTH_MAX: u32 = 22;

/// Directory slots per segment. Only equal hashes, which no split separates, can need more; then
/// the segment grows instead.
const DIRECTORY_SHARE_MAX: usize = 16;

const GROUP: usize = 8;
const EMPTY: u8 = 0xff;
const DELETED: u8 = 0x80;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// See the module.
#[derive(Debug)]
pub(super) struct Index {
    /// The number of hash bits that index the directory.
    depth: u32,
    /// Segment numbers.
    directory: Vec<u32>,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    /// The number of hash bits that its entries share.
    depth: u32,
    live: u32,
    /// The number of used slots, including deleted ones.
    used: u32,
    /// Eight tags per word; the number of words is a power of two.
    tags: Box<[u64]>,
    numbers: Box<[u32]>,
}

impl Default for Index {
    fn default() -> Self {
        Index::with_room(0)
    }
}

impl Index {
    /// An index with room for this many entries.
    pub(super) fn with_room(entries: usize) -> Index {
        let segments = (entries / (SEGMENT_SLOTS_MAX / 4 * 3)).next_power_of_two();
        let depth = segments.trailing_zeros().min(DEPTH_MAX);
        let each = match depth {
            0 => entries + entries / 4,
            _ => SEGMENT_SLOTS_MAX,
        };
        Index {
            depth,
            directory: (0..1 << depth).collect(),
            segments: (0..1 << depth).map(|_| Segment::new(each, depth)).collect(),
        }
    }

    /// The entry with this hash for which `is` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        let segment = &self.segments[self.segment_of(hash)];
        segment.find(hash, is).map(|at| segment.numbers[at])
    }

    /// Adds an entry; `hash_of` returns the hashes of entries that have to move.
    pub(super) fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        loop {
            let at = self.segment_of(hash);
            if !self.segments[at].is_full() {
                return self.segments[at].place(hash, number);
            }
            self.make_room(at, hash, &hash_of);
        }
    }

    /// Replaces an entry by another one with the same hash.
    pub(super) fn replace(&mut self, hash: u64, old: u32, new: u32) {
        let at = self.segment_of(hash);
        let segment = &mut self.segments[at];
        if let Some(place) = segment.find(hash, |number| number == old) {
            segment.numbers[place] = new;
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        let at = self.segment_of(hash);
        let segment = &mut self.segments[at];
        if let Some(place) = segment.find(hash, |other| other == number) {
            segment.clear(place);
        }
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let segment = |segment: &Segment| size_of::<Segment>() + segment.numbers.len() * 5;
        self.directory.len() * 4 + self.segments.iter().map(segment).sum::<usize>()
    }

    #[inline]
    fn segment_of(&self, hash: u64) -> usize {
        // In two shifts: with a depth of 0, one shift would be by all bits.
        let place = (hash >> 1) >> (63 - self.depth);
        self.directory[place as usize] as usize
    }

    fn make_room(&mut self, at: usize, hash: u64, hash_of: &impl Fn(u32) -> u64) {
        let segment = &self.segments[at];
        let (depth, places) = (segment.depth, segment.numbers.len());
        if segment.live * 2 <= segment.used {
            self.segments[at] = segment.moved(places, hash_of);
        } else if places < SEGMENT_SLOTS_MAX || !self.may_split(depth) {
            self.segments[at] = segment.moved(places * 2, hash_of);
        } else {
            self.split(at, hash, hash_of);
        }
    }

    fn may_split(&self, depth: u32) -> bool {
        let in_bounds = self.directory.len() < DIRECTORY_SHARE_MAX * self.segments.len();
        depth < self.depth || (depth < DEPTH_MAX && in_bounds)
    }

    /// Splits a segment in two, by the next bit of the entries' hashes.
    fn split(&mut self, at: usize, hash: u64, hash_of: &impl Fn(u32) -> u64) {
        let depth = self.segments[at].depth + 1;
        if depth > self.depth {
            self.directory = self.directory.iter().flat_map(|at| [*at, *at]).collect();
            self.depth += 1;
        }
        let mut low = Segment::new(SEGMENT_SLOTS_MAX, depth);
        let mut high = Segment::new(SEGMENT_SLOTS_MAX, depth);
        for number in self.segments[at].entries() {
            let hash = hash_of(number);
            let half = if hash >> (64 - depth) & 1 == 0 {
                &mut low
            } else {
                &mut high
            };
            half.place(hash, number);
        }
        // The directory slots of this segment are adjacent; their second half points to the new
        // segment.
        let places = 1 << (self.depth - depth);
        let first = (hash >> (64 - depth) | 1) as usize * places;
        self.directory[first..first + places].fill(self.segments.len() as u32);
        self.segments[at] = low;
        self.segments.push(high);
    }
}

impl Segment {
    fn new(places: usize, depth: u32) -> Segment {
        let groups = places.div_ceil(GROUP).next_power_of_two();
        Segment {
            depth,
            live: 0,
            used: 0,
            tags: vec![u64::MAX; groups].into(),
            numbers: vec![0; groups * GROUP].into(),
        }
    }

    fn is_full(&self) -> bool {
        self.used as usize >= self.numbers.len() / 8 * 7
    }

    #[inline]
    fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<usize> {
        let tag = u64::from(tag_of(hash)) * LOW_BITS;
        for group in self.groups(hash) {
            let tags = self.tags[group];
            let differing = tags ^ tag;
            // This may also report the slot above a true match; `is` rejects it.
            let mut hits = differing.wrapping_sub(LOW_BITS) & !differing & HIGH_BITS;
            while hits != 0 {
                let at = group * GROUP + hits.trailing_zeros() as usize / 8;
                if is(self.numbers[at]) {
                    return Some(at);
                }
                hits &= hits - 1;
            }
            if empty_places(tags) != 0 {
                break;
            }
        }
        None
    }

    /// Uses the first free slot, which exists.
    fn place(&mut self, hash: u64, number: u32) {
        let free = self
            .groups(hash)
            .find(|group| self.tags[*group] & HIGH_BITS != 0);
        let Some(group) = free else {
            debug_assert!(false, "a segment is never full");
            return;
        };
        let at = group * GROUP + (self.tags[group] & HIGH_BITS).trailing_zeros() as usize / 8;
        self.used += u32::from(self.tag(at) == EMPTY);
        self.live += 1;
        self.set_tag(at, tag_of(hash));
        self.numbers[at] = number;
    }

    fn clear(&mut self, at: usize) {
        // A search that reaches this group ends here if the group has an empty slot. Then the slot
        // can become empty.
        let ends_here = empty_places(self.tags[at / GROUP]) != 0;
        self.set_tag(at, if ends_here { EMPTY } else { DELETED });
        self.used -= u32::from(ends_here);
        self.live -= 1;
    }

    /// The same entries in a segment with this many slots.
    fn moved(&self, places: usize, hash_of: &impl Fn(u32) -> u64) -> Segment {
        let mut moved = Segment::new(places, self.depth);
        for number in self.entries() {
            moved.place(hash_of(number), number);
        }
        moved
    }

    fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.numbers.len())
            .filter(|at| self.tag(*at) & 0x80 == 0)
            .map(|at| self.numbers[at])
    }

    /// The groups in the order of a search, each once.
    fn groups(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.tags.len() - 1;
        let home = hash as usize & mask;
        (0..=mask).map(move |step| (home + step) & mask)
    }

    fn tag(&self, at: usize) -> u8 {
        (self.tags[at / GROUP] >> (at % GROUP * 8)) as u8
    }

    fn set_tag(&mut self, at: usize, tag: u8) {
        let shift = at % GROUP * 8;
        let group = &mut self.tags[at / GROUP];
        *group = *group & !(0xff << shift) | u64::from(tag) << shift;
    }
}

/// The seven bits of the tag, which select neither the segment nor the group.
fn tag_of(hash: u64) -> u8 {
    (hash >> 32) as u8 & 0x7f
}

/// The high bits of the tags that are [`EMPTY`].
fn empty_places(tags: u64) -> u64 {
    tags & tags << 1 & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// With `narrow`, few different hashes, so that entries collide.
    fn hash_of(number: u32, narrow: bool) -> u64 {
        let number = if narrow { number % 7 } else { number };
        super::super::hash::hash_number(u128::from(number), 0)
    }

    #[test]
    fn what_is_in_it_is_found_and_nothing_else() {
        for (count, room, narrow) in [
            (50_000, 0, false),
            (50_000, 50_000, false),
            (3_000, 0, true),
        ] {
            let mut index = Index::with_room(room);
            let mut wanted = HashSet::new();
            let hash = |number| hash_of(number, narrow);
            for number in 0..count {
                index.insert(hash(number), number, hash);
                wanted.insert(number);
                if number % 3 == 0 {
                    let gone = number / 2;
                    index.remove(hash(gone), gone);
                    wanted.remove(&gone);
                }
            }
            for number in 0..count {
                let found = index.find(hash(number), |other| other == number);
                assert_eq!(found.is_some(), wanted.contains(&number), "{number}");
            }
        }
    }

    #[test]
    fn coming_and_going_does_not_grow_it() {
        let mut index = Index::default();
        let hash = |number| hash_of(number, false);
        for number in 0..100_000 {
            index.insert(hash(number), number, hash);
            if number >= 50 {
                index.remove(hash(number - 50), number - 50);
            }
        }
        assert!(index.bytes() < 2_000, "{}", index.bytes());
    }

    #[test]
    fn an_entry_gives_its_place_to_another() {
        let mut index = Index::default();
        index.insert(5, 1, |_| 5);
        index.replace(5, 1, 2);
        assert_eq!(index.find(5, |_| true), Some(2));
    }
}
