//! Actions on header fields and on the start line.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

/// What a server gets of a request, by rules. The last line of `rules` stands in section `global`
/// where it says so.
fn request(rules: &str, sent: &str, forwarded: &str) {
    let lines = if rules.contains("normalize-uri") {
        format!("{rules}\n server one 127.0.0.1:81\nglobal\n expose-experimental-directives")
    } else {
        rules.to_string()
    };
    // The server of the script's own stands in `listen`.
    let lines = lines.replace("\n server", "\nserver");
    play(
        rules,
        &lines,
        &format!("c1 > {sent}\ns1 ok\ns1 < {forwarded}\ns1 > {OK}\nc1 < {OK}\nquiet"),
    );
}

#[test]
fn fields_by_name() {
    let sent = "GET / HTTP/1.1|host: a|x-one: 1|x-two: 2|y-two: 3||";
    let cases = [
        ("http-request del-header X-One", "host: a|x-two: 2|y-two: 3"),
        (
            "http-request del-header X-One -m str",
            "host: a|x-two: 2|y-two: 3",
        ),
        ("http-request del-header X- -m beg", "host: a|y-two: 3"),
        ("http-request del-header TWO -m end", "host: a|x-one: 1"),
        ("http-request del-header - -m sub", "host: a"),
        (
            "http-request del-header ^x-.w -m reg",
            "host: a|x-one: 1|y-two: 3",
        ),
        (
            "http-request del-header ^X -m reg",
            "host: a|x-one: 1|x-two: 2|y-two: 3",
        ),
        (
            "http-request del-header a-very-long-name-that-is-none -m end",
            "host: a|x-one: 1|x-two: 2|y-two: 3",
        ),
    ];
    for (rule, fields) in cases {
        request(rule, sent, &format!("GET / HTTP/1.1|{fields}||"));
    }
}

#[test]
fn fields_by_a_regular_expression() {
    let cases = [
        // A value that matches is replaced as a whole.
        ("replace-header x-a b(.) <\\1>", "x-a: abcd", "x-a: <c>"),
        (
            "replace-header X-A (a+),(b+) \\2,\\1",
            "x-a: xaa,bb|x-a: no|x-a: a,b",
            "x-a: bb,aa|x-a: no|x-a: b,a",
        ),
        (
            "replace-header x-a .* %[method]-\\0",
            "x-a: 1|x-b: 2",
            "x-a: GET-1|x-b: 2",
        ),
        ("replace-header x-a (x)?y [\\1]", "x-a: y", "x-a: []"),
        (
            "replace-value x-a ^192\\.168\\.(.*)$ 172.16.\\1",
            "x-a: 192.168.1.2, 10.0.0.1,192.168.3.4",
            "x-a: 172.16.1.2, 10.0.0.1,172.16.3.4",
        ),
        ("replace-value x-a b B", "x-a: a, b ,\"b,c\"", "x-a: a,B,B"),
        ("replace-value x-a none B", "x-a: a, b", "x-a: a, b"),
        ("replace-header x-none .* B", "x-a: a", "x-a: a"),
        // The replacement ends in the middle of a reference: strict mode is off, nothing happens.
        ("replace-header x-a a B\\\\", "x-a: a", "x-a: a"),
    ];
    for (rule, sent, forwarded) in cases {
        let rules = format!("http-request strict-mode off\nhttp-request {rule}");
        request(
            &rules,
            &format!("GET / HTTP/1.1|host: a|{sent}||"),
            &format!("GET / HTTP/1.1|host: a|{forwarded}||"),
        );
    }
}

#[test]
fn fields_of_a_response() {
    play(
        "three sets",
        "http-response replace-value cache-control ^public$ private\nhttp-after-response replace-header x-a (.*) <\\1>\nhttp-after-response del-header x-d -m beg",
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > HTTP/1.1 200 OK|cache-control: max-age=1, public|x-a: 1|x-drop: 1|content-length: 0||\nc1 < HTTP/1.1 200 OK|cache-control: max-age=1,private|x-a: <1>|content-length: 0||",
    );
}

