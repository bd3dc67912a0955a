//! Keep-alive and close on both sides, per option and version.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn both_sides_per_option() {
    let get = "c1 > GET / HTTP/1.1|host: a||\ns1 ok";
    let cases: &[(&str, &str, String)] = &[
        ("both stay", "", format!("{get}\ns1 < GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < {OK}\nc1 open\ns1 open")),
        (
            "the client's close stays its own",
            "",
            format!("c1 > GET / HTTP/1.1|host: a|connection: close||\ns1 ok\ns1 < GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end\ns1 open"),
        ),
        (
            "the server's close stays its own",
            "",
            format!("{get}\ns1 > HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 < {OK}\nc1 open\ns1 end"),
        ),
        (
            "http-server-close",
            "option http-server-close",
            format!("{get}\ns1 < GET / HTTP/1.1|host: a|connection: close||\ns1 > {OK}\nc1 < {OK}\nc1 open\ns1 end"),
        ),
        (
            "http-pretend-keepalive",
            "option http-server-close\noption http-pretend-keepalive",
            format!("{get}\ns1 < GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < {OK}\nc1 open\ns1 end"),
        ),
        (
            "httpclose",
            "option httpclose",
            format!("{get}\ns1 < GET / HTTP/1.1|host: a|connection: close||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end\ns1 end"),
        ),
        (
            "httpclose of a backend",
            "default_backend be\nbackend be\noption httpclose\nserver one 127.0.0.1:81",
            format!("{get}\ns1 < GET / HTTP/1.1|host: a|connection: close||\ns1 > {OK}\nc1 < {OK}\nc1 open\ns1 end"),
        ),
        (
            "httpclose of a frontend",
            "option httpclose\ndefault_backend be\nbackend be\nserver one 127.0.0.1:81",
            format!("{get}\ns1 < GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end\ns1 open"),
        ),
        (
            "HTTP/1.0",
            "",
            format!("c1 > GET / HTTP/1.0||\ns1 ok\ns1 < GET / HTTP/1.0|connection: keep-alive||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end"),
        ),
        (
            "HTTP/1.0 that stays",
            "",
            format!("c1 > GET / HTTP/1.0|connection: keep-alive||\ns1 ok\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: keep-alive||\nc1 open"),
        ),
        (
            "chunks to HTTP/1.0",
            "",
            "c1 > GET / HTTP/1.0|connection: keep-alive||\ns1 ok\ns1 > HTTP/1.1 200 OK|transfer-encoding: chunked||2|hi|0||\nc1 < HTTP/1.1 200 OK|connection: close||hi\nc1 end\ns1 open".into(),
        ),
        (
            "a body until the close",
            "",
            format!("{get}\ns1 > HTTP/1.1 200 OK||hi\ns1 fin\nc1 < HTTP/1.1 200 OK|connection: close||hi\nc1 end\nlog 200 ----"),
        ),
        (
            "chunks of an HTTP/1.0 client",
            "",
            format!("c1 > POST / HTTP/1.0|host: a|connection: keep-alive|transfer-encoding: chunked||1|x|0||\ns1 ok\ns1 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||1|x|0||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end"),
        ),
        (
            "chunks of an HTTP/1.0 server",
            "",
            format!("{get}\ns1 > HTTP/1.0 200 OK|transfer-encoding: chunked||1|x|0||\nc1 < HTTP/1.1 200 OK|transfer-encoding: chunked|connection: close||1|x|0||\nc1 end\ns1 end"),
        ),
        (
            "an HTTP/1.0 server closes",
            "",
            format!("{get}\ns1 > HTTP/1.0 200 OK|content-length: 0||\nc1 < HTTP/1.0 200 OK|content-length: 0|connection: keep-alive||\nc1 open\ns1 end"),
        ),
    ];
    for (name, lines, script) in cases {
        play(name, lines, &format!("{script}\nquiet"));
    }
}

#[test]
fn reuse() {
    let first =
        format!("c1 > GET /1 HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET /1\ns1 > {OK}\nc1 < {OK}");
    let again = format!(
        "{first}\nc1 > GET /2 HTTP/1.1|host: a||\ns1 < GET /2 HTTP/1.1|host: a||\ns1 > {OK}\nc1 < {OK}\ns2 none"
    );
    let second = "c2 > GET /3 HTTP/1.1|host: a||";
    for mode in ["never", "safe", "aggressive", "always"] {
        play(mode, &format!("http-reuse {mode}"), &again);
    }
    play(
        "never: another client has its own",
        "http-reuse never",
        &format!("{again}\n{second}\ns2 ok\ns2 <~ GET /3"),
    );
    play(
        "never: it goes with its client",
        "http-reuse never",
        &format!("{again}\nc1 fin\nc1 end\ns1 end"),
    );
    play(
        "safe: not for a first request",
        "http-reuse safe",
        &format!("{again}\n{second}\ns2 ok\ns2 <~ GET /3"),
    );
    play(
        "safe: it outlives its client",
        "http-reuse safe",
        &format!("{again}\nc1 fin\nc1 end\ns1 open"),
    );
    play(
        "aggressive: a first request on a proved one",
        "http-reuse aggressive",
        &format!("{again}\n{second}\ns1 <~ GET /3\ns2 none"),
    );
    play(
        "aggressive: not on a new one",
        "http-reuse aggressive",
        &format!("{first}\n{second}\ns2 ok"),
    );
    play(
        "always",
        "http-reuse always",
        &format!("{first}\n{second}\ns1 <~ GET /3\ns2 none"),
    );
    play(
        "an idle server that speaks is closed",
        "",
        &format!("{first}\ns1 > HTTP/1.1 408 Timeout||\ns1 end"),
    );
    play(
        "more than the answer",
        "",
        "c1 > GET /1 HTTP/1.1|host: a||\ns1 ok\ns1 > HTTP/1.1 204 No Content||xx\nc1 < HTTP/1.1 204 No Content||\ns1 end",
    );
}

