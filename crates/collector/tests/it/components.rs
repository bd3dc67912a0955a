//! Options of components.

use std::time::Duration;

use spangate_collector::config::Extension;
use spangate_collector::config::components::exporters::debug::{DebugExporter, Verbosity};
use spangate_collector::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use spangate_collector::config::components::exporters::otlp_http::OtlpHttpExporter;
use spangate_collector::config::components::processors::action::{
    Action, AttributeValue, Source, When,
};
use spangate_collector::config::components::processors::resource::Resource;
use spangate_collector::config::components::receivers::otlp::OtlpReceiver;
use spangate_collector::config::service::telemetry::{LogLevel, MetricsLevel, Naming, Reader};
use spangate_collector::config::shared::address::Listen;
use spangate_collector::config::shared::queue::Sizer;
use telemetry::settings::{Compression, Encoding, Pem};

use crate::{errors, good, with_processors};

/// A configuration with an exporter's options.
fn exporter(kind: &str, options: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ http: }} }} }}
service:
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [{kind}] }} }}
exporters:
  {kind}:
{options}"
    )
}

/// A configuration with a receiver's options.
fn receiver(options: &str) -> String {
    format!(
        "exporters: {{ nop: }}
service:
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop] }} }}
receivers:
  otlp:
{options}"
    )
}

#[test]
fn a_receiver_with_everything() {
    let (config, warnings) = good(&receiver(
        "    protocols:
      grpc:
        endpoint: '[::]:4317'
        transport: tcp6
        max_recv_msg_size_mib: 64
        max_concurrent_streams: 100
        read_buffer_size: 524288
        tls: { cert_file: c.pem, key_file: k.pem, client_ca_file: ca.pem, min_version: '1.3' }
        keepalive:
          server_parameters: { max_connection_age: 60s, max_connection_age_grace: 10s }
          enforcement_policy: { min_time: 10s, permit_without_stream: true }
      http:
        endpoint: :4318
        traces_url_path: t
        cors: { allowed_origins: ['https://*.example.com'], allowed_headers: '*', max_age: 7200 }
        max_request_body_size: 1000
        compression_algorithms: ['', gzip]
        include_metadata: true
",
    ));
    let otlp: &OtlpReceiver = config.receivers[0].settings.get().expect("a receiver");
    let grpc = otlp.grpc.as_ref().expect("gRPC");
    assert!(matches!(&grpc.listen, Listen::Tcp { host, port: 4317, .. } if host == "::"));
    assert_eq!((grpc.message_bytes_max, grpc.streams_max), (64 << 20, 100));
    let tls = grpc.tls.as_ref().expect("TLS");
    assert_eq!(tls.client_ca_file.as_deref(), Some("ca.pem"));
    assert_eq!(tls.common.certificate, Some(Pem::Path("c.pem".to_owned())));
    assert_eq!(grpc.keepalive.connection_age_ns, 60_000_000_000);
    assert!(grpc.keepalive.permit_without_stream);
    let http = otlp.http.as_ref().expect("HTTP");
    assert_eq!(http.traces_path, "/t");
    assert_eq!(http.metrics_path, "/v1/metrics");
    assert_eq!(http.server.body_bytes_max, 1000);
    assert_eq!(http.server.codings, [Compression::None, Compression::Gzip]);
    assert_eq!(
        http.server.cors.as_ref().map(|cors| cors.max_age_s),
        Some(7200)
    );
    assert!(http.server.include_metadata && !grpc.include_metadata);
    assert_eq!(warnings, [""; 0]);
}

