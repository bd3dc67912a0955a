//! Exporters: the destinations of records.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Signal;
use super::check::{check_url, header};
use super::read::Options;
use super::tls::Tls;
use syntax::yaml::At;

/// The destination of a pipeline's records.
#[derive(Clone, Debug, PartialEq)]
pub enum Exporter {
    /// `otlp_http`: OTLP over HTTP/1.1.
    OtlpHttp(Box<OtlpHttp>),
    /// `otlp_grpc`: OTLP over gRPC.
    OtlpGrpc(Box<OtlpGrpc>),
    /// `otlp_file`: OTLP as lines of JSON.
    OtlpFile(OtlpFile),
    /// `ostream`: human-readable text.
    Ostream(Target),
    /// `memory`: a ring of the newest records.
    Memory {
        /// The number of records it holds (`buffer_size`).
        records_max: u32,
    },
    /// `zipkin`: Zipkin's JSON, version 2.
    Zipkin(Zipkin),
    /// `collector`: a collector of the same process.
    Collector(InProcess),
}

/// `collector`, or an endpoint `collector://<name>`: a section `collector` of the configuration,
/// reached without a socket.
#[derive(Clone, Debug, PartialEq)]
pub struct InProcess {
    /// The name of the section.
    pub name: String,
    /// The position of the name in the settings file; none if it is from elsewhere.
    pub at: Option<At>,
}

/// `otlp_http`.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttp {
    /// URL, `http` or `https`.
    pub endpoint: String,
    /// Encoding of the body (`content_type`; JSON by default).
    pub encoding: Encoding,
    /// Header fields of every request (`http_headers`).
    pub headers: Headers,
    /// Timeout of one request, including connecting.
    pub timeout_ms: u32,
    /// The most concurrent requests (`max_concurrent_requests`).
    pub requests_max: u32,
    /// Compression of the body.
    pub compression: Compression,
    /// TLS options for an `https` endpoint.
    pub tls: Tls,
}

/// `otlp_grpc`.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpc {
    /// URL; only its scheme, host and port are used.
    pub endpoint: String,
    /// Metadata of every request; only
    /// [`Settings::from_environment`](super::Settings::from_environment) sets any.
    pub headers: Headers,
    /// Timeout of one request, including connecting.
    pub timeout_ms: u32,
    /// The most concurrent requests (`max_concurrent_requests`; 64 if that is 0).
    pub requests_max: u32,
    /// Compression of messages.
    pub compression: Compression,
    /// `user_agent`, put before the library's own name.
    pub user_agent: Option<String>,
    /// TLS options for an `https` endpoint.
    pub tls: Tls,
}

/// `otlp_file`. Records are written as they arrive: `flush_interval` and `flush_count` are checked
/// but not needed.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpFile {
    /// Path, with `%Y %m %d %H %M %S %F %T %R %j %y %I %p %w` of the local time and `%N` (`%n`) for
    /// the number of the file among the rotated ones, from 0 (1).
    pub file_pattern: String,
    /// A link to the newest file, with the same fields.
    pub alias_pattern: Option<String>,
    /// A file that reaches this size is followed by the next one (`file_size`).
    pub file_bytes_max: u64,
    /// The number of files that are kept (`rotate_size`).
    pub files_max: u32,
}

/// The destination of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, emptied at the start.
    File(String),
}

/// `zipkin`.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipkin {
    /// URL, `http` or `https`.
    pub endpoint: String,
    /// `serviceName` of spans whose resource has no `service.name`.
    pub service_name: String,
    /// Address of the local endpoint.
    pub ipv4: Option<Ipv4Addr>,
    /// Address of the local endpoint.
    pub ipv6: Option<Ipv6Addr>,
}

/// Names and values of header fields. Debug output omits the values, which may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Headers(pub Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// The encoding of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protobuf (`binary` or `protobuf`).
    Protobuf,
    /// JSON.
    Json,
}

