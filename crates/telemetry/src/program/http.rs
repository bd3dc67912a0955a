//! The program of `option tracing`: a server span for each request and a client span for each
//! attempt, with the attributes of OpenTelemetry's semantic conventions for HTTP (stable since
//! 1.23) and those that only a proxy knows.

use super::{Program, TextId};
use otlp::write;

/// One row: the variant and its name.
macro_rules! keys {
    ($($key:ident $name:literal;)*) => {
        /// Attributes of the spans.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Key {
            $(#[doc = concat!("`", $name, "`")] $key,)*
        }

        const NAMES: &[&str] = &[$($name,)*];
    };
}

keys! {
    RequestMethod "http.request.method";
    RequestMethodOriginal "http.request.method_original";
    ResendCount "http.request.resend_count";
    StatusCode "http.response.status_code";
    Route "http.route";
    UrlScheme "url.scheme";
    UrlPath "url.path";
    UrlQuery "url.query";
    UrlFull "url.full";
    ServerAddress "server.address";
    ServerPort "server.port";
    ClientAddress "client.address";
    PeerAddress "network.peer.address";
    PeerPort "network.peer.port";
    ProtocolVersion "network.protocol.version";
    UserAgent "user_agent.original";
    ErrorType "error.type";
    Frontend "proxy.frontend";
    Backend "proxy.backend";
    Server "proxy.server";
    ServerChoice "proxy.server.choice";
    ServerRule "proxy.server.rule";
    ServerReused "proxy.server.connection_reused";
    Rule "proxy.rule";
    BackendRule "proxy.backend.rule";
    Termination "proxy.termination_state";
    Retries "proxy.retries";
    Redispatched "proxy.redispatched";
    QueuePosition "proxy.queue.position";
    RequestMs "proxy.time.request_ms";
    QueueMs "proxy.time.queue_ms";
    ConnectMs "proxy.time.connect_ms";
    ResponseMs "proxy.time.response_ms";
    BytesIn "proxy.bytes_in";
    BytesOut "proxy.bytes_out";
}

/// Span names: the known methods (semantic conventions, HTTP, `http.request.method`), and the name
/// for all others.
const METHODS: [&str; 10] = [
    "HTTP", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// The span name for a request with this method.
#[must_use]
pub fn span_name(method: &[u8]) -> super::SpanSlot {
    let known = METHODS[1..]
        .iter()
        .position(|name| name.as_bytes() == method);
    known.map_or(0, |place| place as super::SpanSlot + 1)
}

impl Key {
    /// Its index in [`Program::texts`].
    #[must_use]
    pub fn text(self) -> TextId {
        self as TextId
    }
}

/// The program, with nothing bound to the events of `otel.cfg`.
#[must_use]
pub fn program() -> Program {
    let encoded = |name: &&str| {
        let mut field = Vec::new();
        write::bytes(&mut field, 1, name.as_bytes());
        field.into()
    };
    let mut program = Program {
        spans: METHODS.iter().map(|name| (*name).into()).collect(),
        texts: NAMES.iter().map(encoded).collect(),
        follows_requests: true,
        honours_parent: true,
        ..Program::default()
    };
    program.seal();
    program
}
