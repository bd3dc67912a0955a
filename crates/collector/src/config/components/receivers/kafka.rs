//! `kafka`: traces from the topics of a Kafka cluster, as a member of a consumer group.

use super::{Receiver, ReceiverSettings};
use crate::config::components::shared::kafka::{self, Encoding, Encodings, KafkaClient};
use crate::config::components::shared::retry::{self, Retry};
use crate::config::components::{EVERY, Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// A member of a consumer group.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaReceiver {
    /// The cluster.
    pub client: KafkaClient,
    /// What is read, and what it holds.
    pub traces: Topics,
    /// How the group is spoken to.
    pub group: Group,
    /// How much is fetched at a time.
    pub fetch: Fetch,
    /// Offsets are committed after this time; none: as soon as they are settled.
    pub commit_interval_ns: Option<u64>,
    /// Which messages count as done.
    pub marking: Marking,
    /// Headers that become attributes of resources, by their names; none where that is off.
    pub extracted_headers: Vec<String>,
    /// What is failed is read again, after waits that grow; else its partition stands still.
    pub error_backoff: Option<Retry>,
}

impl ReceiverSettings for KafkaReceiver {
    fn reads_again(&self) -> bool {
        true
    }
}

/// Topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Names, and regular expressions that begin with `^`; at least one.
    pub names: Vec<String>,
    /// Regular expressions of topics that are left out.
    pub excluded: Vec<String>,
    /// What messages hold.
    pub encoding: Encoding,
}

/// A consumer group, and the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `group.id`
    pub id: String,
    /// `group.instance.id`; empty: a dynamic member.
    pub instance_id: String,
    /// A partition without a committed offset is read from its beginning.
    pub from_beginning: bool,
    /// A member that is silent for so long is dead.
    pub session_timeout_ns: u64,
    /// Time between two signs of life.
    pub heartbeat_interval_ns: u64,
    /// Assignment strategies, the preferred one first; at least one.
    pub strategies: Vec<&'static str>,
}

/// Sizes of fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// A broker waits for so many bytes.
    pub bytes_min: u32,
    /// A response has no more bytes, about; 0: the client's bound.
    pub bytes_max: u32,
    /// Of one partition it has no more.
    pub partition_bytes_max: u32,
    /// A broker waits no longer.
    pub wait_max_ns: u64,
}

/// `message_marking`: what is done with messages that could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// What exporters gave up counts as done.
    pub failed: bool,
    /// And what is refused for good.
    pub refused: bool,
}

const STRATEGIES: &[&str] = &["range", "roundrobin", "sticky", "cooperative-sticky"];
const OTHER_SIGNAL: &str = "only traces are received";
const ALWAYS: &str = "each partition always goes on for itself";

const ENCODINGS: Encodings = &[
    ("otlp_proto", Encoding::OtlpProto),
    ("otlp_json", Encoding::OtlpJson),
    ("jaeger_proto", Encoding::JaegerProto),
    ("zipkin_proto", Encoding::ZipkinProto),
    ("zipkin_json", Encoding::ZipkinJson),
];