#[test]
fn pipelining() {
    play(
        "one after the other",
        "",
        &format!(
            "c1 > GET /1 HTTP/1.1|host: a||GET /2 HTTP/1.1|host: a||GET /3 HTTP/1.1|host: a|connection: close||GET /4
             s1 ok
             s1 <~ GET /1
             s1 > {OK}
             c1 < {OK}
             s1 <~ GET /2
             s1 > {OK}
             c1 < {OK}
             s1 <~ GET /3
             s1 > {OK}
             c1 <~ HTTP/1.1 200 OK|
             c1 end
             quiet"
        ),
    );
    play(
        "after the client's end",
        "no option abortonclose",
        &format!(
            "c1 > GET /1 HTTP/1.1|host: a||GET /2 HTTP/1.1|host: a||\nc1 fin\ns1 ok\ns1 > {OK}\nc1 < {OK}\ns1 > {OK}\nc1 < {OK}\nc1 end\nquiet"
        ),
    );
}

#[test]
fn draining() {
    play(
        "the request at hand is answered and its connection ends",
        "",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ndrainprocess\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end\nc1 fin\nfinished"
        ),
    );
    play(
        "an idle client is closed after a moment",
        "",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nc1 < {OK}\ndrainprocess\nc1 open\nwait 1000\nc1 end\nfinished"
        ),
    );
    play(
        "a request that was under way is answered",
        "",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nc1 < {OK}\ndrainprocess\nwait 999\nc1 > GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|connection: close||\nc1 end\nc1 fin\nfinished"
        ),
    );
    play(
        "grace: the listener stays a while",
        "",
        "drainprocess 3000\nlistens\nwait 2999\nlistens\nc1 > GET / HTTP/1.1|host: a||\ns1 ok\nwait 1\nunfinished\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content|connection: close||\nc1 fin\nfinished",
    );
    play(
        "hard-stop-after",
        "",
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ndrainprocess 0 5000\nwait 4999\nunfinished\nwait 1\nfinished",
    );
    play(
        "stop",
        "",
        "c1 > GET / HTTP/1.1|host: a||\nunfinished\nstop\nfinished",
    );
}

#[test]
fn idle_connections_count_in_a_strict_maxconn() {
    // The first request of another client may not use a connection that was used once.
    let script =
        "c1 > GET /1 HTTP/1.1|host: a||\ns1 ok\ns1 > HTTP/1.1 204 No Content||\nlog 204 ----
         c2 > GET /2 HTTP/1.1|host: a||\ns2 ok\ns2 > HTTP/1.1 204 No Content||\nlog 204 ----";
    let server = "http-reuse safe\nserver one 127.0.0.1:81 maxconn 1";
    play("plain", server, &format!("{script}\ns1 open"));
    play(
        "strict",
        &format!("{server} strict-maxconn"),
        &format!("{script}\ns1 end"),
    );
    let two = format!(
        "{} strict-maxconn",
        server.replace("maxconn 1", "maxconn 2")
    );
    play("room for two", &two, &format!("{script}\ns1 open"));
}

/// A client that is refused while it still sends its request reads the response, however long it
/// sends: nothing resets it.
#[test]
fn the_rest_of_a_refused_request_is_discarded_while_it_comes() {
    let head = "c1 > POST / HTTP/1.1|host: a|content-length: 1000|connection: close||x";
    let more = "wait 9000\nc1 > more\nc1 open\n"
        .repeat(5)
        .replace("c1 open", "quiet");
    play(
        "it sends for a minute",
        "http-request deny",
        &format!(
            "{head}\nc1 <~ HTTP/1.1 403\nc1 end\n{more}wait 9999\nc1 heard\nc1 > more\nwait 9999\nc1 heard\nwait 1\nc1 gone"
        ),
    );
    play(
        "it ends",
        "http-request deny",
        &format!("{head}\nc1 <~ HTTP/1.1 403\nc1 end\nc1 fin\nc1 gone"),
    );
    play(
        "a complete request waits for a moment only",
        "http-request deny",
        "c1 > GET / HTTP/1.1|host: a||\nc1 <~ HTTP/1.1 403",
    );
}

/// The same on a connection that is kept: the rest is discarded while it comes, then the next
/// request is served.
#[test]
fn the_rest_of_a_refused_request_on_a_kept_connection_is_discarded_while_it_comes() {
    let more = "wait 9000\nc1 > 0123456789\n".repeat(4);
    play(
        "it sends for half a minute",
        "http-request deny if { path /no }",
        &format!(
            "c1 > POST /no HTTP/1.1|host: a|content-length: 41||x\nc1 <~ HTTP/1.1 403\n{more}\
             c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nc1 < {OK}\nc1 open"
        ),
    );
}
