//! Statements and conditions on log records, with results that are worked out by hand.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use otlp::Signal;
use otlp::scan::Malformed;
use ottl::{Context, Failure};
use prost::Message;
use tail::settings::ErrorMode;

use super::transform::{any, group, list, map};
use super::{kv, log_of, text};
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::filter::{Filter, Kept};
use crate::config::components::processors::records::{LogMatching, Severity};
use crate::config::components::processors::statements::Group;
use crate::config::components::processors::transform::Transform;
use crate::run::process::failures::{Failures, Fault};
use crate::run::process::filter::Rules;
use crate::run::process::transform::Editor;

fn editor(groups: Vec<Group>) -> Editor {
    let settings = Transform {
        logs: groups,
        ..Transform::default()
    };
    Editor::new(&settings, Failures::new("transform", &log_of().0)).unwrap()
}

fn request(records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource {
                attributes: vec![kv("service.name", text("cart"))],
                ..Resource::default()
            }),
            scope_logs: vec![ScopeLogs {
                scope: Some(InstrumentationScope {
                    name: "lib".into(),
                    ..InstrumentationScope::default()
                }),
                log_records: records,
                schema_url: "s".into(),
            }],
            schema_url: "r".into(),
        }],
    }
}

fn record(body: Option<V>) -> LogRecord {
    LogRecord {
        body: body.map(any),
        severity_number: 9,
        attributes: vec![kv("a", V::IntValue(1))],
        ..LogRecord::default()
    }
}

/// A log record after statements.
fn made_of(record: LogRecord, statements: &[&str]) -> Result<LogRecord, Fault> {
    let groups = vec![group(Context::Log, &[], statements)];
    let bytes = request(vec![record.clone()]).encode_to_vec();
    let edited = editor(groups).edit(Signal::Logs, &bytes, None)?;
    assert_eq!((edited.dropped, edited.added), (0, 0));
    let Some(bytes) = edited.bytes else {
        return Ok(record);
    };
    let made = ExportLogsServiceRequest::decode(&bytes[..]).unwrap();
    Ok(made.resource_logs[0].scope_logs[0].log_records[0].clone())
}

fn made(body: V, statements: &[&str]) -> LogRecord {
    made_of(record(Some(body)), statements).unwrap()
}

#[test]
fn fields_of_log_records_are_set() {
    let after = made(
        text("x"),
        &[
            r#"set(time_unix_nano, 5)"#,
            r#"set(observed_time, time + Duration("2ns"))"#,
            "set(severity_number, SEVERITY_NUMBER_WARN2)",
            r#"set(severity_text, Concat(["W", body], "-"))"#,
            "set(dropped_attributes_count, 3)",
            "set(flags, 1)",
            "set(trace_id, TraceID(0x000102030405060708090a0b0c0d0e0f))",
            r#"set(span_id.string, "0102030405060708")"#,
            r#"set(event_name, "login")"#,
            r#"set(attributes["b"]["c"], trace_id.string)"#,
            r#"delete_key(attributes, "a")"#,
            r#"set(log.body, "y")"#,
        ],
    );
    assert_eq!(
        (after.time_unix_nano, after.observed_time_unix_nano),
        (5, 7)
    );
    assert_eq!((after.severity_number, &*after.severity_text), (14, "W-x"));
    assert_eq!((after.dropped_attributes_count, after.flags), (3, 1));
    assert_eq!(after.trace_id, (0..16).collect::<Vec<u8>>());
    assert_eq!(after.span_id, (1..9).collect::<Vec<u8>>());
    assert_eq!(
        (&*after.event_name, after.body),
        ("login", Some(any(text("y"))))
    );
    let inner = map(vec![kv("c", text("000102030405060708090a0b0c0d0e0f"))]);
    assert_eq!(after.attributes, [kv("b", inner)]);
    let after = made(
        text("x"),
        &[
            r#"set(trace_id.string, "000102030405060708090a0b0c0d0e0f")"#,
            "set(span_id, SpanID(0x0102030405060708))",
            "set(time, observed_time)",
            "set(observed_time_unix_nano, 9)",
            r#"set(attributes, {"z": true})"#,
        ],
    );
    assert_eq!((after.trace_id.len(), after.span_id.len()), (16, 8));
    assert_eq!(
        (after.time_unix_nano, after.observed_time_unix_nano),
        (0, 9)
    );
    assert_eq!(after.attributes, [kv("z", V::BoolValue(true))]);
}

