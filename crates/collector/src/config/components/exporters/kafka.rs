//! `kafka`: traces into a topic of a Kafka cluster.

use super::{Exporter, ExporterSettings};
use crate::config::components::shared::kafka::{self, Encoding, Encodings, KafkaClient};
use crate::config::components::shared::queue::{self, Queue};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{EVERY, Entry, Parse, TRACES, name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};
use crate::config::service::context::Asked;

/// A producer.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaExporter {
    /// The cluster.
    pub client: KafkaClient,
    /// Where traces go, and as what.
    pub traces: Destination,
    /// How messages are sent.
    pub producer: Producer,
    /// Each trace is a message of its own, whose key is the trace's identifier in hexadecimal.
    pub is_by_trace: bool,
    /// Fields of the request's metadata that become headers, by their names in small letters.
    pub metadata_keys: Vec<String>,
    /// Headers of all messages.
    pub headers: Vec<(String, String)>,
    /// Time for one attempt; 0: 5 minutes.
    pub timeout_ns: u64,
    /// What waits before it.
    pub queue: Option<Queue>,
    /// Treatment of failures.
    pub retry: Option<Retry>,
}

impl ExporterSettings for KafkaExporter {
    fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    fn retry(&self) -> Option<Retry> {
        self.retry
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn ask(&self, asked: &mut Asked) {
        asked.fields.extend(self.metadata_keys.iter().cloned());
        let keys = [&self.traces.topic_key, &self.traces.message_key];
        asked.fields.extend(keys.into_iter().flatten().cloned());
    }
}

/// Where traces go. What comes first here counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The field of the request's metadata that names the topic, in small letters.
    pub topic_key: Option<String>,
    /// The attribute of a resource that does.
    pub topic_attribute: Option<String>,
    /// The topic.
    pub topic: String,
    /// The field of the request's metadata that is the key of messages, in small letters.
    pub message_key: Option<String>,
    /// What messages hold.
    pub encoding: Encoding,
}

/// How messages are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Bytes of a message before compression; what is larger is divided.
    pub message_bytes_max: u32,
    /// `acks`: -1 (all replicas in sync), 0 or 1.
    pub acks: i8,
    /// `compression.codec`
    pub compression: &'static str,
    /// Its level; -1: the codec's default.
    pub level: i8,
    /// Messages of a batch; 0: 10000.
    pub batch_messages_max: u32,
    /// The broker may make topics that are not there.
    pub makes_topics: bool,
    /// Messages wait for others for this time.
    pub linger_ns: u64,
    /// `partitioner`, by which a message's key chooses its partition.
    pub partitioner: &'static str,
}

const ENCODINGS: Encodings = &[
    ("otlp_proto", Encoding::OtlpProto),
    ("otlp_json", Encoding::OtlpJson),
];
/// As the Collector's default, and Sarama's.
const FNV: &str = "fnv1a_random";
const MURMUR: &str = "murmur2_random";

const OTHER_SIGNAL: &str = "only traces are sent";
const BY_KEY: &str = "messages go by their keys, or anywhere without one";

