//! Hashing algorithms (`source`, `uri`, `url_param`, `hdr`, `hash`) over a weighted map (manual
//! §4.2 hash-type map-based).

use super::roundrobin::RoundRobin;
use super::{Balance, Candidates, weighted_map};

/// Requests without a key are balanced in turn.
#[derive(Debug)]
pub(crate) struct Hash {
    map: Vec<usize>,
    otherwise: RoundRobin,
}

impl Hash {
    pub fn new(weights: &[u32], usable: &[bool]) -> Self {
        Hash {
            map: weighted_map(weights, usable),
            otherwise: RoundRobin::new(weights, usable),
        }
    }
}

impl Balance for Hash {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        key: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let Some(key) = key.filter(|_| !self.map.is_empty()) else {
            return self.otherwise.pick(candidates, None, random);
        };
        let count = self.map.len();
        let from = key as usize % count;
        let places = (from..from + count).map(|place| self.map[place % count]);
        places
            .into_iter()
            .find(|server| (candidates.may)(*server))
            .or_else(|| self.otherwise.pick(candidates, None, random))
    }
}
