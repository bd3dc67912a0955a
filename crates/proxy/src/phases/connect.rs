//! Connects to the chosen server: takes an idle connection, or opens one and handles the outcome.

use std::net::SocketAddr;

use config::model::{HttpReuse, Proto, ServerAddress};
use http::Name;
use net::{Addr, Close, Connect, ConnectError, DatagramSock, Driver, Labels, SockId};
use sample::{ConnError, LogOrigin};
use tls::{Connector, Session};

use super::connect_addresses::Ends;
use super::retry::Failure;
use super::{Cause, Cx};
use crate::backend::Wanted;
use crate::ids::{ConnId, ExchangeId, ServerId};
use crate::link::{Dial, HttpMajor, NO_SOCKET, Role, Secure, Server, Socks4};
use crate::runtime_config::deadline;
use crate::shared::{BackCount, Count, Pace, Seen};
use crate::stream::{Early, Phase, ServerEnd, Step, Stream, Until};

/// How many ports of a range (`source`) are tried for one connection.
const SOURCE_PORTS_TRIED_MAX: u32 = 16;

/// The pause before the same server is tried again (manual §4.2 retries), milliseconds.
const TURN_AROUND_MS: u64 = 1000;

/// The longest head that is sent as early data, bytes. quinn-proto does not send the end of its
/// handshake while early data fills the first congestion window.
const EARLY_HEAD_BYTES_MAX: usize = 8 << 10;

/// How long a connection over QUIC may take before one over TCP is made instead, where both are
/// allowed (the Connection Attempt Delay of RFC 8305 §5), milliseconds.
const QUIC_AHEAD_MS: u64 = 250;

/// The latency that `balance least-latency` assumes for a failed connection, nanoseconds.
const FAILED_LATENCY_NS: u64 = 1_000_000_000;

/// The names of a connection to a server.
#[derive(Debug, Default)]
struct Names {
    /// The name for SNI.
    asked: Option<Box<str>>,
    /// The name that distinguishes it from other idle connections (`pool-conn-name`).
    pool: Box<[u8]>,
    /// The addresses that depend on the client.
    ends: Ends,
}

/// A TLS session with a server; with this ALPN protocol only, if one is given.
fn connect(
    connector: &Connector,
    proto: Option<Proto>,
    name: Option<&str>,
) -> Result<Session, tls::Failure> {
    match proto {
        Some(Proto::H1) if !connector.protocols().is_empty() => {
            connector.with_protocols(&[b"http/1.1"]).connect(name)
        }
        Some(Proto::H2) => connector.with_protocols(&[b"h2"]).connect(name),
        Some(Proto::H1 | Proto::Tcp) | None => connector.connect(name),
    }
}

/// Whether a request may be sent as early data, which anybody may repeat: as it is sent it asks only
/// to read (RFC 8470 §2), and its head is here and stays.
fn may_be_early(stream: &Stream) -> bool {
    stream.txn.is_http
        && stream.sent_method().is_safe()
        && stream.up.done
        && stream.replay.body.is_empty()
        && !stream.wants_tunnel
        && stream.route.early != Early::Barred
        && stream.request.wire_bytes() <= EARLY_HEAD_BYTES_MAX
}

/// The host of a request, without its port.
fn asked_host(stream: &Stream) -> Option<&[u8]> {
    let host = stream.request.get(Name::Host)?;
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let before = host.len() - digits.count();
    let name = match host[..before].split_last() {
        Some((b':', name)) => name,
        _ => host,
    };
    Some(name).filter(|name| !name.is_empty())
}

