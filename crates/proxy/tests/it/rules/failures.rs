//! Servers that fail: which status, which termination state, tried again where it is safe.

use super::script::play;

const GET: &str = "c1 > GET / HTTP/1.1|host: a||";

#[test]
fn statuses_and_termination_states() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "refused",
            "",
            "s1 refuse\nc1 <~ HTTP/1.1 503 \nc1 open\nlog 503 SC--",
        ),
        (
            "connect timeout",
            "",
            "wait 2999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 503 \nlog 503 sC--\ns1 end",
        ),
        (
            "no server",
            "server one 127.0.0.1:81 disabled",
            "c1 <~ HTTP/1.1 503 \nlog 503 SC--\ns1 none",
        ),
        (
            "closed without an answer",
            "",
            "s1 ok\ns1 fin\nc1 <~ HTTP/1.1 502 \nlog 502 SH--",
        ),
        (
            "reset without an answer",
            "",
            "s1 ok\ns1 rst\nc1 <~ HTTP/1.1 502 \nlog 502 SH--",
        ),
        (
            "closed in its head",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|a: b|\ns1 fin\nc1 <~ HTTP/1.1 502 \nlog 502 PH--",
        ),
        (
            "not HTTP",
            "",
            "s1 ok\ns1 > hello||\nc1 <~ HTTP/1.1 502 \nlog 502 PH--\ns1 end",
        ),
        (
            "two lengths",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|content-length: 1|content-length: 2||x\nc1 <~ HTTP/1.1 502 \nlog 502 PH--\ns1 end",
        ),
        (
            "silence",
            "",
            "s1 ok\nwait 19999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--\ns1 end",
        ),
        (
            "closed in its body",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|content-length: 2||x\ns1 fin\nc1 < HTTP/1.1 200 OK|content-length: 2||x\nc1 gone\nlog 200 SD--",
        ),
        (
            "silence in its body",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|content-length: 2||x\nwait 20000\nc1 <~ HTTP/1.1 200 OK\nc1 gone\nlog 200 sD--",
        ),
        (
            "a bad chunk",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|transfer-encoding: chunked||\ns1 > z|\nc1 <~ HTTP/1.1 200 OK\nc1 gone\nlog 200 PD--",
        ),
        (
            "a bad chunk beside its head",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|transfer-encoding: chunked||z|\nc1 <~ HTTP/1.1 502 \nc1 open\nlog 502 PH--",
        ),
        (
            "101 unasked",
            "",
            "s1 ok\ns1 > HTTP/1.1 101 Switching|upgrade: x|connection: upgrade||\nc1 <~ HTTP/1.1 502 \nlog 502 PH--",
        ),
        (
            "the client goes while connecting",
            "option abortonclose",
            "c1 fin\nc1 < \nc1 gone\nlog -1 CC--\ns1 end",
        ),
        (
            "the client resets while it waits",
            "",
            "s1 ok\nc1 rst\nlog 400 CD--\ns1 end",
        ),
        (
            "the client leaves while it waits",
            "",
            "s1 ok\nc1 fin\nc1 <~ HTTP/1.1 400 \nlog 400 CH--\ns1 end",
        ),
        (
            "the client resets in the body",
            "",
            "s1 ok\ns1 > HTTP/1.1 200 OK|content-length: 2||x\nc1 rst\nlog 200 CD--\ns1 end",
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, &format!("{GET}\n{script}\nnolog\nquiet"));
    }
}

/// With `abortonclose`, which is the default, the end of a client's data ends a request that has no
/// response yet, whatever waits before that end.
#[test]
fn a_client_that_ends_behind_more_input_gives_its_request_up() {
    const POST: &str = "c1 > POST / HTTP/1.1|host: a|content-length: 5||";
    const GETS: &str = "c1 > GET / HTTP/1.1|host: a||GET /2 HTTP/1.1|host: a||";
    let keeps = "no option abortonclose";
    let queue = "server one 127.0.0.1:81 maxconn 1";
    let busy = "c2 > GET /1 HTTP/1.1|host: a||\ns1 ok";
    let cases: &[(&str, &str, String)] = &[
        (
            "a part of a body, connecting",
            "",
            format!("{POST}he\nc1 fin\nc1 < \nc1 gone\nlog -1 CC--\ns1 end\nquiet"),
        ),
        (
            "a body, connecting",
            "",
            format!("{POST}hello\nc1 fin\nc1 < \nc1 gone\nlog -1 CC--\ns1 end\nquiet"),
        ),
        (
            "two requests, connecting",
            "",
            format!("{GETS}\nc1 fin\nc1 < \nc1 gone\nlog -1 CC--\ns1 end\nnolog\nquiet"),
        ),
        (
            "two requests",
            "",
            format!(
                "{GETS}\ns1 ok\nc1 fin\nc1 <~ HTTP/1.1 400 \nlog 400 CH--\nc1 end\ns1 end\nnolog\nquiet"
            ),
        ),
        (
            "a body, queued",
            queue,
            format!("{busy}\n{POST}hello\nc1 fin\nc1 < \nc1 gone\nlog -1 CQ--"),
        ),
        (
            "two requests, queued",
            queue,
            format!("{busy}\n{GETS}\nc1 fin\nc1 < \nc1 gone\nlog -1 CQ--\nnolog"),
        ),
        (
            "without it",
            keeps,
            format!(
                "{GETS}\nc1 fin\ns1 ok\ns1 < GET / HTTP/1.1|host: a||\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\nlog 204 ----\ns1 < GET /2 HTTP/1.1|host: a||\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\nlog 204 ----\nquiet"
            ),
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, script);
    }
}

