//! The results of HAProxy 3.5 with OpenSSL 3.0 on a connection with these certificates; see
//! [`client_facts`].

use std::sync::Arc;

use crate::facts::{HelloFacts, TlsFacts, TlsSecrets};
use crate::testing::Facts;

const CLIENT: &[u8] = include_bytes!("../../x509/data/client.der");
const ROOT: &[u8] = include_bytes!("../../x509/data/root.der");
const SERVER: &[u8] = include_bytes!("../../x509/data/server.der");

/// A TLS 1.3 client that presented a certificate.
fn client_facts() -> TlsFacts {
    TlsFacts {
        version: 0x0304,
        cipher: 0x1302,
        group: 0x001d,
        alpn: b"http/1.1"[..].into(),
        sni: Some(b"www.example.com"[..].into()),
        session_id: [0x58, 0xf6][..].into(),
        own: Some(SERVER.into()),
        own_name: Some("sk.pem".into()),
        peer: [CLIENT.into()].into(),
        root: Some(ROOT.into()),
        hello: Some(Box::new(HelloFacts {
            version: 0x0303,
            ciphers: [0x1a, 0x1a, 0x13, 0x02, 0xc0, 0x2f, 0xff, 0xfe][..].into(),
            ciphers_xxh: 0x87ab_cdef_0123_4567,
            extensions: [0x2a, 0x2a, 0, 0, 0, 0x0b][..].into(),
            groups: [0, 0x1d, 0, 0x17][..].into(),
            formats: [0, 1, 2][..].into(),
            versions: [3, 4, 3, 3][..].into(),
            sigalgs: [4, 3, 5][..].into(),
        })),
        ..TlsFacts::default()
    }
}

fn facts() -> Facts {
    let mut facts = Facts::new();
    facts.session.tls = Some(Arc::new(client_facts()));
    facts
}

