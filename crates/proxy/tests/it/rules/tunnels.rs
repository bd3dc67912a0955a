//! TCP, CONNECT and upgrades: bytes both ways, each side's end told to the other.

use super::script::play;

#[test]
fn upgrades() {
    let ask = "c1 > GET / HTTP/1.1|host: a|connection: upgrade|upgrade: echo||
        s1 ok
        s1 < GET / HTTP/1.1|host: a|connection: upgrade|upgrade: echo||";
    let open = format!(
        "{ask}
        s1 > HTTP/1.1 101 Switching Protocols|connection: upgrade|upgrade: echo||hi
        c1 < HTTP/1.1 101 Switching Protocols|connection: upgrade|upgrade: echo||hi"
    );
    play(
        "both ways",
        "",
        &format!(
            "{open}\nc1 > ping\ns1 < ping\ns1 > pong\nc1 < pong\nc1 fin\ns1 end\ns1 > last\nc1 < last\ns1 fin\nc1 end\nlog 101 ----\nquiet"
        ),
    );
    play(
        "a server that will not",
        "",
        &format!(
            "{ask}\ns1 > HTTP/1.1 200 OK|content-length: 0||\nc1 < HTTP/1.1 200 OK|content-length: 0||\nc1 open\nlog 200 ----\nquiet"
        ),
    );
    play(
        "the server's reset",
        "",
        &format!("{open}\ns1 rst\nc1 gone\nlog 101 SD--\nquiet"),
    );
    play(
        "the client's reset",
        "",
        &format!("{open}\nc1 rst\ns1 gone\nlog 101 CD--\nquiet"),
    );
    play(
        "bytes behind the request",
        "",
        "c1 > CONNECT a:1 HTTP/1.1|host: a:1||early\ns1 ok\ns1 < CONNECT a:1 HTTP/1.1|host: a:1||\ns1 > HTTP/1.1 200 OK||\nc1 < HTTP/1.1 200 OK||\ns1 < early",
    );
    play(
        "a CONNECT refused",
        "",
        "c1 > CONNECT a:1 HTTP/1.1|host: a:1||\ns1 ok\ns1 > HTTP/1.1 403 No|content-length: 0||\nc1 < HTTP/1.1 403 No|content-length: 0||\nc1 open\nquiet",
    );
}

#[test]
fn tcp() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "the server speaks first",
            "mode tcp",
            "c1 connects\ns1 ok\ns1 > hello\nc1 < hello\nc1 > bye\ns1 < bye\nc1 fin\ns1 end\ns1 fin\nc1 end\nlog 0 ----",
        ),
        (
            "bytes before the server stands",
            "mode tcp",
            "c1 > early\nc1 fin\ns1 ok\ns1 < early\ns1 end\ns1 > late\nc1 < late\ns1 fin\nc1 end",
        ),
        (
            "the server half-closes",
            "mode tcp",
            "c1 > a\ns1 ok\ns1 fin\nc1 end\nc1 > more\ns1 < amore\nc1 fin\ns1 end",
        ),
        (
            "refused",
            "mode tcp",
            "c1 > a\ns1 refuse\nc1 < \nc1 gone\nlog 0 SC--",
        ),
        (
            "idle client",
            "mode tcp",
            "c1 connects\ns1 ok\nwait 29999\nc1 open\nwait 1\nc1 gone\ns1 gone\nlog 0 cD--",
        ),
        (
            "a slow reader",
            "mode tcp",
            "c1 connects\ns1 ok\nfull c1\ns1 > one\ns1 > two\nwait 9000\ndrain c1\nc1 < onetwo\nc1 open",
        ),
        (
            "both ends with a backlog",
            "mode tcp",
            "c1 connects\ns1 ok\nfull c1\ns1 > one\nc1 fin\ns1 fin\nc1 open\ndrain c1\nc1 < one\nc1 end",
        ),
        (
            "maxconn",
            "mode tcp\nserver one 127.0.0.1:81 maxconn 1",
            "c1 > a\nc2 > b\ns1 ok\ns2 none\nc1 fin\ns1 fin\ns2 ok\ns2 < b",
        ),
        (
            "send-proxy",
            "mode tcp\nserver one 127.0.0.1:81 send-proxy",
            "c1 > a\ns1 ok\ns1 < PROXY TCP4 10.0.0.1 10.1.0.1 5000 80|a",
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, script);
    }
}

