//! Servers over QUIC. The server is another frontend of the same process.

use crate::common;

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::module_columns::numbers;
use common::cli::{ask_any, until_any_holds};
use common::http::{Client, Reader};
use common::origin::{Origin, ok};
use common::tls::Authority;
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, eventually, join, listener, spawn};

/// A UDP socket for a line with QUIC. What is inherited is a descriptor; the type stands for any.
fn datagrams() -> TcpListener {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    TcpListener::from(OwnedFd::from(socket))
}

/// A proxy for HTTP/1 clients, a server over QUIC behind it, and an origin behind that.
struct Behind {
    proxy: Proxy,
    front: SocketAddr,
    log: UdpSocket,
    /// The socket for commands.
    stats: PathBuf,
}

/// The parts of the configuration that tests change.
#[derive(Default)]
struct Parts<'a> {
    /// In `global`.
    global: &'a str,
    /// Lines of the proxy in front.
    front: &'a str,
    /// Options of its server.
    server: &'a str,
    /// Options of the line that serves QUIC.
    bind: &'a str,
    /// Lines of the proxy that serves QUIC.
    inner: &'a str,
    /// Other sections.
    more: &'a str,
}

impl Behind {
    fn start(origin: SocketAddr, parts: &Parts<'_>) -> Behind {
        Behind::start_with(origin, parts, &[])
    }

    /// The same with further sockets.
    fn start_with(
        origin: SocketAddr,
        parts: &Parts<'_>,
        others: &[(&str, &TcpListener)],
    ) -> Behind {
        let (authority, folder) = (Authority::new("root"), Folder::new());
        let crt = folder.write("one.pem", authority.issue(&["one.test"]));
        let ca = folder.write("ca.pem", authority.pem());
        let (front, quic) = (listener(), datagrams());
        let stats = folder.path("cli.sock");
        let log = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        log.set_read_timeout(Some(DEADLINE)).expect("an option");
        let Parts {
            global,
            front: before,
            server,
            bind,
            inner,
            more,
        } = parts;
        let config = format!(
            "{DEFAULTS}\nglobal\n expose-experimental-directives\n stats socket {} level admin\n {global}\n\
             listen front\n bind \"fd@${{FRONT}}\"\n log {} format raw local0\n \
             log-format \"%ST %tsc %[bc_err_str]\"\n retries 1\n \
             http-response set-header from \"%[bc_src_port]\"\n {before}\n \
             server s quic4@{} ssl verify required ca-file {ca} sni str(one.test) {server}\n\
             listen inner\n bind \"quic+fd@${{QUIC}}\" ssl crt {crt} {bind}\n {inner}\n \
             http-response set-header seen \"%HV %[fs.id] %[src_port]\"\n server o {origin}\n{more}\n",
            stats.display(),
            log.local_addr().expect("an address"),
            address(&quic),
        );
        let sockets = [&[("FRONT", &front), ("QUIC", &quic)], others].concat();
        let proxy = Proxy::start_in(folder, &config, &sockets);
        Behind {
            proxy,
            front: address(&front),
            log,
            stats,
        }
    }

    fn logged(&self) -> String {
        let mut line = [0; 500];
        let count = self.log.recv(&mut line).expect("a line of the log");
        String::from_utf8_lossy(&line[..count]).trim().to_owned()
    }
}

/// What the server has seen of a request: the version, the number of its stream, the port of its
/// client.
fn seen(client: &mut Client, path: &str) -> (String, u64, u16) {
    let answer = client.get(path);
    assert_eq!(answer.status, 200);
    let text = answer.field("seen").expect("a field").to_owned();
    let mut words = text.split(' ');
    let mut word = || words.next().expect("a word");
    let version = word().to_owned();
    let number = word().parse().expect("a number");
    (version, number, word().parse().expect("a port"))
}

