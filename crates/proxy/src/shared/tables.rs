//! The servers of all backends: one table for each backend, which changes at run time.
//!
//! [`ServerTables`] is immutable. A change creates new tables, which share the unchanged parts, and
//! every worker takes them over between two entries. So a reference to a server is valid while a
//! worker handles one event, and reading needs no lock.
//!
//! A server keeps its place. The place of a deleted server is reused only when every worker has
//! reported that it no longer refers to the place ([`Tables::release`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::model::{Config, Server, ServerAddress};
use net::WorkerId;

use super::succession::Succession;
use crate::ids::{ProxyId, ServerId};

/// A server with its current address.
#[derive(Clone, Debug)]
pub struct ServerRecord {
    line: Arc<Server>,
    /// Its current address. Its line has the initial one.
    pub address: ServerAddress,
    /// The host of its service; none if its name is not that of a service, or the service has no
    /// host for it.
    pub service_host: Option<Arc<str>>,
    /// It was added at run time.
    is_added: bool,
    /// It is deleted; its place may still be referred to.
    pub is_deleted: bool,
}

impl std::ops::Deref for ServerRecord {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.line
    }
}

/// The tables of the servers of all backends.
#[derive(Debug, Default)]
pub struct ServerTables {
    version: u64,
    backends: Vec<Arc<[Arc<ServerRecord>]>>,
}

impl ServerTables {
    fn new(config: &Config) -> ServerTables {
        let record = |line: &Arc<Server>| {
            Arc::new(ServerRecord {
                line: Arc::clone(line),
                address: line.address.clone(),
                service_host: None,
                is_added: false,
                is_deleted: false,
            })
        };
        let proxies = config.proxies.iter();
        ServerTables {
            version: 0,
            backends: proxies
                .map(|proxy| proxy.servers.iter().map(record).collect())
                .collect(),
        }
    }

    /// The version, which grows with each change.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// A server.
    #[inline(always)]
    pub(crate) fn at(&self, server: ServerId) -> &ServerRecord {
        &self.backends[server.backend.place()][server.place()]
    }

    /// The record of a server, which distinguishes it from earlier and later servers at its place.
    pub(crate) fn record(&self, server: ServerId) -> &Arc<ServerRecord> {
        &self.backends[server.backend.place()][server.place()]
    }

    /// A server, if there is one at its place. It may be deleted.
    pub(crate) fn find(&self, server: ServerId) -> Option<&ServerRecord> {
        let record = self.backends.get(server.backend.place())?;
        record.get(server.place()).map(|record| &**record)
    }

    /// A server that is not deleted.
    pub(super) fn current(&self, server: ServerId) -> Option<&ServerRecord> {
        self.server(server.backend.place(), server.place())
    }

    /// The number of places of a backend, including those of deleted servers.
    #[inline]
    pub(crate) fn places(&self, backend: ProxyId) -> usize {
        self.backends[backend.place()].len()
    }

    /// The servers of a backend.
    pub(crate) fn of(&self, backend: ProxyId) -> impl Iterator<Item = (ServerId, &ServerRecord)> {
        let servers = self.servers(backend.place());
        servers.map(move |(place, record)| (ServerId::at(backend, place), record))
    }

    /// The servers of the backend at a place of the configuration, each with its own place.
    pub fn servers(&self, backend: usize) -> impl Iterator<Item = (usize, &ServerRecord)> {
        let records = self.backends.get(backend);
        let records = records.map_or(&[][..], |records| &**records);
        let records = records.iter().enumerate();
        records
            .filter(|(_, record)| !record.is_deleted)
            .map(|(place, record)| (place, &**record))
    }

    /// The server at a place of the backend at a place of the configuration.
    #[must_use]
    pub fn server(&self, backend: usize, server: usize) -> Option<&ServerRecord> {
        let record = self.backends.get(backend)?.get(server)?;
        (!record.is_deleted).then_some(&**record)
    }

    /// The places whose servers differ from those of earlier tables, or are reached in another way.
    pub(crate) fn changed_since(&self, before: &ServerTables) -> Vec<ServerId> {
        let mut changed = Vec::new();
        for (place, (now, then)) in self.backends.iter().zip(&before.backends).enumerate() {
            if Arc::ptr_eq(now, then) {
                continue;
            }
            let backend = ProxyId::at(place);
            let pairs = now.iter().zip(&**then).enumerate();
            let changes = pairs.filter(|(_, (now, then))| !now.is_reached_as(then));
            changed.extend(changes.map(|(place, _)| ServerId::at(backend, place)));
            changed.extend((then.len()..now.len()).map(|place| ServerId::at(backend, place)));
        }
        changed
    }
}

