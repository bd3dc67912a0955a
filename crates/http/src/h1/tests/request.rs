#![allow(clippy::type_complexity, reason = "tables of cases")]

use super::ParseError::*;
use super::*;

#[test]
fn a_plain_request() {
    let mut head = Head::default();
    let input = b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nUser-Agent:  test \t\r\nX-Empty:\r\nX-A: b\tc \xe9\r\n\r\nrest";
    let parsed = parse_request(input, LIMITS, Strictness::Strict, &mut head)
        .unwrap()
        .unwrap();
    assert_eq!(
        parsed,
        Parsed {
            consumed: input.len() - 4,
            keep_alive: true,
            ..Parsed::default()
        }
    );
    assert_eq!(
        (head.method(), head.target(), head.version()),
        (Method::Get, &b"/a?b"[..], Version::Http11)
    );
    let fields: Vec<_> = head
        .fields()
        .map(|(_, _, name, value)| (name, value))
        .collect();
    let expected: &[(&[u8], &[u8])] = &[
        (b"host", b"example.org"),
        (b"user-agent", b"test"),
        (b"x-empty", b""),
        (b"x-a", b"b\tc \xe9"),
    ];
    assert_eq!(fields, expected);
    let mut out = Vec::new();
    write_request(&head, None, &mut out);
    assert_eq!(
        out,
        b"GET /a?b HTTP/1.1\r\nhost: example.org\r\nuser-agent: test\r\nx-empty: \r\nx-a: b\tc \xe9\r\n\r\n"
    );
}

#[test]
fn request_lines() {
    #[rustfmt::skip]
    let table: &[(&str, Result<&str, ParseError>)] = &[
        ("GET / HTTP/1.1",                    Ok("GET / HTTP/1.1")),
        ("PURGE / HTTP/1.0",                  Ok("PURGE / HTTP/1.0")),
        ("get / HTTP/1.1",                    Ok("get / HTTP/1.1")),
        ("GET /\"<>\\^`{|} HTTP/1.1",         Ok("GET /\"<>\\^`{|} HTTP/1.1")),
        ("GET / HTTP/1.7",                    Ok("GET / HTTP/1.1")),
        ("GET / HTTP/2.0",                    Ok("GET / HTTP/1.1")),
        ("GET / HTTP/0.9",                    Ok("GET / HTTP/1.0")),
        // method
        (" GET / HTTP/1.1",                   Err(BadMethod)),
        ("G(ET / HTTP/1.1",                   Err(BadMethod)),
        ("G\u{e9}T / HTTP/1.1",               Err(BadMethod)),
        ("G\0T / HTTP/1.1",                   Err(BadMethod)),
        ("GET\t/ HTTP/1.1",                   Err(BadMethod)),
        ("GET",                               Err(BadMethod)),
        // target
        ("GET  / HTTP/1.1",                   Ok("GET / HTTP/1.1")),
        ("GET /#a HTTP/1.1",                  Err(BadTarget)),
        ("GET /\u{e9} HTTP/1.1",              Err(BadTarget)),
        ("GET /\0 HTTP/1.1",                  Err(BadTarget)),
        ("GET /\x7f HTTP/1.1",                Err(BadTarget)),
        ("GET /\ta HTTP/1.1",                 Err(BadTarget)),
        // version
        ("GET /",                             Err(BadVersion)),
        ("GET / ",                            Err(BadVersion)),
        ("GET /  HTTP/1.1",                   Ok("GET / HTTP/1.1")),
        ("GET / HTTP/1.1 ",                   Err(BadVersion)),
        ("GET / HTTP/1.10",                   Err(BadVersion)),
        ("GET / HTTP/11",                     Err(BadVersion)),
        ("GET / http/1.1",                    Err(BadVersion)),
        ("GET / RTSP/1.0",                    Err(BadVersion)),
        ("GET / a HTTP/1.1",                  Err(BadVersion)),
    ];
    for (line, expected) in table {
        let found = forwarded(request(&lines(&[line]))).map(|lines| lines[0].clone());
        assert_eq!(found, expected.map(str::to_owned), "{line:?}");
    }
}

