//! What is fuzzed: one function for each parser of foreign bytes, which asserts what must hold for
//! any input.
//!
//! The ordinary tests run each over its kept corpus (`corpus/<name>/`) and over mutations of it;
//! the folder `fuzz` at the root of the repository runs the same functions under libFuzzer. A
//! target is one row of [`for_each_target`], one corpus folder and one wrapper there. An input that
//! ever failed is kept in the corpus.
#![forbid(unsafe_code)]

mod body;
mod collector_edit;
mod collector_statements;
mod collector_yaml;
mod config;
mod config_diff;
mod cookies;
mod dashboard_request;
mod expression;
mod h2;
mod h3;
mod head;
mod htpasswd;
mod journal;
mod k8s;
mod log_format;
pub mod mutate;
mod normalize;
mod otel_cfg;
mod otel_yml;
mod pattern;
mod peers;
mod propagation;
mod proxy;
mod quic;
mod relay;
mod resolvers;
mod sniff;
mod store;
mod syslog;
mod tail;
mod tls;
mod traces;
mod translate;
mod view;

pub use self::peers::peer_session;
pub use self::resolvers::{dns_answer, dns_files};
pub use self::store::store_answer;
pub use self::syslog::{syslog_message, syslog_stream};
pub use self::tail::{ottl, tail_scan, tail_shard};
pub use self::traces::{policies_yaml, traces_store};
pub use body::h1_body;
pub use collector_edit::collector_edit;
pub use collector_statements::collector_statements;
pub use collector_yaml::{collector_yaml, read as collector_yaml_config};
pub use config::config_text;
pub use config_diff::config_diff;
pub use cookies::set_cookie;
pub use dashboard_request::dashboard_request;
pub use expression::expression;
pub use h2::{h2_frames, hpack};
pub use h3::{h3_records, qpack};
pub use head::{h1_request, h1_response};
pub use htpasswd::htpasswd;
pub use journal::journal_file;
pub use k8s::{k8s_events, k8s_pods};
pub use log_format::log_format;
pub use normalize::normalize_uri;
pub use otel_cfg::{otel_cfg, read as otel_cfg_program};
pub use otel_yml::otel_yml;
pub use pattern::{pattern_file, regex};
pub use propagation::{b3, baggage, traceparent, tracestate};
pub use proxy::proxy_protocol;
pub use quic::{quic_packets, quic_parameters};
pub use relay::relayed;
pub use sniff::first_bytes;
pub use tls::{client_hello, crt_list, encrypted_key, ocsp_response, tls_lists};
pub use translate::{
    jaeger_proto, jaeger_thrift, otlp_json, prometheus_text, zipkin_json, zipkin_proto,
};
pub use view::{grpc_status, otlp_view};

/// One thing to fuzz.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its corpus folder.
    pub name: &'static str,
    /// Runs it on an input; panics where something does not hold.
    pub run: fn(&[u8]),
    /// Words of its language, for mutations.
    pub words: &'static [&'static [u8]],
}

/// Gives every target to the macro `$each`, as `name WORDS,`: the function of that name, and the
/// words of its language.
#[macro_export]
macro_rules! for_each_target {
    ($each:ident) => {
        $each! {
            h1_request HTTP_WORDS,
            h1_response HTTP_WORDS,
            h1_body CHUNK_WORDS,
            h2_frames FRAME_WORDS,
            hpack BLOCK_WORDS,
            h3_records RECORD_WORDS,
            qpack SECTION_WORDS,
            quic_packets PACKET_WORDS,
            quic_parameters RELAY_WORDS,
            log_format FORMAT_WORDS,
            normalize_uri URI_WORDS,
            proxy_protocol PROXY_WORDS,
            relayed RELAY_WORDS,
            first_bytes FIRST_WORDS,
            config_text CONFIG_WORDS,
            config_diff DIFF_WORDS,
            crt_list CRT_LIST_WORDS,
            tls_lists TLS_WORDS,
            client_hello FIRST_WORDS,
            ocsp_response OCSP_WORDS,
            encrypted_key OCSP_WORDS,
            pattern_file PATTERN_WORDS,
            regex REGEX_WORDS,
            expression EXPRESSION_WORDS,
            traceparent CONTEXT_WORDS,
            tracestate CONTEXT_WORDS,
            baggage CONTEXT_WORDS,
            b3 CONTEXT_WORDS,
            htpasswd HTPASSWD_WORDS,
            set_cookie COOKIE_WORDS,
            otel_yml YML_WORDS,
            otel_cfg OTEL_WORDS,
            collector_yaml COLLECTOR_WORDS,
            collector_edit REQUEST_WORDS,
            collector_statements STATEMENT_WORDS,
            tail_scan OTLP_WORDS,
            tail_shard OTLP_WORDS,
            ottl OTTL_WORDS,
            traces_store STORE_WORDS,
            policies_yaml COLLECTOR_WORDS,
            otlp_json OTLP_JSON_WORDS,
            otlp_view REQUEST_WORDS,
            grpc_status REQUEST_WORDS,
            zipkin_json ZIPKIN_WORDS,
            prometheus_text EXPOSITION_WORDS,
            zipkin_proto REQUEST_WORDS,
            jaeger_proto REQUEST_WORDS,
            jaeger_thrift THRIFT_WORDS,
            journal_file JOURNAL_WORDS,
            k8s_events K8S_WORDS,
            k8s_pods K8S_WORDS,
            dashboard_request DASHBOARD_WORDS,
            dns_answer DNS_WORDS,
            syslog_message SYSLOG_WORDS,
            syslog_stream SYSLOG_WORDS,
            dns_files DNS_FILE_WORDS,
            peer_session PEER_WORDS,
            store_answer SHARE_WORDS,
        }
    };
}

macro_rules! table {
    ($($name:ident $words:ident,)*) => {
        /// Everything that is fuzzed.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name,
            words: $words,
        },)*];
    };
}
for_each_target!(table);

