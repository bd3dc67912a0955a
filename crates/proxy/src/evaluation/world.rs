//! The engine's implementation of `World` for expressions: names, current counts, the state of
//! servers.

use config::model::Mode;
use sample::Value;
use std::net::IpAddr;

use net::timers::NEVER_MS;
use net::{Addr, CpuOf, Now, SockId, Sockets, TcpInfo};
use sample::captured::CaptureSlot;
use sample::facts::{BindFacts, ProxyFacts, ProxySide, ProxyTimeouts, Rate, ServerFacts, Side};
use sample::vars::{Change, VarLimits, VarNames};

use super::Ambient;
use crate::ids::{BindId, ProxyId, ServerId};
use crate::link::QuicLink;
use crate::runtime_config::RuntimeConfig;
use crate::shared::{Count, Pace, ServerTables, Servers};

/// Borrowed for one evaluation.
pub(crate) struct View<'a> {
    pub runtime_config: &'a RuntimeConfig,
    pub servers: &'a ServerTables,
    pub ambient: &'a Ambient,
    pub now_ms: u64,
    /// The driver, for facts that only it knows; none where there is no driver.
    pub sockets: Option<&'a dyn Sockets>,
    /// The connections of both sides, if they exist.
    pub client: Option<Connection>,
    pub server: Option<Connection>,
}

/// Facts of a connection for evaluations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// The socket that the driver is asked about.
    pub sock: SockId,
    /// The round-trip time as QUIC estimates it, microseconds; none of a TCP connection.
    pub quic_rtt_us: Option<u32>,
}

impl Connection {
    /// Of a link, with the QUIC connection that it has.
    pub fn new(sock: SockId, quic: Option<&QuicLink>) -> Connection {
        let us =
            |quic: &QuicLink| u32::try_from(quic.connection.rtt().as_micros()).unwrap_or(u32::MAX);
        Connection {
            sock,
            quic_rtt_us: quic.map(us),
        }
    }
}

impl<'a> View<'a> {
    /// The view of an evaluation outside of streams, which has no sockets.
    pub fn without_stream(
        runtime_config: &'a RuntimeConfig,
        servers: &'a ServerTables,
        ambient: &'a Ambient,
        now: Now,
    ) -> View<'a> {
        View {
            runtime_config,
            servers,
            ambient,
            now_ms: now.ms(),
            sockets: None,
            client: None,
            server: None,
        }
    }

    fn connection(&self, side: Side) -> Option<Connection> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    fn sock(&self, side: Side) -> Option<SockId> {
        Some(self.connection(side)?.sock)
    }

    fn count(&self, what: Count) -> u32 {
        self.ambient.shared.count(what)
    }

    /// The proxy with this number, if there is one.
    fn proxy_id(&self, number: u32) -> Option<ProxyId> {
        let place = number as usize;
        (place < self.runtime_config.config.proxies.len()).then(|| ProxyId::at(place))
    }

    /// The server with these numbers, if there is one.
    fn server_id(&self, backend: u32, server: u32) -> Option<ServerId> {
        let server = ServerId::at(self.proxy_id(backend)?, server as usize);
        self.servers.find(server).map(|_| server)
    }
}

/// Whether a server gets requests. A server that is probed counts too, because a rule that chooses
/// backends by this must let the probe through.
fn takes_traffic(servers: &Servers, server: ServerId) -> bool {
    servers.is_usable(server) || servers.is_probed(server)
}

