//! Changes by commands of the runtime interface (management guide §9.3).

use std::net::{SocketAddr, TcpStream, UdpSocket};

use crate::common::cli::ask_any;
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use crate::common::{
    DEADLINE, DEFAULTS, Folder, Port, Proxy, accept, address, eventually, listener, uninterrupted,
};

/// A proxy with a runtime interface, and a function that sends commands to it.
pub fn start(
    config: &str,
    listeners: &[(&str, &std::net::TcpListener)],
) -> (Proxy, impl Fn(&str) -> String + use<>) {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}{config}",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, listeners);
    let ask = move |line: &str| {
        let mut answer = ask_any(&path, line);
        assert_eq!(answer.pop(), Some('\n'), "the end of an answer");
        answer
    };
    (proxy, ask)
}

#[test]
fn maps_are_edited() {
    let front = listener();
    let folder = Folder::new();
    let file = folder.write("a.map", "/a one\n/b two\n");
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain lf-string %[path,map({file},none)]\n"
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let mut value = |path: &str| client.get(path).text();
    let show = |version: &str| {
        let entries = ask(&format!("show map {version}{file}"));
        let without_id = |line: &str| line.split_once(' ').expect("an id").1.to_owned();
        entries.lines().map(without_id).collect::<Vec<_>>()
    };
    assert_eq!(value("/a"), "one");
    assert_eq!(ask(&format!("set map {file} /a three")), "");
    assert_eq!(ask(&format!("add map {file} /c with\\ space")), "");
    assert_eq!(
        (value("/a"), value("/c")),
        ("three".into(), "with space".into())
    );
    assert_eq!(show(""), ["/a three", "/b two", "/c with space"]);
    assert_eq!(
        ask(&format!("add map {file} <<\n/d four and more\n/e\tfive\n")),
        ""
    );
    assert_eq!(value("/d"), "four and more");
    assert_eq!(ask(&format!("del map {file} /b")), "");
    assert_eq!(value("/b"), "none");
    assert_eq!(ask(&format!("del map {file} /b")), "Key not found.\n");
    assert_eq!(
        ask(&format!("set map {file} /b x")),
        "key or pattern not found.\n"
    );
    let entry = ask(&format!("show map {file}"));
    let id = entry.split(' ').next().expect("an id");
    assert_eq!(ask(&format!("set map {file} #{id} six")), "");
    assert_eq!(value("/a"), "six");
    assert_eq!(
        ask(&format!("get map {file} /a")),
        "type=str, case=sensitive, found=yes, idx=tree, key=\"/a\", value=\"six\", type=\"str\"\n"
    );
    assert_eq!(
        ask(&format!("get map {file} /z")),
        "type=str, case=sensitive, found=no\n"
    );

    assert_eq!(
        ask(&format!("prepare map {file}")),
        "New version created: 1\n"
    );
    assert_eq!(ask(&format!("add map @1 {file} /a seven")), "");
    assert_eq!(value("/a"), "six");
    assert_eq!(show("@1 "), ["/a seven"]);
    assert_eq!(
        ask(&format!("add map @2 {file} /a x")),
        "Version number in the future, please use 'prepare map' before.\n"
    );
    assert_eq!(
        ask(&format!("commit map @2 {file}")),
        "Version number out of range.\n"
    );
    assert_eq!(ask(&format!("commit map @1 {file}")), "");
    assert_eq!((value("/a"), value("/c")), ("seven".into(), "none".into()));
    let all = ask("show map");
    assert!(all.starts_with("# id (file) description\n0 ("), "{all}");
    assert!(all.contains("curr_ver=1 next_ver=1 entry_cnt=1\n"), "{all}");
    assert_eq!(ask(&format!("clear map {file}")), "");
    assert_eq!(show(""), [""; 0]);
    assert_eq!(
        ask("show map other"),
        "Unknown map identifier. Please use #<id> or <file>.\n"
    );
    assert_eq!(
        ask(&format!("show acl {file}")),
        "Unknown ACL identifier. Please use #<id> or <file>.\n"
    );
    proxy.stop();
}

