//! From settings to what is evaluated.

use super::composite::Composite;
use super::latency::{Latencies, Window};
use super::matcher::{Matcher, Test};
use super::node::Node;
use super::numeric_attribute::Range;
use super::ottl_condition::Condition;
use super::probabilistic::Probabilistic;
use super::rate_limiting::Limiter;
use super::span_count::SpanCount;
use super::string_attribute::Texts;
use super::trace_state::State;
use super::{BITS_MAX, Bit, WORDS_MAX};
use crate::settings::{Policy, PolicyKind, TailSampling};
use otlp::scan::KEYS_MAX;
use ottl::Outside;
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
    /// What is asked, without `invert`, and the first of its bits: what several policies ask is
    /// asked once.
    asked: Vec<(PolicyKind, Bit)>,
    /// Bits of the current word.
    bits: u32,
    bits_max: u32,
    shards: u32,
    outside: Outside,
}

impl Compiler {
    /// For the policies of these settings, which are then compiled one by one.
    pub fn new(settings: &TailSampling) -> Compiler {
        let mut thresholds_ms = Vec::new();
        thresholds(&settings.policies, &mut thresholds_ms, DEPTH_MAX);
        let latencies = Latencies::new(thresholds_ms);
        Compiler {
            bits_max: BITS_MAX - latencies.width(),
            matcher: Matcher {
                latencies,
                ..Matcher::default()
            },
            asked: Vec::new(),
            bits: 0,
            shards: settings.shards.max(1),
            outside: settings.outside,
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
            } => self.latency(
                &policy.kind,
                *threshold_ms as i64,
                *upper_threshold_ms as i64,
            )?,
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
            } => {
                let test = || Ok(Test::Number(Range::new(*min, *max)));
                self.attribute(&policy.kind, key, test, *invert)?
            }
            PolicyKind::Probabilistic {
                percentage,
                hash_salt,
            } => Node::Probabilistic(Probabilistic::new(*percentage, hash_salt)),
            PolicyKind::StatusCode(codes) => {
                let bit = self.ask(&policy.kind, |this, bit| {
                    this.word().statuses.add(*codes, bit);
                    Ok(())
                })?;
                Node::Bits(bit)
            }
            PolicyKind::StringAttribute {
                key,
                values,
                regex,
                invert,
                ..
            } => {
                let test = || Ok(Test::Text(Texts::new(values, *regex)?));
                self.attribute(&policy.kind, key, test, *invert)?
            }
            PolicyKind::BooleanAttribute { key, value, invert } => {
                self.attribute(&policy.kind, key, || Ok(Test::Bool(*value)), *invert)?
            }
            PolicyKind::TraceState { key, values } => {
                Node::Bits(self.ask(&policy.kind, |this, bit| {
                    this.word().states.push(State::new(key, values, bit));
                    Ok(())
                })?)
            }
            PolicyKind::TraceFlags => Node::Bits(self.ask(&policy.kind, |this, bit| {
                this.word().sampled_flag |= bit;
                Ok(())
            })?),
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
                let (yes, error) = self.two_bits()?;
                let (keys, bits) = (&mut self.matcher.keys, (yes.mask, error.mask));
                let condition = Condition::new(span, span_event, *error_mode, keys, bits)?;
                let condition = condition.with(self.outside);
                self.word().conditions.push(condition);
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
                    .map(|(node, policy)| (policy.name.as_str(), node, rate(&policy.name)))
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

    fn latency(
        &mut self,
        kind: &PolicyKind,
        threshold_ms: i64,
        upper_ms: i64,
    ) -> Result<Node, String> {
        if upper_ms == 0 {
            let (passed, least) = self.matcher.latencies.place(threshold_ms);
            return Ok(Node::Passed(passed, least));
        }
        let bit = self.ask(kind, |this, bit| {
            this.word().latencies.push(Window {
                threshold_ms,
                upper_ms,
                bit,
            });
            Ok(())
        })?;
        Ok(Node::Window(bit))
    }

    fn attribute(
        &mut self,
        kind: &PolicyKind,
        key: &str,
        test: impl FnOnce() -> Result<Test, String>,
        invert: bool,
    ) -> Result<Node, String> {
        let bit = self.ask(&plain(kind), |this, bit| {
            let place = this.matcher.keys.place(key.as_bytes());
            let place =
                place.ok_or_else(|| format!("policies name more than {KEYS_MAX} attributes"))?;
            this.word().tests.push((place, bit, test()?));
            Ok(())
        })?;
        Ok(if invert {
            Node::NoBits(bit)
        } else {
            Node::Bits(bit)
        })
    }

    /// The bit of what is asked; a new one where no policy asks the same.
    fn ask(
        &mut self,
        kind: &PolicyKind,
        add: impl FnOnce(&mut Compiler, u64) -> Result<(), String>,
    ) -> Result<Bit, String> {
        if let Some((_, bit)) = self.asked.iter().find(|(asked, _)| asked == kind) {
            return Ok(*bit);
        }
        let bit = self.bit()?;
        add(self, bit.mask)?;
        self.asked.push((kind.clone(), bit));
        Ok(bit)
    }

    /// What sets the bits of the current word.
    fn word(&mut self) -> &mut Matcher {
        let Matcher { more, .. } = &mut self.matcher;
        if more.is_empty() {
            &mut self.matcher
        } else {
            let last = self.matcher.more.len() - 1;
            &mut self.matcher.more[last]
        }
    }

    /// Begins another word where the current one has not so many bits left.
    fn make_room(&mut self, bits: u32) -> Result<(), String> {
        if self.bits + bits <= self.bits_max {
            return Ok(());
        }
        let words = self.matcher.more.len() + 1;
        if words == WORDS_MAX {
            let most = WORDS_MAX as u32 * BITS_MAX;
            return Err(format!("policies ask more than {most} things of spans"));
        }
        self.matcher.more.push(Matcher::default());
        (self.bits, self.bits_max) = (0, BITS_MAX);
        Ok(())
    }

    fn bit(&mut self) -> Result<Bit, String> {
        self.make_room(1)?;
        self.bits += 1;
        Ok(Bit {
            word: self.matcher.more.len() as u16,
            mask: 1 << (self.bits - 1),
        })
    }

    /// Two of one word.
    fn two_bits(&mut self) -> Result<(Bit, Bit), String> {
        self.make_room(2)?;
        Ok((self.bit()?, self.bit()?))
    }
}

/// What is asked by a policy that may invert the answer.
fn plain(kind: &PolicyKind) -> PolicyKind {
    let mut plain = kind.clone();
    if let PolicyKind::NumericAttribute { invert, .. }
    | PolicyKind::StringAttribute { invert, .. }
    | PolicyKind::BooleanAttribute { invert, .. } = &mut plain
    {
        *invert = false;
    }
    plain
}

/// The thresholds without an upper bound of policies `latency`, in ms. What is nested too deeply is
/// refused later.
fn thresholds(policies: &[Policy], out: &mut Vec<i64>, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for policy in policies {
        match &policy.kind {
            PolicyKind::Latency {
                threshold_ms,
                upper_threshold_ms: 0,
            } => out.push(*threshold_ms as i64),
            PolicyKind::And(subs) | PolicyKind::Drop(subs) => thresholds(subs, out, depth),
            PolicyKind::Not(sub) => thresholds(std::slice::from_ref(sub), out, depth),
            PolicyKind::Composite { policies, .. } => thresholds(policies, out, depth),
            _ => {}
        }
    }
}
