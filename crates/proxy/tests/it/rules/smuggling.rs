//! Requests that two readers could read differently are refused: 400, `PR--` in the log, no server
//! ever sees them.

use super::script::play;

const REFUSED: &[(&str, &str)] = &[
    (
        "two lengths that differ",
        "POST / HTTP/1.1|host: a|content-length: 1|content-length: 2||xx",
    ),
    (
        "a list of lengths that differ",
        "POST / HTTP/1.1|host: a|content-length: 1, 2||xx",
    ),
    (
        "a signed length",
        "POST / HTTP/1.1|host: a|content-length: +1||x",
    ),
    (
        "a length in hexadecimal",
        "POST / HTTP/1.1|host: a|content-length: 0x1||x",
    ),
    (
        "an empty length",
        "POST / HTTP/1.1|host: a|content-length:||x",
    ),
    (
        "a length beyond 64 bits",
        "POST / HTTP/1.1|host: a|content-length: 99999999999999999999||x",
    ),
    ("a folded line", "GET / HTTP/1.1|host: a|x: 1| 2||"),
    ("a bare CR in a value", "GET / HTTP/1.1|host: a|x: 1\r2||"),
    ("NUL in a value", "GET / HTTP/1.1|host: a|x: 1\u{0}2||"),
    (
        "white space before the colon",
        "GET / HTTP/1.1|host: a|x : 1||",
    ),
    ("an empty name", "GET / HTTP/1.1|host: a|: 1||"),
    ("a line without a colon", "GET / HTTP/1.1|host: a|nothing||"),
    (
        "chunked twice",
        "POST / HTTP/1.1|host: a|transfer-encoding: chunked, chunked||0||",
    ),
    (
        "chunked not last",
        "POST / HTTP/1.1|host: a|transfer-encoding: chunked, gzip||0||",
    ),
    ("a space in the target", "GET /a b HTTP/1.1|host: a||"),
    ("a method that is no token", "GE(T / HTTP/1.1|host: a||"),
    ("no version", "GET /|host: a||"),
    ("a version without a minor number", "GET / HTTP/1|host: a||"),
    ("two hosts that differ", "GET / HTTP/1.1|host: a|host: b||"),
    (
        "white space before the first field",
        "GET / HTTP/1.1| host: a||",
    ),
];

#[test]
fn refused_before_any_server() {
    for (name, request) in REFUSED {
        let script = format!(
            "c1 > {request}\nc1 <~ HTTP/1.1 400 Bad request|\nc1 end\nlog 400 PR--\nnolog\ns1 none\nquiet"
        );
        play(name, "", &script);
    }
}

#[test]
fn a_head_too_large_is_refused() {
    let request = format!("GET / HTTP/1.1|host: a|x: {}||", "y".repeat(16_000));
    play(
        "one field",
        "",
        &format!("c1 > {request}\nc1 <~ HTTP/1.1 4\nc1 end\ns1 none\nquiet"),
    );
    let fields = "x: y|".repeat(200);
    play(
        "many fields",
        "",
        &format!("c1 > GET / HTTP/1.1|host: a|{fields}|\nc1 <~ HTTP/1.1 4\nc1 end\ns1 none\nquiet"),
    );
}

/// Chunks that are not chunks: the head is with the server by then, so the connections end.
const BAD_CHUNKS: &[(&str, &str)] = &[
    ("no number", "z|"),
    ("a signed size", "+1|x|"),
    ("a size too large", "fffffffffffffffff|"),
    ("more than the size", "1|xx|"),
    ("white space before the size", " 1|x|"),
];

#[test]
fn a_bad_chunk_ends_it() {
    for (name, chunk) in BAD_CHUNKS {
        let script = format!(
            "c1 > POST / HTTP/1.1|host: a|transfer-encoding: chunked||
             s1 ok
             s1 <~ POST / HTTP/1.1|
             c1 > {chunk}
             c1 <~ HTTP/1.1 400 Bad request|
             c1 end
             s1 end
             log 400 PH--
             quiet"
        );
        play(name, "", &script);
    }
}

#[test]
fn what_is_forwarded_is_written_anew() {
    play(
        "chunk extensions and trailers' framing",
        "",
        "c1 > POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked||5;ext=1|hello|0|X-T: 1||
         s1 ok
         s1 < POST / HTTP/1.1|host: a|transfer-encoding: chunked||5|hello|0|x-t: 1||",
    );
    play(
        "equal lengths become one",
        "",
        "c1 > POST / HTTP/1.1|host: a|content-length: 1|content-length: 1||x
         s1 ok
         s1 < POST / HTTP/1.1|host: a|content-length: 1||x",
    );
    play(
        "chunked wins over a length, and the connection ends after it",
        "",
        "c1 > POST / HTTP/1.1|host: a|content-length: 3|transfer-encoding: chunked||1|x|0||
         s1 ok
         s1 <~ POST / HTTP/1.1|host: a|transfer-encoding: chunked|",
    );
}
