//! Settings out of `otel.yml`.

use spangate_telemetry::settings::{
    BatchProcessor, Composable, Compression, Delegate, Encoding, Error, Exporter, Histogram,
    OtlpHttp, ParentBased, Pem, Processor, Reader, Sampler, Settings, Signal, Target, Temporality,
    TlsVersion, parse,
};

fn read(text: &str) -> Result<(Settings, Vec<String>), Vec<Error>> {
    parse(text, "otel.yml", None, &|_| None)
}

fn good(text: &str) -> Settings {
    read(text)
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
        .0
}

/// The errors of a text, as `line: message`.
fn bad(text: &str) -> Vec<String> {
    let errors = read(text).expect_err(text).into_iter();
    errors
        .map(|error| format!("{}: {}", error.line, error.message))
        .collect()
}

/// A file with one exporter, and traces that go there.
fn with_exporter(options: &str) -> String {
    format!(
        "exporters: {{ e: {{ {options} }} }}\nprocessors: {{ p: {{ type: single }} }}\nsignals:\n  traces:\n    default: {{ scope_name: s, exporters: e, processors: p }}\n"
    )
}

fn exporter(options: &str) -> Exporter {
    let traces = good(&with_exporter(options)).traces.unwrap();
    traces.pipelines[0].exporter.clone()
}

fn otlp_http(options: &str) -> OtlpHttp {
    match exporter(&format!("type: otlp_http, {options}")) {
        Exporter::OtlpHttp(http) => *http,
        other => panic!("{other:?}"),
    }
}

fn sampler(options: &str) -> Result<Sampler, Vec<String>> {
    let text = format!(
        "exporters: {{ e: {{ type: ostream }} }}\nsamplers:\n  x: {{ {options} }}\nsignals: {{ traces: {{ default: {{ scope_name: s, samplers: x, exporters: e }} }} }}\n"
    );
    match read(&text) {
        Ok((settings, _)) => Ok(settings.traces.unwrap().sampler),
        Err(_) => Err(bad(&text)),
    }
}

const WHOLE: &str = r#"
exporters:
  http: { type: otlp_http, endpoint: "http://collector:4318/v1/traces", content_type: binary, compression: gzip }
  grpc: { type: OTLP_gRPC, endpoint: "collector:4317", use_ssl_credentials: true }
  mhttp: { type: otlp_http }
  out: { type: ostream, filename: stderr }
samplers:
  all: { type: always_on }
processors:
  many: { type: batch, max_queue_size: 0x1000, schedule_delay: 010, max_export_batch_size: 64 }
  one: { type: single }
readers:
  quick: { export_interval: 5000, export_timeout: 1000 }
providers:
  p:
    resources:
      - service.name: shop
      - deployment.environment.name: "test"
signals:
  traces:
    default: { scope_name: Scope, exporters: [http, grpc], samplers: all, processors: [many, one, one], providers: p, flush_timeout: 0 }
  metrics:
    default: { scope_name: Scope, exporters: mhttp, readers: quick, providers: p, temporality: delta, histogram_aggregation: base2_exponential_bucket_histogram }
  logs:
    default: { scope_name: Scope, exporters: out, processors: one, min_severity: Warn3 }
"#;