#[test]
fn messages_pass_whole() {
    let origin = Origin::start(|request| ok(&request.body));
    let behind = Behind::start(origin.at, &Parts::default());
    let body = common::pattern(1_500_000);
    let mut client = Client::connect(behind.front);
    for _ in 0..2 {
        let head = format!(
            "POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.send([head.as_bytes(), &body].concat());
        let answer = client.response().expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{} bytes", answer.body.len());
        assert!(
            answer
                .field("seen")
                .expect("a field")
                .starts_with("HTTP/3.0 ")
        );
        // Without a length.
        client.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
        for part in body.chunks(100_000) {
            client.send(format!("{:x}\r\n", part.len()));
            client.send(part);
            client.send("\r\n");
        }
        client.send("0\r\n\r\n");
        let answer = client.response().expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{} bytes", answer.body.len());
    }
    behind.proxy.stop();
}

/// The versions of TLS that lines allow are those of TCP (RFC 9001 section 4.2).
#[test]
fn options_of_tcp_do_not_disturb() {
    let origin = Origin::start(|_| ok(b""));
    let parts = Parts {
        global: "ssl-default-bind-options ssl-max-ver TLSv1.2\n \
                 ssl-default-server-options force-tlsv12",
        server: "alpn h2 proto quic",
        ..Parts::default()
    };
    let behind = Behind::start(origin.at, &parts);
    let (version, ..) = seen(&mut Client::connect(behind.front), "/");
    assert_eq!(version, "HTTP/3.0");
}

#[test]
fn fetches_tell_the_versions_of_both_connections() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            front: "http-response set-header front \"%[fc_http_major] %[bc_http_major] %[bc_nb_streams] %[ssl_bc_sni]\"\n \
                    http-response set-header rtt %[bc_rtt(us)]",
            inner: "http-request set-var(txn.version) req.ver\n \
                    http-response set-header inner \"%[fc_http_major] %[fc_nb_streams] \
                    %[fc_settings_streams_limit] %[bc_http_major] %[var(txn.version)]\"\n \
                    http-response set-header inner-rtt %[fc_rtt(us)]",
            ..Parts::default()
        },
    );
    let answer = Client::connect(behind.front).get("/");
    assert_eq!(answer.field("front"), Some("1 3 1 one.test"));
    assert_eq!(answer.field("inner"), Some("3 1 100 1 3.0"));
    // QUIC's estimates of both ends of the connection; a packet takes no second here.
    for name in ["rtt", "inner-rtt"] {
        let us: u32 = answer
            .field(name)
            .and_then(|us| us.parse().ok())
            .expect(name);
        assert!((1..1_000_000).contains(&us), "{name}: {us}");
    }
    behind.proxy.stop();
}

/// Neither version counts for the other, and nothing stays open.
#[test]
fn a_backend_counts_http3() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            front: "http-reuse always",
            ..Parts::default()
        },
    );
    let stats = &behind.stats;
    let mut client = Client::connect(behind.front);
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    let fields = [
        "h2_open_connections",
        "h2_total_connections",
        "h2_backend_total_streams",
        "h1_total_connections",
        "h1_total_streams",
        "h1_open_connections",
        "h3_headers",
        "h3_settings",
    ];
    let counted = || numbers(stats, ("front", "BACKEND"), fields);
    let wanted = [0, 0, 0, 0, 0, 0, 3, 1].map(Some);
    until_any_holds(stats, "show stat", |_| counted() == wanted);
    let open = || {
        numbers(
            stats,
            ("front", "BACKEND"),
            ["h2_open_connections", "h1_open_streams"],
        )
    };
    ask_any(stats, "disable server front/s");
    ask_any(stats, "shutdown sessions server front/s");
    assert_eq!(open(), [Some(0); 2]);
    behind.proxy.stop();
}

#[test]
fn requests_share_a_connection() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            front: "http-reuse always",
            ..Parts::default()
        },
    );
    let mut client = Client::connect(behind.front);
    let (version, first, port) = seen(&mut client, "/");
    assert_eq!((&*version, first), ("HTTP/3.0", 0));
    // The local port of a new connection, and of one that is used again.
    for _ in 0..2 {
        let mut new = Client::connect(behind.front);
        assert_eq!(new.get("/").field("from"), Some(&*port.to_string()));
    }
    let mut other = Client::connect(behind.front);
    for number in [12, 16] {
        assert_eq!(seen(&mut other, "/"), (version.clone(), number, port));
    }
    behind.proxy.stop();
}

/// A server that permits two requests at a time, and four on a connection.
#[test]
fn a_server_permits_few_requests() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            global: "tune.quic.fe.stream.max-concurrent 2\n tune.quic.fe.stream.max-total 4",
            front: "http-reuse always",
            ..Parts::default()
        },
    );
    let front = behind.front;
    let clients: Vec<_> = (0..12)
        .map(|_| {
            spawn(move || {
                let mut client = Client::connect(front);
                for _ in 0..6 {
                    assert_eq!(client.get("/").status, 200);
                }
            })
        })
        .collect();
    for client in &clients {
        join(client, "a client");
    }
    behind.proxy.stop();
}