#[test]
fn target_forms_go_with_methods() {
    #[rustfmt::skip]
    let table: &[(&str, &str, Result<&str, ParseError>)] = &[
        ("OPTIONS *",                       "a",           Ok("OPTIONS *")),
        ("OPTIONS /",                       "a",           Ok("OPTIONS /")),
        ("OPTIONS http://haproxy.org",      "haproxy.org", Ok("OPTIONS http://haproxy.org")),
        ("PRI *",                           "a",           Ok("PRI *")),
        ("OPTIONS */test",                  "a",           Err(BadTargetForm)),
        ("GET *",                           "a",           Err(BadTargetForm)),
        ("CONNECT haproxy.org:80",          "haproxy.org", Ok("CONNECT haproxy.org:80")),
        ("CONNECT [::1]:8080",              "[::1]:8080",  Ok("CONNECT [::1]:8080")),
        ("CONNECT haproxy.org",             "haproxy.org", Err(BadAuthority)),
        ("CONNECT u@haproxy.org:",          "haproxy.org", Err(BadAuthority)),
        ("CONNECT /",                       "a",           Err(BadTargetForm)),
        ("CONNECT http://haproxy.org:80",   "haproxy.org", Err(BadTargetForm)),
        ("GET haproxy.org:80",              "haproxy.org", Err(BadTargetForm)),
        ("GET admin",                       "a",           Err(BadTargetForm)),
        ("GET admin/a/b",                   "a",           Err(BadTargetForm)),
        ("GET http://a,b/",                 "a,b",         Err(BadHost)),
        ("GET http://a\\b/",                "a",           Err(BadAuthority)),
    ];
    for (line, host, expected) in table {
        let found = forwarded(request(&lines(&[
            &format!("{line} HTTP/1.1"),
            &format!("Host: {host}"),
        ])));
        let found = found.map(|lines| lines[0].clone());
        assert_eq!(
            found,
            expected.map(|line| format!("{line} HTTP/1.1")),
            "{line:?}"
        );
    }
}

