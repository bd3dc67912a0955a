//! The filter `opentelemetry` and `option tracing` of the running program, against a receiver.

use crate::common;

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use common::http::Client;
use common::origin::Origin;
use common::otlp::{Receiver, filter, hex, settings, value};
use common::{
    DEADLINE, DEFAULTS, Folder, Output, Port, Proxy, address, listener, run, spawn, uninterrupted,
};

/// A tree of three spans, a counter and a log record for each request.
const OTEL: &str = "
otel-instrumentation i
    config {yml}
    scopes session request response end
otel-scope session
    span \"session\" root
        attribute \"client\" src
    instrument cnt_int \"requests\" desc \"Requests\" unit \"1\" value int(1)
    otel-event on-client-session-start
otel-scope request
    span \"request\" parent \"session\"
        attribute \"path\" path
        attribute \"tls\" ssl_fc
    instrument update \"requests\" attr \"method\" method
    otel-event on-frontend-http-request
otel-scope response
    span \"response\" parent \"request\" kind client
        attribute \"status\" status
    log-record warn id 7 event \"answer\" span \"response\" attr \"n\" int(5) \"%[path] %[status]\"
    otel-event on-http-response
otel-scope end
    finish *
    otel-event on-stream-stop
";

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A `listen` with these lines before its server.
fn listen(lines: &str, to: SocketAddr) -> String {
    format!("{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n{lines} server s {to}\n")
}

fn get(at: SocketAddr, path: &str, fields: &str) -> common::http::Message {
    let mut client = Client::connect(at);
    client.send(format!(
        "GET {path} HTTP/1.1\r\nhost: test\r\n{fields}connection: close\r\n\r\n"
    ));
    client.response().expect("an answer")
}

/// Ends the program. It must not wait as long as it would for a receiver that does not answer.
fn end(proxy: Proxy) -> Output {
    proxy.running.signal(libc::SIGTERM);
    let ending = spawn(move || proxy.running.end());
    let output = ending.recv_timeout(Duration::from_secs(6));
    let output = output.expect("the program ends in time");
    assert!(output.status.success(), "{}", output.stderr);
    output
}

#[test]
fn a_filter_exports_spans_log_records_and_measurements() {
    let (origin, front, mut receiver) = (Origin::echo(), listener(), Receiver::start());
    let folder = Folder::new();
    let line = filter(&folder, OTEL, &settings(receiver.at, "shop"));
    let config = listen(&line, origin.at);
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    for number in 0..3 {
        let answer = get(address(&front), &format!("/{number}"), "");
        assert_eq!(answer.status, 200);
        // Requests of the exporter may arrive out of order.
        receiver.until("its records", |all| {
            all.spans.len() == 3 * (number + 1) && all.logs.len() == number + 1
        });
    }
    receiver.until("all", |all| all.sums.get("requests method=GET") == Some(&3));
    for (number, spans) in receiver.spans.chunks(3).enumerate() {
        let spans: Vec<_> = spans.iter().map(|(_, span)| span).collect();
        let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["session", "request", "response"]);
        assert!(spans[0].parent_span_id.is_empty());
        assert_eq!(spans[1].parent_span_id, spans[0].span_id);
        assert_eq!(spans[2].parent_span_id, spans[1].span_id);
        assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id));
        assert_eq!((spans[0].kind, spans[2].kind), (2, 3));
        let of = |span: usize, key| value(&spans[span].attributes, key);
        assert_eq!(of(0, "client").as_deref(), Some("127.0.0.1"));
        assert_eq!(of(1, "path"), Some(format!("/{number}")));
        assert_eq!(of(1, "tls").as_deref(), Some("false"));
        assert_eq!(of(2, "status").as_deref(), Some("200"));
        assert!(spans[0].start_time_unix_nano <= spans[2].start_time_unix_nano);
        assert!(spans[2].end_time_unix_nano <= spans[0].end_time_unix_nano);
        let log = &receiver.logs[number];
        assert_eq!(
            (&log.trace_id, &log.span_id),
            (&spans[2].trace_id, &spans[2].span_id)
        );
        assert_eq!((log.severity_number, &*log.severity_text), (13, "WARN"));
        assert_eq!(
            (&*log.event_name, value(&log.attributes, "n").as_deref()),
            ("answer", Some("5"))
        );
        let body = format!("{:?}", log.body);
        assert!(body.contains(&format!("\"/{number} 200\"")), "{body}");
    }
    let resource = &receiver.resources[0].attributes;
    assert_eq!(value(resource, "service.name").as_deref(), Some("shop"));
    assert_eq!(
        value(resource, "deployment.environment.name").as_deref(),
        Some("test")
    );
    assert!(receiver.scopes.iter().all(|name| name == "Scope"));
    let output = end(proxy);
    assert!(!output.stderr.contains("otel"), "{}", output.stderr);
}

