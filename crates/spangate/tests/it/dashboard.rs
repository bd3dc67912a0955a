//! The dashboard: its files, its API, its access control, and its changes.

use crate::common;

use std::net::TcpListener;

use common::http::{Client, Message};
use common::origin::{Origin, ok};
use common::{DEFAULTS, Folder, Port, Proxy, address, eventually, listener, run};
use serde_json::Value;

const FRONT: &str = "
frontend fe
    bind \"fd@${FE}\"
    option latency-histograms
    default_backend be
";

fn start(section: &str, origin: &Origin, front: &TcpListener, board: &TcpListener) -> Proxy {
    let config = format!(
        "{DEFAULTS}{FRONT}backend be
    server s1 {} weight 20
    server s2 {} disabled
dashboard
    bind \"fd@${{BOARD}}\"
{section}",
        origin.at, origin.at
    );
    Proxy::start(&config, &[("FE", front), ("BOARD", board)])
}

fn json(message: &Message) -> Value {
    serde_json::from_slice(&message.body).expect("JSON")
}

fn asked(board: &TcpListener, head: &str, body: &str) -> Message {
    let mut client = Client::connect(address(board));
    let host = address(board);
    let length = body.len();
    client.send(format!(
        "{head}\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ));
    client.response().expect("an answer")
}

fn now(board: &TcpListener) -> Value {
    json(&asked(board, "GET /api/now HTTP/1.1", ""))
}

#[test]
fn rows_and_files_are_served() {
    let origin = Origin::start(|_| ok("hello"));
    let (front, board) = (listener(), listener());
    let proxy = start("", &origin, &front, &board);
    assert_eq!(Client::connect(address(&front)).get("/").status, 200);
    let all = eventually("the request is counted", || {
        let all = now(&board);
        (all["backends"][0]["requests_total"] == 1).then_some(all)
    });
    let backend = &all["backends"][0];
    assert_eq!(backend["name"], "be");
    assert_eq!(backend["status"], "UP");
    assert_eq!(all["frontends"][0]["name"], "fe");
    assert_eq!(all["frontends"][0]["requests_total"], 1);
    let latency = &all["frontends"][0]["latency"];
    let counts = latency["counts"].as_array().expect("buckets");
    let counted: u64 = counts.iter().filter_map(Value::as_u64).sum();
    assert_eq!((counted, counts.len()), (1, 16));
    assert!(latency["p99"].is_number());
    assert!(backend["latency"].is_null(), "it has no histograms");
    let servers = backend["servers"].as_array().expect("servers");
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[0]["address"], origin.at.to_string());
    assert_eq!(servers[0]["weight"], 20);
    assert_eq!(servers[1]["status"], "MAINT");
    assert_eq!(all["process"]["workers"], 1);
    assert_eq!(all["permits_actions"], false);

    let page = asked(&board, "GET / HTTP/1.1", "");
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.field("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"));
    for address in linked(&page.text()) {
        let file = asked(&board, &format!("GET {address} HTTP/1.1"), "");
        assert_eq!(file.status, 200, "{address}");
        assert!(!file.body.is_empty(), "{address}");
    }
    assert_eq!(asked(&board, "GET /none HTTP/1.1", "").status, 404);
    assert_eq!(asked(&board, "POST / HTTP/1.1", "").status, 405);
    assert_eq!(asked(&board, "POST /api/now HTTP/1.1", "").status, 405);
    proxy.stop();
}

/// The addresses that a page links to.
fn linked(page: &str) -> Vec<String> {
    let parts = page.split(['"']).filter(|part| part.starts_with('/'));
    let found: Vec<String> = parts.map(str::to_owned).collect();
    assert!(found.contains(&"/app.js".to_owned()), "{found:?}");
    found
}

#[test]
fn the_configuration_is_shown_without_passwords() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let section = "userlist u\n  user ann insecure-password secret\n";
    let proxy = start(section, &origin, &front, &board);
    let shown = json(&asked(&board, "GET /api/config HTTP/1.1", ""));
    let lines = shown["files"][0]["lines"].as_array().expect("lines");
    let has = |text: &str| lines.iter().any(|line| line == text);
    assert!(has("  user ann insecure-password ***"), "{lines:?}");
    assert!(has("    option latency-histograms"));
    proxy.stop();
}

