//! Checks of servers: their results, their messages, and the routing of requests afterwards.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Instant;

use common::http::Client;
use common::origin::{Origin, ok};
use common::{DEADLINE, DEFAULTS, Proxy, address, listener};

/// Asks until an answer holds. Returns the last one if none does in time.
#[expect(
    clippy::disallowed_methods,
    reason = "checks go by their own clocks, and nothing tells when they have ended"
)]
fn until(front: &TcpListener, path: &str, holds: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let answer = Client::connect(address(front)).get(path);
        let text = answer.text();
        if holds(&text) || begun.elapsed() > DEADLINE {
            return text;
        }
        crate::common::before_the_next_look();
    }
}

/// A frontend that returns the values of expressions about servers.
fn tell(expression: &str) -> String {
    format!(
        "frontend tell\n bind \"fd@${{TELL}}\"\n http-request return status 200 content-type text/plain lf-string \"%[{expression}]\"\n"
    )
}

fn named(name: &'static str) -> Origin {
    Origin::start(move |_| ok(name))
}

#[test]
fn requests_go_where_checks_pass() {
    let healthy = Arc::new(AtomicU16::new(200));
    let status = Arc::clone(&healthy);
    let checked = Origin::start(move |request| {
        let status = status.load(Ordering::SeqCst);
        if request.line.starts_with("GET /health ") {
            format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").into_bytes()
        } else {
            ok("checked")
        }
    });
    let backup = named("backup");
    let (front, teller) = (listener(), listener());
    let config = format!(
        "{DEFAULTS} option httpchk GET /health HTTP/1.1 host\n{}listen l\n bind \"fd@${{FRONT}}\"\n \
         server a {} check inter 20ms rise 1 fall 1\n server b {} backup\n",
        tell("srv_is_up(l/a)"),
        checked.at,
        backup.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front), ("TELL", &teller)]);
    assert_eq!(until(&front, "/", |text| text == "checked"), "checked");
    healthy.store(503, Ordering::SeqCst);
    assert_eq!(until(&front, "/", |text| text == "backup"), "backup");
    assert_eq!(until(&teller, "/", |text| text == "0"), "0");
    healthy.store(204, Ordering::SeqCst);
    assert_eq!(until(&front, "/", |text| text == "checked"), "checked");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    for text in [
        "Server l/a is DOWN, reason: Layer7 wrong status, code: 503, info: \"x\", check duration: ",
        "ms. 0 active and 1 backup servers left. Running on backup. ",
        "Server l/a is UP, reason: Layer7 check passed, code: 204",
    ] {
        assert!(told.contains(text), "{text}\n{told}");
    }
}

#[test]
fn a_server_that_refuses_is_down_and_so_is_who_tracks_it() {
    let gone = listener();
    let at = address(&gone);
    drop(gone);
    let teller = listener();
    let config = format!(
        "{DEFAULTS}{}backend b\n option log-health-checks\n server a {at} check inter 20ms\n server t 127.0.0.1:9 track a\n",
        tell("nbsrv(b)")
    );
    let proxy = Proxy::start(&config, &[("TELL", &teller)]);
    assert_eq!(until(&teller, "/", |text| text == "0"), "0");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    for text in [
        "Health check for server b/a failed, reason: Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection refused)\", check duration: 0ms, status: 0/2 DOWN.",
        "Server b/t is DOWN via b/a. 0 active and 0 backup servers left.",
        "backend 'b' has no server available!",
    ] {
        assert!(told.contains(text), "{text}\n{told}");
    }
}

/// A line-based server: it sends a greeting, and one answer for each received line.
fn lines(greeting: &'static str, answers: &'static [(&'static str, &'static str)]) -> Origin {
    Origin::raw(move |mut stream| {
        if stream.write_all(greeting.as_bytes()).is_err() {
            return;
        }
        let mut came = Vec::new();
        for (asked, answer) in answers {
            let mut bytes = [0; 256];
            while !came
                .windows(asked.len())
                .any(|part| part == asked.as_bytes())
            {
                match stream.read(&mut bytes) {
                    Ok(count) if count > 0 => came.extend_from_slice(&bytes[..count]),
                    _ => return,
                }
            }
            came.clear();
            let _ = stream.write_all(answer.as_bytes());
        }
        let _ = stream.read(&mut [0; 16]);
    })
}

