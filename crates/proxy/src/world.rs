//! The engine's answers to what expressions ask of the world: names and live counts.

use config::model::{Mode, Proxy, Server};
use sample::Value;
use std::net::IpAddr;

use net::timers::NEVER_MS;
use net::{Addr, ConnId, CpuOf, Sockets, TcpInfo};
use sample::captured::CaptureSlot;
use sample::facts::{BindFacts, ProxyFacts, ProxySide, ProxyTimeouts, Rate, ServerFacts, Side};
use sample::vars::{Change, VarLimits, VarNames};

use crate::running::Running;
use crate::shared::{Count, Pace, Shared};

/// Borrowed for one evaluation.
pub(crate) struct View<'a> {
    pub running: &'a Running,
    pub shared: &'a Shared,
    pub worker: u32,
    pub stopping: bool,
    pub now_ms: u64,
    /// The random number of this evaluation's moment.
    pub random: &'a std::cell::Cell<u64>,
    /// The driver, for what only it can tell; none where there is none.
    pub sockets: Option<&'a dyn Sockets>,
    /// The connections that it is asked about.
    pub client: Option<ConnId>,
    pub server: Option<ConnId>,
}

impl View<'_> {
    fn conn(&self, side: Side) -> Option<ConnId> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

impl sample::World for View<'_> {
    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>> {
        let index = proxy as usize;
        let proxy = self.running.config.proxies.get(index)?;
        Some(ProxyFacts {
            name: &proxy.name,
            id: proxy.id,
            is_http: proxy.mode == Mode::Http,
            frontend_connections: self.shared.count(Count::Frontend(index)),
            backend_connections: self.shared.count(Count::Backend(index)),
            queue: self.shared.count(Count::Queued(index)),
            usable_servers: usable_servers(proxy),
            servers: proxy.servers.len() as u32,
            default_backend: proxy
                .default_backend
                .and_then(|backend| self.running.config.proxies.get(backend))
                .map_or("", |backend| &backend.name),
        })
    }

    fn bind(&self, frontend: u32, bind: u32) -> Option<BindFacts<'_>> {
        let line = self
            .running
            .config
            .proxies
            .get(frontend as usize)?
            .binds
            .get(bind as usize)?;
        Some(BindFacts {
            name: line.name.as_deref().unwrap_or_default(),
            id: line.id,
            connections: self
                .shared
                .count(Count::Bind(frontend as usize, bind as usize)),
        })
    }

    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>> {
        let proxy = self.running.config.proxies.get(backend as usize)?;
        let line = proxy.servers.get(server as usize)?;
        Some(ServerFacts {
            name: &line.name,
            id: line.id,
            connections: self
                .shared
                .count(Count::Server(backend as usize, server as usize)),
            maxconn: line.maxconn,
            queue: self.shared.queued_for(backend as usize, server as usize),
            maxqueue: line.maxqueue,
            is_up: !line.disabled,
            takes_traffic: takes_traffic(proxy, server as usize),
            user_weight: line.weight,
            weight: line.weight,
            initial_weight: line.weight,
        })
    }

    fn proxy_name(&self, proxy: u32) -> &str {
        self.running
            .config
            .proxies
            .get(proxy as usize)
            .map_or("", |proxy| &proxy.name)
    }

    fn proxy_id(&self, proxy: u32) -> Option<u32> {
        let proxy = self.running.config.proxies.get(proxy as usize)?;
        Some(proxy.id)
    }

    fn capture_len(&self, frontend: u32, slot: CaptureSlot) -> Option<usize> {
        let frontend = self.running.config.proxies.get(frontend as usize)?;
        let lines = if slot.of_response {
            &frontend.capture_response
        } else {
            &frontend.capture_request
        };
        lines.get(slot.index).map(|line| line.len)
    }

    fn proxy_named(&self, name: &[u8], side: ProxySide) -> Option<u32> {
        let has_side = |proxy: &config::model::Proxy| match side {
            ProxySide::Frontend => proxy.is_frontend,
            ProxySide::Backend => proxy.is_backend,
        };
        // `#3` is the one with this id.
        let id: Option<u32> = name
            .strip_prefix(b"#")
            .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let is = |proxy: &config::model::Proxy| match id {
            Some(id) => proxy.id == id,
            None => proxy.name.as_bytes() == name,
        };
        let proxies = &self.running.config.proxies;
        let named = proxies
            .iter()
            .position(|proxy| is(proxy) && has_side(proxy))?;
        u32::try_from(named).ok()
    }

    fn server_named(&self, backend: u32, name: &[u8]) -> Option<u32> {
        let servers = &self.running.config.proxies.get(backend as usize)?.servers;
        let named = servers
            .iter()
            .position(|server| server.name.as_bytes() == name)?;
        u32::try_from(named).ok()
    }

    fn frontend_connections(&self, proxy: u32) -> u32 {
        self.shared.count(Count::Frontend(proxy as usize))
    }

    fn backend_connections(&self, proxy: u32) -> u32 {
        self.shared.count(Count::Backend(proxy as usize))
    }

    fn server_name(&self, backend: u32, server: u32) -> Option<&str> {
        let line = self
            .running
            .config
            .proxies
            .get(backend as usize)?
            .servers
            .get(server as usize)?;
        Some(&line.name)
    }

    fn server_connections(&self, backend: u32, server: u32) -> u32 {
        self.shared
            .count(Count::Server(backend as usize, server as usize))
    }

    fn unique_id_format(&self, frontend: u32) -> Option<&sample::LogFormat> {
        let proxy = self.running.config.proxies.get(frontend as usize)?;
        proxy.unique_id_format.as_ref()
    }

    fn file_name(&self, file: u32) -> &str {
        let file = self.running.config.files.get(file as usize);
        file.map_or("", String::as_str)
    }

    fn logged(&self, frontend: u32) -> u32 {
        self.shared.count(Count::Logged(frontend as usize))
    }

    fn hostname(&self) -> &str {
        &self.running.process.hostname
    }

    fn pid(&self) -> u32 {
        self.running.process.pid
    }

    fn thread(&self) -> u32 {
        self.worker
    }

    fn nbthread(&self) -> u32 {
        self.running.process.nbthread
    }

    fn actconn(&self) -> u32 {
        self.shared.count(Count::Process)
    }

    fn stopping(&self) -> bool {
        self.stopping
    }

    fn uptime_seconds(&self) -> u64 {
        self.now_ms
            .saturating_sub(self.running.process.started.ms())
            / 1000
    }

    fn local_time(&self) -> &sample::Zone {
        &self.running.process.local_time
    }

    fn rate(&self, of: Rate) -> u32 {
        let proxies = &self.running.config.proxies;
        let known = |proxy: u32| (proxy as usize) < proxies.len();
        let pace = match of {
            Rate::FrontendSessions(proxy) if known(proxy) => Pace::Sessions(proxy as usize),
            Rate::FrontendRequests(proxy) if known(proxy) => Pace::Requests(proxy as usize),
            Rate::BackendSessions(proxy) if known(proxy) => Pace::Streams(proxy as usize),
            Rate::ServerSessions(proxy, server)
                if known(proxy) && (server as usize) < proxies[proxy as usize].servers.len() =>
            {
                Pace::Server(proxy as usize, server as usize)
            }
            _ => return 0,
        };
        self.shared.rate(pace, self.now_ms)
    }

    fn timeouts(&self, proxy: u32) -> Option<ProxyTimeouts> {
        let ms = &self.running.timeouts.get(proxy as usize)?;
        let own = self.running.config.proxies.get(proxy as usize)?;
        let or_none = |ms: u64| if ms == NEVER_MS { 0 } else { ms };
        Some(ProxyTimeouts {
            client_ms: or_none(ms.client),
            connect_ms: or_none(ms.connect),
            queue_ms: or_none(ms.queue),
            server_ms: or_none(ms.server),
            tarpit_ms: or_none(ms.tarpit),
            tunnel_ms: or_none(ms.tunnel),
            retries: own.retries,
        })
    }

    fn tcp_info(&self, side: Side) -> Option<TcpInfo> {
        self.sockets?.tcp_info(self.conn(side)?)
    }

    fn saved_syn(&self, out: &mut Vec<u8>) -> bool {
        match (self.sockets, self.client) {
            (Some(sockets), Some(client)) => sockets.saved_syn(client, out),
            _ => false,
        }
    }

    fn local_addr(&self, side: Side) -> Option<Addr> {
        self.sockets?.local_addr(self.conn(side)?)
    }

    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        self.sockets?.is_local(ip)
    }

    fn cpu_usage(&self, of: CpuOf) -> u32 {
        let usage = self.sockets.map_or(0, |sockets| sockets.cpu_usage(of));
        let threads = match of {
            CpuOf::Thread => 1,
            CpuOf::Process => self.running.process.nbthread.max(1),
        };
        (usage / threads).min(100)
    }

    fn random(&self) -> u64 {
        next_random(self.random)
    }

    fn proc_var(&self, slot: u32) -> Option<Value<'static>> {
        self.running.proc_vars.get(slot)
    }

    fn change_proc_var(&self, slot: u32, change: Change) {
        let bytes = self.running.proc_vars.change(slot, change);
        if self.running.config.global.var_limits.process > 0 {
            self.shared.var_bytes_change(bytes.0, bytes.1);
        }
    }

    fn var_names(&self) -> Option<&VarNames> {
        Some(&self.running.config.var_names)
    }

    fn var_limits(&self) -> Option<&VarLimits> {
        self.running
            .limits_vars
            .then_some(&self.running.config.global.var_limits)
    }

    fn var_bytes(&self) -> usize {
        self.shared.var_bytes()
    }
}