#[test]
fn long_lists_of_entries_arrive_whole() {
    const ENTRIES: usize = 20_000;
    let front = listener();
    let folder = Folder::new();
    let lines: String = (0..ENTRIES)
        .map(|number| format!("key-{number}\n"))
        .collect();
    let file = folder.write("many.lst", lines);
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n acl many path -f {file}\n http-request deny if many\n"
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let entries = ask(&format!("show acl {file}"));
    assert_eq!(entries.lines().count(), ENTRIES);
    assert!(entries.ends_with(&format!(" key-{}\n", ENTRIES - 1)));
    assert_eq!(ask(&format!("add acl {file} /x")), "");
    assert_eq!(Client::connect(address(&front)).get("/x").status, 403);
    proxy.stop();
}

/// A server that answers with its name.
pub fn named(name: &'static str) -> Origin {
    Origin::start(move |_| ok(name))
}

/// `least-latency` uses weights, and takes servers at run time.
#[test]
fn weights_of_every_dynamic_algorithm_change() {
    let front = listener();
    let one = named("one");
    let backends = ["least-latency", "first", "leastconn", "static-rr"].map(|balance| {
        format!(
            "backend {balance}\n balance {balance}\n server s {} weight 10\n",
            one.at
        )
    });
    let config = format!(
        "listen l\n bind \"fd@${{FRONT}}\"\n server s {}\n{}",
        one.at,
        backends.concat()
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    for balance in ["least-latency", "first", "leastconn"] {
        assert_eq!(ask(&format!("set server {balance}/s weight 50%")), "");
        let weight = ask(&format!("get weight {balance}/s"));
        assert_eq!(weight, "5 (initial 10)\n", "{balance}");
    }
    assert_eq!(
        ask("set server static-rr/s weight 50%"),
        "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.\n"
    );
}

#[test]
fn servers_change_while_traffic_runs() {
    let (one, two) = (named("one"), named("two"));
    let front = listener();
    let config = format!(
        "listen l\n bind \"fd@${{FRONT}}\"\n balance roundrobin\n server s1 {} weight 10\n server s2 {} disabled\n",
        one.at, two.at
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let mut served_by = || client.get("/").text();
    assert_eq!(served_by(), "one");
    assert_eq!(ask("enable server l/s2; disable server l/s1"), "\n");
    assert_eq!(served_by(), "two");
    assert_eq!(
        ask("set server l/s2 state drain; set server l/s1 state ready"),
        "\n"
    );
    assert_eq!((served_by(), served_by()), ("one".into(), "one".into()));

    assert_eq!(ask("get weight l/s1"), "10 (initial 10)\n");
    assert_eq!(ask("set server l/s1 weight 50%"), "");
    assert_eq!(ask("get weight l/s1"), "5 (initial 10)\n");
    assert_eq!(
        ask("set weight l/s1 257"),
        "Absolute weight can only be between 0 and 256 inclusive.\n"
    );

    let (ip, port) = (two.at.ip(), two.at.port());
    let moved = ask(&format!("set server l/s1 addr {ip} port {port}"));
    let before = one.at.port();
    assert_eq!(
        moved,
        format!("port changed from '{before}' to '{port}' by 'stats socket command'\n")
    );
    assert_eq!(served_by(), "two", "no idle connection to the old address");
    assert_eq!(
        ask(&format!("set server l/s1 addr {ip}")),
        "nothing changed\n"
    );
    assert_eq!(ask("set server l/s1 addr x"), "Invalid addr 'x'\n");

    assert!(ask("set server l/s1 name blue").starts_with("Server must be in maintenance mode"));
    assert_eq!(
        ask("disable server l/s1; set server l/s1 name blue"),
        "\nServer name updated.\n"
    );
    assert_eq!(ask("enable server l/s1"), "No such server.\n");
    assert_eq!(ask("enable server l/blue"), "");
    assert_eq!(served_by(), "two");

    for (line, answer) in [
        (
            "set server l/s2 state up",
            "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n",
        ),
        ("set server l", "Require 'backend/server'.\n"),
        ("set server x/s1 state ready", "No such backend.\n"),
        ("set server l/x state ready", "No such server.\n"),
        (
            "set maxconn server l/s2 x",
            "maxconn string empty or preceded by garbage\n",
        ),
        ("set maxconn server l/s2 5", ""),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    assert!(ask("set server l/s2 color blue").starts_with("usage: set server "));
    proxy.stop();
}

#[test]
fn frontends_pause_and_close() {
    let (front, port) = (listener(), Port::reserve());
    let own = SocketAddr::from(([127, 0, 0, 1], port.number));
    let config = format!(
        "frontend inherited\n bind \"fd@${{FRONT}}\"\n http-request return status 200\n\
         frontend own\n bind {}\n http-request return status 200\n",
        own
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let get = |at| Client::connect(at).get("/").status;
    assert_eq!(get(own), 200);
    assert_eq!(ask("disable frontend own"), "");
    assert_eq!(
        ask("disable frontend own"),
        "All sockets are already disabled.\n"
    );
    assert!(TcpStream::connect(own).is_err(), "the port refuses");
    assert_eq!(ask("enable frontend own"), "");
    assert_eq!(
        ask("enable frontend own"),
        "All sockets are already enabled.\n"
    );
    assert_eq!(get(own), 200);

    // The socket of this frontend is shared, so connections wait.
    assert_eq!(ask("disable frontend inherited"), "");
    let mut waiting = Client::connect(address(&front));
    waiting.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(get(own), 200, "others go on");
    assert_eq!(ask("enable frontend inherited"), "");
    assert_eq!(waiting.response().expect("an answer").status, 200);

    assert_eq!(ask("disable frontend own"), "");
    assert_eq!(ask("shutdown frontend own"), "");
    until_refused(own);
    assert_eq!(
        ask("shutdown frontend own"),
        "Frontend was already shut down.\n"
    );
    assert_eq!(
        ask("enable frontend own"),
        "Frontend was previously shut down, cannot enable.\n"
    );
    assert_eq!(ask("enable frontend x"), "No such frontend.\n");
    assert_eq!(get(address(&front)), 200);
    // A paused frontend does not delay the end.
    assert_eq!(ask("disable frontend inherited"), "");
    proxy.stop();
}

/// What happens to a frontend's listeners is in its logs, by a command or by a signal.
#[test]
fn pauses_are_in_the_logs() {
    let (front, shared) = (listener(), listener());
    let log = UdpSocket::bind("127.0.0.1:0").expect("a port");
    log.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n log {at} format raw local0\n http-request return status 200\n\
         listen l\n bind \"fd@${{SHARED}}\"\n log {at} format raw local0\n server s 127.0.0.1:1\n",
        at = log.local_addr().expect("an address")
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front), ("SHARED", &shared)]);
    let next = || {
        let mut line = [0; 256];
        let count = uninterrupted(|| log.recv(&mut line)).expect("a log line");
        String::from_utf8_lossy(&line[..count]).into_owned()
    };
    assert_eq!(ask("disable frontend f"), "");
    assert_eq!(next(), "Paused frontend f.\n");
    assert_eq!(ask("enable frontend f"), "");
    assert_eq!(next(), "Resumed frontend f.\n");
    proxy.running.signal(libc::SIGTTOU);
    assert_eq!(next(), "Paused frontend f.\n");
    assert_eq!(next(), "Paused proxy l.\n");
    proxy.running.signal(libc::SIGTTIN);
    assert_eq!(next(), "Resumed frontend f.\n");
    assert_eq!(next(), "Resumed proxy l.\n");
    assert_eq!(ask("shutdown frontend f"), "");
    assert_eq!(next(), "Proxy f stopped (cumulated conns: FE: 0, BE: 0).\n");
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    let paused = told.matches(" : Paused frontend f.\n").count();
    assert_eq!(paused, 2, "{told}");
}

/// Waits until connections are refused.
fn until_refused(at: SocketAddr) {
    // A listener that is about to close may still accept a connection.
    eventually("nobody listens", || TcpStream::connect(at).err());
}

#[test]
fn limits_change() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n maxconn 1\n http-request return status 200\n";
    let (proxy, ask) = start(config, &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    assert_eq!(first.get("/").status, 200);
    let mut second = Client::connect(address(&front));
    second.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(ask("set maxconn frontend f 2"), "");
    assert_eq!(second.response().expect("an answer").status, 200);
    assert_eq!(ask("set maxconn global 999999999"), "Value out of range.\n");
    assert_eq!(ask("set maxconn global 2"), "");
    assert_eq!(ask("set maxconn frontend f 9"), "");
    let mut third = Client::connect(address(&front));
    third.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(first.get("/").status, 200);
    assert_eq!(ask("set maxconn global 0"), "", "as started");
    assert_eq!(third.response().expect("an answer").status, 200);
    assert_eq!(ask("set rate-limit sessions global 100"), "");
    assert!(ask("show info").contains("\nSessRateLimit: 100\n"));
    assert_eq!(
        ask("set rate-limit connections global"),
        "Expects an integer value.\n"
    );
    assert!(ask("set rate-limit x").starts_with("'set rate-limit' only supports :\n"));
    proxy.stop();
}

#[test]
fn unpublished_backends_are_not_chosen() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n use_backend a if TRUE\n default_backend b\n\
                  backend a\n http-request return status 201\n\
                  backend b\n http-request return status 202\n";
    let (proxy, ask) = start(config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 201);
    assert_eq!(ask("unpublish backend a"), "Backend unpublished.\n");
    assert_eq!(client.get("/").status, 202);
    assert_eq!(ask("publish backend a"), "Backend published.\n");
    assert_eq!(client.get("/").status, 201);
    assert_eq!(ask("publish backend x"), "No such backend.\n");
    assert_eq!(ask("show backend"), "# name\na\nb\n");
    proxy.stop();
}

