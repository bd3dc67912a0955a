//! Which servers take which results: the servers of a backend with the same name are one group, and
//! share its addresses or its services.

mod services;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use proxy::{NoAddress, Resolved, ServerRecord, ServerTables, ServiceHost};
use resolvers::assign::{AddressChange, Endpoint, Member, Network, Preference, assign_addresses};
use resolvers::run::{Handle, SubscriptionEvent, SubscriptionId};
use resolvers::{Family, Name, Outcome, Question, Records, Status};

use super::Parts;

/// The origin of an address that came with a service, in messages.
const BY_ADDITIONAL_RECORD: &str = "DNS additional record";
/// The origin of an address that was known when a server asked for it.
const BY_CACHE: &str = "DNS cache";
/// How often groups are formed for one event: services that name hosts need two rounds.
const ROUNDS_MAX: usize = 3;

/// Where an answer comes from.
#[derive(Clone, Copy, Debug)]
struct Origin<'a> {
    /// The text in messages after `by`.
    by: &'a str,
    /// The name server, where it answered just now.
    nameserver: Option<usize>,
}

impl Origin<'_> {
    /// An earlier answer.
    const CACHE: Origin<'static> = Origin {
        by: BY_CACHE,
        nameserver: None,
    };
}

/// A server, by the place of its backend and its own.
type Place = (usize, usize);

/// The servers of a backend that have a name in common, and want the same of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    section: usize,
    backend: usize,
    name: Name,
    kind: Kind,
}

/// What is asked for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Service,
    /// Addresses, those of IPv4 or of IPv6 first.
    HostV4,
    HostV6,
}

impl Kind {
    fn host(prefer: Family) -> Kind {
        match prefer {
            Family::V4 => Kind::HostV4,
            Family::V6 => Kind::HostV6,
        }
    }

