use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use otlp::write;
use prost::Message;

use super::*;

fn decode(form: Form, body: &[u8], parse_tags: bool) -> ExportTraceServiceRequest {
    let request = to_otlp(form, body, parse_tags).unwrap();
    ExportTraceServiceRequest::decode(&request[..]).unwrap()
}

fn json(form: Form, body: &serde_json::Value) -> ExportTraceServiceRequest {
    decode(form, body.to_string().as_bytes(), false)
}

/// Each attribute as `key=value`, sorted.
fn flat(attributes: &[KeyValue]) -> Vec<String> {
    let one = |pair: &KeyValue| {
        let value = match pair.value.clone().and_then(|value| value.value) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(int)) => format!("i{int}"),
            Some(Value::DoubleValue(double)) => format!("d{double}"),
            Some(Value::BoolValue(flag)) => format!("b{flag}"),
            other => format!("{other:?}"),
        };
        format!("{}={value}", pair.key)
    };
    let mut all: Vec<String> = attributes.iter().map(one).collect();
    all.sort();
    all
}

fn resource(resource: &ResourceSpans) -> Vec<String> {
    flat(&resource.resource.as_ref().unwrap().attributes)
}

fn only(request: &ExportTraceServiceRequest) -> &Span {
    assert_eq!(request.resource_spans.len(), 1);
    assert_eq!(request.resource_spans[0].scope_spans.len(), 1);
    assert_eq!(request.resource_spans[0].scope_spans[0].spans.len(), 1);
    &request.resource_spans[0].scope_spans[0].spans[0]
}

/// The example of Zipkin's own API description, with more tags.
fn whole() -> serde_json::Value {
    serde_json::json!([{
        "traceId": "5af7183fb1d4cf5f", "parentId": "6b221d5bc9e6496c", "id": "352bff9a74ca9ad2", "name": "get /api",
        "kind": "CLIENT", "timestamp": 1_556_604_172_355_737_u64, "duration": 1431, "debug": true, "shared": false,
        "localEndpoint": { "serviceName": "frontend", "ipv4": "192.168.99.1", "port": 3306 },
        "remoteEndpoint": { "serviceName": "backend", "ipv6": "2001:db8::c001", "port": 9000 },
        "annotations": [
            { "timestamp": 1_556_604_172_355_800_u64, "value": "ws" },
            { "timestamp": 1_556_604_172_355_900_u64, "value": "evt|{\"a\":\"b|c\",\"n\":5,\"f\":1.5,\"t\":true}|3" },
            { "timestamp": 1, "value": "a|b|c" },
        ],
        "tags": {
            "http.method": "GET", "n": "12", "error": "true", "host.name": "h1", "otel.library.name": "lib",
            "otel.library.version": "1.2", "w3c.tracestate": "k=v", "otlp.link.0": "4bf92f3577b34da6a3ce929d0e0e4736|00f067aa0ba902b7|s=t|{\"l\":1}|0",
        },
    }])
}

#[test]
fn version_2_in_json() {
    let request = json(Form::V2Json, &whole());
    let span = only(&request);
    let attributes = resource(&request.resource_spans[0]);
    assert_eq!(attributes, ["host.name=h1", "service.name=frontend"]);
    let scope = request.resource_spans[0].scope_spans[0]
        .scope
        .as_ref()
        .unwrap();
    assert_eq!((&*scope.name, &*scope.version), ("lib", "1.2"));
    assert_eq!(span.trace_id, 0x5af7_183f_b1d4_cf5f_u128.to_be_bytes());
    assert_eq!(span.span_id, 0x352b_ff9a_74ca_9ad2_u64.to_be_bytes());
    assert_eq!(span.parent_span_id, 0x6b22_1d5b_c9e6_496c_u64.to_be_bytes());
    assert_eq!(
        (&*span.name, span.kind, &*span.trace_state),
        ("get /api", 3, "k=v")
    );
    assert_eq!(span.start_time_unix_nano, 1_556_604_172_355_737_000);
    assert_eq!(
        span.end_time_unix_nano - span.start_time_unix_nano,
        1_431_000
    );
    assert_eq!(span.status.as_ref().unwrap().code, 2);
    assert_eq!(
        flat(&span.attributes),
        [
            "http.method=GET",
            "n=12",
            "net.host.ip=192.168.99.1",
            "net.host.port=i3306",
            "net.peer.ip=2001:db8::c001",
            "net.peer.port=i9000",
            "peer.service=backend",
        ]
    );
    let names: Vec<&str> = span.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["ws", "evt", "a|b|c"]);
    assert_eq!(
        flat(&span.events[1].attributes),
        ["a=b|c", "f=d1.5", "n=i5", "t=btrue"]
    );
    assert_eq!(span.events[1].dropped_attributes_count, 3);
    assert_eq!(span.events[0].time_unix_nano, 1_556_604_172_355_800_000);
    assert_eq!(span.links.len(), 1);
    assert_eq!(
        (span.links[0].trace_id[0], &*span.links[0].trace_state),
        (0x4b, "s=t")
    );
    assert_eq!(flat(&span.links[0].attributes), ["l=i1"]);
}

