//! Streams of metrics that a processor remembers between batches: the data points of one resource,
//! scope, metric and attributes.
//!
//! Streams are bounded in number and bytes, and expire. The changes of a batch that is refused are
//! undone.

mod exponential;
mod identity;
mod processor;
mod value;
mod walk;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use exponential::Exponential;
pub use identity::{Identity, StreamId};
pub use processor::{Convert, Converted, Processor, State, Tally, edit};
pub use value::{Histogram, Value};
use walk::without;

/// Streams that a processor remembers at most.
pub const STREAMS_MAX: usize = 1 << 20;
/// Bytes of buckets that they have at most.
const STREAMS_BYTES_MAX: usize = 256 << 20;
/// The longest time between two looks for streams that have expired, and the shortest.
const SWEEP_MAX: Duration = Duration::from_secs(60);
const SWEEP_MIN: Duration = Duration::from_secs(1);

/// Value that is remembered of a stream.
pub trait Remembered: Clone + Send + 'static {
    /// Bytes that it takes besides its own size.
    fn bytes(&self) -> usize;
}

/// The streams of a processor.
#[derive(Debug)]
pub struct Streams<V> {
    streams: HashMap<StreamId, Stream<V>>,
    streams_max: usize,
    /// Of all values.
    bytes: usize,
    /// The number of the last batch.
    batch: u64,
}

#[derive(Clone, Debug)]
struct Stream<V> {
    value: V,
    seen: Instant,
    /// The last batch that changed it.
    batch: u64,
}

/// There is no room for another stream, or for more of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl<V: Remembered> Streams<V> {
    /// Without streams; with `streams_max` at most, and no more than [`STREAMS_MAX`].
    pub fn new(streams_max: usize) -> Streams<V> {
        Streams {
            streams: HashMap::new(),
            streams_max: streams_max.min(STREAMS_MAX),
            bytes: 0,
            batch: 0,
        }
    }

    /// The number of streams.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// The largest number of streams.
    pub fn count_max(&self) -> usize {
        self.streams_max
    }

    /// Begins a batch.
    pub fn begin(&mut self, now: Instant) -> Changes<V> {
        self.batch += 1;
        Changes {
            batch: self.batch,
            now,
            before: Vec::new(),
        }
    }

    /// Value that is remembered of a stream.
    pub fn get(&self, id: &StreamId) -> Option<&V> {
        self.streams.get(id).map(|stream| &stream.value)
    }

    /// Remembers something else of a stream.
    ///
    /// # Errors
    /// There is no room for it; what was remembered stays.
    pub fn set(&mut self, id: StreamId, value: V, changes: &mut Changes<V>) -> Result<(), NoRoom> {
        let is_full = self.streams.len() >= self.streams_max;
        let bytes = value.bytes();
        let stream = Stream {
            value,
            seen: changes.now,
            batch: changes.batch,
        };
        match self.streams.entry(id) {
            Entry::Occupied(mut there) => {
                let others = self.bytes - there.get().value.bytes();
                if others.saturating_add(bytes) > STREAMS_BYTES_MAX {
                    return Err(NoRoom);
                }
                self.bytes = others + bytes;
                let before = there.insert(stream);
                // Only the first change of a batch is undone.
                if before.batch != changes.batch {
                    changes.before.push((id, Some(before)));
                }
            }
            Entry::Vacant(place) => {
                if is_full || self.bytes.saturating_add(bytes) > STREAMS_BYTES_MAX {
                    return Err(NoRoom);
                }
                self.bytes += bytes;
                place.insert(stream);
                changes.before.push((id, None));
            }
        }
        Ok(())
    }

    /// Undoes what a batch changed, but for streams that a later one has changed since.
    fn undo(&mut self, changes: Changes<V>) {
        for (id, before) in changes.before {
            let is_last = |stream: &&Stream<V>| stream.batch == changes.batch;
            let Some(stream) = self.streams.get(&id).filter(is_last) else {
                continue;
            };
            self.bytes -= stream.value.bytes();
            match before {
                Some(before) => {
                    self.bytes += before.value.bytes();
                    self.streams.insert(id, before);
                }
                None => drop(self.streams.remove(&id)),
            }
        }
    }

    /// Forgets streams that were not seen for so long.
    pub fn expire(&mut self, now: Instant, idle_max: Duration) {
        let bytes = &mut self.bytes;
        self.streams.retain(|_, stream| {
            let stays = now.saturating_duration_since(stream.seen) <= idle_max;
            if !stays {
                *bytes -= stream.value.bytes();
            }
            stays
        });
    }
}

/// Changes of a batch.
#[derive(Debug)]
pub struct Changes<V> {
    batch: u64,
    now: Instant,
    /// The streams as they were before; none: there was none.
    before: Vec<(StreamId, Option<Stream<V>>)>,
}

/// Streams that several threads use.
#[derive(Debug)]
pub struct Shared<V>(Arc<Mutex<Streams<V>>>);

