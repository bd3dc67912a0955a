//! The servers of a backend that released slots: each worker reads the releases since its last
//! look, and so follows loads that became lower without looking at all servers.
//!
//! Many threads write and read without a lock. A reader that is too far behind is told so, and
//! looks at all servers once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of the latest releases that are kept; a power of two.
const KEPT_RELEASES: usize = 4096;

/// The latest releases. They are recorded only once a worker follows them.
#[derive(Debug, Default)]
pub(crate) struct Releases(OnceLock<Box<Ring>>);

/// The position up to which a reader has read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position(u32);

#[derive(Debug)]
#[repr(align(128))]
struct Ring {
    /// The number of the next release.
    next: AtomicU32,
    /// By release number modulo the length: that number, and the place of the server.
    entries: Box<[AtomicU64]>,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            // No entry has a number of the first round.
            next: AtomicU32::new(KEPT_RELEASES as u32),
            entries: (0..KEPT_RELEASES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn entry(&self, number: u32) -> &AtomicU64 {
        &self.entries[number as usize % KEPT_RELEASES]
    }
}

impl Releases {
    /// Records that a server has released a slot. Its load must be decremented before.
    #[inline]
    pub fn record(&self, place: usize) {
        if let Some(ring) = self.0.get() {
            let number = ring.next.fetch_add(1, Ordering::AcqRel);
            let entry = u64::from(number) << 32 | place as u64;
            ring.entry(number).store(entry, Ordering::Release);
        }
    }

    /// The current position: loads that are read afterwards include all releases before it.
    pub fn position(&self) -> Position {
        let ring = self.0.get_or_init(|| Box::new(Ring::new()));
        Position(ring.next.load(Ordering::Acquire))
    }

    /// Reports the places of the servers that released slots since `position`, and advances it.
    /// False if there were more than `most` releases: then none is reported, and all servers must
    /// be looked at.
    #[must_use]
    pub fn follow(
        &self,
        position: &mut Position,
        most: usize,
        mut report: impl FnMut(usize),
    ) -> bool {
        let end = self.position();
        let most = most.min(KEPT_RELEASES);
        if end.0.wrapping_sub(position.0) as usize > most {
            *position = end;
            return false;
        }
        while position.0 != end.0 {
            let entry = self
                .0
                .get()
                .map_or(0, |ring| ring.entry(position.0).load(Ordering::Acquire));
            let number = (entry >> 32) as u32;
            if number != position.0 {
                // Another thread is about to write it, or has written a later one over it.
                if (number.wrapping_sub(position.0) as i32) < 0 {
                    return true;
                }
                *position = end;
                return false;
            }
            report(entry as u32 as usize);
            position.0 = position.0.wrapping_add(1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_each_release_once_or_is_told_that_it_is_behind() {
        let releases = Releases::default();
        releases.record(1);
        let mut position = releases.position();
        let read = |position: &mut Position, most| {
            let mut places = Vec::new();
            releases
                .follow(position, most, |place| places.push(place))
                .then_some(places)
        };
        assert_eq!(
            read(&mut position, 10),
            Some(vec![]),
            "recorded before anyone followed"
        );
        releases.record(7);
        releases.record(2);
        assert_eq!(read(&mut position, 10), Some(vec![7, 2]));
        assert_eq!(read(&mut position, 10), Some(vec![]));
        (0..11).for_each(|place| releases.record(place));
        assert_eq!(read(&mut position, 10), None);
        assert_eq!(read(&mut position, 10), Some(vec![]));
        (0..=KEPT_RELEASES).for_each(|place| releases.record(place));
        assert_eq!(
            read(&mut position, usize::MAX),
            None,
            "the first one is overwritten"
        );
    }

    #[test]
    fn releases_of_many_threads_all_arrive() {
        const THREADS: usize = 4;
        const EACH: usize = 2000;
        let releases = Releases::default();
        let mut position = releases.position();
        let counts: Vec<AtomicU32> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
        let mut seen = [0; THREADS];
        let mut behind = false;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (releases, counts) = (&releases, &counts);
                scope.spawn(move || {
                    for _ in 0..EACH {
                        counts[thread].fetch_add(1, Ordering::SeqCst);
                        releases.record(thread);
                    }
                });
            }
            let is_over = |seen: &[u32]| seen.iter().sum::<u32>() as usize == THREADS * EACH;
            while !is_over(&seen) && !behind {
                behind = !releases.follow(&mut position, usize::MAX, |place| seen[place] += 1);
                if behind {
                    break;
                }
                for (seen, count) in seen.iter().zip(&counts) {
                    assert!(*seen <= count.load(Ordering::SeqCst));
                }
            }
        });
        let complete = seen.iter().all(|seen| *seen as usize == EACH);
        assert!(complete || behind, "{seen:?}");
    }
}
