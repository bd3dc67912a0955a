//! Resets counters (management guide §9.3 clear counters).

use net::Now;

use crate::ids::{ProxyId, ServerId};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;

/// Resets all counters; without `all` only the peaks.
pub fn clear_counters(runtime_config: &RuntimeConfig, shared: &Shared, all: bool, now: Now) {
    let how = (all, now.ms());
    shared.clear_process(now.ms());
    for (place, proxy) in runtime_config.config.proxies.iter().enumerate() {
        let id = ProxyId::at(place);
        let binds = if proxy.options.socket_stats {
            proxy.binds.len()
        } else {
            0
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

/// Resets all counters of one server, given by the indexes of its backend and of the server.
pub fn clear_server_counters(shared: &Shared, backend: usize, server: usize, now: Now) {
    let id = ServerId::at(ProxyId::at(backend), server);
    shared.clear_server(id, (true, now.ms()));
    shared.clear_server_health(id);
}
