//! Certificate files: directories, bundles, lists, stores and `ssl-f-use`.

use super::*;
use std::sync::Arc;

use spangate_config::build::tls::added::AddedLine;
use spangate_config::model::{
    CaFile, CertificateSource, SniFilter, TlsGlobal, TlsOptions, TlsVerify,
};

fn names<'a>(files: &Files, certificates: &'a [Arc<CertificateSource>]) -> Vec<&'a str> {
    let paths = certificates.iter();
    paths
        .map(|certificate| files.short(&certificate.path))
        .collect()
}

fn loaded(files: &Files, text: &str) -> Config {
    accepted(&files.named_in(text)).0
}

#[test]
fn a_directory_is_its_files_in_order() {
    let files = Files::new(&[
        "d/b.pem",
        "d/a.pem",
        "d/a.pem.key",
        "d/a.pem.ocsp",
        "d/a.pem.issuer",
        "d/a.pem.sctl",
        "d/.hidden",
        "d/sub/x",
    ]);
    let config = loaded(&files, &frontend("", "ssl crt DIR/d"));
    let certificates = &bind_of(&config).certificates;
    assert_eq!(names(&files, certificates), ["d/a.pem", "d/b.pem"]);
    let [a, b] = &certificates[..] else {
        panic!("two");
    };
    assert!(a.is_default && !b.is_default);
    assert_eq!(a.key_beside, Some(files.path("d/a.pem.key")));
    assert_eq!(a.ocsp, Some(files.path("d/a.pem.ocsp")));
    assert_eq!(a.issuer, Some(files.path("d/a.pem.issuer")));
    assert_eq!(a.sctl, Some(files.path("d/a.pem.sctl")));
    assert_eq!((&a.key, &b.key_beside, &b.ocsp), (&None, &None, &None));
}

#[test]
fn a_bundle_is_found_by_its_stem() {
    let files = Files::new(&["a.pem.rsa", "a.pem.ecdsa", "b.pem", "b.pem.rsa"]);
    let config = loaded(
        &files,
        &frontend("", "ssl crt DIR/b.pem default-crt DIR/a.pem"),
    );
    let certificates = &bind_of(&config).certificates;
    assert_eq!(
        names(&files, certificates),
        ["b.pem", "a.pem.rsa", "a.pem.ecdsa"]
    );
    assert!(
        certificates
            .iter()
            .all(|certificate| certificate.is_default)
    );
    let text = frontend("ssl-load-extra-files ocsp", "ssl crt DIR/a.pem");
    assert_eq!(alerts(&files.named_in(&text)).len(), 1);
}