#[test]
fn bodies_of_all_types_are_set() {
    for (statement, expected) in [
        (r#"set(body, "y")"#, text("y")),
        ("set(body, 5)", V::IntValue(5)),
        ("set(body, 1.5)", V::DoubleValue(1.5)),
        ("set(body, true)", V::BoolValue(true)),
        ("set(body, 0x01ff)", V::BytesValue(vec![1, 255])),
        (r#"set(body, {"k": 1})"#, map(vec![kv("k", V::IntValue(1))])),
        (
            r#"set(body, ["x", 1])"#,
            list(vec![text("x"), V::IntValue(1)]),
        ),
        (r#"set(body.string, "y")"#, text("y")),
        ("set(body, attributes[\"a\"])", V::IntValue(1)),
        // Nil is not written.
        (r#"set(body, attributes["none"])"#, V::BoolValue(false)),
        (r#"replace_pattern(body, "x", "y")"#, V::BoolValue(false)),
        (r#"set(body, ParseJSON("{\"j\": [1]}"))"#, {
            map(vec![kv("j", list(vec![V::IntValue(1)]))])
        }),
        (
            r#"append(body, "x")"#,
            list(vec![V::BoolValue(false), text("x")]),
        ),
    ] {
        let after = made(V::BoolValue(false), &[statement]);
        assert_eq!(after.body, Some(any(expected)), "{statement}");
    }
    let after = made_of(record(None), &["set(body, 5)"]).unwrap();
    assert_eq!(after.body, Some(any(V::IntValue(5))));
}

#[test]
fn parts_of_bodies_are_read_and_set() {
    let body = map(vec![
        kv("k", text("v")),
        kv("l", list(vec![text("x"), V::IntValue(1)])),
        kv("password", text("p")),
    ]);
    let after = made(
        body.clone(),
        &[
            r#"set(attributes["k"], body["k"])"#,
            r#"set(body["l"][1], 2)"#,
            r#"set(body["new"]["in"], true)"#,
            r#"delete_key(body, "k")"#,
            r#"delete_matching_keys(body, "pass")"#,
            r#"set(attributes["none"], body["none"]["none"])"#,
        ],
    );
    let expected = map(vec![
        kv("l", list(vec![text("x"), V::IntValue(2)])),
        kv("new", map(vec![kv("in", V::BoolValue(true))])),
    ]);
    assert_eq!(after.body, Some(any(expected)));
    assert_eq!(after.attributes[1..], [kv("k", text("v"))]);
    let after = made(
        body.clone(),
        &[r#"merge_maps(attributes, body, "insert")"#, "flatten(body)"],
    );
    assert_eq!(after.attributes.len(), 4);
    let flat = map(vec![
        kv("k", text("v")),
        kv("l.0", text("x")),
        kv("l.1", V::IntValue(1)),
        kv("password", text("p")),
    ]);
    assert_eq!(after.body, Some(any(flat)));
    let after = made(list(vec![text("x")]), &["set(body[0], 5)"]);
    assert_eq!(after.body, Some(any(list(vec![V::IntValue(5)]))));
    for (body, statement, failure) in [
        (text("x"), r#"set(body["k"], 1)"#, Failure::Type),
        (text("x"), r#"delete_key(body, "k")"#, Failure::Type),
        (list(vec![]), "set(body[0], 1)", Failure::Index),
        (body, "set(severity_number, \"x\")", Failure::Type),
    ] {
        let failed = made_of(record(Some(body)), &[statement]).unwrap_err();
        assert_eq!(failed, Fault::Ottl(failure), "{statement}");
    }
    let failed = made_of(record(None), &[r#"set(body["k"], 1)"#]).unwrap_err();
    assert_eq!(failed, Fault::Ottl(Failure::Type));
}

#[test]
fn what_stands_around_log_records_is_set_too() {
    let groups = vec![
        group(
            Context::Resource,
            &[],
            &[r#"set(attributes["r"], schema_url)"#],
        ),
        group(
            Context::Scope,
            &[],
            &[r#"set(version, resource.attributes["r"])"#],
        ),
        group(
            Context::Log,
            &["severity_number == 9"],
            &[
                r#"set(scope.schema_url, body)"#,
                r#"set(resource.attributes["b"], body)"#,
            ],
        ),
    ];
    let bytes = request(vec![record(Some(text("x")))]).encode_to_vec();
    let edited = editor(groups).edit(Signal::Logs, &bytes, None).unwrap();
    let made = ExportLogsServiceRequest::decode(&edited.bytes.unwrap()[..]).unwrap();
    let resource = &made.resource_logs[0];
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(attributes[1..], [kv("r", text("r")), kv("b", text("x"))]);
    let scope = &resource.scope_logs[0];
    assert_eq!(
        (&*scope.scope.as_ref().unwrap().version, &*scope.schema_url),
        ("r", "x")
    );
}

#[test]
fn flattened_records_are_put_together_again() {
    let editor = |statement: &str| {
        let settings = Transform {
            logs: vec![group(Context::Log, &[], &[statement])],
            flatten_data: true,
            ..Transform::default()
        };
        Editor::new(&settings, Failures::new("transform", &log_of().0)).unwrap()
    };
    let mut request = self::request(
        ["x", "y", "x"]
            .map(|body| record(Some(text(body))))
            .to_vec(),
    );
    let mut other = request.resource_logs[0].scope_logs[0].clone();
    other.scope.as_mut().unwrap().name = "other".into();
    request.resource_logs[0].scope_logs.push(other);
    let bytes = request.encode_to_vec();
    let statement = r#"set(resource.attributes["b"], body) where scope.name == "lib""#;
    let edited = editor(statement).edit(Signal::Logs, &bytes, None).unwrap();
    let made = ExportLogsServiceRequest::decode(&edited.bytes.unwrap()[..]).unwrap();
    let lines = made.resource_logs.iter().flat_map(|resource| {
        let own = resource.resource.as_ref().unwrap().attributes.get(1);
        let own = own.map_or("-".to_owned(), |own| {
            format!("{:?}", own.value.as_ref().unwrap().value)
        });
        let scopes = resource.scope_logs.iter();
        scopes.map(move |scope| {
            let name = &scope.scope.as_ref().unwrap().name;
            format!(
                "{own} {name} {} {}{}",
                scope.log_records.len(),
                resource.schema_url,
                scope.schema_url
            )
        })
    });
    let lines: Vec<_> = lines.collect();
    let own = |body| format!("{:?}", Some(text(body)));
    let expected = [
        format!("{} lib 2 rs", own("x")),
        format!("{} lib 1 rs", own("y")),
        "- other 3 rs".to_owned(),
    ];
    assert_eq!(lines, expected);
    // Records that no statement changes stay as they came.
    let same = editor(r#"set(body, "z") where body == "none""#).edit(Signal::Logs, &bytes, None);
    assert_eq!(same.unwrap().bytes, None);
    // A large resource may not be repeated without end.
    let mut large = self::request(vec![LogRecord::default(); 3000]);
    large.resource_logs[0].schema_url = "r".repeat(1 << 20);
    let refused = editor(statement).edit(Signal::Logs, &large.encode_to_vec(), None);
    assert_eq!(refused.unwrap_err(), Fault::Malformed(Malformed::TooLarge));
    let refused = editor(statement).edit(Signal::Logs, &bytes[..bytes.len() - 1], None);
    assert_eq!(refused.unwrap_err(), Fault::Malformed(Malformed::Truncated));
}

#[test]
fn log_records_that_nothing_is_done_to_stay_as_they_came() {
    let bytes = request(vec![record(Some(text("x"))), record(None)]).encode_to_vec();
    let groups = vec![group(
        Context::Log,
        &[],
        &[r#"set(body, "y") where body == "z""#],
    )];
    let edited = editor(groups).edit(Signal::Logs, &bytes, None).unwrap();
    assert_eq!(edited.bytes, None);
    // Statements on other signals do nothing.
    let settings = Transform {
        traces: vec![group(Context::Span, &[], &["set(name, \"x\")"])],
        ..Transform::default()
    };
    let editor = Editor::new(&settings, Failures::new("transform", &log_of().0)).unwrap();
    assert_eq!(editor.edit(Signal::Logs, &bytes, None).unwrap().bytes, None);
}

#[test]
fn unknown_fields_of_log_records_are_kept() {
    let mut message = record(Some(text("x"))).encode_to_vec();
    otlp::write::bytes(&mut message, 90, b"unknown");
    let unknown = &message[message.len() - 10..];
    let (mut scope, mut resource, mut request) = (Vec::new(), Vec::new(), Vec::new());
    otlp::write::bytes(&mut scope, 2, &message);
    otlp::write::bytes(&mut resource, 2, &scope);
    otlp::write::bytes(&mut request, 1, &resource);
    for (statement, flatten_data) in [
        (r#"set(body, "y")"#, false),
        (r#"delete_key(attributes, "a")"#, false),
        (r#"set(scope.name, "y")"#, true),
    ] {
        let settings = Transform {
            logs: vec![group(Context::Log, &[], &[statement])],
            flatten_data,
            ..Transform::default()
        };
        let editor = Editor::new(&settings, Failures::new("transform", &log_of().0)).unwrap();
        let edited = editor.edit(Signal::Logs, &request, None).unwrap();
        let after = edited.bytes.expect(statement);
        let is_there = after.windows(unknown.len()).any(|window| window == unknown);
        assert!(is_there, "{statement}");
    }
}

#[test]
fn malformed_log_records_are_refused_and_nothing_is_lost() {
    let mut record = record(Some(text("x")));
    record.trace_id = vec![1; 3];
    let bytes = request(vec![record]).encode_to_vec();
    let groups = vec![group(Context::Log, &[], &[r#"set(body, "y")"#])];
    let refused = editor(groups).edit(Signal::Logs, &bytes, None).unwrap_err();
    assert_eq!(refused, Fault::Malformed(Malformed::TraceId));
    let dropped = rules(vec![group(Context::Log, &["true"], &[])]);
    let refused = dropped.filter(Signal::Logs, &bytes, None).unwrap_err();
    assert_eq!(refused, Fault::Malformed(Malformed::TraceId));
}

fn rules(conditions: Vec<Group>) -> Rules {
    let settings = Filter {
        logs: conditions,
        ..Filter::default()
    };
    Rules::new(&settings, Failures::new("filter", &log_of().0)).unwrap()
}

/// The bodies of the log records that are left, and how many are gone.
fn left(rules: &Rules) -> (Vec<String>, u64) {
    let records = [("a", 9, "INFO"), ("bb", 17, "ERROR"), ("ccc", 0, "")];
    let records = records.map(|(body, severity_number, severity_text)| LogRecord {
        severity_number,
        severity_text: severity_text.to_owned(),
        ..record(Some(text(body)))
    });
    let bytes = request(records.to_vec()).encode_to_vec();
    let edited = rules.filter(Signal::Logs, &bytes, None).unwrap();
    let bytes = edited.bytes.unwrap_or(bytes);
    let left = ExportLogsServiceRequest::decode(&bytes[..]).unwrap();
    let scopes = left
        .resource_logs
        .iter()
        .flat_map(|resource| &resource.scope_logs);
    let records = scopes.flat_map(|scope| &scope.log_records);
    let body = |record: &LogRecord| match record.body.clone() {
        Some(AnyValue {
            value: Some(V::StringValue(text)),
        }) => text,
        other => panic!("{other:?}"),
    };
    (records.map(body).collect(), edited.dropped)
}

#[test]
fn conditions_drop_log_records() {
    for (context, condition, expected) in [
        (
            Context::Log,
            "severity_number >= SEVERITY_NUMBER_WARN",
            &["a", "ccc"][..],
        ),
        (Context::Log, r#"IsMatch(body, "^.{2,3}$")"#, &["a"]),
        (
            Context::Log,
            r#"resource.attributes["service.name"] == "cart""#,
            &[],
        ),
        (
            Context::Log,
            "Len(severity_number) == 1",
            &["a", "bb", "ccc"],
        ),
        (Context::Scope, r#"name == "lib""#, &[]),
        (
            Context::Resource,
            r#"attributes["service.name"] == "auth""#,
            &["a", "bb", "ccc"],
        ),
        (
            Context::Resource,
            r#"attributes["service.name"] == "cart""#,
            &[],
        ),
    ] {
        let conditions = Group {
            error_mode: ErrorMode::Ignore,
            ..group(context, &[condition], &[])
        };
        let (left, dropped) = left(&rules(vec![conditions]));
        assert_eq!(left, expected, "{condition}");
        assert_eq!(dropped, 3 - expected.len() as u64, "{condition}");
    }
}

#[test]
fn log_records_are_included_and_excluded() {
    let none = LogMatching {
        regex: false,
        resources: vec![],
        attributes: vec![],
        severity_texts: vec![],
        bodies: vec![],
        severity: None,
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let severity = |match_undefined| {
        Some(Severity {
            min: 13,
            match_undefined,
        })
    };
    let cart = AttributeValue::Text("cart".into());
    for (matching, expected) in [
        (
            LogMatching {
                bodies: texts(&["bb", "ccc"]),
                ..none.clone()
            },
            &["bb", "ccc"][..],
        ),
        (
            LogMatching {
                regex: true,
                bodies: texts(&["^.$"]),
                ..none.clone()
            },
            &["a"],
        ),
        (
            LogMatching {
                regex: true,
                severity_texts: texts(&["ERR"]),
                ..none.clone()
            },
            &["bb"],
        ),
        (
            LogMatching {
                severity: severity(false),
                ..none.clone()
            },
            &["bb"],
        ),
        (
            LogMatching {
                severity: severity(true),
                ..none.clone()
            },
            &["bb", "ccc"],
        ),
        (
            LogMatching {
                severity: severity(true),
                bodies: texts(&["a", "bb"]),
                ..none.clone()
            },
            &["bb"],
        ),
        (
            LogMatching {
                resources: vec![("service.name".into(), Some(cart))],
                attributes: vec![("a".into(), Some(AttributeValue::Int(1)))],
                ..none.clone()
            },
            &["a", "bb", "ccc"],
        ),
        (
            LogMatching {
                attributes: vec![("b".into(), None)],
                ..none.clone()
            },
            &[],
        ),
    ] {
        let rules = |kept_logs| {
            let settings = Filter {
                kept_logs,
                ..Filter::default()
            };
            Rules::new(&settings, Failures::new("filter", &log_of().0)).unwrap()
        };
        let include = rules(Kept {
            include: Some(matching.clone()),
            exclude: None,
        });
        assert_eq!(left(&include).0, expected, "{matching:?}");
        let exclude = rules(Kept {
            include: None,
            exclude: Some(matching.clone()),
        });
        let others = ["a", "bb", "ccc"].into_iter();
        let others: Vec<_> = others.filter(|body| !expected.contains(body)).collect();
        assert_eq!(left(&exclude).0, others, "{matching:?}");
    }
}