#[test]
fn neither_the_configuration_nor_an_explanation_shows_a_secret() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let section = "global\n  setenv API_KEY hunter2\n\
        backend other\n  dynamic-cookie-key hunter2\n  option httpchk\n  \
        http-check send hdr Authorization \"Basic hunter2\"\n  \
        http-request deny unless { req.hdr(x-api-key) -m str hunter2 }\n  \
        #stats auth ann:hunter2\n\
        frontend asks\n  bind abns@asks-PID\n  default_backend other\n  \
        http-request set-header Authorization \"Basic hunter2\"\n";
    let section = section.replace("PID", &std::process::id().to_string());
    let proxy = start(&section, &origin, &front, &board);
    let config = asked(&board, "GET /api/config HTTP/1.1", "");
    let explain = "GET /api/explain?url=http%3A%2F%2Fa%2Fx&frontend=asks HTTP/1.1";
    let explained = asked(&board, explain, "");
    for answer in [config, explained] {
        let text = answer.text();
        assert_eq!(answer.status, 200, "{text}");
        assert!(text.contains("set-header Authorization ***"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    proxy.stop();
}

#[test]
fn users_give_their_passwords() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let proxy = start("    auth ann:secret\n", &origin, &front, &board);
    for head in [
        "GET /api/now HTTP/1.1",
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r\nauthorization: Basic YW5uOndyb25n",
    ] {
        let refused = asked(&board, head, "");
        assert_eq!(refused.status, 401, "{head}");
        assert!(refused.field("www-authenticate").is_some());
    }
    let head = "GET /api/now HTTP/1.1\r\nauthorization: Basic YW5uOnNlY3JldA==";
    assert_eq!(asked(&board, head, "").status, 200);
    proxy.stop();
}

#[test]
fn names_that_others_may_own_are_not_answered() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let proxy = start("", &origin, &front, &board);
    let mut client = Client::connect(address(&board));
    client.send("GET /api/now HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    assert_eq!(client.response().expect("an answer").status, 421);
    client.send("GET /api/now HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(client.response().expect("an answer").status, 200);
    proxy.stop();
}

#[test]
fn servers_are_changed_only_by_pages_of_a_dashboard_with_admin() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let proxy = start("    admin\n", &origin, &front, &board);
    let token = now(&board)["token"].as_str().expect("a token").to_owned();
    let host = address(&board);
    let act = |fields: &str, body: &str| {
        let head = format!("POST /api/actions HTTP/1.1{fields}");
        let answer = asked(&board, &head, body);
        (answer.status, answer.text())
    };
    let good = format!("\r\norigin: http://{host}\r\nx-spangate-token: {token}");
    let drain = r#"{"backend":"be","server":"s1","action":"drain"}"#;
    for fields in [
        String::new(),
        format!("\r\norigin: http://{host}"),
        format!("\r\norigin: http://evil.example\r\nx-spangate-token: {token}"),
        format!("\r\nx-spangate-token: {token}"),
    ] {
        assert_eq!(act(&fields, drain).0, 403, "{fields}");
    }
    let server = || now(&board)["backends"][0]["servers"][0].clone();
    assert_eq!(server()["status"], "no check");
    assert_eq!(act(&good, drain).0, 200);
    assert_eq!(server()["status"], "DRAIN");
    assert_eq!(
        act(
            &good,
            r#"{"backend":"be","server":"s1","action":"maintenance"}"#
        )
        .0,
        200
    );
    assert_eq!(server()["status"], "MAINT");
    assert_eq!(
        act(&good, r#"{"backend":"be","server":"s1","action":"ready"}"#).0,
        200
    );
    assert_eq!(server()["status"], "no check");
    let weight = r#"{"backend":"be","server":"s1","action":"weight","weight":"50%"}"#;
    assert_eq!(act(&good, weight).0, 200);
    assert_eq!(server()["weight"], 10);
    for (body, why) in [
        (
            r#"{"backend":"be","server":"s9","action":"drain"}"#,
            "No such server.",
        ),
        (
            r#"{"backend":"x","server":"s1","action":"drain"}"#,
            "No such backend.",
        ),
        (
            r#"{"backend":"be","server":"s1","action":"enable-health"}"#,
            "not configured",
        ),
        (
            r#"{"backend":"be","server":"s1","action":"weight","weight":"257"}"#,
            "256",
        ),
        ("x", "no object"),
    ] {
        let (status, text) = act(&good, body);
        assert_eq!(status, 400, "{body}");
        assert!(text.contains(why), "{text}");
    }
    proxy.stop();
}

#[test]
fn what_a_client_sends_is_bounded() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let proxy = start("    admin\n", &origin, &front, &board);
    let long = "x".repeat(20 << 10);
    let refused = asked(&board, &format!("GET /{long} HTTP/1.1"), "");
    assert!(matches!(refused.status, 414 | 431), "{}", refused.line);
    let token = now(&board)["token"].as_str().expect("a token").to_owned();
    let host = address(&board);
    let head =
        format!("POST /api/actions HTTP/1.1\r\norigin: http://{host}\r\nx-spangate-token: {token}");
    assert_eq!(asked(&board, &head, &"x".repeat(300 << 10)).status, 413);
    let mut nonsense = Client::connect(host);
    nonsense.send("\u{0}\u{1}\r\n\r\n");
    assert!(
        nonsense
            .response()
            .is_none_or(|answer| answer.status == 400)
    );
    proxy.stop();
}

#[test]
fn a_reload_shows_its_effects_before_it_is_carried_out() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let backend = |server: &str| format!("{FRONT}backend be\n    server {server} {}\n", origin.at);
    for admin in ["    admin\n", ""] {
        let folder = Folder::new();
        let first = format!("{DEFAULTS}dashboard\n    bind \"fd@${{BOARD}}\"\n{admin}");
        let file = folder.write("proxies.cfg", backend("s1"));
        let listeners = [("FE", &front), ("BOARD", &board)];
        let proxy = Proxy::start_with(folder, &first, &listeners, &["-f", &file]);
        let all = now(&board);
        let token = all["token"].as_str().expect("a token").to_owned();
        let server = || now(&board)["backends"][0]["servers"][0]["name"].clone();
        let host = address(&board);
        let post = |body: &str| {
            let head = format!(
                "POST /api/reload HTTP/1.1\r\norigin: http://{host}\r\nx-spangate-token: {token}"
            );
            asked(&board, &head, body)
        };
        let reload = |apply: bool| {
            let answer = json(&post(&format!("{{\"apply\":{apply}}}")));
            let text = answer["text"].as_str().expect("a text").to_owned();
            (answer["refused"] == true, text)
        };
        if admin.is_empty() {
            assert_eq!(post("{\"apply\":false}").status, 403);
            proxy.stop();
            continue;
        }
        let without_token = "POST /api/reload HTTP/1.1";
        let answer = asked(&board, without_token, "{\"apply\":true}");
        assert_eq!(answer.status, 403);
        assert_eq!(post("{}").status, 400);

        std::fs::write(&file, backend("s2")).expect("a file");
        let (is_refused, text) = reload(false);
        assert!(!is_refused && text.contains("+ server s2"), "{text}");
        assert_eq!(server(), "s1");
        let (is_refused, text) = reload(true);
        assert!(!is_refused && text.contains("+ server s2"), "{text}");
        assert_eq!(server(), "s2");
        let config = asked(&board, "GET /api/config HTTP/1.1", "").text();
        assert!(config.contains("server s2"), "{config}");

        let bad = format!("{}userlist u\n user ann passwrd hunter2\n", backend("s3"));
        std::fs::write(&file, bad).expect("a file");
        for apply in [false, true] {
            let (is_refused, text) = reload(apply);
            assert!(
                is_refused && text.contains("Nothing has changed."),
                "{text}"
            );
            assert!(
                text.contains("passwrd") && !text.contains("hunter2"),
                "{text}"
            );
        }
        assert_eq!(server(), "s2");
        proxy.stop();
    }
}

