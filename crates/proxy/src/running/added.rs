//! Servers that are added or get another name while traffic runs.

use config::model::{Server, ServerTarget};
use net::WorkerId;

use super::Running;
use crate::ids::{ProxyId, ServerId};
use crate::shared::{RenameError, ServerRecord, ServerTables, Shared};

/// A server was added.
#[derive(Debug)]
pub struct Added {
    /// Its place in its backend.
    pub place: usize,
    /// Who has to be given a round.
    pub wake: Vec<WorkerId>,
}

/// Why a server is not added.
#[derive(Debug)]
pub enum AddError {
    /// The backend has one of this name.
    NameTaken,
    /// The backend's server of this name has the same id.
    IdTaken(String),
    /// The backend cannot have more servers.
    NoRoom,
    /// A file that its TLS needs is not known or cannot be used, in words.
    Tls(String),
}

impl Running {
    /// Gives a server in maintenance another name, by the places of its backend and its own. `shared` is what the workers of this
    /// configuration share. The workers have to be given a round.
    ///
    /// # Errors
    /// Why it keeps the one it has.
    pub fn rename_server(
        &self,
        shared: &Shared,
        backend: usize,
        server: usize,
        name: &str,
    ) -> Result<(), RenameError> {
        let id = ServerId::at(ProxyId::at(backend), server);
        if shared.servers.is_in_maintenance(id) && self.refers_to(shared, backend, server) {
            return Err(RenameError::Referenced);
        }
        shared.rename_server(id, name)
    }

    /// Whether a rule or another server names a server.
    fn refers_to(&self, shared: &Shared, backend: usize, server: usize) -> bool {
        let Some(proxy) = self.config.proxies.get(backend) else {
            return false;
        };
        let mut rules = proxy.use_server.iter();
        if rules.any(|rule| matches!(rule.target, ServerTarget::Static(at) if at == server)) {
            return true;
        }
        let tables = shared.server_tables();
        let backends = 0..self.config.proxies.len();
        backends
            .flat_map(|backend| tables.servers(backend))
            .any(|(_, record)| record.checks.tracked == Some((backend, server)))
    }

    /// Adds a server, in maintenance, to the backend at a place of the configuration. A server without an id gets the lowest one
    /// that is free. `shared` is what the workers of this configuration share. The files that its TLS names are known already.
    ///
    /// # Errors
    /// See [`AddError`].
    pub fn add_server(
        &self,
        shared: &Shared,
        backend: usize,
        mut line: Server,
    ) -> Result<Added, AddError> {
        let proxy = &self.config.proxies[backend];
        let title = format!("'server {}' of '{}'", line.name, proxy.name);
        let words = line.options.tls().cloned();
        let words = words.as_ref();
        self.tls
            .check_server(&title, words)
            .map_err(AddError::Tls)?;
        let added = shared.add_server(ProxyId::at(backend), |tables| {
            line.options.id = free_id(tables, backend, &line)?;
            Ok(ServerRecord::added(line))
        })?;
        let server = added.ok_or(AddError::NoRoom)?;
        let place = (backend, server.place());
        self.tls
            .set_server(place, &title, words)
            .map_err(AddError::Tls)?;
        Ok(Added {
            place: server.place(),
            wake: shared.workers().collect(),
        })
    }
}

/// The id of a new server, whose name and id nobody else has.
fn free_id(tables: &ServerTables, backend: usize, line: &Server) -> Result<u32, AddError> {
    let mut ids = Vec::new();
    for (_, other) in tables.servers(backend) {
        if other.name == line.name {
            return Err(AddError::NameTaken);
        }
        if other.id == line.id {
            return Err(AddError::IdTaken(other.name.clone()));
        }
        ids.push(other.id);
    }
    if line.id > 0 {
        return Ok(line.id);
    }
    ids.sort_unstable();
    let free = ids.iter().fold(1, |free, id| free + u32::from(*id == free));
    Ok(free)
}
