//! The shared state of a configuration that follows another one in a running process (a reload in
//! place).
//!
//! The new state is a copy: an object that both configurations have keeps its counters, the places
//! that are in use, its health and what was set at run time. A setting whose line has changed
//! starts as the new line says. While the copy is made, and until all workers use it, no thread may
//! change the old state.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::model::{Config, Proxy, Server};

use super::{ServerTables, Shared};
use crate::ids::{BindId, ProxyId, ServerId};

/// From one configuration to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// The new one.
    pub config: &'a Config,
    /// Its number in the process.
    pub generation: u32,
    pub before: &'a Config,
}

/// A configuration, the one before it, and the objects of both.
pub(super) struct Succession<'a> {
    pub config: &'a Config,
    pub before: &'a Config,
    /// The number of the new configuration.
    pub generation: u32,
    tables_before: Arc<ServerTables>,
    /// Proxies whose use and counters go on, also of removed ones.
    pub proxies: Vec<ProxyId>,
    /// The same of servers.
    pub servers: Vec<ServerId>,
    pub binds: Vec<BindId>,
}

impl<'a> Succession<'a> {
    fn new(step: Step<'a>, tables: Arc<ServerTables>) -> Self {
        let Step {
            config,
            before,
            generation,
        } = step;
        // A place that nothing used may have been given to another object.
        let is_same = |(now, then): (&Proxy, &Proxy)| now.is_removed || now.name == *then.name;
        let pairs = config.proxies.iter().zip(&before.proxies).enumerate();
        let same = pairs.filter(|(_, pair)| is_same(*pair));
        let proxies: Vec<ProxyId> = same.map(|(place, _)| ProxyId::at(place)).collect();
        let mut servers = Vec::new();
        let mut binds = Vec::new();
        for proxy in &proxies {
            let (now, then) = (
                &config.proxies[proxy.place()],
                &before.proxies[proxy.place()],
            );
            let both = now.binds.len().min(then.binds.len());
            binds.extend((0..both).map(|place| BindId {
                frontend: *proxy,
                place,
            }));
            let lines = now.servers.iter().enumerate();
            servers.extend(lines.filter_map(|(place, line)| {
                let server = ServerId::at(*proxy, place);
                let record = tables.find(server)?;
                let is_same = line.is_removed || line.name == record.name;
                is_same.then_some(server)
            }));
        }
        Succession {
            config,
            before,
            generation,
            tables_before: tables,
            proxies,
            servers,
            binds,
        }
    }

    /// A proxy of both configurations: now, and before.
    pub fn proxy(&self, proxy: ProxyId) -> [&'a Proxy; 2] {
        let of = |config: &'a Config| &config.proxies[proxy.place()];
        [of(self.config), of(self.before)]
    }

    /// Whether what was set for a proxy at run time stays: it was not removed before.
    pub fn is_kept(&self, proxy: ProxyId) -> bool {
        !self.before.proxies[proxy.place()].is_removed
    }

    /// Whether the state of a server stays: it was not removed or deleted before.
    pub fn is_server_kept(&self, server: ServerId) -> bool {
        self.is_kept(server.backend) && !self.tables_before.at(server).is_deleted
    }

    /// The lines of a server of both: now, and before.
    pub fn lines(&self, server: ServerId) -> [&Server; 2] {
        let now = &self.config.proxies[server.backend.place()].servers[server.place()];
        [now, self.tables_before.at(server)]
    }

    /// Whether a server is the same program at the same place: its health and its address stay.
    pub fn is_reached_alike(&self, server: ServerId) -> bool {
        let [now, before] = self.lines(server);
        now.address == before.address && now.fqdn == before.fqdn
    }
}

impl Shared {
    /// Copies the state of the configuration before into the fresh state of the new one.
    pub(crate) fn succeed(&mut self, step: Step<'_>, state: &Shared) {
        let both = Succession::new(step, state.server_tables());
        self.counts.succeed(&state.counts, &both);
        self.tallies.succeed(&state.tallies, &both, |server| {
            [&self.counts, &state.counts].map(|counts| counts.server_number(server))
        });
        self.latencies.succeed(&state.latencies, &both, |server| {
            [&self.counts, &state.counts].map(|counts| counts.server_number(server))
        });
        self.servers.succeed(&state.servers, &both);
        self.tables.succeed(&state.tables, &both);
        self.health.succeed(&state.health, &both);
        self.queues.succeed(&state.queues, &both);
        self.mail.succeed(&state.mail);
        self.admission.succeed(&state.admission, &both);
        self.budgets.succeed(&state.budgets, &both);
        self.switches.succeed(&state.switches, &both);
        self.refused.succeed(&state.refused, &both);
        self.server_conns.succeed(&state.server_conns);
        self.activities = Arc::clone(&state.activities);
        self.process = Arc::clone(&state.process);
        self.tls_connections = Arc::clone(&state.tls_connections);
        if let Some(dropped) = state.dropped_logs.get() {
            self.set_dropped_logs(Arc::clone(dropped));
        }
        self.streams = state.streams.load(Relaxed).into();
        self.var_bytes = state.var_bytes.load(Relaxed).into();
        self.received_logs = state.received_logs.load(Relaxed).into();
        self.is_stopping = state.is_stopping.load(Relaxed).into();
        self.panics = state.panics.load(Relaxed).into();
        self.show_all();
    }
}