#[test]
fn scripts_speak_and_listen() {
    let good = lines("", &[("PING\r\n", "+PONG\r\n")]);
    // As in HAProxy, the check waits for the expected answer until the server closes.
    let loading = Origin::raw(|mut stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"-LOADING still\r\n");
    });
    let mail = lines(
        "220 here\r\n",
        &[
            ("HELO localhost\r\n", "250 good\r\n"),
            ("QUIT\r\n", "221 bye\r\n"),
        ],
    );
    let own = lines("hello world\n", &[("who", "me 42\n")]);
    let teller = listener();
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(DEADLINE)).unwrap();
    let sink = log.local_addr().unwrap();
    let config = format!(
        "{DEFAULTS} default-server check inter 20ms rise 1 fall 1\n timeout check 20s\n option log-health-checks\n log {sink} local0\n{}\
         backend redis\n option redis-check\n server s {}\n\
         backend loading\n option redis-check\n server s {}\n\
         backend mail\n option smtpchk\n server s {}\n\
         backend own\n mode tcp\n option tcp-check\n tcp-check connect\n tcp-check expect string world\n \
         tcp-check set-var(check.ask) str(who)\n tcp-check send-lf %[var(check.ask)]\n tcp-check expect rstring ^me.[0-9]+ on-success \"%[res.payload(3,2)]\"\n server s {}\n",
        tell("nbsrv(loading)"),
        good.at,
        loading.at,
        mail.at,
        own.at,
    );
    let proxy = Proxy::start(&config, &[("TELL", &teller)]);
    assert_eq!(until(&teller, "/", |text| text == "0"), "0");
    // All four are checked at about the same time; each check logs its first result.
    let mut told = String::new();
    let mut datagram = [0; 1024];
    let wanted = [
        "server redis/s succeeded, reason: Layer7 check passed, code: 0, info: \"Redis server is ok\"",
        "server loading/s failed, reason: Layer7 wrong status, code: 0, info: \"-LOADING still\"",
        "server mail/s succeeded, reason: Layer7 check passed, code: 221, info: \"bye\"",
        "server own/s succeeded, reason: Layer7 check passed, code: 0, info: \"42\"",
    ];
    while !wanted.iter().all(|text| told.contains(text)) {
        let count = log.recv(&mut datagram);
        let count = count.unwrap_or_else(|_| panic!("not all of {wanted:?} in\n{told}"));
        told += &String::from_utf8_lossy(&datagram[..count]);
    }
    proxy.stop();
}

#[test]
fn agents_change_weights_and_states() {
    let says = Arc::new(AtomicUsize::new(0));
    let said = Arc::clone(&says);
    let agent = Origin::raw(move |mut stream| {
        let lines = ["50%\n", "drain\n", "ready down #too hot\n", "up 100%\n"];
        let line = lines[said.load(Ordering::SeqCst) % lines.len()];
        let _ = stream.write_all(line.as_bytes());
        let _ = stream.read(&mut [0; 16]);
    });
    let server = named("server");
    let (weight, up) = (listener(), listener());
    let port = agent.at.port();
    let config = format!(
        "{DEFAULTS}frontend w\n bind \"fd@${{WEIGHT}}\"\n http-request return status 200 content-type text/plain lf-string \"%[srv_weight(b/s)]\"\n\
         frontend u\n bind \"fd@${{UP}}\"\n http-request return status 200 content-type text/plain lf-string \"%[nbsrv(b)] %[srv_is_up(b/s)]\"\n\
         backend b\n server s {} weight 100 agent-check agent-port {port} agent-inter 20ms\n",
        server.at
    );
    let proxy = Proxy::start(&config, &[("WEIGHT", &weight), ("UP", &up)]);
    assert_eq!(until(&weight, "/", |text| text == "50"), "50");
    says.store(1, Ordering::SeqCst);
    assert_eq!(until(&up, "/", |text| text == "0 1"), "0 1");
    says.store(2, Ordering::SeqCst);
    assert_eq!(until(&up, "/", |text| text == "0 0"), "0 0");
    says.store(3, Ordering::SeqCst);
    assert_eq!(until(&up, "/", |text| text == "1 1"), "1 1");
    assert_eq!(until(&weight, "/", |text| text == "100"), "100");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    let down = "Server b/s is DOWN, reason: Layer7 wrong status, code: 0, info: \"via agent : down (too hot)\"";
    assert!(told.contains(down), "{told}");
}

/// A consistent hash uses weights that change; a map of the servers does not.
#[test]
fn agents_change_the_weights_of_consistent_hashes() {
    let agent = Origin::raw(move |mut stream| {
        let _ = stream.write_all(b"up 50%\n");
        let _ = stream.read(&mut [0; 16]);
    });
    let server = named("server");
    let weights = listener();
    let line = format!(
        "server s {} weight 100 agent-check agent-port {} agent-inter 20ms",
        server.at,
        agent.at.port()
    );
    let config = format!(
        "{DEFAULTS}frontend w\n bind \"fd@${{WEIGHTS}}\"\n http-request return status 200 content-type text/plain lf-string \"%[srv_weight(ring/s)] %[srv_weight(map/s)]\"\n\
         backend ring\n balance source\n hash-type consistent\n {line}\n\
         backend map\n balance source\n {line}\n"
    );
    let _proxy = Proxy::start(&config, &[("WEIGHTS", &weights)]);
    assert_eq!(until(&weights, "/", |text| text == "50 100"), "50 100");
}