/// A receiver's options, and the error that they are.
const RECEIVERS: &[(&str, &str)] = &[
    (
        "",
        "a.yaml:5:3: receivers::otlp: 'protocols' is missing: `grpc`, `http` or both",
    ),
    (
        "    protocols: {}",
        "a.yaml:6:16: receivers::otlp::protocols: must have 'grpc' or 'http'",
    ),
    (
        "    protocols: { grpc: { endpoint: localhost } }",
        "a.yaml:6:36: receivers::otlp::protocols::grpc::endpoint: 'localhost' has no port: write host:port",
    ),
    (
        "    protocols: { grpc: { endpoint: 'http://a:1' } }",
        "a.yaml:6:36: receivers::otlp::protocols::grpc::endpoint: 'http://a:1' is a URL: write host:port",
    ),
    (
        "    protocols: { grpc: { tls: { cert_file: c } } }",
        "a.yaml:6:26: receivers::otlp::protocols::grpc::tls: a certificate and its key come together: one of the two is missing",
    ),
    (
        "    protocols: { grpc: { tls: { client_ca_file: c } } }",
        "a.yaml:6:26: receivers::otlp::protocols::grpc::tls: a server needs 'cert_file' and 'key_file'",
    ),
    (
        "    protocols: { grpc: { auth: { authenticator: basicauth } } }",
        "a.yaml:5:3: receivers::otlp: auth: 'basicauth' is no extension that is defined and built in",
    ),
    (
        "    protocols: { thrift: }",
        "a.yaml:6:18: receivers::otlp::protocols::thrift: unknown key",
    ),
    (
        "    protocols: { http: { keepalive: {} } }",
        "a.yaml:6:26: receivers::otlp::protocols::http::keepalive: unknown key",
    ),
    (
        "    protocols: { http: { max_request_body_size: 5MB } }",
        "a.yaml:6:49: receivers::otlp::protocols::http::max_request_body_size: must be a whole number, not '5MB'",
    ),
];

#[test]
fn receivers_that_are_wrong() {
    for (options, error) in RECEIVERS {
        assert_eq!(errors(&receiver(options))[0], *error, "{options}");
    }
}

#[test]
fn a_disabled_protocol_is_off() {
    let (config, _) = good(&receiver(
        "    protocols: { grpc: { enabled: false }, http: }",
    ));
    let otlp: &OtlpReceiver = config.receivers[0].settings.get().expect("a receiver");
    assert!(otlp.grpc.is_none() && otlp.http.is_some());
}

#[test]
fn exporters_of_either_name() {
    let options = "    endpoint: https://gateway:4317
    compression: none
    headers: [ { name: x-scope, value: one } ]
    timeout: 8s
    balancer_name: round_robin
    tls: { insecure: true }
    sending_queue: { queue_size: 10000, sizer: items }
    retry_on_failure: { max_elapsed_time: 0 }
";
    for kind in ["otlp", "otlp_grpc/x"] {
        let (config, warnings) = good(&exporter(kind, options));
        let otlp: &OtlpGrpcExporter = config.exporters[0].settings.get().expect("its settings");
        // https:// asks for TLS even so.
        assert_eq!(otlp.client.otlp.endpoint, "https://gateway:4317");
        assert_eq!(otlp.client.otlp.timeout_ms, 8000);
        assert_eq!(otlp.client.otlp.compression, Compression::None);
        assert!(otlp.client.options.is_balanced);
        assert_eq!(
            otlp.client.otlp.headers.0,
            [("x-scope".to_owned(), "one".to_owned())]
        );
        let queue = otlp.queue.as_ref().expect("a queue");
        assert_eq!(
            (queue.sizer, queue.size_max, queue.consumers),
            (Sizer::Items, 10_000, 10)
        );
        let retry = otlp.retry.as_ref().expect("retries");
        assert_eq!(
            (retry.elapsed_max, retry.first),
            (None, Duration::from_secs(5))
        );
        assert_eq!(warnings, [""; 0]);
    }
    let options = "    endpoint: http://loki:3100/otlp/
    logs_endpoint: http://other/logs
    encoding: json
    compression: none
    sending_queue: { enabled: false }
    retry_on_failure: { enabled: false }
";
    for kind in ["otlphttp/y", "otlp_http"] {
        let (config, warnings) = good(&exporter(kind, options));
        let otlp: &OtlpHttpExporter = config.exporters[0].settings.get().expect("its settings");
        assert_eq!(
            otlp.traces_url.as_deref(),
            Some("http://loki:3100/otlp/v1/traces")
        );
        assert_eq!(otlp.logs_url.as_deref(), Some("http://other/logs"));
        assert_eq!(otlp.client.otlp.encoding, Encoding::Json);
        assert_eq!(otlp.client.otlp.compression, Compression::None);
        assert!(otlp.queue.is_none() && otlp.retry.is_none());
        assert_eq!(otlp.client.otlp.timeout_ms, 30_000);
        assert_eq!(warnings, [""; 0]);
    }
}

