//! RFC 9113 §5.2, §6.9: windows.

use super::*;

fn open_server(wire: &Wire) -> Connection {
    let mut server = new_server();
    assert_fine(&feed(&mut server, &[&wire.0]));
    server
}

fn respond(server: &mut Connection, stream: u32) {
    let mut head = Head::default();
    head.set_status(200, b"");
    assert!(server.send_response(StreamId(stream), &head, false, &mut Vec::new()));
}

#[test]
fn wrong_credits() {
    let open = || Wire::client().post(1);
    assert_ends(&server(&open().credit(0, 0)), Code::PROTOCOL_ERROR);
    assert_resets(&server(&open().credit(1, 0)), 1, Code::PROTOCOL_ERROR);
    assert_ends(
        &server(&open().credit(0, (1 << 31) - 1)),
        Code::FLOW_CONTROL_ERROR,
    );
    assert_resets(
        &server(&open().credit(1, (1 << 31) - 1)),
        1,
        Code::FLOW_CONTROL_ERROR,
    );
    // A setting that takes the window of a stream beyond its limit (§6.9.2).
    let wire = open()
        .credit(1, 1 << 30)
        .settings(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]);
    assert_ends(&server(&wire), Code::FLOW_CONTROL_ERROR);
}

#[test]
fn windows_are_kept() {
    let wire = Wire::client()
        .settings(&[(setting::INITIAL_WINDOW_SIZE, 3)])
        .get(1);
    let mut server = open_server(&wire);
    let id = StreamId(1);
    let mut out = Vec::new();
    assert_eq!(server.data_room(id), 0, "no head yet");
    respond(&mut server, 1);
    assert_eq!(server.data_room(id), 3);
    assert!(!server.send_data_head(id, 4, false, &mut out));
    assert!(server.send_data_head(id, 3, false, &mut out));
    assert_eq!(out, [0, 0, 3, 0, 0, 0, 0, 0, 1]);
    assert_eq!(server.data_room(id), 0);
    assert_eq!(
        feed(&mut server, &[&Wire::default().credit(1, 2).0]).events,
        ["window 1"]
    );
    assert_eq!(server.data_room(id), 2);
    // §6.9.2: a window may become negative.
    feed(
        &mut server,
        &[&Wire::default()
            .settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])
            .0],
    );
    assert_eq!(server.data_room(id), 0);
    assert!(
        feed(&mut server, &[&Wire::default().credit(1, 1).0])
            .events
            .is_empty()
    );
    assert_eq!(
        feed(&mut server, &[&Wire::default().credit(1, 1).0]).events,
        ["window 1"]
    );
    assert_eq!(server.data_room(id), 1);
    assert!(server.send_data_head(id, 0, true, &mut out));
    assert!(
        !server.send_data_head(id, 0, true, &mut out),
        "the stream is gone"
    );
}

#[test]
fn the_connections_window_is_kept() {
    let big = (setting::INITIAL_WINDOW_SIZE, 1 << 20);
    let mut server = open_server(&Wire::client().settings(&[big]).get(1).get(3));
    let (one, three) = (StreamId(1), StreamId(3));
    respond(&mut server, 1);
    respond(&mut server, 3);
    let (mut sent, mut out) = (0, Vec::new());
    while let room @ 1.. = server.data_room(one) {
        assert!(server.send_data_head(one, room, false, &mut out));
        sent += room;
    }
    assert_eq!((sent, server.data_room(three)), (65535, 0));
    assert!(
        feed(&mut server, &[&Wire::default().credit(3, 9).0])
            .events
            .is_empty()
    );
    assert_eq!(
        feed(&mut server, &[&Wire::default().credit(0, 9).0]).events,
        ["windows"]
    );
    assert_eq!((server.data_room(one), server.data_room(three)), (9, 9));
}

#[test]
fn payload_beyond_a_window() {
    let make = |connection: u32| {
        move || {
            let limits = Limits {
                stream_window_bytes: 65535,
                connection_window_bytes: connection,
                ..limits()
            };
            Connection::server(limits, &mut Vec::new())
        }
    };
    let chunk = [0; 16384];
    let wire = Wire::client().post(1);
    let mut server = make(1 << 20)();
    assert_fine(&feed(&mut server, &[&wire.0]));
    let mut out = Vec::new();
    let mut read = |server: &mut Connection, wire: Wire| {
        let (mut at, mut head) = (0, Head::default());
        loop {
            match server.read(&wire.0[at..], 0, &mut head, &mut out) {
                Ok((_, Event::Reset { code, .. })) => return Some(code),
                Ok((_, Event::More)) => return None,
                Ok((used, _)) => at += used,
                Err(error) => return Some(error.code),
            }
        }
    };
    for _ in 0..3 {
        assert_eq!(read(&mut server, Wire::default().data(1, 0, &chunk)), None);
    }
    let late = Wire::default().data(1, 0, &chunk);
    assert_eq!(
        read(&mut server, late.clone()),
        Some(Code::FLOW_CONTROL_ERROR)
    );
    let mut server = make(65535)();
    assert_fine(&feed(&mut server, &[&Wire::client().post(1).post(3).0]));
    for _ in 0..3 {
        assert_eq!(read(&mut server, Wire::default().data(1, 0, &chunk)), None);
    }
    assert_eq!(
        read(&mut server, Wire::default().data(3, 0, &chunk)),
        Some(Code::FLOW_CONTROL_ERROR)
    );
    assert!(!server.is_idle());
}