    fn question(self) -> Question {
        match self {
            Kind::Service => Question::Service,
            Kind::HostV4 => Question::Address { prefer: Family::V4 },
            Kind::HostV6 => Question::Address { prefer: Family::V6 },
        }
    }
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
#[derive(Debug, PartialEq, Eq)]
struct Slot {
    endpoint: Endpoint,
    /// The answer had the address of its host. Otherwise the name of the host is resolved.
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
    /// The services have changed since the groups were formed.
    services_changed: bool,
    /// The services of the previous process were taken over.
    is_restored: bool,
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
            services_changed: false,
            is_restored: false,
        }
    }

    /// Follows changes of servers: subscribes to new names, and ends the subscriptions of names that
    /// no server has.
    pub fn update(&mut self) {
        // Services are assigned before the hosts that they name: one more round finds those.
        for _ in 0..ROUNDS_MAX {
            self.services_changed = false;
            for key in self.form() {
                self.assign(&key, Origin::CACHE);
            }
            if !self.services_changed {
                return;
            }
        }
    }

    /// Forms the groups from the current servers. Returns those that have answers for servers that
    /// are new in them.
    fn form(&mut self) -> Vec<Key> {
        let tables = self.parts.shared.server_tables();
        self.restore_services(&tables);
        let wanted = self.wanted(&tables);
        let is_gone = |key: &&Key| !wanted.contains_key(*key);
        let gone: Vec<Key> = self.groups.keys().filter(is_gone).cloned().collect();
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
                None => self.join(key, servers),
            }
        }
        stale
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
                changed,
            } => {
                let Some(group) = self.groups.get_mut(&key) else {
                    return;
                };
                let had_records = group.records.replace(records).is_some();
                if had_records && !changed {
                    return;
                }
                let title = nameserver.and_then(|place| self.title(key.section, place));
                let origin = Origin {
                    by: title.as_deref().unwrap_or(BY_CACHE),
                    nameserver,
                };
                self.assign(&key, origin);
                self.follow_services();
            }
            Outcome::Held(_) | Outcome::Rejected => {}
            Outcome::Lost(status) => {
                self.lose(&key, status);
                self.follow_services();
            }
            // Subscriptions have no such outcome.
            Outcome::Address(_) | Outcome::NoAddress | Outcome::LookedUp(_) => {}
        }
    }

    fn follow_services(&mut self) {
        if self.services_changed {
            self.update();
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
                let mut add = |name: Name, kind: Kind| {
                    let key = Key {
                        section,
                        backend,
                        name,
                        kind,
                    };
                    wanted.entry(key).or_default().push(place);
                };
                let prefer = record.resolve.prefer.map_or(Family::V6, super::family);
                // A name that cannot be one has no address, as at the start.
                let Ok(name) = Name::parse(fqdn) else {
                    continue;
                };
                let kind = if name.is_service() {
                    Kind::Service
                } else {
                    Kind::host(prefer)
                };
                add(name, kind);
                // The target of a service is a host, whatever its name looks like.
                if let Some(slot) = self.slots.get(&(backend, place))
                    && !slot.has_address
                {
                    add(slot.endpoint.target.clone(), Kind::host(prefer));
                }
            }
        }
        wanted
    }

    fn join(&mut self, key: Key, servers: Vec<usize>) {
        let question = key.kind.question();
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
                if key.kind == Kind::Service {
                    self.slots.remove(&(key.backend, server));
                }
            }
        }
    }

    /// Gives the records of a group to its servers.
    fn assign(&mut self, key: &Key, origin: Origin<'_>) {
        let Some(group) = self.groups.get(key) else {
            return;
        };
        let Some(records) = group.records.clone() else {
            return;
        };
        let servers = group.servers.clone();
        if key.kind == Kind::Service {
            self.assign_services(key, &servers, &records.services, origin.nameserver);
        } else {
            self.assign_addresses(key, &servers, &records.addresses, origin);
        }
    }

    fn assign_addresses(
        &mut self,
        key: &Key,
        servers: &[usize],
        addresses: &[IpAddr],
        origin: Origin<'_>,
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
        let mut addresses = addresses.to_vec();
        // Nobody serves there: a server would connect to this machine.
        addresses.retain(|ip| !ip.is_unspecified());
        let allows_duplicates =
            |(_, _, preference): &(usize, &ServerRecord, Preference)| preference.allow_duplicates;
        if !found.iter().any(allows_duplicates) {
            let taken = self.taken_by_sister(key, &tables);
            addresses.retain(|ip| !taken.contains(ip));
        }
        let changes = assign_addresses(&addresses, &members);
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
                    if let Some(nameserver) = origin.nameserver {
                        self.handle.count_update(key.section, nameserver);
                    }
                    ip
                }
            };
            self.resolved.insert(server);
            self.found(server, ip, origin.by);
        }
    }

    /// The addresses of the servers with the same name that prefer the other address family.
    fn taken_by_sister(&self, key: &Key, tables: &ServerTables) -> Vec<IpAddr> {
        let kind = match key.kind {
            Kind::Service => return Vec::new(),
            Kind::HostV4 => Kind::HostV6,
            Kind::HostV6 => Kind::HostV4,
        };
        let sister = Key {
            kind,
            ..key.clone()
        };
        let servers = self.groups.get(&sister).map(|group| &*group.servers);
        let servers = servers.unwrap_or_default().iter();
        let resolved = servers.filter(|place| self.resolved.contains(&(key.backend, **place)));
        resolved
            .filter_map(|place| address_of(tables.server(key.backend, *place)?))
            .collect()
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
        for place in servers {
            let server = (key.backend, place);
            match key.kind {
                Kind::Service if self.slots.contains_key(&server) => self.release(server),
                Kind::Service => {}
                Kind::HostV4 | Kind::HostV6 => {
                    self.resolved.remove(&server);
                    self.unresolved(server, why);
                }
            }
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
    let ip = record.address.ip();
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