#[test]
fn streams_are_shown_and_ended() {
    let front = listener();
    let (origin, held, _release) = Origin::holding(|_| ok("held"));
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {}\n",
        origin.at
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    assert_eq!(ask("show sess"), "");
    let hold = || {
        let mut client = Client::connect(address(&front));
        client.send("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n");
        accept(&held, "the request at the origin");
        client
    };
    let mut client = hold();
    let lines = ask("show sess show-uri");
    assert_eq!(lines.lines().count(), 1, "{lines}");
    for part in [
        ": proto=tcpv4 src=127.0.0.1:",
        " fe=f be=b srv=s age=0s phase=response ",
        " rc=0 uri=\"GET /hold HTTP/1.1\"\n",
    ] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    let id = lines.split(':').next().expect("an id");
    let long = ask(&format!("show sess {id}"));
    assert!(
        long.starts_with(&format!("{id}: worker=0 proto=tcpv4 ")),
        "{long}"
    );
    assert!(
        long.contains(&format!("backend=b server=s addr={}", origin.at)),
        "{long}"
    );
    // Its second line contains times.
    let timeless = |text: &str| text.lines().filter(|line| !line.contains(" age=")).count();
    let all = ask("show sess all");
    assert_eq!(all.lines().next(), long.lines().next());
    assert_eq!(timeless(&all), timeless(&long), "{all}");
    assert_eq!(ask("show sess older 1h"), "");
    assert_eq!(
        ask("show sess backend b server b/s"),
        "Only one of backend, frontend or server may be set.\n"
    );
    assert_eq!(ask("show sess frontend f").lines().count(), 1);
    assert_eq!(ask("show sess server b/x"), "No such server.\n");
    assert_eq!(
        ask("show sess color"),
        "Unsupported option 'color', try 'help' for more info.\n"
    );

    assert_eq!(
        ask("shutdown session x"),
        "Session pointer expected (use 'show sess').\n"
    );
    assert_eq!(
        ask("shutdown session 0xffffff"),
        "No such session (use 'show sess').\n"
    );
    assert_eq!(ask(&format!("shutdown session {id}")), "");
    assert!(client.is_closed());
    assert_eq!(ask(&format!("show sess {id}")), "Session not found.\n");

    let (mut one, mut two) = (hold(), hold());
    assert_eq!(ask("show sess").lines().count(), 2);
    assert_eq!(ask("shutdown sessions server b/s"), "");
    assert!(one.is_closed() && two.is_closed());
    proxy.stop();
}