/// The timeout of a connection is longer than that of a test.
#[test]
fn a_server_that_is_away_is_left_at_once() {
    let origin = Origin::echo();
    let nobody = datagrams();
    let away = address(&nobody);
    drop(nobody);
    let (alone, other) = (listener(), listener());
    let gone = format!("server gone quic4@{away} ssl verify none");
    let config = format!(
        "{DEFAULTS} retries 0\nglobal\n expose-experimental-directives\n\
         listen alone\n bind \"fd@${{ALONE}}\"\n {gone}\n\
         listen other\n bind \"fd@${{OTHER}}\"\n retries 1\n option redispatch 1\n balance first\n {gone}\n server o {}\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("ALONE", &alone), ("OTHER", &other)]);
    assert_eq!(Client::connect(address(&alone)).get("/").status, 503);
    assert_eq!(Client::connect(address(&other)).get("/").status, 200);
    // The sockets of connections that are over are closed at once.
    for _ in 0..60 {
        assert_eq!(Client::connect(address(&alone)).get("/").status, 503);
    }
    let descriptors = format!("/proc/{}/fd", proxy.running.pid());
    let open = std::fs::read_dir(descriptors).expect("descriptors").count();
    assert!(open < 60, "{open} descriptors");
    proxy.stop();
}

/// The timeout of the server is longer than that of a test.
#[test]
fn a_server_that_dies_is_left() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let quic = datagrams();
    let at = address(&quic);
    let config = format!(
        "{DEFAULTS} timeout server 60s\n timeout connect 60s\n\
         frontend f\n bind \"quic+fd@${{QUIC}}\" ssl crt {crt}\n http-request return status 200\n"
    );
    let dying = Proxy::start_in(folder, &config, &[("QUIC", &quic)]);
    drop(quic);
    let front = listener();
    let config = format!(
        "{DEFAULTS} timeout server 60s\n retries 0\nglobal\n expose-experimental-directives\n\
         listen front\n bind \"fd@${{FRONT}}\"\n http-reuse always\n \
         server s quic4@{at} ssl verify none\n"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    for _ in 0..2 {
        assert_eq!(client.get("/").status, 200);
    }
    dying.running.signal(libc::SIGKILL);
    dying.running.end();
    // The first request may use the connection, and ends with it; later ones find no server.
    let mut client = Client::connect(address(&front));
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    let first = client.response().map(|answer| answer.status);
    assert!(matches!(first, None | Some(502 | 503)), "{first:?}");
    assert_eq!(Client::connect(address(&front)).get("/").status, 503);
    proxy.stop();
}

/// Whether the server got a request as early data.
fn early(client: &mut Client, request: &str) -> String {
    client.send(format!("{request} / HTTP/1.1\r\nhost: x\r\n\r\n"));
    let answer = client.response().expect("an answer");
    assert_eq!(answer.status, 200);
    answer.field("early").expect("a field").to_owned()
}

/// Anybody may send early data again (RFC 8470 section 2).
#[test]
fn a_server_gets_safe_requests_as_early_data() {
    let origin = Origin::echo();
    let parts = Parts {
        global: "nbthread 1",
        front: "http-reuse never\n http-request set-method %[req.hdr(as)] if { req.hdr(as) -m found }\n \
                http-response set-header resumed \"%[ssl_bc_is_resumed]\"",
        server: "allow-0rtt",
        bind: "allow-0rtt",
        inner: "http-response set-header early \"%[ssl_fc_early_rcvd]\"",
        ..Parts::default()
    };
    let behind = Behind::start(origin.at, &parts);
    let mut client = Client::connect(behind.front);
    assert_eq!(early(&mut client, "GET"), "0");
    for _ in 0..3 {
        assert_eq!(early(&mut client, "GET"), "1");
    }
    assert_eq!(early(&mut client, "DELETE"), "0");
    // The method that the server sees counts.
    for (own, sent, expected) in [("GET", "POST", "0"), ("DELETE", "GET", "1")] {
        client.send(format!("{own} / HTTP/1.1\r\nhost: x\r\nas: {sent}\r\n\r\n"));
        let answer = client.response().expect("an answer");
        assert_eq!(answer.field("early"), Some(expected), "{own} as {sent}");
    }
    client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab");
    let answer = client.response().expect("an answer");
    assert_eq!(answer.field("early"), Some("0"));
    assert_eq!(answer.field("resumed"), Some("1"));
    // A head that may fill the first window of the connection.
    client.send(format!(
        "GET / HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n",
        "a".repeat(9000)
    ));
    assert_eq!(
        client.response().expect("an answer").field("early"),
        Some("0")
    );
    assert_eq!(early(&mut client, "OPTIONS"), "1");
    behind.proxy.stop();
}

/// RFC 8470 section 5.2: the client has not sent early data, and does not see the status.
#[test]
fn a_request_that_is_too_early_is_sent_again() {
    let origin = Origin::echo();
    let parts = Parts {
        global: "nbthread 1",
        front: "http-reuse never\n retry-on 425",
        server: "allow-0rtt",
        bind: "allow-0rtt",
        inner: "http-request return status 425 if { ssl_fc_early_rcvd }\n \
                http-response set-header early \"%[ssl_fc_early_rcvd]\"",
        ..Parts::default()
    };
    let behind = Behind::start(origin.at, &parts);
    let mut client = Client::connect(behind.front);
    for _ in 0..4 {
        assert_eq!(early(&mut client, "GET"), "0");
    }
    // One who says that the request was early data already hears of it.
    client.send("GET / HTTP/1.1\r\nhost: x\r\nearly-data: 1\r\n\r\n");
    assert_eq!(client.response().expect("an answer").status, 425);
    behind.proxy.stop();
}

/// Early data of a session that the server does not know any more, and of a server that is away.
#[test]
fn early_data_that_is_not_read_is_sent_again() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let quic = datagrams();
    let at = address(&quic);
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"quic+fd@${{QUIC}}\" ssl crt {crt} allow-0rtt\n \
         http-request return status 200 hdr early \"%[ssl_fc_early_rcvd]\"\n"
    );
    let front = listener();
    let before = format!(
        "{DEFAULTS} retries 0\nglobal\n nbthread 1\n expose-experimental-directives\n\
         listen front\n bind \"fd@${{FRONT}}\"\n http-reuse never\n \
         server s quic4@{at} ssl verify none allow-0rtt\n"
    );
    let proxy = Proxy::start(&before, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let first = Proxy::start_in(Folder::new(), &config, &[("QUIC", &quic)]);
    for expected in ["0", "1"] {
        assert_eq!(early(&mut client, "GET"), expected);
    }
    first.stop();
    let second = Proxy::start_in(Folder::new(), &config, &[("QUIC", &quic)]);
    for expected in ["0", "1"] {
        assert_eq!(early(&mut client, "GET"), expected);
    }
    drop(quic);
    second.stop();
    assert_eq!(Client::connect(address(&front)).get("/").status, 503);
    proxy.stop();
}