#[test]
fn a_whole_file() {
    let (settings, warnings) = read(WHOLE).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let traces = settings.traces.unwrap();
    assert_eq!(traces.provider.scope_name, "Scope");
    assert_eq!(traces.provider.flush_timeout_ms, 0);
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("deployment.environment.name", "test"),
        ("service.name", "shop"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.name", "spangate"),
        ("telemetry.sdk.version", version),
    ];
    let resource = resource.map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(traces.provider.resource, resource);
    assert_eq!(traces.sampler, Sampler::AlwaysOn);
    // Three processors, two exporters: the last one serves twice.
    assert_eq!(traces.pipelines.len(), 3);
    let Exporter::OtlpHttp(http) = &traces.pipelines[0].exporter else {
        panic!()
    };
    assert_eq!(http.endpoint, "http://collector:4318/v1/traces");
    assert_eq!(
        (http.encoding, http.compression),
        (Encoding::Protobuf, Compression::Gzip)
    );
    let batch = BatchProcessor {
        queue_records_max: 4096,
        delay_ms: 8,
        export_timeout_ms: 30_000,
        batch_records_max: 64,
    };
    assert_eq!(traces.pipelines[0].processor, Processor::Batch(batch));
    for pipeline in &traces.pipelines[1..] {
        let Exporter::OtlpGrpc(grpc) = &pipeline.exporter else {
            panic!()
        };
        assert_eq!(grpc.endpoint, "https://collector:4317");
        assert_eq!(pipeline.processor, Processor::Single);
    }
    let metrics = settings.metrics.unwrap();
    assert_eq!(metrics.temporality, Temporality::Delta);
    assert_eq!(metrics.histogram, Histogram::Exponential);
    let reader = Reader {
        interval_ms: 5000,
        timeout_ms: 1000,
    };
    assert_eq!(metrics.pipelines[0].reader, reader);
    let Exporter::OtlpHttp(http) = &metrics.pipelines[0].exporter else {
        panic!()
    };
    assert_eq!(http.endpoint, "http://localhost:4318/v1/metrics");
    assert_eq!(http.encoding, Encoding::Json);
    let logs = settings.logs.unwrap();
    assert_eq!(logs.min_severity, 15);
    assert_eq!(
        logs.pipelines[0].exporter,
        Exporter::Ostream(Target::Stderr)
    );
}

#[test]
fn what_is_not_written() {
    let settings = good(
        "exporters: { e: { type: otlp_http } }\nprocessors: { p: { type: batch } }\nsignals: { traces: { default: { scope_name: s, exporters: e, processors: p } }, logs: { default: { scope_name: s, exporters: e } }, metrics: { default: { scope_name: s, exporters: e } } }",
    );
    let traces = settings.traces.unwrap();
    assert_eq!(traces.provider.flush_timeout_ms, 5000);
    assert_eq!(traces.sampler, Sampler::AlwaysOn);
    let Processor::Batch(batch) = traces.pipelines[0].processor else {
        panic!()
    };
    assert_eq!(
        (
            batch.queue_records_max,
            batch.batch_records_max,
            batch.delay_ms
        ),
        (65_536, 8192, 5000)
    );
    let logs = settings.logs.unwrap();
    let default = BatchProcessor::new(Signal::Logs);
    assert_eq!(logs.pipelines[0].processor, Processor::Batch(default));
    assert_eq!((logs.min_severity, default.delay_ms), (1, 1000));
    let metrics = settings.metrics.unwrap();
    assert_eq!(metrics.pipelines[0].reader, Reader::default());
    assert_eq!(metrics.temporality, Temporality::Cumulative);
    let http = otlp_http("");
    assert_eq!((http.timeout_ms, http.requests_max), (10_000, 64));
    assert!(http.tls.verify);
}

#[test]
fn a_queue_that_is_written_bounds_a_batch_that_is_not() {
    let text = |options: &str| {
        format!(
            "exporters: {{ e: {{ type: ostream }} }}\nprocessors: {{ p: {{ type: batch, {options} }} }}\nsignals: {{ logs: {{ default: {{ scope_name: s, exporters: e, processors: p }} }} }}"
        )
    };
    let logs = good(&text("max_queue_size: 2048")).logs.unwrap();
    let Processor::Batch(batch) = logs.pipelines[0].processor else {
        panic!()
    };
    assert_eq!(
        (batch.queue_records_max, batch.batch_records_max),
        (2048, 2048)
    );
    let errors = bad(&text("max_queue_size: 128, max_export_batch_size: 512"));
    assert_eq!(
        errors,
        ["2: 'max_export_batch_size' is 512, must not be above max_queue_size, 128"]
    );
}