/// The compression of sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// gzip.
    Gzip,
    /// zstd (RFC 8878).
    Zstd,
    /// The zlib format (RFC 1950) under the name `deflate` (RFC 9110 section 8.4.1.2).
    Deflate,
    /// The zlib format under the name `zlib`, which is the Collector's own.
    Zlib,
    /// Snappy's block format.
    Snappy,
    /// Snappy's framing format.
    SnappyFramed,
    /// The frame format of LZ4.
    Lz4,
}

/// The default number of concurrent requests.
pub(super) const REQUESTS_DEFAULT: u32 = 64;
/// The default timeout of one request.
pub(super) const TIMEOUT_DEFAULT_MS: u32 = 10_000;
/// The default size of a memory exporter.
const MEMORY_RECORDS_DEFAULT: u32 = 100;

/// Reads the definition of an exporter that a signal uses.
pub(super) fn exporter(options: &Options<'_>, signal: Signal) -> Option<Exporter> {
    let (kind, at) = kind(options)?;
    // Accepted for all types and ignored: one thread serves every exporter.
    options.text("thread_name");
    options.int("cpu_id", -1..=4095);
    let exporter = match kind.to_ascii_lowercase().as_str() {
        "otlp_http" => Exporter::OtlpHttp(Box::new(otlp_http(options, signal))),
        "otlp_grpc" => Exporter::OtlpGrpc(Box::new(otlp_grpc(options))),
        "otlp_file" => Exporter::OtlpFile(otlp_file(options)),
        "ostream" => Exporter::Ostream(ostream(options)),
        "memory" if signal != Signal::Logs => Exporter::Memory {
            records_max: options.number("buffer_size", 16..=65_536, MEMORY_RECORDS_DEFAULT),
        },
        "memory" => return wrong(options, at, "memory takes traces and metrics only"),
        "zipkin" if signal == Signal::Traces => Exporter::Zipkin(zipkin(options)?),
        "zipkin" => return wrong(options, at, "zipkin takes traces only"),
        "collector" => Exporter::Collector(in_process(options)?),
        "elasticsearch" => {
            return wrong(
                options,
                at,
                "elasticsearch is not supported yet: use otlp_http to a collector",
            );
        }
        _ => {
            let message = format!(
                "unknown exporter type '{kind}': one of otlp_http, otlp_grpc, otlp_file, ostream, memory, zipkin, collector"
            );
            return wrong(options, at, &message);
        }
    };
    options.end();
    Some(exporter)
}

/// The mandatory `type`.
pub(super) fn kind<'a>(options: &Options<'a>) -> Option<(&'a str, At)> {
    let kind = options.text_at("type");
    if kind.is_none() && options.node.is_map() && options.node("type").is_none() {
        options.error(options.node.at, format!("{}: no 'type'", options.what));
    }
    kind
}

fn wrong<T>(options: &Options<'_>, at: At, message: &str) -> Option<T> {
    options.error(at, format!("{}: {message}", options.what));
    None
}

fn otlp_http(options: &Options<'_>, signal: Signal) -> OtlpHttp {
    let encodings = [
        ("json", Encoding::Json),
        ("binary", Encoding::Protobuf),
        ("protobuf", Encoding::Protobuf),
    ];
    let mappings = [
        ("hexid", true),
        ("utf8", true),
        ("hex", false),
        ("base64", false),
    ];
    if options.choice("json_bytes_mapping", &mappings) == Some(false)
        && let Some((_, at)) = options.text_at("json_bytes_mapping")
    {
        options.warn(
            at,
            "json_bytes_mapping is ignored: identifiers are hexadecimal and bytes base64, as OTLP says",
        );
    }
    options.flag("use_json_name");
    options.flag("debug");
    options.int("max_requests_per_connection", 1..=1024);
    options.int("background_thread_wait_for", 0..=3_600_000);
    let default = format!("http://localhost:4318/v1/{}", signal.name());
    OtlpHttp {
        endpoint: url(options, "endpoint", &default, false),
        encoding: options
            .choice("content_type", &encodings)
            .unwrap_or(Encoding::Json),
        headers: headers(options),
        timeout_ms: options.number("timeout", 1..=60, TIMEOUT_DEFAULT_MS / 1000) * 1000,
        requests_max: options.number("max_concurrent_requests", 1..=1024, REQUESTS_DEFAULT),
        compression: compression(options),
        tls: Tls::http(options),
    }
}

