//! What the tests of this crate share: a world, a session, a stream.

use net::{Addr, Now};

use crate::facts::{BindFacts, ProxyFacts, ServerFacts, World};
use crate::vars::{VarLimits, VarNames};
use crate::{Compiler, Place, Scope, Session, Txn};

/// A small world with a frontend `www` (0) and a backend `static` (1) with the servers `srv1` and `srv2`.
pub(crate) struct TestWorld {
    pub utc_offset_seconds: i32,
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
            name: "public",
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
            weight: 7,
            initial_weight: 8,
            queue: 0,
        })
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
    fn stopping(&self) -> bool {
        false
    }
    fn uptime_seconds(&self) -> u64 {
        99
    }
    fn utc_offset_seconds(&self) -> i32 {
        self.utc_offset_seconds
    }
    fn var_names(&self) -> Option<&VarNames> {
        Some(&self.var_names)
    }
    fn var_limits(&self) -> Option<&VarLimits> {
        self.var_limits.as_ref()
    }
    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }
}

/// Everything a scope lends.
pub(crate) struct Facts {
    pub world: TestWorld,
    pub session: Session,
    pub txn: Txn,
    pub request: Option<http::Head>,
    pub response: Option<http::Head>,
    pub request_data: Vec<u8>,
    pub last_chance: bool,
}

/// 2026-11-20 13:01:02.123 UTC, plus milliseconds.
pub(crate) fn at_ms(ms: u64) -> Now {
    Now {
        mono_ns: (1_000 + ms) * 1_000_000,
        wall_ns: (1_795_179_662_123 + ms) * 1_000_000,
    }
}

/// An address.
pub(crate) fn addr(text: &str) -> Addr {
    Addr::Inet(text.parse().expect("an address"))
}

impl Facts {
    /// A connection from 10.0.1.2:33317 to 10.0.3.31:8080, without a stream's doing yet.
    pub(crate) fn new() -> Facts {
        let mut txn = Txn {
            first_request: true,
            is_http: true,
            ..Txn::default()
        };
        txn.timing.start = at_ms(0);
        Facts {
            world: TestWorld {
                utc_offset_seconds: 0,
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
            last_chance: true,
        }
    }

    /// With a request as it came from the wire.
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
            response_data: &[],
            last_chance: self.last_chance,
        }
    }

    /// Moves what converters assigned into the variables.
    pub(crate) fn settle(&mut self) {
        self.txn.settle();
        self.session.settle();
    }

    /// The text of an expression; none without a value.
    pub(crate) fn text(&self, expr: &str) -> Option<String> {
        let mut compiler = compiler();
        let (expr, _) = compiler
            .expr(&[expr], Place::ALL)
            .unwrap_or_else(|error| panic!("{expr}: {error}"));
        let scope = self.scope();
        expr.eval(&scope)?;
        let mut out = Vec::new();
        expr.append_text(&scope, &mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
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
    compiler.enter_proxy(Some(0));
    compiler
}

/// The text of an expression that needs no request.
pub(crate) fn convert_text(expr: &str) -> String {
    Facts::new()
        .text(expr)
        .unwrap_or_else(|| panic!("{expr} has no value"))
}

/// Checks that an expression has no value.
pub(crate) fn none(expr: &str) {
    assert_eq!(Facts::new().text(expr), None, "{expr}");
}
