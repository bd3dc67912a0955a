//! Adds, moves, renames and deletes servers at run time.

use std::sync::Arc;

use config::model::{ServerAddress, ServerOptions};
use net::WorkerId;

use super::health::Admin;
use super::{Count, ServerRecord, ServerTables, Shared};
use crate::ids::{ProxyId, ServerId};

/// Why a server cannot be renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// The server does not exist.
    NotFound,
    /// It is not in maintenance, so it may get requests.
    NotInMaintenance,
    /// The configuration refers to it by name.
    Referenced,
    /// Another server of its backend has this name.
    NameTaken,
}

/// Why a server cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteError {
    /// The server does not exist.
    NotFound,
    /// Other lines of the configuration refer to it.
    Named,
    /// It is not in maintenance, so it may get requests.
    NotInMaintenance,
    /// Requests or connections still use it.
    InUse,
}

impl Shared {
    /// The current servers of all backends.
    #[must_use]
    pub fn server_tables(&self) -> Arc<ServerTables> {
        self.tables.now()
    }

    /// The names of a proxy's servers by place, for a configuration that follows: an empty one for
    /// a place that nothing uses, and `nobody` for the place of a deleted server that is in use.
    #[must_use]
    pub fn server_names(&self, proxy: usize, nobody: &str) -> Vec<String> {
        let tables = self.server_tables();
        let retired = self.tables.in_use();
        let id = ProxyId::at(proxy);
        let places = (0..tables.places(id)).map(|place| ServerId::at(id, place));
        let is_taken = |name: &str| tables.of(id).any(|(_, record)| record.name == name);
        let name = |server: ServerId| {
            let record = tables.at(server);
            if !record.is_deleted {
                record.name.clone()
            } else if !retired.contains(&server) {
                String::new()
            } else if is_taken(&record.name) {
                nobody.to_owned()
            } else {
                // If the server returns, it goes on with the slots that are in use.
                record.name.clone()
            }
        };
        places.map(name).collect()
    }

    /// The version of the current tables.
    #[inline(always)]
    pub(crate) fn server_tables_version(&self) -> u64 {
        self.tables.version()
    }

    /// Adds a server to a backend, in maintenance. `make` creates it from the current servers.
    /// Returns its place; none if the backend cannot have more servers.
    ///
    /// # Errors
    /// The error of `make`.
    pub(crate) fn add_server<E>(
        &self,
        backend: ProxyId,
        make: impl FnOnce(&ServerTables) -> Result<ServerRecord, E>,
    ) -> Result<Option<ServerId>, E> {
        // Locked before the tables, as everywhere.
        let mut states = self.health.lock();
        let mut change = self.tables.change();
        let record = make(change.tables())?;
        let server = change.free_place(backend);
        if !self.servers.begin(server, &record) || !self.counts.add_server(server) {
            return Ok(None);
        }
        let number = self.counts.server_number(server);
        if !self.tallies.reach_server(number) || !self.latencies.reach_server(number) {
            return Ok(None);
        }
        self.clear_server(server, (true, 0));
        states.now_ms = self.health.now_ms();
        states.add(server, &record);
        change.put(server, record);
        drop(change);
        self.servers.touch(backend);
        self.tell_of_servers();
        Ok(Some(server))
    }

    /// Deletes an unused server. Its place is reused once every worker has released it.
    ///
    /// Returns the workers to wake.
    ///
    /// # Errors
    /// Why it cannot be deleted.
    pub fn delete_server(
        &self,
        backend: usize,
        server: usize,
    ) -> Result<Vec<WorkerId>, DeleteError> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let mut states = self.health.lock();
        let mut change = self.tables.change();
        let record = change.tables().current(server);
        if record.ok_or(DeleteError::NotFound)?.is_named {
            return Err(DeleteError::Named);
        }
        if !self.servers.is_in_maintenance(server) {
            return Err(DeleteError::NotInMaintenance);
        }
        if states.is_tracked(server) {
            return Err(DeleteError::InUse);
        }
        let is_unused = self.servers.is_unused(server)
            && self.count(Count::Server(server)) == 0
            && self.count(Count::Connections(server)) == 0;
        if !is_unused {
            return Err(DeleteError::InUse);
        }
        change.delete(server);
        states.remove(server);
        drop(change);
        self.servers.touch(server.backend);
        self.tell_of_servers();
        Ok(self.workers().collect())
    }

    /// Changes the address of a server. Workers close idle connections to the old address when they
    /// take the new tables over. Returns the workers to wake.
    pub fn move_server(
        &self,
        backend: usize,
        server: usize,
        address: ServerAddress,
    ) -> Vec<WorkerId> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let moved = |record: &ServerRecord| Some(record.moved(address));
        if !self.tables.edit(server, moved) {
            return Vec::new();
        }
        self.servers.has_moved(server);
        self.tell_of_servers();
        self.change_states(|states| {
            states.clear_admin(server, Admin::UNRESOLVED);
            states.touch(server);
        })
    }

    /// Renames a server in maintenance, given by the place of its backend and its own. The caller
    /// wakes the workers.
    ///
    /// # Errors
    /// Why it cannot be renamed.
    pub fn rename_server(
        &self,
        backend: usize,
        server: usize,
        name: &str,
    ) -> Result<(), RenameError> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let mut states = self.health.lock();
        let mut change = self.tables.change();
        let tables = change.tables();
        let record = tables.current(server).ok_or(RenameError::NotFound)?;
        if !self.servers.is_in_maintenance(server) {
            return Err(RenameError::NotInMaintenance);
        }
        if record.is_named || states.is_tracked(server) {
            return Err(RenameError::Referenced);
        }
        if record.name == name {
            return Ok(());
        }
        let is_taken = tables
            .of(server.backend)
            .any(|(_, other)| !other.is_deleted && other.name == name);
        if is_taken {
            return Err(RenameError::NameTaken);
        }
        states.rename(server, name);
        let record = record.edited(|line| name.clone_into(&mut line.name));
        change.put(server, record);
        drop(change);
        self.servers.touch(server.backend);
        self.tell_of_servers();
        Ok(())
    }

    /// Changes options of a server that affect neither its state nor balancing; the server is given
    /// by the place of its backend and its own. Returns the workers to wake.
    pub fn edit_server(
        &self,
        backend: usize,
        server: usize,
        edit: impl FnOnce(&mut ServerOptions),
    ) -> Vec<WorkerId> {
        let server = ServerId::at(ProxyId::at(backend), server);
        let edited = |record: &ServerRecord| Some(record.edited(|line| edit(&mut line.options)));
        if !self.tables.edit(server, edited) {
            return Vec::new();
        }
        self.tell_of_servers();
        self.workers().collect()
    }

    pub(super) fn tell_of_servers(&self) {
        if let Some(event_sink) = self.health.event_sink() {
            event_sink.servers_changed();
        }
    }

    /// The places of deleted servers that are not released by all workers.
    pub(crate) fn retired_servers(&self) -> Vec<ServerId> {
        self.tables.retired()
    }

    /// A worker no longer refers to the place of a deleted server.
    pub(crate) fn release_server(&self, worker: WorkerId, server: ServerId) {
        self.tables.release(worker, server);
    }
}