#[test]
fn errors_of_traffic_take_an_observed_server_down() {
    let failing = Origin::start(|request| {
        if request.line.starts_with("OPTIONS ") {
            ok("")
        } else {
            b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n".to_vec()
        }
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS} option httpchk\nlisten l\n bind \"fd@${{FRONT}}\"\n \
         server a {} check inter 10s observe layer7 error-limit 3 on-error mark-down\n server b {} backup\n",
        failing.at,
        named("backup").at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    assert_eq!(until(&front, "/", |text| text == "backup"), "backup");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    let text = "Server l/a is DOWN, reason: Health analyze, info: \"Detected 3 consecutive errors, last one was: Wrong http response\"";
    assert!(told.contains(text), "{told}");
}

#[test]
fn sessions_of_a_server_that_went_down_end() {
    let healthy = Arc::new(AtomicU16::new(1));
    let is_healthy = Arc::clone(&healthy);
    // Sends a greeting; a check that receives another one fails.
    let server = Origin::raw(move |mut stream| {
        let text = match is_healthy.load(Ordering::SeqCst) {
            1 => "good\n",
            _ => "bad\n",
        };
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read(&mut [0; 16]);
    });
    let front = listener();
    let config = format!(
        "{DEFAULTS}listen l\n mode tcp\n bind \"fd@${{FRONT}}\"\n option tcp-check\n tcp-check expect string good\n timeout check 200ms\n \
         server a {} check inter 20ms fall 1 rise 1 on-marked-down shutdown-sessions\n",
        server.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = std::net::TcpStream::connect(address(&front)).expect("a connection");
    client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).expect("a greeting");
    healthy.store(0, Ordering::SeqCst);
    // The connection ends although neither side has ended it.
    let ended = client.read(&mut greeting);
    assert!(
        matches!(ended, Ok(0))
            || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
    proxy.stop();
}

#[test]
fn a_program_checks_servers() {
    let server = named("server");
    let teller = listener();
    let folder = common::Folder::new();
    let script = folder.write(
        "check.sh",
        "#!/bin/sh\n[ \"$HAPROXY_SERVER_NAME\" = good ] && [ \"$4\" = \"$HAPROXY_SERVER_PORT\" ]\n",
    );
    std::process::Command::new("chmod")
        .args(["+x", &script])
        .status()
        .expect("chmod");
    let config = format!(
        "global\n external-check\n insecure-fork-wanted\n{DEFAULTS}{}backend b\n option external-check\n external-check command {script}\n \
         server good {at} check inter 50ms rise 1 fall 1\n server other {at} check inter 50ms rise 1 fall 1\n",
        tell("nbsrv(b)"),
        at = server.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("TELL", &teller)]);
    assert_eq!(until(&teller, "/", |text| text == "1"), "1");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    let text = "Server b/other is DOWN, reason: External check error, code: 1, check duration: ";
    assert!(told.contains(text), "{told}");
    assert!(!told.contains("b/good is DOWN"), "{told}");
}

#[test]
fn without_leave_no_program_checks_servers() {
    let server = named("server");
    let teller = listener();
    let folder = common::Folder::new();
    let config = format!(
        "global\n external-check\n{DEFAULTS}{}backend b\n option external-check\n external-check command /bin/true\n \
         server s {at} check inter 50ms rise 1 fall 1\n",
        tell("nbsrv(b)"),
        at = server.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("TELL", &teller)]);
    assert_eq!(until(&teller, "/", |text| text == "0"), "0");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    for text in [
        "Proxy 'b' : 'insecure-fork-wanted' not enabled in the global section, 'option external-check' will likely fail.",
        "Server b/s is DOWN, reason: Socket error",
    ] {
        assert!(told.contains(text), "{told}");
    }
}

/// A real server, if one is installed.
#[test]
fn redis_itself_is_checked() {
    let folder = common::Folder::new();
    let socket = folder.path("redis.sock").display().to_string();
    let program = std::process::Command::new("redis-server")
        .args(["--port", "0", "--unixsocket", &socket, "--save", ""])
        .stdout(std::process::Stdio::null())
        .spawn();
    let Ok(mut redis) = program else {
        return common::skipped("redis-server is not installed");
    };
    let teller = listener();
    let config = format!(
        "{DEFAULTS}{}backend b\n timeout check 5s\n option redis-check\n server s unix@{socket} check inter 50ms rise 1 fall 1 init-state down\n",
        tell("nbsrv(b)")
    );
    let proxy = Proxy::start_in(folder, &config, &[("TELL", &teller)]);
    assert_eq!(until(&teller, "/", |text| text == "1"), "1");
    redis.kill().expect("an end");
    redis.wait().expect("an end");
    assert_eq!(until(&teller, "/", |text| text == "0"), "0");
    proxy.stop();
}