#[test]
fn extra_files_are_looked_for_as_global_says() {
    let files = Files::new(&["a.crt", "a.key", "a.ocsp", "a.crt.ocsp"]);
    let look = |global: &str| {
        let config = loaded(&files, &frontend(global, "ssl crt DIR/a.crt"));
        let source = bind_of(&config).certificates[0].clone();
        [&source.key_beside, &source.ocsp]
            .map(|path| path.as_ref().map(|path| files.short(path).to_owned()))
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(look(""), [None, some("a.crt.ocsp")]);
    assert_eq!(
        look("ssl-load-extra-del-ext"),
        [some("a.key"), some("a.ocsp")]
    );
    assert_eq!(look("ssl-load-extra-files key"), [None, None]);
    let both = "ssl-load-extra-del-ext\n ssl-load-extra-files key";
    assert_eq!(look(both), [some("a.key"), None]);
}

#[test]
fn a_list_has_options_and_names() {
    let files = Files::new(&["a.pem", "b.pem", "k.pem", "o.der"]);
    files.add(
        "list",
        "# comment\n\n   \na.pem *.Example.com !secure.example.com www.example.org !*.x *\n\
         b.pem [ssl-min-ver TLSv1.3 verify required ca-file ca.pem key k.pem ocsp o.der ocsp-update on npn h2] b.example.com\n\
         a.pem [alpn http/1.1]\n",
    );
    let text = frontend(
        "crt-base DIR\n key-base DIR\n ca-base /ca",
        "ssl crt-list DIR/list alpn h2 ciphersuites TLS_AES_128_GCM_SHA256",
    );
    let config = loaded(&files, &text);
    let tls = bind_of(&config);
    let [first, second, third] = &tls.certificates[..] else {
        panic!("three");
    };
    assert_eq!(
        names(&files, &tls.certificates),
        ["a.pem", "b.pem", "a.pem"]
    );
    assert_eq!(
        first.filters,
        [
            SniFilter::Wildcard(".example.com".into()),
            SniFilter::Except("secure.example.com".into()),
            SniFilter::Exact("www.example.org".into()),
        ]
    );
    assert!(first.is_default && first.options.is_none());
    assert!(first.origin.ends_with("list:4"), "{}", first.origin);
    let options = second.options.as_ref().expect("its own options");
    // Options after the list on its line apply too.
    assert_eq!(options.ciphersuites, Some(vec![0x1301]));
    assert_eq!(options.alpn, Some(vec![b"h2".to_vec()]));
    assert_eq!(options.verify, Some(TlsVerify::Required));
    assert_eq!(options.versions.min, Some(0x0304));
    assert_eq!(second.key, Some(files.path("k.pem")));
    assert_eq!(second.ocsp, Some(files.path("o.der")));
    assert_eq!(second.ocsp_update, Some(true));
    assert!(!second.is_default);
    let options = third.options.as_ref().expect("its own options");
    assert_eq!(options.alpn, Some(vec![b"http/1.1".to_vec()]));
    assert_eq!((&third.key, third.filters.len()), (&None, 0));
    let [list] = &tls.crt_lists[..] else {
        panic!("{:?}", tls.crt_lists);
    };
    assert_eq!(list.name, files.path("list").to_str().unwrap());
    let lines: Vec<_> = list.entries.iter().map(|entry| entry.line).collect();
    assert_eq!((lines.len(), lines[0]), (3, 4));
    assert_eq!(list.entries[0].certificate, first.name);
    assert_eq!(
        list.entries[0].filters,
        [
            "*.Example.com",
            "!secure.example.com",
            "www.example.org",
            "!*.x",
            "*"
        ]
    );
}

/// A list, with a part of the message and its severity; no part for an accepted list.
#[test]
fn lists_are_refused_by_line() {
    let files = Files::new(&["a.pem", "k.pem"]);
    let alert = Some(Severity::Alert);
    let cases = [
        ("", alert, "no SSL certificate specified"),
        ("# c\n", alert, "no SSL certificate specified"),
        ("DIR/a.pem\n", None, ""),
        ("DIR/a.pem\r\n", None, ""),
        ("\r\nDIR/a.pem\n", None, ""),
        ("[alpn h2] a.b\n", alert, "file must start with a cert."),
        ("DIR/a.pem [[alpn h2]\n", alert, "too many '['."),
        ("DIR/a.pem [alpn h2]] a\n", alert, "too many ']'."),
        ("DIR/a.pem alpn h2]\n", alert, "missing '['."),
        ("DIR/a.pem [alpn] a\n", alert, "'alpn' expects an argument"),
        ("DIR/a.pem [foo] a\n", alert, "unknown ssl keyword foo"),
        (
            "DIR/a.pem [strict-sni]\n",
            alert,
            "unknown ssl keyword strict-sni",
        ),
        (
            "DIR/a.pem [alpn h2 a\n",
            Some(Severity::Notice),
            "missing ']'",
        ),
        (
            "DIR/a.pem a [alpn h2]\n",
            Some(Severity::Warning),
            "filters can't be between filename and options!",
        ),
        (
            "DIR/a.pem [alpn h2] !a.b\n",
            Some(Severity::Warning),
            "negative filters on crt-list line",
        ),
        (
            "DIR/a.pem [ciphers foo]\n",
            alert,
            "unable to set SSL cipher list to 'foo'",
        ),
        (
            "DIR/a.pem [ocsp-update foo]\n",
            alert,
            "cannot parse 'ocsp-update' value 'foo'",
        ),
        (
            "DIR/a.pem [verify required]\n",
            alert,
            "verify is enabled but no CA file specified",
        ),
        (
            "DIR/no.pem\n",
            alert,
            "unable to stat SSL certificate from file",
        ),
        ("DIR/a.pem", alert, "missing LF on last line"),
        ("DIR/a.pem\0\n", alert, "stray NUL character"),
        ("DIR/a.pem [key DIR/k.pem] *.a.b !c.a.b *\n", None, ""),
    ];
    for (list, severity, part) in cases {
        files.add("list", &files.named_in(list));
        let text = files.named_in(&frontend("", "ssl crt-list DIR/list"));
        let diagnostics = match load(&text) {
            Ok((_, diagnostics)) | Err(diagnostics) => diagnostics,
        };
        let told: Vec<_> = diagnostics.iter().collect();
        match severity {
            None => assert!(told.is_empty(), "{list:?}: {told:?}"),
            Some(severity) => {
                let first = told.first().expect("something is said");
                assert_eq!(first.severity, severity, "{list:?}: {told:?}");
                assert!(first.message.contains(part), "{list:?}: {told:?}");
                if let Some(span) = &first.span {
                    assert!(span.place().ends_with("list:1"), "{list:?}: {told:?}");
                }
            }
        }
    }
}

#[test]
fn a_store_names_certificates() {
    let files = Files::new(&["a.pem", "b.pem", "k.pem", "b.pem.ocsp"]);
    let stores = "crt-store\n load crt DIR/a.pem key DIR/k.pem alias one\n load crt DIR/b.pem\n\
                  crt-store web\n crt-base DIR\n key-base DIR\n load crt a.pem key k.pem ocsp-update off domains x,y\n";
    let text = format!(
        "{stores}{}",
        frontend("", "ssl crt @/one crt DIR/b.pem crt @web/a.pem")
    );
    let config = loaded(&files, &text);
    let certificates = &bind_of(&config).certificates;
    assert_eq!(names(&files, certificates), ["a.pem", "b.pem", "a.pem"]);
    let key = Some(files.path("k.pem"));
    assert_eq!((&certificates[0].key, &certificates[2].key), (&key, &key));
    // No files are searched beside those that a store describes.
    assert_eq!(certificates[1].ocsp, None);
    assert_eq!(certificates[2].ocsp_update, Some(false));

    let cases = [
        ("load key k", "mandatory 'crt' parameter not found."),
        ("load crt DIR/a.pem foo", "unknown keyword 'foo'."),
        (
            "load crt DIR/a.pem ocsp-update foo",
            "'on' or 'off' is expected.",
        ),
        ("load crt DIR/no.pem", "unable to stat SSL certificate"),
        (
            "load crt DIR/a.pem key DIR/no.key",
            "no.key' cannot be read or parsed.",
        ),
        (
            "load crt DIR/a.pem alias x\n load crt DIR/b.pem alias x",
            "store '@web/x' was already defined.",
        ),
        ("crt-base", "crt-base"),
        ("bogus", "unknown keyword 'bogus'"),
    ];
    for (lines, part) in cases {
        let found = alerts(&files.named_in(&format!("crt-store web\n {lines}\n")));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert!(found[0].contains(part), "{lines}: {found:?}");
    }
}

#[test]
fn a_frontend_may_name_certificates_for_all_of_its_lines() {
    let files = Files::new(&["a.pem", "b.pem", "k.pem"]);
    let text = frontend("", "ssl crt DIR/a.pem ciphersuites TLS_AES_128_GCM_SHA256")
        + " bind :8444 ssl\n bind :8445\n ssl-f-use crt DIR/b.pem key DIR/k.pem alpn h2\n";
    let config = loaded(&files, &text);
    let binds = &config.proxies[0].binds;
    let of = |index: usize| &binds[index].tls.as_deref().expect("TLS").certificates;
    assert_eq!(names(&files, of(0)), ["a.pem", "b.pem"]);
    assert_eq!(names(&files, of(1)), ["b.pem"]);
    assert!(binds[2].tls.is_none());
    assert!(!of(0)[1].is_default && of(1)[0].is_default);
    let options = of(0)[1].options.as_ref().expect("its own options");
    assert_eq!(options.ciphersuites, Some(vec![0x1301]));
    assert_eq!(options.alpn, Some(vec![b"h2".to_vec()]));
    assert_eq!(of(0)[1].key, Some(files.path("k.pem")));
    for (line, part) in [
        ("ssl-f-use", "no 'crt' keyword specified."),
        ("ssl-f-use crt DIR/a.pem foo", "unknown crt keyword 'foo'."),
    ] {
        let text = frontend("", "ssl crt DIR/a.pem") + &format!(" {line}\n");
        let found = alerts(&files.named_in(&text));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].contains(part), "{line}: {found:?}");
    }
}

