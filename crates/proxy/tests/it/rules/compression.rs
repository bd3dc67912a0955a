//! Which responses are compressed, what becomes of their heads, and that what leaves can be read.

use std::io::Read as _;

use super::script::{DEFAULTS, Play, bytes, play};
use crate::setups::runtime_config;
use testing::Random;

/// A body that is worth compressing.
fn body() -> String {
    "all work and no play makes a proxy dull. ".repeat(40)
}

/// Digits without a pattern, which compress to about half of their size.
fn noise(seed: u64) -> String {
    let mut random = Random::new(seed);
    let digits = std::iter::repeat_with(|| char::from(b'0' + random.below(10) as u8));
    digits.take(400_000).collect()
}

/// Plays lines; each takes effect before the next one.
fn settle_each(play: &mut Play, lines: &[&str]) {
    for line in lines {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    }
}

/// What a client of HTTP/1.1 gets for a response with fields: the head, and the payload of its
/// chunks.
fn exchange(lines: &str, asked: &str, response: &str) -> (String, Vec<u8>) {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}{lines}\nserver one 127.0.0.1:81\n"
    )));
    settle_each(
        &mut play,
        &[
            &format!("c1 > GET / HTTP/1.1|host: a|{asked}|"),
            "s1 ok",
            &format!("s1 > {response}"),
        ],
    );
    play.line("log 200 ----").expect("a whole response");
    received(play.driver.pipes[0].outbox.peek())
}

/// A head, and the payload behind it.
fn received(sent: &[u8]) -> (String, Vec<u8>) {
    let end = sent.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = sent.split_at(end.expect("a head") + 4);
    let head = String::from_utf8(head.to_vec()).expect("text");
    let payload = if head.contains("chunked") {
        chunks(body)
    } else {
        body.to_vec()
    };
    (head, payload)
}

/// The payload of chunks, all of them.
fn chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    loop {
        let line = rest.iter().position(|byte| *byte == b'\r').expect("a size");
        let size = std::str::from_utf8(&rest[..line]).expect("digits");
        let size = usize::from_str_radix(size, 16).expect("a size");
        rest = &rest[line + 2..];
        if size == 0 {
            assert_eq!(rest, b"\r\n");
            return payload;
        }
        payload.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(bytes);
    reader.read_to_string(&mut text).expect("gzip");
    text
}

fn response(fields: &str) -> String {
    let body = body();
    format!(
        "HTTP/1.1 200 OK|content-length: {}|{fields}|{body}",
        body.len()
    )
}

const GZIP: &str = "accept-encoding: gzip|";

#[test]
fn a_response_is_compressed_for_who_accepts_it() {
    let (head, payload) = exchange(
        "compression algo gzip",
        GZIP,
        &response("content-type: text/plain|"),
    );
    assert_eq!(gunzip(&payload), body());
    assert!(payload.len() < body().len() / 10, "{}", payload.len());
    let lines: Vec<&str> = head.lines().collect();
    for field in [
        "transfer-encoding: chunked",
        "content-encoding: gzip",
        "vary: Accept-Encoding",
    ] {
        assert!(lines.contains(&field), "{field}: {head}");
    }
    assert!(!head.contains("content-length"), "{head}");
}

#[test]
fn what_the_client_likes_decides() {
    let lines = "compression algo identity gzip deflate raw-deflate";
    for (accepted, coding) in [
        ("", ""),
        ("gzip", "gzip"),
        ("br, gzip;q=0.5, deflate;q=0.8", "deflate"),
        ("deflate, gzip", "deflate"),
        ("gzip, deflate", "gzip"),
        ("deflate;q=0.5, gzip;q=0.5", "deflate"),
        ("gzip;q=0", ""),
        ("gzip;q=0.0, deflate;q=0.001", "deflate"),
        ("identity, gzip;q=0.9", ""),
        ("br", ""),
        ("GZIP", "gzip"),
        ("x-gzip", ""),
    ] {
        let asked = format!("accept-encoding: {accepted}|");
        let (head, _) = exchange(lines, &asked, &response(""));
        let found = head
            .lines()
            .find_map(|line| line.strip_prefix("content-encoding: "));
        assert_eq!(found.unwrap_or_default(), coding, "{accepted}: {head}");
    }
    // Any but those that are named: the last of the configuration.
    for (codings, accepted, coding) in [
        ("gzip deflate", "*", "deflate"),
        ("deflate gzip", "*", "gzip"),
        ("gzip deflate", "*, deflate;q=0", "gzip"),
        ("deflate gzip", "*;q=0.5, deflate;q=0.6", "deflate"),
    ] {
        let (head, _) = exchange(
            &format!("compression algo {codings}"),
            &format!("accept-encoding: {accepted}|"),
            &response(""),
        );
        let line = format!("content-encoding: {coding}\r\n");
        assert!(head.contains(&line), "{codings}: {accepted}: {head}");
    }
}

