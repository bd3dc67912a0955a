//! RFC 9113 §5.1, §5.4, §6.4, §6.8: which frame may come in which state.

use super::*;

#[test]
fn idle_streams() {
    for wire in [
        Wire::client().data(1, 0, b"a"),
        Wire::client().reset(1, Code::CANCEL),
        Wire::client().credit(1, 100),
        Wire::client().frame(kind::CONTINUATION, flag::END_HEADERS, 1, b""),
        Wire::client().get(5).data(7, 0, b"a"),
        // §5.1.1: a client opens odd streams only.
        Wire::client().get(2),
        Wire::client().get(5).data(2, 0, b"a"),
        Wire::client().get(5).credit(4, 1),
    ] {
        assert_ends(&server(&wire), Code::PROTOCOL_ERROR);
    }
    // §5.1.1: streams come in order.
    assert_ends(&server(&Wire::client().get(5).get(3)), Code::STREAM_CLOSED);
    for wire in [
        Wire::server().headers(1, 0, &[(":status", "200")]),
        Wire::server().headers(2, 0, &[(":status", "200")]),
        Wire::server().data(1, 0, b"a"),
    ] {
        assert_ends(&client(&[], &wire), Code::PROTOCOL_ERROR);
    }
    // PRIORITY may come at any time.
    let wire = Wire::client()
        .frame(kind::PRIORITY, 0, 9, b"\0\0\0\x05\0")
        .get(1);
    assert_fine(&server(&wire));
}

/// The peer has ended its side, ours is open.
#[test]
fn half_closed_streams() {
    let ended = || Wire::client().get(1);
    assert_resets(&server(&ended().data(1, 0, b"abc")), 1, Code::STREAM_CLOSED);
    assert_resets(&server(&ended().get(1)), 1, Code::STREAM_CLOSED);
    assert_ends(
        &server(&ended().frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"")),
        Code::PROTOCOL_ERROR,
    );
    assert_fine(&server(&ended().credit(1, 100).frame(
        kind::PRIORITY,
        0,
        1,
        b"\0\0\0\x05\0",
    )));
    let told = server(&ended().reset(1, Code::CANCEL));
    assert_eq!(told.events[1], "reset 1 CANCEL");
}

/// A server that has answered stream 1 whole.
fn answered() -> Connection {
    let mut server = new_server();
    assert_fine(&feed(&mut server, &[&Wire::client().get(1).0]));
    let mut head = Head::default();
    head.set_status(200, b"OK");
    assert!(server.send_response(StreamId(1), &head, true, &mut Vec::new()));
    assert_eq!(server.stream_count(), 0);
    server
}

#[test]
fn closed_streams() {
    for wire in [Wire::default().data(1, 0, b"abc"), Wire::default().get(1)] {
        assert_ends(&outcome(answered, &wire), Code::STREAM_CLOSED);
    }
    for wire in [
        Wire::default().credit(1, 100).get(3),
        Wire::default().reset(1, Code::CANCEL).get(3),
        Wire::default()
            .frame(kind::PRIORITY, 0, 1, b"\0\0\0\x05\0")
            .get(3),
    ] {
        let told = outcome(answered, &wire);
        assert_fine(&told);
        assert_eq!(told.events.len(), 1);
    }
    // The peer has reset the stream itself.
    let reset = || Wire::client().post(1).reset(1, Code::CANCEL);
    assert_ends(&server(&reset().data(1, 0, b"abc")), Code::STREAM_CLOSED);
    assert_ends(&server(&reset().get(1)), Code::STREAM_CLOSED);
}

/// What comes for a stream that we have reset is ignored, but counts for the connection's window
/// and the header tables.
#[test]
fn late_frames() {
    let make = || {
        let mut server = Connection::server(
            Limits {
                connection_window_bytes: 65535,
                ..limits()
            },
            &mut Vec::new(),
        );
        feed(&mut server, &[&Wire::client().post(1).0]);
        assert!(server.send_reset(StreamId(1), Code::CANCEL, &mut Vec::new()));
        assert!(!server.send_reset(StreamId(1), Code::CANCEL, &mut Vec::new()));
        server
    };
    // A literal that enters the table, then a request with it by index.
    let indexed = [&block(GET)[..], &[0x40, 1, b'x', 1, b'y']].concat();
    let by_index = [&block(GET)[..], &[0xbe]].concat();
    let end = flag::END_HEADERS | flag::END_STREAM;
    let wire = Wire::default()
        .data(1, 0, &[0; 16000])
        .data(1, 0, &[0; 16000])
        .data(1, 0, &[0; 16000])
        .credit(1, 5)
        .frame(kind::HEADERS, end, 1, &indexed)
        .reset(1, Code::CANCEL)
        .frame(kind::HEADERS, end, 3, &by_index);
    let told = outcome(make, &wire);
    assert_fine(&told);
    let expected = "head 3 None https end GET / HTTP/1.1|host: a.example|x: y||";
    assert_eq!(told.events, [expected]);
    assert_eq!(told.answers, ["credit 0 48000"]);
}

