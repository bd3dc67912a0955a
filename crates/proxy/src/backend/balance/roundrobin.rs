//! `balance roundrobin`: each server in turn, by weight; all workers share the turns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Balance, Candidates};

/// The most turns of a round; larger weights are scaled down to it.
const TURNS_MAX: u64 = 1 << 16;
/// The length of a round, in the units for spreading turns.
const UNIT: u64 = 1 << 32;

/// The turns of a round. Where all weights are equal, a server's turn is its place.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    map: Vec<usize>,
}

impl RoundRobin {
    pub fn new(weights: &[u32], usable: &[bool]) -> Self {
        let equal = weights.windows(2).all(|pair| pair[0] == pair[1]);
        RoundRobin {
            map: if equal {
                (0..weights.len()).collect()
            } else {
                spread(weights, usable)
            },
        }
    }
}

/// Turns in proportion to weights; those of each server are as far apart as possible.
fn spread(weights: &[u32], usable: &[bool]) -> Vec<usize> {
    let weight = |server: usize| {
        if usable[server] {
            u64::from(weights[server])
        } else {
            0
        }
    };
    let servers = || (0..weights.len()).filter(|server| weight(*server) > 0);
    let total: u64 = servers().map(weight).sum();
    let common = servers().map(weight).fold(0, super::gcd);
    let divisor = common.max(total.div_ceil(TURNS_MAX)).max(1);
    let turns = |server: usize| (weight(server) / divisor).max(1);
    // The middle of a server's turn, in a round of length `UNIT`.
    let middle = |server: usize, turn: u64| (2 * turn + 1) * UNIT / (2 * turns(server));
    let mut next: BinaryHeap<Reverse<(u64, usize, u64)>> = servers()
        .map(|server| Reverse((middle(server, 0), server, 0)))
        .collect();
    let all: u64 = servers().map(turns).sum();
    (0..all)
        .filter_map(|_| {
            let Reverse((_, server, turn)) = next.pop()?;
            next.push(Reverse((middle(server, turn + 1), server, turn + 1)));
            Some(server)
        })
        .collect()
}

impl Balance for RoundRobin {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        super::next_of(&self.map, candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_by_weight() {
        assert_eq!(spread(&[1, 2], &[true, true]), [1, 0, 1]);
        assert_eq!(spread(&[10, 30], &[true, true]), [1, 0, 1, 1]);
        assert_eq!(spread(&[1, 2, 5], &[true, true, false]), [1, 0, 1]);
        assert_eq!(spread(&[0, 3], &[true, true]), [1]);
        let many = spread(&[256; 1000], &[true; 1000]);
        assert_eq!(many.len(), 1000);
        let mut odd = vec![256; 1000];
        odd[0] = 1;
        let count = spread(&odd, &[true; 1000]).len() as u64;
        assert!(count <= TURNS_MAX + 1000, "{count}");
    }
}
