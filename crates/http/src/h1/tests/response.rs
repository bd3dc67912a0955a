#![allow(clippy::type_complexity, reason = "tables of cases")]

use super::ParseError::*;
use super::*;

fn relaxed_response(input: &str) -> Outcome {
    outcome(input, Strictness::Relaxed, Some(Method::Get))
}

#[test]
fn a_plain_response() {
    let (text, parsed) =
        response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: a\r\n\r\nhello").unwrap();
    assert_eq!(
        text,
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nserver: a\r\n\r\n"
    );
    let expected = Parsed {
        consumed: 49,
        framing: Framing::Length(5),
        keep_alive: true,
        ..Parsed::default()
    };
    assert_eq!(parsed, expected);
}

#[test]
fn status_lines() {
    #[rustfmt::skip]
    let table: &[(&str, Result<&str, ParseError>)] = &[
        ("HTTP/1.1 200 OK",            Ok("HTTP/1.1 200 OK")),
        ("HTTP/1.0 404 Not \tFound\u{e9}", Ok("HTTP/1.0 404 Not \tFound\u{e9}")),
        ("HTTP/1.1 200",               Ok("HTTP/1.1 200 ")),
        ("HTTP/1.1 200 ",              Ok("HTTP/1.1 200 ")),
        ("HTTP/1.9 999 x",             Ok("HTTP/1.1 999 x")),
        ("HTTP/1.1 099 x",             Err(BadStatus)),
        ("HTTP/1.1 20 x",              Err(BadStatus)),
        ("HTTP/1.1 2000 x",            Err(BadStatus)),
        ("HTTP/1.1 2x0 x",             Err(BadStatus)),
        ("HTTP/1.1 200OK",             Err(BadStatus)),
        ("HTTP/1.1",                   Err(BadStatus)),
        ("HTTP/1.1  200 OK",           Err(BadStatus)),
        ("HTTP/1.1\t200 OK",           Err(BadStatus)),
        ("ICY 200 OK",                 Err(BadVersion)),
        ("HTTP/1.1 200 O\0K",          Err(BadReason)),
        ("HTTP/1.1 200 O\x1bK",        Err(BadReason)),
        ("HTTP/1.1 200 O\rK",          Err(BareCr)),
        ("HTTP/1.1 200 OK\n",          Err(BareLf)),
    ];
    for (line, expected) in table {
        let found = response(&lines(&[line])).map(|(text, _)| text.replace("\r\n", ""));
        assert_eq!(found, expected.map(str::to_owned), "{line:?}");
    }
}

#[test]
fn bodies_depend_on_status_and_request() {
    const LENGTH: &str = "Content-Length: 5";
    const CHUNKED: &str = "Transfer-Encoding: chunked";
    #[rustfmt::skip]
    let table: &[(Method, u16, &[&str], Framing, &str)] = &[
        (Method::Get,     200, &[LENGTH],          Framing::Length(5),  "content-length: 5"),
        (Method::Get,     200, &[CHUNKED],         Framing::Chunked,    "transfer-encoding: chunked"),
        (Method::Get,     200, &[CHUNKED, LENGTH], Framing::Chunked,    "transfer-encoding: chunked"),
        (Method::Get,     200, &[],                Framing::UntilClose, ""),
        (Method::Head,    200, &[LENGTH],          Framing::None,       "content-length: 5"),
        (Method::Head,    200, &[CHUNKED],         Framing::None,       "transfer-encoding: chunked"),
        (Method::Get,     304, &[LENGTH],          Framing::None,       "content-length: 5"),
        (Method::Get,     204, &[LENGTH],          Framing::None,       ""),
        (Method::Get,     204, &[CHUNKED],         Framing::None,       ""),
        (Method::Get,     100, &[LENGTH],          Framing::None,       ""),
        (Method::Get,     101, &[CHUNKED],         Framing::None,       ""),
        (Method::Connect, 200, &[LENGTH],          Framing::None,       ""),
        (Method::Connect, 299, &[CHUNKED],         Framing::None,       ""),
        (Method::Connect, 403, &[LENGTH],          Framing::Length(5),  "content-length: 5"),
    ];
    for (to, status, fields, framing, expected) in table {
        let line = format!("HTTP/1.1 {status} x");
        let found = outcome(
            &lines(&[&[line.as_str()], *fields].concat()),
            Strictness::Strict,
            Some(*to),
        );
        assert_eq!(
            found.clone().unwrap().1.framing,
            *framing,
            "{to:?} {status} {fields:?}"
        );
        assert_eq!(
            forwarded(found).unwrap()[1..].join("|"),
            *expected,
            "{to:?} {status} {fields:?}"
        );
    }
}

