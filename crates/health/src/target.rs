//! Targets of checks: a server, with the address, protocol and timeouts of its checks.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::model::{
    BackendCheck, CheckConnect, CheckPort, CheckProto, CheckScript, Proto, Server, ServerAddress,
    Source,
};
use net::Addr;
use proxy::{CheckPlan, Checker, ServerRecord};
use tls::Connector;

use crate::Control;

/// The target of a check.
pub(crate) struct Target {
    pub backend: usize,
    pub place: usize,
    pub checker: Checker,
    pub check: BackendCheck,
    pub line: Arc<Server>,
    /// The server's current address.
    address: ServerAddress,
    /// The server was added at run time: its checks use TLS and PROXY only if configured, as in
    /// HAProxy.
    is_added: bool,
    pub timeouts: Timeouts,
    pub source: Option<Source>,
    never_local: bool,
    /// The connector for TLS connections that only checks make, created on first use.
    connector: OnceCell<Option<Connector>>,
}

/// Time limits of steps.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    /// From the start of the connection (`inter`).
    pub inter: Duration,
    /// Until the connection is established, if `timeout check` is set.
    pub connect: Option<Duration>,
    /// From when the connection is established (`timeout check`).
    pub check: Option<Duration>,
}

/// The PROXY header of a connection.
#[derive(Clone, Copy)]
pub(crate) enum ProxyHeader {
    /// The text header, with the ends of the check's connection.
    V1,
    /// The binary header; for our own connections it contains only `LOCAL`.
    V2 {
        /// It contains no addresses.
        is_local: bool,
    },
}

/// The destination of a check's connection, and how to connect.
pub(crate) struct Way {
    pub to: Addr,
    pub tls: bool,
    pub sni: Option<String>,
    pub alpn: Option<Vec<Vec<u8>>>,
    pub proxy_header: Option<ProxyHeader>,
    pub socks4: Option<Addr>,
    pub proto: Option<CheckProto>,
    pub source: Option<Source>,
    /// It is a connection over QUIC.
    pub is_quic: bool,
}

impl Target {
    /// A check of a server; none if the server has no check of this kind.
    pub fn new(
        control: &Control,
        backend: usize,
        place: usize,
        record: &ServerRecord,
        checker: Checker,
    ) -> Option<Target> {
        let proxy = &control.runtime_config.config.proxies[backend];
        let line = record.line();
        let checks = &line.checks;
        let (is_there, inter, check) = match checker {
            Checker::Health => {
                let of_backend = proxy.check.clone()?;
                let own = checks.script.clone().map(BackendCheck::Script);
                (checks.enabled, checks.inter, own.unwrap_or(of_backend))
            }
            Checker::Agent => {
                let script = config::build::health::agent_script(&checks.agent.send);
                let check = BackendCheck::Script(Arc::new(script));
                (checks.agent.enabled, checks.agent.inter, check)
            }
        };
        is_there.then(|| Target {
            backend,
            place,
            checker,
            check,
            line: Arc::clone(line),
            address: record.address.clone(),
            is_added: record.is_added(),
            timeouts: Timeouts {
                inter,
                connect: proxy.timeout.check.and(proxy.timeout.connect),
                check: proxy.timeout.check,
            },
            source: line.source.clone().or_else(|| proxy.source.clone()),
            connector: OnceCell::new(),
            never_local: control.runtime_config.config.global.checks.never_local,
        })
    }

    /// Whether both are the same check of the same server.
    pub fn is_same(&self, other: &Target) -> bool {
        Arc::ptr_eq(&self.line, &other.line) && self.address == other.address
    }

    /// The connector for TLS connections to the server that only its checks make.
    pub fn connector(&self, control: &Control) -> Option<Connector> {
        let make = || {
            let proxy = &control.runtime_config.config.proxies[self.backend];
            let made = control.runtime_config.tls.of_checks(proxy, &self.line);
            // Errors in files were reported at the start.
            made.ok().flatten()
        };
        self.connector.get_or_init(make).clone()
    }

    /// When the next check is due, and whether it may run.
    pub fn plan(&self, control: &Control) -> CheckPlan {
        control
            .shared
            .check_plan(self.backend, self.place, self.checker)
    }

    /// The script, if the check has one.
    pub fn script(&self) -> Option<&CheckScript> {
        match &self.check {
            BackendCheck::Script(script) => Some(script),
            BackendCheck::External(_) => None,
        }
    }

    /// The address and port of the server itself; port 0 if it has none.
    pub fn server_addr(&self) -> Addr {
        match &self.address {
            ServerAddress::Fixed(addr) => addr.clone(),
            ServerAddress::PortOffset { ip, .. } => Addr::Inet(SocketAddr::new(*ip, 0)),
        }
    }

