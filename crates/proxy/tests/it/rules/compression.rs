//! Which responses are compressed, what becomes of their heads, and that what leaves can be read.

use std::io::Read as _;

use super::script::{DEFAULTS, Play, bytes, play};
use crate::setups::runtime_config;
use testing::Random;

/// A body that is worth compressing.
fn body() -> String {
    "all work and no play makes a proxy dull. ".repeat(40)
}

/// What a client of HTTP/1.1 gets for a response with fields: the head, and the payload of its
/// chunks.
fn exchange(lines: &str, asked: &str, response: &str) -> (String, Vec<u8>) {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}{lines}\nserver one 127.0.0.1:81\n"
    )));
    for line in [
        &format!("c1 > GET / HTTP/1.1|host: a|{asked}|"),
        "s1 ok",
        &format!("s1 > {response}"),
    ] {
        play.line(line).expect("it can be done");
        play.settle();
    }
    play.line("log 200 ----").expect("a whole response");
    let sent = play.driver.pipes[0].outbox.peek().to_vec();
    let end = sent.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.expect("a head") + 4;
    let head = String::from_utf8(sent[..end].to_vec()).expect("text");
    let payload = if head.contains("chunked") {
        chunks(&sent[end..])
    } else {
        sent[end..].to_vec()
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
        ("deflate, gzip", "gzip"),
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
    // Any but those that are named: the first of the configuration.
    let (head, _) = exchange(
        "compression algo gzip deflate",
        "accept-encoding: *, gzip;q=0|",
        &response(""),
    );
    assert!(head.contains("content-encoding: deflate"), "{head}");
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
    // Digits without a pattern take half of their room.
    let mut random = Random::new(1);
    let noise = std::iter::repeat_with(|| char::from(b'0' + random.below(10) as u8));
    let noise: String = noise.take(400_000).collect();
    let mut line = |line: &str| {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    };
    line(&format!("c1 > GET / HTTP/1.1|host: a|{GZIP}|"));
    line("s1 ok");
    line("full c1");
    line(&format!(
        "s1 > HTTP/1.1 200 OK|content-length: {}||{noise}",
        noise.len()
    ));
    line("s1 held");
    line("drain c1");
    line("wait 1");
    line("log 200 ----");
    let sent = play.driver.pipes[0].outbox.peek().to_vec();
    let end = sent.windows(4).position(|window| window == b"\r\n\r\n");
    let payload = chunks(&sent[end.expect("a head") + 4..]);
    assert!(gunzip(&payload) == noise);
}
