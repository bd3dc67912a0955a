//! What a peer may not cost (RFC 9113 §10.5).

use super::*;

fn times(count: usize, more: impl Fn(Wire) -> Wire) -> Wire {
    (0..count).fold(Wire::client(), |wire, _| more(wire))
}

#[test]
fn frames_that_do_no_work() {
    for more in [
        (|wire: Wire| wire.frame(kind::PING, 0, 0, &[0; 8])) as fn(Wire) -> Wire,
        |wire| wire.settings(&[]),
        |wire| wire.frame(kind::PRIORITY, 0, 9, b"\0\0\0\x05\0"),
        |wire| wire.credit(0, 1),
        |wire| wire.frame(0x99, 0, 0, b""),
    ] {
        assert_fine(&server(&times(20, more)));
        assert_ends(&server(&times(21, more)), Code::ENHANCE_YOUR_CALM);
    }
    let empty = (0..21).fold(Wire::client().post(1), |wire, _| wire.data(1, 0, b""));
    // The request itself is work, but does not count before there is anything.
    assert_ends(&server(&empty), Code::ENHANCE_YOUR_CALM);
    // Work pays for them.
    let mixed = (0..50).fold(Wire::client().post(1), |wire, _| {
        wire.frame(kind::PING, 0, 0, &[0; 8]).data(1, 0, b"a")
    });
    assert_fine(&server(&mixed));
}

/// Peers that credit each frame of a response in small pieces, on its stream and on the connection,
/// do what they should.
#[test]
fn credits_for_small_frames_are_no_attack() {
    let mut server = new_server();
    assert_fine(&feed(&mut server, &[&Wire::client().get(1).0]));
    let mut head = Head::default();
    head.set_status(200, b"");
    let (stream, mut out) = (StreamId(1), Vec::new());
    assert!(server.send_response(stream, &head, false, &mut out));
    for _ in 0..50 {
        for _ in 0..30 {
            assert!(server.send_data_head(stream, 10, false, &mut out));
        }
        let credits = (0..30).fold(Wire::default(), |wire, _| wire.credit(1, 10).credit(0, 10));
        assert_fine(&feed(&mut server, &[&credits.0]));
    }
    // More credits than frames are.
    let more = (0..21).fold(Wire::default(), |wire, _| wire.credit(1, 1));
    assert_ends(&feed(&mut server, &[&more.0]), Code::ENHANCE_YOUR_CALM);
}

/// Peers with a small window, and those that credit a large frame in pieces, do what they may.
#[test]
fn small_windows_and_credits_in_pieces_are_no_attack() {
    for (window, piece) in [(200, 200), (1000, 1000), (16_000, 100)] {
        let mut server = new_server();
        let small = Wire::client().settings(&[(setting::INITIAL_WINDOW_SIZE, window)]);
        assert_fine(&feed(&mut server, &[&small.get(1).0]));
        let mut head = Head::default();
        head.set_status(200, b"");
        let (stream, mut out) = (StreamId(1), Vec::new());
        assert!(server.send_response(stream, &head, false, &mut out));
        for _ in 0..100 {
            assert!(server.send_data_head(stream, window as usize, false, &mut out));
            let credits = (0..window / piece).fold(Wire::default(), |wire, _| {
                wire.credit(1, piece).credit(0, piece)
            });
            assert_fine(&feed(&mut server, &[&credits.0]));
        }
    }
}