impl<D: Driver> Cx<'_, D> {
    /// Gets a connection to the chosen server: an idle one where that is allowed, else a new one.
    pub(super) fn connect_server(&mut self, stream: &mut Stream) -> Step {
        if stream.server.link().is_some() {
            return Step::Wait; // it does not stand yet
        }
        let Some(server) = stream.route.target else {
            return stream.go(Phase::SelectServer);
        };
        self.respond(stream);
        let now_ms = self.now_ms();
        stream.txn.timing.queued_ms.get_or_insert(now_ms);
        // Most requests need nothing particular of a connection.
        let is_plain = self.servers.at(server).has_equal_conns()
            && !stream.wants_tunnel
            && self.runtime_config.proxy(stream.backend).source.is_none();
        if is_plain && let Some(link) = self.idle_connection(stream, server, &[], &[]) {
            return self.reuse(stream, link, server, now_ms);
        }
        self.connect_anew(stream, server, now_ms)
    }

    /// Uses an idle connection. The caller has noted what it has that plain ones have not: TLS, and
    /// another destination than the server's address.
    #[inline(always)]
    fn reuse(
        &mut self,
        stream: &mut Stream,
        link: ExchangeId,
        server: ServerId,
        now_ms: u64,
    ) -> Step {
        stream.route.on_reused = true;
        self.attach(stream, link, server);
        stream.txn.server_reused = true;
        let links = &mut self.core.links;
        if let Some(conn) = links.connection_of(link) {
            stream.account.server = links.speaks(conn);
            stream.txn.server_glitches = links.glitches(conn);
        }
        stream.txn.timing.connected_ms = Some(now_ms);
        self.trace_try(stream);
        self.log_at(stream, LogOrigin::Connect);
        stream.go(Phase::SendRequest)
    }

    /// Looks for an idle connection with the names and the header that the request needs, else
    /// opens one.
    #[inline(never)]
    fn connect_anew(&mut self, stream: &mut Stream, server: ServerId, now_ms: u64) -> Step {
        let header = self.proxy_header(stream, server);
        let mut names = self.server_names(stream, server);
        let proto = self.websocket_proto(stream, server);
        if let Some(proto) = proto {
            let kind = if proto == Proto::H2 { b"h2" } else { b"h1" };
            names.pool = [&names.pool[..], b"\0", kind].concat().into();
        }
        if !header.is_empty() {
            // Only requests with the same header may reuse the connection.
            names.pool = [&names.pool[..], b"\0", &header].concat().into();
        }
        if let Some(link) = self.idle_connection(stream, server, &header, &names.pool) {
            stream.txn.server_dst = names.ends.to;
            let kept = self.core.links.server(link);
            stream.txn.server_tls = kept.and_then(|kept| kept.tls.clone());
            return self.reuse(stream, link, server, now_ms);
        }
        if let Some(until) = self.ask_for_idle(stream, server, &names.pool) {
            return stream.go(Phase::TakeOver(until));
        }
        let line = self.servers.at(server);
        let is_quic = line.is_quic;
        if is_quic && !self.leaves_quic(server, now_ms) {
            return self.connect_over_quic(stream, server, names);
        }
        let speaks_tls = line.options.tls().is_some();
        let session = match speaks_tls.then(|| self.runtime_config.tls.server(server)) {
            None => None,
            // A server that is still being added.
            Some(None) => return self.no_handshake(stream, ConnError::TlsHandshake),
            // A name that cannot be sent as SNI cannot be verified either.
            Some(Some(connector)) => {
                let over_tcp = if is_quic { connector.over_tcp() } else { None };
                let connector = over_tcp.unwrap_or(&connector);
                let Some(place) = self.core.ambient.shared.enter_tls() else {
                    return self.no_handshake(stream, ConnError::TlsTooMany);
                };
                match connect(connector, proto, names.asked.as_deref()) {
                    Ok(session) => Some(Secure::new(session, place)),
                    Err(_) => return self.no_handshake(stream, ConnError::TlsHandshake),
                }
            }
        };
        match self.open_server(stream, server, &names.ends, false) {
            Ok(sock) => {
                let link = self.add_server(stream, server, sock, (header, names.pool));
                self.secure_server(stream, link, session);
                if let Some(server) = self.core.links.server_mut(link) {
                    server.proto = proto;
                }
                self.await_server(stream, link, server)
            }
            Err(error) => self.connect_failed(stream, error),
        }
    }

    /// Waits until a new connection is established.
    fn await_server(&mut self, stream: &mut Stream, link: ConnId, server: ServerId) -> Step {
        stream.route.on_reused = false;
        // An attempt before may have been on a shared connection. What follows one never reuses one.
        stream.account.server = HttpMajor::H1;
        stream.txn.server_glitches = 0;
        self.attach(stream, link.only_exchange(), server);
        self.accounts()
            .tell_server(stream, server, BackCount::Connects);
        self.trace_try(stream);
        let connect_ms = stream.connect_ms(self.runtime_config);
        stream.phase = Phase::Connect(Until(deadline(self.now(), connect_ms)));
        Step::Wait
    }

    /// Whether connections to a server over QUIC may be made over TCP instead.
    fn may_use_tcp(&self, server: ServerId) -> bool {
        let words = self.servers.at(server).options.tls();
        words.is_some_and(|words| !words.alpn_of_tcp().is_empty())
    }

    /// Whether a connection to a server over QUIC is made over TCP now, because QUIC did not get
    /// through before.
    fn leaves_quic(&self, server: ServerId, now_ms: u64) -> bool {
        let servers = &self.core.ambient.shared.servers;
        self.may_use_tcp(server) && !servers.uses_quic(server, now_ms)
    }

    /// Opens a connection over QUIC, which the engine begins.
    fn connect_over_quic(&mut self, stream: &mut Stream, server: ServerId, names: Names) -> Step {
        let connector = self.runtime_config.tls.server(server);
        let name = names.asked.as_deref();
        let options = &self.servers.at(server).options;
        let takes_early = options.tls().is_some_and(|tls| tls.options.allow_0rtt);
        let is_early = takes_early && may_be_early(stream);
        let tls = connector.map(|connector| {
            if is_early {
                connector.quic_early(name)
            } else {
                connector.quic(name)
            }
        });
        // As over TCP: a server that is still being added, or a name that is none.
        let Some(Ok(tls)) = tls else {
            return self.no_handshake(stream, ConnError::TlsHandshake);
        };
        let Some(place) = self.core.ambient.shared.enter_tls() else {
            return self.no_handshake(stream, ConnError::TlsTooMany);
        };
        let quic = &self.runtime_config.quic;
        let client = quic.client(&options.quic, takes_early);
        let sock = match self.open_server(stream, server, &names.ends, true) {
            Ok(sock) => sock,
            Err(error) => return self.connect_failed(stream, error),
        };
        let Some(Addr::Inet(to)) = stream.txn.server_dst else {
            self.io.close_datagrams(sock);
            return self.connect_failed(stream, ConnectError::Refused);
        };
        let link = self.add_server(stream, server, NO_SOCKET, (Box::default(), names.pool));
        self.core.links.dial(Dial {
            conn: link,
            backend: server.backend,
            sock,
            to,
            client,
            tls,
            place,
        });
        let step = self.await_server(stream, link, server);
        if self.may_use_tcp(server) {
            stream.route.tries_quic = true;
            let ahead_ms = deadline(self.now(), QUIC_AHEAD_MS);
            if let Phase::Connect(Until(until_ms)) = &mut stream.phase {
                *until_ms = ahead_ms.min(*until_ms);
            }
        }
        if self.runtime_config.config.needs.server_source {
            stream.txn.server_src = self.io.datagrams_addr(sock);
        }
        step
    }

    /// The protocol of a stream's connection to a server where it differs from that of the server's
    /// other connections: `ws`, for WebSocket (manual §5.2).
    fn websocket_proto(&self, stream: &Stream, server: ServerId) -> Option<Proto> {
        if !stream.wants_tunnel || !stream.request.is_websocket() {
            return None;
        }
        let line = self.servers.at(server);
        let words = line.options.tls();
        let connector = words.and_then(|_| self.runtime_config.tls.server(server));
        let protocols = connector.as_deref().map_or(&[][..], Connector::protocols);
        let has = |name: &[u8]| protocols.iter().any(|each| each == name);
        match line.options.ws {
            Some(proto) => Some(proto),
            None if line.proto.is_some() => None,
            None => (has(b"h2") && has(b"http/1.1")).then_some(Proto::H1),
        }
    }

    /// The names of a stream's connection to a server: the one for SNI, and the one that
    /// distinguishes it from other idle connections.
    #[inline]
    fn server_names(&mut self, stream: &mut Stream, server: ServerId) -> Names {
        let options = &self.servers.at(server).options;
        let is_fixed = !self.has_client_ends(stream, server);
        if is_fixed && options.tls().is_none() && options.pool_conn_name.is_none() {
            Names::default()
        } else {
            self.find_server_names(stream, server)
        }
    }

    fn find_server_names(&mut self, stream: &mut Stream, server: ServerId) -> Names {
        let options = &self.servers.at(server).options;
        let words = options.tls();
        let mut names = Names::default();
        let sni = words.and_then(|words| words.sni.as_ref());
        let mut value = |expr| {
            let found = self.with_eval(stream, |eval, stream| {
                let mut text = Vec::new();
                eval.binary(stream, expr, &mut text).then_some(text)
            });
            found.flatten().filter(|text| !text.is_empty())
        };
        let asked = sni.and_then(&mut value);
        let pool = options.pool_conn_name.as_ref().and_then(value);
        let is_auto = words.is_some_and(|words| words.sni_auto && words.sni.is_none());
        let asked = if is_auto && stream.txn.is_http {
            asked_host(stream).map(<[u8]>::to_vec)
        } else {
            asked
        };
        names.asked = asked.map(|name| String::from_utf8_lossy(&name).into());
        names.pool = match (pool, &names.asked) {
            (Some(pool), _) => pool.into(),
            (None, Some(asked)) => asked.as_bytes().into(),
            (None, None) => Box::default(),
        };
        if self.has_client_ends(stream, server) {
            names.ends = self.connect_addresses(stream, server);
            names.pool = names.ends.name(&names.pool).into();
        }
        names
    }

    /// Takes an idle connection out of the pool, and begins an exchange on it.
    #[inline]
    fn idle_connection(
        &mut self,
        stream: &Stream,
        server: ServerId,
        header: &[u8],
        name: &[u8],
    ) -> Option<ExchangeId> {
        if !stream.txn.is_http || stream.route.fresh_only {
            return None;
        }
        let wanted = Wanted {
            server,
            client: stream.client?,
            is_first: stream.txn.first_request,
            reuse: self.runtime_config.proxy(stream.backend).http_reuse,
            labels: stream.route.labels,
            header,
            name,
        };
        let core = &mut *self.core;
        let link = core
            .backends
            .take_idle(&core.ambient, &mut core.links, &wanted)?;
        core.open_exchange(link)
    }

    /// Gives a new connection its TLS session. Where a SOCKS4 proxy is used, the session waits
    /// until the SOCKS4 handshake is done.
    fn secure_server(&mut self, stream: &Stream, link: ConnId, secure: Option<Box<Secure>>) {
        let Some(entry) = self.core.links.get_mut(link) else {
            return;
        };
        match (&mut entry.role, &stream.txn.server_dst) {
            (Role::Server(server), Some(to)) if self.servers.at(server.server).socks4.is_some() => {
                let to = to.clone();
                server.socks4 = Some(Box::new(Socks4 { to, secure }));
            }
            _ => entry.secure = secure,
        }
    }

    fn open_server(
        &mut self,
        stream: &mut Stream,
        server: ServerId,
        ends: &Ends,
        over_quic: bool,
    ) -> Result<SockId, ConnectError> {
        let backend = self.runtime_config.proxy(stream.backend);
        let line = self.servers.at(server);
        let to = match (&ends.to, &line.address) {
            (Some(addr), _) | (None, ServerAddress::Fixed(addr)) => addr,
            // A server without a port uses the client's, and there is none here.
            (None, ServerAddress::PortOffset { .. }) => return Err(ConnectError::Refused),
        };
        stream.txn.server_dst = Some(to.clone());
        let source = self.source_of(stream, server);
        let from = ends.from.as_ref().or(source.map(|source| &source.addr));
        let interface = source.and_then(|source| source.interface.as_deref());
        self.make_room(server);
        let fast_open = line.tfo && self.sends_at_once(stream, server);
        let connect = |io: &mut D, from: Option<&Addr>| {
            let connect = Connect {
                to: line.socks4.as_ref().unwrap_or(to),
                from,
                is_foreign: ends.from.is_some(),
                fast_open,
                interface,
                keepalive: (backend.options.srvtcpka).then_some(backend.options.server_keepalive),
                tcp: &line.tcp,
                labels: stream.route.labels,
            };
            if over_quic {
                io.connect_datagrams(&connect)
            } else {
                io.connect(&connect)
            }
        };
        let ports = source.and_then(|source| source.ports.as_deref());
        let (Some(ports), Some(Addr::Inet(addr)), None) = (ports, from, &ends.from) else {
            stream.txn.server_src = from.cloned();
            return connect(self.io, from);
        };
        let mut tries = ports.count().min(SOURCE_PORTS_TRIED_MAX);
        loop {
            let from = Addr::Inet(SocketAddr::new(addr.ip(), ports.next()));
            let sock = connect(self.io, Some(&from));
            tries -= 1;
            // Another connection to the server uses this port.
            if tries > 0 && sock == Err(ConnectError::Resource) {
                continue;
            }
            stream.txn.server_src = Some(from);
            return sock;
        }
    }

    /// Whether data is sent as soon as a new connection is established. With `tfo` the SYN waits
    /// for data and would otherwise never be sent. As in HAProxy, retries do not use it.
    fn sends_at_once(&self, stream: &Stream, server: ServerId) -> bool {
        let line = self.servers.at(server);
        let client = stream.client.and_then(|client| self.core.links.get(client));
        let greets =
            line.options.tls().is_some() || line.send_proxy.is_on() || line.socks4.is_some();
        let has_data = || client.is_some_and(|client| !client.input.is_empty());
        stream.route.tries == 0 && (stream.txn.is_http || greets || has_data())
    }

    /// Closes an idle connection to make room for a new one, where descriptors are scarce or the
    /// server has reached its limit of connections (`strict-maxconn`).
    fn make_room(&mut self, server: ServerId) {
        let core = &mut *self.core;
        let shared = &core.ambient.shared;
        let idle = if self.servers.at(server).strict_maxconn && shared.is_full_of_conns(server) {
            core.backends.idle_of(&core.links, server)
        } else if shared.is_full_of_server_conns() {
            core.backends.any_idle(&core.links)
        } else {
            return;
        };
        match idle {
            Some(idle) => self.close_server(idle),
            None => {
                let ambient = &core.ambient;
                ambient
                    .shared
                    .ask_for_room(ambient.worker, &mut |worker| self.io.wake(worker));
            }
        }
    }

    /// Closes idle server connections, because another worker needs room.
    #[cold]
    pub fn close_idle_servers(&mut self) {
        while let Some(idle) = self.core.backends.any_idle(&self.core.links) {
            self.close_server(idle);
        }
    }

    fn add_server(
        &mut self,
        stream: &Stream,
        server: ServerId,
        sock: SockId,
        (header, name): (Box<[u8]>, Box<[u8]>),
    ) -> ConnId {
        let labels = stream.route.labels;
        // A connection whose PROXY header names the client is private to that client. With
        // `http-reuse always` any client may reuse it, because another client may send the same
        // header.
        let private = match self.runtime_config.proxy(stream.backend).http_reuse {
            HttpReuse::Never => true,
            HttpReuse::Safe | HttpReuse::Aggressive => self.servers.at(server).send_proxy.is_on(),
            HttpReuse::Always => false,
        };
        let private = private || labels != Labels::default();
        let server = Server {
            server,
            connecting: true,
            // The server may have entered maintenance after it was chosen.
            is_ending: self.core.ambient.shared.servers.is_in_maintenance(server),
            served: 0,
            private,
            pool_place: None,
            is_shared_idle: false,
            shared_place: None,
            is_pool_counted: false,
            keeper: None,
            header,
            name,
            tls: None,
            proto: None,
            labels,
            socks4: None,
        };
        let core = &mut *self.core;
        core.ambient.shared.add_server_conn();
        core.count(Count::Connections(server.server));
        core.links
            .add_server(sock, server, stream.txn.is_http, &mut core.timers)
    }

    /// Attaches a connection to a stream and counts it.
    #[inline]
    fn attach(&mut self, stream: &mut Stream, link: ExchangeId, server: ServerId) {
        stream.server = ServerEnd::Link(link);
        stream.up.is_blocked = false;
        stream.txn.server = Some(server.number());
        self.core.links.set_stream(link, Some(stream.id));
        if self.runtime_config.config.needs.server_addresses() {
            self.note_addresses(stream, link, server);
        }
        if stream.route.counted.is_none() {
            stream.route.counted = Some(server);
            self.core.count(Count::Server(server));
        }
        self.mark(Pace::Server(server));
    }

    /// Notes the addresses of a stream's connection to a server that the configuration reads.
    #[inline(never)]
    fn note_addresses(&self, stream: &mut Stream, link: ExchangeId, server: ServerId) {
        let (links, needs) = (&self.core.links, &self.runtime_config.config.needs);
        if needs.server_source {
            stream.txn.server_src = match (links.quic_of(link), links.get(link)) {
                (Some(quic), _) => self.quic_source(quic.sock),
                (None, Some(entry)) => self.io.local_addr(entry.sock),
                (None, None) => None,
            };
        }
        // A new connection has noted its destination. A reused one has, if it may differ from the
        // server's address; else the address that is noted is that of an earlier attempt.
        let line = self.servers.at(server);
        if needs.server_destination
            && stream.route.on_reused
            && (line.has_equal_conns() || stream.txn.server_dst.is_none())
            && let ServerAddress::Fixed(own) = &line.address
        {
            stream.txn.server_dst = Some(own.clone());
        }
    }

    /// The local address of a connection over QUIC to a server.
    fn quic_source(&self, sock: DatagramSock) -> Option<Addr> {
        match sock {
            DatagramSock::Server(sock) => self.io.datagrams_addr(sock),
            DatagramSock::Listener(_) => None,
        }
    }

    /// The connection to the server is established.
    pub fn server_connected(&mut self, stream: &mut Stream) {
        let Some(link) = stream.server.link() else {
            return;
        };
        stream.txn.timing.connected_ms = Some(self.now_ms());
        stream.txn.server_error = ConnError::None;
        self.observe(stream, Seen::Connected);
        let server = self.core.links.server(link);
        stream.txn.server_tls = server.and_then(|server| server.tls.clone());
        self.log_at(stream, LogOrigin::Connect);
        let Some(server) = self.core.links.server_mut(link) else {
            return;
        };
        server.connecting = false;
        let server = server.server;
        if std::mem::take(&mut stream.route.tries_quic) {
            let (servers, now_ms) = (&self.core.ambient.shared.servers, self.now_ms());
            servers.told_of_quic(server, true, now_ms);
        }
        stream.phase = if stream.txn.is_http {
            Phase::SendRequest
        } else {
            Phase::OpenTunnel
        };
        self.run(stream);
    }

    /// A connection attempt failed: tries the same server after a pause, tries another one, or
    /// fails the request.
    fn connect_failed(&mut self, stream: &mut Stream, error: ConnectError) -> Step {
        let why = match error {
            ConnectError::Refused => ConnError::Refused,
            ConnectError::Resource => ConnError::Socket,
            ConnectError::Timeout => ConnError::None,
        };
        self.connect_failed_by(stream, error, why)
    }

    fn connect_failed_by(
        &mut self,
        stream: &mut Stream,
        error: ConnectError,
        why: ConnError,
    ) -> Step {
        let retry_on = &self.runtime_config.proxy(stream.backend).retry_on;
        stream.txn.server_error = why;
        if stream.route.early == Early::Sent {
            stream.route.early = Early::Barred;
        }
        if std::mem::take(&mut stream.route.tries_quic)
            && let Some(server) = stream.route.target
        {
            // The same attempt goes on over TCP.
            let (servers, now_ms) = (&self.core.ambient.shared.servers, self.now_ms());
            servers.told_of_quic(server, false, now_ms);
            return stream.go(Phase::Connect(Until::default()));
        }
        if error != ConnectError::Resource {
            self.observe(stream, Seen::NotConnected);
        }
        let balance = &self.runtime_config.proxy(stream.backend).balance;
        if balance.facts().uses_latency {
            let now_ns = self.now().mono_ns;
            stream.route.asked_ns = now_ns.saturating_sub(FAILED_LATENCY_NS);
            self.observe_latency(stream, now_ns);
        }
        let timeout = error == ConnectError::Timeout;
        stream.route.tries += 1;
        let is_over = stream.route.tries > stream.retries_max(self.runtime_config);
        if is_over || !retry_on.conn_failure || !self.budget_allows(stream) {
            self.fail(stream, Cause::NotConnected { timeout });
            return Step::Wait;
        }
        stream.txn.retries += 1;
        if self.may_redispatch(stream) {
            // Counted as such, and not as a retry.
            self.redispatch(stream);
            return stream.go(Phase::SelectServer);
        }
        if let Some(server) = stream.route.target {
            self.accounts()
                .tell_server(stream, server, BackCount::Retries);
        }
        // Refusals come at once, so without a pause all tries fail within the same moment. A
        // time-out was already a pause.
        if timeout {
            return stream.go(Phase::Connect(Until::default()));
        }
        let pause_ms = TURN_AROUND_MS.min(stream.connect_ms(self.runtime_config));
        stream.go(Phase::TurnAround(Until(deadline(self.now(), pause_ms))))
    }

    /// The connection was not established in time.
    pub(super) fn connect_timeout(&mut self, stream: &mut Stream) {
        self.drop_server(stream);
        let step = self.connect_failed(stream, ConnectError::Timeout);
        self.go_on(stream, step);
    }

    /// The connection was refused or failed otherwise.
    pub(super) fn connect_lost(&mut self, stream: &mut Stream, why: Close) {
        self.drop_server(stream);
        let error = match why {
            Close::Refused => ConnectError::Refused,
            Close::Reset => ConnectError::Resource,
        };
        let step = self.connect_failed(stream, error);
        self.go_on(stream, step);
    }

    /// The connection is established, and its TLS handshake failed.
    pub fn handshake_failed(&mut self, stream: &mut Stream, why: ConnError) {
        let server = stream
            .server
            .link()
            .and_then(|link| self.core.links.server(link));
        stream.txn.server_tls = server.and_then(|server| server.tls.clone());
        self.drop_server(stream);
        let step = self.no_handshake(stream, why);
        self.go_on(stream, step);
    }

    fn no_handshake(&mut self, stream: &mut Stream, why: ConnError) -> Step {
        self.connect_failed_by(stream, ConnectError::Resource, why)
    }

    fn go_on(&mut self, stream: &mut Stream, step: Step) {
        if step == Step::Go {
            self.run(stream);
        }
    }

    /// The server closed before the head of its response was complete. `began`: it sent a part of
    /// the head.
    pub(super) fn no_response(&mut self, stream: &mut Stream, began: bool) {
        self.end_server_after(stream);
        if self.may_resend(stream) {
            self.drop_server(stream);
            stream.route.fresh_only = true;
            stream.phase = Phase::Connect(Until::default());
            return self.run(stream);
        }
        // No response counts as a server failure, a partial head as an invalid response.
        let failure = if began { Failure::Junk } else { Failure::Empty };
        let retries = stream.replay.retriable && stream.up.done;
        if retries && self.retry(stream, failure) {
            return;
        }
        let cause = match (stream.route.on_reused && !retries, began) {
            (true, _) => Cause::StaleServer,
            (false, true) => Cause::BadResponse,
            (false, false) => Cause::EmptyResponse,
        };
        self.fail(stream, cause);
    }

    /// The server failed before its first byte. Whether the request may be sent again on another
    /// connection.
    fn may_resend(&self, stream: &Stream) -> bool {
        stream.route.on_reused
            && stream.replay.resendable
            && !stream.answered
            && stream.sent_method().is_idempotent()
    }
}
