//! Statistics: rows of [`stats`] that are filled from the workers' counters one after another, so
//! that they are never all in memory at once.

mod clear;
pub(crate) mod export;
pub(crate) mod fill;
pub(crate) mod generated_body;
mod health;
mod load;
mod modules;
pub mod otlp;
mod process;
pub(crate) mod request;

pub use clear::{clear_counters, clear_server_counters};
pub use load::{dump_file, load_file};

use config::model::{Mode, Proxy};
use net::Now;
use stats::{Kind, Row};

use crate::ids::{BindId, ProxyId, ServerId};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{ServerTables, Shared};

/// The data from which rows are filled.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The configuration.
    pub runtime_config: &'a RuntimeConfig,
    /// The workers' counters.
    pub shared: &'a Shared,
    /// The current servers.
    pub servers: &'a ServerTables,
    /// The current time.
    pub now: Now,
    /// Includes addresses, cookies and algorithms (`show-legends`).
    pub legends: bool,
}

/// Selects rows. By default all are selected.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The number of a proxy.
    pub iid: Option<u32>,
    /// The kinds; none for all.
    pub kinds: Option<Vec<Kind>>,
    /// The number of a server or listener.
    pub sid: Option<u32>,
    /// Excludes servers in maintenance.
    pub hides_maintenance: bool,
    /// Excludes servers that are down or in maintenance.
    pub hides_down: bool,
    /// Only proxies whose names contain this text, ignoring case; empty for all.
    pub contains: String,
    /// By proxy: whether it may be shown; none for all (`stats scope`).
    pub scope: Option<Vec<bool>>,
}

impl Selection {
    fn has_kind(&self, kind: Kind) -> bool {
        self.kinds
            .as_ref()
            .is_none_or(|kinds| kinds.contains(&kind))
    }

    fn has_sid(&self, sid: u32) -> bool {
        self.sid.is_none_or(|wanted| wanted == sid)
    }

    /// Whether a proxy is selected.
    #[must_use]
    pub fn has_proxy(&self, place: usize, proxy: &Proxy) -> bool {
        let contains = || {
            let name = proxy.name.to_ascii_lowercase();
            name.contains(&self.contains.to_ascii_lowercase())
        };
        !proxy.disabled
            && proxy.mode != Mode::Log
            && self.iid.is_none_or(|iid| iid == proxy.id)
            && self.scope.as_ref().is_none_or(|scope| scope[place])
            && (self.contains.is_empty() || contains())
    }
}

/// The position in an iteration over all rows: for each proxy its frontend, its listeners, its
/// servers, and its backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    proxy: usize,
    part: Part,
    place: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Part {
    #[default]
    Frontend,
    Listeners,
    Servers,
    Backend,
}

impl Cursor {
    /// The next selected row, with its proxy's place; none after the last one.
    pub fn next<'a>(&mut self, view: &View<'a>, selection: &Selection) -> Option<(usize, Row<'a>)> {
        loop {
            let proxy = view.runtime_config.config.proxies.get(self.proxy)?;
            let is_there = !view.shared.is_deleted(self.proxy);
            if !is_there || !selection.has_proxy(self.proxy, proxy) {
                self.next_proxy();
                continue;
            }
            let number = self.proxy;
            let row = self.step(view, proxy, selection);
            if let Some(row) = row {
                return Some((number, row));
            }
        }
    }

    /// An iteration that begins with the proxy at a place.
    pub(crate) fn at(proxy: usize) -> Cursor {
        Cursor {
            proxy,
            ..Cursor::default()
        }
    }

    fn next_proxy(&mut self) {
        *self = Cursor {
            proxy: self.proxy + 1,
            ..Cursor::default()
        };
    }

    fn go(&mut self, part: Part) {
        (self.part, self.place) = (part, 0);
    }

    /// Advances to the next row. None if the row is not selected or does not exist.
    fn step<'a>(
        &mut self,
        view: &View<'a>,
        proxy: &Proxy,
        selection: &Selection,
    ) -> Option<Row<'a>> {
        let (id, place) = (ProxyId::at(self.proxy), self.place);
        match self.part {
            Part::Frontend => {
                self.go(Part::Listeners);
                let wanted = proxy.is_frontend && selection.has_kind(Kind::Frontend);
                wanted.then(|| view.frontend(id))
            }
            Part::Listeners => {
                let shown = proxy.options.socket_stats && selection.has_kind(Kind::Listener);
                let Some(bind) = proxy.binds.get(place).filter(|_| shown) else {
                    self.go(Part::Servers);
                    return None;
                };
                self.place += 1;
                let bind_id = BindId {
                    frontend: id,
                    place,
                };
                let wanted = !bind.is_removed && selection.has_sid(bind.id);
                wanted.then(|| view.listener(bind_id))
            }
            Part::Servers => {
                let shown = proxy.is_backend && selection.has_kind(Kind::Server);
                let server_id = ServerId::at(id, place);
                let Some(server) = view.servers.find(server_id).filter(|_| shown) else {
                    self.go(Part::Backend);
                    return None;
                };
                self.place += 1;
                let hidden = server.is_deleted || view.is_hidden(server_id, selection);
                let wanted = !hidden && selection.has_sid(server.id);
                wanted.then(|| view.server(server_id, server))
            }
            Part::Backend => {
                self.next_proxy();
                let wanted = proxy.is_backend && selection.has_kind(Kind::Backend);
                wanted.then(|| view.backend(id, selection))
            }
        }
    }
}

impl View<'_> {
    fn is_hidden(&self, server: ServerId, selection: &Selection) -> bool {
        let servers = &self.shared.servers;
        (selection.hides_maintenance && servers.is_in_maintenance(server))
            || (selection.hides_down && !servers.is_up(server))
    }
}
