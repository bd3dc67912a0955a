//! RFC 9113 §8: which `Head` a header block becomes, and which blocks are malformed.

use super::*;

/// The request of a head that ends its stream, as HTTP/1 has it.
#[track_caller]
fn request(fields: &[(&str, &str)]) -> String {
    let told = server(&Wire::client().headers(1, flag::END_STREAM, fields));
    assert_eq!(told.error, None);
    told.events.into_iter().next().expect("an event")
}

fn with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [GET, fields].concat()
}

#[test]
fn requests() {
    let head = "head 1 None https end GET / HTTP/1.1|host: a.example|";
    #[rustfmt::skip]
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[("a", "b"), ("x-c", "")], "a: b|x-c: ||"),
        // §8.2.3
        (&[("cookie", "a=1"), ("cookie", "b=2"), ("x", "y"), ("cookie", "c")], "x: y|cookie: a=1; b=2; c||"),
        (&[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c"), ("x", "y")], "cookie: a=1; b=2; c|x: y||"),
        (&[("cookie", "a=1"), ("cookie", ""), ("x", "y"), ("cookie", "")], "cookie: a=1|x: y||"),
        (&[("te", "trailers")], "te: trailers||"),
        (&[("host", "A.example:443")], "|"),
        (&[("content-length", "0")], ""),
        (&[("expect", "100-continue")], "expect: 100-continue||"),
    ];
    for (fields, expected) in table {
        let text = request(&with(fields));
        if expected.is_empty() {
            assert!(text.contains("Length(0)"), "{text}");
        } else {
            assert_eq!(text, format!("{head}{expected}"));
        }
    }
}

#[test]
fn targets() {
    fn fields<'a>(method: &'a str, scheme: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
        [
            (":path", path),
            (":authority", "h:1"),
            (":scheme", scheme),
            (":method", method),
        ]
    }
    #[rustfmt::skip]
    let table = [
        ("GET",     "http",  "/a?b=c", "head 1 None http end GET /a?b=c HTTP/1.1|host: h:1||"),
        ("OPTIONS", "https", "*",      "head 1 None https end OPTIONS * HTTP/1.1|host: h:1||"),
        ("PURGE",   "HTTP",  "/",      "head 1 None http end PURGE / HTTP/1.1|host: h:1||"),
        ("GET",     "ftp",   "/a",     "head 1 None  end GET ftp://h:1/a HTTP/1.1|host: h:1||"),
    ];
    for (method, scheme, path, expected) in table {
        assert_eq!(request(&fields(method, scheme, path)), expected);
    }
    for (method, scheme, path) in [
        ("GET", "https", ""),
        ("GET", "https", "a"),
        ("GET", "https", "*"),
        ("GET", "https", "/a b"),
        ("GET", "https", "/a#b"),
        ("GET", "https", "/\u{e9}"),
        ("GET", "1a", "/"),
        ("GET", "", "/"),
        ("", "https", "/"),
        ("G T", "https", "/"),
    ] {
        let text = request(&fields(method, scheme, path));
        assert!(
            text.starts_with("refused 1 PROTOCOL_ERROR"),
            "{method} {scheme} {path}: {text}"
        );
    }
}

