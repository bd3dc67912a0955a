//! TLS on `bind` lines, with curl, openssl and rustls as clients.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use common::http::Client;
use common::origin::{Origin, ok};
use common::tls::{Authority, Kind, curl, has, program, s_client, secure};
use common::{DEADLINE, DEFAULTS, Folder, Output, Proxy, address, listener};

/// Says what was agreed on.
const TELL: &str = "http-request return status 200 content-type text/plain lf-string \
     \"%[ssl_fc_protocol] %[ssl_fc_cipher] sni=%[ssl_fc_sni] resumed=%[ssl_fc_is_resumed] alpn=%[ssl_fc_alpn] src=%[src]\\n\"";

/// A proxy with a bind line on `FRONT` with these options, whose frontend tells what was agreed on.
fn telling(folder: Folder, bind: &str, more: &str) -> (Proxy, SocketAddr) {
    let front = listener();
    let config =
        format!("{DEFAULTS}\n{more}\nfrontend f\n bind \"fd@${{FRONT}}\" {bind}\n {TELL}\n");
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    (proxy, address(&front))
}

/// Arguments that have curl ask this address, whatever the URL says.
fn to(at: SocketAddr) -> String {
    format!("::127.0.0.1:{}", at.port())
}

#[test]
fn names_choose_a_certificate_and_its_options() {
    if !has("curl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let client = folder.write("client.pem", authority.issue(&["client"]));
    let stranger = folder.write("stranger.pem", Authority::new("other").issue(&["client"]));
    let one = folder.write("one.pem", authority.issue(&["one.test"]));
    let two = folder.write("two.pem", authority.issue(&["two.test", "*.wild.test"]));
    let list = folder.write(
        "list",
        format!("{one} [alpn http/1.1 verify required ca-file {ca}] one.test\n# none\n{two}\n"),
    );
    let bind = format!("ssl crt-list {list} strict-sni");
    let (proxy, at) = telling(folder, &bind, "");
    let to = to(at);
    let get = |more: &[&str], url: &str| {
        let mut all = vec!["--cacert", &ca, "--connect-to", &to];
        all.extend(more);
        all.push(url);
        curl(&proxy.folder, &all)
    };
    let got = get(&[], "https://two.test/");
    assert_eq!((got.status, &*got.version), (200, "2"), "{got:?}");
    assert!(
        got.text().contains("sni=two.test resumed=0 alpn=h2"),
        "{}",
        got.text()
    );
    assert_eq!(get(&["--http1.1"], "https://a.wild.test/").status, 200);
    assert_eq!(
        get(&["--tls-max", "1.2"], "https://a.wild.test/").status,
        200
    );
    let got = get(&["--cert", &client], "https://one.test/");
    assert_eq!((got.status, &*got.version), (200, "1.1"), "{got:?}");
    assert!(
        got.text().contains("sni=one.test resumed=0 alpn=http/1.1"),
        "{}",
        got.text()
    );
    assert_ne!(get(&[], "https://one.test/").exit, 0);
    assert_ne!(get(&["--cert", &stranger], "https://one.test/").exit, 0);
    assert_ne!(get(&["--tls-max", "1.2"], "https://one.test/").exit, 0);
    for name in [
        "https://other.test/",
        "https://a.b.wild.test/",
        "https://127.0.0.1/",
    ] {
        assert_eq!(get(&["-k"], name).exit, 35, "{name}");
    }
    proxy.stop();
}

fn line<'a>(output: &'a Output, start: &str) -> &'a str {
    let mut lines = output.stdout.lines();
    let line = lines.find(|line| line.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("no {start}: {} {}", output.stdout, output.stderr))
}

