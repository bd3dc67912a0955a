//! `balance static-rr`: iterates a fixed map of the servers, shared by all workers.

use super::{Balance, Candidates, weighted_map};

#[derive(Debug)]
pub(crate) struct StaticRr {
    map: Vec<usize>,
}

impl StaticRr {
    pub fn new(weights: &[u32], usable: &[bool]) -> Self {
        StaticRr {
            map: weighted_map(weights, usable),
        }
    }
}

impl Balance for StaticRr {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        super::next_of(&self.map, candidates)
    }
}
