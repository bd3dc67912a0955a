//! The policies of `tail_sampling`, compiled.
//!
//! What a span or a resource says becomes bits when it arrives ([`Matcher`]); a trace has the bits
//! of all its spans. The decision reads bits and sums only ([`Program`]). One file a policy; this
//! one combines their votes.

mod boolean_attribute;
mod compile;
mod composite;
mod latency;
mod matcher;
mod node;
mod numeric_attribute;
mod ottl_condition;
pub use ottl_condition::unknown;
mod probabilistic;
mod rate_limiting;
mod span_count;
mod status_code;
mod string_attribute;
mod trace_state;

pub use compile::Refusal;
pub use matcher::Matcher;

use crate::settings::{Strategy, TailSampling};
use node::Node;

/// Bits of a word: what policies ask of spans and resources, each one bit, an OTTL condition two,
/// and all thresholds of latency together a number in the first word.
pub const BITS_MAX: u32 = 64;

/// Words of bits of a trace. The first one is a part of its entry; few programs have more.
pub const WORDS_MAX: usize = 32;

/// A bit of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Its word.
    pub word: u16,
    /// What it is there.
    pub mask: u64,
}

/// Policies of one program.
pub const POLICIES_MAX: usize = 1024;

/// What one policy says of a trace. (The Collector's inverted votes are not among them: no policy
/// of it gives any since `invert_match` votes plainly.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Keep it.
    Sampled,
    /// Nothing speaks for it.
    NotSampled,
    /// Drop it, whatever others say.
    Dropped,
    /// The policy could not be evaluated: no vote.
    Error,
}

/// What the decision reads of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// Its identifier.
    pub id: &'a [u8; 16],
    /// Its bits, of [`Matcher`].
    pub bits: u64,
    /// Further words of them, where the program has more than one.
    pub more: &'a [u64],
    /// Its spans.
    pub spans: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Trace<'_> {
    /// Whether a bit is set.
    #[inline]
    #[must_use]
    pub fn has(&self, bit: Bit) -> bool {
        let word = match bit.word {
            0 => self.bits,
            word => self.more.get(usize::from(word) - 1).copied().unwrap_or(0),
        };
        word & bit.mask != 0
    }
}

/// What becomes of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is exported.
    Sampled,
    /// No policy sampled it.
    NotSampled,
    /// A policy dropped it.
    Dropped,
    /// Nothing is final yet (only of [`Program::decide_batch`]).
    Pending,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of the trace.
    pub fate: Fate,
    /// The policy that is recorded for it.
    pub policy: Option<u16>,
    /// Of a policy `composite`: the sub-policy that owns the trace.
    pub sub: Option<u16>,
}

/// How often a policy voted so, over how many spans and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Traces.
    pub traces: u64,
    /// Their spans.
    pub spans: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, trace: &Trace<'_>) {
        self.traces += 1;
        self.spans += trace.spans;
        self.bytes += trace.bytes;
    }
}

/// What a policy voted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// `sampled`
    pub sampled: Tally,
    /// `not_sampled`
    pub not_sampled: Tally,
    /// `dropped`
    pub dropped: Tally,
    /// Evaluations that failed.
    pub errors: u64,
    /// All evaluations.
    pub evaluations: u64,
}

/// A policy at the top.
#[derive(Debug)]
struct Policy {
    name: Box<str>,
    is_drop: bool,
    node: Node,
    votes: Votes,
}

/// All policies.
#[derive(Debug)]
pub struct Program {
    /// `drop` policies first.
    policies: Vec<Policy>,
    matcher: Matcher,
    first_match: bool,
}

impl Program {
    /// Compiles the policies for one of `settings.shards` shards.
    ///
    /// # Errors
    /// Names the policy that cannot be compiled, and why.
    pub fn new(settings: &TailSampling) -> Result<Program, Refusal> {
        let mut compiler = compile::Compiler::new(settings);
        let mut policies = Vec::new();
        if settings.policies.len() > POLICIES_MAX {
            return Err(Refusal::new("", "there are more than 1024 policies"));
        }
        for policy in &settings.policies {
            let node = compiler.top(policy)?;
            if settings.strategy == Strategy::SpanIngest && policy.stateful().is_some() {
                let why = "it depends on more than one batch of spans, which span-ingest does not wait for";
                return Err(Refusal::new(&policy.name, why));
            }
            policies.push(Policy {
                name: policy.name.as_str().into(),
                is_drop: matches!(node, Node::Drop(_)),
                node,
                votes: Votes::default(),
            });
        }
        // A stable sort: others keep their order.
        policies.sort_by_key(|policy| !policy.is_drop);
        Ok(Program {
            policies,
            matcher: compiler.matcher(),
            first_match: settings.sample_on_first_match,
        })
    }

