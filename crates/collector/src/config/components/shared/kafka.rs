//! What the `kafka` receiver and exporter have in common: the cluster, and how it is spoken to
//! (`pkg/kafka/configkafka` of the Collector).

use telemetry::settings::Tls;

use super::tls;
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt};

/// A client of a Kafka cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaClient {
    /// `host:port` of the servers that are asked first; at least one.
    pub brokers: Vec<String>,
    /// `client.id`
    pub client_id: String,
    /// Names of the addresses of the brokers are looked up first.
    pub canonical_names: bool,
    /// `client.rack`; empty: none.
    pub rack_id: String,
    /// Idle connections are closed after this time.
    pub idle_timeout_ns: u64,
    /// SASL; none where it is not written.
    pub sasl: Option<Sasl>,
    /// TLS; none where it is not written.
    pub tls: Option<Tls>,
    /// Metadata are asked for again after this time.
    pub refresh_interval_ns: u64,
    /// Shortest wait before a request is sent again.
    pub retry_backoff_ns: u64,
}

/// A user of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasl {
    /// How the password is proved.
    pub mechanism: Mechanism,
    /// The user.
    pub username: String,
    /// Their password.
    pub password: String,
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// RFC 4616
    Plain,
    /// RFC 5802 with SHA-256
    Scram256,
    /// RFC 5802 with SHA-512
    Scram512,
}

/// What a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// An `ExportTraceServiceRequest`.
    OtlpProto,
    /// The same in JSON.
    OtlpJson,
    /// One `Span` of Jaeger's `model.proto`.
    JaegerProto,
    /// A `ListOfSpans` of Zipkin's `zipkin.proto`.
    ZipkinProto,
    /// A list of spans of Zipkin's version 2.
    ZipkinJson,
}

/// Why no configuration with Kafka is taken by a build without it.
const NOT_BUILT: &str = "this build has no Kafka client: build with the cargo feature 'kafka' \
                         (`cargo build --release -p spangate --features kafka`)";
/// And TLS or SCRAM by a build without them.
const NO_TLS: &str = "the Kafka client of this build has no TLS and no SCRAM: build with the cargo feature \
                      'kafka-tls', which links OpenSSL";

const NEGOTIATED: &str = "the client and each broker negotiate the versions of requests";
const IN_LIBRARY: &str = "the client retries until the session or the message times out";

#[rustfmt::skip]
const RETRY: &[Opt] = &[
    opt("max", Kind::Int(0, COUNT_MAX), "3", "retries of a request").no_effect(IN_LIBRARY),
    opt("backoff", Kind::Duration, "250ms", "shortest wait before a request is sent again"),
];
#[rustfmt::skip]
const METADATA: &[Opt] = &[
    opt("full", Kind::Flag, "true", "metadata of all topics").no_effect("only the topics in use are asked for, as in the Collector"),
    opt("refresh_interval", Kind::Duration, "10m", "metadata of the cluster are asked for again after this time"),
    opt("retry", Kind::Section(&[RETRY]), "", "requests that failed"),
];
#[rustfmt::skip]
const PLAIN_TEXT: &[Opt] = &[
    opt("username", Kind::Text, "", "the user"),
    opt("password", Kind::Text, "", "their password"),
];
#[rustfmt::skip]
const SASL: &[Opt] = &[
    opt("mechanism", Kind::Text, "", "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`; `AWS_MSK_IAM_OAUTHBEARER`, `OAUTHBEARER` and `OIDCFILE` are refused"),
    opt("username", Kind::Text, "", "the user"),
    opt("password", Kind::Text, "", "their password"),
    opt("version", Kind::Int(0, 1), "0", "version of the handshake").no_effect(NEGOTIATED),
    opt("aws_msk", Kind::Any, "", "AWS MSK").refused("IAM of AWS MSK is not built in: use SCRAM"),
    opt("oidc_file", Kind::Any, "", "OIDC").refused("OAUTHBEARER is not built in: use SCRAM"),
    opt("oauthbearer_token_source", Kind::Text, "", "the extension that has tokens").refused("OAUTHBEARER is not built in: use SCRAM"),
];
#[rustfmt::skip]
const AUTH: &[Opt] = &[
    opt("sasl", Kind::Maybe(&[SASL]), "", "a user and a password"),
    opt("plain_text", Kind::Maybe(&[PLAIN_TEXT]), "", "old name of `sasl` with `mechanism: PLAIN`").deprecated("write `sasl: { mechanism: PLAIN, … }`"),
    opt("tls", Kind::Maybe(tls::CLIENT), "", "old place of `tls`").deprecated("write 'tls' beside 'auth'"),
    opt("kerberos", Kind::Any, "", "Kerberos").refused("Kerberos is not built in: use SASL with PLAIN or SCRAM"),
];

