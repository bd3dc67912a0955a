//! What `include` and `exclude` let through.

use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::{kv, text, traces};
use crate::config::Signal;
use crate::config::components::processors::action::{Action, AttributeValue, Source, When};
use crate::config::components::processors::attributes::Attributes;
use crate::config::components::processors::matching::Matching;
use crate::run::process::attributes::Editor;

fn nothing(regex: bool) -> Matching {
    Matching {
        regex,
        services: vec![],
        span_names: vec![],
        span_kinds: vec![],
        attributes: vec![],
        resources: vec![],
        libraries: vec![],
    }
}

/// Whether a span is changed: one of a service, a kind, with a list and others of each type.
fn counts(include: Option<Matching>, exclude: Option<Matching>) -> bool {
    let value = Source::Value(AttributeValue::Bool(true));
    let settings = Attributes {
        include,
        exclude,
        actions: vec![Action::Set {
            key: "new".into(),
            source: value,
            when: When::Always,
        }],
    };
    let list = V::ArrayValue(ArrayValue {
        values: vec![AnyValue {
            value: Some(V::IntValue(1)),
        }],
    });
    let span = Span {
        name: "GET /a".into(),
        kind: 2,
        attributes: vec![
            kv("text", text("one")),
            kv("int", V::IntValue(200)),
            kv("double", V::DoubleValue(0.5)),
            kv("bool", V::BoolValue(true)),
            kv("list", list),
        ],
        ..Span::default()
    };
    let resource = vec![kv("service.name", text("shop")), kv("zone", text("b"))];
    let request = traces(resource, vec![span]).encode_to_vec();
    let edited = Editor::new(&settings).unwrap();
    let edited = edited.edit(Signal::Traces, &request, None).unwrap();
    edited.bytes.is_some()
}

#[test]
fn each_property_is_looked_at() {
    let texts = |list: &[&str]| {
        list.iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    type Change = fn(&mut Matching, Vec<String>);
    let services: Change = |matching, texts| matching.services = texts;
    let names: Change = |matching, texts| matching.span_names = texts;
    let kinds: Change = |matching, texts| matching.span_kinds = texts;
    let libraries: Change = |matching, texts| {
        let library = |text: String| match text.split_once('@') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (text, None),
        };
        matching.libraries = texts.into_iter().map(library).collect();
    };
    for (regex, change, list, wanted) in [
        (false, services, &["a", "shop"][..], true),
        (false, services, &["sho"], false),
        (true, services, &["^sho"], true),
        (true, services, &["^ho"], false),
        (false, names, &["GET /a"], true),
        (false, names, &["GET"], false),
        (true, names, &["x", r"^GET /\w$"], true),
        (false, kinds, &["SPAN_KIND_SERVER"], true),
        (false, kinds, &["SPAN_KIND_CLIENT"], false),
        (true, kinds, &["SERVER$"], true),
        (false, libraries, &["lib"], true),
        (false, libraries, &["other", "lib@1.2"], true),
        (false, libraries, &["lib@1.3"], false),
        (true, libraries, &["^l@^1"], true),
    ] {
        let mut matching = nothing(regex);
        change(&mut matching, texts(list));
        let shown = format!("{matching:?}");
        assert_eq!(counts(Some(matching.clone()), None), wanted, "{shown}");
        assert_eq!(counts(None, Some(matching)), !wanted, "{shown}");
    }
}

#[test]
fn attributes_are_of_a_type() {
    use AttributeValue as A;
    let t = |text: &str| Some(A::Text(text.into()));
    for (regex, key, value, wanted) in [
        (false, "text", None, true),
        (false, "none", None, false),
        (false, "text", t("one"), true),
        (false, "text", t("on"), false),
        (false, "int", Some(A::Int(200)), true),
        (false, "int", t("200"), false),
        (false, "int", Some(A::Double(200.0)), false),
        (false, "double", Some(A::Double(0.5)), true),
        (false, "bool", Some(A::Bool(false)), false),
        (false, "list", Some(A::List(vec![A::Int(1)])), true),
        (false, "list", Some(A::List(vec![])), false),
        (true, "text", t("^on"), true),
        (true, "int", t("^20.$"), true),
        (true, "double", t("^0.5$"), true),
        (true, "bool", t("true"), true),
        (true, "list", t("."), false),
        (true, "list", None, true),
    ] {
        let mut matching = nothing(regex);
        matching.attributes = vec![(key.to_owned(), value)];
        let shown = format!("{matching:?}");
        assert_eq!(counts(Some(matching), None), wanted, "{shown}");
    }
    let mut matching = nothing(false);
    matching.resources = vec![("zone".into(), t("b")), ("service.name".into(), None)];
    assert!(counts(Some(matching.clone()), None));
    // All of them, and what the span has is not the resource's.
    matching.resources.push(("text".into(), None));
    assert!(!counts(Some(matching), None));
}

#[test]
fn exclude_goes_before_include() {
    let mut include = nothing(false);
    include.services = vec!["shop".into()];
    let mut exclude = nothing(false);
    exclude.span_names = vec!["GET /a".into()];
    assert!(!counts(Some(include.clone()), Some(exclude.clone())));
    exclude.span_names = vec!["GET /b".into()];
    assert!(counts(Some(include), Some(exclude)));
}
