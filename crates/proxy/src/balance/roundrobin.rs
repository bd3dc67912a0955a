//! `balance roundrobin`: each server in turn, by weight.

use config::model::Server;

use super::{Balance, Candidates};

/// How often a turn is looked at again that other workers take first; then two requests share one.
const RACES_MAX: usize = 4;

/// Smooth weighted round robin; where all weights are equal, plain turns that all workers take together.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    equal: bool,
    credits: Vec<i64>,
}

impl RoundRobin {
    pub fn new(servers: &[Server]) -> Self {
        let equal = servers
            .windows(2)
            .all(|pair| pair[0].weight == pair[1].weight);
        RoundRobin {
            equal,
            credits: vec![0; servers.len()],
        }
    }

    fn pick_equal(candidates: &Candidates<'_>) -> Option<usize> {
        let count = candidates.servers.len();
        let mut picked = None;
        for _ in 0..RACES_MAX {
            let from = candidates.turn.get();
            let server = (from..from + count)
                .map(|index| index % count)
                .find(|index| (candidates.may)(*index))?;
            picked = Some(server);
            if candidates.turn.pass(from, (server + 1) % count) {
                break;
            }
        }
        picked
    }

    fn pick_weighted(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for (index, server) in candidates.servers.iter().enumerate() {
            if !(candidates.may)(index) {
                continue;
            }
            let weight = i64::from(server.weight);
            total += weight;
            self.credits[index] += weight;
            if best.is_none_or(|best| self.credits[index] > self.credits[best]) {
                best = Some(index);
            }
        }
        self.credits[best?] -= total;
        best
    }
}

impl Balance for RoundRobin {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        if self.equal {
            Self::pick_equal(candidates)
        } else {
            self.pick_weighted(candidates)
        }
    }
}