#[test]
fn fields_of_a_binary_list() {
    // x-a: 12, then an empty name and value. In hexadecimal: 03 782d61 02 3132 00 00
    let list = "bin(03782d610231320000)";
    let two = "bin(03782d610131 03792d620132 0000)".replace(' ', "");
    let sent = "GET / HTTP/1.1|host: a|x-a: old||";
    let cases = [
        (
            format!("http-request add-headers-bin {list}"),
            "host: a|x-a: old|x-a: 12",
        ),
        (
            format!("http-request set-headers-bin {list}"),
            "host: a|x-a: 12",
        ),
        (
            format!("http-request set-headers-bin {two} prefix y-"),
            "host: a|x-a: old|y-b: 2",
        ),
        // Without a value nothing happens.
        (
            "http-request add-headers-bin var(txn.none)".into(),
            "host: a|x-a: old",
        ),
        // `content-length` is left alone: it says where the message ends.
        (
            "http-request add-headers-bin bin(0e636f6e74656e742d6c656e67746801330000)".into(),
            "host: a|x-a: old",
        ),
        (
            "http-request del-headers-bin bin(03582d4100)".into(),
            "host: a",
        ),
        (
            "http-request del-headers-bin bin(022d6100) -m end".into(),
            "host: a",
        ),
        (
            "http-request del-headers-bin bin(0178046e6f6e6500) -m beg".into(),
            "host: a",
        ),
        (
            "http-request del-headers-bin bin(012d00) -m sub".into(),
            "host: a",
        ),
    ];
    for (rule, fields) in cases {
        request(&rule, sent, &format!("GET / HTTP/1.1|{fields}||"));
    }
    // Cut lists, names that are none, a line feed in a value.
    let broken = [
        "add-headers-bin bin(03782d6102)",
        "add-headers-bin bin(03782d61023132)",
        "add-headers-bin bin(f0)",
        "add-headers-bin bin(0001610000)",
        "add-headers-bin bin(03782061013100)",
        "add-headers-bin bin(03782d61010a0000)",
        "del-headers-bin bin(0578)",
        "del-headers-bin bin(0178)",
    ];
    for rule in broken {
        play(
            rule,
            &format!("http-request {rule}"),
            &format!("c1 > {sent}\nc1 <~ HTTP/1.1 500\nlog 500 PR--\ns1 none"),
        );
    }
}

