//! Certificates and certificate lists that are replaced at run time through the runtime interface.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::cli::ask_any;
use common::http::Client;
use common::tls::{Authority, Kind, client_config, has, s_client};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts an authority, with or without a certificate of its own.
fn client(authority: &Authority, own: Option<&str>) -> Arc<ClientConfig> {
    Arc::new(client_config(authority, own, rustls::ALL_VERSIONS))
}

fn connect(config: &Arc<ClientConfig>, to: SocketAddr, name: &str) -> Stream {
    let socket = TcpStream::connect(to).expect("a connection");
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(config.clone(), name).unwrap();
    StreamOwned::new(connection, socket)
}

/// A request on a connection that stays open. Returns whether the answer was 200.
fn get(stream: &mut Stream) -> bool {
    if stream
        .write_all(b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n")
        .is_err()
    {
        return false;
    }
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\nok") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    head.starts_with(b"HTTP/1.1 200 ")
}

fn peer(stream: &Stream) -> Vec<u8> {
    stream.conn.peer_certificates().expect("certificates")[0].to_vec()
}

fn der(pem: &str) -> Vec<u8> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    certificate.to_vec()
}

/// A proxy with these options on its bind line that answers `ok`, and the socket of its runtime
/// interface.
fn start(folder: Folder, bind: &str) -> (Proxy, SocketAddr, std::path::PathBuf) {
    let front = listener();
    let socket = folder.root().join("cli");
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" {bind}\n \
         http-request return status 200 content-type text/plain string ok\n",
        socket.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    (proxy, address(&front), socket)
}

/// Replaces a certificate; this must succeed.
fn replace(socket: &std::path::Path, file: &str, pem: &str) {
    let set = ask_any(
        socket,
        &format!("set ssl cert {file} <<\n{}\n", pem.trim_end()),
    );
    assert_eq!(
        set.trim_end(),
        format!("Transaction created for certificate {file}!")
    );
    let committed = ask_any(socket, &format!("commit ssl cert {file}"));
    assert_eq!(
        committed.trim_end(),
        format!("Committing {file}.\nSuccess!")
    );
}

#[test]
fn new_handshakes_see_a_new_certificate_and_connections_go_on() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let (first, second) = (
        authority.issue(&["one.test"]),
        authority.issue_kind(&["one.test", "two.test"], Kind::Rsa),
    );
    let file = folder.write("one.pem", &first);
    let (_proxy, at, socket) = start(folder, &format!("ssl crt {file}"));
    let config = client(&authority, None);
    let mut before = connect(&config, at, "one.test");
    assert!(get(&mut before));
    assert_eq!(peer(&before), der(&first));
    let refused = ask_any(&socket, &format!("commit ssl cert {file}"));
    assert!(refused.contains("No ongoing transaction!"), "{refused}");
    let set = ask_any(
        &socket,
        &format!("set ssl cert {file} <<\n{}\n", second.trim_end()),
    );
    assert!(set.contains("Transaction created"), "{set}");
    let shown = ask_any(&socket, &format!("show ssl cert *{file}"));
    assert!(
        shown.contains("Status: Uncommitted\n") && shown.contains("Algorithm: RSA2048\n"),
        "{shown}"
    );
    // An uncommitted transaction changes nothing.
    let mut between = connect(&config, at, "one.test");
    assert!(get(&mut between));
    let committed = ask_any(&socket, &format!("commit ssl cert {file}"));
    assert!(committed.contains("Success!"), "{committed}");
    let fresh = client(&authority, None);
    let mut after = connect(&fresh, at, "two.test");
    assert!(get(&mut after));
    assert_eq!(peer(&after), der(&second));
    assert!(get(&mut before) && get(&mut between), "they go on");
    // A key that does not belong to the certificate is refused, and the served certificate does not
    // change.
    let other = authority.issue(&["one.test"]);
    let at_key = other.find("-----BEGIN PRIVATE").expect("a key");
    let set = ask_any(
        &socket,
        &format!(
            "set ssl cert {file}.key <<\n{}\n",
            other[at_key..].trim_end()
        ),
    );
    assert!(set.contains("Transaction created"), "{set}");
    let committed = ask_any(&socket, &format!("commit ssl cert {file}"));
    assert!(
        committed.contains("inconsistencies between private key"),
        "{committed}"
    );
    assert!(get(&mut connect(&fresh, at, "one.test")));
    let aborted = ask_any(&socket, &format!("abort ssl cert {file}"));
    assert!(aborted.contains("Transaction aborted"), "{aborted}");
    if has("openssl") {
        let said = s_client(at, &["-servername", "two.test", "-tls1_2"]).stdout;
        assert!(
            said.contains("ok") && said.contains("CN = two.test") || said.contains("CN = one.test"),
            "{said}"
        );
    }
}

