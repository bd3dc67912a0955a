//! Words of `bind`, `server`, `default-server` and `global`.

use super::*;
use spangate_config::model::{CaFile, TlsOptions, TlsVerify, TlsVersion};

#[test]
fn a_bind_line_comes_to_numbers() {
    let files = Files::new(&["a.pem"]);
    let text = frontend(
        "",
        "ssl crt DIR/a.pem alpn h2,,http/1.1 ciphers ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA \
         ciphersuites TLS_CHACHA20_POLY1305_SHA256 curves X25519:P-256 sigalgs RSA-PSS+SHA256 client-sigalgs ed25519 \
         ssl-min-ver TLSv1.3 no-tls-tickets strict-sni prefer-client-ciphers allow-0rtt verify optional ca-file @system-ca \
         ca-verify-file v.pem crl-file /c.pem no-ca-names crt-ignore-err 10,X509_V_ERR_CERT_REVOKED ca-ignore-err all \
         tls-ticket-keys keys",
    );
    let (config, diagnostics) = accepted(&files.named_in(&text));
    let tls = bind_of(&config);
    assert_eq!(files.short(&tls.certificates[0].path), "a.pem");
    assert!(tls.certificates[0].is_default && tls.strict_sni && tls.prefer_client_ciphers);
    assert_eq!(tls.tls_ticket_keys, Some(PathBuf::from("keys")));
    assert_eq!(tls.crt_ignore_err.numbers, [10, 23]);
    assert!(tls.ca_ignore_err.contains(1) && !tls.crt_ignore_err.contains(1));
    let expected = TlsOptions {
        versions: tls.options.versions.clone(),
        ciphers: Some(vec![0xc02f]),
        ciphersuites: Some(vec![0x1303]),
        curves: Some(vec![0x1d, 0x17]),
        sigalgs: Some(vec![0x0804]),
        client_sigalgs: Some(vec![0x0807]),
        alpn: Some(vec![b"h2".to_vec(), b"http/1.1".to_vec()]),
        tickets: Some(false),
        verify: Some(TlsVerify::Optional),
        ca_file: Some(CaFile::System),
        ca_verify_file: Some(CaFile::Path("v.pem".into())),
        crl_file: Some("/c.pem".into()),
        no_ca_names: true,
        allow_0rtt: true,
    };
    assert_eq!(tls.options, expected);
    let range = tls.options.versions.range();
    assert_eq!(range, Some((TlsVersion::Tls13, TlsVersion::Tls13)));
    // TLS 1.2 is disabled, so missing ciphers in its list do not matter.
    assert_eq!(messages(&diagnostics, Severity::Notice).len(), 0);
}

#[test]
fn defaults_of_global_are_what_lines_start_from() {
    let files = Files::new(&["a.pem", "b.pem"]);
    let global = "crt-base DIR\n ca-base /ca\n ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256\n \
                  ssl-default-bind-curves X25519\n ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets strict-sni\n \
                  ssl-default-server-ciphersuites TLS_AES_128_GCM_SHA256\n ssl-default-server-options force-tlsv13\n \
                  ssl-server-verify none\n tune.ssl.lifetime 10\n tune.ssl.cachesize 5\n maxsslconn 7";
    let text = frontend(global, "ssl crt a.pem curves P-384")
        + "backend b\n server s 127.0.0.1:1 ssl crt b.pem\n server t 127.0.0.1:1\n server u 127.0.0.1:1 ssl verify required ca-file x\n";
    let (config, _) = accepted(&files.named_in(&text));
    let tls = bind_of(&config);
    assert_eq!(tls.options.ciphers, Some(vec![0xc02f]));
    assert_eq!(tls.options.curves, Some(vec![0x18]));
    assert_eq!(tls.options.tickets, Some(false));
    assert!(tls.strict_sni);
    let [s, t, u] = &config.proxies[1].servers[..] else {
        panic!("three servers");
    };
    let tls = s.tls().expect("TLS");
    assert!(!tls.verifies() && tls.sni_auto && tls.reuses_sessions);
    assert_eq!(tls.options.ciphersuites, Some(vec![0x1301]));
    let certificate = tls.certificate.as_ref().expect("a certificate");
    assert_eq!(certificate.path, files.path("b.pem"));
    assert_eq!(
        tls.options.versions.range(),
        Some((TlsVersion::Tls13, TlsVersion::Tls13))
    );
    assert!(t.tls().is_none());
    let tls = u.tls().expect("TLS");
    assert!(tls.verifies());
    assert_eq!(tls.options.ca_file, Some(CaFile::Path("/ca/x".into())));
    let global = &config.global.tls;
    assert_eq!((global.lifetime.as_secs(), global.cache_blocks), (10, 5));
    assert_eq!(global.maxsslconn, Some(7));
}

