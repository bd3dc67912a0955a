//! What a session is told of its client: addresses, the PROXY protocol's header, the unique id; and
//! connections that fail early.

use super::script::play;

#[test]
fn addresses_by_level() {
    let echo = "http-request return status 200 hdr fc %[fc_src] hdr src %[src]";
    let get = "c1 > GET / HTTP/1.1|host: a|x: 9.9.9.9||";
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "connection",
            "tcp-request connection set-src ipv4(1.1.1.1)",
            "1.1.1.1",
            "1.1.1.1",
        ),
        (
            "session",
            "tcp-request connection set-src ipv4(1.1.1.1)\ntcp-request session set-src ipv4(2.2.2.2)",
            "1.1.1.1",
            "2.2.2.2",
        ),
        (
            "content",
            "tcp-request session set-src ipv4(2.2.2.2)\ntcp-request content set-src ipv4(3.3.3.3)",
            "CLIENT",
            "3.3.3.3",
        ),
        (
            "request, from text",
            "tcp-request connection set-src ipv4(1.1.1.1)\nhttp-request set-src req.hdr(x)",
            "1.1.1.1",
            "9.9.9.9",
        ),
    ];
    for (name, lines, connection, stream) in cases {
        if *connection == "CLIENT" {
            // The connection's own address is the simulation's.
            let echo = "http-request return status 200 hdr src %[src]";
            play(
                name,
                &format!("{lines}\n{echo}"),
                &format!("{get}\nc1 < HTTP/1.1 200 OK|src: {stream}|content-length: 0||"),
            );
            continue;
        }
        play(
            name,
            &format!("{lines}\n{echo}"),
            &format!(
                "{get}\nc1 < HTTP/1.1 200 OK|fc: {connection}|src: {stream}|content-length: 0||"
            ),
        );
    }
    play(
        "a stream's address is not the next one's",
        "tcp-request connection set-src ipv4(1.1.1.1)\nhttp-request set-src req.hdr(x) if { req.hdr(x) -m found }\nhttp-request return status 200 hdr src %[src]",
        &format!(
            "{get}\nc1 < HTTP/1.1 200 OK|src: 9.9.9.9|content-length: 0||\nc1 > GET / HTTP/1.1|host: a||\nc1 < HTTP/1.1 200 OK|src: 1.1.1.1|content-length: 0||"
        ),
    );
}

#[test]
fn a_connection_is_bound_to_its_proxy_header() {
    let lines = "http-request set-src req.hdr(x)\nserver one 127.0.0.1:81 send-proxy";
    let ask = |address: &str| format!("c1 > GET / HTTP/1.1|host: a|x: {address}||");
    let answer = "HTTP/1.1 204 No Content||";
    let first = format!(
        "{}\ns1 ok\ns1 <~ PROXY TCP4 1.1.1.1 \ns1 > {answer}\nc1 < {answer}",
        ask("1.1.1.1")
    );
    play(
        "the same",
        lines,
        &format!("{first}\n{}\ns1 <~ GET / \ns2 none", ask("1.1.1.1")),
    );
    play(
        "another",
        lines,
        &format!(
            "{first}\n{}\ns2 ok\ns2 <~ PROXY TCP4 2.2.2.2 ",
            ask("2.2.2.2")
        ),
    );
}

#[test]
fn unique_ids_are_made_when_asked_for() {
    let get = "c1 > GET / HTTP/1.1|host: a|x: 7||";
    play(
        "in a response's rule, of the request",
        "unique-id-format id-%[req.hdr(x)]\nhttp-response set-header id %[unique-id]",
        &format!(
            "{get}\ns1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content|id: id-7||"
        ),
    );
    play(
        "once",
        "unique-id-format %[req.hdr(x)]\nunique-id-header id\nhttp-request set-header y %[unique-id]\nhttp-request set-header x 8",
        &format!("{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|y: 7|x: 8|id: 7||"),
    );
    play(
        "not of itself",
        "unique-id-format a%[unique-id]b\nunique-id-header id",
        &format!("{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: 7|id: ab||"),
    );
}

#[test]
fn the_monitor() {
    let lines = "monitor-uri /up\nmonitor fail if { req.hdr(x) 1 }\nhttp-request deny";
    let cases = [
        ("up", "GET /up HTTP/1.1|host: a||", "200 OK"),
        (
            "by its path",
            "GET http://a/up HTTP/1.1|host: a||",
            "200 OK",
        ),
        (
            "not with a query",
            "GET /up?x HTTP/1.1|host: a||",
            "403 Forbidden",
        ),
        (
            "down",
            "GET /up HTTP/1.1|host: a|x: 1||",
            "503 Service Unavailable",
        ),
        (
            "another path",
            "GET /UP HTTP/1.1|host: a||",
            "403 Forbidden",
        ),
    ];
    for (name, request, status) in cases {
        play(
            name,
            lines,
            &format!("c1 > {request}\nc1 <~ HTTP/1.1 {status}|\nc1 open\ns1 none"),
        );
    }
}

#[test]
fn connections_with_the_same_proxy_header_are_shared_where_reuse_is_always() {
    let lines = "http-request set-src req.hdr(x)\nhttp-request set-src-port int(7)\nhttp-reuse always\nserver one 127.0.0.1:81 send-proxy";
    let ask = |client: &str, src: &str| format!("{client} > GET / HTTP/1.1|host: a|x: {src}||\n");
    let answer = |server: &str| format!("{server} > HTTP/1.1 200 OK|content-length: 0||\n");
    let script = [
        ask("c1", "10.0.0.1"),
        "s1 ok\n".into(),
        answer("s1"),
        ask("c2", "10.0.0.2"),
        "s2 ok\n".into(),
        answer("s2"),
        ask("c3", "10.0.0.1"),
        "s3 none\n".into(),
        answer("s1"),
        "c3 <~ HTTP/1.1 200".into(),
    ];
    play("send-proxy, shared", lines, &script.concat());
}
