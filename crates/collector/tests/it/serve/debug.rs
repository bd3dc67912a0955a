//! The exporter `debug`, held against what a real Collector wrote of the same requests.

use super::*;

/// Requests in JSON that have every field, and what an OpenTelemetry Collector 0.160.0 wrote of
/// them to `output_paths`.
const REQUESTS: [(&str, &str); 3] = [
    ("traces", include_str!("debug/traces.json")),
    ("metrics", include_str!("debug/metrics.json")),
    ("logs", include_str!("debug/logs.json")),
];
const BASIC: &str = include_str!("debug/basic.txt");
const NORMAL: &str = include_str!("debug/normal.txt");
const DETAILED: &str = include_str!("debug/detailed.txt");

/// A collector of all signals with these exporters.
fn debugging(exporters: &str, names: &str) -> (Collector, Arc<Mutex<Vec<String>>>) {
    let pipeline = format!("{{ receivers: [otlp], exporters: [{names}] }}");
    start_logged(
        Level::Info,
        &format!(
            "receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
             exporters: {{ {exporters} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {pipeline}, metrics: {pipeline}, logs: {pipeline} }} }}"
        ),
    )
}

/// Sends all requests, each once the one before was told.
async fn send_all(collector: &Collector) {
    let at = address(collector, "otlp http");
    for (place, (signal, body)) in REQUESTS.into_iter().enumerate() {
        let path = format!("/v1/{signal}");
        let status = post_as(&at, &path, "application/json", body.as_bytes()).await;
        assert_eq!(status, 200);
        let account = &collector.view.accounts[place];
        until("it is told", || account.balance().exported > 0).await;
    }
}

#[tokio::test]
async fn each_verbosity_writes_what_the_collector_writes() {
    for (verbosity, wanted) in [("basic", BASIC), ("normal", NORMAL), ("detailed", DETAILED)] {
        let file = TempFile::new();
        let exporter = format!(
            "debug: {{ verbosity: {verbosity}, use_internal_logger: false, output_paths: ['{}'] }}",
            file.0.display()
        );
        let (collector, _) = debugging(&exporter, "debug");
        send_all(&collector).await;
        collector.end().await;
        let written = std::fs::read_to_string(&file.0).expect("a file");
        for (own, wanted) in written.lines().zip(wanted.lines()) {
            assert_eq!(own, wanted, "{verbosity}:\n{written}");
        }
        assert_eq!(written, wanted, "{verbosity}");
    }
}

#[tokio::test]
async fn in_the_own_log_lines_name_the_exporter() {
    let (collector, lines) = debugging("debug/a: { verbosity: normal }", "debug/a");
    send_all(&collector).await;
    collector.end().await;
    let lines = lines.lock().expect("no panic");
    let own = "\"otelcol.component.id\": \"debug/a\", \"otelcol.component.kind\": \"exporter\", \"otelcol.signal\": \"traces\"";
    assert_eq!(
        lines[0],
        format!("Traces\t{{{own}, \"resource spans\": 2, \"spans\": 3}}")
    );
    let begin = "ResourceTraces #0 [https://r] s=x y i=7\nScopeTraces #0 lib@1.0";
    assert!(lines[1].starts_with(begin), "{}", lines[1]);
    assert!(
        lines[1].ends_with(&format!("\n\t{{{own}}}")),
        "{}",
        lines[1]
    );
    assert_eq!(lines.len(), 6, "{lines:?}");
}

#[tokio::test]
async fn of_many_batches_some_are_told() {
    let told = told("sampling_initial: 1, sampling_thereafter: 0").await;
    // One a second, however slow this machine is.
    assert!((1..20).contains(&told), "{told}");
    // The first ten of each second, and no other.
    let told = self::told("sampling_initial: 10, sampling_thereafter: 0").await;
    assert!((10..=20).contains(&told), "{told}");
}

/// The lines that an exporter with these options tells of twenty batches.
async fn told(options: &str) -> usize {
    let exporter = format!("debug: {{ {options} }}");
    let (collector, lines) = debugging(&exporter, "debug");
    let at = address(&collector, "otlp http");
    for number in 0..20 {
        let path = "/v1/traces";
        let status = post_as(&at, path, "application/x-protobuf", &request(number, 1)).await;
        assert_eq!(status, 200);
    }
    assert_eq!(collector.end().await[0].exported, 40);
    lines.lock().expect("no panic").len()
}

#[tokio::test]
async fn the_old_level_is_a_verbosity() {
    for (options, wanted) in [
        ("loglevel: debug", DETAILED),
        ("loglevel: info", NORMAL),
        ("loglevel: warn", BASIC),
    ] {
        let file = TempFile::new();
        let exporter = format!(
            "logging: {{ {options}, use_internal_logger: false, output_paths: ['{}'] }}",
            file.0.display()
        );
        let (collector, _) = debugging(&exporter, "logging");
        send_all(&collector).await;
        collector.end().await;
        let written = std::fs::read_to_string(&file.0).expect("a file");
        assert_eq!(written, wanted, "{options}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_told_at_the_start() {
    let config = load(
        "receivers: { nop: }\nexporters: { debug: { use_internal_logger: false, output_paths: [/nowhere/at/all] } }\n\
         service: { telemetry: { metrics: { level: none } }, pipelines: { traces: { receivers: [nop], exporters: [debug] } } }",
    );
    let Err(error) = Collector::start(&config, setup()) else {
        panic!("it started");
    };
    assert!(
        error.0.contains("output_paths: /nowhere/at/all: "),
        "{}",
        error.0
    );
}
