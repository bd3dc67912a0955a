//! `service::telemetry`: the collector's own logs and metrics.

use telemetry::settings::{Compression, Encoding, Headers, OtlpGrpc, OtlpHttp, Pem, Tls};

use crate::config::components::shared::{address, headers};
use crate::config::options::{Kind, Opt, Section, Table, opt};
use crate::config::source::{Node, Value};

/// What the collector tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// `logs`
    pub logs: Logs,
    /// `metrics`
    pub metrics: Metrics,
    /// Attributes of its resource; without a value: one that is taken away.
    pub resource: Vec<(String, Option<String>)>,
}

/// The own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// The least severity.
    pub level: LogLevel,
    /// `encoding: json`; else text.
    pub json: bool,
    /// Files, `stdout` or `stderr`.
    pub output_paths: Vec<String>,
    /// Fields of each line.
    pub initial_fields: Vec<(String, String)>,
}

/// `level` of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `warn`
    Warn,
    /// `error`
    Error,
    /// `dpanic`, `panic`, `fatal`: nothing is so grave here.
    Never,
}

/// The own metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// How many there are.
    pub level: MetricsLevel,
    /// Who reads them.
    pub readers: Vec<Reader>,
}

/// `level` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricsLevel {
    /// `none`: there are none.
    None,
    /// `basic`
    Basic,
    /// `normal`
    Normal,
    /// `detailed`
    Detailed,
}

/// A reader of the metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum Reader {
    /// A page in Prometheus' format.
    Prometheus {
        /// Address to listen on.
        host: String,
        /// Port to listen on.
        port: u16,
        /// What stands behind names.
        naming: Naming,
    },
    /// OTLP, every so often.
    Otlp(Box<OtlpReader>),
}

/// What a page in Prometheus' format appends to the names of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Units: `_bytes`, `_seconds`.
    pub units: bool,
    /// `_total` of counters.
    pub type_suffix: bool,
}

/// A reader that is sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpReader {
    /// Time between exports.
    pub interval_ms: u64,
    /// The server.
    pub to: Server,
}

/// A server of OTLP.
#[derive(Clone, Debug, PartialEq)]
pub enum Server {
    /// `http/protobuf`, `http/json`
    Http(OtlpHttp),
    /// `grpc`
    Grpc(OtlpGrpc),
}

