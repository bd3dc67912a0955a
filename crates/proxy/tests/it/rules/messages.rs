//! Interim answers, bodiless answers, early answers, Expect, header fields of the hop.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn answers() {
    let get = "c1 > GET / HTTP/1.1|host: a||\ns1 ok";
    let cases: &[(&str, String)] = &[
        (
            "103 goes on",
            format!("{get}\ns1 > HTTP/1.1 103 Early Hints|link: x||\nc1 < HTTP/1.1 103 Early Hints|link: x||\ns1 > {OK}\nc1 < {OK}\nlog 200 ----"),
        ),
        ("103 not to HTTP/1.0", format!("c1 > GET / HTTP/1.0||\ns1 ok\ns1 > HTTP/1.1 103 Early Hints||{OK}\nc1 <~ HTTP/1.1 200 OK|")),
        ("HEAD has no body", "c1 > HEAD / HTTP/1.1|host: a||\ns1 ok\ns1 > HTTP/1.1 200 OK|content-length: 5||\nc1 < HTTP/1.1 200 OK|content-length: 5||\nc1 open\ns1 open".into()),
        ("304 has no body", format!("{get}\ns1 > HTTP/1.1 304 Not Modified|content-length: 5||\nc1 < HTTP/1.1 304 Not Modified|content-length: 5||\nc1 open\ns1 open")),
        ("chunks", format!("{get}\ns1 > HTTP/1.1 200 OK|transfer-encoding: chunked||2|hi|0||\nc1 < HTTP/1.1 200 OK|transfer-encoding: chunked||2|hi|0||\nc1 open\ns1 open")),
        ("trailers", format!("{get}\ns1 > HTTP/1.1 200 OK|transfer-encoding: chunked||2|hi|0|x-t: 1||\nc1 < HTTP/1.1 200 OK|transfer-encoding: chunked||2|hi|0|x-t: 1||")),
        ("its head does not wait for its body", format!("{get}\ns1 > HTTP/1.1 200 OK|content-length: 2||\nc1 < HTTP/1.1 200 OK|content-length: 2||\ns1 > hi\nc1 < hi")),
        ("keep-alive of the server stays its own", format!("{get}\ns1 > HTTP/1.1 200 OK|connection: keep-alive|content-length: 0||\nc1 < {OK}")),
    ];
    for (name, script) in cases {
        play(name, "", &format!("{script}\nquiet"));
    }
}

#[test]
fn expect_continue() {
    let head = "c1 > POST / HTTP/1.1|host: a|content-length: 2|expect: 100-continue||";
    play(
        "through the server",
        "",
        &format!(
            "{head}\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 2|expect: 100-continue||\ns1 > HTTP/1.1 100 Continue||\nc1 < HTTP/1.1 100 Continue||\nc1 > hi\ns1 < hi\ns1 > {OK}\nc1 < {OK}\nc1 open\nquiet"
        ),
    );
    play(
        "answered here where the body is wanted here",
        "option http-buffer-request",
        &format!(
            "{head}\nc1 < HTTP/1.1 100 Continue||\nc1 > hi\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 2||hi"
        ),
    );
    play(
        "refused: the body never comes",
        "http-request deny",
        &format!("{head}\nc1 <~ HTTP/1.1 403 Forbidden|\nc1 end\nquiet"),
    );
}

#[test]
fn early_answers() {
    play(
        "the rest of the body is sent to the server that has answered",
        "",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 4||x\ns1 ok\ns1 <~ POST /\ns1 > {OK}\nc1 < {OK}\ns1 open\nwait 9000\nc1 > x\nwait 9000\nc1 > yzGET /2 HTTP/1.1|host: a||\nlog 200 ----\ns1 <~ xyzGET /2"
        ),
    );
    play(
        "a server that closes takes no more of the body, which is thrown away",
        "",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 4||x\ns1 ok\ns1 > {OK}\nc1 < {OK}\ns1 rst\nlog 200 ----\nc1 > xxxGET /2 HTTP/1.1|host: a||\ns2 ok\ns2 <~ GET /2"
        ),
    );
    play(
        "a client that does not send the rest after the response",
        "",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 4||x\ns1 ok\ns1 > {OK}\nc1 < {OK}\nwait 10000\nlog 200 cL--\ns1 end\nc1 end"
        ),
    );
    play(
        "a client that was not asked for its body",
        "",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 4|expect: 100-continue||\ns1 ok\ns1 > {OK}\nc1 <~ HTTP/1.1 200\nlog 200 ----\ns1 end"
        ),
    );
    play(
        "refused by a rule: the body is thrown away",
        "http-request deny if { path /1 }",
        "c1 > POST /1 HTTP/1.1|host: a|content-length: 4||x\nc1 <~ HTTP/1.1 403\nlog 403 PR--\nc1 > xxxGET /2 HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET /2",
    );
    play(
        "the client's end within its body",
        "",
        "c1 > POST / HTTP/1.1|host: a|content-length: 4||x\ns1 ok\nc1 fin\nc1 <~ HTTP/1.1 400\nlog 400 CH--\ns1 <~ POST",
    );
    play(
        "the client's end after its request",
        "no option abortonclose",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\nc1 fin\ns1 ok\ns1 > {OK}\nc1 < {OK}\nc1 end\nlog 200 ----"
        ),
    );
    play(
        "the client's end within its head",
        "",
        "c1 > GET / HT\nc1 fin\nc1 <~ HTTP/1.1 400\nc1 end\nlog 400 CR--",
    );
    play(
        "the client's end before its head",
        "",
        "c1 fin\nc1 <~ HTTP/1.1 400\nc1 end\nlog 400 CR--",
    );
    play(
        "a probe is not logged",
        "option dontlognull",
        "c1 fin\nc1 end\nnolog",
    );
    play(
        "a probe is not answered",
        "option http-ignore-probes",
        "c1 connects\nwait 5000\nc1 < \nc1 end\nnolog",
    );
}

#[test]
fn who_the_client_is() {
    play(
        "forwardfor",
        "option forwardfor",
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x-forwarded-for: 10.0.0.1||",
    );
    play(
        "fields of the connection",
        "",
        "c1 > GET / HTTP/1.1|host: a|connection: x-y, keep-alive|x-y: 1||\ns1 ok\ns1 < GET / HTTP/1.1|host: a||",
    );
    play(
        "user information",
        "",
        "c1 > GET http://u:p@h:8080/x HTTP/1.1|Host: h:8080||\ns1 ok\ns1 < GET http://h:8080/x HTTP/1.1|host: h:8080||",
    );
    play(
        "no host beside an absolute target",
        "",
        "c1 > GET http://h:8080/x HTTP/1.1||\ns1 ok\ns1 < GET http://h:8080/x HTTP/1.1|host: h:8080||",
    );
    play(
        "send-proxy",
        "server one 127.0.0.1:81 send-proxy",
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < PROXY TCP4 10.0.0.1 10.1.0.1 5000 80|GET / HTTP/1.1|host: a||",
    );
}

#[test]
fn what_logs_say_of_answers_of_our_own() {
    let lines = "unique-id-format id-%rt\ncapture response header X-A len 10\nlog-format \"%ST %hs %hsl %ID %[txn.status]\"\nhttp-request return status 200 hdr x-a b";
    play(
        "captures have their slots, and nothing in them",
        lines,
        "c1 > GET / HTTP/1.1|host: a||\nc1 <~ HTTP/1.1 200\nlog 200 {} - id-0 200",
    );
    play(
        "a request that was not read has no stream",
        lines,
        "c1 > GE(T||\nc1 <~ HTTP/1.1 400\nlog 400 - -",
    );
}
