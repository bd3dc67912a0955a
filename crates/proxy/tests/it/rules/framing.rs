//! Whatever rules do to messages, two readers agree where each ends: rules drawn by lot, messages
//! of every framing, and a reader that knows nothing of the proxy's own code.

use super::script::{DEFAULTS, exchange, play};
use crate::setups::runtime_config;
use testing::Random;

/// Sequences of rules that are tried.
const SEQUENCES: u64 = 1500;
const RULES_MAX: usize = 5;

/// Values that would end a line, a head, or a message.
const EVIL: &[&str] = &[
    "%[str(a%0d%0acontent-length:%203),url_dec]",
    "%[str(a%0d%0a%0d%0aGET%20/x%20HTTP/1.1%0d%0a%0d%0a),url_dec]",
    "%[str(a%0atransfer-encoding:%20chunked),url_dec]",
    "%[str(%00b%0d),url_dec]",
    "plain",
    "5",
    "chunked",
];

/// `{}` is a value.
const BOTH: &[&str] = &[
    "set-header Content-Length {}",
    "add-header content-length {}",
    "set-header Transfer-Encoding {}",
    "add-header transfer-encoding {}",
    "del-header Content-Length",
    "del-header Content- -m beg",
    "del-header .* -m reg",
    "del-header transfer -m sub",
    "replace-header Content-Length .* {}",
    "replace-value Transfer-Encoding chunked {}",
    "set-header X-A {}",
    "add-header X-A {}",
    "replace-header X-A .* {}",
    "set-header Connection {}",
    "set-header Connection close",
    "set-header Upgrade {}",
    "set-header Trailer {}",
    "del-header Connection",
];

const REQUEST: &[&str] = &[
    "set-method {}",
    "set-method GET",
    "set-method HEAD",
    "set-method POST",
    "set-method CONNECT",
    "set-uri {}",
    "set-uri /x?y",
    "set-path {}",
    "set-pathq {}",
    "set-query {}",
    "replace-path .* {}",
    "replace-uri .* {}",
    "set-header Host {}",
    "del-header Host",
    "set-header Expect 100-continue",
    "early-hint Link {}",
    "return status 200 content-type text/plain hdr Content-Length {} hdr X {} string abc if { rand(4) eq 0 }",
    "return status 204 hdr Transfer-Encoding {} if { rand(4) eq 0 }",
    "redirect location {} if { rand(4) eq 0 }",
    "redirect prefix {} set-cookie {} if { rand(4) eq 0 }",
    "deny deny_status 403 hdr Content-Length {} if { rand(8) eq 0 }",
    "wait-for-body time 1s",
];

const RESPONSE: &[&str] = &[
    "set-status 200",
    "set-status 204",
    "set-status 304",
    "set-status 404 reason x",
    "return status 200 content-type text/plain hdr Content-Length {} lf-string abc if { rand(4) eq 0 }",
    "deny if { rand(8) eq 0 }",
    "wait-for-body time 1s",
];

const REQUESTS: &[&str] = &[
    "GET /a HTTP/1.1|host: a||",
    "GET /a HTTP/1.0||",
    "HEAD /a HTTP/1.1|host: a|x-a: 1||",
    "POST /a HTTP/1.1|host: a|x-a: 1|content-length: 5||hello",
    "POST /a HTTP/1.0|content-length: 5||hello",
    "POST /a HTTP/1.1|host: a|content-length: 0||",
    "POST /a HTTP/1.1|host: a|transfer-encoding: chunked||5|hello|0|x-t: 1||",
    "PUT /a HTTP/1.1|host: a|transfer-encoding: chunked|content-length: 3||5|hello|0||",
];

const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK|content-length: 5|x-a: 1||world",
    "HTTP/1.1 200 OK|content-length: 0||",
    "HTTP/1.1 200 OK|transfer-encoding: chunked|x-a: 1||5|world|0|x-t: 1||",
    "HTTP/1.1 103 Early Hints|link: a||HTTP/1.1 200 OK|content-length: 5||world",
    "HTTP/1.1 204 No Content||",
    "HTTP/1.1 304 Not Modified|content-length: 5||",
];

fn rule(random: &mut Random, side: &str, own: &[&str]) -> String {
    let all: Vec<&str> = BOTH.iter().chain(own).copied().collect();
    let mut text = random.pick(&all).to_owned();
    while text.contains("{}") {
        text = text.replacen("{}", random.pick(EVIL), 1);
    }
    // After a response only its fields and its status can be changed.
    let is_answer =
        text.starts_with("return") || text.starts_with("deny") || text.starts_with("wait");
    if side == "http-after-response" && is_answer {
        String::new()
    } else {
        format!("    {side} {text}\n")
    }
}

