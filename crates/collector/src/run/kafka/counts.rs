//! What the metrics of Kafka's receivers and exporters count.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most partitions that are counted separately. Further ones are counted together, as partition
/// -1 of the topic "".
const PARTITIONS_MAX: usize = 10_000;
/// The most brokers that are counted.
const BROKERS_MAX: usize = 1000;

/// The counts of one receiver or exporter.
#[derive(Debug, Default)]
pub struct Counts(Mutex<State>);

/// A snapshot of the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// By topic and partition.
    pub topics: BTreeMap<String, BTreeMap<i32, Partition>>,
    /// The number of partitions in `topics`.
    known: usize,
    /// By the broker's number.
    pub brokers: BTreeMap<i32, Broker>,
    /// Partitions that were assigned.
    pub started: u64,
    /// Partitions that were revoked.
    pub closed: u64,
}

/// The counts of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Messages that were received or sent.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were not sent.
    pub failed: u64,
    /// Messages that could not be read.
    pub unread: u64,
    /// The offset of the last message; none if the partition is not assigned.
    pub offset: Option<i64>,
    /// The number of messages after that offset; none if unknown.
    pub lag: Option<i64>,
}

/// The counts of a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broker {
    /// Connections that were opened.
    pub connects: u64,
    /// Connections that were closed.
    pub disconnects: u64,
}

impl Counts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts for a partition.
    pub fn partition(&self, topic: &str, number: i32, count: impl FnOnce(&mut Partition)) {
        let mut state = self.state();
        let partitions = state.topics.get_mut(topic);
        if let Some(known) = partitions.and_then(|all| all.get_mut(&number)) {
            return count(known);
        }
        let (topic, number) = if state.known < PARTITIONS_MAX {
            (topic, number)
        } else {
            ("", -1)
        };
        let partitions = state.topics.entry(topic.to_owned()).or_default();
        let before = partitions.len();
        count(partitions.entry(number).or_default());
        let new = partitions.len() - before;
        state.known += new;
    }

    /// Sets the counts of a broker.
    pub fn broker(&self, number: i32, broker: Broker) {
        let mut state = self.state();
        if state.brokers.contains_key(&number) || state.brokers.len() < BROKERS_MAX {
            state.brokers.insert(number, broker);
        }
    }

    /// Counts partitions that were assigned.
    pub fn start(&self, partitions: u64) {
        self.state().started += partitions;
    }

    /// Counts a partition that was revoked.
    pub fn close(&self, topic: &str, number: i32) {
        self.state().closed += 1;
        self.partition(topic, number, |partition| {
            (partition.offset, partition.lag) = (None, None);
        });
    }

    /// A copy of all counts.
    #[must_use]
    pub fn all(&self) -> State {
        self.state().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_bounded() {
        let counts = Counts::default();
        for number in 0..PARTITIONS_MAX as i32 + 5 {
            counts.partition("a", number, |partition| partition.records += 1);
        }
        let all = counts.all();
        assert_eq!(all.topics["a"].len(), PARTITIONS_MAX);
        assert_eq!(all.topics[""][&-1].records, 5);
        for number in 0..BROKERS_MAX as i32 + 5 {
            counts.broker(number, Broker::default());
        }
        assert_eq!(counts.all().brokers.len(), BROKERS_MAX);
    }
}
