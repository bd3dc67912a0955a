//! The secrets of TLS sessions for the decryption of captures (manual §3.2 `tune.ssl.keylog`,
//! §7.3.4): what the fetches tell is what the other side has.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::common::http::Client;
use crate::common::tls::{Authority, client_config};
use crate::common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// The lines of a key log, with digits in lower case.
type Lines = BTreeSet<String>;

/// Records what the client's library logs.
#[derive(Debug, Default)]
struct Recorder(Mutex<Lines>);

impl rustls::KeyLog for Recorder {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let line = format!("{label} {} {}", hex(client_random), hex(secret));
        self.0.lock().expect("no panic").insert(line);
    }
}

/// The lines of a response that have a secret.
fn lines(body: &[u8]) -> Lines {
    let text = String::from_utf8_lossy(body).into_owned();
    let lines = text.lines().filter(|line| line.split(' ').count() == 3);
    let lines = lines.filter(|line| !line.ends_with(' '));
    lines
        .map(|line| {
            let (label, rest) = line.split_once(' ').expect("a label");
            format!("{label} {}", rest.to_lowercase())
        })
        .collect()
}

type Version = &'static rustls::SupportedProtocolVersion;

/// Requests this path. Returns the lines of the response, and those of the client.
fn ask(at: SocketAddr, authority: &Authority, version: Version, path: &str) -> (Lines, Lines) {
    let recorder = Arc::new(Recorder::default());
    let mut config = client_config(authority, None, &[version]);
    config.key_log = Arc::clone(&recorder) as _;
    let stream = TcpStream::connect(at).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let name = "a.test".try_into().expect("a name");
    let session = rustls::ClientConnection::new(Arc::new(config), name).expect("a session");
    let mut client = Client::over(rustls::StreamOwned::new(session, stream));
    let response = client.get(path);
    assert_eq!(response.status, 200);
    let own = recorder.0.lock().expect("no panic").clone();
    (lines(&response.body), own)
}

struct Scene {
    _proxy: Proxy,
    authority: Authority,
    front: TcpListener,
}

impl Scene {
    /// A frontend that answers with its own secrets at `/`, with the random values at `/randoms`,
    /// and else passes the request to another one, whose answer it extends by those of the
    /// connection between them.
    fn start(global: &str, versions: &str) -> Scene {
        let (authority, folder) = (Authority::new("root"), Folder::new());
        let own = folder.write("own.pem", authority.issue(&["a.test"]));
        let (front, inner) = (listener(), listener());
        let config = format!(
            "global
 {global}
{DEFAULTS}
frontend f
 bind \"fd@${{FRONT}}\" ssl crt {own}
 http-request return status 200 content-type text/plain lf-string \"${{HAPROXY_KEYLOG_FC_LOG_FMT}}\\n\" if {{ path / }}
 http-response set-header x-keys \"%[ssl_bc_client_random,hex],%[ssl_bc_server_random,hex],%[ssl_bc_session_key,hex],\
%[ssl_bc_client_handshake_traffic_secret],%[ssl_bc_server_handshake_traffic_secret],%[ssl_bc_client_traffic_secret_0],\
%[ssl_bc_server_traffic_secret_0],%[ssl_bc_exporter_secret]\"
 default_backend b
backend b
 server s {} ssl verify none {versions}
frontend inner
 bind \"fd@${{INNER}}\" ssl crt {own}
 http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_client_random,hex],%[ssl_fc_server_random,hex],\
%[ssl_fc_session_key,hex],%[ssl_fc_client_handshake_traffic_secret],%[ssl_fc_server_handshake_traffic_secret],\
%[ssl_fc_client_traffic_secret_0],%[ssl_fc_server_traffic_secret_0],%[ssl_fc_exporter_secret]\"
",
            address(&inner)
        );
        let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("INNER", &inner)]);
        Scene {
            _proxy: proxy,
            authority,
            front,
        }
    }

    /// The secrets of the connection between the frontends, as both ends tell them.
    fn between(&self) -> (Vec<String>, Vec<String>) {
        let stream = TcpStream::connect(address(&self.front)).expect("a connection");
        let secure = crate::common::tls::secure(stream, &self.authority, "a.test");
        let response = Client::over(secure).get("/between");
        let words = |text: &str| text.split(',').map(str::to_owned).collect();
        let header = response.field("x-keys").expect("the header");
        (
            words(header),
            words(&String::from_utf8_lossy(&response.body)),
        )
    }
}

#[test]
fn a_client_has_the_same_secrets() {
    let scene = Scene::start("tune.ssl.keylog on", "");
    let at = address(&scene.front);
    let (told, own) = ask(at, &scene.authority, &rustls::version::TLS12, "/");
    assert_eq!((told.len(), &told), (1, &own));
    let (told, own) = ask(at, &scene.authority, &rustls::version::TLS13, "/");
    assert_eq!((told.len(), &told), (5, &own));
}

#[test]
fn a_server_has_the_same_secrets() {
    for (versions, missing) in [
        ("ssl-max-ver TLSv1.2", &[3, 4, 5, 6, 7][..]),
        ("ssl-min-ver TLSv1.3", &[2]),
    ] {
        let scene = Scene::start("tune.ssl.keylog on", versions);
        let (ours, theirs) = scene.between();
        assert_eq!(ours, theirs);
        assert_eq!(ours.len(), 8, "{ours:?}");
        for (place, word) in ours.iter().enumerate() {
            assert_eq!(word.is_empty(), missing.contains(&place), "{ours:?}");
        }
    }
}

#[test]
fn secrets_of_traffic_are_not_kept_without_the_setting() {
    for global in ["", "tune.ssl.keylog off"] {
        let scene = Scene::start(global, "ssl-min-ver TLSv1.3");
        let (ours, theirs) = scene.between();
        assert_eq!(ours, theirs);
        assert_eq!((ours[0].len(), ours[1].len()), (64, 64), "{ours:?}");
        assert!(ours[2..].iter().all(String::is_empty), "{ours:?}");
        let at = address(&scene.front);
        let (told, own) = ask(at, &scene.authority, &rustls::version::TLS12, "/");
        assert_eq!((told.len(), &told), (1, &own));
    }
}