#[rustfmt::skip]
const LOG_LEVELS: &[&str] = &["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];
#[rustfmt::skip]
const METRICS_LEVELS: &[&str] = &["none", "basic", "normal", "detailed"];
#[rustfmt::skip]
const PROTOCOLS: &[&str] = &["http/protobuf", "http/json", "grpc"];
const ZAP_REASON: &str = "lines of the log have neither callers nor stacks";
const OWN_TRACES: &str = "the collector records no spans of its own work";
const OWN_LOGS: &str = "the own log goes to files and streams";

/// Options of `telemetry`.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[&[
    opt("logs", Kind::Section(&[LOGS]), "", "the own log"),
    opt("metrics", Kind::Section(&[METRICS]), "", "the own metrics"),
    opt("traces", Kind::Any, "", "own spans").no_effect(OWN_TRACES),
    opt("resource", Kind::Any, "", "attributes of the own resource: texts, or null to take one away"),
]];
#[rustfmt::skip]
const LOGS: &[Opt] = &[
    opt("level", Kind::WordAnyCase(LOG_LEVELS), "info", "the least severity"),
    opt("encoding", Kind::Word(&["console", "json"]), "console", "what lines look like"),
    opt("output_paths", Kind::Texts, "stderr", "files, `stdout` or `stderr`"),
    opt("error_output_paths", Kind::Texts, "stderr", "where faults of the log are told").no_effect("they are told on standard error"),
    opt("initial_fields", Kind::Pairs, "", "fields of each line"),
    opt("development", Kind::Flag, "false", "more words").no_effect(ZAP_REASON),
    opt("disable_caller", Kind::Flag, "false", "no callers").no_effect(ZAP_REASON),
    opt("disable_stacktrace", Kind::Flag, "false", "no stacks").no_effect(ZAP_REASON),
    opt("disable_zap_resource", Kind::Flag, "false", "no resource").no_effect(ZAP_REASON),
    opt("sampling", Kind::Any, "", "which lines are told").no_effect("lines that repeat are counted and told once a second"),
    opt("processors", Kind::Any, "", "log records over OTLP").no_effect(OWN_LOGS),
];
#[rustfmt::skip]
const METRICS: &[Opt] = &[
    opt("level", Kind::WordAnyCase(METRICS_LEVELS), "normal", "how many there are"),
    opt("readers", Kind::Sections(&[READER]), "", "who reads them; Prometheus' page on localhost:8888 where it is not written"),
    opt("address", Kind::Text, "", "address of Prometheus' page, as it was once").deprecated("write 'readers' with 'pull'; it is taken for that"),
    opt("views", Kind::Any, "", "metrics by other names").no_effect("there are no views"),
];
#[rustfmt::skip]
const READER: &[Opt] = &[
    opt("pull", Kind::Section(&[&[opt("exporter", Kind::Section(&[&[
        opt("prometheus", Kind::Section(&[PROMETHEUS]), "", "a page in Prometheus' format"),
    ]]), "", "what is served")]]), "", "a reader that asks"),
    opt("periodic", Kind::Section(&[PERIODIC]), "", "a reader that is sent to"),
];
#[rustfmt::skip]
const PROMETHEUS: &[Opt] = &[
    opt("host", Kind::Text, "localhost", "address to listen on"),
    opt("port", Kind::Int(0, 65_535), "8888", "port to listen on"),
    opt("without_scope_info", Kind::Flag, "true", "no labels of the scope").no_effect("metrics have no labels of a scope"),
    opt("without_units", Kind::Flag, "true", "no units in names, such as `_bytes`"),
    opt("without_type_suffix", Kind::Flag, "true", "no `_total` behind names of counters"),
    opt("with_resource_constant_labels", Kind::Any, "", "the resource as labels").no_effect("the resource is in `target_info`"),
];
#[rustfmt::skip]
const PERIODIC: &[Opt] = &[
    opt("interval", Kind::Int(1, i64::MAX), "60000", "milliseconds between exports"),
    opt("timeout", Kind::Int(1, i64::MAX), "30000", "milliseconds of one export"),
    opt("exporter", Kind::Section(&[&[
        opt("otlp", Kind::Section(&[OTLP]), "", "OTLP"),
        opt("console", Kind::Any, "", "standard output").refused("metrics go to Prometheus or OTLP"),
    ]]), "", "where they go"),
];
#[rustfmt::skip]
const OTLP: &[Opt] = &[
    opt("protocol", Kind::Word(PROTOCOLS), "http/protobuf", "how it is spoken"),
    opt("endpoint", Kind::Text, "", "URL of the server; over HTTP, `/v1/metrics` where it has no path"),
    opt("headers", Kind::Pairs, "", "fields of each request"),
    opt("timeout", Kind::Int(0, i64::MAX), "10000", "milliseconds of a request").no_effect("the reader's 'timeout' counts"),
    opt("insecure", Kind::Flag, "false", "no TLS, where the endpoint has no scheme"),
    opt("compression", Kind::Word(&["", "none", "gzip"]), "", "of bodies"),
    opt("certificate", Kind::Text, "", "file of authorities; the system's where it is not written"),
    opt("client_certificate", Kind::Text, "", "file of the own certificate"),
    opt("client_key", Kind::Text, "", "file of the own key"),
    opt("temporality_preference", Kind::Word(&["cumulative", "delta", "lowmemory"]), "cumulative", "what values are about").no_effect("values are cumulative"),
    opt("default_histogram_aggregation", Kind::Text, "explicit_bucket_histogram", "buckets").no_effect("buckets are explicit"),
];

/// From its section. Errors are noted.
pub(super) fn telemetry(section: &Section<'_>) -> Telemetry {
    Telemetry {
        logs: logs(&section.section("logs")),
        metrics: metrics(&section.section("metrics")),
        resource: resource(section),
    }
}

fn logs(section: &Section<'_>) -> Logs {
    Logs {
        level: section.choice(
            "level",
            &[
                ("info", LogLevel::Info),
                ("debug", LogLevel::Debug),
                ("warn", LogLevel::Warn),
                ("error", LogLevel::Error),
                ("dpanic", LogLevel::Never),
                ("panic", LogLevel::Never),
                ("fatal", LogLevel::Never),
            ],
        ),
        json: section.text("encoding") == "json",
        output_paths: section.texts("output_paths"),
        initial_fields: section.pairs("initial_fields"),
    }
}

fn metrics(section: &Section<'_>) -> Metrics {
    let level = section.choice(
        "level",
        &[
            ("normal", MetricsLevel::Normal),
            ("none", MetricsLevel::None),
            ("basic", MetricsLevel::Basic),
            ("detailed", MetricsLevel::Detailed),
        ],
    );
    let mut readers: Vec<Reader> = section
        .sections("readers")
        .iter()
        .filter_map(reader)
        .collect();
    let is_written = section.written("readers").is_some();
    if let Some(address) = section.text_unless_empty("address") {
        match address::host_port(&address) {
            Ok((host, port)) => readers.push(Reader::Prometheus {
                host,
                port,
                naming: Naming::default(),
            }),
            Err(reason) => section.error("address", &format!("'{address}' {reason}")),
        }
    } else if !is_written {
        readers.push(Reader::Prometheus {
            host: "localhost".to_owned(),
            port: 8888,
            naming: Naming::default(),
        });
    }
    if level == MetricsLevel::None {
        readers.clear();
    } else if section.sections("readers").is_empty() && readers.is_empty() {
        section.error("readers", "there are none: 'level: none' turns metrics off");
    }
    Metrics { level, readers }
}