/// A peer whose credits are so small that each frame carries a byte is one.
#[test]
fn a_window_of_a_byte_earns_nothing() {
    let mut server = new_server();
    let small = Wire::client().settings(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    assert_fine(&feed(&mut server, &[&small.get(1).0]));
    let mut head = Head::default();
    head.set_status(200, b"");
    let (stream, mut out) = (StreamId(1), Vec::new());
    assert!(server.send_response(stream, &head, false, &mut out));
    let ended = (0..100).any(|_| {
        let told = feed(&mut server, &[&Wire::default().credit(1, 1).credit(0, 1).0]);
        server.send_data_head(stream, 1, false, &mut out);
        told.error.is_some()
    });
    assert!(ended);
}

/// CVE-2023-44487, and CVE-2025-8671, which has the server reset the streams.
#[test]
fn rapid_resets() {
    let resets = |count: u32, provoke: bool| {
        (0..count).fold(Wire::client(), |wire, nth| {
            if provoke {
                wire.post(2 * nth + 1)
                    .data(2 * nth + 1, 0, b"")
                    .credit(2 * nth + 1, 0)
            } else {
                wire.post(2 * nth + 1).reset(2 * nth + 1, Code::CANCEL)
            }
        })
    };
    let roomy = || {
        let limits = Limits {
            idle_frames_max: 1000,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    for provoke in [false, true] {
        assert_eq!(outcome(roomy, &resets(10, provoke)).error, None);
        assert_ends(
            &outcome(roomy, &resets(11, provoke)),
            Code::ENHANCE_YOUR_CALM,
        );
    }
}

/// Hours of a connection whose peer pings and cancels at a rate that is no attack.
#[test]
fn age_is_no_attack() {
    const HOURS: u64 = 24;
    let ping = |wire: Wire| wire.frame(kind::PING, 0, 0, &[0; 8]);
    let mut server = new_server();
    assert_fine(&feed(&mut server, &[&Wire::client().0]));
    for second in 0..HOURS * 3600 {
        let id = 2 * second as u32 + 1;
        let wire = ping(Wire::default()).post(id).reset(id, Code::CANCEL);
        assert_fine(&feed_at(second * 1000, &mut server, &[&wire.0]));
    }
    let mut client = Connection::client(limits(), &mut Vec::new());
    assert_fine(&feed(&mut client, &[&Wire::default().settings(&[]).0]));
    for second in 0..HOURS * 360 {
        let wire = ping(Wire::default());
        assert_fine(&feed_at(second * 10_000, &mut client, &[&wire.0]));
    }
    // The same within a moment is one.
    let burst = times(21, ping);
    let end_ms = HOURS * 3_600_000;
    let told = feed_at(end_ms, &mut server, &[&burst.0[Wire::client().0.len()..]]);
    assert_ends(&told, Code::ENHANCE_YOUR_CALM);
}

#[test]
fn header_blocks_have_an_end() {
    let end = flag::END_STREAM;
    let many = (0..6).fold(
        Wire::client().frame(kind::HEADERS, end, 1, b""),
        |wire, _| wire.frame(kind::CONTINUATION, 0, 1, b""),
    );
    assert_ends(&server(&many), Code::ENHANCE_YOUR_CALM);
    let large = Wire::client()
        .frame(kind::HEADERS, end, 1, &[0x82; 2000])
        .frame(kind::CONTINUATION, 0, 1, &[0x82; 2001]);
    assert_ends(&server(&large), Code::ENHANCE_YOUR_CALM);
    assert_ends(
        &server(&Wire::client().frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x82; 4001])),
        Code::ENHANCE_YOUR_CALM,
    );
    let bad = Wire::client().frame(kind::HEADERS, flag::END_HEADERS | end, 1, &[0x80]);
    assert_ends(&server(&bad), Code::COMPRESSION_ERROR);
}

/// A field of a table by index is one byte that costs as much as the field.
#[test]
fn large_heads_are_refused_and_cost_no_memory() {
    let mut block = block(GET);
    block.extend([0x40, 1, b'x', 127, 0x81, 0x06]);
    block.extend([b'a'; 896]);
    block.extend([0xbe; 3000]);
    let wire = Wire::client()
        .frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            1,
            &block,
        )
        .get(3);
    let told = server(&wire);
    assert_too_large(&told);
    assert!(told.events[1].starts_with("head 3"));
    let mut head = Head::default();
    let mut server = new_server();
    let mut at = 0;
    while let Ok((used, event)) = server.read(&wire.0[at..], 0, &mut head, &mut Vec::new())
        && event != Event::More
    {
        at += used;
    }
    assert!(head.buf.capacity() < 8000, "{}", head.buf.capacity());

    let fields: Vec<(&str, &str)> = (0..21).map(|_| ("a", "b")).collect();
    let wire = Wire::client().headers(1, flag::END_STREAM, &[GET, &fields].concat());
    assert_too_large(&super::server(&wire));
}

/// The first request is answered with 431, and its stream ends.
fn assert_too_large(told: &Told) {
    assert!(
        told.events[0].starts_with("refused 1 ENHANCE_YOUR_CALM"),
        "{told:?}"
    );
    assert!(told.answers[0].starts_with("frame 1 5 1 "), "{told:?}");
    assert!(
        !told
            .answers
            .iter()
            .any(|answer| answer.starts_with("reset")),
        "{told:?}"
    );
}

#[test]
fn glitches_can_be_limited() {
    let make = || {
        let limits = Limits {
            glitches_max: 3,
            ..limits()
        };
        Connection::server(limits, &mut Vec::new())
    };
    let wire = |count: u32| {
        (0..count).fold(Wire::client(), |wire, nth| {
            wire.headers(2 * nth + 1, 0, &[("a", "b")])
        })
    };
    assert_eq!(outcome(make, &wire(2)).error, None);
    assert_ends(&outcome(make, &wire(3)), Code::ENHANCE_YOUR_CALM);
    let make_sparing = || {
        let mut server = make();
        server.set_glitch_kill(false);
        server
    };
    assert_eq!(outcome(make_sparing, &wire(9)).error, None);
}

#[test]
fn an_idle_connection_is_small() {
    let mut server = new_server();
    let told = feed(&mut server, &[&Wire::client().get(1).get(3).0]);
    assert_fine(&told);
    let mut head = Head::default();
    head.set_status(200, b"");
    head.append(b"server", b"s");
    for stream in [1, 3] {
        assert!(server.send_response(StreamId(stream), &head, true, &mut Vec::new()));
    }
    server.release_spare();
    assert!(server.is_idle());
    assert!(
        size_of::<Connection>() <= 512,
        "{}",
        size_of::<Connection>()
    );
}
