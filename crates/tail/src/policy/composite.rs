//! `composite`: a share of spans a second for each of several policies. The first that samples a
//! trace owns it; it is kept as long as its policy's share of this second lasts, and else not
//! sampled.

use super::node::{Node, sampled_if};
use super::{Trace, Vote};
use crate::settings::SECOND_NS;

/// The policy.
#[derive(Debug)]
pub struct Composite {
    subs: Vec<Sub>,
    spans_per_second_max: u64,
    second: u64,
    /// The sub-policy that sampled last.
    owner: Option<u16>,
}

#[derive(Debug)]
struct Sub {
    name: Box<str>,
    node: Node,
    /// Its share, in spans a second.
    share: u64,
    /// What it took in this second.
    taken: u64,
}

impl Composite {
    /// `subs`: each policy with its name, and the per cent it is given, where it is; others get
    /// what an equal division would give. The maximum is divided among `shards`.
    pub fn new(
        spans_per_second_max: u64,
        subs: Vec<(&str, Node, Option<u64>)>,
        shards: u32,
    ) -> Composite {
        let max =
            (spans_per_second_max / u64::from(shards)).max(u64::from(spans_per_second_max > 0));
        let equal = max as f64 / subs.len().max(1) as f64;
        let share = |percent: Option<u64>| match percent {
            Some(percent) if percent > 0 => percent as f64 / 100.0 * max as f64,
            _ => equal,
        };
        let sub = |(name, node, percent): (&str, _, _)| Sub {
            name: name.into(),
            node,
            share: share(percent) as u64,
            taken: 0,
        };
        Composite {
            subs: subs.into_iter().map(sub).collect(),
            spans_per_second_max: max,
            second: 0,
            owner: None,
        }
    }

    pub fn vote(&mut self, trace: &Trace<'_>, now_ns: u64) -> Vote {
        let second = now_ns / SECOND_NS;
        if self.second != second {
            self.second = second;
            self.subs.iter_mut().for_each(|sub| sub.taken = 0);
        }
        for (at, sub) in (0_u16..).zip(&mut self.subs) {
            match sub.node.vote(trace, now_ns).0 {
                Vote::Error => return Vote::Error,
                Vote::Sampled => {
                    let taken = sub.taken.saturating_add(trace.spans);
                    let fits = taken <= sub.share && taken <= self.spans_per_second_max;
                    if fits {
                        sub.taken = taken;
                        self.owner = Some(at);
                    }
                    return sampled_if(fits);
                }
                Vote::NotSampled | Vote::Dropped => {}
            }
        }
        Vote::NotSampled
    }

    /// The sub-policy that owns the trace that was sampled last.
    pub fn owner(&self) -> Option<u16> {
        self.owner
    }

    /// The name of a sub-policy.
    pub fn sub_name(&self, sub: u16) -> Option<&str> {
        self.subs.get(usize::from(sub)).map(|sub| &*sub.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Bit;

    fn trace(bits: u64, spans: u64) -> Trace<'static> {
        Trace {
            id: &[1; 16],
            bits,
            more: &[],
            spans,
            bytes: 0,
        }
    }

    #[test]
    fn the_first_that_samples_owns_the_trace() {
        let subs = vec![
            ("s", Node::Bits(Bit { word: 0, mask: 1 }), Some(50)),
            ("s", Node::Always, Some(20)),
            ("s", Node::Bits(Bit { word: 0, mask: 2 }), None),
        ];
        let mut composite = Composite::new(100, subs, 1);
        let mut votes =
            |bits, spans, now| composite.vote(&trace(bits, spans), now) == Vote::Sampled;
        assert!(votes(1, 50, 0));
        assert!(
            !votes(1, 1, 0),
            "its share is used up, and others are not asked"
        );
        assert!(votes(0, 20, 0));
        assert!(!votes(2, 1, 0), "the second policy owns it");
        assert!(votes(1, 50, SECOND_NS), "a new second");
        assert!(!votes(0, 21, SECOND_NS));
        assert!(
            votes(0, 20, SECOND_NS),
            "a trace that did not fit took nothing"
        );
    }

    #[test]
    fn who_is_given_nothing_gets_an_equal_part() {
        let mut composite = Composite::new(
            90,
            vec![
                ("s", Node::Always, Some(0)),
                ("s", Node::Bits(Bit { word: 0, mask: 0 }), None),
                ("s", Node::Bits(Bit { word: 0, mask: 0 }), None),
            ],
            1,
        );
        assert_eq!(composite.vote(&trace(0, 31), 0), Vote::NotSampled);
        assert_eq!(composite.vote(&trace(0, 30), 0), Vote::Sampled);
    }
}