#[test]
fn a_port_in_use_is_told_with_its_line() {
    let folder = Folder::new();
    let taken = listener();
    let free = Port::reserve();
    let config = format!(
        "{DEFAULTS}frontend f\n bind 127.0.0.1:{}\ndashboard\n  bind {}\n",
        free.number,
        address(&taken)
    );
    let file = folder.write("t.cfg", &config);
    let ended = run(&["-f", &file]);
    assert!(!ended.status.success());
    let line = config.lines().count();
    let wanted = format!("Binding [{file}:{line}] for the dashboard: ");
    assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("for [{}]", address(&taken))));
}

const COLLECTOR: &str = "receivers:
  proxy:
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - { name: errors, type: status_code, status_code: { status_codes: [ERROR] } }
exporters:
  dashboard:
service:
  telemetry:
    metrics: { level: none }
  pipelines:
    traces:
      receivers: [proxy]
      processors: [tail_sampling]
      exporters: [dashboard]
";

#[test]
fn traces_and_sampling_are_served() {
    let folder = Folder::new();
    let yaml = folder.write("collector.yaml", COLLECTOR);
    let origin = Origin::start(|request| {
        if request.line.contains("/bad") {
            b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".to_vec()
        } else {
            ok("good")
        }
    });
    let (front, board) = (listener(), listener());
    let config = format!(
        "global
    setenv OTEL_BSP_SCHEDULE_DELAY 10
{DEFAULTS}{FRONT}    option tracing endpoint collector://c service shop route path
collector c
    config {yaml}
    root-wait 100ms
backend be
    server s1 {}
dashboard
    bind \"fd@${{BOARD}}\"
",
        origin.at
    );
    let listeners = [("FE", &front), ("BOARD", &board)];
    let proxy = Proxy::start_in(folder, &config, &listeners);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/good").status, 200);
    assert_eq!(client.get("/bad").status, 500);
    let get = |path: &str| asked(&board, &format!("GET {path} HTTP/1.1"), "");
    let kept = |wanted: &str| {
        let path = format!("/api/traces?kept={wanted}");
        eventually(&path, || {
            let list = json(&get(&path));
            let rows = list["traces"].as_array().expect("rows").clone();
            (rows.len() == 1).then(|| rows[0].clone())
        })
    };
    let (bad, good) = (kept("1"), kept("0"));
    assert_eq!(
        (&bad["route"], &bad["policy"]),
        (&"/bad".into(), &"errors".into())
    );
    assert_eq!(
        (&good["route"], &good["status"]),
        (&"/good".into(), &200.into())
    );
    let id = bad["id"].as_str().expect("an id");
    let trace = json(&get(&format!("/api/traces/{id}")));
    assert_eq!(trace["spans"].as_array().map(Vec::len), Some(2));
    assert_eq!(get("/api/traces/00").status, 400);
    assert_eq!(get(&format!("/api/traces/{}", "0".repeat(32))).status, 404);
    assert_eq!(get("/api/traces?status=x").status, 400);
    let map = json(&get("/api/heatmap?columns=10&rows=6"));
    assert_eq!(
        (&map["matched"], map["columns"].as_array().map(Vec::len)),
        (&2.into(), Some(10))
    );
    assert_eq!(json(&get("/api/services"))["services"][0]["name"], "shop");
    let sampling = json(&get("/api/sampling"));
    assert_eq!(sampling["collectors"][0]["spans"]["accepted"], 4);

    let token = now(&board)["token"].as_str().expect("a token").to_owned();
    let host = address(&board);
    let head =
        format!("POST /api/dry-run HTTP/1.1\r\norigin: http://{host}\r\nx-spangate-token: {token}");
    let all = json(&asked(
        &board,
        &head,
        "- { name: all, type: always_sample }",
    ));
    assert_eq!(
        (&all["traces"], &all["kept"], &all["running_kept"]),
        (&2.into(), &2.into(), &1.into())
    );
    let wrong = asked(&board, &head, "- { name: all, type: x }");
    assert_eq!((wrong.status, &json(&wrong)["line"]), (400, &1.into()));
    assert_eq!(asked(&board, "POST /api/dry-run HTTP/1.1", "").status, 403);
    let head = "GET /api/traces HTTP/1.1\r\nsec-fetch-site: cross-site";
    assert_eq!(asked(&board, head, "").status, 403);
    proxy.stop();
}

