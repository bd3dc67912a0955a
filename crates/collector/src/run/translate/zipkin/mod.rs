//! Zipkin: version 2 in JSON and in protobuf, version 1 in JSON (Zipkin's `zipkin2-api.yaml`,
//! `zipkin.proto`, `zipkin-api.yaml`), translated as the Collector's `pkg/translator/zipkin` does
//! it, but for what it would lose: a tag of a resource stays with its span's resource, and text
//! that only looks like the Collector's own event or link stays text.

mod json;
mod keys;
mod model;
mod proto;
mod v1;
mod v1_status;
mod values;

#[cfg(test)]
mod tests;

use super::request::Request;

/// A body of Zipkin's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Version 2 in JSON: a list of spans.
    V2Json,
    /// Version 2 in protobuf: `ListOfSpans`.
    V2Protobuf,
    /// Version 1 in JSON: a list of spans.
    V1Json,
}

/// The `ExportTraceServiceRequest` of a body. `parse_tags`: tags that look like numbers and truth
/// values become such.
///
/// # Errors
/// What is wrong with the body.
pub fn to_otlp(form: Form, body: &[u8], parse_tags: bool) -> Result<Vec<u8>, String> {
    let mut request = Request::default();
    match form {
        Form::V2Json => json::read(body, |span: json::Span<'_>| {
            span.read()?.translate(parse_tags, &mut request);
            Ok(())
        })?,
        Form::V2Protobuf => proto::read(body, |span| span.translate(parse_tags, &mut request))?,
        Form::V1Json => json::read(body, |span: v1::Span<'_>| {
            span.translate(parse_tags, &mut request)
        })?,
    }
    Ok(request.finish())
}
