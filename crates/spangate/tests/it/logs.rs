//! The formats of log lines for each kind of target: byte for byte as in HAProxy 3.5, except for
//! times.

use crate::common;

use std::io::{BufRead, BufReader, Read as _};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};

use common::http::Client;
use common::origin::Origin;
use common::{DEADLINE, DEFAULTS, Proxy, accept, address, listener, uninterrupted};

fn sink() -> UdpSocket {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sink.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    sink
}

fn receive(sink: &UdpSocket) -> String {
    let mut buffer = [0; 4096];
    let count = uninterrupted(|| sink.recv(&mut buffer)).expect("a log line");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

/// Whether a text matches a pattern: `d` is a digit, `a` a letter, `_` a digit or a blank, `s` a
/// sign.
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

/// A line whose date, which must be at `at`, is replaced.
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

/// The format, the place of the date and whether it is precise, the line.
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
    // The line has the configured length, including its end.
    assert_eq!(receive(&short), format!("{}\n", &long[..79]));
    for path in ["/2", "/3", "/7"] {
        assert_eq!(receive(&some), format!("{path}\n"));
    }
    // An error has level err; the first target sends nothing with a higher level than notice.
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

fn at(sink: &UdpSocket) -> std::net::SocketAddr {
    sink.local_addr().expect("an address")
}

/// The order and the texts are those of HAProxy 3.5.
#[test]
fn steps_and_profiles() {
    let (every, some, own) = (sink(), sink(), sink());
    let front = listener();
    let config = format!(
        "{DEFAULTS}
log-profile every
    on accept format \"accept %OG %ST %HM\"
    on any format \"%OG %ST %HM\"
log-profile some
    log-tag other
    on close drop
    on request drop
    on response sd \"[a@1 st=\\\"%ST\\\"]\"
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%(x)HU %OG\"
    log-steps all
    log {} format raw profile every local0
    log {} format rfc5424 profile some local0
    log {} format raw local0
    http-request return status 200 if {{ path /own }}
    default_backend b
backend b
    server s {}
",
        at(&every),
        at(&some),
        at(&own),
        common::origin::Origin::echo().at,
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.get("/x");
    for line in [
        "accept txn_accept 0 <BADREQ>",
        "txn_request -1 GET",
        "txn_connect -1 GET",
        "txn_response 200 GET",
        "txn_close 200 GET",
    ] {
        assert_eq!(receive(&every), format!("{line}\n"));
    }
    for (sd, text) in [
        ("-", "<BADREQ> txn_accept"),
        ("-", "/x txn_connect"),
        ("[a@1 st=\"200\"]", "/x txn_response"),
    ] {
        let line = undated(&receive(&some), 7, true);
        let pid = proxy.running.pid();
        assert_eq!(line, format!("<134>1 DATE - other {pid} - {sd} {text}\n"));
    }
    // A response made by the proxy has no server and is not a server's.
    client.get("/own");
    for line in [
        "accept txn_accept 0 <BADREQ>",
        "txn_request -1 GET",
        "txn_close 200 GET",
    ] {
        assert_eq!(receive(&every), format!("{line}\n"));
    }
    proxy.stop();
}

#[test]
fn rules_that_log() {
    let log = sink();
    let front = listener();
    let config = format!(
        "{DEFAULTS}
log-profile here
    on http-req format \"here %OG %HM\"
    on error drop
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%OG %tsc\"
    option dontlog-normal
    log {} format raw local0
    tcp-request connection do-log
    tcp-request session do-log
    tcp-request content do-log
    http-request do-log profile here
    http-request do-log if FALSE
    http-response do-log
    http-after-response do-log if {{ status 200 }}
    http-request set-log-level silent if {{ path /quiet }}
    default_backend b
backend b
    server s {}
",
        at(&log),
        common::origin::Origin::echo().at,
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.get("/x");
    for line in [
        "tcp-req-conn PR--",
        "tcp-req-sess PR--",
        "tcp-req-cont ----",
        "here http-req GET",
        "http-res ----",
        "http-after-res ----",
    ] {
        assert_eq!(receive(&log), format!("{line}\n"));
    }
    // Silent from that rule on.
    client.get("/quiet");
    assert_eq!(receive(&log), "tcp-req-cont ----\n");
    assert_eq!(receive(&log), "here http-req GET\n");
    proxy.stop();
    log.set_nonblocking(true).expect("an option");
    assert!(log.recv(&mut [0; 100]).is_err(), "a line too many");
}

#[test]
fn log_backends() {
    let (first, second, third) = (sink(), sink(), sink());
    let front = listener();
    let config = format!(
        "global
    nbthread 1
{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%HU\"
    log backend@turns format raw local0
    log backend@hashed format raw local0
    log backend@one format short local0
    http-request return status 200
backend turns
    mode log
    balance roundrobin
    server a udp@{first}
    server b udp@{second}
backend hashed
    mode log
    balance log-hash 'field(2,/)'
    hash-type map-based none
    server a udp@{first}
    server b udp@{second}
backend one
    mode log
    balance sticky
    server off udp@{first} disabled
    server c udp@{third}
    server d udp@{second} backup
",
        first = at(&first),
        second = at(&second),
        third = at(&third),
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    for path in ["/1", "/2", "/3", "/4"] {
        client.get(path);
    }
    // In turn, and odd numbers at the second server.
    let lines = |sink: &UdpSocket, count| -> Vec<String> {
        (0..count)
            .map(|_| receive(sink).trim_end().to_owned())
            .collect()
    };
    assert_eq!(lines(&first, 4), ["/1", "/2", "/3", "/4"]);
    assert_eq!(lines(&second, 4), ["/1", "/2", "/3", "/4"]);
    assert_eq!(lines(&third, 4), ["<6>/1", "<6>/2", "<6>/3", "<6>/4"]);
    client.get("/5");
    assert_eq!(lines(&first, 1), ["/5"]);
    assert_eq!(lines(&second, 1), ["/5"]);
    proxy.stop();
}

#[test]
fn log_servers_count_octets() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = server.local_addr().expect("an address");
    let front = listener();
    let config = format!(
        "global
    nbthread 1
{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%HU\\nsecond line\"
    log backend@b format raw local0
    http-request return status 200
backend b
    mode log
    default-server log-proto octet-count log-bufsize 100
    server s {to}
"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.get("/1");
    let mut stream = accept(&server, "a connection of the logs");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let mut expect = |text: &str| {
        let mut bytes = vec![0; text.len()];
        stream.read_exact(&mut bytes).expect("a message");
        assert_eq!(String::from_utf8_lossy(&bytes), text);
    };
    expect("14 /1\nsecond line");
    // Longer than what may wait.
    client.get(&format!("/{}", "x".repeat(100)));
    client.get("/2");
    expect("14 /2\nsecond line");
    proxy.stop();
}

/// A server that was unreachable receives all lines that were not sent to it meanwhile.
#[test]
fn logs_over_tcp() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = server.local_addr().expect("an address");
    let front = listener();
    let config = format!(
        "global
    nbthread 1
{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%HU\"
    log tcp@{to} format short local0
    log backend@b format raw local0
    http-request return status 200
backend b
    mode log
    server s {to}
"
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let accepted = || {
        let stream = accept(&server, "a connection of the logs");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        BufReader::new(stream)
    };
    // Both targets have the same address and share one connection; the order of their lines is not
    // defined.
    let lines = |reader: &mut BufReader<TcpStream>| {
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            reader.read_line(line).expect("a line");
        }
        lines.sort();
        lines
    };
    client.get("/1");
    let mut reader = accepted();
    assert_eq!(lines(&mut reader), ["/1\n", "<6>/1\n"]);
    client.get("/2");
    assert_eq!(lines(&mut reader), ["/2\n", "<6>/2\n"]);
    // Dropping it is not enough: a program that another test starts now has a copy until its exec.
    let stream = reader.into_inner();
    stream.shutdown(Shutdown::Both).expect("its end");
    client.get("/3");
    assert_eq!(lines(&mut accepted()), ["/3\n", "<6>/3\n"]);
    proxy.stop();
}

/// Without a format (manual §8.2.1), in structured data, and in JSON.
#[test]
fn who_came_and_what_is_known_of_it() {
    let (plain, structured, json) = (sink(), sink(), sink());
    let (one, two, three) = (listener(), listener(), listener());
    let config = format!(
        "{DEFAULTS}
frontend one
    bind \"fd@${{ONE}}\"
    log {} format raw local0
    http-request return status 200
frontend two
    bind \"fd@${{TWO}}\"
    log {} format rfc5424 local0
    log-format-sd \"%{{+Q,+E}}o [x@1 path=%HU]\"
    log-format %ST
    http-request return status 200
frontend three
    bind \"fd@${{THREE}}\"
    log {} format raw local0
    log-format \"%{{+json}}o left %(path)HU out %(status)ST %(tls)[ssl_fc] %(count)lc\"
    http-request return status 200
",
        at(&plain),
        at(&structured),
        at(&json)
    );
    let listeners = [("ONE", &one), ("TWO", &two), ("THREE", &three)];
    let proxy = Proxy::start(&config, &listeners);
    let stream = TcpStream::connect(address(&one)).expect("a connection");
    let from = stream.local_addr().expect("an address");
    let mut client = Client::on(stream);
    client.get("/");
    let to = address(&one);
    assert_eq!(
        receive(&plain),
        format!("Connect from {from} to {to} (one/HTTP)\n")
    );
    Client::connect(address(&two)).get("/a]b");
    let line = undated(&receive(&structured), 7, true);
    let pid = proxy.running.pid();
    assert_eq!(
        line,
        format!("<134>1 DATE - haproxy {pid} - [x@1 path=\"/a\\]b\"] 200\n")
    );
    let mut client = Client::connect(address(&three));
    client.get("/a\\b");
    client.get("/c");
    assert_eq!(
        receive(&json),
        "{\"path\": \"/a\\\\b\", \"status\": 200, \"tls\": false, \"count\": 0}\n"
    );
    assert_eq!(
        receive(&json),
        "{\"path\": \"/c\", \"status\": 200, \"tls\": false, \"count\": 1}\n"
    );
    proxy.stop();
}

#[test]
fn local_time_follows_daylight_saving() {
    let front = listener();
    let config = format!(
        "{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    http-request return status 200 hdr before %[int(1774745999),ltime('%T%z')] hdr after %[int(1774746000),ltime('%T%z')]
"
    );
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_spangate"));
    command.env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
    let listeners = [("FRONT", &front)];
    let proxy = Proxy::start_command(command, common::Folder::new(), &config, &listeners, &[]);
    let answer = Client::connect(address(&front)).get("/");
    assert_eq!(answer.field("before"), Some("01:59:59+0100"));
    assert_eq!(answer.field("after"), Some("03:00:00+0200"));
    proxy.stop();
}

#[test]
fn a_target_that_cannot_be_reached_is_told_once_and_with_a_count_in_the_end() {
    let folder = common::Folder::new();
    let (log, cli) = (folder.path("log.sock"), folder.path("cli.sock"));
    let front = listener();
    let config = format!(
        "global
    stats socket {}
{DEFAULTS}
frontend f
    bind \"fd@${{FRONT}}\"
    log-format \"%HU\"
    log {} format raw local0
    http-request return status 200
",
        cli.display(),
        log.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    for path in ["/1", "/2", "/3"] {
        client.get(path);
    }
    common::cli::until_any_holds(&cli, "show info", |info| info.contains("DroppedLogs: 3\n"));
    let receiver = std::os::unix::net::UnixDatagram::bind(&log).expect("a socket");
    receiver
        .set_read_timeout(Some(DEADLINE))
        .expect("a timeout");
    client.get("/4");
    let mut line = [0; 64];
    let count = uninterrupted(|| receiver.recv(&mut line)).expect("a line");
    assert_eq!(&line[..count], b"/4\n");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    let about: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("log target"))
        .collect();
    let [fails, works] = about[..] else {
        panic!("{told}");
    };
    let name = format!("log target unix@{}", log.display());
    assert!(
        fails.contains(&format!(
            "{name} cannot be reached : No such file or directory ;"
        )),
        "{fails}"
    );
    assert!(
        works.contains(&format!("{name} is reached again ; 3 messages were lost.")),
        "{works}"
    );
}

/// Of a connection that is used again, as much is known as of a new one.
#[test]
fn what_is_known_of_a_reused_connection() {
    let origin = Origin::echo();
    let (front, sink) = (listener(), sink());
    let config = format!(
        "{DEFAULTS} log {} format raw local0\n\
         log-format \"%si:%sp %[bc_dst]:%[bc_dst_port] %[bc_http_major] %[bc_err] %[bc_nb_streams] %[bs.id] %[bc_reused]\"\n\
         listen l\n bind \"fd@${{FRONT}}\"\n http-reuse always\n server s {}\n",
        at(&sink),
        origin.at,
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    for reused in 0..3 {
        assert_eq!(client.get("/").status, 200);
        let (to, is_reused) = (origin.at, u32::from(reused > 0));
        let line = receive(&sink);
        assert_eq!(line.trim_end(), format!("{to} {to} 1 0 1 0 {is_reused}"));
    }
    proxy.stop();
}
