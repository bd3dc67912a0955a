//! Handshakes and records, however they are cut.

use spangate_tls::{
    AcceptorOptions, Buffer, Connector, ConnectorOptions, Facts, Offer, SessionCache, TicketKeys,
    Version,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

fn established(pair: &Pair) -> (Facts, Facts) {
    assert!(
        pair.client.session.is_established(),
        "{:?}",
        pair.client.failure
    );
    assert!(
        pair.server.session.is_established(),
        "{:?}",
        pair.server.failure
    );
    let facts = [&pair.client, &pair.server].map(|end| end.session.facts().unwrap());
    let [client, server] = facts;
    (client, server)
}

#[test]
fn both_versions_carry_bytes_cut_at_every_length() {
    let authority = Authority::new("root");
    let identity = authority.identity(&["one.test"], Kind::Ecdsa);
    for version in [Version::Tls12, Version::Tls13] {
        let offer = Offer {
            lowest: Some(version),
            highest: Some(version),
            protocols: vec![b"http/1.1".to_vec()],
            ..Offer::default()
        };
        let options = AcceptorOptions {
            offer: offer.clone(),
            ..AcceptorOptions::default()
        };
        let acceptor = acceptor(&options, &[plain(identity.clone())]);
        let connector = Connector::new(&ConnectorOptions {
            offer,
            ..ConnectorOptions::default()
        });
        let connector = connector.unwrap();
        for piece in [1, 2, 3, 5, 7, 100, 1000, 1 << 20] {
            let mut pair = Pair::new(&acceptor, &connector, Some("one.test"));
            pair.talk(piece);
            let (client, server) = established(&pair);
            assert_eq!((client.version, server.version), (version, version));
            assert_eq!(client.suite, server.suite);
            assert_eq!(server.protocol.as_deref(), Some(&b"http/1.1"[..]));
            assert_eq!(server.server_name.as_deref(), Some("one.test"));
            for len in [1, 50, 16_384, 16_385, 70_000] {
                pair.client.write(&body(len));
                pair.server.write(&body(len + 1));
                pair.talk(piece);
                assert!(pair.server.got == body(len), "{version:?} {piece} {len}");
                assert!(
                    pair.client.got == body(len + 1),
                    "{version:?} {piece} {len}"
                );
                (pair.server.got, pair.client.got) = (Vec::new(), Vec::new());
            }
            pair.client.end();
            pair.talk(piece);
            assert!(pair.server.has_ended && !pair.client.has_ended);
            // The other direction goes on.
            pair.server.write(b"more");
            pair.talk(piece);
            assert_eq!(pair.client.got, b"more");
        }
    }
}

#[test]
fn plain_bytes_beyond_the_room_wait_as_they_came() {
    let mut pair = Pair::usual();
    pair.talk(usize::MAX);
    pair.client.write(&body(100_000));
    let mut wire = std::mem::take(&mut pair.client.says);
    let (mut plain, mut out) = (Buffer::default(), Buffer::default());
    let progress = pair
        .server
        .session
        .read(&mut wire, 20_000, &mut plain, &mut out)
        .unwrap();
    assert_eq!(plain.len(), 2 * 16_384);
    assert!(progress.used < wire.len());
    pair.server.read(&wire[progress.used..], 1);
    assert!([&plain[..], &pair.server.got].concat() == body(100_000));
}

#[test]
fn records_behind_a_handshake_that_came_in_two_parts_are_not_kept() {
    for end in [false, true] {
        let mut pair = Pair::usual();
        pair.server
            .read(&std::mem::take(&mut pair.client.says), usize::MAX);
        pair.client
            .read(&std::mem::take(&mut pair.server.says), usize::MAX);
        // The last message of the handshake is cut; much follows it, and perhaps the end.
        pair.client.write(&body(70_000));
        if end {
            pair.client.end();
        }
        let mut wire = std::mem::take(&mut pair.client.says);
        pair.server.read(&wire[..10], usize::MAX);
        let (mut at, mut got) = (10, Vec::new());
        while at < wire.len() {
            let (mut plain, mut out) = (Buffer::default(), Buffer::default());
            let session = &mut pair.server.session;
            let progress = session
                .read(&mut wire[at..], 20_000, &mut plain, &mut out)
                .unwrap();
            at += progress.used;
            got.extend_from_slice(&plain);
            // Between two parts the server can write, and loses nothing by it.
            if session.is_established() {
                assert_eq!(session.write(b"answer", &mut out), Ok(true));
                pair.client.read(&out, usize::MAX);
            }
            assert_eq!(progress.has_ended, end && at == wire.len());
        }
        assert!(got == body(70_000), "{} bytes", got.len());
        assert!(pair.client.got.starts_with(b"answeranswer"));
    }
}

#[test]
fn a_changed_byte_is_a_failure_with_an_alert() {
    let mut pair = Pair::usual();
    pair.talk(usize::MAX);
    pair.client.write(b"hello");
    let mut wire = std::mem::take(&mut pair.client.says);
    *wire.last_mut().unwrap() ^= 1;
    pair.server.read(&wire, usize::MAX);
    assert!(pair.server.failure.is_some());
    assert!(pair.server.got.is_empty());
    let alert = std::mem::take(&mut pair.server.says);
    assert!(!alert.is_empty());
    pair.client.read(&alert, usize::MAX);
    let told = pair.client.failure.unwrap();
    assert_eq!(told.kind, spangate_tls::FailureKind::Alert(20));
}

#[test]
fn what_is_no_tls_is_a_failure() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[0x16; 64],
        &[0xff; 64],
    ] {
        let mut pair = Pair::usual();
        pair.server.read(bytes, usize::MAX);
        assert!(pair.server.failure.is_some(), "{bytes:?}");
        assert!(!pair.server.says.is_empty(), "{bytes:?}");
    }
}