#[rustfmt::skip]
const EXPOSITION_WORDS: &[&[u8]] = &[
    b"# HELP a ", b"# TYPE a counter\n", b"# UNIT a seconds\n", b"# EOF\n", b"a_total", b"a_bucket", b"{le=\"+Inf\"}", b"{\"a.b\"}", b"=\"\\\"", b"} ", b" 1", b" NaN", b" -Inf", b" 1.5e3", b" # {trace_id=\"", b"\n", b"\\", b"\"", b",", b"{", b"}", b"#", b" ", b"\xff",
];

#[rustfmt::skip]
const CRT_LIST_WORDS: &[&[u8]] = &[
    b"a.pem", b" ", b"\t", b"\n", b"\r\n", b"#", b"[", b"]", b"[alpn h2]", b"[ocsp-update on key k.pem]", b"ssl-min-ver TLSv1.2", b"*.example.com", b"!a.example.com", b"*", b"!*", b"!", b"\0", b"\xff",
];

#[rustfmt::skip]
const RELAY_WORDS: &[&[u8]] = &[
    b"\x00", b"\x01", b"\x02", b"\x04", b"\x06", b"\x00\x00\xff\xff", b"\x01\xbb", b"\xff",
];

// Steps of one kind, frames, and beginnings of packets.
#[rustfmt::skip]
const PACKET_WORDS: &[&[u8]] = &[
    b"\x00\x0a", b"\x01\x00", b"\x02\x03\x00\x20\x01", b"\x03\x01\x80", b"\x04\x00", b"\x05\x03\x00\x10\xff", b"\x06\x10", b"\x07\x01\x0a", b"\xc3\x00\x00\x00\x01", b"\xff\x00\x00\x00\x1d", b"\x40",
    b"\x02\x00\x00\x00\x00", b"\x03\x40\xff\x00\x40\xff", b"\x06\x00\x40\x40", b"\x06\xbf\xff\xff\xff\x01", b"\x1c\x00\x00\x00", b"\x1c\x0a\x06\x00", b"\x01", b"\x18", b"\x1e", b"\xff\xff\xff\xff\xff\xff\xff\xff",
];

#[rustfmt::skip]
const TLS_WORDS: &[&[u8]] = &[
    b":", b",", b" ", b";", b"!", b"-", b"+", b"@", b"@STRENGTH", b"@SECLEVEL=", b"2", b"ALL", b"DEFAULT", b"HIGH", b"aNULL", b"ECDHE", b"kEECDH", b"aRSA", b"ECDSA", b"AESGCM", b"AES128", b"CHACHA20", b"SUITEB128",
    b"ECDHE-RSA-AES128-GCM-SHA256", b"AES128-SHA", b"TLS_AES_128_GCM_SHA256", b"X25519", b"P-256", b"secp521r1", b"?", b"*", b"/", b"RSA+SHA256", b"RSA-PSS+SHA384", b"ed25519", b"\xff",
];

#[rustfmt::skip]
const DNS_WORDS: &[&[u8]] = &[
    b"\0\0", b"\x81\x80", b"\x83\x80", b"\x81\x83", b"\x81\x85", b"\0\x01\0\x01\0\0\0\0", b"\0\x01\0\x02\0\0\0\x01", b"\x01a\x04test\0\0\x01\0\x01", b"\x01a\x04test\0\0\x1c\0\x01", b"\x01a\x04test\0\0\x21\0\x01",
    b"\xc0\x0c", b"\xc0", b"\xc0\x21", b"\x01b", b"\0", b"\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x01", b"\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", b"\0\x05\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x0e",
    b"\0\x21\0\x01\0\0\0\x3c\0\x0a\0\x01\0\x0a\x1f\x90\x01b\xc0\x0e", b"\0\0\x29\x02\0\0\0\0\0\0\0", b"\xff\xff", b"\x3f", b"\x40",
];

#[rustfmt::skip]
const SYSLOG_WORDS: &[&[u8]] = &[
    b"<34>", b"<191>", b"<1234>", b"<>", b"1 ", b"- ", b"-", b" ", b"\n", b"\r\n", b"Oct  1 22:14:15 ", b"Nov 27 13:01:02", b"2003-10-11T22:14:15.003Z ", b"2003-10-11T22:14:15-07:00", b"host ",
    b"tag[12]: ", b"tag: ", b"[", b"]", b"[x@1 a=\"1\"]", b"\\]", b"\"", b"5 <1>ab", b"64 ", b"65 ", b"0 ", b"9999999999 ", b"12345678901 ", b"\xff", b"\0",
];

#[rustfmt::skip]
const DNS_FILE_WORDS: &[&[u8]] = &[
    b"\n", b"\r\n", b" ", b"\t", b"#", b".", b"nameserver", b"nameserver ", b"options ", b"10.0.0.1", b"::1", b"fe80::1%2", b"%", b"localhost", b"A.example", b"a..b", b"_http._tcp.test", b"\xff", b"\0",
];

#[rustfmt::skip]
const SHARE_WORDS: &[&[u8]] = &[
    b"*", b"$", b":", b"+", b"-", b"%", b"~", b"|", b">", b"=", b",", b"(", b"#", b"_", b"\r\n", b"*3\r\n", b"$-1\r\n", b"*-1\r\n",
    b"$2\r\nok\r\n", b"$4\r\nlast\r\n", b"$4\r\nlost\r\n", b"$4\r\n1000\r\n", b":0\r\n", b":1\r\n", b":9223372036854775807\r\n",
    b"$7\r\n1 2 3,4\r\n", b"-ERR \r\n", b"-NOSCRIPT \r\n", b"-OOM \r\n", b"18446744073709551615", b"-9223372036854775808",
];
#[rustfmt::skip]
const PEER_WORDS: &[&[u8]] = &[
    b"HAProxyS 2.1\n", b"HAProxyS 2.0\n", b"a\n", b"b 1 1\n", b"b", b" ", b"\n", b"\0\0", b"\0\x01", b"\0\x02", b"\0\x03", b"\0\x04", b"\x01\0", b"\x0a\x80", b"\x0a\x81", b"\x0a\x82", b"\x0a\x83", b"\x0a\x84", b"\x0a\x85",
    b"\x0a\x86", b"\x0a\x82\x0a\x01\x01t\x06\x20\x04\0", b"\x0a\x80\x07\0\0\0\x01\x01k\x09", b"\x0a\x85\x0b\0\0\0\x01\0\0\x10\0\x01k\x09", b"\x0a\x84\x05\x01\0\0\0\x01", b"\x01t", b"\xf4\x94\x01", b"\xff\xff\xff\xff\x0f", b"\xff",
];