#[rustfmt::skip]
const TRACES_OPTIONS: &[Opt] = &[
    opt("topic", Kind::Text, "otlp_spans", "the topic"),
    opt("topic_from_metadata_key", Kind::Text, "", "the field of the request's metadata that names the topic; it counts before all else"),
    opt("message_key_from_metadata_key", Kind::Text, "", "the field of the request's metadata that is the key of messages"),
    opt("encoding", Kind::Text, "otlp_proto", "what messages hold: `otlp_proto` or `otlp_json`; others are refused"),
];
#[rustfmt::skip]
const COMPRESSION: &[Opt] = &[opt("level", Kind::Int(-1, 22), "-1", "level of gzip (1 to 9), lz4 (0 to 12) or zstd (1 to 22); -1: the default")];
#[rustfmt::skip]
const PRODUCER: &[Opt] = &[
    opt("max_message_bytes", Kind::Int(1000, 1_000_000_000), "1000000", "bytes of a message before compression; data that are larger are divided"),
    opt("required_acks", Kind::Any, "1", "`all` (or -1): all replicas in sync have a message before it counts as sent; 1: its leader has; 0: nobody is asked, and what is lost is not known"),
    opt("compression", Kind::Word(&["none", "gzip", "snappy", "lz4", "zstd"]), "none", "of messages"),
    opt("compression_params", Kind::Section(&[COMPRESSION]), "", "how they are compressed"),
    opt("flush_max_messages", Kind::Int(0, 1_000_000), "10000", "messages of a batch; 0: 10000"),
    opt("linger", Kind::Duration, "10ms", "messages wait for others of their partition for this time"),
    opt("allow_auto_topic_creation", Kind::Flag, "true", "the broker may make topics that are not there"),
    opt("max_broker_write_bytes", Kind::Int(0, COUNT_MAX), "104857600", "bytes of a request").no_effect("a request is one batch of a partition, of 1 MB or one message"),
];
#[rustfmt::skip]
const STICKY: &[Opt] = &[opt("hasher", Kind::Word(&["sarama_compat", "murmur2"]), "sarama_compat", "hash of keys: FNV-1a as Sarama has it, or murmur2 as Java's client has it")];
#[rustfmt::skip]
const PARTITIONER: &[Opt] = &[
    opt("sticky_key", Kind::Section(&[STICKY]), "", "the hash of its key chooses a message's partition; without a key it is any"),
    opt("round_robin", Kind::Any, "", "one partition after the other").refused(BY_KEY),
    opt("least_backup", Kind::Any, "", "the partition for which least waits").refused(BY_KEY),
    opt("extension", Kind::Text, "", "an extension").refused(BY_KEY),
];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("traces", Kind::Section(&[TRACES_OPTIONS]), "", "where traces go"),
    opt("topic", Kind::Text, "", "the topic").deprecated("write 'traces::topic'"),
    opt("encoding", Kind::Text, "", "what messages hold").deprecated("write 'traces::encoding'"),
    opt("logs", Kind::Any, "", "where logs go").no_effect(OTHER_SIGNAL),
    opt("metrics", Kind::Any, "", "where metrics go").no_effect(OTHER_SIGNAL),
    opt("profiles", Kind::Any, "", "where profiles go").no_effect(OTHER_SIGNAL),
    opt("topic_from_attribute", Kind::Text, "", "the attribute of a resource that names the topic: the first that has it counts"),
    opt("include_metadata_keys", Kind::Texts, "", "fields of the request's metadata that become headers of messages"),
    opt("record_headers", Kind::Pairs, "", "headers of all messages"),
    opt("partition_traces_by_id", Kind::Flag, "false", "each trace is a message of its own, and its identifier in hexadecimal the key: all of a trace goes to one partition"),
    opt("partition_metrics_by_resource_attributes", Kind::Flag, "false", "keys of metrics").no_effect(OTHER_SIGNAL),
    opt("partition_logs_by_resource_attributes", Kind::Flag, "false", "keys of logs").no_effect(OTHER_SIGNAL),
    opt("partition_logs_by_trace_id", Kind::Flag, "false", "keys of logs").no_effect(OTHER_SIGNAL),
    opt("record_partitioner", Kind::Section(&[PARTITIONER]), "", "how a partition is chosen"),
    opt("producer", Kind::Section(&[PRODUCER]), "", "how messages are sent"),
    opt("timeout", Kind::Duration, "5s", "time for one attempt to send; 0: 5m"),
    opt("sending_queue", Kind::Section(queue::TABLE), "", "what waits before it"),
    opt("retry_on_failure", Kind::Section(retry::TABLE), "", "what becomes of failures"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("kafka")],
    doc: "traces into Kafka's topics (cargo feature `kafka`): see [Kafka](#kafka)",
    takes: EVERY,
    carries: TRACES,
    options: &[kafka::CLIENT, OPTIONS],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let keys = section.texts("include_metadata_keys").into_iter();
    let exporter = KafkaExporter {
        client: kafka::client(section),
        traces: destination(section),
        producer: producer(section),
        is_by_trace: section.flag("partition_traces_by_id"),
        metadata_keys: keys.map(|key| key.to_ascii_lowercase()).collect(),
        headers: section.pairs("record_headers"),
        timeout_ns: section.duration_ns("timeout"),
        queue: queue::queue(&section.section("sending_queue")),
        retry: retry::retry(&section.section("retry_on_failure")),
    };
    let batch = exporter
        .queue
        .as_ref()
        .and_then(|queue| queue.batch.as_ref());
    if let Some(batch) = batch
        && !{ exporter.metadata_keys.iter() }.all(|key| batch.metadata_keys.contains(key))
    {
        let why = "'sending_queue::batch::partition::metadata_keys' must name all of them";
        section.error("include_metadata_keys", why);
    }
    if exporter.is_by_trace && exporter.traces.message_key.is_some() {
        let why = "'partition_traces_by_id' is there too: a message has one key";
        let traces = section.section("traces");
        traces.error("message_key_from_metadata_key", why);
    }
    Exporter::new(exporter)
}

