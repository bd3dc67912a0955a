//! Which sessions a client may resume, and where.

use crate::common;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use common::cli::ask_any;
use common::http::Client;
use common::tls::{Authority, client_config};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, StreamOwned, SupportedProtocolVersion};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
/// One key of 80 bytes, in base64.
fn keys() -> String {
    format!("{}aa8=\n", "Zm9v".repeat(26))
}

/// Whether the client's session was resumed; none if it is not served.
fn ask(config: &Arc<ClientConfig>, to: SocketAddr) -> Option<bool> {
    let stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let name = "one.test".try_into().expect("a name");
    let session = ClientConnection::new(config.clone(), name).expect("a session");
    let mut client = Client::over(StreamOwned::new(session, stream));
    use std::io::Write as _;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    client.reader.wire.write_all(request).ok()?;
    match &*client.response()?.text() {
        "1" => Some(true),
        "0" => Some(false),
        other => panic!("{other}"),
    }
}

/// A proxy whose frontends have these names and bind lines; each tells whether the session was
/// resumed.
fn start(folder: Folder, frontends: &[(&str, &[&str])]) -> (Proxy, Vec<SocketAddr>) {
    start_with("", folder, frontends)
}

/// The same with a line of the section `global`.
fn start_with(
    global: &str,
    folder: Folder,
    frontends: &[(&str, &[&str])],
) -> (Proxy, Vec<SocketAddr>) {
    let socket = folder.root().join("cli");
    let mut config = format!(
        "global\n stats socket {} level admin\n {global}\n{DEFAULTS}\n",
        socket.display()
    );
    let count: usize = frontends.iter().map(|(_, lines)| lines.len()).sum();
    let listeners: Vec<TcpListener> = (0..count).map(|_| listener()).collect();
    let names: Vec<String> = (0..count).map(|number| format!("F{number}")).collect();
    let mut next = names.iter();
    for (name, lines) in frontends {
        config += &format!("frontend {name}\n");
        for line in *lines {
            let front = next.next().expect("a listener");
            config += &format!(" bind \"fd@${{{front}}}\" ssl {line}\n");
        }
        config += " http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_is_resumed]\"\n";
    }
    let pairs: Vec<(&str, &TcpListener)> =
        names.iter().map(|name| &**name).zip(&listeners).collect();
    let proxy = Proxy::start_in(folder, &config, &pairs);
    (proxy, listeners.iter().map(address).collect())
}

/// The files of a line.
struct Files {
    authority: Authority,
    folder: Folder,
    ca: String,
    line: String,
}

fn files() -> Files {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let ca = folder.write("ca.pem", authority.pem());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let keys = folder.write("keys", keys());
    Files {
        line: format!("crt {crt} tls-ticket-keys {keys}"),
        authority,
        folder,
        ca,
    }
}

impl Files {
    fn client(
        &self,
        own: Option<&str>,
        version: &'static SupportedProtocolVersion,
    ) -> Arc<ClientConfig> {
        Arc::new(client_config(&self.authority, own, &[version]))
    }
}

