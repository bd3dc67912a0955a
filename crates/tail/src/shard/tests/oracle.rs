//! The plain program: the Collector's way, with decoded messages, written without a look at the
//! engine.

use crate::settings::{Policy, PolicyKind};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use std::collections::HashMap;

/// A span as bytes, and what stood around it, to compare.
pub type Piece = (Vec<u8>, Vec<u8>, Vec<u8>);

/// All spans of a request.
pub fn pieces(request: &[u8], out: &mut Vec<Piece>) {
    let decoded = ExportTraceServiceRequest::decode(request).unwrap();
    for resource in &decoded.resource_spans {
        for scope in &resource.scope_spans {
            let around = around(resource, scope);
            out.extend(scope.spans.iter().map(|span| piece(&around, span)));
        }
    }
}

/// What stands around the spans of a scope.
fn around(resource: &ResourceSpans, scope: &ScopeSpans) -> (Vec<u8>, Vec<u8>) {
    let resource = ResourceSpans {
        resource: resource.resource.clone(),
        scope_spans: Vec::new(),
        schema_url: resource.schema_url.clone(),
    };
    let scope = ScopeSpans {
        scope: scope.scope.clone(),
        spans: Vec::new(),
        schema_url: scope.schema_url.clone(),
    };
    (resource.encode_to_vec(), scope.encode_to_vec())
}

fn piece((resource, scope): &(Vec<u8>, Vec<u8>), span: &Span) -> Piece {
    (resource.clone(), scope.clone(), span.encode_to_vec())
}

#[derive(Default)]
struct Trace {
    arrived_ms: u64,
    due_ms: u64,
    spans: Vec<(Vec<KeyValue>, Span)>,
    pieces: Vec<Piece>,
}

/// The state of a sampler.
pub struct Oracle {
    pub policies: Vec<Policy>,
    pub wait_ms: u64,
    pub wait_after_root_ms: u64,
    pub traces_max: usize,
    waiting: HashMap<Vec<u8>, Trace>,
    order: Vec<Vec<u8>>,
    decided: HashMap<Vec<u8>, bool>,
    pub out: Vec<Piece>,
    /// Traces that made room for others, and those of them that were not kept.
    pub early: u64,
    pub dropped_early: u64,
}

impl Oracle {
    pub fn new(policies: Vec<Policy>, wait_ms: u64) -> Oracle {
        Oracle {
            policies,
            wait_ms,
            wait_after_root_ms: 0,
            traces_max: usize::MAX,
            waiting: HashMap::new(),
            order: Vec::new(),
            decided: HashMap::new(),
            out: Vec::new(),
            early: 0,
            dropped_early: 0,
        }
    }

    pub fn accept(&mut self, request: &ExportTraceServiceRequest, now_ms: u64) {
        for resource in &request.resource_spans {
            let attributes = resource.resource.clone().unwrap_or_default().attributes;
            for scope in &resource.scope_spans {
                let around = around(resource, scope);
                for span in &scope.spans {
                    self.span(span, &attributes, piece(&around, span), now_ms);
                }
            }
        }
    }

    fn span(&mut self, span: &Span, attributes: &[KeyValue], piece: Piece, now_ms: u64) {
        let id = &span.trace_id;
        if let Some(kept) = self.decided.get(id) {
            if *kept {
                self.out.push(piece);
            }
            return;
        }
        if !self.waiting.contains_key(id) {
            if self.waiting.len() >= self.traces_max {
                let oldest = self.order.remove(0);
                let kept = self.decide(oldest);
                self.early += 1;
                self.dropped_early += u64::from(!kept);
            }
            self.order.push(id.clone());
            let trace = Trace {
                arrived_ms: now_ms,
                due_ms: now_ms + self.wait_ms,
                ..Trace::default()
            };
            self.waiting.insert(id.clone(), trace);
        }
        let trace = self.waiting.get_mut(id).unwrap();
        if span.parent_span_id.iter().all(|byte| *byte == 0) && self.wait_after_root_ms > 0 {
            trace.due_ms = trace.due_ms.min(now_ms + self.wait_after_root_ms);
        }
        assert!(trace.arrived_ms <= now_ms);
        trace.spans.push((attributes.to_vec(), span.clone()));
        trace.pieces.push(piece);
    }

    pub fn tick(&mut self, now_ms: u64) {
        let due: Vec<_> = self
            .order
            .iter()
            .filter(|id| self.waiting[*id].due_ms <= now_ms)
            .cloned()
            .collect();
        for id in due {
            self.order.retain(|other| *other != id);
            self.decide(id);
        }
    }

    fn decide(&mut self, id: Vec<u8>) -> bool {
        let trace = self.waiting.remove(&id).unwrap();
        let kept = decide(&self.policies, &id, &trace.spans);
        self.decided.insert(id, kept);
        if kept {
            self.out.extend(trace.pieces);
        }
        kept
    }
}