/// The cases of HAProxy's `h1_host_normalization.vtc`, and some more.
#[test]
fn host_and_authority_agree() {
    #[rustfmt::skip]
    let table: &[(&str, &str, Result<(&str, &str), ParseError>)] = &[
        ("GET http://toto:poue@hostname:80/c1", "hostname:80",   Ok(("GET http://toto:poue@hostname/c1", "hostname"))),
        ("GET http://hostname:8080/c2",         "hostname:8080", Ok(("GET http://hostname:8080/c2", "hostname:8080"))),
        ("GET https://hostname:443/c3",         "hostname:443",  Ok(("GET https://hostname/c3", "hostname"))),
        ("GET https://hostname:80/c4",          "hostname:80",   Ok(("GET https://hostname:80/c4", "hostname:80"))),
        ("CONNECT hostname:80",                 "hostname:80",   Ok(("CONNECT hostname:80", "hostname"))),
        ("CONNECT hostname:80",                 "hostname",      Ok(("CONNECT hostname:80", "hostname"))),
        ("CONNECT hostname:80",                 "hostname:",     Ok(("CONNECT hostname:80", "hostname:"))),
        ("CONNECT hostname:443",                "hostname:443",  Ok(("CONNECT hostname:443", "hostname"))),
        ("CONNECT hostname:443",                "hostname:",     Ok(("CONNECT hostname:443", "hostname:"))),
        ("CONNECT hostname:8443",               "hostname:8443", Ok(("CONNECT hostname:8443", "hostname:8443"))),
        ("GET http://hostname1/",               "hostname2",     Err(HostMismatch)),
        ("GET http://hostname:80/",             "hostname:81",   Err(HostMismatch)),
        ("GET http://hostname:8080/",           "hostname",      Err(HostMismatch)),
        ("GET http://hostname/",                "hostname:81",   Err(HostMismatch)),
        ("GET http://hostname1/",  "hostname1\r\nhost: hostname2",    Err(DifferentHosts)),
        ("GET http://hostname1/",  "hostname1:80\r\nhost: hostname1", Err(DifferentHosts)),
        ("GET http://hostname1/",  "hostname1\r\nhost: HOSTNAME1",    Ok(("GET http://hostname1/", "hostname1"))),
        ("CONNECT hostname",                    "hostname",      Err(BadAuthority)),
        ("CONNECT hostname1:80",                "hostname2:80",  Err(HostMismatch)),
        ("CONNECT hostname:80",                 "hostname:443",  Err(HostMismatch)),
        ("CONNECT hostname:8080",               "hostname",      Err(HostMismatch)),
        ("CONNECT /",                           "hostname",      Err(BadTargetForm)),
        ("CONNECT hostname:",                   "hostname",      Err(BadAuthority)),
        ("GET http://hostname:80/c20",          "hostname",      Ok(("GET http://hostname/c20", "hostname"))),
        ("GET https://hostname:443/c21",        "hostname",      Ok(("GET https://hostname/c21", "hostname"))),
        ("GET http://hostname/c22",             "hostname:80",   Ok(("GET http://hostname/c22", "hostname:80"))),
        ("GET https://hostname/c23",            "hostname:443",  Ok(("GET https://hostname/c23", "hostname:443"))),
        ("GET http://hostname:/c24",            "hostname",      Ok(("GET http://hostname/c24", "hostname"))),
        ("GET http://hostname/c26",             "hostname:",     Ok(("GET http://hostname/c26", "hostname:"))),
        ("GET http://hostname:80/c28",          "hostname:",     Ok(("GET http://hostname/c28", "hostname"))),
        ("GET http://hostname:/c29",            "hostname:80",   Ok(("GET http://hostname/c29", "hostname"))),
        ("GET https://hostname:443/c30",        "hostname:",     Ok(("GET https://hostname/c30", "hostname"))),
        ("GET http://:",                        ":80",           Ok(("GET http:///", ""))),
        ("GET https://:",                       ":443",          Ok(("GET https:///", ""))),
        ("GET http://:",                        ":",             Ok(("GET http:///", ""))),
        ("GET http://hostname",                 "hostname",      Ok(("GET http://hostname/", "hostname"))),
        ("GET http://hostname:80",              "hostname",      Ok(("GET http://hostname/", "hostname"))),
        ("GET https://hostname:444",            "hostname:444",  Ok(("GET https://hostname:444/", "hostname:444"))),
        ("GET http://hostname?a=b",             "hostname",      Ok(("GET http://hostname?a=b", "hostname"))),
        ("GET http://hostname:80?c=d",          "hostname:80",   Ok(("GET http://hostname?c=d", "hostname"))),
        ("GET HTTP://HostName:80/x",            "hostname",      Ok(("GET HTTP://HostName/x", "HostName"))),
        ("GET /",                               "a/b",           Err(BadHost)),
        ("GET /",                               "a, a",          Err(BadHost)),
        ("GET /",                               "a@b",           Err(BadHost)),
        ("GET /",                               "a:b",           Ok(("GET /", "a:b"))),
        ("GET /",                               ":8443a.b",      Ok(("GET /", ":8443a.b"))),
        ("GET /",                               "::1",           Ok(("GET /", "::1"))),
        ("GET /",                               "a:b c",         Err(BadHost)),
    ];
    for (line, host, expected) in table {
        let found = forwarded(request(&lines(&[
            &format!("{line} HTTP/1.1"),
            &format!("Host: {host}"),
        ])));
        let expected = expected.map(|(line, host)| {
            let host = format!("host: {host}");
            vec![format!("{line} HTTP/1.1"), host.trim_end().to_owned()]
        });
        let found = found.map(|lines| {
            lines
                .iter()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{line:?} {host:?}");
    }
}

#[test]
fn a_request_without_host_is_accepted() {
    assert!(request(&lines(&["GET / HTTP/1.1"])).is_ok());
    // An absolute target names it (RFC 9112 §3.2.2).
    let absolute = forwarded(request(&lines(&["GET http://h:8080 HTTP/1.1"])));
    let wanted = vec![
        "GET http://h:8080/ HTTP/1.1".to_owned(),
        "host: h:8080".to_owned(),
    ];
    assert_eq!(absolute, Ok(wanted));
}

#[test]
fn field_lines() {
    #[rustfmt::skip]
    let table: &[(&str, Result<&str, ParseError>)] = &[
        ("A!#$%&'*+-.^_`|~9: b",  Ok("a!#$%&'*+-.^_`|~9: b")),
        ("A:b",                   Ok("a: b")),
        ("A: \t b c \t",          Ok("a: b c")),
        (": b",                   Err(BadFieldName)),
        ("A b: c",                Err(SpaceBeforeColon)),
        ("A : b",                 Err(SpaceBeforeColon)),
        ("A\t: b",                Err(SpaceBeforeColon)),
        ("A",                     Err(BadFieldName)),
        ("A\0: b",                Err(BadFieldName)),
        ("\u{e9}: b",             Err(BadFieldName)),
        ("A(: b",                 Err(BadFieldName)),
        (" A: b",                 Err(FoldedField)),
        ("\tA: b",                Err(FoldedField)),
        ("A: b\r\n c",            Err(FoldedField)),
        ("A:\r\n\tc",             Err(FoldedField)),
        ("A: b\0",                Err(NulInFieldValue)),
        ("A: b\x01",              Err(BadFieldValue)),
        ("A: b\x7f",              Err(BadFieldValue)),
        ("A: b\x0b",              Err(BadFieldValue)),
        ("A: b\rc",               Err(BareCr)),
        ("A: b\r\r",              Err(BareCr)),
        ("A: b\nc: d",            Err(BareLf)),
        ("A: b\n",                Err(BareLf)),
    ];
    for (line, expected) in table {
        let found =
            forwarded(request(&lines(&["GET / HTTP/1.1", line]))).map(|lines| lines[1].clone());
        assert_eq!(found, expected.map(str::to_owned), "{line:?}");
    }
}

#[test]
fn bare_line_ends_are_refused_everywhere() {
    for (input, error) in [
        ("GET / HTTP/1.1\n\r\n", BareLf),
        ("GET / HTTP/1.1\r\n\n", BareLf),
        ("\nGET / HTTP/1.1\r\n\r\n", BareLf),
        ("\rGET / HTTP/1.1\r\n\r\n", BareCr),
        ("GET / HTTP/1.1\rX: y\r\n\r\n", BareCr),
        ("GET / HTTP/1.1\r\n\rX: y\r\n\r\n", BareCr),
        ("GET /\rX: HTTP/1.1\r\n\r\n", BadVersion),
    ] {
        assert_eq!(request(input), Err(error), "{input:?}");
    }
}

#[test]
fn empty_lines_before_a_request_are_skipped_up_to_a_limit() {
    let input = |count| "\r\n".repeat(count) + "GET / HTTP/1.1\r\n\r\n";
    let (text, parsed) = request(&input(EMPTY_LINES_MAX)).unwrap();
    assert_eq!(
        (text.as_str(), parsed.consumed),
        ("GET / HTTP/1.1\r\n\r\n", input(EMPTY_LINES_MAX).len())
    );
    assert_eq!(request(&input(EMPTY_LINES_MAX + 1)), Err(TooManyEmptyLines));
    let (_, parsed) = request(&(input(2) + &"x".repeat(LIMITS.head_bytes_max))).unwrap();
    assert_eq!(
        parsed.consumed,
        input(2).len(),
        "also where a long body follows"
    );
}

#[test]
fn framings() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str], Result<(Framing, &str), ParseError>)] = &[
        ("GET",  &[],                                                   Ok((Framing::None, ""))),
        ("POST", &["Content-Length: 5"],                                Ok((Framing::Length(5), "content-length: 5"))),
        ("GET",  &["Content-Length: 0"],                                Ok((Framing::Length(0), "content-length: 0"))),
        ("POST", &["Content-Length: 5, 5 ,5"],                          Ok((Framing::Length(5), "content-length: 5"))),
        ("POST", &["Content-Length: 5", "Content-Length: 5"],           Ok((Framing::Length(5), "content-length: 5"))),
        ("POST", &["Content-Length: 0005"],                             Ok((Framing::Length(5), "content-length: 5"))),
        ("POST", &["Content-Length: 00"],                               Ok((Framing::Length(0), "content-length: 0"))),
        ("POST", &["Content-Length: 18446744073709551615"],  Ok((Framing::Length(u64::MAX), "content-length: 18446744073709551615"))),
        ("POST", &["Content-Length: 18446744073709551616"],             Err(BadContentLength)),
        ("POST", &["Content-Length:"],                                  Err(BadContentLength)),
        ("POST", &["Content-Length: 0,"],                               Err(BadContentLength)),
        ("POST", &["Content-Length: ,0"],                               Err(BadContentLength)),
        ("POST", &["Content-Length: +5"],                               Err(BadContentLength)),
        ("POST", &["Content-Length: -5"],                               Err(BadContentLength)),
        ("POST", &["Content-Length: 0x5"],                              Err(BadContentLength)),
        ("POST", &["Content-Length: 5 5"],                              Err(BadContentLength)),
        ("POST", &["Content-Length: 5, 6"],                             Err(DifferentContentLengths)),
        ("POST", &["Content-Length: 5", "Content-Length: 6"],           Err(DifferentContentLengths)),
        ("POST", &["Transfer-Encoding: chunked"],                       Ok((Framing::Chunked, "transfer-encoding: chunked"))),
        ("GET",  &["Transfer-Encoding: Chunked"],                       Ok((Framing::Chunked, "transfer-encoding: Chunked"))),
        ("POST", &["Transfer-Encoding: chunked", "Content-Length: 31"], Ok((Framing::Chunked, "transfer-encoding: chunked"))),
        ("POST", &["Content-Length: 31", "Transfer-Encoding: chunked"], Ok((Framing::Chunked, "transfer-encoding: chunked"))),
        ("POST", &["Transfer-Encoding:"],                               Err(BadTransferEncoding)),
        ("POST", &["Transfer-Encoding: chunked,"],                      Err(BadTransferEncoding)),
        ("POST", &["Transfer-Encoding: ,chunked"],                      Err(BadTransferEncoding)),
        ("POST", &["Transfer-Encoding: chunked, chunked"],              Err(ChunkedTwice)),
        ("POST", &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], Err(ChunkedTwice)),
        ("POST", &["Transfer-Encoding: chunked, gzip, chunked"],        Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: chunked, gzip"],                 Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: gzip"],                          Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: identity"],                      Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: gzip, chunked"],                 Err(UnknownTransferCoding)),
        ("POST", &["Transfer-Encoding: xchunked"],                      Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: \"chunked\""],                   Err(ChunkedNotLast)),
        ("POST", &["Transfer-Encoding: chunked;q=1"],                   Err(ChunkedNotLast)),
    ];
    for (method, fields, expected) in table {
        let line = format!("{method} / HTTP/1.1");
        let found = request(&lines(&[&[line.as_str()], *fields].concat()));
        let framing = found.clone().map(|(_, parsed)| parsed.framing);
        assert_eq!(framing, expected.map(|(framing, _)| framing), "{fields:?}");
        if let Ok((_, text)) = expected {
            assert_eq!(
                forwarded(found).unwrap()[1..].join("|"),
                *text,
                "{fields:?}"
            );
        }
    }
}

