//! No heap allocation per request in the steady state: plain keep-alive proxying with `option httplog`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use config::condition::BuildInfo;
use config::environment::Environment;
use config::load::{LoadOptions, load};
use config::reader::Input;
use net::{
    Accepted, Addr, ConnId, Connect, ConnectError, Driver, Engine as _, Labels, ListenerId, Now,
    Sent, Sockets,
};
use spangate_proxy::{Engine, Process, Running, Shared};

/// Counts what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn note() {
    // A thread that ends has no counter any more; nobody asks for it either.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A driver that takes everything and keeps nothing.
#[derive(Default)]
struct Sink {
    now: Now,
    conns: u32,
    sent: usize,
    lines: usize,
}

impl Sink {
    fn open(&mut self) -> ConnId {
        self.conns += 1;
        ConnId {
            slot: self.conns,
            generation: 0,
        }
    }
}

impl Sockets for Sink {}

impl Driver for Sink {
    fn now(&self) -> Now {
        self.now
    }

    fn send(&mut self, _conn: ConnId, head: &[u8], body: &[u8]) -> Sent {
        self.sent += head.len() + body.len();
        Sent::All
    }

    fn connect(&mut self, _connect: &Connect<'_>) -> Result<ConnId, ConnectError> {
        Ok(self.open())
    }

    fn shutdown(&mut self, _conn: ConnId) {}
    fn close(&mut self, _conn: ConnId) {}
    fn abort(&mut self, _conn: ConnId) {}
    fn vanish(&mut self, _conn: ConnId, _rst_ttl: Option<u8>) {}
    fn label(&mut self, _conn: ConnId, _labels: Labels) {}
    fn pause(&mut self, _conn: ConnId) {}
    fn resume(&mut self, _conn: ConnId) {}
    fn accepting(&mut self, _listener: ListenerId, _on: bool) {}
    fn unlisten(&mut self, _listener: ListenerId) {}
    fn wake_peers(&mut self) {}

    fn log(&mut self, _target: usize, message: &[u8]) {
        self.lines += usize::from(!message.is_empty());
    }
}

const CONFIG: &str = "
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 1s
    log stdout format rfc5424 local0
    option httplog
frontend web
    bind 127.0.0.1:80
    option forwardfor
    http-request set-header X-Tier gold
    http-request set-map(virt@paths) /index tier
    http-request set-map(virt@nets) 10.0.0.0/8 7
    http-request set-map(virt@hosts) ^(.*)\\.org$ \\1
    http-request set-header X-Map %[path,map_beg(virt@paths)],%[src,map_ip_int(virt@nets)],%[hdr(host),map_regm(virt@hosts)]
    http-request deny if { path -i -m dir -f virt@blocked }
    default_backend app
backend app
    http-reuse always
    server one 127.0.0.1:81
";

/// Lines of the backend by which requests are bound to servers and sent again.
const PERSISTENCE: &str = "
    cookie S insert indirect nocache maxidle 10m maxlife 1h httponly dynamic
    dynamic-cookie-key k
    use-server two if { path /two }
    ignore-persist if { path /three }
    retry-on all-retryable-errors
    http-request set-timeout server 5s
    http-request set-retries int(2)
    server two 127.0.0.1:82 cookie two
";

/// Lines in JSON, in CBOR with structured data by a profile, and by way of a log backend.
const ENCODED: &str = "
log-profile own
    on close format \"%{+cbor}o %(path)HU %(status)ST\" sd \"[a@1 b=%HM]\"
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 1s
frontend web
    bind 127.0.0.1:80
    log stdout format rfc5424 local0
    log stdout format rfc5424 profile own local0
    log backend@turns format rfc3164 local0
    log-format \"%{+json}o %(request)r %(status)ST %(agent)[capture.req.hdr(0)] %(at)tr %(all)hrl %(tls)[ssl_fc]\"
    log-format-sd \"%{+Q,+E}o [x@1 h=%[capture.req.hdr(0)]]\"
    capture request header user-agent len 32
    capture response header content-type len 16
    http-request capture path len 8
    default_backend app
backend app
    http-reuse always
    server one 127.0.0.1:81
backend turns
    mode log
    balance log-hash 'field(2,/)'
    server a udp@127.0.0.1:514
    server b udp@127.0.0.1:515
";

