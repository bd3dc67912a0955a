//! What statements make of spans, worked out by hand.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use otlp::Signal;
use otlp::scan::Malformed;
use ottl::{Context, Failure};
use prost::Message;
use tail::settings::ErrorMode;

use super::{kv, log_of, text, traces};
use crate::config::components::processors::statements::Group;
use crate::config::components::processors::transform::Transform;
use crate::run::origin::Origin;
use crate::run::process::failures::{Failures, Fault};
use crate::run::process::transform::Editor;

pub fn group(context: Context, conditions: &[&str], statements: &[&str]) -> Group {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Group {
        context,
        error_mode: ErrorMode::Propagate,
        conditions: texts(conditions),
        statements: texts(statements),
        shares_cache: false,
    }
}

/// The same with a cache that all records of a request share.
fn sharing(context: Context, statements: &[&str]) -> Group {
    Group {
        shares_cache: true,
        ..group(context, &[], statements)
    }
}

pub fn editor(groups: Vec<Group>) -> Editor {
    let (log, _) = log_of();
    Editor::new(
        &Transform {
            traces: groups,
            ..Transform::default()
        },
        Failures::new("transform", &log),
    )
    .unwrap()
}

pub fn any(value: V) -> AnyValue {
    AnyValue { value: Some(value) }
}

pub fn list(values: Vec<V>) -> V {
    let values = values.into_iter().map(any).collect();
    V::ArrayValue(ArrayValue { values })
}

pub fn map(values: Vec<KeyValue>) -> V {
    V::KvlistValue(KeyValueList { values })
}

fn request() -> ExportTraceServiceRequest {
    let event = |name: &str, number| Event {
        name: name.to_owned(),
        time_unix_nano: number,
        attributes: vec![kv("n", V::IntValue(number as i64))],
        ..Event::default()
    };
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "GET /user/17/list/5".into(),
        kind: 2,
        trace_state: "a=1,b=2".into(),
        start_time_unix_nano: 5,
        end_time_unix_nano: 9,
        attributes: vec![
            kv("a", text("one")),
            kv("b", V::IntValue(2)),
            kv("password", text("secret=1 token=2")),
            kv("tags", list(vec![text("x"), V::IntValue(1)])),
            kv(
                "map",
                map(vec![
                    kv("k", text("v")),
                    kv("deep", map(vec![kv("l", V::BoolValue(true))])),
                ]),
            ),
        ],
        events: vec![event("first", 1), event("second", 2)],
        status: Some(Status {
            message: "m".into(),
            code: 1,
        }),
        ..Span::default()
    };
    let mut request = traces(
        vec![kv("service.name", text("cart")), kv("a", text("r"))],
        vec![span],
    );
    let scope = request.resource_spans[0].scope_spans[0]
        .scope
        .as_mut()
        .unwrap();
    scope.attributes = vec![kv("s", text("t"))];
    request
}

fn edited(groups: Vec<Group>) -> Result<Option<ExportTraceServiceRequest>, Fault> {
    let bytes = request().encode_to_vec();
    let edited = editor(groups).edit(Signal::Traces, &bytes, None)?;
    Ok(edited
        .bytes
        .map(|bytes| ExportTraceServiceRequest::decode(&bytes[..]).unwrap()))
}

/// The span after statements in the context `span`.
fn span(statements: &[&str]) -> Span {
    let after = edited(vec![group(Context::Span, &[], statements)]).unwrap();
    let after = after.unwrap_or_else(request);
    after.resource_spans[0].scope_spans[0].spans[0].clone()
}

fn attribute(span: &Span, key: &str) -> Option<V> {
    let found = span.attributes.iter().find(|one| one.key == key);
    found
        .and_then(|one| one.value.clone())
        .and_then(|value| value.value)
}

fn keys(span: &Span) -> Vec<&str> {
    span.attributes.iter().map(|one| one.key.as_str()).collect()
}