#[rustfmt::skip]
const DASHBOARD_WORDS: &[&[u8]] = &[
    b"&", b"=", b"+", b"%20", b"%", b"%ff", b"url=", b"header=", b"method=", b"\n", b"\r\n", b" ", b"{", b"}", b"\"backend\":\"b\",", b"\"server\":\"s\",", b"\"action\":", b"\"weight\"", b"\"drain\"", b"\"50%\"", b"\xff",
    b"GET ", b" HTTP/1.1\r\n", b"\r\n\r\n", b"/old", b"/api/", b"/to/b", b"//", b"?x=", b"host: a\r\n", b"cookie: C=a\r\n", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b"authorization: Basic YTpi\r\n",
];

#[rustfmt::skip]
const K8S_WORDS: &[&[u8]] = &[
    b"{", b"}", b"[", b"]", b",", b":", b"\"", b"\n", b"null", b"true", b"false", b"\\u0000", b"\xff", b"{},", b"\"type\":\"ADDED\",\"object\":", b"\"type\":\"MODIFIED\",\"object\":", b"\"type\":\"DELETED\",\"object\":",
    b"\"type\":\"BOOKMARK\",\"object\":", b"\"type\":\"ERROR\",\"object\":{\"code\":410}", b"\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},", b"\"items\":[", b"\"endpoints\":[", b"\"addresses\":[\"10.0.0.1\"]",
    b"\"addresses\":[\"fd00::1\"],", b"\"conditions\":{\"ready\":false},", b"\"hostname\":\"pod-0\",", b"\"uid\":\"u\",", b"\"namespace\":\"n\",", b"\"labels\":{\"a\":\"b\"},", b"\"annotations\":{\"a\":\"b\"},",
    b"\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"r-abcdefghij\",\"uid\":\"r\",\"controller\":true}],", b"\"spec\":{\"nodeName\":\"n\",", b"\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"}],",
    b"\"status\":{\"podIP\":\"10.0.0.1\",", b"\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"x://c\",\"restartCount\":1}],", b"\"startTime\":\"2026\",", b"\"continue\":\"two\",",
];

#[rustfmt::skip]
const JOURNAL_WORDS: &[&[u8]] = &[
    b"\x00", b"\x01", b"\x02", b"\x03", b"\xff", b"\x00\x04", b"\x01\x10", b"\x02\x17", b"\x00\x00", b"\x04\x00otlp", b"\x00\x04\x00otlp", b"\x02\x00tt", b"spgjrnl\x01", b"\x03\0\0\0\0\0\0\0",
];

#[rustfmt::skip]
const REQUEST_WORDS: &[&[u8]] = &[
    b"\x0a", b"\x12", b"\x1a", b"\x22", b"\x2a", b"\x32", b"\x3a", b"\x4a", b"\x52", b"\x5a", b"\x08", b"\x10", b"\x18", b"\x00", b"\x01", b"\x02", b"\x80\x00", b"\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x4a\x08\x0a\x01a\x12\x03\x0a\x01b", b"\x4a\x07\x0a\x01b\x12\x02\x18\x05", b"\x32\x07\x0a\x01c\x12\x02\x10\x01", b"\x0a\x10\x0a\x01z\x12\x0b\x21\0\0\0\0\0\0\xf0\x3f", b"\x12\x02\x2a\x00", b"\x12\x02\x32\x00",
    b"\x1a\x07ot=th:8", b"\x1a\x14ot=rv:818c2db46fdf9c", b"a=b,", b"\x0a\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03", b"sampling.priority", b"sampling.threshold", b"sampling.randomness",
];

#[rustfmt::skip]
const STATEMENT_WORDS: &[&[u8]] = &[
    b"set(", b"delete_key(", b"delete_matching_keys(", b"keep_keys(", b"limit(", b"truncate_all(", b"replace_pattern(", b"replace_all_patterns(", b"replace_match(", b"merge_maps(", b"append(",
    b"delete_index(", b"flatten(", b"stringify_all(", b" where ", b"span.attributes", b"spanevent.attributes", b"resource.attributes", b"scope.attributes", b"span.cache", b"span.name", b"span.status.code",
    b"span.trace_state", b"[\"a\"]", b"[\"b\"]", b"[0]", b"[span.name]", b"\"a\"", b"\"key\"", b"\"value\"", b"\"upsert\"", b"\"(.)(b*)\"", b"\"$1${2}\"", b"\"*\"", b"5", b"-1", b"1.5", b"true", b"nil", b"0x0102030405060708",
    b"log.body", b"log.attributes", b"log.severity_number", b"log.body.string", b"metric.name", b"metric.type", b"metric.metadata", b"datapoint.attributes", b"datapoint.value_int", b"datapoint.sum", b"datapoint.bucket_counts",
    b"datapoint.positive.bucket_counts", b"datapoint.flags", b"exemplar.filtered_attributes", b"exemplar.int_value", b"convert_sum_to_gauge()", b"convert_gauge_to_sum(\"delta\", true)", b"extract_count_metric(true)", b"extract_sum_metric(true)", b"extract_percentile_metric(50)",
    b"convert_summary_count_val_to_sum(\"delta\", true)", b"convert_summary_quantile_val_to_gauge()", b"copy_metric(", b"scale_metric(2)", b"aggregate_on_attributes(\"sum\")", b"aggregate_on_attributes(\"median\", [])",
    b"convert_exponential_histogram_to_histogram(\"uniform\", [0, 1, 8])", b"merge_histogram_buckets(1)", b"merge_histogram_buckets(2, \"limit_buckets\")", b"HasAttrKeyOnDatapoint(\"a\")", b"SEVERITY_NUMBER_WARN", b"METRIC_DATA_TYPE_SUM",
    b"{\"a\": ", b"}", b"[", b"]", b", ", b")", b" == ", b"Concat([", b"Split(", b"ParseJSON(", b"ParseKeyValue(", b"ExtractPatterns(", b"SHA256", b"Substring(", b"Sort(", b"Keys(", b"String(", b"\n",
    b"\x0a", b"\x12", b"\x1a", b"\x22", b"\x2a", b"\x4a", b"\x5a", b"\x4a\x08\x0a\x01a\x12\x03\x0a\x01b", b"\x4a\x07\x0a\x01b\x12\x02\x18\x05", b"\x5a\x0d\x12\x01e\x1a\x08\x0a\x01a\x12\x03\x0a\x01b", b"\xff",
];

