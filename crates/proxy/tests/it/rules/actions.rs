//! Actions that answer, wait, mark and rank; which rule decided.

use super::script::play;

const GET: &str = "c1 > GET / HTTP/1.1|host: a||";
const OK: &str = "HTTP/1.1 200 OK|content-length: 0||";

#[test]
fn early_hints() {
    let hint =
        |name: &str| format!("http-request early-hint {name} \"</{name}.css>; rel=preload\"\n");
    let line = |name: &str| format!("{}: </{name}.css>; rel=preload|", name.to_lowercase());
    let both = hint("Link") + &hint("B");
    play(
        "several in a row are one response",
        &both,
        &format!(
            "{GET}\nc1 < HTTP/1.1 103 Early Hints|{}{}|\ns1 ok\ns1 < GET / HTTP/1.1|host: a||\ns1 > {OK}\nc1 < {OK}",
            line("Link"),
            line("B")
        ),
    );
    play(
        "another rule between them, or a condition, makes two",
        &format!(
            "{}http-request set-header x-a %[path]\n{}http-request early-hint c 1 if TRUE",
            hint("a"),
            hint("b")
        ),
        &format!(
            "{GET}\nc1 < HTTP/1.1 103 Early Hints|{}|HTTP/1.1 103 Early Hints|{}|HTTP/1.1 103 Early Hints|c: 1||",
            line("a"),
            line("b")
        ),
    );
    play(
        "HTTP/1.0 knows none",
        &both,
        "c1 > GET / HTTP/1.0||\nc1 < \ns1 ok\ns1 <~ GET / HTTP/1.",
    );
    play(
        "before an answer of our own",
        &format!("{both}http-request deny"),
        &format!(
            "{GET}\nc1 <~ HTTP/1.1 103 Early Hints|{}{}|HTTP/1.1 403",
            line("Link"),
            line("B")
        ),
    );
}

#[test]
fn pauses() {
    play(
        "a request",
        "http-request pause 2s if { path / }\nhttp-request set-header x-a b",
        &format!(
            "{GET}\nwait 1999\ns1 none\nwait 1\ns1 ok\ns1 < GET / HTTP/1.1|host: a|x-a: b||\ns1 > {OK}\nc1 < {OK}\nlog 200 ----"
        ),
    );
    play(
        "by an expression; without a number not at all",
        "http-request pause req.hdr(x-ms)",
        &format!(
            "c1 > GET / HTTP/1.1|host: a|x-ms: 500||\nwait 499\ns1 none\nwait 1\ns1 ok\ns1 <~ GET\ns1 > {OK}\nc1 < {OK}\nc1 > GET /2 HTTP/1.1|host: a|x-ms: no||\ns1 <~ GET /2"
        ),
    );
    play(
        "the body comes meanwhile",
        "http-request pause 1s",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 2||h\nc1 > i\nwait 999\ns1 none\nwait 1\ns1 ok\ns1 < POST / HTTP/1.1|host: a|content-length: 2||hi\ns1 > {OK}\nc1 < {OK}"
        ),
    );
    play(
        "a client that leaves is not waited for",
        "http-request pause 1s",
        &format!("{GET}\nc1 fin\nc1 <~ HTTP/1.1 400\nlog 400 CR--\ns1 none\nquiet"),
    );
    play(
        "a response, whose server is not read meanwhile",
        "http-response pause 1s",
        &format!(
            "{GET}\ns1 ok\ns1 > HTTP/1.1 200 OK|content-length: 4||ab\ns1 > cd\nwait 999\nc1 < \nwait 1\nc1 < HTTP/1.1 200 OK|content-length: 4||abcd\nlog 200 ----\nquiet"
        ),
    );
    play(
        "nor when its client has taken what came before",
        "http-response pause 1s",
        &format!(
            "{GET}\nfull c1\ns1 ok\ns1 > HTTP/1.1 103 Early Hints||{OK}\ns1 held\ndrain c1\nc1 < HTTP/1.1 103 Early Hints||\ns1 held\nwait 999\ns1 held\nwait 1\nc1 < {OK}\ns1 heard\nlog 200 ----\nquiet"
        ),
    );
    play(
        "two pauses",
        "http-response pause 1s\nhttp-response pause 1s",
        &format!("{GET}\ns1 ok\ns1 > {OK}\nwait 1999\nc1 < \nwait 1\nc1 < {OK}\nquiet"),
    );
    play(
        "a server that fails meanwhile",
        "http-response pause 1s",
        &format!("{GET}\ns1 ok\ns1 > {OK}\ns1 rst\nc1 <~ HTTP/1.1 502\nlog 502 SH--\nquiet"),
    );
}