#[test]
fn attributes_are_set_and_deleted() {
    let after = span(&[
        r#"set(attributes["a"], 5)"#,
        r#"set(attributes["new"], Concat([name, attributes["a"]], "-")) where attributes["a"] == 5"#,
        r#"set(attributes["none"], resource.attributes["none"])"#,
        r#"set(attributes["map"]["deep"]["x"]["y"], resource.attributes["service.name"])"#,
        r#"set(attributes["tags"][1], {"z": [1]})"#,
        r#"delete_key(attributes, "b")"#,
        r#"delete_key(attributes["map"], "k")"#,
    ]);
    assert_eq!(keys(&after), ["a", "password", "tags", "map", "new"]);
    assert_eq!(attribute(&after, "a"), Some(V::IntValue(5)));
    assert_eq!(
        attribute(&after, "new"),
        Some(text("GET /user/17/list/5-5"))
    );
    let z = map(vec![kv("z", list(vec![V::IntValue(1)]))]);
    assert_eq!(attribute(&after, "tags"), Some(list(vec![text("x"), z])));
    let deep = map(vec![
        kv("l", V::BoolValue(true)),
        kv("x", map(vec![kv("y", text("cart"))])),
    ]);
    assert_eq!(attribute(&after, "map"), Some(map(vec![kv("deep", deep)])));
}

