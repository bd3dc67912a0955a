//! Scopes of the filter `opentelemetry` at the events of a stream.

use crate::traces::{exported, shown, shown_value, traced};

const INSTRUMENTATION: &str = "otel-instrumentation i\n config otel.yml\n";
const GET: &str = "c1 > GET /a?b=c HTTP/1.1|host: h|x-n: 7||";
const OK: &str = "HTTP/1.1 200 OK|content-length: 2||";
/// Scopes by name.
type Scopes<'a> = &'a [(&'a str, &'a str)];

const SERVED: &str = "s1 ok\ns1 <~ GET /a?b=c HTTP/1.1|host: h|x-n: 7|";

/// A served request.
fn served() -> String {
    format!("{GET}\n{SERVED}\ns1 > {OK}hi\nc1 < {OK}hi\nquiet")
}

/// An instrumentation of all of these scopes.
fn scopes(scopes: &[(&str, &str)]) -> String {
    let names: Vec<&str> = scopes.iter().map(|(name, _)| *name).collect();
    let mut text = format!("{INSTRUMENTATION} scopes {}\n", names.join(" "));
    for (name, body) in scopes {
        text.push_str(&format!("otel-scope {name}\n{body}\n"));
    }
    text
}

#[test]
fn a_span_with_all_that_it_may_have() {
    let otel = scopes(&[
        (
            "start",
            "span root root kind client\n baggage who src\n baggage empty req.hdr(none)\n otel-event on-stream-start",
        ),
        (
            "request",
            "span child parent root link root\n attribute n int(42)\n attribute m method\n attribute yes bool(true)\n attribute text str(a) path str(z)\n attribute fmt \"%[path]?%[query]\"\n attribute none req.hdr(none)\n attribute b req.hdr(x-n) if { path /b }\n attribute b str(other)\n event one k1 str(v1)\n event one k2 int(2)\n event two k3 path\n status error str(why)\n exception Oops message str(boom) attr at int(3)\n link root attr l str(x)\n otel-event on-frontend-http-request",
        ),
        ("stop", "finish *\n otel-event on-stream-stop"),
    ]);
    let out = traced("all", &otel, "", &served());
    assert_eq!(out.tree(), [">root", "root>child"]);
    let (root, child) = (out.span("root"), out.span("child"));
    assert_eq!(root.trace_id, child.trace_id);
    assert_eq!((root.kind, child.kind), (3, 2));
    assert_eq!(
        shown(&child.attributes),
        r#"n=42 m="GET" yes=true text="a/az" fmt="/a?b=c" none="" b="other""#
    );
    let events: Vec<String> = child
        .events
        .iter()
        .map(|event| format!("{}: {}", event.name, shown(&event.attributes)))
        .collect();
    assert_eq!(
        events,
        [
            r#"one: k1="v1" k2=2"#,
            r#"two: k3="/a""#,
            r#"exception: exception.type="Oops" exception.message="boom" at=3"#,
        ]
    );
    let links: Vec<String> = child
        .links
        .iter()
        .map(|link| shown(&link.attributes))
        .collect();
    assert_eq!(links, ["", r#"l="x""#]);
    assert!(child.links.iter().all(|link| link.span_id == root.span_id));
    let status = child.status.as_ref().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "why"));
    assert!(root.start_time_unix_nano <= child.start_time_unix_nano);
    assert!(child.end_time_unix_nano <= root.end_time_unix_nano);
    assert_eq!(root.flags & 1, 1);
}

#[test]
fn the_frontend_s_filter_sees_each_event_once_whatever_the_backend_s_follows() {
    let names: Vec<String> = telemetry::Event::ALL
        .iter()
        .map(|event| event.name().to_owned())
        .collect();
    let list: Vec<(String, String)> = names
        .iter()
        .map(|name| {
            let short = name.replace('-', "_");
            let idle = match name.as_str() {
                "on-idle-timeout" => " idle-timeout 1h\n",
                _ => "",
            };
            let body = format!("{idle} span {name}\n finish {name}\n otel-event {name}");
            (short, body)
        })
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(n, b)| (n.as_str(), b.as_str())).collect();
    let scopes = scopes(&list);
    let otel = format!("{scopes}[b]\n{scopes}");
    let lines = "default_backend app\nbackend app\n filter opentelemetry id b config {file}\n";
    let alone = traced(
        "alone",
        &scopes,
        "default_backend app\nbackend app\n",
        &served(),
    );
    let both = traced("both", &otel, lines, &served());
    assert!(alone.spans.len() > 20);
    assert_eq!(both.tree(), alone.tree());
}

