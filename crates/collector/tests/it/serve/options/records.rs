//! Options of `transform` and `filter` for metrics and logs, from a file of settings to a file of
//! records.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberValue;
use opentelemetry_proto::tonic::metrics::v1::{
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use serde_json::Value as Json;

use super::processors::{attribute, text};
use super::*;

fn resource(zone: &str) -> Option<Resource> {
    Some(Resource {
        attributes: vec![attribute("zone", text(zone))],
        ..Resource::default()
    })
}

/// Two resources: one with two log records, one with one.
fn logs() -> Bytes {
    let record = |body: &str, severity_number, severity_text: &str| LogRecord {
        body: Some(AnyValue {
            value: Some(text(body)),
        }),
        severity_number,
        severity_text: severity_text.into(),
        attributes: vec![attribute(
            "size",
            any_value::Value::IntValue(body.len() as i64),
        )],
        ..LogRecord::default()
    };
    let logs = |zone, records| ResourceLogs {
        resource: resource(zone),
        scope_logs: vec![ScopeLogs {
            log_records: records,
            ..ScopeLogs::default()
        }],
        ..ResourceLogs::default()
    };
    let request = ExportLogsServiceRequest {
        resource_logs: vec![
            logs(
                "a",
                vec![record("hello", 9, "INFO"), record("boom", 17, "ERROR")],
            ),
            logs("b", vec![record("quiet", 0, "")]),
        ],
    };
    request.encode_to_vec().into()
}

/// Two resources: one with two metrics, one with one. The first metric has two data points.
fn metrics() -> Bytes {
    let point = |number| NumberDataPoint {
        value: Some(NumberValue::AsInt(number)),
        ..NumberDataPoint::default()
    };
    let metric = |name: &str, numbers: &[i64]| Metric {
        name: name.into(),
        data: Some(Data::Sum(Sum {
            data_points: numbers.iter().map(|number| point(*number)).collect(),
            ..Sum::default()
        })),
        ..Metric::default()
    };
    let metrics = |zone, metrics| ResourceMetrics {
        resource: resource(zone),
        scope_metrics: vec![ScopeMetrics {
            metrics,
            ..ScopeMetrics::default()
        }],
        ..ResourceMetrics::default()
    };
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![
            metrics("a", vec![metric("requests", &[1, 2]), metric("load", &[3])]),
            metrics("b", vec![metric("size", &[4])]),
        ],
    };
    request.encode_to_vec().into()
}

/// The records of a signal after a processor: the objects under a name, in their order.
/// None where the batch is refused.
async fn made(signal: Signal, processor: &str, records: &str) -> Option<Vec<Json>> {
    let id = processor.split(':').next().expect("an id");
    let file = TempFile::new();
    let collector = within_a_proxy_by(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ {processor} }}\nexporters: {{ file: {{ path: '{}' }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ {signal}: {{ receivers: [proxy], processors: [{id}], exporters: [file] }} }} }}",
        file.0.display()
    ));
    let body = match signal {
        Signal::Logs => logs(),
        Signal::Metrics => metrics(),
        Signal::Traces => panic!("no traces here"),
    };
    let taken = collector.of_proxy().take(signal, body).await;
    let [_, metrics, logs] = collector.end().await;
    let balance = if signal == Signal::Logs {
        logs
    } else {
        metrics
    };
    assert_eq!(balance.accepted, balance.exported + balance.dropped);
    taken.ok()?;
    let text = std::fs::read_to_string(&file.0).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        find(
            &serde_json::from_str(line).expect("a line of JSON"),
            records,
            &mut found,
        );
    }
    Some(found)
}

/// The items of all lists under a name, at any level.
fn find(json: &Json, name: &str, found: &mut Vec<Json>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| find(item, name, found)),
        Json::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Json::Array(items) if key == name => found.extend(items.iter().cloned()),
                    value => find(value, name, found),
                }
            }
        }
        _ => {}
    }
}

