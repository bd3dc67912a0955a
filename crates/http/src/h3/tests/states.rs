//! RFC 9114 §4.1, §5.2, §6.1, RFC 9000 §3: resets, early answers, the order of streams, GOAWAY.

use super::*;

fn response(status: u16) -> Head {
    let mut head = Head::default();
    head.set_status(status, b"");
    head
}

/// The answers to a call.
fn said(call: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
    let (mut out, mut told) = (Vec::new(), Told::default());
    call(&mut out);
    answers(&out, &mut told, &mut Vec::new());
    told.answers
}

#[test]
fn streams_come_in_any_order() {
    let wire = Wire::client().post(8).get(0).get(4).end(8, b"abc").get(16);
    let told = server(&wire);
    assert_fine(&told);
    let begins: Vec<&str> = told.events.iter().map(|event| &event[..6]).collect();
    assert_eq!(begins, ["head 2", "head 0", "head 1", "data 2", "head 4"]);
}

#[test]
fn streams_that_must_not_be() {
    // A server opens no bidirectional streams, and nobody writes on another's streams.
    for stream in [1, 5] {
        assert_ends(
            &client(&[], &Wire::server().data(stream, b"a")),
            code::STREAM_CREATION_ERROR,
        );
        let open = Wire::client;
        for wire in [
            open().data(stream, b"a"),
            open().fin(stream),
            open().reset(stream, 0),
            open().stopped(stream, 0),
        ] {
            assert_ends(&server(&wire), code::STREAM_CREATION_ERROR);
        }
    }
    assert_ends(
        &server(&Wire::client().data(3, b"a")),
        code::STREAM_CREATION_ERROR,
    );
    assert_ends(
        &client(&["GET"], &Wire::server().all(4, &[(":status", "200")])),
        code::STREAM_CREATION_ERROR,
    );
    // A number that no `StreamId` has.
    let far = Wire::client().get(4 * u64::from(u32::MAX));
    assert_fine(&server(&far));
    let told = server(&Wire::client().get(4 << 32));
    assert_ends(&told, code::NO_ERROR);
}

#[test]
fn streams_that_end_early() {
    let head = frame_of(kind::HEADERS, &section(GET));
    for wire in [
        Wire::client().last(0, &head[..10]),
        Wire::client().last(0, &head[..1]),
        Wire::client().data(0, &head[..10]).fin(0),
        Wire::client().post(0).last(0, &[0]),
        Wire::client().post(0).last(0, &[0, 5, b'a']),
        Wire::client().post(0).data(0, &[0, 5, b'a']).fin(0),
        Wire::client().post(0).data(0, &[0x21, 5, b'a']).fin(0),
    ] {
        assert_ends(&server(&wire), code::FRAME_ERROR);
    }
    for wire in [Wire::client().fin(0), Wire::client().last(0, &[0x21, 1, 0])] {
        assert_resets(&server(&wire.get(4)), 0, code::REQUEST_INCOMPLETE);
    }
}

#[test]
fn frames_that_requests_do_not_have() {
    for kind in [2, 3, 4, 5, 6, 7, 8, 9, 0xd, 0xf_0700, 0xf_0701] {
        let alone = Wire::client().frame(0, kind, &[0]);
        assert_ends(&server(&alone), code::FRAME_UNEXPECTED);
        let later = Wire::client().post(0).body(0, b"a").frame(0, kind, &[0]);
        assert_ends(&server(&later), code::FRAME_UNEXPECTED);
        let expected = if kind == 5 {
            code::ID_ERROR
        } else {
            code::FRAME_UNEXPECTED
        };
        assert_ends(
            &client(&["GET"], &Wire::server().frame(0, kind, &[0])),
            expected,
        );
    }
    let trailers = || Wire::client().post(0).headers(0, &[("a", "b")]);
    for wire in [
        Wire::client().body(0, b"a"),
        trailers().body(0, b""),
        trailers().headers(0, &[("a", "b")]),
    ] {
        assert_ends(&server(&wire), code::FRAME_UNEXPECTED);
    }
    // Unknown frames may come at any time.
    assert_fine(&server(&trailers().frame(0, 0x21, b"abc").fin(0)));
    let tunnel: &[(&str, &str)] = &[(":method", "CONNECT"), (":authority", "h:80")];
    let wire = Wire::client()
        .headers(0, tunnel)
        .body(0, b"a")
        .headers(0, &[("a", "b")]);
    assert_ends(&server(&wire), code::FRAME_UNEXPECTED);
}