/// A line starts from the sections `global` before it.
#[test]
fn several_sections_of_global_count_where_they_stand() {
    let files = Files::new(&["a.pem"]);
    let global = |suite: &str| {
        format!(
            "global\n ssl-default-bind-ciphersuites {suite}\n ssl-default-server-ciphersuites {suite}\n"
        )
    };
    let proxy = |name: &str| {
        format!(
            "listen {name}\n bind :8443 ssl crt DIR/a.pem\n server s 127.0.0.1:1 ssl verify none\n"
        )
    };
    let text = [
        TIMEOUTS.to_owned(),
        proxy("a"),
        global("TLS_AES_128_GCM_SHA256"),
        proxy("b"),
        proxy("c"),
        global("TLS_AES_256_GCM_SHA384"),
        proxy("d"),
    ];
    let (config, _) = accepted(&files.named_in(&text.concat()));
    let suites = |options: &TlsOptions| options.ciphersuites.clone();
    let found = config.proxies.iter().map(|proxy| {
        let bind = proxy.binds[0].tls.as_deref().expect("TLS");
        let server = proxy.servers[0].tls().expect("TLS");
        assert_eq!(suites(&bind.options), suites(&server.options));
        suites(&bind.options)
    });
    let found: Vec<_> = found.collect();
    assert_eq!(
        found,
        [
            None,
            Some(vec![0x1301]),
            Some(vec![0x1301]),
            Some(vec![0x1302])
        ]
    );
}

#[test]
fn default_server_hands_its_words_on() {
    let text = format!(
        "{TIMEOUTS} default-server ssl verify none alpn h2 sni str(a) no-ssl-reuse verifyhost v\n\
         backend b\n server s 127.0.0.1:1\n server t 127.0.0.1:1 no-ssl\n \
         server u 127.0.0.1:1 no-sni-auto ssl-reuse no-verifyhost alpn http/1.1 check-sni c check-alpn x\n \
         server v 127.0.0.1:1 no-ssl check-ssl ws h1\n"
    );
    let (config, _) = accepted(&text);
    let servers = &config.proxies[0].servers;
    let s = servers[0].tls().expect("TLS");
    assert!(s.sni.is_some() && s.sni_auto && !s.reuses_sessions);
    assert_eq!(s.options.alpn, Some(vec![b"h2".to_vec()]));
    assert_eq!(s.verifyhost.as_deref(), Some("v"));
    let t = servers[1]
        .tls_words
        .as_deref()
        .expect("it may be turned on");
    assert!(servers[1].tls().is_none() && t.is_refused && t.may_turn_on);
    let u = servers[2].tls().expect("TLS");
    assert!(!u.sni_auto && u.reuses_sessions && u.verifyhost.is_none());
    assert_eq!(u.options.alpn, Some(vec![b"http/1.1".to_vec()]));
    assert_eq!(u.check.sni.as_deref(), Some("c"));
    let v = servers[3].tls_words.as_deref().expect("TLS of checks");
    assert!(servers[3].tls().is_none() && v.check.ssl == Some(true));
}

