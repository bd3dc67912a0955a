//! Every timeout, to the millisecond: not before, not after.

use super::script::play;

#[test]
fn to_the_millisecond() {
    let get = "c1 > GET / HTTP/1.1|host: a||";
    let post = "c1 > POST / HTTP/1.1|host: a|content-length: 3||x";
    let done =
        format!("{get}\ns1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\nlog 204 ----");
    let tunnel = "c1 > CONNECT a:1 HTTP/1.1|host: a:1||\ns1 ok\ns1 > HTTP/1.1 200 OK||\nc1 <~ HTTP/1.1 200\n";
    let cases: &[(&str, &str, String)] = &[
        ("http-request, not a byte", "", "c1 connects\nwait 4999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 408 \nc1 end\nlog 408 cR--".into()),
        (
            "http-request is for the whole head",
            "",
            "c1 > GET / HTTP/1.1|\nwait 3000\nc1 > host: a|\nwait 1999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 408 \nc1 end\nlog 408 cR--".into(),
        ),
        ("http-keep-alive", "", format!("{done}\nwait 6999\nc1 open\nwait 1\nc1 < \nc1 end\nnolog")),
        (
            "http-request begins anew with the next request's first byte",
            "",
            format!("{done}\nwait 6000\nc1 > GET\nwait 4999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 408 \nc1 end\nlog 408 cR--"),
        ),
        ("client, in a body", "", format!("{post}\ns1 ok\nwait 9000\nc1 > x\nwait 9999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 400 \nlog 400 cH--\ns1 <~ POST /")),
        (
            "client, that does not read",
            "",
            format!("{get}\nfull c1\ns1 ok\ns1 > HTTP/1.1 200 OK|content-length: 9||x\nwait 9999\nc1 open\nwait 1\nc1 gone\nlog 200 cD--\ns1 end"),
        ),
        (
            "client, that sends and does not read",
            "",
            "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||1|a|
             s1 ok
             full c1
             s1 > HTTP/1.1 200 OK|transfer-encoding: chunked||1|x|
             wait 9000
             c1 > 1|b|
             wait 999
             c1 open
             wait 1
             c1 gone
             log 200 cD--".into(),
        ),
        ("connect", "", format!("{get}\nwait 2999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 503 \nlog 503 sC--")),
        ("server, silent", "", format!("{get}\ns1 ok\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--")),
        (
            "server, between bytes",
            "",
            format!("{get}\ns1 ok\ns1 > HTTP/1.1 200 OK|content-length: 9||x\nwait 19999\ns1 > y\nwait 19999\nc1 open\nwait 1\nc1 gone\nlog 200 sD--"),
        ),
        (
            "server, after an interim response",
            "",
            format!("{get}\ns1 ok\nwait 15000\ns1 > HTTP/1.1 103 Early Hints||\nc1 < HTTP/1.1 103 Early Hints||\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--"),
        ),
        (
            "server, after its head",
            "",
            format!("{get}\ns1 ok\nwait 15000\ns1 > HTTP/1.1 200 OK|content-length: 9||\nwait 19999\nc1 open\nwait 1\nc1 gone\nlog 200 sD--"),
        ),
        (
            "server, that does not read",
            "",
            format!("{post}\nfull s1\ns1 ok\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--"),
        ),
        ("queue", "server one 127.0.0.1:81 maxconn 1", format!("{get}\nc2 > GET / HTTP/1.1|host: a||\nwait 2\ns1 ok\nwait 3997\nc2 < \nwait 1\nc2 <~ HTTP/1.1 503 \nlog 503 sQ--")),
        ("tunnel", "", format!("{tunnel}\nc1 > x\ns1 > y\nwait 29999\nc1 open\nwait 1\nc1 gone\nlog 200 cD--\ns1 gone")),
        ("tunnel, before a byte", "", format!("{tunnel}\nwait 29999\nc1 open\nwait 1\nc1 gone\nlog 200 cD--\ns1 gone")),
        ("tunnel, of TCP", "mode tcp", "c1 > x\ns1 ok\nwait 29999\nc1 open\nwait 1\nc1 gone\ns1 gone\nlog 0 cD--".into()),
        (
            "client-fin: the server has ended",
            "mode tcp\ntimeout client-fin 2s\ntimeout server-fin 4s",
            "c1 connects\ns1 ok\ns1 fin\nc1 end\nwait 1999\ns1 open\nwait 1\ns1 gone\nc1 gone\nlog 0 cD--".into(),
        ),
        (
            "server-fin: the client has ended",
            "mode tcp\ntimeout client-fin 2s\ntimeout server-fin 4s",
            "c1 connects\ns1 ok\nc1 fin\ns1 end\nwait 3999\nc1 open\nwait 1\ns1 gone\nc1 gone\nlog 0 sD--".into(),
        ),
        (
            "server-fin is not for HTTP",
            "timeout client-fin 2s\ntimeout server-fin 4s",
            format!("{tunnel}\nc1 fin\nwait 29999\nc1 open\nwait 1\ns1 gone\nc1 gone\nlog 200 sD--"),
        ),
        (
            "a client that ends is not awaited",
            "mode tcp\ntimeout tunnel 0\ntimeout client 1s",
            "c1 > query\nc1 fin\ns1 ok\nwait 15000\ns1 > result\ns1 fin\nc1 < result\nc1 end\nlog 0 ----".into(),
        ),
        (
            "a client that is silent for too long counts as ended",
            "mode tcp\ntimeout tunnel 0\ntimeout client 1s",
            "c1 > query\ns1 ok\nwait 999\ns1 open\nwait 1\ns1 end\nc1 > late\nwait 15000\ns1 < query\ns1 > result\nc1 < result\nc1 open\ns1 fin\nc1 gone\nlog 0 cD--".into(),
        ),
        (
            "the same for a server",
            "mode tcp\ntimeout tunnel 0\ntimeout server 1s",
            "c1 > query\ns1 ok\ns1 < query\nwait 999\nc1 open\nwait 1\nc1 end\ns1 > late\nc1 > more\ns1 < more\nc1 fin\ns1 gone\nc1 gone\nlog 0 sD--".into(),
        ),
        (
            "a server need not answer before it has the request",
            "timeout client 30s",
            format!("{post}\ns1 ok\nwait 25000\nc1 > yz\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--"),
        ),
        (
            "http-buffer-request, the body",
            "option http-buffer-request",
            format!("{post}\nwait 4999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 408 \nlog 408 cR--\ns1 none"),
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, script);
    }
}