/// The payload that has left for the client after a second in which a limit lets 100,000 bytes pass,
/// and all of it after enough time.
fn at_a_rate(lines: &str, payload: &str) -> (usize, Vec<u8>) {
    let config = format!(
        "{DEFAULTS}compression algo gzip\n{lines}
         http-request set-bandwidth-limit slow\nserver one 127.0.0.1:81\n"
    );
    let mut play = Play::new(&runtime_config(&config));
    let response = format!(
        "s1 > HTTP/1.1 200 OK|content-length: {}||{payload}",
        payload.len()
    );
    let asked = format!("c1 > GET / HTTP/1.1|host: a|{GZIP}|");
    settle_each(&mut play, &[&asked, "s1 ok", &response, "wait 1000"]);
    let sent = play.driver.pipes[0].outbox.peek();
    let head = sent.windows(4).position(|window| window == b"\r\n\r\n");
    let soon = sent.len() - head.expect("a head");
    settle_each(&mut play, &["wait 9000"]);
    play.line("log 200 ----").expect("a whole response");
    (soon, received(play.driver.pipes[0].outbox.peek()).1)
}

/// Digits compress to about half of their size.
#[test]
fn a_limit_counts_what_the_filters_before_it_leave() {
    let text = noise(1);
    const SLOW: &str = "filter bwlim-out slow default-limit 100000 default-period 1s";
    for (lines, after) in [
        (SLOW.to_owned(), false),
        (format!("{SLOW}\nfilter compression"), false),
        (format!("filter compression\n{SLOW}"), true),
        (
            format!("filter compression\n{SLOW}\nfilter-sequence response bwlim-out,comp-res"),
            false,
        ),
        (
            format!(
                "{SLOW}\nfilter comp-res\nfilter-sequence response comp-res\nfilter-sequence response bwlim-out"
            ),
            true,
        ),
    ] {
        let (soon, payload) = at_a_rate(&lines, &text);
        assert_eq!(gunzip(&payload), text, "{lines}");
        let expected = if after {
            95_000..110_000
        } else {
            40_000..85_000
        };
        assert!(expected.contains(&soon), "{lines}: {soon}");
    }
    let left_out = format!("filter compression\n{SLOW}\nfilter-sequence response comp-res");
    let (soon, payload) = at_a_rate(&left_out, &text);
    assert!(soon > 150_000 && gunzip(&payload) == text, "{soon}");
}

/// The filter of responses sees the request too: it tells which codings the client accepts.
#[test]
fn a_filter_that_a_sequence_leaves_out_does_not_run() {
    for (sequence, is_compressed) in [
        ("response comp-res", true),
        ("request comp-res", true),
        ("request comp-req,comp-res,", true),
        ("request comp-req", false),
        ("response comp-req", false),
    ] {
        let lines =
            format!("compression algo gzip\nfilter compression\nfilter-sequence {sequence}");
        let (head, _) = exchange(&lines, GZIP, &response(""));
        assert_eq!(
            head.contains("content-encoding: gzip"),
            is_compressed,
            "{sequence}: {head}"
        );
    }
}

#[test]
fn some_responses_stay_as_they_are() {
    let text = "compression algo gzip\ncompression type text/ application/json";
    for (lines, fields) in [
        (text, ""),
        (text, "content-type: image/png|"),
        (
            "compression algo gzip",
            "content-type: multipart/mixed; boundary=x|",
        ),
        ("compression algo gzip", "content-encoding: br|"),
        (
            "compression algo gzip",
            "cache-control: max-age=5, no-transform|",
        ),
        ("compression algo gzip", "etag: \"a\"|etag: \"b\"|"),
        ("compression algo gzip", "etag: a|"),
        ("compression algo gzip\ncompression minsize-res 10k", ""),
        ("compression type text/", "content-type: text/plain|"),
    ] {
        let (head, payload) = exchange(lines, GZIP, &response(fields));
        assert!(
            !head.contains("content-encoding: gzip"),
            "{lines} {fields}: {head}"
        );
        assert_eq!(payload, bytes(&body()), "{lines} {fields}");
    }
    for fields in [
        "content-type: TEXT/html|",
        "content-type: application/json;charset=utf-8|",
    ] {
        let (head, _) = exchange(text, GZIP, &response(fields));
        assert!(head.contains("content-encoding: gzip"), "{fields}: {head}");
    }
    let agent = |agent: &str| {
        let asked = format!("{GZIP}user-agent: {agent}|");
        let (head, _) = exchange("compression algo gzip", &asked, &response(""));
        head.contains("content-encoding: gzip")
    };
    assert!(!agent("Mozilla/4.0 (compatible; MSIE 6.0)") && !agent("Mozilla/4.08"));
    assert!(agent("Mozilla/4.0 (compatible; MSIE 6.0; SV1)") && agent("Mozilla/4.0 (MSIE 8.0)"));
}

