//! The callbacks of the client: changes of the assignment, log lines, errors and statistics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::run::kafka::client::Voice;
use crate::run::kafka::offsets::{Offsets, Partition};

/// A change of the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This member owns the partition now.
    Assigned(Partition),
    /// This member no longer owns the partition.
    Revoked(Partition),
}

/// The callbacks. The polling thread calls all of them except the log.
pub struct Context {
    pub voice: Voice,
    offsets: Arc<Offsets>,
    /// Offsets are committed here, and not by the client after an interval.
    commits_at_once: bool,
    events: Mutex<Vec<Event>>,
}

impl Context {
    pub fn new(voice: Voice, offsets: Arc<Offsets>, commits_at_once: bool) -> Context {
        Context {
            voice,
            offsets,
            commits_at_once,
            events: Mutex::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changes since the last call.
    pub fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.queue())
    }

    /// Commits the settled offsets, or stores them for the client to commit. Returns their
    /// partitions. With `is_last` it waits for the commit.
    pub fn commit(&self, consumer: &BaseConsumer<Context>, is_last: bool) -> Vec<Partition> {
        let moved = self.offsets.moved();
        if moved.is_empty() {
            return Vec::new();
        }
        let mut list = TopicPartitionList::with_capacity(moved.len());
        for (Partition { topic, number }, offset) in &moved {
            // Offsets of messages are valid ones.
            let _ = list.add_partition_offset(topic, *number, Offset::Offset(*offset));
        }
        let mode = match is_last {
            true => CommitMode::Sync,
            false => CommitMode::Async,
        };
        let done = match self.commits_at_once {
            true => consumer.commit(&list, mode),
            false => consumer.store_offsets(&list),
        };
        if let Err(why) = done {
            self.voice
                .tell("commit", &format!("offsets are not committed: {why}"));
        }
        moved.into_iter().map(|(partition, _)| partition).collect()
    }
}

/// The partitions of a list.
pub fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    let all = list.elements().into_iter();
    all.map(|one| Partition {
        topic: one.topic().into(),
        number: one.partition(),
    })
    .collect()
}

/// A list of partitions.
pub fn list_of(partitions: &[Partition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for Partition { topic, number } in partitions {
        list.add_partition(topic, *number);
    }
    list
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, line: &str) {
        self.voice.client_line(level, kind, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.voice.error(&error, reason);
    }

    fn stats(&self, statistics: Statistics) {
        self.voice.statistics(&statistics);
    }
}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Context>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                let all = partitions(list);
                self.voice
                    .note(&format!("{} partitions are assigned", all.len()));
                self.voice.counts.start(all.len() as u64);
                self.queue().extend(all.into_iter().map(Event::Assigned));
            }
            Rebalance::Revoke(list) => {
                // The next owner starts at this offset.
                self.commit(consumer, true);
                let all = partitions(list);
                self.voice
                    .note(&format!("{} partitions are revoked", all.len()));
                for partition in all {
                    self.offsets.forget(&partition);
                    self.voice.counts.close(&partition.topic, partition.number);
                    self.queue().push(Event::Revoked(partition));
                }
            }
            Rebalance::Error(why) => self.voice.tell("rebalance", &why.to_string()),
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        let Err(why) = result else { return };
        // There was nothing to commit.
        if why.rdkafka_error_code() != Some(RDKafkaErrorCode::NoOffset) {
            self.voice
                .tell("commit", &format!("offsets are not committed: {why}"));
        }
    }
}
