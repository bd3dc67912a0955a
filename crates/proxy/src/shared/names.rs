//! The addresses of servers whose names are resolved while the process runs (manual §5.3).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config::model::{Config, Family, ServerAddress};
use net::{Addr, WorkerId};
use stats::nameserver;

use super::health::{Admin, Level, ServerEvent};
use super::{Shared, StreamRef, WorkerMessage};
use crate::ids::{ProxyId, ServerId};

/// Why a server has no address any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAddress {
    /// Its service has no record for it any longer.
    Removed,
    /// The answers for its name have no address that it may take.
    NoneFits,
    /// Its name does not exist.
    NameUnknown,
    /// No name server answered in time.
    Timeout,
    /// The name servers refused.
    Refused,
    /// Any other failure.
    Failed,
}

/// Answers questions of rules for addresses (`do-resolve`).
pub trait NameResolver: std::fmt::Debug + Send + Sync {
    /// Asks a section, by its index, for an address of a name. The answer goes to
    /// [`Shared::answer_name`] with this ticket, once, from any thread.
    fn ask(&self, section: usize, name: &str, prefer: Family, ticket: NameTicket);

    /// Takes the question with this ticket back: its stream has ended. Its answer may still come.
    fn cancel(&self, ticket: NameTicket);

    /// The counters of all name servers, by section and name server.
    fn counters(&self) -> Vec<Vec<[u64; nameserver::COUNT]>>;
}

/// The stream that waits for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameTicket(pub(crate) StreamRef);

impl NoAddress {
    /// HAProxy's text for messages.
    fn text(self) -> &'static str {
        match self {
            NoAddress::Removed => "entry removed from SRV record",
            NoAddress::NoneFits => "No IP for server ",
            NoAddress::NameUnknown => "DNS NX status",
            NoAddress::Timeout => "DNS timeout status",
            NoAddress::Refused => "DNS refused status",
            NoAddress::Failed => "unspecified DNS error",
        }
    }
}

/// What a resolution found for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// Its address.
    pub ip: IpAddr,
    /// The host and the port of its service, where its name is that of a service.
    pub service: Option<ServiceHost<'a>>,
    /// The origin of the address, as it appears in messages after `by`.
    pub by: &'a str,
}

/// The host and the port of a service (RFC 2782).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceHost<'a> {
    /// The name of the host.
    pub name: &'a str,
    /// The port.
    pub port: u16,
}

/// What is done to a server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChange {
    /// The server has this name already.
    Same,
    /// It has the new name.
    Changed,
}

impl Shared {
    /// A server has an address. If it was in maintenance for lack of one, it leaves it. The server
    /// is given by the place of its backend and its own. Returns the workers to wake.
    pub fn server_resolved(
        &self,
        backend: usize,
        server: usize,
        found: &Resolved<'_>,
    ) -> Vec<WorkerId> {
        let id = ServerId::at(ProxyId::at(backend), server);
        let mut change = self.tables.change();
        let Some(record) = change.tables().current(id) else {
            return Vec::new();
        };
        let Some(address) = with_address(&record.address, found) else {
            return Vec::new();
        };
        let name = record.name.clone();
        let was = record.address.clone();
        let host = found.service.map(|service| Arc::from(service.name));
        let is_moved = was != address;
        let has_new_host = record.service_host != host;
        if is_moved || has_new_host {
            let mut record = record.moved(address.clone());
            record.service_host = host;
            change.put(id, record);
        }
        drop(change);
        let was_unresolved = self.is_unresolved(id);
        if !is_moved && !was_unresolved {
            return Vec::new();
        }
        if is_moved {
            self.servers.has_moved(id);
            let change = describe(&was, &address);
            let title = self.title(id, &name);
            self.tell_of_name(id, format!("{title}: {change} by '{}'.", found.by));
        }
        let woken = self.change_states(|states| {
            if let Some(service) = found.service.filter(|_| has_new_host) {
                states.set_host(id, service.name);
            }
            states.clear_admin(id, Admin::UNRESOLVED);
            states.touch(id);
        });
        if was_unresolved {
            let title = self.title(id, &name);
            let text = format!("Server {title} administratively READY thanks to valid DNS answer.");
            self.tell_of_name(id, text);
        }
        self.tell_of_servers();
        woken
    }