#[rustfmt::skip]
const TRACES_OPTIONS: &[Opt] = &[
    opt("topics", Kind::Texts, "otlp_spans", "topics that are read; one that begins with `^` is a regular expression"),
    opt("topic", Kind::Text, "", "one topic").deprecated("write 'topics'"),
    opt("encoding", Kind::Text, "otlp_proto", "what messages hold: `otlp_proto`, `otlp_json`, `jaeger_proto`, `zipkin_proto` or `zipkin_json`; others are refused"),
    opt("exclude_topics", Kind::Texts, "", "regular expressions of topics that are left out, where a topic is one"),
    opt("exclude_topic", Kind::Text, "", "one of them").deprecated("write 'exclude_topics'"),
];
#[rustfmt::skip]
const AUTOCOMMIT: &[Opt] = &[
    opt("enable", Kind::Flag, "true", "offsets of what is settled are committed after `interval`; else as soon as it is"),
    opt("interval", Kind::Duration, "1s", "time between two commits"),
];
#[rustfmt::skip]
const MARKING: &[Opt] = &[
    opt("after", Kind::Flag, "false", "what exporters give up or refuse is not committed, unless the options below say so; else it counts as lost and is committed. What is delivered or dropped by a policy is committed after that in either case"),
    opt("on_error", Kind::Flag, "false", "with `after`: what exporters gave up is committed"),
    opt("on_permanent_error", Kind::Flag, "false", "with `after`: what is refused for good, or cannot be read, is committed; as `on_error` where it is not written"),
];
#[rustfmt::skip]
const EXTRACTION: &[Opt] = &[
    opt("extract_headers", Kind::Flag, "false", "headers of messages become attributes `kafka.header.NAME` of resources"),
    opt("headers", Kind::Texts, "", "their names"),
];
#[rustfmt::skip]
const BACKOFF: &[Opt] = &[opt("enabled", Kind::Flag, "false", "what was given up is read again")];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("traces", Kind::Section(&[TRACES_OPTIONS]), "", "what is read"),
    opt("topic", Kind::Text, "", "one topic").deprecated("write 'traces::topics'"),
    opt("encoding", Kind::Text, "", "what messages hold").deprecated("write 'traces::encoding'"),
    opt("logs", Kind::Any, "", "topics of logs").no_effect(OTHER_SIGNAL),
    opt("metrics", Kind::Any, "", "topics of metrics").no_effect(OTHER_SIGNAL),
    opt("profiles", Kind::Any, "", "topics of profiles").no_effect(OTHER_SIGNAL),
    opt("group_id", Kind::Text, "otel-collector", "the consumer group"),
    opt("group_instance_id", Kind::Text, "", "a member that keeps its partitions over a restart within `session_timeout`"),
    opt("group_rebalance_strategy", Kind::Word(STRATEGIES), "", "how partitions are assigned; see `group_rebalance_strategies`"),
    opt("group_rebalance_strategies", Kind::Words(STRATEGIES), "cooperative-sticky", "the same, several, the preferred one first; `sticky` counts as `cooperative-sticky`, and no mix of that with others is taken"),
    opt("initial_offset", Kind::Word(&["latest", "earliest"]), "latest", "where a partition is read from that has no committed offset"),
    opt("session_timeout", Kind::Duration, "10s", "a member that is silent for so long is dead"),
    opt("heartbeat_interval", Kind::Duration, "3s", "time between two signs of life"),
    opt("min_fetch_size", Kind::Int(1, 100_000_000), "1", "a broker answers when it has so many bytes"),
    opt("max_fetch_size", Kind::Int(0, i32::MAX as i64 - 1024), "0", "bytes of an answer; 0: 50 MiB"),
    opt("default_fetch_size", Kind::Int(1, 1_000_000_000), "1048576", "bytes of one partition in an answer").deprecated("write 'max_partition_fetch_size'"),
    opt("max_partition_fetch_size", Kind::Int(1, 1_000_000_000), "1048576", "bytes of one partition in an answer"),
    opt("max_fetch_wait", Kind::Duration, "250ms", "a broker answers after this time with what it has"),
    opt("autocommit", Kind::Section(&[AUTOCOMMIT]), "", "when offsets are committed"),
    opt("message_marking", Kind::Section(&[MARKING]), "", "what is committed that could not be delivered"),
    opt("header_extraction", Kind::Section(&[EXTRACTION]), "", "headers that become attributes"),
    opt("error_backoff", Kind::Section(&[BACKOFF, retry::OPTIONS]), "", "with `message_marking::after`: what was given up is read again after a wait, else its partition stands still; off unless `enabled: true`"),
    opt("partition_processing", Kind::Any, "", "partitions for themselves").no_effect(ALWAYS),
    opt("telemetry", Kind::Any, "", "metrics that may be left out").no_effect("there is no `kafka_receiver_records_delay`"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("kafka")],
    doc: "traces from Kafka's topics, in a consumer group (cargo feature `kafka`): see [Kafka](#kafka)",
    takes: EVERY,
    carries: TRACES,
    options: &[kafka::CLIENT, OPTIONS],
    parse: Parse::Receiver(parse),
};

fn parse(section: &Section<'_>) -> Receiver {
    let autocommit = section.section("autocommit");
    let commit_interval_ns = autocommit.duration_ns("interval");
    let extraction = section.section("header_extraction");
    Receiver::new(KafkaReceiver {
        client: kafka::client(section),
        traces: topics(section),
        group: group(section),
        fetch: fetch(section),
        commit_interval_ns: autocommit.flag("enable").then_some(commit_interval_ns),
        marking: marking(&section.section("message_marking")),
        extracted_headers: if extraction.flag("extract_headers") {
            extraction.texts("headers")
        } else {
            Vec::new()
        },
        error_backoff: retry::retry(&section.section("error_backoff")),
    })
}

