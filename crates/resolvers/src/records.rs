//! The records of a name, with those that answers no longer have (`hold obsolete`).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::KEPT_RECORDS_MAX;
use crate::message::{Answer, ServiceRecord};
use crate::name::Name;
use crate::section::{Families, Family};

/// The current records of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The addresses of a host, in ascending order.
    pub addresses: Vec<IpAddr>,
    /// The services of a service name, by priority, target and port.
    pub services: Vec<Service>,
}

/// A service (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The host.
    pub target: Name,
    /// Its port.
    pub port: u16,
    /// Its priority. It decides the order here and nothing else; HAProxy ignores it.
    pub priority: u16,
    /// Its weight as in the record; see [`crate::assign::server_weight`].
    pub weight: u16,
    /// The addresses of the host that came with the service, in ascending order. Without any, the
    /// host is a name to resolve.
    pub addresses: Vec<IpAddr>,
}

/// Records with the time when they were last seen, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    addresses: BTreeMap<IpAddr, u64>,
    services: BTreeMap<ServiceKey, KeptService>,
    targets: BTreeMap<TargetKey, u64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServiceKey {
    target: Name,
    port: u16,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TargetKey {
    target: Name,
    address: IpAddr,
}

#[derive(Debug)]
struct KeptService {
    priority: u16,
    weight: u16,
    seen_ms: u64,
}

impl Kept {
    /// Adds the records of a valid answer and removes those last seen more than `obsolete_ms` ago.
    /// Beyond [`KEPT_RECORDS_MAX`] only those of this answer stay.
    pub fn merge(&mut self, answer: Answer, obsolete_ms: u64, families: Families, now_ms: u64) {
        for address in answer.addresses {
            self.addresses.insert(address, now_ms);
        }
        for service in answer.services {
            let ServiceRecord {
                target,
                port,
                priority,
                weight,
            } = service;
            let kept = KeptService {
                priority,
                weight,
                seen_ms: now_ms,
            };
            self.services.insert(ServiceKey { target, port }, kept);
        }
        let accepted = |address| families.accept(Family::of(address));
        for found in answer.targets {
            if accepted(found.address) {
                let target = found.target;
                let address = found.address;
                self.targets.insert(TargetKey { target, address }, now_ms);
            }
        }
        self.retain_since(now_ms.saturating_sub(obsolete_ms));
        if self.len() > KEPT_RECORDS_MAX {
            self.retain_since(now_ms);
        }
    }

    fn retain_since(&mut self, oldest_ms: u64) {
        self.addresses.retain(|_, seen_ms| *seen_ms >= oldest_ms);
        self.services.retain(|_, kept| kept.seen_ms >= oldest_ms);
        self.targets.retain(|_, seen_ms| *seen_ms >= oldest_ms);
    }

    fn len(&self) -> usize {
        self.addresses.len() + self.services.len() + self.targets.len()
    }

    /// The records now.
    pub fn records(&self) -> Records {
        let service = |(key, kept): (&ServiceKey, &KeptService)| Service {
            target: key.target.clone(),
            port: key.port,
            priority: kept.priority,
            weight: kept.weight,
            addresses: self.addresses_of(&key.target),
        };
        let mut services: Vec<Service> = self.services.iter().map(service).collect();
        services.sort_by_key(|service| service.priority);
        Records {
            addresses: self.addresses.keys().copied().collect(),
            services,
        }
    }

    fn addresses_of(&self, target: &Name) -> Vec<IpAddr> {
        let key = |address| TargetKey {
            target: target.clone(),
            address,
        };
        let first = key(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let last = key(IpAddr::V6(Ipv6Addr::from(u128::MAX)));
        let range = self.targets.range(first..=last);
        range.map(|(key, _)| key.address).collect()
    }
}