#[test]
fn the_target() {
    let cases = [
        ("set-path /new%[path]", "/a?b=c", "/new/a?b=c"),
        ("set-path /new", "/a", "/new"),
        ("set-path /new", "http://a/x?y", "http://a/new?y"),
        ("set-pathq /new?z", "/a?b", "/new?z"),
        ("set-pathq /new", "http://a/x?y", "http://a/new"),
        ("set-query x=1", "/a?b", "/a?x=1"),
        ("set-query x=1", "/a", "/a?x=1"),
        // The question mark stays once it is there (manual §4.4 set-query).
        ("set-query %[var(txn.none)]", "/a?b", "/a?"),
        ("set-query %[var(txn.none)]", "/a", "/a"),
        ("set-uri /x?y", "/a?b", "/x?y"),
        ("replace-path (.*) /foo\\1", "/bar?q=1", "/foo/bar?q=1"),
        ("replace-path /foo/(.*) /\\1", "/foo/bar?q=1", "/bar?q=1"),
        (
            "replace-path /none/(.*) /\\1",
            "/foo/bar?q=1",
            "/foo/bar?q=1",
        ),
        (
            "replace-path ^/(.) /<\\1>",
            "http://a/xyz?q",
            "http://a/<x>?q",
        ),
        (
            "replace-pathq ([^?]*)(\\?(.*))? \\1/foo\\2",
            "/bar?q=1",
            "/bar/foo?q=1",
        ),
        ("replace-pathq (.*)\\?.* \\1", "/bar?q=1", "/bar"),
        (
            "replace-uri ^http://(.*) https://\\1",
            "http://a/x",
            "https://a/x",
        ),
        (
            "replace-uri ([^/:]*://[^/]*)?(.*) \\1/foo\\2",
            "/a",
            "/foo/a",
        ),
        ("normalize-uri path-merge-slashes", "//a///b?//", "/a/b?//"),
        ("normalize-uri path-strip-dotdot full", "/a/../../b", "/b"),
        ("normalize-uri path-strip-dotdot", "/../b", "/../b"),
        ("normalize-uri path-strip-dot", "/./b", "/b"),
        (
            "normalize-uri query-sort-by-name",
            "http://a/?b&a",
            "http://a/?a&b",
        ),
        ("normalize-uri percent-to-uppercase", "/%2f?%3d", "/%2F?%3D"),
        (
            "normalize-uri percent-decode-unreserved strict",
            "/%41",
            "/A",
        ),
    ];
    for (rule, sent, forwarded) in cases {
        request(
            &format!("http-request {rule}"),
            &format!("GET {sent} HTTP/1.1|host: a||"),
            &format!("GET {forwarded} HTTP/1.1|host: a||"),
        );
    }
    request(
        "http-request set-method PATCH",
        "GET / HTTP/1.1|host: a||",
        "PATCH / HTTP/1.1|host: a||",
    );
    request(
        "http-request set-path /x",
        "OPTIONS * HTTP/1.1|host: a||",
        "OPTIONS /x HTTP/1.1|host: a||",
    );
    play(
        "an escape that is none",
        "http-request normalize-uri percent-to-uppercase strict\nserver one 127.0.0.1:81\nglobal\n expose-experimental-directives",
        "c1 > GET /%zz HTTP/1.1|host: a||\nc1 <~ HTTP/1.1 400\nlog 400 PR--",
    );
}

#[test]
fn a_status_that_frames_otherwise() {
    let get = "c1 > GET / HTTP/1.1|host: a||\ns1 ok";
    let cases = [
        (
            "204",
            "200 OK|content-length: 2||hi",
            "204 No Content||",
            "open",
        ),
        (
            "304",
            "200 OK|content-length: 2||hi",
            "304 Not Modified|content-length: 2||",
            "open",
        ),
        (
            "204",
            "200 OK|transfer-encoding: chunked||2|hi|0||",
            "204 No Content||",
            "open",
        ),
        ("204", "200 OK||hi", "204 No Content||", "open"),
        (
            "200",
            "304 Not Modified|content-length: 5||",
            "200 OK|content-length: 0||",
            "open",
        ),
        (
            "200",
            "204 No Content||",
            "200 OK|content-length: 0||",
            "open",
        ),
        (
            "103",
            "200 OK|content-length: 2||hi",
            "103 Early Hints|connection: close||",
            "end",
        ),
        (
            "404 reason \"Go away\"",
            "200 OK|content-length: 2||hi",
            "404 Go away|content-length: 2||hi",
            "open",
        ),
    ];
    for (rule, sent, seen, after) in cases {
        play(
            rule,
            &format!("http-response set-status {rule}"),
            &format!("{get}\ns1 > HTTP/1.1 {sent}\nc1 < HTTP/1.1 {seen}\nc1 {after}"),
        );
    }
}

