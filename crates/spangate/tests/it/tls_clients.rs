//! TLS on `bind` lines, with curl, openssl and rustls as clients.

use crate::common;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use common::tls::{Authority, Kind, curl, has, program, s_client};
use common::{DEADLINE, DEFAULTS, Folder, Output, Proxy, address, listener, uninterrupted};

/// Returns the negotiated parameters.
const TELL: &str = "http-request return status 200 content-type text/plain lf-string \
     \"%[ssl_fc_protocol] %[ssl_fc_cipher] sni=%[ssl_fc_sni] resumed=%[ssl_fc_is_resumed] alpn=%[ssl_fc_alpn]\\n\"";

/// A proxy with these options on the bind line of `FRONT`; its frontend returns the negotiated
/// parameters.
fn telling(folder: Folder, bind: &str, more: &str) -> (Proxy, SocketAddr) {
    let front = listener();
    let config =
        format!("{DEFAULTS}\n{more}\nfrontend f\n bind \"fd@${{FRONT}}\" {bind}\n {TELL}\n");
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    (proxy, address(&front))
}

/// Arguments that make curl connect to this address, whatever the URL contains.
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
    // No older versions.
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

/// The log line of a failed handshake, as HAProxy 3.5 with AWS-LC writes it.
#[test]
fn failed_handshakes_are_logged_with_what_is_known() {
    if !has("openssl") {
        return;
    }
    const UNTRUSTED: &str = "31 SSL_CRT_FAIL c=20 ca=0 d=0 v=- fe=000000001000007D error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED sni=one.test used=1 cn=stranger i=other fc=1";
    const MISSING: &str = "34 SSL_HANDSHAKE c=0 ca=0 d=0 v=- fe=00000000100000C0 error:100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE sni=one.test used=0 cn=- i=- fc=1";
    const PLAIN: &str = "34 SSL_HANDSHAKE c=0 ca=0 d=0 v=- fe=000000001000009C error:1000009c:SSL routines:OPENSSL_internal:HTTP_REQUEST sni=- used=0 cn=- i=- fc=1 -";
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let stranger = folder.write("stranger.pem", Authority::new("other").issue(&["stranger"]));
    let (front, log) = (
        listener(),
        UdpSocket::bind("127.0.0.1:0").expect("a socket"),
    );
    log.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let config = format!(
        "{DEFAULTS}\nfrontend f\n log {} format raw local0\n bind \"fd@${{FRONT}}\" ssl crt {crt} ca-file {ca} verify required\n \
         error-log-format \"%[fc_err] %[fc_err_name] c=%[ssl_c_err] ca=%[ssl_c_ca_err] d=%[ssl_c_ca_err_depth] v=%[ssl_c_verify] fe=%[ssl_fc_err,hex] %[ssl_fc_err_str] sni=%[ssl_fc_sni] used=%[ssl_c_used] cn=%[ssl_c_s_dn(cn)] i=%[ssl_c_i_dn(cn)] fc=%[ssl_fc] %sslv\"\n",
        log.local_addr().expect("an address"),
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let at = address(&front);
    let logged = || {
        let mut line = [0; 1024];
        let bytes = uninterrupted(|| log.recv(&mut line)).expect("a log line");
        String::from_utf8_lossy(&line[..bytes]).trim().to_owned()
    };
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let ask = |more: &[&str]| {
            let mut all = vec!["-servername", "one.test", version];
            all.extend(more);
            assert!(!s_client(at, &all).stdout.contains("200 OK"));
            logged()
        };
        let with = ["-cert", stranger.as_str(), "-key", stranger.as_str()];
        assert_eq!(ask(&with), format!("{UNTRUSTED} {name}"));
        assert_eq!(ask(&[]), format!("{MISSING} {name}"));
    }
    let mut plain = std::net::TcpStream::connect(at).expect("a connection");
    plain.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert_eq!(logged(), PLAIN);
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

/// The entries of a TLV list in hexadecimal digits: types and values.
fn tlvs(hex: &str) -> Vec<(u8, Vec<u8>)> {
    let digit = |text: &str| u8::from_str_radix(text, 16).expect("digits");
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|at| digit(&hex[2 * at..][..2]))
        .collect();
    let mut rest = &bytes[..];
    let mut all = Vec::new();
    while let [kind, high, low, behind @ ..] = rest {
        let (value, behind) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        all.push((*kind, value.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty(), "{hex}");
    all
}

#[test]
fn servers_are_told_of_the_tls_of_clients_in_the_proxy_header() {
    if !has("curl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let crt = folder.write("one.pem", authority.issue_kind(&["one.test"], Kind::Rsa));
    let client = folder.write("client.pem", authority.issue(&["Some Client"]));
    let (front, plain, back) = (listener(), listener(), listener());
    let server = format!("server s {}", address(&back));
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt} verify optional ca-file {ca} ssl-min-ver TLSv1.3\n \
         bind \"fd@${{PLAIN}}\"\n use_backend %[path,field(2,/)]\n\
         backend cn\n {server} send-proxy-v2-ssl-cn\n\
         backend ssl\n {server} send-proxy-v2-ssl\n\
         backend all\n {server} send-proxy-v2 proxy-v2-options ssl,cert-cn,cert-key,cert-sig,ssl-cipher,authority,crc32c set-proxy-v2-tlv-fmt(0xE1) \"%[fc_pp_tlv(0xE1)]x\"\n\
         backend none\n {server} send-proxy-v2-ssl-cn no-send-proxy-v2-ssl-cn send-proxy-v2\n\
         frontend told\n bind \"fd@${{BACK}}\" accept-proxy\n \
         http-request return status 200 content-type text/plain lf-string \"%[fc_pp_tlv(SSL),hex] %[fc_pp_authority] %[fc_pp_tlv(ALPN)] %[fc_pp_tlv(CRC32C),length] %[fc_pp_tlv(0xE1)]\"\n"
    );
    let listeners = [("FRONT", &front), ("PLAIN", &plain), ("BACK", &back)];
    let proxy = Proxy::start_in(folder, &config, &listeners);
    let folder = Folder::new();
    let (at, to) = (address(&front), to(address(&front)));
    let ask = |path: &str, own: &[&str]| {
        let url = format!("https://one.test:{}/{path}", at.port());
        let mut arguments = vec!["--cacert", &ca, "--connect-to", &to, "--http1.1"];
        arguments.extend_from_slice(own);
        arguments.push(&url);
        let fetched = curl(&folder, &arguments);
        assert_eq!(fetched.status, 200, "{fetched:?}");
        let text = fetched.text();
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let (head, list) = words[0].split_at(words[0].len().min(10));
        (head.to_owned(), tlvs(list), words[1..].to_vec())
    };
    let version = (0x21, b"TLSv1.3".to_vec());
    let common_name = (0x22, b"Some Client".to_vec());
    let own = ["--cert", &client];
    // Bits of the client: TLS, a certificate on the connection, a certificate in the session. Then
    // the verification result.
    let (head, list, rest) = ask("cn", &own);
    assert_eq!(
        (&head[..], list),
        ("0700000000", vec![version.clone(), common_name.clone()])
    );
    assert_eq!(rest, ["", "http/1.1", "", ""]);
    let (head, list, _) = ask("cn", &[]);
    assert_eq!((&head[..], list), ("0100000000", vec![version.clone()]));
    let (head, list, _) = ask("ssl", &own);
    assert_eq!((&head[..], list), ("0700000000", vec![version.clone()]));
    let (_, list, rest) = ask("all", &own);
    let expected = [
        version,
        common_name,
        (0x25, b"RSA2048".to_vec()),
        (0x24, b"ecdsa-with-SHA256".to_vec()),
        (0x23, list.last().expect("a cipher").1.clone()),
    ];
    assert_eq!(list, expected);
    assert!(list[4].1.starts_with(b"TLS_"), "{list:?}");
    assert_eq!(rest, ["one.test", "http/1.1", "4", "x"]);
    let (head, _, rest) = ask("none", &own);
    assert_eq!((&head[..], &rest[0][..]), ("", ""));
    // A client without TLS.
    let url = format!("http://{}/ssl", address(&plain));
    let told = curl(&folder, &[&url]).text();
    assert!(told.starts_with("0000000000 "), "{told}");
    proxy.stop();
}

#[test]
fn certificates_are_made_for_names_that_none_has() {
    if !has("curl") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let signer = folder.write("signer.pem", authority.pem() + &authority.key_pem());
    let crt = folder.write("one.pem", Authority::new("other").issue(&["one.test"]));
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt} generate-certificates ca-sign-file {signer}\n \
         http-request return status 200 content-type text/plain lf-string \"%[ssl_f_s_dn(CN,-1)] %[ssl_f_i_dn(CN)]\"\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let (folder, to) = (Folder::new(), to(address(&front)));
    for (name, told) in [
        ("two.test", "two.test root"),
        ("www.three.test", "www.three.test root"),
    ] {
        let url = format!("https://{name}/");
        let fetched = curl(&folder, &["--cacert", &ca, "--connect-to", &to, &url]);
        assert_eq!((fetched.status, fetched.text().as_str()), (200, told));
    }
    // This certificate is from another authority.
    let arguments = ["--cacert", &ca, "--connect-to", &to, "https://one.test/"];
    assert_eq!(curl(&folder, &arguments).status, 0);
    proxy.stop();
    let own = folder.write("one.pem", Authority::new("other").issue(&["one.test"]));
    let bad = config
        .replace("fd@${FRONT}", "127.0.0.1:1")
        .replace(&crt, &own)
        .replace(&signer, "/nonexistent/ca.pem");
    let run = common::run(&["-c", "-f", &folder.write("cfg", bad)]);
    let why = "'ca-sign-file' : unable to load '/nonexistent/ca.pem' : No such file or directory";
    assert!(run.stderr.contains(why), "{}", run.stderr);
}