#[test]
fn each_filter_s_idle_streams_are_told_by_its_own_clock() {
    let idle = |time: &str| {
        let body =
            format!("span idle\n finish idle\n idle-timeout {time}\n otel-event on-idle-timeout");
        scopes(&[("s", body.as_str())])
    };
    let otel = format!("{}[b]\n{}", idle("2s"), idle("500ms"));
    let script = format!("{GET}\n{SERVED}\nwait 4400\ns1 > {OK}hi\nc1 < {OK}hi\nquiet");
    let out = traced(
        "idle",
        &otel,
        "filter opentelemetry id b config {file}",
        &script,
    );
    assert_eq!(out.tree(), [">idle", ">idle"]);
}

#[test]
fn every_event_of_a_served_request_in_its_order() {
    let events = [
        "stream-start",
        "client-session-start",
        "frontend-tcp-request",
        "http-wait-request",
        "http-body-request",
        "frontend-http-request",
        "switching-rules-request",
        "backend-set",
        "process-server-rules-request",
        "http-process-request",
        "tcp-rdp-cookie-request",
        "process-sticking-rules-request",
        "http-headers-request",
        "server-session-start",
        "tcp-response",
        "http-end-request",
        "http-wait-response",
        "process-store-rules-response",
        "http-response",
        "http-headers-response",
        "http-end-response",
        "client-session-end",
        "server-session-end",
        "stream-stop",
    ];
    let list: Vec<(String, String)> = events
        .iter()
        .map(|event| {
            (
                event.replace('-', "_"),
                format!("span {event}\n otel-event on-{event}"),
            )
        })
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(n, b)| (n.as_str(), b.as_str())).collect();
    let out = traced("events", &scopes(&list), "", &served());
    let mut spans = out.spans.clone();
    spans.sort_by_key(|span| span.start_time_unix_nano);
    let names: Vec<&str> = out.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, events);
    assert_eq!(spans.len(), events.len());
    let account = &out.account;
    assert_eq!((account.started(), events.len()), (24, 24));
}

#[test]
fn what_comes_where_no_server_is_asked() {
    let otel = scopes(&[
        (
            "reply",
            "span reply\n attribute code status\n otel-event on-http-reply",
        ),
        ("none", "span none\n otel-event on-server-unavailable"),
        ("wait", "span never\n otel-event on-http-wait-response"),
        ("tarpit", "span tarpit\n otel-event on-http-tarpit-request"),
    ]);
    let out = traced(
        "deny",
        &otel,
        "http-request deny",
        &format!("{GET}\nc1 <~ HTTP/1.1 403\nquiet"),
    );
    assert_eq!(out.tree(), [">reply", ">none"]);
    assert_eq!(shown(&out.span("reply").attributes), "code=403");
    let out = traced(
        "tarpit",
        &otel,
        "http-request tarpit",
        &format!("{GET}\nwait 6000\nc1 <~ HTTP/1.1 500\nquiet"),
    );
    assert_eq!(out.tree(), [">tarpit", ">reply", ">none"]);
}

