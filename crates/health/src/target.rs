//! What is checked: a server with where its checks go to, how they speak, and how long they may take.

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

/// See the module.
pub(crate) struct Target {
    pub backend: usize,
    pub place: usize,
    pub checker: Checker,
    pub check: BackendCheck,
    pub line: Arc<Server>,
    /// Where the server is now.
    address: ServerAddress,
    /// It came while traffic ran: its checks speak TLS and PROXY only where they are told to, as in HAProxy.
    is_added: bool,
    pub timeouts: Timeouts,
    pub source: Option<Source>,
    never_local: bool,
    /// Who speaks TLS for checks alone, once it is needed.
    connector: OnceCell<Option<Connector>>,
}

/// How long steps may take.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    /// From the connection's beginning (`inter`).
    pub inter: Duration,
    /// Until it stands, where `timeout check` is set.
    pub connect: Option<Duration>,
    /// From when it stands (`timeout check`).
    pub check: Option<Duration>,
}

/// The PROXY header of a connection.
#[derive(Clone, Copy)]
pub(crate) enum ProxyHeader {
    /// The text header, with the ends of the check's connection.
    V1,
    /// The binary header; one of ours says just that.
    V2 {
        /// It names no addresses.
        is_local: bool,
    },
}

/// Where a connection of a check goes to, and how.
pub(crate) struct Way {
    pub to: Addr,
    pub tls: bool,
    pub sni: Option<String>,
    pub alpn: Option<Vec<Vec<u8>>>,
    pub proxy_header: Option<ProxyHeader>,
    pub socks4: Option<Addr>,
    pub proto: Option<CheckProto>,
    pub source: Option<Source>,
}

impl Target {
    /// A check of a server; none where it has none of this kind.
    pub fn new(
        control: &Control,
        (backend, place): (usize, usize),
        record: &ServerRecord,
        checker: Checker,
    ) -> Option<Target> {
        let proxy = &control.running.config.proxies[backend];
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
            never_local: control.running.config.global.checks.never_local,
        })
    }

    /// Whether it is the check of the same server at the same place.
    pub fn is_same(&self, other: &Target) -> bool {
        Arc::ptr_eq(&self.line, &other.line) && self.address == other.address
    }

    /// Who speaks TLS with the server for its checks alone.
    pub fn connector(&self, control: &Control) -> Option<Connector> {
        let make = || {
            let proxy = &control.running.config.proxies[self.backend];
            let made = control.running.tls.of_checks(proxy, &self.line);
            // What is wrong with a file was told at the start.
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

    /// The script, where the check is one.
    pub fn script(&self) -> Option<&CheckScript> {
        match &self.check {
            BackendCheck::Script(script) => Some(script),
            BackendCheck::External(_) => None,
        }
    }

    /// The address and the port of the server itself; port 0 where it has none.
    pub fn server_addr(&self) -> Addr {
        match &self.address {
            ServerAddress::Fixed(addr) => addr.clone(),
            ServerAddress::PortOffset { ip, .. } => Addr::Inet(SocketAddr::new(*ip, 0)),
        }
    }

    /// Where checks without a rule of their own go to.
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

    /// Whether checks speak TLS where no rule says otherwise.
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

    /// Whether checks connect as traffic does: an address or a port of their own is another service.
    fn is_as_traffic(&self) -> bool {
        let checks = &self.line.checks;
        !self.is_added && checks.port == 0 && checks.addr.is_none()
    }

    /// Whether checks begin with a PROXY header where no rule says otherwise.
    fn sends_proxy(&self) -> bool {
        let checks = &self.line.checks;
        let of_traffic = self.line.send_proxy.is_on() && self.is_as_traffic();
        self.checker == Checker::Health && (checks.send_proxy || of_traffic)
    }

    fn proxy_header(&self) -> ProxyHeader {
        match self.line.send_proxy.v2 {
            true => ProxyHeader::V2 {
                is_local: !self.never_local,
            },
            false => ProxyHeader::V1,
        }
    }

    /// The protocol of checks where no rule says otherwise.
    fn proto(&self) -> Option<CheckProto> {
        let of_traffic = self.line.proto.map(|proto| match proto {
            Proto::H1 => CheckProto::H1,
            Proto::H2 => CheckProto::H2,
            Proto::Tcp => CheckProto::None,
        });
        self.line.checks.proto.or(of_traffic)
    }

    /// The way of a connection that a rule opens. `port`: what the rule's expression came to. `host`: the name of the request that
    /// follows.
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
            tls,
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
