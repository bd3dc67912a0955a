//! Encodes a batch as messages.

use std::collections::HashMap;

use bytes::Bytes;
use otlp::json;
use otlp::scan::{Any, Attributes, RESOURCE, RESOURCE_ATTRIBUTES};
use otlp::split::{Bound, split};
use otlp::wire::{Fields, one_bytes};
use syntax::hex;

use super::decode::Header;
use crate::config::Signal;
use crate::config::components::exporters::kafka::{Destination, KafkaExporter};
use crate::config::components::exporters::load_balancing::Routing;
use crate::config::components::shared::kafka::Encoding;
use crate::run::data::Batch;
use crate::run::origin::Origin;
use crate::run::send::split_by;

/// The most bytes that the resources and scopes of a batch may take, which are repeated for each
/// trace.
const REPEATED_BYTES_MAX: u64 = 256 << 20;
/// The most bytes of a message beside its key, its value and its headers.
const AROUND_BYTES_MAX: u64 = 128;
/// The most bytes that the lengths of a header's name and value take.
const HEADER_BYTES: usize = 2 * 5;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// The key, which selects the partition.
    pub key: Option<Vec<u8>>,
    /// The encoded spans.
    pub value: Bytes,
    /// The number of its spans.
    pub spans: u64,
}

/// The messages of a batch. None is larger than the limit of the settings, except for a message of
/// a single span.
///
/// # Errors
/// The batch can never be sent; the reason.
pub fn messages(settings: &KafkaExporter, batch: &Batch) -> Result<Vec<Message>, String> {
    let destination = &settings.traces;
    let origin = batch.origin.as_deref();
    let named = destination.topic_key.as_deref();
    let topic = named.and_then(|name| first(origin, name));
    let key = destination.message_key.as_deref();
    let key = key.and_then(|name| first(origin, name));
    let headers = headers(settings, origin).into_iter();
    let headers = headers.map(|(name, value)| name.len() + value.len() + HEADER_BYTES);
    let headers: usize = headers.sum();
    let mut messages = Vec::new();
    for (id, part, spans) in parts(settings, batch)? {
        let topic = topic.clone().or_else(|| attribute(destination, &part));
        let topic = topic.unwrap_or_else(|| destination.topic.clone());
        let key = id.or_else(|| key.clone().map(String::into_bytes));
        let around = AROUND_BYTES_MAX + (key.as_ref().map_or(0, Vec::len) + headers) as u64;
        let bytes_max = u64::from(settings.producer.message_bytes_max);
        let bytes_max = bytes_max.saturating_sub(around).max(1);
        values(
            destination.encoding,
            (part, spans),
            bytes_max,
            &mut |value, spans| {
                messages.push(Message {
                    topic: topic.clone(),
                    key: key.clone(),
                    value,
                    spans,
                });
            },
        );
    }
    Ok(messages)
}

/// The headers of all messages of a batch.
#[must_use]
pub fn headers(settings: &KafkaExporter, origin: Option<&Origin>) -> Vec<Header> {
    let fixed = settings.headers.iter();
    let fixed = fixed.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
    let known = settings.metadata_keys.iter().flat_map(|name| {
        let values = origin.map_or(&[][..], |origin| origin.field(name));
        values
            .iter()
            .map(|value| (name.clone(), value.as_bytes().to_vec()))
    });
    fixed.chain(known).collect()
}

/// The first value of a field, if it is a text that is not empty.
fn first(origin: Option<&Origin>, name: &str) -> Option<String> {
    let value = origin?.field(name).first()?;
    let text = value.to_str().ok().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// The topic of the first resource that has the attribute for it.
fn attribute(destination: &Destination, request: &[u8]) -> Option<String> {
    let name = destination.topic_attribute.as_deref()?;
    for field in Fields::new(request) {
        let Some(resource) = field.ok()?.message(1) else {
            continue;
        };
        let message = one_bytes(resource, RESOURCE).ok()?.unwrap_or_default();
        let found = Attributes::new(message, RESOURCE_ATTRIBUTES).get(name.as_bytes());
        if let Some(Any::Text(text)) = found
            && !text.is_empty()
        {
            return Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    None
}

/// A part of a batch: its key if it is one trace, the request, and the number of its spans.
type Part = (Option<Vec<u8>>, Bytes, u64);

/// The whole batch as one part, or one part for each trace.
fn parts(settings: &KafkaExporter, batch: &Batch) -> Result<Vec<Part>, String> {
    if !settings.is_by_trace {
        return Ok(vec![(None, batch.bytes.clone(), batch.records)]);
    }
    if repeated_bytes(&batch.bytes, batch.records) > REPEATED_BYTES_MAX {
        return Err(format!(
            "the resources and scopes of its spans would have more than {REPEATED_BYTES_MAX} bytes"
        ));
    }
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut owner = |id: &[u8]| {
        let next = numbers.len();
        match numbers.get(id) {
            Some(number) => *number,
            None => *numbers.entry(id.to_vec()).or_insert(next),
        }
    };
    let parts = split_by(&batch.bytes, batch.records, &mut owner, Routing::TraceId);
    let parts = parts.map_err(|fault| fault.to_string())?;
    let mut ids: Vec<Option<Vec<u8>>> = vec![None; numbers.len()];
    for (id, number) in numbers {
        // Spans without a trace identifier have no key, so the partitioner chooses.
        ids[number] = id
            .iter()
            .any(|byte| *byte != 0)
            .then(|| hex::text(&id).into_bytes());
    }
    let parts = parts.into_iter();
    Ok(parts
        .map(|(number, request, spans)| (ids[number].take(), request, spans))
        .collect())
}

/// The bytes of resources and scopes if they are repeated for each span.
fn repeated_bytes(request: &Bytes, spans: u64) -> u64 {
    let others = |message: &[u8]| -> u64 {
        let fields = Fields::new(message).map_while(Result::ok);
        fields
            .filter(|field| field.key >> 3 != 2)
            .map(|field| field.whole.len() as u64)
            .sum()
    };
    let mut largest = 0;
    for resource in Fields::new(request).map_while(Result::ok) {
        let Some(resource) = resource.message(1) else {
            continue;
        };
        let around = others(resource);
        for scope in Fields::new(resource).map_while(Result::ok) {
            largest = largest.max(around + scope.message(2).map_or(0, others));
        }
    }
    largest.saturating_mul(spans)
}

/// Calls `put` with the values of messages for these spans, each of `bytes_max` bytes at most
/// unless it has a single span.
fn values(
    encoding: Encoding,
    (request, spans): (Bytes, u64),
    bytes_max: u64,
    put: &mut dyn FnMut(Bytes, u64),
) {
    if encoding != Encoding::OtlpJson {
        let parts = split(Signal::Traces, request, spans, Bound::Bytes(bytes_max));
        return parts.into_iter().for_each(|(part, spans)| put(part, spans));
    }
    let value = json::encode(Signal::Traces, &request);
    if value.len() as u64 <= bytes_max || spans <= 1 {
        return put(value.into(), spans);
    }
    let half = Bound::Records(spans.div_ceil(2));
    for part in split(Signal::Traces, request, spans, half) {
        values(encoding, part, bytes_max, put);
    }
}

#[cfg(test)]
mod tests;
