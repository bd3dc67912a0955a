//! Connections with a client of quinn-proto's, over a network that loses, repeats and reorders.

mod clients;
mod early;
mod net;

use std::collections::HashMap;

use tls::quic::Agreed;

use crate::{ID_BYTES, Limits, Lost, Received, Stage, StreamId};
use net::{Net, Sides, Weather};

const GOOD: Weather = Weather {
    lost_percent: 0,
    repeated_percent: 0,
    delay_ns: 5_000_000,
    jitter_ns: 0,
};
const BAD: Weather = Weather {
    lost_percent: 10,
    repeated_percent: 5,
    delay_ns: 5_000_000,
    jitter_ns: 20_000_000,
};

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Echoes each stream of the client until the client has everything.
fn echo(mut net: Net, bodies: &[Vec<u8>]) -> Net {
    let mut unread: HashMap<StreamId, usize> = HashMap::new();
    for body in bodies {
        net.client_sends(body.clone());
    }
    net.run(120, |net| {
        let server = net.server.as_mut().expect("accepted");
        while let Some(received) = server.receive() {
            match received {
                Received::Data {
                    stream,
                    bytes,
                    ends,
                } => {
                    server.write(stream, &bytes, ends);
                    server.consumed(stream, bytes.len() as u64);
                    *unread.entry(stream).or_default() += bytes.len();
                }
                Received::Fin(stream) => server.write(stream, b"", true),
                Received::Written { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        net.client_received.iter().filter(|got| got.ended).count() == bodies.len()
    });
    for (place, body) in bodies.iter().enumerate() {
        let got = &net.client_received[place];
        assert!(got.bytes == *body, "stream {place}");
        assert_eq!(unread[&(place as u64 * 4)], body.len());
    }
    net
}

#[test]
fn streams_are_echoed() {
    let bodies: Vec<_> = [1, 50, 1200, 70_000, 300_000].map(pattern).into();
    let net = echo(Net::new(1, GOOD, Limits::default()), &bodies);
    let server = net.server.expect("a connection");
    assert_eq!(server.queued(), 0);
}

#[test]
fn a_connection_tells_of_itself() {
    let mut net = Net::new(15, GOOD, Limits::default());
    net.client_sends(pattern(10));
    net.run(10, |net| {
        let report = net.server.as_ref().map(|server| server.report());
        let stage = report.map(|report| report.stage);
        assert!(matches!(stage, None | Some(Stage::Handshake | Stage::Open)));
        stage == Some(Stage::Open) && net.server.as_ref().is_some_and(|it| it.streams_kept() > 0)
    });
    let server = net.server.as_ref().expect("accepted");
    let report = server.report();
    assert_eq!(report.local_id.len(), ID_BYTES);
    assert!(!report.peer_id.is_empty());
    assert!(report.rtt_min.as_millis() >= 10, "{:?}", report.rtt_min);
    assert!(report.sent_packets > 0 && report.sent_bytes > report.sent_packets);
    assert_eq!((report.lost_packets, report.migrations), (0, 0));
    assert_eq!(report.requests, 1);
    let [local, peer] = server.parameters();
    assert_eq!(local.initial_id.as_deref(), Some(&report.local_id[..]));
    assert_eq!(peer.initial_id.as_deref(), Some(&report.peer_id[..]));
    let limits = Limits::default();
    assert_eq!(local.data_bytes, u64::from(limits.connection_bytes));
    assert_eq!(local.bidi_remote_bytes, u64::from(limits.stream_bytes));
    assert_eq!(local.bidi_streams, u64::from(limits.streams_max));
    assert!(peer.data_bytes > 0 && local.original_id.is_some());
    let streams = server.stream_reports();
    let request = streams.iter().find(|stream| stream.id == 0);
    assert!(request.is_some_and(|stream| stream.sends && stream.is_bidirectional()));
    let now_ns = net.now_ns;
    let server = net.server.as_mut().expect("accepted");
    server.close(now_ns, 0, b"");
    assert_eq!(server.report().stage, Stage::Closing);
}

/// More than the peer's window and what is kept for it, to a writer that follows what it is told.
#[test]
fn a_long_stream_is_sent() {
    let mut net = Net::new(14, GOOD, Limits::default());
    net.client_sends(pattern(10));
    let all = pattern(5 << 20);
    let (mut sent, mut room) = (0, 0);
    net.run(120, |net| {
        let server = net.server.as_mut().expect("accepted");
        while let Some(received) = server.receive() {
            match received {
                Received::Written {
                    stream: Some(0),
                    bytes,
                } => room += bytes as usize,
                // The client has opened its stream.
                Received::Data { .. } => room = 64 << 10,
                _ => {}
            }
        }
        let part = room.min(all.len() - sent);
        if part > 0 {
            server.write(0, &all[sent..sent + part], sent + part == all.len());
            sent += part;
            room -= part;
        }
        net.client_received[0].ended
    });
    assert!(net.client_received[0].bytes == all);
}

#[test]
fn streams_are_echoed_over_a_bad_network() {
    for seed in 0..8 {
        let bodies: Vec<_> = [1, 5_000, 150_000].map(pattern).into();
        echo(Net::new(seed, BAD, Limits::default()), &bodies);
    }
}

#[test]
fn each_name_has_its_acceptor() {
    let mut net = Net::new(3, GOOD, Limits::default());
    net.run(20, |net| {
        let server = net.server.as_mut();
        server.is_some_and(|server| server.news().is_established)
    });
    let server = net.server.expect("a connection");
    let Agreed { facts, failure, .. } = server.agreed();
    assert!(failure.is_none());
    let facts = facts.expect("the handshake is over");
    assert_eq!(facts.server_name.as_deref(), Some("one.test"));
    assert_eq!(facts.protocol.as_deref(), Some(&b"h3"[..]));
    assert_eq!(facts.version, tls::Version::Tls13);
    assert!(facts.own.is_some());
}

#[test]
fn a_client_without_the_protocol_is_refused() {
    let sides = Sides {
        protocol: b"other",
        ..Sides::default()
    };
    let mut net = Net::of(4, GOOD, Limits::default(), sides);
    net.run(20, |net| {
        let server = net.server.as_mut();
        server.is_some_and(|server| server.news().is_lost)
    });
    let server = net.server.expect("a connection");
    assert!(matches!(server.lost(), Some(Lost::Failed(_))));
    assert!(server.agreed().failure.is_some());
}

/// A client that does not read: what waits is what the windows and the writer's bound allow.
#[test]
fn a_client_that_does_not_read_holds_little() {
    let limits = Limits::default();
    let mut net = Net::new(5, GOOD, limits);
    net.client_reads = false;
    net.client_sends(pattern(10));
    let mut room = 64 << 10;
    let mut sent = 0;
    let mut ticks = 0;
    net.run(60, |net| {
        let server = net.server.as_mut().expect("accepted");
        while let Some(received) = server.receive() {
            if let Received::Written {
                stream: Some(0),
                bytes,
            } = received
            {
                room += bytes as usize;
            }
        }
        let part = pattern(room);
        room = 0;
        sent += part.len();
        server.write(0, &part, false);
        ticks += 1;
        ticks == 2_000
    });
    let server = net.server.as_ref().expect("a connection");
    assert!(server.queued() <= 64 << 10, "{}", server.queued());
    // The client's window, what is kept for it, and one more piece.
    let most = net::CLIENT_STREAM_BYTES as usize + (64 << 10);
    assert!(sent <= most, "{sent}");
}

/// A server that does not consume: the client cannot send more than the limits.
#[test]
fn what_is_not_consumed_stops_the_client() {
    let limits = Limits::default();
    let mut net = Net::new(6, GOOD, limits);
    net.client_sends(pattern(3 << 20));
    let (mut came, mut ticks) = (0, 0);
    net.run(60, |net| {
        let server = net.server.as_mut().expect("accepted");
        while let Some(received) = server.receive() {
            if let Received::Data { bytes, .. } = received {
                came += bytes.len();
            }
        }
        ticks += 1;
        ticks == 2_000
    });
    assert_eq!(came, 64 << 10);
    // Once it is consumed, the rest comes.
    net.run(60, |net| {
        let server = net.server.as_mut().expect("accepted");
        if came == 64 << 10 {
            server.consumed(0, came as u64);
        }
        let mut is_over = false;
        while let Some(received) = server.receive() {
            match received {
                Received::Data { bytes, ends, .. } => {
                    came += bytes.len();
                    server.consumed(0, bytes.len() as u64);
                    is_over |= ends;
                }
                Received::Fin(0) => is_over = true,
                _ => {}
            }
        }
        is_over
    });
    assert_eq!(came, 3 << 20);
}

#[test]
fn streams_end_by_force_from_both_sides() {
    let mut net = Net::new(7, GOOD, Limits::default());
    // The first one is reset and the second one stopped by the client, the third by the server.
    for _ in 0..3 {
        net.client_opens(pattern(100));
    }
    net.run(20, |net| net.client_established);
    net.client_resets(0, 7);
    net.client_stops(4, 8);
    let mut seen = Vec::new();
    net.run(20, |net| {
        let server = net.server.as_mut().expect("accepted");
        while let Some(received) = server.receive() {
            match received {
                Received::Reset { stream, code } => seen.push(("reset", stream, code)),
                Received::Stopped { stream, code } => {
                    // Whatever is written now is discarded.
                    server.write(stream, &pattern(200_000), true);
                    seen.push(("stopped", stream, code));
                }
                Received::Data { stream: 8, .. } => {
                    server.stop(8, 9);
                    server.reset(8, 10);
                }
                _ => {}
            }
        }
        seen.len() == 2 && net.client_events.len() == 2
    });
    seen.sort_unstable();
    assert_eq!(seen, [("reset", 0, 7), ("stopped", 4, 8)]);
    net.client_events.sort_unstable();
    assert_eq!(net.client_events, [("reset", 8, 10), ("stopped", 8, 9)]);
    let server = net.server.expect("a connection");
    assert_eq!(server.queued(), 0);
}

/// A request of which only a part has come does not keep a connection that is to end.
#[test]
fn what_nobody_answers_is_given_up() {
    let mut net = Net::new(16, GOOD, Limits::default());
    net.client_opens(pattern(100));
    net.client_sends(pattern(100));
    let mut came = 0;
    net.run(20, |net| {
        let received = net.server.as_mut().and_then(|server| server.receive());
        came += usize::from(matches!(received, Some(Received::Data { .. })));
        came == 2
    });
    let server = net.server.as_mut().expect("a connection");
    server.write(4, &pattern(50), true);
    assert!(!server.is_quiet());
    server.abandon(12);
    net.run(20, |net| {
        let server = net.server.as_mut();
        server.is_some_and(|server| server.is_quiet())
    });
    assert_eq!(net.client_events, [("reset", 0, 12)]);
    assert_eq!(net.client_received[1].bytes, pattern(50));
}

#[test]
fn a_connection_that_is_closed_is_forgotten() {
    let mut net = Net::new(8, GOOD, Limits::default());
    net.run(20, |net| {
        let server = net.server.as_mut();
        server.is_some_and(|server| server.news().is_established)
    });
    let now_ns = net.now_ns;
    let server = net.server.as_mut().expect("a connection");
    server.close(now_ns, 0x100, b"done");
    assert!(server.is_closed());
    // Writing to it does no harm.
    server.write(3, b"more", false);
    net.run(20, |net| {
        let server = net.server.as_ref();
        server.is_none_or(|server| server.is_drained())
    });
    assert_eq!(net.endpoint.connections(), 0);
    assert_eq!(
        net.client_lost.as_deref(),
        Some("closed by peer: done (code 256)")
    );
}

#[test]
fn a_client_that_vanishes_times_out() {
    let limits = Limits {
        idle: std::time::Duration::from_secs(7),
        ..Limits::default()
    };
    let mut net = Net::new(9, GOOD, limits);
    net.run(20, |net| net.client_established);
    let before_ns = net.now_ns;
    net.client_vanishes();
    net.run(60, |net| {
        let server = net.server.as_mut();
        server.is_none_or(|server| server.news().is_lost || server.is_drained())
    });
    let server = net.server.expect("a connection");
    assert_eq!(server.lost(), Some(&Lost::TimedOut));
    let silent_ns = net.now_ns - before_ns;
    assert!(
        (6_900_000_000..8_000_000_000).contains(&silent_ns),
        "{silent_ns}"
    );
}

/// The client's address changes within an exchange (RFC 9000 §9).
#[test]
fn a_client_may_move() {
    let mut net = Net::new(10, GOOD, Limits::default());
    net.moves_at_ns = Some(60_000_000);
    let net = echo(net, &[pattern(400_000)]);
    let server = net.server.expect("a connection");
    assert_eq!(
        server.peer(),
        net::SECOND_ADDRESS.parse().expect("an address")
    );
}

#[test]
fn a_retry_validates_the_address() {
    let mut net = Net::new(11, GOOD, Limits::default());
    net.retries = true;
    let net = echo(net, &[pattern(1000)]);
    // A hello with post-quantum keys fills two datagrams.
    assert!((1..=2).contains(&net.retried), "{}", net.retried);
}

/// Nothing that is not QUIC, and no cut or changed packet, does any harm or gets a long answer.
#[test]
fn garbage_is_ignored() {
    let mut net = Net::new(12, GOOD, Limits::default());
    net.garbage = true;
    let net = echo(net, &[pattern(50_000)]);
    assert!(
        net.garbage_answered <= net.garbage_sent,
        "{}",
        net.garbage_answered
    );
}

/// A client may open as many streams as it is allowed, one after the other, for ever: nothing is
/// kept of those that are over.
#[test]
fn ended_streams_leave_nothing() {
    let mut net = Net::new(13, GOOD, Limits::default());
    for _ in 0..20 {
        let bodies = vec![pattern(20); 50];
        let before = net.client_received.len();
        for body in &bodies {
            net.client_sends(body.clone());
        }
        net.run(30, |net| {
            let server = net.server.as_mut().expect("accepted");
            while let Some(received) = server.receive() {
                match received {
                    Received::Data { stream, bytes, .. } => {
                        server.consumed(stream, bytes.len() as u64);
                        server.write(stream, &bytes, true);
                    }
                    Received::Fin(_) | Received::Written { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            let ended = net.client_received[before..].iter();
            ended.filter(|got| got.ended).count() == bodies.len()
        });
    }
    let server = net.server.expect("a connection");
    assert!(server.streams_kept() <= 1, "{}", server.streams_kept());
}
