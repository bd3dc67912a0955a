//! Each action, worked by hand.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::{kv, text, traces};
use crate::config::Signal;
use crate::config::components::processors::action::{Action, AttributeValue, Source, Type, When};
use crate::config::components::processors::{attributes, resource};
use crate::run::process::attributes::Editor;
use crate::run::process::resource::Editor as ResourceEditor;

/// What the attributes of a span become; none where the request stays as it came.
fn become_of(actions: Vec<Action>, before: &[(&str, V)]) -> Option<Vec<(String, V)>> {
    let settings = attributes::Attributes {
        include: None,
        exclude: None,
        actions,
    };
    let span = Span {
        attributes: before.iter().map(|(k, v)| kv(k, v.clone())).collect(),
        name: "n".into(),
        ..Span::default()
    };
    let request = traces(vec![], vec![span]).encode_to_vec();
    let edited = Editor::new(&settings).unwrap();
    let edited = edited.edit(Signal::Traces, &request, None).unwrap().bytes?;
    let request = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
    let span = &request.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(span.name, "n");
    let pairs = span.attributes.iter().map(|attribute| {
        let value = attribute.value.clone().and_then(|value| value.value);
        (attribute.key.clone(), value.unwrap())
    });
    Some(pairs.collect())
}

fn check(action: Action, before: &[(&str, V)], after: Option<&[(&str, V)]>) {
    let shown = format!("{action:?} {before:?}");
    let got = become_of(vec![action], before);
    let owned = |pairs: &[(&str, V)]| -> Vec<(String, V)> {
        let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
        pairs.collect()
    };
    assert_eq!(got, after.map(owned), "{shown}");
}

fn set(key: &str, source: Source, when: When) -> Action {
    Action::Set {
        key: key.into(),
        source,
        when,
    }
}

#[test]
fn keys_are_set() {
    let value = || Source::Value(AttributeValue::Int(5));
    let from = || Source::Attribute("b".into());
    let a = [("a", text("x")), ("z", V::BoolValue(true))];
    let five = || V::IntValue(5);
    for (when, source, before, after) in [
        (When::Missing, value(), &a[..], None),
        (
            When::Missing,
            value(),
            &a[1..],
            Some(vec![("z", V::BoolValue(true)), ("a", five())]),
        ),
        (When::Missing, value(), &[], Some(vec![("a", five())])),
        (
            When::Present,
            value(),
            &a,
            Some(vec![("a", five()), ("z", V::BoolValue(true))]),
        ),
        (When::Present, value(), &a[1..], None),
        (When::Always, value(), &[("a", five())], None),
        (When::Always, from(), &a, None),
        (
            When::Always,
            from(),
            &[("b", text("y"))],
            Some(vec![("b", text("y")), ("a", text("y"))]),
        ),
        // Of a key that is there twice the first one counts.
        (
            When::Always,
            value(),
            &[("a", text("x")), ("a", text("y"))],
            Some(vec![("a", five()), ("a", text("y"))]),
        ),
    ] {
        check(set("a", source, when), before, after.as_deref());
    }
}

#[test]
fn keys_are_deleted() {
    let delete = |key: &str, pattern: Option<&str>| Action::Delete {
        key: key.into(),
        pattern: pattern.map(str::to_owned),
    };
    let all = [("a1", text("x")), ("b", text("y")), ("a2", text("z"))];
    let left = |at: &[usize]| -> Vec<_> { at.iter().map(|at| all[*at].clone()).collect() };
    check(delete("b", None), &all, Some(&left(&[0, 2])));
    check(delete("c", None), &all, None);
    check(delete("", Some("^a")), &all, Some(&left(&[1])));
    check(delete("b", Some("2$")), &all, Some(&left(&[0])));
    check(delete("", Some("")), &all, Some(&[]));
    // By key the first one only, by a pattern all.
    let twice = [("a", text("x")), ("a", text("y"))];
    check(delete("a", None), &twice, Some(&[("a", text("y"))]));
    check(delete("", Some("a")), &twice, Some(&[]));
}

#[test]
fn values_are_hashed() {
    let hash = |key: &str, pattern: Option<&str>| Action::Hash {
        key: key.into(),
        pattern: pattern.map(str::to_owned),
    };
    let of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    for (value, hex) in [
        (text("a"), of_a),
        (text(""), ""),
        (
            V::BoolValue(true),
            "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a",
        ),
        (V::IntValue(-7), INT),
        (V::DoubleValue(1.5), DOUBLE),
        (V::BytesValue(b"a".to_vec()), ""),
        (V::ArrayValue(ArrayValue::default()), ""),
    ] {
        let after = [("a", text(hex))];
        let is_same = value == text(hex);
        check(
            hash("a", None),
            &[("a", value)],
            (!is_same).then_some(&after),
        );
    }
    let both = [("a", text("a")), ("b", text("a"))];
    let by_pattern = [("a", text(of_a)), ("b", text(of_a))];
    check(hash("", Some(".")), &both, Some(&by_pattern));
    // The key, and then what matches: the same one twice.
    let twice = [("a", text(TWICE)), ("b", text(of_a))];
    check(hash("a", Some(".")), &both, Some(&twice));
}