#[test]
fn two_proxies_make_one_trace() {
    let (origin, front, back) = (Origin::echo(), listener(), listener());
    let mut receiver = Receiver::start();
    let inner = "
otel-instrumentation i
    config {yml}
    option require-context
    scopes request end
otel-scope request
    extract \"otel-ctx\" use-headers
    span \"inner\" parent \"otel-ctx\"
        attribute \"who\" req.hdr(otel-ctx-baggage)
    otel-event on-frontend-http-request
otel-scope end
    finish *
    otel-event on-stream-stop
";
    let outer = "
otel-instrumentation i
    config {yml}
    scopes start request end
otel-scope start
    span \"outer\" root
        baggage \"who\" str(me)
    otel-event on-client-session-start
otel-scope request
    span \"sent\" parent \"outer\" kind client
        inject \"otel-ctx\" use-headers
    otel-event on-http-process-request
otel-scope end
    finish *
    otel-event on-stream-stop
";
    let folder = Folder::new();
    let line = filter(&folder, inner, &settings(receiver.at, "inner"));
    let be = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &back)]);
    let folder = Folder::new();
    let line = filter(&folder, outer, &settings(receiver.at, "outer"));
    let fe = Proxy::start_in(folder, &listen(&line, address(&back)), &[("FRONT", &front)]);
    // The inner proxy does not continue a trace without a context.
    assert_eq!(get(address(&back), "/untraced", "").status, 200);
    let answer = get(address(&front), "/traced", "");
    receiver.until("three spans", |all| all.spans.len() == 3);
    end(fe);
    end(be);
    receiver.rest();
    assert_eq!(receiver.spans.len(), 3);
    let (outer, sent, inner) = (
        receiver.span("outer"),
        receiver.span("sent"),
        receiver.span("inner"),
    );
    assert_eq!(sent.parent_span_id, outer.span_id);
    assert_eq!(inner.parent_span_id, sent.span_id);
    assert_eq!(
        (&sent.trace_id, &inner.trace_id),
        (&outer.trace_id, &outer.trace_id)
    );
    // The parent is in another process, or in this one.
    assert_eq!((inner.flags, sent.flags), (0x301, 0x101));
    assert_eq!(value(&inner.attributes, "who").as_deref(), Some("who=me"));
    let service = |name: &str| {
        receiver
            .spans
            .iter()
            .any(|(of, span)| of == name && span.name == name)
    };
    assert!(service("inner") && service("outer"));
    let told = format!(
        "otel-ctx-traceparent: 00-{}-{}-01\n",
        hex(&sent.trace_id),
        hex(&sent.span_id)
    );
    assert!(answer.text().contains(&told), "{}", answer.text());
}

