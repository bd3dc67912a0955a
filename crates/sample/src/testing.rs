//! Shared parts of this crate's tests: a world, a session, a stream.

use std::net::IpAddr;

use net::{Addr, CpuOf, Now, TcpInfo};

use crate::captured::CaptureSlot;
use crate::facts::{
    BindFacts, ProxyFacts, ProxySide, ProxyTimeouts, Rate, ServerFacts, Side, World,
};
use crate::vars::{VarLimits, VarNames};
use crate::{Acls, Compiler, Place, Scope, Session, Txn, Verdict, Zone};

/// A small world with a frontend `www` (0) and a backend `static` (1) with the servers `srv1` and
/// `srv2`.
pub(crate) struct TestWorld {
    pub local_time: Zone,
    pub var_names: VarNames,
    pub var_limits: Option<VarLimits>,
}

impl World for TestWorld {
    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>> {
        let www = ProxyFacts {
            name: "www",
            id: 2,
            is_http: true,
            frontend_connections: 3,
            default_backend: "static",
            ..ProxyFacts::default()
        };
        let backend = ProxyFacts {
            name: "static",
            id: 3,
            is_http: true,
            backend_connections: 2,
            usable_servers: 2,
            servers: 2,
            queue: 4,
            ..ProxyFacts::default()
        };
        [www, backend].get(proxy as usize).copied()
    }
    fn bind(&self, frontend: u32, bind: u32) -> Option<BindFacts<'_>> {
        (frontend == 0 && bind == 0).then_some(BindFacts {
            name: b"public",
            id: 1,
            connections: 3,
        })
    }
    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>> {
        let name = *["srv1", "srv2"].get(server as usize)?;
        (backend == 1).then_some(ServerFacts {
            name,
            id: server + 1,
            connections: 1,
            maxconn: 10,
            maxqueue: 5,
            is_up: true,
            takes_traffic: true,
            user_weight: 9,
            weight: 7,
            initial_weight: 8,
            queue: 0,
        })
    }
    fn capture_len(&self, _frontend: u32, slot: CaptureSlot) -> Option<usize> {
        (slot.index < 2).then_some(5)
    }
    fn proxy_named(&self, name: &[u8], side: ProxySide) -> Option<u32> {
        match (name, side) {
            (b"www", _) => Some(0),
            (b"static", ProxySide::Backend) => Some(1),
            _ => None,
        }
    }
    fn server_named(&self, backend: u32, name: &[u8]) -> Option<u32> {
        let names: [&[u8]; 2] = [b"srv1", b"srv2"];
        let index = names.iter().position(|known| *known == name)?;
        (backend == 1).then_some(index as u32)
    }
    fn hostname(&self) -> &str {
        "host.test"
    }
    fn pid(&self) -> u32 {
        4711
    }
    fn thread(&self) -> u32 {
        1
    }
    fn nbthread(&self) -> u32 {
        2
    }
    fn actconn(&self) -> u32 {
        5
    }
    fn quic_enabled(&self) -> bool {
        true
    }
    fn stopping(&self) -> bool {
        false
    }
    fn uptime_seconds(&self) -> u64 {
        99
    }
    fn local_time(&self) -> &Zone {
        &self.local_time
    }
    fn var_names(&self) -> Option<&VarNames> {
        Some(&self.var_names)
    }
    fn var_limits(&self) -> Option<&VarLimits> {
        self.var_limits.as_ref()
    }
    fn rate(&self, of: Rate) -> u32 {
        match of {
            Rate::FrontendSessions(proxy) => 10 + proxy,
            Rate::FrontendRequests(proxy) => 20 + proxy,
            Rate::BackendSessions(proxy) => 30 + proxy,
            Rate::ServerSessions(_, server) => 41 + server,
        }
    }
    fn timeouts(&self, proxy: u32) -> Option<ProxyTimeouts> {
        let client = ProxyTimeouts {
            client_ms: 1000,
            ..ProxyTimeouts::default()
        };
        let server = ProxyTimeouts {
            connect_ms: 2000,
            server_ms: 3000,
            queue_ms: 4000,
            tarpit_ms: 5000,
            retries: 3,
            ..ProxyTimeouts::default()
        };
        [client, server].get(proxy as usize).copied()
    }
    fn tcp_info(&self, side: Side) -> Option<TcpInfo> {
        (side == Side::Client).then_some(TcpInfo {
            rtt_us: 1500,
            rttvar_us: 499,
            reordering: 3,
            ..TcpInfo::default()
        })
    }
    fn saved_syn(&self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&[0x45, 0]);
        true
    }
    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        Some(ip.to_string() == "10.0.3.31")
    }
    fn cpu_usage(&self, of: CpuOf) -> u32 {
        match of {
            CpuOf::Thread => 25,
            CpuOf::Process => 12,
        }
    }
    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }
}

/// The data of a scope.
pub(crate) struct Facts {
    pub world: TestWorld,
    pub session: Session,
    pub txn: Txn,
    pub request: Option<http::Head>,
    pub response: Option<http::Head>,
    pub request_data: Vec<u8>,
    pub response_data: Vec<u8>,
    pub from_server: bool,
    pub last_chance: bool,
}

/// 2026-11-20 13:01:02.123 UTC, plus milliseconds.
pub(crate) fn at_ms(ms: u64) -> Now {
    Now::new(
        (1_000 + ms) * 1_000_000,
        (1_795_179_662_123 + ms) * 1_000_000,
    )
}

/// An address.
pub(crate) fn addr(text: &str) -> Addr {
    Addr::Inet(text.parse().expect("an address"))
}

