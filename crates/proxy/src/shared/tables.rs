//! The servers of all backends: a table for each backend, which changes while traffic runs.
//!
//! [`ServerTables`] is immutable. A change makes new ones, which share what is the same, and every worker takes them over between
//! two entries. So a reference to a server is good for as long as a worker works on one event, and reading costs no lock.
//!
//! A server keeps its place. The place of a deleted server is given to another one only when every worker has said that nothing
//! of it refers to the place any more ([`Tables::release`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::model::{Config, Server, ServerAddress};
use net::WorkerId;

use crate::ids::{ProxyId, ServerId};

/// A server as it is now.
#[derive(Clone, Debug)]
pub struct ServerRecord {
    line: Arc<Server>,
    /// Where it is now. Its line has where it was at first.
    pub address: ServerAddress,
    /// It came while traffic ran.
    is_added: bool,
    /// It is no more; its place may still be referred to.
    pub is_deleted: bool,
}

impl std::ops::Deref for ServerRecord {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.line
    }
}

/// See the module.
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

    /// Grows with each change.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// A server.
    #[inline(always)]
    pub(crate) fn at(&self, server: ServerId) -> &ServerRecord {
        &self.backends[server.backend.place()][server.place()]
    }

    /// The record of a server, which tells it from others that had or will have its place.
    pub(crate) fn record(&self, server: ServerId) -> &Arc<ServerRecord> {
        &self.backends[server.backend.place()][server.place()]
    }

    /// A server, if there is one at its place.
    pub(crate) fn find(&self, server: ServerId) -> Option<&ServerRecord> {
        let record = self.backends.get(server.backend.place())?;
        record.get(server.place()).map(|record| &**record)
    }

    /// How many places a backend has, those of deleted servers included.
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

    /// The places whose servers are not those of earlier tables, or are not reached as they were then.
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

/// A deleted server's place that somebody may still refer to.
#[derive(Debug)]
struct Retired {
    server: ServerId,
    /// By worker: nothing of it refers to the place.
    released: Vec<bool>,
}

#[derive(Debug)]
struct Current {
    tables: Arc<ServerTables>,
    retired: Vec<Retired>,
}

/// The tables of now, for all threads.
#[derive(Debug)]
pub(super) struct Tables {
    /// Of the tables of now: read without the lock.
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

    fn lock(&self) -> MutexGuard<'_, Current> {
        // What a panic leaves behind is whole: a change is published last.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn now(&self) -> Arc<ServerTables> {
        Arc::clone(&self.lock().tables)
    }

    /// Begins a change: nobody else changes the tables until it is over.
    pub fn change(&self) -> Change<'_> {
        Change {
            tables: self,
            current: self.lock(),
        }
    }

    /// Whether the places of deleted servers are waited for.
    pub fn retired(&self) -> Vec<ServerId> {
        let current = self.lock();
        current.retired.iter().map(|each| each.server).collect()
    }

    /// Nothing of a worker refers to the place of a deleted server.
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

    /// The place for a new server of a backend: one that nobody refers to any more, or a new one.
    pub fn free_place(&self, backend: ProxyId) -> ServerId {
        let is_free = |retired: &&Retired| {
            retired.server.backend == backend && retired.released.iter().all(|released| *released)
        };
        let free = self.current.retired.iter().find(is_free);
        let new = ServerId::at(backend, self.tables().places(backend));
        free.map_or(new, |retired| retired.server)
    }

    /// Puts a server at a place of its backend, and publishes that.
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

    /// Makes every worker look at the servers again.
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
    /// Whether it is the same server, at the same address, with connections of the same kind.
    fn is_reached_as(&self, then: &ServerRecord) -> bool {
        self.is_deleted == then.is_deleted
            && self.address == then.address
            && self.tls().is_some() == then.tls().is_some()
    }

    /// Its line in the configuration, or that it was added by.
    #[must_use]
    pub fn line(&self) -> &Arc<Server> {
        &self.line
    }

    /// Whether it came while traffic ran.
    #[must_use]
    pub fn is_added(&self) -> bool {
        self.is_added
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

    /// A server that is added while traffic runs.
    pub(crate) fn added(line: Server) -> ServerRecord {
        ServerRecord {
            address: line.address.clone(),
            line: Arc::new(line),
            is_added: true,
            is_deleted: false,
        }
    }
}
