//! Words of a configuration are bytes: what is written as `\xe9` leaves as that byte, as with
//! HAProxy.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

/// What a server gets of `GET /a` with `x-in: a¤e8b` by these lines.
fn forwarded(lines: &str, start: &str, fields: &str) {
    let sent = "GET /a HTTP/1.1|host: a|x-in: a¤e8b||";
    play(
        lines,
        lines,
        &format!("c1 > {sent}\ns1 ok\ns1 < {start} HTTP/1.1|{fields}||\ns1 > {OK}\nquiet"),
    );
}

/// What a client gets without a server.
fn answered(lines: &str, answer: &str) {
    let sent = "GET /a HTTP/1.1|host: a|x-in: a¤e8b||";
    play(lines, lines, &format!("c1 > {sent}\nc1 < {answer}\nquiet"));
}

#[test]
fn requests() {
    const GET: &str = "GET /a";
    let kept = "host: a|x-in: a¤e8b";
    for (lines, start, fields) in [
        (
            "http-request set-header x caf\\xe9",
            GET,
            "host: a|x-in: a¤e8b|x: caf¤e9",
        ),
        (
            "http-request add-header x \\xe9%[method]",
            GET,
            "host: a|x-in: a¤e8b|x: ¤e9GET",
        ),
        (
            "http-request set-header x-\\xe9 v",
            GET,
            "host: a|x-in: a¤e8b|x-¤e9: v",
        ),
        (
            "http-request replace-header x-in .*(\\xe8).* \\xe9\\1",
            GET,
            "host: a|x-in: ¤e9¤e8",
        ),
        (
            "http-request replace-value x-in a\\xe8. \\xe9",
            GET,
            "host: a|x-in: ¤e9",
        ),
        (
            "http-request set-header x-\\xe9a v\nhttp-request del-header x-\\xe9 -m beg",
            GET,
            kept,
        ),
        ("http-request set-path /\\xe9", "GET /¤e9", kept),
        ("http-request set-uri /\\xe9?\\xea", "GET /¤e9?¤ea", kept),
        ("http-request set-query q=\\xe9", "GET /a?q=¤e9", kept),
        (
            "http-request replace-path (.*) /\\xe9\\1",
            "GET /¤e9/a",
            kept,
        ),
        (
            "acl has req.hdr(x-in) -m sub \\xe8\nhttp-request set-header x yes if has",
            GET,
            "host: a|x-in: a¤e8b|x: yes",
        ),
        (
            "http-request set-var(txn.a) str(\\xe9)\nhttp-request set-header x %[var(txn.a)]",
            GET,
            "host: a|x-in: a¤e8b|x: ¤e9",
        ),
        (
            "capture request header x-in len 9\nhttp-request set-header x \\xe9%[capture.req.hdr(0)]",
            GET,
            "host: a|x-in: a¤e8b|x: ¤e9a¤e8b",
        ),
        (
            "unique-id-format \\xe9\nunique-id-header x-\\xe9",
            GET,
            "host: a|x-in: a¤e8b|x-¤e9: ¤e9",
        ),
        (
            "http-send-name-header x-\\xe9",
            GET,
            "host: a|x-in: a¤e8b|x-¤e9: one",
        ),
        (
            "option forwardfor header x-\\xe9",
            GET,
            "host: a|x-in: a¤e8b|x-¤e9: 10.0.0.1",
        ),
        (
            "bind 127.0.0.1:82 name l\\xe9\nhttp-request set-header x %[str(\\xe9),map_str(virt@m\\xe9,d\\xe9)]",
            GET,
            "host: a|x-in: a¤e8b|x: d¤e9",
        ),
    ] {
        forwarded(lines, start, fields);
    }
}

#[test]
fn answers() {
    for (lines, answer) in [
        (
            "http-request redirect location /\\xe9 set-cookie a=\\xe9",
            "HTTP/1.1 302 Found|content-length: 0|location: /¤e9|cache-control: no-cache|set-cookie: a=¤e9; path=/;||",
        ),
        (
            "redirect prefix /\\xe9",
            "HTTP/1.1 302 Found|content-length: 0|location: /¤e9/a|cache-control: no-cache||",
        ),
        (
            "http-request return content-type text/\\xe9 string \\xe9 hdr x-\\xe9 \\xe9",
            "HTTP/1.1 200 OK|x-¤e9: ¤e9|content-length: 1|content-type: text/¤e9||¤e9",
        ),
        (
            "http-request return content-type a lf-string \\xe9%[str(\\xea)]",
            "HTTP/1.1 200 OK|content-length: 2|content-type: a||¤e9¤ea",
        ),
        (
            "http-request deny deny_status 503\nerrorloc 503 /\\xe9",
            "HTTP/1.1 302 Found|cache-control: no-cache|content-length: 0|location: /¤e9||",
        ),
    ] {
        answered(lines, answer);
    }
    let realm = "HTTP/1.1 401 Unauthorized|content-length: 112|cache-control: no-cache|content-type: text/html|www-authenticate: Basic realm=\"¤e9\"|";
    let lines = "http-request auth realm \\xe9";
    play(
        lines,
        lines,
        &format!("c1 > GET / HTTP/1.1|host: a||\nc1 <~ {realm}\nquiet"),
    );
}

#[test]
fn cookies_and_reasons_of_responses() {
    let lines = "cookie c\\xe9 insert attr x=\\xe9\nserver one 127.0.0.1:81 cookie v\\xe9\nhttp-response set-status 200 reason \\xe9";
    let head = "HTTP/1.1 200 ¤e9|content-length: 0|set-cookie: c¤e9=v¤e9; path=/; x=¤e9||";
    play(
        lines,
        lines,
        &format!("c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nc1 < {head}\nquiet"),
    );
    // The client comes back with it: the server sees the value of its cookie.
    let sent = "GET / HTTP/1.1|host: a|cookie: c¤e9=v¤e9||";
    let answer = "HTTP/1.1 200 ¤e9|content-length: 0||";
    play(
        lines,
        lines,
        &format!("c1 > {sent}\ns1 ok\ns1 < {sent}\ns1 > {OK}\nc1 < {answer}\nquiet"),
    );
}

#[test]
fn logs() {
    let lines = "log-format \\xe9%ST%{+Q}[str(\\xea)]";
    play(
        lines,
        lines,
        &format!("c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nlog ¤e9200\"¤ea\"\nquiet"),
    );
}
