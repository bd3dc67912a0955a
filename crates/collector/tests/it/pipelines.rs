//! Pipelines: what is started, what is listed, what is refused.

use spangate_collector::config::{ComponentId, Options, Signal};

use crate::{errors, good, load_files};

/// A file as many are: traces that are sampled, metrics with parts that we lack, logs that only
/// pass.
const FILE: &str = "
receivers:
  otlp:
    protocols: { grpc: , http: { endpoint: 0.0.0.0:4318 } }
  statsd:
    config: { scrape_configs: [ { job_name: otel } ] }
processors:
  batch: {}
  memory_limiter: { check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 25 }
  resource: { attributes: [ { key: env, value: prod, action: upsert } ] }
exporters:
  debug:
  otlp/traces: { endpoint: tempo:4317, tls: { insecure: true } }
  otlphttp: { endpoint: http://loki:3100/otlp/ }
  elasticsearch: { endpoint: http://search:9200 }
extensions:
  health_check:
  pprof:
service:
  extensions: [health_check]
  pipelines:
    traces: { receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp/traces, debug] }
    metrics: { receivers: [otlp, statsd], processors: [batch], exporters: [elasticsearch] }
    logs/app: { receivers: [otlp], processors: [resource, batch], exporters: [otlphttp] }
";

fn with(options: &Options, text: &str) -> Result<Vec<String>, Vec<String>> {
    let config = load_files(&[text], &[], options)?;
    Ok(config
        .pipelines
        .iter()
        .map(|pipeline| pipeline.id.to_string())
        .collect())
}

fn dropping(parts: &[&str]) -> Options {
    Options {
        drop_parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        ..Options::default()
    }
}

#[test]
fn other_signals_with_a_missing_part_are_listed() {
    let (config, warnings) = good(FILE);
    let ids: Vec<String> = config
        .pipelines
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    assert_eq!(ids, ["traces", "logs/app"]);
    let listed: Vec<String> = config.not_started.iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        ["a.yaml:23:34: the pipeline 'metrics' is not started: its receiver 'statsd' is of the type 'statsd', which is not built in".replace(":34", "")]
    );
    let part = |name: &str| format!("a.yaml:23:{name}, which is not built in");
    assert_eq!(
        warnings,
        [
            "a.yaml:18:3: extensions::pprof: is not in service::extensions and is not started"
                .to_owned(),
            part(
                "34: service::pipelines::metrics: is not started: its receiver 'statsd' is of the type 'statsd'"
            ),
            part(
                "76: service::pipelines::metrics: is not started: its exporter 'elasticsearch' is of the type 'elasticsearch'"
            ),
        ]
    );
    // What is in no started pipeline is not there.
    let ids: Vec<String> = config
        .exporters
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    assert_eq!(ids, ["debug", "otlp/traces", "otlphttp"]);
    assert!(
        config
            .extension(&ComponentId::parse("health_check").expect("an id"))
            .is_some()
    );
    assert_eq!(config.extensions.len(), 1);
}

#[test]
fn strict_refuses_them() {
    let strict = Options {
        strict: true,
        ..Options::default()
    };
    let found = with(&strict, FILE).unwrap_err();
    assert_eq!(found.len(), 2);
    let error = "a.yaml:23:34: service::pipelines::metrics: is not started: its receiver 'statsd' is of the type 'statsd', which is not built in";
    assert_eq!(found[0], error);
}

#[test]
fn traces_are_never_in_part() {
    let text = FILE.replace(
        "processors: [memory_limiter, batch]",
        "processors: [geoip, batch]",
    );
    let text = text.replace("  batch: {}", "  batch: {}\n  geoip: {}");
    let error = "a.yaml:23:47: service::pipelines::traces: the processor 'geoip' is of the type 'geoip', which is not built in ('--drop-part geoip' leaves it out)";
    assert_eq!(with(&Options::default(), &text).unwrap_err(), [error]);
    assert_eq!(
        with(&dropping(&["geoip"]), &text).unwrap(),
        ["traces", "logs/app"]
    );
    let found = with(&dropping(&["exporter:geoip"]), &text).unwrap_err();
    assert_eq!(
        found[0],
        "--drop-part names 'exporter:geoip', which is not defined"
    );
    let found = with(&dropping(&["processor:geoip"]), &text).unwrap();
    assert_eq!(found, ["traces", "logs/app"]);
}

const CONNECTED: &str = "
receivers: { otlp: { protocols: { grpc: } } }
connectors: { slowsql: { namespace: a }, forward: , forward/two: }
exporters: { nop: }
service:
  pipelines:
    traces: { receivers: [otlp], exporters: [nop, slowsql] }
    metrics: { receivers: [slowsql], exporters: [nop] }
";