/// The place of a deleted server that may still be referred to.
#[derive(Debug)]
struct Retired {
    server: ServerId,
    /// By worker: it no longer refers to the place.
    released: Vec<bool>,
}

#[derive(Debug)]
struct Current {
    tables: Arc<ServerTables>,
    retired: Vec<Retired>,
}

/// The current tables, for all threads.
#[derive(Debug)]
pub(super) struct Tables {
    /// The version of the current tables, readable without the lock.
    version: AtomicU64,
    current: Mutex<Current>,
    workers: usize,
}

/// The tables while one thread changes them.
pub(super) struct Change<'a> {
    tables: &'a Tables,
    current: MutexGuard<'a, Current>,
}

impl Tables {
    pub fn new(config: &Config, workers: usize) -> Tables {
        Tables {
            version: AtomicU64::new(0),
            current: Mutex::new(Current {
                tables: Arc::new(ServerTables::new(config)),
                retired: Vec::new(),
            }),
            workers,
        }
    }

    /// Takes the addresses of the servers of both configurations over, and the places of deleted
    /// servers. A server that the new configuration lacks is deleted, except in a backend that it
    /// lacks as a whole: earlier streams may still choose one there.
    pub fn succeed(&mut self, before: &Tables, both: &Succession<'_>) {
        let then = before.lock();
        let mut retired = Vec::new();
        let mut records: Vec<Vec<Arc<ServerRecord>>> = Vec::new();
        let now = self.now();
        for of in &now.backends {
            records.push(of.to_vec());
        }
        for server in &both.servers {
            let [line, _] = both.lines(*server);
            let old = then.tables.record(*server);
            let record = &mut records[server.backend.place()][server.place()];
            let is_of_removed = both.config.proxies[server.backend.place()].is_removed;
            if is_of_removed {
                *record = Arc::clone(old);
            } else if line.is_removed {
                *record = Arc::new(ServerRecord {
                    is_deleted: true,
                    ..ServerRecord::clone(old)
                });
            }
            if record.is_deleted {
                let mut known = then.retired.iter();
                let known = known.find(|retired| retired.server == *server);
                let released = match known {
                    Some(known) => known.released.clone(),
                    // All workers have released it before.
                    None if old.is_deleted => vec![true; self.workers],
                    None => vec![false; self.workers],
                };
                retired.push(Retired {
                    server: *server,
                    released,
                });
            } else if is_of_removed {
                continue;
            } else if both.is_reached_alike(*server) && both.is_server_kept(*server) {
                *record = Arc::new(ServerRecord {
                    address: old.address.clone(),
                    service_host: old.service_host.clone(),
                    ..ServerRecord::clone(record)
                });
            }
        }
        let version = then.tables.version + 1;
        let backends = records.into_iter().map(Arc::from).collect();
        self.version = AtomicU64::new(version);
        self.current = Mutex::new(Current {
            tables: Arc::new(ServerTables { version, backends }),
            retired,
        });
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        // The data is valid after a panic, because a change is published last.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn now(&self) -> Arc<ServerTables> {
        Arc::clone(&self.lock().tables)
    }

    /// Begins a change and locks the tables until it is over.
    pub fn change(&self) -> Change<'_> {
        Change {
            tables: self,
            current: self.lock(),
        }
    }

    /// Replaces the record of a server by the result of `edit`. False if there is no such server
    /// any longer, or `edit` returns none.
    pub fn edit(
        &self,
        server: ServerId,
        edit: impl FnOnce(&ServerRecord) -> Option<ServerRecord>,
    ) -> bool {
        let mut change = self.change();
        let Some(record) = change.tables().current(server).and_then(edit) else {
            return false;
        };
        change.put(server, record);
        true
    }

    /// The places of deleted servers that are not released by all workers.
    pub fn retired(&self) -> Vec<ServerId> {
        let current = self.lock();
        current.retired.iter().map(|each| each.server).collect()
    }

    /// The places of deleted servers that a worker has not released.
    pub fn in_use(&self) -> Vec<ServerId> {
        let current = self.lock();
        let used = current.retired.iter();
        let used = used.filter(|each| !each.released.iter().all(|released| *released));
        used.map(|each| each.server).collect()
    }

    /// A worker no longer refers to the place of a deleted server.
    pub fn release(&self, worker: WorkerId, server: ServerId) {
        let mut current = self.lock();
        let mut retired = current.retired.iter_mut();
        if let Some(retired) = retired.find(|retired| retired.server == server) {
            retired.released[worker.0 as usize] = true;
        }
    }
}

