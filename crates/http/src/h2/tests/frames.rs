//! RFC 9113 §3.4, §4, §5.5, §6: frames and their sizes.

use super::*;

#[test]
fn preface() {
    for bad in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
        b"\x16\x03\x01",
    ] {
        assert_ends(&server(&Wire::default().raw(bad)), Code::PROTOCOL_ERROR);
    }
    let preface = Wire::default().raw(PREFACE);
    // The first frame is SETTINGS, and no acknowledgement.
    assert_ends(&server(&preface.clone().get(1)), Code::PROTOCOL_ERROR);
    let ack = preface.frame(kind::SETTINGS, flag::ACK, 0, b"");
    assert_ends(&server(&ack), Code::PROTOCOL_ERROR);
    assert_ends(
        &client(&[], &Wire::default().credit(0, 1)),
        Code::PROTOCOL_ERROR,
    );
}

#[test]
fn requests_of_every_layout() {
    let block = block(GET);
    let (first, second) = block.split_at(20);
    let padded = [&[3], &block[..], b"\0\0\0"].concat();
    let priority = [&[0, 0, 0, 3, 16], &block[..]].concat();
    let both = [&[2, 0x80, 0, 0, 0, 1], &block[..], b"\0\0"].concat();
    let expected = "head 5 None https end GET / HTTP/1.1|host: a.example||";
    let end = flag::END_STREAM | flag::END_HEADERS;
    for (flags, payload) in [
        (end, &block),
        (end | flag::PADDED, &padded),
        (end | flag::PRIORITY, &priority),
        (end | flag::PADDED | flag::PRIORITY, &both),
        (end | 0xd0 & !flag::PRIORITY & !flag::PADDED, &block),
    ] {
        let wire = Wire::client().frame(kind::HEADERS, flags, 5, payload);
        assert_eq!(server(&wire).events, [expected], "{flags:#x}");
    }
    let wire = Wire::client()
        .frame(kind::HEADERS, flag::END_STREAM, 5, first)
        .frame(kind::CONTINUATION, 0, 5, b"")
        .frame(kind::CONTINUATION, flag::END_HEADERS, 5, second);
    assert_eq!(server(&wire).events, [expected]);
}

#[test]
fn unknown_frames_and_flags_are_ignored() {
    let wire = Wire::client()
        .frame(0x16, 0xff, 0, b"12345678")
        .frame(0xff, 0xff, 9, b"")
        .frame(kind::PING, 0xfe, 0, &[0, 0, 0, 0, 0, 0, 0, 7])
        .settings(&[(99, 1), (0, u32::MAX)])
        .raw(&[0, 0, 0, 4, 1, 0x80, 0, 0, 0])
        .get(1);
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(
        (told.events.len(), &told.answers[..]),
        (1, &["ping 1 7".to_owned()][..])
    );
    // But not within a header block.
    let within = Wire::client()
        .frame(kind::HEADERS, 0, 1, b"")
        .frame(0x16, 0, 1, b"");
    assert_ends(&server(&within), Code::PROTOCOL_ERROR);
}

#[test]
fn sizes() {
    let end = flag::END_HEADERS;
    #[rustfmt::skip]
    let table: &[(u8, u8, u32, &[u8], Code)] = &[
        (kind::DATA,          0,              1, &[0; 16385], Code::FRAME_SIZE_ERROR), // §4.2
        (kind::HEADERS,       end,            1, &[0; 16385], Code::FRAME_SIZE_ERROR),
        (kind::HEADERS,       end | flag::PADDED, 1, b"",     Code::FRAME_SIZE_ERROR),
        (kind::HEADERS,       end | flag::PRIORITY, 1, b"\0\0\0\x05", Code::FRAME_SIZE_ERROR),
        (kind::PRIORITY,      0,              1, b"1234",     Code::FRAME_SIZE_ERROR), // §6.3
        (kind::RST_STREAM,    0,              1, b"123",      Code::FRAME_SIZE_ERROR), // §6.4
        (kind::RST_STREAM,    0,              1, b"12345",    Code::FRAME_SIZE_ERROR),
        (kind::SETTINGS,      0,              0, b"123",      Code::FRAME_SIZE_ERROR), // §6.5
        (kind::SETTINGS,      flag::ACK,      0, b"123456",   Code::FRAME_SIZE_ERROR),
        (kind::PING,          0,              0, b"1234567",  Code::FRAME_SIZE_ERROR), // §6.7
        (kind::PING,          0,              0, b"123456789", Code::FRAME_SIZE_ERROR),
        (kind::GOAWAY,        0,              0, b"1234567",  Code::FRAME_SIZE_ERROR), // §6.8
        (kind::WINDOW_UPDATE, 0,              0, b"123",      Code::FRAME_SIZE_ERROR), // §6.9
        (kind::WINDOW_UPDATE, 0,              1, b"12345",    Code::FRAME_SIZE_ERROR),
        (kind::DATA,          flag::PADDED,   1, b"",         Code::FRAME_SIZE_ERROR), // §6.1
        (kind::DATA,          flag::PADDED,   1, b"\x04abc",  Code::PROTOCOL_ERROR),
        (kind::HEADERS,       end | flag::PADDED, 3, b"\x04abc", Code::PROTOCOL_ERROR), // §6.2
        (kind::DATA,          0,              0, b"a",        Code::PROTOCOL_ERROR),
        (kind::HEADERS,       end,            0, b"",         Code::PROTOCOL_ERROR),
        (kind::PRIORITY,      0,              0, b"12345",    Code::PROTOCOL_ERROR),
        (kind::RST_STREAM,    0,              0, b"1234",     Code::PROTOCOL_ERROR),
        (kind::SETTINGS,      0,              1, b"",         Code::PROTOCOL_ERROR),
        (kind::PUSH_PROMISE,  end,            1, b"\0\0\0\x02", Code::PROTOCOL_ERROR), // §6.6
        (kind::PING,          0,              1, b"12345678", Code::PROTOCOL_ERROR),
        (kind::GOAWAY,        0,              1, b"12345678", Code::PROTOCOL_ERROR),
        (kind::CONTINUATION,  end,            0, b"",         Code::PROTOCOL_ERROR), // §6.10
        (kind::CONTINUATION,  end,            1, b"",         Code::PROTOCOL_ERROR),
        (kind::PRIORITY,      0,              7, b"\0\0\0\x07\0", Code::PROTOCOL_ERROR), // RFC 7540 §5.3.1
        (kind::HEADERS,       end | flag::PRIORITY, 7, b"\x80\0\0\x07\0", Code::PROTOCOL_ERROR),
    ];
    for (kind, flags, stream, payload, code) in table {
        let wire = Wire::client()
            .post(1)
            .frame(*kind, *flags, *stream, payload);
        let told = outcome(
            || {
                let small = Limits {
                    stream_window_bytes: 1 << 20,
                    ..limits()
                };
                Connection::server(small, &mut Vec::new())
            },
            &wire,
        );
        assert_ends(&told, *code);
    }
}

