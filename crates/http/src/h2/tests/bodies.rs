//! RFC 9113 §8.1: bodies, trailers, responses.

use super::*;

/// RFC 9113 §8.1, §8.1.1.
#[test]
fn bodies_and_trailers() {
    let post = |fields: &[(&'static str, &'static str)]| [POST, fields].concat();
    let length = post(&[("content-length", "6")]);
    let end = flag::END_STREAM;
    let good = Wire::client()
        .headers(1, 0, &length)
        .data(1, 0, b"abc")
        .data(1, flag::PADDED, b"\x02d\0\0")
        .data(1, flag::PADDED, b"\0")
        .data(1, flag::PADDED | end, b"\x01ef\0")
        .post(3)
        .data(3, 0, b"xyz")
        .headers(
            3,
            end,
            &[("x-sum", "1"), ("host", "no"), ("content-length", "9")],
        )
        .post(5)
        .data(5, flag::PADDED | end, b"\x01\0")
        .headers(7, 0, &length)
        .data(7, 0, b"abcdef")
        .headers(7, end, &[("a", "b")]);
    let told = server(&good);
    assert_fine(&told);
    let head = "POST / HTTP/1.1|host: a.example|";
    assert_eq!(
        told.events,
        [
            &format!("head 1 Length(6) https {head}content-length: 6||")[..],
            "data 1 abcdef$",
            &format!("head 3 Chunked https {head}|"),
            "data 3 xyz",
            "trailers 3 x-sum=1",
            &format!("head 5 Chunked https {head}|"),
            "data 5 $",
            &format!("head 7 Length(6) https {head}content-length: 6||"),
            "data 7 abcdef",
            "trailers 7 a=b",
        ]
    );
    let open = || Wire::client().headers(1, 0, &length);
    for wire in [
        open().data(1, end, b"abc"),
        open().data(1, 0, b"abcdefg"),
        open().data(1, 0, b"abc").headers(1, end, &[("a", "b")]),
        open().headers(1, 0, &[("a", "b")]), // trailers that do not end the stream
        open()
            .data(1, 0, b"abcdef")
            .headers(1, end, &[(":path", "/")]),
        open().data(1, 0, b"abcdef").headers(1, end, &[("A", "b")]),
        open()
            .data(1, 0, b"abcdef")
            .headers(1, end, &[("connection", "close")]),
    ] {
        assert_resets(&server(&wire.get(3)), 1, Code::PROTOCOL_ERROR);
    }
}

#[test]
fn responses() {
    let end = flag::END_STREAM;
    let wire = Wire::server()
        .headers(1, 0, &[(":status", "103"), ("link", "a")])
        .headers(
            1,
            0,
            &[(":status", "200"), ("content-length", "3"), ("server", "s")],
        )
        .data(1, end, b"abc")
        .headers(3, end, &[(":status", "404")])
        .headers(5, end, &[(":status", "200"), ("content-length", "7")])
        .headers(7, 0, &[(":status", "200"), ("content-length", "7")])
        .data(7, end, b"tunnel");
    let told = client(&["GET", "GET", "HEAD", "CONNECT"], &wire);
    assert_fine(&told);
    assert_eq!(
        told.events,
        [
            "head 1 None  HTTP/1.1 103 |link: a||",
            "head 1 Length(3)  HTTP/1.1 200 |content-length: 3|server: s||",
            "data 1 abc$",
            "head 3 Length(0)  end HTTP/1.1 404 |content-length: 0||",
            "head 5 None  end HTTP/1.1 200 |content-length: 7||",
            "head 7 None  HTTP/1.1 200 ||",
            "data 7 tunnel$",
        ]
    );
    let open = Wire::server;
    let ok: &[(&str, &str)] = &[(":status", "200")];
    for wire in [
        open().headers(1, 0, &[("server", "a")]),
        open().headers(1, 0, &[(":status", "20")]),
        open().headers(1, 0, &[(":status", "099")]),
        open().headers(1, 0, &[(":status", "2000")]),
        open().headers(1, 0, &[(":status", "101")]),
        open().headers(1, 0, &[(":status", "200"), (":status", "200")]),
        open().headers(1, 0, &[(":status", "200"), (":path", "/")]),
        open().headers(1, 0, &[("a", "b"), (":status", "200")]),
        open().headers(1, end, &[(":status", "100")]),
        open().headers(1, 0, &[(":status", "200"), ("connection", "close")]),
        open().headers(1, end, &[(":status", "200"), ("content-length", "1")]),
        open()
            .headers(1, 0, &[(":status", "304")])
            .data(1, end, b"a"),
        open()
            .headers(1, 0, &[(":status", "103")])
            .data(1, end, b"a"),
        open().data(1, 0, b"a"),
        open().headers(1, 0, ok).headers(1, 0, ok),
        open().headers(1, 0, ok).headers(1, end, ok),
    ] {
        assert_resets(&client(&["GET"], &wire), 1, Code::PROTOCOL_ERROR);
    }
    let wire = open().headers(1, end, ok).headers(1, end, ok);
    assert_ends(&client(&["GET"], &wire), Code::STREAM_CLOSED);
    let wire = open().headers(1, end, ok).headers(1, end, ok);
    assert_resets(&client(&["POST"], &wire), 1, Code::STREAM_CLOSED);
}