/// Reset by us while a frame is on its way: its rest is credited.
#[test]
fn a_reset_within_a_frame() {
    let mut server = new_server();
    let wire = Wire::client().post(1).data(1, 0, &[b'a'; 1000]).get(3);
    let (first, second) = wire.0.split_at(wire.0.len() - 500);
    assert_eq!(feed(&mut server, &[first]).events.len(), 2);
    assert!(server.send_reset(StreamId(1), Code::CANCEL, &mut Vec::new()));
    let told = feed(&mut server, &[second]);
    assert_eq!((told.events.len(), told.error), (1, None));
    assert!(told.events[0].starts_with("head 3"));
    assert_eq!(server.due, 1000);
}

#[test]
fn more_streams_than_the_limit() {
    let mut wire = Wire::client();
    for id in [1, 3, 5, 7, 9, 11, 13] {
        wire = wire.post(id);
    }
    let told = server(&wire);
    assert_resets(&told, 11, Code::REFUSED_STREAM);
    assert_resets(&told, 13, Code::REFUSED_STREAM);
    assert_eq!(
        told.events
            .iter()
            .filter(|event| event.starts_with("head"))
            .count(),
        5
    );
}

/// RFC 9113 §6.8, in two steps.
#[test]
fn a_graceful_end() {
    let mut server = new_server();
    feed(&mut server, &[&Wire::client().post(1).0]);
    let mut out = Vec::new();
    server.shutdown(&mut out);
    server.shutdown(&mut out);
    assert_eq!(
        feed(&mut server, &[&Wire::default().post(3).0])
            .events
            .len(),
        1
    );
    server.goaway(Code::NO_ERROR, &mut out);
    assert_eq!(
        answers(&out),
        ["goaway 2147483647 NO_ERROR", "goaway 3 NO_ERROR"]
    );
    let wire = Wire::default()
        .post(5)
        .data(5, 0, b"abc")
        .credit(5, 1)
        .reset(5, Code::CANCEL)
        .data(1, flag::END_STREAM, b"end");
    let told = feed(&mut server, &[&wire.0]);
    assert_fine(&told);
    assert_eq!(told.events, ["data 1 end$"]);
    assert_eq!(server.stream_count(), 2);
}

#[test]
fn a_server_that_goes_away() {
    let goaway = |last: u8| [0, 0, 0, last, 0, 0, 0, 0, b'b', b'y', b'e'];
    let wire = Wire::server()
        .frame(kind::GOAWAY, 0, 0, &goaway(5))
        .headers(1, flag::END_STREAM, &[(":status", "204")])
        .frame(kind::GOAWAY, 0, 0, &goaway(3))
        .headers(3, 0, &[(":status", "200")]);
    let told = client(&["GET", "GET", "GET", "GET"], &wire);
    assert_fine(&told);
    assert_eq!(
        told.events,
        [
            "goaway 5 NO_ERROR",
            "reset 7 REFUSED_STREAM",
            "head 1 None  end HTTP/1.1 204 ||",
            "goaway 3 NO_ERROR",
            "reset 5 REFUSED_STREAM",
            "head 3 Chunked  HTTP/1.1 200 ||",
        ]
    );
    let mut client = new_client(&["GET"]);
    feed(
        &mut client,
        &[&Wire::server().frame(kind::GOAWAY, 0, 0, &goaway(1)).0],
    );
    assert!(!client.can_open() && client.got_goaway());
}

#[test]
fn a_client_keeps_to_the_servers_limit() {
    let mut client = new_client(&["GET"]);
    assert_eq!(client.room_for_streams(), 4);
    feed(
        &mut client,
        &[&Wire::server()
            .settings(&[(setting::MAX_CONCURRENT_STREAMS, 1)])
            .0],
    );
    assert!(!client.can_open());
    let head = Head::default();
    let mut out = Vec::new();
    assert_eq!(
        client.send_request(&head, Scheme::Http, 0, true, &mut out),
        None
    );
    feed(
        &mut client,
        &[&Wire::default()
            .headers(1, flag::END_STREAM, &[(":status", "200")])
            .0],
    );
    assert!(client.can_open());
}

#[test]
fn pings() {
    let mut client = new_client(&[]);
    let mut out = Vec::new();
    client.ping(7, &mut out);
    assert_eq!(answers(&out), ["ping 0 7"]);
    let wire = Wire::server().frame(kind::PING, flag::ACK, 0, &7u64.to_be_bytes());
    assert_eq!(feed(&mut client, &[&wire.0]).events, ["pong 7"]);
}

#[test]
fn an_error_stays() {
    let mut server = new_server();
    let told = feed(&mut server, &[&Wire::client().get(2).0]);
    assert_ends(&told, Code::PROTOCOL_ERROR);
    let mut out = Vec::new();
    assert!(server.read(b"", 0, &mut Head::default(), &mut out).is_err());
    server.goaway(Code::NO_ERROR, &mut out);
    assert!(out.is_empty());
}