#[test]
fn a_frame_too_large_is_refused_before_it_comes() {
    let wire = Wire::client().raw(&[0, 0x40, 1, kind::HEADERS, 4, 0, 0, 0, 1]);
    assert_ends(&server(&wire), Code::FRAME_SIZE_ERROR);
}

#[test]
fn settings() {
    #[rustfmt::skip]
    let table = [
        (setting::ENABLE_PUSH,             2,       Code::PROTOCOL_ERROR), // §6.5.2
        (setting::INITIAL_WINDOW_SIZE,     1 << 31, Code::FLOW_CONTROL_ERROR),
        (setting::MAX_FRAME_SIZE,          16383,   Code::PROTOCOL_ERROR),
        (setting::MAX_FRAME_SIZE,          1 << 24, Code::PROTOCOL_ERROR),
        (setting::ENABLE_CONNECT_PROTOCOL, 2,       Code::PROTOCOL_ERROR),
    ];
    for (id, value, code) in table {
        assert_ends(&server(&Wire::client().settings(&[(id, value)])), code);
    }
    let twice = [
        (setting::ENABLE_CONNECT_PROTOCOL, 1),
        (setting::ENABLE_CONNECT_PROTOCOL, 0),
    ];
    assert_ends(
        &client(&[], &Wire::server().settings(&twice)),
        Code::PROTOCOL_ERROR,
    );
    let push = [(setting::ENABLE_PUSH, 1)];
    assert_ends(
        &client(&[], &Wire::server().settings(&push)),
        Code::PROTOCOL_ERROR,
    );
    assert_fine(&server(&Wire::client().settings(&push)));
    // Each is acknowledged; the last value of a setting holds.
    let mut server = new_server();
    let mut out = Vec::new();
    let wire = Wire::client().settings(&[
        (setting::MAX_FRAME_SIZE, 20000),
        (setting::MAX_FRAME_SIZE, 30000),
    ]);
    let mut at = 0;
    while at < wire.0.len() {
        let (used, event) = server
            .read(&wire.0[at..], 0, &mut Head::default(), &mut out)
            .expect("legal");
        assert_eq!(event, Event::Settings);
        at += used;
    }
    let wire = Wire::default().get(1).credit(0, 1 << 20).credit(1, 1 << 20);
    assert_fine(&feed(&mut server, &[&wire.0]));
    let mut head = Head::default();
    head.set_status(200, b"");
    assert!(server.send_response(StreamId(1), &head, false, &mut Vec::new()));
    assert_eq!(server.data_room(StreamId(1)), 30000);
    let ack = [0, 0, 0, kind::SETTINGS, flag::ACK, 0, 0, 0, 0];
    assert_eq!(out, [ack, ack].concat());
}

#[test]
fn our_settings_and_windows_are_told() {
    let mut out = Vec::new();
    let limits = Limits {
        table_bytes: 0,
        connection_window_bytes: 100_000,
        ..limits()
    };
    let mut server = Connection::server(limits, &mut out);
    assert_eq!(out[..9], [0, 0, 30, kind::SETTINGS, 0, 0, 0, 0, 0]);
    let entries = out[9..39]
        .chunks(6)
        .map(|entry| (entry[1], frame::number(&entry[2..])));
    assert_eq!(
        entries.collect::<Vec<_>>(),
        [(3, 5), (8, 1), (1, 0), (4, 65536), (6, 2000)]
    );
    assert_eq!(out.len(), 39);
    // The window is opened behind the first acknowledgement, and once.
    let told = feed(&mut server, &[&Wire::client().settings(&[]).0]);
    assert_eq!(told.answers, ["credit 0 34465"]);
}
