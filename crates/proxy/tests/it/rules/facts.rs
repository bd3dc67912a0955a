//! What expressions are told: bodies, bytes of TCP streams, the sockets, rates.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|v: ";

/// Sends a request and expects a value of it.
fn answers(name: &str, lines: &str, expr: &str, request: &str, value: &str) {
    play(
        name,
        &format!("{lines}\nhttp-request return status 200 hdr v %[{expr}]"),
        &format!("c1 > {request}\nc1 <~ {OK}{value}|content-length: 0|"),
    );
}

#[test]
fn a_body_that_came_along_is_seen() {
    let length = "POST / HTTP/1.1|host: a|content-length: 7||a=1&b=2";
    let chunked = "POST / HTTP/1.1|host: a|transfer-encoding: chunked||4|a=1&|3|b=2|0||";
    for (request, size) in [(length, "7"), (chunked, "7")] {
        answers("whole", "", "req.body", request, "a=1&b=2");
        answers("by name", "", "req.body_param(b)", request, "2");
        answers("length", "", "req.body_len", request, "7");
        answers("size", "", "req.body_size", request, size);
    }
    let part = "POST / HTTP/1.1|host: a|content-length: 7||a=1";
    answers("a part", "", "req.body", part, "a=1");
    answers("a part's size", "", "req.body_size", part, "7");
    let two = "GET / HTTP/1.1|host: a||GET /2 HTTP/1.1|host: a||";
    answers("the next request is no body", "", "req.body_len", two, "0");
    play(
        "a body that came along reaches the server",
        "http-request set-header v %[req.body]",
        "c1 > POST / HTTP/1.1|host: a|content-length: 3||abc
         s1 ok
         s1 < POST / HTTP/1.1|host: a|content-length: 3|v: abc||abc",
    );
    play(
        "a body that comes late does too",
        "http-request set-header v [%[req.body]]",
        "c1 > POST / HTTP/1.1|host: a|content-length: 3||
         s1 ok
         s1 < POST / HTTP/1.1|host: a|content-length: 3|v: []||
         c1 > abc
         s1 < abc",
    );
    play(
        "and one of a client that has ended",
        "no option abortonclose\nhttp-request set-header v [%[req.body]]",
        "c1 > POST / HTTP/1.1|host: a|content-length: 3||abc
         c1 fin
         s1 ok
         s1 < POST / HTTP/1.1|host: a|content-length: 3|v: [abc]||abc",
    );
}

#[test]
fn a_response_body_is_that_of_its_framing() {
    play(
        "chunks",
        "http-response wait-for-body time 1s\nhttp-response set-header v %[res.body]-%[res.body_len]",
        "c1 > GET / HTTP/1.1|host: a||
         s1 ok
         s1 > HTTP/1.1 200 OK|transfer-encoding: chunked||2|ab|1|c|0||
         c1 <~ HTTP/1.1 200 OK|transfer-encoding: chunked|v: abc-3||",
    );
}

const TCP: &str = "mode tcp\ntcp-request inspect-delay 5s\n";

#[test]
fn http_is_found_in_tcp() {
    let lines = format!(
        "{TCP}tcp-request content reject if !HTTP\ntcp-request content reject unless {{ hdr(host) -m end .org }}"
    );
    for (request, passes) in [
        ("GET / HTTP/1.1|host: a.org||", true),
        ("GET / HTTP/1.1|host: a.com||", false),
        ("SSH-2.0-x|", false),
    ] {
        let outcome = if passes {
            format!("s1 ok\ns1 < {request}")
        } else {
            "s1 none\nc1 end".into()
        };
        play(request, &lines, &format!("c1 > {request}\n{outcome}"));
    }
    play(
        "a head in parts is waited for",
        &lines,
        "c1 > GET / HT
         s1 none
         c1 > TP/1.1|host: a.org|
         s1 none
         c1 > |
         s1 ok
         s1 < GET / HTTP/1.1|host: a.org||",
    );
    play(
        "until the time is up",
        &lines,
        "c1 > GET / HT
         wait 5000
         c1 end
         s1 none",
    );
}

#[test]
fn content_rules_wait_for_a_cookie() {
    play(
        "RDP",
        &format!(
            "{TCP}tcp-request content accept if {{ rdp_cookie(user) x }}\ntcp-request content reject"
        ),
        "c1 > 0123456789aCookie: us
         s1 none
         c1 > er=x|
         s1 ok
         s1 < 0123456789aCookie: user=x|",
    );
}

#[test]
fn sockets_and_rates() {
    let get = "GET / HTTP/1.1|host: a||";
    answers("the network", "", "fc_rtt(us)", get, "1500");
    answers("in milliseconds", "", "fc_rtt", get, "2");
    play(
        "both sides",
        "http-response set-header v %[fc_rttvar(us)]-%[bc_rtt(us)]-%[bc_err]",
        &format!(
            "c1 > {get}
             s1 ok
             s1 > HTTP/1.1 204 No Content||
             c1 < HTTP/1.1 204 No Content|v: 750-1500-0||"
        ),
    );
    let rates =
        "http-request return status 200 hdr v %[fe_sess_rate],%[fe_req_rate],%[be_sess_rate]";
    play(
        "rates",
        rates,
        &format!(
            "c1 > {get}
             c1 < {OK}1,1,0|content-length: 0||
             c1 > {get}
             c1 < {OK}1,2,0|content-length: 0||
             c2 > {get}
             c2 < {OK}2,3,0|content-length: 0||
             wait 1500
             c1 > {get}
             c1 < {OK}1,2,0|content-length: 0||
             wait 3000
             c1 > {get}
             c1 < {OK}0,1,0|content-length: 0||"
        ),
    );
    play(
        "why a server was not reached is known to the log",
        "log-format \"%[bc_err]-%[bc_err_name]-%[be_connect_timeout]\"",
        &format!("c1 > {get}\ns1 refuse\nc1 <~ HTTP/1.1 503 \nlog 47-EREFUSED-3000"),
    );
}