#[test]
fn contexts() {
    let text = "exporters: { e: { type: ostream } }\nsignals:\n  traces:\n    one: { scope_name: a, exporters: e }\n    default: { scope_name: b, exporters: e }\n  logs: { scope_name: c, exporters: e }\n";
    let scope = |context: Option<&str>| {
        let (settings, warnings) = parse(text, "f", context, &|_| None).unwrap();
        let traces = settings.traces.unwrap().provider.scope_name;
        let logs = settings.logs.unwrap().provider.scope_name;
        assert!(settings.metrics.is_none());
        assert_eq!(logs, "c");
        (traces, warnings)
    };
    let flat = "f:6: signals.logs has no contexts: its options stand for all, as in the filter's first versions";
    assert_eq!(scope(Some("one")), ("a".to_owned(), vec![flat.to_owned()]));
    assert_eq!(scope(None), ("b".to_owned(), vec![flat.to_owned()]));
    let other = "f:5: signals.traces has no context 'two': 'default' counts";
    assert_eq!(
        scope(Some("two")),
        ("b".to_owned(), vec![other.to_owned(), flat.to_owned()])
    );
    let errors = bad("signals:\n  traces:\n    one: { scope_name: a }\n");
    assert_eq!(errors, ["3: signals.traces has no context 'default'"]);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = "exporters:\n  e:\n    type: otlp_http\n    timeout: 61\n    content_type: xml\n    endpoint: ftp://h\n    max_concurrent_requests: many\n  z: { type: zipkin }\n  m: { type: memory }\nprocessors:\n  p: { type: bulk }\nsamplers:\n  half: { type: trace_id_ratio_based, ratio: 1.5 }\nsignals:\n  traces:\n    default: { exporters: e, processors: p, samplers: half }\n  metrics:\n    default: { scope_name: s, exporters: z, readers: none }\n  logs:\n    default: { scope_name: s, exporters: m, min_severity: loud }\n";
    let expected = [
        "4: 'timeout' is 61, must be 1..60",
        "5: 'content_type' is 'xml', must be one of: json, binary, protobuf",
        "6: 'endpoint' is 'ftp://h': must begin with http:// or https://",
        "7: 'max_concurrent_requests' is 'many', must be a whole number",
        "8: exporters.z: zipkin takes traces only",
        "9: exporters.m: memory takes traces and metrics only",
        "11: unknown processor type 'bulk': one of batch, single",
        "13: 'ratio' is '1.5', must be a number from 0 to 1",
        "16: signals.traces.default: no 'scope_name'",
        "18: 'none' is not defined under 'readers'",
        "20: 'min_severity' is 'loud', must be one of: trace, debug, info, warn, error, fatal, each also with 2 to 4 behind it",
    ];
    assert_eq!(bad(text), expected);
}

#[test]
fn forms_of_a_file_that_are_refused() {
    let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
    let large = "#".repeat(2 << 20);
    let cases = [
        ("a: 1\na: 2\nsignals: {}", "2: the key 'a' is there twice"),
        ("", "1: no 'signals': nothing would be recorded"),
        ("- a", "1: the file must be a map of options"),
        (
            "? [a]\n: b",
            "1: a key must be a plain word, not a map or a list",
        ),
        (deep.as_str(), "1: deeper than 32 levels"),
        (large.as_str(), "1: the file is larger than 1048576 bytes"),
        ("signals: []", "1: signals must be a map of options"),
        (
            "signals: { profiles: {} }",
            "1: no signal is described: traces, metrics or logs",
        ),
        (
            "handle_map_shards: 3\nsignals: {}",
            "1: 'handle_map_shards' must be a power of two",
        ),
    ];
    for (text, first) in cases {
        assert_eq!(bad(text)[0], first, "{text:.60}");
    }
    assert!(bad("a: [\n")[0].starts_with("2: "), "{:?}", bad("a: [\n"));
    assert!(!bad("a: *b\n").is_empty());
    // Aliases that would grow to 10^29 nodes take what they are written in.
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for level in 1..=29 {
        let name = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [name.as_str(); 10].join(", "));
    }
    assert_eq!(bad(&bomb), ["1: no 'signals': nothing would be recorded"]);
    let chain = bomb + "a30: &a30 [*a29]\na31: [*a30]\n";
    assert!(bad(&chain)[0].ends_with("deeper than 32 levels"));
}

