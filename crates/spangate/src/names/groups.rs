//! Which servers take which results: the servers of a backend with the same name are one group, and
//! share its addresses or its services.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use config::model::ServerAddress;
use net::Addr;
use proxy::{NoAddress, Resolved, ServerChange, ServerRecord, ServerTables, ServiceHost};
use resolvers::assign::{
    AddressChange, Endpoint, Member, Network, Preference, SlotChange, assign_addresses,
    assign_services, choose_address, server_weight,
};
use resolvers::run::{Handle, SubscriptionEvent, SubscriptionId};
use resolvers::{Family, Name, Outcome, Question, Records, Service, Status};

use super::Parts;

/// The origin of an address that came with a service, in messages.
const BY_ADDITIONAL_RECORD: &str = "DNS additional record";
/// The origin of an address that was known when a server asked for it.
const BY_CACHE: &str = "DNS cache";

/// A server, by the place of its backend and its own.
type Place = (usize, usize);

/// The servers of a backend that have a name in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    section: usize,
    backend: usize,
    name: Name,
}

#[derive(Debug)]
struct Group {
    subscription: SubscriptionId,
    /// The places of its servers.
    servers: Vec<usize>,
    /// The last valid answer, until it is lost.
    records: Option<Arc<Records>>,
}

/// The service that a server has.
#[derive(Debug)]
struct Slot {
    endpoint: Endpoint,
    /// Its host's address came with it; otherwise the host is a name to resolve.
    has_address: bool,
}

/// All groups of a process.
pub(super) struct Groups {
    parts: Parts,
    handle: Handle,
    groups: BTreeMap<Key, Group>,
    by_subscription: HashMap<SubscriptionId, Key>,
    /// Servers whose address comes from an answer for their name.
    resolved: BTreeSet<Place>,
    /// Servers that have a service.
    slots: HashMap<Place, Slot>,
}

impl Groups {
    pub fn new(parts: Parts, handle: Handle) -> Groups {
        Groups {
            parts,
            handle,
            groups: BTreeMap::new(),
            by_subscription: HashMap::new(),
            resolved: BTreeSet::new(),
            slots: HashMap::new(),
        }
    }

    /// Forms the groups anew from the current servers: subscribes to new names, and ends the
    /// subscriptions of names that no server has.
    pub fn update(&mut self) {
        let tables = self.parts.shared.server_tables();
        let wanted = self.wanted(&tables);
        let gone: Vec<Key> = self
            .groups
            .keys()
            .filter(|key| !wanted.contains_key(*key))
            .cloned()
            .collect();
        for key in gone {
            self.leave(&key);
        }
        let mut stale = Vec::new();
        for (key, servers) in wanted {
            match self.groups.get_mut(&key) {
                Some(group) if group.servers == servers => {}
                Some(group) => {
                    let before = std::mem::replace(&mut group.servers, servers);
                    let after = &group.servers;
                    let is_gone = |server: &&usize| after.binary_search(server).is_err();
                    for server in before.iter().filter(is_gone) {
                        self.resolved.remove(&(key.backend, *server));
                    }
                    stale.push(key);
                }
                None => self.join(key, servers, &tables),
            }
        }
        for key in stale {
            self.assign(&key, BY_CACHE, None);
        }
    }

    /// Applies the end of a resolution.
    pub fn apply(&mut self, event: SubscriptionEvent) {
        let Some(key) = self.by_subscription.get(&event.subscription).cloned() else {
            return;
        };
        match event.outcome {
            Outcome::Found {
                records,
                nameserver,
                changed: _,
            } => {
                if let Some(group) = self.groups.get_mut(&key) {
                    group.records = Some(records);
                }
                let by = nameserver.and_then(|place| self.title(key.section, place));
                self.assign(&key, by.as_deref().unwrap_or(BY_CACHE), nameserver);
            }
            Outcome::Held(_) | Outcome::Rejected => {}
            Outcome::Lost(status) => self.lose(&key, status),
            // Subscriptions have no such outcome.
            Outcome::Address(_) | Outcome::NoAddress | Outcome::LookedUp(_) => {}
        }
    }

    /// Resolves the names of a server now.
    pub fn recheck(&self, backend: usize, server: usize) {
        for (key, group) in &self.groups {
            if key.backend == backend && group.servers.contains(&server) {
                self.handle.kick(group.subscription);
            }
        }
    }