#[test]
fn a_connector_that_we_lack_can_be_left_out() {
    let found = with(&Options::default(), CONNECTED).unwrap_err();
    let error = "a.yaml:7:51: service::pipelines::traces: the exporter 'slowsql' is of the type 'slowsql', which is not built in ('--drop-part slowsql' leaves it out)";
    assert_eq!(found, [error]);
    // The pipeline that it would begin has no receiver then.
    let found = with(&dropping(&["slowsql"]), CONNECTED).unwrap();
    assert_eq!(found, ["traces"]);
}

#[test]
fn connectors_join_pipelines() {
    let text = |traces: &str, second: &str| {
        let start = CONNECTED.find("    traces").expect("it is there");
        format!(
            "{}    traces: {{ {traces} }}\n    traces/two: {{ {second} }}\n",
            &CONNECTED[..start]
        )
    };
    let joined = text(
        "receivers: [otlp], exporters: [forward]",
        "receivers: [forward], exporters: [nop]",
    );
    assert_eq!(
        with(&Options::default(), &joined).unwrap(),
        ["traces", "traces/two"]
    );
    let cases = [
        (
            text(
                "receivers: [otlp], exporters: [forward]",
                "receivers: [otlp], exporters: [nop]",
            ),
            "a.yaml:7:5: service::pipelines::traces: the connector 'forward' begins no started pipeline of traces",
        ),
        (
            text(
                "receivers: [otlp], exporters: [nop]",
                "receivers: [forward], exporters: [nop]",
            ),
            "a.yaml:8:5: service::pipelines::traces/two: the connector 'forward' ends no started pipeline of traces",
        ),
        (
            text(
                "receivers: [otlp, forward], exporters: [forward/two]",
                "receivers: [forward/two], exporters: [forward]",
            ),
            "a.yaml:7:5: service::pipelines::traces: its data go in a circle of connectors",
        ),
    ];
    for (text, error) in cases {
        assert_eq!(with(&Options::default(), &text).unwrap_err(), [error]);
    }
}

/// What stands under `pipelines`, and the errors of a connector's signals.
const PAIRS: &[(&str, &[&str])] = &[
    (
        "traces: { receivers: [otlp], exporters: [count] }",
        &[
            "a.yaml:6:5: service::pipelines::traces: the connector 'count' begins no started pipeline of metrics",
        ],
    ),
    (
        "metrics: { receivers: [count], exporters: [nop] }",
        &[
            "a.yaml:6:5: service::pipelines::metrics: the connector 'count' ends no started pipeline of traces or metrics or logs",
        ],
    ),
    (
        "traces: { receivers: [otlp], exporters: [count] }\n    logs: { receivers: [count], exporters: [nop] }",
        &[
            "a.yaml:6:5: service::pipelines::traces: the connector 'count' is used as exporter in traces pipeline but not used in any supported receiver pipeline",
            "a.yaml:7:5: service::pipelines::logs: the connector 'count' is used as receiver in logs pipeline but not used in any supported exporter pipeline",
        ],
    ),
    (
        "traces: { receivers: [otlp], exporters: [forward] }\n    logs: { receivers: [forward], exporters: [nop] }",
        &[
            "a.yaml:6:5: service::pipelines::traces: the connector 'forward' is used as exporter in traces pipeline but not used in any supported receiver pipeline",
            "a.yaml:7:5: service::pipelines::logs: the connector 'forward' is used as receiver in logs pipeline but not used in any supported exporter pipeline",
        ],
    ),
    (
        "metrics: { receivers: [otlp, count], exporters: [count] }",
        &["a.yaml:6:5: service::pipelines::metrics: its data go in a circle of connectors"],
    ),
];

#[test]
fn connectors_join_the_signals_that_they_can() {
    let text = |pipelines: &str| {
        format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\nconnectors: {{ count: , forward: }}\nexporters: {{ nop: }}\nservice:\n  pipelines:\n    {pipelines}\n"
        )
    };
    for (pipelines, expected) in PAIRS {
        assert_eq!(errors(&text(pipelines)), *expected, "{pipelines}");
    }
    // One use that is supported is enough for each side.
    let joined = text(
        "traces: { receivers: [otlp], exporters: [count, forward] }
    logs: { receivers: [otlp], exporters: [count] }
    traces/two: { receivers: [forward], exporters: [nop] }
    metrics: { receivers: [count], exporters: [nop] }",
    );
    let found = with(&Options::default(), &joined).unwrap();
    assert_eq!(found, ["traces", "logs", "traces/two", "metrics"]);
}