#[test]
fn tries() {
    play(
        "after a pause, the same server",
        "retries 1",
        &format!("{GET}\ns1 refuse\ns2 none\nwait 999\ns2 none\nwait 1\ns2 ok\ns2 <~ GET /"),
    );
    play(
        "no more than asked for",
        "retries 1",
        &format!(
            "{GET}\ns1 refuse\nwait 1000\ns2 refuse\nc1 <~ HTTP/1.1 503\nlog 503 SC--\nwait 9000\ns3 none"
        ),
    );
    play(
        "redispatch",
        "retries 3\noption redispatch 1\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82",
        &format!(
            "{GET}\ns1 refuse\ns2 ok\ns2 <~ GET /\ns2 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content||\nlog 204 ----"
        ),
    );
    let stale = "c1 > GET /1 HTTP/1.1|host: a||
        s1 ok
        s1 > HTTP/1.1 204 No Content||
        c1 <~ HTTP/1.1 204
        log 204 ----";
    play(
        "a stale connection, a safe request",
        "",
        &format!(
            "{stale}\nc1 > GET /2 HTTP/1.1|host: a||\ns1 fin\ns2 ok\ns2 <~ GET /2\ns2 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\nc1 open"
        ),
    );
    play(
        "a stale connection, an unsafe request: its client must decide",
        "",
        &format!(
            "{stale}\nc1 > POST /2 HTTP/1.1|host: a|content-length: 1||x\ns1 fin\nc1 < \nc1 end\ns2 none\nlog -1 SH--"
        ),
    );
    play(
        "a stale connection found before it is used",
        "",
        &format!(
            "{stale}\ns1 fin\nc1 > POST /2 HTTP/1.1|host: a|content-length: 1||x\ns2 ok\ns2 <~ POST /2"
        ),
    );
}

#[test]
fn pages_of_the_configuration() {
    play(
        "errorloc",
        "errorloc 503 http://sorry/",
        &format!(
            "{GET}\ns1 refuse\nc1 < HTTP/1.1 302 Found|cache-control: no-cache|content-length: 0|location: http://sorry/||\nlog 503 SC--"
        ),
    );
    play(
        "http-error",
        "http-error status 503 hdr x %[path] content-type text/plain lf-string no%[path]",
        &format!(
            "{GET}\ns1 refuse\nc1 < HTTP/1.1 503 Service Unavailable|x: /|content-length: 3|content-type: text/plain||no/\nc1 open\nlog 503 SC--"
        ),
    );
    play(
        "http-error of nothing but its status",
        "http-error status 503",
        &format!("{GET}\ns1 refuse\nc1 < HTTP/1.1 503 Service Unavailable|content-length: 0||"),
    );
    play(
        "deny",
        "http-request deny deny_status 429",
        &format!("{GET}\nc1 <~ HTTP/1.1 429 Too Many Requests|\nc1 open\nlog 429 PR--\ns1 none"),
    );
    play(
        "return",
        "http-request return status 200 content-type text/plain string hi",
        &format!(
            "{GET}\nc1 < HTTP/1.1 200 OK|content-length: 2|content-type: text/plain||hi\nc1 open\nlog 200 LR--"
        ),
    );
    play(
        "redirect",
        "redirect location /x",
        &format!("{GET}\nc1 <~ HTTP/1.1 302 Found|\nc1 open\nlog 302 LR--"),
    );
    play(
        "tarpit",
        "http-request tarpit",
        &format!("{GET}\nwait 5999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 500 \nlog 500 PT--"),
    );
    play(
        "reject",
        "http-request reject",
        &format!("{GET}\nc1 < \nc1 gone\nlog -1 PR--"),
    );
}

#[test]
fn the_queue() {
    let lines = "server one 127.0.0.1:81 maxconn 1";
    let two = "c1 > GET /1 HTTP/1.1|host: a||\nc2 > GET /2 HTTP/1.1|host: a||\ns1 ok\ns2 none";
    play(
        "a slot goes on to the next",
        lines,
        &format!(
            "{two}\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\ns2 ok\ns2 <~ GET /2\ns2 > HTTP/1.1 204 No Content||\nc2 <~ HTTP/1.1 204\nquiet"
        ),
    );
    play(
        "too long",
        lines,
        &format!("{two}\nwait 4000\nc2 <~ HTTP/1.1 503\nlog 503 sQ--\nc1 open"),
    );
    play(
        "one that waits leaves",
        lines,
        &format!(
            "{two}\nc3 > GET /3 HTTP/1.1|host: a||\nc2 rst\nlog -1 CQ--\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\ns2 ok\ns2 <~ GET /3"
        ),
    );
}

/// The place in the queue, from 1 on: of the backend's, or of the server's that a request is bound
/// to.
#[test]
fn logs_have_the_place_in_a_queue() {
    let ask = |client: &str| {
        format!("{client} > GET / HTTP/1.1|host: a|cookie: S=A|connection: close||\n")
    };
    let script = format!(
        "{}s1 ok\n{}{}s1 > HTTP/1.1 204 No||\nlog {{}}\ns1 > HTTP/1.1 204 No||\nlog {{}}\ns1 > HTTP/1.1 204 No||\nlog {{}}",
        ask("c1"),
        ask("c2"),
        ask("c3"),
    );
    let places = |lines: &str, places: [&str; 3]| {
        let mut script = script.clone();
        for place in places {
            script = script.replacen("{}", place, 1);
        }
        let lines = format!("log-format \"%sq/%bq\"\nhttp-reuse always\n{lines}");
        play(&lines, &lines, &script);
    };
    places("server one 127.0.0.1:81 maxconn 1", ["0/0", "0/1", "0/2"]);
    places(
        "cookie S insert\nserver one 127.0.0.1:81 cookie A maxconn 1",
        ["0/0", "1/0", "2/0"],
    );
}
