//! Random requests: few services, scopes and traces, so that they meet again.

use super::Random;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status,
    span::{Event, Link},
};

/// What random requests are made from.
pub struct Model {
    pub random: Random,
    /// Traces that spans may belong to: the last so many.
    pub open: u64,
    /// Traces so far.
    pub traces: u64,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        Model {
            random: Random::new(seed),
            open: 12,
            traces: 12,
        }
    }

    fn trace(&mut self) -> u64 {
        if self.random.chance(20) {
            self.traces += 1;
        }
        self.traces - self.random.below(self.open.min(self.traces))
    }
}

/// The identifier of a trace by its number.
pub fn trace_id(number: u64) -> [u8; 16] {
    let mut random = Random::new(number + 1000);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.next().to_be_bytes());
    id[8..].copy_from_slice(&random.next().to_be_bytes());
    id
}

pub fn key_value(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn value(random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::IntValue(random.below(700) as i64 - 50),
        1 => Value::BoolValue(random.chance(50)),
        2 => Value::DoubleValue(random.below(100) as f64 / 4.0),
        3 => Value::BytesValue(vec![1, 2, 3]),
        4 => Value::ArrayValue(ArrayValue {
            values: vec![AnyValue {
                value: Some(Value::StringValue("in a list".to_owned())),
            }],
        }),
        _ => Value::StringValue(
            (*random.pick(&["", "a", "/health", "gold", "checkout", "a/b"])).to_owned(),
        ),
    }
}

fn attributes(random: &mut Random, count: u64) -> Vec<KeyValue> {
    let keys = ["http.status", "tier", "url.path", "cache", "other.key", "k"];
    let start = random.below(6) as usize;
    (0..random.below(count + 1) as usize)
        .map(|at| key_value(keys[(start + at) % keys.len()], value(random)))
        .collect()
}

fn span(model: &mut Model) -> Span {
    let trace = model.trace();
    let random = &mut model.random;
    let start = 1_700_000_000_000_000_000 + random.below(50) * 7_000_000;
    let state = *random.pick(&[
        "",
        "",
        "k=v",
        "ot=th:8;rv:12345678901234,k=w",
        "bad",
        "k=gold",
    ]);
    Span {
        trace_id: trace_id(trace).to_vec(),
        span_id: random.next().to_be_bytes().to_vec(),
        parent_span_id: if random.chance(20) {
            Vec::new()
        } else {
            vec![7; 8]
        },
        name: (*random.pick(&["GET /", "query", "consume"])).to_owned(),
        kind: random.below(6) as i32,
        start_time_unix_nano: if random.chance(3) { 0 } else { start },
        end_time_unix_nano: if random.chance(3) {
            0
        } else {
            start + random.below(90) * 1_000_000
        },
        trace_state: state.to_owned(),
        flags: random.below(4) as u32,
        attributes: attributes(random, 5),
        dropped_attributes_count: random.below(2) as u32,
        events: (0..random.below(3))
            .map(|_| Event {
                name: (*random.pick(&["exception", "log"])).to_owned(),
                time_unix_nano: start,
                attributes: attributes(random, 2),
                dropped_attributes_count: 0,
            })
            .collect(),
        links: (0..random.below(2))
            .map(|_| Link {
                trace_id: vec![3; 16],
                span_id: vec![4; 8],
                attributes: attributes(random, 1),
                ..Link::default()
            })
            .collect(),
        status: random.chance(60).then(|| Status {
            message: String::new(),
            code: random.below(3) as i32,
        }),
        ..Span::default()
    }
}

fn resource(random: &mut Random) -> Resource {
    let service = *random.pick(&["cart", "checkout", "search"]);
    let mut attributes = vec![key_value(
        "service.name",
        Value::StringValue(service.to_owned()),
    )];
    if service == "checkout" {
        attributes.push(key_value("tier", Value::StringValue("silver".to_owned())));
    }
    Resource {
        attributes,
        ..Resource::default()
    }
}

/// A random request.
pub fn request(model: &mut Model) -> ExportTraceServiceRequest {
    let resource_spans = (0..1 + model.random.below(3))
        .map(|_| ResourceSpans {
            resource: model.random.chance(90).then(|| resource(&mut model.random)),
            scope_spans: (0..model.random.below(3))
                .map(|_| ScopeSpans {
                    scope: model.random.chance(80).then(|| InstrumentationScope {
                        name: (*model.random.pick(&["http", "db"])).to_owned(),
                        version: "1".to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    spans: (0..model.random.below(9)).map(|_| span(model)).collect(),
                    schema_url: if model.random.chance(30) {
                        "url".to_owned()
                    } else {
                        String::new()
                    },
                })
                .collect(),
            schema_url: if model.random.chance(30) {
                "resource url".to_owned()
            } else {
                String::new()
            },
        })
        .collect();
    ExportTraceServiceRequest { resource_spans }
}