fn otlp_grpc(options: &Options<'_>) -> OtlpGrpc {
    options.int("max_threads", 0..=1024);
    let tls = options.flag("use_ssl_credentials") == Some(true);
    let requests = options.number("max_concurrent_requests", 0..=1024, 0);
    OtlpGrpc {
        endpoint: url(options, "endpoint", "http://localhost:4317", tls),
        headers: Headers::default(),
        timeout_ms: options.number("timeout", 1..=60, TIMEOUT_DEFAULT_MS / 1000) * 1000,
        requests_max: match requests {
            0 => REQUESTS_DEFAULT,
            some => some,
        },
        compression: compression(options),
        user_agent: options.text("user_agent"),
        tls: Tls::grpc(options),
    }
}

fn otlp_file(options: &Options<'_>) -> OtlpFile {
    options.int("flush_interval", 100_000..=60_000_000);
    options.int("flush_count", 16..=8192);
    let size = options.int("file_size", 65_536..=2_147_483_648);
    OtlpFile {
        file_pattern: options
            .text("file_pattern")
            .unwrap_or_else(|| "otel-logfile-%F-%N.txt".to_owned()),
        alias_pattern: options.text("alias_pattern"),
        file_bytes_max: size.map_or(20_971_520, i64::unsigned_abs),
        files_max: options.number("rotate_size", 1..=256, 3),
    }
}

fn ostream(options: &Options<'_>) -> Target {
    match options.text("filename") {
        None => Target::Stdout,
        Some(name) if name == "stdout" => Target::Stdout,
        Some(name) if name == "stderr" => Target::Stderr,
        Some(path) => Target::File(path),
    }
}

fn zipkin(options: &Options<'_>) -> Option<Zipkin> {
    let json = options.choice("format", &[("json", true), ("protobuf", false)]);
    if json == Some(false) {
        let (_, at) = options.text_at("format")?;
        return wrong(
            options,
            at,
            "the format protobuf is not supported: use json",
        );
    }
    let default = "http://localhost:9411/api/v2/spans";
    Some(Zipkin {
        endpoint: url(options, "endpoint", default, false),
        service_name: options
            .text("service_name")
            .unwrap_or_else(|| "default-service".to_owned()),
        ipv4: address(options, "ipv4"),
        ipv6: address(options, "ipv6"),
    })
}

fn in_process(options: &Options<'_>) -> Option<InProcess> {
    let Some((name, at)) = options.text_at("name") else {
        let message = format!("{}: no 'name' of a collector", options.what);
        options.error(options.node.at, message);
        return None;
    };
    Some(InProcess {
        name: name.to_owned(),
        at: Some(at),
    })
}

fn address<T: std::str::FromStr>(options: &Options<'_>, key: &str) -> Option<T> {
    let (text, at) = options.text_at(key)?;
    let address = text.parse().ok();
    if address.is_none() {
        options.error(at, format!("'{key}' is '{text}', which is no such address"));
    }
    address
}

fn compression(options: &Options<'_>) -> Compression {
    let words = [("none", Compression::None), ("gzip", Compression::Gzip)];
    options
        .choice("compression", &words)
        .unwrap_or(Compression::None)
}

fn headers(options: &Options<'_>) -> Headers {
    let headers = options.pairs("http_headers");
    if let Some(node) = options.node("http_headers") {
        for (name, value) in &headers {
            if let Err(why) = header(name, value) {
                options.error(node.at, format!("http_headers: {why}"));
            }
        }
    }
    Headers(headers)
}

/// Reads an endpoint. Without a scheme it is a host and a port; `tls` makes the scheme `https` in
/// any case.
fn url(options: &Options<'_>, key: &str, default: &str, tls: bool) -> String {
    let written = options.text_at(key);
    let text = written.map_or(default, |(text, _)| text);
    match check_url(text, tls) {
        Ok(url) => url,
        Err(why) => {
            if let Some((_, at)) = written {
                options.error(at, format!("'{key}' is '{text}': {why}"));
            }
            default.to_owned()
        }
    }
}