#[test]
fn bad_transfer_codings() {
    for (value, error) in [
        ("chunked, chunked", ChunkedTwice),
        ("chunked, gzip, chunked", ChunkedTwice),
        ("chunked, gzip", UnknownTransferCoding),
        ("gzip", UnknownTransferCoding),
        ("gzip, chunked", UnknownTransferCoding),
        ("", BadTransferEncoding),
    ] {
        let input = lines(&["HTTP/1.1 200 OK", &format!("Transfer-Encoding: {value}")]);
        assert_eq!(response(&input), Err(error), "{value:?}");
    }
}

#[test]
fn connections_live_or_not() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str], bool)] = &[
        ("HTTP/1.1 204 x", &[],                                          true),
        ("HTTP/1.0 204 x", &[],                                          false),
        ("HTTP/1.0 204 x", &["Connection: keep-alive"],                  true),
        ("HTTP/1.1 204 x", &["Connection: close"],                       false),
        ("HTTP/1.1 200 x", &[],                                          false),
        ("HTTP/1.1 200 x", &["Content-Length: 0"],                       true),
        ("HTTP/1.0 200 x", &["Transfer-Encoding: chunked", "Connection: keep-alive"], false),
        ("HTTP/1.1 200 x", &["Transfer-Encoding: chunked", "Content-Length: 1"], false),
    ];
    for (line, fields, keep_alive) in table {
        let (_, parsed) = response(&lines(&[&[*line], *fields].concat())).unwrap();
        assert_eq!(parsed.keep_alive, *keep_alive, "{line} {fields:?}");
    }
}

#[test]
fn protocol_switches() {
    let base = [
        "HTTP/1.1 101 x",
        "Connection: upgrade",
        "Upgrade: websocket",
    ];
    assert_eq!(response(&lines(&base)), Err(BadWebSocketKey));
    let (text, parsed) =
        response(&lines(&[&base[..], &["Sec-WebSocket-Accept: x"]].concat())).unwrap();
    assert!(parsed.upgrade);
    assert!(
        text.contains("\r\nupgrade: websocket\r\n") && text.contains("\r\nconnection: upgrade\r\n")
    );
    let (_, parsed) = response(&lines(&[
        "HTTP/1.1 200 x",
        "Connection: upgrade",
        "Upgrade: websocket",
    ]))
    .unwrap();
    assert!(!parsed.upgrade);
}

#[test]
fn a_relaxed_parser_lets_pass() {
    #[rustfmt::skip]
    let table: &[(&str, Result<(Framing, &str), ParseError>)] = &[
        ("HTTP/1.1 1234 x\r\n\r\n",                                 Ok((Framing::UntilClose, "HTTP/1.1 1234 x"))),
        ("HTTP/1.1 65536 x\r\n\r\n",                                Err(BadStatus)),
        ("HTTP/1.1 12345 \x01\r\n\r\n",                             Ok((Framing::UntilClose, "HTTP/1.1 12345 \x01"))),
        ("ICY 200 OK\nContent-Length: 1\n\n",                       Ok((Framing::Length(1), "ICY 200 OK|content-length: 1"))),
        ("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked,, chunked\r\n\r\n", Ok((Framing::Chunked, "HTTP/1.1 200 x|transfer-encoding: chunked"))),
        ("HTTP/1.1 200 x\r\nTransfer-Encoding:\r\n\r\n",            Ok((Framing::UntilClose, "HTTP/1.1 200 x"))),
        ("HTTP/1.1 200 x\r\nTransfer-Encoding: gzip\r\n\r\n",       Err(UnknownTransferCoding)),
        ("HTTP/1.1 099 x\r\n\r\n",                                  Err(BadStatus)),
    ];
    for (input, expected) in table {
        let found = relaxed_response(input);
        let framing = found.clone().map(|(_, parsed)| parsed.framing);
        assert_eq!(framing, expected.map(|(framing, _)| framing), "{input:?}");
        if let Ok((_, text)) = expected {
            assert_eq!(forwarded(found).unwrap().join("|"), *text, "{input:?}");
        }
    }
}