#[test]
fn resets_of_a_client() {
    // Before and within a head nothing is told.
    let head = frame_of(kind::HEADERS, &section(GET));
    let told = server(
        &Wire::client()
            .data(0, &head[..9])
            .reset(0, code::REQUEST_CANCELLED),
    );
    assert_fine(&told);
    assert!(told.events.is_empty());
    assert!(told.answers.contains(&"reset 0 10c".to_owned()), "{told:?}");
    let told = server(&Wire::client().reset(4, code::REQUEST_CANCELLED).get(0));
    assert_eq!(told.events.len(), 1);
    // Within a body.
    let wire = Wire::client().post(0).data(0, &[0, 9, b'a']);
    let told = server(&wire.reset(0, code::REQUEST_CANCELLED).get(4));
    assert_fine(&told);
    assert_eq!(told.events[1..3], ["data 0 a", "reset 0 CANCEL"]);
    assert!(told.answers.contains(&"reset 0 10c".to_owned()), "{told:?}");
    assert!(!told.answers.iter().any(|answer| answer.starts_with("stop")));
    // Behind its end, which QUIC has told before.
    let told = server(&Wire::client().get(0).reset(0, code::REQUEST_CANCELLED));
    assert_eq!(told.events.len(), 1);
    // Before the request itself, which is ignored then.
    let told = server(
        &Wire::client()
            .stopped(0, code::REQUEST_CANCELLED)
            .get(0)
            .get(4),
    );
    assert_fine(&told);
    assert!(told.events.len() == 1 && told.events[0].starts_with("head 1"));
    assert_eq!(told.answers, ["reset 0 10c", "stop 0 10c", "data 11 [40]"]);
    // An unknown code is as H3_NO_ERROR.
    let told = server(&Wire::client().post(0).reset(0, 0x1234));
    assert_eq!(told.events[1], "reset 0 NO_ERROR");
    // The client wants no response.
    let told = server(&Wire::client().get(0).stopped(0, code::REQUEST_CANCELLED));
    assert_eq!(told.events[1], "reset 0 CANCEL");
    assert_eq!(told.answers, ["reset 0 10c"]);
    let told = server(
        &Wire::client()
            .post(0)
            .stopped(0, code::REQUEST_CANCELLED)
            .body(0, b"a"),
    );
    assert_eq!(told.events[1..], ["reset 0 CANCEL"]);
    assert_eq!(told.answers, ["reset 0 10c", "stop 0 10c", "data 11 [40]"]);
}

#[test]
fn resets_of_a_server() {
    let ok: &[(&str, &str)] = &[(":status", "200")];
    let wire = Wire::server()
        .reset(0, code::REQUEST_REJECTED)
        .headers(4, ok)
        .data(4, &[0, 9, b'a'])
        .reset(4, code::INTERNAL_ERROR)
        .all(8, ok);
    let told = client(&["POST", "GET", "GET"], &wire);
    assert_fine(&told);
    assert_eq!(told.events[0], "reset 0 REFUSED_STREAM");
    assert_eq!(told.events[2..4], ["data 1 a", "reset 1 INTERNAL_ERROR"]);
    assert_eq!(
        told.answers,
        ["data 10 [40]", "reset 0 10c", "data 10 [44]"]
    );
}

