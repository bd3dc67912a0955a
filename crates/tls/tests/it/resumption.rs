//! Which sessions are resumed by which acceptors and connectors.

use std::path::Path;

use spangate_tls::{
    Acceptor, AcceptorOptions, Authorities, ClientCertificates, Connector, ConnectorOptions,
    IgnoredErrors, Offer, Revocations, SessionCache, TicketKeys, Trusted, Verification, Version,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

/// Whether a handshake resumes a session; none if it fails.
fn resumes(acceptor: &Acceptor, connector: &Connector, name: Option<&str>) -> Option<bool> {
    let mut pair = Pair::new(acceptor, connector, name);
    pair.talk(usize::MAX);
    if pair.server.failure.is_some() || pair.client.failure.is_some() {
        return None;
    }
    pair.server.session.facts().map(|facts| facts.is_resumed)
}

fn authorities(all: &[&Authority]) -> Authorities {
    let pem: String = all.iter().map(|each| each.pem()).collect();
    Authorities::parse(None, pem.as_bytes(), Path::new("ca")).unwrap()
}

/// Listeners that demand something different of clients, and one that demands the same as the
/// first.
fn demands(root: &Authority, other: &Authority) -> Vec<(&'static str, AcceptorOptions)> {
    let list = root.revokes_itself(7.into());
    let list = Revocations::parse(list.as_bytes(), Path::new("crl")).unwrap();
    let (one, both) = (authorities(&[root]), authorities(&[root, other]));
    let clients = |trusted: Trusted| ClientCertificates {
        trusted,
        hints: None,
        tells_no_names: false,
        is_optional: false,
        ignored: IgnoredErrors::default(),
        ignored_of_issuers: IgnoredErrors::default(),
    };
    let usual = clients(Trusted::new(&both, None));
    let ignored = IgnoredErrors {
        all: false,
        numbers: vec![10],
    };
    let asking = |clients: ClientCertificates| AcceptorOptions {
        clients: Some(clients),
        ..AcceptorOptions::default()
    };
    let reversed = Trusted::new(&authorities(&[other, root]), None);
    vec![
        ("the first", asking(usual.clone())),
        (
            "the same, announced otherwise",
            asking(ClientCertificates {
                tells_no_names: true,
                hints: Some(Trusted::new(&one, None)),
                ..clients(reversed)
            }),
        ),
        ("nothing", AcceptorOptions::default()),
        (
            "fewer authorities",
            asking(clients(Trusted::new(&one, None))),
        ),
        (
            "a revocation list",
            asking(clients(Trusted::new(&both, Some(&list)))),
        ),
        (
            "optional",
            asking(ClientCertificates {
                is_optional: true,
                ..usual.clone()
            }),
        ),
        (
            "an ignored error",
            asking(ClientCertificates {
                ignored: ignored.clone(),
                ..usual.clone()
            }),
        ),
        (
            "an ignored error of issuers",
            asking(ClientCertificates {
                ignored_of_issuers: ignored,
                ..usual.clone()
            }),
        ),
        (
            "another line",
            AcceptorOptions {
                resumption_scope: "other".to_owned(),
                ..asking(usual.clone())
            },
        ),
        (
            "certain signatures",
            AcceptorOptions {
                offer: Offer {
                    client_signatures: Some(vec![0x0403]),
                    ..Offer::default()
                },
                ..asking(usual)
            },
        ),
    ]
}

/// Every pair of listeners: sessions of one are resumed by the other only if they demand the same.
fn check(shared: &AcceptorOptions) {
    let (root, other) = (Authority::new("root"), Authority::new("other"));
    let own = root.identity(&["one.test"], Kind::Ecdsa);
    let client = root.identity(&["client"], Kind::Ecdsa);
    for version in VERSIONS {
        let all: Vec<_> = demands(&root, &other)
            .into_iter()
            .map(|(what, options)| {
                let options = AcceptorOptions {
                    offer: Offer {
                        lowest: Some(version),
                        highest: Some(version),
                        ..options.offer
                    },
                    clients: options.clients,
                    resumption_scope: options.resumption_scope,
                    ..shared.clone()
                };
                (what, acceptor(&options, &[plain(own.clone())]))
            })
            .collect();
        for (from, (issuer, issuing)) in all.iter().enumerate() {
            for (to, (user, using)) in all.iter().enumerate() {
                let connector = Connector::new(&ConnectorOptions {
                    identity: Some(client.clone()),
                    sessions_max: 8,
                    no_tickets: shared.no_tickets,
                    ..ConnectorOptions::default()
                });
                let connector = connector.unwrap();
                let case = format!("{version:?}: {issuer} to {user}");
                let name = Some("one.test");
                assert_eq!(resumes(issuing, &connector, name), Some(false), "{case}");
                let is_same = from == to || from.max(to) == 1;
                assert_eq!(resumes(using, &connector, name), Some(is_same), "{case}");
            }
        }
    }
}

#[test]
fn a_ticket_is_good_where_the_same_is_demanded_of_clients() {
    check(&AcceptorOptions {
        ticket_keys: TicketKeys::new([&[7; 80][..]]),
        ..AcceptorOptions::default()
    });
}

#[test]
fn a_remembered_session_is_good_where_the_same_is_demanded_of_clients() {
    check(&AcceptorOptions {
        no_tickets: true,
        sessions: SessionCache::new(1000),
        ..AcceptorOptions::default()
    });
}

#[test]
fn listeners_share_the_room_for_sessions() {
    let root = Authority::new("root");
    let own = root.identity(&["one.test"], Kind::Ecdsa);
    let options = AcceptorOptions {
        no_tickets: true,
        sessions: SessionCache::new(6),
        ..AcceptorOptions::default()
    };
    let acceptors = [0, 1, 2].map(|_| acceptor(&options, &[plain(own.clone())]));
    let connectors: Vec<_> = (0..9)
        .map(|_| {
            let options = ConnectorOptions {
                sessions_max: 8,
                no_tickets: true,
                offer: Offer {
                    highest: Some(Version::Tls12),
                    ..Offer::default()
                },
                ..ConnectorOptions::default()
            };
            Connector::new(&options).unwrap()
        })
        .collect();
    let name = Some("one.test");
    for (number, connector) in connectors.iter().enumerate() {
        let acceptor = &acceptors[number % 3];
        assert_eq!(resumes(acceptor, connector, name), Some(false));
    }
    // The last six are remembered. A lookup that finds nothing leaves a new session, so the others
    // come later.
    for (number, connector) in connectors.iter().enumerate().rev() {
        let acceptor = &acceptors[number % 3];
        let got = resumes(acceptor, connector, name);
        assert_eq!(got, Some(number >= 3), "{number}");
    }
    assert_eq!(
        (options.sessions.lookups(), options.sessions.misses()),
        (9, 3)
    );
}

#[test]
fn a_session_with_a_server_belongs_to_its_name_and_its_connector() {
    let (root, other) = (Authority::new("root"), Authority::new("other"));
    let own = root.identity(&["one.test", "two.test"], Kind::Ecdsa);
    for (version, no_tickets) in VERSIONS
        .into_iter()
        .flat_map(|each| [(each, true), (each, false)])
    {
        let offer = Offer {
            highest: Some(version),
            ..Offer::default()
        };
        let options = AcceptorOptions {
            offer: offer.clone(),
            sessions: SessionCache::new(100),
            ..AcceptorOptions::default()
        };
        let acceptor = acceptor(&options, &[plain(own.clone())]);
        let connector = |verification| {
            let options = ConnectorOptions {
                offer: offer.clone(),
                verification,
                sessions_max: 8,
                no_tickets,
                ..ConnectorOptions::default()
            };
            Connector::new(&options).unwrap()
        };
        let trusting = |authority: &Authority, name: Option<&str>| Verification::Required {
            trusted: authority.trusted(),
            name: name.map(str::to_owned),
        };
        let none = connector(Verification::None);
        let ask = |connector, name| resumes(&acceptor, connector, name);
        assert_eq!(ask(&none, Some("one.test")), Some(false), "{version:?}");
        assert_eq!(ask(&none, Some("one.test")), Some(true), "{version:?}");
        assert_eq!(ask(&none, Some("two.test")), Some(false), "{version:?}");
        assert_eq!(ask(&none, None), Some(false), "{version:?}");
        assert_eq!(ask(&none, Some("three.test")), Some(false), "{version:?}");
        // The session of a server that was not verified does not stand for a verified one.
        let good = connector(trusting(&root, None));
        assert_eq!(ask(&good, Some("one.test")), Some(false), "{version:?}");
        assert_eq!(ask(&good, Some("three.test")), None, "{version:?}");
        let bad = connector(trusting(&other, None));
        assert_eq!(ask(&bad, Some("one.test")), None, "{version:?}");
        let named = connector(trusting(&root, Some("three.test")));
        assert_eq!(ask(&named, None), None, "{version:?}");
    }
}