const INT: &str = "9db26f8ea010babf6afb228a7b257afe54c28f98cd0b246a2f16dc14d16336d7";
const DOUBLE: &str = "e163f8cb0f7067a7fc78ca859a77f849aea3214f38fb75b884e4a16be725c905";
const TWICE: &str = "da3811154d59c4267077ddd8bb768fa9b06399c486e1fc00485116b57c9872f5";

#[test]
fn groups_are_extracted() {
    let extract = |pattern: &str| Action::Extract {
        key: "url".into(),
        pattern: pattern.into(),
    };
    let url = || ("url", text("http://h/p?q"));
    check(
        extract(r"^(?P<scheme>\w+)://(?P<host>[^/]+)(?P<none>x)?"),
        &[url(), ("host", V::IntValue(1))],
        Some(&[
            url(),
            ("host", text("h")),
            ("scheme", text("http")),
            ("none", text("")),
        ]),
    );
    check(extract("(?P<a>^ftp)"), &[url()], None);
    check(extract("(?P<a>.)"), &[("url", V::IntValue(1))], None);
    check(
        extract("://(?P<url>.)"),
        &[url()],
        Some(&[("url", text("h"))]),
    );
}

#[test]
fn values_are_converted() {
    let list = V::ArrayValue(ArrayValue {
        values: vec![AnyValue {
            value: Some(V::IntValue(1)),
        }],
    });
    for (to, value, after) in [
        (Type::Text, text("5"), None),
        (Type::Text, V::IntValue(-5), Some(text("-5"))),
        (Type::Text, V::DoubleValue(1e21), Some(text("1e+21"))),
        (Type::Text, list.clone(), Some(text("[1]"))),
        (Type::Int, text("-5"), Some(V::IntValue(-5))),
        (Type::Int, text("5.0"), None),
        (Type::Int, text(""), None),
        (Type::Int, V::DoubleValue(-5.9), Some(V::IntValue(-5))),
        (Type::Int, V::DoubleValue(1e30), Some(V::IntValue(i64::MAX))),
        (Type::Int, V::BoolValue(true), Some(V::IntValue(1))),
        (Type::Int, list.clone(), None),
        (Type::Double, text("1e-2"), Some(V::DoubleValue(0.01))),
        (Type::Double, text("1e999"), None),
        (Type::Double, V::IntValue(3), Some(V::DoubleValue(3.0))),
        (Type::Double, V::BoolValue(false), Some(V::DoubleValue(0.0))),
        (Type::Double, V::BytesValue(b"1".to_vec()), None),
    ] {
        let action = Action::Convert {
            key: "a".into(),
            to,
        };
        let after = after.map(|after| [("a", after)]);
        check(
            action,
            &[("a", value)],
            after.as_ref().map(|after| &after[..]),
        );
    }
}

#[test]
fn actions_are_done_in_their_order() {
    let upsert = |key: &str, from: &str| set(key, Source::Attribute(from.into()), When::Always);
    let delete = Action::Delete {
        key: "a".into(),
        pattern: None,
    };
    let hash = Action::Hash {
        key: "b".into(),
        pattern: None,
    };
    let got = become_of(
        vec![
            upsert("b", "a"),
            delete,
            hash,
            upsert("a", "b"),
            upsert("c", "a"),
        ],
        &[("a", text("a")), ("z", text("z"))],
    );
    let of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    let keys = ["z", "b", "a", "c"];
    let values = ["z", of_a, of_a, of_a];
    let wanted = keys.into_iter().zip(values);
    let wanted: Vec<_> = wanted.map(|(k, v)| (k.to_owned(), text(v))).collect();
    assert_eq!(got, Some(wanted));
}

#[test]
fn a_resource_that_is_not_there_gets_attributes() {
    let value = Source::Value(AttributeValue::Text("v".into()));
    let settings = resource::Resource {
        actions: vec![set("k", value, When::Always)],
    };
    let editor = ResourceEditor::new(&settings).unwrap();
    let mut request = traces(vec![], vec![Span::default()]);
    request.resource_spans[0].resource = None;
    let edited = editor
        .edit(&request.encode_to_vec(), None)
        .unwrap()
        .bytes
        .unwrap();
    let edited = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
    let resource = edited.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(resource.attributes, [kv("k", text("v"))]);
    assert_eq!(edited.resource_spans[0].schema_url, "r");
    // One in two parts is one.
    let parts =
        b"\x0a\x14\x0a\x09\x0a\x07\x0a\x01k\x12\x02\x0a\x00\x0a\x02\x10\x03\x12\x03\x1a\x01s";
    let before = ExportTraceServiceRequest::decode(&parts[..]).unwrap();
    let edited = editor.edit(parts, None).unwrap().bytes.unwrap();
    let edited = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
    let mut wanted = before;
    let resource = wanted.resource_spans[0].resource.as_mut().unwrap();
    assert_eq!(resource.dropped_attributes_count, 3);
    resource.attributes = vec![kv("k", text("v"))];
    assert_eq!(edited, wanted);
}
