//! Sessions whose acceptor is chosen by the hello.

use spangate_tls::{
    Acceptor, AcceptorOptions, Buffer, Connector, ConnectorOptions, FailureKind, Offer, Session,
    Version,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

fn usual(options: &AcceptorOptions) -> Acceptor {
    let identity = Authority::new("root").identity(&["one.test"], Kind::Ecdsa);
    acceptor(options, &[plain(identity)])
}

fn hello(options: &ConnectorOptions, name: Option<&str>) -> Vec<u8> {
    let connector = Connector::new(options).unwrap();
    let mut out = Buffer::default();
    connector.connect(name).unwrap().start(&mut out).unwrap();
    out.to_vec()
}

/// What a session sends that got these bytes, and continues with an acceptor chosen by `name`; and
/// whether that failed.
fn chosen_by(acceptor: &Acceptor, bytes: &[u8], name: Option<&str>) -> (Vec<u8>, bool) {
    let mut session = Session::awaiting_hello();
    let (mut plain, mut out) = (Buffer::default(), Buffer::default());
    let mut bytes = bytes.to_vec();
    let read = session.read(&mut bytes, usize::MAX, &mut plain, &mut out);
    assert_eq!(read.unwrap().used, bytes.len());
    assert!(out.is_empty() && session.facts().is_none());
    let accepted = session.accept(acceptor, name, &mut plain, &mut out);
    if let Err(failure) = &accepted {
        assert_eq!(failure.kind, FailureKind::Protocol);
        let again = session.read(&mut [], usize::MAX, &mut plain, &mut out);
        assert!(again.is_err());
        let mut more = Buffer::default();
        let again = session.accept(acceptor, name, &mut plain, &mut more);
        assert!(again.is_err() && more.is_empty());
    }
    assert!(plain.is_empty());
    (out.to_vec(), accepted.is_err())
}

#[test]
fn the_name_that_chose_is_that_of_the_hello() {
    for version in [Version::Tls12, Version::Tls13] {
        let offer = Offer {
            lowest: Some(version),
            highest: Some(version),
            ..Offer::default()
        };
        let acceptor = usual(&AcceptorOptions {
            offer,
            ..AcceptorOptions::default()
        });
        for asked in [None, Some("one.test"), Some("ONE.test")] {
            let hello = hello(&ConnectorOptions::default(), asked);
            for chose in [None, Some("one.test"), Some("two.test")] {
                let is_same = asked.map(str::to_lowercase).as_deref() == chose;
                let (sent, failed) = chosen_by(&acceptor, &hello, chose);
                assert_eq!(failed, !is_same, "{version:?} {asked:?} {chose:?}");
                let first = if is_same { HANDSHAKE } else { ALERT };
                assert_eq!(sent[0], first, "{asked:?} {chose:?}");
                if !is_same {
                    assert_eq!(sent.len(), 7, "nothing but an alert");
                }
            }
        }
    }
}

#[test]
fn an_unfinished_hello_does_not_get_an_acceptor() {
    let acceptor = usual(&AcceptorOptions::default());
    // A handshake that fails after the choice of its certificate, on the same thread.
    let strict = usual(&AcceptorOptions {
        offer: Offer {
            highest: Some(Version::Tls12),
            groups: vec![24],
            ..Offer::default()
        },
        ..AcceptorOptions::default()
    });
    let other = ConnectorOptions {
        offer: Offer {
            groups: vec![23],
            ..Offer::default()
        },
        ..ConnectorOptions::default()
    };
    let (sent, failed) = chosen_by(&strict, &hello(&other, None), None);
    assert!(failed && sent[0] == ALERT);
    let hello = hello(&ConnectorOptions::default(), Some("one.test"));
    for len in [0, 1, 5, 50, hello.len() - 1] {
        let (sent, failed) = chosen_by(&acceptor, &hello[..len], None);
        assert!(failed, "{len}");
        assert_eq!(sent[0], ALERT, "{len}");
    }
}

#[test]
fn a_second_hello_continues_with_the_same_acceptor() {
    // The client's first key share is of another group (RFC 8446 §4.1.4).
    let offer = Offer {
        groups: vec![24],
        ..Offer::default()
    };
    let acceptor = usual(&AcceptorOptions {
        offer,
        ..AcceptorOptions::default()
    });
    let connector = Connector::new(&ConnectorOptions::default()).unwrap();
    let mut pair = Pair::new(&acceptor, &connector, Some("one.test"));
    pair.server.session = Session::awaiting_hello();
    let (mut plain, mut out) = (Buffer::default(), Buffer::default());
    let mut first = std::mem::take(&mut pair.client.says);
    let session = &mut pair.server.session;
    let progress = session.read(&mut first, usize::MAX, &mut plain, &mut out);
    assert!(progress.unwrap().awaits_acceptor);
    let accepted = session.accept(&acceptor, Some("one.test"), &mut plain, &mut out);
    assert!(!accepted.unwrap().is_established);
    pair.server.says = out.to_vec();
    pair.talk(3);
    assert!(pair.server.session.is_established() && pair.client.session.is_established());
    let facts = pair.server.session.facts().unwrap();
    assert_eq!(
        (facts.group, facts.server_name.as_deref()),
        (Some(24), Some("one.test"))
    );
}
