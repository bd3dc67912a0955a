//! How log lines are wrapped for each kind of target: byte for byte as HAProxy 3.5 does, but for the times.

mod common;

use std::net::UdpSocket;

use common::http::Client;
use common::{DEADLINE, DEFAULTS, Proxy, address, listener};

fn sink() -> UdpSocket {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sink.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    sink
}

fn receive(sink: &UdpSocket) -> String {
    let mut buffer = [0; 4096];
    let count = sink.recv(&mut buffer).expect("a log line");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

/// Whether a text looks as a pattern says: `d` is a digit, `a` a letter, `_` a digit or a blank, `s` a sign.
fn is_like(text: &str, pattern: &str) -> bool {
    let like = |(text, pattern): (char, char)| match pattern {
        'd' => text.is_ascii_digit(),
        'a' => text.is_ascii_alphabetic(),
        '_' => text.is_ascii_digit() || text == ' ',
        's' => text == '+' || text == '-',
        other => text == other,
    };
    text.len() == pattern.len() && text.chars().zip(pattern.chars()).all(like)
}

const BSD: &str = "aaa _d dd:dd:dd";
const ISO: &str = "dddd-dd-ddTdd:dd:dd.dddddds";

/// A line with its date replaced, which must stand at `at`.
fn undated(line: &str, at: usize, iso: bool) -> String {
    let pattern = if iso {
        format!("{ISO}dd:dd")
    } else {
        BSD.to_owned()
    };
    let date = &line[at..at + pattern.len()];
    assert!(is_like(date, &pattern), "{line}");
    format!("{}DATE{}", &line[..at], &line[at + pattern.len()..])
}

/// The format, where the date stands and whether it is precise, the line.
type Case<'a> = (&'a str, Option<(usize, bool)>, &'a str);

#[test]
fn every_format() {
    let cases: &[Case<'_>] = &[
        ("", Some((5, false)), "<134>DATE haproxy[PID]: hello\n"),
        (
            "format rfc3164",
            Some((5, false)),
            "<134>DATE localhost haproxy[PID]: hello\n",
        ),
        (
            "format rfc5424",
            Some((7, true)),
            "<134>1 DATE - haproxy PID - - hello\n",
        ),
        (
            "format local",
            Some((5, false)),
            "<134>DATE haproxy[PID]: hello\n",
        ),
        ("format priority", None, "<134>hello\n"),
        ("format short", None, "<6>hello\n"),
        ("format timed", Some((3, true)), "<6>DATE hello\n"),
        ("format iso", Some((0, true)), "DATE hello\n"),
        ("format raw", None, "hello\n"),
    ];
    let named: &[Case<'_>] = &[
        ("", Some((5, false)), "<134>DATE me tag[PID]: hello\n"),
        (
            "format rfc3164",
            Some((5, false)),
            "<134>DATE me tag[PID]: hello\n",
        ),
        (
            "format rfc5424",
            Some((7, true)),
            "<134>1 DATE me tag PID - - hello\n",
        ),
        (
            "format local",
            Some((5, false)),
            "<134>DATE tag[PID]: hello\n",
        ),
    ];
    for (global, cases) in [
        ("", cases),
        (" log-send-hostname me\n log-tag tag\n", named),
    ] {
        let sinks: Vec<UdpSocket> = cases.iter().map(|_| sink()).collect();
        let lines: String = cases
            .iter()
            .zip(&sinks)
            .map(|((format, ..), sink)| {
                format!(
                    " log {} {format} local0\n",
                    sink.local_addr().expect("an address")
                )
            })
            .collect();
        let front = listener();
        let config = format!(
            "global\n{global}{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\"\n{lines} log-format hello\n http-request return status 200\n"
        );
        let proxy = Proxy::start(&config, &[("FRONT", &front)]);
        Client::connect(address(&front)).get("/");
        let pid = proxy.running.pid().to_string();
        for ((format, date, expected), sink) in cases.iter().zip(&sinks) {
            let mut line = receive(sink);
            if let Some((at, iso)) = date {
                line = undated(&line, *at, *iso);
            }
            assert_eq!(line, expected.replace("PID", &pid), "{format}");
        }
        proxy.stop();
    }
}

#[test]
fn levels_lengths_and_samples() {
    let (raised, hidden, short, some) = (sink(), sink(), sink(), sink());
    let at = |sink: &UdpSocket| sink.local_addr().expect("an address");
    let front = listener();
    let config = format!(
        "{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log {} format short local0 debug notice
    log {} format raw local0 notice
    log {} len 80 format raw local0
    log {} sample 2-3:5 format raw local0
    log-format %HU
    option log-separate-errors
    http-request return status 500 if {{ path /fail }}
    http-request return status 200
",
        at(&raised),
        at(&hidden),
        at(&short),
        at(&some)
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let long = format!("/{}", "x".repeat(200));
    let paths = ["/1", "/2", "/3", "/4", "/5", "/6", "/7", &long];
    for path in paths {
        client.get(path);
    }
    for path in &paths[..7] {
        assert_eq!(receive(&raised), format!("<6>{path}\n"));
        assert_eq!(receive(&short), format!("{path}\n"));
    }
    // The line with its end is as long as was said.
    assert_eq!(receive(&short), format!("{}\n", &long[..79]));
    for path in ["/2", "/3", "/7"] {
        assert_eq!(receive(&some), format!("{path}\n"));
    }
    // An error is of level err; the first target sends nothing as more severe than a notice.
    assert_eq!(client.get("/fail").status, 500);
    receive(&raised);
    assert_eq!(receive(&raised), "<5>/fail\n");
    assert_eq!(receive(&hidden), "/fail\n");
    proxy.stop();
    hidden.set_nonblocking(true).expect("an option");
    assert!(
        hidden.recv(&mut [0; 100]).is_err(),
        "a line below the level"
    );
}