/// RFC 9114 §4.1: a server may answer before the request is complete, and stop the rest.
#[test]
fn an_early_answer() {
    let mut server = new_server();
    feed(&mut server, &[&Wire::client().post(0).body(0, b"a").0]);
    let (id, mut out) = (StreamId(0), Vec::new());
    assert!(server.send_response(id, &response(413), true, &mut out));
    assert!(server.send_reset(id, Code::NO_ERROR, &mut out));
    let mut told = Told::default();
    answers(&out, &mut told, &mut Vec::new());
    assert!(told.answers[0].starts_with("data 0 ") && told.answers[0].ends_with('$'));
    assert_eq!(told.answers[1..], ["stop 0 100", "data 11 [40]"]);
    // What is still on its way is used.
    let told = feed(
        &mut server,
        &[&Wire::default().body(0, &[0; 500]).reset(0, 0x100).0],
    );
    assert_fine(&told);
    assert_eq!((told.events.len(), told.consumed[&0]), (0, 503));

    // The client keeps the response.
    let ok: &[(&str, &str)] = &[(":status", "200")];
    let make = || new_client(&["POST"]);
    let stop = || Wire::server().stopped(0, code::NO_ERROR);
    let told = outcome(make, &stop().headers(0, ok).end(0, b"abc"));
    assert_fine(&told);
    assert_eq!(told.answers, ["reset 0 100"]);
    assert_eq!(told.events[1..], ["data 0 abc$", "reset 0 NO_ERROR"]);
    let late = Wire::server().all(0, ok).stopped(0, code::NO_ERROR);
    let told = outcome(make, &late);
    assert_eq!(told.events[1..], ["reset 0 NO_ERROR"]);
    let mut client = make();
    feed(&mut client, &[&stop().0]);
    assert_eq!(client.data_room(id), 0);
    assert!(!client.send_data_head(id, 1, false, &mut Vec::new()));
    assert!(client.send_reset(id, Code::CANCEL, &mut Vec::new()));
    assert_eq!(client.stream_count(), 0);
}

#[test]
fn resets_of_ours() {
    let mut server = new_server();
    feed(&mut server, &[&Wire::client().get(0).post(4).0]);
    let cancel = |server: &mut Connection, id| {
        said(|out| assert!(server.send_reset(StreamId(id), Code::REFUSED_STREAM, out)))
    };
    assert_eq!(cancel(&mut server, 0), ["reset 0 10b"]);
    assert_eq!(
        cancel(&mut server, 1),
        ["reset 4 10b", "stop 4 10b", "data 11 [44]"]
    );
    assert!(!server.send_reset(StreamId(1), Code::CANCEL, &mut Vec::new()));
    // Only servers reject.
    let mut client = new_client(&["POST"]);
    assert_eq!(
        cancel(&mut client, 0),
        ["reset 0 10c", "stop 0 10c", "data 10 [40]"]
    );
}

#[test]
fn more_streams_than_the_limit() {
    let mut wire = Wire::client();
    for stream in [0, 4, 8, 12, 16, 20, 24] {
        wire = wire.post(stream);
    }
    let told = server(&wire);
    assert_resets(&told, 5, code::REQUEST_REJECTED);
    assert_resets(&told, 6, code::REQUEST_REJECTED);
    let heads = told.events.iter().filter(|event| event.starts_with("head"));
    assert_eq!(heads.count(), 5);
}

/// RFC 9114 §5.2, in two steps.
#[test]
fn a_graceful_end() {
    let mut server = new_server();
    feed(&mut server, &[&Wire::client().post(0).0]);
    let first = said(|out| {
        server.shutdown(out);
        server.shutdown(out);
    });
    assert_eq!(first, ["data 3 [07, 08, ff, ff, ff, ff, ff, ff, ff, fc]"]);
    assert_eq!(
        feed(&mut server, &[&Wire::default().post(8).0])
            .events
            .len(),
        1
    );
    let second = said(|out| server.goaway(Code::NO_ERROR, out));
    assert_eq!(second, ["data 3 [07, 01, 0c]"]);
    let wire = Wire::default()
        .post(12)
        .body(12, b"abc")
        .post(4)
        .end(0, b"end");
    let told = feed(&mut server, &[&wire.0]);
    assert_fine(&told);
    assert_eq!(told.answers[..2], ["reset 12 10b", "stop 12 10b"]);
    // What was sent before and comes late is accepted.
    assert!(told.events[0].starts_with("head 1") && told.events[1] == "data 0 end$");
    assert_eq!(server.stream_count(), 3);
    // A client ends too.
    let mut client = new_client(&["GET"]);
    assert_eq!(said(|out| client.shutdown(out)), ["data 2 [07, 01, 00]"]);
    assert!(!client.can_open());
}