    /// A server has no address any longer: it enters maintenance. The server is given by the place
    /// of its backend and its own. Returns the workers to wake.
    pub fn server_unresolved(
        &self,
        backend: usize,
        server: usize,
        why: NoAddress,
    ) -> Vec<WorkerId> {
        let id = ServerId::at(ProxyId::at(backend), server);
        // The states are locked before the tables, never while the tables are.
        if self.is_unresolved(id) {
            return Vec::new();
        }
        let is_there = self.tables.edit(id, |record| {
            let mut record = record.moved(without_address(&record.address));
            record.service_host = None;
            Some(record)
        });
        if !is_there {
            return Vec::new();
        }
        let woken =
            self.change_states(|states| states.set_admin(id, Admin::UNRESOLVED, why.text()));
        self.tell_of_servers();
        woken
    }

    /// Gives a server another name to resolve. The server is given by the place of its backend and
    /// its own.
    pub fn name_server(&self, backend: usize, server: usize, name: &str) -> NameChange {
        let id = ServerId::at(ProxyId::at(backend), server);
        let is_changed = self.tables.edit(id, |record| {
            let is_new = record.fqdn.as_deref() != Some(name);
            is_new.then(|| record.edited(|line| line.fqdn = Some(name.to_owned())))
        });
        if !is_changed {
            return NameChange::Same;
        }
        self.change_states(|states| states.set_host(id, name));
        self.tell_of_servers();
        NameChange::Changed
    }

    fn is_unresolved(&self, server: ServerId) -> bool {
        let states = self.health.lock();
        states.of(server).admin.has(Admin::UNRESOLVED)
    }

    /// Sets the host that a server's service had in the previous process. The server is given by the
    /// place of its backend and its own.
    pub fn host_server(&self, backend: usize, server: usize, host: &str) {
        let id = ServerId::at(ProxyId::at(backend), server);
        let is_there = self.tables.edit(id, |record| {
            let mut record = record.clone();
            record.service_host = Some(Arc::from(host));
            Some(record)
        });
        if is_there {
            self.change_states(|states| states.set_host(id, host));
        }
    }

    /// Sets the resolver of names in rules, once.
    pub fn set_name_resolver(&self, resolver: Arc<dyn NameResolver>) {
        let _ = self.name_resolver.set(resolver);
    }

    /// The counters of the name servers of a configuration; zero where no name is resolved.
    #[must_use]
    pub fn nameservers<'c>(&self, config: &'c Config) -> Vec<nameserver::Row<'c>> {
        let counters = self.name_resolver().map(|resolver| resolver.counters());
        let counters = counters.unwrap_or_default();
        let sections = config.resolvers.iter().enumerate();
        let rows = sections.flat_map(|(place, section)| {
            let counters = counters.get(place);
            let nameservers = section.nameservers.iter().enumerate();
            nameservers.map(move |(place, nameserver)| nameserver::Row {
                section: &section.name,
                name: &nameserver.name,
                values: counters
                    .and_then(|counters| counters.get(place))
                    .copied()
                    .unwrap_or_default(),
            })
        });
        rows.collect()
    }

    /// The resolver of names in rules.
    pub(crate) fn name_resolver(&self) -> Option<&Arc<dyn NameResolver>> {
        self.name_resolver.get()
    }

    /// Gives a stream the address that it waits for; none if the name has none. Returns the worker
    /// to wake.
    #[must_use]
    pub fn answer_name(&self, ticket: NameTicket, ip: Option<IpAddr>) -> WorkerId {
        let NameTicket(stream) = ticket;
        self.mail
            .post_letter(stream.worker, WorkerMessage::Name { stream, ip });
        stream.worker
    }

    /// `backend/server`
    fn title(&self, server: ServerId, name: &str) -> String {
        let states = self.health.lock();
        format!("{}/{name}", states.backend(server.backend).name)
    }

    fn tell_of_name(&self, server: ServerId, text: String) {
        if let Some(event_sink) = self.health.event_sink() {
            event_sink.tell(&ServerEvent {
                backend: server.backend.place(),
                server: Some(server.place()),
                level: Level::Notice,
                text,
                shown: None,
            });
        }
    }
}