    /// The destination of checks whose rules do not give one.
    pub fn check_addr(&self) -> Addr {
        let checks = &self.line.checks;
        let (addr, port) = match self.checker {
            Checker::Health => (checks.addr.as_ref(), checks.port),
            Checker::Agent => {
                let addr = checks.agent.addr.as_ref().or(checks.addr.as_ref());
                (addr, checks.agent.port)
            }
        };
        let of_server = self.server_addr();
        let port = match (port, addr, &of_server) {
            (1.., _, _) => port,
            (0, Some(Addr::Inet(addr)), _) if addr.port() > 0 => addr.port(),
            (0, _, Addr::Inet(addr)) => addr.port(),
            (0, _, Addr::Unix(_)) => 0,
        };
        with_port(addr.unwrap_or(&of_server), port)
    }

    /// Whether checks use TLS if no rule says otherwise.
    fn uses_tls(&self) -> bool {
        let words = self.line.tls_words.as_deref();
        let of_traffic = words.is_some_and(|words| words.ssl);
        let of_checks = words.and_then(|words| words.check.ssl);
        match (self.checker, of_checks) {
            (Checker::Agent, _) => false,
            (Checker::Health, Some(asked)) => asked,
            (Checker::Health, None) => of_traffic && self.is_as_traffic(),
        }
    }

    /// Whether checks are made over QUIC if no rule says otherwise: an address or port of their own is
    /// that of another service, over TCP. A server that traffic reaches over TCP too is checked there:
    /// it is up where QUIC does not get through.
    fn uses_quic(&self) -> bool {
        let checks = &self.line.checks;
        let has_own = checks.port != 0 || checks.addr.is_some();
        let words = self.line.tls_words.as_deref();
        let has_tcp = words.is_some_and(|words| !words.alpn_of_tcp().is_empty());
        self.line.is_quic && self.checker == Checker::Health && !has_own && !has_tcp
    }

    /// Whether checks connect as traffic does: a check with its own address or port goes to another
    /// service.
    fn is_as_traffic(&self) -> bool {
        let checks = &self.line.checks;
        !self.is_added && checks.port == 0 && checks.addr.is_none()
    }

    /// Whether checks begin with a PROXY header if no rule says otherwise.
    fn sends_proxy(&self) -> bool {
        let checks = &self.line.checks;
        let of_traffic = self.line.send_proxy.is_on() && self.is_as_traffic();
        self.checker == Checker::Health && (checks.send_proxy || of_traffic)
    }

    fn proxy_header(&self) -> ProxyHeader {
        if self.line.send_proxy.v2 {
            ProxyHeader::V2 {
                is_local: !self.never_local,
            }
        } else {
            ProxyHeader::V1
        }
    }

    /// The protocol of checks if no rule says otherwise.
    fn proto(&self) -> Option<CheckProto> {
        let of_traffic = self.line.proto.map(|proto| match proto {
            Proto::H1 => CheckProto::H1,
            Proto::H2 => CheckProto::H2,
            Proto::Tcp => CheckProto::None,
        });
        self.line.checks.proto.or(of_traffic)
    }

    /// How to make a connection that a rule opens. `port`: the value of the rule's expression.
    /// `host`: the name in the request that follows.
    pub fn way(&self, connect: &CheckConnect, port: Option<u16>, host: Option<String>) -> Way {
        let checks = &self.line.checks;
        let words = self.line.tls_words.as_deref();
        let default = self.check_addr();
        let port = match (&connect.port, port) {
            (Some(CheckPort::Fixed(port)), _) => *port,
            (_, Some(port)) => port,
            _ => match (&connect.addr, &default) {
                (Some(Addr::Inet(addr)), _) if addr.port() > 0 => addr.port(),
                (_, Addr::Inet(addr)) => addr.port(),
                (_, Addr::Unix(_)) => match self.server_addr() {
                    Addr::Inet(addr) => addr.port(),
                    Addr::Unix(_) => 0,
                },
            },
        };
        let to = with_port(connect.addr.as_ref().unwrap_or(&default), port);
        let is_default = connect.is_default;
        let tls = connect.ssl || (is_default && self.uses_tls());
        let is_quic = is_default && self.uses_quic();
        let of_line = |tls: &config::model::ServerTls| tls.check.sni.clone();
        let default_sni = words.filter(|_| is_default).and_then(of_line);
        let auto = host.filter(|_| words.is_none_or(|words| !words.check.no_sni_auto));
        let default_alpn = || {
            let words = words.filter(|_| is_default)?;
            words.check.alpn.clone()
        };
        let via_socks4 = connect.via_socks4 || (is_default && checks.via_socks4);
        Way {
            to,
            tls: tls || is_quic,
            is_quic,
            sni: connect.sni.clone().or(default_sni).or(auto),
            alpn: connect.alpn.clone().or_else(default_alpn),
            proxy_header: (connect.send_proxy || (is_default && self.sends_proxy()))
                .then(|| self.proxy_header()),
            socks4: self.line.socks4.clone().filter(|_| via_socks4),
            proto: connect
                .proto
                .or_else(|| self.proto().filter(|_| is_default)),
            source: self.source.clone(),
        }
    }
}

fn with_port(addr: &Addr, port: u16) -> Addr {
    match addr {
        Addr::Inet(addr) => Addr::Inet(SocketAddr::new(addr.ip(), port)),
        Addr::Unix(_) => addr.clone(),
    }
}
