//! Random requests, changed and filtered as bytes and as messages: the same comes out, and what
//! nothing is done to stays as it came.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use otlp::Signal;
use ottl::Context;
use prost::Message;

use super::filter::rules;
use super::oracle::{KEYS, attributes_of, spans_of, traces, with_unknown};
use super::random::Random;
use super::transform::{editor, group};
use super::{kv, text};

/// What a statement does, as text and on messages.
#[derive(Clone, Debug)]
enum Step {
    /// `set(attributes["k"], 5)`
    SetInt(&'static str),
    /// `set(attributes["k"], attributes["l"])`
    Copy(&'static str, &'static str),
    Delete(&'static str),
    Keep(&'static str, &'static str),
    /// Keys of one character go.
    DeleteShort,
    Truncate(usize),
    /// `x` becomes `yy` in all texts.
    Replace,
    Stringless(&'static str),
    Merge(&'static str),
    Rename,
    /// `set(name, "renamed") where attributes["k"] != nil`
    NameWhere(&'static str),
    SetEvents(&'static str),
}

fn step(random: &mut Random) -> Step {
    let (key, other) = (*random.pick(&KEYS), *random.pick(&KEYS));
    match random.below(12) {
        0 => Step::SetInt(key),
        1 => Step::Copy(key, other),
        2 => Step::Delete(key),
        3 => Step::Keep(key, other),
        4 => Step::DeleteShort,
        5 => Step::Truncate(random.below(20) as usize),
        6 => Step::Replace,
        7 => Step::Stringless(key),
        8 => Step::Merge(key),
        9 => Step::Rename,
        10 => Step::NameWhere(key),
        _ => Step::SetEvents(key),
    }
}

fn statement(step: &Step) -> (Context, String) {
    let of_span = |text: String| (Context::Span, text);
    match step {
        Step::SetInt(key) => of_span(format!(r#"set(attributes["{key}"], 5)"#)),
        Step::Copy(to, from) => {
            of_span(format!(r#"set(attributes["{to}"], attributes["{from}"])"#))
        }
        Step::Delete(key) => of_span(format!(r#"delete_key(attributes, "{key}")"#)),
        Step::Keep(one, two) => of_span(format!(r#"keep_keys(attributes, ["{one}", "{two}"])"#)),
        Step::DeleteShort => of_span(r#"delete_matching_keys(attributes, "^.$")"#.to_owned()),
        Step::Truncate(limit) => of_span(format!("truncate_all(attributes, {limit})")),
        Step::Replace => {
            of_span(r#"replace_all_patterns(attributes, "value", "x", "yy")"#.to_owned())
        }
        Step::Stringless(key) => of_span(format!(
            r#"delete_key(attributes, "{key}") where not IsString(attributes["{key}"])"#
        )),
        Step::Merge(key) => of_span(format!(
            r#"merge_maps(attributes, {{"{key}": true, "new": 1}}, "insert")"#
        )),
        Step::Rename => {
            of_span(r#"replace_all_patterns(attributes, "key", "^[ab]$", "ab")"#.to_owned())
        }
        Step::NameWhere(key) => of_span(format!(
            r#"set(name, "renamed") where attributes["{key}"] != nil"#
        )),
        Step::SetEvents(key) => {
            let text =
                format!(r#"set(attributes["from"], span.attributes["{key}"]) where name == "b""#);
            (Context::SpanEvent, text)
        }
    }
}

fn find<'l>(list: &'l mut [KeyValue], key: &str) -> Option<&'l mut KeyValue> {
    list.iter_mut().find(|one| one.key == key)
}

fn put(list: &mut Vec<KeyValue>, key: &str, value: Option<AnyValue>) {
    match find(list, key) {
        Some(one) => one.value = value,
        None => list.push(KeyValue {
            value,
            ..kv(key, V::IntValue(0))
        }),
    }
}

fn texts(list: &mut [KeyValue], change: impl Fn(&str) -> String) {
    for one in list {
        if let Some(V::StringValue(text)) = one.value.as_mut().and_then(|any| any.value.as_mut()) {
            *text = change(text);
        }
    }
}

/// The same step on a decoded span.
fn model(step: &Step, span: &mut Span) {
    let any = |value| Some(AnyValue { value: Some(value) });
    let list = &mut span.attributes;
    match step {
        Step::SetInt(key) => put(list, key, any(V::IntValue(5))),
        Step::Copy(to, from) => {
            if let Some(value) = find(list, from).map(|one| one.value.clone()) {
                put(list, to, value);
            }
        }
        Step::Delete(key) => {
            if let Some(at) = list.iter().position(|one| one.key == *key) {
                list.remove(at);
            }
        }
        Step::Keep(one, two) => {
            list.retain(|attribute| attribute.key == *one || attribute.key == *two)
        }
        Step::DeleteShort => list.retain(|one| one.key.chars().count() != 1),
        Step::Truncate(limit) => texts(list, |text| {
            let ends = (0..=*limit).rev().filter(|end| text.is_char_boundary(*end));
            let end = if text.len() <= *limit {
                text.len()
            } else {
                ends.max().unwrap_or(0)
            };
            text[..end].to_owned()
        }),
        Step::Replace => texts(list, |text| text.replace('x', "yy")),
        Step::Stringless(key) => {
            let at = list.iter().position(|one| one.key == *key);
            let is_text = |one: &KeyValue| {
                let value = one.value.as_ref().and_then(|any| any.value.as_ref());
                matches!(value, Some(V::StringValue(_)))
            };
            if let Some(at) = at.filter(|at| !is_text(&list[*at])) {
                list.remove(at);
            }
        }
        Step::Merge(key) => {
            for (key, value) in [(*key, V::BoolValue(true)), ("new", V::IntValue(1))] {
                if find(list, key).is_none() {
                    list.push(kv(key, value));
                }
            }
        }
        Step::Rename => {
            let mut at = 0;
            while at < list.len() {
                if matches!(&*list[at].key, "a" | "b") {
                    match list.iter().position(|one| one.key == "ab") {
                        Some(other) => {
                            list[other].value = list[at].value.clone();
                            list.remove(at);
                            continue;
                        }
                        None => list[at].key = "ab".to_owned(),
                    }
                }
                at += 1;
            }
        }
        Step::NameWhere(key) => {
            if find(list, key).is_some() {
                span.name = "renamed".to_owned();
            }
        }
        Step::SetEvents(key) => {
            let value = find(list, key).map(|one| one.value.clone());
            for event in span.events.iter_mut().filter(|event| event.name == "b") {
                if let Some(value) = &value {
                    put(&mut event.attributes, "from", value.clone());
                }
            }
        }
    }
}

fn spans_mut(request: &mut ExportTraceServiceRequest) -> impl Iterator<Item = &mut Span> {
    let scopes = request.resource_spans.iter_mut();
    let scopes = scopes.flat_map(|resource| &mut resource.scope_spans);
    scopes.flat_map(|scope| &mut scope.spans)
}

/// Random traces whose spans have events.
fn request(random: &mut Random) -> ExportTraceServiceRequest {
    let mut request = traces(random);
    for span in spans_mut(&mut request) {
        let event = |random: &mut Random| Event {
            name: (*random.pick(&KEYS)).to_owned(),
            attributes: attributes_of(random),
            ..Event::default()
        };
        span.events = (0..random.below(4)).map(|_| event(random)).collect();
    }
    request
}

#[test]
fn spans_become_what_they_should() {
    let mut changed = 0;
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let before = request(&mut random);
        let steps: Vec<Step> = (0..random.below(4) + 1)
            .map(|_| step(&mut random))
            .collect();
        let mut after = before.clone();
        for step in &steps {
            spans_mut(&mut after).for_each(|span| model(step, span));
        }
        let mut bytes = before.encode_to_vec();
        if seed % 2 == 0 {
            bytes = with_unknown(&bytes, 3);
        }
        let groups = steps.iter().map(statement);
        let groups = groups.map(|(context, text)| group(context, &[], &[&text]));
        let edited = editor(groups.collect())
            .edit(Signal::Traces, &bytes, None)
            .unwrap()
            .bytes;
        let edited = edited.unwrap_or(bytes.clone());
        let got = ExportTraceServiceRequest::decode(&edited[..]).unwrap();
        assert_eq!(got, after, "{seed} {steps:?}");
        // Spans that nothing was done to are as they came, byte for byte.
        let (mut old, mut new) = (before.clone(), after.clone());
        let decoded = spans_mut(&mut old).zip(spans_mut(&mut new));
        let pairs = spans_of(&bytes).into_iter().zip(spans_of(&edited));
        for ((old_bytes, new_bytes), (old, new)) in pairs.zip(decoded) {
            assert!(old != new || old_bytes == new_bytes, "{seed} {steps:?}");
            changed += u64::from(old != new);
        }
    }
    assert!(changed > 1000, "{changed}");
}

#[test]
fn spans_and_events_are_dropped_as_they_should() {
    let has = |list: &[KeyValue], key: &str| list.iter().any(|one| one.key == key);
    let mut dropped = 0;
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let before = request(&mut random);
        let (key, name, of_resource, of_event) = (
            *random.pick(&KEYS),
            *random.pick(&KEYS),
            *random.pick(&KEYS),
            *random.pick(&KEYS),
        );
        let mut after = before.clone();
        for resource in &mut after.resource_spans {
            let list = resource.resource.clone().unwrap().attributes;
            for scope in &mut resource.scope_spans {
                scope
                    .spans
                    .retain(|span| !(has(&span.attributes, key) && span.name != name));
                if has(&list, of_resource) {
                    scope.spans.clear();
                }
                for span in &mut scope.spans {
                    span.events.retain(|event| event.name != of_event);
                }
            }
            resource.scope_spans.retain(|scope| !scope.spans.is_empty());
        }
        after
            .resource_spans
            .retain(|resource| !resource.scope_spans.is_empty());
        let bytes = with_unknown(&before.encode_to_vec(), 3);
        let rules = rules(vec![
            group(
                Context::Resource,
                &[&format!(r#"attributes["{of_resource}"] != nil"#)],
                &[],
            ),
            group(
                Context::Span,
                &[&format!(
                    r#"attributes["{key}"] != nil and name != "{name}""#
                )],
                &[],
            ),
            group(
                Context::SpanEvent,
                &[&format!(r#"name == "{of_event}""#)],
                &[],
            ),
        ]);
        let edited = rules.filter(Signal::Traces, &bytes, None).unwrap();
        let left = edited.bytes.unwrap_or(bytes.clone());
        let got = ExportTraceServiceRequest::decode(&left[..]).unwrap();
        assert_eq!(got, after, "{seed}");
        let count =
            |request: &ExportTraceServiceRequest| spans_mut(&mut request.clone()).count() as u64;
        assert_eq!(edited.dropped, count(&before) - count(&after), "{seed}");
        dropped += edited.dropped;
        // A span that kept its events is as it came, with what nobody knows.
        let old: Vec<Vec<u8>> = spans_of(&bytes).into_iter().map(<[u8]>::to_vec).collect();
        for span in spans_of(&left) {
            let decoded = Span::decode(span).unwrap();
            let has_all = before_spans(&before).any(|before| before == decoded);
            assert!(!has_all || old.iter().any(|old| old == span), "{seed}");
            assert!(span.starts_with(b"\xfa\x3e\x03new"), "{seed}");
        }
    }
    assert!(dropped > 500, "{dropped}");
    // A request of texts alone: nothing of it is dropped.
    let whole = super::traces(vec![kv("a", text("b"))], vec![Span::default()]).encode_to_vec();
    let none = rules(vec![group(Context::Span, &["name == \"x\""], &[])]);
    assert_eq!(
        none.filter(Signal::Traces, &whole, None).unwrap().bytes,
        None
    );
}

fn before_spans(request: &ExportTraceServiceRequest) -> impl Iterator<Item = Span> {
    let scopes = request.resource_spans.iter();
    let scopes = scopes.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone())
}