#[test]
fn marks() {
    play(
        "of the client's packets at once, of the server's from its start",
        "http-request set-fc-mark 0x10\nhttp-request set-fc-tos 8\nhttp-request set-bc-mark 5\nhttp-request set-bc-tos int(32)",
        &format!("{GET}\nc1 labels 16 8\ns1 labels 5 32\ns1 ok\ns1 > {OK}\nc1 < {OK}"),
    );
    play(
        "before any stream, by their older names, and with a response",
        "tcp-request connection set-mark 1\ntcp-request session set-tos src_port,mod(10),add(3)\nhttp-response set-fc-mark res.hdr(x)",
        &format!(
            "c1 connects\nc1 labels 1 3\n{GET}\ns1 ok\ns1 > HTTP/1.1 200 OK|x: 7|content-length: 0||\nc1 labels 7 3"
        ),
    );
    play(
        "a connection with marks is not used without",
        "http-reuse always\nhttp-request set-bc-mark 5 if { path /m }",
        &format!(
            "c1 > GET /m HTTP/1.1|host: a||\ns1 ok\ns1 > {OK}\nc1 < {OK}\nc1 > GET /m HTTP/1.1|host: a||\ns1 > {OK}\nc1 < {OK}\nc1 > GET / HTTP/1.1|host: a||\ns2 ok\ns2 labels - -\ns2 > {OK}\nc1 < {OK}\nc1 > GET /m HTTP/1.1|host: a||\ns1 > {OK}"
        ),
    );
    play(
        "of a TCP stream",
        "mode tcp\ntcp-request content set-bc-tos 4\ntcp-response content set-fc-mark 9",
        "c1 > x\ns1 labels - 4\ns1 ok\ns1 > y\nc1 labels 9 -",
    );
}

#[test]
fn log_levels() {
    let level = "no log\nlog stdout format priority local0\n";
    let cases = [
        ("http-request set-log-level err", "<131>200 ----"),
        (
            "http-after-response set-log-level debug\nhttp-request set-log-level err",
            "<135>200 ----",
        ),
        ("tcp-request content set-log-level emerg", "<128>200 ----"),
        ("http-request set-header x a", "<134>200 ----"),
    ];
    for (rules, line) in cases {
        play(
            rules,
            &format!("{level}{rules}"),
            &format!("{GET}\ns1 ok\ns1 > {OK}\nlog {line}"),
        );
    }
    play(
        "silent",
        "http-response set-log-level silent",
        &format!("{GET}\ns1 ok\ns1 > {OK}\nc1 < {OK}\nquiet\nnolog"),
    );
}

#[test]
fn ranks_in_the_queue() {
    let server = "\nserver one 127.0.0.1:81 maxconn 1";
    let three = "c1 > GET /1 HTTP/1.1|host: a||\ns1 ok\ns1 <~ GET /1\nc2 > GET /2 HTTP/1.1|host: a||\nwait 10\nc3 > GET /3 HTTP/1.1|host: a||";
    play(
        "as they came",
        &format!("http-reuse always\nhttp-request set-header x a{server}"),
        &format!("{three}\ns1 > {OK}\ns1 <~ GET /2"),
    );
    play(
        "by class",
        &format!(
            "http-reuse always\nhttp-request set-priority-class int(-5) if {{ path /3 }}{server}"
        ),
        &format!("{three}\ns1 > {OK}\ns1 <~ GET /3"),
    );
    play(
        "by a moved time",
        &format!(
            "http-reuse always\nhttp-request set-priority-offset int(20) if {{ path /2 }}{server}"
        ),
        &format!("{three}\ns1 > {OK}\ns1 <~ GET /3"),
    );
}

#[test]
fn tcp_captures() {
    play(
        "into a slot of the log line",
        "mode tcp\nlog-format %hr\ntcp-request inspect-delay 1s\ntcp-request content capture req.payload(0,3) len 2 if { req.len ge 3 }\ntcp-request content accept if { req.len ge 3 }",
        "c1 > abc\ns1 ok\ns1 fin\nc1 fin\nlog {ab}",
    );
}