#[test]
fn statuses_of_refusals() {
    let status = |fields: &[&str]| request(&lines(fields)).unwrap_err().status();
    assert_eq!(
        status(&["POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked"]),
        422
    );
    assert_eq!(status(&["POST / HTTP/1.1", "Transfer-Encoding: gzip"]), 400);
    for method in ["GET", "HEAD", "DELETE"] {
        let line = format!("{method} / HTTP/1.0");
        assert_eq!(status(&[&line, "Content-Length: 1"]), 413);
        assert_eq!(status(&[&line, "Transfer-Encoding: chunked"]), 413);
        assert!(request(&lines(&[&line, "Content-Length: 0"])).is_ok());
        assert!(request(&lines(&[&line.replace("1.0", "1.1"), "Content-Length: 1"])).is_ok());
    }
    assert!(
        ParseError::all()
            .iter()
            .all(|error| (400..500).contains(&error.status()) && !error.message().is_empty())
    );
}

#[test]
fn connections_live_or_not() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str], bool)] = &[
        ("GET / HTTP/1.1",  &[],                                                     true),
        ("GET / HTTP/1.0",  &[],                                                     false),
        ("GET / HTTP/1.0",  &["Connection: Keep-Alive"],                             true),
        ("GET / HTTP/1.1",  &["Connection: close"],                                  false),
        ("GET / HTTP/1.1",  &["Connection: foo , CLOSE"],                            false),
        ("GET / HTTP/1.1",  &["Connection: foo", "Connection: close"],               false),
        ("GET / HTTP/1.0",  &["Connection: keep-alive, close"],                      false),
        ("GET / HTTP/1.1",  &["Proxy-Connection: close"],                            true),
        ("POST / HTTP/1.1", &["Transfer-Encoding: chunked", "Content-Length: 1"],    false),
        ("POST / HTTP/1.0", &["Transfer-Encoding: chunked", "Connection: keep-alive"], false),
    ];
    for (line, fields, keep_alive) in table {
        let (_, parsed) = request(&lines(&[&[*line], *fields].concat())).unwrap();
        assert_eq!(parsed.keep_alive, *keep_alive, "{line} {fields:?}");
    }
}

