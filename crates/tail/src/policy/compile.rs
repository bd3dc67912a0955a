//! From settings to what is evaluated.

use super::composite::Composite;
use super::latency::Latency;
use super::matcher::{Matcher, Test};
use super::node::Node;
use super::numeric_attribute::Range;
use super::ottl_condition::Condition;
use super::probabilistic::Probabilistic;
use super::rate_limiting::Limiter;
use super::span_count::SpanCount;
use super::string_attribute::Texts;
use super::trace_state::State;
use super::{BITS_MAX, KEYS_MAX};
use crate::settings::{Policy, PolicyKind};
use std::fmt;

/// Policies inside each other: a composite's `and` with a `not` are four.
const DEPTH_MAX: u32 = 16;

/// A policy that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The policy's name.
    pub policy: String,
    /// Why.
    pub why: String,
}

impl Refusal {
    pub(super) fn new(policy: &str, why: impl Into<String>) -> Refusal {
        Refusal {
            policy: policy.to_owned(),
            why: why.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {:?}: {}", self.policy, self.why)
    }
}

impl std::error::Error for Refusal {}

/// Compiles policies one by one, and gathers what they ask of spans.
#[derive(Debug)]
pub struct Compiler {
    matcher: Matcher,
    bits: u32,
    shards: u32,
}

impl Compiler {
    pub fn new(shards: u32) -> Compiler {
        Compiler {
            matcher: Matcher::default(),
            bits: 0,
            shards,
        }
    }

    /// What all of them ask of spans.
    pub fn matcher(self) -> Matcher {
        self.matcher
    }

    /// Compiles a policy of the list `policies`.
    pub fn top(&mut self, policy: &Policy) -> Result<Node, Refusal> {
        self.node(policy, DEPTH_MAX)
            .map_err(|why| Refusal::new(&policy.name, why))
    }

    fn node(&mut self, policy: &Policy, depth: u32) -> Result<Node, String> {
        let depth = depth
            .checked_sub(1)
            .ok_or("policies are nested too deeply")?;
        Ok(match &policy.kind {
            PolicyKind::AlwaysSample => Node::Always,
            PolicyKind::Latency {
                threshold_ms,
                upper_threshold_ms,
            } => self.latency(*threshold_ms, *upper_threshold_ms)?,
            PolicyKind::NumericAttribute {
                min: None,
                max: None,
                ..
            } => return Err("at least one of min_value and max_value must be set".to_owned()),
            PolicyKind::NumericAttribute {
                key,
                min,
                max,
                invert,
            } => self.attribute(key, Test::Number(Range::new(*min, *max)), *invert)?,
            PolicyKind::Probabilistic {
                percentage,
                hash_salt,
            } => Node::Probabilistic(Probabilistic::new(*percentage, hash_salt)),
            PolicyKind::StatusCode(codes) => {
                let bit = self.bit()?;
                self.matcher.statuses.add(*codes, bit);
                Node::Bits(bit)
            }
            PolicyKind::StringAttribute {
                key,
                values,
                regex,
                invert,
                ..
            } => self.attribute(key, Test::Text(Texts::new(values, *regex)?), *invert)?,
            PolicyKind::BooleanAttribute { key, value, invert } => {
                self.attribute(key, Test::Bool(*value), *invert)?
            }
            PolicyKind::TraceState { key, values } => {
                let bit = self.bit()?;
                self.matcher.states.push(State::new(key, values, bit));
                Node::Bits(bit)
            }
            PolicyKind::TraceFlags => {
                let bit = self.bit()?;
                self.matcher.sampled_flag |= bit;
                Node::Bits(bit)
            }
            PolicyKind::RateLimiting {
                spans_per_second,
                burst_capacity,
            } => Node::Spans(Limiter::new(
                *spans_per_second,
                *burst_capacity,
                self.shards,
            )),
            PolicyKind::BytesLimiting {
                bytes_per_second,
                burst_capacity,
            } => Node::Bytes(Limiter::new(
                *bytes_per_second,
                *burst_capacity,
                self.shards,
            )),
            PolicyKind::SpanCount { min, max } => Node::SpanCount(SpanCount {
                min: *min,
                max: *max,
            }),
            PolicyKind::OttlCondition {
                span,
                span_event,
                error_mode,
            } => {
                let (yes, error) = (self.bit()?, self.bit()?);
                let keys = &mut self.matcher.keys;
                let condition = Condition::new(span, span_event, *error_mode, keys, yes, error)?;
                self.matcher.conditions.push(condition);
                Node::Condition { yes, error }
            }
            PolicyKind::And(subs) => Node::And(self.subs(subs, depth)?),
            PolicyKind::Drop(subs) => Node::Drop(self.subs(subs, depth)?),
            PolicyKind::Not(sub) => Node::Not(Box::new(self.sub(sub, depth)?)),
            PolicyKind::Composite {
                spans_per_second_max,
                policies,
                rates,
            } => {
                let rate = |name: &str| {
                    rates
                        .iter()
                        .find(|(policy, _)| policy == name)
                        .map(|(_, rate)| *rate)
                };
                let subs = self.subs(policies, depth)?.into_iter().zip(policies);
                let subs = subs
                    .map(|(node, policy)| (node, rate(&policy.name)))
                    .collect();
                Node::Composite(Composite::new(*spans_per_second_max, subs, self.shards))
            }
        })
    }

    fn subs(&mut self, policies: &[Policy], depth: u32) -> Result<Vec<Node>, String> {
        policies
            .iter()
            .map(|policy| self.sub(policy, depth))
            .collect()
    }

    fn sub(&mut self, policy: &Policy, depth: u32) -> Result<Node, String> {
        self.node(policy, depth)
            .map_err(|why| format!("sub-policy {:?}: {why}", policy.name))
    }

    fn latency(&mut self, threshold_ms: u64, upper_ms: u64) -> Result<Node, String> {
        let bit = self.bit()?;
        self.matcher.latencies.push(Latency {
            threshold_ms,
            upper_ms,
            bit,
        });
        Ok(if upper_ms == 0 {
            Node::Bits(bit)
        } else {
            Node::Window(bit)
        })
    }

    fn attribute(&mut self, key: &str, test: Test, invert: bool) -> Result<Node, String> {
        let bit = self.bit()?;
        let place = self.matcher.keys.place(key.as_bytes());
        let place =
            place.ok_or_else(|| format!("policies name more than {KEYS_MAX} attributes"))?;
        self.matcher.tests.push((place, bit, test));
        Ok(if invert {
            Node::NoBits(bit)
        } else {
            Node::Bits(bit)
        })
    }

    fn bit(&mut self) -> Result<u64, String> {
        if self.bits == BITS_MAX {
            return Err(format!("policies ask more than {BITS_MAX} things of spans"));
        }
        self.bits += 1;
        Ok(1 << (self.bits - 1))
    }
}
