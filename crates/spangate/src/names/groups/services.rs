//! Servers whose name is that of a service: SRV records give them a host, a port and a weight.

use config::model::ServerAddress;
use net::Addr;
use proxy::{NoAddress, ServerChange, ServerRecord, ServerTables};
use resolvers::assign::{Endpoint, SlotChange, assign_services, choose_address, server_weight};
use resolvers::{Name, Service};

use super::{BY_ADDITIONAL_RECORD, Groups, Key, Place, Slot, address_of, preference};

impl Groups {
    /// Takes over the services that servers had in the previous process (`server-state-file`).
    pub(super) fn restore_services(&mut self, tables: &ServerTables) {
        if std::mem::replace(&mut self.is_restored, true) {
            return;
        }
        for backend in 0..self.parts.runtime_config.config.proxies.len() {
            for (place, record) in tables.servers(backend) {
                let host = record.service_host.as_deref().map(Name::parse);
                if let (Some(Ok(target)), Some(port)) = (host, port_of(record)) {
                    let slot = Slot {
                        endpoint: Endpoint { target, port },
                        has_address: false,
                    };
                    self.slots.insert((backend, place), slot);
                }
            }
        }
    }

    pub(super) fn assign_services(
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
        if self.slots.get(&server) != Some(&slot) {
            self.slots.insert(server, slot);
            self.services_changed = true;
        }
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
    pub(super) fn release(&mut self, server: Place) {
        self.services_changed |= self.slots.remove(&server).is_some();
        self.resolved.remove(&server);
        self.unresolved(server, NoAddress::Removed);
    }
}

/// The port that a server has now.
fn port_of(record: &ServerRecord) -> Option<u16> {
    match &record.address {
        ServerAddress::Fixed(Addr::Inet(addr)) => Some(addr.port()),
        ServerAddress::PortOffset { .. } | ServerAddress::Fixed(Addr::Unix(_)) => None,
    }
}