#[test]
fn caches_are_told() {
    let fields = |given: &str| exchange("compression algo gzip", GZIP, &response(given)).0;
    let head = fields("etag: \"a\"|vary: Cookie|");
    assert!(head.contains("etag: W/\"a\"\r\n"), "{head}");
    assert!(head.contains("vary: Cookie,Accept-Encoding\r\n"), "{head}");
    let head = fields("etag: W/\"a\"|vary: accept-encoding, Cookie|");
    assert!(
        head.contains("etag: W/\"a\"\r\n") && head.contains("vary: accept-encoding, Cookie\r\n"),
        "{head}"
    );
    assert_eq!(head.matches("ary:").count(), 1, "{head}");
}

#[test]
fn offload_hides_what_the_client_accepts() {
    for (lines, sent) in [
        ("compression algo gzip", "accept-encoding: gzip|"),
        ("compression algo gzip\ncompression offload", ""),
    ] {
        let script = format!(
            "c1 > GET / HTTP/1.1|host: a|{GZIP}|\ns1 ok\ns1 < GET / HTTP/1.1|host: a|{sent}|"
        );
        play(lines, lines, &script);
    }
}

#[test]
fn who_has_no_body_gets_none() {
    let head = "HTTP/1.1 200 OK|content-length: 500||";
    let script = format!(
        "c1 > HEAD / HTTP/1.1|host: a|{GZIP}|\ns1 ok\ns1 > {head}\nc1 < {head}\nlog 200 ----
         c1 > GET / HTTP/1.1|host: a|{GZIP}|\ns1 > HTTP/1.1 204 No Content||\nc1 < HTTP/1.1 204 No Content||\nlog 204 ----
         c1 > GET / HTTP/1.0|host: a|{GZIP}|\ns1 > HTTP/1.1 200 OK|content-length: 2||ab\nc1 <~ HTTP/1.1 200 OK|content-length: 2|"
    );
    play("no body", "compression algo gzip", &script);
}

#[test]
fn a_slow_client_holds_the_server() {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}compression algo gzip\nserver one 127.0.0.1:81\n"
    )));
    let noise = noise(1);
    let response = format!("HTTP/1.1 200 OK|content-length: {}||{noise}", noise.len());
    settle_each(
        &mut play,
        &[
            &format!("c1 > GET / HTTP/1.1|host: a|{GZIP}|"),
            "s1 ok",
            "full c1",
            &format!("s1 > {response}"),
            "s1 held",
            "drain c1",
            "wait 1",
            "log 200 ----",
        ],
    );
    let (head, payload) = received(play.driver.pipes[0].outbox.peek());
    assert!(head.contains("chunked"), "{head}");
    assert!(gunzip(&payload) == noise);
}

/// Sends a request. Returns the head and the payload that the server receives.
fn upload(lines: &str, request: &str) -> (String, Vec<u8>) {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}{lines}\nserver one 127.0.0.1:81\n"
    )));
    settle_each(&mut play, &[&format!("c1 > {request}"), "s1 ok"]);
    let place = play.place("s1").expect("a server");
    received(play.driver.pipes[place].outbox.peek())
}

fn post(fields: &str) -> String {
    let body = body();
    format!(
        "POST / HTTP/1.1|host: a|content-length: {}|{fields}|{body}",
        body.len()
    )
}

const REQUESTS: &str = "compression direction both\ncompression algo-req gzip";

#[test]
fn a_request_is_compressed() {
    let size = body().len();
    let chunked = format!(
        "POST / HTTP/1.1|host: a|transfer-encoding: chunked||{size:x}|{}|0||",
        body()
    );
    for (lines, request) in [
        (REQUESTS, post("")),
        (REQUESTS, chunked),
        ("filter comp-req\ncompression algo-req gzip", post("")),
        (
            "option http-buffer-request\ncompression direction request\ncompression algo-req gzip",
            post(""),
        ),
    ] {
        let (head, payload) = upload(lines, &request);
        assert_eq!(gunzip(&payload), body(), "{lines}: {head}");
        for field in ["transfer-encoding: chunked", "content-encoding: gzip"] {
            assert_eq!(head.matches(field).count(), 1, "{lines} {field}: {head}");
        }
        assert!(!head.contains("content-length"), "{head}");
    }
}

