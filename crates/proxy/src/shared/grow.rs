//! A list that one thread extends while others read it. An item never moves.
//!
//! The initial items are one slice, so reading one of them costs a bounds check. Later items are in
//! chunks of growing size.

use std::sync::OnceLock;

/// The items of the first chunk; each further chunk is twice as large.
const CHUNK_ITEMS: usize = 8;
/// The largest number of chunks.
const CHUNKS_MAX: usize = 12;

/// How many items can be added to the initial ones.
pub(crate) const ADDED_MAX: usize = CHUNK_ITEMS * ((1 << CHUNKS_MAX) - 1);

type Chunk<T> = OnceLock<Box<[T]>>;

/// The list.
#[derive(Debug)]
pub(super) struct Grow<T> {
    first: Box<[T]>,
    more: OnceLock<Box<[Chunk<T>; CHUNKS_MAX]>>,
}

/// The chunk of an added item, and its place in the chunk.
fn chunk_of(added: usize) -> (usize, usize) {
    let chunk = (added / CHUNK_ITEMS + 1).ilog2() as usize;
    (chunk, added - CHUNK_ITEMS * ((1 << chunk) - 1))
}

impl<T> Grow<T> {
    pub fn new(first: Box<[T]>) -> Self {
        Grow {
            first,
            more: OnceLock::new(),
        }
    }

    /// The item at a place, if there is one.
    #[inline(always)]
    pub fn find(&self, place: usize) -> Option<&T> {
        match self.first.get(place) {
            None => self.added(place),
            found => found,
        }
    }

    /// The item at an existing place.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, place: usize) -> &T {
        self.find(place).expect("a place of the list")
    }

    #[cold]
    #[inline(never)]
    fn added(&self, place: usize) -> Option<&T> {
        let (chunk, place) = chunk_of(place - self.first.len());
        self.more.get()?.get(chunk)?.get()?.get(place)
    }

    /// Extends the list so that it has this place. False if it cannot be that long.
    pub fn reach(&self, place: usize, make: impl Fn() -> T) -> bool {
        if place < self.first.len() {
            return true;
        }
        let added = place - self.first.len();
        if added >= ADDED_MAX {
            return false;
        }
        let more = self
            .more
            .get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        for (chunk, cell) in more.iter().enumerate().take(chunk_of(added).0 + 1) {
            cell.get_or_init(|| (0..CHUNK_ITEMS << chunk).map(|_| make()).collect());
        }
        true
    }

    /// All items of the allocated chunks, in order.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        let chunks = self.more.get().into_iter().flat_map(|more| more.iter());
        let added = chunks.filter_map(OnceLock::get).flat_map(|chunk| &**chunk);
        self.first.iter().chain(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn items_stay_where_they_are() {
        let made = AtomicUsize::new(0);
        let list = Grow::new(vec![100, 101].into_boxed_slice());
        assert_eq!((list.find(1), list.find(2)), (Some(&101), None));
        let make = || made.fetch_add(1, Ordering::Relaxed);
        assert!(list.reach(2 + 8, make), "the second chunk");
        assert_eq!(made.load(Ordering::Relaxed), 8 + 16);
        let before: *const usize = list.at(9);
        assert!(list.reach(2 + 8 + 16, make));
        assert_eq!(before, std::ptr::from_ref(list.at(9)));
        let places: Vec<usize> = (2..2 + 8 + 16 + 32).map(|place| *list.at(place)).collect();
        assert_eq!(places, (0..56).collect::<Vec<_>>(), "each place is its own");
        assert_eq!(list.all().count(), 2 + 56);
        assert!(list.find(2 + 56).is_none());
    }

    #[test]
    fn a_list_has_a_longest_length() {
        let list = Grow::new(Box::default());
        assert!(!list.reach(ADDED_MAX, || 0_u8));
        assert!(list.reach(ADDED_MAX - 1, || 0_u8));
        assert!(list.find(ADDED_MAX - 1).is_some());
        assert!(list.find(ADDED_MAX).is_none());
    }
}
