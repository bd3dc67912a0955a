//! Lazy timers: one deadline a slot, changed by writing a number.
//!
//! Nearly every deadline is moved before it comes, so the queue holds only a lower bound of each: moving a deadline later
//! touches nothing but the slot's number, and when the queued moment comes the slot is queued again for its real one.
//! A moved-earlier deadline adds an entry; entries are by slot, not by connection, so their number stays near that of
//! the slots whatever comes and goes in them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No deadline.
pub const NEVER_MS: u64 = u64::MAX;

/// Deadlines in monotonic milliseconds, by slot.
#[derive(Debug, Default)]
pub struct Timers {
    slots: Vec<Deadline>,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at_ms: u64,
    /// The earliest queued moment of this slot; [`NEVER_MS`] where none is queued.
    queued_ms: u64,
}

impl Timers {
    /// Sets a slot's deadline, [`NEVER_MS`] to clear it.
    #[inline]
    pub fn set(&mut self, slot: u32, at_ms: u64) {
        let index = slot as usize;
        if index >= self.slots.len() {
            self.slots.resize(
                index + 1,
                Deadline {
                    at_ms: NEVER_MS,
                    queued_ms: NEVER_MS,
                },
            );
        }
        let deadline = &mut self.slots[index];
        deadline.at_ms = at_ms;
        if at_ms < deadline.queued_ms {
            deadline.queued_ms = at_ms;
            self.queue.push(Reverse((at_ms, slot)));
        }
    }

    /// The earliest moment at which [`Timers::expired`] may find something.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at_ms, _))| *at_ms)
    }

    /// Takes out one slot whose deadline has come; its deadline is cleared.
    pub fn expired(&mut self, now_ms: u64) -> Option<u32> {
        while let Some(&Reverse((queued_ms, slot))) = self.queue.peek() {
            if queued_ms > now_ms {
                return None;
            }
            self.queue.pop();
            let deadline = &mut self.slots[slot as usize];
            if queued_ms != deadline.queued_ms {
                continue; // an earlier entry of this slot took over
            }
            deadline.queued_ms = NEVER_MS;
            if deadline.at_ms <= now_ms {
                deadline.at_ms = NEVER_MS;
                return Some(slot);
            }
            if deadline.at_ms != NEVER_MS {
                deadline.queued_ms = deadline.at_ms;
                self.queue.push(Reverse((deadline.at_ms, slot)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_deadline_fires_once_at_its_last_moment() {
        let mut timers = Timers::default();
        timers.set(3, 100);
        timers.set(3, 300);
        assert_eq!(timers.expired(100), None);
        timers.set(3, 200);
        assert_eq!(timers.expired(199), None);
        assert_eq!(timers.expired(200), Some(3));
        assert_eq!(timers.expired(1000), None);
    }

    #[test]
    fn a_cleared_deadline_never_fires() {
        let mut timers = Timers::default();
        timers.set(0, 10);
        timers.set(0, NEVER_MS);
        assert_eq!(timers.expired(50), None);
        assert_eq!(timers.next_ms(), None);
    }

    #[test]
    fn moving_later_adds_no_entries() {
        let mut timers = Timers::default();
        for at in 10..10_000 {
            timers.set(1, at);
        }
        assert_eq!(timers.queue.len(), 1);
    }
}
