//! Early data (RFC 9001 §4.6, §5.7): what a client that comes again sends with its hello.

use crate::tests::net::{Net, Sides};
use crate::tests::{BAD, GOOD, pattern};
use crate::{Connection, Limits, Lost, Received};

/// The time of a round trip of [`GOOD`], ns.
const ROUND_TRIP_NS: u64 = 10_000_000;
/// The longest datagram before the path's MTU is known (RFC 9000 §14.1), bytes.
const DATAGRAM_BYTES_MAX: usize = 1200;

const EARLY: Sides = Sides {
    protocol: b"h3",
    takes_early_data: true,
    keeps_tokens: true,
};

fn established(net: &mut Net) -> bool {
    let server = net.server.as_mut();
    server.is_some_and(|server| server.news().is_established)
}

/// A client that has a session and a token of the server, and begins its second connection.
fn returned(seed: u64, sides: Sides) -> Net {
    let mut net = Net::of(seed, GOOD, Limits::default(), sides);
    let mut ticks = 0;
    net.run(20, |net| {
        ticks += usize::from(net.client_established);
        // Tickets and tokens come after the handshake.
        ticks > 10
    });
    net.client_returns();
    net
}

/// Answers each request with as many bytes.
fn answer(server: &mut Connection) {
    while let Some(received) = server.receive() {
        match received {
            Received::Data {
                stream,
                bytes,
                ends,
            } => {
                server.consumed(stream, bytes.len() as u64);
                server.write(stream, &bytes, ends);
            }
            Received::Fin(stream) => server.write(stream, b"", true),
            Received::Written { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn has_early_data(server: &Connection) -> bool {
    let facts = server.agreed().facts;
    facts.expect("the hello was read").has_early_data
}

#[test]
fn a_request_is_answered_in_the_first_round_trip() {
    let mut net = returned(1, EARLY);
    let began_ns = net.now_ns;
    net.client_sends(pattern(700));
    let mut early = Vec::new();
    net.run(20, |net| {
        let server = net.server.as_mut().expect("accepted");
        let news = server.news();
        early.extend(news.is_early.then_some(news.is_established));
        answer(server);
        net.client_received[0].ended
    });
    assert_eq!(net.client_received[0].bytes, pattern(700));
    // It came before the handshake was complete.
    assert_eq!(early, [false]);
    let took_ns = net.now_ns - began_ns;
    assert!(took_ns < 2 * ROUND_TRIP_NS, "{took_ns}");
    net.run(20, established);
    let server = net.server.expect("a connection");
    assert!(has_early_data(&server));
    assert!(server.agreed().facts.expect("established").is_resumed);
}

/// A Retry shows the client's address as a token does.
#[test]
fn early_data_is_served_after_a_retry() {
    let sides = Sides {
        keeps_tokens: false,
        ..EARLY
    };
    let mut net = returned(7, sides);
    net.retries = true;
    net.client_sends(pattern(700));
    let mut is_early = false;
    net.run(20, |net| {
        let server = net.server.as_mut().expect("accepted");
        is_early |= server.news().is_early;
        answer(server);
        net.client_received[0].ended
    });
    assert!(net.retried > 0 && is_early);
}

#[test]
fn early_data_survives_a_bad_network() {
    for seed in 0..8 {
        let mut net = returned(seed, EARLY);
        net.set_weather(BAD);
        // Less than the first congestion window: quinn-proto's client does not send the end of its
        // handshake while early data fills the window.
        let bodies = [1, 500, 5_000].map(pattern);
        for body in &bodies {
            net.client_sends(body.clone());
        }
        net.run(120, |net| {
            answer(net.server.as_mut().expect("accepted"));
            net.client_received.iter().all(|got| got.ended)
        });
        for (got, body) in net.client_received.iter().zip(&bodies) {
            assert!(got.bytes == *body);
        }
    }
}

/// The client has not shown that it has its address: nothing is answered before it does, and the
/// server sends no more than three times of what it got (RFC 9000 §8.1).
#[test]
fn a_client_without_a_token_is_answered_after_the_handshake() {
    let sides = Sides {
        keeps_tokens: false,
        ..EARLY
    };
    let mut net = returned(2, sides);
    net.client_sends(pattern(700));
    let (mut before, mut after) = (0, 0);
    net.run(20, |net| {
        let server = net.server.as_mut().expect("accepted");
        let news = server.news();
        assert!(!news.is_early);
        if news.is_established || after > 0 {
            after += 1;
            answer(server);
        } else {
            before += 1;
        }
        after > 0 && net.client_received[0].ended
    });
    assert!(before > 0);
    assert!(has_early_data(net.server.as_ref().expect("a connection")));

    let mut net = returned(3, sides);
    net.client_sends(pattern(700));
    let mut got = 0;
    net.run(120, |net| {
        if got == 0 {
            got = net.client_sent.iter().map(Vec::len).sum();
            net.client_vanishes();
        }
        let server = net.server.as_mut().expect("accepted");
        // Even if something is answered.
        answer(server);
        server.news().is_lost
    });
    // quinn-proto lets the last datagram exceed the limit.
    let most = 3 * got + DATAGRAM_BYTES_MAX;
    assert!(net.server_sent < most, "{} of {got}", net.server_sent);
}

#[test]
fn a_server_without_early_data_forbids_it() {
    let sides = Sides {
        takes_early_data: false,
        ..EARLY
    };
    let mut net = returned(4, sides);
    assert!(!net.client_has_early_keys());
    net.run(20, established);
    let server = net.server.expect("a connection");
    assert!(!has_early_data(&server) && !server.agreed().serves_early);
    assert!(server.agreed().facts.expect("established").is_resumed);
}

#[test]
fn a_client_that_never_completes_its_handshake_is_lost() {
    let mut net = returned(5, EARLY);
    net.client_sends(pattern(700));
    let (mut is_early, mut is_lost) = (false, false);
    net.run(120, |net| {
        net.client_vanishes();
        let server = net.server.as_mut().expect("accepted");
        let news = server.news();
        assert!(!news.is_established);
        is_early |= news.is_early;
        is_lost |= news.is_lost;
        answer(server);
        is_lost
    });
    assert!(is_early);
    let server = net.server.expect("a connection");
    assert_eq!(server.lost(), Some(&Lost::TimedOut));
}

/// A session is used once, and a token too (RFC 8446 §8.1, RFC 9000 §8.1.4).
#[test]
fn a_first_flight_that_comes_again_brings_nothing() {
    let mut net = returned(6, EARLY);
    net.client_sends(pattern(700));
    let mut flight = Vec::new();
    net.run(20, |net| {
        if flight.is_empty() {
            flight.clone_from(&net.client_sent);
        }
        answer(net.server.as_mut().expect("accepted"));
        net.client_received[0].ended
    });
    net.client_vanishes();
    // The connection that the flight began has ended for the server too.
    let mut server = net.server.take().expect("a connection");
    let mut now_ns = net.now_ns;
    while !server.is_drained() {
        now_ns = server.deadline_ns().map_or(now_ns, |due| due.max(now_ns));
        server.expire(now_ns);
        net.endpoint.settle(&mut server);
    }
    net.now_ns = now_ns;
    net.replay(&flight);
    let mut server = net.server.take().expect("another connection");
    assert!(!server.news().is_early && !server.agreed().serves_early);
    assert_eq!(server.receive(), None);
    assert!(!has_early_data(&server));
}