impl Facts {
    /// A connection from 10.0.1.2:33317 to 10.0.3.31:8080, before any action of a stream.
    pub(crate) fn new() -> Facts {
        let mut txn = Txn {
            first_request: true,
            is_http: true,
            ..Txn::default()
        };
        txn.timing.start = at_ms(0);
        Facts {
            world: TestWorld {
                local_time: Zone::default(),
                var_names: VarNames::default(),
                var_limits: None,
            },
            session: Session::new(
                at_ms(0),
                addr("10.0.1.2:33317"),
                addr("10.0.3.31:8080"),
                0,
                0,
            ),
            txn,
            request: None,
            response: None,
            request_data: Vec::new(),
            response_data: Vec::new(),
            from_server: false,
            last_chance: true,
        }
    }

    /// With a request as received.
    pub(crate) fn with_request(text: &str) -> Facts {
        let mut facts = Facts::new();
        facts.request = Some(request(text));
        facts.txn.request_line = text.lines().next().unwrap_or("").into();
        facts
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            now: at_ms(1_000),
            world: &self.world,
            session: &self.session,
            txn: Some(&self.txn),
            request: self.request.as_ref(),
            response: self.response.as_ref(),
            request_data: &self.request_data,
            response_data: &self.response_data,
            from_server: self.from_server,
            last_chance: self.last_chance,
        }
    }

    /// Moves the assignments by converters into the variables.
    pub(crate) fn settle(&mut self) {
        self.txn.settle();
        self.session.settle();
    }

    /// The result of an anonymous ACL with these words.
    pub(crate) fn verdict(&self, words: &str) -> Verdict {
        let words: Vec<&str> = ["{"]
            .into_iter()
            .chain(words.split(' '))
            .chain(["}"])
            .collect();
        compiler()
            .condition(&Acls::default(), &words, false, Place::ALL)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
            .test(&self.scope())
    }

    /// The text of an expression; None without a value.
    pub(crate) fn text(&self, expr: &str) -> Option<String> {
        let mut compiler = compiler();
        let (expr, _) = compiler
            .expr(&[expr], Place::ALL)
            .unwrap_or_else(|error| panic!("{expr}: {error}"));
        let mut out = Vec::new();
        expr.append_text(&self.scope(), &mut out)
            .then(|| String::from_utf8_lossy(&out).into_owned())
    }
}

fn limits() -> http::h1::Limits {
    http::h1::Limits {
        head_bytes_max: 16_384,
        fields_max: 101,
    }
}

/// A request head; `\n` stands for CRLF.
pub(crate) fn request(text: &str) -> http::Head {
    let text = text.replace('\n', "\r\n");
    let mut head = http::Head::default();
    let parsed = http::h1::parse_request(
        text.as_bytes(),
        limits(),
        http::h1::Strictness::Strict,
        &mut head,
    );
    assert!(parsed.is_ok_and(|parsed| parsed.is_some()), "{text}");
    head
}

/// A response head; `\n` stands for CRLF.
pub(crate) fn response(text: &str) -> http::Head {
    let text = text.replace('\n', "\r\n");
    let mut head = http::Head::default();
    let parsed = http::h1::parse_response(
        text.as_bytes(),
        http::Method::Get,
        limits(),
        http::h1::Strictness::Strict,
        &mut head,
    );
    assert!(parsed.is_ok_and(|parsed| parsed.is_some()), "{text}");
    head
}

/// A compiler that knows the test world's names, in its frontend.
pub(crate) fn compiler() -> Compiler {
    let mut compiler = Compiler::new();
    compiler.declare_proxy("www", true, true);
    let backend = compiler.declare_proxy("static", false, true);
    compiler.declare_server(backend, "srv1");
    compiler.declare_server(backend, "srv2");
    let nobody = crate::auth::Userlist::new(Vec::new(), Vec::new());
    compiler.declare_userlist("users", std::sync::Arc::new(nobody));
    for name in ["counters", "www"] {
        compiler.declare_table(std::sync::Arc::new(tables::Table::new(counters(name))));
    }
    compiler.enter_proxy(Some(0));
    compiler
}

/// A table with text keys that stores all data types.
pub(crate) fn counters(name: &str) -> tables::Definition {
    let mut definition = tables::Definition::new(name, tables::KeyType::String, 100);
    definition.expire_ms = Some(60_000);
    for data in tables::Data::all().filter(|data| data.in_array().is_none()) {
        let arguments: &[&str] = match (data.is_array(), data.argument()) {
            (true, tables::Argument::Period) => &["3", "10000"],
            (true, tables::Argument::None) => &["3"],
            (false, tables::Argument::Period) => &["10000"],
            (false, tables::Argument::None) => &[],
        };
        let stored = definition.store(data, arguments, |text| text.parse().ok());
        assert_eq!(stored, Ok(()), "{data:?}");
    }
    definition
}

/// The text of an expression that needs no request.
pub(crate) fn convert_text(expr: &str) -> String {
    Facts::new()
        .text(expr)
        .unwrap_or_else(|| panic!("{expr} has no value"))
}

/// Why an expression is refused.
pub(crate) fn fails(expr: &str) -> String {
    match compiler().expr(&[expr], Place::ALL) {
        Ok(_) => panic!("{expr} was accepted"),
        Err(error) => error.message,
    }
}

/// Checks that an expression has no value.
pub(crate) fn none(expr: &str) {
    assert_eq!(Facts::new().text(expr), None, "{expr}");
}
