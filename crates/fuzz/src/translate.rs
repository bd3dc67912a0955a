//! Spans in other formats than OTLP, which the collector translates.

use collector::run::translate::{jaeger, zipkin};
use otlp::scan::{Malformed, Scanner, Visitor, span};

/// Sees that each span is one.
struct Check;

impl<'a> Visitor<'a> for Check {
    fn resource(&mut self, _: &[u8], _: &'a [u8]) {}

    fn scope(&mut self, _: &[u8], _: &'a [u8]) {}

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        span(message, &mut ()).map(drop)
    }
}

/// What is translated is a request that the engine takes, and no text of it is broken.
fn holds(request: Result<Vec<u8>, String>) {
    match request {
        Ok(request) => Scanner::default()
            .walk(&request, &mut Check)
            .expect("a request"),
        Err(why) => assert!(!why.is_empty()),
    }
}

/// OTLP's JSON of all signals: what becomes protobuf becomes JSON again, which is read as well.
pub fn otlp_json(data: &[u8]) {
    use otlp::Signal::{Logs, Metrics, Traces};
    const BYTES_MAX: usize = 1 << 20;
    for signal in [Traces, Metrics, Logs] {
        match otlp::json::decode(signal, data, BYTES_MAX) {
            Ok(request) => {
                assert!(request.len() <= BYTES_MAX);
                let json = otlp::json::encode(signal, &request);
                otlp::json::decode(signal, &json, usize::MAX).expect("what was written is JSON");
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}

/// Zipkin's JSON of both versions.
pub fn zipkin_json(data: &[u8]) {
    holds(zipkin::to_otlp(zipkin::Form::V2Json, data, true));
    holds(zipkin::to_otlp(zipkin::Form::V1Json, data, false));
}

/// What a target exposes, in Prometheus' text format and in OpenMetrics.
pub fn prometheus_text(data: &[u8]) {
    use collector::run::receive::prometheus::{Format, parse};
    let text = String::from_utf8_lossy(data);
    for format in [Format::Text, Format::OpenMetrics] {
        if let Err(why) = parse(&text, format) {
            assert!(!why.is_empty());
        }
    }
}

/// Zipkin's protobuf.
pub fn zipkin_proto(data: &[u8]) {
    holds(zipkin::to_otlp(zipkin::Form::V2Protobuf, data, true));
}

/// Jaeger's protobuf.
pub fn jaeger_proto(data: &[u8]) {
    holds(jaeger::from_grpc(data));
}

/// Jaeger's Thrift: a batch, and a message in each protocol.
pub fn jaeger_thrift(data: &[u8]) {
    holds(jaeger::from_http(data));
    holds(jaeger::from_datagram(data, true));
    holds(jaeger::from_datagram(data, false));
}