#[test]
fn a_slow_peer_is_not_the_others_fault() {
    play(
        "the client's time stands still while the server does not read",
        "timeout client 1s",
        "c1 > POST / HTTP/1.1|host: a|content-length: 30||x
         full s1
         s1 ok
         c1 > yyyy
         wait 15000
         c1 <
         c1 open
         drain s1
         wait 999
         c1 > zz
         c1 open",
    );
    play(
        "the server's time stands still while the client does not read",
        "timeout server 1s",
        "c1 > GET / HTTP/1.1|host: a||
         full c1
         s1 ok
         s1 > HTTP/1.1 200 OK|content-length: 30||x
         wait 9000
         s1 open
         drain c1
         wait 999
         s1 > y
         c1 open",
    );
    let interim = "c1 > GET / HTTP/1.1|host: a||
         full c1
         s1 ok
         s1 > HTTP/1.1 103 Early Hints||
         s1 held";
    play(
        "nor is it read while its interim responses are not",
        "timeout server 1s",
        &format!(
            "{interim}
             wait 9000
             s1 open
             drain c1
             s1 heard
             wait 999
             s1 > HTTP/1.1 204 No Content||
             c1 < HTTP/1.1 103 Early Hints||HTTP/1.1 204 No Content||
             log 204 ----"
        ),
    );
    play(
        "a client that does not take an interim response in its time",
        "",
        &format!("{interim}\nwait 9999\nc1 open\nwait 1\nc1 gone\nlog 400 cH--\ns1 end"),
    );
}

#[test]
fn a_deadline_is_not_lost_to_a_backlog() {
    play(
        "the pause before the next try",
        "option http-buffer-request\nretries 1",
        "c1 connects
         full c1
         c1 > POST / HTTP/1.1|host: a|content-length: 2|expect: 100-continue||
         c1 > hi
         s1 refuse
         drain c1
         wait 999
         s2 none
         wait 1
         s2 ok
         s2 <~ POST /",
    );
    play(
        "the client's time to take its last answer, then to ask again",
        "timeout http-keep-alive 1s",
        "c1 > GET / HTTP/1.1|host: a||
         full c1
         s1 ok
         s1 > HTTP/1.1 204 No Content||
         wait 9999
         c1 open
         drain c1
         c1 < HTTP/1.1 204 No Content||
         wait 999
         c1 open
         wait 1
         c1 end",
    );
}

#[test]
fn of_two_deadlines_at_the_same_time_both_have_their_effect() {
    play(
        "the inspection ends, so that the stream goes on, and then the client's time",
        "mode tcp\ntcp-request inspect-delay 10s\ntcp-request content reject if { req.len gt 5 }",
        "c1 connects
         wait 9999
         s1 none
         c1 open
         wait 1
         s1 to 127.0.0.1:81
         c1 end
         log 0 cC--
         quiet",
    );
}

#[test]
fn independent_streams() {
    let talk = "c1 connects
         s1 ok
         c1 > a
         wait 9000
         c1 > b
         wait 9000
         c1 > c
         wait 1999
         c1 open
         wait 1";
    play(
        "what is sent to a server counts for it",
        "mode tcp\ntimeout tunnel 0",
        &format!("{talk}\nc1 open"),
    );
    play(
        "it does not",
        "mode tcp\ntimeout tunnel 0\noption independent-streams",
        &format!("{talk}\nc1 end\nc1 fin\nlog 0 sD--\nquiet"),
    );
    let upload = "c1 > POST / HTTP/1.1|host: a|content-length: 3||a
         s1 ok
         wait 9000
         c1 > b
         wait 9000
         c1 > c
         wait 2000";
    play(
        "the last byte of a request begins the wait for its answer",
        "option independent-streams",
        &format!("{upload}\nc1 open\nwait 17999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 504"),
    );
}

/// A call in which both sides send for hours (gRPC): bytes in either direction are activity of the
/// client.
#[test]
fn a_response_that_goes_on_keeps_an_open_request() {
    let begin = "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||1|a|
         s1 ok
         s1 > HTTP/1.1 200 OK|transfer-encoding: chunked||";
    let talk = "wait 9000\ns1 > 1|x|\n".repeat(20);
    play(
        "a response keeps it",
        "timeout client 10s",
        &format!("{begin}\n{talk}\nc1 open\nwait 9999\nc1 open\nwait 1\nlog 200 cD--"),
    );
    play(
        "unless the directions are independent",
        "timeout client 10s\noption independent-streams",
        &format!("{begin}\nwait 9000\ns1 > 1|x|\nwait 999\nc1 open\nwait 1\nlog 200 cD--"),
    );
}