#[test]
fn counts_that_are_wrong() {
    let cases = [
        (
            "metrics: { m: { attributes: [ { key: a } ] } }",
            "metrics[m]::attributes: metrics attributes not supported: metric 'm'",
        ),
        (
            "logs: { m: { conditions: ['span.name == \"a\"'] } }",
            "logs[m]::conditions: 'span.name == \"a\"' at character 1",
        ),
        (
            "spans: { m: { conditions: ['spam == 1'] } }",
            "spans[m]::conditions: 'spam == 1' at character 1",
        ),
        (
            "spans: { m: { attributes: [ { key: '' } ] } }",
            "spans[m]::attributes[0]::key: attribute key missing",
        ),
        (
            "spans: { m: { attributes: [ { key: a, default_value: true } ] } }",
            "spans[m]::attributes[0]::default_value: must be a text or a number of 64 bits",
        ),
        (
            "spans: { m: { atributes: } }",
            "spans[m]::atributes: unknown key (did you mean 'attributes'?)",
        ),
        ("spans: [ m ]", "spans: must be a map of names, not a list"),
    ];
    for (options, error) in cases {
        let text = format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\nexporters: {{ nop: }}\nconnectors: {{ count: {{ {options} }} }}\n\
             service: {{ pipelines: {{ traces: {{ receivers: [otlp], exporters: [count] }}, metrics: {{ receivers: [count], exporters: [nop] }} }} }}\n"
        );
        let found = errors(&text);
        let wanted = format!("connectors::count::{error}");
        assert!(found[0].contains(&wanted), "{found:?}\n{wanted}");
    }
}

#[test]
fn metrics_of_spans_that_are_wrong() {
    let cases = [
        (
            "dimensions: [ { name: span.name } ]",
            "dimensions[0]::name: duplicate dimension name span.name",
        ),
        (
            "dimensions: [ { name: a } ], histogram: { dimensions: [ { name: a } ] }",
            "histogram::dimensions[0]::name: duplicate dimension name a",
        ),
        (
            "calls_dimensions: [ {} ]",
            "calls_dimensions[0]::name: must name an attribute",
        ),
        (
            "histogram: { explicit: , exponential: }",
            "histogram: use either `explicit` or `exponential` buckets histogram",
        ),
        (
            "histogram: { explicit: { buckets: [2s, 1s] } }",
            "histogram::explicit::buckets: must rise",
        ),
        (
            "histogram: { explicit: { buckets: 1s } }",
            "histogram::explicit::buckets: must be a list of durations, not '1s'",
        ),
        (
            "events: { enabled: true }",
            "events::dimensions: no dimensions configured for events",
        ),
        (
            "metrics_flush_interval: 0",
            "metrics_flush_interval: must be more than 0",
        ),
    ];
    let text = |options: &str| {
        format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\nexporters: {{ nop: }}\nconnectors: {{ span_metrics: {{ {options} }} }}\n\
             service: {{ pipelines: {{ traces: {{ receivers: [otlp], exporters: [span_metrics] }}, metrics: {{ receivers: [span_metrics], exporters: [nop] }} }} }}\n"
        )
    };
    for (options, error) in cases {
        let found = errors(&text(options));
        let wanted = format!("connectors::span_metrics::{error}");
        assert!(found[0].ends_with(&wanted), "{found:?}\n{wanted}");
    }
    for (options, error) in [
        (
            "latency_histogram_buckets: [1s], exponential_histogram_max_size: 5",
            ": use either `latency_histogram_buckets` or `exponential_histogram_max_size`",
        ),
        (
            "latency_histogram_buckets: [2s, 1s]",
            "::latency_histogram_buckets: must rise",
        ),
    ] {
        let found = errors(&text(options).replace("span_metrics", "servicegraph"));
        let wanted = format!("connectors::servicegraph{error}");
        assert!(found[0].ends_with(&wanted), "{found:?}\n{wanted}");
    }
    let exceptions = text("dimensions: [ { name: a }, { name: a } ]");
    let found = errors(&exceptions.replace("span_metrics", "exceptions"));
    let wanted = "connectors::exceptions::dimensions[1]::name: duplicate dimension name a";
    assert!(found[0].ends_with(wanted), "{found:?}");
    let (_, warnings) = good(&text("aggregation_temporality: DELTA"));
    let said =
        "aggregation_temporality: is not known: it is taken for AGGREGATION_TEMPORALITY_CUMULATIVE";
    assert!(warnings[0].ends_with(said), "{warnings:?}");
}