#[test]
fn connection_options_of_this_hop_are_taken_out() {
    #[rustfmt::skip]
    let table: &[(&[&str], &str, bool)] = &[
        (&["Connection: close"],                                      "",                                       false),
        (&["Connection: keep-alive, Foo,bar ,close"],                 "",                                       false),
        (&["Connection: foo,  bar", "A: 1", "Bar: 2", "FOO: 3"],      "a: 1",                                   false),
        (&["Connection: host, te, content-length", "Host: h", "TE: trailers", "Content-Length: 0"], "connection: te|host: h|content-length: 0|te: trailers", false),
        (&["Connection: keep-alive", "Keep-Alive: 5"],                "",                                       false),
        (&["Connection: foo", "Connection: Upgrade", "Upgrade: bar", "Foo: 1"], "connection: Upgrade|upgrade: bar", true),
        (&["Connection: Upgrade, keep-alive", "Upgrade: websocket2"], "connection: Upgrade|upgrade: websocket2", true),
        (&["Connection: upgrade"],                                    "",                                       false),
        (&["Upgrade: foo"],                                           "",                                       false),
        (&["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"],    "",                                       false),
        (&["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"], "",                                     false),
        (&["Connection: Upgrade", "Upgrade: h2c, foo,h2"],            "connection: Upgrade|upgrade: foo",       true),
    ];
    for (fields, expected, upgrade) in table {
        let found = request(&lines(&[&["GET / HTTP/1.1"], *fields].concat()));
        assert_eq!(found.clone().unwrap().1.upgrade, *upgrade, "{fields:?}");
        assert_eq!(
            forwarded(found).unwrap()[1..].join("|"),
            *expected,
            "{fields:?}"
        );
    }
}