#[test]
fn fields_are_set() {
    let after = span(&[
        r#"set(name, "n")"#,
        r#"set(kind.string, "Client")"#,
        r#"set(status.code, STATUS_CODE_ERROR)"#,
        r#"set(status.message, "")"#,
        r#"set(trace_state["c"], "3")"#,
        r#"set(trace_state["b"], "4")"#,
        "set(start_time_unix_nano, end_time_unix_nano + 1)",
        r#"set(end_time, start_time + Duration("2s"))"#,
        r#"set(span_id, SpanID(0x0102030405060708))"#,
        r#"set(trace_id.string, "000102030405060708090a0b0c0d0e0f")"#,
        "set(dropped_attributes_count, 7)",
        "set(flags, 1)",
    ]);
    assert_eq!(
        (&*after.name, after.kind, &*after.trace_state),
        ("n", 3, "b=4,c=3,a=1")
    );
    assert_eq!(
        after.status,
        Some(Status {
            message: String::new(),
            code: 2
        })
    );
    assert_eq!(
        (after.start_time_unix_nano, after.end_time_unix_nano),
        (10, 2_000_000_010)
    );
    assert_eq!(after.span_id, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(after.trace_id, (0..16).collect::<Vec<u8>>());
    assert_eq!((after.dropped_attributes_count, after.flags), (7, 1));
    assert_eq!(
        span(&[r#"set(kind.deprecated_string, "SPAN_KIND_PRODUCER")"#]).kind,
        4
    );
}

#[test]
fn keys_are_chosen() {
    assert_eq!(
        keys(&span(&[r#"delete_matching_keys(attributes, "^pass|b")"#])),
        ["a", "tags", "map"]
    );
    assert_eq!(
        keys(&span(&[r#"keep_matching_keys(attributes, "a")"#])),
        ["a", "password", "tags", "map"]
    );
    assert_eq!(
        keys(&span(&[r#"keep_keys(attributes, ["map", "a", "none"])"#])),
        ["a", "map"]
    );
    assert_eq!(
        keys(&span(&[r#"limit(attributes, 2, ["tags"])"#])),
        ["a", "tags"]
    );
    assert_eq!(keys(&span(&[r#"limit(attributes, 9, [])"#])).len(), 5);
}

#[test]
fn texts_are_replaced() {
    let after = span(&[
        r#"replace_pattern(attributes["password"], "(\\w+)=\\d", "$1=*$$")"#,
        r#"replace_match(name, "GET /user/*/list/*", "GET /user/{id}/list/{id}")"#,
        r#"replace_pattern(attributes["b"], "2", "3")"#,
    ]);
    assert_eq!(
        attribute(&after, "password"),
        Some(text("secret=*$ token=*$"))
    );
    assert_eq!(after.name, "GET /user/{id}/list/{id}");
    assert_eq!(attribute(&after, "b"), Some(V::IntValue(2)));
    let after = span(&[r#"replace_pattern(name, "\\d+", "7", SHA256, "<%s>")"#]);
    let hash = "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451";
    assert_eq!(after.name, format!("GET /user/<{hash}>/list/<{hash}>"));
    let after = span(&[
        r#"replace_all_patterns(attributes, "value", "e", "E")"#,
        r#"replace_all_patterns(attributes, "key", "^(.)$", "k.${1}")"#,
        r#"replace_all_matches(attributes, "on?", "three")"#,
    ]);
    assert_eq!(keys(&after), ["k.a", "k.b", "password", "tags", "map"]);
    assert_eq!(attribute(&after, "k.a"), Some(text("three")));
    assert_eq!(
        attribute(&after, "password"),
        Some(text("sEcrEt=1 tokEn=2"))
    );
    // Two keys that become one: the later value counts.
    let after = span(&[r#"replace_all_patterns(attributes, "key", "^[ab]$", "x")"#]);
    assert_eq!(keys(&after), ["x", "password", "tags", "map"]);
    assert_eq!(attribute(&after, "x"), Some(V::IntValue(2)));
}

#[test]
fn texts_are_shortened_and_values_become_texts() {
    let after = span(&[
        r#"set(attributes["a"], "aéb")"#,
        "truncate_all(attributes, 2)",
    ]);
    assert_eq!(attribute(&after, "a"), Some(text("a")));
    assert_eq!(attribute(&after, "password"), Some(text("se")));
    let after = span(&[r#"truncate_all(attributes, 6, true, "...")"#]);
    assert_eq!(attribute(&after, "password"), Some(text("sec...")));
    let after = span(&["stringify_all(attributes)"]);
    assert_eq!(attribute(&after, "b"), Some(text("2")));
    assert_eq!(attribute(&after, "tags"), Some(text(r#"["x",1]"#)));
}

#[test]
fn maps_and_lists_are_merged() {
    let merged = |strategy: &str| {
        let statement = format!(r#"merge_maps(attributes, {{"a": 1, "c": 2}}, "{strategy}")"#);
        let after = span(&[&statement]);
        (attribute(&after, "a"), attribute(&after, "c"))
    };
    let (one, two) = (Some(V::IntValue(1)), Some(V::IntValue(2)));
    assert_eq!(merged("insert"), (Some(text("one")), two.clone()));
    assert_eq!(merged("update"), (one.clone(), None));
    assert_eq!(merged("upsert"), (one, two));
    let after = span(&[
        r#"append(attributes["tags"], "y", values = [3, attributes["a"]])"#,
        r#"append(attributes["b"], "z")"#,
        r#"append(attributes["none"], "z")"#,
        r#"delete_index(attributes["tags"], 1, 3)"#,
    ]);
    let tags = list(vec![text("x"), V::IntValue(3), text("one")]);
    assert_eq!(attribute(&after, "tags"), Some(tags));
    assert_eq!(
        attribute(&after, "b"),
        Some(list(vec![V::IntValue(2), text("z")]))
    );
    assert_eq!(attribute(&after, "none"), Some(list(vec![text("z")])));
    let after = span(&["flatten(attributes)"]);
    assert_eq!(
        keys(&after),
        [
            "a",
            "b",
            "password",
            "tags.0",
            "tags.1",
            "map.k",
            "map.deep.l"
        ]
    );
    let after = span(&[r#"flatten(attributes, "p", 2)"#]);
    assert_eq!(
        keys(&after),
        [
            "p.a",
            "p.b",
            "p.password",
            "p.tags.0",
            "p.tags.1",
            "p.map.k",
            "p.map.deep"
        ]
    );
    let after = span(&[r#"set(attributes, {"b": 5, "new": true})"#]);
    assert_eq!(keys(&after), ["b", "new"]);
}

#[test]
fn statements_read_what_earlier_ones_wrote_in_any_message() {
    let after = edited(vec![
        group(
            Context::Resource,
            &[],
            &[r#"set(attributes["seen"], "yes")"#],
        ),
        group(
            Context::Scope,
            &[],
            &[
                r#"set(name, resource.attributes["seen"])"#,
                r#"set(attributes["v"], version)"#,
            ],
        ),
        group(
            Context::SpanEvent,
            &[],
            &[
                r#"set(cache["n"], attributes["n"])"#,
                r#"set(attributes["n"], cache["n"] + 10) where event_index == 1"#,
                r#"set(span.attributes["sum"], attributes["n"])"#,
                r#"set(resource.attributes["last"], name)"#,
                r#"set(scope.attributes["s"], span.attributes["sum"])"#,
            ],
        ),
        group(
            Context::Span,
            &[r#"name == "none""#],
            &[r#"set(name, "x")"#],
        ),
        group(
            Context::Span,
            &[r#"name == "none""#, "kind == 2"],
            &[r#"set(attributes["from"], scope.name)"#],
        ),
    ]);
    let after = after.unwrap().unwrap();
    let mut wanted = request();
    let resource = &mut wanted.resource_spans[0];
    let attributes = &mut resource.resource.as_mut().unwrap().attributes;
    attributes.push(kv("seen", text("yes")));
    attributes.push(kv("last", text("second")));
    let scope = &mut resource.scope_spans[0];
    let own = scope.scope.as_mut().unwrap();
    own.name = "yes".into();
    own.attributes = vec![kv("s", V::IntValue(12)), kv("v", text("1.2"))];
    let span = &mut scope.spans[0];
    span.events[1].attributes = vec![kv("n", V::IntValue(12))];
    span.attributes.push(kv("sum", V::IntValue(12)));
    span.attributes.push(kv("from", text("yes")));
    assert_eq!(after, wanted);
}

#[test]
fn what_no_statement_changes_is_as_it_came() {
    for statement in [
        r#"set(attributes["a"], "one")"#,
        r#"set(name, "x") where kind == 5"#,
        r#"delete_key(attributes, "none")"#,
        r#"keep_matching_keys(attributes, "")"#,
        "truncate_all(attributes, 1000)",
        r#"replace_pattern(name, "none", "x")"#,
        r#"merge_maps(attributes, {"a": 1}, "insert")"#,
        "set(status.code, 1)",
        "set(attributes, attributes)",
        "set(start_time, start_time)",
    ] {
        let edited = edited(vec![group(Context::Span, &[], &[statement])]);
        assert_eq!(edited, Ok(None), "{statement}");
    }
}

#[test]
fn failures_are_propagated_or_passed_over() {
    let failing = |error_mode| {
        let statements = [r#"set(name, 5)"#, r#"set(attributes["a"], "x")"#];
        Group {
            error_mode,
            ..group(Context::Span, &[], &statements)
        }
    };
    assert_eq!(
        edited(vec![failing(ErrorMode::Propagate)]),
        Err(Fault::Ottl(Failure::Type))
    );
    for error_mode in [ErrorMode::Ignore, ErrorMode::Silent] {
        let (log, lines) = log_of();
        let settings = Transform {
            traces: vec![failing(error_mode)],
            ..Transform::default()
        };
        let editor = Editor::new(&settings, Failures::new("transform/a", &log)).unwrap();
        for _ in 0..12 {
            assert!(
                editor
                    .edit(Signal::Traces, &request().encode_to_vec(), None)
                    .unwrap()
                    .bytes
                    .is_some()
            );
        }
        // The first and the tenth.
        let told = lines.lock().unwrap().len();
        assert_eq!(
            told,
            if error_mode == ErrorMode::Ignore {
                2
            } else {
                0
            }
        );
    }
    for statement in [
        r#"set(attributes["tags"][2], 1)"#,
        r#"set(attributes["a"]["b"], 1)"#,
        r#"set(attributes["a"], start_time)"#,
        r#"set(trace_state["A"], "1")"#,
        r#"set(trace_id.string, "00")"#,
        r#"set(kind.string, "client")"#,
        r#"keep_keys(attributes["a"], ["x"])"#,
        r#"merge_maps(attributes, name, "insert")"#,
        r#"delete_index(attributes["tags"], 2)"#,
        r#"delete_index(attributes["tags"], 0, 3)"#,
        r#"replace_pattern(name, "GET", kind)"#,
    ] {
        let edited = edited(vec![group(Context::Span, &[], &[statement])]);
        assert!(
            matches!(edited, Err(Fault::Ottl(_))),
            "{statement}: {edited:?}"
        );
    }
}

#[test]
fn what_is_made_is_bounded() {
    // A value that holds itself, again and again.
    let nest = r#"set(attributes["a"], [attributes["a"]])"#;
    let nested = vec![nest; 70];
    let edited_deep = edited(vec![group(Context::Span, &[], &nested)]);
    assert_eq!(edited_deep, Err(Fault::Ottl(Failure::Depth)));
    let double = r#"set(attributes["a"], Concat([attributes["a"], attributes["a"]], ""))"#;
    let doubled = vec![double; 40];
    let edited_large = edited(vec![group(Context::Span, &[], &doubled)]);
    assert_eq!(edited_large, Err(Fault::Ottl(Failure::Size)));
}

fn named(names: impl Iterator<Item = String>) -> Vec<u8> {
    let spans = names.map(|name| Span {
        name,
        ..Span::default()
    });
    traces(Vec::new(), spans.collect()).encode_to_vec()
}

#[test]
fn a_cache_may_be_that_of_all_records_and_groups() {
    let last = r#"set(cache["last"], name)"#;
    let editor = editor(vec![
        sharing(Context::Resource, &[r#"set(cache["last"], "resource")"#]),
        sharing(
            Context::Span,
            &[r#"set(attributes["before"], cache["last"])"#, last],
        ),
        sharing(
            Context::Span,
            &[r#"set(attributes["after"], cache["last"])"#],
        ),
        group(
            Context::Span,
            &[],
            &[r#"set(attributes["own"], cache["last"])"#, last],
        ),
    ]);
    let request = named(["a", "b", "c"].into_iter().map(str::to_owned));
    // Each request has its own.
    for _ in 0..2 {
        let after = editor
            .edit(Signal::Traces, &request, None)
            .unwrap()
            .bytes
            .unwrap();
        let after = ExportTraceServiceRequest::decode(&after[..]).unwrap();
        let spans = &after.resource_spans[0].scope_spans[0].spans;
        let attributes = spans.iter().map(|span| span.attributes.clone());
        let after = kv("after", text("c"));
        let expected = [
            vec![after.clone()],
            vec![kv("before", text("a")), after.clone()],
            vec![kv("before", text("b")), after],
        ];
        assert_eq!(attributes.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_shared_cache_that_grows_with_its_request_is_bounded() {
    let editor = editor(vec![sharing(Context::Span, &["set(cache[name], name)"])]);
    let names = |count: u32| named((0..count).map(|number| format!("{number:0300}")));
    assert!(
        editor
            .edit(Signal::Traces, &names(100), None)
            .unwrap()
            .bytes
            .is_none()
    );
    let refused = editor.edit(Signal::Traces, &names(5000), None).map(|_| ());
    assert_eq!(refused, Err(Fault::Malformed(Malformed::TooLarge)));
}

#[test]
fn statements_have_a_clock_and_random_numbers() {
    let after = span(&[
        r#"set(attributes["a"], FormatTime(Now(), "%Y"))"#,
        r#"set(attributes["b"], UUID())"#,
        r#"set(attributes["c"], UUID())"#,
        "set(end_time, Now())",
    ]);
    let Some(V::StringValue(year)) = attribute(&after, "a") else {
        panic!("{after:?}");
    };
    assert!(year.as_str() >= "2026", "{year}");
    assert!(after.end_time_unix_nano > 1_700_000_000_000_000_000);
    let [one, other] = ["b", "c"].map(|key| attribute(&after, key));
    assert!(matches!(&one, Some(V::StringValue(id)) if id.len() == 36));
    assert_ne!(one, other);
}

#[test]
fn client_metadata_is_read() {
    let statement = r#"set(name, otelcol.client.metadata["x-a"][1])"#;
    let editor = editor(vec![group(
        Context::Span,
        &[r#"otelcol.client.metadata["x-b"] == ["c"]"#],
        &[statement],
    )]);
    let origin = |fields: &[(&str, &str)]| Origin::with_fields(fields);
    let bytes = request().encode_to_vec();
    let known = origin(&[("x-a", "1"), ("x-a", "2"), ("x-b", "c")]);
    let edited = editor
        .edit(Signal::Traces, &bytes, Some(&known))
        .unwrap()
        .bytes
        .unwrap();
    let edited = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
    assert_eq!(edited.resource_spans[0].scope_spans[0].spans[0].name, "2");
    let other = origin(&[("x-a", "1"), ("x-a", "2")]);
    assert!(
        editor
            .edit(Signal::Traces, &bytes, Some(&other))
            .unwrap()
            .bytes
            .is_none()
    );
    assert!(
        editor
            .edit(Signal::Traces, &bytes, None)
            .unwrap()
            .bytes
            .is_none()
    );
    // A field has one value only.
    let short = origin(&[("x-a", "1"), ("x-b", "c")]);
    assert!(editor.edit(Signal::Traces, &bytes, Some(&short)).is_err());
}

#[test]
fn schema_urls_are_read_and_written() {
    let urls = |edited: &ExportTraceServiceRequest| {
        let resource = &edited.resource_spans[0];
        let scope = &resource.scope_spans[0];
        let name = scope.spans[0].name.clone();
        [resource.schema_url.clone(), scope.schema_url.clone(), name]
    };
    for (context, statements, [resource, scope, name]) in [
        (
            Context::Span,
            &[
                "set(name, Concat([resource.schema_url, scope.schema_url], \"\"))",
                "set(resource.schema_url, \"new\") where resource.schema_url == \"r\"",
                "set(scope.schema_url, resource.schema_url)",
                "set(attributes[\"x\"], scope.schema_url)",
            ][..],
            ["new", "new", "rs"],
        ),
        (
            Context::Scope,
            &[
                "set(schema_url, \"https://a\")",
                "set(resource.attributes[\"u\"], schema_url)",
                "set(attributes[\"u\"], schema_url)",
                "set(resource.schema_url, \"\")",
            ],
            ["", "https://a", "GET /user/17/list/5"],
        ),
        (
            Context::Resource,
            &["replace_pattern(schema_url, \"r\", \"q\")"],
            ["q", "s", "GET /user/17/list/5"],
        ),
        (
            Context::SpanEvent,
            &["set(resource.schema_url, Concat([resource.schema_url, \"+\"], \"\"))"],
            ["r++", "s", "GET /user/17/list/5"],
        ),
    ] {
        let after = edited(vec![group(context, &[], statements)]).unwrap();
        let after = after.unwrap();
        assert_eq!(urls(&after), [resource, scope, name], "{context}");
        if context == Context::Scope {
            let resource = after.resource_spans[0].resource.as_ref().unwrap();
            let scope = after.resource_spans[0].scope_spans[0]
                .scope
                .as_ref()
                .unwrap();
            for attributes in [&resource.attributes, &scope.attributes] {
                let last = attributes.last().unwrap();
                assert_eq!(*last, kv("u", text("https://a")));
            }
        }
    }
    // Nothing changes.
    let same = [
        "set(resource.schema_url, \"r\")",
        "set(scope.schema_url, nil)",
    ];
    assert!(
        edited(vec![group(Context::Span, &[], &same)])
            .unwrap()
            .is_none()
    );
}