/// Options of every client.
#[rustfmt::skip]
pub(crate) const CLIENT: &[Opt] = &[
    opt("brokers", Kind::Texts, "localhost:9092", "`host:port` of brokers that are asked for the others"),
    opt("protocol_version", Kind::Text, "", "version of the protocol").no_effect(NEGOTIATED),
    opt("resolve_canonical_bootstrap_servers_only", Kind::Flag, "false", "the names of the brokers' addresses count, and not those that are written"),
    opt("client_id", Kind::Text, "otel-collector", "name of the client, for quotas and logs of the brokers"),
    opt("rack_id", Kind::Text, "", "rack of the client: the closest replica is read"),
    opt("use_leader_epoch", Kind::Flag, "true", "logs that were cut are detected").no_effect("the client always detects them"),
    opt("conn_idle_timeout", Kind::Duration, "9m", "connections that are idle for so long are closed; 0: never"),
    opt("tls", Kind::Maybe(tls::CLIENT), "", "TLS (cargo feature `kafka-tls`); none where it is not written. Names of servers, suites, curves and versions other than the default, and `reload_interval`, are refused"),
    opt("auth", Kind::Section(&[AUTH]), "", "who the client is (SCRAM: cargo feature `kafka-tls`)"),
    opt("metadata", Kind::Section(&[METADATA]), "", "what is known of the cluster"),
];

/// From the section of a receiver or an exporter.
pub(crate) fn client(section: &Section<'_>) -> KafkaClient {
    if !cfg!(any(feature = "kafka", test)) {
        section.fault(NOT_BUILT);
    }
    let metadata = section.section("metadata");
    let client = KafkaClient {
        brokers: brokers(section),
        client_id: section.text("client_id"),
        canonical_names: section.flag("resolve_canonical_bootstrap_servers_only"),
        rack_id: section.text("rack_id"),
        idle_timeout_ns: section.duration_ns("conn_idle_timeout"),
        sasl: sasl(&section.section("auth")),
        tls: tls(section),
        refresh_interval_ns: metadata.duration_ns("refresh_interval"),
        retry_backoff_ns: metadata.section("retry").duration_ns("backoff"),
    };
    let sasl = client.sasl.as_ref();
    let is_scram = sasl.is_some_and(|sasl| sasl.mechanism != Mechanism::Plain);
    let has_tls = cfg!(any(feature = "kafka-tls", test));
    if cfg!(feature = "kafka") && !has_tls && (client.tls.is_some() || is_scram) {
        section.fault(NO_TLS);
    }
    client
}

fn brokers(section: &Section<'_>) -> Vec<String> {
    let brokers = section.texts("brokers");
    if brokers.is_empty() {
        section.error("brokers", "must name a broker at least");
    }
    for broker in &brokers {
        // The client reads them as one text with commas.
        let is_host = |c: char| !c.is_whitespace() && !c.is_control() && !",/".contains(c);
        if broker.is_empty() || !broker.chars().all(is_host) {
            let why = format!("'{broker}' is no broker: write host:port");
            section.error("brokers", &why);
        }
    }
    brokers
}

fn sasl(auth: &Section<'_>) -> Option<Sasl> {
    if let Some(plain) = auth.maybe_filled("plain_text") {
        return Some(user(&plain, Mechanism::Plain));
    }
    let sasl = auth.maybe_filled("sasl")?;
    let mechanism = match sasl.text("mechanism").as_str() {
        "PLAIN" => Mechanism::Plain,
        "SCRAM-SHA-256" => Mechanism::Scram256,
        "SCRAM-SHA-512" => Mechanism::Scram512,
        other => {
            let lacking = ["AWS_MSK_IAM_OAUTHBEARER", "OAUTHBEARER", "OIDCFILE"];
            let why = if lacking.contains(&other) {
                format!("'{other}' is not supported: PLAIN and SCRAM are")
            } else {
                format!("must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, not '{other}'")
            };
            sasl.error("mechanism", &why);
            return None;
        }
    };
    Some(user(&sasl, mechanism))
}

fn user(section: &Section<'_>, mechanism: Mechanism) -> Sasl {
    for name in ["username", "password"] {
        if section.text(name).is_empty() {
            section.error(name, "is missing");
        }
    }
    Sasl {
        mechanism,
        username: section.text("username"),
        password: section.text("password"),
    }
}

/// Settings of TLS that the client has no way to keep, and what may be written there all the same.
const TLS_LACKING: [(&str, &str); 6] = [
    ("server_name_override", ""),
    ("cipher_suites", ""),
    ("curve_preferences", ""),
    ("min_version", "1.2"),
    ("max_version", "1.3"),
    ("reload_interval", "0s"),
];

fn tls(section: &Section<'_>) -> Option<Tls> {
    let written = section.maybe_filled("tls");
    let written = written.or_else(|| section.section("auth").maybe_filled("tls"))?;
    if written.flag("insecure") {
        return None;
    }
    let client = tls::client(&written);
    const WHY: &str = "is not supported by the Kafka client";
    for (name, default) in TLS_LACKING {
        let texts = written.texts(name).join(",");
        if written.has(name) && !texts.is_empty() && texts != default {
            written.error(name, WHY);
        }
    }
    if client.more.system_authorities && client.ca.is_some() {
        written.error("include_system_ca_certs_pool", WHY);
    }
    Some(client)
}

/// Names of encodings.
pub(crate) type Encodings = &'static [(&'static str, Encoding)];

/// What messages hold, where that is written under a key. One that is not among the choices is
/// told.
pub(crate) fn encoding(section: &Section<'_>, name: &str, choices: Encodings) -> Option<Encoding> {
    let text = section.text_unless_empty(name)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        let why = format!("'{text}' is not supported: {names} are, and no extension is");
        section.error(name, &why);
    }
    found.map(|(_, encoding)| *encoding)
}
