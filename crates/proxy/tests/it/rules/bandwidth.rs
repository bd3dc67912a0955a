//! Limits of bandwidth: what passes when, and what else the stream does meanwhile.

use super::script::{DEFAULTS, Play, play};
use crate::setups::runtime_config;

/// A part of a body, every byte the same.
fn part(bytes: usize) -> String {
    "x".repeat(bytes)
}

const DOWN: &str = "filter bwlim-out slow default-limit 1000 default-period 1s
http-request set-bandwidth-limit slow";
const UP: &str = "filter bwlim-in slow default-limit 1000 default-period 1s
http-request set-bandwidth-limit slow";
const GET: &str = "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET /";

/// The head of a response with a body of 100 bytes, as the server sends it and the client gets it.
const HEAD: &str = "HTTP/1.1 200 OK|content-length: 100||";

#[test]
fn a_download_passes_at_its_rate() {
    let all = format!("{HEAD}{}", part(100));
    let script = format!(
        "{GET}\ns1 > {all}\nc1 < {HEAD}{first}\nwait 10\nc1 < {half}\nwait 10\nc1 < {half}\nwait 50\nc1 < {fifty}
         nolog\nwait 10\nc1 < {half}\nlog 200 ----
         c1 > GET /2 HTTP/1.1|host: a||\ns1 <~ GET /2\ns1 > {HEAD}{fifty}\nc1 <~ {HEAD}",
        first = part(20),
        half = part(10),
        fifty = part(50),
    );
    play("download", DOWN, &script);
}

#[test]
fn an_upload_passes_at_its_rate() {
    let script = format!(
        "c1 > POST / HTTP/1.1|host: a|content-length: 100||{all}\ns1 ok
         s1 < POST / HTTP/1.1|host: a|content-length: 100||{first}
         wait 79\ns1 <~ {part}\nwait 2\ns1 > {HEAD}{all}\nc1 < {HEAD}{all}\nlog 200 ----",
        all = part(100),
        first = part(20),
        part = part(70),
    );
    play("upload", UP, &script);
}

#[test]
fn rules_give_a_stream_other_rates() {
    for (rule, first) in [
        ("limit 2000", 40),
        ("period 500", 40),
        ("limit 500 period 2s", 5),
        ("limit int(3000)", 60),
        ("limit req.hdr(x-none)", 20),
        ("limit int(0) period int(0)", 20),
    ] {
        let lines = format!("{DOWN} {rule}");
        let script = format!(
            "{GET}\ns1 > {HEAD}{}\nc1 < {HEAD}{}",
            part(100),
            part(first)
        );
        play(rule, &lines, &script);
    }
}

#[test]
fn a_limit_that_no_rule_turns_on_has_no_effect() {
    let all = format!("{HEAD}{}", part(100));
    play(
        "off",
        &format!("{DOWN} if {{ path /slow }}"),
        &format!("{GET}\ns1 > {all}\nc1 < {all}\nlog 200 ----"),
    );
}

#[test]
fn the_server_is_not_silent_while_it_is_not_read() {
    let lines = format!("{DOWN} limit 1 period 4s\ntimeout server 5s");
    let head = "HTTP/1.1 200 OK|content-length: 3||";
    let script = format!(
        "{GET}\ns1 > {head}xxx\nc1 < {head}x\nwait 4000\nc1 < x\nwait 4000\nc1 < x\nlog 200 ----"
    );
    play("silence", &lines, &script);
}

#[test]
fn streams_of_a_key_share_their_limit() {
    let lines = "stick-table type ip size 10 store bytes_out_rate(1s)
filter bwlim-out slow key src limit 1000
http-request set-bandwidth-limit slow";
    let head = "HTTP/1.1 200 OK|content-length: 3000||";
    let script = format!(
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\nc2 > GET / HTTP/1.1|host: a||\ns2 ok
         s1 > {head}{all}\ns2 > {head}{all}\nwait 1000",
        all = part(3000),
    );
    let config = format!("{DEFAULTS}{lines}\n server one 127.0.0.1:81\n");
    let mut play = Play::new(&runtime_config(&config));
    for line in script.lines() {
        play.line(line.trim()).expect("it can be done");
        play.settle();
    }
    let mut body = |client: &str| {
        let place = play.place(client).expect("a client");
        let sent = play.driver.pipes[place].outbox.peek();
        sent.iter().filter(|byte| **byte == b'x').count()
    };
    let bodies = [body("c1"), body("c2")];
    let sum: usize = bodies.iter().sum();
    assert!((900..=1100).contains(&sum), "{bodies:?}");
    assert!(bodies.iter().all(|bytes| *bytes >= 400), "{bodies:?}");
}

#[test]
fn a_tcp_session_ends_behind_what_waits() {
    let lines = "mode tcp
tcp-request inspect-delay 5s
tcp-request content set-bandwidth-limit up if { req.len ge 50 }
tcp-request content accept if { req.len ge 50 }
filter bwlim-in up default-limit 1000 default-period 1s";
    let script = format!(
        "c1 > {all}\ns1 ok\ns1 < {first}\nc1 fin\ns1 open\nwait 30\ns1 < {rest}\ns1 end",
        all = part(50),
        first = part(20),
        rest = part(30),
    );
    play("tcp", lines, &script);
}
