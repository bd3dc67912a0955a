use super::*;
use crate::run::kafka::settings::{exporter, faults, receiver};

fn value(properties: &Properties, name: &str) -> Option<String> {
    let mut found = properties.iter().filter(|(own, _)| *own == name);
    let value = found.next().map(|(_, value)| value.clone());
    assert!(found.next().is_none(), "{name} is there twice");
    value
}

/// Each option makes its property this, which is something else without it.
fn check(all: &[(&str, &str, &str)], of: impl Fn(&str) -> Properties) {
    let without = of("");
    for (options, name, expected) in all {
        let with = of(options);
        assert_eq!(value(&with, name).as_deref(), Some(*expected), "{options}");
        assert_ne!(
            value(&without, name).as_deref(),
            Some(*expected),
            "{options}"
        );
    }
}

/// Of receivers and exporters alike.
const CLIENT: &[(&str, &str, &str)] = &[
    ("brokers: ['a:1', 'b:2']", "bootstrap.servers", "a:1,b:2"),
    ("client_id: c", "client.id", "c"),
    ("rack_id: r", "client.rack", "r"),
    ("conn_idle_timeout: 7s", "connections.max.idle.ms", "7000"),
    (
        "resolve_canonical_bootstrap_servers_only: true",
        "client.dns.lookup",
        "resolve_canonical_bootstrap_servers_only",
    ),
    (
        "metadata: { refresh_interval: 3s }",
        "topic.metadata.refresh.interval.ms",
        "3000",
    ),
    (
        "metadata: { retry: { backoff: 70ms } }",
        "retry.backoff.ms",
        "70",
    ),
    ("tls: {}", "security.protocol", "ssl"),
    ("tls: { ca_file: /ca }", "ssl.ca.location", "/ca"),
    ("tls: { ca_pem: ca }", "ssl.ca.pem", "ca"),
    (
        "tls: { cert_file: /c, key_file: /k }",
        "ssl.certificate.location",
        "/c",
    ),
    ("tls: { cert_pem: c, key_pem: k }", "ssl.key.pem", "k"),
    (
        "tls: { insecure_skip_verify: true }",
        "enable.ssl.certificate.verification",
        "false",
    ),
    (
        "auth: { tls: { ca_file: /old } }",
        "ssl.ca.location",
        "/old",
    ),
    (
        "auth: { sasl: { mechanism: SCRAM-SHA-512, username: u, password: p } }",
        "sasl.mechanism",
        "SCRAM-SHA-512",
    ),
    (
        "auth: { sasl: { mechanism: SCRAM-SHA-256, username: u, password: p } }",
        "sasl.username",
        "u",
    ),
    (
        "auth: { sasl: { mechanism: PLAIN, username: u, password: p }}",
        "sasl.password",
        "p",
    ),
    (
        "auth: { plain_text: { username: u, password: p }}",
        "security.protocol",
        "sasl_plaintext",
    ),
    (
        "tls: { insecure: false }, auth: { plain_text: { username: u, password: p }}",
        "security.protocol",
        "sasl_ssl",
    ),
];

#[test]
fn settings_of_a_receiver_are_those_of_its_client() {
    let of = |options: &str| consumer(&receiver(options));
    check(CLIENT, of);
    check(
        &[
            ("group_id: g", "group.id", "g"),
            ("group_instance_id: i", "group.instance.id", "i"),
            ("initial_offset: earliest", "auto.offset.reset", "earliest"),
            ("session_timeout: 20s", "session.timeout.ms", "20000"),
            ("heartbeat_interval: 1s", "heartbeat.interval.ms", "1000"),
            (
                "group_rebalance_strategy: range",
                "partition.assignment.strategy",
                "range",
            ),
            (
                "group_rebalance_strategies: [roundrobin, range]",
                "partition.assignment.strategy",
                "roundrobin,range",
            ),
            ("min_fetch_size: 9", "fetch.min.bytes", "9"),
            ("max_fetch_size: 5000", "fetch.max.bytes", "5000"),
            ("default_fetch_size: 77", "fetch.message.max.bytes", "77"),
            (
                "max_partition_fetch_size: 88",
                "fetch.message.max.bytes",
                "88",
            ),
            ("max_fetch_wait: 60ms", "fetch.wait.max.ms", "60"),
            (
                "autocommit: { interval: 2s }",
                "auto.commit.interval.ms",
                "2000",
            ),
            (
                "autocommit: { enable: false }",
                "enable.auto.commit",
                "false",
            ),
            (
                "traces: { topics: ['^a'], exclude_topics: [ab, ac] }",
                "topic.blacklist",
                "ab,ac",
            ),
            (
                "traces: { topics: ['^a'], exclude_topic: ab }",
                "topic.blacklist",
                "ab",
            ),
        ],
        of,
    );
    let properties = of("");
    let stores = value(&properties, "enable.auto.offset.store");
    assert_eq!(
        stores.as_deref(),
        Some("false"),
        "only what is settled is committed"
    );
}

