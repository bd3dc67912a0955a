//! `spangate explain`: the rules that apply to a request.

use crate::common;

use common::{Folder, run};
use serde_json::Value;

const CONFIG: &str = r#"defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend web
    bind 127.0.0.1:8080
    monitor-uri /alive
    stats uri /stats
    acl is_admin path_beg /admin
    http-request deny deny_status 403 if is_admin !{ src 10.0.0.0/8 }
    http-request set-header X-Kind api if { path_beg /api }
    http-request set-path /v2%[path] if { path_beg /api }
    http-request redirect location /new code 301 if { path /old }
    use_backend by_kind if { req.hdr(x-kind) api }
    use_backend %[path,field(3,/)] if { path_beg /to/ }
    default_backend rest
frontend tls_only
    bind 127.0.0.1:8443
    http-request return status 200 if { ssl_fc_sni a.example }
    default_backend rest
backend by_kind
    balance uri
    http-request set-var(txn.seen) path
    use-server two if { var(txn.seen) -m str /v2/api/two }
    server one 127.0.0.1:1 weight 5
    server two 127.0.0.1:2
backend rest
    cookie SRV insert
    server a 127.0.0.1:3 cookie A
    server b 127.0.0.1:4 cookie B
    ignore-persist if { path /any }
frontend answers
    bind 127.0.0.1:8081
    http-request deny if { path /no }
    redirect location /there if { path /here }
    http-response set-header x-front %[var(res.seen)]
    http-after-response set-header x-after %[status]
    default_backend answering
backend answering
    tcp-response content reject if { status 418 }
    http-response set-var(res.seen) res.hdr(x-seen)
    http-response return status 404 hdr x-old %[status] if { status 500 }
    http-response del-header server if { status 200 }
    server a 127.0.0.1:5
"#;

struct Explained {
    json: Value,
    text: String,
}

fn explained(words: &[&str]) -> Explained {
    let folder = Folder::new();
    let file = folder.write("t.cfg", CONFIG);
    let asked = |more: &[&str]| {
        let words = [&["explain", "-f", &file], words, more].concat();
        let ended = run(&words);
        assert!(ended.status.success(), "{}", ended.stderr);
        ended.stdout
    };
    Explained {
        json: serde_json::from_str(&asked(&["--json"])).expect("JSON"),
        text: asked(&[]).replace(&file, "t.cfg"),
    }
}

/// The lines of the rules that match.
fn matching(explained: &Explained) -> Vec<u64> {
    let steps = explained.json["steps"].as_array().expect("steps");
    let matching = steps.iter().filter(|step| step["matches"] == true);
    matching.filter_map(|step| step["line"].as_u64()).collect()
}

#[test]
fn rules_are_carried_out_in_their_order() {
    let api = explained(&["GET http://shop.example:8080/api/one?x"]);
    assert_eq!(matching(&api), [12, 13, 15, 24]);
    assert_eq!(api.json["backend"], "by_kind");
    let outcome = api.json["outcome"].as_str().expect("an outcome");
    assert!(
        outcome.contains("'balance uri' chooses the server"),
        "{outcome}"
    );
    let request = api.json["request"].as_array().expect("lines");
    assert_eq!(request[0], "GET /v2/api/one?x HTTP/1.1");
    assert!(request.contains(&"x-kind: api".into()), "{request:?}");
    let line = "+ t.cfg:12  http-request set-header X-Kind api if { path_beg /api }";
    assert!(api.text.contains(line), "{}", api.text);
    let two = explained(&["http://shop.example:8080/api/two"]);
    assert_eq!(matching(&two), [12, 13, 15, 24, 25]);
    let choice = two.json["server_choice"].as_str().expect("a choice");
    assert_eq!(choice, "Persistence binds it to server 'two'.");
}

#[test]
fn a_rule_may_end_the_request() {
    let denied = explained(&["http://a:8080/admin", "--src", "192.0.2.1"]);
    assert_eq!(matching(&denied), [11]);
    assert_eq!(denied.json["outcome"], "The proxy answers with 403.");
    assert!(denied.json["backend"].is_null());
    let admitted = explained(&["http://a:8080/admin", "--src", "10.1.2.3"]);
    assert_eq!(matching(&admitted), [17]);
    for (path, outcome) in [
        ("alive", "The proxy answers by itself: monitor-uri."),
        ("stats", "The proxy answers by itself: the statistics page."),
    ] {
        let own = explained(&[&format!("http://a:8080/{path}")]);
        assert_eq!(own.json["outcome"], outcome);
    }
    assert_eq!(matching(&explained(&["http://a:8080/alive"])), [8]);
    assert_eq!(matching(&explained(&["http://a:8080/stats"])), [9]);
    let moved = explained(&["http://a:8080/old"]);
    assert_eq!(
        moved.json["outcome"],
        "The proxy redirects with 301 to /new"
    );
}

#[test]
fn the_keyword_redirect_is_a_step() {
    let moved = explained(&["http://a:8081/here"]);
    assert_eq!(matching(&moved), [36]);
    let line = "+ t.cfg:36  redirect location /there if { path /here }";
    assert!(moved.text.contains(line), "{}", moved.text);
    let outcome = "The proxy redirects with 302 to /there";
    assert_eq!(moved.json["outcome"], outcome);
}