#[test]
fn option_tracing_goes_on_with_the_client_s_trace() {
    let (origin, front, mut receiver) = (Origin::echo(), listener(), Receiver::start());
    let line = format!(
        " option tracing endpoint http://{} service shop\n",
        receiver.at
    );
    let proxy = Proxy::start(&listen(&line, origin.at), &[("FRONT", &front)]);
    let fields = format!("traceparent: {PARENT}\r\ntracestate: a=b\r\n");
    let answer = get(address(&front), "/a?b=c", &fields);
    end(proxy);
    receiver.rest();
    assert_eq!(receiver.spans.len(), 2, "{:?}", receiver.spans);
    let of_kind = |kind: i32| receiver.spans.iter().find(|(_, span)| span.kind == kind);
    let ((service, server), (_, client)) = (of_kind(2).unwrap(), of_kind(3).unwrap());
    assert_eq!(service, "shop");
    assert_eq!(hex(&server.trace_id), &PARENT[3..35]);
    assert_eq!(hex(&server.parent_span_id), &PARENT[36..52]);
    assert_eq!(client.parent_span_id, server.span_id);
    assert_eq!((server.flags, client.flags), (0x301, 0x101));
    assert_eq!(server.trace_state, "a=b");
    let of = |key| value(&server.attributes, key);
    assert_eq!(of("url.path").as_deref(), Some("/a"));
    assert_eq!(of("url.query").as_deref(), Some("b=c"));
    assert_eq!(of("http.response.status_code").as_deref(), Some("200"));
    assert_eq!(of("proxy.server").as_deref(), Some("s"));
    let text = answer.text();
    let told = format!(
        "traceparent: 00-{}-{}-01\n",
        &PARENT[3..35],
        hex(&client.span_id)
    );
    assert!(
        text.contains(&told) && text.contains("tracestate: a=b\n"),
        "{text}"
    );
    assert_eq!(text.matches("traceparent").count(), 1, "{text}");
}

/// The files and libraries of the C library's resolver are out of reach in the `chroot`.
#[test]
fn a_receiver_has_a_name_within_a_chroot() {
    if !common::sys::is_root() {
        return common::skipped("only root changes its root directory");
    }
    let (origin, front, mut receiver) = (Origin::echo(), listener(), Receiver::start());
    let root = Folder::new();
    let line = format!(
        " option tracing endpoint http://localhost:{} service shop\n",
        receiver.at.port()
    );
    let config = format!(
        "global\n chroot {}\n uid 65534\n gid 65534\n{}",
        root.root().display(),
        listen(&line, origin.at)
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    assert_eq!(get(address(&front), "/", "").status, 200);
    receiver.until("a span", |all| !all.spans.is_empty());
    let inside = std::fs::read_link(format!("/proc/{}/root", proxy.running.pid()));
    assert_eq!(inside.expect("its root"), root.root());
    end(proxy);
}

#[test]
fn contexts_go_on_in_the_form_that_the_environment_names() {
    let (origin, front, mut receiver) = (Origin::echo(), listener(), Receiver::start());
    let line = format!(" option tracing endpoint http://{}\n", receiver.at);
    let config = format!(
        "global\n setenv OTEL_PROPAGATORS b3multi\n setenv OTEL_BSP_SCHEDULE_DELAY 100\n{}",
        listen(&line, origin.at)
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let (trace, span) = (&PARENT[3..35], &PARENT[36..52]);
    let fields = format!(
        "x-b3-traceid: {trace}\r\nx-b3-spanid: {span}\r\nx-b3-sampled: 1\r\ntraceparent: 00-{span}{span}-{span}-01\r\n"
    );
    let answer = get(address(&front), "/", &fields);
    // Only the batch timeout sends them here.
    receiver.until("both spans", |all| all.spans.len() == 2);
    end(proxy);
    let of_kind = |kind: i32| receiver.spans.iter().find(|(_, span)| span.kind == kind);
    let ((_, server), (_, client)) = (of_kind(2).unwrap(), of_kind(3).unwrap());
    assert_eq!(
        (hex(&server.trace_id), hex(&server.parent_span_id)),
        (trace.into(), span.into())
    );
    let text = answer.text();
    for told in [
        format!("x-b3-traceid: {trace}\n"),
        format!("x-b3-spanid: {}\n", hex(&client.span_id)),
        "x-b3-sampled: 1\n".to_owned(),
        // These must not be changed.
        format!("traceparent: 00-{span}{span}-{span}-01\n"),
    ] {
        assert!(text.to_ascii_lowercase().contains(&told), "{told}: {text}");
    }
}

#[test]
fn a_receiver_that_is_not_there_costs_nothing_but_its_records() {
    let (origin, front, nobody) = (Origin::echo(), listener(), Port::reserve());
    let folder = Folder::new();
    let at: SocketAddr = format!("127.0.0.1:{}", nobody.number).parse().unwrap();
    let line = filter(&folder, OTEL, &settings(at, "shop"));
    let proxy = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &front)]);
    for _ in 0..5 {
        assert_eq!(get(address(&front), "/", "").status, 200);
    }
    let output = end(proxy);
    assert!(
        output
            .stderr
            .contains("of 15 records 0 were exported; lost : "),
        "{}",
        output.stderr
    );
    assert!(
        output
            .stderr
            .contains("of 5 records 0 were exported; lost : "),
        "{}",
        output.stderr
    );
}

