//! Checks of servers that are added at run time, and commands that change servers' checks and TLS
//! (management guide §9.3 "add server", "set server").

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use crate::common::tls::Authority;
use crate::common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// A proxy with a runtime interface.
struct Asked {
    proxy: Proxy,
    path: PathBuf,
}

impl Asked {
    fn start(config: &str, listeners: &[(&str, &std::net::TcpListener)]) -> Asked {
        Asked::start_in(Folder::new(), config, listeners)
    }

    fn start_in(
        folder: Folder,
        config: &str,
        listeners: &[(&str, &std::net::TcpListener)],
    ) -> Asked {
        let path = folder.path("cli.sock");
        let config = format!(
            "global\n stats socket {} level admin\n{DEFAULTS}{config}",
            path.display()
        );
        Asked {
            proxy: Proxy::start_in(folder, &config, listeners),
            path,
        }
    }

    fn ask(&self, line: &str) -> String {
        let mut answer = ask_any(&self.path, line);
        assert_eq!(answer.pop(), Some('\n'), "the end of an answer");
        answer
    }

    /// The fields of `show servers state` for a server, from its operational state on.
    fn state(&self, server: &str) -> Vec<String> {
        fields(&self.ask("show servers state b"), server)
    }

    /// Waits until a server is up, or down.
    fn until_up(&self, server: &str, up: bool) {
        let wanted = if up { "2" } else { "0" };
        until_any_holds(&self.path, "show servers state b", |all| {
            fields(all, server)[0] == wanted
        });
    }
}

fn fields(all: &str, server: &str) -> Vec<String> {
    let line = all
        .lines()
        .find(|line| line.split(' ').nth(3) == Some(server));
    let line = line.unwrap_or_else(|| panic!("{server} in {all}"));
    line.split(' ').skip(5).map(str::to_owned).collect()
}

/// A server whose responses to checks have a variable status.
fn checked(status: u16) -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(status));
    let own = Arc::clone(&status);
    let origin = Origin::start(move |_| {
        let status = own.load(Ordering::SeqCst);
        format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").into_bytes()
    });
    (origin, status)
}

#[test]
fn checks_of_added_servers_run_once_they_are_enabled() {
    let (one, status) = checked(200);
    let (two, _) = checked(200);
    let config = "backend b\n option httpchk GET /\n option log-health-checks\n";
    let proxy = Asked::start(config, &[]);
    let add = format!(
        "add server b/s {} check inter 10ms fastinter 10ms downinter 10ms rise 1 fall 1",
        one.at
    );
    assert_eq!(proxy.ask(&add), "New server registered.\n");
    // In maintenance; the check is configured but does not run.
    assert_eq!(proxy.state("s")[..2], ["0", "1"]);
    assert_eq!(proxy.state("s")[8], "2", "flags of the check");
    assert_eq!(proxy.ask("enable server b/s; enable health b/s"), "\n");
    assert_eq!(proxy.state("s")[8], "6");
    status.store(503, Ordering::SeqCst);
    proxy.until_up("s", false);
    status.store(200, Ordering::SeqCst);
    proxy.until_up("s", true);
    // Checks follow a server whose address changes.
    status.store(503, Ordering::SeqCst);
    proxy.until_up("s", false);
    let port = two.at.port();
    proxy.ask(&format!("set server b/s addr 127.0.0.1 port {port}"));
    proxy.until_up("s", true);
    assert_eq!(
        proxy.ask("disable server b/s; del server b/s"),
        "\nServer deleted.\n"
    );
    proxy.proxy.stop();
}

#[test]
fn a_state_at_the_beginning_counts_from_when_checks_are_enabled() {
    let (origin, _) = checked(503);
    let proxy = Asked::start("backend b\n option httpchk GET /\n", &[]);
    proxy.ask(&format!(
        "add server b/s {} check inter 1h init-state fully-down",
        origin.at
    ));
    assert_eq!(proxy.ask("enable server b/s; enable health b/s"), "\n");
    assert_eq!(proxy.state("s")[..2], ["0", "0"]);
    proxy.proxy.stop();
}