#[rustfmt::skip]
const OTLP_JSON_WORDS: &[&[u8]] = &[
    b"{", b"}", b"[", b"]", b",", b":", b"\"", b"null", b"true", b"0", b"1e9", b"-1", b"1.5", b"99999999999999999999", b"\"\\u00e9\"", b"{},", b"\xff",
    b"\"resourceSpans\":[", b"\"resource_metrics\":[", b"\"resourceLogs\":[", b"\"scopeSpans\":[", b"\"scopeMetrics\":[", b"\"scopeLogs\":[", b"\"spans\":[",
    b"\"metrics\":[", b"\"logRecords\":[", b"\"traceId\":\"5af7183fb1d4cf5f\",", b"\"attributes\":[", b"\"key\":\"a\",", b"\"value\":{", b"\"arrayValue\":{\"values\":[",
    b"\"kvlistValue\":{\"values\":[", b"\"intValue\":\"5\"", b"\"doubleValue\":\"NaN\"", b"\"bytesValue\":\"AQI=\"", b"\"flags\":257", b"\"sum\":{\"dataPoints\":[",
    b"\"bucketCounts\":[", b"\"explicitBounds\":[", b"\"scale\":-1", b"\"asInt\":-5",
];

#[rustfmt::skip]
const ZIPKIN_WORDS: &[&[u8]] = &[
    b"{", b"}", b"[", b"]", b",", b":", b"\"", b"null", b"true", b"0", b"1e9", b"-1", b"99999999999999999999", b"\"\\u00e9\"", b"|", b"|{\"a\":1.5}|2", b"{},", b"\xff",
    b"\"traceId\":\"5af7183fb1d4cf5f\",", b"\"id\":\"352bff9a74ca9ad2\"", b"\"parentId\":\"1\",", b"\"kind\":\"CLIENT\",", b"\"timestamp\":1,", b"\"duration\":2,", b"\"localEndpoint\":{\"serviceName\":\"a\"},",
    b"\"ipv4\":\"1.2.3.4\"", b"\"ipv6\":\"::1\"", b"\"port\":80", b"\"annotations\":[{\"timestamp\":1,\"value\":\"sr\"}],", b"\"binaryAnnotations\":[{\"key\":\"lc\",\"value\":\"b\"}],", b"\"tags\":{\"error\":\"true\"}",
    b"\"otlp.link.0\":\"4bf92f3577b34da6a3ce929d0e0e4736|00f067aa0ba902b7||{}|0\"", b"\"service.name\":", b"\"otel.library.name\":", b"\"w3c.tracestate\":",
];

#[rustfmt::skip]
const THRIFT_WORDS: &[&[u8]] = &[
    b"\x00", b"\x01", b"\x02", b"\x0c\x00\x01", b"\x0f\x00\x02\x0c\x00\x00\x00\x01", b"\x0b\x00\x01\x00\x00\x00\x01a", b"\x0a\x00\x01\0\0\0\0\0\0\0\x01", b"\x08\x00\x02\x00\x00\x00\x01", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff",
    b"\x80\x01\x00\x04\x00\x00\x00\x09emitBatch\x00\x00\x00\x00", b"\x82\x81\x00\x09emitBatch", b"\x1c", b"\x19\x1c", b"\x18\x01a", b"\x15\x02", b"\x16\x02", b"\x27\0\0\0\0\0\0\xf0\x3f", b"\xfc\xff\xff\xff\xff\x0f", b"\x0d\x00\x09", b"\x1b\x01\x8c",
];

#[rustfmt::skip]
const COLLECTOR_WORDS: &[&[u8]] = &[
    b"\n", b"\n  ", b"\n    ", b"\n      ", b" ", b": ", b"- ", b"{ ", b" }", b"[", b"]", b", ", b"&a ", b"*a", b"<<: *a", b"!!str ", b"|\n", b"\"", b"'", b"~", b"null", b"---\n", b"\xff",
    b"${env:SET}", b"${SET}", b"${env:NONE:-5}", b"${HALF}", b"${file:b.yaml}", b"${yaml:[a]}", b"$$", b"${", b"}", b"\"${env:SET}\"", b"::", b"100_000", b"-1", b"0x10", b"1.5", b"5s", b"1m30s", b"true", b"99999999999999999999",
    b"receivers:", b"processors:", b"exporters:", b"connectors:", b"extensions:", b"service:", b"pipelines:", b"traces:", b"metrics:", b"logs/a:", b"telemetry:", b"otlp:", b"otlp_http:", b"protocols:", b"grpc:", b"http:",
    b"endpoint: a:1", b"tls: { insecure: true }", b"headers: { a: b }", b"sending_queue:", b"batch:", b"memory_limiter:", b"tail_sampling:", b"groupbytrace:", b"policies:", b"name: a", b"type: ", b"latency", b"threshold_ms: 5",
    b"probabilistic", b"status_code", b"status_codes: [ERROR]", b"string_attribute", b"values: [a.*]", b"enabled_regex_matching: true", b"and", b"and_sub_policy:", b"not", b"not_sub_policy:", b"drop", b"composite", b"forward", b"debug", b"nop",
];