#[test]
fn a_receiver_that_hangs_delays_nobody() {
    let (origin, front) = (Origin::echo(), listener());
    let hanging = Origin::raw(|mut stream| {
        let mut sink = [0; 4096];
        while uninterrupted(|| stream.read(&mut sink)).is_ok_and(|count| count > 0) {}
    });
    let folder = Folder::new();
    let line = filter(&folder, OTEL, &settings(hanging.at, "shop"));
    let proxy = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &front)]);
    for _ in 0..5 {
        assert_eq!(get(address(&front), "/", "").status, 200);
    }
    let output = end(proxy);
    assert!(
        output
            .stderr
            .contains("of 15 records 0 were exported; lost : "),
        "{}",
        output.stderr
    );
}

#[test]
fn a_slow_receiver_gets_all_in_the_end() {
    let (origin, front) = (Origin::echo(), listener());
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let mut receiver = Receiver::answering(move || {
        // Ends when the test releases it.
        let _ = released.lock().unwrap().recv_timeout(DEADLINE);
    });
    let folder = Folder::new();
    let line = filter(&folder, OTEL, &settings(receiver.at, "shop"));
    let proxy = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &front)]);
    for _ in 0..20 {
        assert_eq!(get(address(&front), "/", "").status, 200);
    }
    drop(release);
    receiver.until("all", |all| all.spans.len() == 60 && all.logs.len() == 20);
    let output = end(proxy);
    assert!(!output.stderr.contains("lost"), "{}", output.stderr);
}

#[test]
fn files_are_read_by_others() {
    let (origin, front) = (Origin::echo(), listener());
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).display().to_string();
    let yml = format!(
        "exporters:
  f: {{ type: otlp_file, file_pattern: \"{}\" }}
  o: {{ type: ostream, filename: \"{}\" }}
processors: {{ p: {{ type: single }} }}
signals:
  traces: {{ default: {{ scope_name: Scope, exporters: [ f, o ], processors: [ p, p ] }} }}
",
        path("spans.json"),
        path("spans.txt")
    );
    let otel = OTEL
        .lines()
        .filter(|line| !line.contains("log-record") && !line.contains("instrument "));
    let otel: String = otel.map(|line| format!("{line}\n")).collect();
    let line = filter(&folder, &otel, &yml);
    let mut proxy = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &front)]);
    for _ in 0..2 {
        get(address(&front), "/x", "");
    }
    let folder = std::mem::replace(&mut proxy.folder, Folder::new());
    let output = end(proxy);
    assert!(!output.stderr.contains("lost"), "{}", output.stderr);
    let json = std::fs::read_to_string(folder.path("spans.json")).expect("a file");
    let mut names = Vec::new();
    for line in json.lines() {
        let request: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
        for span in spans.as_array().expect("spans") {
            assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
            names.push(span["name"].as_str().expect("a name").to_owned());
        }
    }
    names.sort();
    assert_eq!(
        names,
        [
            "request", "request", "response", "response", "session", "session"
        ]
    );
    let text = std::fs::read_to_string(folder.path("spans.txt")).expect("a file");
    assert_eq!(
        text.matches("\nspan \"request\" trace ").count(),
        2,
        "{text}"
    );
}