#[test]
fn a_batch_is_smaller_than_its_queue() {
    let text = exporter(
        "otlp",
        "    endpoint: a:1\n    sending_queue: { sizer: items, batch: }\n",
    );
    let error =
        "a.yaml:7:36: exporters::otlp::sending_queue::batch::min_size: is larger than 'queue_size'";
    assert_eq!(errors(&text), [error]);
}

/// An exporter, its options, and the error that they are.
const EXPORTERS: &[(&str, &str, &str)] = &[
    (
        "otlp",
        "    endpoint:",
        "a.yaml:5:3: exporters::otlp::endpoint: is missing: host:port of the server",
    ),
    (
        "otlp",
        "    endpoint: gateway",
        "a.yaml:6:15: exporters::otlp::endpoint: 'gateway' has no port: write host:port",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', insecure: true }",
        "a.yaml:6:24: exporters::otlp::insecure: not supported: write `tls: { insecure: true }`",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', compression: snappy }",
        "a.yaml:6:37: exporters::otlp::compression: snappy is not built in: gzip, zstd and none are",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', headers: { x: 5 } }",
        "a.yaml:6:33: exporters::otlp::headers: 'x' must be text: write 5 in quotes",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', headers: { 'a b': c } }",
        "a.yaml:6:33: exporters::otlp::headers: 'a b' is no name of a field",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', sending_queue: { storage: file_storage } }",
        "a.yaml:5:3: exporters::otlp::sending_queue::storage: 'file_storage' is no extension that is defined and built in",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', sending_queue: { queue_size: 0 } }",
        "a.yaml:6:53: exporters::otlp::sending_queue::queue_size: must be at least 1, not 0",
    ),
    (
        "otlp",
        "    { endpoint: 'a:1', retry_on_failure: { max_elapsed_time: 1s } }",
        "a.yaml:6:62: exporters::otlp::retry_on_failure::max_elapsed_time: must not be less than 'initial_interval' or 'max_interval'",
    ),
    (
        "otlphttp",
        "    endpoint: a:4318",
        "a.yaml:6:15: exporters::otlphttp::endpoint: 'a:4318' must begin with http:// or https://",
    ),
    (
        "otlphttp",
        "    {}",
        "a.yaml:5:3: exporters::otlphttp::endpoint: is missing: the URL of the server",
    ),
    (
        "otlphttp",
        "    { endpoint: 'http://a', encoding: protobuf }",
        "a.yaml:6:39: exporters::otlphttp::encoding: must be one of proto, json, not 'protobuf'",
    ),
    (
        "otlphttp",
        "    { endpoint: 'http://a', proxy_url: 'ftp://me:secret@p' }",
        "a.yaml:6:40: exporters::otlphttp::proxy_url: must begin with http://, https:// or socks5://: there are no other proxies",
    ),
    (
        "jaeger",
        "    endpoint: jaeger:14250",
        "a.yaml:3:57: service::pipelines::traces: the exporter 'jaeger' is not supported: Jaeger takes OTLP itself: use the exporter 'otlp' with its port 4317 ('--drop-part jaeger' leaves it out)",
    ),
    (
        "debug",
        "    verbosity: verbose",
        "a.yaml:6:16: exporters::debug::verbosity: must be one of basic, normal, detailed, not 'verbose'",
    ),
    (
        "dashboard",
        "    max_bytes: 1000",
        "a.yaml:6:16: exporters::dashboard::max_bytes: must be at least 1048576, not 1000",
    ),
    (
        "dashboard",
        "    max_age: 60",
        "a.yaml:6:14: exporters::dashboard::max_age: must be a second at least",
    ),
    (
        "file",
        "",
        "a.yaml:5:3: exporters::file: 'path' is missing: the file to write",
    ),
    (
        "file",
        "    { path: a, directory_permissions: '999' }",
        "a.yaml:6:39: exporters::file::directory_permissions: '999' must be permissions in octal, such as 0755",
    ),
];

#[test]
fn exporters_that_are_wrong() {
    for (kind, options, error) in EXPORTERS {
        assert_eq!(
            errors(&exporter(kind, options))[0],
            *error,
            "{kind} {options}"
        );
    }
}