#[rustfmt::skip]
const COOKIE_WORDS: &[&[u8]] = &[
    b"a=1", b"; ", b"=", b"\n", b"Path=/v1", b"Domain=.example", b"Max-Age=", b"-1", b"Expires=", b"Thu, 01-Jan-1970 00:00:00 GMT", b"Secure",
];
#[rustfmt::skip]
const HTPASSWD_WORDS: &[&[u8]] = &[b":", b"\n", b"#", b"$apr1$", b"$1$", b"$2y$10$", b"$5$rounds=", b"$6$", b"$y$j9T$", b"{SHA}", b"$"];

#[rustfmt::skip]
const YML_WORDS: &[&[u8]] = &[
    b"\n", b"\n  ", b"\n    ", b" ", b"\t", b": ", b"- ", b"? ", b"# ", b"{ ", b" }", b"[", b"]", b", ", b"&a ", b"*a", b"<<: *a", b"!!str ", b"|\n", b">-\n",
    b"\"", b"'", b"\\x41", b"~", b"null", b"---\n", b"...\n", b"%YAML 1.2\n", b"\0", b"\xff", b"\xc3\xa9", b"0x10", b"010", b"-1", b"99999999999999999999", b"0.5", b"true",
    b"exporters:", b"samplers:", b"processors:", b"readers:", b"providers:", b"signals:", b"traces:", b"metrics:", b"logs:", b"default:", b"scope_name: s", b"type: ",
    b"otlp_http", b"otlp_grpc", b"otlp_file", b"ostream", b"memory", b"zipkin", b"elasticsearch", b"batch", b"single", b"parent_based", b"composite", b"endpoint: http://h:1/",
    b"http_headers: [ a: b ]", b"resources:\n - a: b\n", b"max_queue_size: 64", b"max_export_batch_size: 64", b"export_interval: 100", b"min_severity: warn2", b"flush_timeout: 0",
];

#[rustfmt::skip]
const OTEL_WORDS: &[&[u8]] = &[
    b"\n", b" ", b"\"", b"'", b"\\", b"#", b"[f]\n", b"[other]\n", b"-", b"*", b"*req*", b"*res*", b"-m ", b" if ", b" unless ", b"{ path /a }", b" or ", b"!", b"${SET}", b"${SET[*]}", b"\xff",
    b"otel-instrumentation i\n", b"otel-group g\n", b"otel-scope s\n", b"config otel.yml", b"scopes s", b"groups g", b"acl a path /a", b"no ", b"log global", b"log 127.0.0.1:514 local0",
    b"option disabled", b"option hard-errors", b"option require-context", b"option noflush", b"rate-limit 50.0", b"sampling a always", b"sampling b status 500-599 404", b"sampling c duration 10ms",
    b"sampling d first-seen path max 10", b"sampling e rate 5 key src", b"sampling f probability 10%", b"sampling g termination-state cD,s*", b"sampling ignore-parent",
    b"span \"a\"", b" parent \"a\"", b" link \"a\"", b" root", b" kind client", b"attribute \"k\" path", b"attribute k str(a) ,b", b"event \"e\" k int(5)", b" time date ms", b"baggage k src", b"inject \"p\" use-vars use-headers",
    b"status \"ok\" str(a)", b"status error", b"status ignore", b"exception str(a) message str(b)", b"link b c", b"extract \"p\" use-headers", b"finish a *", b"otel-stop", b"set-var txn.a src", b"unset-var txn.a",
    b"set-var-ctx txn.b a traceparent", b"set-var-ctx txn.b a baggage(k)", b"instrument cnt_int n desc d unit u value int(1)", b"instrument hist_int h aggr exp_histogram value int(1) bounds \"1 2 3\"",
    b"instrument update n attr k src", b"log-record info id 5 event e span a attr k src str(x)", b"log-record fatal4 \"%[src]\"", b"idle-timeout 5s", b"otel-event on-stream-start", b"otel-event on-http-response",
    b"otel-event on-frontend-http-request", b"otel-event on-idle-timeout", b"otel-event on-stream-stop", b"%[path] %[src]", b"otel.bytes_in", b"otel.context(p)",
];

#[rustfmt::skip]
const EXPRESSION_WORDS: &[&[u8]] = &[
    b"\n", b" ", b",", b"(", b")", b"\"", b"'", b"\\", b"%[", b"]", b"%{", b"}", b"{ ", b" }", b"!", b" or ", b"-m ", b"-i ", b"-n ", b"-- ", b"%ci", b"%{+Q}o",
    b"str(a)", b"int(5)", b"bin(00ff)", b"req.body", b"req.payload(0,0)", b"req.hdr(host)", b"url", b"var(txn.a)", b"src", b"date", b"path",
    b",set-var(txn.a)", b",lower", b",hex", b",base64", b",b64dec", b",ub64dec", b",url_dec(1)", b",json(utf8ps)", b",field(-2,.,3)", b",word(2,/,0)",
    b",bytes(1,txn.a)", b",regsub(a*,\\0b,g)", b",concat(a,txn.a,b)", b",add_item(;,txn.a)", b",ipmask(24,64)", b",utime(%c%5Y%N)", b",us_ltime(%9N%%N)",
    b",http_date(1,ms)", b",be2dec(:,8)", b",be2hex(:,2,1)", b",has_ctl", b",param(a)", b",language(en;fr)", b",json_query($.a[1].b)", b",jwt_payload_query($.a,int)",
    b",jwt_verify(HS256,k)", b",digest(md5)", b",hmac(sha1,YQ==)", b",aes_cbc_enc(128,YQ==,AAECAwQFBgcICQoLDA0ODw==)", b",protobuf(1.2,sint64)", b",ungrpc(1)",
    b",fix_is_valid", b",fix_tag_value(35)", b",mqtt_is_valid", b",mqtt_field_value(1,17)", b",eth.data", b",ip.fp(7)", b",ip.data", b",tcp.options_list",
    b",rfc7239_field(for)", b",rfc7239_n2nn", b",when(!acl,TRUE)", b",capture-req(0)", b",xxh3", b",sub(9223372036854775807)", b",div(0)", b",neg", b",iif(a,b)", b",debug",
    b"GET /a?b=c HTTP/1.1\r\n", b"Host: a\r\n", b"Forwarded: for=\"[::1]:80\";by=_x\r\n", b"\r\n\r\n", b"{\"a\":[1,{\"b\":\"c\"}]}", b"\x08\x96\x01", b"8=FIX.4.2\x019=5\x01",
    b"\x10\x0d\0\x04MQTT\x05\x02\0\x3c\0", b"\x45\0\0\x3c", b"\x60\0\0\0", b"HTTP/1.1 200 OK\r\n",
];

