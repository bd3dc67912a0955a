//! Deadlines with keys.
//!
//! Nearly every deadline is moved before it expires. So the queue holds a lower bound of each
//! deadline: moving a deadline later only changes its number, and when the queued time comes the
//! timer is queued again with its real deadline. The queue is a binary heap that knows the place of
//! each timer, so a timer has at most one entry, however often it is moved.

/// No deadline.
pub const NEVER_MS: u64 = u64::MAX;

/// A timer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId(u32);

/// Timers, each with its owner, and their deadlines in monotonic milliseconds.
#[derive(Debug)]
pub struct Timers<T> {
    timers: Vec<Timer<T>>,
    free: Vec<u32>,
    /// A heap ordered by the queued time, the earliest first.
    queue: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Timer<T> {
    at_ms: u64,
    owner: T,
    /// The timer's place in the queue; [`NOWHERE`] if it is not queued.
    place: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    queued_ms: u64,
    timer: u32,
}

const NOWHERE: u32 = u32::MAX;

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers {
            timers: Vec::new(),
            free: Vec::new(),
            queue: Vec::new(),
        }
    }
}

impl<T: Copy> Timers<T> {
    /// A new timer without a deadline.
    pub fn add(&mut self, owner: T) -> TimerId {
        let timer = Timer {
            at_ms: NEVER_MS,
            owner,
            place: NOWHERE,
        };
        if let Some(place) = self.free.pop() {
            self.timers[place as usize] = timer;
            return TimerId(place);
        }
        self.timers.push(timer);
        TimerId((self.timers.len() - 1) as u32)
    }

    /// Removes a timer: its name may be reused.
    pub fn remove(&mut self, id: TimerId) {
        let place = self.timers[id.0 as usize].place;
        if place != NOWHERE {
            self.dequeue(place as usize);
        }
        self.timers[id.0 as usize].at_ms = NEVER_MS;
        self.free.push(id.0);
    }

    /// Sets a deadline, [`NEVER_MS`] to clear it.
    #[inline]
    pub fn set(&mut self, id: TimerId, at_ms: u64) {
        let timer = &mut self.timers[id.0 as usize];
        timer.at_ms = at_ms;
        let place = timer.place;
        let is_due_before_queued = match self.queue.get(place as usize) {
            Some(entry) => at_ms < entry.queued_ms,
            None => at_ms != NEVER_MS,
        };
        if is_due_before_queued {
            self.queue_earlier(id.0, at_ms);
        }
    }

    /// The earliest time at which [`Timers::expired`] may return a timer.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        self.queue.first().map(|entry| entry.queued_ms)
    }

    /// The owner of one expired timer; its deadline is cleared.
    pub fn expired(&mut self, now_ms: u64) -> Option<T> {
        while let Some(&Entry { queued_ms, timer }) = self.queue.first() {
            if queued_ms > now_ms {
                return None;
            }
            let at_ms = self.timers[timer as usize].at_ms;
            if at_ms > now_ms && at_ms != NEVER_MS {
                self.queue[0].queued_ms = at_ms;
                self.sift_down(0);
                continue;
            }
            self.dequeue(0);
            if at_ms != NEVER_MS {
                let timer = &mut self.timers[timer as usize];
                timer.at_ms = NEVER_MS;
                return Some(timer.owner);
            }
        }
        None
    }

    fn queue_earlier(&mut self, timer: u32, queued_ms: u64) {
        let entry = Entry { queued_ms, timer };
        let place = match self.timers[timer as usize].place {
            NOWHERE => {
                self.queue.push(entry);
                self.queue.len() - 1
            }
            place => {
                self.queue[place as usize] = entry;
                place as usize
            }
        };
        self.sift_up(place);
    }

    /// Removes the entry at a place.
    fn dequeue(&mut self, place: usize) {
        let gone = self.queue.swap_remove(place);
        self.timers[gone.timer as usize].place = NOWHERE;
        if place < self.queue.len() {
            // The entry that replaces it came from the end of another branch.
            self.sift_down(place);
            self.sift_up(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        let entry = self.queue[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.queue[parent].queued_ms <= entry.queued_ms {
                break;
            }
            self.put(place, self.queue[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize) {
        let entry = self.queue[place];
        loop {
            let mut child = 2 * place + 1;
            if child >= self.queue.len() {
                break;
            }
            if let Some(right) = self.queue.get(child + 1)
                && right.queued_ms < self.queue[child].queued_ms
            {
                child += 1;
            }
            if self.queue[child].queued_ms >= entry.queued_ms {
                break;
            }
            self.put(place, self.queue[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.queue[place] = entry;
        self.timers[entry.timer as usize].place = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Random;

    #[test]
    fn a_moved_deadline_fires_once_at_its_last_moment() {
        let mut timers = Timers::default();
        let id = timers.add('a');
        timers.set(id, 100);
        timers.set(id, 300);
        assert_eq!(timers.expired(100), None);
        timers.set(id, 200);
        assert_eq!(timers.expired(199), None);
        assert_eq!(timers.expired(200), Some('a'));
        assert_eq!(timers.expired(1000), None);
    }

    #[test]
    fn a_cleared_or_removed_deadline_never_fires() {
        let mut timers = Timers::default();
        let (one, other) = (timers.add(1), timers.add(2));
        timers.set(one, 10);
        timers.set(one, NEVER_MS);
        timers.set(other, 20);
        timers.remove(other);
        assert_eq!(timers.expired(50), None);
        assert_eq!(timers.next_ms(), None);
        assert_eq!(timers.add(3), other, "its name is free");
        assert_eq!(timers.expired(50), None);
    }

    /// Timeouts of an hour and of five seconds in turns, as a tunnel that became a request has
    /// them.
    #[test]
    fn a_timer_has_one_entry_however_it_is_moved() {
        let mut timers = Timers::default();
        let id = timers.add(());
        for round in 0..1000 {
            timers.set(id, 5_000 * round + 3_600_000);
            timers.set(id, 5_000 * round + 5_000);
            assert_eq!(timers.queue.len(), 1);
            assert_eq!(timers.expired(5_000 * round + 4_999), None);
            assert_eq!(timers.expired(5_000 * round + 5_000), Some(()));
        }
    }

    #[test]
    fn timers_fire_in_the_order_of_their_deadlines_whatever_is_moved() {
        let mut timers = Timers::default();
        let ids: Vec<TimerId> = (0..50).map(|owner| timers.add(owner)).collect();
        let mut wanted = vec![NEVER_MS; ids.len()];
        let mut random = Random::new(1);
        let mut now_ms = 0;
        for _ in 0..20_000 {
            let owner = random.below(50);
            let at_ms = match random.below(10) {
                0 => NEVER_MS,
                _ => now_ms + 1 + random.number_below(500),
            };
            timers.set(ids[owner], at_ms);
            wanted[owner] = at_ms;
            now_ms += random.number_below(3);
            while let Some(owner) = timers.expired(now_ms) {
                assert!(wanted[owner] <= now_ms, "{owner} fired early");
                wanted[owner] = NEVER_MS;
            }
            assert!(wanted.iter().all(|at_ms| *at_ms > now_ms), "one is late");
            assert!(timers.queue.len() <= ids.len());
        }
    }
}
