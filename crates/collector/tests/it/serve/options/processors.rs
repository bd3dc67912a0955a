//! Options of processors that change, drop and keep records, from a file of settings to a file of records.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use serde_json::Value as Json;

use super::super::within_a_proxy_by;
use super::samplers::into_file;
use super::*;

fn text(value: &str) -> any_value::Value {
    any_value::Value::StringValue(value.into())
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// A span by its name, of this kind and with these attributes.
fn span(name: &str, kind: i32, attributes: Vec<KeyValue>) -> Span {
    Span {
        trace_id: vec![7; 16],
        span_id: vec![7; 8],
        name: name.into(),
        kind,
        attributes,
        ..Span::default()
    }
}

fn resource(
    attributes: &[(&str, &str)],
    (scope, version): (&str, &str),
    spans: Vec<Span>,
) -> ResourceSpans {
    let attributes = attributes.iter();
    let attributes = attributes.map(|(key, value)| attribute(key, text(value)));
    ResourceSpans {
        resource: Some(Resource {
            attributes: attributes.collect(),
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            scope: Some(InstrumentationScope {
                name: scope.into(),
                version: version.into(),
                ..InstrumentationScope::default()
            }),
            spans,
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

/// Three resources: a shop with three spans, a bank with one, and one that tells nothing.
fn spans() -> Bytes {
    let boom = Event {
        name: "boom".into(),
        ..Event::default()
    };
    let get = Span {
        events: vec![boom],
        ..span(
            "get",
            2,
            vec![attribute("n", any_value::Value::IntValue(5))],
        )
    };
    let put = span("put", 3, vec![attribute("s", text("abc"))]);
    let getter = span("getter", 1, vec![attribute("s", text("b"))]);
    let pay = span("pay", 2, vec![]);
    let none = span("none", 2, vec![]);
    let request = ExportTraceServiceRequest {
        resource_spans: vec![
            resource(
                &[("service.name", "shop"), ("zone", "a")],
                ("web", "1"),
                vec![get, put, getter],
            ),
            resource(
                &[("service.name", "bank"), ("zone", "b")],
                ("web", "2"),
                vec![pay],
            ),
            resource(&[], ("db", "1"), vec![none]),
        ],
    };
    request.encode_to_vec().into()
}

async fn take(collector: &Collector) -> Result<(), Refusal> {
    collector.of_proxy().take(Signal::Traces, spans()).await
}

/// What a processor makes of the spans, by their names.
async fn made(processor: &str) -> BTreeMap<String, Json> {
    let id = processor.split(':').next().expect("an id").to_owned();
    let (collector, file) = into_file(processor, &id);
    take(&collector).await.expect("they are taken");
    collector.end().await;
    let spans = file.spans().into_iter();
    spans
        .map(|span| (span["name"].as_str().unwrap_or_default().to_owned(), span))
        .collect()
}

/// The names of the spans that a processor leaves.
async fn left(processor: &str) -> Vec<String> {
    made(processor).await.into_keys().collect()
}

/// An attribute of a span.
fn value<'a>(span: &'a Json, key: &str) -> Option<&'a Json> {
    let attributes = span["attributes"].as_array()?;
    let own = attributes.iter().find(|one| one["key"] == key)?;
    Some(&own["value"])
}

/// The names of the spans that get an attribute.
async fn marked(options: &str) -> Vec<String> {
    let actions = "actions: [ { key: hit, value: 1, action: insert } ]";
    let made = made(&format!("attributes: {{ {actions}, {options} }}")).await;
    let marked = made
        .into_iter()
        .filter(|(_, span)| value(span, "hit").is_some());
    marked.map(|(name, _)| name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_match_is_by_all_that_its_options_say() {
    for (matching, expected) in [
        (
            "match_type: strict, services: [shop]",
            &["get", "getter", "put"][..],
        ),
        ("match_type: strict, span_names: [get]", &["get"]),
        ("match_type: regexp, span_names: [get]", &["get", "getter"]),
        (
            "match_type: strict, span_names: [get, pay], services: [bank]",
            &["pay"],
        ),
        (
            "match_type: strict, span_kinds: [SPAN_KIND_CLIENT]",
            &["put"],
        ),
        (
            "match_type: strict, attributes: [ { key: s } ]",
            &["getter", "put"],
        ),
        (
            "match_type: strict, attributes: [ { key: s, value: abc } ]",
            &["put"],
        ),
        (
            "match_type: strict, resources: [ { key: zone } ]",
            &["get", "getter", "pay", "put"],
        ),
        (
            "match_type: strict, resources: [ { key: zone, value: b } ]",
            &["pay"],
        ),
        (
            "match_type: strict, libraries: [ { name: web } ]",
            &["get", "getter", "pay", "put"],
        ),
        (
            "match_type: strict, libraries: [ { name: web, version: '2' } ]",
            &["pay"],
        ),
    ] {
        let all = ["get", "getter", "none", "pay", "put"];
        let others = all.iter().filter(|name| !expected.contains(name));
        let others: Vec<_> = others.copied().collect();
        let [include, exclude] =
            ["include", "exclude"].map(|key| format!("{key}: {{ {matching} }}"));
        assert_eq!(marked(&include).await, expected, "{include}");
        assert_eq!(marked(&exclude).await, others, "{exclude}");
        let kept = left(&format!("filter: {{ spans: {{ {include} }} }}")).await;
        assert_eq!(kept, expected, "{include}");
        let kept = left(&format!("filter: {{ spans: {{ {exclude} }} }}")).await;
        assert_eq!(kept, others, "{exclude}");
    }
}

#[tokio::test(start_paused = true)]
async fn attributes_have_other_types_and_names() {
    let made = made(
        "attributes: { actions: [ { key: n, action: convert, converted_type: string }, \
         { key: copy, from_attribute: n, action: insert } ] }",
    )
    .await;
    let five = serde_json::json!({ "stringValue": "5" });
    assert_eq!(value(&made["get"], "n"), Some(&five));
    assert_eq!(value(&made["get"], "copy"), Some(&five));
}

#[tokio::test(start_paused = true)]
async fn a_filter_drops_what_its_conditions_say() {
    for (options, expected) in [
        (
            "trace_conditions: ['span.name == \"get\"']",
            &["getter", "none", "pay", "put"][..],
        ),
        (
            "trace_conditions: [ { context: span, conditions: ['name == \"get\"', 'name == \"pay\"'] } ]",
            &["getter", "none", "put"],
        ),
        (
            "trace_conditions: [ { context: resource, conditions: ['attributes[\"zone\"] == \"a\"'] } ]",
            &["none", "pay"],
        ),
        (
            "traces: { resource: ['attributes[\"zone\"] == \"a\"'] }",
            &["none", "pay"],
        ),
        (
            "traces: { span: ['name == \"pay\"'] }",
            &["get", "getter", "none", "put"],
        ),
    ] {
        let kept = left(&format!("filter: {{ {options} }}")).await;
        assert_eq!(kept, expected, "{options}");
    }
    let events =
        |made: &BTreeMap<String, Json>| made["get"]["events"].as_array().map_or(0, Vec::len);
    let all = made("filter: { traces: { span: ['name == \"pay\"'] } }").await;
    let fewer = made("filter: { traces: { spanevent: ['name == \"boom\"'] } }").await;
    assert_eq!((events(&all), events(&fewer)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_passed_over_or_has_its_batch_refused() {
    let condition = "'Len(span.attributes[\"s\"]) == 3'";
    let statement = "'set(span.attributes[\"len\"], Len(span.attributes[\"s\"]))'";
    let filter = |mode: &str, group: &str| {
        format!(
            "filter: {{ {mode} trace_conditions: [ {{ context: span, {group} conditions: [{condition}] }} ] }}"
        )
    };
    let transform = |mode: &str, group: &str| {
        format!(
            "transform: {{ {mode} trace_statements: [ {{ context: span, {group} statements: [{statement}] }} ] }}"
        )
    };
    for (mode, group, is_taken) in [
        ("", "", true),
        ("error_mode: propagate,", "", false),
        ("error_mode: propagate,", "error_mode: silent,", true),
        ("error_mode: ignore,", "error_mode: propagate,", false),
    ] {
        for processor in [filter(mode, group), transform(mode, group)] {
            let id = processor.split(':').next().expect("an id").to_owned();
            let (collector, _file) = into_file(&processor, &id);
            let outcome = take(&collector).await;
            assert_eq!(outcome.is_ok(), is_taken, "{processor}: {outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn statements_are_of_groups_with_contexts_and_conditions() {
    let made = made(
        "transform: { trace_statements: [ \
           { context: span, conditions: ['name == \"get\"'], statements: ['set(attributes[\"own\"], name)'] }, \
           { context: span, statements: ['set(cache[\"n\"], attributes[\"n\"]) where name == \"get\"'], shared_cache: true }, \
           { context: span, statements: ['set(attributes[\"shared\"], cache[\"n\"])'], shared_cache: true } ] }",
    )
    .await;
    let with = |key: &str| -> Vec<&str> {
        let with = made.iter().filter(|(_, span)| value(span, key).is_some());
        with.map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(with("own"), ["get"]);
    assert_eq!(with("shared"), ["get", "getter", "none", "pay", "put"]);
}

/// A collector with a sampler of traces and one of logs before files.
fn sampling(options: &str) -> (Collector, [TempFile; 2]) {
    let files = [TempFile::new(), TempFile::new()];
    let [spans, logs] = files.each_ref().map(|file| file.0.display());
    let collector = within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ probabilistic_sampler: {{ {options} }} }}\n\
         exporters: {{ file/spans: {{ path: '{spans}' }}, file/logs: {{ path: '{logs}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [probabilistic_sampler], exporters: [file/spans] }}, \
         logs: {{ receivers: [proxy], processors: [probabilistic_sampler], exporters: [file/logs] }} }} }}"
    ));
    (collector, files)
}

/// The spans that are kept of a hundred, as their numbers and what their tracestates say.
async fn sampled(options: &str, state: &str) -> BTreeMap<u8, String> {
    let (collector, [spans, _]) = sampling(options);
    let numbers = 0..100_u8;
    let all = numbers.map(|number| Span {
        trace_id: [&[number; 9][..], &[number.wrapping_mul(97); 7]].concat(),
        name: number.to_string(),
        trace_state: state.into(),
        ..span("", 1, vec![])
    });
    let request = ExportTraceServiceRequest {
        resource_spans: vec![resource(&[], ("", ""), all.collect())],
    };
    let body = request.encode_to_vec().into();
    let outcome = collector.of_proxy().take(Signal::Traces, body).await;
    outcome.expect("they are taken");
    collector.end().await;
    let kept = spans.spans().into_iter().map(|span| {
        let name = span["name"].as_str().expect("a name");
        let state = span["traceState"].as_str().unwrap_or_default();
        (name.parse().expect("a number"), state.to_owned())
    });
    kept.collect()
}

#[tokio::test(start_paused = true)]
async fn a_share_of_spans_is_kept_as_the_settings_say() {
    let seed = "mode: hash_seed, sampling_percentage: 50";
    let half = sampled(seed, "").await;
    assert!((25..75).contains(&half.len()), "{}", half.len());
    let other = sampled(&format!("{seed}, hash_seed: 22"), "").await;
    assert!(!half.keys().eq(other.keys()));
    let few = sampled("mode: hash_seed, sampling_percentage: 10", "").await;
    assert!(few.len() < half.len() && few.keys().all(|kept| half.contains_key(kept)));
    // By the identifiers alone others are kept.
    let third = "mode: equalizing, sampling_percentage: 33";
    let equal = sampled(third, "").await;
    assert!(
        equal.values().all(|state| state == "ot=th:ab85"),
        "{equal:?}"
    );
    let coarse = sampled(&format!("{third}, sampling_precision: 2"), "").await;
    assert!(
        coarse.values().all(|state| state == "ot=th:ac"),
        "{coarse:?}"
    );
    // A state that makes no sense.
    let closed = sampled(seed, "ot=th:x").await;
    let open = sampled(&format!("{seed}, fail_closed: false"), "ot=th:x").await;
    assert_eq!((closed.len(), open.len()), (0, 100));
}

/// The numbers of the log records that are kept of a hundred, all of one trace.
async fn logged(options: &str) -> Vec<u8> {
    let (collector, [_, logs]) = sampling(options);
    let records = (0..100_u8).map(|number| LogRecord {
        trace_id: vec![7; 16],
        severity_number: number.into(),
        attributes: vec![
            attribute("key", text(&number.to_string())),
            attribute(
                "priority",
                any_value::Value::IntValue(i64::from(number) % 2 * 100),
            ),
        ],
        ..LogRecord::default()
    });
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: records.collect(),
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let body = request.encode_to_vec().into();
    let outcome = collector.of_proxy().take(Signal::Logs, body).await;
    outcome.expect("they are taken");
    collector.end().await;
    let lines = std::fs::read_to_string(&logs.0).unwrap_or_default();
    let mut kept = Vec::new();
    for line in lines.lines() {
        let line: Json = serde_json::from_str(line).expect("JSON");
        let records = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array();
        for record in records.into_iter().flatten() {
            kept.push(record["severityNumber"].as_u64().unwrap_or_default() as u8);
        }
    }
    kept
}

#[tokio::test(start_paused = true)]
async fn a_share_of_log_records_is_kept_as_the_settings_say() {
    let half = "sampling_percentage: 50";
    // All have the same trace.
    let whole = logged(half).await.len();
    assert!(whole == 0 || whole == 100, "{whole}");
    let by_key = format!("{half}, attribute_source: record, from_attribute: key");
    let kept = logged(&by_key).await;
    assert!((25..75).contains(&kept.len()), "{kept:?}");
    let odd: Vec<_> = (0..100).filter(|number| number % 2 == 1).collect();
    let priority = "sampling_percentage: 0, sampling_priority: priority";
    assert_eq!(logged(priority).await, odd);
}

/// The attributes of the resources that a detector leaves, by `service.name`.
async fn detected(options: &str) -> Vec<BTreeMap<String, String>> {
    let (collector, file) = into_file(
        &format!("resourcedetection: {{ {options} }}"),
        "resourcedetection",
    );
    take(&collector).await.expect("they are taken");
    collector.end().await;
    let lines = std::fs::read_to_string(&file.0).unwrap_or_default();
    let line: Json = serde_json::from_str(&lines).expect("a line");
    let resources = line["resourceSpans"].as_array().expect("resources").iter();
    resources
        .map(|one| {
            let attributes = one["resource"]["attributes"].as_array();
            let attributes = attributes.into_iter().flatten();
            attributes
                .map(|one| {
                    let key = one["key"].as_str().expect("a key").to_owned();
                    (key, one["value"].to_string())
                })
                .collect()
        })
        .collect()
}

/// Attributes of the system, and whether they are there where nothing is written.
const OF_SYSTEM: [(&str, bool); 17] = [
    ("host.name", true),
    ("os.type", true),
    ("host.arch", false),
    ("host.id", false),
    ("host.ip", false),
    ("host.mac", false),
    ("host.interface", false),
    ("os.name", false),
    ("os.version", false),
    ("os.build.id", false),
    ("os.description", false),
    ("host.cpu.vendor.id", false),
    ("host.cpu.family", false),
    ("host.cpu.model.id", false),
    ("host.cpu.model.name", false),
    ("host.cpu.stepping", false),
    ("host.cpu.cache.l2.size", false),
];

/// Whether this machine tells so.
fn is_known(name: &str) -> bool {
    let has = |file: &str, text: &str| {
        let found = std::fs::read_to_string(file).unwrap_or_default();
        found.lines().any(|line| line.starts_with(text))
    };
    match name {
        "host.id" => has("/etc/machine-id", ""),
        "os.name" => has("/etc/os-release", "NAME="),
        "os.version" => has("/etc/os-release", "VERSION_ID="),
        "os.description" => has("/etc/os-release", "PRETTY_NAME="),
        "host.cpu.vendor.id" => has("/proc/cpuinfo", "vendor_id"),
        "host.cpu.family" => has("/proc/cpuinfo", "cpu family"),
        "host.cpu.model.id" => has("/proc/cpuinfo", "model\t"),
        "host.cpu.model.name" => has("/proc/cpuinfo", "model name"),
        "host.cpu.stepping" => has("/proc/cpuinfo", "stepping"),
        "host.cpu.cache.l2.size" => has("/proc/cpuinfo", "cache size"),
        _ => true,
    }
}

#[tokio::test(start_paused = true)]
async fn the_system_tells_what_is_asked_for() {
    let asked = |wanted: &dyn Fn(&str, bool) -> bool| {
        let attributes = OF_SYSTEM.iter().map(|(name, at_first)| {
            format!("{name}: {{ enabled: {} }}, ", wanted(name, *at_first))
        });
        let attributes: String = attributes.collect();
        format!("detectors: [system], system: {{ resource_attributes: {{ {attributes} }} }}")
    };
    let of_none = async |options: &str| detected(options).await.pop().expect("a resource");
    let first: Vec<_> = of_none("detectors: [system]").await.into_keys().collect();
    assert_eq!(first, ["host.name", "os.type"]);
    // Names of hosts that are asked for over the network are not known, and nothing is told without one.
    let nobody = "detectors: [system], system: { hostname_sources: [cname] }";
    assert!(of_none(nobody).await.is_empty());
    // The others, and none of those.
    let others: Vec<_> = of_none(&asked(&|_, at_first| !at_first))
        .await
        .into_keys()
        .collect();
    let known = OF_SYSTEM
        .iter()
        .filter(|(name, at_first)| !at_first && is_known(name));
    let mut known: Vec<_> = known.map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(others, known);
}

#[tokio::test(start_paused = true)]
async fn what_is_detected_replaces_what_was_there_or_does_not() {
    let variable = "OTEL_RESOURCE_ATTRIBUTES";
    if std::env::var_os(variable).is_none() {
        // The variables of a process are set at its start.
        let name =
            "serve::options::processors::what_is_detected_replaces_what_was_there_or_does_not";
        let own = std::env::current_exe().expect("a program");
        let run = std::process::Command::new(own)
            .args(["--exact", name])
            .env(variable, "zone=env,more=env,os.type=env")
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let env = r#"{"stringValue":"env"}"#;
    let zone = async |options: &str| detected(options).await[0]["zone"].clone();
    assert_eq!(zone("").await, env);
    assert_eq!(zone("override: false").await, r#"{"stringValue":"a"}"#);
    let keys = async |options: &str| -> Vec<String> {
        detected(options)
            .await
            .pop()
            .expect("a resource")
            .into_keys()
            .collect()
    };
    assert_eq!(keys("").await, ["more", "os.type", "zone"]);
    assert_eq!(keys("attributes: [zone]").await, ["zone"]);
    assert_eq!(
        keys("env: { attributes: { included: ['*o*e'] } }").await,
        ["more", "os.type", "zone"]
    );
    assert_eq!(
        keys("env: { attributes: { included: [z*] } }").await,
        ["zone"]
    );
    assert_eq!(
        keys("env: { attributes: { excluded: [z*, os.*] } }").await,
        ["more"]
    );
    // The first detector that knows an attribute counts.
    let of = async |options: &str| detected(options).await[2]["os.type"].clone();
    assert_eq!(of("detectors: [env, system]").await, env);
    assert_ne!(of("detectors: [system, env]").await, env);
}