#[test]
fn a_connection_is_described() {
    let facts = facts();
    for (expr, wanted) in [
        ("ssl_fc", "1"),
        ("ssl_fc_alg_keysize", "256"),
        ("ssl_fc_use_keysize", "256"),
        ("ssl_fc_alpn", "http/1.1"),
        ("ssl_fc_cipher", "TLS_AES_256_GCM_SHA384"),
        ("ssl_fc_curve", "X25519"),
        ("ssl_fc_protocol", "TLSv1.3"),
        ("ssl_fc_err", "0"),
        ("ssl_fc_has_crt", "1"),
        ("ssl_fc_has_early", "0"),
        ("ssl_fc_early_rcvd", "0"),
        ("ssl_fc_has_sni", "1"),
        ("ssl_fc_is_resumed", "0"),
        ("ssl_fc_sni", "www.example.com"),
        ("ssl_fc_crtname", "sk.pem"),
        ("ssl_fc_session_id,hex", "58F6"),
        ("ssl_c_used", "1"),
        ("ssl_c_verify", "0"),
        ("ssl_c_err", "0"),
        ("ssl_c_ca_err", "0"),
        ("ssl_c_ca_err_depth", "0"),
        ("ssl_bc", "0"),
        ("ssl_bc_is_resumed", "0"),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
    for expr in [
        "ssl_fc_npn",
        "ssl_fc_err_str",
        "ssl_fc_unique_id",
        "ssl_c_chain_der",
        "ssl_bc_alpn",
        "ssl_s_s_dn",
    ] {
        assert_eq!(facts.text(expr), None, "{expr}");
    }
}

#[test]
fn certificates_are_described() {
    let facts = facts();
    for (expr, wanted) in [
        ("ssl_c_i_dn", "/C=FR/O=Root, Inc./CN=Test Root"),
        (
            "ssl_c_s_dn",
            "/C=FR/ST=Île/O=Some Org, +x/OU=one/OU=two/CN=client/emailAddress=a@b.c/UID=u1/1.3.6.1.4.1.99999.1=odd",
        ),
        ("ssl_c_r_dn", "/C=FR/O=Root, Inc./CN=Test Root"),
        ("ssl_c_r_dn(CN)", "Test Root"),
        ("ssl_c_s_dn(CN)", "client"),
        ("ssl_c_s_dn(cn)", "client"),
        ("ssl_c_s_dn(OU)", "one"),
        ("ssl_c_s_dn(OU,2)", "two"),
        ("ssl_c_s_dn(OU,-1)", "two"),
        ("ssl_c_s_dn(1.3.6.1.4.1.99999.1)", "odd"),
        (
            "ssl_c_s_dn(,0,rfc2253)",
            r"1.3.6.1.4.1.99999.1=#0C036F6464,UID=u1,emailAddress=a@b.c,CN=client,OU=two,OU=one,O=Some Org\, \+x,ST=\C3\8Ele,C=FR",
        ),
        ("ssl_c_i_dn(,0,rfc2253)", r"CN=Test Root,O=Root\, Inc.,C=FR"),
        ("ssl_c_s_dn(CN,1,rfc2253)", "client"),
        ("ssl_c_key_alg", "rsaEncryption"),
        ("ssl_c_sig_alg", "ecdsa-with-SHA256"),
        ("ssl_c_notbefore", "261123134703Z"),
        (
            "ssl_c_san",
            "DNS:a.example.com, DNS:*.b.example.com, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1, URI:http://x/y, email:m@n.o, Registered ID:1.2.3.4, DirName:C = DE, CN = dir name",
        ),
        ("ssl_c_serial,hex", "F1E2D3C4B5A60718"),
        ("ssl_c_sha1,hex", "B58650996A34E437E2EC060546180DBAF52F66EA"),
        ("ssl_c_version", "3"),
        ("ssl_c_policies", "1.2.3.4, 0.4.0.1862.1.4"),
        ("ssl_c_policies(1.2.3.4)", "1.2.3.4"),
        ("ssl_c_der,bytes(0,2),hex", "3082"),
        ("ssl_f_s_dn", "/CN=srv.example.com"),
        ("ssl_f_i_dn", "/CN=srv.example.com"),
        ("ssl_f_key_alg", "id-ecPublicKey"),
        ("ssl_f_sig_alg", "ecdsa-with-SHA256"),
        ("ssl_f_version", "3"),
        ("ssl_f_notafter", "361120134625Z"),
        (
            "ssl_f_serial,hex",
            "7D22B08D013F6BEC86377D0650A08176E9F1C53A",
        ),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
    // Its year is 2125.
    for expr in [
        "ssl_c_notafter",
        "ssl_c_s_dn(OU,3)",
        "ssl_c_s_dn(OU,0)",
        "ssl_c_policies(1.2.3)",
    ] {
        assert_eq!(facts.text(expr), None, "{expr}");
    }
    assert!(crate::testing::fails("ssl_c_s_dn(CN,1,foo)").contains("rfc2253"));
}

#[test]
fn a_hello_is_described() {
    let facts = facts();
    for (expr, wanted) in [
        ("ssl_fc_protocol_hello_id", "771"),
        ("ssl_fc_cipherlist_bin,hex", "1A1A1302C02FFFFE"),
        ("ssl_fc_cipherlist_bin(1),hex", "1302C02FFFFE"),
        ("ssl_fc_cipherlist_hex(1)", "1302C02FFFFE"),
        (
            "ssl_fc_cipherlist_str(1)",
            "TLS_AES_256_GCM_SHA384,ECDHE-RSA-AES128-GCM-SHA256,UNKNOWN(fffe)",
        ),
        ("ssl_fc_extlist_bin(1),be2dec(-,2)", "0-11"),
        ("ssl_fc_eclist_bin,be2dec(-,2)", "29-23"),
        ("ssl_fc_ecformats_bin,be2dec(-,1)", "0-1-2"),
        ("ssl_fc_supported_versions_bin,hex", "03040303"),
        ("ssl_fc_sigalgs_bin,hex", "040305"),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
}

#[test]
fn the_hash_of_the_ciphers_is_signed() {
    let number = 0x87ab_cdef_0123_4567_u64.cast_signed();
    let text = facts().text("ssl_fc_cipherlist_xxh");
    assert_eq!(text, Some(number.to_string()));
}

#[test]
fn a_server_connection_has_the_same_facts() {
    let mut facts = Facts::new();
    facts.txn.server_tls = Some(Arc::new(TlsFacts {
        version: 0x0303,
        cipher: 0xcca8,
        resumed: true,
        peer: [SERVER.into(), ROOT.into()].into(),
        ..TlsFacts::default()
    }));
    for (expr, wanted) in [
        ("ssl_bc", "1"),
        ("ssl_fc", "0"),
        ("ssl_bc_is_resumed", "1"),
        ("ssl_bc_protocol", "TLSv1.2"),
        ("ssl_bc_cipher", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("ssl_bc_use_keysize", "256"),
        ("ssl_s_s_dn(CN)", "srv.example.com"),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
    let chain = facts.text("ssl_s_chain_der,hex").expect("a chain");
    assert_eq!(chain.len(), 2 * (SERVER.len() + ROOT.len()));
}

#[test]
fn secrets_that_are_kept_are_told() {
    let mut facts = Facts::new();
    let exprs = ["client_random,hex", "session_key,hex", "exporter_secret"];
    for expr in exprs {
        assert_eq!(facts.text(&format!("ssl_fc_{expr}")), None, "{expr}");
    }
    facts.session.tls = Some(Arc::new(TlsFacts {
        secrets: Some(Box::new(TlsSecrets {
            client_random: [0xab; 32].into(),
            exporter: b"0a1b".as_slice().into(),
            ..TlsSecrets::default()
        })),
        ..TlsFacts::default()
    }));
    let random = "AB".repeat(32);
    for (expr, wanted) in exprs.iter().zip([Some(&*random), None, Some("0a1b")]) {
        let text = facts.text(&format!("ssl_fc_{expr}"));
        assert_eq!(text.as_deref(), wanted, "{expr}");
    }
    assert!(!format!("{:?}", facts.session.tls).contains("0a1b"));
    assert_eq!(facts.text("ssl_fc_early_exporter_secret"), None);
}

#[test]
fn a_clear_connection_has_none() {
    let facts = Facts::new();
    for expr in ["ssl_fc", "ssl_fc_has_sni", "ssl_fc_is_resumed", "ssl_bc"] {
        assert_eq!(facts.text(expr).as_deref(), Some("0"), "{expr}");
    }
    for expr in [
        "ssl_c_used",
        "ssl_fc_has_crt",
        "ssl_c_verify",
        "ssl_fc_err",
        "ssl_fc_protocol",
        "ssl_f_der",
        "ssl_c_s_dn",
        "ssl_fc_cipherlist_bin",
        "ssl_c_san",
    ] {
        assert_eq!(facts.text(expr), None, "{expr}");
    }
}

/// Bytes that are not a certificate have no value.
#[test]
fn what_is_no_certificate_says_nothing() {
    for length in [0, 1, 10, CLIENT.len() - 1] {
        let mut facts = Facts::new();
        facts.session.tls = Some(Arc::new(TlsFacts {
            peer: [CLIENT[..length].into()].into(),
            ..TlsFacts::default()
        }));
        for expr in [
            "ssl_c_s_dn",
            "ssl_c_notafter",
            "ssl_c_san",
            "ssl_c_serial",
            "ssl_c_version",
        ] {
            assert_eq!(facts.text(expr), None, "{length} {expr}");
        }
    }
}

/// The space is used in HAProxy's order: ciphers, extensions, groups, formats, versions,
/// signatures.
#[test]
fn a_hello_is_kept_as_far_as_there_is_room() {
    // After the header of its record.
    let hello = crate::sniff::client_hello::tests::example().split_off(5);
    let whole = HelloFacts::of(&hello, 1000).expect("a hello");
    assert_eq!(whole.version, 0x0303);
    assert!(!whole.ciphers.is_empty() && !whole.extensions.is_empty() && !whole.groups.is_empty());
    let room = whole.ciphers.len() + 3;
    let part = HelloFacts::of(&hello, room).expect("a hello");
    assert_eq!(
        (&part.ciphers, part.ciphers_xxh),
        (&whole.ciphers, whole.ciphers_xxh)
    );
    assert_eq!(*part.extensions, whole.extensions[..2]);
    assert_eq!(part.groups.len(), 1);
    assert_eq!(HelloFacts::of(b"GET / HTTP/1.1\r\n\r\n", 1000), None);
}
