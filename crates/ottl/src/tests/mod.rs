//! Conditions and what they say of one span.

mod functions;
mod records;
mod statements;

use super::*;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span::Event};
use otlp::scan::{Around, Slots};
use otlp::scan::{event, span};
use prost::Message;

fn key_value(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

fn subject() -> (Span, Resource, InstrumentationScope) {
    let list = ArrayValue {
        values: vec![
            AnyValue {
                value: Some(text("first")),
            },
            AnyValue {
                value: Some(Value::IntValue(2)),
            },
        ],
    };
    let map = KeyValueList {
        values: vec![key_value("in", text("side"))],
    };
    let span = Span {
        trace_id: vec![0xab; 16],
        span_id: vec![1, 2, 3, 4, 5, 6, 7, 8],
        name: "GET /cart".to_owned(),
        kind: 2,
        start_time_unix_nano: 1_000_000_000,
        end_time_unix_nano: 3_500_000_000,
        trace_state: "k=v,ot=th:8".to_owned(),
        attributes: vec![
            key_value("http.status", Value::IntValue(503)),
            key_value("tier", text("gold")),
            key_value("pointer", text("tier")),
            key_value("letter", text("k")),
            key_value("ratio", Value::DoubleValue(0.5)),
            key_value("cached", Value::BoolValue(true)),
            key_value("list", Value::ArrayValue(list)),
            key_value("map", Value::KvlistValue(map)),
            key_value("raw", Value::BytesValue(vec![1, 255])),
        ],
        dropped_attributes_count: 3,
        events: vec![Event {
            name: "exception".to_owned(),
            time_unix_nano: 5,
            attributes: vec![key_value("type", text("oops"))],
            dropped_attributes_count: 0,
        }],
        status: Some(Status {
            message: "no".to_owned(),
            code: 2,
        }),
        ..Span::default()
    };
    let resource = Resource {
        attributes: vec![key_value("service.name", text("cart"))],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "http".to_owned(),
        version: "2".to_owned(),
        ..InstrumentationScope::default()
    };
    (span, resource, scope)
}

/// A fixed clock and fixed random numbers.
fn outside() -> Outside {
    Outside {
        // 2024-02-29T23:59:58.123456789Z
        now_ns: || Some(1_709_251_198_123_456_789),
        random: || Some(0x0123_4567_89ab_cdef),
    }
}

fn says(condition: &str, context: Context) -> Result<Result<bool, Failure>, Error> {
    let mut keys = Keys::default();
    let condition = Condition::parse(condition, context, &mut keys)?;
    let (decoded, resource, scope) = subject();
    let (message, resource, scope) = (
        decoded.encode_to_vec(),
        resource.encode_to_vec(),
        scope.encode_to_vec(),
    );
    let first_event = decoded.events[0].encode_to_vec();
    let mut slots = Slots::new(&keys);
    let span = span(&message, &mut slots).unwrap();
    let mut told = Told::default();
    told.set_address("10.0.0.1");
    told.add_field("x-tenant", ["a", "b"]);
    told.add_auth("username", "me");
    let subject = Subject {
        span: &span,
        slots: Some(&slots),
        cache: b"",
        client: Some(&told),
        outside: outside(),
        around: Around {
            resource: &resource,
            scope: &scope,
        },
        schemas: Schemas {
            resource: b"https://r",
            scope: b"https://s",
        },
        event: (context == Context::SpanEvent).then(|| (event(&first_event), 0)),
        record: Record::None,
    };
    Ok(condition.is_true(&subject))
}

#[test]
fn what_is_true_of_the_span() {
    for condition in [
        "name == \"GET /cart\"",
        "span.name != \"x\"",
        "attributes[\"http.status\"] >= 500",
        "attributes[\"http.status\"] == 503.0",
        "attributes[\"http.status\"] > 502.5",
        "attributes[\"tier\"] == \"gold\" and not attributes[\"tier\"] == \"silver\"",
        "attributes[\"none\"] == nil",
        "attributes[\"none\"] != \"x\"",
        "nil <= attributes[\"none\"]",
        "attributes[\"tier\"] != nil",
        "attributes[\"tier\"] != 5",
        "attributes[\"cached\"] == true",
        "attributes[\"cached\"] > false",
        "attributes[\"ratio\"] < 1",
        "attributes[\"list\"][0] == \"first\"",
        "attributes[\"list\"][1] == 2",
        "attributes[\"map\"][\"in\"] == \"side\"",
        "attributes[\"map\"][\"out\"] == nil",
        "attributes[\"raw\"] == 0x01ff",
        "resource.attributes[\"service.name\"] == \"cart\"",
        "instrumentation_scope.name == \"http\" and scope.version == \"2\"",
        "kind == SPAN_KIND_SERVER",
        "kind.string == \"Server\"",
        "kind.deprecated_string == \"SPAN_KIND_SERVER\"",
        "status.code == STATUS_CODE_ERROR",
        "status.message == \"no\"",
        "trace_state[\"k\"] == \"v\"",
        "trace_state == \"k=v,ot=th:8\"",
        "trace_id.string == \"abababababababababababababababab\"",
        "trace_id == TraceID(0xabababababababababababababababab)",
        "span_id == SpanID(0x0102030405060708)",
        "parent_span_id.string == \"\"",
        "dropped_attributes_count == 3 and dropped_links_count == 0",
        "end_time_unix_nano - start_time_unix_nano == 2500000000",
        "(end_time_unix_nano - start_time_unix_nano) / 1000000 > 2 * 1000 + 499",
        "end_time - start_time > Duration(\"2s499ms\")",
        "end_time - start_time < Duration(\"0.05m\")",
        "-5 < -4 and 1 - 2 == -1",
        "IsMatch(name, \"^GET .*\")",
        "IsMatch(attributes[\"http.status\"], \"^5..$\")",
        "not IsMatch(attributes[\"none\"], \".*\")",
        "IsString(name) and IsInt(attributes[\"http.status\"]) and IsDouble(attributes[\"ratio\"])",
        "IsBool(attributes[\"cached\"]) and IsMap(attributes[\"map\"]) and IsList(attributes[\"list\"])",
        "IsMap(attributes) and not IsString(attributes[\"none\"])",
        "IsRootSpan()",
        "Len(events) == 1 and Len(span.links) == 0 and Len(events) > Len(links)",
        "resource.schema_url == \"https://r\" and HasSuffix(scope.schema_url, \"s\")",
        "otelcol.client.addr == \"10.0.0.1\"",
        "otelcol.client.metadata[\"X-Tenant\"] == [\"a\", \"b\"]",
        "otelcol.client.metadata[\"x-tenant\"][1] == \"b\"",
        "otelcol.client.metadata[\"x-other\"] == nil",
        "otelcol.client.metadata[\"x-other\"][0] == nil",
        "otelcol.client.auth.attributes[\"username\"] == \"me\"",
        "otelcol.client.auth.attributes[\"Username\"] == nil",
        "IsList(events) and IsEmpty(links) and not IsEmpty(events)",
        "events != nil and links != nil and not (events == events)",
        "Len(attributes) == 9 and Len(name) == 9 and Len(attributes[\"list\"]) == 2",
        "Concat([attributes[\"tier\"], attributes[\"http.status\"], attributes[\"none\"]], \"-\") == \"gold-503-<nil>\"",
        "HasPrefix(name, \"GET\") and HasSuffix(name, \"cart\") and not HasPrefix(name, \"cart\")",
        "ToLowerCase(name) == \"get /cart\" and ToUpperCase(attributes[\"tier\"]) == \"GOLD\"",
        "Int(\"12\") == 12 and Int(\"x\") == nil and Int(1.9) == 1 and String(5) == \"5\"",
        "true or attributes[\"map\"][0] == 1",
        "false or true and not false",
        "(false or (true)) and ((true))",
        "((1 + 2) * 3 == 9)",
    ] {
        assert_eq!(says(condition, Context::Span), Ok(Ok(true)), "{condition}");
    }
}

#[test]
fn what_is_false_of_the_span() {
    for condition in [
        "name == 5",
        "name < 5",
        "attributes[\"none\"] < 5",
        "attributes[\"none\"] == \"\"",
        "attributes[\"tier\"] == nil",
        "attributes[\"http.status\"] == \"503\"",
        "attributes[\"cached\"] == 1",
        "not true",
        "true and false or false",
        "kind == SPAN_KIND_CLIENT",
    ] {
        assert_eq!(says(condition, Context::Span), Ok(Ok(false)), "{condition}");
    }
}

#[test]
fn what_is_true_of_the_event() {
    for condition in [
        "name == \"exception\"",
        "spanevent.attributes[\"type\"] == \"oops\"",
        "attributes[\"type\"] == \"oops\" and span.attributes[\"tier\"] == \"gold\"",
        "time_unix_nano == 5 and event_index == 0",
        "resource.attributes[\"service.name\"] == \"cart\"",
    ] {
        assert_eq!(
            says(condition, Context::SpanEvent),
            Ok(Ok(true)),
            "{condition}"
        );
    }
}

#[test]
fn what_cannot_be_said() {
    for (condition, failure) in [
        ("attributes[\"list\"][2] == 1", Failure::Index),
        ("attributes[\"tier\"][\"x\"] == 1", Failure::Type),
        ("attributes[\"map\"][0] == 1", Failure::Type),
        ("Len(attributes[\"none\"]) == 0", Failure::Type),
        (
            "HasPrefix(attributes[\"http.status\"], \"5\")",
            Failure::Type,
        ),
        ("1 / 0 == 1", Failure::Math),
        ("name + 1 == 2", Failure::Type),
        ("false and true or Len(5) == 1", Failure::Type),
    ] {
        assert_eq!(
            says(condition, Context::Span),
            Ok(Err(failure)),
            "{condition}"
        );
    }
}

#[test]
fn what_is_refused_is_named() {
    for (condition, at, why) in [
        ("", 0, "a value is expected"),
        ("name", 4, "a comparison is expected"),
        ("name ==", 7, "a value is expected"),
        ("name == \"x", 8, "no closing quote"),
        ("name == \"\\d\"", 8, "\\d is no escape"),
        ("nome == 1", 0, "the path nome is not supported"),
        (
            "resource.name == 1",
            0,
            "the path resource.name is not supported",
        ),
        (
            "spanevent.name == \"x\"",
            0,
            "spanevent.name is not supported",
        ),
        ("name[\"x\"] == 1", 0, "no such key"),
        ("Foo(name) == 1", 0, "the function Foo is not supported"),
        ("set(name, 1)", 0, "the function set is not supported"),
        (
            "true and GetXML(name) == 1",
            9,
            "the function GetXML is not supported: XPath",
        ),
        ("IsMatch(name)", 0, "takes 2 arguments"),
        ("IsMatch(name, \"(\")", 0, "regular expression"),
        ("IsMatch(name, name)", 0, "must be a text"),
        ("kind == SPAN_KIND_OTHER", 8, "no enum SPAN_KIND_OTHER"),
        ("name == {1: 1}", 9, "a key in quotes"),
        ("status == 1", 0, "name a part of it"),
        ("attributes[0] == 1", 0, "no such key"),
        ("attributes[nil] == 1", 14, "a text or a number"),
        ("Split(name, \" \", x = 1)[0] == 1", 17, "no argument x"),
        (
            "Split(name, delimiter = \" \", target = name) == 1",
            29,
            "is there twice",
        ),
        (
            "UserAgent(name) == 1",
            0,
            "UserAgent is not supported: the list of user agents",
        ),
        ("All(attributes) == true", 0, "ottl.functions.enableLambda"),
        (
            "name in [\"a\"]",
            5,
            "OTTL has no operator `in`: write ContainsValue([...], value)",
        ),
        ("(name == \"a\"", 12, "`)` is expected"),
        ("name == \"a\" name", 12, "`name` is not expected"),
        ("name == \"a\" && true", 12, "'&'"),
        ("0x123 == 1", 0, "even number"),
        ("99999999999999999999 == 1", 0, "64 bits"),
    ] {
        let error = says(condition, Context::Span).expect_err(condition);
        assert!(error.why.contains(why), "{condition}: {error}");
        assert_eq!(error.at, at, "{condition}: {error}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let parens = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    assert!(says(&parens(20), Context::Span).is_ok());
    for deep in [
        parens(5000),
        format!("{}true", "not ".repeat(500)),
        format!("{}1 == 1", "-".repeat(5000)),
        format!("{}1{} == 1", "(".repeat(4000), ")".repeat(4000)),
    ] {
        assert!(says(&deep, Context::Span).is_err());
    }
    let long = "true or ".repeat(1500) + "true";
    assert!(says(&long, Context::Span).is_ok());
    assert!(
        says(&"true or ".repeat(5000), Context::Span)
            .unwrap_err()
            .why
            .contains("bytes")
    );
}