/// The address of a server after a resolution; none for a UNIX socket, which has no name.
fn with_address(address: &ServerAddress, found: &Resolved<'_>) -> Option<ServerAddress> {
    let same_port = address.with_ip(found.ip)?;
    Some(found.service.map_or(same_port, |service| {
        ServerAddress::Fixed(Addr::Inet(SocketAddr::new(found.ip, service.port)))
    }))
}

/// The same port without an address.
fn without_address(address: &ServerAddress) -> ServerAddress {
    let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    address.with_ip(none).unwrap_or_else(|| address.clone())
}

/// What changes, in HAProxy's words.
fn describe(before: &ServerAddress, after: &ServerAddress) -> String {
    let (ip_before, port_before) = parts(before);
    let (ip_after, port_after) = parts(after);
    let mut changes = Vec::new();
    if ip_before != ip_after {
        changes.push(format!("IP changed from '{ip_before}' to '{ip_after}'"));
    }
    if port_before != port_after {
        changes.push(format!(
            "port changed from '{port_before}' to '{port_after}'"
        ));
    }
    changes.join(", ")
}

/// Address and port as they appear in messages.
fn parts(address: &ServerAddress) -> (String, String) {
    let shown = |ip: IpAddr| {
        if ip.is_unspecified() {
            "(none)".to_owned()
        } else {
            ip.to_string()
        }
    };
    match address {
        ServerAddress::Fixed(Addr::Inet(addr)) => (shown(addr.ip()), addr.port().to_string()),
        ServerAddress::PortOffset { ip, offset } => (shown(*ip), format!("+{offset}")),
        ServerAddress::Fixed(Addr::Unix(_)) => (String::new(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> ServerAddress {
        ServerAddress::Fixed(Addr::Inet(text.parse().expect("an address")))
    }

    #[test]
    fn changes_in_haproxys_words() {
        let mapped = |ip: &str, offset| ServerAddress::PortOffset {
            ip: ip.parse().expect("an address"),
            offset,
        };
        let cases = [
            (
                fixed("0.0.0.0:80"),
                fixed("10.0.0.1:80"),
                "IP changed from '(none)' to '10.0.0.1'",
            ),
            (
                fixed("10.0.0.1:80"),
                fixed("10.0.0.1:81"),
                "port changed from '80' to '81'",
            ),
            (
                mapped("0.0.0.0", 0),
                fixed("[::1]:8080"),
                "IP changed from '(none)' to '::1', port changed from '+0' to '8080'",
            ),
        ];
        for (before, after, expected) in cases {
            assert_eq!(describe(&before, &after), expected);
        }
    }

    #[test]
    fn a_service_sets_the_port_and_a_host_keeps_it() {
        let ip = "10.0.0.9".parse().expect("an address");
        let host = Resolved {
            ip,
            service: None,
            by: "r/a",
        };
        let service = Resolved {
            service: Some(ServiceHost {
                name: "h",
                port: 99,
            }),
            ..host.clone()
        };
        let mapped = ServerAddress::PortOffset { ip, offset: 7 };
        assert_eq!(
            with_address(&fixed("1.1.1.1:80"), &host),
            Some(fixed("10.0.0.9:80"))
        );
        assert_eq!(
            with_address(&fixed("1.1.1.1:80"), &service),
            Some(fixed("10.0.0.9:99"))
        );
        assert_eq!(with_address(&mapped, &host), Some(mapped.clone()));
        assert_eq!(with_address(&mapped, &service), Some(fixed("10.0.0.9:99")));
        let socket = ServerAddress::Fixed(Addr::Unix(Arc::from(&b"/x"[..])));
        assert_eq!(with_address(&socket, &host), None);
    }
}
