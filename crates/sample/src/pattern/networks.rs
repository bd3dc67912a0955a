//! Networks by longest prefix: a hash table of prefixes. One lookup is made for each prefix length
//! that occurs, longest first.
//!
//! As in HAProxy, an IPv4 address is also looked up as the IPv6 address that embeds it, and vice
//! versa. Masks with holes come last, in their order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::hash::hash_number;
use super::index::Index;
use super::parse::{Network, length_of, prefix4, prefix6};
use super::store::Store;
use super::twins::Twins;
use crate::cast::embedded_ipv4;

/// See the module.
#[derive(Debug)]
pub(super) struct Networks {
    lenient: bool,
    v4: Prefixes,
    v6: Prefixes,
    /// Masks with holes, in the order of the entries: address, mask, entry.
    holed: BTreeMap<u64, (u32, u32, u32)>,
}

impl Networks {
    /// An empty set with room for this many IPv4 networks. `lenient`: see [`Network::parse`].
    pub(super) fn new(lenient: bool, room: usize) -> Networks {
        Networks {
            lenient,
            v4: Prefixes::new(lenient, room),
            v6: Prefixes::new(lenient, 0),
            holed: BTreeMap::new(),
        }
    }

    /// Adds the key of an entry.
    pub(super) fn insert(&mut self, store: &Store, number: u32) {
        match Parsed::of(store.key(number), self.lenient) {
            Some(Parsed::V4(prefix)) => self.v4.insert(store, number, prefix),
            Some(Parsed::V6(prefix)) => self.v6.insert(store, number, prefix),
            Some(Parsed::Holed(address, mask)) => {
                let order = store.order(number);
                self.holed.insert(order, (address, mask, number));
            }
            None => debug_assert!(false, "an entry that was not checked"),
        }
    }

    /// Removes the key of an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        match Parsed::of(store.key(number), self.lenient) {
            Some(Parsed::V4(prefix)) => self.v4.remove(store, number, prefix),
            Some(Parsed::V6(prefix)) => self.v6.remove(store, number, prefix),
            Some(Parsed::Holed(..)) => drop(self.holed.remove(&store.order(number))),
            None => debug_assert!(false, "an entry that was not checked"),
        }
    }

    /// The entry of the most specific network that contains the address.
    pub(super) fn find(&self, store: &Store, ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(v4) => self
                .find4(store, v4)
                .or_else(|| self.find6(store, v4.to_ipv6_mapped()))
                .or_else(|| self.find_holed(v4)),
            IpAddr::V6(v6) => {
                let v4 = embedded_ipv4(v6);
                self.find6(store, v6)
                    .or_else(|| self.find4(store, v4?))
                    .or_else(|| self.find_holed(v4?))
            }
        }
    }

    /// The size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.v4.bytes() + self.v6.bytes() + self.holed.len() * 32
    }

    fn find4(&self, store: &Store, ip: Ipv4Addr) -> Option<u32> {
        let ip = u32::from(ip);
        self.v4.find(store, |bits| u128::from(ip & prefix4(bits)))
    }

    fn find6(&self, store: &Store, ip: Ipv6Addr) -> Option<u32> {
        let ip = u128::from(ip);
        self.v6.find(store, |bits| ip & prefix6(bits))
    }

    fn find_holed(&self, ip: Ipv4Addr) -> Option<u32> {
        let mut all = self.holed.values();
        all.find(|(address, mask, _)| u32::from(ip) & mask == *address)
            .map(|(.., number)| *number)
    }
}

/// Address and prefix length; an IPv4 address is a small number.
type Prefix = (u128, u32);

enum Parsed {
    V4(Prefix),
    V6(Prefix),
    Holed(u32, u32),
}

impl Parsed {
    fn of(key: &[u8], lenient: bool) -> Option<Parsed> {
        let text = std::str::from_utf8(key).ok()?;
        Some(match Network::read(text, lenient)? {
            Network::V4 { address, mask } => match length_of(mask) {
                Some(bits) => Parsed::V4((address.into(), bits)),
                None => Parsed::Holed(address, mask),
            },
            Network::V6 { address, bits } => Parsed::V6((address, bits)),
        })
    }
}

/// The prefixes of one family.
#[derive(Debug)]
struct Prefixes {
    lenient: bool,
    index: Index,
    /// The number of prefixes of each length.
    counts: [u32; 129],
    /// The lengths that occur, longest first.
    lengths: Vec<u8>,
    twins: Twins,
}

impl Prefixes {
    fn new(lenient: bool, room: usize) -> Prefixes {
        Prefixes {
            lenient,
            index: Index::with_room(room),
            counts: [0; 129],
            lengths: Vec::new(),
            twins: Twins::default(),
        }
    }

    fn insert(&mut self, store: &Store, number: u32, prefix: Prefix) {
        if let Some(leader) = self.find_equal(store, prefix) {
            return self.twins.add(leader, number);
        }
        let lenient = self.lenient;
        let hash_of = |number| prefix_of(store.key(number), lenient).map_or(0, hash);
        self.index.insert(hash(prefix), number, hash_of);
        self.counts[prefix.1 as usize] += 1;
        if self.counts[prefix.1 as usize] == 1 {
            self.list_lengths();
        }
    }

    fn remove(&mut self, store: &Store, number: u32, prefix: Prefix) {
        match self.find_equal(store, prefix) {
            Some(leader) if leader == number => match self.twins.next_leader(leader) {
                Some(next) => self.index.replace(hash(prefix), number, next),
                None => {
                    self.index.remove(hash(prefix), number);
                    self.counts[prefix.1 as usize] -= 1;
                    if self.counts[prefix.1 as usize] == 0 {
                        self.list_lengths();
                    }
                }
            },
            Some(leader) => self.twins.remove(leader, number),
            None => debug_assert!(false, "an entry without its prefix"),
        }
    }

    fn find(&self, store: &Store, masked: impl Fn(u32) -> u128) -> Option<u32> {
        let mut lengths = self.lengths.iter().map(|bits| u32::from(*bits));
        lengths.find_map(|bits| self.find_equal(store, (masked(bits), bits)))
    }

    fn find_equal(&self, store: &Store, prefix: Prefix) -> Option<u32> {
        self.index.find(hash(prefix), |number| {
            prefix_of(store.key(number), self.lenient) == Some(prefix)
        })
    }

    fn list_lengths(&mut self) {
        self.lengths.clear();
        let lengths = (0..=128_u8).rev();
        self.lengths
            .extend(lengths.filter(|bits| self.counts[usize::from(*bits)] > 0));
    }

    fn bytes(&self) -> usize {
        self.index.bytes() + self.twins.bytes()
    }
}

fn prefix_of(key: &[u8], lenient: bool) -> Option<Prefix> {
    match Parsed::of(key, lenient)? {
        Parsed::V4(prefix) | Parsed::V6(prefix) => Some(prefix),
        Parsed::Holed(..) => None,
    }
}

fn hash((address, bits): Prefix) -> u64 {
    hash_number(address, bits)
}