#[test]
fn contexts_travel() {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let otel = scopes(&[(
        "request",
        "extract - use-headers\n span s parent -\n baggage k str(\"v w\")\n inject - use-headers\n inject_not_twice",
    )]);
    // An unknown keyword is told; without it all is well.
    let otel = otel.replace(
        "\n inject_not_twice",
        "\n otel-event on-frontend-http-request",
    );
    let script = format!(
        "c1 > GET / HTTP/1.1|host: h|traceparent: {parent}|tracestate: a=b|baggage: x=y||\ns1 ok\ns1 <~ GET / HTTP/1.1|host: h|traceparent: 00-{trace}-"
    );
    let out = traced(
        "w3c",
        &otel,
        "",
        &format!("{script}\ns1 > {OK}hi\nc1 < {OK}hi"),
    );
    let span = out.span("s");
    assert_eq!(
        span.parent_span_id,
        [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]
    );
    assert_eq!(span.trace_state, "a=b");
    assert_eq!(span.flags, 0x301);

    let otel = scopes(&[
        (
            "first",
            "span a root\n inject CTX-1 use-headers use-vars\n otel-event on-frontend-http-request",
        ),
        (
            "second",
            "extract CTX-1 use-vars\n span b parent CTX-1\n finish CTX-1 a\n attribute gone var(txn.ctxD1.traceparent),length\n otel-event on-switching-rules-request",
        ),
        (
            "third",
            "span c parent b\n attribute gone var(txn.ctxD1.traceparent)\n otel-event on-http-process-request",
        ),
    ]);
    let out = traced(
        "vars",
        &otel,
        "",
        &format!(
            "{GET}\ns1 ok\ns1 <~ GET /a?b=c HTTP/1.1|host: h|x-n: 7||\ns1 > {OK}hi\nc1 < {OK}hi"
        ),
    );
    assert_eq!(out.tree(), [">a", "a>b", "b>c"]);
    assert_eq!(shown(&out.span("b").attributes), "gone=55");
    assert_eq!(shown(&out.span("c").attributes), "gone=\"\"");
}

#[test]
fn expressions_ask_for_contexts() {
    let otel = scopes(&[
        (
            "request",
            "extract - use-headers\n extract other use-headers\n otel-event on-frontend-tcp-request",
        ),
        ("late", "finish -\n otel-event on-http-process-request"),
    ]);
    let lines =
        "http-request set-header seen %[otel.context(-)].%[otel.context(other)].%[otel.bytes_in]
        http-response set-header left .%[otel.context(-)]. ";
    let server = "server one 127.0.0.1:81";
    let cases = [
        (
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "1",
        ),
        ("nonsense", "0"),
    ];
    for (parent, seen) in cases {
        let script = format!(
            "c1 > GET / HTTP/1.1|host: h|traceparent: {parent}||
             s1 ok\ns1 < GET / HTTP/1.1|host: h|traceparent: {parent}|seen: {seen}..0||
             s1 > {OK}hi\nc1 < HTTP/1.1 200 OK|content-length: 2|left: ..||hi\nquiet"
        );
        let lines = format!("{lines}\n {server}");
        assert!(traced("fetches", &otel, &lines, &script).spans.is_empty());
    }
    let lines = format!("http-request set-header seen .%[otel.context(-)].\n {server}");
    let script = format!(
        "{GET}\ns1 ok\ns1 < GET /a?b=c HTTP/1.1|host: h|x-n: 7|seen: ..||\ns1 > {OK}hi\nc1 < {OK}hi"
    );
    traced("none", &otel, &lines, &script);
}

#[test]
fn log_records() {
    let otel = scopes(&[(
        "request",
        "span s\n log-record warn2 id 3 event happened span s attr k int(1) attr l path str(body) str(\" \") path\n log-record info str(other) if { path /b }\n otel-event on-frontend-http-request",
    )]);
    let out = traced("logs", &otel, "", &served());
    let [log] = &out.logs[..] else {
        panic!("{:?}", out.logs)
    };
    assert_eq!(
        (log.severity_number, log.severity_text.as_str()),
        (14, "WARN2")
    );
    assert_eq!(shown_value(log.body.as_ref()), "\"body /a\"");
    assert_eq!(shown(&log.attributes), "k=1 l=\"/a\"");
    assert_eq!(log.event_name, "happened");
    assert_eq!(log.span_id, out.span("s").span_id);
}