#[test]
fn an_answer_to_another_method() {
    let answer = "HTTP/1.1 200 OK|content-length: 2||";
    play(
        "HEAD for the client, GET for the server: its body is dropped",
        "http-request set-method GET if { path / }",
        &format!(
            "c1 > HEAD / HTTP/1.1|host: a||\ns1 ok\ns1 < GET / HTTP/1.1|host: a||\ns1 > {answer}\nc1 < {answer}\ns1 > hi\nc1 < \nc1 > GET /2 HTTP/1.1|host: a||\ns1 < GET /2 HTTP/1.1|host: a||\ns1 > {answer}hi\nc1 < {answer}hi\nquiet"
        ),
    );
    play(
        "GET for the client, HEAD for the server: there is none",
        "http-request set-method HEAD",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < HEAD / HTTP/1.1|host: a||\ns1 > {answer}\nc1 < HTTP/1.1 200 OK|content-length: 0||\nc1 open\nlog 200 ----\nquiet"
        ),
    );
}

#[test]
fn host_and_authority_stay_the_same() {
    let absolute = "GET http://a/x HTTP/1.1|host: a||";
    request(
        "http-request set-header host b",
        absolute,
        "GET http://b/x HTTP/1.1|host: b||",
    );
    request(
        "http-request replace-header host a b:80",
        absolute,
        "GET http://b:80/x HTTP/1.1|host: b:80||",
    );
    request(
        "http-request set-uri http://c/y",
        absolute,
        "GET http://c/y HTTP/1.1|host: c||",
    );
    request(
        "http-request set-header host b",
        "GET /x HTTP/1.1|host: a||",
        "GET /x HTTP/1.1|host: b||",
    );
}

#[test]
fn what_has_no_room() {
    // Beside a body that fills the buffer a head may grow by 128 bytes.
    let global = "global\n tune.bufsize 2048\n tune.maxrewrite 128";
    let long = "x".repeat(100);
    let body = "y".repeat(2000);
    let head = "POST / HTTP/1.1|host: a|content-length: 2000||";
    let rules = |rules: &str| format!("{rules}\nserver one 127.0.0.1:81\n{global}");
    let set = |name: &str| format!("http-request set-header {name} {long}");
    play(
        "one fits",
        &rules(&set("x-1")),
        &format!(
            "c1 > {head}{body}\ns1 ok\ns1 <~ POST / HTTP/1.1|host: a|content-length: 2000|x-1: {long}||y"
        ),
    );
    play(
        "two do not",
        &rules(&format!("{}\n{}", set("x-1"), set("x-2"))),
        &format!("c1 > {head}{body}\nc1 <~ HTTP/1.1 500\nlog 500 PR--"),
    );
    play(
        "two that may fail",
        &rules(&format!(
            "{}\nhttp-request strict-mode off\n{}",
            set("x-1"),
            set("x-2")
        )),
        &format!(
            "c1 > {head}{body}\ns1 ok\ns1 <~ POST / HTTP/1.1|host: a|content-length: 2000|x-1: {long}||y"
        ),
    );
    play(
        "without a body there is room",
        &rules(&format!("{}\n{}", set("x-1"), set("x-2"))),
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x-1: {long}|x-2: {long}||"
        ),
    );
    for target in [
        "set-uri",
        "set-path",
        "replace-path (.*)",
        "replace-header host .*",
    ] {
        play(
            target,
            &rules(&format!("http-request {target} /{long}{long}")),
            &format!("c1 > {head}{body}\nc1 <~ HTTP/1.1 500\nlog 500 PR--"),
        );
    }
    let answer = "HTTP/1.1 200 OK|content-length: 2000||";
    for set in ["http-response", "http-after-response"] {
        play(
            set,
            &rules(&format!(
                "{set} set-header x-1 {long}\n{set} set-header x-2 {long}"
            )),
            &format!(
                "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {answer}{body}\nc1 <~ HTTP/1.1 500\nlog 500 PH--\nquiet"
            ),
        );
    }
    play(
        "an answer of our own fails as well, once",
        &rules(&format!(
            "http-request return status 200 content-type a/b string {body}\nhttp-after-response set-header x-1 {long}\nhttp-after-response set-header x-2 {long}"
        )),
        "c1 > GET / HTTP/1.1|host: a||\nc1 <~ HTTP/1.1 500\nlog 500 LR--\nquiet",
    );
}
