use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use otlp::write;
use prost::Message;

use super::*;

/// Each attribute as `key=value`, in its order.
fn flat(attributes: &[KeyValue]) -> Vec<String> {
    let one = |pair: &KeyValue| {
        let value = match pair.value.clone().and_then(|value| value.value) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(int)) => format!("i{int}"),
            Some(Value::DoubleValue(double)) => format!("d{double}"),
            Some(Value::BoolValue(flag)) => format!("b{flag}"),
            Some(Value::BytesValue(bytes)) => format!("x{bytes:?}"),
            other => format!("{other:?}"),
        };
        format!("{}={value}", pair.key)
    };
    attributes.iter().map(one).collect()
}

fn decode(request: &[u8]) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest::decode(request).unwrap()
}

/// A value of a tag.
#[derive(Clone, Copy)]
enum Tag<'a> {
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
}

const PROCESS: &[(&str, Tag<'_>)] = &[
    ("hostname", Tag::Text("h1")),
    ("jaeger.version", Tag::Text("Go-2.9")),
];
const TAGS: &[(&str, Tag<'_>)] = &[
    ("span.kind", Tag::Text("client")),
    ("error", Tag::Bool(true)),
    ("otel.status_description", Tag::Text("broke")),
    ("n", Tag::Int(-5)),
    ("d", Tag::Double(1.5)),
    ("b", Tag::Bytes(&[1, 255])),
    ("t", Tag::Text("x")),
];
const FIELDS: &[(&str, Tag<'_>)] = &[("event", Tag::Text("retry")), ("k", Tag::Int(7))];

/// What both encodings of the sample give.
fn check(request: &ExportTraceServiceRequest) -> &Span {
    let [resource] = &request.resource_spans[..] else {
        panic!("{request:?}");
    };
    let attributes = flat(&resource.resource.as_ref().unwrap().attributes);
    assert_eq!(
        attributes,
        [
            "service.name=shop",
            "host.name=h1",
            "opencensus.exporterversion=Jaeger-Go-2.9"
        ]
    );
    let [span] = &resource.scope_spans[0].spans[..] else {
        panic!("{request:?}");
    };
    assert_eq!(span.trace_id, (7_u128 << 64 | 9).to_be_bytes());
    assert_eq!(span.span_id, 3_u64.to_be_bytes());
    assert_eq!(span.parent_span_id, 2_u64.to_be_bytes());
    assert_eq!((&*span.name, span.kind, span.flags), ("get", 3, 1));
    assert_eq!(span.start_time_unix_nano, 1_600_000_000_000_005_000);
    assert_eq!(span.end_time_unix_nano, 1_600_000_000_000_015_000);
    let status = span.status.as_ref().unwrap();
    assert_eq!((status.code, &*status.message), (2, "broke"));
    assert_eq!(
        flat(&span.attributes),
        ["n=i-5", "d=d1.5", "b=x[1, 255]", "t=x"]
    );
    assert_eq!((span.events.len(), &*span.events[0].name), (1, "retry"));
    assert_eq!(span.events[0].time_unix_nano, 1_600_000_000_000_006_000);
    assert_eq!(flat(&span.events[0].attributes), ["k=i7"]);
    // The reference to the parent is no link.
    assert_eq!(span.links.len(), 1);
    assert_eq!(
        flat(&span.links[0].attributes),
        ["opentracing.ref_type=follows_from"]
    );
    span
}

fn proto_tag(out: &mut Vec<u8>, field: u32, (key, value): (&str, Tag<'_>)) {
    write::message(out, field, |out| {
        write::bytes(out, 1, key.as_bytes());
        match value {
            Tag::Text(text) => write::bytes(out, 3, text.as_bytes()),
            Tag::Bool(flag) => {
                write::uint(out, 2, 1);
                write::uint(out, 4, u64::from(flag));
            }
            Tag::Int(int) => {
                write::uint(out, 2, 2);
                write::uint(out, 5, int as u64);
            }
            Tag::Double(double) => {
                write::uint(out, 2, 3);
                write::double(out, 6, double);
            }
            Tag::Bytes(bytes) => {
                write::uint(out, 2, 4);
                write::bytes(out, 7, bytes);
            }
        }
    });
}

fn proto_time(out: &mut Vec<u8>, field: u32, ns: u64) {
    write::message(out, field, |out| {
        write::uint(out, 1, ns / 1_000_000_000);
        write::uint(out, 2, ns % 1_000_000_000);
    });
}

fn proto_process(out: &mut Vec<u8>, field: u32, name: &[u8], tags: &[(&str, Tag<'_>)]) {
    write::message(out, field, |out| {
        write::bytes(out, 1, name);
        tags.iter().for_each(|tag| proto_tag(out, 2, *tag));
    });
}

fn proto_span(out: &mut Vec<u8>, more: &[(&str, Tag<'_>)], own: Option<&[u8]>) {
    write::message(out, 1, |out| {
        write::bytes(out, 1, &(7_u128 << 64 | 9).to_be_bytes());
        write::bytes(out, 2, &3_u64.to_be_bytes());
        write::bytes(out, 3, b"get");
        for (id, kind) in [(4_u64, 1), (2, 0)] {
            write::message(out, 4, |out| {
                write::bytes(out, 1, &(7_u128 << 64 | 9).to_be_bytes());
                write::bytes(out, 2, &id.to_be_bytes());
                write::uint(out, 3, kind);
            });
        }
        write::uint(out, 5, 1);
        proto_time(out, 6, 1_600_000_000_000_005_000);
        proto_time(out, 7, 10_000);
        TAGS.iter()
            .chain(more)
            .for_each(|tag| proto_tag(out, 8, *tag));
        write::message(out, 9, |out| {
            proto_time(out, 1, 1_600_000_000_000_006_000);
            FIELDS.iter().for_each(|tag| proto_tag(out, 2, *tag));
        });
        if let Some(name) = own {
            proto_process(out, 10, name, &[]);
        }
    });
}

fn posted(batch: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    write::bytes(&mut request, 1, batch);
    request
}

#[test]
fn protobuf() {
    let mut batch = Vec::new();
    proto_span(&mut batch, &[], None);
    proto_process(&mut batch, 2, b"shop", PROCESS);
    let request = posted(&batch);
    check(&decode(&from_grpc(&request).unwrap()));
    for cut in 1..request.len() {
        assert!(from_grpc(&request[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_span_may_have_a_process_and_a_scope_of_its_own() {
    let mut batch = Vec::new();
    proto_span(&mut batch, &[], None);
    let scope = [
        ("otel.scope.name", Tag::Text("lib")),
        ("otel.scope.version", Tag::Text("2")),
        ("w3c.tracestate", Tag::Text("a=b")),
    ];
    proto_span(&mut batch, &scope, None);
    proto_span(&mut batch, &[], Some(b"other"));
    proto_process(&mut batch, 2, b"shop", &[]);
    let request = decode(&from_grpc(&posted(&batch)).unwrap());
    let shape: Vec<_> = request
        .resource_spans
        .iter()
        .map(|one| one.scope_spans.len())
        .collect();
    assert_eq!(shape, [2, 1]);
    let scoped = &request.resource_spans[0].scope_spans[1];
    let scope = scoped.scope.as_ref().unwrap();
    assert_eq!(
        (&*scope.name, &*scope.version, &*scoped.spans[0].trace_state),
        ("lib", "2", "a=b")
    );
    let other = request.resource_spans[1].resource.as_ref().unwrap();
    assert_eq!(flat(&other.attributes), ["service.name=other"]);
}

/// Writes Thrift, for tests.
struct Thrift {
    out: Vec<u8>,
    is_compact: bool,
    last: Vec<i16>,
}

impl Thrift {
    fn new(is_compact: bool) -> Thrift {
        Thrift {
            out: Vec::new(),
            is_compact,
            last: vec![0],
        }
    }

    fn number(&mut self, value: i64, bytes: usize) {
        if self.is_compact {
            write::varint(&mut self.out, ((value << 1) ^ (value >> 63)) as u64)
        } else {
            self.out
                .extend_from_slice(&value.to_be_bytes()[8 - bytes..])
        }
    }

    fn length(&mut self, len: usize) {
        if self.is_compact {
            write::varint(&mut self.out, len as u64)
        } else {
            self.number(len as i64, 4)
        }
    }

    /// The head of a field, by its type in the binary protocol and in the compact one.
    fn field(&mut self, id: i16, binary: u8, compact: u8) {
        if !self.is_compact {
            self.out.push(binary);
            return self.out.extend_from_slice(&id.to_be_bytes());
        }
        let last = self.last.last_mut().unwrap();
        let delta = id - *last;
        *last = id;
        match u8::try_from(delta) {
            Ok(delta @ 1..=15) => self.out.push(delta << 4 | compact),
            _ => {
                self.out.push(compact);
                self.number(i64::from(id), 2);
            }
        }
    }

    fn i32(&mut self, id: i16, value: i64) {
        self.field(id, 8, 5);
        self.number(value, 4);
    }

    fn i64(&mut self, id: i16, value: i64) {
        self.field(id, 10, 6);
        self.number(value, 8);
    }

    fn bytes(&mut self, id: i16, value: &[u8]) {
        self.field(id, 11, 8);
        self.length(value.len());
        self.out.extend_from_slice(value);
    }

    fn open(&mut self, id: i16) {
        self.field(id, 12, 12);
        self.last.push(0);
    }

    fn close(&mut self) {
        self.out.push(0);
        self.last.pop();
    }

    fn list<T>(&mut self, id: i16, items: &[T], mut write: impl FnMut(&mut Thrift, &T)) {
        self.field(id, 15, 9);
        match (self.is_compact, items.len()) {
            (true, len @ 0..15) => self.out.push((len as u8) << 4 | 12),
            (true, len) => {
                self.out.push(0xfc);
                self.length(len);
            }
            (false, len) => {
                self.out.push(12);
                self.length(len);
            }
        }
        for item in items {
            self.last.push(0);
            write(self, item);
            self.close();
        }
    }

    fn tag(&mut self, (key, value): (&str, Tag<'_>)) {
        self.bytes(1, key.as_bytes());
        match value {
            Tag::Text(text) => {
                self.i32(2, 0);
                self.bytes(3, text.as_bytes());
            }
            Tag::Double(double) => {
                self.i32(2, 1);
                self.field(4, 4, 7);
                let bits = double.to_bits();
                if self.is_compact {
                    self.out.extend_from_slice(&bits.to_le_bytes())
                } else {
                    self.out.extend_from_slice(&bits.to_be_bytes())
                }
            }
            Tag::Bool(flag) => {
                self.i32(2, 2);
                self.field(5, 2, if flag { 1 } else { 2 });
                if !self.is_compact {
                    self.out.push(u8::from(flag));
                }
            }
            Tag::Int(int) => {
                self.i32(2, 3);
                self.i64(6, int);
            }
            Tag::Bytes(bytes) => {
                self.i32(2, 4);
                self.bytes(7, bytes);
            }
        }
    }

    fn tags(&mut self, id: i16, tags: &[(&str, Tag<'_>)]) {
        self.list(id, tags, |thrift, tag| thrift.tag(*tag));
    }

    fn process(&mut self) {
        self.open(1);
        self.bytes(1, b"shop");
        self.tags(2, PROCESS);
        self.close();
    }

    fn spans(&mut self) {
        self.list(2, &[()], |thrift, ()| {
            thrift.i64(1, 9);
            thrift.i64(2, 7);
            thrift.i64(3, 3);
            thrift.i64(4, 0);
            thrift.bytes(5, b"get");
            thrift.list(6, &[(4, 1), (2, 0)], |thrift, (id, kind)| {
                thrift.i32(1, *kind);
                thrift.i64(2, 9);
                thrift.i64(3, 7);
                thrift.i64(4, *id);
            });
            thrift.i32(7, 1);
            thrift.i64(8, 1_600_000_000_000_005);
            thrift.i64(9, 10);
            thrift.tags(10, TAGS);
            thrift.list(11, &[()], |thrift, ()| {
                thrift.i64(1, 1_600_000_000_000_006);
                thrift.tags(2, FIELDS);
            });
            // What is not known is passed over.
            thrift.field(12, 2, 1);
            if !thrift.is_compact {
                thrift.out.push(1);
            }
            thrift.list(300, &[FIELDS], |thrift, tags| thrift.tags(9, tags));
        });
    }

    /// A `Batch`, its process first or last.
    fn batch(&mut self, process_first: bool) {
        if process_first {
            self.process();
            self.spans();
        } else {
            self.spans();
            self.process();
        }
        self.out.push(0);
    }
}

fn datagram(is_compact: bool, name: &[u8]) -> Vec<u8> {
    let mut thrift = Thrift::new(is_compact);
    if is_compact {
        // A oneway call, version 1.
        thrift.out.extend_from_slice(&[0x82, 0x81, 0x00]);
    } else {
        thrift.out.extend_from_slice(&[0x80, 0x01, 0x00, 0x04]);
    }
    thrift.length(name.len());
    thrift.out.extend_from_slice(name);
    if !is_compact {
        thrift.number(0, 4);
    }
    thrift.open(1);
    thrift.batch(true);
    thrift.last.pop();
    thrift.out.push(0);
    thrift.out
}

#[test]
fn thrift_over_http() {
    for process_first in [true, false] {
        let mut thrift = Thrift::new(false);
        thrift.batch(process_first);
        check(&decode(&from_http(&thrift.out).unwrap()));
        for cut in 0..thrift.out.len() {
            assert!(from_http(&thrift.out[..cut]).is_err(), "{cut}");
        }
    }
}

#[test]
fn thrift_over_udp() {
    for is_compact in [true, false] {
        let good = datagram(is_compact, b"emitBatch");
        check(&decode(&from_datagram(&good, is_compact).unwrap()));
        // The last byte ends the arguments, behind what is read.
        for cut in 0..good.len() - 1 {
            assert!(from_datagram(&good[..cut], is_compact).is_err(), "{cut}");
        }
        let other = datagram(is_compact, b"emitZipkinBatch");
        assert!(from_datagram(&other, is_compact).is_err());
        assert!(from_datagram(&good, !is_compact).is_err());
    }
}

#[test]
fn lengths_of_others_take_no_memory() {
    // A list of 2^31 - 1 spans, and one that is as long as its bytes.
    let long = [&[15, 0, 2, 12, 0x7f, 0xff, 0xff, 0xff][..], &[0; 64]].concat();
    assert!(from_http(&long).is_err());
    let negative = [15, 0, 2, 12, 0xff, 0xff, 0xff, 0xff];
    assert!(from_http(&negative).is_err());
    // Lists in lists in lists.
    let mut deep = vec![15, 0, 9];
    for _ in 0..10_000 {
        deep.extend_from_slice(&[15, 0, 0, 0, 1]);
    }
    deep.push(0);
    assert!(from_http(&deep).is_err());
    // A span of empty tags.
    let mut many = vec![15, 0, 2, 12, 0, 0, 0, 1, 15, 0, 10, 12];
    many.extend_from_slice(&200_000_u32.to_be_bytes());
    many.resize(many.len() + 200_010, 0);
    assert!(from_http(&many).unwrap_err().contains("too many"));
}

#[test]
fn the_status_of_http_counts_where_nothing_else_does() {
    let of = |tags: &[(&str, Tag<'_>)]| {
        let mut batch = Vec::new();
        write::message(&mut batch, 1, |out| {
            write::bytes(out, 2, &3_u64.to_be_bytes());
            tags.iter().for_each(|tag| proto_tag(out, 8, *tag));
        });
        let request = decode(&from_grpc(&posted(&batch)).unwrap());
        let span = &request.resource_spans[0].scope_spans[0].spans[0];
        let status = span.status.clone().unwrap_or_default();
        (status.code, status.message, span.attributes.len())
    };
    let kind = |kind| ("span.kind", Tag::Text(kind));
    let code = |code| ("http.status_code", Tag::Int(code));
    assert_eq!(of(&[kind("server"), code(404)]), (0, String::new(), 1));
    assert_eq!(
        of(&[
            kind("client"),
            code(404),
            ("http.status_message", Tag::Text("no"))
        ]),
        (2, "no".into(), 2)
    );
    assert_eq!(of(&[kind("server"), code(503)]), (2, String::new(), 1));
    assert_eq!(
        of(&[code(503), ("otel.status_code", Tag::Text("ok"))]),
        (1, String::new(), 1)
    );
    assert_eq!(
        of(&[("error", Tag::Bool(false)), ("error", Tag::Text("true"))]),
        (0, String::new(), 1)
    );
}