fn destination(section: &Section<'_>) -> Destination {
    let traces = section.section("traces");
    let lower = |name| {
        let key = traces.text_unless_empty(name);
        key.map(|key| key.to_ascii_lowercase())
    };
    let old = |name: &str| section.has(name) && !traces.has(name);
    let topic = if old("topic") {
        section.text("topic")
    } else {
        traces.text("topic")
    };
    if topic.is_empty() {
        traces.error("topic", "must not be empty");
    }
    let encoding = kafka::encoding(&traces, "encoding", ENCODINGS);
    let old_encoding = kafka::encoding(section, "encoding", ENCODINGS).filter(|_| old("encoding"));
    Destination {
        topic_key: lower("topic_from_metadata_key"),
        topic_attribute: section.text_unless_empty("topic_from_attribute"),
        topic,
        message_key: lower("message_key_from_metadata_key"),
        encoding: old_encoding.or(encoding).unwrap_or(Encoding::OtlpProto),
    }
}

fn producer(section: &Section<'_>) -> Producer {
    let producer = section.section("producer");
    let sticky = section.section("record_partitioner").section("sticky_key");
    let compression = producer.choice("compression", &CODECS);
    let level = producer.section("compression_params").int("level");
    let most = match compression {
        "gzip" => 9,
        "lz4" => 12,
        "zstd" => 22,
        _ => -1,
    };
    if level > most {
        let params = producer.section("compression_params");
        params.error("level", &format!("is not one of '{compression}'"));
    }
    Producer {
        message_bytes_max: producer.int("max_message_bytes"),
        acks: acks(&producer),
        compression,
        level,
        batch_messages_max: producer.int("flush_max_messages"),
        makes_topics: producer.flag("allow_auto_topic_creation"),
        linger_ns: producer.duration_ns("linger"),
        partitioner: sticky.choice("hasher", &[("sarama_compat", FNV), ("murmur2", MURMUR)]),
    }
}

const CODECS: [(&str, &str); 5] = [
    ("none", "none"),
    ("gzip", "gzip"),
    ("snappy", "snappy"),
    ("lz4", "lz4"),
    ("zstd", "zstd"),
];

fn acks(producer: &Section<'_>) -> i8 {
    let written = producer.written("required_acks");
    let Some(written) = written else { return 1 };
    match written.shown().trim_matches('\'') {
        "all" | "-1" => -1,
        "0" => 0,
        "1" => 1,
        other => {
            let why = format!("must be all, -1, 0 or 1, not {other}");
            producer.error("required_acks", &why);
            1
        }
    }
}
