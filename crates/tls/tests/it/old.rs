//! Certificates and lists of version 1, which are written here byte by byte.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, GeneralSubtree, IsCa, KeyPair,
    NameConstraints, PublicKeyData as _, SigningKey,
};
use spangate_tls::{
    AcceptorOptions, Authorities, ClientCertificates, Connector, ConnectorOptions, FailureKind,
    Identity, IgnoredErrors, Offer, Trusted, Verification, Version,
};

use crate::pairs::{Authority, Kind, Pair, acceptor, plain};

const SEQUENCE: u8 = 0x30;

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len();
    let mut all = vec![tag];
    match len {
        0..=0x7f => all.push(len as u8),
        _ => all.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    all.extend(content);
    all
}

/// ecdsa-with-SHA256
fn algorithm() -> Vec<u8> {
    tlv(
        SEQUENCE,
        &[&[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]],
    )
}

fn name(common: &str) -> Vec<u8> {
    let text = tlv(0x0c, &[common.as_bytes()]);
    let pair = tlv(SEQUENCE, &[&[0x06, 3, 0x55, 4, 3], &text]);
    tlv(SEQUENCE, &[&tlv(0x31, &[&pair])])
}

fn utc(text: &str) -> Vec<u8> {
    tlv(0x17, &[text.as_bytes()])
}

fn integer(number: u8) -> Vec<u8> {
    tlv(0x02, &[&[number]])
}

/// Signs what stands in `parts`.
fn signed(parts: &[&[u8]], key: &impl SigningKey) -> Vec<u8> {
    let whole = tlv(SEQUENCE, parts);
    let signature = key.sign(&whole).unwrap();
    let signature = tlv(0x03, &[&[0], &signature]);
    tlv(SEQUENCE, &[&whole, &algorithm(), &signature])
}

fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        for three in line.chunks(3) {
            let word = three
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte));
            let word = word << (8 * (3 - three.len()));
            for nth in 0..4 {
                text.push(if nth <= three.len() {
                    char::from(DIGITS[(word >> (18 - 6 * nth)) as usize & 63])
                } else {
                    '='
                });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

/// A certificate of version 1 by `authority`, which is called `issuer`.
fn certificate(authority: &Authority, issuer: &str, serial: u8, until: &str) -> Identity {
    signed_by(authority.key(), issuer, serial, until)
}

fn signed_by(authority: &impl SigningKey, issuer: &str, serial: u8, until: &str) -> Identity {
    let key = KeyPair::generate().unwrap();
    let validity = tlv(SEQUENCE, &[&utc("200101000000Z"), &utc(until)]);
    let public = key.subject_public_key_info();
    let der = signed(
        &[
            &integer(serial),
            &algorithm(),
            &name(issuer),
            &validity,
            &name("one.test"),
            &public,
        ],
        authority,
    );
    let pem = pem("CERTIFICATE", &der) + &key.serialize_pem();
    Identity::parse(pem.as_bytes(), None, None, Path::new("old")).unwrap()
}

/// A list of version 1.
fn revoked(authority: &Authority, issuer: &str, serials: &[u8], until: &str) -> String {
    let now = utc("200101000000Z");
    let entries = serials
        .iter()
        .map(|serial| tlv(SEQUENCE, &[&integer(*serial), &now]));
    let entries: Vec<_> = entries.collect();
    let list = tlv(SEQUENCE, &[&entries.concat()]);
    let der = signed(
        &[&algorithm(), &name(issuer), &now, &utc(until), &list],
        authority.key(),
    );
    pem("X509 CRL", &der)
}

const LATER: &str = "490101000000Z";
const EARLIER: &str = "210101000000Z";

#[test]
fn servers_of_version_1() {
    let (root, stranger) = (Authority::new("root"), Authority::new("root"));
    let good = certificate(&root, "root", 1, LATER);
    let expired = certificate(&root, "root", 2, EARLIER);
    let forged = certificate(&stranger, "root", 3, LATER);
    let unknown = certificate(&root, "else", 4, LATER);
    let required = || Verification::Required {
        trusted: root.trusted(),
        name: None,
    };
    let (right, wrong) = ("one.test", "two.test");
    for (identity, verification, asked, expected) in [
        (&good, required(), right, Ok(())),
        (&good, required(), wrong, Err(FailureKind::Name)),
        (&expired, required(), right, Err(FailureKind::Certificate)),
        // An authority of that name is trusted, but has not signed it.
        (&forged, required(), right, Err(FailureKind::Certificate)),
        (&unknown, required(), right, Err(FailureKind::Authority)),
        (&forged, Verification::None, wrong, Ok(())),
    ] {
        for version in [Version::Tls12, Version::Tls13] {
            let acceptor = acceptor(&AcceptorOptions::default(), &[plain(identity.clone())]);
            let connector = Connector::new(&ConnectorOptions {
                verification: verification.clone(),
                offer: Offer {
                    highest: Some(version),
                    ..Offer::default()
                },
                ..ConnectorOptions::default()
            });
            let mut pair = Pair::new(&acceptor, &connector.unwrap(), Some(asked));
            pair.talk(usize::MAX);
            let found = pair
                .client
                .failure
                .map_or(Ok(()), |failure| Err(failure.kind));
            assert_eq!(found, expected, "{version:?} {verification:?}");
        }
    }
}

#[test]
fn clients_of_version_1_and_their_lists() {
    let root = Authority::new("root");
    let own = root.identity(&["server.test"], Kind::Ecdsa);
    let good = certificate(&root, "root", 1, LATER);
    let bad = certificate(&root, "root", 2, LATER);
    let expired = certificate(&root, "root", 3, EARLIER);
    let with_list = root.trusted_except(revoked(&root, "root", &[9, 2, 200], LATER).as_ref());
    let with_other = root.trusted_except(revoked(&root, "else", &[1], LATER).as_ref());
    let with_expired = root.trusted_except(revoked(&root, "root", &[2], EARLIER).as_ref());
    for (identity, trusted, ignored, is_taken, verdict) in [
        (&good, root.trusted(), false, true, 0),
        (&bad, root.trusted(), false, true, 0),
        (&good, with_list.clone(), false, true, 0),
        (&bad, with_list.clone(), false, false, 0),
        (&bad, with_list.clone(), true, true, 23),
        // No list of this issuer.
        (&good, with_other, false, false, 0),
        (&good, with_expired, false, false, 0),
        (&expired, with_list.clone(), false, false, 0),
        (&expired, with_list, true, true, 10),
    ] {
        let options = AcceptorOptions {
            clients: Some(ClientCertificates {
                trusted,
                hints: None,
                tells_no_names: false,
                is_optional: false,
                ignored: IgnoredErrors {
                    all: ignored,
                    ..IgnoredErrors::default()
                },
                ignored_of_issuers: IgnoredErrors::default(),
            }),
            ..AcceptorOptions::default()
        };
        let acceptor = acceptor(&options, &[plain(own.clone())]);
        let connector = Connector::new(&ConnectorOptions {
            identity: Some(identity.clone()),
            ..ConnectorOptions::default()
        });
        let mut pair = Pair::new(&acceptor, &connector.unwrap(), None);
        pair.talk(usize::MAX);
        assert_eq!(
            pair.server.failure.is_none(),
            is_taken,
            "{ignored} {:?}",
            pair.server.failure
        );
        if is_taken {
            assert_eq!(pair.server.session.facts().unwrap().verdict.last, verdict);
        }
    }
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// An authority called `between` that another one issued.
fn intermediate(root: &Issuer, constraints: Option<NameConstraints>) -> Issuer {
    let mut params = authority("between");
    params.name_constraints = constraints;
    CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), root).unwrap()
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

#[test]
fn an_intermediate_authority_may_have_issued_a_certificate_of_version_1() {
    let key = KeyPair::generate().unwrap();
    let root = CertifiedIssuer::self_signed(authority("root"), key).unwrap();
    let constraints = NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("test".to_owned())],
        excluded_subtrees: Vec::new(),
    };
    let (plain_one, constrained) = (
        intermediate(&root, None),
        intermediate(&root, Some(constraints)),
    );
    let stranger = KeyPair::generate().unwrap();
    for (between, key, until, is_taken) in [
        (&plain_one, plain_one.key(), LATER, true),
        (&plain_one, plain_one.key(), EARLIER, false),
        (&plain_one, &stranger, LATER, false),
        // Nothing checks the names of a certificate of version 1.
        (&constrained, constrained.key(), LATER, false),
    ] {
        let own = signed_by(key, "between", 1, until);
        let pem = between.pem() + &root.pem();
        let authorities = Authorities::parse(None, pem.as_bytes(), Path::new("ca")).unwrap();
        let trusted = Trusted::new(&authorities, None);
        let server = Authority::new("server").identity(&["server.test"], Kind::Ecdsa);
        let options = AcceptorOptions {
            clients: Some(ClientCertificates {
                trusted: trusted.clone(),
                hints: None,
                tells_no_names: false,
                is_optional: false,
                ignored: IgnoredErrors::default(),
                ignored_of_issuers: IgnoredErrors::default(),
            }),
            ..AcceptorOptions::default()
        };
        let connector = Connector::new(&ConnectorOptions {
            identity: Some(own.clone()),
            ..ConnectorOptions::default()
        });
        let lets_in = acceptor(&options, &[plain(server)]);
        let mut pair = Pair::new(&lets_in, &connector.unwrap(), None);
        pair.talk(usize::MAX);
        let failure = &pair.server.failure;
        assert_eq!(failure.is_none(), is_taken, "{failure:?}");
        // The same as a server.
        let connector = Connector::new(&ConnectorOptions {
            verification: Verification::Required {
                trusted,
                name: None,
            },
            ..ConnectorOptions::default()
        });
        let serves = acceptor(&AcceptorOptions::default(), &[plain(own)]);
        let mut pair = Pair::new(&serves, &connector.unwrap(), None);
        pair.talk(usize::MAX);
        let failure = &pair.client.failure;
        assert_eq!(failure.is_none(), is_taken, "{failure:?}");
    }
}