    /// The groups that the servers form, with the places of their servers.
    fn wanted(&self, tables: &ServerTables) -> BTreeMap<Key, Vec<usize>> {
        let mut wanted: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for backend in 0..self.parts.runtime_config.config.proxies.len() {
            for (place, record) in tables.servers(backend) {
                let (Some(section), Some(fqdn)) = (record.resolvers, &record.fqdn) else {
                    continue;
                };
                let mut add = |name: Name| {
                    let key = Key {
                        section,
                        backend,
                        name,
                    };
                    wanted.entry(key).or_default().push(place);
                };
                // A name that cannot be one has no address, as at the start.
                if let Ok(name) = Name::parse(fqdn) {
                    add(name);
                }
                if let Some(slot) = self.slots.get(&(backend, place))
                    && !slot.has_address
                {
                    add(slot.endpoint.target.clone());
                }
            }
        }
        wanted
    }

    fn join(&mut self, key: Key, servers: Vec<usize>, tables: &ServerTables) {
        let first = servers
            .first()
            .and_then(|place| tables.server(key.backend, *place));
        let question = if key.name.is_service() {
            Question::Service
        } else {
            Question::Address {
                prefer: first.map_or(Family::V6, |record| preference(record).prefer),
            }
        };
        let subscription = self
            .handle
            .subscribe(key.section, key.name.clone(), question);
        self.by_subscription.insert(subscription, key.clone());
        let group = Group {
            subscription,
            servers,
            records: None,
        };
        self.groups.insert(key, group);
    }

    fn leave(&mut self, key: &Key) {
        if let Some(group) = self.groups.remove(key) {
            self.handle.unsubscribe(group.subscription);
            self.by_subscription.remove(&group.subscription);
            for server in group.servers {
                self.resolved.remove(&(key.backend, server));
                if key.name.is_service() {
                    self.slots.remove(&(key.backend, server));
                }
            }
        }
    }

    /// Gives the records of a group to its servers.
    fn assign(&mut self, key: &Key, by: &str, nameserver: Option<usize>) {
        let Some(group) = self.groups.get(key) else {
            return;
        };
        let Some(records) = group.records.clone() else {
            return;
        };
        let servers = group.servers.clone();
        if key.name.is_service() {
            self.assign_services(key, &servers, &records.services, nameserver);
            self.update();
        } else {
            self.assign_addresses(key, &servers, &records.addresses, (by, nameserver));
        }
    }

    fn assign_addresses(
        &mut self,
        key: &Key,
        servers: &[usize],
        addresses: &[IpAddr],
        (by, nameserver): (&str, Option<usize>),
    ) {
        let tables = self.parts.shared.server_tables();
        let found = servers.iter().filter_map(|place| {
            let record = tables.server(key.backend, *place)?;
            Some((*place, record, preference(record)))
        });
        let found: Vec<_> = found.collect();
        let members: Vec<Member<'_>> = found
            .iter()
            .map(|(place, record, preference)| Member {
                address: address_of(record),
                is_resolved: self.resolved.contains(&(key.backend, *place)),
                preference,
            })
            .collect();
        let changes = assign_addresses(addresses, &members);
        for ((place, record, _), change) in found.iter().zip(changes) {
            let server = (key.backend, *place);
            let ip = match change {
                AddressChange::Lose => {
                    self.resolved.remove(&server);
                    self.unresolved(server, NoAddress::NoneFits);
                    continue;
                }
                AddressChange::Keep => match address_of(record) {
                    Some(ip) => ip,
                    None => continue,
                },
                AddressChange::Take(ip) => {
                    if let Some(nameserver) = nameserver {
                        self.handle.count_update(key.section, nameserver);
                    }
                    ip
                }
            };
            self.resolved.insert(server);
            self.found(server, ip, by);
        }
    }

    fn assign_services(
        &mut self,
        key: &Key,
        servers: &[usize],
        services: &[Service],
        nameserver: Option<usize>,
    ) {
        let slots: Vec<Option<Endpoint>> = servers
            .iter()
            .map(|place| {
                let slot = self.slots.get(&(key.backend, *place));
                slot.map(|slot| slot.endpoint.clone())
            })
            .collect();
        let changes = assign_services(services, &slots);
        for (place, change) in servers.iter().zip(changes) {
            let server = (key.backend, *place);
            match change {
                SlotChange::Free => {}
                SlotChange::Release => self.release(server),
                SlotChange::Keep(index) => self.serve(server, &services[index]),
                SlotChange::Take(index) => {
                    if let Some(nameserver) = nameserver {
                        self.handle.count_update(key.section, nameserver);
                    }
                    self.resolved.remove(&server);
                    self.serve(server, &services[index]);
                }
            }
        }
    }