fn reader(section: &Section<'_>) -> Option<Reader> {
    let pull = section.section("pull").section("exporter");
    if pull.has("prometheus") || section.has("pull") {
        let prometheus = pull.section("prometheus");
        return Some(Reader::Prometheus {
            host: prometheus.text("host"),
            port: prometheus.int("port"),
            naming: Naming {
                units: !prometheus.flag("without_units"),
                type_suffix: !prometheus.flag("without_type_suffix"),
            },
        });
    }
    let periodic = section.section("periodic");
    let otlp = periodic.section("exporter").section("otlp");
    let Some(endpoint) = otlp.text_unless_empty("endpoint") else {
        section.fault(
            "must be 'pull' with 'prometheus', or 'periodic' with 'otlp' and its 'endpoint'",
        );
        return None;
    };
    let pem = |name| otlp.text_unless_empty(name).map(Pem::Path);
    let tls = Tls {
        ca: pem("certificate"),
        certificate: pem("client_certificate"),
        key: pem("client_key"),
        ..Tls::default()
    };
    if tls.certificate.is_some() != tls.key.is_some() {
        let message = "'client_key' and 'client_certificate' come together";
        otlp.error("client_certificate", message);
    }
    let protocol = otlp.text("protocol");
    let is_grpc = protocol == "grpc";
    let endpoint = whole_url(&endpoint, is_grpc, otlp.flag("insecure"));
    let headers = Headers(headers::headers(&otlp, "headers"));
    let timeout_ms = u32::try_from(periodic.int::<u64>("timeout")).unwrap_or(u32::MAX);
    let compression = if otlp.text("compression") == "gzip" {
        Compression::Gzip
    } else {
        Compression::None
    };
    let to = if is_grpc {
        Server::Grpc(OtlpGrpc {
            endpoint,
            headers,
            timeout_ms,
            requests_max: 0,
            compression,
            user_agent: None,
            tls,
        })
    } else {
        Server::Http(OtlpHttp {
            endpoint,
            encoding: if protocol == "http/json" {
                Encoding::Json
            } else {
                Encoding::Protobuf
            },
            headers,
            timeout_ms,
            requests_max: 0,
            compression,
            tls,
        })
    };
    Some(Reader::Otlp(Box::new(OtlpReader {
        interval_ms: periodic.int("interval"),
        to,
    })))
}

/// A URL with a scheme and, over HTTP, a path.
fn whole_url(endpoint: &str, is_grpc: bool, is_insecure: bool) -> String {
    let mut url = match endpoint.contains("://") {
        true => endpoint.to_owned(),
        false if is_insecure => format!("http://{endpoint}"),
        false => format!("https://{endpoint}"),
    };
    let path = url.splitn(4, '/').nth(3);
    if !is_grpc && path.is_none() {
        url.push_str("/v1/metrics");
    }
    url
}

/// A scalar as text.
fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(node.shown()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// Attributes by name, or a list of `name` and `value` under `attributes`.
fn resource(section: &Section<'_>) -> Vec<(String, Option<String>)> {
    let Some(node) = section.written("resource") else {
        return Vec::new();
    };
    let refuse = |node: &Node, message: &str| {
        let message = format!("{}::resource: {message}", section.path);
        section.notes.error(node.at, message);
    };
    let mut attributes = Vec::new();
    for (key, value) in node.entries() {
        match (key.text.as_str(), &value.value) {
            ("schema_url", _) => {}
            ("attributes", Value::List(items)) => {
                for item in items {
                    let name = item.get("name").and_then(Node::text);
                    let value = item.get("value").and_then(scalar);
                    match (name, value) {
                        (Some(name), Some(value)) => {
                            attributes.push((name.to_owned(), Some(value)));
                        }
                        _ => refuse(item, "an attribute has a 'name' and a 'value'"),
                    }
                }
            }
            (_, Value::Null) if value.verbatim.is_none() => {
                attributes.push((key.text.clone(), None));
            }
            _ => match value.text() {
                Some(text) => attributes.push((key.text.clone(), Some(text.to_owned()))),
                None => refuse(value, &format!("'{}' must be text or null", key.text)),
            },
        }
    }
    if !matches!(node.value, Value::Map(_)) {
        refuse(node, "must be a map of texts");
    }
    attributes
}