#[test]
fn states_of_servers_outlive_the_process() {
    let (one, two) = (named("one"), named("two"));
    let front = listener();
    let folder = Folder::new();
    let states = folder.path("states");
    std::fs::create_dir_all(&states).unwrap();
    let servers = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend be\n\
         backend be\n load-server-state-from-file global\n server s1 {}\n server s2 {} weight 10\n server s3 {} disabled\n\
         backend own\n load-server-state-from-file local\n server s {} weight 7\n",
        one.at, two.at, one.at, one.at
    );
    let base = format!(
        "global\n server-state-base {}\n server-state-file all\n",
        states.display()
    );
    let (proxy, ask) = start(&(base.clone() + &servers), &[("FRONT", &front)]);
    let port = one.at.port();
    let all = ask("show servers state");
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines[0], "1");
    assert!(
        lines[1].starts_with("# be_id be_name srv_id srv_name srv_addr srv_op_state "),
        "{all}"
    );
    assert_eq!(
        lines[2],
        format!("3 be 1 s1 127.0.0.1 2 0 1 1 0 1 0 2 0 0 0 0 - {port} - 0 0 - - 0")
    );
    assert!(
        lines[4].starts_with("3 be 3 s3 127.0.0.1 0 5 1 1 "),
        "{all}"
    );
    assert_eq!(lines.len(), 6, "{all}");
    assert_eq!(ask("show servers state own").lines().count(), 3);
    assert_eq!(ask("show servers state x"), "Can't find backend.\n");

    assert_eq!(
        ask("disable server be/s1; set server be/s2 weight 3; enable server be/s3"),
        "\n\n"
    );
    let two_port = two.at.port();
    ask(&format!("set server be/s3 addr 127.0.0.1 port {two_port}"));
    assert_eq!(ask("set weight own/s 5"), "");
    std::fs::write(states.join("all"), ask("show servers state")).unwrap();
    std::fs::write(states.join("own"), ask("show servers state own")).unwrap();
    let conns = ask("show servers conn be");
    assert!(
        conns.starts_with("# bkname/svname bkid/svid addr port - purge_delay "),
        "{conns}"
    );
    assert!(conns.contains("\nbe/s2 3/2 127.0.0.1 "), "{conns}");
    proxy.stop();

    let (proxy, ask) = start(&(base + &servers), &[("FRONT", &front)]);
    let state = |server: &str| {
        let all = ask("show servers state");
        let line = all
            .lines()
            .find(|line| line.contains(server))
            .expect("a server");
        line.split(' ')
            .skip(5)
            .take(4)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(state(" s1 "), "0 1 1 1");
    assert_eq!(state(" s2 "), "2 0 3 10");
    assert_eq!(state(" s3 "), "2 4 1 1");
    assert_eq!(state(" own "), "2 0 5 7");
    assert_eq!(ask("disable server be/s2"), "");
    let body = Client::connect(address(&front)).get("/").text();
    assert_eq!(body, "two", "the port of s3 is the one that it was given");
    proxy.stop();
}