#[test]
fn logging_is_debug() {
    let (config, warnings) = good(&exporter("logging", "    loglevel: debug\n"));
    let debug: &DebugExporter = config.exporters[0].settings.get().expect("its settings");
    assert_eq!(debug.verbosity, Verbosity::Detailed);
    assert_eq!(
        warnings,
        [
            "a.yaml:5:3: exporters::logging: the exporter 'logging' is now 'debug': it is taken for that",
            "a.yaml:6:5: exporters::logging::loglevel: deprecated: write 'verbosity': detailed for debug, else normal",
        ]
    );
}

#[test]
fn attributes_are_changed() {
    let options = "  resource:
    attributes:
      - { key: env, value: prod, action: insert }
      - { key: shard, value: 7, action: UPSERT }
      - { key: old, action: delete }
      - { key: new, from_attribute: old, action: update }
  attributes:
    include: { match_type: regexp, services: ['^a'], span_kinds: [SPAN_KIND_SERVER] }
    actions: [ { key: url, pattern: '^(?P<scheme>[a-z]+):', action: extract } ]
";
    let (config, warnings) = good(&with_processors("resource, attributes", options));
    let resource: &Resource = config.processors[0].settings.get().expect("a resource");
    let set = |key: &str, source, when| Action::Set {
        key: key.to_owned(),
        source,
        when,
    };
    let expected = [
        set(
            "env",
            Source::Value(AttributeValue::Text("prod".to_owned())),
            When::Missing,
        ),
        set("shard", Source::Value(AttributeValue::Int(7)), When::Always),
        Action::Delete {
            key: "old".to_owned(),
            pattern: None,
        },
        set("new", Source::Attribute("old".to_owned()), When::Present),
    ];
    assert_eq!(resource.actions, expected);
    assert_eq!(warnings, [""; 0]);
}

/// A processor, its options, and the error that they are.
const PROCESSORS: &[(&str, &str, &str)] = &[
    (
        "batch",
        "{ send_batch_size: 10, send_batch_max_size: 5 }",
        "a.yaml:6:54: processors::batch::send_batch_max_size: must not be less than 'send_batch_size'",
    ),
    (
        "batch",
        "{ metadata_keys: [tenant, Tenant] }",
        "a.yaml:6:27: processors::batch::metadata_keys: 'tenant' is there twice",
    ),
    (
        "batch",
        "{ timeout: true }",
        "a.yaml:6:21: processors::batch::timeout: must be a duration such as 300ms, 5s or 1m30s, not true",
    ),
    (
        "memory_limiter",
        "{ limit_mib: 100 }",
        "a.yaml:6:3: processors::memory_limiter::check_interval: must be more than 0, 1s for instance",
    ),
    (
        "memory_limiter",
        "{ check_interval: 1s }",
        "a.yaml:6:3: processors::memory_limiter::limit_mib: must be more than 0, or else 'limit_percentage'",
    ),
    (
        "memory_limiter",
        "{ check_interval: 1s, limit_mib: 5, spike_limit_mib: 5 }",
        "a.yaml:6:72: processors::memory_limiter::spike_limit_mib: must be less than 'limit_mib'",
    ),
    (
        "memory_limiter",
        "{ check_interval: 1s, limit_percentage: 101 }",
        "a.yaml:6:59: processors::memory_limiter::limit_percentage: must be from 0 to 100, not 101",
    ),
    (
        "probabilistic_sampler",
        "{ sampling_percentage: -1 }",
        "a.yaml:6:49: processors::probabilistic_sampler::sampling_percentage: must be at least 0, not -1",
    ),
    (
        "resource",
        "{}",
        "a.yaml:6:3: processors::resource::attributes: must have at least one action",
    ),
    (
        "resource",
        "{ attributes: [ { key: a, action: insert } ] }",
        "a.yaml:6:29: processors::resource::attributes[0]::value: or 'from_attribute' or 'from_context' must be there",
    ),
    (
        "resource",
        "{ attributes: [ { key: a, action: insert, value: 1, from_context: b } ] }",
        "a.yaml:6:62: processors::resource::attributes[0]::value: 'from_attribute' and 'from_context': more than one is there, one is enough",
    ),
    (
        "resource",
        "{ attributes: [ { key: a, value: 1, action: delete } ] }",
        "a.yaml:6:46: processors::resource::attributes[0]::value: means nothing to the action 'delete'",
    ),
    (
        "attributes",
        "{ actions: [ { key: a, pattern: '(b)', action: extract } ] }",
        "a.yaml:6:47: processors::attributes::actions[0]::pattern: must have groups, and each a name: (?P<name>…)",
    ),
    (
        "attributes",
        "{ actions: [ { key: a, action: delete } ], include: { match_type: regexp, attributes: [ { key: k, value: 5 } ] } }",
        "a.yaml:6:120: processors::attributes::include::attributes[0]::value: must be a text where 'match_type' is regexp",
    ),
    (
        "attributes",
        "{ actions: [ { key: a, action: delete } ], include: { match_type: strict } }",
        "a.yaml:6:58: processors::attributes::include: must say what matches: one of services, span_names, span_kinds, attributes, resources, libraries",
    ),
    (
        "geoip",
        "{}",
        "a.yaml:4:58: service::pipelines::traces: the processor 'geoip' is of the type 'geoip', which is not built in ('--drop-part geoip' leaves it out)",
    ),
    (
        "bacth",
        "{}",
        "a.yaml:4:58: service::pipelines::traces: the processor 'bacth' is of the unknown type 'bacth' (did you mean 'batch'?) ('--drop-part bacth' leaves it out)",
    ),
];