#[test]
fn policies_decide_by_the_outcome() {
    let otel = |policies: &str| {
        scopes(&[("s", "span s\n otel-event on-stream-start")])
            .replace(" config", &format!(" {policies}\n config"))
    };
    let policy =
        "sampling errors status 500-599\n sampling slow duration 2s\n sampling base probability 0";
    let out = traced("fine", &otel(policy), "", &served());
    assert_eq!(out.tree(), [""; 0]);
    assert_eq!(out.account.started(), 1);
    assert_eq!(out.account.lost(telemetry::account::Loss::SampledOut), 1);
    let script = format!("{GET}\n{SERVED}\ns1 > HTTP/1.1 503 No|content-length: 0||\nquiet");
    let out = traced("an error", &otel(policy), "", &script);
    let span = out.span("s");
    assert_eq!(shown(&span.attributes), "tailsampling.policy=\"errors\"");
    assert_eq!((span.trace_state.as_str(), span.flags & 1), ("ot=th:0", 0));
    let script = format!("{GET}\n{SERVED}\nwait 2500\ns1 > {OK}hi\nquiet");
    let out = traced("slow", &otel(policy), "", &script);
    assert_eq!(
        shown(&out.span("s").attributes),
        "tailsampling.policy=\"slow\""
    );
    let out = traced("all", &otel("sampling base probability 100"), "", &served());
    let span = out.span("s");
    assert_eq!((span.trace_state.as_str(), span.flags & 1), ("ot=th:0", 1));
    let seen = "sampling new first-seen path";
    let twice = format!("{}\n{GET}\ns1 <~ GET /a\ns1 > {OK}hi\nquiet", served());
    let out = traced("first seen", &otel(seen), "", &twice);
    assert_eq!(out.tree(), [">s"]);
}

#[test]
fn idle_streams_beat() {
    let otel = scopes(&[
        ("start", "span root\n otel-event on-stream-start"),
        (
            "beat",
            "idle-timeout 1s\n span beat parent root\n finish beat\n otel-event on-idle-timeout",
        ),
    ]);
    let script = format!("{GET}\n{SERVED}\nwait 1000\nwait 1000\nwait 1000\ns1 > {OK}hi\nquiet");
    let out = traced("idle", &otel, "", &script);
    assert_eq!(out.tree(), [">root", "root>beat", "root>beat", "root>beat"]);
}

#[test]
fn groups_run_by_rules() {
    let otel = format!(
        "{INSTRUMENTATION} groups g\notel-group g\n scopes a b\notel-scope a\n span a\notel-scope b\n span b parent a\n attribute code status\n otel-stop\n"
    );
    let out = traced(
        "a group",
        &otel,
        "http-after-response otel-group f g if { status 200 }",
        &served(),
    );
    assert_eq!(out.tree(), [">a", "a>b"]);
    assert_eq!(shown(&out.span("b").attributes), "code=200");
}

#[test]
fn one_line_traces_requests_and_tries() {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let sent = format!(
        "c1 > GET /a/b?c=d HTTP/1.1|host: h:8080|user-agent: u|traceparent: 00-{trace}-b7ad6b7169203331-01||"
    );
    let script = format!(
        "{sent}\ns1 ok\ns1 <~ GET /a/b?c=d HTTP/1.1|host: h:8080|user-agent: u|traceparent: 00-{trace}-\nwait 20\ns1 > {OK}hi\nc1 < {OK}hi\nquiet"
    );
    let out = exported("served", "option tracing", &script);
    assert_eq!(out.tree(), ["?>GET", "GET>GET"]);
    let [server, client] = [&out.spans[0], &out.spans[1]];
    assert_eq!((server.kind, client.kind), (2, 3));
    assert_eq!(
        server.parent_span_id,
        [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]
    );
    assert_eq!(
        shown(&server.attributes),
        "url.scheme=\"http\" http.request.method=\"GET\" url.path=\"/a/b\" url.query=\"c=d\" \
         server.address=\"h\" server.port=8080 user_agent.original=\"u\" network.protocol.version=\"1.1\" \
         client.address=\"10.0.0.1\" network.peer.address=\"10.0.0.1\" network.peer.port=5000 \
         http.response.status_code=200 proxy.frontend=\"rules\" proxy.backend=\"rules\" proxy.server=\"one\" \
         proxy.server.connection_reused=false proxy.server.choice=\"roundrobin\" proxy.time.request_ms=0 \
         proxy.time.queue_ms=0 proxy.time.connect_ms=0 proxy.time.response_ms=20 proxy.bytes_in=124 \
         proxy.bytes_out=40 proxy.termination_state=\"--\""
    );
    assert_eq!(
        shown(&client.attributes),
        "http.request.method=\"GET\" server.address=\"127.0.0.1\" server.port=81 network.peer.address=\"127.0.0.1\" \
         network.peer.port=81 url.full=\"http://127.0.0.1:81/a/b?c=d\" proxy.server=\"one\" http.response.status_code=200"
    );
    assert!(server.status.as_ref().is_none_or(|status| status.code == 0));
}