#[rustfmt::skip]
const CONFIG_WORDS: &[&[u8]] = &[
    b"\n", b" ", b"\t", b"\r", b"\0", b"\\", b"\\\n", b"\"", b"'", b"#", b"$", b"${", b"}", b"${SET}", b"${EMPTY}", b"${NONE-d}", b"${SET[*]}",
    b"${.LINE}", b"${.SECTION}", b"\\x41", b"\\x", b"\xff", b"\xc3\xa9", b"global\n", b"defaults d\n", b"frontend f\n", b"backend b from d\n", b"no ",
    b"default ", b".if ", b".elif ", b".else\n", b".endif\n", b".notice \"a\"\n", b".diag", b".alert", b"defined(SET)", b"!", b"&&", b"||", b"(", b")",
    b"streq(a,b)", b"feature(EPOLL)", b"version_atleast(2.0)", b"setenv A b\n", b"unsetenv A\n", b"resetenv SET\n", b"presetenv A c\n", b"macro",
];

#[rustfmt::skip]
const DIFF_WORDS: &[&[u8]] = &[
    b"\n", b" ", b"\0", b"global\n", b"defaults\n", b"defaults d\n", b"frontend f\n", b"frontend f from d\n", b"backend b\n", b"listen l\n", b"userlist u\n", b"peers p\n",
    b"no ", b"default ", b"option httplog\n", b"option httpclose\n", b"no option httpclose\n", b"option tcpka\n", b"timeout client 5s\n", b"timeout handshake 0\n", b"log-format x\n",
    b"log global\n", b"no log\n", b"bind :80,:81 ssl crt a crt b\n", b"bind *:80 v6only\n", b"server a 1.1.1.1:1 check inter 5s\n", b"server a b:1 from srv:c\n",
    b"server-template s 1-3 a:1 no-check\n", b"server-template s 99999 a:1\n", b"default-server name c weight 1 source a interface b\n", b"default-server ssl outlier-ejection errors 5\n",
    b"acl a src 1.1.1.1\n", b"acl a acl(b)\n", b"http-request deny if a\n", b"http-request allow unless !a { path /a }\n", b"use_backend b if a or c\n", b"tcp-request inspect-delay 5\n",
    b"stats auth a:b\n", b"http-check send uri /\n", b"errorfile 503 a\n", b"http-error status 503\n", b"declare capture request len 1\n", b"capture request header a len 1\n",
    b"set-header Authorization \"Bearer $SET\"\n", b"${SET[*]}", b"user a password b\n", b"setenv A b\n", b"stats socket /a\n", b"from d", b"\xff",
];

#[rustfmt::skip]
const PATTERN_WORDS: &[&[u8]] = &[
    b"\n", b" ", b"\t", b"\r\n", b"\0", b"#", b"/", b".", b":", b"-", b"a", b"b.c", b"/a/b", b"1", b"1:9", b"-5", b"10.0.0.0/8", b"10.1.0.0/255.0.255.0",
    b"::1", b"2001:db8::/32", b"::ffff:10.0.0.0/104", b"\xff", b"10.0.0.0/8 net\n", b"1:9 few\n", b"a.b dom\n",
];

#[rustfmt::skip]
const REGEX_WORDS: &[&[u8]] = &[
    b"(", b")", b"[", b"]", b"[^", b"{", b"}", b"{2}", b"{,3}", b"*", b"+", b"?", b"|", b"^", b"$", b".", b"-", b"\\", b"\\d", b"\\W", b"\\b", b"\\x41",
    b"\\Q", b"\\E", b"\\R", b"\\h", b"\\1", b"(?i)", b"(?x: ", b"(?<n>", b"(?#", b"(?=", b"[[:alpha:]]", b"[:", b"&&", b"a", b"A-Z", b"\xc3\xa9", b" ",
];

#[rustfmt::skip]
const HTTP_WORDS: &[&[u8]] = &[
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b": ", b",", b"#", b"?", b"@", b"\0", b"\x80", b"\r\n ", b"\r\n\r\n",
    b"GET ", b"CONNECT ", b"OPTIONS ", b"*", b"http://", b"h:80", b"[::1]:443", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b"HTTP/1.1 ",
    b"200", b"204", b"101", b"Host: h\r\n", b"Content-Length: 5\r\n", b"Content-Length: 5, 05\r\n", b"Transfer-Encoding: chunked\r\n",
    b"gzip", b"chunked", b"Connection: close, upgrade\r\n", b"Connection: keep-alive\r\n", b"Upgrade: websocket, h2c\r\n", b"TE: trailers\r\n",
    b"Expect: 100-continue\r\n", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"Sec-WebSocket-Accept: x\r\n",
];