impl Change<'_> {
    pub fn tables(&self) -> &ServerTables {
        &self.current.tables
    }

    /// The place for a new server of a backend: one that is no longer referred to, or a new one.
    pub fn free_place(&self, backend: ProxyId) -> ServerId {
        let is_free = |retired: &&Retired| {
            retired.server.backend == backend && retired.released.iter().all(|released| *released)
        };
        let free = self.current.retired.iter().find(is_free);
        let new = ServerId::at(backend, self.tables().places(backend));
        free.map_or(new, |retired| retired.server)
    }

    /// Puts a server at a place of its backend and publishes the change.
    pub fn put(&mut self, server: ServerId, record: ServerRecord) {
        self.current
            .retired
            .retain(|retired| retired.server != server);
        self.publish(server, record);
    }

    /// Deletes a server.
    pub fn delete(&mut self, server: ServerId) {
        let released = vec![false; self.tables.workers];
        self.current.retired.push(Retired { server, released });
        let mut record = self.tables().at(server).clone();
        record.is_deleted = true;
        self.publish(server, record);
    }

    /// Makes every worker check the servers again.
    pub fn renew(&mut self) {
        let backends = self.current.tables.backends.clone();
        self.publish_all(backends);
    }

    fn publish(&mut self, server: ServerId, record: ServerRecord) {
        let record = Arc::new(record);
        let mut backends = self.current.tables.backends.clone();
        let mut servers = backends[server.backend.place()].to_vec();
        match servers.get_mut(server.place()) {
            Some(place) => *place = record,
            None => servers.push(record),
        }
        backends[server.backend.place()] = servers.into();
        self.publish_all(backends);
    }

    fn publish_all(&mut self, backends: Vec<Arc<[Arc<ServerRecord>]>>) {
        let version = self.current.tables.version + 1;
        self.current.tables = Arc::new(ServerTables { version, backends });
        self.tables.version.store(version, Ordering::Release);
    }
}

impl ServerRecord {
    /// Whether it is the same server, at the same address, with the same kind of connections.
    fn is_reached_as(&self, then: &ServerRecord) -> bool {
        self.is_deleted == then.is_deleted
            && self.address == then.address
            && self.line.words_hash == then.line.words_hash
            && self.tls().is_some() == then.tls().is_some()
            // The files of its TLS may have changed.
            && (self.tls().is_none() || Arc::ptr_eq(&self.line, &then.line))
    }

    /// Its line in the configuration, or the line by which it was added.
    #[must_use]
    pub fn line(&self) -> &Arc<Server> {
        &self.line
    }

    /// Whether it was added at run time.
    #[must_use]
    pub fn is_added(&self) -> bool {
        self.is_added
    }

    /// Whether every plain HTTP request may use any connection to it, as far as its line and its
    /// address decide: no name, address or header of a connection depends on the request.
    #[inline]
    pub(crate) fn has_equal_conns(&self) -> bool {
        let options = &self.options;
        options.tls().is_none()
            && options.pool_conn_name.is_none()
            && !self.send_proxy.is_on()
            && self.source.is_none()
            && matches!(&self.address, ServerAddress::Fixed(addr) if !addr.is_unspecified())
    }

    /// Whether its name has no address now.
    #[must_use]
    pub fn lacks_address(&self) -> bool {
        is_address_missing(&self.line, &self.address)
    }

    /// The same server at another address.
    pub(super) fn moved(&self, address: ServerAddress) -> ServerRecord {
        ServerRecord {
            address,
            ..self.clone()
        }
    }

    /// The same server with another line.
    pub(super) fn edited(&self, edit: impl FnOnce(&mut Server)) -> ServerRecord {
        let mut line = Server::clone(&self.line);
        edit(&mut line);
        ServerRecord {
            line: Arc::new(line),
            ..self.clone()
        }
    }

    /// A server that is added at run time.
    pub(crate) fn added(line: Server) -> ServerRecord {
        ServerRecord {
            address: line.address.clone(),
            service_host: None,
            line: Arc::new(line),
            is_added: true,
            is_deleted: false,
        }
    }
}

/// Whether the name of a server has no address.
pub(crate) fn is_address_missing(server: &Server, address: &ServerAddress) -> bool {
    server.fqdn.is_some() && address.ip().is_some_and(|ip| ip.is_unspecified())
}
