//! RFC 9114 §4.1: bodies, trailers, responses.

use super::*;

/// RFC 9114 §4.1, §4.1.2.
#[test]
fn bodies_and_trailers() {
    let post = |fields: &[(&'static str, &'static str)]| [POST, fields].concat();
    let length = post(&[("content-length", "6")]);
    let trailers = [("x-sum", "1"), ("host", "no"), ("content-length", "9")];
    let good = Wire::client()
        .headers(0, &length)
        .body(0, b"abc")
        .body(0, b"d")
        .end(0, b"ef")
        .post(4)
        .body(4, b"xyz")
        .all(4, &trailers)
        .post(8)
        .body(8, b"a")
        .fin(8)
        .headers(12, &length)
        .body(12, b"abcdef")
        .headers(12, &[("a", "b")])
        .fin(12)
        .all(16, POST);
    let told = server(&good);
    assert_fine(&told);
    let head = "POST / HTTP/1.1|host: a.example|";
    assert_eq!(
        told.events,
        [
            &format!("head 0 Length(6) https {head}content-length: 6||")[..],
            "data 0 abcdef$",
            &format!("head 1 Chunked https {head}|"),
            "data 1 xyz",
            "trailers 1 x-sum=1",
            &format!("head 2 Chunked https {head}|"),
            "data 2 a$",
            &format!("head 3 Length(6) https {head}content-length: 6||"),
            "data 3 abcdef",
            "trailers 3 a=b",
            &format!("head 4 None https end {head}|"),
        ]
    );
    let open = || Wire::client().headers(0, &length);
    for wire in [
        open().end(0, b"abc"),
        open().body(0, b"abc").fin(0),
        open().fin(0),
        open().body(0, b"abcdefg"),
        open().body(0, b"abcdef").body(0, b"g"),
        open().body(0, b"abc").all(0, &[("a", "b")]),
        open().body(0, b"abcdef").all(0, &[(":path", "/")]),
        open().body(0, b"abcdef").all(0, &[("A", "b")]),
        open()
            .body(0, b"abcdef")
            .headers(0, &[("connection", "close")]),
        Wire::client().all(0, &length),
    ] {
        assert_resets(&server(&wire.get(4)), 0, code::MESSAGE_ERROR);
    }
}

#[test]
fn responses() {
    let wire = Wire::server()
        .headers(0, &[(":status", "103"), ("link", "a")])
        .headers(
            0,
            &[(":status", "200"), ("content-length", "3"), ("server", "s")],
        )
        .end(0, b"abc")
        .all(4, &[(":status", "404")])
        .all(8, &[(":status", "200"), ("content-length", "7")])
        .headers(12, &[(":status", "200"), ("content-length", "7")])
        .end(12, b"tunnel")
        .headers(16, &[(":status", "200")])
        .fin(16);
    let told = client(&["GET", "GET", "HEAD", "CONNECT", "GET"], &wire);
    assert_fine(&told);
    assert_eq!(
        told.events,
        [
            "head 0 None  HTTP/1.1 103 |link: a||",
            "head 0 Length(3)  HTTP/1.1 200 |content-length: 3|server: s||",
            "data 0 abc$",
            "head 1 Length(0)  end HTTP/1.1 404 |content-length: 0||",
            "head 2 None  end HTTP/1.1 200 |content-length: 7||",
            "head 3 None  HTTP/1.1 200 ||",
            "data 3 tunnel$",
            "head 4 Chunked  HTTP/1.1 200 ||",
            "data 4 $",
        ]
    );
    let open = Wire::server;
    let ok: &[(&str, &str)] = &[(":status", "200")];
    for wire in [
        open().headers(0, &[("server", "a")]),
        open().headers(0, &[(":status", "20")]),
        open().headers(0, &[(":status", "099")]),
        open().headers(0, &[(":status", "2000")]),
        open().headers(0, &[(":status", "101")]),
        open().headers(0, &[(":status", "200"), (":status", "200")]),
        open().headers(0, &[(":status", "200"), (":path", "/")]),
        open().headers(0, &[("a", "b"), (":status", "200")]),
        open().all(0, &[(":status", "100")]),
        open().headers(0, &[(":status", "200"), ("connection", "close")]),
        open().all(0, &[(":status", "200"), ("content-length", "1")]),
        open().headers(0, &[(":status", "304")]).end(0, b"a"),
        open().headers(0, ok).headers(0, ok),
    ] {
        assert_resets(&client(&["POST"], &wire), 0, code::MESSAGE_ERROR);
    }
    for wire in [
        open().fin(0),
        open().headers(0, &[(":status", "103")]).fin(0),
    ] {
        assert_resets(&client(&["POST"], &wire), 0, code::REQUEST_INCOMPLETE);
    }
    for wire in [
        open().body(0, b"a"),
        open().headers(0, &[(":status", "103")]).body(0, b"a"),
        open()
            .headers(0, ok)
            .headers(0, &[("a", "b")])
            .body(0, b"a"),
        open()
            .headers(0, ok)
            .headers(0, &[("a", "b")])
            .headers(0, &[("a", "b")]),
    ] {
        assert_ends(&client(&["GET"], &wire), code::FRAME_UNEXPECTED);
    }
    let tunnel = open()
        .headers(0, ok)
        .body(0, b"a")
        .headers(0, &[("a", "b")]);
    assert_ends(&client(&["CONNECT"], &tunnel), code::FRAME_UNEXPECTED);
    let refused = open()
        .headers(0, &[(":status", "403")])
        .body(0, b"a")
        .all(0, &[("a", "b")]);
    assert_fine(&client(&["CONNECT"], &refused));
    assert_resets(
        &client(&["HEAD"], &open().headers(0, ok).body(0, b"a")),
        0,
        code::MESSAGE_ERROR,
    );
}

/// Empty and unknown frames are between all others, and no length of a header is the shortest.
#[test]
fn frames_between_frames() {
    let mut wire = Wire::client().data(0, &[0x21, 0]);
    let section = section(POST);
    wire = wire
        .data(0, &[0x40, 1, 0x80, 0, 0, section.len() as u8])
        .data(0, &section);
    wire = wire
        .data(0, &[0, 0, 0x40, 0x21, 0x40, 100])
        .data(0, &[0xee; 100]);
    wire = wire.data(
        0,
        &[
            0xc0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b',
        ],
    );
    wire = wire.body(0, b"").data(0, &[0x21, 3, 1, 2, 3]).fin(0);
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(told.events[1..], ["data 0 ab$"]);
}