#[test]
fn no_rules_make_two_readers_disagree() {
    for seed in 0..SEQUENCES {
        let mut random = Random::new(seed);
        let mut lines = String::new();
        for _ in 0..=random.below(RULES_MAX) {
            lines += &match random.below(3) {
                0 => rule(&mut random, "http-request", REQUEST),
                1 => rule(&mut random, "http-response", RESPONSE),
                _ => rule(&mut random, "http-after-response", &RESPONSE[..4]),
            };
        }
        let (request, response) = (random.pick(REQUESTS), random.pick(RESPONSES));
        let runtime_config =
            runtime_config(&format!("{DEFAULTS}{lines}    server one 127.0.0.1:81\n"));
        let passed = exchange(runtime_config, request, response);
        let told =
            |why: &str| format!("seed {seed}: {why}\n{lines}{request}\n{response}\n{passed:?}");
        let method = request.split(' ').next().unwrap_or_default();
        for to_server in &passed.servers {
            let (message, rest) =
                read(to_server, None).unwrap_or_else(|why| panic!("{}", told(why)));
            assert!(rest.is_empty(), "{}", told("more than one request"));
            let whole = method != "GET" && method != "HEAD" && !request.contains("length: 0");
            let body: &[u8] = if whole { b"hello" } else { b"" };
            assert_eq!(message.body, body, "{}", told("the request's body"));
        }
        let mut rest = &passed.client[..];
        loop {
            let asked = Some((method, passed.client_ended));
            let (message, more) = read(rest, asked).unwrap_or_else(|why| panic!("{}", told(why)));
            rest = more;
            if !(100..200).contains(&message.status) {
                break;
            }
        }
        assert!(rest.is_empty(), "{}", told("more than one response"));
    }
}

#[derive(Debug)]
struct Read {
    status: u16,
    body: Vec<u8>,
}

/// Reads one message by RFC 9112 §6.3; `asked`: of a response, the method of its request, and
/// whether the connection has ended.
fn read<'a>(
    bytes: &'a [u8],
    asked: Option<(&str, bool)>,
) -> Result<(Read, &'a [u8]), &'static str> {
    let end = find(bytes, b"\r\n\r\n").ok_or("no end of a head")?;
    let (head, rest) = (&bytes[..end], &bytes[end + 4..]);
    let head = std::str::from_utf8(head).map_err(|_| "bytes above 127")?;
    let mut lines = head.split("\r\n");
    let start = lines.next().ok_or("no line")?;
    if head.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return Err("a lone CR, LF or NUL");
    }
    let words: Vec<&str> = start.splitn(3, ' ').collect();
    let [first, second, third] = words[..] else {
        return Err("a start line without three parts");
    };
    let (mut length, mut chunked, mut framings) = (None, false, 0);
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("no colon")?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = Some(value.trim().parse::<usize>().map_err(|_| "no length")?)
            }
            "transfer-encoding" if value.trim() == "chunked" => chunked = true,
            "transfer-encoding" => return Err("another coding"),
            _ => continue,
        }
        framings += 1;
    }
    if framings > 1 {
        return Err("two framings");
    }
    let status = match asked {
        Some(_) => second.parse().map_err(|_| "no status")?,
        None if third != "HTTP/1.1" && third != "HTTP/1.0" => return Err("no version"),
        None if chunked && third == "HTTP/1.0" => return Err("chunks of HTTP/1.0"),
        None if matches!(first, "CONNECT") => return Err("a tunnel"),
        None => 0,
    };
    let bodiless = status > 0 && status < 200 || matches!(status, 204 | 304);
    let bodiless = bodiless || asked.is_some_and(|(method, _)| method == "HEAD");
    let (body, rest) = match asked {
        _ if bodiless => (Vec::new(), rest),
        _ if chunked => chunks(rest)?,
        _ if length.is_some() => {
            let length = length.unwrap_or(0);
            let (body, rest) = rest.split_at_checked(length).ok_or("too short a body")?;
            (body.to_vec(), rest)
        }
        Some((_, true)) => (rest.to_vec(), &rest[rest.len()..]),
        Some((_, false)) => return Err("a body without an end"),
        None => (Vec::new(), rest),
    };
    Ok((Read { status, body }, rest))
}

fn chunks(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut body = Vec::new();
    loop {
        let end = find(rest, b"\r\n").ok_or("no chunk")?;
        let size = std::str::from_utf8(&rest[..end]).map_err(|_| "no size")?;
        let size = usize::from_str_radix(size, 16).map_err(|_| "no size")?;
        rest = &rest[end + 2..];
        if size == 0 {
            break;
        }
        let (data, more) = rest.split_at_checked(size).ok_or("too short a chunk")?;
        body.extend_from_slice(data);
        rest = more.strip_prefix(b"\r\n").ok_or("no end of a chunk")?;
    }
    loop {
        let end = find(rest, b"\r\n").ok_or("no end of the trailers")?;
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if line.is_empty() {
            return Ok((body, rest));
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Some recipients know the coding in lower case alone.
#[test]
fn chunks_are_announced_in_lower_case() {
    let script = "c1 > POST / HTTP/1.1|host: a|transfer-encoding: Chunked||2|ab|0||
         s1 ok
         s1 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||2|ab|0||
         s1 > HTTP/1.1 200 OK|transfer-encoding: CHUNKED||2|ab|0||
         c1 < HTTP/1.1 200 OK|transfer-encoding: chunked||2|ab|0||";
    play("lower case", "", script);
}
