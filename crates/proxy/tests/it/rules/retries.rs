//! `retry-on`, `set-retries`, `set-timeout`, `option redispatch`.

use super::script::play;

const GET: &str = "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET / ";
const POST: &str = "c1 > POST / HTTP/1.1|host: a|content-length: 4||bo\nc1 > dy\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 4||body";
const AGAIN: &str = "s2 ok\ns2 <~ GET / \ns2 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content||\nlog 204 ----\nc1 open";

#[test]
fn what_is_tried_again() {
    let cases = [
        ("empty-response", "s1 fin"),
        ("empty-response", "s1 rst"),
        ("junk-response", "s1 > hello||"),
        ("junk-response", "s1 > HTTP/1.1 200 OK|a: b|\ns1 fin"),
        ("response-timeout", "wait 20000"),
        ("503", "s1 > HTTP/1.1 503 No|content-length: 2||no"),
        ("404 503", "s1 > HTTP/1.1 404 No|content-length: 2||"),
        ("all-retryable-errors", "s1 > HTTP/1.1 500 No||"),
        ("all-retryable-errors", "wait 20000"),
        ("all-retryable-errors", "s1 fin"),
    ];
    for (events, failure) in cases {
        let lines = format!("retries 1\nretry-on {events}");
        let name = format!("{events}: {failure}");
        play(&name, &lines, &format!("{GET}\n{failure}\n{AGAIN}"));
        // Not with other events, nor without a try left.
        for other in [
            "retries 1",
            "retry-on 502",
            &format!("retries 0\nretry-on {events}"),
        ] {
            let lines = format!("retries 1\n{other}");
            let end = "s2 none\nwait 30000\nquiet";
            let script = format!("{GET}\n{failure}\n{end}");
            play(&format!("{other}, {name}"), &lines, &script);
        }
    }
}

#[test]
fn bodies_are_kept() {
    let lines = "retries 2\nretry-on 503";
    let refused = "HTTP/1.1 503 No|content-length: 2||no";
    let body = "POST / HTTP/1.1|host: a|content-length: 4||body";
    play(
        "twice",
        lines,
        &format!(
            "{POST}\ns1 > {refused}\ns1 end\ns2 ok\ns2 < {body}\ns2 > {refused}\ns3 ok\ns3 < {body}\ns3 > {refused}\nc1 < {refused}\nlog 503 ----"
        ),
    );
    play(
        "chunks",
        lines,
        &format!(
            "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||2|bo|\nc1 > 2|dy|0|x: y||\ns1 ok\ns1 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||2|bo|2|dy|0|x: y||\ns1 > {refused}\ns2 ok\ns2 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||4|body|0|x: y||"
        ),
    );
    play(
        "not one that is still coming",
        lines,
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 4||bo\ns1 ok\ns1 > {refused}\nc1 <~ HTTP/1.1 503 \ns2 none"
        ),
    );
    play(
        "not one that is too large",
        lines,
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 20000||{}\ns1 ok\ns1 > {refused}\nc1 < {refused}\ns2 none",
            "x".repeat(20_000)
        ),
    );
    play(
        "not after an interim response",
        lines,
        &format!(
            "{POST}\ns1 > HTTP/1.1 103 Early||\nc1 < HTTP/1.1 103 Early||\ns1 > {refused}\nc1 < {refused}\ns2 none"
        ),
    );
    play(
        "disable-l7-retry",
        &format!("{lines}\nhttp-request disable-l7-retry if METH_POST"),
        &format!("{POST}\ns1 > {refused}\nc1 < {refused}\ns2 none"),
    );
}

#[test]
fn elsewhere() {
    let servers = "server one 127.0.0.1:81\nserver two 127.0.0.1:82";
    let refused = "s1 > HTTP/1.1 503 No|content-length: 2||no";
    play(
        "at once, where nothing binds",
        &format!("retries 3\nretry-on 503\noption redispatch\n{servers}"),
        &format!("{GET}\n{refused}\ns2 to 127.0.0.1:82\n{AGAIN}"),
    );
    play(
        "not without redispatch",
        &format!("retries 3\nretry-on 503\n{servers}"),
        &format!("{GET}\n{refused}\ns2 to 127.0.0.1:81\n{AGAIN}"),
    );
    play(
        "a slot goes with its server",
        "retries 3\nretry-on 503\noption redispatch\nserver one 127.0.0.1:81 maxconn 1\nserver two 127.0.0.1:82 maxconn 1",
        &format!("{GET}\n{refused}\ns2 to 127.0.0.1:82\n{AGAIN}\nquiet"),
    );
    play(
        "a hash stays until the last try",
        "retries 1\noption redispatch\nbalance uri\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82",
        "c1 > GET / HTTP/1.1|host: a||\ns1 refuse\ns2 ok",
    );
    play(
        "retry-on none: not even a connection",
        "retries 3\nretry-on none",
        "c1 > GET / HTTP/1.1|host: a||\ns1 refuse\nc1 <~ HTTP/1.1 503 \nlog 503 SC--\ns2 none",
    );
}

