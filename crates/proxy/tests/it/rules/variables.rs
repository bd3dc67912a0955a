//! When variables are there, and who sees them.

use super::script::play;

const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn each_scope_has_its_time() {
    let get = "c1 > GET / HTTP/1.1|host: a||";
    let cases: &[(&str, &str, String)] = &[
        (
            "req until a server is chosen, res from then on",
            "http-request set-var(req.a) int(1)\nhttp-request set-var(res.a) int(2)\nhttp-request set-header x %[var(req.a)]-%[var(res.a)]\n\
             http-response set-var(res.b,ifnotset) int(3)\nhttp-response set-var(res.b,ifnotset) int(4)\nhttp-response set-var(req.a) int(5)\n\
             http-response set-header y %[var(req.a)]-%[var(res.b)]",
            format!(
                "{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: 1-||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|y: -3||"
            ),
        ),
        (
            "a converter's assignment holds for the rules after it",
            "http-request deny if { int(7),set-var(txn.a) -m int 8 }\nhttp-request set-header x %[var(txn.a)] if { int(7),set-var(txn.b),add(txn.b) -m int 14 }\n\
             http-request set-var(txn.a) var(txn.a),add(1)\nhttp-response set-header y %[var(txn.a)]%[var(txn.b)]",
            format!(
                "{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: 7||\ns1 > {OK}\nc1 < HTTP/1.1 200 OK|content-length: 0|y: 87||"
            ),
        ),
        (
            "txn ends with the request, sess with the connection, proc never",
            "http-request set-var(txn.n) var(txn.n,0),add(1)\nhttp-request set-var(sess.n) var(sess.n,0),add(1)\nhttp-request set-var(proc.n) var(proc.n,0),add(1)\n\
             http-request set-header x %[var(txn.n)]%[var(sess.n)]%[var(proc.n)]",
            format!(
                "{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: 111||\ns1 > {OK}\nc1 < {OK}\n{get}\ns1 < GET / HTTP/1.1|host: a|x: 122||\ns1 > {OK}\nc1 < {OK}\n\
                 c2 > GET / HTTP/1.1|host: a||\ns2 ok\ns2 < GET / HTTP/1.1|host: a|x: 113||"
            ),
        ),
        (
            "an answer made here ends the request's",
            "http-request set-var(req.a) int(1)\nhttp-request return status 200 hdr x %[var(req.a)]\nhttp-after-response set-header y %[var(req.a)]",
            format!("{get}\nc1 < HTTP/1.1 200 OK|x: 1|content-length: 0|y: ||"),
        ),
        (
            "before there is a stream there is only the session",
            "tcp-request connection set-var(sess.a) int(1)\ntcp-request connection set-var(txn.a) int(2)\ntcp-request session set-var-fmt(sess.b) %[var(sess.a)]5\n\
             tcp-request session unset-var(sess.a)\nhttp-request set-header x %[var(sess.a)]-%[var(txn.a)]-%[var(sess.b)]",
            format!("{get}\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: --15||"),
        ),
    ];
    for (name, config, script) in cases {
        play(name, config, script);
    }
}

#[test]
fn what_has_no_room_is_not_set() {
    let rules = "http-request set-var(txn.a) str(12345678)\nhttp-request set-var(sess.b) str(1)\nhttp-request set-var(txn.c) str(1)\n\
                 http-request unset-var(txn.a)\nhttp-request set-var(txn.d) int(1)\nhttp-request set-header x %[dump_all_vars]\nserver one 127.0.0.1:81\nglobal\n";
    for (limit, seen) in [
        ("txn-max-size 72", r#"sess.b="1""#),
        ("txn-max-size 129", r#"sess.b="1", txn.d=1"#),
        ("txn-max-size 137", r#"sess.b="1", txn.c="1""#),
        ("sess-max-size 72", ""),
        ("sess-max-size 137", r#"sess.b="1""#),
        ("global-max-size 137", r#"sess.b="1""#),
        ("reqres-max-size 1", r#"sess.b="1", txn.c="1", txn.d=1"#),
    ] {
        let script = format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x: {seen}||\ns1 > {OK}\nc1 < {OK}\n\
             c1 fin\nc2 > GET / HTTP/1.1|host: a||\ns2 ok\ns2 < GET / HTTP/1.1|host: a|x: {seen}||"
        );
        play(limit, &format!("{rules}tune.vars.{limit}"), &script);
    }
}
