//! A collector within the proxy's process (section `collector`), in front of a receiver.

use crate::common;

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use common::cli::{self, Account, ask, ask_any};
use common::http::{Client, Message};
use common::origin::{Origin, ok};
use common::otlp::{Receiver, filter, value};
use common::{DEADLINE, DEFAULTS, Folder, Output, Port, Proxy, address, listener, run, spawn};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

/// OTLP's `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

/// A collector that keeps traces with an error, and decides after an hour unless a setting shortens
/// this.
fn sampling(otlp: u16, to: SocketAddr) -> String {
    format!(
        "receivers:
  otlp: {{ protocols: {{ http: {{ endpoint: '127.0.0.1:{otlp}' }} }} }}
processors:
  tail_sampling:
    decision_wait: 1h
    policies: [ {{ name: errors, type: status_code, status_code: {{ status_codes: [ERROR] }} }} ]
exporters:
  otlphttp: {{ endpoint: 'http://{to}', compression: none }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines:
    traces: {{ receivers: [otlp], processors: [tail_sampling], exporters: [otlphttp] }}
"
    )
}

/// A proxy that sends its spans to the collector `main`, with these lines. Requests for `/bad`
/// fail.
fn proxy_config(folder: &Folder, yaml: &str, lines: &str) -> String {
    let file = folder.write("collector.yaml", yaml);
    let socket = folder.path("cli.sock");
    format!(
        "global
    stats socket {} level admin
    setenv OTEL_BSP_SCHEDULE_DELAY 10
{DEFAULTS}
collector main
    config {file}
{lines}
frontend web
    bind \"fd@${{WEB}}\"
    option tracing endpoint collector://main service shop
    http-request return status 500 if {{ path /bad }}
    http-request return status 200
",
        socket.display()
    )
}

struct Setting {
    proxy: Proxy,
    web: TcpListener,
    socket: PathBuf,
}

fn start(yaml: &str, lines: &str, arguments: &[&str]) -> Setting {
    let (folder, web) = (Folder::new(), listener());
    let config = proxy_config(&folder, yaml, lines);
    let socket = folder.path("cli.sock");
    let proxy = Proxy::start_with(folder, &config, &[("WEB", &web)], arguments);
    Setting { proxy, web, socket }
}

impl Setting {
    /// Sends a good request for each `.`, and a bad one for each `x`.
    fn requests(&self, pattern: &str) {
        let mut client = Client::connect(address(&self.web));
        for letter in pattern.chars() {
            let (path, status) = match letter {
                'x' => ("/bad", 500),
                _ => ("/good", 200),
            };
            assert_eq!(client.get(path).status, status);
        }
    }

    /// Waits until the collector has everything that was recorded so far.
    fn hand_over(&self) {
        let answer = ask(&self.socket, "flush");
        assert!(answer.contains("flushed"), "{answer}");
    }

    fn end(self, signal: i32) -> Output {
        self.proxy.running.signal(signal);
        let output = self.proxy.running.end();
        assert!(output.status.success(), "{}", output.stderr);
        output
    }
}

/// The number before a word in an account.
fn number(text: &str, word: &str) -> u64 {
    let before = text.split(&format!(" {word}")).next();
    let digits = before.and_then(|text| text.rsplit(' ').next());
    let number = digits.and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("no number before '{word}' in {text}"))
}

/// The last account in the collector's log.
fn last_account(output: &Output) -> &str {
    let mut lines = output.stderr.lines();
    let found = lines.find(|line| line.contains("spans: "));
    found.unwrap_or_else(|| panic!("no account in {}", output.stderr))
}

#[test]
fn the_root_of_a_failed_request_has_its_trace_sent_soon_and_all_others_are_dropped() {
    let mut sink = Receiver::start();
    let setting = start(&sampling(0, sink.at), "    root-wait 20ms", &[]);
    setting.requests("..x...x..xx");
    // The collector decided before the hour passed.
    sink.until("four failed requests", |sink| sink.spans.len() == 4);
    for (service, span) in &sink.spans {
        assert_eq!(service, "shop");
        assert_eq!(span.status.as_ref().map(|status| status.code), Some(ERROR));
        assert_eq!(value(&span.attributes, "url.path").as_deref(), Some("/bad"));
        assert!(span.parent_span_id.is_empty());
    }
    setting.hand_over();
    let status = ask(&setting.socket, "status");
    assert!(
        status.contains("  pipeline     : traces collector main\n"),
        "{status}"
    );
    let account = Account::read(&status, "traces");
    assert_eq!(
        (account.started, account.exported, account.lost),
        (11, 11, 0)
    );
    let collector = ask_any(&setting.socket, "show collectors");
    assert!(
        collector.starts_with("collector 'main'\n  traces   : 11 accepted = "),
        "{collector}"
    );
    // Records up to the end are decided like the others.
    setting.requests("x.x");
    let output = setting.end(libc::SIGUSR1);
    sink.rest();
    assert_eq!(sink.spans.len(), 6);
    let account = last_account(&output);
    assert!(account.contains("14 accepted = 6 exported + 8 dropped + 0 failed + 0 rejected + 0 lost at the end + 0 held; 0 refused"), "{account}");
}