/// The bodies of the log records that a processor makes.
async fn bodies(processor: &str) -> Option<Vec<String>> {
    let records = made(Signal::Logs, processor, "logRecords").await?;
    let body = |record: &Json| {
        record["body"]["stringValue"]
            .as_str()
            .unwrap_or("-")
            .to_owned()
    };
    Some(records.iter().map(body).collect())
}

/// The names of the metrics that a processor makes, each with its values.
async fn names(processor: &str) -> Option<Vec<String>> {
    let metrics = made(Signal::Metrics, processor, "metrics").await?;
    let described = |metric: &Json| {
        let mut points = Vec::new();
        find(metric, "dataPoints", &mut points);
        let values = points.iter().map(|point| {
            let value = &point["asInt"];
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        });
        let values: Vec<_> = values.collect();
        format!(
            "{} {}",
            metric["name"].as_str().unwrap_or("-"),
            values.join(",")
        )
    };
    Some(metrics.iter().map(described).collect())
}

#[tokio::test(start_paused = true)]
async fn statements_change_log_records() {
    for (options, expected) in [
        (
            "log_statements: ['set(log.body, \"x\") where log.severity_number >= SEVERITY_NUMBER_WARN']",
            ["hello", "x", "quiet"],
        ),
        (
            "log_statements: [ { context: log, statements: ['set(body, attributes[\"size\"])'] } ]",
            ["-", "-", "-"],
        ),
        (
            "log_statements: [ { conditions: ['log.body == \"boom\"'], statements: ['set(log.body, \"x\")'] } ]",
            ["hello", "x", "quiet"],
        ),
        (
            "log_statements: [ { context: log, statements: ['set(cache[\"b\"], body) where cache[\"b\"] == nil'], shared_cache: true }, \
              { context: log, statements: ['set(body, cache[\"b\"])'], shared_cache: true } ]",
            ["hello", "hello", "hello"],
        ),
    ] {
        let made = bodies(&format!("transform: {{ {options} }}")).await;
        assert_eq!(made.expect("they are taken"), expected, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn log_records_have_resources_of_their_own_where_the_settings_say_so() {
    let statement = "log_statements: ['set(resource.attributes[\"own\"], log.body)']";
    let resources = async |options: &str| {
        let processor = format!("transform: {{ {options} {statement} }}");
        let made = made(Signal::Logs, &processor, "resourceLogs").await;
        made.expect("they are taken").len()
    };
    assert_eq!(resources("").await, 2);
    assert_eq!(resources("flatten_data: true,").await, 3);
}

#[tokio::test(start_paused = true)]
async fn statements_change_metrics() {
    for (options, expected) in [
        (
            "metric_statements: ['set(metric.name, \"x\") where metric.name == \"load\"']",
            &["requests 1,2", "x 3", "size 4"][..],
        ),
        (
            "metric_statements: [ { context: datapoint, statements: ['set(value_int, value_int * 10)'] } ]",
            &["requests 10,20", "load 30", "size 40"],
        ),
        (
            "metric_statements: [ { conditions: ['metric.name == \"load\"'], statements: ['copy_metric(name=\"y\")'] } ]",
            &["requests 1,2", "load 3", "y 3", "size 4"],
        ),
        (
            "metric_statements: ['aggregate_on_attributes(\"sum\")']",
            &["requests 3", "load 3", "size 4"],
        ),
        (
            "metric_statements: [ { context: metric, statements: ['set(cache[\"n\"], name) where cache[\"n\"] == nil'], shared_cache: true }, \
              { context: metric, statements: ['set(name, cache[\"n\"])'], shared_cache: true } ]",
            &["requests 1,2", "requests 3", "requests 4"],
        ),
    ] {
        let made = names(&format!("transform: {{ {options} }}")).await;
        assert_eq!(made.expect("they are taken"), expected, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_drops_log_records() {
    for (options, expected) in [
        (
            "log_conditions: ['log.body == \"boom\"']",
            &["hello", "quiet"][..],
        ),
        (
            "log_conditions: [ { context: resource, conditions: ['attributes[\"zone\"] == \"a\"'] } ]",
            &["quiet"],
        ),
        (
            "logs: { log_record: ['IsMatch(body, \"^h\")'] }",
            &["boom", "quiet"],
        ),
        (
            "logs: { resource: ['attributes[\"zone\"] == \"b\"'] }",
            &["hello", "boom"],
        ),
        (
            "logs: { include: { match_type: strict, bodies: [boom] } }",
            &["boom"],
        ),
        (
            "logs: { exclude: { match_type: regexp, bodies: ['^.{4}$'] } }",
            &["hello", "quiet"],
        ),
        (
            "logs: { include: { resource_attributes: [ { key: zone, value: b } ] } }",
            &["quiet"],
        ),
        (
            "logs: { include: { record_attributes: [ { key: size, value: 4 } ] } }",
            &["boom"],
        ),
        ("logs: { include: { severity_texts: [INFO] } }", &["hello"]),
        (
            "logs: { include: { severity_number: { min: warn } } }",
            &["boom"],
        ),
        (
            "logs: { include: { severity_number: { min: '10', match_undefined: true } } }",
            &["boom", "quiet"],
        ),
        (
            "logs: { exclude: { resource_attributes: [ { key: zone } ] } }",
            &[],
        ),
    ] {
        let kept = bodies(&format!("filter: {{ {options} }}")).await;
        assert_eq!(kept.expect("they are taken"), expected, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_drops_metrics_and_data_points() {
    for (options, expected) in [
        (
            "metric_conditions: ['metric.name == \"load\"', 'datapoint.value_int == 1']",
            &["requests 2", "size 4"][..],
        ),
        (
            "metric_conditions: [ { context: resource, conditions: ['attributes[\"zone\"] == \"a\"'] } ]",
            &["size 4"],
        ),
        (
            "metrics: { metric: ['name == \"requests\"'] }",
            &["load 3", "size 4"],
        ),
        ("metrics: { datapoint: ['value_int > 1'] }", &["requests 1"]),
        (
            "metrics: { resource: ['attributes[\"zone\"] == \"a\"'] }",
            &["size 4"],
        ),
        (
            "metrics: { include: { match_type: strict, metric_names: [load] } }",
            &["load 3"],
        ),
        (
            "metrics: { exclude: { match_type: regexp, metric_names: ['^.{4}$'] } }",
            &["requests 1,2"],
        ),
        (
            "metrics: { include: { resource_attributes: [ { key: zone, value: b } ] } }",
            &["size 4"],
        ),
        (
            "metrics: { exclude: { resource_attributes: [ { key: zone } ] } }",
            &[],
        ),
    ] {
        let kept = names(&format!("filter: {{ {options} }}")).await;
        assert_eq!(kept.expect("they are taken"), expected, "{options}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_on_metrics_and_logs_is_passed_over_or_has_its_batch_refused() {
    for (mode, group, is_taken) in [
        ("", "", true),
        ("error_mode: propagate,", "", false),
        ("error_mode: propagate,", "error_mode: silent,", true),
        ("error_mode: ignore,", "error_mode: propagate,", false),
    ] {
        let processor = |processor: &str, key: &str, context: &str, rest: &str| {
            format!("{processor}: {{ {mode} {key}: [ {{ context: {context}, {group} {rest} }} ] }}")
        };
        let condition = "conditions: ['Len(flags) == 1']";
        let statement = "statements: ['set(flags, Len(flags))']";
        for (processor, is_log) in [
            (
                processor("filter", "log_conditions", "log", condition),
                true,
            ),
            (
                processor("filter", "metric_conditions", "datapoint", condition),
                false,
            ),
            (
                processor("transform", "log_statements", "log", statement),
                true,
            ),
            (
                processor("transform", "metric_statements", "datapoint", statement),
                false,
            ),
        ] {
            let made = if is_log {
                bodies(&processor).await
            } else {
                names(&processor).await
            };
            assert_eq!(made.is_some(), is_taken, "{processor}");
        }
    }
}
