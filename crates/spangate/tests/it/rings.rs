//! Rings and the relay of logs (manual §12.5, §12.6).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::commands::start;
use crate::common::http::Client;
use crate::common::tls::Authority;
use crate::common::{
    DEADLINE, DEFAULTS, Folder, Proxy, accept, address, eventually, listener, uninterrupted,
};

/// A frontend that logs the paths of requests to a ring.
const FRONTEND: &str = "frontend f\n bind \"fd@${FRONT}\"\n log ring@r local0\n log-format \"got %HU\"\n http-request return status 200\n";

/// A UDP socket, in the type of those that the program inherits.
fn datagrams() -> (TcpListener, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = socket.local_addr().expect("an address");
    (TcpListener::from(OwnedFd::from(socket)), at)
}

fn sink() -> (UdpSocket, SocketAddr) {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sink.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let at = sink.local_addr().expect("an address");
    (sink, at)
}

fn receive(sink: &UdpSocket) -> String {
    let mut buffer = [0; 4096];
    let count = uninterrupted(|| sink.recv(&mut buffer)).expect("a message");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

fn expect(stream: &mut impl Read, text: &str) {
    let mut bytes = vec![0; text.len()];
    stream.read_exact(&mut bytes).expect("bytes");
    assert_eq!(String::from_utf8_lossy(&bytes), text);
}

fn accepted(server: &TcpListener) -> TcpStream {
    let stream = accept(server, "a connection of the ring");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

fn get(front: &TcpListener, path: &str) {
    assert_eq!(Client::connect(address(front)).get(path).status, 200);
}

#[test]
fn messages_of_a_ring_go_to_its_servers() {
    let (front, lines, counts) = (listener(), listener(), listener());
    let config = format!(
        "{FRONTEND}ring r\n description \"of a test\"\n size 4k\n maxlen 8\n timeout connect 10s\n timeout server 10s\n\
         server lines {}\n server counts {} log-proto octet-count\n",
        address(&lines),
        address(&counts)
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    get(&front, "/1");
    let (mut lines, mut counts) = (accepted(&lines), accepted(&counts));
    expect(&mut lines, "got /1\n");
    expect(&mut counts, "6 got /1");
    // `maxlen`
    get(&front, "/1234567");
    expect(&mut lines, "got /123\n");
    expect(&mut counts, "8 got /123");
    let list = ask("show events");
    for line in [
        "    stdout     : type=fd, 0 dropped, standard output (fd#1)\n",
        "    buf0       : type=buffer, 0 dropped, in-memory ring buffer\n",
        "    r          : type=buffer, 0 dropped, of a test\n",
    ] {
        assert!(list.contains(line), "{list}");
    }
    assert_eq!(ask("show events r"), "got /1\ngot /123\n");
    assert_eq!(ask("show events r -0"), "got /1\0got /123\0");
    assert_eq!(ask("show events r -n"), "");
    assert_eq!(ask("show events buf0"), "");
    assert_eq!(ask("show events r -x"), "unknown option\n");
    assert_eq!(ask("show events x"), "No such event sink\n");
    assert_eq!(
        ask("show events stderr"),
        "Nothing to report for this sink\n"
    );
    proxy.stop();
}

#[test]
fn a_client_follows_a_ring_until_it_sends_something() {
    let front = listener();
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level operator\n{DEFAULTS}{FRONTEND}ring r\n format short\n",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    get(&front, "/before");
    let mut client = UnixStream::connect(&path).expect("the socket");
    client.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    client.write_all(b"show events r -w\n").expect("sent");
    let mut reader = BufReader::new(client.try_clone().expect("a descriptor"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "<6>got /before\n");
    get(&front, "/after");
    line.clear();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "<6>got /after\n");
    client.write_all(b"\n").expect("sent");
    line.clear();
    reader.read_to_string(&mut line).expect("the end");
    assert_eq!(line, "\n");
    proxy.stop();
}

#[test]
fn requests_do_not_wait_for_a_server_that_never_reads() {
    let (front, server) = (listener(), listener());
    let config = format!(
        "{FRONTEND}ring r\n size 4096\n server s {}\n",
        address(&server)
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let path = format!("/{}", "x".repeat(2000));
    // The server accepts nothing: the kernel takes some messages, then the ring is full.
    eventually("a dropped message", || {
        for _ in 0..200 {
            assert_eq!(client.get(&path).status, 200);
        }
        let list = ask("show events");
        let line = list.lines().find(|line| line.contains("  r  "));
        let line = line.expect("the ring").to_owned();
        (!line.contains(" 0 dropped")).then_some(())
    });
    assert!(ask("show events r").len() < 4096);
    // The newest messages are there.
    assert_eq!(client.get("/last").status, 200);
    // The line is written after the response was sent.
    eventually("the last line", || {
        let is_there = ask("show events r").ends_with("got /last\n");
        is_there.then_some(())
    });
    proxy.stop();
}

/// The messages of a ring are in its file after the process was killed, and the next process keeps
/// that file under another name.
#[test]
fn a_backing_file_outlives_the_process() {
    let (front, folder) = (listener(), Folder::new());
    let file = folder.path("ring.bin");
    let config = format!(
        "{DEFAULTS}{FRONTEND}ring r\n size 8k\n backing-file {}\n",
        file.display()
    );
    let checked = folder.write("check.cfg", config.replace("fd@${FRONT}", "127.0.0.1:0"));
    let output = crate::common::run(&["-c", "-f", &checked]);
    assert!(
        output.status.success() && !file.exists(),
        "{}",
        output.stderr
    );
    let holds = |file: &std::path::Path, text: &str| {
        let bytes = std::fs::read(file).expect("a file");
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    get(&front, "/1");
    // The line is written after the response was sent.
    eventually("the line", || holds(&file, "\0\x06got /1\0").then_some(()));
    let Proxy { running, folder } = proxy;
    running.signal(libc::SIGKILL);
    assert!(!running.end().status.success());
    assert!(holds(&file, "got /1"));
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let old = proxy.folder.path("ring.bin.bak");
    assert!(holds(&old, "got /1") && !holds(&file, "got /1"));
    get(&front, "/2");
    eventually("the line", || holds(&file, "got /2").then_some(()));
    let Proxy { running, folder } = proxy;
    drop(running);
    // A path that cannot be used.
    let config = config.replace("ring.bin", "absent/ring.bin");
    let bad = folder.write("bad.cfg", config.replace("fd@${FRONT}", "127.0.0.1:0"));
    let output = crate::common::run(&["-db", "-f", &bad]);
    let message = "absent/ring.bin' for ring 'r': No such file or directory.";
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.contains(message), "{}", output.stderr);
}

/// Relays to a UDP sink, from datagrams and from streams.
#[test]
fn logs_are_relayed() {
    let ((udp, udp_at), tcp) = (datagrams(), listener());
    let ((out, out_at), (raw, raw_at), (grave, grave_at)) = (sink(), sink(), sink());
    let config = format!(
        "log-forward relay\n dgram-bind \"fd@${{UDP}}\" name datagrams\n bind \"fd@${{TCP}}\"\n timeout client 40s\n option host append\n\
         log {out_at} local0\n log {raw_at} format raw sample 2:2 local0\n log {grave_at} format short local0 err\n\
         log ring@r local0\nring r\n format rfc5424\n size 64k\n"
    );
    let (proxy, ask) = start(&config, &[("UDP", &udp), ("TCP", &tcp)]);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let send = |text: &str| sender.send_to(text.as_bytes(), udp_at).expect("sent");
    send("<34>Oct  1 22:14:15 h su[12]: x");
    assert_eq!(receive(&out), "<34>Oct  1 22:14:15 h,127.0.0.1 su[12]: x\n");
    assert_eq!(receive(&grave), "<2>x\n");
    let mut stream = TcpStream::connect(address(&tcp)).expect("a connection");
    let counted = "<165>1 2003-10-11T22:14:15Z - a 1 - [x y=\"1\"] t\nwo";
    let line = "<165>1 2003-10-11T22:14:15Z h a 1 - - one\r\n";
    let both = format!("{line}{} {counted}", counted.len());
    stream.write_all(both.as_bytes()).expect("sent");
    assert_eq!(
        receive(&out),
        "<165>1 2003-10-11T22:14:15Z h,127.0.0.1 a 1 - - one\n"
    );
    assert_eq!(
        receive(&out),
        "<165>1 2003-10-11T22:14:15Z 127.0.0.1 a 1 - [x y=\"1\"] t\nwo\n"
    );
    // The second message of two, and none of a lower level.
    assert_eq!(receive(&raw), "one\n");
    eventually("the messages in the ring", || {
        let end = "-10-01T22:14:15-00:00 h,127.0.0.1 su 12 - - x\n<165>1 2003";
        ask("show events r").contains(end).then_some(())
    });
    assert!(ask("show info").contains("\nCumRecvLogs: 3\n"));
    // A faulty stream is closed; others are served.
    stream.write_all(b"x").expect("sent");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    send("no header");
    // With the address of its sender, it is a message of RFC 3164.
    let line = receive(&out);
    assert!(
        line.starts_with("<128>") && line.ends_with(" 127.0.0.1 no header\n"),
        "{line}"
    );
    proxy.stop();
}

#[test]
fn a_relay_without_a_parser_and_with_a_log_backend() {
    let (udp, udp_at) = datagrams();
    let ((one, one_at), (two, two_at)) = (sink(), sink());
    let config = format!(
        "backend logs\n mode log\n balance log-hash field(1,-)\n hash-type map-based none\n server one udp@{one_at}\n server two udp@{two_at}\n\
         log-forward relay\n dgram-bind \"fd@${{UDP}}\"\n option dont-parse-log\n log backend@logs format raw local0\n"
    );
    let (proxy, ask) = start(&config, &[("UDP", &udp)]);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let send = |text: &str| sender.send_to(text.as_bytes(), udp_at).expect("sent");
    send("0-<34>a\n");
    assert_eq!(receive(&one), "0-<34>a\n");
    send("1-<34>b");
    assert_eq!(receive(&two), "1-<34>b\n");
    // A server that leaves gets no further messages.
    assert_eq!(ask("disable server logs/one"), "");
    send("0-c");
    assert_eq!(receive(&two), "0-c\n");
    proxy.stop();
}

/// A ring sends over TLS to a relay of the same process, which sends to a UDP sink.
#[test]
fn rings_and_relays_over_tls() {
    let (front, relay) = (listener(), listener());
    let (out, out_at) = sink();
    let folder = Folder::new();
    let authority = Authority::new("root");
    let crt = folder.write("relay.pem", authority.issue(&["relay.test"]));
    let ca = folder.write("ca.pem", authority.pem());
    let wrong = folder.write("wrong.pem", Authority::new("other").pem());
    let at = address(&relay);
    let config = format!(
        "{DEFAULTS}{FRONTEND} log ring@wrong local0\nring r\n format rfc5424\n server s {at} ssl ca-file {ca} verifyhost relay.test log-proto octet-count\n\
         ring wrong\n server ca {at} ssl ca-file {wrong}\n server name {at} ssl ca-file {ca} verifyhost other.test\n\
         log-forward relay\n bind \"fd@${{RELAY}}\" ssl crt {crt}\n log {out_at} local0\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front), ("RELAY", &relay)]);
    for path in ["/1", "/2"] {
        get(&front, path);
        let line = receive(&out);
        assert!(
            line.starts_with("<134>1 ") && line.ends_with(&format!(" - - got {path}\n")),
            "{line}"
        );
    }
    // A sender without TLS gets nothing through.
    let mut plain = TcpStream::connect(address(&relay)).expect("a connection");
    plain.write_all(b"<1>plain\n").expect("sent");
    plain.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    // The end, or a reset, after an alert.
    let _ = plain.read_to_end(&mut Vec::new());
    get(&front, "/3");
    assert!(receive(&out).ends_with(" got /3\n"));
    proxy.stop();
}
