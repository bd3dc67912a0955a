//! TLS to servers: nginx as the origin.

use crate::common;

use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};

use common::http::Client;
use common::tls::{Authority, Nginx, at, has};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener, spawn};

/// The answer to each request: the connection as nginx sees it.
const TELL: &str = "default_type text/plain; location / { return 200 \
     \"$ssl_protocol sni=$ssl_server_name reused=$ssl_session_reused client=$ssl_client_s_dn connection=$connection n=$connection_requests from=$proxy_protocol_addr\"; }";

fn log_lines(log: &UdpSocket) -> impl Fn() -> String {
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let log = log.try_clone().unwrap();
    move || {
        let mut line = [0; 1000];
        let count = log.recv(&mut line).expect("a line of the log");
        String::from_utf8_lossy(&line[..count]).trim().to_owned()
    }
}

/// A backend for each server line, selected by the path. The log has `%tsc` and the error of the
/// server connection.
fn proxy_of(folder: Folder, lines: &[(&str, String)], log: &UdpSocket) -> (Proxy, SocketAddr) {
    let mut config = format!(
        "{DEFAULTS}\n retries 0\nfrontend f\n log {} format raw local0\n log-format \"%ST %tsc %[bc_err_str]\"\n \
         bind \"fd@${{FRONT}}\"\n use_backend %[path,field(2,/)]\n",
        log.local_addr().unwrap()
    );
    for (name, line) in lines {
        config.push_str(&format!("backend {name}\n {line}\n"));
    }
    let front = listener();
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    (proxy, address(&front))
}

/// The value of `name=` in the answer of [`TELL`].
fn told(text: &str, name: &str) -> String {
    let mut words = text.split(' ').filter_map(|word| word.split_once('='));
    let found = words.find(|(key, _)| *key == name);
    found
        .unwrap_or_else(|| panic!("no {name}: {text}"))
        .1
        .to_owned()
}

