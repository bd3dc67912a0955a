//! `balance random`: draws some servers by weight and takes the least loaded of them.

use super::consistent::{Bound, Bounded};
use super::{Balance, Beginning, Candidates};

/// How often one draw is repeated because it hit a server that cannot be used now. Then it looks at
/// all servers.
const MISSES_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Random {
    draws: u32,
    bound: Option<Bound>,
    /// By server: the sum of the weights of the usable servers up to it, including its own.
    sums: Vec<u64>,
}

impl Random {
    pub fn new(draws: u32, beginning: &Beginning<'_>) -> Random {
        let mut sum = 0;
        let servers = beginning.weights.iter().zip(beginning.usable);
        let sums = servers.map(|(weight, usable)| {
            sum += if *usable { u64::from(*weight) } else { 0 };
            sum
        });
        Random {
            draws,
            sums: sums.collect(),
            bound: Bound::new(beginning),
        }
    }

    /// Draws a server that may be used; none if there is none.
    fn draw(&self, among: &Among<'_>, random: &mut dyn FnMut() -> u64) -> Option<usize> {
        let total = *self.sums.last()?;
        if total == 0 {
            return None;
        }
        for _ in 0..MISSES_MAX {
            let drawn = random() % total;
            let server = self.sums.partition_point(|sum| *sum <= drawn);
            if among.has(server) {
                return Some(server);
            }
        }
        among.draw(random)
    }
}

impl Balance for Random {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let among = Among {
            candidates,
            bounded: self.bound.as_ref().map(|bound| bound.now(candidates)),
        };
        let mut best = self.draw(&among, random)?;
        // A second draw from one server finds the same.
        for _ in 1..self.draws.min(self.sums.len() as u32) {
            match self.draw(&among, random) {
                Some(other) if relative(candidates, other) < relative(candidates, best) => {
                    best = other
                }
                _ => {}
            }
        }
        Some(best)
    }
}

/// The servers that may be used now.
struct Among<'a> {
    candidates: &'a Candidates<'a>,
    bounded: Option<Bounded<'a>>,
}

impl Among<'_> {
    fn has(&self, server: usize) -> bool {
        let is_within = |bounded: &Bounded<'_>| bounded.takes(server);
        (self.candidates.may)(server) && self.bounded.as_ref().is_none_or(is_within)
    }

    /// Looks at all servers and draws one of these.
    fn draw(&self, random: &mut dyn FnMut() -> u64) -> Option<usize> {
        let servers = 0..self.candidates.weights.len();
        let mut total = 0;
        let mut drawn = None;
        // Each server replaces the ones before it with the probability that its share of the
        // weights so far gives.
        for server in servers.filter(|server| self.has(*server)) {
            let weight = u64::from(self.candidates.weights[server]);
            total += weight;
            if weight > 0 && random() % total < weight {
                drawn = Some(server);
            }
        }
        drawn
    }
}

fn relative(candidates: &Candidates<'_>, server: usize) -> u64 {
    u64::from((candidates.load)(server)) * 256 / u64::from(candidates.weights[server].max(1))
}
