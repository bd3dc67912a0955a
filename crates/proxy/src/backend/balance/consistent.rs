//! Hashing over a ring (manual §4.2 hash-type consistent): each server has points on the ring, and
//! a hash selects the closest point. The points are the same as HAProxy's, so that a key keeps its
//! server.

use config::model::{HashKey, Server, ServerAddress};
use net::Addr;
use sample::hashes;
use std::net::IpAddr;
use xxhash_rust::xxh32::xxh32;

use super::roundrobin::RoundRobin;
use super::{Balance, Beginning, Candidates};
use crate::shared::is_address_missing;

/// Points of a server for each unit of its weight.
const POINTS_OF_A_WEIGHT: u32 = 16;
/// The factor for an id: the number of points of the largest weight. So the points of two ids never
/// start from the same number.
const POINTS_OF_AN_ID: u32 = 256 * POINTS_OF_A_WEIGHT;

/// The servers by points on the ring. Requests without a key are balanced in turn.
#[derive(Debug)]
pub(crate) struct Ring {
    points: Vec<Point>,
    bound: Option<Bound>,
    otherwise: RoundRobin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    at: u32,
    server: u32,
}

impl Ring {
    pub fn new(beginning: &Beginning<'_>) -> Self {
        let (weights, usable) = (beginning.weights, beginning.usable);
        let mut points = Vec::new();
        for server in (0..weights.len()).filter(|server| usable[*server]) {
            let key = (beginning.ring_key)(server);
            let own = (0..beginning.points(server)).map(|number| Point {
                at: hashes::full_avalanche(key.wrapping_add(number)),
                server: server as u32,
            });
            points.extend(own);
        }
        // Points at the same position keep the order of their servers.
        points.sort_by_key(|point| point.at);
        Ring {
            points,
            bound: Bound::new(beginning),
            otherwise: RoundRobin::new(weights, usable),
        }
    }

    /// The point closest to a hash; of two equally close points the one before it.
    fn closest(&self, hash: u32) -> usize {
        let count = self.points.len();
        let next = self.points.partition_point(|point| point.at < hash) % count;
        let previous = (next + count - 1) % count;
        let before = hash.wrapping_sub(self.points[previous].at);
        let after = self.points[next].at.wrapping_sub(hash);
        if before <= after { previous } else { next }
    }
}

impl Beginning<'_> {
    /// The number of a server's points.
    fn points(&self, server: usize) -> u32 {
        self.weights[server] * POINTS_OF_A_WEIGHT / self.weight_units
    }
}

impl Balance for Ring {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        key: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let Some(key) = key.filter(|_| !self.points.is_empty()) else {
            return self.otherwise.pick(candidates, None, random);
        };
        let round = self.bound.as_ref().map(|bound| bound.now(candidates));
        let takes = |server: usize| {
            (candidates.may)(server)
                && round.as_ref().is_none_or(|round| round.takes(server))
                && !(candidates.is_full)(server)
        };
        let (before, from) = self.points.split_at(self.closest(key));
        let mut around = from.iter().chain(before).map(|point| point.server as usize);
        // If no server takes the request, HAProxy ends its search with the last point of the ring.
        around.find(|server| takes(*server)).or_else(|| {
            let mut back = self.points.iter().rev().map(|point| point.server as usize);
            back.find(|server| (candidates.may)(*server))
        })
    }
}

/// The key that places a server on the ring (manual §5.2 hash-key). `address`: its current address.
pub(crate) fn ring_key(server: &Server, address: &ServerAddress) -> u32 {
    let (ip, port) = match address {
        ServerAddress::Fixed(Addr::Inet(addr)) => (Some(addr.ip()), addr.port()),
        ServerAddress::PortOffset { ip, .. } => (Some(*ip), 0),
        ServerAddress::Fixed(_) => (None, 0),
    };
    let ip = ip.filter(|_| !is_address_missing(server, address));
    let by_id = server.id.wrapping_mul(POINTS_OF_AN_ID);
    let of_ip = |ip: IpAddr, seed: u32| match ip {
        // As a number in the byte order of a little-endian machine.
        IpAddr::V4(ip) => {
            hashes::full_avalanche(seed.wrapping_add(u32::from_le_bytes(ip.octets())))
        }
        IpAddr::V6(ip) => xxh32(&ip.octets(), seed),
    };
    match (server.hash_key, ip, &server.guid) {
        (HashKey::Id32, ..) => hashes::full_avalanche(server.id.swap_bytes()),
        (HashKey::Guid, _, Some(guid)) => xxh32(guid, 0),
        (HashKey::Addr, Some(ip), _) => of_ip(ip, 0),
        (HashKey::AddrPort, Some(ip), _) => of_ip(ip, hashes::full_avalanche(u32::from(port))),
        (HashKey::Id | HashKey::Guid | HashKey::Addr | HashKey::AddrPort, ..) => by_id,
    }
}

/// `hash-balance-factor`: no server has much more load than its share (Mirrokni, Thorup,
/// Zadimoghaddam, arXiv:1608.01350).
#[derive(Debug)]
pub(crate) struct Bound {
    factor: u64,
    total: u64,
    /// By server: its weight, and the sum of weights of the usable servers before it.
    weights: Vec<(u64, u64)>,
}

impl Bound {
    /// None where there is no bound.
    pub fn new(beginning: &Beginning<'_>) -> Option<Bound> {
        let factor = beginning.proxy.hash_balance_factor;
        if factor == 0 {
            return None;
        }
        let mut total = 0;
        let pairs = beginning.usable.iter().enumerate().map(|(server, usable)| {
            let weight = match usable {
                true => u64::from(beginning.points(server)),
                false => 0,
            };
            total += weight;
            (weight, total - weight)
        });
        let weights = pairs.collect();
        Some(Bound {
            factor: u64::from(factor),
            total: total.max(1),
            weights,
        })
    }

    /// The bound for the current load plus one more request.
    pub fn now<'a>(&'a self, candidates: &'a Candidates<'a>) -> Bounded<'a> {
        let servers = 0..self.weights.len();
        let served: u64 = servers
            .map(|server| u64::from((candidates.load)(server)))
            .sum();
        Bounded {
            bound: self,
            candidates,
            slots: ((served + 1) * self.factor).div_ceil(100),
        }
    }
}

/// See [`Bound::now`].
pub(crate) struct Bounded<'a> {
    bound: &'a Bound,
    candidates: &'a Candidates<'a>,
    slots: u64,
}

impl Bounded<'_> {
    /// Whether a server has less than its share of the slots.
    pub fn takes(&self, server: usize) -> bool {
        let total = self.bound.total;
        let (weight, before) = self.bound.weights[server];
        let rest = self.slots % total;
        let share = weight * (self.slots / total) + (before + weight) * rest / total
            - before * rest / total;
        u64::from((self.candidates.load)(server)) < share.max(1)
    }
}