#[rustfmt::skip]
const FRAME_WORDS: &[&[u8]] = &[
    b"\0\0\x00\x04\0\0\0\0\0", b"\0\0\0\x04\x01\0\0\0\0", b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x05", b"\0\0\x06\x04\0\0\0\0\0\0\x01\0\0\0\0", b"\0\0\x08\x06\0\0\0\0\0pingpong",
    b"\0\0\x04\x08\0\0\0\0\0\0\0\x10\0", b"\0\0\x04\x08\0\0\0\0\x01\0\0\x10\0", b"\0\0\x04\x08\0\0\0\0\x01\x7f\xff\xff\xff", b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0", b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\x01\0", b"\0\0\x03\0\0\0\0\0\x01abc", b"\0\0\x03\0\x01\0\0\0\x05abc", b"\0\0\x05\0\x08\0\0\0\x01\x02ab\0\0",
    b"\0\0\x04\x01\x05\0\0\0\x01\x82\x87\x84\x01", b"\0\0\x06\x01\x04\0\0\0\x03\x83\x87\x84\x01\x01h", b"\0\0\x01\x01\x04\0\0\0\x01\x88", b"\0\0\x01\x01\x05\0\0\0\x05\x88",
    b"\0\0\x01\x01\0\0\0\0\x07\x82", b"\0\0\x05\x09\x04\0\0\0\x07\x87\x84\x01\x01h", b"\0\0\x05\x01\x05\0\0\0\x03\0\x01a\x01b", b"\x5c\x016", b"\x08\x03103",
];

#[rustfmt::skip]
const BLOCK_WORDS: &[&[u8]] = &[
    b"\x82", b"\x83", b"\x84", b"\x85", b"\x86", b"\x87", b"\x88", b"\xbe", b"\xbf", b"\x3f\xe1\x1f", b"\x20", b"\x41\x01h", b"\x01\x01h", b"\x04\x02/a", b"\x44\x82\x62\x3f", b"\x02\x07CONNECT", b"\x01\x03h:1",
    b"\0\x09:protocol\x09websocket", b"\x40\x01x\x01y", b"\x7e\x01z", b"\x10\x01x\x01y", b"\x66\x01h", b"\x5c\x010", b"\x60\x03a=b", b"\x20\x01c", b"\x0f\x11\x03c=d", b"\0\x02te\x08trailers", b"\x06\x03ftp",
    b"\x02\x07OPTIONS", b"\x04\x01*", b"\0\x0aconnection\x01a", b"\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", b"\x7f\x80\x01", b"\xff\xff\xff\xff\x7f",
];

#[rustfmt::skip]
const RECORD_WORDS: &[&[u8]] = &[
    b"\x00\x00\x0a\x01\x08\0\0\xd1\xd7\x50\x01h\xc1", b"\x08\x04\x0a\x01\x08\0\0\xd1\xd7\x50\x01h\xc1", b"\x00\x08\x0a\x01\x08\0\0\xd4\xd7\x50\x01h\xc1", b"\x00\x00\x05\x00\x03abc", b"\x08\x08\x05\x00\x03abc",
    b"\x08\x00\x0b\x01\x09\x02\0\xd1\xd7\x50\x01h\xc1\x80", b"\x00\x04\x0b\x01\x09\x03\0\xd4\xd7\x50\x01h\xc1\x80", b"\x00\xfe\x04\x02\x3f\xe1\x1f", b"\x00\xfe\x04\x41x\x01y", b"\x00\xfe\x01\x00", b"\x00\xff\x01\x03", b"\x00\xff\x01\x80", b"\x00\xff\x01\x01",
    b"\x08\x00\x05\x01\x03\0\0\xd9", b"\x00\x00\x05\x01\x03\0\0\xd8", b"\x08\x04\x06\x01\x04\0\0\x54\x010", b"\x00\x00\x09\x01\x07\0\0\x21a\x01b", b"\x03\x00\x00", b"\x03\x08\x00", b"\x04\x00\x02\x01\x0c", b"\x05\x04\x02\x01\x00", b"\x06\x00\x01\x7f",
    b"\x00\x02\x03\x07\x01\x04", b"\x00\x03\x03\x07\x01\x04", b"\x00\x0e\x02\x21\x07", b"\x00\x00\x03\x21\x01\0", b"\x00\x02\x08\x80\x0f\x07\0\x04\0u=", b"\x00\x00\x02\x00\x05", b"\x54\x016",
];

#[rustfmt::skip]
const SECTION_WORDS: &[&[u8]] = &[
    b"\0\x08\0\0\xd1\xd7\x50\x01h\xc1", b"\0\x08\0\0\xd4\xd6\x50\x01h\xc1", b"\0\x09\x02\0\xd1\xd7\x50\x01h\xc1\x80", b"\0\x09\x03\0\xd1\xd7\x50\x01h\xc1\x81", b"\0\x09\x03\x80\xd1\xd7\x50\x01h\xc1\x10",
    b"\x01\x03\x3f\xe1\x1f", b"\x01\x04\x41x\x01y", b"\x01\x05\xc5\x03a=b", b"\x01\x01\x00", b"\x01\x03\x80\x01z", b"\x01\x03\x3f\x41\x00",
    b"\x80", b"\x81", b"\x10", b"\x40\x01z", b"\x00\x01z", b"\x21x\x01y", b"\x31x\x01y", b"\x55\x03c=d", b"\x54\x010", b"\x51\x02/a", b"\x5f\0\x07CONNECT", b"\x27\x02:protocol\x09websocket",
    b"\x22te\x08trailers", b"\x27\x03connection\x01a", b"\x5f\x07\x03ftp", b"\x51\x82\x62\x3f", b"\xff\xff\xff\x7f",
];

#[rustfmt::skip]
const CHUNK_WORDS: &[&[u8]] = &[
    b"\r\n", b"\n", b"\r", b"0\r\n", b"0\r\n\r\n", b"1\r\na\r\n", b"a", b"F", b"00", b";", b"=", b"\"", b"\\", b" ", b"\t",
    b"fffffffffffff", b"X: y\r\n", b"Content-Length: 1\r\n", b"Host: h\r\n",
];