#[test]
fn servers_are_verified_and_asked_by_name() {
    if !has("nginx") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test", "*.wild.test"]));
    let ca = folder.write("ca.pem", authority.pem());
    let wrong = folder.write("wrong.pem", Authority::new("other").pem());
    let client = folder.write("client.pem", authority.issue(&["proxy"]));
    let (tls, strict, headed) = (listener(), listener(), listener());
    let keys =
        format!("ssl_certificate {crt}; ssl_certificate_key {crt}; ssl_protocols TLSv1.2 TLSv1.3;");
    let http = format!(
        "server {{ listen {} ssl; {keys} {TELL} }}
server {{ listen {} ssl; {keys} ssl_verify_client on; ssl_client_certificate {ca}; {TELL} }}
server {{ listen {} ssl proxy_protocol; {keys} {TELL} }}",
        at(&tls),
        at(&strict),
        at(&headed)
    );
    let nginx = Nginx::start(Folder::new(), &http, &[&tls, &strict, &headed]);
    let (plain, strict, headed) = (at(&tls), at(&strict), at(&headed));
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    let next_line = log_lines(&log);
    let server = |more: &str| format!("server s {plain} ssl {more}");
    let lines = [
        ("none", server("verify none")),
        ("unnamed", server("verify none no-sni-auto")),
        ("old", server("verify none ssl-max-ver TLSv1.2")),
        (
            "right",
            server(&format!("verify required ca-file {ca} no-sni-auto")),
        ),
        (
            "named",
            server(&format!(
                "verify required ca-file {ca} sni str(one.test) verifyhost two.test"
            )),
        ),
        (
            "wild",
            server(&format!("verify required ca-file {ca} sni req.hdr(host)")),
        ),
        (
            "host",
            server(&format!(
                "verify required ca-file {ca} verifyhost one.test no-sni-auto"
            )),
        ),
        ("wrong", server(&format!("verify required ca-file {wrong}"))),
        (
            "misnamed",
            server(&format!("verify required ca-file {ca} sni str(two.test)")),
        ),
        (
            "mishost",
            server(&format!(
                "verify required ca-file {ca} verifyhost two.test no-sni-auto"
            )),
        ),
        (
            "client",
            format!("server s {strict} ssl verify none crt {client}"),
        ),
        ("anonymous", format!("server s {strict} ssl verify none")),
        (
            "header",
            format!("server s {headed} ssl verify none send-proxy"),
        ),
        (
            "header2",
            format!("server s {headed} ssl verify none send-proxy-v2"),
        ),
        ("clear", format!("server s {plain}")),
    ];
    let (proxy, front) = proxy_of(folder, &lines, &log);
    let ask = |path: &str, host: &str| {
        let mut client = Client::connect(front);
        client.send(format!(
            "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        ));
        let answer = client.response().expect("an answer");
        (answer.status, answer.text(), next_line())
    };
    for (path, host, sni) in [
        ("none", "x", "x"),
        ("unnamed", "x", ""),
        ("right", "x", ""),
        ("named", "x", "one.test"),
        ("wild", "a.wild.test", "a.wild.test"),
        ("host", "x", ""),
    ] {
        let (status, text, line) = ask(path, host);
        assert_eq!(
            (status, told(&text, "sni")),
            (200, sni.into()),
            "{path} {line}"
        );
        assert!(text.starts_with("TLSv1.3"), "{text}");
        assert!(line.starts_with("200 ---- "), "{line}");
    }
    assert!(ask("old", "x").1.starts_with("TLSv1.2"));
    for (path, host) in [
        ("wrong", "x"),
        ("misnamed", "x"),
        ("mishost", "x"),
        ("wild", "else.test"),
    ] {
        let (status, _, line) = ask(path, host);
        assert_eq!(status, 503, "{path} {line}");
        assert!(line.starts_with("503 SC-- "), "{path} {line}");
    }
    assert_eq!(told(&ask("client", "x").1, "client"), "CN=proxy");
    assert_eq!(ask("anonymous", "x").0, 400);
    assert_eq!(told(&ask("header", "x").1, "from"), "127.0.0.1");
    assert_eq!(told(&ask("header2", "x").1, "from"), "127.0.0.1");
    assert_eq!(ask("clear", "x").0, 400);
    proxy.stop();
    drop(nginx);
}

#[test]
fn connections_and_sessions_of_servers_are_used_again() {
    if !has("nginx") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let tls = listener();
    let http = format!(
        "server {{ listen {} ssl; ssl_certificate {crt}; ssl_certificate_key {crt}; ssl_session_cache builtin; {TELL} }}",
        at(&tls)
    );
    let nginx = Nginx::start(Folder::new(), &http, &[&tls]);
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = format!("server s {} ssl verify none sni req.hdr(host)", at(&tls));
    let lines = [
        ("kept", format!("http-reuse always\n {server}")),
        (
            "closed",
            format!("option httpclose\n {server} ssl-max-ver TLSv1.2"),
        ),
        ("new", format!("option httpclose\n {server} no-ssl-reuse")),
    ];
    let (proxy, front) = proxy_of(folder, &lines, &log);
    let ask = |path: &str, host: &str| {
        let mut client = Client::connect(front);
        client.send(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        let text = client.response().expect("an answer").text();
        assert_eq!(told(&text, "sni"), host);
        text
    };
    // Each name has a separate connection.
    let connection = |host| told(&ask("kept", host), "connection");
    let (one, two) = (connection("one.test"), connection("two.test"));
    assert_ne!(one, two);
    assert_eq!((connection("one.test"), connection("two.test")), (one, two));
    // Each name has a separate session.
    let reused = |path, host| told(&ask(path, host), "reused");
    assert_eq!(reused("closed", "one.test"), ".");
    assert_eq!(reused("closed", "one.test"), "r");
    assert_eq!(reused("closed", "other.test"), ".");
    assert_eq!(reused("new", "one.test"), ".");
    assert_eq!(reused("new", "one.test"), ".");
    proxy.stop();
    drop(nginx);
}

#[test]
fn bodies_go_through_tls_on_both_sides() {
    if !has("nginx") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let body = common::pattern(5_000_000);
    let files = Folder::new();
    files.write("www/big", &body);
    let tls = listener();
    let http = format!(
        "server {{ listen {} ssl; ssl_certificate {crt}; ssl_certificate_key {crt}; \
         location /put/ {{ dav_methods PUT; create_full_put_path on; }} }}",
        at(&tls)
    );
    let nginx = Nginx::start(files, &http, &[&tls]);
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n server s {} ssl verify none\n",
        at(&tls)
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let connect = || {
        let stream = std::net::TcpStream::connect(address(&front)).unwrap();
        Client::over(common::tls::secure(stream, &authority, "one.test"))
    };
    assert!(connect().get("/big").body == body);
    let mut client = connect();
    client.send(format!(
        "PUT /put/x HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    client.send(&body);
    client.reader.wire.flush().unwrap();
    assert_eq!(client.response().unwrap().status, 201);
    let written = std::fs::read(nginx.folder.path("www/put/x")).unwrap();
    assert!(written == body);
    proxy.stop();
}

#[test]
fn a_server_that_ends_the_handshake_is_tried_again() {
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    let next_line = log_lines(&log);
    let (rude, silent) = (listener(), listener());
    let lines = [
        (
            "rude",
            format!("retries 1\n server s {} ssl verify none", at(&rude)),
        ),
        (
            "silent",
            format!(
                "retries 0\n timeout connect 100ms\n server s {} ssl verify none",
                at(&silent)
            ),
        ),
    ];
    let (proxy, front) = proxy_of(Folder::new(), &lines, &log);
    // Accepts, reads the first message, and closes; counts the connections.
    let counted = spawn(move || {
        let mut count = 0;
        for _ in 0..2 {
            let (mut stream, _) = rude.accept().expect("a connection");
            let _ = std::io::Read::read(&mut stream, &mut [0; 2000]);
            let _ = stream.write_all(b"no TLS at all");
            count += 1;
        }
        count
    });
    assert_eq!(Client::connect(front).get("/rude").status, 503);
    assert_eq!(common::join(&counted, "the server"), 2);
    assert!(next_line().starts_with("503 SC"));
    assert_eq!(Client::connect(front).get("/silent").status, 503);
    assert!(next_line().starts_with("503 sC"));
    proxy.stop();
}
