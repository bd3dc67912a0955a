//! Whom each side trusts.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose,
    SerialNumber, date_time_ymd,
};
use spangate_tls::{
    AcceptorOptions, Buffer, ClientCertificates, Connector, ConnectorOptions, FailureKind,
    Identity, IgnoredErrors, Trusted, Verification,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

/// What a client that trusts `trusted` makes of a server with `identity`.
fn server_is_trusted(
    identity: Identity,
    trusted: &Authority,
    demanded: Option<&str>,
    asked: Option<&str>,
) -> Result<(), FailureKind> {
    let acceptor = acceptor(&AcceptorOptions::default(), &[plain(identity)]);
    let connector = Connector::new(&ConnectorOptions {
        verification: Verification::Required {
            trusted: trusted.trusted(),
            name: demanded.map(str::to_owned),
        },
        ..ConnectorOptions::default()
    });
    let mut pair = Pair::new(&acceptor, &connector.unwrap(), asked);
    pair.talk(usize::MAX);
    match pair.client.failure {
        Some(failure) => Err(failure.kind),
        None => {
            assert!(pair.server.session.is_established());
            Ok(())
        }
    }
}

#[test]
fn a_server_is_checked_by_chain_and_name() {
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let of = || authority.identity(&["one.test"], Kind::Ecdsa);
    for (asked, demanded, wanted) in [
        (Some("one.test"), None, Ok(())),
        (Some("two.test"), None, Err(FailureKind::Name)),
        (Some("one.test"), Some("two.test"), Ok(())),
        (Some("two.test"), Some("one.test"), Err(FailureKind::Name)),
        (None, None, Ok(())),
        (None, Some("one.test"), Ok(())),
        (None, Some("two.test"), Err(FailureKind::Name)),
    ] {
        let got = server_is_trusted(of(), &authority, demanded, asked);
        assert_eq!(got, wanted, "{asked:?} {demanded:?}");
        let got = server_is_trusted(of(), &stranger, demanded, asked);
        assert_eq!(got, Err(FailureKind::Authority), "{asked:?} {demanded:?}");
    }
}

#[test]
fn an_address_is_checked_as_a_name_is() {
    let authority = Authority::new("root");
    let of = |names: &[&str]| authority.identity(names, Kind::Ecdsa);
    let (v4, v6) = ("127.0.0.1", "::1");
    for (names, asked, demanded, wanted) in [
        (&["one.test"][..], Some(v4), None, Err(FailureKind::Name)),
        (&["one.test"], Some("0.0.0.0"), None, Err(FailureKind::Name)),
        (&["one.test"], Some(v6), None, Err(FailureKind::Name)),
        (&["one.test"], Some("[::1]"), None, Err(FailureKind::Name)),
        (&["127.0.0.2"], Some(v4), None, Err(FailureKind::Name)),
        (&["one.test", v4], Some(v4), None, Ok(())),
        (&[v6], Some("[::1]"), None, Ok(())),
        (&[v4], Some("one.test"), None, Err(FailureKind::Name)),
        // The requested one takes precedence over that of the line.
        (
            &["one.test"],
            Some(v4),
            Some("one.test"),
            Err(FailureKind::Name),
        ),
        (&[v4], None, Some(v4), Ok(())),
        (&[v4], None, Some("127.0.0.2"), Err(FailureKind::Name)),
        (&["one.test"], None, None, Ok(())),
    ] {
        let got = server_is_trusted(of(names), &authority, demanded, asked);
        assert_eq!(got, wanted, "{names:?} {asked:?} {demanded:?}");
    }
    // By its common name, where there are no alternative ones.
    let (certificate, key) = authority.issue(&[], v4, Kind::Ecdsa);
    let pem = certificate + &key;
    let identity = Identity::parse(pem.as_bytes(), None, None, Path::new("x")).unwrap();
    let asked = |name| server_is_trusted(identity.clone(), &authority, None, Some(name));
    assert_eq!(asked(v4), Ok(()));
    assert_eq!(asked("127.0.0.2"), Err(FailureKind::Name));
}

#[test]
fn what_stands_for_no_name_cannot_be_requested() {
    let authority = Authority::new("root");
    let connector = Connector::new(&ConnectorOptions {
        verification: Verification::Required {
            trusted: authority.trusted(),
            name: None,
        },
        ..ConnectorOptions::default()
    });
    let connector = connector.unwrap();
    for name in ["100::1", "[100::1]", "0100:0:0:0:0:0:0:1"] {
        let failure = connector.connect(Some(name)).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Name, "{name}");
    }
}

#[test]
fn without_alternative_names_the_common_one_counts() {
    let authority = Authority::new("root");
    let (certificate, key) = authority.issue(&[], "one.test", Kind::Ecdsa);
    let pem = certificate + &key;
    let identity = Identity::parse(pem.as_bytes(), None, None, Path::new("x")).unwrap();
    let asked = |name| server_is_trusted(identity.clone(), &authority, None, Some(name));
    assert_eq!(asked("one.test"), Ok(()));
    assert_eq!(asked("two.test"), Err(FailureKind::Name));
}