#[test]
fn without_a_collector_there_are_no_traces() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let proxy = start("", &origin, &front, &board);
    for path in ["/api/traces", "/api/heatmap", "/api/services"] {
        let answer = asked(&board, &format!("GET {path} HTTP/1.1"), "");
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains("exporter 'dashboard'"));
    }
    proxy.stop();
}

#[test]
fn requests_are_explained_apart_from_those_that_are_served() {
    let origin = Origin::start(|_| ok(""));
    let (front, board) = (listener(), listener());
    let section = "frontend other\n  bind 127.0.0.1:1 name never\n  disabled\n";
    let proxy = start(section, &origin, &front, &board);
    let explain = |query: &str| asked(&board, &format!("GET /api/explain?{query} HTTP/1.1"), "");
    let answer = explain("url=http%3A%2F%2Fa%2Fx&header=x:+y&frontend=fe");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let explained = json(&answer);
    assert_eq!(explained["backend"], "be");
    assert_eq!(explained["steps"][0]["keyword"], "default_backend");
    assert_eq!(explained["steps"][0]["text"], "default_backend be");
    assert_eq!(explain("url=x").status, 400);
    assert_eq!(explain("nothing=x").status, 400);
    assert_eq!(now(&board)["frontends"][0]["requests_total"], 0);
    proxy.stop();
}
