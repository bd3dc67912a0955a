//! Names that semantic conventions give spans.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::trace::v1::Span;
use otlp::Signal;
use ottl::Context;
use prost::Message;

use super::transform::{editor, group};
use super::{kv, text, traces};

fn made(kind: i32, attributes: &[(&str, V)], statement: &str) -> Span {
    let span = Span {
        name: "GET /user/17".into(),
        kind,
        attributes: attributes
            .iter()
            .map(|(key, value)| kv(key, value.clone()))
            .collect(),
        ..Span::default()
    };
    let bytes = traces(vec![], vec![span.clone()]).encode_to_vec();
    let editor = editor(vec![group(Context::Span, &[], &[statement])]);
    let Some(bytes) = editor.edit(Signal::Traces, &bytes, None).unwrap().bytes else {
        return span;
    };
    let made = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
    made.resource_spans[0].scope_spans[0].spans[0].clone()
}

#[test]
fn spans_get_the_names_of_the_conventions() {
    let port = || ("server.port", V::IntValue(5432));
    let of = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, V)> {
        pairs
            .iter()
            .map(|(key, value)| (*key, text(value)))
            .collect()
    };
    let (server, client, producer, consumer) = (2, 3, 4, 5);
    let with = |pairs: &[(&'static str, &str)], more| {
        let mut all = of(pairs);
        all.push(more);
        all
    };
    let rpc = [
        ("rpc.system", "grpc"),
        ("rpc.service", "s"),
        ("rpc.method", "m"),
    ];
    let db = [
        ("db.system", "pg"),
        ("db.operation", "SELECT"),
        ("db.name", "shop"),
    ];
    let mq = [
        ("messaging.system", "kafka"),
        ("messaging.operation.name", "send"),
    ];
    for (kind, attributes, expected) in [
        (
            server,
            of(&[("http.request.method", "GET"), ("http.route", "/user/{id}")]),
            "GET /user/{id}",
        ),
        (
            server,
            of(&[("http.method", "GET"), ("url.template", "/t")]),
            "GET",
        ),
        (
            client,
            of(&[("http.method", "GET"), ("url.template", "/t")]),
            "GET /t",
        ),
        (server, of(&rpc), "s/m"),
        (client, of(&rpc[..2]), "s/*"),
        (
            client,
            of(&[("rpc.system.name", "grpc"), ("rpc.grpc.method", "m")]),
            "m",
        ),
        (client, of(&rpc[..1]), "grpc"),
        (client, of(&db), "SELECT shop"),
        (
            client,
            of(&[db[0], db[1], db[2], ("db.collection.name", "t")]),
            "SELECT shop.t",
        ),
        (
            client,
            of(&[db[0], ("db.query.summary", "SELECT t")]),
            "SELECT t",
        ),
        (
            client,
            with(&[db[0], ("server.address", "h")], port()),
            "h:5432",
        ),
        (client, of(&db[..1]), "pg"),
        (server, of(&db), "GET /user/17"),
        (
            producer,
            of(&[mq[0], mq[1], ("messaging.destination.name", "q")]),
            "send q",
        ),
        (
            consumer,
            of(&[mq[0], ("messaging.destination.template", "q{n}")]),
            "q{n}",
        ),
        (
            consumer,
            with(&mq, ("messaging.destination.temporary", V::BoolValue(true))),
            "send (temporary)",
        ),
        (consumer, of(&mq[..1]), "kafka"),
        (1, of(&[("http.request.method", "GET")]), "GET /user/17"),
        (server, vec![], "GET /user/17"),
    ] {
        let span = made(kind, &attributes, r#"set_semconv_span_name("1.43.0")"#);
        assert_eq!(span.name, expected, "{attributes:?}");
        assert_eq!(span.attributes.len(), attributes.len());
    }
}

#[test]
fn the_name_that_a_span_had_may_become_an_attribute() {
    let method = [("http.request.method", text("GET"))];
    let statement = r#"set_semconv_span_name("1.37.0", "original")"#;
    let span = made(2, &method, statement);
    assert_eq!(
        (&*span.name, &span.attributes[1]),
        ("GET", &kv("original", text("GET /user/17")))
    );
    assert_eq!(made(2, &[], statement).attributes, []);
}