impl sample::World for View<'_> {
    fn token_algorithms(&self) -> sample::TokenAlgorithms {
        self.runtime_config.config.global.token_algorithms
    }

    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>> {
        let id = self.proxy_id(proxy)?;
        let proxy = self.runtime_config.proxy(id);
        let shared = &self.ambient.shared;
        Some(ProxyFacts {
            name: &proxy.name,
            id: proxy.id,
            is_http: proxy.mode == Mode::Http,
            frontend_connections: self.count(Count::Frontend(id)),
            backend_connections: self.count(Count::Backend(id)),
            queue: shared.queued(id),
            usable_servers: shared
                .servers
                .of(id)
                .filter(|server| takes_traffic(&shared.servers, *server))
                .count() as u32,
            servers: self.servers.places(id) as u32,
            default_backend: proxy
                .default_backend
                .and_then(|backend| self.runtime_config.config.proxies.get(backend))
                .map_or("", |backend| &backend.name),
        })
    }

    fn bind(&self, frontend: u32, bind: u32) -> Option<BindFacts<'_>> {
        let id = BindId {
            frontend: self.proxy_id(frontend)?,
            place: bind as usize,
        };
        let line = self.runtime_config.proxy(id.frontend).binds.get(id.place)?;
        Some(BindFacts {
            name: line.name.as_deref().unwrap_or_default(),
            id: line.id,
            connections: self.count(Count::Bind(id)),
        })
    }

    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>> {
        let id = self.server_id(backend, server)?;
        let line = self.servers.at(id);
        if line.is_deleted {
            return None;
        }
        let servers = &self.ambient.shared.servers;
        let weight = servers.weight(id);
        Some(ServerFacts {
            name: &line.name,
            id: line.id,
            connections: self.count(Count::Server(id)),
            maxconn: servers.maxconn(id),
            queue: servers.waiting(id),
            maxqueue: line.maxqueue,
            is_up: servers.is_up(id) || servers.is_probed(id),
            takes_traffic: takes_traffic(servers, id),
            user_weight: weight,
            weight,
            initial_weight: servers.initial_weight(id),
        })
    }

    fn proxy_name(&self, proxy: u32) -> &str {
        self.runtime_config
            .config
            .proxies
            .get(proxy as usize)
            .map_or("", |proxy| &proxy.name)
    }

    fn proxy_id(&self, proxy: u32) -> Option<u32> {
        let proxy = self.runtime_config.config.proxies.get(proxy as usize)?;
        Some(proxy.id)
    }

    fn capture_len(&self, frontend: u32, slot: CaptureSlot) -> Option<usize> {
        let frontend = self.runtime_config.config.proxies.get(frontend as usize)?;
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
        // `#3` is the proxy with id 3.
        let id: Option<u32> = name
            .strip_prefix(b"#")
            .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        let is = |proxy: &config::model::Proxy| match id {
            Some(id) => proxy.id == id,
            None => proxy.name.as_bytes() == name,
        };
        let shared = &self.ambient.shared;
        let mut proxies = self.runtime_config.config.proxies.iter().enumerate();
        let (named, _) = proxies
            .find(|(place, proxy)| is(proxy) && has_side(proxy) && !shared.is_deleted(*place))?;
        u32::try_from(named).ok()
    }

    fn server_named(&self, backend: u32, name: &[u8]) -> Option<u32> {
        let mut servers = self.servers.servers(backend as usize);
        let (named, _) = servers.find(|(_, server)| server.name.as_bytes() == name)?;
        u32::try_from(named).ok()
    }

    fn frontend_connections(&self, proxy: u32) -> u32 {
        let proxy = self.proxy_id(proxy);
        proxy.map_or(0, |proxy| self.count(Count::Frontend(proxy)))
    }

    fn backend_connections(&self, proxy: u32) -> u32 {
        let proxy = self.proxy_id(proxy);
        proxy.map_or(0, |proxy| self.count(Count::Backend(proxy)))
    }

    fn server_name(&self, backend: u32, server: u32) -> Option<&str> {
        let server = self.server_id(backend, server)?;
        Some(&self.servers.at(server).name)
    }

    fn server_connections(&self, backend: u32, server: u32) -> u32 {
        let server = self.server_id(backend, server);
        server.map_or(0, |server| self.count(Count::Server(server)))
    }

    fn unique_id_format(&self, frontend: u32) -> Option<&sample::LogFormat> {
        let proxy = self.runtime_config.config.proxies.get(frontend as usize)?;
        proxy.unique_id_format.as_ref()
    }

    fn file_name(&self, file: u32) -> &str {
        let file = self.runtime_config.config.files.get(file as usize);
        file.map_or("", String::as_str)
    }

    fn logged(&self, frontend: u32) -> u32 {
        let frontend = self.proxy_id(frontend);
        frontend.map_or(0, |frontend| self.count(Count::Logged(frontend)))
    }

    fn hostname(&self) -> &str {
        &self.runtime_config.process.hostname
    }

    fn pid(&self) -> u32 {
        self.runtime_config.process.pid
    }

    fn thread(&self) -> u32 {
        self.ambient.worker.0
    }

    fn nbthread(&self) -> u32 {
        self.runtime_config.process.nbthread
    }

    fn actconn(&self) -> u32 {
        self.ambient.shared.clients()
    }

    fn quic_enabled(&self) -> bool {
        self.runtime_config.config.global.quic.listens
    }

    fn stopping(&self) -> bool {
        self.ambient.stopping
    }

    fn uptime_seconds(&self) -> u64 {
        self.now_ms
            .saturating_sub(self.runtime_config.process.started.ms())
            / 1000
    }

    fn local_time(&self) -> &sample::Zone {
        &self.runtime_config.process.local_time
    }

    fn rate(&self, of: Rate) -> u32 {
        let pace = match of {
            Rate::FrontendSessions(proxy) => self.proxy_id(proxy).map(Pace::Sessions),
            Rate::FrontendRequests(proxy) => self.proxy_id(proxy).map(Pace::Requests),
            Rate::BackendSessions(proxy) => self.proxy_id(proxy).map(Pace::Streams),
            Rate::ServerSessions(proxy, server) => self.server_id(proxy, server).map(Pace::Server),
        };
        pace.map_or(0, |pace| self.ambient.shared.rate(pace, self.now_ms))
    }

    fn timeouts(&self, proxy: u32) -> Option<ProxyTimeouts> {
        let proxy = self.proxy_id(proxy)?;
        let ms = self.runtime_config.timeouts(proxy);
        let or_none = |ms: u64| if ms == NEVER_MS { 0 } else { ms };
        Some(ProxyTimeouts {
            client_ms: or_none(ms.client),
            connect_ms: or_none(ms.connect),
            queue_ms: or_none(ms.queue),
            server_ms: or_none(ms.server),
            tarpit_ms: or_none(ms.tarpit),
            tunnel_ms: or_none(ms.tunnel),
            retries: self.runtime_config.proxy(proxy).retries,
        })
    }

    fn rtt_us(&self, side: Side) -> Option<u32> {
        let connection = self.connection(side)?;
        connection
            .quic_rtt_us
            .or_else(|| Some(self.tcp_info(side)?.rtt_us))
    }

    fn tcp_info(&self, side: Side) -> Option<TcpInfo> {
        self.sockets?.tcp_info(self.sock(side)?)
    }

    fn saved_syn(&self, out: &mut Vec<u8>) -> bool {
        match (self.sockets, self.client) {
            (Some(sockets), Some(client)) => sockets.saved_syn(client.sock, out),
            _ => false,
        }
    }

    fn local_addr(&self, side: Side) -> Option<Addr> {
        self.sockets?.local_addr(self.sock(side)?)
    }

    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        self.sockets?.is_local(ip)
    }

    fn cpu_usage(&self, of: CpuOf) -> u32 {
        let usage = self.sockets.map_or(0, |sockets| sockets.cpu_usage(of));
        let threads = match of {
            CpuOf::Thread => 1,
            CpuOf::Process => self.runtime_config.process.nbthread.max(1),
        };
        (usage / threads).min(100)
    }

    fn random(&self) -> u64 {
        self.ambient.random()
    }

    fn proc_var(&self, slot: u32) -> Option<Value<'static>> {
        self.runtime_config.proc_vars.get(slot)
    }

    fn change_proc_var(&self, slot: u32, change: Change) {
        let bytes = self.runtime_config.proc_vars.change(slot, change);
        if self.runtime_config.config.global.var_limits.process > 0 {
            self.ambient.shared.var_bytes_change(bytes.0, bytes.1);
        }
    }

    fn var_names(&self) -> Option<&VarNames> {
        Some(&self.runtime_config.config.var_names)
    }

    fn var_limits(&self) -> Option<&VarLimits> {
        self.runtime_config
            .limits_vars
            .then_some(&self.runtime_config.config.global.var_limits)
    }

    fn var_bytes(&self) -> usize {
        self.ambient.shared.var_bytes()
    }
}
