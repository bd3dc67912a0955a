//! Early data of clients (RFC 8446 §2.3, RFC 8470): `allow-0rtt`, `wait-for-handshake`,
//! `Early-Data`.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use common::tls::{Authority, has, program};
use common::{DEFAULTS, Folder, Proxy, address, listener};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// A proxy that accepts early data, and a server that reports whether a request has `Early-Data`.
struct Early {
    proxy: Proxy,
    at: SocketAddr,
    authority: Authority,
}

fn early(more: &str) -> Early {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let (front, back) = (listener(), listener());
    let at_back = address(&back);
    let config = format!(
        "{DEFAULTS}\n timeout client-hs 2s\n\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt} allow-0rtt alpn h2,http/1.1 {more}\n \
         http-request wait-for-handshake if {{ path /wait }}\n \
         http-request set-header x-early \"%[ssl_fc_has_early] %[ssl_fc_early_rcvd]\"\n default_backend b\n\n\
         backend b\n server s {at_back}\n\n\
         frontend origin\n bind \"fd@${{BACK}}\"\n http-request return status 200 content-type text/plain lf-string \
         \"early=%[req.hdr(x-early)] header=%[req.hdr(early-data)]\\n\"\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("BACK", &back)]);
    Early {
        proxy,
        at: address(&front),
        authority,
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n")
}

/// The answer to openssl for a request in early data, on a previous session.
fn with_openssl(early: &Early, path: &str) -> String {
    let folder = &early.proxy.folder;
    let at = early.at.to_string();
    let session = folder.path("session").display().to_string();
    let data = folder.write("early", request(path));
    let both = [
        "s_client",
        "-connect",
        &at,
        "-ign_eof",
        "-servername",
        "one.test",
        "-alpn",
        "http/1.1",
    ];
    let first = [&both[..], &["-sess_out", &session]].concat();
    let got = program("openssl", &first, request("/").as_bytes());
    assert!(got.stdout.contains("early=0 0 header=\n"), "{}", got.stdout);
    let second = [&both[..], &["-sess_in", &session, "-early_data", &data]].concat();
    let got = program("openssl", &second, b"");
    assert!(
        got.stdout.contains("Early data was accepted"),
        "{}",
        got.stdout
    );
    got.stdout
}

#[test]
fn a_request_of_early_data_is_served_before_the_handshake_is_over() {
    if !has("openssl") {
        return;
    }
    let early = early("");
    let got = with_openssl(&early, "/");
    assert!(got.contains("early=1 1 header=1\n"), "{got}");
    early.proxy.stop();
}

#[test]
fn a_rule_waits_for_the_handshake() {
    if !has("openssl") {
        return;
    }
    let early = early("");
    let got = with_openssl(&early, "/wait");
    assert!(got.contains("early=0 1 header=\n"), "{got}");
    early.proxy.stop();
}

/// A client with the same sessions.
fn config(early: &Early) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(early.authority.pem().as_bytes());
    roots
        .add(root.expect("a certificate"))
        .expect("an authority");
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(Arc::new(provider));
    let config = config.with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.enable_early_data = true;
    Arc::new(config)
}

fn client(early: &Early, config: &Arc<ClientConfig>) -> (ClientConnection, TcpStream) {
    let name = "one.test".try_into().expect("a name");
    let session = ClientConnection::new(config.clone(), name).expect("a client");
    let socket = TcpStream::connect(early.at).expect("a connection");
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    (session, socket)
}

/// An attacker who records a client's first bytes can replay them, but cannot complete the
/// handshake.
#[test]
fn a_request_whose_client_never_ends_its_handshake_does_not_pass_a_rule_that_waits_for_it() {
    let early = early("");
    let config = config(&early);
    let (mut session, mut socket) = client(&early, &config);
    let mut stream = rustls::Stream::new(&mut session, &mut socket);
    stream.write_all(request("/").as_bytes()).expect("sent");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.contains("early=0 0"), "{text}");

    let (mut session, mut socket) = client(&early, &config);
    let mut data = session.early_data().expect("a session that allows it");
    data.write_all(request("/wait").as_bytes())
        .expect("early data");
    session.write_tls(&mut socket).expect("sent");
    let mut came = Vec::new();
    // The proxy closes after `timeout client-hs`; it has sent its flight before, and nothing after
    // it.
    let _ = socket.read_to_end(&mut came);
    let mut plain = Vec::new();
    session.read_tls(&mut &came[..]).expect("records");
    session.process_new_packets().expect("a flight");
    assert!(!session.is_handshaking() && session.is_early_data_accepted());
    let _ = session.reader().read_to_end(&mut plain);
    assert_eq!(String::from_utf8_lossy(&plain), "");
    early.proxy.stop();
}

/// Early data is not authenticated: if a client must present a certificate, its request is served
/// after the handshake.
#[test]
fn clients_that_show_certificates_are_served_after_the_handshake() {
    if !has("openssl") {
        return;
    }
    let folder = Folder::new();
    let ca = folder.write("ca.pem", Authority::new("clients").pem());
    let early = early(&format!("verify optional ca-file {ca}"));
    let got = with_openssl(&early, "/");
    assert!(got.contains("early=0 1 header=\n"), "{got}");
    early.proxy.stop();
}
