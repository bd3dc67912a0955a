//! The memory that the queues of all exporters share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that wait in one queue at most, whatever its settings count.
const QUEUE_BYTES_MAX: u64 = 1 << 30;

/// What may wait in all queues together. Each has an equal share, so that one whose back end is
/// gone leaves the others theirs.
#[derive(Debug)]
pub struct Room {
    bytes_max: u64,
    queues: AtomicU64,
}

/// A queue's part, as long as this is there.
#[derive(Debug)]
pub struct Share {
    room: Arc<Room>,
}

impl Room {
    /// So many bytes for all queues.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Room> {
        Arc::new(Room {
            bytes_max,
            queues: AtomicU64::new(0),
        })
    }

    /// One queue more.
    #[must_use]
    pub fn share(self: &Arc<Room>) -> Share {
        self.queues.fetch_add(1, Relaxed);
        Share {
            room: Arc::clone(self),
        }
    }
}

impl Share {
    /// Bytes that may wait in this queue, as many queues as there are now.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        let queues = self.room.queues.load(Relaxed).max(1);
        (self.room.bytes_max / queues).min(QUEUE_BYTES_MAX)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.queues.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_share_equally() {
        let room = Room::new(90);
        let first = room.share();
        assert_eq!(first.bytes_max(), 90);
        let second = room.share();
        assert_eq!((first.bytes_max(), second.bytes_max()), (45, 45));
        drop(first);
        assert_eq!(second.bytes_max(), 90);
        assert_eq!(Room::new(u64::MAX).share().bytes_max(), QUEUE_BYTES_MAX);
    }
}
