//! Expressions, conditions and log formats: arbitrary text compiled, and evaluated for an arbitrary
//! request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use http::Head;
use http::h1::{Limits, Strictness, parse_request, parse_response};
use net::{Addr, Now};
use sample::facts::{BindFacts, ProxyFacts, ProxySide, ServerFacts};
use sample::{
    Acls, Compiler, Expr, ExprError, LogFormat, Place, SAMPLE_BYTES_MAX, Scope, Session, Txn,
    Value, Verdict, World,
};

/// What one sample may become in a log line: six bytes each, as JSON escapes them.
const WRITTEN_BYTES_MAX: usize = 6 * SAMPLE_BYTES_MAX + 64;

/// The first line is compiled as an expression, as the words of a condition and as a log format;
/// the rest is what comes on the connection. What compiles is evaluated with and without a
/// request's head, in the middle and at the end: values are bounded, a condition decides at the
/// end, and a fault lies in the words.
pub fn expression(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (line, rest) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &b""[..]),
    };
    let text = String::from_utf8_lossy(line);
    // Files of patterns are none of this.
    if text.contains("-f") || text.contains("map") {
        return;
    }
    let text = line;
    let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
    let mut compiler = compiler();
    let expr = located(compiler.expr(&words, Place::ALL), &words).map(|(expr, _)| expr);
    let condition = compiler.condition(&Acls::default(), &words, false, Place::ALL);
    let condition = located(condition, &words);
    let formats: Vec<LogFormat> = [
        compiler.log_format(text, Place::LOG),
        compiler.log_format(text, Place::FE_HTTP_REQUEST),
    ]
    .into_iter()
    .filter_map(|format| located(format, &[text]))
    .collect();
    let facts = Facts::new(rest);
    for scope in facts.scopes() {
        if let Some(expr) = &expr {
            evaluate(expr, &scope);
        }
        if let Some(condition) = &condition {
            let verdict = condition.test(&scope);
            assert!(!scope.last_chance || verdict != Verdict::Wait);
        }
        for format in &formats {
            let mut out = Vec::new();
            format.render(&scope, &mut out);
            let parts = text.iter().filter(|byte| **byte == b'%').count();
            assert!(out.len() <= text.len() + parts * WRITTEN_BYTES_MAX);
        }
    }
}

/// What compiled; of what did not, the fault's place is checked.
fn located<T>(compiled: Result<T, ExprError>, words: &[&[u8]]) -> Option<T> {
    compiled
        .map_err(|fault| {
            assert!(
                fault.start <= fault.end && fault.word <= words.len(),
                "{fault:?}"
            );
            let word = words.get(fault.word).copied().unwrap_or_default();
            assert!(
                fault.start <= word.len(),
                "{fault:?} in {}",
                word.escape_ascii()
            );
        })
        .ok()
}

fn evaluate(expr: &Expr, scope: &Scope<'_>) {
    let (mut text, mut again) = (Vec::new(), Vec::new());
    match expr.eval(scope) {
        Some(Value::Str(bytes) | Value::Bin(bytes) | Value::Method(_, bytes)) => {
            assert!(bytes.len() <= SAMPLE_BYTES_MAX, "{expr:?}");
        }
        Some(_) => {}
        None => return,
    }
    expr.append_text(scope, &mut text);
    expr.append_text(scope, &mut again);
    // What reads a variable that it sets has another value each time.
    let assigns =
        format!("{expr:?}").contains("set-var") || format!("{expr:?}").contains("aes_gcm_enc");
    assert!(assigns || text == again, "{expr:?}");
}

fn compiler() -> Compiler {
    let mut compiler = Compiler::new();
    compiler.declare_proxy("www", true, true);
    let backend = compiler.declare_proxy("static", false, true);
    compiler.declare_server(backend, "srv1");
    compiler.enter_proxy(Some(0));
    compiler
}