#[rustfmt::skip]
const FORMAT_WORDS: &[&[u8]] = &[
    b"%", b"%%", b"{", b"}", b"(", b")", b"[", b"]", b":", b",", b" ", b"\n", b"\"", b"\\", b"\0", b"%{+json}o ", b"%{+cbor}o ", b"%{+cbor,+bin}o ", b"%{+Q,+E}o ",
    b"%{-M}", b"+X", b"+bin", b"%(a)", b"%(a:str)", b"%(b:sint)", b"%(c:bool)", b"%(d:raw)", b"r", b"HU", b"ci", b"cp", b"hr", b"hrl", b"hs", b"ft", b"t", b"ST", b"B",
    b"[str(x)]", b"[int(5)]", b"[bool(1)]", b"[bin(00ff)]", b"[src]", b"[var(txn.a)]", b"[capture.req.hdr(0)]", b"GET /",
];

#[rustfmt::skip]
const URI_WORDS: &[&[u8]] = &[
    b"/", b"//", b"/.", b"/..", b"/../", b"/./", b"%2e", b"%2E%2e", b"%", b"%4", b"%zz", b"%7E", b"?", b"&", b"=", b"a=1", b"b", b"#", b"*", b"\xff",
];

#[rustfmt::skip]
const PROXY_WORDS: &[&[u8]] = &[
    b"PROXY ", b"TCP4 ", b"TCP6 ", b"UNKNOWN", b"\r\n", b" ", b"1.2.3.4 ", b"::1 ", b"65535 ", b"0",
    b"\r\n\r\n\0\r\nQUIT\n", b"\x21", b"\x20", b"\x11", b"\x31", b"\0\x0c", b"\0\x14", b"\x03\0\x04", b"\x02\0\x01a", b"\x04\0\0",
];

#[rustfmt::skip]
const FIRST_WORDS: &[&[u8]] = &[
    b"\x16\x03\x01", b"\x01\0\0", b"\x03\x03", b"\0\0", b"\0\x10", b"\0\x0a", b"\0\x33", b"\0\x02", b"\0", b"\xff\xff", b"\x80\x2e\x01",
    b"\x03\0\0", b"Cookie:", b" ", b"mstshash", b"=", b"\r\n", b"\r", b"DIST", b"ARGC", b"ARGV", b"DOTI", b"00000001", b"0000000a", b"ffffffff",
];

#[rustfmt::skip]
const OCSP_WORDS: &[&[u8]] = &[
    b"\x30\x00", b"\x30\x03", b"\x30\x81", b"\x30\x82\x01", b"\x30\x84\xff\xff\xff\xff", b"\x0a\x01\0", b"\x0a\x01\x06", b"\xa0\x00", b"\xa0\x11", b"\xa1\x00", b"\xa2\x00",
    b"\x80\0", b"\x82\0", b"\x02\x01\x01", b"\x03\x01\0", b"\x04\x00", b"\x05\0", b"\x06\x05\x2b\x0e\x03\x02\x1a", b"\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x01",
    b"\x18\x0f20261123000000Z", b"\x18\x0f99991231235959Z", b"\x17\x0d261123000000Z", b"\0", b"\xff",
];

#[rustfmt::skip]
const CONTEXT_WORDS: &[&[u8]] = &[
    b"00-", b"01-", b"ff-", b"-00", b"-01", b"-d", b"-", b":", b"%3A", b"0000000000000000", b"4bf92f3577b34da6a3ce929d0e0e4736", b"00f067aa0ba902b7",
    b" ", b"\t", b"\n", b",", b"=", b";", b"a=1", b"ot=", b"th:", b"th:c;", b"rv:0123456789abcd", b"k@t=v", b"key=", b"key=v;p=q", b"%2C", b"%ff", b"%", b"\"", b"\\",
    b"true", b"false", b"1\n", b"0", b"1",
];

/// The cuts of an input that are tried: all of a short one, some of a long one.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    const CUTS_MAX: usize = 64;
    (0..len).step_by(len / CUTS_MAX + 1)
}

/// Keys and lengths of protobuf, identifiers of traces.
const OTLP_WORDS: &[&[u8]] = &[
    b"\x0a\x10aaaaaaaaaaaaaaaa",
    b"\x0a\x10bbbbbbbbbbbbbbbb",
    b"\x12\x08ssssssss",
    b"\x22\x00",
    b"\x7a\x02\x18\x02",
    b"\x4a\x06\x0a\x01k\x12\x01\x0a",
    b"\x2a\x04\x0a\x02\x2a\x00",
    b"\x80\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x00",
    b"\x01\x10",
    b"\x03\xff",
];
/// Steps, parameters of queries, and what spans are made of.
#[rustfmt::skip]
const STORE_WORDS: &[&[u8]] = &[
    b"\x00\x30\x00", b"\x02\x30\x00", b"\x03\x00\x00", b"\xfb\x00\x00", b"\x04\x20\x00", b"\x05\x10\x00", b"\x06\x00\x00", b"\x07\x00\x00",
    b"service=*", b"&name=a*b", b"&route=/", b"&status=5xx", b"&error=1", b"&min_ms=1e300", b"&max_ms=0", b"&since=0", b"&until=1700000000001", b"&kept=1", b"&limit=1", b"&columns=3", b"&rows=2",
    b"\x0a\x10aaaaaaaaaaaaaaaa", b"\x12\x08ssssssss", b"\x7a\x02\x18\x02", b"\x2a\x01n", b"\x39\xff\xff\xff\xff\xff\xff\xff\xff", b"\x41\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x4a\x14\x0a\x0ahttp.route\x12\x06\x0a\x04/a/b", b"\x4a\x1b\x0a\x13tailsampling.policy\x12\x04\x0a\x02pp",
];
const OTTL_WORDS: &[&[u8]] = &[
    b" and ",
    b" or ",
    b"not ",
    b"(",
    b")",
    b"==",
    b"!=",
    b"<=",
    b"attributes[\"k\"]",
    b"nil",
    b"IsMatch(",
    b"Len(",
    b"\"",
    b"\\",
    b"resource.",
    b"0x0a",
    b"1.5e3",
    b"-",
    b"status.code",
    b"[0]",
    b"Concat([",
    b"true",
    b"body",
    b"metric.type",
    b"value_int",
    b"positive.bucket_counts",
    b"HasAttrKeyOnDatapoint(",
    b"SEVERITY_NUMBER_WARN",
];
