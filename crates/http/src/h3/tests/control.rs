//! RFC 9114 §6.2, §7.2: unidirectional streams and the frames of control streams.

use super::*;

/// The end with this code for these bytes of a client's control stream.
fn ends(bytes: &[u8], expected: u64) {
    let wire = Wire::default().data(CONTROL, bytes);
    assert_ends(&server(&wire), expected);
}

/// The same of a server's.
fn client_ends(bytes: &[u8], expected: u64) {
    let wire = Wire::default().data(CONTROL_OF_SERVER, bytes);
    assert_ends(&client(&[], &wire), expected);
}

/// A control stream with empty settings, and a frame.
fn then(kind: u64, payload: &[u8]) -> Vec<u8> {
    [control(&[]), frame_of(kind, payload)].concat()
}

#[test]
fn what_is_sent_first() {
    let mut out = Vec::new();
    let _ = Connection::server(limits(), &mut out);
    let mut told = Told::default();
    answers(&out, &mut told, &mut Vec::new());
    assert!(told.answers[0].starts_with("data 3 [00, 04, "), "{told:?}");
    assert_eq!(told.answers[1..], ["data 7 [02]", "data 11 [03]"]);
    out.clear();
    let _ = Connection::client(limits(), &mut out);
    let mut told = Told::default();
    answers(&out, &mut told, &mut Vec::new());
    assert!(told.answers[0].starts_with("data 2 [00, 04, "), "{told:?}");
    assert_eq!(told.answers[1..], ["data 6 [02]", "data 10 [03]"]);
}

#[test]
fn settings() {
    let wire = Wire::default().data(
        CONTROL,
        &control(&[
            (setting::MAX_FIELD_SECTION_SIZE, 1 << 40),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
            (setting::H3_DATAGRAM, 0),
            (setting::GREASE, 77),
            (0x1234_5678, 1 << 61),
        ]),
    );
    let mut connection = new_server();
    assert!(!connection.has_settings());
    assert_fine(&feed(&mut connection, &[&wire.0]));
    assert!(connection.has_settings() && connection.takes_extended_connect());
    assert_fine(&server(&wire.get(0)));
    // Requests may come before them.
    assert_fine(&server(&Wire::default().get(0)));

    for settings in [
        &[(0, 0)][..],
        &[(2, 0)],
        &[(3, 100)],
        &[(4, 65535)],
        &[(5, 16384)],
        &[(setting::ENABLE_CONNECT_PROTOCOL, 2)],
        &[(setting::H3_DATAGRAM, 2)],
        &[
            (setting::QPACK_BLOCKED_STREAMS, 1),
            (setting::QPACK_BLOCKED_STREAMS, 1),
        ],
    ] {
        ends(&control(settings), code::SETTINGS_ERROR);
        client_ends(&control(settings), code::SETTINGS_ERROR);
    }
    ends(&[0, 4, 1, 6], code::FRAME_ERROR);
    ends(&[0, 4, 2, 6, 0x40], code::FRAME_ERROR);
    ends(&[0, 4, 0x60, 0], code::EXCESSIVE_LOAD);
    ends(&then(kind::SETTINGS, &[]), code::FRAME_UNEXPECTED);
    for kind in [
        kind::GOAWAY,
        kind::MAX_PUSH_ID,
        0x21,
        kind::DATA,
        kind::HEADERS,
    ] {
        let bytes = [vec![0], frame_of(kind, &[0])].concat();
        ends(&bytes, code::MISSING_SETTINGS);
        client_ends(&bytes, code::MISSING_SETTINGS);
    }
}

