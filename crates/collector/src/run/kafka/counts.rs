//! What the metrics of Kafka's receivers and exporters count.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Partitions that are counted by name, at most; those beyond are counted together, as partition -1 of no topic.
const PARTITIONS_MAX: usize = 10_000;
/// Brokers likewise.
const BROKERS_MAX: usize = 1000;

/// Of one receiver or exporter.
#[derive(Debug, Default)]
pub struct Counts(Mutex<State>);

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// By topic and partition.
    pub topics: BTreeMap<String, BTreeMap<i32, Partition>>,
    /// How many partitions there are.
    known: usize,
    /// By the broker's number.
    pub brokers: BTreeMap<i32, Broker>,
    /// Partitions that were assigned.
    pub started: u64,
    /// And that were taken away.
    pub closed: u64,
}

/// Of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Messages that came, or that were sent.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were not sent.
    pub failed: u64,
    /// Messages that could not be read.
    pub unread: u64,
    /// It is assigned, and this is the offset of the last message.
    pub offset: Option<i64>,
    /// Messages behind that, where that is known.
    pub lag: Option<i64>,
}

/// Of a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broker {
    /// Connections that were made.
    pub connects: u64,
    /// And that ended.
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
        let (topic, number) = match state.known < PARTITIONS_MAX {
            true => (topic, number),
            false => ("", -1),
        };
        let partitions = state.topics.entry(topic.to_owned()).or_default();
        let before = partitions.len();
        count(partitions.entry(number).or_default());
        let new = partitions.len() - before;
        state.known += new;
    }

    /// A broker's connections by now.
    pub fn broker(&self, number: i32, broker: Broker) {
        let mut state = self.state();
        if state.brokers.contains_key(&number) || state.brokers.len() < BROKERS_MAX {
            state.brokers.insert(number, broker);
        }
    }

    /// Partitions were assigned.
    pub fn start(&self, partitions: u64) {
        self.state().started += partitions;
    }

    /// A partition was taken away.
    pub fn close(&self, topic: &str, number: i32) {
        self.state().closed += 1;
        self.partition(topic, number, |partition| {
            (partition.offset, partition.lag) = (None, None);
        });
    }

    /// All of it.
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
