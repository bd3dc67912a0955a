//! RFC 9114 §4.2–§4.4: which `Head` a field section becomes, and which are malformed. The code is
//! that of HTTP/2, whose tests have more cases.

use super::*;

/// The request of a head that ends its stream, as HTTP/1 has it.
#[track_caller]
fn request(fields: &[(&str, &str)]) -> String {
    let told = server(&Wire::client().all(0, fields));
    assert_eq!(told.error, None);
    told.events.into_iter().next().expect("an event")
}

fn with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [GET, fields].concat()
}

#[test]
fn requests() {
    let head = "head 0 None https end GET / HTTP/1.1|host: a.example|";
    #[rustfmt::skip]
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[("a", "b"), ("x-c", "")], "a: b|x-c: ||"),
        (&[("cookie", "a=1"), ("cookie", "b=2"), ("x", "y"), ("cookie", "c")], "x: y|cookie: a=1; b=2; c||"),
        (&[("te", "trailers")], "te: trailers||"),
        (&[("host", "A.example:443")], "|"),
        (&[("expect", "100-continue")], "expect: 100-continue||"),
    ];
    for (fields, expected) in table {
        assert_eq!(request(&with(fields)), format!("{head}{expected}"));
    }
}

#[test]
fn malformed_requests() {
    let mut table: Vec<Vec<(&str, &str)>> = vec![
        [GET, &[(":path", "/")]].concat(),
        [&GET[..3], &[("a", "b")], &GET[3..]].concat(),
        GET[..3].to_vec(),
        GET[1..].to_vec(),
        [&GET[..1], &GET[2..]].concat(),
        [&[(":unknown", "a")], GET].concat(),
        [&[(":status", "200")], GET].concat(),
        vec![],
        // Neither the authority nor a host.
        [&GET[..2], &GET[3..]].concat(),
        [&GET[..2], &GET[3..], &[("host", "")]].concat(),
    ];
    for field in [
        ("Upper", "a"),
        ("a b", "c"),
        ("a:b", "c"),
        ("", "c"),
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\0"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("host", "a,b"),
        ("host", "b.example"),
        ("content-length", "-1"),
        ("content-length", "1"),
        ("content-length", "0, 1"),
    ] {
        table.push(with(&[field]));
    }
    for authority in ["", "a b", "u@h", "a/b"] {
        let mut fields = GET.to_vec();
        fields[2].1 = authority;
        table.push(fields);
    }
    for fields in table {
        let told = server(&Wire::client().all(0, &fields).get(4));
        assert_resets(&told, 0, code::MESSAGE_ERROR);
        assert!(told.events[1].starts_with("head 1"), "{fields:?}: {told:?}");
    }
}

