//! Balancing algorithms (manual §4.2 balance): one per file, behind one trait.

mod consistent;
mod first;
mod hash;
mod key;
mod latency;
mod leastconn;
mod random;
mod roundrobin;
mod static_rr;
mod sticky;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use config::model::{Balance as Configured, HashMethod, Proxy};

use crate::shared::{Releases, Turn};

pub(crate) use consistent::ring_key;
pub(crate) use key::{hash, key};
pub(crate) use latency::{Latencies, Observed};

/// The servers to choose from.
pub(crate) struct Candidates<'a> {
    /// The number of a server in statistics.
    pub id: &'a dyn Fn(usize) -> u32,
    /// By server.
    pub weights: &'a [u32],
    /// The place of a server in the order in which they became available (`balance sticky`).
    pub joined: &'a dyn Fn(usize) -> u32,
    /// Whether a server may be chosen.
    pub may: &'a dyn Fn(usize) -> bool,
    /// Whether a server cannot be chosen before it releases a slot or the state of the servers
    /// changes.
    pub stays_out: &'a dyn Fn(usize) -> bool,
    /// The number of requests in progress at a server.
    pub load: &'a dyn Fn(usize) -> u32,
    /// Whether a server has as many requests as hashing may give it (`hash-preserve-affinity`).
    pub is_full: &'a dyn Fn(usize) -> bool,
    /// The time, monotonic nanoseconds.
    pub now_ns: u64,
    /// The turn that all workers share.
    pub turn: &'a Turn,
    /// The servers that released slots.
    pub releases: &'a Releases,
}

/// An algorithm and its state in one worker.
pub(crate) trait Balance: Debug + Send {
    /// Chooses an allowed server; none if there is none. `key` is the hash of the request's key,
    /// for algorithms with hashing.
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        key: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize>;

    /// A server has responded or failed after this time.
    fn observe(&mut self, _server: usize, _observed: Observed) {}

    /// Takes over the latencies that were measured before the servers changed.
    fn inherit(&mut self, _latencies: Latencies) {}

    /// The latencies that the algorithm has measured.
    fn learnt(&mut self) -> Latencies {
        Latencies::default()
    }
}

/// The servers of a backend at the start of an algorithm.
pub(crate) struct Beginning<'a> {
    pub proxy: &'a Proxy,
    /// By server.
    pub weights: &'a [u32],
    /// The units of a weight of 1 in `weights`.
    pub weight_units: u32,
    /// By server: whether it takes requests.
    pub usable: &'a [bool],
    /// The key that places a server on a ring ([`ring_key`]).
    pub ring_key: &'a dyn Fn(usize) -> u32,
    pub worker: usize,
}

/// The algorithm of a backend. Workers share turns, or begin at different servers, so that together
/// they distribute evenly.
pub(crate) fn new(beginning: &Beginning<'_>) -> Box<dyn Balance> {
    let Beginning {
        proxy,
        weights,
        usable,
        worker,
        ..
    } = *beginning;
    match &proxy.balance {
        Configured::RoundRobin => Box::new(roundrobin::RoundRobin::new(weights, usable)),
        Configured::StaticRr => Box::new(static_rr::StaticRr::new(weights, usable)),
        Configured::LeastConn => Box::new(leastconn::LeastConn::new(worker)),
        Configured::LeastLatency => Box::new(latency::LeastLatency::new(weights.len(), worker)),
        Configured::First => Box::new(first::First),
        Configured::Random { draws } => Box::new(random::Random::new(*draws, beginning)),
        Configured::Sticky => Box::new(sticky::Sticky),
        Configured::Source
        | Configured::Uri { .. }
        | Configured::UrlParam { .. }
        | Configured::Hdr { .. }
        | Configured::Hash(_)
        | Configured::LogHash(_) => match proxy.hash_type.method {
            HashMethod::Ring => Box::new(consistent::Ring::new(beginning)),
            HashMethod::Map => Box::new(hash::Hash::new(weights, usable)),
        },
    }
}

/// How often the next turn is tried again after another worker took it; then two requests share one
/// turn.
const RACES_MAX: usize = 4;

/// The next server of a map whose turns all workers share.
fn next_of(map: &[usize], candidates: &Candidates<'_>) -> Option<usize> {
    let count = map.len();
    let mut picked = None;
    for _ in 0..RACES_MAX {
        let from = candidates.turn.get();
        let place = (from..from + count)
            .map(|place| place % count)
            .find(|place| (candidates.may)(map[*place]))?;
        picked = Some(map[place]);
        if candidates.turn.pass(from, (place + 1) % count) {
            break;
        }
    }
    picked
}

/// The servers in use, in proportion to their weights: the map that `static-rr` iterates and hashes
/// index. In HAProxy's order, so that a key keeps its server.
fn weighted_map(weights: &[u32], usable: &[bool]) -> Vec<usize> {
    let divisor = weights
        .iter()
        .map(|weight| u64::from(*weight))
        .fold(0, gcd)
        .max(1);
    let weight = |index: usize| {
        if usable[index] {
            (u64::from(weights[index]) / divisor) as i64
        } else {
            0
        }
    };
    let total: i64 = (0..weights.len()).map(weight).sum();
    let mut scores = vec![0_i64; weights.len()];
    let mut map = Vec::with_capacity(total as usize);
    for _ in 0..total {
        // At each step every server earns its weight. The first server with the most whole turns is
        // next and pays for one turn.
        let mut best: Option<(usize, i64)> = None;
        for index in (0..weights.len()).filter(|index| usable[*index]) {
            scores[index] += weight(index);
            let turns = (scores[index] + total) / total;
            if best.is_none_or(|(_, most)| turns > most) {
                best = Some((index, turns));
            }
        }
        if let Some((index, _)) = best {
            scores[index] -= total;
            map.push(index);
        }
    }
    map
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}
