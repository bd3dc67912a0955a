//! Decodes the messages of a topic to OTLP requests.

use bytes::Bytes;
use otlp::json;
use otlp::scan::RESOURCE_ATTRIBUTES;
use otlp::write as proto;

use crate::config::Signal;
use crate::config::components::shared::kafka::Encoding;
use crate::run::process::edit::{List, Outcome, edit_resources, room_for};
use crate::run::translate::zipkin::Form;
use crate::run::translate::{jaeger, zipkin};

/// The most bytes that a message may have after decoding to OTLP.
const DECODED_BYTES_MAX: usize = 64 << 20;
/// The prefix of attributes that hold headers.
const HEADER: &str = "kafka.header.";

/// A header of a message.
pub type Header = (String, Vec<u8>);

/// The `ExportTraceServiceRequest` of a message.
///
/// # Errors
/// The message is malformed.
pub fn decode(encoding: Encoding, payload: Bytes) -> Result<Bytes, String> {
    let decoded = match encoding {
        // The pipeline's entrance checks the spans.
        Encoding::OtlpProto => return Ok(payload),
        Encoding::OtlpJson => json::decode(Signal::Traces, &payload, DECODED_BYTES_MAX),
        Encoding::JaegerProto => jaeger::from_grpc(&posted(&payload)),
        Encoding::ZipkinProto => zipkin::to_otlp(Form::V2Protobuf, &payload, false),
        Encoding::ZipkinJson => zipkin::to_otlp(Form::V2Json, &payload, false),
    };
    decoded.map(Bytes::from)
}

/// A `PostSpansRequest` with a `Batch` of one `Span` of Jaeger's.
fn posted(span: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(span.len() + 16);
    proto::message(&mut request, 1, |batch| proto::bytes(batch, 1, span));
    request
}

/// Adds the headers with these names to all resources of a request, as attributes.
///
/// # Errors
/// The request is malformed.
pub fn extract(request: Bytes, headers: &[Header], names: &[String]) -> Result<Bytes, String> {
    let found = |name: &String| {
        let own = headers.iter().rev().find(|(own, _)| own == name);
        own.map(|(_, value)| (format!("{HEADER}{name}"), value))
    };
    let found: Vec<_> = names.iter().filter_map(found).collect();
    if found.is_empty() {
        return Ok(request);
    }
    let mut out = room_for(&request);
    let outcome = edit_resources(&request, &mut out, &mut |resource, out| {
        let mut list = List::default();
        list.read(resource, RESOURCE_ATTRIBUTES)?;
        for (name, value) in &found {
            let value = list.make_text(value);
            list.put(name.as_bytes(), value);
        }
        Ok(list.write(resource, RESOURCE_ATTRIBUTES, out))
    });
    match outcome {
        Ok(Outcome::Changed) => Ok(out.into()),
        Ok(Outcome::Same | Outcome::Gone) => Ok(request),
        Err(fault) => Err(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message;

    use super::*;

    fn read(request: &[u8]) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(request).expect("a request")
    }

    fn names(request: &[u8]) -> Vec<String> {
        let resources = read(request).resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes
            .flat_map(|scope| scope.spans)
            .map(|span| span.name)
            .collect()
    }

    /// A `Span` of Jaeger's with a name.
    fn jaeger_span() -> Vec<u8> {
        let mut span = Vec::new();
        proto::bytes(&mut span, 1, &[1; 16]);
        proto::bytes(&mut span, 2, &[2; 8]);
        proto::bytes(&mut span, 3, b"a");
        proto::message(&mut span, 10, |process| proto::bytes(process, 1, b"shop"));
        span
    }

    #[test]
    fn each_encoding_is_read() {
        let json = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01010101010101010101010101010101","spanId":"0202020202020202","name":"a"}]}]}]}"#;
        let otlp = json::decode(Signal::Traces, json.as_bytes(), 1 << 20).expect("a request");
        let zipkin = r#"[{"traceId":"0101010101010101","id":"0202020202020202","name":"a"}]"#;
        let mut listed = Vec::new();
        proto::message(&mut listed, 1, |span| {
            proto::bytes(span, 1, &[1; 16]);
            proto::bytes(span, 3, &[2; 8]);
            proto::bytes(span, 5, b"a");
        });
        for (encoding, payload) in [
            (Encoding::OtlpProto, otlp),
            (Encoding::OtlpJson, json.into()),
            (Encoding::JaegerProto, jaeger_span()),
            (Encoding::ZipkinProto, listed),
            (Encoding::ZipkinJson, zipkin.into()),
        ] {
            let request = decode(encoding, payload.into()).expect("a message");
            assert_eq!(names(&request), ["a"], "{encoding:?}");
        }
        for encoding in [
            Encoding::OtlpJson,
            Encoding::JaegerProto,
            Encoding::ZipkinJson,
        ] {
            let fault = decode(encoding, Bytes::from_static(b"\xff\xff"));
            assert!(fault.is_err(), "{encoding:?}");
        }
    }

    #[test]
    fn headers_become_attributes_of_resources() {
        let request = decode(Encoding::JaegerProto, jaeger_span().into()).expect("a message");
        let headers = [
            ("tenant".to_owned(), b"old".to_vec()),
            ("tenant".to_owned(), b"a".to_vec()),
            ("other".to_owned(), b"b".to_vec()),
        ];
        let names = ["tenant".to_owned(), "absent".to_owned()];
        let edited = extract(request.clone(), &headers, &names).expect("a request");
        let resource = read(&edited)
            .resource_spans
            .remove(0)
            .resource
            .expect("one");
        let texts = resource.attributes.into_iter().map(|pair| {
            let value = pair.value.and_then(|value| value.value);
            match value {
                Some(Value::StringValue(text)) => (pair.key, text),
                other => panic!("{other:?}"),
            }
        });
        let texts: Vec<_> = texts.collect();
        let tenant = ("kafka.header.tenant".to_owned(), "a".to_owned());
        assert!(texts.contains(&tenant) && texts.len() == 2, "{texts:?}");
        assert_eq!(
            extract(request.clone(), &headers, &[]).expect("same"),
            request
        );
    }
}