fn decide(policies: &[Policy], id: &[u8], spans: &[(Vec<KeyValue>, Span)]) -> bool {
    let vote = |policy: &Policy| vote(&policy.kind, id, spans);
    let dropped = policies.iter().any(|policy| match &policy.kind {
        PolicyKind::Drop(subs) => subs.iter().all(vote),
        _ => false,
    });
    !dropped
        && policies
            .iter()
            .any(|policy| !matches!(policy.kind, PolicyKind::Drop(_)) && vote(policy))
}

fn get<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn has(attributes: &[KeyValue], key: &str) -> bool {
    attributes.iter().any(|attribute| attribute.key == key)
}

/// Some resource or span has an attribute that fulfils the condition.
fn any(
    key: &str,
    spans: &[(Vec<KeyValue>, Span)],
    fulfils: impl Fn(Option<&Value>, bool) -> bool,
) -> bool {
    spans.iter().any(|(resource, span)| {
        has(resource, key) && fulfils(get(resource, key), false)
            || has(&span.attributes, key) && fulfils(get(&span.attributes, key), true)
    })
}

fn vote(kind: &PolicyKind, id: &[u8], spans: &[(Vec<KeyValue>, Span)]) -> bool {
    match kind {
        PolicyKind::AlwaysSample => true,
        PolicyKind::StatusCode(codes) => spans.iter().any(|(_, span)| {
            match span.status.as_ref().map_or(0, |status| status.code) {
                0 => codes.unset,
                1 => codes.ok,
                _ => codes.error,
            }
        }),
        PolicyKind::Latency {
            threshold_ms,
            upper_threshold_ms,
        } => {
            let (mut min, mut max) = (0, 0);
            spans.iter().any(|(_, span)| {
                if min == 0 || span.start_time_unix_nano < min {
                    min = span.start_time_unix_nano;
                }
                if max == 0 || span.end_time_unix_nano > max {
                    max = span.end_time_unix_nano;
                }
                let ms = max.wrapping_sub(min) as i64 / 1_000_000;
                ms > *threshold_ms as i64
                    && (*upper_threshold_ms == 0 || ms <= *upper_threshold_ms as i64)
            })
        }
        PolicyKind::NumericAttribute {
            key,
            min,
            max,
            invert,
        } => {
            let within = |value: Option<&Value>, _| {
                let number = match value {
                    Some(Value::IntValue(number)) => *number,
                    _ => 0,
                };
                number >= min.unwrap_or(i64::MIN) && number <= max.unwrap_or(i64::MAX)
            };
            any(key, spans, within) != *invert
        }
        PolicyKind::BooleanAttribute { key, value, invert } => {
            let equal =
                |found: Option<&Value>, _| matches!(found, Some(Value::BoolValue(true))) == *value;
            any(key, spans, equal) != *invert
        }
        PolicyKind::StringAttribute {
            key,
            values,
            regex,
            invert,
            ..
        } => {
            let equal = |found: Option<&Value>, on_span: bool| {
                let text = match found {
                    Some(Value::StringValue(text)) => text.as_str(),
                    _ => "",
                };
                if on_span && text.is_empty() {
                    return false;
                }
                // The expressions of the tests are plain texts.
                values.iter().any(|value| {
                    if *regex {
                        text.contains(value.as_str())
                    } else {
                        !value.is_empty() && text == value
                    }
                })
            };
            any(key, spans, equal) != *invert
        }
        PolicyKind::TraceState { key, values } => spans.iter().any(|(_, span)| {
            span.trace_state != "bad"
                && span.trace_state.split(',').any(|member| {
                    values
                        .iter()
                        .any(|value| member == format!("{key}={value}"))
                })
        }),
        PolicyKind::TraceFlags => spans.iter().any(|(_, span)| span.flags & 1 == 1),
        PolicyKind::SpanCount { min, max } => {
            let count = spans.len() as u64;
            count >= *min && (*max == 0 || count <= *max)
        }
        PolicyKind::Probabilistic { percentage, .. } => {
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            for byte in b"default-hash-seed".iter().chain(id) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
            (hash as f64) < percentage / 100.0 * u64::MAX as f64
        }
        PolicyKind::And(subs) => subs.iter().all(|sub| vote(&sub.kind, id, spans)),
        PolicyKind::Not(sub) => !vote(&sub.kind, id, spans),
        // The only condition of the tests: attributes["tier"] == "gold", or an event "exception"
        // with type "a".
        PolicyKind::OttlCondition { .. } => spans.iter().any(|(_, span)| {
            get(&span.attributes, "tier") == Some(&Value::StringValue("gold".to_owned()))
                || span.events.iter().any(|event| {
                    event.name == "exception"
                        && get(&event.attributes, "k") == Some(&Value::StringValue("a".to_owned()))
                })
        }),
        _ => unreachable!("not in these tests"),
    }
}
