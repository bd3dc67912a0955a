//! TLS on `bind` lines: fragmented input, failed handshakes, large bodies.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};

use common::http::Client;
use common::origin::{Origin, ok};
use common::tls::{Authority, curl, has, secure};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// Returns the client's address.
const TELL: &str =
    "http-request return status 200 content-type text/plain lf-string \"src=%[src]\\n\"";

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
    // The connection ends without a TLS close, after a request.
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

    // The handshake byte by byte, after a PROXY header.
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
        "{DEFAULTS}\nfrontend f\n timeout client-hs 60ms\n log {} format raw local0\n error-log-format \"%[fc_err] %[fc_err_str]\"\n \
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
    // It still serves.
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
    let body = common::pattern(5_000_000);
    let file = folder.write("body", &body);
    let answer = body.clone();
    let origin = Origin::start(move |request| {
        if request.line.starts_with("POST") {
            ok(format!("{}", request.body == answer))
        } else {
            ok(&answer)
        }
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n server s {}\n",
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let url = format!("https://{}/", address(&front));
    for version in ["--http1.1", "--http2"] {
        // At full speed, and to a client that reads slowly.
        for rate in ["1G", "20M"] {
            let got = curl(&proxy.folder, &["-k", version, "--limit-rate", rate, &url]);
            let len = got.body.len();
            assert!(
                got.body == body,
                "{version} {rate}: {len} bytes, {}",
                got.exit
            );
        }
        let data = format!("@{file}");
        let got = curl(
            &proxy.folder,
            &["-k", version, "--data-binary", &data, &url],
        );
        assert_eq!(got.text(), "true", "{version} {}", got.exit);
    }
    proxy.stop();
}

#[test]
fn records_are_short_at_the_beginning_of_a_transfer() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let origin = Origin::start(|_| ok(common::pattern(200_000)));
    let front = listener();
    let config = format!(
        "global\n tune.ssl.maxrecord 1419\n{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n server s {}\n",
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let stream = TcpStream::connect(address(&front)).unwrap();
    let mut wire = secure(stream, &authority, "one.test");
    wire.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .unwrap();
    wire.flush().unwrap();
    let mut bytes = Vec::new();
    wire.sock.read_to_end(&mut bytes).unwrap();
    let (mut rest, mut sealed, mut longest) = (&bytes[..], 0, 0);
    while let [_, _, _, a, b, more @ ..] = rest {
        let len = usize::from(*a) << 8 | usize::from(*b);
        // TLS 1.3: a tag of 16 bytes, and one byte for the content type.
        assert!(sealed > 30_000 || len <= 1419 + 17, "{len} after {sealed}");
        (sealed, longest) = (sealed + len, longest.max(len));
        rest = &more[len..];
    }
    assert!(sealed > 200_000 && longest > 8_000, "{sealed} {longest}");
    proxy.stop();
}
