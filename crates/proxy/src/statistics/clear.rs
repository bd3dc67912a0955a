//! Counters back to zero (management guide §9.3 clear counters).

use net::Now;

use crate::ids::{ProxyId, ServerId};
use crate::running::Running;
use crate::shared::Shared;

/// All counters; without `all` the peaks only.
pub fn clear_counters(running: &Running, shared: &Shared, all: bool, now: Now) {
    let how = (all, now.ms());
    shared.clear_process(now.ms());
    for (place, proxy) in running.config.proxies.iter().enumerate() {
        let id = ProxyId::at(place);
        let binds = match proxy.options.socket_stats {
            true => proxy.binds.len(),
            false => 0,
        };
        shared.clear_frontend(id, binds, how);
        for (server, _) in shared.server_tables().of(id) {
            shared.clear_server(server, how);
            if all {
                shared.clear_server_health(server);
            }
        }
        shared.clear_backend(id, how);
        if all {
            shared.clear_backend_health(id);
        }
    }
}

/// All counters of one server, by its backend's place and its own.
pub fn clear_server_counters(shared: &Shared, backend: usize, server: usize, now: Now) {
    let id = ServerId::at(ProxyId::at(backend), server);
    shared.clear_server(id, (true, now.ms()));
    shared.clear_server_health(id);
}