#[test]
fn responses_are_inspected() {
    let evil = "mode tcp\ntcp-response inspect-delay 5s\ntcp-response content reject if { res.payload(0,4) -m str evil }";
    play(
        "the delay is over",
        evil,
        "c1 connects\ns1 ok\ns1 > ev\nwait 4999\nc1 open\nc1 <\nwait 1\nc1 < ev\ns1 > il\nc1 < il",
    );
    play(
        "refused",
        evil,
        "c1 connects\ns1 ok\ns1 > ev\ns1 > il\nc1 end\nlog 0 PD--\nquiet",
    );
    play(
        "let pass",
        evil,
        "c1 connects\ns1 ok\ns1 > ev\ns1 > er\nc1 < ever\nwait 5000\nc1 open",
    );
    play(
        "the server's end is the last chance",
        evil,
        "c1 connects\ns1 ok\ns1 > ev\ns1 fin\nc1 < ev\nc1 end\nc1 fin\nlog 0 ----\nquiet",
    );
    play(
        "closed behind its first bytes",
        "mode tcp\ntcp-response content close",
        "c1 connects\ns1 ok\ns1 > bye\nc1 < bye\nc1 end\nlog 0 ----\nquiet",
    );
}

#[test]
fn from_tcp_to_http() {
    let backend = "default_backend be\nbackend be\nhttp-reuse always\nhttp-request set-header x-be 1\nserver one 127.0.0.1:81";
    let rules = format!(
        "mode tcp\ntcp-request inspect-delay 1s\ntcp-request content switch-mode http if HTTP\ntcp-request content reject if WAIT_END\nhttp-request set-header x-fe 1\nlog-format \"%ST %tsc %[last_rule_line]\"\n{backend}"
    );
    let answer = "HTTP/1.1 200 OK|content-length: 0||";
    let forwarded = |path: &str| format!("GET {path} HTTP/1.1|host: a|x-fe: 1|x-be: 1||");
    play(
        "by a rule, and what follows on the connection",
        &rules,
        &format!(
            "c1 > GET /1 HTTP/1.1|ho\nwait 10\ns1 none\nc1 > st: a||\ns1 ok\ns1 < {}\ns1 > {answer}\nc1 < {answer}\nlog 200 ---- 19\nc1 open\nc1 > GET /2 HTTP/1.1|host: a||\ns1 < {}\ns1 > {answer}\nc1 < {answer}\nlog 200 ---- 19\nquiet",
            forwarded("/1"),
            forwarded("/2")
        ),
    );
    play(
        "what becomes HTTP has its rules about bytes behind it",
        &format!(
            "mode tcp\ntcp-request inspect-delay 1s\ntcp-request content set-var(req.m) internal.strm.is_htx,iif(http,tcp)\ntcp-request content switch-mode http if HTTP\nhttp-request set-header x-fe %[var(req.m)]\n{backend}"
        ),
        &format!(
            "c1 > GET /1 HTTP/1.1|host: a||\ns1 ok\ns1 < GET /1 HTTP/1.1|host: a|x-fe: tcp|x-be: 1||\ns1 > {answer}\nc1 < {answer}\nlog 200 ----\nc1 > GET /2 HTTP/1.1|host: a||\ns1 < GET /2 HTTP/1.1|host: a|x-fe: http|x-be: 1||\ns1 > {answer}\nc1 < {answer}\nlog 200 ----\nquiet"
        ),
    );
    play(
        "not to HTTP/2 where HTTP/1 is demanded",
        &format!(
            "mode tcp\ntcp-request inspect-delay 1s\ntcp-request content switch-mode http proto h1 if HTTP\n{backend}"
        ),
        "c1 > PRI * HTTP/2.0||SM||\nc1 <~ HTTP/1.1 405\nc1 end\nlog 405 PR--\nquiet",
    );
    play(
        "where HTTP/2 is demanded, nothing else",
        &format!("mode tcp\ntcp-request content switch-mode http proto h2\n{backend}"),
        "c1 > GET / HTTP/1.1|host: a||\nc1 end\ns1 none\nquiet",
    );
    play(
        "no request",
        &rules,
        "c1 > hello\nwait 1000\nc1 end\nlog 0 PR-- 20\nquiet",
    );
    play(
        "by the backend",
        &format!("mode tcp\nhttp-request set-header x-fe 1\n{backend}"),
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 2||hi\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 2|x-fe: 1|x-be: 1||hi\ns1 > {answer}\nc1 < {answer}\nlog 200 ----\nquiet"
        ),
    );
    play(
        "by the backend, without a request",
        &format!("mode tcp\n{backend}"),
        "c1 > GET / BAD||\nc1 <~ HTTP/1.1 400 Bad request\nc1 end\nlog 400 PR--\nquiet",
    );
    play(
        "by the backend, and nothing comes",
        &format!("mode tcp\n{backend}"),
        "c1 connects\nwait 5000\nc1 <~ HTTP/1.1 408\nc1 end\nlog 408 cR--\nquiet",
    );
    play(
        "to TCP servers it cannot",
        "mode tcp\ntcp-request content switch-mode http",
        "c1 > GET / HTTP/1.1|host: a||\nc1 end\ns1 none\nlog -1 IR--\nquiet",
    );
    play(
        "by a computed name",
        "mode tcp\ntcp-request inspect-delay 1s\ntcp-request content set-var(sess.b) str(web) if { req.len gt 0 }\nuse_backend %[var(sess.b)]\nbackend web\nserver one 127.0.0.1:81",
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET / HTTP/1.1|host: a|",
    );
}