#[test]
fn health_is_told_by_commands() {
    let one = named("one");
    let front = listener();
    let config = format!(
        "listen l\n bind \"fd@${{FRONT}}\"\n server s1 {} check inter 1h\n server s2 {} disabled\n",
        one.at, one.at
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").text(), "one");
    let state = |server: &str| {
        let all = ask("show servers state l");
        let line = all
            .lines()
            .find(|line| line.contains(server))
            .expect("a server");
        line.split(' ')
            .skip(5)
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!((state(" s1 "), state(" s2 ")), ("2 0".into(), "0 5".into()));
    assert_eq!(
        ask("disable health l/s1; set server l/s1 health down"),
        "\n"
    );
    assert_eq!(state(" s1 "), "0 0");
    assert_eq!(Client::connect(address(&front)).get("/").status, 503);
    assert_eq!(ask("enable health l/s1; set server l/s1 health up"), "\n");
    assert_eq!(state(" s1 "), "2 0");
    assert_eq!(client.get("/").status, 200);
    for (line, answer) in [
        (
            "enable health l/s2",
            "Health check was not configured on this server, cannot enable.\n",
        ),
        (
            "enable agent l/s1",
            "Agent was not configured on this server, cannot enable.\n",
        ),
        (
            "set server l/s1 agent up",
            "agent checks are not enabled on this server.\n",
        ),
        (
            "set server l/s1 health maybe",
            "'set server <srv> health' expects 'up', 'stopping', or 'down'.\n",
        ),
        ("wait 1ms srv-removable l/x", "Failed. No such server.\n"),
        (
            "wait 1ms srv-removable l/s1",
            "Failed. Only servers in maintenance mode can be deleted.\n",
        ),
        ("wait 1ms srv-removable l/s2", "Done.\n"),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    proxy.stop();
}