#[test]
fn tags_become_numbers_where_that_is_asked() {
    let body = br#"[{"traceId":"1","id":"2","tags":{"i":"-12","d":"1.50","b":"true","t":"1e5","v":"1.2.3","e":"","big":"99999999999999999999"}}]"#;
    let request = decode(Form::V2Json, body, true);
    let span = only(&request);
    assert_eq!(
        flat(&span.attributes),
        [
            "b=btrue",
            "big=99999999999999999999",
            "d=d1.5",
            "e=",
            "i=i-12",
            "otel.zipkin.absentField.startTime=btrue",
            "t=1e5",
            "v=1.2.3",
        ]
    );
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (0, 0));
}

#[test]
fn status_and_kind_stand_in_tags() {
    let of = |tags: &str| {
        let body = format!(r#"[{{"traceId":"1","id":"2","timestamp":1,"tags":{tags}}}]"#);
        let request = decode(Form::V2Json, body.as_bytes(), false);
        let span = only(&request);
        let status = span.status.clone().unwrap_or_default();
        (
            status.code,
            status.message,
            span.kind,
            flat(&span.attributes).join(","),
        )
    };
    let expect =
        |code, message: &str, kind, rest: &str| (code, message.to_owned(), kind, rest.to_owned());
    assert_eq!(of(r#"{"error":"boom"}"#), expect(0, "", 0, "error=boom"));
    assert_eq!(of(r#"{"error":"true","a":"b"}"#), expect(2, "", 0, "a=b"));
    assert_eq!(
        of(r#"{"otel.status_code":"STATUS_CODE_OK"}"#),
        expect(1, "", 0, "")
    );
    assert_eq!(
        of(r#"{"otel.status_code":"ERROR","otel.status_description":"x"}"#),
        expect(2, "x", 0, "")
    );
    assert_eq!(of(r#"{"span.kind":"internal"}"#), expect(0, "", 1, ""));
}

#[test]
fn spans_of_one_service_stand_together_and_keep_what_is_theirs() {
    let span = |id: &str, service: &str, host: &str| serde_json::json!({ "traceId": "1", "id": id, "timestamp": 5, "localEndpoint": { "serviceName": service }, "tags": { "host.name": host } });
    let body = serde_json::json!([
        span("1", "a", "x"),
        span("2", "b", "x"),
        span("3", "a", "x"),
        span("4", "a", "y"),
        null,
        span("5", "", "z")
    ]);
    let request = json(Form::V2Json, &body);
    let all = request.resource_spans.iter();
    let all: Vec<_> = all
        .map(|one| (resource(one).join(","), one.scope_spans[0].spans.len()))
        .collect();
    let expected = [
        ("host.name=x,service.name=a", 2),
        ("host.name=x,service.name=b", 1),
        ("host.name=y,service.name=a", 1),
        ("host.name=z", 1),
    ];
    assert!(
        all.iter()
            .map(|(text, count)| (text.as_str(), *count))
            .eq(expected),
        "{all:?}"
    );
}

#[test]
fn version_2_in_protobuf_is_the_same() {
    let mut span = Vec::new();
    write::bytes(&mut span, 1, &0x5af7_183f_b1d4_cf5f_u64.to_be_bytes());
    write::bytes(&mut span, 2, &0x6b22_1d5b_c9e6_496c_u64.to_be_bytes());
    write::bytes(&mut span, 3, &0x352b_ff9a_74ca_9ad2_u64.to_be_bytes());
    write::uint(&mut span, 4, 1);
    write::bytes(&mut span, 5, b"get /api");
    write::fixed64(&mut span, 6, 1_556_604_172_355_737);
    write::uint(&mut span, 7, 1431);
    write::message(&mut span, 8, |out| {
        write::bytes(out, 1, b"frontend");
        write::bytes(out, 2, &[192, 168, 99, 1]);
        write::uint(out, 4, 3306);
    });
    write::message(&mut span, 9, |out| {
        write::bytes(out, 1, b"backend");
        write::bytes(
            out,
            3,
            &[
                0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x01,
            ],
        );
        write::uint(out, 4, 9000);
    });
    let body = whole();
    for annotation in body[0]["annotations"].as_array().unwrap() {
        write::message(&mut span, 10, |out| {
            write::fixed64(out, 1, annotation["timestamp"].as_u64().unwrap());
            write::bytes(out, 2, annotation["value"].as_str().unwrap().as_bytes());
        });
    }
    for (key, value) in body[0]["tags"].as_object().unwrap() {
        write::message(&mut span, 11, |out| {
            write::bytes(out, 1, key.as_bytes());
            write::bytes(out, 2, value.as_str().unwrap().as_bytes());
        });
    }
    write::uint(&mut span, 12, 1);
    let mut list = Vec::new();
    write::bytes(&mut list, 1, &span);
    let mut from_proto = decode(Form::V2Protobuf, &list, false);
    let mut from_json = json(Form::V2Json, &body);
    // JSON's tags came in another order.
    for request in [&mut from_proto, &mut from_json] {
        let span = &mut request.resource_spans[0].scope_spans[0].spans[0];
        span.attributes.sort_by(|a, b| a.key.cmp(&b.key));
        let resource = request.resource_spans[0].resource.as_mut().unwrap();
        resource.attributes.sort_by(|a, b| a.key.cmp(&b.key));
    }
    assert_eq!(from_proto, from_json);
    for cut in 1..list.len() {
        let _ = to_otlp(Form::V2Protobuf, &list[..cut], true);
    }
}

#[test]
fn version_1_tells_by_annotations() {
    let body = serde_json::json!([{
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "id": "2", "parentId": "1", "name": "get",
        "annotations": [
            { "timestamp": 50, "value": "sr", "endpoint": { "serviceName": "shop", "ipv4": "10.0.0.1", "port": 80 } },
            { "timestamp": 60, "value": "cache miss", "endpoint": null },
            { "timestamp": 90, "value": "ss" },
        ],
        "binaryAnnotations": [
            { "key": "http.path", "value": "/a" },
            { "key": "http.status_code", "value": "500" },
            { "key": "lc", "value": "comp" },
            { "key": "ca", "value": true, "endpoint": { "serviceName": "client" } },
        ],
    }]);
    let request = json(Form::V1Json, &body);
    let span = only(&request);
    assert_eq!(
        resource(&request.resource_spans[0]),
        ["ipv4=10.0.0.1", "port=80", "service.name=shop"]
    );
    assert_eq!(
        (
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano
        ),
        (2, 50_000, 90_000)
    );
    assert_eq!(
        (span.events.len(), &*span.events[0].name),
        (1, "cache miss")
    );
    assert_eq!(
        flat(&span.attributes),
        [
            "ca=true",
            "component=comp",
            "http.path=/a",
            "http.status_code=500"
        ]
    );
    assert_eq!(span.status.as_ref().unwrap().code, 2);

    let service = |rest: &str| {
        let body = format!(r#"[{{"traceId":"1","id":"2","timestamp":7,"duration":2,{rest}}}]"#);
        let request = decode(Form::V1Json, body.as_bytes(), false);
        assert_eq!(only(&request).end_time_unix_nano, 9000);
        resource(&request.resource_spans[0]).join(",")
    };
    assert_eq!(service(r#""name":"x""#), "service.name=unknown-service");
    assert_eq!(
        service(r#""binaryAnnotations":[{"key":"lc","value":"local"}]"#),
        "service.name=local"
    );
}

#[test]
fn what_is_wrong_is_told() {
    for (body, why) in [
        (&b"{"[..], "no list of spans"),
        (b"[{}]", "no identifier of a trace"),
        (br#"[{"traceId":"0","id":"1"}]"#, "no identifier of a trace"),
        (br#"[{"traceId":"1","id":"+1"}]"#, "no identifier of a span"),
        (
            br#"[{"traceId":"1234567890123456789012345678901234","id":"1"}]"#,
            "no identifier of a trace",
        ),
        (
            br#"[{"traceId":"1","id":"1","localEndpoint":{"ipv4":"x"}}]"#,
            "an address that is none",
        ),
        (
            br#"[{"traceId":"1","id":"1","localEndpoint":{"port":70000}}]"#,
            "a port is no port",
        ),
        (
            br#"[{"traceId":"1","id":"1","tags":{"a":1}}]"#,
            "invalid type",
        ),
        (br#"[{"traceId":"1","id":"1"}] x"#, "trailing"),
    ] {
        let error = to_otlp(Form::V2Json, body, false).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(to_otlp(Form::V2Json, b"[]", false), Ok(Vec::new()));
    // Small elements take more memory than bytes: there is a bound.
    let many = format!(
        r#"[{{"traceId":"1","id":"1","annotations":[{}{{}}]}}]"#,
        "{},".repeat(100_000)
    );
    assert!(
        to_otlp(Form::V2Json, many.as_bytes(), false)
            .unwrap_err()
            .contains("more than 100000")
    );
}
