//! Which certificate a client gets, and what is wrong with those that none gets.

use std::path::Path;
use std::sync::Arc;

use spangate_tls::{
    Acceptor, AcceptorOptions, CaSigner, Certificate, Certificates, Chains, Connector,
    ConnectorOptions, Files, Identity, IdentityError, Material, Offer, Passphrases, Verification,
    Version,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

fn no_passphrase(_: &Path) -> Result<Vec<u8>, String> {
    Err("none".to_owned())
}

/// The certificate that a client gets which asks for this name.
fn given(certificates: &[Certificate], strict: bool, name: Option<&str>) -> Option<usize> {
    let all = Certificates::new(certificates, strict);
    let acceptor = Acceptor::new(&AcceptorOptions::default(), Arc::new(all)).unwrap();
    let connector = Connector::new(&ConnectorOptions::default()).unwrap();
    let mut pair = Pair::new(&acceptor, &connector, name);
    pair.talk(usize::MAX);
    let facts = pair.client.session.facts()?;
    let got = facts.peer.first()?;
    certificates
        .iter()
        .position(|each| each.identity.certificate() == &got[..])
}

#[test]
fn names_choose_the_certificate() {
    let authority = Authority::new("root");
    let of = |names: &[&str]| plain(authority.identity(names, Kind::Ecdsa));
    let mut filtered = of(&["filtered.test"]);
    filtered.filters = vec!["*.wild.test".into(), "!not.wild.test".into()];
    let certificates = [of(&["one.test"]), of(&["two.test", "*.two.test"]), filtered];
    for (name, wanted) in [
        (Some("one.test"), Some(0)),
        (Some("ONE.test"), Some(0)),
        (Some("two.test"), Some(1)),
        (Some("www.two.test"), Some(1)),
        (Some("a.www.two.test"), None),
        (Some("any.wild.test"), Some(2)),
        (Some("not.wild.test"), None),
        (Some("filtered.test"), None),
        (Some("else.test"), None),
        (None, None),
    ] {
        assert_eq!(given(&certificates, true, name), wanted, "{name:?}");
        assert_eq!(
            given(&certificates, false, name),
            wanted.or(Some(0)),
            "{name:?}"
        );
    }
}

#[test]
fn a_default_certificate_need_not_be_the_first_one() {
    let authority = Authority::new("root");
    let of = |name: &str| plain(authority.identity(&[name], Kind::Ecdsa));
    let mut default = of("two.test");
    default.is_default = true;
    let certificates = [of("one.test"), default];
    assert_eq!(given(&certificates, false, Some("else.test")), Some(1));
}

#[test]
fn of_several_kinds_the_client_gets_what_it_can_check() {
    let authority = Authority::new("root");
    let of = |kind| plain(authority.identity(&["one.test"], kind));
    let certificates = [of(Kind::Rsa), of(Kind::Ecdsa)];
    assert_eq!(given(&certificates, false, Some("one.test")), Some(1));
    let all = Certificates::new(&certificates, false);
    let acceptor = Acceptor::new(&AcceptorOptions::default(), Arc::new(all)).unwrap();
    // Suites of TLS 1.2 go with one kind of key.
    for (suite, wanted) in [(0xc02f, 0), (0xc02b, 1)] {
        let connector = Connector::new(&ConnectorOptions {
            offer: Offer {
                highest: Some(Version::Tls12),
                suites12: Some(vec![suite]),
                ..Offer::default()
            },
            ..ConnectorOptions::default()
        });
        let mut pair = Pair::new(&acceptor, &connector.unwrap(), Some("one.test"));
        pair.talk(usize::MAX);
        let peer = pair.client.session.facts().unwrap().peer;
        assert_eq!(&peer[0][..], certificates[wanted].identity.certificate());
    }
}

#[test]
fn signature_algorithms_can_be_chosen() {
    const RSA_PSS_SHA256: u16 = 0x0804;
    const ECDSA_P256_SHA256: u16 = 0x0403;
    let authority = Authority::new("root");
    let of = |kind| plain(authority.identity(&["one.test"], kind));
    let certificates = [of(Kind::Rsa), of(Kind::Ecdsa)];
    // Who takes what, and which certificate is given.
    let cases: [(&[u16], &[u16], Option<usize>); 6] = [
        (&[], &[RSA_PSS_SHA256], Some(0)),
        (&[RSA_PSS_SHA256], &[], Some(0)),
        (&[ECDSA_P256_SHA256], &[], Some(1)),
        (&[RSA_PSS_SHA256, ECDSA_P256_SHA256], &[], Some(1)),
        (
            &[RSA_PSS_SHA256],
            &[RSA_PSS_SHA256, ECDSA_P256_SHA256],
            Some(0),
        ),
        (&[RSA_PSS_SHA256], &[ECDSA_P256_SHA256], None),
    ];
    let offer = |signatures: &[u16]| Offer {
        signatures: (!signatures.is_empty()).then(|| signatures.to_vec()),
        ..Offer::default()
    };
    for (theirs, ours, wanted) in cases {
        let all = Certificates::new(&certificates, false);
        let options = AcceptorOptions {
            offer: offer(ours),
            ..AcceptorOptions::default()
        };
        let acceptor = Acceptor::new(&options, Arc::new(all)).unwrap();
        let connector = Connector::new(&ConnectorOptions {
            offer: offer(theirs),
            ..ConnectorOptions::default()
        });
        let mut pair = Pair::new(&acceptor, &connector.unwrap(), Some("one.test"));
        pair.talk(usize::MAX);
        let peer = pair.client.session.facts().map(|facts| facts.peer);
        let found = peer.map(|peer| {
            let mut all = certificates.iter();
            all.position(|each| each.identity.certificate() == &peer[0][..])
        });
        assert_eq!(found.flatten(), wanted, "{theirs:x?} {ours:x?}");
    }
}

/// The certificate for exactly the name is of a kind that the client cannot check: it gets the one
/// for the wildcard.
#[test]
fn a_wildcard_of_another_kind_is_the_second_choice() {
    let authority = Authority::new("root");
    let of = |name, kind| plain(authority.identity(&[name], kind));
    let certificates = [of("*.one.test", Kind::Rsa), of("a.one.test", Kind::Ecdsa)];
    let all = Certificates::new(&certificates, true);
    let acceptor = Acceptor::new(&AcceptorOptions::default(), Arc::new(all)).unwrap();
    for (signatures, wanted) in [(vec![0x0804, 0x0403], 1), (vec![0x0804], 0)] {
        let connector = Connector::new(&ConnectorOptions {
            offer: Offer {
                signatures: Some(signatures),
                ..Offer::default()
            },
            ..ConnectorOptions::default()
        });
        let mut pair = Pair::new(&acceptor, &connector.unwrap(), Some("a.one.test"));
        pair.talk(usize::MAX);
        let peer = pair.client.session.facts().unwrap().peer;
        assert_eq!(&peer[0][..], certificates[wanted].identity.certificate());
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_told() {
    let authority = Authority::new("root");
    let (certificate, key) = authority.issue(&["one.test"], "", Kind::Ecdsa);
    let (_, other) = authority.issue(&["one.test"], "", Kind::Ecdsa);
    let path = Path::new("x.pem");
    let parse = |pem: &str, key: Option<&str>| {
        Identity::parse(pem.as_bytes(), key.map(str::as_bytes), None, path).map(|_| ())
    };
    assert!(parse(&(certificate.clone() + &key), None).is_ok());
    assert!(parse(&(key.clone() + &certificate), None).is_ok());
    assert!(parse(&certificate, Some(&key)).is_ok());
    assert!(matches!(
        parse(&certificate, Some(&other)),
        Err(IdentityError::Mismatch(_))
    ));
    assert!(matches!(
        parse(&certificate, None),
        Err(IdentityError::NoKey(_))
    ));
    assert!(matches!(
        parse(&key, None),
        Err(IdentityError::NoCertificate(_))
    ));
    let broken = certificate.replacen("MII", "M?I", 1);
    assert!(matches!(
        parse(&(broken + &key), None),
        Err(IdentityError::Malformed(..) | IdentityError::NoCertificate(_))
    ));
    assert!(matches!(
        Identity::load(&Files {
            certificate: Path::new("/nonexistent/x.pem"),
            key: None,
            key_beside: None,
            issuer: None,
            ocsp: None,
        }),
        Err(IdentityError::Unreadable(..))
    ));
}

#[test]
fn chains_are_completed_from_a_directory() {
    let (root, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let directory = std::env::temp_dir().join(format!("spangate-chains-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a.pem"), stranger.pem()).unwrap();
    std::fs::write(directory.join("b.pem"), root.pem()).unwrap();
    let chains = Chains::load(&directory).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(Chains::load(&directory).is_err());
    let (certificate, key) = root.issue(&["one.test"], "", Kind::Ecdsa);
    let alone = certificate.clone() + &key;
    let whole = certificate + &root.pem() + &key;
    let none = Chains::default();
    for (pem, chains, drops_roots, is_completed, expected) in [
        (&alone, &none, false, false, 1),
        (&alone, &chains, false, true, 2),
        (&whole, &chains, false, false, 2),
        (&whole, &none, true, false, 1),
        (&alone, &chains, true, true, 1),
    ] {
        let mut material = Material::default();
        material.set_pem(pem.as_bytes(), Path::new("x")).unwrap();
        let completed = material.complete(chains).map(Path::to_owned);
        assert_eq!(completed, is_completed.then(|| directory.join("b.pem")));
        if drops_roots {
            material.drop_roots();
        }
        let identity = material.identity(Path::new("x")).unwrap();
        let acceptor = acceptor(&AcceptorOptions::default(), &[plain(identity)]);
        let connector = Connector::new(&ConnectorOptions::default()).unwrap();
        let mut pair = Pair::new(&acceptor, &connector, Some("one.test"));
        pair.talk(usize::MAX);
        let sent = pair.client.session.facts().unwrap().peer.len();
        assert_eq!(sent, expected);
    }
}

#[test]
fn names_are_alternative_ones_and_the_common_one() {
    let authority = Authority::new("root");
    let (certificate, key) =
        authority.issue(&["One.test", "*.two.test"], "Three.test", Kind::Ecdsa);
    let pem = certificate + &key;
    let identity = Identity::parse(pem.as_bytes(), None, None, Path::new("x")).unwrap();
    assert_eq!(identity.names(), ["one.test", "*.two.test", "three.test"]);
}

#[test]
fn keys_of_every_kind_serve() {
    let authority = Authority::new("root");
    for kind in [Kind::Ecdsa, Kind::Rsa, Kind::Ed25519] {
        let certificate = plain(authority.identity(&["one.test"], kind));
        let given = given(&[certificate], false, Some("one.test"));
        assert_eq!(given, Some(0), "{kind:?}");
    }
}

/// The certificates that a client gets which trusts an authority and asks for a name; none where
/// the handshake fails.
fn shown(certificates: &Arc<Certificates>, trusts: &Authority, name: &str) -> Option<Vec<Vec<u8>>> {
    let acceptor = Acceptor::new(&AcceptorOptions::default(), certificates.clone()).unwrap();
    let connector = Connector::new(&ConnectorOptions {
        verification: Verification::Required {
            trusted: trusts.trusted(),
            name: None,
        },
        ..ConnectorOptions::default()
    })
    .unwrap();
    let mut pair = Pair::new(&acceptor, &connector, Some(name));
    pair.talk(usize::MAX);
    let stands = pair.client.session.is_established();
    let facts = pair.client.session.facts().filter(|_| stands)?;
    Some(facts.peer.iter().map(|each| each.to_vec()).collect())
}

#[test]
fn certificates_are_made_for_names_that_none_has() {
    let (authority, web) = (Authority::new("root"), Authority::new("web"));
    let signer = (authority.pem() + &authority.key().serialize_pem()).into_bytes();
    let signer = CaSigner::parse(
        &signer,
        Path::new("ca"),
        &mut Passphrases::new(&mut no_passphrase),
    )
    .unwrap();
    for kind in [Kind::Ecdsa, Kind::Rsa, Kind::Ed25519] {
        let own = plain(web.identity(&["one.test"], kind));
        for strict in [false, true] {
            let all = Certificates::new(std::slice::from_ref(&own), strict);
            let all = Arc::new(all.generating(signer.clone(), 2));
            let made = |name: &str| shown(&all, &authority, name);
            // It is verified for its name, also where that is too long for a common one.
            let two = made("two.test").expect("a certificate");
            let long = format!("{0}.{0}.test", "a".repeat(60));
            assert!(made(&long).is_some());
            assert_eq!(two.len(), 1, "the root is not sent");
            assert!(shown(&all, &web, "two.test").is_none());
            assert_eq!(
                shown(&all, &web, "one.test").unwrap()[0],
                own.identity.certificate()
            );
            // The last ones are kept, and no more.
            assert_eq!(made("two.test").as_ref(), Some(&two));
            assert_eq!(made("TWO.test").as_ref(), Some(&two));
            for other in ["three.test", "four.test"] {
                assert!(made(other).is_some());
            }
            assert_ne!(made("two.test").unwrap(), two);
        }
    }
}

#[test]
fn authorities_that_sign_need_their_key() {
    let (authority, other) = (Authority::new("root"), Authority::new("other"));
    let parse = |text: String| {
        CaSigner::parse(
            text.as_bytes(),
            Path::new("ca"),
            &mut Passphrases::new(&mut no_passphrase),
        )
        .err()
    };
    let key = authority.key().serialize_pem();
    assert!(parse(authority.pem() + &key).is_none());
    assert!(matches!(
        parse(authority.pem()),
        Some(IdentityError::NoKey(_))
    ));
    assert!(matches!(
        parse(key.clone()),
        Some(IdentityError::NoCertificate(_))
    ));
    assert!(matches!(
        parse(other.pem() + &key),
        Some(IdentityError::Mismatch(_))
    ));
}