#[test]
fn processors_that_are_wrong() {
    for (kind, options, error) in PROCESSORS {
        let text = with_processors(kind, &format!("  {kind}: {options}\n"));
        assert_eq!(errors(&text)[0], *error, "{kind} {options}");
    }
}

#[test]
fn unused_components_are_checked_too() {
    let text = with_processors("", "  batch: { timout: 1s }\n");
    let error = "a.yaml:6:12: processors::batch::timout: unknown key (did you mean 'timeout'?)";
    assert_eq!(errors(&text), [error]);
}

#[test]
fn extensions_and_telemetry() {
    let text = receiver(
        "    protocols: { grpc: }
extensions:
  zpages:
  health_check: { endpoint: 0.0.0.0:13133, path: /health }
  file_storage: { directory: /tmp/q }
  memory_ballast: { size_mib: 64 }
",
    )
    .replace(
        "  pipelines:",
        "  extensions: [health_check, zpages, file_storage, memory_ballast]
  telemetry:
    logs: { level: WARN, encoding: json }
    metrics: { level: detailed, address: ':8888' }
    resource: { service.name: otel, service.version: }
  pipelines:",
    );
    let (config, warnings) = good(&text);
    let [health, storage] = &config.extensions[..] else {
        panic!("{config:?}");
    };
    assert!(matches!(&health.settings, Extension::HealthCheck(health) if health.path == "/health"));
    assert!(
        matches!(&storage.settings, Extension::FileStorage(storage) if storage.directory == "/tmp/q")
    );
    let telemetry = &config.telemetry;
    assert_eq!(
        (telemetry.logs.level, telemetry.logs.json),
        (LogLevel::Warn, true)
    );
    assert_eq!(telemetry.metrics.level, MetricsLevel::Detailed);
    let prometheus = |host: &str| Reader::Prometheus {
        host: host.to_owned(),
        port: 8888,
        naming: Naming::default(),
    };
    assert_eq!(telemetry.metrics.readers, [prometheus("")]);
    let resource = [
        ("service.name".to_owned(), Some("otel".to_owned())),
        ("service.version".to_owned(), None),
    ];
    assert_eq!(telemetry.resource, resource);
    assert_eq!(
        warnings,
        [
            "a.yaml:3:30: service::extensions: 'zpages' is left out: there are no such pages: the status page and the metrics tell the same",
            "a.yaml:3:52: service::extensions: 'memory_ballast' is left out: it served Go's garbage collector, and there is none here",
            "a.yaml:6:33: service::telemetry::metrics::address: deprecated: write 'readers' with 'pull'; it is taken for that",
        ]
    );
    let list =
        "    resource: { attributes: [ { name: a, value: b }, { name: n, value: 5, type: int } ] }";
    let (config, _) = good(&text.replace(
        "    resource: { service.name: otel, service.version: }",
        list,
    ));
    let text_of = |text: &str| Some(text.to_owned());
    let resource = [
        ("a".to_owned(), text_of("b")),
        ("n".to_owned(), text_of("5")),
    ];
    assert_eq!(config.telemetry.resource, resource);
    let readers = "    metrics: { readers: [ { pull: { exporter: { prometheus: { host: '0.0.0.0', port: 8889 } } } } ] }";
    let text = text.replace(
        "    metrics: { level: detailed, address: ':8888' }",
        readers,
    );
    let (config, _) = good(&text);
    assert!(matches!(
        &config.telemetry.metrics.readers[..],
        [Reader::Prometheus { port: 8889, .. }]
    ));
    let suffixes = "port: 8889, without_units: false, without_type_suffix: false";
    let (config, _) = good(&text.replace("port: 8889", suffixes));
    let long = Naming {
        units: true,
        type_suffix: true,
    };
    assert!(matches!(
        &config.telemetry.metrics.readers[..],
        [Reader::Prometheus { naming, .. }] if *naming == long
    ));
    let text = text.replace(readers, "    metrics: { readers: [ { periodic: } ] }");
    let error = "a.yaml:6:27: service::telemetry::metrics::readers[0]: must be 'pull' with 'prometheus', or 'periodic' with 'otlp' and its 'endpoint'";
    assert_eq!(errors(&text)[0], error);
}

