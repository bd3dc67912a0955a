//! The status of certificates: from files, and from their responders.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common;
use common::cli::{ask_any, until_any_holds};
use common::tls::{Authority, has, program, s_client};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// Creates an authority's responses with `openssl ocsp`.
struct Signer {
    folder: Folder,
    ca: String,
    key: String,
    index: String,
}

impl Signer {
    /// For one certificate (PEM).
    fn new(authority: &Authority, certificate: &str) -> Signer {
        let folder = Folder::new();
        let crt = folder.write("one.pem", certificate);
        let serial = program("openssl", &["x509", "-noout", "-serial", "-in", &crt], b"").stdout;
        let serial = serial.trim().trim_start_matches("serial=");
        let line = format!("V\t351231235959Z\t\t{serial}\tunknown\t/CN=one.test\n");
        Signer {
            ca: folder.write("ca.pem", authority.pem()),
            key: folder.write("ca.key", authority.key_pem()),
            index: folder.write("index", line),
            folder,
        }
    }

    /// The response to a request, both DER.
    fn answer(&self, request: &[u8]) -> Vec<u8> {
        self.answer_for(request, ["-ndays", "7"])
    }

    /// One that is valid for so long.
    fn answer_for(&self, request: &[u8], [unit, count]: [&str; 2]) -> Vec<u8> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let request = self.folder.write(&format!("{number}.request"), request);
        let response = self.folder.path(&format!("{number}.response"));
        let to = response.to_str().expect("a path");
        let (ca, key, index) = (&self.ca, &self.key, &self.index);
        let made = program(
            "openssl",
            &[
                "ocsp", "-index", index, "-CA", ca, "-rsigner", ca, "-rkey", key, "-reqin",
                &request, unit, count, "-respout", to,
            ],
            b"",
        );
        assert!(made.status.success(), "{}", made.stderr);
        std::fs::read(response).expect("a response")
    }
}

/// A responder: it answers each request (DER) with the result of `answer`, and reports the first
/// line of the request.
fn responder(
    listener: TcpListener,
    answer: impl Fn(usize, &[u8]) -> Vec<u8> + Send + 'static,
) -> Receiver<String> {
    let (sender, lines) = channel();
    common::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let (line, request) = read_request(&mut stream);
            let answer = answer(number, &request);
            if sender.send(line).is_err() {
                return;
            }
            stream.write_all(&answer).expect("an answer");
        }
    });
    lines
}

/// The first line of a GET request, and the decoded content of its target.
fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let line = head.lines().next().expect("a line").to_owned();
    let target = line.split(' ').nth(1).expect("a target");
    let (_, encoded) = target.rsplit_once('/').expect("a path");
    let encoded = encoded
        .replace("%2F", "/")
        .replace("%2B", "+")
        .replace("%3D", "=");
    (line, STANDARD.decode(encoded).expect("base64"))
}

fn with_head(response: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n\r\n",
        response.len()
    );
    [head.as_bytes(), response].concat()
}

/// A proxy that requests the status of this certificate automatically, its log, its address, and
/// its runtime interface.
struct Started {
    proxy: Proxy,
    log: UdpSocket,
    at: SocketAddr,
    socket: std::path::PathBuf,
    crt: String,
}

fn start(authority: &Authority, certificate: &str, global: &str) -> Started {
    let folder = Folder::new();
    let crt = folder.write("one.pem", certificate);
    folder.write("one.pem.issuer", authority.pem());
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let (front, socket) = (listener(), folder.root().join("cli"));
    let config = format!(
        "global\n stats socket {} level admin\n log {} local0\n {global}\n{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n \
         http-request return status 200\n",
        socket.display(),
        log.local_addr().unwrap()
    );
    Started {
        proxy: Proxy::start_in(folder, &config, &[("FRONT", &front)]),
        log,
        at: address(&front),
        socket,
        crt,
    }
}

impl Started {
    /// The next log line about an update, from its tag on.
    fn told(&self) -> String {
        let mut datagram = [0; 2048];
        loop {
            let count = self.log.recv(&mut datagram).expect("a log line");
            let line = String::from_utf8_lossy(&datagram[..count]).into_owned();
            if let Some(at) = line.find("<OCSP-UPDATE>") {
                return line[at..].trim_end().to_owned();
            }
        }
    }
}

#[test]
fn a_response_of_a_file_is_stapled() {
    if !has("openssl") {
        return;
    }
    let authority = Authority::new("root");
    let responder = "http://127.0.0.1:1";
    let certificate = authority.issue_asked_at(&["one.test"], responder);
    let signer = Signer::new(&authority, &certificate);
    let request = signer.folder.path("request");
    let file = signer.folder.path("one.pem");
    let arguments = [
        "ocsp",
        "-issuer",
        &signer.ca,
        "-cert",
        file.to_str().unwrap(),
    ];
    let out = ["-no_nonce", "-reqout", request.to_str().unwrap()];
    let made = program("openssl", &[&arguments[..], &out].concat(), b"");
    assert!(made.status.success(), "{}", made.stderr);
    let request = std::fs::read(request).unwrap();
    for (validity, wanted, notice) in [
        (["-ndays", "7"], "Cert Status: good", ""),
        // Clients whose clocks differ may find this one expired.
        (
            ["-nmin", "4"],
            "no response sent",
            "Loading: OCSP single response: no longer valid. Must be valid during at least 300s.. Content will be ignored.",
        ),
    ] {
        let response = signer.answer_for(&request, validity);
        let (folder, front) = (Folder::new(), listener());
        let crt = folder.write("one.pem", &certificate);
        folder.write("one.pem.issuer", authority.pem());
        folder.write("one.pem.ocsp", response);
        let config = format!(
            "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n http-request return status 200\n"
        );
        let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
        let output = s_client(address(&front), &["-status", "-servername", "one.test"]);
        assert!(output.stdout.contains(wanted), "{}", output.stdout);
        proxy.running.signal(libc::SIGTERM);
        let stderr = proxy.running.end().stderr;
        assert!(stderr.contains(notice), "{stderr}");
        assert_eq!(stderr.contains("Loading:"), !notice.is_empty(), "{stderr}");
    }
}