#[test]
fn nothing_fails_while_certificates_change() {
    const SWAPS: usize = 60;
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let pems = [
        authority.issue(&["one.test"]),
        authority.issue_kind(&["one.test"], Kind::Rsa),
    ];
    let file = folder.write("one.pem", &pems[0]);
    let (_proxy, at, socket) = start(folder, &format!("ssl crt {file}"));
    let is_over = Arc::new(AtomicBool::new(false));
    let (good, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..3)
        .map(|number| {
            let config = client(&authority, None);
            let (is_over, good, bad) = (is_over.clone(), good.clone(), bad.clone());
            common::spawn(move || {
                let mut kept = connect(&config, at, "one.test");
                while !is_over.load(Ordering::Relaxed) {
                    // Some handshakes are resumed, others are full.
                    let config = match number {
                        0 => config.clone(),
                        _ => {
                            let mut fresh = (*config).clone();
                            fresh.resumption = rustls::client::Resumption::disabled();
                            Arc::new(fresh)
                        }
                    };
                    let new = get(&mut connect(&config, at, "one.test"));
                    let old = get(&mut kept);
                    good.fetch_add(usize::from(new) + usize::from(old), Ordering::Relaxed);
                    bad.fetch_add(usize::from(!new) + usize::from(!old), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for swap in 1..=SWAPS {
        replace(&socket, &file, &pems[swap % 2]);
    }
    is_over.store(true, Ordering::Relaxed);
    for worker in &workers {
        common::join(worker, "a client");
    }
    assert_eq!(bad.load(Ordering::Relaxed), 0);
    assert!(good.load(Ordering::Relaxed) >= 6, "clients were served");
}

#[test]
fn lists_and_authorities_change() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let others = Authority::new("others");
    let one = folder.write("one.pem", authority.issue(&["one.test"]));
    let two = folder.root().join("two.pem").display().to_string();
    let ca = folder.write("ca.pem", authority.pem());
    let list = folder.write("list", format!("{one}\n"));
    let (_proxy, at, socket) = start(folder, &format!("ssl strict-sni crt-list {list}"));
    let ask = |line: &str| ask_any(&socket, line);
    let config = client(&authority, None);
    assert!(get(&mut connect(&config, at, "one.test")));
    assert!(!get(&mut connect(&config, at, "two.test")));
    // A certificate without a file, for one name, and with an authority without a file.
    assert_eq!(
        ask(&format!("new ssl cert {two}")).trim_end(),
        format!("New empty certificate store '{two}'!")
    );
    assert!(ask(&format!("show ssl cert {two}")).contains("Status: Empty\n"));
    let pem = authority.issue(&["two.test"]);
    ask(&format!("set ssl cert {two} <<\n{}\n", pem.trim_end()));
    let committed = ask(&format!("commit ssl cert {two}"));
    assert!(committed.contains("Success!"), "{committed}");
    ask("new ssl ca-file clients.pem");
    ask(&format!(
        "set ssl ca-file clients.pem <<\n{}\n",
        others.pem().trim_end()
    ));
    let committed = ask("commit ssl ca-file clients.pem");
    assert!(committed.contains("Success!"), "{committed}");
    let line = format!("{two} [verify required ca-file clients.pem] two.test");
    let added = ask(&format!("add ssl crt-list {list} <<\n{line}\n"));
    assert_eq!(
        added.trim_end(),
        format!("Inserting certificate '{two}' in crt-list '{list}'.\nSuccess!")
    );
    assert!(
        !get(&mut connect(&config, at, "two.test")),
        "no certificate"
    );
    let friend = client(&authority, Some(&others.issue(&["friend"])));
    assert!(get(&mut connect(&friend, at, "two.test")));
    assert!(get(&mut connect(&config, at, "one.test")));
    let shown = ask(&format!("show ssl crt-list -n {list}"));
    assert!(
        shown.contains(&format!(
            "{two}:2 [verify required ca-file clients.pem] two.test"
        )),
        "{shown}"
    );
    // Other authorities: a formerly trusted client is refused, even with a session that could be
    // resumed.
    let refused = ask("del ssl ca-file clients.pem");
    assert!(refused.contains("in use, can't be deleted!"), "{refused}");
    ask(&format!(
        "set ssl ca-file clients.pem <<\n{}\n",
        authority.pem().trim_end()
    ));
    let committed = ask("commit ssl ca-file clients.pem");
    assert!(
        committed.contains("Committing clients.pem.\nSuccess!"),
        "{committed}"
    );
    assert!(!get(&mut connect(&friend, at, "two.test")));
    let own = client(&authority, Some(&authority.issue(&["own"])));
    assert!(get(&mut connect(&own, at, "two.test")));
    // After the line was removed, its certificate can be removed.
    let deleted = ask(&format!("del ssl crt-list {list} {two}"));
    assert!(deleted.contains("deleted in crtlist"), "{deleted}");
    assert!(!get(&mut connect(&own, at, "two.test")));
    assert!(ask("del ssl ca-file clients.pem").contains("deleted!"));
    assert!(ask(&format!("del ssl cert {two}")).contains("deleted!"));
    assert!(ask(&format!("del ssl cert {one}")).contains("in use"));
    let refused = ask(&format!(
        "add ssl crt-list {list} <<\n{one} [ca-file {ca}] x.test\n"
    ));
    assert!(
        refused.contains(&format!("unable to load {ca}")),
        "{refused}"
    );
    assert!(get(&mut connect(&config, at, "one.test")));
}

/// The number in a line of `show info`.
fn fact(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.strip_prefix(": "));
    let number = number.unwrap_or_else(|| panic!("{name} in {info}"));
    number.parse().expect("a number")
}

#[test]
fn the_facts_of_the_process_count_handshakes_and_sessions_that_are_resumed() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let ca = folder.write("ca.pem", authority.pem());
    let cli = folder.path("cli");
    let [front, other, inner] = [listener(), listener(), listener()];
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}\nlisten f\n bind \"fd@${{FRONT}}\" ssl crt {crt} no-tls-tickets\n \
         bind \"fd@${{OTHER}}\" ssl crt {crt} no-tls-tickets verify optional ca-file {ca}\n server s \"127.0.0.1:{}\" ssl verify none no-ssl-reuse\n\
         frontend inner\n bind \"fd@${{INNER}}\" ssl crt {crt} no-tls-tickets\n \
         http-request return status 200 content-type text/plain string ok\n",
        cli.display(),
        address(&inner).port(),
    );
    let named = [("FRONT", &front), ("OTHER", &other), ("INNER", &inner)];
    let proxy = Proxy::start_in(folder, &config, &named);
    let before = ask_any(&cli, "show info");
    for name in [
        "CurrSslConns",
        "CumSslConns",
        "SslCacheLookups",
        "SslFrontendSessionReuse_pct",
    ] {
        assert_eq!(fact(&before, name), 0, "{name}");
    }
    let client = client(&authority, None);
    let mut streams = Vec::new();
    // Full, resumed, and with a session of a bind line that demands something else of clients,
    // which is full too.
    for to in [&front, &front, &other] {
        let mut stream = connect(&client, address(to), "one.test");
        assert!(get(&mut stream));
        streams.push(stream);
    }
    let info = ask_any(&cli, "show info");
    assert_eq!(fact(&info, "SslCacheLookups"), 2, "{info}");
    assert_eq!(fact(&info, "SslCacheMisses"), 1, "{info}");
    // Three clients, and one shared server connection, which counts with both of its ends.
    let (now, all) = (fact(&info, "CurrSslConns"), fact(&info, "CumSslConns"));
    assert!(now >= 5, "{info}");
    assert!(all >= now, "{info}");
    assert!(fact(&info, "SslFrontendMaxKeyRate") <= fact(&info, "MaxSslRate"));
    let metrics = ask_any(&cli, "show info typed");
    assert!(metrics.contains("21.CurrSslConns.1:MGPV:u32:"), "{metrics}");
    drop(streams);
    common::cli::until_any_holds(&cli, "show info", |info| {
        fact(info, "CurrSslConns") + 3 <= now
    });
    proxy.stop();
}

#[test]
fn tls_connections_and_their_rate_are_limited() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let cli = folder.path("cli");
    let (front, clear) = (listener(), listener());
    let config = format!(
        "global\n nbthread 1\n maxsslconn 2\n maxsslrate 1000\n stats socket {} level admin\n{DEFAULTS}\nfrontend f\n \
         bind \"fd@${{FRONT}}\" ssl crt {crt}\n bind \"fd@${{CLEAR}}\"\n \
         http-request return status 200 content-type text/plain string ok\n",
        cli.display(),
    );
    let named = [("FRONT", &front), ("CLEAR", &clear)];
    let proxy = Proxy::start_in(folder, &config, &named);
    let (to, client) = (address(&front), client(&authority, None));
    let info = ask_any(&cli, "show info");
    assert_eq!(fact(&info, "MaxSslConns"), 2);
    assert_eq!(fact(&info, "SslRateLimit"), 1000);
    let mut kept: Vec<Stream> = (0..2).map(|_| connect(&client, to, "one.test")).collect();
    assert!(kept.iter_mut().all(get));
    // A connection above the limit is closed; connections without TLS are served.
    assert!(!get(&mut connect(&client, to, "one.test")));
    assert_eq!(Client::connect(address(&clear)).get("/").status, 200);
    kept.pop();
    common::cli::until_any_holds(&cli, "show info", |info| fact(info, "CurrSslConns") == 1);
    assert!(get(&mut connect(&client, to, "one.test")));

    assert_eq!(
        ask_any(&cli, "set rate-limit ssl-sessions global 1").trim(),
        ""
    );
    assert_eq!(fact(&ask_any(&cli, "show info"), "SslRateLimit"), 1);
    ask_any(&cli, "clear counters all");
    // They are still served, one after the other.
    for _ in 0..2 {
        common::cli::until_any_holds(&cli, "show info", |info| fact(info, "CurrSslConns") == 1);
        assert!(get(&mut connect(&client, to, "one.test")));
    }
    assert!(fact(&ask_any(&cli, "show info"), "MaxSslRate") <= 1);
    proxy.stop();
}