/// What stands under `traces`, and the error that it is.
const PIPELINES: &[(&str, &str)] = &[
    (
        "",
        "a.yaml:5:5: service::pipelines::traces: has no receiver",
    ),
    (
        "{ receivers: [otlp] }",
        "a.yaml:5:5: service::pipelines::traces: has no exporter",
    ),
    (
        "{ receivers: [otlp], exporters: [otpl] }",
        "a.yaml:5:46: service::pipelines::traces: the exporter 'otpl' is not defined (did you mean 'otlp'?)",
    ),
    (
        "{ receivers: [otlp], processor: [], exporters: [otlp] }",
        "a.yaml:5:34: service::pipelines::traces::processor: unknown key (did you mean 'processors'?)",
    ),
    (
        "{ receivers: [otlp], processors: [batch, batch], exporters: [otlp] }",
        "a.yaml:5:54: service::pipelines::traces: the processor 'batch' is there twice",
    ),
    (
        "{ receivers: [otlp], processors: [otlp/], exporters: [otlp] }",
        "a.yaml:5:47: service::pipelines::traces: 'otlp/' is no id: a name must follow '/'",
    ),
];

#[test]
fn pipelines_that_are_wrong() {
    for (written, error) in PIPELINES {
        let text = format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\nprocessors: {{ batch: }}\nexporters: {{ otlp: {{ endpoint: a:1 }} }}\nservice: {{ pipelines: {{\n    traces: {written}\n }} }}\n"
        );
        assert_eq!(errors(&text)[0], *error, "{text}");
    }
}

#[test]
fn signals_have_their_parts() {
    let text = |pipelines: &str| {
        format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\nprocessors: {{ groupbytrace: }}\nexporters: {{ otlphttp: {{ traces_endpoint: http://a/t }} }}\nservice:\n  pipelines:\n{pipelines}"
        )
    };
    let cases = [
        (
            "    metrics: { receivers: [otlp], processors: [groupbytrace], exporters: [otlphttp] }",
            "a.yaml:6:48: service::pipelines::metrics: the processor 'groupbytrace' takes no metrics, but traces",
        ),
        (
            "    logs: { receivers: [otlp], exporters: [otlphttp] }",
            "a.yaml:6:44: service::pipelines::logs: the exporter 'otlphttp' has neither 'endpoint' nor 'logs_endpoint'",
        ),
        (
            "    trace: { receivers: [otlp], exporters: [otlphttp] }",
            "a.yaml:6:5: service::pipelines::trace: 'trace' is no signal: traces, metrics and logs are (did you mean 'traces'?)",
        ),
        (
            "    profiles: { receivers: [otlp], exporters: [otlphttp] }",
            "a.yaml:6:5: service::pipelines: none of them can be started",
        ),
    ];
    for (pipelines, error) in cases {
        assert_eq!(errors(&text(pipelines))[0], error, "{pipelines}");
    }
}

#[test]
fn services_that_are_wrong() {
    let cases = [
        (
            "receivers: { otlp: { protocols: { grpc: } } }",
            "a.yaml:1:1: service: is missing: nothing would run",
        ),
        (
            "service: { pipelines: }",
            "a.yaml:1:1: service::pipelines: there are none: nothing would run",
        ),
        (
            "service: { pipelines: [ a ] }",
            "a.yaml:1:23: service::pipelines: must be a map of pipelines",
        ),
        (
            "receivers: [ otlp ]\nservice: { pipelines: }",
            "a.yaml:1:12: receivers: must be a map of components",
        ),
        (
            "service: { extensions: [health_check], pipelines: }",
            "a.yaml:1:25: service::extensions: the extension 'health_check' is not defined under 'extensions'",
        ),
    ];
    for (text, error) in cases {
        let found = errors(text);
        assert!(found.iter().any(|one| one == error), "{found:#?}\n{error}");
    }
}

#[test]
fn what_a_proxy_records_has_its_pipelines() {
    let fed = |receivers: &str, first: &str, second: &str| {
        let text = format!(
            "receivers: {{ {receivers} }}
exporters: {{ nop: }}
service:
  pipelines:
    traces: {{ receivers: [{first}], exporters: [nop] }}
    traces/2: {{ receivers: [{second}], exporters: [nop] }}
    logs: {{ receivers: [{first}], exporters: [nop] }}"
        );
        let (config, _) = good(&text);
        let fed = Signal::ALL.map(|signal| config.pipelines_of_proxy(signal));
        fed.map(|places| places.iter().map(usize::to_string).collect::<String>())
    };
    let otlp = "otlp/b: { protocols: { grpc: } }, otlp/a: { protocols: { http: } }";
    assert_eq!(fed(otlp, "otlp/b", "otlp/a"), ["0", "", "2"]);
    assert_eq!(fed(otlp, "otlp/a, otlp/b", "otlp/b"), ["01", "", "2"]);
    let with = format!("{otlp}, proxy: , proxy/x: ");
    assert_eq!(fed(&with, "otlp/b", "proxy"), ["1", "", ""]);
    assert_eq!(fed(&with, "proxy/x, otlp/a", "proxy"), ["01", "", "2"]);
    assert_eq!(fed("nop: ", "nop", "nop"), ["", "", ""]);
}