    /// What makes bits of spans.
    #[must_use]
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Only what makes bits of spans.
    #[must_use]
    pub fn into_matcher(self) -> Matcher {
        self.matcher
    }

    /// The name of a policy by the number that decisions and [`Program::votes`] use: `drop`
    /// policies come first.
    #[must_use]
    pub fn name(&self, policy: u16) -> Option<&str> {
        let policy = self.policies.get(usize::from(policy))?;
        Some(&policy.name)
    }

    /// The name of a sub-policy of a policy `composite`, both by their numbers.
    #[must_use]
    pub fn sub_name(&self, policy: u16, sub: u16) -> Option<&str> {
        let policy = self.policies.get(usize::from(policy))?;
        policy.node.sub_name(sub)
    }

    /// What each policy voted so far, by its number.
    pub fn votes(&self) -> impl Iterator<Item = (&str, &Votes)> {
        self.policies
            .iter()
            .map(|policy| (&*policy.name, &policy.votes))
    }

    /// Decides on a whole trace. Any drop policy that drops ends it; then all others vote, and one
    /// that samples is enough. Recorded is the first that sampled with the least strict threshold.
    pub fn decide(&mut self, trace: &Trace<'_>, now_ns: u64) -> Decision {
        let mut sampled: Option<(u16, u64)> = None;
        for (at, policy) in (0_u16..).zip(&mut self.policies) {
            let (vote, threshold) = policy.vote(trace, now_ns);
            match vote {
                Vote::Dropped => {
                    return Decision {
                        fate: Fate::Dropped,
                        policy: Some(at),
                        sub: None,
                    };
                }
                Vote::Sampled => {
                    if sampled.is_none_or(|(_, least)| threshold < least) {
                        sampled = Some((at, threshold));
                    }
                    if self.first_match {
                        break;
                    }
                }
                Vote::NotSampled | Vote::Error => {}
            }
        }
        Decision {
            fate: if sampled.is_some() {
                Fate::Sampled
            } else {
                Fate::NotSampled
            },
            policy: sampled.map(|(at, _)| at),
            sub: sampled.and_then(|(at, _)| self.policies[usize::from(at)].node.owner()),
        }
    }

    /// Decides on a batch of spans alone, as it arrives (`span-ingest`): sampled and dropped are
    /// final, all else is pending. A drop policy that does not match may still match later spans,
    /// so nothing is sampled then.
    pub fn decide_batch(&mut self, trace: &Trace<'_>, now_ns: u64) -> Decision {
        let mut drop_pending = false;
        for (at, policy) in (0_u16..).zip(&mut self.policies) {
            if drop_pending && !policy.is_drop {
                break;
            }
            let (vote, _) = policy.vote(trace, now_ns);
            let fate = match vote {
                Vote::Dropped => Fate::Dropped,
                Vote::Error => continue,
                Vote::Sampled if !policy.is_drop => Fate::Sampled,
                _ => {
                    drop_pending |= policy.is_drop;
                    continue;
                }
            };
            return Decision {
                fate,
                policy: Some(at),
                sub: None,
            };
        }
        Decision {
            fate: Fate::Pending,
            policy: None,
            sub: None,
        }
    }
}

impl Policy {
    fn vote(&mut self, trace: &Trace<'_>, now_ns: u64) -> (Vote, u64) {
        let (vote, threshold) = self.node.vote(trace, now_ns);
        self.votes.evaluations += 1;
        match vote {
            Vote::Sampled => self.votes.sampled.add(trace),
            Vote::NotSampled => self.votes.not_sampled.add(trace),
            Vote::Dropped => self.votes.dropped.add(trace),
            Vote::Error => self.votes.errors += 1,
        }
        (vote, threshold)
    }
}

#[cfg(test)]
mod tests;
