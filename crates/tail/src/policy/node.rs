//! One policy as the decision evaluates it; `and`, `not` and `drop` hold others.

use super::composite::Composite;
use super::latency::Passed;
use super::probabilistic::Probabilistic;
use super::rate_limiting::Limiter;
use super::span_count::SpanCount;
use super::{Bit, Trace, Vote};

/// A compiled policy.
#[derive(Debug)]
pub enum Node {
    /// `always_sample`
    Always,
    /// Some span or resource has one of these bits.
    Bits(Bit),
    /// So many thresholds are passed.
    Passed(Passed, u64),
    /// Some span has this bit, for two bounds: whether it may become false again as spans arrive,
    /// which span-ingest refuses.
    Window(Bit),
    /// No span and no resource has any (`invert_match`).
    NoBits(Bit),
    /// `ottl_condition`: a bit for true, one for an error, of which the first that came is set.
    Condition { yes: Bit, error: Bit },
    /// `probabilistic`
    Probabilistic(Probabilistic),
    /// `rate_limiting`
    Spans(Limiter),
    /// `bytes_limiting`
    Bytes(Limiter),
    /// `span_count`
    SpanCount(SpanCount),
    /// `and`
    And(Vec<Node>),
    /// `not`
    Not(Box<Node>),
    /// `drop`
    Drop(Vec<Node>),
    /// `composite`
    Composite(Composite),
}

/// The threshold of what samples all that it votes for.
const ALWAYS: u64 = 0;

impl Node {
    /// The vote, and the sampling threshold that it stands for (56 bits; 0 for all but
    /// `probabilistic`).
    pub fn vote(&mut self, trace: &Trace<'_>, now_ns: u64) -> (Vote, u64) {
        let vote = match self {
            Node::Always => Vote::Sampled,
            Node::Bits(bits) | Node::Window(bits) => sampled_if(trace.has(*bits)),
            Node::Passed(passed, least) => sampled_if(passed.of(trace.bits) >= *least),
            Node::NoBits(bits) => sampled_if(!trace.has(*bits)),
            Node::Condition { yes, .. } if trace.has(*yes) => Vote::Sampled,
            Node::Condition { error, .. } if trace.has(*error) => Vote::Error,
            Node::Condition { .. } => Vote::NotSampled,
            Node::Probabilistic(policy) => return policy.vote(trace),
            Node::Spans(limiter) => sampled_if(limiter.allow(trace.spans, now_ns)),
            Node::Bytes(limiter) => sampled_if(limiter.allow(trace.bytes, now_ns)),
            Node::SpanCount(policy) => sampled_if(policy.contains(trace.spans)),
            Node::And(nodes) => return all(nodes, trace, now_ns),
            Node::Not(node) => invert(node.vote(trace, now_ns).0),
            Node::Drop(nodes) => match all(nodes, trace, now_ns).0 {
                Vote::Sampled => Vote::Dropped,
                vote => vote,
            },
            Node::Composite(policy) => policy.vote(trace, now_ns),
        };
        (vote, ALWAYS)
    }

    /// The sub-policy of a `composite` that owns the trace that it sampled last.
    #[must_use]
    pub fn owner(&self) -> Option<u16> {
        match self {
            Node::Composite(policy) => policy.owner(),
            _ => None,
        }
    }

    /// The name of a sub-policy of a `composite`.
    #[must_use]
    pub fn sub_name(&self, sub: u16) -> Option<&str> {
        match self {
            Node::Composite(policy) => policy.sub_name(sub),
            _ => None,
        }
    }
}

/// `sampled` or `not sampled`.
pub fn sampled_if(yes: bool) -> Vote {
    if yes { Vote::Sampled } else { Vote::NotSampled }
}

/// `and`: the first that does not sample or fails ends it; else sampled, with the strictest
/// threshold.
fn all(nodes: &mut [Node], trace: &Trace<'_>, now_ns: u64) -> (Vote, u64) {
    let mut strictest = ALWAYS;
    for node in nodes {
        match node.vote(trace, now_ns) {
            (Vote::Error, _) => return (Vote::Error, ALWAYS),
            (Vote::NotSampled, _) => return (Vote::NotSampled, ALWAYS),
            (_, threshold) => strictest = strictest.max(threshold),
        }
    }
    (Vote::Sampled, strictest)
}

/// `not`
fn invert(vote: Vote) -> Vote {
    match vote {
        Vote::Sampled => Vote::NotSampled,
        Vote::NotSampled => Vote::Sampled,
        vote => vote,
    }
}