#[test]
fn responses_are_asked_for_and_stapled() {
    if !has("openssl") {
        return;
    }
    let (authority, asked) = (Authority::new("root"), listener());
    let uri = format!("http://{}/status/", address(&asked));
    let certificate = authority.issue_asked_at(&["one.test"], &uri);
    let signer = Signer::new(&authority, &certificate);
    let lines = responder(asked, move |_, request| with_head(&signer.answer(request)));
    let started = start(&authority, &certificate, "ocsp-update.mode on");
    let crt = &started.crt;
    assert_eq!(
        started.told(),
        format!("<OCSP-UPDATE> {crt} 1 \"Update successful\" 0 1")
    );
    let line = lines.recv_timeout(DEADLINE).expect("a request");
    assert!(line.starts_with("GET /status/"), "{line}");
    let output = s_client(started.at, &["-status", "-servername", "one.test"]);
    assert!(
        output.stdout.contains("Cert Status: good"),
        "{}",
        output.stdout
    );
    // Once more, by a command.
    let said = ask_any(&started.socket, &format!("update ssl ocsp-response {crt}"));
    assert_eq!(said.trim_end(), "");
    assert_eq!(
        started.told(),
        format!("<OCSP-UPDATE> {crt} 1 \"Update successful\" 0 2")
    );
    let listed = ask_any(&started.socket, "show ssl ocsp-updates");
    let row = listed.lines().nth(1).expect("a row");
    let columns: Vec<&str> = row.split(" | ").collect();
    assert_eq!(columns[1], crt);
    assert_eq!(columns[4..], ["2", "0", "1", "Update successful"]);
    started.proxy.stop();
}

#[test]
fn answers_that_are_no_good_responses_are_told_of_and_not_stapled() {
    if !has("openssl") {
        return;
    }
    let (authority, stranger, asked) = (Authority::new("root"), Authority::new("root"), listener());
    let uri = format!("http://{}", address(&asked));
    let certificate = authority.issue_asked_at(&["one.test"], &uri);
    // The same name with another key.
    let forger = Signer::new(&stranger, &certificate);
    let other = Signer::new(&authority, &certificate);
    let lines = responder(asked, move |number, request| match number {
        0 => b"HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n".to_vec(),
        1 => b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
        2 => with_head(b"garbage"),
        3 => {
            // A digit of the signed time.
            let mut response = other.answer(request);
            let time = response.windows(2).position(|two| two == [0x18, 0x0f]);
            response[time.expect("a time") + 15] ^= 1;
            with_head(&response)
        }
        4 => {
            let mut request = request.to_vec();
            // The serial number is at the end.
            *request.last_mut().expect("a byte") ^= 1;
            with_head(&other.answer(&request))
        }
        _ => with_head(&forger.answer(request)),
    });
    let started = start(&authority, &certificate, "ocsp-update.mode on");
    let crt = &started.crt;
    for (failures, outcome) in [
        "2 \"HTTP error (status 500)\"",
        "3 \"Missing \"ocsp-response\" header\"",
        "4 \"OCSP response check failure (Unable to parse OCSP response)\"",
        "4 \"OCSP response check failure (OCSP basic response verify failed)\"",
        "4 \"OCSP response check failure (OCSP response for another certificate)\"",
        "4 \"OCSP response check failure (OCSP basic response verify failed)\"",
    ]
    .into_iter()
    .enumerate()
    {
        if failures > 0 {
            // It waits at least two minutes before the next automatic request.
            ask_any(&started.socket, &format!("update ssl ocsp-response {crt}"));
        }
        let failures = failures + 1;
        let expected = format!("<OCSP-UPDATE> {crt} {outcome} {failures} 0");
        assert_eq!(started.told(), expected);
    }
    assert_eq!(lines.iter().take(6).count(), 6);
    let output = s_client(started.at, &["-status", "-servername", "one.test"]);
    assert!(
        output.stdout.contains("no response sent"),
        "{}",
        output.stdout
    );
    started.proxy.stop();
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let authority = Authority::new("root");
    let certificate = authority.issue(&["one.test"]);
    let started = start(&authority, &certificate, "ocsp-update.mode on");
    for (name, why) in [
        ("", "expects a filename"),
        ("none.pem", "Unknown certificate!"),
        (&started.crt, "only works on certificates that already have"),
    ] {
        let said = ask_any(&started.socket, &format!("update ssl ocsp-response {name}"));
        assert!(said.contains(why), "{said}");
    }
    let listed = until_any_holds(&started.socket, "show ssl ocsp-updates", |_| true);
    assert_eq!(listed.trim_end().lines().count(), 1, "{listed}");
    started.proxy.stop();
}