#[test]
fn one_line_tells_of_errors_and_retries() {
    let lines = "option tracing\n retries 2\n retry-on 503\n server one 127.0.0.1:81";
    let script = format!(
        "{GET}\ns1 ok\ns1 <~ GET\ns1 > HTTP/1.1 503 No|content-length: 0||\ns2 ok\ns2 <~ GET\ns2 > {OK}hi\nc1 < {OK}hi\nquiet"
    );
    let out = exported("a retry", lines, &script);
    assert_eq!(out.tree(), [">GET", "GET>GET", "GET>GET"]);
    let codes: Vec<i32> = out
        .spans
        .iter()
        .map(|span| span.status.as_ref().map_or(0, |status| status.code))
        .collect();
    assert_eq!(codes, [0, 2, 0]);
    assert!(
        shown(&out.spans[1].attributes)
            .ends_with("http.response.status_code=503 error.type=\"503\"")
    );
    assert!(shown(&out.spans[2].attributes).contains("http.request.resend_count=1"));
    assert!(shown(&out.spans[0].attributes).contains("proxy.retries=1"));

    let denied = "option tracing\n http-request deny if { path /a }";
    let out = exported("deny", denied, &format!("{GET}\nc1 <~ HTTP/1.1 403\nquiet"));
    assert_eq!(out.tree(), [">GET"]);
    let attributes = shown(&out.spans[0].attributes);
    assert!(
        attributes.contains("http.response.status_code=403"),
        "{attributes}"
    );
    assert!(
        attributes.contains("proxy.rule=\"sim.cfg:18\""),
        "{attributes}"
    );
    let out = exported(
        "not understood",
        "option tracing",
        "c1 > nonsense||\nc1 <~ HTTP/1.1 400\nquiet",
    );
    assert_eq!(out.tree(), [">HTTP"]);
    let out = exported(
        "refused",
        "option tracing",
        &format!("{GET}\ns1 refuse\nc1 <~ HTTP/1.1 503\nquiet"),
    );
    assert_eq!(out.tree(), [">GET", "GET>GET"]);
    assert!(shown(&out.spans[1].attributes).contains("error.type="));
    assert!(shown(&out.spans[0].attributes).contains("error.type=\"503\""));
}

/// A request of a path to a frontend with these lines; its server span.
fn root_of(what: &str, lines: &str, path: &str) -> (String, String) {
    let script = format!(
        "c1 > GET {path} HTTP/1.1|host: h|cookie: srv=c2||\ns1 ok\ns1 <~ GET\ns1 > {OK}hi\nc1 < {OK}hi\nquiet"
    );
    let out = exported(what, lines, &script);
    let span = &out.spans[0];
    assert_eq!(span.kind, 2, "{what}");
    (span.name.clone(), shown(&span.attributes))
}

