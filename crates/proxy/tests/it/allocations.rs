//! No heap allocation per request in the steady state: plain keep-alive proxying with `option
//! httplog`, rules, filters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use config::condition::BuildInfo;
use config::environment::Environment;
use config::load::{LoadOptions, load_with};
use config::reader::Input;
use net::{
    Accepted, Addr, Connect, ConnectError, Driver, Engine as _, Labels, ListenerId, Message, Now,
    Sent, SockId, Sockets, WorkerId,
};
use spangate_proxy::{Engine, FilterExport, Process, RuntimeConfig};
use telemetry::account::{Account, Signal};
use telemetry::metrics::{Instruments, Temporality};
use telemetry::queue::{Queue, QueueLimits};

/// Counts what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
}

fn note() {
    // A thread that ends has no counter any more; nobody asks for it either.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn note_bytes(new: usize, old: usize) {
    // Another thread may have allocated what this one frees: only differences mean something.
    let change = |bytes: &Cell<usize>| bytes.set(bytes.get().wrapping_add(new).wrapping_sub(old));
    let _ = LIVE_BYTES.try_with(change);
}

/// What this thread has allocated and not freed, bytes; only differences mean something.
pub fn live_bytes() -> usize {
    LIVE_BYTES.get()
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        note_bytes(layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note_bytes(0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        note_bytes(size, layout.size());
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
    socks: u32,
    sent: usize,
    lines: usize,
}

impl Sink {
    fn open(&mut self) -> SockId {
        self.socks += 1;
        SockId {
            slot: self.socks,
            generation: 0,
        }
    }
}

impl Sockets for Sink {}

impl Driver for Sink {
    fn now(&self) -> Now {
        self.now
    }

    fn read_bytes(&self) -> usize {
        20 << 10
    }

    fn send(&mut self, _sock: SockId, message: Message<'_>) -> Sent {
        let Message { head, body, tail } = message;
        self.sent += head.len() + body.len() + tail.len();
        Sent {
            taken: body.len(),
            blocked: false,
        }
    }

    fn connect(&mut self, _connect: &Connect<'_>) -> Result<SockId, ConnectError> {
        Ok(self.open())
    }

    fn shutdown(&mut self, _sock: SockId) {}
    fn close(&mut self, _sock: SockId) {}
    fn abort(&mut self, _sock: SockId) {}
    fn vanish(&mut self, _sock: SockId, _rst_ttl: Option<u8>) {}
    fn label(&mut self, _sock: SockId, _labels: Labels) {}
    fn pause(&mut self, _sock: SockId) {}
    fn resume(&mut self, _sock: SockId) {}
    fn accepting(&mut self, _listener: ListenerId, _on: bool) {}
    fn unlisten(&mut self, _listener: ListenerId) {}
    fn wake(&mut self, _worker: WorkerId) {}

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

/// A filter's file with spans, attributes, log records, instruments and contexts at most events of
/// a request.
const OTEL: &str = r#"
[f]
otel-instrumentation i
    config otel.yml
    scopes start session tcp wait body request switch set back process headers server response answer store end sessions stop
    groups g
otel-group g
    scopes grouped
otel-scope start
    span "stream" root
        baggage who src
        baggage what path
        attribute "client" src
    instrument cnt_int "requests" desc "Requests" value int(1)
    instrument hist_int "length" value req.hdr_cnt bounds "1 5 10 50"
    instrument udcnt_int "open" value int(1)
    instrument update "open" attr "side" str(client)
    otel-event on-stream-start
otel-scope session
    span "session" parent "stream" link "stream"
    otel-event on-client-session-start
otel-scope tcp
    span "tcp" parent "session"
    finish "session"
    otel-event on-frontend-tcp-request
otel-scope wait
    span "wait" parent "tcp"
    finish "tcp"
    otel-event on-http-wait-request
otel-scope body
    span "body" parent "wait"
    finish "wait"
    otel-event on-http-body-request
otel-scope request
    extract "up" use-headers
    set-var txn.seen str(x) path
    span "request" parent "body"
        attribute "method" method
        attribute "url" path str(?) query
        attribute "format" "%[path] %[src]:%[src_port]"
        attribute "n" req.hdr_cnt
        attribute "is" bool(true)
        event "headers" "host" req.hdr(host)
        event "headers" "count" int(3)
        status "ok" str(fine)
        inject "otel-ctx" use-headers
    instrument update "requests" attr "method" method
    instrument update "length"
    log-record info id 1 event "request" span "request" attr "path" path "%[method] %[path]"
    finish "body"
    otel-event on-frontend-http-request if { path -m found }
otel-scope switch
    span "switch" parent "request"
    set-var-ctx txn.id "request" traceparent
    otel-event on-switching-rules-request
otel-scope set
    span "set" parent "switch"
        inject "v" use-vars
    finish "switch"
    otel-event on-backend-set
otel-scope back
    extract "v" use-vars
    span "back" parent "v"
    unset-var txn.seen
    finish "set"
    otel-event on-process-server-rules-request
otel-scope process
    span "process" parent "stream"
        exception "Oops" message path attr "n" int(5)
    log-record warn span "process" str(process)
    finish "back"
    otel-event on-http-process-request
otel-scope headers
    span "headers" parent "process"
        inject - use-headers
    otel-event on-http-headers-request
otel-scope server
    span "server" parent "stream" kind client
    finish *req*
    otel-event on-server-session-start
otel-scope response
    span "response" parent "server"
    otel-event on-http-wait-response
otel-scope answer
    span "answer" parent "response"
        attribute "status" status
    instrument update "requests" attr "status" status
    log-record error span "answer" str(answer) status
    otel-event on-http-response
otel-scope store
    span "store" parent "response"
    otel-event on-http-headers-response
otel-scope end
    span "end" parent "stream"
    otel-event on-http-end-response
otel-scope sessions
    span "over" parent "stream"
    finish *res*
    otel-event on-client-session-end
otel-scope stop
    finish *
    otel-event on-stream-stop
otel-scope grouped
    span "grouped" parent "stream"
    log-record debug str(grouped)
"#;

const OTEL_YML: &str = "
exporters: { e: { type: memory }, o: { type: ostream } }
processors: { p: { type: batch } }
signals:
  traces: { default: { scope_name: s, exporters: e, processors: p } }
  logs: { default: { scope_name: s, exporters: o, processors: p } }
  metrics: { default: { scope_name: s, exporters: e } }
";

fn runtime_config(config: &str) -> RuntimeConfig {
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
    let read_file = |name: &str| match name {
        "otel.cfg" => Ok(OTEL.into()),
        "otel.yml" => Ok(OTEL_YML.into()),
        other => Err(format!("no {other}")),
    };
    let loaded = load_with(&[input], options, &mut Environment::new(), &read_file);
    let (config, _) = loaded.expect("a configuration");
    spangate_proxy::prepare(config, spangate_proxy::Tls::default(), Process::default())
}

/// Connects the filters; their queues.
fn export(runtime_config: &mut RuntimeConfig) -> Vec<Arc<Queue>> {
    let limits = QueueLimits {
        records_max: 1 << 20,
        bytes_max: 1 << 30,
    };
    let queue = |signal| {
        Arc::new(Queue::new(
            signal,
            limits,
            Arc::new(Account::default()),
            || {},
        ))
    };
    let mut queues = Vec::new();
    for filter in 0..runtime_config.config.otel.len() {
        let (spans, logs) = (queue(Signal::Traces), queue(Signal::Logs));
        let instruments = runtime_config.config.otel[filter]
            .program
            .instruments
            .clone();
        let instruments = Arc::new(Instruments::new(instruments, 7));
        let shared =
            telemetry::metrics::Shared::new(Arc::clone(&instruments), Temporality::Cumulative, 1);
        let export = FilterExport {
            spans: vec![Arc::clone(&spans)],
            logs: vec![Arc::clone(&logs)],
            instruments,
            metrics: vec![Arc::new(shared)],
            ..FilterExport::default()
        };
        runtime_config.export_filter(filter, export);
        queues.extend([spans, logs]);
    }
    queues
}

/// What one run came to.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    allocations: usize,
    spans: u64,
    logs: u64,
}

/// Requests until all buffers have their size, those of what is handed over too.
const WARM_UP: usize = 1000;
/// All requests.
const REQUESTS: usize = WARM_UP + 1000;

/// Allocations of 1000 requests after some to warm up.
fn allocations(config: &str, lines: usize, request: &[u8], response: &[u8]) -> usize {
    counted(config, lines, request, response).allocations
}

/// The same, with what the filters recorded of all. What they handed over is taken between the
/// requests.
fn counted(config: &str, lines: usize, request: &[u8], response: &[u8]) -> Count {
    let mut runtime_config = runtime_config(config);
    let queues = export(&mut runtime_config);
    let runtime_config = Arc::new(runtime_config);
    let shared = Arc::new(runtime_config.share(1));
    let mut engine = Engine::new(runtime_config, shared, 0, 1);
    let mut sink = Sink::default();
    let client = sink.open();
    let address = |text: &str| Addr::Inet(text.parse().expect("an address"));
    let accepted = Accepted {
        listener: ListenerId(0),
        peer: address("10.0.0.1:5000"),
        local: address("10.1.0.1:80"),
    };
    assert!(engine.admit(&mut sink, accepted.listener));
    engine.on_accept(&mut sink, client, accepted);
    let server = SockId {
        slot: 2,
        generation: 0,
    };
    let (mut request, mut response) = (request.to_vec(), response.to_vec());
    let mut count = Count {
        allocations: 0,
        spans: 0,
        logs: 0,
    };
    for round in 0..REQUESTS {
        let before = ALLOCATIONS.get();
        engine.on_data(&mut sink, client, &mut request);
        if round == 0 {
            engine.on_connected(&mut sink, server);
        }
        engine.on_data(&mut sink, server, &mut response);
        engine.on_round_end(&mut sink);
        if round >= WARM_UP {
            count.allocations += ALLOCATIONS.get() - before;
        }
        // A new second now and then: the log's date is written anew.
        sink.now = sink.now.after_ms(10);
        for queue in &queues {
            count.take(queue);
        }
    }
    engine.finish(&mut sink);
    for queue in &queues {
        count.take(queue);
    }
    assert_eq!(
        (sink.lines, sink.socks),
        (REQUESTS * lines, 2),
        "lines and connections"
    );
    count
}

impl Count {
    /// Takes what was handed over, as an exporter does.
    fn take(&mut self, queue: &Queue) {
        while let Some(batch) = queue.take() {
            match queue.signal {
                Signal::Logs => self.logs += u64::from(batch.records),
                _ => self.spans += u64::from(batch.records),
            }
            queue.reuse(batch.bytes);
        }
    }
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

#[test]
fn traced_requests_allocate_nothing() {
    let get = b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test/1.0\r\nup-traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nup-baggage: a=b\r\n\r\n";
    let length = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
    let rules = "    filter opentelemetry id f config otel.cfg\n    http-request otel-group f g\n";
    let filter = counted(&with_rules(rules), 1, get, length);
    let expected = Count {
        allocations: 0,
        spans: REQUESTS as u64 * 18,
        logs: REQUESTS as u64 * 4,
    };
    assert_eq!(filter, expected);
    let w3c = b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test/1.0\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\nbaggage: a=b\r\n\r\n";
    let all = REQUESTS as u64 * 2;
    for request in [&get[..], w3c] {
        for option in ["", " sample 50", " errors slower 50ms retries sample 10"] {
            let rules = format!("    option tracing{option}\n");
            let Count {
                allocations, spans, ..
            } = counted(&with_rules(&rules), 1, request, length);
            // A batch that is larger than all before it, as only draws make one, has its buffer
            // grow.
            let growths_max = usize::from(option.contains("sample"));
            assert!(
                allocations <= growths_max,
                "{allocations} by option tracing{option}"
            );
            assert!(
                spans <= all && (!option.is_empty() || spans == all),
                "{spans} spans{option}"
            );
        }
    }
}