#[test]
fn a_hello_that_never_ends_is_refused() {
    let mut pair = Pair::usual();
    // A handshake message of 16 MiB, in records of 16 KiB.
    let mut record = vec![0x16, 3, 3, 0x40, 0];
    record.extend([1, 0xff, 0xff, 0xff]);
    record.resize(5 + 0x4000, 0);
    let mut sent = 0;
    while pair.server.failure.is_none() {
        pair.server.read(&record, usize::MAX);
        sent += record.len();
        assert!(sent < 1 << 20, "nobody refuses it");
        record = vec![0x16, 3, 3, 0x40, 0];
        record.resize(5 + 0x4000, 0);
    }
}

#[test]
fn sessions_are_resumed_by_tickets_of_any_kind_and_without() {
    let authority = Authority::new("root");
    let identity = authority.identity(&["one.test"], Kind::Ecdsa);
    let keys = TicketKeys::new([&[7; 80][..]]).unwrap();
    let cases = [
        (AcceptorOptions::default(), true),
        (
            AcceptorOptions {
                ticket_keys: Some(keys),
                ..AcceptorOptions::default()
            },
            true,
        ),
        (
            AcceptorOptions {
                no_tickets: true,
                sessions: SessionCache::new(100),
                ..AcceptorOptions::default()
            },
            true,
        ),
        (
            AcceptorOptions {
                no_tickets: true,
                ..AcceptorOptions::default()
            },
            false,
        ),
        (
            AcceptorOptions {
                lifetime_s: Some(60),
                ..AcceptorOptions::default()
            },
            true,
        ),
        (
            AcceptorOptions {
                lifetime_s: Some(0),
                ..AcceptorOptions::default()
            },
            false,
        ),
        (
            AcceptorOptions {
                no_tickets: true,
                sessions: SessionCache::new(100),
                lifetime_s: Some(0),
                ..AcceptorOptions::default()
            },
            false,
        ),
    ];
    for (options, resumes) in cases {
        for version in [Version::Tls12, Version::Tls13] {
            let options = AcceptorOptions {
                offer: Offer {
                    highest: Some(version),
                    ..Offer::default()
                },
                ..options.clone()
            };
            let acceptor = acceptor(&options, &[plain(identity.clone())]);
            let connector = Connector::new(&ConnectorOptions {
                sessions_max: 8,
                no_tickets: options.no_tickets,
                ..ConnectorOptions::default()
            });
            let connector = connector.unwrap();
            for is_second in [false, true] {
                let mut pair = Pair::new(&acceptor, &connector, Some("one.test"));
                pair.talk(usize::MAX);
                let (client, server) = established(&pair);
                assert_eq!(
                    client.is_resumed,
                    is_second && resumes,
                    "{version:?} {options:?}"
                );
                assert_eq!(server.is_resumed, client.is_resumed);
            }
        }
    }
}

#[test]
fn without_a_protocol_in_common_a_connection_needs_the_other_acceptor() {
    let identity = Authority::new("root").identity(&["one.test"], Kind::Ecdsa);
    let offer = |protocol: &[u8]| Offer {
        protocols: vec![protocol.to_vec()],
        ..Offer::default()
    };
    let options = AcceptorOptions {
        offer: offer(b"h2"),
        ..AcceptorOptions::default()
    };
    let usual = acceptor(&options, &[plain(identity)]);
    assert_eq!(usual.protocols(), [b"h2"]);
    let connector = Connector::new(&ConnectorOptions {
        offer: offer(b"http/1.1"),
        ..ConnectorOptions::default()
    });
    let connector = connector.unwrap();
    let mut pair = Pair::new(&usual, &connector, Some("one.test"));
    pair.talk(usize::MAX);
    assert!(pair.server.failure.is_some());
    let mut pair = Pair::new(&usual.without_protocols(), &connector, Some("one.test"));
    pair.talk(usize::MAX);
    let (client, server) = established(&pair);
    assert_eq!((client.protocol, server.protocol), (None, None));
}

#[test]
fn the_first_choice_of_a_group_is_the_hybrid_one() {
    let mut pair = Pair::usual();
    pair.talk(usize::MAX);
    let (client, server) = established(&pair);
    // X25519MLKEM768
    assert_eq!((client.group, server.group), (Some(0x11ec), Some(0x11ec)));
}

#[test]
fn offers_that_leave_nothing_are_refused() {
    let authority = Authority::new("root");
    let identity = authority.identity(&["one.test"], Kind::Ecdsa);
    let offers = [
        Offer {
            lowest: Some(Version::Tls13),
            highest: Some(Version::Tls12),
            ..Offer::default()
        },
        Offer {
            suites12: Some(vec![0xc0ff]),
            highest: Some(Version::Tls12),
            ..Offer::default()
        },
        Offer {
            groups: vec![0xffff],
            ..Offer::default()
        },
    ];
    for offer in offers {
        let options = AcceptorOptions {
            offer: offer.clone(),
            ..AcceptorOptions::default()
        };
        let certificates = spangate_tls::Certificates::new(&[plain(identity.clone())], false);
        assert!(spangate_tls::Acceptor::new(&options, certificates.into()).is_err());
        assert!(
            Connector::new(&ConnectorOptions {
                offer,
                ..ConnectorOptions::default()
            })
            .is_err()
        );
    }
}