/// Beside the lines above: what rules rewrite, decide and mark.
const RULES: &str = "
    http-request normalize-uri path-merge-slashes
    http-request normalize-uri query-sort-by-name
    http-request replace-path /static/(.*) /files/\\1
    http-request replace-header User-Agent (.*)/(.*) \\2:%[src]
    http-request replace-value Accept ^\\*/(.) text/\\1
    http-request replace-uri ^/(.) /%[method]/\\1
    http-request set-path /x%[path]
    http-request set-query %[query]&x=1
    http-request strict-mode off
    http-request del-header x-.*-internal -m reg
    http-request del-header accept- -m beg
    http-request set-headers-bin bin(03782d610231320000)
    http-request early-hint Link </a.css>
    http-request early-hint Link </b.css>
    http-request set-log-level notice
    http-request set-priority-class int(2)
    http-request set-fc-tos 8
    http-response replace-header Content-Type (.*) \\1;\\1
    http-response set-status 202 reason Fine
    http-after-response set-header X-After %[res.fhdr(content-type)]
    http-after-response allow
";

/// [`CONFIG`] with these rules in its frontend.
fn with_rules(rules: &str) -> String {
    let text = CONFIG.replace(
        "    default_backend app\n",
        &format!("{rules}    default_backend app\n"),
    );
    format!("global\n    expose-experimental-directives\n{text}")
}

fn running(config: &str) -> Arc<Running> {
    let input = Input {
        name: "allocations.cfg".into(),
        text: config.into(),
    };
    let build = BuildInfo::default();
    let options = LoadOptions {
        build: &build,
        settings: Default::default(),
        zero_warning: false,
    };
    let (config, _) = load(&[input], options, &mut Environment::new()).expect("a configuration");
    Arc::new(Running::new(config, Process::default()))
}

/// Allocations of 1000 requests after 100 to warm up.
fn allocations(config: &str, lines: usize, request: &[u8], response: &[u8]) -> usize {
    let running = running(config);
    let shared = Arc::new(Shared::new(&running, 1));
    let mut engine = Engine::new(running, shared, 0, 1);
    let mut sink = Sink::default();
    let client = sink.open();
    let address = |text: &str| Addr::Inet(text.parse().expect("an address"));
    let accepted = Accepted {
        listener: ListenerId(0),
        peer: address("10.0.0.1:5000"),
        local: address("10.1.0.1:80"),
    };
    engine.on_accept(&mut sink, client, accepted);
    let server = ConnId {
        slot: 2,
        generation: 0,
    };
    let mut before = 0;
    for round in 0..1100 {
        if round == 100 {
            before = ALLOCATIONS.get();
        }
        engine.on_data(&mut sink, client, request);
        if round == 0 {
            engine.on_connected(&mut sink, server);
        }
        engine.on_data(&mut sink, server, response);
        engine.on_round_end(&mut sink);
        // A new second now and then: the log's date is written anew.
        sink.now.mono_ns += 10_000_000;
        sink.now.wall_ns += 10_000_000;
    }
    let count = ALLOCATIONS.get() - before;
    assert_eq!(
        (sink.lines, sink.conns),
        (1100 * lines, 2),
        "lines and connections"
    );
    count
}

#[test]
fn plain_requests_allocate_nothing() {
    let get = b"GET /index.html?a=1 HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test/1.0\r\nAccept: */*\r\n\r\n";
    let length = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let post = b"POST /form HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(allocations(CONFIG, 1, get, length), 0, "GET, a length");
    assert_eq!(allocations(CONFIG, 1, get, chunked), 0, "GET, chunks");
    assert_eq!(allocations(CONFIG, 1, post, length), 0, "POST");
    assert_eq!(allocations(ENCODED, 3, post, length), 0, "encoded lines");
    assert_eq!(allocations(ENCODED, 3, get, length), 0, "a header captured");
}

#[test]
fn requests_that_rules_rewrite_allocate_nothing() {
    let get = b"GET /static//index.html?b=2&a=1 HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test/1.0\r\nAccept: text/html, */*\r\nAccept-Language: en\r\nX-My-Internal: 1\r\n\r\n";
    let length = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(allocations(&with_rules(RULES), 1, get, length), 0);
}

#[test]
fn persistence_allocates_nothing() {
    let cases: &[(&str, &[u8])] = &[
        ("a new client", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (
            "one that comes back",
            b"GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1; S=one|ZVPxA|ZVPxA; b=2\r\n\r\n",
        ),
        (
            "a body that is kept",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        ),
    ];
    let response =
        b"HTTP/1.1 200 OK\r\nETag: x\r\nSet-Cookie: S=x\r\nContent-Length: 5\r\n\r\nhello";
    for (name, request) in cases {
        let config = with_rules("    capture cookie S len 20\n");
        let config = format!("{config}    balance first\n{PERSISTENCE}");
        let count = allocations(&config, 1, request, response);
        assert_eq!(count, 0, "{name}");
    }
}