/// The lines of the matching rules of the response.
fn matching_of_response(explained: &Explained) -> Vec<u64> {
    let steps = explained.json["steps"].as_array().expect("steps");
    let steps = steps.iter().filter(|step| step["message"] == "response");
    let matching = steps.filter(|step| step["matches"] == true);
    matching.filter_map(|step| step["line"].as_u64()).collect()
}

#[test]
fn an_assumed_response_goes_through_its_rules() {
    let assumed = |url: &str, words: &[&str]| {
        let words = [&[url, "--response"], words].concat();
        explained(&words)
    };
    let seen = [
        "--response-header",
        "x-seen: A",
        "--response-header",
        "Server: s",
    ];
    let served = assumed(
        "http://a:8081/",
        &[&["HTTP/1.1 200 Fine"], &seen[..]].concat(),
    );
    assert_eq!(matching_of_response(&served), [42, 44, 37, 38]);
    let outcome = "The client gets the server's response, with status 200.";
    assert_eq!(served.json["response_outcome"], outcome);
    let head = served.json["response"].as_array().expect("lines");
    assert_eq!(
        *head,
        [
            "HTTP/1.1 200 Fine",
            "x-seen: A",
            "x-front: A",
            "x-after: 200"
        ]
    );
    for heading in [
        "\nresponse, backend answering\n",
        "\nresponse, frontend answers\n",
    ] {
        assert!(served.text.contains(heading), "{}", served.text);
    }
    // A rule of the response answers: the frontend's http-response rules do not run,
    // http-after-response does.
    let failed = assumed("http://a:8081/", &["500"]);
    assert_eq!(matching_of_response(&failed), [42, 43, 38]);
    let outcome = "The proxy answers with 404. The client gets status 404.";
    assert_eq!(failed.json["response_outcome"], outcome);
    let head = failed.json["response"].as_array().expect("lines");
    assert_eq!(
        *head,
        ["HTTP/1.1 404 Not Found", "x-old: 500", "x-after: 404"]
    );
    let cut = assumed("http://a:8081/", &["418"]);
    assert_eq!(matching_of_response(&cut), [41]);
    assert_eq!(
        cut.json["response_outcome"],
        "The connection is closed without an answer."
    );
    assert_eq!(cut.json["response"].as_array().map(Vec::len), Some(0));
    // The proxy answers the request itself.
    let own = assumed("http://a:8081/no", &["200"]);
    assert_eq!(own.json["outcome"], "The proxy answers with 403.");
    assert_eq!(matching_of_response(&own), [38]);
    let outcome = "The assumed response is not read. The client gets status 403.";
    assert_eq!(own.json["response_outcome"], outcome);
    // Without it only the request is explained.
    let request = explained(&["http://a:8081/"]);
    assert_eq!(matching_of_response(&request), [0; 0]);
    assert!(request.json["response_outcome"].is_null());
}

#[test]
fn persistence_may_be_ignored() {
    let ignored = explained(&["http://a:8080/any", "-H", "Cookie: SRV=B"]);
    let choice = ignored.json["server_choice"].as_str().expect("a choice");
    assert_eq!(choice, "'balance random' chooses the server.");
    assert_eq!(matching(&ignored), [17, 32]);
}

#[test]
fn backends_by_name_and_servers_by_cookie() {
    let named = explained(&["http://a:8080/to/by_kind"]);
    assert_eq!(named.json["backend"], "by_kind");
    let nobody = explained(&["http://a:8080/to/nobody"]);
    assert_eq!(matching(&nobody), [16, 17]);
    assert_eq!(nobody.json["backend"], "rest");
    let bound = explained(&["http://a:8080/", "-H", "Cookie: SRV=B"]);
    let choice = bound.json["server_choice"].as_str().expect("a choice");
    assert_eq!(choice, "Persistence binds it to server 'b'.");
}

#[test]
fn what_only_a_connection_has_is_unknown() {
    let unknown = explained(&["http://a:8443/"]);
    assert_eq!(unknown.json["steps"][0]["unknown"][0], "ssl_fc_sni");
    assert_eq!(unknown.json["steps"][0]["matches"], false);
    assert!(unknown.text.contains("(unknown here: ssl_fc_sni)"));
    let source = explained(&["http://a:8080/admin"]);
    assert_eq!(source.json["steps"][0]["unknown"][0], "src");
    let known = explained(&["http://a:8080/admin", "--src", "10.1.2.3"]);
    assert_eq!(
        known.json["steps"][0]["unknown"].as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn what_cannot_be_explained_is_told() {
    let folder = Folder::new();
    let file = folder.write("t.cfg", CONFIG);
    for (words, why) in [
        (
            &["-f", &file, "http://a:81/"][..],
            "no frontend listens on port 81; name one of: web, tls_only",
        ),
        (
            &["-f", &file, "http://a/", "--frontend", "x"],
            "there is no frontend 'x'",
        ),
        (&["-f", &file, "a"], "'a' is not an http or https URL"),
        (&["-f", &file], "name one request"),
        (&["http://a/"], "name a configuration file with -f"),
        (
            &["-f", &file, "http://a/", "--response", "4"],
            "'4' is not a status",
        ),
        (
            &["-f", &file, "http://a:8081/", "--response", "100"],
            "status 100 is not final",
        ),
    ] {
        let ended = run(&[&["explain"], words].concat());
        assert!(!ended.status.success(), "{words:?}");
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}