#[test]
fn http_offers_two_protocols_where_nothing_is_said() {
    let none = TlsOptions::default();
    assert_eq!(BindTls::alpn(&none, true, false), [&b"h2"[..], b"http/1.1"]);
    assert_eq!(BindTls::alpn(&none, false, false).len(), 0);
    assert_eq!(BindTls::alpn(&none, true, true), [&b"h3"[..]]);
    let files = Files::new(&["a.pem"]);
    let text = frontend("", "ssl crt DIR/a.pem no-alpn ecdhe P-256");
    let (config, _) = accepted(&files.named_in(&text));
    let options = &bind_of(&config).options;
    assert_eq!(BindTls::alpn(options, true, false).len(), 0);
    assert_eq!(options.curves, Some(vec![0x17]));
}

#[test]
fn what_is_not_available_is_told_once_and_warns_of_nothing() {
    let files = Files::new(&["a.pem"]);
    let global = "ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:AES128-SHA\n \
                  ssl-default-bind-options ssl-min-ver TLSv1.0\n \
                  tune.ssl.default-dh-param 2048\n ssl-engine x";
    let text = frontend(
        global,
        "ssl crt DIR/a.pem curves X25519:secp521r1 sigalgs RSA+SHA1:RSA+SHA256 npn h2",
    ) + " bind :8444 ssl crt DIR/a.pem ssl-min-ver TLSv1.2\n";
    let (_, diagnostics) = accepted(&files.named_in(&text));
    assert_eq!(diagnostics.warnings(), 0);
    let mut told = messages(&diagnostics, Severity::Notice);
    told.sort();
    assert_eq!(
        told,
        [
            "TLSv1.2 is the lowest version here: the lowest version TLSv1.0 is not available.",
            "no effect of tune.ssl.default-dh-param, ssl-engine, bind … npn at t.cfg:4 and 2 more places : they have no meaning here.",
            "not available here, and left out of 'ciphers': DHE-RSA-AES128-GCM-SHA256, AES128-SHA.",
            "not available here, and left out of 'curves': secp521r1.",
            "not available here, and left out of 'sigalgs': RSA+SHA1.",
        ]
    );
}

