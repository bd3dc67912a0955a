//! Balancing algorithms (manual §4.2 balance): one a file, behind one trait.

mod first;
mod hash;
mod key;
mod leastconn;
mod random;
mod roundrobin;
mod static_rr;

use std::fmt::Debug;

use config::model::{Balance as Configured, Proxy, Server};

pub(crate) use key::key;

/// The servers at the moment of a choice.
pub(crate) struct Candidates<'a> {
    pub servers: &'a [Server],
    /// Whether a server may be chosen.
    pub may: &'a dyn Fn(usize) -> bool,
    /// Connections that a server works on.
    pub load: &'a dyn Fn(usize) -> u32,
}

/// An algorithm and its state in one worker.
pub(crate) trait Balance: Debug + Send {
    /// Chooses a server that may be chosen; none where there is none. `key` is the hash of what the request is
    /// bound by, for the algorithms that hash.
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        key: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize>;

    /// Whether a request with a key belongs to its server even when that is full.
    fn sticks(&self) -> bool {
        false
    }
}

/// The algorithm of a backend. Workers begin at different servers, so that together they spread evenly.
pub(crate) fn new(proxy: &Proxy, worker: usize) -> Box<dyn Balance> {
    match &proxy.balance {
        Configured::RoundRobin => Box::new(roundrobin::RoundRobin::new(&proxy.servers, worker)),
        Configured::StaticRr => Box::new(static_rr::StaticRr::new(&proxy.servers, worker)),
        Configured::LeastConn => Box::new(leastconn::LeastConn::new(worker)),
        Configured::First => Box::new(first::First),
        Configured::Random { draws } => Box::new(random::Random { draws: *draws }),
        Configured::Source
        | Configured::Uri { .. }
        | Configured::UrlParam { .. }
        | Configured::Hdr { .. }
        | Configured::Hash(_) => Box::new(hash::Hash::new(&proxy.servers, worker)),
    }
}

/// Servers that take traffic, in proportion to their weights, spread as evenly as they can be: the map that
/// `static-rr` walks and hashes index.
fn weighted_map(servers: &[Server]) -> Vec<usize> {
    let weight = |server: &Server| {
        if server.disabled || server.backup {
            0
        } else {
            u64::from(server.weight)
        }
    };
    let divisor = servers.iter().map(weight).fold(0, gcd).max(1);
    let weights: Vec<u64> = servers
        .iter()
        .map(|server| weight(server) / divisor)
        .collect();
    let total: u64 = weights.iter().sum();
    let mut credits = vec![0_i64; servers.len()];
    let mut map = Vec::with_capacity(total as usize);
    for _ in 0..total {
        // Each turn pays every server its weight; the richest is next and pays the turn's price.
        let mut best: Option<(usize, i64)> = None;
        for (index, credit) in credits
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| weights[*index] > 0)
        {
            *credit += weights[index] as i64;
            if best.is_none_or(|(_, most)| *credit > most) {
                best = Some((index, *credit));
            }
        }
        if let Some((index, _)) = best {
            credits[index] -= total as i64;
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