#[test]
fn a_server_that_goes_away() {
    let goaway = |wire: Wire, stream: u8| wire.frame(CONTROL_OF_SERVER, kind::GOAWAY, &[stream]);
    let wire = goaway(Wire::server(), 12).all(0, &[(":status", "204")]);
    let wire = goaway(wire, 8).headers(4, &[(":status", "200")]);
    let told = client(&["GET", "GET", "GET", "GET"], &wire);
    assert_fine(&told);
    assert_eq!(
        told.events,
        [
            "goaway 2 NO_ERROR",
            "reset 3 REFUSED_STREAM",
            "head 0 None  end HTTP/1.1 204 ||",
            "goaway 1 NO_ERROR",
            "reset 2 REFUSED_STREAM",
            "head 1 Chunked  HTTP/1.1 200 ||",
        ]
    );
    let mut client = new_client(&["GET", "GET"]);
    let told = feed(&mut client, &[&goaway(Wire::server(), 0).0]);
    let all = [
        "goaway 0 NO_ERROR",
        "reset 1 REFUSED_STREAM",
        "reset 0 REFUSED_STREAM",
    ];
    assert_eq!(told.events, all);
    assert!(!client.can_open() && client.got_goaway() && client.is_idle());
}

#[test]
fn an_error_stays() {
    let mut server = new_server();
    let told = feed(&mut server, &[&Wire::client().get(0).body(4, b"a").0]);
    assert_ends(&told, code::FRAME_UNEXPECTED);
    let said = said(|out| {
        assert!(server.read(b"", 0, &mut Head::default(), out).is_err());
        server.goaway(Code::NO_ERROR, out);
        server.consumed(StreamId(0), 5, out);
        assert!(!server.send_response(StreamId(0), &response(200), true, out));
    });
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn malformed_records() {
    for bytes in [&[99; HEAD_BYTES][..], &[9; HEAD_BYTES]] {
        assert_ends(&feed(&mut new_server(), &[bytes]), code::INTERNAL_ERROR);
    }
    let mut close = Vec::new();
    record::close(0, "", &mut close);
    assert_ends(&feed(&mut new_server(), &[&close]), code::INTERNAL_ERROR);
}

#[test]
fn counts_of_a_server() {
    let mut server = new_server();
    let wire = Wire::client()
        .get(0)
        .post(4)
        .body(4, b"a")
        .end(4, b"b")
        .post(8)
        .reset(8, code::REQUEST_CANCELLED)
        .all(12, &GET[..3])
        .frame(CONTROL, kind::MAX_PUSH_ID, &[5])
        .frame(CONTROL, kind::MAX_PUSH_ID, &[6])
        .frame(CONTROL, kind::GOAWAY, &[0]);
    let told = feed(&mut server, &[&wire.0]);
    assert_eq!(told.error, None);
    let expected = Counts {
        headers: 4,
        data: 2,
        settings: 1,
        resets: 1,
        goaways: 1,
        cancelled_pushes: 0,
        push_limits: 2,
        connection_errors: 0,
        stream_errors: 1,
        sent_resets: 1,
        sent_goaways: 0,
        streams: 3,
    };
    assert_eq!(server.take_counts(), expected);
    assert_eq!(server.take_counts(), Counts::default());
    // There is no push to cancel.
    let cancel = Wire::default().frame(CONTROL, kind::CANCEL_PUSH, &[0]);
    assert_ends(&feed(&mut server, &[&cancel.0]), code::ID_ERROR);
    let expected = Counts {
        cancelled_pushes: 1,
        connection_errors: 1,
        ..Counts::default()
    };
    assert_eq!(server.take_counts(), expected);
}
