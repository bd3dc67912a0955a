//! HTTP/2 clients with scripted servers: forwarded messages, ends of streams, drains, logs.

use crate::common;

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Command, Stdio};

use common::http::Reader;
use common::origin::{Origin, ok};
use common::tls::{Authority, curl, has, program};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, Running, accept, address, listener};

/// A proxy with a port without TLS, in front of an origin.
fn before(origin: SocketAddr, more: &str) -> (Proxy, SocketAddr) {
    let front = listener();
    let config = format!(
        "{DEFAULTS}\n{more}\nfrontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {origin}\n"
    );
    (Proxy::start(&config, &[("FRONT", &front)]), address(&front))
}

const H2: &str = "--http2-prior-knowledge";

#[test]
fn trailers_and_interim_responses_pass() {
    if !has("curl") {
        return;
    }
    let origin = Origin::start(|request| {
        let mut answer = b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n".to_vec();
        answer.extend_from_slice(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\nkeep-alive: 5\r\nconnection: x-hop\r\nx-hop: 1\r\nX-Mixed: a\r\n\r\n",
        );
        answer.extend_from_slice(format!("{:x}\r\n", request.line.len()).as_bytes());
        answer.extend_from_slice(request.line.as_bytes());
        answer.extend_from_slice(b"\r\n0\r\nX-Sum: 7\r\n\r\n");
        answer
    });
    let (proxy, front) = before(origin.at, "");
    let got = curl(&proxy.folder, &[H2, &format!("http://{front}/a?b=c")]);
    assert_eq!((got.status, got.exit, &*got.version), (200, 0, "2"));
    assert_eq!(got.text(), "GET /a?b=c HTTP/1.1");
    assert!(got.heads.starts_with("HTTP/2 103 "), "{}", got.heads);
    assert_eq!(got.field("x-sum"), Some("7"), "{}", got.heads);
    assert_eq!(got.field("x-mixed"), Some("a"));
    for hop in ["transfer-encoding", "connection", "keep-alive", "x-hop"] {
        assert_eq!(got.field(hop), None, "{hop}");
    }
    proxy.stop();
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked() {
    if !has("curl") {
        return;
    }
    // An answer that the server sends before it has the body is forwarded as well.
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        while let Some(mut request) = reader.head() {
            if request.line.starts_with("POST /no") {
                let answer = b"HTTP/1.1 403 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
                reader.wire.write_all(answer).unwrap();
                return;
            }
            assert_eq!(request.field("expect"), Some("100-continue"));
            let answer = b"HTTP/1.1 100 Continue\r\n\r\n";
            reader.wire.write_all(answer).unwrap();
            request.body = reader.body(&request, false).unwrap();
            reader
                .wire
                .write_all(&ok(format!("{}", request.body.len())))
                .unwrap();
        }
    });
    let (proxy, front) = before(origin.at, "");
    let file = proxy.folder.write("body", vec![b'x'; 100_000]);
    let data = format!("@{file}");
    let waits = [
        "--expect100-timeout",
        "15",
        "-H",
        "expect: 100-continue",
        "--data-binary",
        &data,
    ];
    for version in [H2, "--http1.1"] {
        let post = |path: &str| {
            let url = format!("http://{front}{path}");
            curl(&proxy.folder, &[&waits[..], &[version, &url]].concat())
        };
        let got = post("/yes");
        assert_eq!((got.status, &*got.text()), (200, "100000"), "{version}");
        let got = post("/no");
        assert_eq!(
            (got.status, &*got.text(), got.uploaded),
            (403, "no", 0),
            "{version}"
        );
    }
    proxy.stop();
}

#[test]
fn a_download_that_is_cancelled_ends_at_the_server() {
    if !has("curl") {
        return;
    }
    let (outbox, ended) = std::sync::mpsc::channel();
    let origin = Origin::raw(move |stream| {
        let mut reader = Reader::over(stream);
        reader.head().unwrap();
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        reader.wire.write_all(head).unwrap();
        let mut sent = 0;
        while reader.wire.write_all(&[b'x'; 10_000]).is_ok() {
            sent += 10_000;
        }
        outbox.send(sent).unwrap();
    });
    let (proxy, front) = before(origin.at, "");
    for version in [H2, "--http1.1"] {
        let url = format!("http://{front}/");
        let got = curl(
            &proxy.folder,
            &[version, "--limit-rate", "1M", "--max-time", "0.3", &url],
        );
        assert_eq!(got.exit, 28, "{version}");
        let sent = ended.recv_timeout(DEADLINE).expect("the server's end");
        // Data that the client did not accept was not fetched, except for the kernel's buffers.
        assert!(sent < 30_000_000, "{version}: {sent}");
    }
    proxy.stop();
}

