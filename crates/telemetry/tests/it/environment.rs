//! Settings out of the environment.

use spangate_telemetry::settings::{
    Compression, Delegate, Encoding, Exporter, Histogram, OtlpGrpc, OtlpHttp, ParentBased, Pem,
    Processor, Sampler, Settings, Signal, Target, Temporality,
};

fn read(variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
    Settings::from_environment(&|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn http(exporter: &Exporter) -> &OtlpHttp {
    match exporter {
        Exporter::OtlpHttp(http) => http,
        other => panic!("{other:?}"),
    }
}

fn grpc(exporter: &Exporter) -> &OtlpGrpc {
    match exporter {
        Exporter::OtlpGrpc(grpc) => grpc,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_set() {
    let (settings, warnings) = read(&[]);
    assert!(warnings.is_empty());
    let traces = settings.traces.unwrap();
    assert_eq!(traces.provider.scope_name, "spangate");
    let service = (
        "service.name".to_owned(),
        "unknown_service:spangate".to_owned(),
    );
    assert!(traces.provider.resource.contains(&service));
    assert_eq!(
        traces.sampler,
        Sampler::ParentBased(ParentBased::new(Delegate::AlwaysOn))
    );
    let exporter = http(&traces.pipelines[0].exporter);
    assert_eq!(exporter.endpoint, "http://localhost:4318/v1/traces");
    assert_eq!(exporter.encoding, Encoding::Protobuf);
    let metrics = settings.metrics.unwrap();
    assert_eq!(
        http(&metrics.pipelines[0].exporter).endpoint,
        "http://localhost:4318/v1/metrics"
    );
    assert_eq!(metrics.pipelines[0].reader.interval_ms, 60_000);
    let logs = settings.logs.unwrap();
    assert_eq!(
        http(&logs.pipelines[0].exporter).endpoint,
        "http://localhost:4318/v1/logs"
    );
}

#[test]
fn a_signal_has_variables_of_its_own() {
    let (settings, warnings) = read(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all.example:9/base/"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://traces.example/as/it/is",
        ),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, d = e"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "own=1"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "none"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/cert"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key"),
    ]);
    assert_eq!(warnings, Vec::<String>::new());
    let (traces, metrics, logs) = (
        settings.traces.unwrap(),
        settings.metrics.unwrap(),
        settings.logs.unwrap(),
    );
    let exporter = http(&traces.pipelines[0].exporter);
    assert_eq!(exporter.endpoint, "http://traces.example/as/it/is");
    assert_eq!(exporter.headers.0, [("own".to_owned(), "1".to_owned())]);
    assert_eq!(
        (exporter.compression, exporter.timeout_ms),
        (Compression::Gzip, 2500)
    );
    let exporter = http(&metrics.pipelines[0].exporter);
    assert_eq!(exporter.endpoint, "https://all.example:9/base/v1/metrics");
    assert_eq!(exporter.encoding, Encoding::Json);
    assert_eq!(exporter.tls.ca, Some(Pem::Path("/ca".to_owned())));
    let exporter = grpc(&logs.pipelines[0].exporter);
    assert_eq!(exporter.endpoint, "https://all.example:9/base/");
    let headers = [("a", "b c"), ("d", "e")];
    assert_eq!(
        exporter.headers.0,
        headers.map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
    assert_eq!(exporter.compression, Compression::None);
}

#[test]
fn batches_samplers_and_metrics() {
    let (settings, warnings) = read(&[
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.1"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1000"),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "10"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
        (
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
            "LowMemory",
        ),
        (
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "base2_exponential_bucket_histogram",
        ),
        ("OTEL_LOGS_EXPORTER", "console"),
    ]);
    assert_eq!(warnings, Vec::<String>::new());
    let traces = settings.traces.unwrap();
    assert_eq!(
        traces.sampler,
        Sampler::ParentBased(ParentBased::new(Delegate::Ratio(0.1)))
    );
    let Processor::Batch(batch) = traces.pipelines[0].processor else {
        panic!()
    };
    assert_eq!(
        (
            batch.delay_ms,
            batch.queue_records_max,
            batch.batch_records_max
        ),
        (100, 1000, 1000)
    );
    let logs = settings.logs.unwrap();
    assert_eq!(
        logs.pipelines[0].exporter,
        Exporter::Ostream(Target::Stdout)
    );
    let Processor::Batch(batch) = logs.pipelines[0].processor else {
        panic!()
    };
    assert_eq!((batch.delay_ms, batch.batch_records_max), (1000, 10));
    let metrics = settings.metrics.unwrap();
    assert_eq!(metrics.pipelines[0].reader.interval_ms, 5000);
    assert_eq!(
        (metrics.temporality, metrics.histogram),
        (Temporality::Delta, Histogram::Exponential)
    );
}

#[test]
fn what_means_nothing_is_not_taken() {
    let (settings, warnings) = read(&[
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///run/x"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
    ]);
    assert_eq!(
        settings.traces.unwrap().pipelines[0].exporter,
        read(&[]).0.traces.unwrap().pipelines[0].exporter
    );
    assert!(settings.metrics.is_none() && settings.logs.is_none());
    let expected = [
        "OTEL_EXPORTER_OTLP_HEADERS is not taken: no list of key=value",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY need each other: neither is taken",
        "OTEL_EXPORTER_OTLP_TIMEOUT: 'soon' is not taken",
        "OTEL_EXPORTER_OTLP_ENDPOINT: 'unix:///run/x' is not taken: must begin with http:// or https://",
        "OTEL_TRACES_SAMPLER: 'sometimes' is not taken",
    ];
    assert_eq!(warnings, expected);
    assert_eq!(
        read(&[("OTEL_SDK_DISABLED", "TRUE")]).0,
        Settings::default()
    );
}

#[test]
fn a_bare_endpoint_of_grpc_is_tls() {
    let endpoint = |insecure: &str| {
        let (settings, warnings) = read(&[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_INSECURE", insecure),
        ]);
        assert_eq!(warnings, Vec::<String>::new());
        let traces = settings.traces.unwrap();
        grpc(&traces.pipelines[0].exporter).endpoint.clone()
    };
    assert_eq!(endpoint(""), "https://collector:4317");
    assert_eq!(endpoint("true"), "http://collector:4317");
}

#[test]
fn an_endpoint_may_be_a_collector_of_the_process() {
    let named = |variables: &[(&str, &str)]| {
        let (settings, warnings) = read(variables);
        assert!(warnings.is_empty(), "{warnings:?}");
        let named = settings.collectors();
        named
            .map(|(signal, one)| (signal, one.name.clone()))
            .collect::<Vec<_>>()
    };
    let all = named(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector://main"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ]);
    assert_eq!(all.len(), 3);
    let own = named(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector://main"),
    ]);
    assert_eq!(own, [(Signal::Traces, "main".to_owned())]);
    assert_eq!(
        named(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")]),
        [],
        "a host and a port"
    );
}