/// RFC 9114 §4.4, RFC 9220.
#[test]
fn connect() {
    let plain = [(":method", "CONNECT"), (":authority", "h:80")];
    let wire = Wire::client().headers(0, &plain).body(0, b"any").fin(0);
    let told = server(&wire);
    assert_eq!(
        told.events,
        [
            "head 0 None  CONNECT h:80 HTTP/1.1|host: h:80||",
            "data 0 any$"
        ]
    );
    let extended: &[(&str, &str)] = &[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "h"),
        (":path", "/chat"),
    ];
    let told = server(&Wire::client().headers(0, extended).body(0, b"frame"));
    assert_fine(&told);
    assert_eq!(told.events[1], "data 0 frame");
    let refuses = || {
        let limits = Limits {
            extended_connect: false,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    let told = outcome(refuses, &Wire::client().headers(0, extended));
    assert_resets(&told, 0, code::MESSAGE_ERROR);
}

/// What is wrong with the start line itself is answered, and so is a head that is too large.
#[test]
fn refused_requests_are_answered() {
    let method = [&[(":method", "GET?")], &GET[1..]].concat();
    let told = server(&Wire::client().headers(0, &method).get(4));
    // `:status` 400 is entry 67 of the static table.
    assert_eq!(
        told.answers,
        [
            "data 0 [01, 04, 00, 00, ff, 04]$",
            "stop 0 100",
            "data 11 [40]"
        ]
    );
    assert!(told.events[0].starts_with("refused 0 PROTOCOL_ERROR"));
    let large = "a".repeat(1500);
    let fields = with(&[("a", &large), ("b", &large)]);
    let told = server(&Wire::client().all(0, &fields).get(4));
    assert!(told.events[0].starts_with("refused 0 ENHANCE_YOUR_CALM"));
    assert!(told.answers[0].starts_with("data 0 ") && told.answers[0].ends_with('$'));
    assert_eq!(told.answers.len(), 1);
    // A section that is larger than what is read of one is not waited for.
    let wire = Wire::client()
        .data(0, &[1, 0x50, 0])
        .data(0, &[0; 4096])
        .get(4);
    let told = server(&wire);
    assert!(told.events[0].starts_with("refused 0 ENHANCE_YOUR_CALM"));
    assert_eq!(told.answers[1..], ["stop 0 100", "data 11 [40]"]);
    assert!(told.events[1].starts_with("head 1"));

    let answers = || {
        let limits = Limits {
            answers_malformed: true,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    let told = outcome(answers, &Wire::client().headers(0, &with(&[("A", "b")])));
    assert_eq!(told.answers[1..], ["stop 0 100", "data 11 [40]"]);
    let told = client(&["GET"], &Wire::server().data(0, &[1, 0x50, 0]));
    assert_resets(&told, 0, code::EXCESSIVE_LOAD);
}

/// A head of HTTP/1 leaves without the fields of its connection.
#[test]
fn heads_of_http1_are_sent() {
    use crate::h1::{Limits, Strictness, parse_request, parse_response};
    #[rustfmt::skip]
    let table = [
        ("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close, x-y\r\nX-Y: 1\r\nKeep-Alive: 3\r\nTE: gzip, trailers\r\nX: 1\r\n\r\n",
         "head 0 None https end GET /a HTTP/1.1|host: h|x: 1|te: trailers||"),
        ("GET http://h:8080 HTTP/1.1\r\nHost: h:8080\r\n\r\n", "head 0 None http end GET / HTTP/1.1|host: h:8080||"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",              "head 0 None https end OPTIONS * HTTP/1.1|host: h||"),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n",          "head 0 None  end CONNECT h:1 HTTP/1.1|host: h:1||"),
        ("POST / HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\nTransfer-Encoding: chunked\r\n\r\n",
         "head 0 None https end POST / HTTP/1.1|host: h|authorization: x||"),
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
        let mut client = idle_client(&mut out);
        let stream = client.send_request(&head, Scheme::Https, 0, true, &mut out);
        assert_eq!(stream, Some(StreamId(0)));
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
    let mut out = Vec::new();
    let mut server = Connection::server(limits(), &mut out);
    feed(&mut server, &[&Wire::client().get(0).0]);
    assert!(server.send_response(StreamId(0), &head, false, &mut out));
    let told = feed(&mut new_client(&["GET"]), &[&out]);
    assert_eq!(
        told.events,
        ["head 0 Chunked  HTTP/1.1 302 |host: odd|location: /||"]
    );
}

/// A head that is longer than a record.
#[test]
fn long_heads() {
    let limits = || Limits {
        head_bytes_max: 64 << 10,
        block_bytes_max: 64 << 10,
        ..limits()
    };
    let mut out = Vec::new();
    let mut client = Connection::client(limits(), &mut out);
    let mut streams = Vec::new();
    record::streams(1, &mut streams);
    feed(&mut client, &[&streams]);
    let mut head = Head::default();
    assert!(head.set_method(b"GET"));
    head.set_target(b"/");
    head.append(b"host", b"h");
    head.append(b"x", &[b'x'; 40000]);
    assert!(
        client
            .send_request(&head, Scheme::Https, 0, true, &mut out)
            .is_some()
    );
    let make = || Connection::server(limits(), &mut Vec::new());
    let told = outcome(make, &Wire(out));
    assert_fine(&told);
    assert!(told.events[0].len() > 40000 && told.events[0].starts_with("head 0 None https end"));
}