#[test]
fn checks_of_added_servers_speak_proxy_only_where_they_are_told_to() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\" accept-proxy\n http-request return status 200\n\
                  backend b\n option httpchk GET /\n default-server inter 10ms rise 1 fall 1\n";
    let proxy = Asked::start(config, &[("FRONT", &front)]);
    let at = address(&front);
    for (name, words) in [("quiet", ""), ("told", "check-send-proxy")] {
        proxy.ask(&format!(
            "add server b/{name} {at} send-proxy check inter 10ms rise 1 fall 1 init-state fully-down {words}"
        ));
        proxy.ask(&format!("enable server b/{name}; enable health b/{name}"));
    }
    proxy.until_up("told", true);
    // The result of a failed check.
    until_any_holds(&proxy.path, "show servers state b", |all| {
        fields(all, "quiet")[6] == "2"
    });
    proxy.until_up("quiet", false);
    proxy.proxy.stop();
}

#[test]
fn trackers_are_told_of_in_the_order_of_haproxy() {
    let origin = listener();
    let at = address(&origin);
    let config = format!("backend b\n server own {at} check inter 1h\n");
    let proxy = Asked::start(&config, &[]);
    for name in ["one", "two"] {
        proxy.ask(&format!("add server b/{name} {at} track b/own"));
        proxy.ask(&format!("enable server b/{name}"));
    }
    proxy.ask("disable server b/own");
    proxy.proxy.running.signal(libc::SIGTERM);
    let told = proxy.proxy.running.end().stderr;
    let at = |name: &str| {
        told.find(&format!("Server b/{name} is going DOWN for maintenance"))
            .unwrap_or_else(|| panic!("{name} in {told}"))
    };
    assert!(at("own") < at("two") && at("two") < at("one"), "{told}");
}

/// Sends a text to every client, after it received something.
fn agent(asked: &'static str, says: &'static str) -> Origin {
    Origin::raw(move |mut stream| {
        let mut came = vec![0; asked.len()];
        if stream.read_exact(&mut came).is_ok() && came == asked.as_bytes() {
            let _ = stream.write_all(says.as_bytes());
        }
    })
}

#[test]
fn commands_change_where_agents_are_and_what_they_are_sent() {
    let (up, down) = (agent("hi\\n", "up\n"), agent("hello", "down\n"));
    let proxy = Asked::start("backend b\n", &[]);
    let add = format!(
        "add server b/s 127.0.0.1:1 agent-check agent-inter 10ms agent-send hello agent-port {}",
        down.at.port()
    );
    assert_eq!(proxy.ask(&add), "New server registered.\n");
    assert_eq!(
        proxy.ask("set server b/s agent-send x"),
        "agent checks are not enabled on this server.\n"
    );
    assert_eq!(proxy.ask("enable server b/s; enable agent b/s"), "\n");
    proxy.until_up("s", false);
    assert_eq!(
        proxy.ask(&format!(
            "set server b/s agent-send hi\\\\n; set server b/s agent-addr localhost port {}",
            up.at.port()
        )),
        "\n"
    );
    proxy.until_up("s", true);
    let shown = proxy.state("s");
    assert_eq!(
        shown[shown.len() - 2..],
        ["127.0.0.1".to_owned(), up.at.port().to_string()]
    );
    proxy.ask(&format!(
        "set server b/s agent-send hello; set server b/s agent-port {}",
        down.at.port()
    ));
    proxy.until_up("s", false);
    for (words, answer) in [
        (
            "agent-addr",
            "set server <b>/<s> agent-addr requires an address and optionally a port.\n",
        ),
        (
            "agent-port",
            "set server <b>/<s> agent-port requires a port.\n",
        ),
        ("agent-port x", "provided port is not an integer\n"),
        ("agent-port 65536", "provided port is invalid\n"),
        (
            "check-addr 127.0.0.1",
            "health checks are not enabled on this server\n",
        ),
        (
            "fqdn a.example",
            "set server <b>/<s> fqdn failed because no resolution is configured.\n",
        ),
    ] {
        let asked = format!("set server b/s {words}");
        assert_eq!(proxy.ask(&asked), answer, "{words}");
    }
    proxy.proxy.stop();
}