#[test]
fn one_line_tells_which_rule_led_where() {
    const ROUTED: &str = "option tracing\n acl shop path_beg /shop/ /cart/\n acl old path_reg ^/v[0-9]/\n \
        use_backend api if { method GET } { path -m str /api }\n use_backend api if !shop { path_end .js }\n \
        use_backend api if shop !old\n use_backend api if old\n use_backend api if { path_sub one two }\n \
        default_backend rest\nbackend api\n server one 127.0.0.1:81\nbackend rest\n server two 127.0.0.1:82";
    for (path, name, line) in [
        ("/api", "GET /api", 20),
        ("/a/b.js", "GET *.js", 21),
        ("/cart/7?x=1", "GET /cart/*", 22),
        ("/v1/x", "GET ^/v[0-9]/", 23),
        // Which of two, is not looked for.
        ("/one", "GET", 24),
        ("/else", "GET", 25),
    ] {
        let (found, attributes) = root_of(path, ROUTED, path);
        assert_eq!(found, name, "{path}");
        let rule = format!("proxy.backend.rule=\"sim.cfg:{line}\"");
        assert!(attributes.contains(&rule), "{path}: {attributes}");
        let route = name
            .strip_prefix("GET ")
            .map(|route| format!(" http.route=\"{route}\" "));
        match route {
            Some(route) => assert!(attributes.contains(&route), "{path}: {attributes}"),
            None => assert!(!attributes.contains("http.route"), "{path}: {attributes}"),
        }
    }
    // What the option says goes first.
    let said = ROUTED.replace(
        "option tracing",
        "option tracing sample 100 route path,regsub([0-9]+,{n},g)",
    );
    let (name, attributes) = root_of("said", &said, "/cart/17?x=1");
    assert_eq!(name, "GET /cart/{n}");
    assert!(
        attributes.contains("http.route=\"/cart/{n}\""),
        "{attributes}"
    );
    let none = ROUTED.replace("option tracing", "option tracing route var(txn.none)");
    assert_eq!(root_of("none", &none, "/api").0, "GET");
}

#[test]
fn one_line_tells_why_a_server_was_chosen() {
    for (lines, choice) in [
        ("balance leastconn\n server one 127.0.0.1:81", "leastconn"),
        ("cookie srv\n server one 127.0.0.1:81 cookie c2", "cookie"),
        (
            "use-server one if { path / }\n server one 127.0.0.1:81",
            "use-server",
        ),
        (
            "stick-table type string size 10\n stick on path\n server one 127.0.0.1:81",
            "roundrobin",
        ),
    ] {
        let (_, attributes) = root_of(choice, &format!("option tracing\n {lines}"), "/");
        let expected = format!("proxy.server.choice=\"{choice}\"");
        assert!(attributes.contains(&expected), "{attributes}");
        let has_rule = attributes.contains("proxy.server.rule=\"sim.cfg:18\"");
        assert_eq!(has_rule, choice == "use-server", "{attributes}");
    }
    // The rule is the one that applied, not the first.
    let lines = "use-server two if { path /x }\n use-server one if { path / }\n server one 127.0.0.1:81\n server two 127.0.0.1:82";
    let (_, attributes) = root_of("the second", &format!("option tracing\n {lines}"), "/");
    let rule = "proxy.server.rule=\"sim.cfg:19\"";
    assert!(attributes.contains(rule), "{attributes}");
}

#[test]
fn one_line_tells_which_rule_answered() {
    const RULES: &str = "option tracing\n redirect location /b if { path /a }\n stats uri /stats\n \
        http-request return status 200 if { path /own }\n http-request reject if { path /cut }\n \
        http-request redirect location /c if { path /moved }\n http-request auth if { path /who }\n \
        http-request tarpit if { path /slow }\n http-response deny if { status 418 }\n \
        http-request use-service prometheus-exporter if { path /metrics }\n timeout tarpit 1s\n server one 127.0.0.1:81";
    for (path, line) in [
        ("/a", 18),
        ("/stats", 19),
        ("/own", 20),
        ("/cut", 21),
        ("/moved", 22),
        ("/who", 23),
        ("/slow", 24),
        ("/metrics", 26),
    ] {
        let script = format!("c1 > GET {path} HTTP/1.1|host: h||\nwait 1500\nquiet");
        let out = exported(path, RULES, &script);
        let attributes = shown(&out.spans[0].attributes);
        let rule = format!("proxy.rule=\"sim.cfg:{line}\"");
        assert!(attributes.contains(&rule), "{path}: {attributes}");
    }
    let script = format!(
        "{GET}\ns1 ok\ns1 <~ GET\ns1 > HTTP/1.1 418 No|content-length: 0||\nc1 <~ HTTP/1.1 502\nquiet"
    );
    // The path of GET is the redirect's.
    let out = exported("response", &RULES.replace("path /a ", "path /z "), &script);
    let attributes = shown(&out.spans[0].attributes);
    assert!(
        attributes.contains("proxy.rule=\"sim.cfg:25\""),
        "{attributes}"
    );
}

