//! What may be on its way: rooms of streams and of the connection, credits, numbers of streams.

use super::*;

/// A server with so many requests, each with the head of its response sent.
fn answering(requests: u32) -> (Connection, Vec<u8>) {
    let mut server = new_server();
    let wire = (0..requests).fold(Wire::client(), |wire, id| wire.get(4 * u64::from(id)));
    feed(&mut server, &[&wire.0]);
    let (mut head, mut out) = (Head::default(), Vec::new());
    head.set_status(200, b"");
    for id in 0..requests {
        assert_eq!(server.data_room(StreamId(id)), 0, "no head yet");
        assert!(!server.send_data_head(StreamId(id), 1, false, &mut out));
        assert!(server.send_response(StreamId(id), &head, false, &mut out));
        assert!(!server.send_response(StreamId(id), &head, false, &mut out));
    }
    (server, out)
}

/// Sends as much as there is room for, and returns how much of records that was.
fn fill(server: &mut Connection, id: StreamId) -> u64 {
    let mut sent = 0;
    loop {
        let room = server.data_room(id);
        if room == 0 {
            return sent;
        }
        let mut out = Vec::new();
        assert!(!server.send_data_head(id, room + 1, false, &mut out));
        assert!(out.is_empty());
        assert!(server.send_data_head(id, room, false, &mut out));
        assert!(out.len() <= DATA_HEAD_BYTES_MAX);
        out.resize(out.len() + room, b'.');
        let (record, used) = Record::read(&out).expect("legal").expect("whole");
        assert_eq!((used, record.head.end), (out.len(), false));
        sent += record.payload.len() as u64;
    }
}

#[test]
fn the_room_of_a_stream() {
    let (mut server, _) = answering(2);
    let (id, other) = (StreamId(0), StreamId(1));
    let sent = fill(&mut server, id);
    assert!((STREAM_ROOM_BYTES - 10..STREAM_ROOM_BYTES + 10).contains(&sent));
    assert!(server.has_connection_room() && server.data_room(other) > 0);
    // What was beyond the room comes first.
    let told = feed(
        &mut server,
        &[&Wire::default().written(0, 1).written(4, 100).0],
    );
    assert!(told.events.is_empty(), "{told:?}");
    let told = feed(
        &mut server,
        &[&Wire::default().written(0, 1000).written(0, 1000).0],
    );
    assert_eq!(told.events, ["window 0"]);
    let room = server.data_room(id);
    assert!((1900..2000).contains(&room), "{room}");
    // More than was sent does not count.
    feed(
        &mut server,
        &[&Wire::default()
            .written(0, u64::MAX)
            .written(96, 5)
            .written(3, 5)
            .0],
    );
    assert!((STREAM_ROOM_BYTES..STREAM_ROOM_BYTES + 5).contains(&fill(&mut server, id)));
}

#[test]
fn the_room_of_the_connection() {
    let limits = Limits {
        streams_max: 20,
        ..limits()
    };
    let mut server = Connection::server(limits, &mut Vec::new());
    let wire = (0..12).fold(Wire::client(), |wire, id| wire.get(4 * id));
    feed(&mut server, &[&wire.0]);
    let mut head = Head::default();
    head.set_status(200, b"");
    let mut sent = 0;
    for id in (0..12).map(StreamId) {
        assert!(server.send_response(id, &head, false, &mut Vec::new()));
        sent += fill(&mut server, id);
    }
    assert!((CONNECTION_ROOM_BYTES - 500..CONNECTION_ROOM_BYTES + 10).contains(&sent));
    assert!(!server.has_connection_room());
    // Trailers and ends need no room.
    let mut out = Vec::new();
    let mut trailers = Head::default();
    trailers.append(b"a", b"b");
    assert!(server.send_trailers(StreamId(11), &trailers, &mut out) && !out.is_empty());
    let written = Wire::default()
        .written(record::CONNECTION, 10_000)
        .written(0, 10_000);
    let told = feed(&mut server, &[&written.0]);
    assert_eq!(told.events, ["windows", "window 0"]);
    assert!(server.has_connection_room());
    assert!((9000..10_000).contains(&server.data_room(StreamId(0))));
}

#[test]
fn ends_of_messages() {
    let (mut server, _) = answering(3);
    let said = |call: &mut dyn FnMut(&mut Vec<u8>) -> bool| {
        let (mut out, mut told) = (Vec::new(), Told::default());
        assert!(call(&mut out));
        answers(&out, &mut told, &mut Vec::new());
        told.answers
    };
    let mut out = Vec::new();
    assert!(server.send_data_head(StreamId(0), 3, true, &mut out));
    out.extend_from_slice(b"abc");
    let mut told = Told::default();
    answers(&out, &mut told, &mut Vec::new());
    assert_eq!(told.answers, ["data 0 [00, 03, 61, 62, 63]$"]);
    assert!(!server.send_data_head(StreamId(0), 0, true, &mut out));
    let end = said(&mut |out| server.send_data_head(StreamId(1), 0, true, out));
    assert_eq!(end, ["fin 4"]);
    let end = said(&mut |out| server.send_trailers(StreamId(2), &Head::default(), out));
    assert_eq!(end, ["fin 8"]);
    assert!(server.is_idle());
    server.release_spare();
}

#[test]
fn requests_that_a_client_may_send() {
    let mut out = Vec::new();
    let mut client = Connection::client(limits(), &mut out);
    assert!(!client.can_open());
    let mut streams = Vec::new();
    record::streams(2, &mut streams);
    feed(&mut client, &[&streams]);
    assert_eq!(client.room_for_streams(), 2);
    let mut head = Head::default();
    assert!(head.set_method(b"GET"));
    head.set_target(b"/");
    for id in [0, 1] {
        let sent = client.send_request(&head, Scheme::Http, id, true, &mut out);
        assert_eq!(sent, Some(StreamId(id)));
    }
    assert_eq!(
        client.send_request(&head, Scheme::Http, 2, true, &mut out),
        None
    );
    let mut records = Vec::new();
    record::streams(1, &mut records);
    record::streams(100, &mut records);
    let told = client.read(&records, 0, &mut head, &mut out);
    assert_eq!(told, Ok((records.len(), Event::Settings)));
    assert!(!client.has_settings());
    assert_eq!(client.room_for_streams(), 3, "five at a time");
}
