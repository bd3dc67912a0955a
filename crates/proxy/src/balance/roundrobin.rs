//! `balance roundrobin`: each server in turn, by weight.

use config::model::Server;

use super::{Balance, Candidates};

/// Smooth weighted round robin; a plain turn where all weights are equal.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    equal: bool,
    next: usize,
    credits: Vec<i64>,
}

impl RoundRobin {
    pub fn new(servers: &[Server], worker: usize) -> Self {
        let equal = servers
            .windows(2)
            .all(|pair| pair[0].weight == pair[1].weight);
        RoundRobin {
            equal,
            next: worker % servers.len().max(1),
            credits: vec![0; servers.len()],
        }
    }

    fn pick_equal(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let count = candidates.servers.len();
        let from = self.next;
        let server = (from..from + count)
            .map(|index| index % count)
            .find(|index| (candidates.may)(*index))?;
        self.next = (server + 1) % count;
        Some(server)
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
            self.pick_equal(candidates)
        } else {
            self.pick_weighted(candidates)
        }
    }
}