#[test]
fn early_answers_to_large_uploads_arrive() {
    if !has("curl") {
        return;
    }
    // Reads nothing of the body before it answers.
    let origin = Origin::raw(|stream| {
        let mut reader = Reader::over(stream);
        let request = reader.head().unwrap();
        let answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\nconnection: close\r\n\r\nmuch";
        reader.wire.write_all(answer.as_bytes()).unwrap();
        if request.line.contains("/lingers") {
            let _ = reader.everything();
        }
    });
    let (proxy, front) = before(origin.at, "");
    let file = proxy.folder.write("body", vec![b'x'; 5_000_000]);
    let data = format!("@{file}");
    for path in ["/lingers", "/closes"] {
        for version in [H2, "--http1.1"] {
            let url = format!("http://{front}{path}");
            let got = curl(
                &proxy.folder,
                &[version, "-H", "expect:", "--data-binary", &data, &url],
            );
            // A server that closes with unread bytes may lose its answer (RFC 9112 §9.6).
            match path {
                "/lingers" => assert_eq!(
                    (got.status, &*got.text()),
                    (413, "much"),
                    "{version} {got:?}"
                ),
                _ => assert!(matches!(got.status, 413 | 502), "{version} {got:?}"),
            }
        }
    }
    proxy.stop();
}

#[test]
fn logs_tell_the_version() {
    if !has("curl") {
        return;
    }
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let origin = Origin::start(|_| ok("hello"));
    let more = format!(
        " log {} format raw local0\n option httplog\n",
        log.local_addr().unwrap()
    );
    let (proxy, front) = before(origin.at, &more);
    let file = proxy.folder.write("body", vec![b'x'; 1000]);
    let url = format!("http://{front}/a?b=c");
    let got = curl(
        &proxy.folder,
        &[H2, "--data-binary", &format!("@{file}"), &url],
    );
    assert_eq!(got.status, 200);
    let mut line = [0; 1000];
    let count = log.recv(&mut line).expect("a line");
    let line = String::from_utf8_lossy(&line[..count]).into_owned();
    assert!(line.contains("f b/s "), "{line}");
    assert!(line.contains(" 200 "), "{line}");
    assert!(line.contains(" ---- 1/1/0/0/0 0/0 \"POST "), "{line}");
    assert!(line.trim_end().ends_with("a?b=c HTTP/2.0\""), "{line}");
    proxy.stop();
}

/// A curl that runs while the test continues.
fn fetching(arguments: &[&str]) -> Running {
    let mut command = Command::new("curl");
    command.args(["-s", "--max-time", "20", "-w", " %{http_code}"]);
    command.args(arguments).stdin(Stdio::null());
    Running::start(command)
}

#[test]
fn streams_that_run_end_before_a_drained_process_does() {
    if !has("curl") {
        return;
    }
    let (origin, held, release) = Origin::holding(|_| ok("done"));
    let (proxy, front) = before(origin.at, "");
    let one = fetching(&[H2, &format!("http://{front}/hold")]);
    drop(accept(&held, "the request"));
    proxy.running.signal(libc::SIGUSR1);
    // No new connection is served meanwhile.
    drop(accept(&release, "the server's wait"));
    assert_eq!(one.end().stdout, "done 200");
    let output = proxy.running.end();
    assert!(output.status.success(), "{}", output.stderr);
}

#[test]
fn a_slow_stream_does_not_hold_up_the_others() {
    if !has("curl") {
        return;
    }
    let body = vec![b'x'; 3_000_000];
    let small = body.clone();
    let origin = Origin::start(move |request| {
        if request.line.contains("/big") {
            ok(&body)
        } else {
            ok(&small[..10])
        }
    });
    let (proxy, front) = before(origin.at, "");
    // All requests share one connection; the first response is read slowly.
    let url = |path: &str| format!("http://{front}{path}");
    let output = program(
        "curl",
        &[
            "-s",
            H2,
            "--parallel",
            "--parallel-immediate",
            "--max-time",
            "20",
            "-w",
            "%{url} %{size_download} %{num_connects}\n",
            "-o",
            "/dev/null",
            "--limit-rate",
            "3M",
            &url("/big"),
            "-o",
            "/dev/null",
            &url("/small"),
            "-o",
            "/dev/null",
            &url("/big2"),
        ],
        b"",
    );
    assert!(output.stdout.contains("/big 3000000 "), "{}", output.stdout);
    assert!(output.stdout.contains("/small 10 "), "{}", output.stdout);
    assert!(
        output.stdout.contains("/big2 3000000 "),
        "{}",
        output.stdout
    );
    proxy.stop();
}

/// RFC 9113 and RFC 7541, section by section.
#[test]
fn h2spec_passes() {
    if !has("h2spec") {
        return;
    }
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["localhost"]));
    let (clear, tls): (TcpListener, TcpListener) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{CLEAR}}\" proto h2\n bind \"fd@${{TLS}}\" ssl crt {crt}\n \
         http-request return status 200 content-type text/plain string \"0123456789\"\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("CLEAR", &clear), ("TLS", &tls)]);
    for (at, more) in [(address(&clear), &[][..]), (address(&tls), &["-t", "-k"])] {
        let port = at.port().to_string();
        let arguments = [&["-h", "127.0.0.1", "-p", &port, "-o", "1"], more].concat();
        let output = program("h2spec", &arguments, b"");
        assert!(output.status.success(), "{}", output.stdout);
    }
    proxy.stop();
}
