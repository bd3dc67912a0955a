//! Converts settings to properties of librdkafka (its `CONFIGURATION.md`).

use crate::config::components::exporters::kafka::KafkaExporter;
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::config::components::shared::kafka::{KafkaClient, Mechanism};
use telemetry::settings::{Pem, Tls};

/// Names and values.
pub type Properties = Vec<(&'static str, String)>;

/// Kibibytes of messages that are fetched ahead for each partition.
const FETCHED_KIB_MAX: u32 = 16 << 10;
/// Kibibytes and messages that wait in a producer.
const PRODUCED_KIB_MAX: u32 = 128 << 10;
const PRODUCED_MESSAGES_MAX: u32 = 200_000;
/// Bytes of a response that are not messages.
const RESPONSE_BYTES: u32 = 1024;
/// The time limit of a message whose settings have none.
const MESSAGE_MS_MAX: u64 = 300_000;
/// The time between two statistics of the client.
const STATISTICS_MS: u32 = 5000;

/// The properties of a receiver. The receiver stores offsets itself; with an interval the client
/// commits the stored ones.
#[must_use]
pub fn consumer(settings: &KafkaReceiver) -> Properties {
    let KafkaReceiver { group, fetch, .. } = settings;
    let mut all = client(&settings.client);
    all.extend([
        ("group.id", group.id.clone()),
        ("session.timeout.ms", millis(group.session_timeout_ns)),
        ("heartbeat.interval.ms", millis(group.heartbeat_interval_ns)),
        ("partition.assignment.strategy", group.strategies.join(",")),
        ("enable.auto.offset.store", "false".to_owned()),
        ("enable.partition.eof", "false".to_owned()),
        ("fetch.min.bytes", fetch.bytes_min.to_string()),
        ("fetch.wait.max.ms", millis(fetch.wait_max_ns)),
        (
            "fetch.message.max.bytes",
            fetch.partition_bytes_max.to_string(),
        ),
        ("queued.max.messages.kbytes", FETCHED_KIB_MAX.to_string()),
    ]);
    let offset = if group.from_beginning {
        "earliest"
    } else {
        "latest"
    };
    all.push(("auto.offset.reset", offset.to_owned()));
    match settings.commit_interval_ns {
        None | Some(0) => all.push(("enable.auto.commit", "false".to_owned())),
        Some(interval_ns) => all.push(("auto.commit.interval.ms", millis(interval_ns))),
    }
    if !group.instance_id.is_empty() {
        all.push(("group.instance.id", group.instance_id.clone()));
    }
    if fetch.bytes_max > 0 {
        let bytes = fetch.bytes_max;
        all.push(("fetch.max.bytes", bytes.to_string()));
        // No message is larger than a response.
        all.push(("message.max.bytes", bytes.max(1000).to_string()));
        let response = bytes.max(1000) + RESPONSE_BYTES;
        all.push(("receive.message.max.bytes", response.to_string()));
    }
    if !settings.traces.excluded.is_empty() {
        all.push(("topic.blacklist", settings.traces.excluded.join(",")));
    }
    all
}

/// The properties of an exporter.
#[must_use]
pub fn producer(settings: &KafkaExporter) -> Properties {
    let producer = &settings.producer;
    let mut all = client(&settings.client);
    let timeout = match settings.timeout_ns {
        0 => MESSAGE_MS_MAX.to_string(),
        ns => millis(ns),
    };
    all.extend([
        ("message.max.bytes", producer.message_bytes_max.to_string()),
        ("acks", producer.acks.to_string()),
        ("compression.codec", producer.compression.to_owned()),
        ("compression.level", producer.level.to_string()),
        ("linger.ms", millis_or_zero(producer.linger_ns)),
        (
            "allow.auto.create.topics",
            producer.makes_topics.to_string(),
        ),
        ("partitioner", producer.partitioner.to_owned()),
        ("message.timeout.ms", timeout),
        ("queue.buffering.max.kbytes", PRODUCED_KIB_MAX.to_string()),
        (
            "queue.buffering.max.messages",
            PRODUCED_MESSAGES_MAX.to_string(),
        ),
    ]);
    if producer.batch_messages_max > 0 {
        let messages = producer.batch_messages_max.to_string();
        all.push(("batch.num.messages", messages));
    }
    all
}

fn client(settings: &KafkaClient) -> Properties {
    let lookup = if settings.canonical_names {
        "resolve_canonical_bootstrap_servers_only"
    } else {
        "use_all_dns_ips"
    };
    let mut all = vec![
        ("bootstrap.servers", settings.brokers.join(",")),
        ("client.id", settings.client_id.clone()),
        ("client.dns.lookup", lookup.to_owned()),
        ("client.rack", settings.rack_id.clone()),
        (
            "connections.max.idle.ms",
            millis_or_zero(settings.idle_timeout_ns),
        ),
        (
            "topic.metadata.refresh.interval.ms",
            millis(settings.refresh_interval_ns),
        ),
        ("retry.backoff.ms", millis(settings.retry_backoff_ns)),
        ("statistics.interval.ms", STATISTICS_MS.to_string()),
        ("log.connection.close", "false".to_owned()),
    ];
    let protocol = match (&settings.sasl, &settings.tls) {
        (None, None) => "plaintext",
        (None, Some(_)) => "ssl",
        (Some(_), None) => "sasl_plaintext",
        (Some(_), Some(_)) => "sasl_ssl",
    };
    all.push(("security.protocol", protocol.to_owned()));
    if let Some(sasl) = &settings.sasl {
        let mechanism = match sasl.mechanism {
            Mechanism::Plain => "PLAIN",
            Mechanism::Scram256 => "SCRAM-SHA-256",
            Mechanism::Scram512 => "SCRAM-SHA-512",
        };
        all.push(("sasl.mechanism", mechanism.to_owned()));
        all.push(("sasl.username", sasl.username.clone()));
        all.push(("sasl.password", sasl.password.clone()));
    }
    if let Some(settings) = &settings.tls {
        tls(settings, &mut all);
    }
    all.retain(|(_, value)| !value.is_empty());
    all
}

fn tls(settings: &Tls, all: &mut Properties) {
    for (pem, file, text) in [
        (&settings.ca, "ssl.ca.location", "ssl.ca.pem"),
        (
            &settings.certificate,
            "ssl.certificate.location",
            "ssl.certificate.pem",
        ),
        (&settings.key, "ssl.key.location", "ssl.key.pem"),
    ] {
        match pem {
            Some(Pem::Path(path)) => all.push((file, path.clone())),
            Some(Pem::Text(pem)) => all.push((text, pem.clone())),
            None => {}
        }
    }
    if !settings.verify {
        all.push(("enable.ssl.certificate.verification", "false".to_owned()));
    }
}

/// Whole milliseconds, one at least.
fn millis(ns: u64) -> String {
    ns.div_ceil(1_000_000).max(1).to_string()
}

fn millis_or_zero(ns: u64) -> String {
    ns.div_ceil(1_000_000).to_string()
}

#[cfg(test)]
mod tests;