/// RFC 9113 §8.5, RFC 8441.
#[test]
fn connect() {
    let plain = [(":method", "CONNECT"), (":authority", "h:80")];
    let wire = Wire::client()
        .headers(1, 0, &plain)
        .data(1, 0, b"any")
        .data(1, flag::END_STREAM, b"");
    let told = server(&wire);
    assert_eq!(
        told.events,
        [
            "head 1 None  CONNECT h:80 HTTP/1.1|host: h:80||",
            "data 1 any$"
        ]
    );
    let extended: &[(&str, &str)] = &[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "h"),
        (":path", "/chat"),
    ];
    let head = head_of(extended);
    assert_eq!(head.protocol(), Some(&b"websocket"[..]));
    assert_eq!(
        (head.target(), head.method()),
        (&b"https://h/chat"[..], crate::Method::Connect)
    );
    let without = |name: &str| -> Vec<_> {
        extended
            .iter()
            .copied()
            .filter(|(found, _)| *found != name)
            .collect()
    };
    for fields in [
        &plain[..1],
        &[plain[0], plain[1], (":path", "/")],
        &[plain[0], plain[1], (":scheme", "https")],
        &[plain[0], (":authority", "h")],
        &without(":scheme"),
        &without(":authority"),
        &without(":path"),
        &without(":method"),
        &with(&[])[..0],
    ] {
        let text = request(fields);
        assert!(
            text.starts_with("refused 1 PROTOCOL_ERROR"),
            "{fields:?}: {text}"
        );
    }
    let refuses = || {
        let limits = Limits {
            extended_connect: false,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    assert_resets(
        &outcome(refuses, &Wire::client().headers(1, 0, extended)),
        1,
        Code::PROTOCOL_ERROR,
    );
}

/// The head of a request with these fields.
fn head_of(fields: &[(&str, &str)]) -> Head {
    let mut server = new_server();
    let mut head = Head::default();
    let wire = Wire::client().headers(1, 0, fields);
    let mut at = 0;
    loop {
        let (used, event) = server
            .read(&wire.0[at..], 0, &mut head, &mut Vec::new())
            .expect("legal");
        at += used;
        if matches!(event, Event::Head { .. }) {
            return head;
        }
    }
}

/// What is wrong with the start line itself is answered.
#[test]
fn bad_start_lines_are_answered() {
    for (name, value) in [
        (":method", "GET?"),
        (":method", ""),
        (":method", "PRI"),
        (":scheme", "http://a/?"),
        (":scheme", ""),
    ] {
        let fields: Vec<_> = GET
            .iter()
            .map(|field| {
                if field.0 == name {
                    (name, value)
                } else {
                    *field
                }
            })
            .collect();
        let told = server(&Wire::client().headers(1, 0, &fields));
        assert_eq!(
            told.answers,
            ["frame 1 5 1 1", "reset 1 NO_ERROR"],
            "{fields:?}"
        );
    }
}

/// All parts of a target are told; a server of HTTP/1 gets its path.
#[test]
fn targets_are_composed() {
    let table = [
        ("http", "a.example:80", "http://a.example/x?y", "a.example"),
        (
            "http",
            "a.example:8080",
            "http://a.example:8080/x?y",
            "a.example:8080",
        ),
        (
            "http",
            "a.example:443",
            "http://a.example:443/x?y",
            "a.example:443",
        ),
        (
            "https",
            "a.example:443",
            "https://a.example/x?y",
            "a.example",
        ),
        ("https", "[::1]", "https://[::1]/x?y", "[::1]"),
        (
            "ftp",
            "a.example:80",
            "ftp://a.example:80/x?y",
            "a.example:80",
        ),
    ];
    for (scheme, authority, target, host) in table {
        let fields = [
            (":method", "GET"),
            (":scheme", scheme),
            (":authority", authority),
            (":path", "/x?y"),
            ("a", "b"),
        ];
        let mut head = head_of(&fields);
        assert_eq!(head.target(), target.as_bytes());
        assert_eq!(head.path_and_query(), b"/x?y");
        assert_eq!(
            head.authority(),
            Some(authority.as_bytes()).map(|_| host.as_bytes())
        );
        assert_eq!(head.get(crate::Name::Host), Some(host.as_bytes()));
        let line = |head: &Head| {
            let mut out = Vec::new();
            write_request(head, None, &mut out);
            let end = out.iter().position(|byte| *byte == b'\r');
            String::from_utf8(out[..end.unwrap_or(0)].to_vec()).expect("text")
        };
        let sent = match scheme {
            "ftp" => target,
            _ => "/x?y",
        };
        assert_eq!(line(&head), format!("GET {sent} HTTP/1.1"));
        head.set_target(b"http://other/z");
        let sent = match scheme {
            "ftp" => "http://other/z",
            _ => "/z",
        };
        assert_eq!(line(&head), format!("GET {sent} HTTP/1.1"));
    }
}

#[test]
fn malformed_requests() {
    let path_twice = [GET, &[(":path", "/")]].concat();
    let behind = [&GET[..3], &[("a", "b")], &GET[3..]].concat();
    let no_path = &GET[..3];
    let no_method = &GET[1..];
    let no_scheme = [&GET[..1], &GET[2..]].concat();
    let mut table: Vec<Vec<(&str, &str)>> = vec![
        path_twice,
        behind,
        no_path.to_vec(),
        no_method.to_vec(),
        no_scheme,
        [&[(":method", "GET")], GET].concat(),
        [&[(":authority", "b")], GET].concat(),
        [&[(":unknown", "a")], GET].concat(),
        [&[(":status", "200")], GET].concat(),
        [&[(":", "a")], GET].concat(),
    ];
    for field in [
        ("Upper", "a"), // §8.2.1
        ("a b", "c"),
        ("a:b", "c"),
        ("a\u{e9}", "c"),
        ("", "c"),
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\0"),
        ("a", "\u{7f}"),
        ("connection", "close"), // §8.2.2
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("te", "trailers, deflate"),
        ("te", "gzip"),
        ("host", "a,b"),          // §8.3.1
        ("content-length", "-1"), // §8.1.1
        ("content-length", "1"),
        ("content-length", "a"),
        ("content-length", "0,"),
        ("content-length", "0, 1"),
        ("content-length", ""),
    ] {
        table.push(with(&[field]));
    }
    table.push(with(&[("content-length", "0"), ("content-length", "1")]));
    for authority in ["", "a b", "u@h", "a/b", "[::1"] {
        let mut fields = GET.to_vec();
        fields[2].1 = authority;
        table.push(fields);
    }
    for fields in table {
        let text = request(&fields);
        assert!(
            text.starts_with("refused 1 PROTOCOL_ERROR"),
            "{fields:?}: {text}"
        );
    }
    // White space around values is taken off.
    let blank = with(&[("a", " b"), ("c", "\td \t"), ("e", " "), ("f", "g")]);
    assert_eq!(
        request(&blank),
        "head 1 None https end GET / HTTP/1.1|host: a.example|a: b|c: d|e: |f: g||"
    );
    let lengths = with(&[("content-length", "000, 00"), ("a", "b")]);
    assert_eq!(
        request(&lengths),
        "head 1 Length(0) https end GET / HTTP/1.1|host: a.example|content-length: 0|a: b||"
    );
    // Another Host than :authority does not count.
    let other = with(&[("host", "b.example"), ("a", "b")]);
    assert_eq!(
        request(&other),
        "head 1 None https end GET / HTTP/1.1|host: a.example|a: b||"
    );
    // Without :authority, Host is enough; so is neither.
    let hosts = [&GET[..2], &GET[3..], &[("host", "b"), ("host", "B")]].concat();
    assert_eq!(
        request(&hosts),
        "head 1 None https end GET / HTTP/1.1|host: b||"
    );
    let different = [&GET[..2], &GET[3..], &[("host", "b"), ("host", "c")]].concat();
    assert!(request(&different).starts_with("refused"));
    let none = [&GET[..2], &GET[3..]].concat();
    assert_eq!(request(&none), "head 1 None https end GET / HTTP/1.1||");
}

#[test]
fn a_malformed_request_can_be_answered() {
    let make = || {
        let limits = Limits {
            answers_malformed: true,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    let large = "a".repeat(1500);
    let fields = with(&[("a", &large), ("b", &large)]);
    let wire = Wire::client()
        .headers(1, 0, &with(&[("A", "b")]))
        .headers(3, flag::END_STREAM, &fields)
        .get(5);
    let told = outcome(make, &wire);
    assert_eq!(told.error, None);
    assert_eq!(told.answers[..2], ["frame 1 5 1 1", "reset 1 NO_ERROR"]);
    assert!(told.answers[2].starts_with("frame 1 5 3 "), "{told:?}");
    assert_eq!(told.answers.len(), 3);
    assert!(told.events[1].starts_with("refused 3 ENHANCE_YOUR_CALM"));
    assert!(told.events[2].starts_with("head 5 "));
}

/// A head of HTTP/1 leaves without the fields of its connection.
#[test]
fn heads_of_http1_are_sent() {
    use crate::h1::{Limits, Strictness, parse_request, parse_response};
    #[rustfmt::skip]
    let table = [
        ("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close, x-y\r\nX-Y: 1\r\nKeep-Alive: 3\r\nTE: gzip, trailers\r\nX: 1\r\n\r\n",
         "head 1 None https end GET /a HTTP/1.1|host: h|x: 1|te: trailers||"),
        ("GET http://h:8080 HTTP/1.1\r\nHost: h:8080\r\n\r\n", "head 1 None http end GET / HTTP/1.1|host: h:8080||"),
        ("GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n",         "head 1 None http end GET /?a HTTP/1.1|host: h||"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",              "head 1 None https end OPTIONS * HTTP/1.1|host: h||"),
        ("OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n",       "head 1 None http end OPTIONS * HTTP/1.1|host: h||"),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n",          "head 1 None  end CONNECT h:1 HTTP/1.1|host: h:1||"),
        ("PUT / HTTP/1.0\r\n\r\n",                             "head 1 None https end PUT / HTTP/1.1||"),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "head 1 None https end POST / HTTP/1.1|host: h||"),
    ];
    for (input, expected) in table {
        let mut head = Head::default();
        let parsed = parse_request(
            input.as_bytes(),
            Limits::default(),
            Strictness::Strict,
            &mut head,
        );
        assert!(parsed.expect("legal").is_some());
        let mut out = Vec::new();
        let mut client = Connection::client(limits(), &mut out);
        let stream = client.send_request(&head, Scheme::Https, 0, true, &mut out);
        assert_eq!(stream, Some(StreamId(1)));
        assert_eq!(feed(&mut new_server(), &[&out]).events, [expected]);
    }
    let input = b"HTTP/1.1 302 Found\r\nConnection: close\r\nHost: odd\r\nLocation: /\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut head = Head::default();
    let parsed = parse_response(
        input,
        crate::Method::Get,
        Limits::default(),
        Strictness::Strict,
        &mut head,
    );
    assert!(parsed.expect("legal").is_some());
    let mut server = new_server();
    feed(&mut server, &[&Wire::client().get(1).0]);
    let mut out = Wire::server().0;
    assert!(server.send_response(StreamId(1), &head, false, &mut out));
    let told = feed(&mut new_client(&["GET"]), &[&out]);
    assert_eq!(
        told.events,
        ["head 1 Chunked  HTTP/1.1 302 |host: odd|location: /||"]
    );
}

/// A request of HTTP/2 goes on over HTTP/1 in one run of bytes.
#[test]
fn a_head_can_be_copied() {
    let mut fields = with(&[("accept", "*/*"), ("x-a", "b"), ("user-agent", "c")]);
    fields.push(("x-z", "d"));
    let mut server = new_server();
    let wire = Wire::client().headers(1, 0, &fields);
    let (mut head, mut at) = (Head::default(), 0);
    loop {
        let (used, event) = server
            .read(&wire.0[at..], 0, &mut head, &mut Vec::new())
            .expect("legal");
        at += used;
        if matches!(event, Event::Head { .. }) {
            break;
        }
    }
    assert_eq!(
        (head.version(), head.version().as_str()),
        (crate::Version::Http2, "HTTP/2.0")
    );
    let mut end = head.start.line.at + head.start.line.len;
    for field in &head.fields {
        assert!(field.line && field.name.at == end);
        end = field.value.at + field.value.len + 2;
    }
    head.set_version(crate::Version::Http11);
    head.set_framing(crate::h1::Framing::Chunked);
    let mut out = Vec::new();
    write_request(&head, None, &mut out);
    assert!(out.starts_with(b"GET / HTTP/1.1\r\n"));
    assert!(out.ends_with(b"x-z: d\r\ntransfer-encoding: chunked\r\n\r\n"));
}