    /// A server has a service.
    fn serve(&mut self, server: Place, service: &Service) {
        let tables = self.parts.shared.server_tables();
        let Some(record) = tables.server(server.0, server.1) else {
            return;
        };
        let slot = Slot {
            endpoint: Endpoint {
                target: service.target.clone(),
                port: service.port,
            },
            has_address: !service.addresses.is_empty(),
        };
        self.slots.insert(server, slot);
        self.weigh(server, record, service.weight);
        let current = address_of(record).filter(|ip| service.addresses.contains(ip));
        let preference = preference(record);
        let chosen = || choose_address(&service.addresses, 0, &preference);
        match current.or_else(|| chosen().map(|choice| choice.address)) {
            Some(ip) => self.found(server, ip, BY_ADDITIONAL_RECORD),
            None if service.addresses.is_empty() => {}
            None => self.unresolved(server, NoAddress::NoneFits),
        }
    }

    /// Sets the weight of a server from that of its service, where weights can change.
    fn weigh(&self, (backend, server): Place, record: &ServerRecord, weight: u16) {
        let proxy = &self.parts.runtime_config.config.proxies[backend];
        if record.resolve.ignores_weight || !proxy.has_dynamic_weights() {
            return;
        }
        let shared = &self.parts.shared;
        let weight = server_weight(weight);
        if shared.server_load(backend, server).weight != weight {
            let change = ServerChange::Weight(weight);
            let woken = shared.change_server(backend, server, change);
            self.parts.workers.wake(&woken);
        }
    }

    /// A server's service has vanished.
    fn release(&mut self, server: Place) {
        self.slots.remove(&server);
        self.resolved.remove(&server);
        self.unresolved(server, NoAddress::Removed);
    }

    /// The last answer for a group no longer counts.
    fn lose(&mut self, key: &Key, status: Status) {
        let Some(group) = self.groups.get_mut(key) else {
            return;
        };
        group.records = None;
        let servers = group.servers.clone();
        let why = match status {
            Status::Nx => NoAddress::NameUnknown,
            Status::Refused => NoAddress::Refused,
            Status::Timeout => NoAddress::Timeout,
            Status::NoData | Status::Invalid | Status::Other => NoAddress::Failed,
        };
        let is_service = key.name.is_service();
        for place in servers {
            let server = (key.backend, place);
            if !is_service {
                self.resolved.remove(&server);
                self.unresolved(server, why);
            } else if self.slots.contains_key(&server) {
                self.release(server);
            }
        }
        if is_service {
            self.update();
        }
    }

    fn found(&self, (backend, server): Place, ip: IpAddr, by: &str) {
        let slot = self.slots.get(&(backend, server));
        let service = slot.map(|slot| ServiceHost {
            name: slot.endpoint.target.as_str(),
            port: slot.endpoint.port,
        });
        let found = Resolved { ip, service, by };
        let woken = self.parts.shared.server_resolved(backend, server, &found);
        self.parts.workers.wake(&woken);
    }

    fn unresolved(&self, (backend, server): Place, why: NoAddress) {
        let woken = self.parts.shared.server_unresolved(backend, server, why);
        self.parts.workers.wake(&woken);
    }

    /// A name server's title in messages: `section/name`.
    fn title(&self, section: usize, nameserver: usize) -> Option<String> {
        let section = self.parts.runtime_config.config.resolvers.get(section)?;
        let nameserver = section.nameservers.get(nameserver)?;
        Some(format!("{}/{}", section.name, nameserver.name))
    }
}

/// The address that a server has now.
fn address_of(record: &ServerRecord) -> Option<IpAddr> {
    let ip = match &record.address {
        ServerAddress::Fixed(Addr::Inet(addr)) => Some(addr.ip()),
        ServerAddress::PortOffset { ip, .. } => Some(*ip),
        ServerAddress::Fixed(Addr::Unix(_)) => None,
    };
    ip.filter(|_| !record.lacks_address())
}

/// The options of a server that decide which address it takes.
fn preference(record: &ServerRecord) -> Preference {
    let options = &record.resolve;
    let networks = options.networks.iter();
    Preference {
        prefer: options.prefer.map_or(Family::V6, super::family),
        networks: networks
            .map(|(address, prefix_bits)| Network {
                address: *address,
                prefix_bits: *prefix_bits,
            })
            .collect(),
        allow_duplicates: options.allows_duplicates,
    }
}