#[test]
fn versions_ciphers_curves_and_kinds_of_keys_are_agreed_on() {
    if !has("openssl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    folder.write(
        "crt/a.pem.rsa",
        authority.issue_kind(&["one.test"], Kind::Rsa),
    );
    folder.write(
        "crt/a.pem.ecdsa",
        authority.issue_kind(&["one.test"], Kind::Ecdsa),
    );
    folder.write("crt/two.pem", authority.issue(&["two.test"]));
    let crt = folder.path("crt").display().to_string();
    let (all, old, strict) = (listener(), listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{ALL}}\" ssl crt {crt}\n \
         bind \"fd@${{OLD}}\" ssl crt {crt} ssl-max-ver TLSv1.2 ciphers ECDHE-RSA-AES256-GCM-SHA384\n \
         bind \"fd@${{STRICT}}\" ssl crt {crt} ssl-min-ver TLSv1.3 ciphersuites TLS_AES_256_GCM_SHA384 curves P-384\n {TELL}\n"
    );
    let listeners = [("ALL", &all), ("OLD", &old), ("STRICT", &strict)];
    let proxy = Proxy::start_in(folder, &config, &listeners);
    let ask = |at: &TcpListener, more: &[&str]| {
        let mut arguments = vec!["-servername", "one.test"];
        arguments.extend(more);
        s_client(address(at), &arguments)
    };
    for (more, protocol) in [(["-tls1_2"], "TLSv1.2"), (["-tls1_3"], "TLSv1.3")] {
        let output = ask(&all, &more);
        assert!(
            line(&output, "New, ").contains(protocol),
            "{}",
            output.stdout
        );
        line(&output, &format!("{protocol} "));
    }
    let rsa = ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
    assert!(line(&ask(&all, &rsa), "Peer signature type").contains("RSA"));
    let ecdsa = ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"];
    assert!(line(&ask(&all, &ecdsa), "Peer signature type").contains("ECDSA"));
    let rsa = ["-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"];
    assert!(line(&ask(&all, &rsa), "Peer signature type").contains("RSA"));
    let ecdsa = ["-tls1_3", "-sigalgs", "ecdsa_secp256r1_sha256"];
    assert!(line(&ask(&all, &ecdsa), "Peer signature type").contains("ECDSA"));
    let two = s_client(address(&all), &["-servername", "two.test"]);
    assert!(line(&two, "subject=").contains("two.test"));
    // Nothing of the older versions.
    assert!(
        !ask(&all, &["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
            .status
            .success()
    );

    line(&ask(&old, &[]), "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384 ");
    assert!(!ask(&old, &["-tls1_3"]).status.success());
    assert!(
        !ask(&old, &["-cipher", "ECDHE-RSA-AES128-GCM-SHA256"])
            .status
            .success()
    );
    let output = ask(&strict, &[]);
    line(&output, "TLSv1.3 TLS_AES_256_GCM_SHA384 ");
    assert!(
        line(&output, "Server Temp Key").contains("P-384")
            || line(&output, "Server Temp Key").contains("secp384r1")
    );
    assert!(!ask(&strict, &["-tls1_2"]).status.success());
    assert!(!ask(&strict, &["-groups", "X25519"]).status.success());
    proxy.stop();
}

#[test]
fn clients_are_asked_for_certificates() {
    if !has("curl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let client = folder.write("client.pem", authority.issue(&["client"]));
    let stranger = folder.write("stranger.pem", Authority::new("other").issue(&["stranger"]));
    let (must, may, any) = (listener(), listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{MUST}}\" ssl crt {crt} ca-file {ca} verify required\n \
         bind \"fd@${{MAY}}\" ssl crt {crt} ca-file {ca} verify optional\n \
         bind \"fd@${{ANY}}\" ssl crt {crt} ca-file {ca} verify optional crt-ignore-err all ca-ignore-err all\n \
         http-request return status 200 content-type text/plain lf-string \
         \"used=%[ssl_c_used] verify=%[ssl_c_verify] dn=%{{+Q}}[ssl_c_s_dn] cn=%[ssl_c_s_dn(cn)] i=%[ssl_c_i_dn(cn)] has=%[ssl_fc_has_crt]\"\n"
    );
    let listeners = [("MUST", &must), ("MAY", &may), ("ANY", &any)];
    let proxy = Proxy::start_in(folder, &config, &listeners);
    let get = |at: &TcpListener, more: &[&str]| {
        let to = to(address(at));
        let mut all = vec!["--cacert", &ca, "--connect-to", &to];
        all.extend(more);
        all.push("https://one.test/");
        curl(&proxy.folder, &all)
    };
    let known = "used=1 verify=0 dn=\"/CN=client\" cn=client i=root has=1";
    for version in ["1.2", "1.3"] {
        let with = |at, cert: &str| get(at, &["--tls-max", version, "--cert", cert]);
        let without = |at| get(at, &["--tls-max", version]);
        assert_eq!(with(&must, &client).text(), known);
        assert_eq!(with(&may, &client).text(), known);
        assert_eq!(with(&any, &client).text(), known);
        assert_ne!(without(&must).exit, 0);
        assert_ne!(with(&must, &stranger).exit, 0);
        assert_ne!(with(&may, &stranger).exit, 0);
        assert!(without(&may).text().starts_with("used=0 verify=0 "));
        let text = with(&any, &stranger).text();
        assert!(
            text.starts_with("used=1 verify=20 ") || text.starts_with("used=1 verify=21 "),
            "{text}"
        );
    }
    proxy.stop();
}

#[test]
fn sessions_are_resumed() {
    if !has("openssl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let mut keys = String::new();
    for number in 0..3 {
        let output = program("openssl", &["rand", "-base64", "48"], b"");
        keys.push_str(&output.stdout.replace('\n', ""));
        keys.push_str(if number < 2 { "\n" } else { "" });
    }
    let keys = folder.write("keys", keys);
    let session = folder.path("session").display().to_string();
    let shared = format!("ssl crt {crt} tls-ticket-keys {keys}");
    let none = format!("ssl crt {crt} no-tls-tickets");
    let (first, at_first) = telling(folder, &shared, "");
    let (second, at_second) = telling(Folder::new(), &shared, "");
    let (own, at_own) = telling(Folder::new(), &format!("ssl crt {crt}"), "");
    let no_cache = "global\n tune.ssl.cachesize 0\n";
    let (not, at_not) = telling(Folder::new(), &none, no_cache);
    for version in ["-tls1_2", "-tls1_3"] {
        let ask = |at, way: &str| {
            let output = s_client(at, &[version, "-servername", "one.test", way, &session]);
            line(&output, "TLSv1").contains("resumed=1")
        };
        assert!(!ask(at_first, "-sess_out"), "{version}");
        assert!(ask(at_first, "-sess_in"), "{version}");
        assert!(ask(at_second, "-sess_in"), "{version}");
        assert!(!ask(at_own, "-sess_in"), "{version}");
        assert!(!ask(at_own, "-sess_out"), "{version}");
        assert!(ask(at_own, "-sess_in"), "{version}");
        assert!(!ask(at_not, "-sess_out"), "{version}");
        if version == "-tls1_2" {
            assert!(!ask(at_not, "-sess_in"), "{version}");
        }
    }
    for proxy in [first, second, own, not] {
        proxy.stop();
    }
}

#[test]
fn a_response_of_ocsp_is_stapled() {
    if !has("openssl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let ca_key = folder.write("ca.key", authority.key_pem());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let serial = program("openssl", &["x509", "-noout", "-serial", "-in", &crt], b"").stdout;
    let serial = serial.trim().trim_start_matches("serial=");
    let line = format!("V\t351231235959Z\t\t{serial}\tunknown\t/CN=one.test\n");
    let index = folder.write("index", line);
    let response = format!("{crt}.ocsp");
    let made = program(
        "openssl",
        &[
            "ocsp",
            "-index",
            &index,
            "-CA",
            &ca,
            "-rsigner",
            &ca,
            "-rkey",
            &ca_key,
            "-issuer",
            &ca,
            "-cert",
            &crt,
            "-no_nonce",
            "-ndays",
            "7",
            "-respout",
            &response,
        ],
        b"",
    );
    assert!(made.status.success(), "{}", made.stderr);
    let (proxy, at) = telling(folder, &format!("ssl crt {crt}"), "");
    let output = s_client(at, &["-status", "-servername", "one.test"]);
    assert!(
        output.stdout.contains("OCSP Response Status: successful"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("Cert Status: good"),
        "{}",
        output.stdout
    );
    proxy.stop();
}

#[test]
fn bytes_come_as_they_like() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let (front, headed) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n bind \"fd@${{HEADED}}\" accept-proxy ssl crt {crt}\n {TELL}\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("HEADED", &headed)]);

    // Records of a byte each.
    let mut wire = secure(
        TcpStream::connect(address(&front)).unwrap(),
        &authority,
        "one.test",
    );
    for byte in b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" {
        wire.write_all(&[*byte]).unwrap();
        wire.flush().unwrap();
    }
    let mut client = Client::over(wire);
    assert_eq!(client.response().unwrap().status, 200);
    // The end of the connection without a word of TLS, behind a request.
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    client
        .reader
        .wire
        .sock
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(client.response().unwrap().status, 200);
    assert_eq!(
        client.reader.wire.read(&mut [0; 10]).unwrap(),
        0,
        "our own end is told"
    );

    // The handshake byte by byte, behind a header of PROXY.
    let mut stream = TcpStream::connect(address(&headed)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .write_all(b"PROXY TCP4 192.0.2.7 192.0.2.8 1000 443\r\n")
        .unwrap();
    let mut wire = secure(stream, &authority, "one.test");
    let mut hello = Vec::new();
    wire.conn.write_tls(&mut hello).unwrap();
    for byte in hello {
        wire.sock.write_all(&[byte]).unwrap();
    }
    let mut client = Client::over(wire);
    assert!(client.get("/").text().contains("src=192.0.2.7"));
    // The same in one piece with the header.
    let stream = TcpStream::connect(address(&headed)).unwrap();
    let mut wire = secure(stream, &authority, "one.test");
    let mut first = b"PROXY TCP4 192.0.2.9 192.0.2.8 1000 443\r\n".to_vec();
    wire.conn.write_tls(&mut first).unwrap();
    wire.sock.write_all(&first).unwrap();
    assert!(Client::over(wire).get("/").text().contains("src=192.0.2.9"));
    proxy.stop();
}

#[test]
fn handshakes_that_fail_end_and_are_logged() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let (front, listed) = (listener(), listener());
    let list = folder.write(
        "list",
        format!("{crt} [alpn http/1.1] one.test\n{crt} two.test\n"),
    );
    let config = format!(
        "{DEFAULTS}\nfrontend f\n timeout client-hs 200ms\n log {} format raw local0\n error-log-format \"%[fc_err] %[fc_err_str]\"\n \
         bind \"fd@${{FRONT}}\" ssl crt {crt}\n bind \"fd@${{LISTED}}\" ssl crt-list {list}\n {TELL}\n",
        log.local_addr().unwrap()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("LISTED", &listed)]);
    let logged = || {
        let mut line = [0; 500];
        let count = log.recv(&mut line).expect("a line of the log");
        String::from_utf8_lossy(&line[..count]).trim().to_owned()
    };
    let mut hello = Vec::new();
    let stream = TcpStream::connect(address(&front)).unwrap();
    let mut unused = secure(stream, &authority, "one.test");
    unused.conn.write_tls(&mut hello).unwrap();
    drop(unused);
    logged();
    for at in [&front, &listed] {
        let mut client = Client::connect(address(at));
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        let rest = client.reader.everything();
        assert!(rest.first() == Some(&21), "an alert: {rest:?}");
        assert!(logged().contains("handshake"), "garbage");
        for count in [0, 5, hello.len() / 2, hello.len()] {
            let mut client = Client::connect(address(at));
            client.send(&hello[..count]);
            client.reader.everything();
            let line = logged();
            assert!(
                line.contains("imeout") || line.contains("handshake"),
                "{count}: {line}"
            );
        }
    }
    // It serves as before.
    let stream = TcpStream::connect(address(&front)).unwrap();
    assert_eq!(
        Client::over(secure(stream, &authority, "one.test"))
            .get("/")
            .status,
        200
    );
    proxy.stop();
}

#[test]
fn large_bodies_go_both_ways() {
    if !has("curl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let body: Vec<u8> = (0..5_000_000)
        .map(|at: u32| (at * 31 % 251) as u8)
        .collect();
    let file = folder.write("body", &body);
    let answer = body.clone();
    let origin = Origin::start(move |request| match request.line.starts_with("POST") {
        true => ok(format!("{}", request.body == answer)),
        false => ok(&answer),
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n server s {}\n",
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let url = format!("https://{}/", address(&front));
    for version in ["--http1.1", "--http2"] {
        for limit in ["--limit-rate=1G", "--limit-rate=10M"] {
            let (_, rate) = limit.split_once('=').unwrap();
            let got = curl(&proxy.folder, &["-k", version, "--limit-rate", rate, &url]);
            assert!(
                got.body == body,
                "{version} {limit}: {} bytes, {}",
                got.body.len(),
                got.exit
            );
            let data = format!("@{file}");
            let got = curl(
                &proxy.folder,
                &[
                    "-k",
                    version,
                    "--limit-rate",
                    rate,
                    "--data-binary",
                    &data,
                    &url,
                ],
            );
            assert_eq!(got.text(), "true", "{version} {limit} {}", got.exit);
        }
    }
    proxy.stop();
}