/// Whether a client with `own` certificate is let in by those who trust `trusted`.
fn client_is_let_in(own: Identity, trusted: Trusted) -> bool {
    let options = AcceptorOptions {
        clients: Some(ClientCertificates {
            trusted,
            hints: None,
            tells_no_names: false,
            is_optional: false,
            ignored: IgnoredErrors::default(),
            ignored_of_issuers: IgnoredErrors::default(),
        }),
        ..AcceptorOptions::default()
    };
    let server = Authority::new("server").identity(&["server.test"], Kind::Ecdsa);
    let connector = Connector::new(&ConnectorOptions {
        identity: Some(own),
        ..ConnectorOptions::default()
    });
    let acceptor = acceptor(&options, &[plain(server)]);
    let mut pair = Pair::new(&acceptor, &connector.unwrap(), None);
    pair.talk(usize::MAX);
    pair.server.failure.is_none()
}

#[test]
fn a_certificate_in_the_file_of_authorities_needs_no_issuer_and_nothing_else_is_excused() {
    let params = |is_ca: bool| {
        let mut params = CertificateParams::new(["own.test".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(7));
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        }
        params
    };
    for is_ca in [false, true] {
        let judge = |params: CertificateParams| {
            let own = Authority::of(params);
            let server = server_is_trusted(own.own_identity(), &own, None, Some("own.test"));
            (
                client_is_let_in(own.own_identity(), own.trusted()),
                server.is_ok(),
            )
        };
        assert_eq!(judge(params(is_ca)), (true, true), "{is_ca}");
        let mut expired = params(is_ca);
        expired.not_before = date_time_ymd(2020, 1, 1);
        expired.not_after = date_time_ymd(2021, 1, 1);
        assert_eq!(judge(expired), (false, false), "{is_ca}");
        let mut of_servers = params(is_ca);
        of_servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        assert_eq!(judge(of_servers), (false, true), "{is_ca}");
        let mut of_clients = params(is_ca);
        of_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        assert_eq!(judge(of_clients), (true, false), "{is_ca}");
    }
    let revoked = Authority::of(params(true));
    let list = revoked.revokes_itself(SerialNumber::from(7));
    let trusted = revoked.trusted_except(list.as_ref());
    assert!(!client_is_let_in(revoked.own_identity(), trusted));
}

#[test]
fn clients_are_asked_for_certificates() {
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let own = authority.identity(&["server.test"], Kind::Ecdsa);
    let all = || IgnoredErrors {
        all: true,
        ..IgnoredErrors::default()
    };
    let of = |number| IgnoredErrors {
        numbers: vec![number],
        ..IgnoredErrors::default()
    };
    let none = IgnoredErrors::default;
    // UNABLE_TO_GET_ISSUER_CERT_LOCALLY and UNABLE_TO_VERIFY_LEAF_SIGNATURE occur together.
    let unknown = || IgnoredErrors {
        numbers: vec![20, 21],
        ..IgnoredErrors::default()
    };
    for (is_optional, [ignored, ignored_of_issuers], who, wanted) in [
        (false, [none(), none()], Some(&authority), true),
        (false, [none(), none()], Some(&stranger), false),
        (false, [none(), none()], None, false),
        (true, [none(), none()], Some(&authority), true),
        (true, [none(), none()], Some(&stranger), false),
        (true, [none(), none()], None, true),
        (true, [all(), none()], Some(&stranger), true),
        (false, [unknown(), none()], Some(&stranger), true),
        (false, [of(20), none()], Some(&stranger), false),
        (false, [of(10), none()], Some(&stranger), false),
        (false, [none(), all()], Some(&stranger), false),
        (false, [all(), all()], None, false),
    ] {
        let options = AcceptorOptions {
            clients: Some(ClientCertificates {
                trusted: authority.trusted(),
                hints: None,
                tells_no_names: false,
                is_optional,
                ignored: ignored.clone(),
                ignored_of_issuers,
            }),
            ..AcceptorOptions::default()
        };
        let acceptor = acceptor(&options, &[plain(own.clone())]);
        let identity = who.map(|who| who.identity(&["client.test"], Kind::Ecdsa));
        let connector = Connector::new(&ConnectorOptions {
            identity: identity.clone(),
            ..ConnectorOptions::default()
        });
        let mut pair = Pair::new(&acceptor, &connector.unwrap(), None);
        pair.talk(usize::MAX);
        let case = (is_optional, ignored, who.is_some());
        assert_eq!(pair.server.failure.is_none(), wanted, "{case:?}");
        // What follows a failure does nothing.
        if !wanted {
            let mut out = Buffer::default();
            assert!(!pair.server.session.end(&mut out).unwrap());
            assert!(out.is_empty());
        }
        if wanted && let Some(identity) = identity {
            let peer = pair.server.session.facts().unwrap().peer;
            assert_eq!(&peer[0][..], identity.certificate());
            let root = pair.server.session.facts().unwrap().root;
            let by_authority = std::ptr::eq(who.unwrap(), &raw const authority);
            assert_eq!(root.as_deref(), by_authority.then(|| authority.der()));
        }
    }
}
