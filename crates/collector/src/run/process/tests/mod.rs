//! Processors that change records, and what they make of requests of all signals.

mod actions;
mod filter;
mod handing;
mod logs;
mod matching;
mod metrics;
mod metrics_filter;
mod oracle;
mod random;
mod sampler;
mod span_names;
mod statements;
pub mod streams;
pub mod transform;

use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use crate::run::Log;

/// A log, and the lines that it was told.
pub fn log_of() -> (Log, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let log = Log::new(move |_, line| told.lock().unwrap().push(line.to_owned()));
    (log, lines)
}

/// An attribute.
pub fn kv(key: &str, value: V) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// A text.
pub fn text(text: &str) -> V {
    V::StringValue(text.to_owned())
}

/// A request of one resource and scope.
pub fn traces(resource: Vec<KeyValue>, spans: Vec<Span>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource,
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "lib".into(),
                    version: "1.2".into(),
                    ..InstrumentationScope::default()
                }),
                spans,
                schema_url: "s".into(),
            }],
            schema_url: "r".into(),
        }],
    }
}