#[test]
fn one_line_keeps_what_ended_badly() {
    let lines = "option tracing sample 0 errors slower 1s";
    let out = exported("fine", lines, &served());
    assert_eq!(out.tree(), [""; 0]);
    let script = format!("{GET}\n{SERVED}\nwait 1500\ns1 > {OK}hi\nquiet");
    let out = exported("slow", lines, &script);
    assert_eq!(out.spans.len(), 2);
    assert!(shown(&out.spans[1].attributes).ends_with("tailsampling.policy=\"slow\""));
    // What is not sampled still says so to the next.
    let script = format!(
        "{GET}\ns1 ok\ns1 <~ GET /a?b=c HTTP/1.1|host: h|x-n: 7|traceparent: 00-\ns1 > {OK}hi\nquiet"
    );
    let out = exported("none", "option tracing sample 0", &script);
    assert_eq!(out.tree(), [""; 0]);
}

#[test]
fn a_long_stream_hands_its_records_over() {
    let otel = scopes(&[
        (
            "start",
            "span root\n attribute k path\n event e k path\n otel-event on-stream-start",
        ),
        (
            "beat",
            "idle-timeout 1s\n span beat parent root link root\n finish beat\n log-record info str(beat)\n otel-event on-idle-timeout",
        ),
    ]);
    let beats = 2000;
    let script = format!("{GET}\n{SERVED}\n{}", "wait 1000\n".repeat(beats));
    let lines = "timeout server 1h\n timeout client 1h";
    let out = traced("long", &otel, lines, &format!("{script}s1 > {OK}hi\nquiet"));
    assert_eq!((out.spans.len(), out.logs.len()), (beats + 1, beats));
    let root = out.span("root");
    assert_eq!(shown(&root.attributes), "k=\"/a\"");
    assert_eq!(shown(&root.events[0].attributes), "k=\"/a\"");
    assert!(
        out.spans
            .iter()
            .all(|span| span.name == "root" || span.parent_span_id == root.span_id)
    );
    assert_eq!(out.account.started(), beats as u64 + 1);
}

#[test]
fn a_stop_ends_all() {
    let otel = scopes(&[
        (
            "first",
            "span a root\n inject CTX use-headers use-vars\n otel-event on-frontend-http-request",
        ),
        (
            "second",
            "extract CTX use-headers\n span b parent CTX\n otel-stop if { path /a }\n otel-event on-switching-rules-request",
        ),
        ("third", "span c\n otel-event on-http-process-request"),
    ]);
    let script = format!(
        "{GET}\ns1 ok\ns1 < GET /a?b=c HTTP/1.1|host: h|x-n: 7||\ns1 > {OK}hi\nc1 < {OK}hi\nquiet"
    );
    let out = traced("stop", &otel, "", &script);
    assert_eq!(out.tree(), [">a", "a>b"]);
}

/// What scopes may do where nothing asks for a span's identity before its end.
const MANY_THINGS: &[(&str, &str)] = &[
    (
        "start",
        "span root root\n baggage who src\n baggage none req.hdr(none)\n event at e1 src str(:) src_port\n log-record info span root attr a src str(begins)\n otel-event on-stream-start",
    ),
    (
        "side",
        "span side parent root\n otel-event on-client-session-start",
    ),
    (
        "request",
        "span child parent side link root link side\n attribute n int(42)\n attribute m method if { path /none }\n attribute m str(else)\n attribute t path str(z)\n event one k1 str(v1)\n event one k2 path\n event two time s int(1700000000) k3 int(3)\n exception Oops message str(boom) attr at int(3) if { path /a }\n exception Never message str(no) if { path /b }\n log-record warn span child str(no) if { path /b }\n log-record error id 7 event happened time s int(1700000001) attr k method method str(yes) if { path /a }\n finish side\n otel-event on-frontend-http-request",
    ),
    (
        "again",
        "span child\n attribute n int(43)\n span side parent root\n otel-event on-backend-http-request",
    ),
    (
        "answer",
        "span late parent child kind client\n attribute status status\n span child\n status error str(s) status if { status 400:599 }\n status ok if { status 200 }\n otel-event on-http-response",
    ),
    ("done", "finish *req*\n otel-event on-client-session-end"),
    ("end", "finish *\n otel-event on-stream-stop"),
];