fn is_usable(line: &&Server) -> bool {
    !line.disabled && line.weight > 0
}

/// Servers that are chosen from: backups only where there is no other, and of those the first alone, unless
/// `option allbackups` takes them all.
fn usable_servers(proxy: &Proxy) -> u32 {
    let usable = || proxy.servers.iter().filter(is_usable);
    let first = usable().filter(|line| !line.backup).count();
    let backups = usable().count() - first;
    let count = match (first, proxy.options.allbackups) {
        (0, true) => backups,
        (0, false) => backups.min(1),
        _ => first,
    };
    count as u32
}

/// Whether a server is one of [`usable_servers`].
fn takes_traffic(proxy: &Proxy, server: usize) -> bool {
    let line = &proxy.servers[server];
    if !is_usable(&line) || !line.backup {
        return is_usable(&line);
    }
    let mut usable = proxy.servers.iter().filter(is_usable);
    let chosen = |first: &Server| proxy.options.allbackups || std::ptr::eq(first, line);
    usable.clone().all(|line| line.backup) && usable.next().is_some_and(chosen)
}

/// SplitMix64: the engine's randomness is a seed that its driver's owner gives.
pub(crate) fn next_random(state: &std::cell::Cell<u64>) -> u64 {
    let seed = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    state.set(seed);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