impl<V> Clone for Shared<V> {
    fn clone(&self) -> Shared<V> {
        Shared(Arc::clone(&self.0))
    }
}

impl<V: Remembered> Shared<V> {
    /// Without streams: see [`Streams::new`].
    pub fn new(streams_max: usize) -> Shared<V> {
        Shared(Arc::new(Mutex::new(Streams::new(streams_max))))
    }

    /// The streams.
    pub fn lock(&self) -> MutexGuard<'_, Streams<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Undoes changes unless they are kept.
    pub fn undo(&self, changes: Changes<V>) -> Undo<V> {
        Undo {
            streams: self.clone(),
            changes: Some(changes),
        }
    }

    /// Forgets streams that were not seen for so long, from time to time. To be called within the
    /// runtime.
    pub fn sweep(&self, idle_max: Duration) -> Sweeper {
        let task = tokio::spawn(sweep(Arc::downgrade(&self.0), idle_max));
        Sweeper(task.abort_handle())
    }
}

/// The changes of a batch. Dropped, it undoes them.
#[derive(Debug)]
pub struct Undo<V: Remembered> {
    streams: Shared<V>,
    changes: Option<Changes<V>>,
}

impl<V: Remembered> Undo<V> {
    /// The batch was taken.
    pub fn keep(mut self) {
        self.changes = None;
    }
}

impl<V: Remembered> Drop for Undo<V> {
    fn drop(&mut self) {
        if let Some(changes) = self.changes.take() {
            self.streams.lock().undo(changes);
        }
    }
}

/// Looks for streams that have expired until it is dropped.
#[derive(Debug)]
pub struct Sweeper(AbortHandle);

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn sweep<V: Remembered>(streams: Weak<Mutex<Streams<V>>>, idle_max: Duration) {
    loop {
        tokio::time::sleep(idle_max.clamp(SWEEP_MIN, SWEEP_MAX)).await;
        let Some(streams) = streams.upgrade() else {
            return;
        };
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.expire(Instant::now(), idle_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Value(usize);

    impl Remembered for Value {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    fn id(name: &str) -> StreamId {
        let mut identity = Identity::default();
        identity.add(name.as_bytes());
        identity.id()
    }

    fn set(streams: &Shared<Value>, now: Instant, values: &[(&str, usize)]) -> Undo<Value> {
        let mut locked = streams.lock();
        let mut changes = locked.begin(now);
        for (name, value) in values {
            let set = locked.set(id(name), Value(*value), &mut changes);
            assert_eq!(set, Ok(()), "{name}");
        }
        drop(locked);
        streams.undo(changes)
    }

    fn values(streams: &Shared<Value>, names: &[&str]) -> Vec<Option<usize>> {
        let locked = streams.lock();
        let value = |name: &&str| locked.get(&id(name)).map(|value| value.0);
        names.iter().map(value).collect()
    }

    #[test]
    fn a_batch_that_is_not_taken_changes_nothing() {
        let (streams, now) = (Shared::new(10), Instant::now());
        set(&streams, now, &[("a", 1)]).keep();
        drop(set(&streams, now, &[("a", 2), ("b", 3), ("a", 4)]));
        assert_eq!(values(&streams, &["a", "b"]), [Some(1), None]);
        assert_eq!(streams.lock().bytes, 1);
        // Changes of a later batch stay.
        let refused = set(&streams, now, &[("a", 5), ("b", 6)]);
        set(&streams, now, &[("a", 7)]).keep();
        drop(refused);
        assert_eq!(values(&streams, &["a", "b"]), [Some(7), None]);
        assert_eq!(streams.lock().bytes, 7);
    }

    #[test]
    fn streams_and_their_bytes_are_bounded() {
        let (streams, now) = (Shared::new(2), Instant::now());
        set(&streams, now, &[("a", 1), ("b", 1)]).keep();
        let mut locked = streams.lock();
        let mut changes = locked.begin(now);
        assert_eq!(locked.set(id("c"), Value(0), &mut changes), Err(NoRoom));
        assert_eq!(locked.set(id("a"), Value(2), &mut changes), Ok(()));
        let all = Value(STREAMS_BYTES_MAX);
        assert_eq!(locked.set(id("a"), all, &mut changes), Err(NoRoom));
        assert_eq!(locked.get(&id("a")), Some(&Value(2)));
        assert_eq!((locked.bytes, locked.count()), (3, 2));
    }

    #[test]
    fn streams_expire() {
        let (streams, now) = (Shared::new(10), Instant::now());
        let later = now + Duration::from_secs(5);
        set(&streams, now, &[("a", 1), ("b", 2)]).keep();
        set(&streams, later, &[("b", 3)]).keep();
        let mut locked = streams.lock();
        locked.expire(later, Duration::from_secs(5));
        assert_eq!(locked.count(), 2);
        locked.expire(later, Duration::from_secs(4));
        assert_eq!((locked.count(), locked.bytes), (1, 3));
    }
}