/// What the scopes lend.
struct Facts<'d> {
    session: Session,
    txn: Txn,
    request: Option<Head>,
    response: Option<Head>,
    data: &'d [u8],
}

impl<'d> Facts<'d> {
    fn new(data: &'d [u8]) -> Facts<'d> {
        let limits = Limits {
            head_bytes_max: 8192,
            fields_max: 64,
        };
        let mut request = Head::default();
        let parsed = parse_request(data, limits, Strictness::Relaxed, &mut request);
        let is_request = matches!(parsed, Ok(Some(_)));
        let mut response = Head::default();
        let parsed = parse_response(
            data,
            http::Method::Get,
            limits,
            Strictness::Relaxed,
            &mut response,
        );
        let is_response = matches!(parsed, Ok(Some(_)));
        let addr = |port| Addr::Inet(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let mut session = Session::new(now(), addr(1), addr(2), 0, 0);
        session.tlvs = Some(data.into());
        let txn = Txn {
            is_http: is_request,
            request_line: data
                .split(|byte| *byte == b'\r')
                .next()
                .unwrap_or_default()
                .into(),
            backend: Some(1),
            server: Some(0),
            ..Txn::default()
        };
        Facts {
            session,
            txn,
            request: is_request.then_some(request),
            response: is_response.then_some(response),
            data,
        }
    }

    /// The same facts at several moments of a stream.
    fn scopes(&self) -> impl Iterator<Item = Scope<'_>> {
        [(false, false), (true, false), (true, true)]
            .into_iter()
            .map(|(is_stream, last_chance)| Scope {
                now: now(),
                world: &Small,
                session: &self.session,
                txn: is_stream.then_some(&self.txn),
                request: self.request.as_ref().filter(|_| is_stream),
                response: self.response.as_ref().filter(|_| is_stream),
                request_data: self.data,
                response_data: self.data,
                from_server: self.response.is_some(),
                last_chance,
            })
    }
}

fn now() -> Now {
    Now::new(1_000_000_000, 1_795_179_662_123_000_000)
}

/// A world with two proxies and a server.
struct Small;

impl World for Small {
    fn proxy(&self, proxy: u32) -> Option<ProxyFacts<'_>> {
        (proxy < 2).then_some(ProxyFacts {
            name: "www",
            servers: 1,
            usable_servers: 1,
            ..ProxyFacts::default()
        })
    }
    fn bind(&self, _: u32, _: u32) -> Option<BindFacts<'_>> {
        Some(BindFacts::default())
    }
    fn server(&self, backend: u32, server: u32) -> Option<ServerFacts<'_>> {
        (backend == 1 && server == 0).then_some(ServerFacts {
            name: "srv1",
            ..ServerFacts::default()
        })
    }
    fn proxy_named(&self, name: &[u8], _: ProxySide) -> Option<u32> {
        (name == b"static").then_some(1)
    }
    fn server_named(&self, _: u32, name: &[u8]) -> Option<u32> {
        (name == b"srv1").then_some(0)
    }
    fn capture_len(&self, _: u32, slot: sample::captured::CaptureSlot) -> Option<usize> {
        (slot.index == 0).then_some(10)
    }
    fn hostname(&self) -> &str {
        "host"
    }
    fn pid(&self) -> u32 {
        1
    }
    fn thread(&self) -> u32 {
        0
    }
    fn nbthread(&self) -> u32 {
        1
    }
    fn actconn(&self) -> u32 {
        1
    }
    fn quic_enabled(&self) -> bool {
        true
    }
    fn stopping(&self) -> bool {
        false
    }
    fn uptime_seconds(&self) -> u64 {
        1
    }
    fn local_time(&self) -> &sample::Zone {
        static NEWFOUNDLAND: LazyLock<sample::Zone> =
            LazyLock::new(|| sample::Zone::posix("NST3:30NDT,M3.2.0,M11.1.0").expect("a zone"));
        &NEWFOUNDLAND
    }
    fn random(&self) -> u64 {
        4
    }
}
