//! Servers and backends that are added at run time.

use config::model::{Mode, Server, ServerTls};
use net::WorkerId;

use super::RuntimeConfig;
use crate::ids::ProxyId;
use crate::shared::{ServerRecord, ServerTables, Shared};

/// The result of adding a server.
#[derive(Debug)]
pub struct Added {
    /// Its place in its backend.
    pub place: usize,
    /// The workers to wake.
    pub wake: Vec<WorkerId>,
}

/// Why a server cannot be added.
#[derive(Debug)]
pub enum AddError {
    /// A server of the backend has this name.
    NameTaken,
    /// The backend's server with this name has the same id.
    IdTaken(String),
    /// The backend cannot have more servers.
    NoRoom,
    /// A file for its TLS is not known or cannot be used; the message for the user.
    Tls(String),
}

impl RuntimeConfig {
    /// Adds a backend, unpublished and without servers, with the settings of a section `defaults`,
    /// given by its place in [`config::model::Config::defaults`]. `shared` is the state that the
    /// workers of this configuration share. Returns its place; none if all places of this section
    /// and mode are used.
    #[must_use]
    pub fn add_backend(
        &self,
        shared: &Shared,
        name: &str,
        defaults: usize,
        mode: Mode,
    ) -> Option<usize> {
        let proxies = self.config.proxies.iter();
        let place = proxies.enumerate().position(|(_, proxy)| {
            proxy.reserve_of == Some(defaults) && proxy.mode == mode && proxy.name.give(name)
        })?;
        shared.add_backend(ProxyId::at(place), name);
        Some(place)
    }

    /// Adds a server, in maintenance, to the backend at a place of the configuration. A server
    /// without an id gets the lowest free one. `shared` is the state that the workers of this
    /// configuration share. The files that its TLS names must be loaded already.
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

/// Why a server's connections cannot be switched between TLS and plain.
#[derive(Debug)]
pub enum TlsSwitchError {
    /// The server was added at run time.
    Added,
    /// Its line has no TLS options.
    NotPrepared,
    /// Neither on nor off was given.
    NoSide,
    /// A file of its TLS options cannot be used; the message for the user.
    Tls(String),
}

impl RuntimeConfig {
    /// Switches a server's connections for traffic to TLS or back (`set server … ssl`); the server
    /// is given by the place of its backend and its own. Its idle connections are closed. Returns
    /// the workers to wake.
    ///
    /// # Errors
    /// See [`TlsSwitchError`].
    pub fn switch_server_tls(
        &self,
        shared: &Shared,
        backend: usize,
        place: usize,
        on: Option<bool>,
    ) -> Result<Vec<WorkerId>, TlsSwitchError> {
        let tables = shared.server_tables();
        let (_, record) = tables
            .servers(backend)
            .find(|(each, _)| *each == place)
            .ok_or(TlsSwitchError::NotPrepared)?;
        if record.is_added() {
            return Err(TlsSwitchError::Added);
        }
        let is_prepared =
            |words: &&ServerTls| words.ssl || words.may_turn_on || words.check.ssl == Some(true);
        let words = record.tls_words.as_deref().filter(is_prepared);
        let words = words.ok_or(TlsSwitchError::NotPrepared)?;
        let on = on.ok_or(TlsSwitchError::NoSide)?;
        if on && self.tls.of_traffic(backend, place).is_none() {
            let proxy = &self.config.proxies[backend];
            let title = format!("'server {}' of '{}'", record.name, proxy.name);
            self.tls
                .set_server((backend, place), &title, Some(words))
                .map_err(TlsSwitchError::Tls)?;
        }
        Ok(shared.edit_server(backend, place, |options| {
            if let Some(words) = options.tls_words.as_deref_mut() {
                words.ssl = on;
                // As in HAProxy: off means as if the option was not set, and it may be turned on
                // again.
                words.is_refused = false;
                words.may_turn_on = true;
            }
        }))
    }
}

/// The id of a new server, after checking that its name and id are unused.
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
