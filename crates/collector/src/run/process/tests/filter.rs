//! What conditions drop, worked out by hand.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span, span::Event};
use otlp::Signal;
use ottl::{Context, Failure};
use prost::Message;
use tail::settings::ErrorMode;

use super::transform::group;
use super::{kv, log_of, text, traces};
use crate::config::components::processors::filter::{Filter, Kept};
use crate::config::components::processors::matching::Matching;
use crate::config::components::processors::statements::Group;
use crate::run::process::failures::{Failures, Fault};
use crate::run::process::filter::Rules;

pub fn rules(conditions: Vec<Group>) -> Rules {
    let settings = Filter {
        traces: conditions,
        ..Filter::default()
    };
    Rules::new(&settings, Failures::new("filter", &log_of().0)).unwrap()
}

fn span(name: &str, events: &[&str]) -> Span {
    let event = |name: &&str| Event {
        name: (*name).to_owned(),
        ..Event::default()
    };
    Span {
        name: name.to_owned(),
        attributes: vec![kv("n", V::IntValue(name.len() as i64))],
        events: events.iter().map(event).collect(),
        ..Span::default()
    }
}

/// Two resources, `cart` and `auth`; the first with a scope `lib`, a scope `other`, and one without
/// spans.
fn request() -> ExportTraceServiceRequest {
    let mut request = traces(
        vec![kv("service.name", text("cart"))],
        vec![span("a", &[]), span("bb", &["x", "y"])],
    );
    let scopes = &mut request.resource_spans[0].scope_spans;
    let mut other = scopes[0].clone();
    other.scope.as_mut().unwrap().name = "other".into();
    other.spans = vec![span("ccc", &["x"])];
    scopes.push(other);
    scopes.push(ScopeSpans::default());
    let auth = traces(vec![kv("service.name", text("auth"))], vec![span("a", &[])]);
    request.resource_spans.extend(auth.resource_spans);
    request
}

/// `resource/scope/span` and the names of events, of what is left, and how many spans are gone.
fn left(conditions: Vec<Group>) -> (Vec<String>, u64) {
    let bytes = request().encode_to_vec();
    let edited = rules(conditions)
        .filter(Signal::Traces, &bytes, None)
        .unwrap();
    let bytes = edited.bytes.unwrap_or(bytes);
    let left = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
    let mut lines = Vec::new();
    for resource in &left.resource_spans {
        let name = resource.resource.as_ref().unwrap().attributes[0]
            .value
            .clone()
            .unwrap();
        let Some(V::StringValue(service)) = name.value else {
            panic!("no name");
        };
        assert!(!resource.scope_spans.is_empty());
        for scope in &resource.scope_spans {
            assert!(!scope.spans.is_empty());
            let name = &scope.scope.as_ref().unwrap().name;
            for span in &scope.spans {
                let events: Vec<_> = span
                    .events
                    .iter()
                    .map(|event| event.name.as_str())
                    .collect();
                lines.push(format!("{service}/{name}/{}{}", span.name, events.concat()));
            }
        }
    }
    (lines, edited.dropped)
}