#[test]
fn a_ticket_is_good_only_where_the_same_is_demanded_of_clients() {
    let files = files();
    let (ca, line) = (&files.ca, &files.line);
    let stranger = Authority::new("other");
    let other = files.folder.write("other.pem", stranger.pem());
    let lines = [
        line.clone(),
        format!("{line} verify required ca-file {ca}"),
        format!("{line} verify optional ca-file {ca}"),
        format!("{line} verify required ca-file {other}"),
        format!("{line} verify required ca-file {ca} crt-ignore-err 10"),
        format!("{line} verify required ca-file {ca} ca-ignore-err 10"),
        // The same as the first two.
        format!("{line} alpn http/1.1"),
        format!("{line} verify required ca-file {ca} no-ca-names"),
    ];
    let own = files.authority.issue(&["client"]);
    let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
    let last = [*lines.last().expect("a line")];
    let (proxy, at) = start(Folder::new(), &[("f", &lines), ("g", &last)]);
    for version in VERSIONS {
        let anyone = files.client(None, version);
        assert_eq!(ask(&anyone, at[0]), Some(false), "{version:?}");
        assert_eq!(ask(&anyone, at[0]), Some(true), "{version:?}");
        assert_eq!(ask(&anyone, at[6]), Some(true), "{version:?}");
        // Its session does not stand for a certificate.
        for demanding in [1, 3, 4, 5, 7] {
            let anyone = files.client(None, version);
            assert_eq!(ask(&anyone, at[0]), Some(false), "{version:?}");
            assert_eq!(ask(&anyone, at[demanding]), None, "{version:?} {demanding}");
        }
        for (place, resumes) in [
            (0, false),
            (1, true),
            (2, false),
            (4, false),
            (5, false),
            (7, true),
            // Another frontend.
            (8, false),
        ] {
            let known = files.client(Some(&own), version);
            assert_eq!(ask(&known, at[1]), Some(false), "{version:?} {place}");
            assert_eq!(ask(&known, at[place]), Some(resumes), "{version:?} {place}");
        }
        // Another authority does not vouch for it.
        let known = files.client(Some(&own), version);
        assert_eq!(ask(&known, at[1]), Some(false), "{version:?}");
        assert_eq!(ask(&known, at[3]), None, "{version:?}");
    }
    proxy.stop();
}

#[test]
fn a_ticket_does_not_outlive_a_change_of_authorities() {
    let files = files();
    let line = format!("{} verify required ca-file {}", files.line, files.ca);
    let own = files.authority.issue(&["client"]);
    let (first, at) = start(Folder::new(), &[("f", &[&line])]);
    let (second, same) = start(Folder::new(), &[("f", &[&line])]);
    let socket = first.folder.root().join("cli");
    let set = |pem: &str| {
        let ca = &files.ca;
        let set = ask_any(
            &socket,
            &format!("set ssl ca-file {ca} <<\n{}\n", pem.trim_end()),
        );
        assert!(set.contains("ransaction created"), "{set}");
        let done = ask_any(&socket, &format!("commit ssl ca-file {ca}"));
        assert!(done.contains("Success!"), "{done}");
    };
    let both = files.authority.pem() + &Authority::new("other").pem();
    for version in VERSIONS {
        let known = files.client(Some(&own), version);
        assert_eq!(ask(&known, at[0]), Some(false), "{version:?}");
        assert_eq!(ask(&known, at[0]), Some(true), "{version:?}");
        // Another process with the same settings.
        assert_eq!(ask(&known, same[0]), Some(true), "{version:?}");
        set(&both);
        assert_eq!(
            ask(&known, at[0]),
            Some(false),
            "{version:?}: it is verified again"
        );
        assert_eq!(ask(&known, at[0]), Some(true), "{version:?}");
        set(&Authority::new("other").pem());
        assert_eq!(
            ask(&known, at[0]),
            None,
            "{version:?}: nobody vouches for it"
        );
        set(&files.authority.pem());
    }
    first.stop();
    second.stop();
}

#[test]
fn the_number_of_remembered_sessions_is_that_of_the_process() {
    let files = files();
    let line = format!("{} no-tls-tickets", files.line);
    let (proxy, at) = start_with(
        "tune.ssl.cachesize 6",
        Folder::new(),
        &[("f", &[&line, &line]), ("g", &[&line])],
    );
    let clients: Vec<_> = (0..9)
        .map(|_| {
            let mut config = client_config(&files.authority, None, &[&TLS12]);
            config.resumption =
                Resumption::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly);
            Arc::new(config)
        })
        .collect();
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(ask(client, at[number % 3]), Some(false), "{number}");
    }
    // The last six. A client whose session was forgotten leaves a new one, so the first three come
    // last.
    for (number, client) in clients.iter().enumerate().rev() {
        assert_eq!(ask(client, at[number % 3]), Some(number >= 3), "{number}");
    }
    proxy.stop();
}