#[test]
fn which_rule_decided() {
    // The lines of the script's configuration begin behind its own 15.
    let format =
        "log-format %[last_rule_file]:%[last_rule_line]/%[last_entity]/%[waiting_entity]\n";
    let at = |line: usize| format!("sim.cfg:{line}/sim.cfg:{line}/-");
    let cases = [
        (
            "http-request set-header x y\nhttp-request deny if { path /no }",
            "-:-/-/-".to_string(),
        ),
        (
            "http-request set-header x y\nhttp-request allow if { path / }",
            at(19),
        ),
        ("http-request return status 200", at(18)),
        ("http-request redirect location /x", at(18)),
        ("http-request auth", at(18)),
        (
            "http-request redirect location %[var(txn.none)] ignore-empty",
            "-:-/-/-".into(),
        ),
        ("redirect location /x", "-:-/-/-".into()),
        ("tcp-request content accept", at(18)),
        ("tcp-request content reject", at(18)),
        ("http-request reject", at(18)),
        ("http-request silent-drop rst-ttl 3", at(18)),
        ("http-response allow\nhttp-request allow", at(18)),
        ("http-request add-headers-bin bin(f0)", at(18)),
        (
            "tcp-request content accept\nhttp-request set-log-level err\nhttp-after-response allow",
            at(20),
        ),
    ];
    for (rules, line) in cases {
        let answers = ["deny if", "allow", "y", "ignore-empty", "accept", "err"];
        let served = answers.iter().any(|word| rules.contains(word));
        let rest = if served {
            format!("\ns1 ok\ns1 > {OK}")
        } else {
            String::new()
        };
        play(
            rules,
            &format!("{format}{rules}"),
            &format!("{GET}{rest}\nlog {line}"),
        );
    }
    play(
        "what was waited for",
        &format!("{format}http-request wait-for-body time 1s"),
        "c1 > POST / HTTP/1.1|host: a|content-length: 2||\nwait 1000\nlog -:-/-/sim.cfg:18",
    );
    play(
        "a body was waited for",
        &format!("{format}option http-buffer-request"),
        "c1 > POST / HTTP/1.1|host: a|content-length: 2||\nwait 5000\nlog -:-/-/http-buffer-request",
    );
}

#[test]
fn redirects() {
    let answer =
        |code: &str, rest: &str| format!("HTTP/1.1 {code}|content-length: 0|location: {rest}|");
    let found = |rest: &str| answer("302 Found", &format!("{rest}|cache-control: no-cache"));
    let get = "c1 > GET /a?b=c HTTP/1.1|host: h||";
    let cases = [
        ("http-request redirect location /x", found("/x")),
        ("http-request redirect location /x%[path]", found("/x/a")),
        (
            "http-request redirect location /x keep-query",
            found("/x?b=c"),
        ),
        (
            "http-request redirect location /x? keep-query",
            found("/x?b=c"),
        ),
        (
            "http-request redirect location /x?y keep-query",
            found("/x?y&b=c"),
        ),
        ("http-request redirect prefix /p", found("/p/a?b=c")),
        ("http-request redirect prefix /", found("/a?b=c")),
        ("http-request redirect prefix /p drop-query", found("/p/a")),
        (
            "http-request redirect prefix /p drop-query append-slash",
            found("/p/a/"),
        ),
        (
            "http-request redirect scheme https",
            found("https://h/a?b=c"),
        ),
        (
            "http-request redirect scheme https code 301",
            answer("301 Moved Permanently", "https://h/a?b=c"),
        ),
        (
            "http-request redirect location / code 303",
            answer("303 See Other", "/|cache-control: no-cache"),
        ),
        (
            "http-request redirect location / code 307",
            answer("307 Temporary Redirect", "/|cache-control: no-cache"),
        ),
        (
            "http-request redirect location / code 308",
            answer("308 Permanent Redirect", "/"),
        ),
        (
            "http-request redirect location / set-cookie A=%[path]",
            found("/").trim_end_matches('|').to_string() + "|set-cookie: A=%[path]; path=/;|",
        ),
        (
            "http-request redirect location / set-cookie-fmt A=%[path]",
            found("/").trim_end_matches('|').to_string() + "|set-cookie: A=/a; path=/;|",
        ),
        (
            "http-request redirect location / clear-cookie A=",
            found("/").trim_end_matches('|').to_string() + "|set-cookie: A=; path=/; Max-Age=0;|",
        ),
        // The keyword's texts are no formats.
        ("redirect location /%[path]", found("/%[path]")),
        ("redirect prefix /", found("/a?b=c")),
    ];
    for (rule, wanted) in cases {
        play(
            rule,
            rule,
            &format!("{get}\nc1 < {wanted}|\nlog 302 LR--")
                .replace("log 302", &format!("log {}", &wanted[9..12])),
        );
    }
    play(
        "of a response",
        "http-response redirect location /x",
        &format!(
            "{get}\ns1 ok\ns1 > {OK}\nc1 < {}|\nlog 302 LH--",
            found("/x")
        ),
    );
}