/// A socket for UDP and one for TCP at the same address.
fn both() -> (TcpListener, UdpSocket) {
    loop {
        let tcp = listener();
        if let Ok(udp) = UdpSocket::bind(address(&tcp)) {
            return (tcp, udp);
        }
    }
}

/// A proxy whose server may be asked over QUIC and over TCP, and tells the version that it sees.
fn with_fallback(tcp: &TcpListener, udp: Option<&TcpListener>) -> (Proxy, SocketAddr, PathBuf) {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let ca = folder.write("ca.pem", authority.pem());
    let (front, stats) = (listener(), folder.path("cli.sock"));
    let quic = udp.map_or(String::new(), |_| {
        format!("bind \"quic+fd@${{QUIC}}\" ssl crt {crt}\n ")
    });
    let config = format!(
        "{DEFAULTS} retries 0\n timeout connect 60s\nglobal\n nbthread 1\n expose-experimental-directives\n stats socket {} level admin\n\
         listen front\n bind \"fd@${{FRONT}}\"\n http-reuse never\n \
         server s quic4@{} ssl verify required ca-file {ca} sni str(one.test) check inter 100ms alpn h3,h2,http/1.1\n\
         frontend inner\n bind \"fd@${{TCP}}\" ssl crt {crt} alpn h2,http/1.1\n {quic}\
         http-request return status 200 hdr seen \"%[req.ver] %[ssl_fc_alpn]\"\n",
        stats.display(),
        address(tcp),
    );
    let mut sockets = vec![("FRONT", &front), ("TCP", tcp)];
    sockets.extend(udp.map(|udp| ("QUIC", udp)));
    (
        Proxy::start_in(folder, &config, &sockets),
        address(&front),
        stats,
    )
}