#[test]
fn a_line_is_added_while_the_configuration_runs() {
    let global = TlsGlobal {
        crt_base: Some("/certs".into()),
        ca_base: Some("/cas".into()),
        ..TlsGlobal::default()
    };
    let parse = |line: &str| AddedLine::parse(line, &global);
    let line = parse("a.pem [alpn h2 ca-file x.crt verify required] *.one.test !b.one.test")
        .unwrap()
        .expect("a line");
    assert_eq!(line.source.name, "/certs/a.pem");
    assert_eq!(
        line.entry.options,
        ["alpn", "h2", "ca-file", "x.crt", "verify", "required"]
    );
    assert_eq!(line.entry.filters, ["*.one.test", "!b.one.test"]);
    assert_eq!(line.source.filters.len(), 2);
    let of_line = TlsOptions {
        allow_0rtt: true,
        ..TlsOptions::default()
    };
    let options = line.options_over(&of_line).unwrap().expect("options");
    assert!(options.allow_0rtt, "the line's own");
    assert_eq!(options.ca_file, Some(CaFile::Path("/cas/x.crt".into())));
    let plain = parse("@store/x").unwrap().expect("a line");
    assert_eq!(plain.source.name, "@store/x");
    assert_eq!(plain.options_over(&of_line), Ok(None));
    assert!(parse("").unwrap().is_none());
    for (line, error) in [
        ("a.pem [alpn h2", None),
        ("[alpn h2] a.pem", Some("file must start with a cert.")),
        ("a.pem [nonsense]", Some("unknown ssl keyword nonsense.")),
        (
            "a.pem [verify required]",
            Some("verify is enabled but no CA file specified."),
        ),
    ] {
        let found = parse(line).and_then(|line| line.unwrap().options_over(&TlsOptions::default()));
        assert_eq!(found.err().as_deref(), error, "{line}");
    }
}