#[test]
fn what_does_not_run_yet_is_refused_by_name() {
    let cases = [
        (
            "otlphttp",
            "compression: lz4\n    compression_params: { level: 1 }",
            "compression_params::level",
        ),
        ("otlphttp", "middlewares: [ { id: a } ]", "middlewares"),
    ];
    for (kind, line, option) in cases {
        let endpoint = if kind == "otlp" { "a:1" } else { "http://a:1" };
        let text = exporter(kind, &format!("    endpoint: {endpoint}\n    {line}\n"));
        let errors = errors(&text);
        let named = format!("exporters::{kind}::{option}: ");
        assert!(
            errors.len() == 1 && errors[0].contains(&named),
            "{errors:?}"
        );
    }
}

/// An exporter with an authenticator, and the error that the two are; none: they are right.
const AUTHENTICATED: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "otlp",
        "{ endpoint: 'a:1', auth: { authenticator: basicauth } }",
        "basicauth: { client_auth: { username: a, password: b } }",
        None,
    ),
    (
        "otlp",
        "{ endpoint: 'a:1', tls: { insecure: true }, auth: { authenticator: basicauth } }",
        "basicauth: { client_auth: { username: a, password: b } }",
        Some("exporters::otlp: auth: 'basicauth' needs TLS over gRPC"),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: basicauth } }",
        "basicauth: { htpasswd: { inline: 'a:b' } }",
        Some("exporters::otlphttp: auth: 'basicauth' has nothing to send"),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: headers_setter } }",
        "headers_setter: { headers: [ { key: a, from_context: b, default_value: c } ] }",
        None,
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: headers_setter } }",
        "headers_setter: { headers: [ { key: a, from_context: b, value: c } ] }",
        Some(
            "extensions::headers_setter::headers[0]::value: 'value_file', 'from_context' and 'from_attribute': one of them is enough",
        ),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: bearertokenauth } }",
        "bearertokenauth: { scheme: X }",
        Some("extensions::bearertokenauth: must have 'token', 'tokens' or 'filename'"),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: }",
        "basicauth: {}",
        Some("extensions::basicauth: must have either 'htpasswd' or 'client_auth'"),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: health_check } }",
        "health_check: {}",
        Some("exporters::otlphttp: auth: 'health_check' has nothing to send"),
    ),
    (
        "otlphttp",
        "{ endpoint: 'http://a:1', auth: { authenticator: x/y } }",
        "health_check: {}",
        Some("exporters::otlphttp: auth: 'x/y' is no extension that is defined and built in"),
    ),
];

#[test]
fn authenticators_fit_their_place() {
    for (kind, options, extension, error) in AUTHENTICATED {
        let id = extension.split(':').next().unwrap_or_default();
        let text = exporter(
            kind,
            &format!("    {options}\nextensions: {{ {extension} }}\n"),
        );
        let text = text.replace("service:\n", &format!("service:\n  extensions: [{id}]\n"));
        match error {
            None => drop(good(&text)),
            Some(error) => {
                let errors = errors(&text);
                assert!(errors[0].ends_with(error), "{errors:?}");
            }
        }
        // Whoever does not run tells nothing.
        let text = text.replace(&format!("  extensions: [{id}]\n"), "");
        if error.is_none() {
            assert!(errors(&text)[0].ends_with("is not in service::extensions"));
        }
    }
}