#[test]
fn set_retries() {
    let script = |tries: usize| {
        let mut script = "c1 > GET / HTTP/1.1|host: a||\n".to_owned();
        for server in 1..=tries {
            script += &format!("s{server} refuse\nwait 1000\n");
        }
        script + &format!("c1 <~ HTTP/1.1 503 \ns{} none", tries + 1)
    };
    play("a number", "http-request set-retries 2", &script(3));
    play(
        "an expression",
        "http-request set-retries int(1)",
        &script(2),
    );
    play(
        "out of range",
        "http-request set-retries int(101)",
        &script(1),
    );
    play("no number", "http-request set-retries str(x)", &script(1));
    play(
        "tcp-request content",
        "tcp-request content set-retries 1",
        &script(2),
    );
    play(
        "forgotten by the next backend",
        "http-request set-retries 2\ndefault_backend app\nbackend app",
        &script(1),
    );
}

#[test]
fn set_timeout() {
    let get = "c1 > GET / HTTP/1.1|host: a||";
    let cases = [
        (
            "connect 100",
            "wait 99\nc1 open\nwait 1\nc1 <~ HTTP/1.1 503 \nlog 503 sC--",
        ),
        (
            "server 1s",
            "s1 ok\nwait 999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--",
        ),
        (
            "server int(1),mul(1000)",
            "s1 ok\nwait 999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 \nlog 504 sH--",
        ),
        (
            "server int(-1)",
            "s1 ok\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 ",
        ),
        ("server int(0)", "s1 ok\nwait 900000\nc1 < \nc1 open"),
        (
            "tarpit 1s\nhttp-request tarpit",
            "wait 999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 500 \nlog 500 PT--",
        ),
        (
            "tunnel 1s",
            "s1 ok\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content||",
        ),
    ];
    for (rule, script) in cases {
        let lines = format!("http-request set-timeout {rule}");
        play(rule, &lines, &format!("{get}\n{script}"));
    }
    play(
        "tunnel",
        "http-request set-timeout tunnel 1s",
        "c1 > GET / HTTP/1.1|host: a|connection: upgrade|upgrade: x||\ns1 ok\ns1 > HTTP/1.1 101 Switching|connection: upgrade|upgrade: x||\nwait 999\nc1 open\nwait 1\nc1 gone",
    );
    play(
        "client",
        "http-request set-timeout client 1s",
        "c1 > POST / HTTP/1.1|host: a|content-length: 2||x\ns1 ok\nwait 999\nc1 open\nwait 1\nc1 <~ HTTP/1.1 400 \nlog 400 cH--",
    );
    play(
        "queue",
        "http-request set-timeout queue 1s\nserver one 127.0.0.1:81 maxconn 1",
        &format!(
            "{get}\ns1 ok\nc2 > GET /2 HTTP/1.1|host: a||\nwait 999\nc2 < \nwait 1\nc2 <~ HTTP/1.1 503 \nlog 503 sQ--"
        ),
    );
    play(
        "of a response",
        "http-response set-timeout server 1s",
        &format!(
            "{get}\ns1 ok\nwait 19000\ns1 > HTTP/1.1 200 OK|content-length: 2||\nwait 999\nc1 open\nwait 1\nc1 gone\nlog 200 sD--"
        ),
    );
    play(
        "forgotten by the next backend",
        "http-request set-timeout server 1s\ndefault_backend app\nbackend app",
        &format!("{get}\ns1 ok\nwait 19999\nc1 < \nwait 1\nc1 <~ HTTP/1.1 504 "),
    );
}

#[test]
fn backends_that_are_not_eligible() {
    let lines = |rule: &str, state: &str| {
        format!(
            "{rule}\nuse_backend app if {{ path / }}\ndefault_backend other\nbackend app\n{state}\nserver one 127.0.0.1:81\nbackend other\nserver two 127.0.0.1:82"
        )
    };
    let to = |server: u8| format!("c1 > GET / HTTP/1.1|host: a||\ns1 to 127.0.0.1:{server}");
    for state in ["disabled", "be-unpublished"] {
        play(state, &lines("", state), &to(82));
        let forced = "force-be-switch if { path / }";
        play(forced, &lines(forced, state), &to(81));
        let not = "force-be-switch unless { path / }";
        play(not, &lines(not, state), &to(82));
    }
}