/// Everything of a life but its random identifiers and what a policy adds.
fn told(out: &crate::traces::Exported) -> Vec<String> {
    let name = |id: &[u8]| {
        let named = out.spans.iter().find(|span| span.span_id == id);
        named.map_or("-", |span| &span.name).to_owned()
    };
    let spans = out.spans.iter().map(|span| {
        let mut span = span.clone();
        let parent = name(&span.parent_span_id);
        let links: Vec<_> = span.links.iter().map(|link| name(&link.span_id)).collect();
        span.attributes
            .retain(|pair| pair.key != "tailsampling.policy");
        span.links.clear();
        span.trace_state.clear();
        for id in [
            &mut span.trace_id,
            &mut span.span_id,
            &mut span.parent_span_id,
        ] {
            id.clear();
        }
        format!("{parent} {links:?} {span:?}")
    });
    let logs = out.logs.iter().map(|log| {
        let mut log = log.clone();
        let span = name(&log.span_id);
        (log.trace_id, log.span_id) = (Vec::new(), Vec::new());
        format!("{span} {log:?}")
    });
    spans.chain(logs).collect()
}

#[test]
fn a_stream_that_its_end_keeps_is_the_same_as_one_that_nobody_decides_about() {
    let with = |policy: &str, more: Scopes<'_>, script: &str| {
        let otel = scopes(&[MANY_THINGS, more].concat());
        let otel = otel.replace(
            " config",
            &format!(" option dontlog-normal\n {policy}\n config"),
        );
        traced("tape", &otel, "", script)
    };
    let failed = format!("{GET}\n{SERVED}\ns1 > HTTP/1.1 503 No|content-length: 0||\nquiet");
    let no_parent = (
        "lost",
        "span lost parent late\n span last parent root\n otel-event on-http-wait-request",
    );
    let stop = (
        "stop",
        "span last parent root\n otel-stop if { path /a }\n otel-event on-switching-rules-request",
    );
    let binary = (
        "binary",
        "span child\n attribute b bin(00ff)\n attribute c int(1)\n otel-event on-http-process-request",
    );
    let quiet = (
        "quiet",
        "idle-timeout 1s\n span beat parent root\n finish beat\n otel-event on-idle-timeout",
    );
    let beats = format!("{GET}\n{SERVED}\nwait 2500\ns1 > {OK}hi\nc1 < {OK}hi\nquiet");
    let lives: [(Scopes<'_>, &str, u64); 6] = [
        (&[], &served(), 0),
        (&[], &failed, 0),
        (&[no_parent], &served(), 1),
        (&[stop], &served(), 0),
        (&[binary], &served(), 1),
        (&[quiet], &beats, 0),
    ];
    let asks = (
        "asks",
        "span child\n inject C use-headers\n otel-event on-http-process-request",
    );
    assert!(!with("sampling all always", &[asks], &served()).taped);
    for (more, script, faults) in lives {
        let (plain, taped) = (
            with("", more, script),
            with("sampling all probability 100", more, script),
        );
        let dropped = with("sampling none probability 0", more, script);
        assert!(plain.spans.len() >= 3, "{:?}", plain.tree());
        assert!(!plain.taped && taped.taped && dropped.taped);
        assert_eq!(told(&plain), told(&taped), "{more:?}");
        assert_eq!(plain.account.started(), taped.account.started());
        assert_eq!(plain.account.started(), dropped.account.started());
        assert_eq!(dropped.spans.len() + dropped.logs.len(), 0);
        let lost = dropped.account.lost(telemetry::account::Loss::SampledOut);
        assert_eq!(lost, dropped.account.started());
        for out in [&plain, &taped, &dropped] {
            assert_eq!(out.counters.soft_errors, faults, "{more:?}");
        }
    }
}
