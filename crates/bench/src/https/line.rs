//! A bounded queue of due requests that wait for a connection. If it is full, a request is dropped
//! and counted.

use std::collections::VecDeque;
use std::time::Duration;

/// The queue, and the number of free connections.
#[derive(Debug, Default)]
pub struct Line {
    waiting: VecDeque<Duration>,
    /// Most waiting requests, in addition to one for each free connection.
    waiting_max: usize,
    free: usize,
    closed: bool,
    dropped: u64,
}

impl Line {
    /// An empty queue for at most `waiting_max`.
    pub fn new(waiting_max: usize) -> Self {
        Self {
            waiting_max,
            ..Self::default()
        }
    }

    /// Adds a request that was due at `due`, or drops it. Returns whether it was added.
    pub fn offer(&mut self, due: Duration) -> bool {
        let room = self.waiting.len() < self.waiting_max + self.free;
        if room {
            self.waiting.push_back(due);
        } else {
            self.dropped += 1;
        }
        room
    }

    /// The request that has waited longest.
    pub fn take(&mut self) -> Option<Duration> {
        self.waiting.pop_front()
    }

    /// A connection becomes free.
    pub fn enter(&mut self) {
        self.free += 1;
    }

    /// A connection is no longer free, or was told to check the queue.
    pub fn leave(&mut self) {
        self.free -= 1;
    }

    /// Closes the queue: no request is added any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the queue is closed.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The number of dropped requests.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn drops_what_finds_all_connections_busy_and_the_list_full() {
        let mut line = Line::new(2);
        assert!(line.offer(at(1)) && line.offer(at(2)) && !line.offer(at(3)));
        assert_eq!((line.take(), line.dropped()), (Some(at(1)), 1));
        assert!(line.offer(at(4)) && !line.offer(at(5)));
        assert_eq!(
            (line.take(), line.take(), line.take()),
            (Some(at(2)), Some(at(4)), None)
        );
        assert_eq!(line.dropped(), 2);
    }

    #[test]
    fn without_a_list_only_free_connections_take() {
        let mut line = Line::new(0);
        assert!(!line.offer(at(1)));
        line.enter();
        assert!(line.offer(at(2)) && !line.offer(at(3)));
        line.leave();
        assert_eq!((line.take(), line.dropped()), (Some(at(2)), 2));
    }
}