#[test]
fn a_websocket_handshake_needs_its_key() {
    let base = [
        "GET / HTTP/1.1",
        "Connection: Upgrade",
        "Upgrade: WebSocket",
    ];
    assert_eq!(request(&lines(&base)), Err(BadWebSocketKey));
    assert_eq!(
        request(&lines(&[&base[..], &["Sec-WebSocket-Key: short"]].concat())),
        Err(BadWebSocketKey)
    );
    let (_, parsed) = request(&lines(
        &[&base[..], &["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]].concat(),
    ))
    .unwrap();
    assert!(parsed.upgrade);
    assert!(relaxed(&lines(&base)).is_ok());
}

#[test]
fn expectations() {
    let expects = |lines_: &[&str]| request(&lines(lines_)).unwrap().1.expect_continue;
    assert!(expects(&["POST / HTTP/1.1", "Expect: 100-Continue"]));
    assert!(!expects(&["POST / HTTP/1.0", "Expect: 100-continue"]));
    assert!(!expects(&["POST / HTTP/1.1", "Expect: 200-ok"]));
}

#[test]
fn only_trailers_stay_in_te() {
    for (fields, expected) in [
        (&["TE: trailers, gzip"][..], "te: trailers"),
        (&["TE: gzip"], ""),
        (&["TE: trailers;q=0.5"], ""),
        (&["TE: gzip", "TE: Trailers"], "te: trailers"),
    ] {
        let found = forwarded(request(&lines(&[&["GET / HTTP/1.1"], fields].concat()))).unwrap();
        assert_eq!(found[1..].join("|"), expected, "{fields:?}");
    }
}

#[test]
fn connect_has_no_body() {
    let found = request(&lines(&[
        "CONNECT h:80 HTTP/1.1",
        "Host: h",
        "Content-Length: 5",
    ]))
    .unwrap();
    assert_eq!(found.1.framing, Framing::None);
    assert_eq!(found.0, "CONNECT h:80 HTTP/1.1\r\nhost: h\r\n\r\n");
}

#[test]
fn limits_have_names() {
    let long = "a".repeat(LIMITS.head_bytes_max);
    assert_eq!(
        request(&format!("GET /{long} HTTP/1.1\r\n\r\n")),
        Err(TargetTooLong)
    );
    assert_eq!(request(&format!("\r\nGET /{long}")), Err(TargetTooLong));
    assert_eq!(
        request(&lines(&["GET / HTTP/1.1", &format!("A: {long}")])),
        Err(TooLarge)
    );
    assert_eq!((TargetTooLong.status(), TooLarge.status()), (414, 431));
    let fields = |count| lines(&[&["GET / HTTP/1.1"][..], &vec!["A: b"; count]].concat());
    assert!(request(&fields(LIMITS.fields_max)).is_ok());
    assert_eq!(request(&fields(LIMITS.fields_max + 1)), Err(TooManyFields));
    let fits = LIMITS.head_bytes_max - "GET / HTTP/1.1\r\nA: \r\n\r\n".len();
    assert!(
        request(&lines(&[
            "GET / HTTP/1.1",
            &format!("A: {}", "b".repeat(fits))
        ]))
        .is_ok()
    );
    assert_eq!(
        request(&lines(&[
            "GET / HTTP/1.1",
            &format!("A: {}", "b".repeat(fits + 1))
        ])),
        Err(TooLarge)
    );
}

#[test]
fn a_relaxed_parser_lets_pass() {
    #[rustfmt::skip]
    let table: &[(&str, Result<&str, ParseError>)] = &[
        ("GET /#a HTTP/1.1\r\n\r\n",                            Ok("GET /#a HTTP/1.1")),
        ("GET http://hostname#frag HTTP/1.1\r\nhost: hostname\r\n\r\n", Ok("GET http://hostname#frag HTTP/1.1|host: hostname")),
        ("GET /\u{e9} HTTP/1.1\r\n\r\n",                        Ok("GET /\u{e9} HTTP/1.1")),
        ("GET \t/  HTTP/1.1\r\n\r\n",                           Ok("GET / HTTP/1.1")),
        ("GET / HTTP/1.1\na: b\n\n",                            Ok("GET / HTTP/1.1|a: b")),
        ("GET /\r\n",                                           Ok("GET / HTTP/1.0")),
        ("GET / \n",                                            Ok("GET / HTTP/1.0")),
        ("POST /\r\n",                                          Err(BadVersion)),
        ("DESCRIBE /a RTSP/1.0\r\n\r\n",                        Ok("DESCRIBE /a RTSP/1.0")),
        ("GET / HTTP/1.10\r\n\r\n",                             Ok("GET / HTTP/1.10")),
        ("GET / HT(P/1.1\r\n\r\n",                              Err(BadVersion)),
        ("GET / HTTP/1.1\r\nb d: c\r\nA(: c\r\na: \0b\x01\r\n\r\n", Ok("GET / HTTP/1.1|a: \0b\x01")),
        ("GET / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", Ok("GET / HTTP/1.1")),
        ("GET / HTTP/1.1\r\na: b\r\n  c\r\nd:\r\n e\r\n\r\n",   Ok("GET / HTTP/1.1|a: b    c|d: e")),
        ("GET http://a/ HTTP/1.1\r\nhost: b\r\n\r\n",           Ok("GET http://a/ HTTP/1.1|host: b")),
        ("CONNECT a HTTP/1.1\r\nhost: b\r\n\r\n",               Ok("CONNECT a HTTP/1.1|host: b")),
        // but not what would change the framing or split the message
        ("GET / HTTP/1.1\r\na: b\rc\r\n\r\n",                   Err(BareCr)),
        ("GET /\x01 HTTP/1.1\r\n\r\n",                          Err(BadTarget)),
        ("GET / HTTP/1.1\r\n: b\r\n\r\n",                       Err(BadFieldName)),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n",                  Err(SpaceBeforeColon)),
        ("POST / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n",     Err(DifferentContentLengths)),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Err(ChunkedTwice)),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",        Err(DifferentHosts)),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n",                 Err(BadHost)),
        ("GET * HTTP/1.1\r\n\r\n",                              Err(BadTargetForm)),
    ];
    for (input, expected) in table {
        let found = forwarded(relaxed(input)).map(|lines| lines.join("|"));
        assert_eq!(found, expected.map(str::to_owned), "{input:?}");
    }
}