/// A body that may not fit in the window of its stream gets a wider one.
#[test]
fn windows_are_widened_for_bodies() {
    let limits = Limits {
        stream_window_bytes: 20_000,
        body_window_bytes: 50_000,
        ..limits()
    };
    let make = || Connection::server(limits, &mut Vec::new());
    let of_length =
        |length| Wire::client().headers(1, 0, &[POST, &[("content-length", length)]].concat());
    let table = [
        (Wire::client().get(1), false),
        (Wire::client().post(1), true),
        (of_length("20000"), false),
        (of_length("20001"), true),
    ];
    for (wire, is_wider) in table {
        let told = outcome(make, &wire);
        assert_fine(&told);
        let expected: &[&str] = if is_wider { &["credit 1 30000"] } else { &[] };
        assert_eq!(told.answers, expected);
    }
    let body = vec![0; 16_000];
    let wire = Wire::client()
        .post(1)
        .data(1, 0, &body)
        .data(1, 0, &body)
        .data(1, flag::END_STREAM, &body);
    assert_eq!(feed(&mut make(), &[&wire.0]).error, None);
}

#[test]
fn credits_are_coalesced() {
    let open_server = |wire: &Wire| {
        let limits = Limits {
            connection_window_bytes: 1 << 20,
            ..limits()
        };
        let mut server = Connection::server(limits, &mut Vec::new());
        feed(&mut server, &[&wire.0]);
        server
    };
    let mut server = open_server(&Wire::client().post(1));
    let mut out = Vec::new();
    let id = StreamId(1);
    for _ in 0..100 {
        server.consumed(id, 1000, &mut out);
    }
    let credits = answers(&out);
    assert_eq!(
        credits,
        ["credit 1 33000", "credit 1 33000", "credit 1 33000"]
    );
    // A body that fits in the window as it is needs none.
    let post = [POST, &[("content-length", "60000")]].concat();
    let mut server = open_server(&Wire::client().headers(1, 0, &post));
    out.clear();
    server.consumed(id, 50000, &mut out);
    assert!(out.is_empty());
}

/// What one stream's recipient does not take stays out of the connection's window. The others go on
/// in the rest of it, however small that is.
#[test]
fn a_stream_that_is_not_consumed_does_not_stop_the_others() {
    let limits = Limits {
        stream_window_bytes: 80_000,
        connection_window_bytes: 100_000,
        ..limits()
    };
    let mut server = Connection::server(limits, &mut Vec::new());
    assert_fine(&feed(&mut server, &[&Wire::client().post(1).post(3).0]));
    let (chunk, mut out) = ([0; 10_000], Vec::new());
    let send = |server: &mut Connection, stream: u32, out: &mut Vec<u8>| {
        let wire = Wire::default().data(stream, 0, &chunk);
        let read = server.read(&wire.0, 0, &mut Head::default(), out);
        assert!(matches!(read, Ok((_, Event::Data { .. }))), "{read:?}");
    };
    for _ in 0..7 {
        send(&mut server, 1, &mut out);
    }
    let credits = |out: &[u8]| -> usize {
        let all = answers(out);
        let ours = all.iter().filter_map(|told| told.strip_prefix("credit 0 "));
        ours.map(|bytes| bytes.parse::<usize>().expect("a number"))
            .sum()
    };
    for nth in 0..30 {
        let window = 30_000 + credits(&out) - nth * chunk.len();
        assert!(window >= chunk.len(), "{nth}: the window is {window}");
        send(&mut server, 3, &mut out);
        server.consumed(StreamId(3), chunk.len(), &mut out);
    }
    // One credit for half of what is left.
    assert!(answers(&out).len() < 40, "{:?}", answers(&out));
}

/// A body that is consumed as it comes gets a window that grows; one that is not keeps its window.
#[test]
fn windows_grow_for_bodies_that_are_consumed() {
    let limits = Limits {
        stream_window_bytes: 65_536,
        body_window_bytes: 100_000,
        grown_window_bytes: 1_000_000,
        connection_window_bytes: 1 << 21,
        streams_max: 5,
        ..Limits::default()
    };
    let mut out = Vec::new();
    let mut server = Connection::server(limits, &mut Vec::new());
    assert_fine(&feed(&mut server, &[&Wire::client().post(1).post(3).0]));
    let id = StreamId(1);
    let credits = |out: &[u8]| -> usize {
        let all = answers(out);
        let ours = all.iter().filter_map(|told| told.strip_prefix("credit 1 "));
        ours.map(|bytes| bytes.parse::<usize>().expect("a number"))
            .sum()
    };
    // Less than half a window at a time: the window does not limit the sender.
    let (mut sent, mut window) = (0, 0);
    for bytes in [[40_000; 10].as_slice(), &[usize::MAX; 30]].concat() {
        window = 100_000 + credits(&out) - sent;
        let bytes = bytes.min(window);
        for chunk in vec![0; bytes].chunks(16_000) {
            let wire = Wire::default().data(1, 0, chunk);
            let read = server.read(&wire.0, 0, &mut Head::default(), &mut out);
            assert!(matches!(read, Ok((used, Event::Data { .. })) if used == wire.0.len()));
        }
        sent += bytes;
        if sent == 400_000 {
            assert!(window <= 100_000, "{window}");
        }
        server.consumed(id, bytes, &mut out);
    }
    assert_eq!(window, 1_000_000);
    assert!(
        answers(&out)
            .iter()
            .all(|told| !told.starts_with("credit 3"))
    );
}