#[test]
fn an_alias_stands_for_what_it_names() {
    let text = "x: &all { type: ostream, filename: /tmp/t }\nexporters: { e: *all }\nsignals: { traces: { default: { scope_name: s, exporters: e } } }";
    let (settings, warnings) = read(text).unwrap();
    let exporter = &settings.traces.unwrap().pipelines[0].exporter;
    assert_eq!(
        *exporter,
        Exporter::Ostream(Target::File("/tmp/t".to_owned()))
    );
    assert_eq!(
        warnings,
        ["otel.yml:1: the file: unknown key 'x' is ignored"]
    );
}

#[test]
fn http_options() {
    let http = otlp_http(
        "content_type: Protobuf, http_headers: [ { Authorization: 'Bearer x' }, 'x-tenant: shop' ], timeout: 0x3c, max_concurrent_requests: 010, ssl_insecure_skip_verify: 1, ssl_ca_cert_path: ca.pem, ssl_client_cert_string: C, ssl_client_key_string: K, ssl_min_tls: 1.0, ssl_max_tls: 1.2, thread_name: t, cpu_id: 3",
    );
    assert_eq!(http.encoding, Encoding::Protobuf);
    let headers = [("Authorization", "Bearer x"), ("x-tenant", "shop")];
    assert_eq!(
        http.headers.0,
        headers.map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
    assert_eq!(
        format!("{:?}", http.headers),
        r#"["Authorization", "x-tenant"]"#
    );
    assert_eq!((http.timeout_ms, http.requests_max), (60_000, 8));
    assert!(!http.tls.verify);
    assert_eq!(http.tls.ca, Some(Pem::Path("ca.pem".to_owned())));
    assert_eq!(http.tls.key, Some(Pem::Text("K".to_owned())));
    assert_eq!(
        (http.tls.version_min, http.tls.version_max),
        (TlsVersion::V12, TlsVersion::V12)
    );
    assert_eq!(
        otlp_http("endpoint: '[::1]:4318'").endpoint,
        "http://[::1]:4318"
    );
}

#[test]
fn options_that_are_refused() {
    let cases = [
        (
            "type: otlp_http, ssl_min_tls: 1.3, ssl_max_tls: 1.2",
            "ssl_min_tls is above ssl_max_tls",
        ),
        (
            "type: otlp_http, ssl_client_key_path: k",
            "exporters.e: ssl_client_cert_* and ssl_client_key_* need each other",
        ),
        (
            "type: otlp_http, http_headers: [ 'a b: c' ]",
            "http_headers: 'a b' is no name of a field",
        ),
        (
            "type: otlp_http, http_headers: [ x ]",
            "'http_headers' must be a list of pairs 'name: value'",
        ),
        (
            "type: otlp_http, endpoint: 'http://h:99999/'",
            "'endpoint' is 'http://h:99999/': the port must be a number from 0 to 65535",
        ),
        (
            "type: otlp_http, endpoint: 'http:///x'",
            "'endpoint' is 'http:///x': must name a host, without blanks or control characters",
        ),
        (
            "type: otlp_http, endpoint: 'http://[::1/'",
            "'endpoint' is 'http://[::1/': an IPv6 address stands in brackets",
        ),
        (
            "type: otlp_http, endpoint: '::1'",
            "'endpoint' is '::1': an IPv6 address stands in brackets",
        ),
        (
            "type: otlp_http, compression: br",
            "'compression' is 'br', must be one of: none, gzip",
        ),
        (
            "type: elasticsearch",
            "exporters.e: elasticsearch is not supported yet: use otlp_http to a collector",
        ),
        (
            "type: kafka",
            "unknown exporter type 'kafka': one of otlp_http, otlp_grpc, otlp_file, ostream, memory, zipkin, collector",
        ),
        ("timeout: 3", "exporters.e: no 'type'"),
        (
            "type: zipkin, format: protobuf",
            "exporters.e: the format protobuf is not supported: use json",
        ),
        (
            "type: zipkin, ipv4: '::1'",
            "'ipv4' is '::1', which is no such address",
        ),
        (
            "type: otlp_file, rotate_size: 0",
            "'rotate_size' is 0, must be 1..256",
        ),
        (
            "type: memory, buffer_size: 8",
            "'buffer_size' is 8, must be 16..65536",
        ),
        (
            "type: ostream, cpu_id: 5000",
            "'cpu_id' is 5000, must be -1..4095",
        ),
        (
            "type: ostream, filename: [a]",
            "'filename' must be a single value",
        ),
    ];
    for (options, message) in cases {
        let errors = bad(&with_exporter(options));
        let message = message.replace("unknown exporter", "exporters.e: unknown exporter");
        assert!(
            errors.contains(&format!("1: {message}")),
            "{options}: {errors:?}"
        );
    }
}

#[test]
fn samplers() {
    let all = |text| sampler(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    assert_eq!(all("type: ALWAYS_OFF"), Sampler::AlwaysOff);
    assert_eq!(
        all("type: trace_id_ratio_based, ratio: 0.25"),
        Sampler::Ratio(0.25)
    );
    let parent = ParentBased {
        local_not_sampled: true,
        ..ParentBased::new(Delegate::Ratio(0.5))
    };
    let text = "type: parent_based, delegate: trace_id_ratio_based, ratio: 0.5, local_not_sampled: always_on";
    assert_eq!(all(text), Sampler::ParentBased(parent));
    assert_eq!(
        all("type: composite, ratio: 1"),
        Sampler::Composite(Composable::Probability(1.0))
    );
    assert_eq!(
        all("type: composite, composable: parent_threshold, ratio: 0"),
        Sampler::Composite(Composable::ParentThreshold(0.0))
    );
    for (text, why) in [
        (
            "type: trace_id_ratio_based",
            "3: samplers.x: 'ratio' is missing",
        ),
        ("type: parent_based", "3: samplers.x: 'delegate' is missing"),
        (
            "type: parent_based, delegate: sometimes",
            "3: 'delegate' is 'sometimes', must be one of: always_on, always_off, trace_id_ratio_based",
        ),
        ("type: composite", "3: samplers.x: 'ratio' is missing"),
        (
            "type: trace_id_ratio_based, ratio: nan",
            "3: 'ratio' is 'nan', must be a number from 0 to 1",
        ),
    ] {
        assert_eq!(sampler(text).unwrap_err(), [why], "{text}");
    }
}

#[test]
fn warnings() {
    let text = "exporters:\n  e: { type: otlp_http, colour: red, ssl_cipher: X, json_bytes_mapping: base64 }\n  unused: { type: kafka }\n  never: { type: elasticsearch, host: h }\nsignals:\n  traces: { default: { scope_name: s, exporters: e, depth: 3 } }\n";
    let warnings = read(text).unwrap().1;
    let expected = [
        "otel.yml:2: exporters.e: unknown key 'colour' is ignored",
        "otel.yml:2: ssl_cipher is ignored: only suites of today are offered",
        "otel.yml:2: json_bytes_mapping is ignored: identifiers are hexadecimal and bytes base64, as OTLP says",
        "otel.yml:3: exporters.unused: unknown exporter type 'kafka': one of otlp_http, otlp_grpc, otlp_file, ostream, memory, zipkin, collector (nothing uses it)",
        "otel.yml:6: signals.traces.default: unknown key 'depth' is ignored",
    ];
    assert_eq!(warnings, expected);
    let text = with_exporter(&format!("type: ostream, filename: {}", "é".repeat(3000)));
    let (settings, warnings) = read(&text).unwrap();
    assert!(warnings[0].ends_with("'filename' is cut off after 4095 bytes"));
    let Exporter::Ostream(Target::File(path)) = &settings.traces.unwrap().pipelines[0].exporter
    else {
        panic!()
    };
    assert_eq!(path.len(), 4094);
}

#[test]
fn readers() {
    let text = |reader: &str, exporters: &str, readers: &str| {
        format!(
            "exporters: {{ e: {{ type: ostream }} }}\nreaders: {{ r: {{ {reader} }} }}\nsignals: {{ metrics: {{ default: {{ scope_name: s, exporters: {exporters}, readers: {readers} }} }} }}"
        )
    };
    let read = |text: &str| -> Vec<_> {
        let pipelines = good(text).metrics.unwrap().pipelines.into_iter();
        pipelines
            .map(|pipeline| (pipeline.reader.interval_ms, pipeline.reader.timeout_ms))
            .collect()
    };
    assert_eq!(
        read(&text("export_interval: 1000", "[e, e]", "[r]")),
        [(1000, 1000); 2]
    );
    // As HAProxy's filter has it: a list does not fit a lone exporter.
    assert_eq!(
        read(&text("export_interval: 1000", "e", "[r]")),
        [(60_000, 30_000)]
    );
    let errors = bad(&text(
        "export_interval: 1000, export_timeout: 2000",
        "e",
        "r",
    ));
    assert_eq!(
        errors,
        ["2: 'export_timeout' is 2000, must not be above export_interval, 1000"]
    );
}

#[test]
fn resource_attributes_of_the_environment() {
    let text = "exporters: { e: { type: ostream } }\nproviders: { p: { resources: [ { a: yaml } ] } }\nsignals: { logs: { default: { scope_name: s, exporters: e, providers: p } } }";
    let resource = |attributes: &str| {
        let variable = |name: &str| match name {
            "OTEL_RESOURCE_ATTRIBUTES" => Some(attributes.to_owned()),
            "OTEL_SERVICE_NAME" => Some("svc".to_owned()),
            _ => None,
        };
        let (settings, warnings) = parse(text, "f", None, &variable).unwrap();
        let resource = settings.logs.unwrap().provider.resource.into_iter();
        let resource = resource.filter(|(key, _)| !key.starts_with("telemetry."));
        let all: Vec<_> = resource
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        (all.join(" "), warnings)
    };
    assert_eq!(
        resource("a=env,b=x%20y%2C,service.name=other"),
        ("a=yaml b=x y, service.name=svc".to_owned(), vec![])
    );
    let (all, warnings) = resource("b=%f");
    assert_eq!(all, "a=yaml service.name=svc");
    assert_eq!(
        warnings,
        ["f:3: OTEL_RESOURCE_ATTRIBUTES is not taken: '%f' has a lone %"]
    );
}

#[test]
fn collectors_of_the_process() {
    let settings = good(&with_exporter("type: collector, name: main"));
    let named: Vec<_> = settings.collectors().collect();
    let [(Signal::Traces, collector)] = named[..] else {
        panic!("{named:?}");
    };
    let at = collector.at.expect("it stands in a file");
    assert_eq!((&*collector.name, at.line), ("main", 1));
    assert_eq!(
        bad(&with_exporter("type: collector")),
        ["1: exporters.e: no 'name' of a collector"]
    );
    let all = good(
        "exporters: { e: { type: collector, name: a }, f: { type: collector, name: b } }\nsignals:\n  metrics: { default: { scope_name: s, exporters: e } }\n  logs: { default: { scope_name: s, exporters: [e, f] } }\n",
    );
    let named: Vec<_> = all
        .collectors()
        .map(|(signal, one)| (signal, &*one.name))
        .collect();
    let expected = [
        (Signal::Metrics, "a"),
        (Signal::Logs, "a"),
        (Signal::Logs, "b"),
    ];
    assert_eq!(named, expected);
}