#[test]
fn frames_of_a_control_stream() {
    for kind in [kind::DATA, kind::HEADERS, kind::PUSH_PROMISE, 2, 6, 8, 9] {
        ends(&then(kind, &[0]), code::FRAME_UNEXPECTED);
        client_ends(&then(kind, &[0]), code::FRAME_UNEXPECTED);
    }
    for kind in [
        kind::MAX_PUSH_ID,
        kind::PRIORITY_UPDATE,
        kind::PRIORITY_UPDATE_PUSH,
    ] {
        client_ends(&then(kind, &[0]), code::FRAME_UNEXPECTED);
    }
    for kind in [kind::GOAWAY, kind::MAX_PUSH_ID, kind::CANCEL_PUSH] {
        for payload in [&[][..], &[0x40], &[0, 0], &[0; 9]] {
            ends(&then(kind, payload), code::FRAME_ERROR);
        }
    }
    // There are no pushes.
    ends(&then(kind::CANCEL_PUSH, &[0]), code::ID_ERROR);
    client_ends(&then(kind::CANCEL_PUSH, &[0]), code::ID_ERROR);
    ends(&then(kind::PRIORITY_UPDATE_PUSH, &[0]), code::ID_ERROR);
    let again = |kind: u64, first: u8, second: u8| {
        [then(kind, &[first]), frame_of(kind, &[second])].concat()
    };
    ends(&again(kind::MAX_PUSH_ID, 5, 4), code::ID_ERROR);
    ends(&again(kind::GOAWAY, 4, 5), code::ID_ERROR);
    client_ends(&again(kind::GOAWAY, 4, 8), code::ID_ERROR);
    client_ends(&then(kind::GOAWAY, &[5]), code::ID_ERROR);
    for bytes in [
        again(kind::MAX_PUSH_ID, 5, 5),
        again(kind::GOAWAY, 5, 3),
        then(0x21, &[0xaa; 20000]),
        then(kind::PRIORITY_UPDATE, &[0xaa; 5000]),
        then(0x21, &[]),
    ] {
        let told = server(&Wire::default().data(CONTROL, &bytes).get(0));
        assert_fine(&told);
        assert!(
            told.events
                .last()
                .is_some_and(|event| event.starts_with("head 0"))
        );
    }
}

/// RFC 9218 §7.2.
#[test]
fn priorities() {
    let update = |stream: u8, value: &str| {
        frame_of(
            kind::PRIORITY_UPDATE,
            &[&[stream][..], value.as_bytes()].concat(),
        )
    };
    let urgent = [GET, &[("priority", "u=1, i")]].concat();
    let wire = Wire::client()
        .all(0, &urgent)
        .get(4)
        .data(CONTROL, &update(4, "u=5"))
        .data(CONTROL, &update(12, "u=5"));
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(told.answers, ["priority 0 2", "priority 4 -2"]);
    ends(&[control(&[]), update(2, "u=5")].concat(), code::ID_ERROR);
    ends(&then(kind::PRIORITY_UPDATE, &[]), code::FRAME_ERROR);
}

#[test]
fn unidirectional_streams() {
    // The types of critical streams, each once.
    for (stream, kind) in [(14, 0), (14, 2), (14, 3)] {
        let wire = Wire::client()
            .data(ENCODER, &[2])
            .data(DECODER, &[3])
            .data(stream, &[kind]);
        assert_ends(&server(&wire), code::STREAM_CREATION_ERROR);
    }
    for (stream, kind) in [(ENCODER, 2), (DECODER, 3)] {
        let wire = Wire::client().data(stream, &[kind]);
        assert_ends(
            &server(&wire.clone().fin(stream)),
            code::CLOSED_CRITICAL_STREAM,
        );
        assert_ends(
            &server(&wire.reset(stream, 0)),
            code::CLOSED_CRITICAL_STREAM,
        );
    }
    for wire in [
        Wire::client().fin(CONTROL),
        Wire::client().reset(CONTROL, 0),
        Wire::default().last(CONTROL, &control(&[])),
        Wire::client().stopped(3, 0),
        Wire::client().stopped(7, 0),
        Wire::client().stopped(11, 0),
    ] {
        assert_ends(&server(&wire), code::CLOSED_CRITICAL_STREAM);
    }
    // Pushes.
    assert_ends(
        &server(&Wire::client().data(14, &[1])),
        code::STREAM_CREATION_ERROR,
    );
    assert_ends(
        &client(&[], &Wire::server().data(15, &[1, 0])),
        code::ID_ERROR,
    );
    // Unknown types; a type that is not complete.
    let wire = Wire::client()
        .data(14, &[0x21])
        .data(14, &[7; 5000])
        .data(18, &[0xc0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78, 1, 2])
        .fin(18)
        .data(22, &[0xc0])
        .fin(22)
        .data(26, &[0x40])
        .reset(26, 0)
        .fin(30)
        .reset(14, 0)
        .get(0);
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(told.answers, ["stop 14 103", "stop 18 103"]);
    assert_eq!(told.events.len(), 1);
    // The types of critical streams in other forms.
    let long = [&[0xc0, 0, 0, 0, 0, 0, 0, 0][..], &control(&[])[1..]].concat();
    assert_fine(&server(&Wire::default().data(CONTROL, &long).get(0)));
}