#[test]
fn what_is_wrong_with_a_filter_s_files_has_its_place() {
    let folder = Folder::new();
    let yml = settings("127.0.0.1:1".parse().unwrap(), "shop");
    let cases = [
        (
            OTEL.to_owned(),
            yml.replace("exporters: l,", "exporters: none,"),
            "otel.yml:15]",
        ),
        (
            OTEL.to_owned(),
            yml.replace("export_interval: 200", "export_interval: soon"),
            "otel.yml:6]",
        ),
        (
            OTEL.to_owned(),
            yml.replace("signals:", "signals: ["),
            "otel.yml:",
        ),
        (
            OTEL.replace("finish *", "finish"),
            yml.clone(),
            "otel.cfg:2",
        ),
        (
            OTEL.replace("{yml}", "/nonexistent.yml"),
            yml.clone(),
            "otel.cfg:4]",
        ),
    ];
    for (otel, yml, place) in cases {
        let line = filter(&folder, &otel, &yml);
        let text = format!(
            "{DEFAULTS}\nfrontend f\n bind 127.0.0.1:0\n{line} http-request return status 200\n"
        );
        let file = folder.write("haproxy.cfg", text);
        let output = run(&["-c", "-f", &file]);
        assert_eq!(output.status.code(), Some(1), "{place}: {}", output.stderr);
        assert!(output.stderr.contains(place), "{place}: {}", output.stderr);
    }
}

#[test]
fn names_of_propagators_that_mean_nothing_are_told() {
    let folder = Folder::new();
    let cases = [
        ("w3c, b3", "OTEL_PROPAGATORS: 'w3c' is not taken"),
        ("none", ""),
        (" ", ""),
    ];
    for (names, told) in cases {
        let text = format!(
            "global\n setenv OTEL_PROPAGATORS \"{names}\"\n{DEFAULTS}\nfrontend f\n bind 127.0.0.1:0\n option tracing\n http-request return status 200\n"
        );
        let output = run(&["-c", "-f", &folder.write("haproxy.cfg", text)]);
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        assert_eq!(
            output.stderr.is_empty(),
            told.is_empty(),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains(told), "{}", output.stderr);
    }
}

#[test]
fn a_filter_that_is_off_touches_nothing() {
    for off in ["rate-limit 0", "option disabled"] {
        let (origin, front, mut receiver) = (Origin::echo(), listener(), Receiver::start());
        let folder = Folder::new();
        let otel = OTEL.replace("    scopes", &format!("    {off}\n    scopes"));
        let otel = otel.replace("attribute \"path\" path", "inject \"-\" use-headers");
        let line = filter(&folder, &otel, &settings(receiver.at, "shop"));
        let proxy = Proxy::start_in(folder, &listen(&line, origin.at), &[("FRONT", &front)]);
        let answer = get(address(&front), "/", &format!("traceparent: {PARENT}\r\n"));
        let text = answer.text();
        assert!(text.contains(&format!("traceparent: {PARENT}\n")), "{text}");
        end(proxy);
        receiver.rest();
        assert_eq!((receiver.spans.len(), receiver.logs.len()), (0, 0), "{off}");
        assert_eq!(receiver.sums.len(), 0, "{off}");
    }
}