#[test]
fn some_requests_stay_as_they_are() {
    let of = |line: &str| format!("{REQUESTS}\n{line}");
    for (lines, request) in [
        ("compression algo-req gzip".into(), post("")),
        ("compression direction request".into(), post("")),
        (
            "compression direction request\ncompression algo-req identity".into(),
            post(""),
        ),
        (of("compression minsize-req 10k"), post("")),
        (of("compression type-req text/"), post("")),
        (
            of("compression type-req text/"),
            post("content-type: image/png|"),
        ),
        (of(""), post("content-encoding: br|")),
    ] {
        let (head, payload) = upload(&lines, &request);
        assert!(!head.contains("gzip"), "{lines}: {head}");
        assert_eq!(payload, bytes(&body()), "{lines}");
    }
    for request in [
        "GET / HTTP/1.1|host: a||",
        "POST / HTTP/1.1|host: a|content-length: 0||",
    ] {
        let (head, payload) = upload(REQUESTS, request);
        assert!(!head.contains("gzip") && payload.is_empty(), "{head}");
    }
    let text = of("compression type-req text/");
    let (head, _) = upload(&text, &post("content-type: text/plain|"));
    assert!(head.contains("content-encoding: gzip"), "{head}");
}

/// Each setting is that of the backend, unless it has none.
#[test]
fn a_backend_adds_to_what_its_frontend_says() {
    let mut play = Play::new(&runtime_config(
        "defaults\nmode http\ntimeout client 1m\ntimeout server 1m\ntimeout connect 1m\n\
         frontend f\nbind 127.0.0.1:80\ndefault_backend b\n\
         compression algo gzip\ncompression type image/\n\
         backend b\ncompression type text/\nserver one 127.0.0.1:81\n",
    ));
    for (kind, is_compressed) in [("text/plain", true), ("image/png", false)] {
        settle_each(
            &mut play,
            &[
                &format!("c1 > GET / HTTP/1.1|host: a|{GZIP}|"),
                "s1 ok",
                &format!("s1 > {}", response(&format!("content-type: {kind}|"))),
            ],
        );
        let outbox = &mut play.driver.pipes[0].outbox;
        let head = String::from_utf8_lossy(outbox.peek()).into_owned();
        let found = head.contains("content-encoding: gzip");
        assert_eq!(found, is_compressed, "{kind}: {head}");
        outbox.take(outbox.len(), &mut Vec::new());
    }
}

#[test]
fn a_request_is_compressed_again_for_the_next_server() {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}{REQUESTS}\nretry-on empty-response\nretries 2\nserver one 127.0.0.1:81\n"
    )));
    let request = format!("c1 > {}", post(""));
    settle_each(&mut play, &[&request, "s1 ok", "s1 fin", "s2 ok"]);
    let [first, again] = ["s1", "s2"].map(|server| {
        let place = play.place(server).expect("a server");
        received(play.driver.pipes[place].outbox.peek())
    });
    assert_eq!(gunzip(&again.1), body(), "{}", again.0);
    assert_eq!(first, again);
}

#[test]
fn a_slow_server_holds_the_client() {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}{REQUESTS}\nserver one 127.0.0.1:81\n"
    )));
    let noise = noise(2);
    let head = format!("POST / HTTP/1.1|host: a|content-length: {}||", noise.len());
    settle_each(
        &mut play,
        &[
            &format!("c1 > {head}"),
            "s1 ok",
            "full s1",
            &format!("c1 > {noise}"),
            "c1 held",
            "drain s1",
            "wait 1",
        ],
    );
    let place = play.place("s1").expect("a server");
    let (_, payload) = received(play.driver.pipes[place].outbox.peek());
    assert!(gunzip(&payload) == noise);
}

/// What a server has to decode is complete, or not encoded.
#[test]
fn an_empty_request_can_be_decoded() {
    let request = "POST / HTTP/1.1|host: a|transfer-encoding: chunked||0||";
    for lines in [
        REQUESTS.to_owned(),
        format!("{REQUESTS}\nhttp-request wait-for-body time 1s"),
        format!("{REQUESTS}\noption http-buffer-request"),
    ] {
        let (head, payload) = upload(&lines, request);
        if head.contains("content-encoding: gzip") {
            assert_eq!(gunzip(&payload), "", "{lines}");
        } else {
            assert!(payload.is_empty(), "{lines}");
        }
    }
}

#[test]
fn a_response_that_ends_with_its_connection_stays_as_it_is() {
    let script = format!(
        "c1 > GET / HTTP/1.1|host: a|{GZIP}|\ns1 ok\ns1 > HTTP/1.1 200 OK||abc\ns1 fin\nc1 < HTTP/1.1 200 OK|connection: close||abc"
    );
    play("until close", "compression algo gzip", &script);
}
