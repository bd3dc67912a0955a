//! Balancing algorithms (manual §4.2 balance): one a file, behind one trait.

mod first;
mod hash;
mod key;
mod leastconn;
mod random;
mod roundrobin;
mod static_rr;
mod sticky;

use std::fmt::Debug;

use config::model::{Balance as Configured, Proxy, Server};

use crate::shared::Turn;

pub(crate) use key::{hash, key};

/// The servers at the moment of a choice.
pub(crate) struct Candidates<'a> {
    pub servers: &'a [Server],
    /// Whether a server may be chosen.
    pub may: &'a dyn Fn(usize) -> bool,
    /// Connections that a server works on.
    pub load: &'a dyn Fn(usize) -> u32,
    /// The turn of all workers together.
    pub turn: &'a Turn,
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

/// The algorithm of a backend. Workers take turns together or begin at different servers, so that together they spread
/// evenly.
pub(crate) fn new(proxy: &Proxy, worker: usize) -> Box<dyn Balance> {
    match &proxy.balance {
        Configured::RoundRobin => Box::new(roundrobin::RoundRobin::new(&proxy.servers)),
        Configured::StaticRr => Box::new(static_rr::StaticRr::new(proxy, worker)),
        Configured::LeastConn => Box::new(leastconn::LeastConn::new(worker)),
        Configured::First => Box::new(first::First),
        Configured::Random { draws } => Box::new(random::Random { draws: *draws }),
        Configured::Sticky => Box::new(sticky::Sticky::default()),
        Configured::Source
        | Configured::Uri { .. }
        | Configured::UrlParam { .. }
        | Configured::Hdr { .. }
        | Configured::Hash(_)
        | Configured::LogHash(_) => Box::new(hash::Hash::new(proxy)),
    }
}

/// The servers in use, in proportion to their weights: the map that `static-rr` walks and hashes index. HAProxy's order,
/// so that a key keeps its server.
fn weighted_map(proxy: &Proxy) -> Vec<usize> {
    let servers = &proxy.servers;
    let divisor = servers
        .iter()
        .map(|server| u64::from(server.weight))
        .fold(0, gcd)
        .max(1);
    let usable = usable(proxy);
    let weight = |index: usize| match usable[index] {
        true => (u64::from(servers[index].weight) / divisor) as i64,
        false => 0,
    };
    let total: i64 = (0..servers.len()).map(weight).sum();
    let mut scores = vec![0_i64; servers.len()];
    let mut map = Vec::with_capacity(total as usize);
    for _ in 0..total {
        // Each turn pays every server its weight; the first of those with the most whole turns is next and pays one.
        let mut best: Option<(usize, i64)> = None;
        for index in (0..servers.len()).filter(|index| usable[*index]) {
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

/// Enabled servers with a weight; backups only where there is no other, and only the first without `option allbackups`.
pub(crate) fn usable(proxy: &Proxy) -> Vec<bool> {
    let serves = |backup: bool| {
        let servers = proxy.servers.iter();
        servers
            .map(|line| !line.disabled && line.weight > 0 && line.backup == backup)
            .collect::<Vec<_>>()
    };
    let active = serves(false);
    if active.contains(&true) {
        return active;
    }
    let mut backups = serves(true);
    if !proxy.options.allbackups {
        let first = backups.iter().position(|usable| *usable);
        backups
            .iter_mut()
            .enumerate()
            .for_each(|(index, usable)| *usable = Some(index) == first);
    }
    backups
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}
