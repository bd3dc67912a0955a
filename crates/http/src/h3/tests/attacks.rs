//! What a peer may not cost (RFC 9114 §10.5, RFC 9204 §7.3).

use super::*;

fn times(count: u64, more: impl Fn(Wire, u64) -> Wire) -> Wire {
    (0..count).fold(Wire::client(), more)
}

#[test]
fn frames_that_do_no_work() {
    for more in [
        (|wire: Wire, _| wire.frame(CONTROL, 0x21, b"")) as fn(Wire, u64) -> Wire,
        |wire, _| wire.frame(CONTROL, kind::GOAWAY, &[0]),
        |wire, _| wire.frame(CONTROL, kind::MAX_PUSH_ID, &[5]),
        |wire, _| wire.frame(CONTROL, kind::PRIORITY_UPDATE, &[0]),
        |wire, nth| wire.last(14 + 4 * nth, &[0x21]),
        |wire, nth| wire.fin(14 + 4 * nth),
        |wire, _| wire.frame(0, 0x21, b""),
    ] {
        let told = server(&times(20, more));
        assert_eq!(told.error, None, "{told:?}");
        assert_ends(&server(&times(21, more)), code::EXCESSIVE_LOAD);
    }
    let empty = (0..22).fold(Wire::client().post(0), |wire, _| wire.body(0, b""));
    assert_ends(&server(&empty), code::EXCESSIVE_LOAD);
    let insert = [2, 0x3f, 0xe1, 0x1f, 0x41, b'x', 1, b'1'];
    let twice = (0..21).fold(Wire::client().data(ENCODER, &insert), |wire, _| {
        wire.data(ENCODER, &[0])
    });
    assert_ends(&server(&twice), code::EXCESSIVE_LOAD);
    let mixed = (0..50).fold(Wire::client().post(0), |wire, _| {
        wire.body(0, b"").body(0, b"a")
    });
    assert_fine(&server(&mixed));
    // Without an end.
    let open = times(33, |wire, nth| wire.data(14 + 4 * nth, &[0x40]));
    assert_ends(&server(&open), code::EXCESSIVE_LOAD);
}

/// CVE-2023-44487, and CVE-2025-8671, which has the server reset the streams.
#[test]
fn rapid_resets() {
    for more in [
        (|wire: Wire, nth| wire.post(4 * nth).reset(4 * nth, code::REQUEST_CANCELLED))
            as fn(Wire, u64) -> Wire,
        |wire, nth| wire.get(4 * nth).stopped(4 * nth, code::REQUEST_CANCELLED),
        |wire, nth| {
            wire.data(4 * nth, &[1])
                .reset(4 * nth, code::REQUEST_CANCELLED)
        },
        |wire, nth| wire.reset(4 * nth, code::REQUEST_CANCELLED),
        |wire, nth| wire.fin(4 * nth),
        |wire, nth| wire.all(4 * nth, &GET[1..]),
        |wire, nth| {
            wire.headers(4 * nth, &[GET, &[("content-length", "0")]].concat())
                .body(4 * nth, b"a")
        },
    ] {
        let told = server(&times(10, more));
        assert_eq!(told.error, None, "{told:?}");
        assert_ends(&server(&times(11, more)), code::EXCESSIVE_LOAD);
    }
}

/// Hours of a connection whose peer cancels at a rate that is no attack.
#[test]
fn age_is_no_attack() {
    const HOURS: u64 = 24;
    let mut server = new_server();
    assert_fine(&feed(&mut server, &[&Wire::client().0]));
    for second in 0..HOURS * 3600 {
        let wire = Wire::default()
            .frame(CONTROL, 0x21, b"")
            .post(4 * second)
            .reset(4 * second, code::REQUEST_CANCELLED);
        assert_fine(&feed_at(second * 1000, &mut server, &[&wire.0]));
    }
    assert!(server.is_idle());
}

#[test]
fn streams_out_of_order() {
    let far = times(5, |wire, nth| wire.get(8 * nth + 4));
    assert_fine(&server(&far));
    let limits = Limits {
        resets_max: 100,
        ..limits()
    };
    let make = || Connection::server(limits, &mut Vec::new());
    let farther = times(6, |wire, nth| {
        wire.post(8 * nth + 4).reset(8 * nth + 4, 0x100)
    });
    assert_ends(&outcome(make, &farther), code::EXCESSIVE_LOAD);
}

/// Heads that never end.
#[test]
fn partial_heads_are_bounded() {
    let limits = Limits {
        streams_max: 1000,
        block_bytes_max: 32 << 10,
        resets_max: u32::MAX,
        ..limits()
    };
    let mut server = Connection::server(limits, &mut Vec::new());
    let wire = times(200, |wire, nth| {
        wire.data(4 * nth, &[1, 0x80, 0, 0x80, 0])
            .data(4 * nth, &[0; 30_000])
    });
    let told = feed(&mut server, &[&wire.0]);
    assert_eq!(told.error, None);
    assert!(server.buffered() <= BUFFERED_BYTES_MAX);
    assert!(told.events.iter().all(|event| event.starts_with("refused")));
    assert!(told.events.len() > 150);
    // One byte at a time, and unknown frames that never end, take nothing.
    let mut server = new_server();
    let long = Wire::client().data(0, &[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let long = (0..100).fold(long, |wire, _| wire.data(0, &[7; 10_000]));
    assert_fine(&feed(&mut server, &[&long.0]));
    assert_eq!(server.buffered(), 0);
}

/// A field of a table by index is one byte that costs as much as the field.
#[test]
fn large_heads_are_refused_and_cost_no_memory() {
    let mut insert = vec![2, 0x3f, 0xe1, 0x1f, 0x41, b'x'];
    integer(0, 7, 1000, &mut insert);
    insert.extend([b'a'; 1000]);
    let mut section = section(GET);
    section[0] = 2;
    section.extend([0x80; 3000]);
    let wire = Wire::client()
        .data(ENCODER, &insert)
        .last(0, &frame_of(kind::HEADERS, &section))
        .get(4);
    let told = server(&wire);
    assert!(
        told.events[0].starts_with("refused 0 ENHANCE_YOUR_CALM"),
        "{told:?}"
    );
    assert!(told.events[1].starts_with("head 1"));
    let (mut head, mut server, mut at) = (Head::default(), new_server(), 0);
    while let Ok((used, event)) = server.read(&wire.0[at..], 0, &mut head, &mut Vec::new())
        && event != Event::More
    {
        at += used;
    }
    assert!(head.buf.capacity() < 8000, "{}", head.buf.capacity());
    let many: Vec<(&str, &str)> = (0..21).map(|_| ("a", "b")).collect();
    let told = super::server(&Wire::client().all(0, &[GET, &many].concat()));
    assert!(told.events[0].starts_with("refused 0 ENHANCE_YOUR_CALM"));
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
    let wire = |count| times(count, |wire, nth| wire.headers(4 * nth, &[("a", "b")]));
    assert_eq!(outcome(make, &wire(2)).error, None);
    assert_ends(&outcome(make, &wire(3)), code::EXCESSIVE_LOAD);
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
    assert_fine(&feed(&mut server, &[&Wire::client().get(0).get(4).0]));
    let mut head = Head::default();
    head.set_status(200, b"");
    head.append(b"server", b"s");
    for stream in [0, 1] {
        assert!(server.send_response(StreamId(stream), &head, true, &mut Vec::new()));
    }
    server.release_spare();
    assert!(server.is_idle());
    assert!(
        size_of::<Connection>() <= 1024,
        "{}",
        size_of::<Connection>()
    );
}