fn versions(front: SocketAddr) -> Vec<String> {
    let mut client = Client::connect(front);
    let mut one = || {
        let answer = client.get("/");
        assert_eq!(answer.status, 200);
        answer.field("seen").expect("a field").to_owned()
    };
    (0..3).map(|_| one()).collect()
}

#[test]
fn a_server_that_quic_does_not_reach_is_asked_over_tcp() {
    // Nobody listens.
    let (tcp, udp) = both();
    drop(udp);
    let (proxy, front, _) = with_fallback(&tcp, None);
    assert_eq!(versions(front), ["2.0 h2"; 3]);
    proxy.stop();
    // Nobody answers: the timeout of connections is longer than that of a test.
    let (tcp, udp) = both();
    let (proxy, front, _) = with_fallback(&tcp, None);
    assert_eq!(versions(front), ["2.0 h2"; 3]);
    proxy.stop();
    drop(udp);
    let (tcp, udp) = both();
    let udp = TcpListener::from(OwnedFd::from(udp));
    let (proxy, front, _) = with_fallback(&tcp, Some(&udp));
    assert_eq!(versions(front), ["3.0 h3"; 3]);
    proxy.stop();
    // What was learned of one address does not count for another one.
    let (tcp, udp) = both();
    drop(udp);
    let udp = datagrams();
    let (proxy, front, stats) = with_fallback(&tcp, Some(&udp));
    assert_eq!(versions(front), ["2.0 h2"; 3]);
    let port = address(&udp).port();
    ask_any(
        &stats,
        &format!("set server front/s addr 127.0.0.1 port {port}"),
    );
    assert_eq!(versions(front), ["3.0 h3"; 3]);
    proxy.stop();
}

/// Connections whose handshakes are under way count as sessions that are to begin.
#[test]
fn the_rate_of_sessions_is_limited() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            global: "nbthread 1",
            front: "http-reuse never",
            inner: "rate-limit sessions 2",
            ..Parts::default()
        },
    );
    let front = behind.front;
    let clients: Vec<_> = (0..3)
        .map(|_| spawn(move || Client::connect(front).get("/").status))
        .collect();
    for client in &clients {
        assert_eq!(join(client, "a client"), 200);
    }
    assert_eq!(
        numbers(&behind.stats, ("inner", "FRONTEND"), ["rate_max"]),
        [Some(2)]
    );
    behind.proxy.stop();
}

#[test]
fn an_upgrade_passes() {
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        let head = reader.head().expect("a request");
        assert_eq!(head.field("upgrade"), Some("chat"));
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\nhello";
        reader.wire.write_all(answer.as_bytes()).expect("sent");
        let said = reader.exactly(5).expect("bytes");
        assert_eq!(said, b"first");
        reader.wire.write_all(b"second").expect("sent");
    });
    let behind = Behind::start(origin.at, &Parts::default());
    let mut client = Client::connect(behind.front);
    client.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\nfirst");
    let head = client.reader.head().expect("an answer");
    assert_eq!((head.status, head.field("upgrade")), (101, Some("chat")));
    assert_eq!(client.reader.exactly(11).expect("bytes"), b"hellosecond");
    behind.proxy.stop();
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let origin = Origin::echo();
    let behind = Behind::start(
        origin.at,
        &Parts {
            front: "timeout connect 10s",
            server: "sni str(other.test)",
            ..Parts::default()
        },
    );
    assert_eq!(Client::connect(behind.front).get("/").status, 503);
    assert_eq!(
        behind.logged(),
        "503 SC-- Server presented an SSL certificate different from the expected one"
    );
    behind.proxy.stop();
}

#[test]
fn checks_ask_over_quic() {
    let origin = Origin::echo();
    let tell = listener();
    let more = "listen tell\n bind \"fd@${TELL}\"\n http-request return status 200 content-type text/plain lf-string \"%[srv_is_up(front/s)]\"\n";
    let behind = Behind::start_with(
        origin.at,
        &Parts {
            front: "option httpchk\n http-check send meth GET uri /health\n http-check expect status 204",
            server: "check inter 20ms rise 1 fall 1 init-state down",
            inner: "http-request return status 204 if { path /health } { req.ver 3.0 } { method GET }",
            more,
            ..Parts::default()
        },
        &[("TELL", &tell)],
    );
    eventually("the server is up", || {
        let answer = Client::connect(address(&tell)).get("/");
        (answer.text() == "1").then_some(())
    });
    behind.proxy.stop();
}