#[test]
fn settings_of_an_exporter_are_those_of_its_client() {
    let of = |options: &str| producer(&exporter(options));
    check(CLIENT, of);
    check(
        &[
            (
                "producer: { max_message_bytes: 5000 }",
                "message.max.bytes",
                "5000",
            ),
            ("producer: { required_acks: all }", "acks", "-1"),
            ("producer: { required_acks: -1 }", "acks", "-1"),
            ("producer: { required_acks: 0 }", "acks", "0"),
            (
                "producer: { compression: zstd }",
                "compression.codec",
                "zstd",
            ),
            (
                "producer: { compression: gzip, compression_params: { level: 3 } }",
                "compression.level",
                "3",
            ),
            (
                "producer: { flush_max_messages: 50 }",
                "batch.num.messages",
                "50",
            ),
            ("producer: { linger: 30ms }", "linger.ms", "30"),
            (
                "producer: { allow_auto_topic_creation: false }",
                "allow.auto.create.topics",
                "false",
            ),
            (
                "record_partitioner: { sticky_key: { hasher: murmur2 } }",
                "partitioner",
                "murmur2_random",
            ),
            ("timeout: 3s", "message.timeout.ms", "3000"),
        ],
        of,
    );
    assert!(exporter("").queue.is_some() && exporter("").retry.is_some());
    assert!(
        exporter("sending_queue: { enabled: false }")
            .queue
            .is_none()
    );
    assert!(
        exporter("retry_on_failure: { enabled: false }")
            .retry
            .is_none()
    );
}

#[test]
fn topics_of_a_receiver_have_several_ways_to_be_written() {
    for (options, names) in [
        ("", &["otlp_spans"][..]),
        ("topic: a", &["a"]),
        ("traces: { topic: a }", &["a"]),
        ("traces: { topics: [a, b] }", &["a", "b"]),
        ("topic: c, traces: { topics: [a] }", &["a"]),
    ] {
        assert_eq!(receiver(options).traces.names, names, "{options}");
    }
    use crate::config::components::shared::kafka::Encoding;
    for (options, encoding) in [
        ("", Encoding::OtlpProto),
        ("encoding: otlp_json", Encoding::OtlpJson),
        ("traces: { encoding: zipkin_json }", Encoding::ZipkinJson),
        (
            "encoding: otlp_json, traces: { encoding: jaeger_proto }",
            Encoding::JaegerProto,
        ),
    ] {
        assert_eq!(receiver(options).traces.encoding, encoding, "{options}");
    }
}

#[test]
fn what_is_committed_is_as_the_marking_says() {
    for (options, failed, refused) in [
        ("", true, true),
        ("message_marking: { after: true }", false, false),
        (
            "message_marking: { after: true, on_error: true }",
            true,
            true,
        ),
        (
            "message_marking: { after: true, on_permanent_error: true }",
            false,
            true,
        ),
        (
            "message_marking: { after: true, on_error: true, on_permanent_error: false }",
            true,
            false,
        ),
    ] {
        let marking = receiver(options).marking;
        assert_eq!(
            (marking.failed, marking.refused),
            (failed, refused),
            "{options}"
        );
    }
    assert!(receiver("").error_backoff.is_none());
    let backoff = receiver("error_backoff: { enabled: true, initial_interval: 1s }").error_backoff;
    assert_eq!(
        backoff.expect("it is on").first,
        std::time::Duration::from_secs(1)
    );
    let extracted = "header_extraction: { headers: [a], extract_headers: true }";
    assert_eq!(receiver(extracted).extracted_headers, ["a"]);
    assert!(
        receiver("header_extraction: { headers: [a] }")
            .extracted_headers
            .is_empty()
    );
}

#[test]
fn what_the_client_cannot_do_is_told() {
    for (receiver, exporter, told) in [
        ("brokers: []", "", "brokers: must name a broker"),
        ("brokers: ['a b']", "", "'a b' is no broker"),
        ("group_id: ''", "", "group_id: must not be empty"),
        (
            "heartbeat_interval: 20s",
            "",
            "must be less than 'session_timeout'",
        ),
        (
            "traces: { topic: a, topics: [b] }",
            "",
            "'topics' is there too",
        ),
        (
            "traces: { encoding: jaeger_json }",
            "",
            "'jaeger_json' is not supported",
        ),
        (
            "traces: { exclude_topics: [a] }",
            "",
            "no topic is a regular expression",
        ),
        (
            "group_rebalance_strategies: [range, cooperative-sticky]",
            "",
            "cannot be beside",
        ),
        (
            "auth: { kerberos: { realm: r } }",
            "",
            "Kerberos is not built in",
        ),
        (
            "auth: { sasl: { mechanism: AWS_MSK_IAM_OAUTHBEARER } }",
            "",
            "'AWS_MSK_IAM_OAUTHBEARER' is not supported",
        ),
        (
            "auth: { sasl: { mechanism: PLAIN } }",
            "",
            "username: is missing",
        ),
        (
            "tls: { server_name_override: a }",
            "",
            "server_name_override: is not supported",
        ),
        (
            "",
            "encoding: jaeger_proto",
            "'jaeger_proto' is not supported",
        ),
        (
            "",
            "producer: { required_acks: 2 }",
            "must be all, -1, 0 or 1, not 2",
        ),
        (
            "",
            "producer: { compression: snappy, compression_params: { level: 3 } }",
            "is not one of 'snappy'",
        ),
        (
            "",
            "partition_traces_by_id: true, traces: { message_key_from_metadata_key: k }",
            "a message has one key",
        ),
        (
            "",
            "include_metadata_keys: [a], sending_queue: { batch: {} }",
            "partition::metadata_keys' must name all",
        ),
        (
            "",
            "record_partitioner: { round_robin: {} }",
            "messages go by their keys",
        ),
    ] {
        let faults = faults(receiver, exporter);
        assert!(faults.contains(told), "{told}:\n{faults}");
    }
}