#[test]
fn conditions_drop_what_they_are_true_of() {
    let all = [
        "cart/lib/a",
        "cart/lib/bbxy",
        "cart/other/cccx",
        "auth/lib/a",
    ];
    let lines = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    let one = |context, conditions: &[&str]| left(vec![group(context, conditions, &[])]);
    // What was empty goes even if nothing is dropped.
    assert_eq!(one(Context::Span, &["false"]), (lines(&all), 0));
    let by_name = one(Context::Span, &[r#"name == "a""#]);
    assert_eq!(by_name, (lines(&all[1..3]), 2));
    let by_two = one(
        Context::Span,
        &[r#"attributes["n"] == 2"#, r#"scope.name == "other""#],
    );
    assert_eq!(by_two, (lines(&[all[0], all[3]]), 2));
    let by_resource = one(
        Context::Resource,
        &[r#"attributes["service.name"] == "cart""#],
    );
    assert_eq!(by_resource, (lines(&all[3..]), 3));
    let by_scope = one(
        Context::Scope,
        &[r#"name == "lib" and resource.attributes["service.name"] == "cart""#],
    );
    assert_eq!(by_scope, (lines(&all[2..]), 2));
    let by_event = one(Context::SpanEvent, &[r#"name == "x" and span.name != "a""#]);
    assert_eq!(
        by_event,
        (
            lines(&["cart/lib/a", "cart/lib/bby", "cart/other/ccc", "auth/lib/a"]),
            0
        )
    );
    let everything = one(Context::Span, &["true"]);
    assert_eq!(everything, (vec![], 4));
    let all_contexts = left(vec![
        group(
            Context::Resource,
            &[r#"attributes["service.name"] == "auth""#],
            &[],
        ),
        group(Context::Span, &[r#"name == "a""#], &[]),
        group(Context::SpanEvent, &[r#"event_index == 0"#], &[]),
        group(Context::Span, &[r#"name == "ccc""#], &[]),
    ]);
    assert_eq!(all_contexts, (lines(&["cart/lib/bby"]), 3));
}

#[test]
fn what_is_left_is_as_it_came() {
    let bytes = traces(vec![], vec![span("a", &["x"])]).encode_to_vec();
    let kept = rules(vec![
        group(Context::Span, &["false"], &[]),
        group(Context::SpanEvent, &["false"], &[]),
    ]);
    assert_eq!(
        kept.filter(Signal::Traces, &bytes, None).unwrap().bytes,
        None
    );
    assert_eq!(
        rules(vec![])
            .filter(Signal::Traces, &bytes, None)
            .unwrap()
            .bytes,
        None
    );
}

#[test]
fn failures_are_propagated_or_false() {
    let failing = |error_mode| Group {
        error_mode,
        ..group(Context::Span, &["Len(kind) == 1", r#"name == "a""#], &[])
    };
    assert_eq!(left(vec![failing(ErrorMode::Ignore)]).1, 2);
    let bytes = request().encode_to_vec();
    let propagated =
        rules(vec![failing(ErrorMode::Propagate)]).filter(Signal::Traces, &bytes, None);
    assert_eq!(propagated.unwrap_err(), Fault::Ottl(Failure::Type));
}

#[test]
fn spans_are_included_and_excluded() {
    let matching = |services: &[&str], names: &[&str]| Matching {
        regex: true,
        services: services.iter().map(|name| (*name).to_owned()).collect(),
        span_names: names.iter().map(|name| (*name).to_owned()).collect(),
        span_kinds: vec![],
        attributes: vec![],
        resources: vec![],
        libraries: vec![],
    };
    let settings = Filter {
        spans: Kept {
            include: Some(matching(&["^c"], &[])),
            exclude: Some(matching(&[], &["b+", "^c$"])),
        },
        ..Filter::default()
    };
    let rules = Rules::new(&settings, Failures::new("filter", &log_of().0)).unwrap();
    let edited = rules
        .filter(Signal::Traces, &request().encode_to_vec(), None)
        .unwrap();
    assert_eq!(edited.dropped, 2);
    let left = ExportTraceServiceRequest::decode(&edited.bytes.unwrap()[..]).unwrap();
    let scopes = &left.resource_spans[0].scope_spans;
    let names: Vec<_> = scopes
        .iter()
        .flat_map(|scope| &scope.spans)
        .map(|span| &*span.name)
        .collect();
    assert_eq!((left.resource_spans.len(), names), (1, vec!["a", "ccc"]));
}

#[test]
fn schema_urls_are_conditions() {
    let mut request = request();
    request.resource_spans[0].schema_url = "other".into();
    request.resource_spans[1].scope_spans[0].schema_url = "t".into();
    let bytes = request.encode_to_vec();
    for (context, condition, dropped) in [
        (Context::Resource, r#"schema_url == "other""#, 3),
        (Context::Scope, r#"schema_url == "s""#, 3),
        (Context::Scope, r#"resource.schema_url == "r""#, 1),
        (
            Context::Span,
            r#"scope.schema_url == "t" and resource.schema_url == "r""#,
            1,
        ),
        (Context::Span, r#"resource.schema_url == """#, 0),
    ] {
        let rules = rules(vec![group(context, &[condition], &[])]);
        let edited = rules.filter(Signal::Traces, &bytes, None).unwrap();
        assert_eq!(edited.dropped, dropped, "{condition}");
    }
}
