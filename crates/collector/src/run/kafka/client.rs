//! The Kafka client: its configuration, its log lines and its statistics.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::statistics::Statistics;

use tokio::time::Instant;

use super::Counts;
use super::counts::Broker;
use super::properties::Properties;
use crate::run::Log;
use crate::run::log::Shown;

/// The shortest time between two log lines of one kind.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// The most kinds of log lines that are distinguished.
const KINDS_MAX: usize = 256;

/// The client's configuration with these properties.
#[must_use]
pub fn config(properties: Properties) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (name, value) in properties {
        config.set(name, value);
    }
    config.set_log_level(RDKafkaLogLevel::Warning);
    config
}

/// Writes a client's messages to the log and its statistics to the counts.
pub struct Voice {
    /// The component, for example `receiver 'kafka'`.
    name: String,
    log: Log,
    pub counts: Arc<Counts>,
    told: Mutex<HashMap<String, Instant>>,
}

impl Voice {
    /// For the receiver or exporter with this name.
    #[must_use]
    pub fn new(name: String, log: &Log, counts: &Arc<Counts>) -> Voice {
        Voice {
            name,
            log: log.clone(),
            counts: Arc::clone(counts),
            told: Mutex::default(),
        }
    }

    /// Logs a warning of a kind, at most once per [`TELL_EVERY`].
    pub fn tell(&self, kind: &str, what: &str) {
        let now = Instant::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |last: &Instant| now - *last < TELL_EVERY;
        if told.get(kind).is_some_and(is_recent) {
            return;
        }
        if told.len() >= KINDS_MAX {
            told.clear();
        }
        told.insert(kind.to_owned(), now);
        drop(told);
        self.log.warn(&format!("{}: {}", self.name, Shown(what)));
    }

    /// Logs an event that occurs once.
    pub fn note(&self, what: &str) {
        self.log.info(&format!("{}: {}", self.name, Shown(what)));
    }

    /// Logs a line of librdkafka.
    pub fn client_line(&self, level: RDKafkaLogLevel, kind: &str, line: &str) {
        if level as i32 <= RDKafkaLogLevel::Warning as i32 {
            self.tell(kind, line);
        }
    }

    /// Logs an error of the client. Errors of single brokers are among its lines.
    pub fn error(&self, error: &KafkaError, reason: &str) {
        self.tell("error", &format!("{error}: {reason}"));
    }

    /// Stores the client's statistics.
    pub fn statistics(&self, statistics: &Statistics) {
        let count = |value: Option<i64>| u64::try_from(value.unwrap_or(0)).unwrap_or(0);
        for broker in statistics
            .brokers
            .values()
            .filter(|broker| broker.nodeid >= 0)
        {
            let counted = Broker {
                connects: count(broker.connects),
                disconnects: count(broker.disconnects),
            };
            self.counts.broker(broker.nodeid, counted);
        }
        for (name, topic) in &statistics.topics {
            for (number, partition) in &topic.partitions {
                // The partition -1 stands for the whole topic, and a lag of -1 is unknown.
                if *number >= 0 && partition.consumer_lag >= 0 {
                    self.counts.partition(name, *number, |own| {
                        own.lag = own.offset.map(|_| partition.consumer_lag);
                    });
                }
            }
        }
    }
}