#[test]
fn commands_change_where_checks_go() {
    let (good, _) = checked(200);
    let (bad, _) = checked(503);
    let config = format!(
        "backend b\n option httpchk GET /\n default-server check inter 10ms fastinter 10ms downinter 10ms rise 1 fall 1\n \
         server s {}\n server mapped 127.0.0.1 port {}\n",
        good.at,
        good.at.port()
    );
    let proxy = Asked::start(&config, &[]);
    assert_eq!(
        proxy.ask(&format!("set server b/s check-port {}", bad.at.port())),
        ""
    );
    proxy.until_up("s", false);
    assert_eq!(
        proxy.ask(&format!(
            "set server b/s check-addr 127.0.0.1 port {}",
            good.at.port()
        )),
        ""
    );
    proxy.until_up("s", true);
    let shown = proxy.state("s");
    assert_eq!(
        shown[shown.len() - 4..],
        [
            good.at.port().to_string(),
            "127.0.0.1".to_owned(),
            "-".to_owned(),
            "0".to_owned()
        ]
    );
    for (words, answer) in [
        ("s check-addr localhost", "invalid addr 'localhost'\n"),
        (
            "s check-addr 127.0.0.1 port",
            "provided port is not an integer\n",
        ),
        (
            "mapped check-port 0",
            "can't unset 'port' since MAPPORTS is in use\n",
        ),
    ] {
        assert_eq!(proxy.ask(&format!("set server b/{words}")), answer);
    }
    proxy.proxy.stop();
}

#[test]
fn commands_turn_tls_of_servers_on_and_off() {
    let folder = Folder::new();
    let authority = Authority::new("test");
    let certificate = folder.write("a.pem", authority.issue(&["a.test"]));
    let (front, secure) = (listener(), listener());
    let plain = Origin::start(|_| ok("clear"));
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\n\
         frontend secure\n bind \"fd@${{SECURE}}\" ssl crt {certificate}\n \
         http-request return status 200 content-type text/plain string secure\n\
         backend b\n balance first\n server never {} no-ssl disabled\n default-server ssl verify none\n \
         server s {} no-ssl\n",
        plain.at,
        address(&secure)
    );
    let proxy = Asked::start_in(folder, &config, &[("FRONT", &front), ("SECURE", &secure)]);
    let ssl = |server: &str| {
        let shown = proxy.state(server);
        shown[shown.len() - 5].clone()
    };
    let status = || Client::connect(address(&front)).get("/").status;
    assert_eq!(ssl("s"), "-1");
    assert_eq!(status(), 502, "a server that wants TLS does not get it");
    assert_eq!(
        proxy.ask("set server b/s ssl on"),
        "server ssl setting updated.\n"
    );
    assert_eq!(ssl("s"), "1");
    assert_eq!(Client::connect(address(&front)).get("/").text(), "secure");
    assert_eq!(
        proxy.ask("set server b/s ssl off"),
        "server ssl setting updated.\n"
    );
    assert_eq!(ssl("s"), "0");
    assert_eq!(status(), 502, "idle connections are not used any more");
    for (words, answer) in [
        (
            "never ssl on",
            "'set server <srv> ssl' cannot be set.  default-server should define ssl settings\n",
        ),
        (
            "s ssl maybe",
            "'set server <srv> ssl' expects 'on' or 'off'.\n",
        ),
    ] {
        assert_eq!(proxy.ask(&format!("set server b/{words}")), answer);
    }
    proxy.ask("add server b/added 127.0.0.1:1 ssl verify none");
    assert_eq!(
        proxy.ask("set server b/added ssl off"),
        "'set server <srv> ssl' not supported on dynamic servers\n"
    );
    proxy.proxy.stop();
}

#[test]
fn commands_go_on_for_clients_that_have_sent_their_end() {
    let proxy = Asked::start("backend b\n server s 127.0.0.1:1 disabled\n", &[]);
    for (line, wanted) in [
        ("wait 30ms", "Done.\n\n"),
        ("wait 30ms srv-removable b/s", "Done.\n\n"),
    ] {
        let mut stream = UnixStream::connect(&proxy.path).expect("the socket");
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, wanted, "{line}");
    }
    proxy.proxy.stop();
}