/// Each with a part of its single alert.
#[test]
fn bad_words_are_refused() {
    let files = Files::new(&["a.pem", "b/.hidden", "b/x.key"]);
    let binds = [
        (
            "ssl",
            "Proxy 'f': no SSL certificate specified for bind ':8443' at [t.cfg:9] (use 'crt').",
        ),
        ("ssl crt DIR/b", "no SSL certificate specified"),
        (
            "ssl crt DIR/no.pem",
            "/no.pem' : No such file or directory.",
        ),
        ("crt DIR/no.pem", "/no.pem' : No such file or directory."),
        (
            "ssl crt @web/x",
            "unable to stat SSL certificate from file '@web/x'",
        ),
        ("ssl crt-list DIR/no", "'crt-list' : cannot open file '"),
        ("ssl crt", "'crt' : missing certificate location."),
        (
            "ssl crt DIR/a.pem ciphers foo",
            "unable to set SSL cipher list to 'foo': nothing of it is available here.",
        ),
        (
            "ssl crt DIR/a.pem ciphers DHE-RSA-AES128-SHA",
            "nothing of it is available here",
        ),
        (
            "ssl crt DIR/a.pem ciphers ALL:@foo",
            "'ALL:@foo': it has an unknown command.",
        ),
        (
            "ssl crt DIR/a.pem ciphersuites foo",
            "unable to set TLS 1.3 cipher suites to 'foo'",
        ),
        (
            "ssl crt DIR/a.pem curves X25519:foo",
            "unable to set SSL curves list to 'X25519:foo': it has an unknown name.",
        ),
        (
            "ssl crt DIR/a.pem curves X448",
            "nothing of it is available here",
        ),
        (
            "ssl crt DIR/a.pem ecdhe foo",
            "unable to set elliptic named curve to 'foo'",
        ),
        (
            "ssl crt DIR/a.pem sigalgs foo:RSA+SHA256",
            "unable to set SSL Signature Algorithm list",
        ),
        (
            "ssl crt DIR/a.pem verify required",
            "Proxy 'f': verify is enabled but no CA file specified for bind ':8443'",
        ),
        (
            "ssl crt DIR/a.pem verify foo",
            "'verify' : unknown verify method 'foo', only 'none', 'optional', and 'required'",
        ),
        (
            "ssl crt DIR/a.pem verify",
            "'verify' : missing verify method",
        ),
        (
            "ssl crt DIR/a.pem ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2",
            "all SSL/TLS versions are disabled for bind ':8443'",
        ),
        (
            "ssl crt DIR/a.pem ssl-max-ver TLSv1.1",
            "TLSv1.2 is the lowest version here: the highest version TLSv1.1 leaves none",
        ),
        (
            "ssl crt DIR/a.pem force-tlsv10",
            "the highest version TLSv1.0 leaves none",
        ),
        (
            "ssl crt DIR/a.pem no-tlsv12 no-tlsv13",
            "all SSL/TLS versions are disabled",
        ),
        (
            "ssl crt DIR/a.pem ssl-min-ver foo",
            "'foo' : unknown ssl/tls version",
        ),
        (
            "ssl crt DIR/a.pem ca-ignore-err foo",
            "error constant 'foo' unknown in error IDs list 'foo'",
        ),
        (
            "ssl crt DIR/a.pem crt-ignore-err 300",
            "error ID '300' out of range",
        ),
        (
            "ssl crt DIR/a.pem ocsp-update on",
            "unknown keyword 'ocsp-update'",
        ),
        (
            "ssl crt DIR/a.pem no-renegotiate",
            "unknown keyword 'no-renegotiate'",
        ),
        ("proto foo", "'proto' : unknown MUX protocol 'foo'."),
        ("ssl crt DIR/a.pem proto fcgi", "proto fcgi"),
    ];
    let servers = [
        (
            "ssl",
            "'server b/s' : verify is enabled by default but no CA file specified.",
        ),
        (
            "ssl verify optional",
            "only 'none' and 'required' are supported",
        ),
        (
            "ssl verify none ciphers foo",
            "unable to set SSL cipher list to 'foo'",
        ),
        (
            "ssl verify none ssl-max-ver TLSv1.2 ssl-min-ver TLSv1.3",
            "all SSL/TLS versions are disabled for 'server b/s'",
        ),
        ("ssl verify none sni", "'sni' : missing sni expression."),
        (
            "ssl verify none sni res.hdr(x)",
            "which is not available here",
        ),
        ("ssl verify none sni foo", "unknown fetch method 'foo'"),
        (
            "ssl verify none crt DIR/no.pem",
            "unable to stat SSL certificate",
        ),
        (
            "ssl verify none verifyhost",
            "'verifyhost' : missing hostname to verify against.",
        ),
        ("ssl verify none strict-sni", "unknown keyword 'strict-sni'"),
        ("ws foo", "'ws' has to be 'auto', 'h1' or 'h2'."),
        (
            "check-alpn",
            "'check-alpn' : missing the comma-delimited ALPN protocol suite.",
        ),
    ];
    let globals = [
        (
            "ssl-default-bind-options renegotiate",
            "unknown option 'renegotiate'",
        ),
        (
            "ssl-server-verify foo",
            "'ssl-server-verify' expects 'none' or 'required'",
        ),
        ("ca-base", "expects a directory path"),
        ("crt-base /a\n crt-base /b", "'crt-base' already specified."),
        ("ssl-load-extra-files foo", "'ssl-load-extra-files' expects"),
        ("tune.ssl.lifetime x", "tune.ssl.lifetime"),
    ];
    let all = binds
        .map(|(options, part)| (frontend("", options), part))
        .into_iter()
        .chain(servers.map(|(options, part)| (backend("", options), part)))
        .chain(globals.map(|(line, part)| (format!("global\n {line}\n"), part)));
    for (text, part) in all {
        let found = alerts(&files.named_in(&text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains(part), "{text}: {found:?}");
    }
}

#[test]
fn some_lines_only_warn() {
    let files = Files::new(&["a.pem"]);
    let cases = [
        (
            "ssl strict-sni",
            "no SSL certificate specified for bind ':8443' at [t.cfg:9], ssl connections will fail (use 'crt').",
        ),
        (
            "ssl crt DIR/a.pem no-tlsv12 ssl-min-ver TLSv1.2",
            "no-sslv3/no-tlsv1x are ignored for bind ':8443' at [t.cfg:9]. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix.",
        ),
    ];
    for (options, part) in cases {
        let (_, diagnostics) = accepted(&files.named_in(&frontend("", options)));
        let warnings = messages(&diagnostics, Severity::Warning);
        assert_eq!(warnings.len(), 1, "{options}: {warnings:?}");
        assert!(warnings[0].contains(part), "{options}: {warnings:?}");
    }
}

/// Lists are checked only if TLS is used, as in HAProxy.
#[test]
fn without_tls_lists_do_not_matter() {
    for text in [
        frontend("ssl-default-bind-ciphers foo", "ciphers bar curves foo"),
        backend("", "ciphers foo ssl-max-ver TLSv1.0 sni str(a)"),
    ] {
        let (config, _) = accepted(&text);
        let proxy = &config.proxies[0];
        assert!(proxy.binds.iter().all(|bind| bind.tls.is_none()));
        assert!(
            proxy
                .servers
                .iter()
                .all(|server| server.tls_words.is_none())
        );
    }
}

/// HTTP/3 on TCP is experimental in HAProxy.
#[test]
fn http3_on_tcp_is_allowed_expressly() {
    let files = Files::new(&["a.pem"]);
    let h3 = |global: &str| files.named_in(&frontend(global, "ssl crt DIR/a.pem alpn h3,h2"));
    let found = alerts(&h3("nbthread 1"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("HTTP/3 on TCP listed via ALPN on frontend 'f' at ["),
        "{found:?}"
    );
    assert_eq!(alerts(&h3("expose-experimental-directives")), [""; 0]);
}

#[test]
fn updates_of_ocsp_have_delays_and_a_proxy() {
    let files = Files::new(&["a.pem"]);
    let text = frontend(
        "ocsp-update.maxdelay 7200\n ocsp-update.mindelay 10\n ocsp-update.httpproxy 127.0.0.1\n ocsp-update.disable on",
        "ssl crt DIR/a.pem",
    );
    let (config, _) = accepted(&files.named_in(&text));
    let ocsp = &config.global.tls.ocsp;
    assert_eq!((ocsp.delay_min_s, ocsp.delay_max_s), (10, 7200));
    assert_eq!(ocsp.http_proxy.as_ref().map(|proxy| proxy.port()), Some(80));
    assert!(ocsp.is_off && !ocsp.is_default);
    for (global, why) in [
        ("ocsp-update.maxdelay 299", "can not be lower than"),
        (
            "tune.ssl.ocsp-update.mindelay 3601",
            "can not be higher than",
        ),
        ("ocsp-update.httpproxy", "expects <address>[:port]"),
        (
            "ocsp-update.httpproxy 127.0.0.1:1-2",
            "port range not allowed",
        ),
        ("ocsp-update.httpproxy fd@3", "file descriptor not allowed"),
    ] {
        let text = frontend(global, "ssl crt DIR/a.pem");
        let alerts = alerts(&files.named_in(&text)).join("\n");
        assert!(alerts.contains(why), "{global}: {alerts}");
    }
}

#[test]
fn algorithms_of_encrypted_tokens_are_listed() {
    let files = Files::new(&["a.pem"]);
    let with = |global: &str| files.named_in(&frontend(global, "ssl crt DIR/a.pem"));
    let (config, _) = accepted(&with(
        "jwt.decrypt_alg_list dir:A128KW\n jwt.decrypt_enc_list ALL:!A128GCM",
    ));
    let mut wanted = sample::TokenAlgorithms::default();
    wanted.set_algorithms("A128KW:dir").unwrap();
    wanted
        .set_encryptions("A128CBC-HS256:A192CBC-HS384:A256CBC-HS512:A192GCM:A256GCM")
        .unwrap();
    assert_eq!(config.global.token_algorithms, wanted);
    let alerts = alerts(&with("jwt.decrypt_enc_list A128GCM:foo")).join("\n");
    assert!(
        alerts.contains("'jwt.decrypt_enc_list' : Unknown algorithm/encoding foo."),
        "{alerts}"
    );
}
