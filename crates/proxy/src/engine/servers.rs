//! Changes of the server tables at run time: a worker takes the new tables over between two
//! entries.

use std::sync::Arc;

use net::Driver;
use net::timers::NEVER_MS;

use super::{Engine, RELEASE_RETRY_MS, Turn};
use crate::backend::View;
use crate::ids::{ConnId, ServerId};
use crate::link::Role;
use crate::stream::Stream;

impl Engine {
    /// Takes the current tables over. Idle connections to servers that are deleted, have another
    /// address or are in maintenance are closed.
    #[cold]
    #[inline(never)]
    pub(super) fn take_servers_over<D: Driver>(&mut self, driver: &mut D) {
        let now = self.core.ambient.shared.server_tables();
        let before = std::mem::replace(&mut self.servers, now);
        let changed = self.servers.changed_since(&before);
        self.core.backends.servers_changed(&View {
            runtime_config: &self.runtime_config,
            servers: &self.servers,
            ambient: &self.core.ambient,
        });
        self.enter(driver, None, |turn| turn.close_idle_of(&changed));
        self.release_servers(driver.now_ms());
    }

    /// Reports the deleted servers that this worker no longer uses. If it still uses one, it looks
    /// again in a while.
    pub(super) fn release_servers(&mut self, now_ms: u64) {
        self.state.release_at_ms = NEVER_MS;
        let ambient = &self.core.ambient;
        for server in ambient.shared.retired_servers() {
            let is_used = self.core.links.iter().any(
                |(_, link)| matches!(&link.role, Role::Server(entry) if entry.server == server),
            );
            if !is_used && !self.streams.all().any(|stream| stream.refers_to(server)) {
                ambient.shared.release_server(ambient.worker, server);
            } else {
                self.state.release_at_ms = now_ms.saturating_add(RELEASE_RETRY_MS);
            }
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Closes idle connections to servers that have changed or are in maintenance. A connection
    /// with streams takes no new ones.
    pub(super) fn close_idle_of(&mut self, changed: &[ServerId]) {
        let shared = Arc::clone(&self.cx.core.ambient.shared);
        let is_over = |server: ServerId| {
            changed.contains(&server) || shared.servers.is_in_maintenance(server)
        };
        for slot in 0..self.cx.core.links.slots() {
            let links = &mut self.cx.core.links;
            let Some(id) = links.at(slot) else {
                continue;
            };
            let Some(link) = links.get(id) else {
                continue;
            };
            let id = ConnId::of(id);
            if !matches!(&link.role, Role::Server(entry) if is_over(entry.server)) {
                continue;
            }
            if link.is_free() {
                self.cx.close_server(id);
            } else {
                self.take_no_more(id);
            }
        }
    }

    /// Lets a server's connection end with its present requests.
    fn take_no_more(&mut self, id: ConnId) {
        let core = &mut *self.cx.core;
        if let Some(server) = core.links.server_mut(id) {
            server.is_ending = true;
        }
        core.links.stop_exchanges(id);
        core.backends.unshare(&mut core.links, id);
    }
}

impl Stream {
    /// Whether a stream still refers to a server, including a log line that is not written yet.
    fn refers_to(&self, server: ServerId) -> bool {
        let route = &self.route;
        let named = [route.target, route.slot, route.counted, route.avoid];
        named.contains(&Some(server))
            || (self.backend == server.backend && self.txn.server == Some(server.number()))
    }
}