#[test]
fn an_end_decides_on_what_waits() {
    for signal in [libc::SIGUSR1, libc::SIGTERM] {
        let mut sink = Receiver::start();
        let setting = start(&sampling(0, sink.at), "    root-wait 0\n    threads 2", &[]);
        setting.requests("x..x..x");
        setting.hand_over();
        let waiting = ask_any(&setting.socket, "show collectors");
        assert!(
            waiting.contains("  waiting  : 7 traces of 7 spans in tail_sampling of traces\n"),
            "{waiting}"
        );
        let output = setting.end(signal);
        sink.rest();
        assert_eq!(sink.spans.len(), 3);
        let account = last_account(&output);
        assert!(
            account.contains("7 accepted = 3 exported + 4 dropped"),
            "{account}"
        );
    }
}

/// Sends a failed span of a trace to a receiver.
fn post(port: u16, trace_id: &[u8], parent: &[u8]) {
    let span = Span {
        trace_id: trace_id.to_vec(),
        span_id: vec![1; 8],
        parent_span_id: parent.to_vec(),
        name: "inside".into(),
        status: Some(Status {
            code: ERROR,
            message: String::new(),
        }),
        ..Span::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![ScopeSpans {
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    };
    let body = request.encode_to_vec();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the receiver listens");
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: c\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(&[head.as_bytes(), &body].concat())
        .expect("a request");
    let answer = Client::on(stream).response().expect("an answer");
    assert_eq!(answer.status, 200);
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// The ids in `traceparent`.
fn context(message: &Message) -> (Vec<u8>, Vec<u8>) {
    let field = message.field("traceparent").expect("a context");
    let parts: Vec<&str> = field.split('-').collect();
    (unhex(parts[1]), unhex(parts[2]))
}

#[test]
fn spans_of_services_join_those_of_the_proxy() {
    let mut sink = Receiver::start();
    let port = Port::reserve();
    let number = port.number;
    let origin = Origin::start(move |request| {
        if request.line.starts_with("GET /fails-inside") {
            let (trace, parent) = context(request);
            post(number, &trace, &parent);
        }
        ok("")
    });
    let folder = Folder::new();
    let config = proxy_config(&folder, &sampling(number, sink.at), "    root-wait 20ms");
    let config = config.replace(
        "    http-request return status 200\n",
        &format!(
            "    default_backend app\nbackend app\n    server s {}\n",
            origin.at
        ),
    );
    let web = listener();
    let proxy = Proxy::start_in(folder, &config, &[("WEB", &web)]);
    let mut client = Client::connect(address(&web));
    for path in ["/", "/fails-inside", "/"] {
        assert_eq!(client.get(path).status, 200);
    }
    drop(client);
    sink.until("the whole trace", |sink| sink.spans.len() == 3);
    let root = sink
        .spans
        .iter()
        .find(|(_, span)| span.parent_span_id.is_empty());
    let root = &root.expect("the proxy's root").1;
    assert_eq!(
        value(&root.attributes, "url.path").as_deref(),
        Some("/fails-inside")
    );
    assert!(
        sink.spans
            .iter()
            .all(|(_, span)| span.trace_id == root.trace_id)
    );
    assert!(sink.spans.iter().any(|(_, span)| span.name == "inside"));
    proxy.running.signal(libc::SIGUSR1);
    let output = proxy.running.end();
    sink.rest();
    assert_eq!(sink.spans.len(), 3, "no other trace has failed");
    let account = last_account(&output);
    assert!(
        account.contains("7 accepted = 3 exported + 4 dropped"),
        "{account}"
    );
}

#[test]
fn a_parent_elsewhere_shortens_nothing() {
    let mut sink = Receiver::start();
    let setting = start(&sampling(0, sink.at), "    root-wait 1ms", &[]);
    let mut client = Client::connect(address(&setting.web));
    client.send(
        "GET /bad HTTP/1.1\r\nhost: t\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
    );
    assert_eq!(client.response().expect("an answer").status, 500);
    drop(client);
    setting.hand_over();
    // A later root is decided earlier.
    setting.requests("x");
    sink.until("the root", |sink| !sink.spans.is_empty());
    assert!(sink.spans[0].1.parent_span_id.is_empty());
    let waiting = ask_any(&setting.socket, "show collectors");
    assert!(
        waiting.contains("  waiting  : 1 traces of 1 spans"),
        "{waiting}"
    );
    setting.end(libc::SIGTERM);
    sink.rest();
    assert_eq!(sink.spans.len(), 2);
}

#[test]
fn a_receiver_proxy_says_where_its_spans_go() {
    let mut sink = Receiver::start();
    let yaml = sampling(0, sink.at)
        .replace("receivers:\n", "receivers:\n  proxy:\n")
        .replace(
            "    traces:",
            "    traces/own: { receivers: [proxy], exporters: [otlphttp] }\n    traces:",
        );
    let setting = start(&yaml, "", &[]);
    setting.requests("..x");
    sink.until("all of them", |sink| sink.spans.len() == 3);
    let collector = ask_any(&setting.socket, "show collectors");
    assert!(
        collector.contains("  waiting  : 0 traces of 0 spans in tail_sampling of traces\n"),
        "{collector}"
    );
    setting.end(libc::SIGTERM);
}

#[test]
fn a_collector_without_room_is_tried_again_and_what_is_lost_is_counted() {
    let sink = Receiver::start();
    let yaml = sampling(0, sink.at)
        .replace(
            "processors:\n",
            "processors:\n  memory_limiter: { check_interval: 10ms, limit_mib: 1 }\n",
        )
        .replace("[tail_sampling]", "[memory_limiter, tail_sampling]");
    let setting = start(&yaml, "", &[]);
    cli::until_holds(&setting.socket, "status", |_| {
        setting.requests("x");
        let collector = ask_any(&setting.socket, "show collectors");
        number(&collector, "refused") > 0
    });
    let account = Account::read(&ask(&setting.socket, "status"), "traces");
    assert_eq!(account.lost, 0);
    assert!(account.in_flight > 0);
    let output = setting.end(libc::SIGTERM);
    let lost = output
        .stderr
        .lines()
        .find(|line| line.contains("otel : traces collector main"));
    let lost = lost.unwrap_or_else(|| panic!("{}", output.stderr));
    let accepted = if output.stderr.contains(" accepted = ") {
        number(last_account(&output), "accepted")
    } else {
        0
    };
    let line = lost.split("of ").nth(1).expect("an account");
    let started: u64 = line
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number");
    assert_eq!(number(lost, "were exported"), accepted, "{}", output.stderr);
    assert_eq!(number(lost, "shutdown"), started - accepted, "{lost}");
}

#[test]
fn a_process_that_takes_over_listens_and_the_old_one_loses_nothing() {
    let mut sink = Receiver::start();
    let port = Port::reserve();
    let yaml = sampling(port.number, sink.at);
    let old = start(&yaml, "    root-wait 0", &[]);
    old.requests("x.x");
    old.hand_over();
    post(port.number, &[7; 16], &[1; 8]);
    let pid = old.proxy.running.pid().to_string();
    let new = start(&yaml, "    root-wait 0", &["-sf", &pid]);
    let output = old.proxy.running.end();
    assert!(output.status.success(), "{}", output.stderr);
    sink.rest();
    assert_eq!(sink.spans.len(), 3);
    let account = last_account(&output);
    assert!(
        account.contains("4 accepted = 3 exported + 1 dropped"),
        "{account}"
    );
    // Only the new process listens now.
    post(port.number, &[8; 16], &[1; 8]);
    new.requests("x");
    let output = new.end(libc::SIGTERM);
    sink.rest();
    assert_eq!(sink.spans.len(), 5);
    assert!(
        last_account(&output).contains("2 accepted = 2 exported"),
        "{}",
        output.stderr
    );
}

/// A filter file with a span, a measurement and a log record for each request.
const OTEL: &str = "
otel-instrumentation i
    config {yml}
    scopes request
otel-scope request
    span \"request\" root
    instrument cnt_int \"requests\" desc \"Requests\" unit \"1\" value int(1)
    instrument update \"requests\" attr \"method\" method
    log-record info id 7 event \"asked\" span \"request\" \"%[path]\"
    otel-event on-frontend-http-request
";

/// An `otel.yml` that sends all signals to a collector.
fn yml(name: &str) -> String {
    format!(
        "exporters:
  e: {{ type: collector, name: {name} }}
processors: {{ p: {{ type: single }} }}
readers: {{ r: {{ export_interval: 200, export_timeout: 100 }} }}
signals:
  traces: {{ default: {{ scope_name: s, exporters: e, processors: p }} }}
  metrics: {{ default: {{ scope_name: s, exporters: e, readers: r }} }}
  logs: {{ default: {{ scope_name: s, exporters: e, processors: p }} }}
"
    )
}

/// A collector that accepts all signals and drops them.
const NOTHING: &str = "
receivers: { proxy: }
exporters: { nop: }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    traces: { receivers: [proxy], exporters: [nop] }
    metrics: { receivers: [proxy], exporters: [nop] }
    logs: { receivers: [proxy], exporters: [nop] }
";

#[test]
fn all_signals_of_a_filter_go_there() {
    let (folder, web) = (Folder::new(), listener());
    let filter = filter(&folder, OTEL, &yml("main"));
    let option = "    option tracing endpoint collector://main service shop\n";
    let config = proxy_config(&folder, NOTHING, "").replace(option, &filter);
    let socket = folder.path("cli.sock");
    let proxy = Proxy::start_in(folder, &config, &[("WEB", &web)]);
    let mut client = Client::connect(address(&web));
    for _ in 0..5 {
        assert_eq!(client.get("/good").status, 200);
    }
    drop(client);
    let status = cli::until_holds(&socket, "status", |status| {
        let exported = |signal| Account::read(status, signal).exported;
        exported("traces") == 5 && exported("logs") == 5 && exported("metrics") > 0
    });
    let accounts = ask_any(&socket, "show collectors");
    for signal in ["traces", "logs"] {
        let line = format!("  {signal:<8} : 5 accepted = 5 exported + 0 dropped");
        assert!(accounts.contains(&line), "{accounts}");
    }
    let measured = accounts.lines().find(|line| line.contains("metrics"));
    let measured = number(measured.expect("a line"), "accepted");
    assert!(
        measured >= Account::read(&status, "metrics").exported,
        "{accounts}"
    );
    proxy.stop();
}

/// The names of a process's threads, after each has its own.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread names itself, and nothing tells when it has"
)]
fn threads(pid: u32) -> Vec<String> {
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
        let name = |task: std::io::Result<fs::DirEntry>| {
            fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        let names: Vec<String> = tasks
            .filter_map(name)
            .map(|name| name.trim().to_owned())
            .collect();
        // The first thread has the program's name.
        if names.iter().filter(|name| *name == "spangate").count() == 1 {
            return names;
        }
        assert!(std::time::Instant::now() < deadline, "{names:?}");
        crate::common::before_the_next_look();
    }
}

#[test]
fn only_a_section_makes_threads() {
    let sink = Receiver::start();
    let with = start(&sampling(0, sink.at), "", &[]);
    let names = threads(with.proxy.running.pid());
    assert!(
        names.iter().any(|name| name == "collector-main"),
        "{names:?}"
    );
    let web = listener();
    let config = format!(
        "{DEFAULTS}\nfrontend web\n    bind \"fd@${{WEB}}\"\n    option tracing endpoint http://{} service s\n    http-request return status 200\n",
        sink.at
    );
    let without = Proxy::start(&config, &[("WEB", &web)]);
    let names = threads(without.running.pid());
    assert!(names.iter().any(|name| name == "otel-export"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("collector")),
        "{names:?}"
    );
}

/// The output of a configuration check, and whether it succeeded.
fn checked(folder: &Folder, config: &str) -> (bool, String) {
    let file = folder.write("t.cfg", config);
    let output = run(&["-c", "-f", &file]);
    let root = format!("{}/", folder.root().display());
    (output.status.success(), output.stderr.replace(&root, ""))
}

#[test]
fn configurations_are_checked() {
    let folder = Folder::new();
    let at = address(&listener());
    let good = sampling(0, at);
    let config = |section: &str, option: &str| {
        format!(
            "{DEFAULTS}\ncollector main\n{section}\nfrontend web\n    bind 127.0.0.1:0\n    {option}\n    http-request return status 200\n"
        )
    };
    let of = |yaml: &str| format!("    config {}", folder.write("c.yaml", yaml));
    let option = "option tracing endpoint collector://main service s";
    let (is_good, said) = checked(&folder, &config(&of(&good), option));
    assert!(is_good && said.is_empty(), "{said}");
    // Relative names start from `default-path`, and several files are merged.
    let halves = good.split_once("exporters:").expect("two halves");
    folder.write("one.yaml", halves.0);
    folder.write("two.yaml", format!("exporters:{}", halves.1));
    let relative = config("    config one.yaml\n    config two.yaml", option)
        .replace("global\n", "global\n    default-path config\n");
    assert_eq!(checked(&folder, &relative), (true, String::new()));
    let error = good.replace("[ERROR]", "[ERR]");
    let logs = good
        .replace("    traces:", "    logs:")
        .replace("processors: [tail_sampling], ", "");
    let cases = [
        (
            &*error,
            "",
            option,
            "parsing [c.yaml:6] : collector 'main' : processors::tail_sampling::policies",
        ),
        (
            "receivers: [",
            "",
            option,
            "parsing [c.yaml:2] : collector 'main' : ",
        ),
        (
            &good,
            "    drop-part nop",
            option,
            "collector 'main' : --drop-part names 'nop', which is not defined.",
        ),
        (
            &good,
            "    config /nowhere/c.yaml",
            option,
            "Cannot read file '/nowhere/c.yaml' : No such file or directory.",
        ),
        (
            &good,
            "",
            "option tracing endpoint collector://mian",
            "there is no section 'collector mian'; did you mean 'main' maybe ?.",
        ),
        (
            &logs,
            "",
            option,
            "filter 'tracing' : collector 'main' accepts no traces",
        ),
    ];
    for (yaml, lines, option, expected) in cases {
        let section = format!("{}\n{lines}", of(yaml));
        let (is_good, said) = checked(&folder, &config(&section, option));
        assert!(!is_good && said.contains(expected), "{expected}: {said}");
    }
    let filter = |name: &str| filter(&folder, OTEL, &yml(name));
    let (is_good, said) = checked(&folder, &config(&of(NOTHING), &filter("main")));
    assert!(is_good, "{said}");
    let (is_good, said) = checked(&folder, &config(&of(NOTHING), &filter("min")));
    let fault =
        "parsing [otel.yml:2] : there is no section 'collector min'; did you mean 'main' maybe ?.";
    assert!(!is_good && said.contains(fault), "{said}");
    let (is_good, said) = checked(&folder, &config(&of(&good), &filter("main")));
    let fault = "otel.yml:2 : collector 'main' accepts no metrics: none";
    assert!(!is_good && said.contains(fault), "{said}");
    let metrics = good.replace(
        "  pipelines:\n",
        "  pipelines:\n    metrics: { receivers: [statsd], exporters: [otlphttp] }\n",
    );
    let metrics = metrics.replace("receivers:\n", "receivers:\n  statsd: {}\n");
    let lax = config(&of(&metrics), option);
    let (is_good, said) = checked(&folder, &lax);
    assert!(
        is_good && said.contains("[WARNING]") && said.contains("'statsd'"),
        "{said}"
    );
    let (is_good, said) = checked(&folder, &lax.replace("c.yaml", "c.yaml\n    strict"));
    assert!(!is_good && said.contains("[ALERT]"), "{said}");
}

#[test]
fn a_port_that_another_part_has_is_told_at_the_start() {
    let folder = Folder::new();
    let port = Port::reserve();
    let yaml = sampling(port.number, address(&listener()));
    let file = folder.write("c.yaml", yaml);
    let of = |rest: &str| {
        let config = format!("{DEFAULTS}\ncollector one\n    config {file}\n{rest}\n");
        let file = folder.write("t.cfg", config);
        let ended = spawn(move || run(&["-db", "-f", &file]));
        ended.recv_timeout(DEADLINE).expect("it does not start")
    };
    let two = format!("collector two\n    config {file}\n");
    let web = format!(
        "frontend web\n    bind 127.0.0.1:{}\n    http-request return status 200\n",
        port.number
    );
    let also = "frontend web\n    bind 127.0.0.1:0\n    http-request return status 200\n";
    let cases = [
        (format!("{two}{also}"), "otlp http of collector 'one'"),
        (web, "of proxy 'web'"),
    ];
    for (rest, other) in cases {
        let output = of(&rest);
        assert!(!output.status.success());
        let said = format!("the address 127.0.0.1:{} is already used by ", port.number);
        assert!(
            output.stderr.contains(&said) && output.stderr.contains(other),
            "{}",
            output.stderr
        );
    }
}
