//! Options of processors that change and drop records, from a file of settings to a file of
//! records.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use serde_json::Value as Json;

use super::samplers::into_file;
use super::*;

pub(super) fn text(value: &str) -> any_value::Value {
    any_value::Value::StringValue(value.into())
}

pub(super) fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// A span by its name, of this kind and with these attributes.
pub(super) fn span(name: &str, kind: i32, attributes: Vec<KeyValue>) -> Span {
    Span {
        trace_id: vec![7; 16],
        span_id: vec![7; 8],
        name: name.into(),
        kind,
        attributes,
        ..Span::default()
    }
}

pub(super) fn resource(
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

pub(super) async fn take(collector: &Collector) -> Result<(), Refusal> {
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
