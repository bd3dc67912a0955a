//! Which server takes which address or service. All functions are pure: the caller owns servers.
//!
//! Facts are those of HAProxy: a server keeps an address as long as answers have it. A new address
//! is chosen by the preferred family, then by the networks of `resolve-net`, then one that no
//! other server has, then the one that the server has already (manual §5.2 resolve-prefer,
//! resolve-net, resolve-opts).

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::name::Name;
use crate::records::Service;
use crate::section::Family;

/// The most networks of `resolve-net`.
pub const NETWORKS_MAX: usize = 5;

/// A network of `resolve-net`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address in it.
    pub address: IpAddr,
    /// The length of its prefix in bits; more than the address has is as many as it has.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether an address is in the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits.min(32))
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits.min(128))
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// The options of a server that decide its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// `resolve-prefer`; IPv6 by default.
    pub prefer: Family,
    /// `resolve-net`. Addresses of a family that none of the networks has are not taken: HAProxy
    /// skips them too (it also skips those of a family that is not the first network's).
    pub networks: Vec<Network>,
    /// `resolve-opts allow-dup-ip`: another server may have the same address.
    pub allow_duplicates: bool,
}

impl Default for Preference {
    fn default() -> Preference {
        Preference {
            prefer: Family::V6,
            networks: Vec::new(),
            allow_duplicates: false,
        }
    }
}

/// A chosen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The address.
    pub address: IpAddr,
    /// Where the next choice begins, so that several addresses take turns.
    pub next: usize,
}

/// Chooses an address without regard to servers (`do-resolve`). The search begins at index
/// `start`, modulo the number of addresses.
#[must_use]
pub fn choose_address(
    addresses: &[IpAddr],
    start: usize,
    preference: &Preference,
) -> Option<Choice> {
    choose(addresses, start, preference, |_| Some(0))
}

/// A server of a group, which has the addresses of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The address that it has now.
    pub address: Option<IpAddr>,
    /// The address comes from an answer for this name, not from a file or a command. Such an
    /// address is kept while answers have it, even if another one suits the preference better.
    pub is_resolved: bool,
    /// Its options.
    pub preference: &'a Preference,
}

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// It keeps its address, which now is a resolved one.
    Keep,
    /// It takes this address.
    Take(IpAddr),
    /// The answers have no address for it any longer.
    Lose,
}

/// Decides the addresses of all servers of a backend that have the same name. `addresses` is
/// sorted ([`crate::Records::addresses`]); servers choose in their order, one after the other.
#[must_use]
pub fn assign_addresses(addresses: &[IpAddr], members: &[Member<'_>]) -> Vec<AddressChange> {
    let mut users: HashMap<IpAddr, usize> = HashMap::new();
    let holds = |member: &Member<'_>| {
        let held = member.address.filter(|_| member.is_resolved);
        held.filter(|address| addresses.binary_search(address).is_ok())
    };
    for address in members.iter().filter_map(holds) {
        *users.entry(address).or_default() += 1;
    }
    let mut start = 0;
    let mut changes = Vec::with_capacity(members.len());
    for member in members {
        if holds(member).is_some() {
            changes.push(AddressChange::Keep);
            continue;
        }
        let score = |address: IpAddr| {
            let is_used = users.contains_key(&address);
            if is_used && !member.preference.allow_duplicates {
                return None;
            }
            let unused = if is_used { 0 } else { SCORE_UNUSED };
            let current = if member.address == Some(address) {
                SCORE_CURRENT
            } else {
                0
            };
            Some(unused + current)
        };
        let Some(choice) = choose(addresses, start, member.preference, score) else {
            changes.push(AddressChange::Lose);
            continue;
        };
        start = choice.next;
        *users.entry(choice.address).or_default() += 1;
        changes.push(if member.address == Some(choice.address) {
            AddressChange::Keep
        } else {
            AddressChange::Take(choice.address)
        });
    }
    changes
}

// The scores of an address: each counts more than all below it together.
const SCORE_FAMILY: u32 = 8;
const SCORE_NETWORK: u32 = 4;
const SCORE_UNUSED: u32 = 2;
const SCORE_CURRENT: u32 = 1;

/// The first address of the highest score. `score` gives the part of the score that depends on
/// servers; none: the address cannot be taken.
fn choose(
    addresses: &[IpAddr],
    start: usize,
    preference: &Preference,
    score: impl Fn(IpAddr) -> Option<u32>,
) -> Option<Choice> {
    let count = addresses.len();
    let start = start.checked_rem(count)?;
    let mut best: Option<(u32, usize)> = None;
    for index in (start..count).chain(0..start) {
        let address = addresses[index];
        let family = Family::of(address);
        let networks = &preference.networks;
        let is_comparable = |network: &Network| Family::of(network.address) == family;
        if !networks.is_empty() && !networks.iter().any(is_comparable) {
            continue;
        }
        let Some(mut total) = score(address) else {
            continue;
        };
        if family == preference.prefer {
            total += SCORE_FAMILY;
        }
        if networks.iter().any(|network| network.contains(address)) {
            total += SCORE_NETWORK;
        }
        if best.is_none_or(|(highest, _)| total > highest) {
            best = Some((total, index));
        }
    }
    let (_, index) = best?;
    Some(Choice {
        address: addresses[index],
        next: index + 1,
    })
}

/// The target and the port of a service, which a server of a template has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The host.
    pub target: Name,
    /// Its port.
    pub port: u16,
}

/// What a server of a template does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    /// It keeps its service, the one of this index; the weight and addresses may have changed.
    Keep(usize),
    /// It takes the service of this index.
    Take(usize),
    /// Its service has vanished, and there is no other: it has neither address nor port.
    Release,
    /// It has no service, as before.
    Free,
}

/// Decides which server has which service: a server keeps its service, the others take the
/// services that no server has, in order. Servers without a service come before those whose
/// service has vanished.
#[must_use]
pub fn assign_services(services: &[Service], slots: &[Option<Endpoint>]) -> Vec<SlotChange> {
    let endpoint = |service: &Service| Endpoint {
        target: service.target.clone(),
        port: service.port,
    };
    let indices = services.iter().enumerate();
    let indices: HashMap<Endpoint, usize> = indices
        .map(|(index, service)| (endpoint(service), index))
        .collect();
    let mut taken: HashSet<usize> = HashSet::new();
    let mut changes: Vec<SlotChange> = Vec::with_capacity(slots.len());
    for slot in slots {
        let found = slot.as_ref().and_then(|endpoint| indices.get(endpoint));
        changes.push(match (slot, found) {
            (None, _) => SlotChange::Free,
            (Some(_), Some(&index)) if taken.insert(index) => SlotChange::Keep(index),
            (Some(_), _) => SlotChange::Release,
        });
    }
    let mut open = (0..services.len()).filter(|index| !taken.contains(index));
    for vacant in [SlotChange::Free, SlotChange::Release] {
        for change in changes.iter_mut().filter(|change| **change == vacant) {
            match open.next() {
                Some(index) => *change = SlotChange::Take(index),
                None => return changes,
            }
        }
    }
    changes
}

/// The weight of a server from the weight of its SRV record: 0 to 65535 become 0 to 256, and only
/// 0 becomes 0. `resolve-opts ignore-weight` leaves the server's own weight.
#[must_use]
pub fn server_weight(weight: u16) -> u32 {
    u32::from(weight).div_ceil(256)
}

#[cfg(test)]
mod tests;