fn topics(section: &Section<'_>) -> Topics {
    let traces = section.section("traces");
    let one = traces.text_unless_empty("topic");
    if one.is_some() && traces.has("topics") {
        traces.error("topic", "'topics' is there too: one of the two is enough");
    }
    let one = one.or_else(|| {
        section
            .text_unless_empty("topic")
            .filter(|_| !traces.has("topics"))
    });
    let names = one.map_or_else(|| traces.texts("topics"), |one| vec![one]);
    if names.is_empty() || names.iter().any(String::is_empty) {
        traces.error(
            "topics",
            "must name a topic at least, and none without a name",
        );
    }
    let mut excluded = traces.texts("exclude_topics");
    excluded.extend(traces.text_unless_empty("exclude_topic"));
    check_excluded(&traces, &names, &excluded);
    let encoding = kafka::encoding(&traces, "encoding", ENCODINGS);
    let old = kafka::encoding(section, "encoding", ENCODINGS).filter(|_| !traces.has("encoding"));
    Topics {
        names,
        excluded,
        encoding: old.or(encoding).unwrap_or(Encoding::OtlpProto),
    }
}

fn check_excluded(traces: &Section<'_>, names: &[String], excluded: &[String]) {
    if excluded.is_empty() {
        return;
    }
    if !names.iter().any(|name| name.starts_with('^')) {
        let why = "no topic is a regular expression: one must begin with '^'";
        traces.error("exclude_topics", why);
    }
    for pattern in excluded {
        // The client separates them with commas.
        if pattern.is_empty() || pattern.contains(',') {
            let why = format!("'{pattern}' is empty or has a comma");
            traces.error("exclude_topics", &why);
        }
    }
}

fn group(section: &Section<'_>) -> Group {
    let group = Group {
        id: section.text("group_id"),
        instance_id: section.text("group_instance_id"),
        from_beginning: section.text("initial_offset") == "earliest",
        session_timeout_ns: section.duration_ns("session_timeout"),
        heartbeat_interval_ns: section.duration_ns("heartbeat_interval"),
        strategies: strategies(section),
    };
    if group.id.is_empty() {
        section.error("group_id", "must not be empty");
    }
    if group.heartbeat_interval_ns >= group.session_timeout_ns {
        section.error("heartbeat_interval", "must be less than 'session_timeout'");
    }
    group
}

fn strategies(section: &Section<'_>) -> Vec<&'static str> {
    let one = section.text_unless_empty("group_rebalance_strategy");
    if one.is_some() && section.has("group_rebalance_strategies") {
        let why = "'group_rebalance_strategies' is there too: one of the two is enough";
        section.error("group_rebalance_strategy", why);
    }
    let (key, written) = match one {
        Some(one) => ("group_rebalance_strategy", vec![one]),
        None => {
            let key = "group_rebalance_strategies";
            (key, section.texts(key))
        }
    };
    let mut strategies = Vec::new();
    for text in written {
        if text == "sticky" {
            let why = "'sticky' counts as 'cooperative-sticky', which members with 'sticky' alone do not understand";
            section.warn(key, why);
        }
        let strategy = match text.as_str() {
            "range" => "range",
            "roundrobin" => "roundrobin",
            _ => COOPERATIVE,
        };
        if !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    if strategies.len() > 1 && strategies.contains(&COOPERATIVE) {
        let why = "'cooperative-sticky' cannot be beside 'range' or 'roundrobin'";
        section.error(key, why);
    }
    if strategies.is_empty() {
        strategies.push(COOPERATIVE);
    }
    strategies
}

/// Partitions move one by one.
const COOPERATIVE: &str = "cooperative-sticky";

fn fetch(section: &Section<'_>) -> Fetch {
    let name = if section.has("default_fetch_size") && !section.has("max_partition_fetch_size") {
        "default_fetch_size"
    } else {
        "max_partition_fetch_size"
    };
    Fetch {
        bytes_min: section.int("min_fetch_size"),
        bytes_max: section.int("max_fetch_size"),
        partition_bytes_max: section.int(name),
        wait_max_ns: section.duration_ns("max_fetch_wait"),
    }
}

fn marking(section: &Section<'_>) -> Marking {
    if !section.flag("after") {
        return Marking {
            failed: true,
            refused: true,
        };
    }
    let failed = section.flag("on_error");
    Marking {
        failed,
        refused: if section.has("on_permanent_error") {
            section.flag("on_permanent_error")
        } else {
            failed
        },
    }
}
