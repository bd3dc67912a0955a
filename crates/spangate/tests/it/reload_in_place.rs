//! `reload`: the process goes on with its files as they are now.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use crate::commands::named;
use crate::common::cli::ask_any;
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use crate::common::{
    DEADLINE, DEFAULTS, Folder, Port, Proxy, accept, address, eventually, listener,
};

/// A proxy whose proxies are in a file that the test writes again.
pub(crate) struct Reloaded {
    pub proxy: Proxy,
    socket: PathBuf,
    file: PathBuf,
}

impl Reloaded {
    fn start(lines: &str, listeners: &[(&str, &TcpListener)]) -> Reloaded {
        Reloaded::start_in(Folder::new(), lines, listeners)
    }

    fn start_in(folder: Folder, lines: &str, listeners: &[(&str, &TcpListener)]) -> Reloaded {
        Reloaded::start_with(folder, "", lines, listeners, &[])
    }

    /// `global`: further lines of that section.
    pub fn start_with(
        folder: Folder,
        global: &str,
        lines: &str,
        listeners: &[(&str, &TcpListener)],
        arguments: &[&str],
    ) -> Reloaded {
        let socket = folder.path("cli.sock");
        let first = format!(
            "global\n stats socket {} level admin\n{global}{DEFAULTS}",
            socket.display()
        );
        let file = folder.write("proxies.cfg", lines);
        let arguments = [arguments, &["-f", &file]].concat();
        let proxy = Proxy::start_with(folder, &first, listeners, &arguments);
        Reloaded {
            proxy,
            socket,
            file: file.into(),
        }
    }

    pub fn write(&self, lines: &str) {
        std::fs::write(&self.file, lines).expect("a file");
    }

    pub fn ask(&self, line: &str) -> String {
        ask_any(&self.socket, line)
    }

    /// The number of descriptors that the process has open.
    fn descriptors(&self) -> usize {
        let info = self.ask("show info");
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid: "));
        let path = format!("/proc/{}/fd", pid.expect("a number"));
        std::fs::read_dir(path).expect("a folder").count()
    }

    /// Reloads with these lines.
    pub fn reload(&self, lines: &str) -> String {
        self.write(lines);
        let answer = self.ask("reload");
        assert!(answer.contains("is in use"), "{answer}");
        answer
    }

    /// The fields of a row of `show stat`.
    fn row(&self, proxy: &str, name: &str) -> Option<Vec<String>> {
        let all = self.ask("show stat");
        let row = all
            .lines()
            .find(|row| row.starts_with(&format!("{proxy},{name},")))?;
        Some(row.split(',').map(str::to_owned).collect())
    }
}

const QUEUED: usize = 2;
const STATUS: usize = 17;
const WEIGHT: usize = 18;
const ACTIVE: usize = 19;
const STOT: usize = 7;

pub(crate) fn get(to: SocketAddr, path: &str) -> String {
    Client::connect(to).get(path).text()
}

#[test]
fn connections_stay_and_the_next_request_follows_the_new_files() {
    let (front, a, b) = (listener(), named("a"), named("b"));
    let held = listener();
    let lines = |page: &str, server: SocketAddr| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain string {page} if {{ path /page }}\n \
             use_backend held if {{ path /held }} or {{ req.hdr(upgrade) -m found }}\n default_backend b\n\
             backend b\n server s {server}\nbackend held\n server s {}\n",
            address(&held)
        )
    };
    let proxy = Reloaded::start(&lines("one", a.at), &[("FRONT", &front)]);
    let mut kept = Client::connect(address(&front));
    assert_eq!(kept.get("/page").text(), "one");
    assert_eq!(kept.get("/").text(), "a");
    // A download whose second half comes after the reload.
    let mut download = Client::connect(address(&front));
    download.send("GET /held HTTP/1.1\r\nhost: t\r\n\r\n");
    let mut server = accept(&held, "the download");
    read_head(&mut server);
    server
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst")
        .expect("sent");
    // A tunnel.
    let mut tunnel = TcpStream::connect(address(&front)).expect("a connection");
    tunnel.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    tunnel
        .write_all(b"GET /t HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n")
        .expect("sent");
    let mut far = accept(&held, "the tunnel");
    read_head(&mut far);
    far.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n",
    )
    .expect("sent");
    read_head(&mut tunnel);

    let answer = proxy.reload(&lines("two", b.at));
    assert!(answer.contains("one → two"), "{answer}");
    assert_eq!(kept.get("/page").text(), "two");
    assert_eq!(kept.get("/").text(), "b");
    server.write_all(b"other").expect("sent");
    assert_eq!(
        download.response().expect("a response").text(),
        "firstother"
    );
    assert_eq!(download.get("/page").text(), "two");
    tunnel.write_all(b"ping").expect("sent");
    let mut bytes = [0; 4];
    far.read_exact(&mut bytes).expect("bytes");
    far.write_all(b"pong").expect("sent");
    tunnel.read_exact(&mut bytes).expect("bytes");
    assert_eq!(&bytes, b"pong");
    let row = proxy.row("f", "FRONTEND").expect("a row");
    assert_eq!(row[STOT], "3", "the sessions before the reload count");
}

/// Reads up to the end of a head.
fn read_head(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
}

#[test]
fn what_cannot_be_applied_changes_nothing() {
    let front = listener();
    let taken = listener();
    let lines = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200 content-type text/plain string one\n";
    let proxy = Reloaded::start(lines, &[("FRONT", &front)]);
    let taken = format!("{lines}frontend g\n bind {}\n", address(&taken));
    for (changed, expected) in [
        (lines.replace("status", "statuses"), "[ALERT]"),
        (format!("global\n nbthread 3\n{lines}"), "[restart]"),
        (lines.replace("frontend f\n", "frontend f\n mode tcp\n"), ""),
        (taken, "Address already in use"),
    ] {
        proxy.write(&changed);
        let answer = proxy.ask("reload");
        assert!(!answer.contains("is in use"), "{answer}");
        assert!(answer.contains(expected), "{answer}");
        assert_eq!(get(address(&front), "/"), "one");
    }
    let changed = lines.replace("string one", "string two");
    proxy.write(&changed);
    let answer = proxy.ask("reload check");
    assert!(
        answer.contains("one → two") && !answer.contains("is in use"),
        "{answer}"
    );
    assert_eq!(get(address(&front), "/"), "one");
    let refused = proxy.ask("reload now");
    assert!(refused.contains("takes no argument"), "{refused}");
    std::fs::remove_file(&proxy.file).expect("a file");
    assert!(proxy.ask("reload").contains("proxies.cfg"));
    assert_eq!(get(address(&front), "/"), "one");
    proxy.reload(&changed);
    assert_eq!(get(address(&front), "/"), "two");
}

#[test]
fn listeners_open_close_and_move_to_another_frontend() {
    let front = listener();
    let port = Port::reserve();
    let at = SocketAddr::from(([127, 0, 0, 1], port.number));
    let page = |name: &str| {
        format!(
            "frontend {name}\n bind {at}\n http-request return status 200 content-type text/plain string {name}\n"
        )
    };
    let first = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let proxy = Reloaded::start(first, &[("FRONT", &front)]);
    let opened = proxy.reload(&format!("{first}{}", page("g")));
    assert!(opened.contains("(opened)"), "{opened}");
    let mut kept = Client::connect(at);
    assert_eq!(kept.get("/").text(), "g");
    let moved = proxy.reload(&format!("{}{first}", page("h")));
    assert!(moved.contains("frontend h"), "{moved}");
    assert_eq!(get(at, "/"), "h");
    // The connection of the frontend that is gone: one more request by its rules, and then its end.
    let last = kept.get("/");
    assert_eq!(
        (last.text().as_str(), last.field("connection")),
        ("g", Some("close"))
    );
    assert!(kept.is_closed());
    let closed = proxy.reload(first);
    assert!(closed.contains("(closed)"), "{closed}");
    eventually("the port is closed", || TcpStream::connect(at).err());
    assert!(proxy.row("g", "FRONTEND").is_none() && proxy.row("h", "FRONTEND").is_none());
    // It comes back with its counters.
    proxy.reload(&format!("{}{first}", page("h")));
    assert_eq!(get(at, "/"), "h");
}

#[test]
fn state_is_kept_by_name() {
    let front = listener();
    let folder = Folder::new();
    let map = folder.write("a.map", "/a one\n");
    let (a, b) = (named("a"), named("b"));
    let dead = address(&listener());
    let lines = |more: &str, servers: &str| {
        format!(
            "{more}frontend f\n bind \"fd@${{FRONT}}\"\n tcp-request connection track-sc0 src table t\n \
             tcp-request session set-var(sess.first) str(kept)\n \
             http-request return status 200 content-type text/plain lf-string \"%[path,map({map},none)] %[var(sess.first)]\" if {{ path_beg /m /a }}\n \
             default_backend b\nbackend t\n stick-table type ip size 10 expire 1h store conn_cnt\n\
             backend b\n{servers}"
        )
    };
    let one = format!(
        " server a {} weight 10\n server b {} weight 20\n server d {dead} check inter 10ms fall 1\n",
        a.at, b.at
    );
    let proxy = Reloaded::start_in(folder, &lines("", &one), &[("FRONT", &front)]);
    let mut kept = Client::connect(address(&front));
    assert_eq!(kept.get("/a").text(), "one kept");
    assert_eq!(proxy.ask(&format!("set map {map} /a edited")), "\n");
    assert_eq!(proxy.ask("set server b/b state maint"), "\n");
    assert_eq!(proxy.ask("set server b/a weight 5"), "\n");
    eventually("the server without a listener is down", || {
        proxy.row("b", "d").filter(|row| row[STATUS] == "DOWN")
    });
    assert_eq!(kept.get("/").text(), "a");

    // Other variables, other proxies before, servers in another order, one more and one less.
    let more = "backend other\n http-request set-var(sess.second) int(1)\n server x 127.0.0.1:1\n";
    let two = format!(
        " server n {} disabled\n server d {dead} check inter 10ms fall 1\n server b {} weight 20\n server a {} weight 10\n",
        b.at, b.at, a.at
    );
    proxy.reload(&lines(more, &two));
    assert_eq!(
        kept.get("/a").text(),
        "edited kept",
        "a map as it was edited"
    );
    assert_eq!(kept.get("/").text(), "a");
    let field = |server: &str, at: usize| proxy.row("b", server).expect("a row")[at].clone();
    assert_eq!(field("b", STATUS), "MAINT");
    assert_eq!(field("d", STATUS), "DOWN");
    assert_eq!(
        (field("a", WEIGHT), field("a", STOT)),
        ("5".into(), "2".into())
    );
    assert!(
        proxy.ask("show table t").contains("conn_cnt=1"),
        "{}",
        proxy.ask("show table t")
    );

    // A weight that changes in the file is the file's. A map that changed is read again.
    std::fs::write(&map, "/a file\n").expect("a file");
    let three = two.replace("weight 10", "weight 11");
    proxy.reload(&lines(more, &three));
    assert_eq!(field("a", WEIGHT), "11");
    assert_eq!(kept.get("/a").text(), "file kept");
    proxy.reload(&lines("", &format!(" server a {} weight 11\n", a.at)));
    assert!(proxy.row("b", "b").is_none() && proxy.row("other", "BACKEND").is_none());
    assert_eq!(kept.get("/").text(), "a");
    assert_eq!(get(address(&front), "/"), "a");
}

#[test]
fn requests_that_wait_go_on_with_the_configuration_that_they_began_with() {
    let front = listener();
    let (origin, held, release) = Origin::holding(|_| ok("late"));
    let lines = |backend: &str, page: &str| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n http-response set-header x-page {page}\n default_backend {backend}\n\
             backend {backend}\n server s {} maxconn 1\n",
            origin.at
        )
    };
    let proxy = Reloaded::start(&lines("one", "old"), &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /hold HTTP/1.1\r\nhost: t\r\n\r\n");
    drop(accept(&held, "the request"));
    let mut queued = Client::connect(address(&front));
    queued.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n");
    eventually("a request waits", || {
        proxy.row("one", "BACKEND").filter(|row| row[QUEUED] == "1")
    });
    proxy.reload(&lines("two", "new"));
    let mut fresh = Client::connect(address(&front));
    let answer = fresh.get("/");
    assert_eq!(answer.field("x-page"), Some("new"));
    accept(&release, "the request")
        .write_all(b".")
        .expect("sent");
    for client in [&mut first, &mut queued] {
        let answer = client.response().expect("an answer");
        assert_eq!(
            (answer.text().as_str(), answer.field("x-page")),
            ("late", Some("old"))
        );
        assert_eq!(client.get("/").field("x-page"), Some("new"));
    }
}

#[test]
fn many_reloads_leave_nothing_behind() {
    let front = listener();
    let a = named("a");
    let lines = |number: usize| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b{}\nbackend b{}\n server s{number} {}\n",
            number % 7,
            number % 7,
            a.at
        )
    };
    let proxy = Reloaded::start(&lines(0), &[("FRONT", &front)]);
    let mut kept = Client::connect(address(&front));
    let mut before = 0;
    for number in 1..=60 {
        proxy.reload(&lines(number));
        assert_eq!(kept.get("/").text(), "a");
        if number == 20 {
            before = proxy.descriptors();
        }
    }
    let after = proxy.descriptors();
    assert!(after <= before + 4, "{before} descriptors, then {after}");
    assert_eq!(proxy.ask("show stat").matches("BACKEND").count(), 1);
}

#[test]
fn idle_connections_to_servers_stay_where_their_lines_do() {
    let (front, held) = (listener(), listener());
    let lines = |more: &str| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {}{more}\n",
            address(&held)
        )
    };
    let proxy = Reloaded::start(&lines(""), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let ask = |client: &mut Client| client.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n");
    let answer = |server: &mut TcpStream, client: &mut Client| {
        read_head(server);
        server.write_all(&ok("a")).expect("sent");
        assert_eq!(client.response().expect("an answer").text(), "a");
    };
    ask(&mut client);
    let mut server = accept(&held, "the first request");
    answer(&mut server, &mut client);
    proxy.reload(&lines(""));
    ask(&mut client);
    answer(&mut server, &mut client);
    proxy.reload(&lines(" source 127.0.0.1"));
    assert_eq!(server.read(&mut [0]).expect("an end"), 0);
    ask(&mut client);
    let mut server = accept(&held, "the request after the change");
    answer(&mut server, &mut client);
}

#[test]
fn a_removed_server_gets_no_requests_and_returns_as_the_file_says() {
    let (front, a, b) = (listener(), named("a"), named("b"));
    let lines = |servers: &[&str]| {
        let servers = servers.iter().map(|name| {
            let at = if *name == "b" { b.at } else { a.at };
            format!(" server {name} {at} weight 10\n")
        });
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain lf-string %[nbsrv(app)] if {{ path /n }}\n \
             default_backend app\nbackend app\n balance roundrobin\n{}",
            servers.collect::<String>()
        )
    };
    let proxy = Reloaded::start(&lines(&["a", "b"]), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    let mut served = |count: usize| {
        let texts = (0..count).map(|_| client.get("/").text());
        let mut texts: Vec<String> = texts.collect();
        texts.sort();
        texts.dedup();
        texts.concat()
    };
    assert_eq!(served(4), "ab");
    assert_eq!(proxy.ask("set server app/b weight 3"), "\n");
    proxy.reload(&lines(&["a"]));
    assert_eq!(served(8), "a");
    assert_eq!(get(address(&front), "/n"), "1");
    assert_eq!(proxy.row("app", "BACKEND").expect("a row")[ACTIVE], "1");
    proxy.reload(&lines(&["a"]));
    proxy.reload(&lines(&["a", "b"]));
    assert_eq!(served(8), "ab");
    assert_eq!(proxy.row("app", "b").expect("a row")[WEIGHT], "10");
    // Deleted by a command, and still in the file.
    assert_eq!(proxy.ask("disable server app/b"), "\n");
    until_deleted(&proxy, "app/b");
    assert_eq!(served(8), "a");
    proxy.reload(&lines(&["a", "b"]));
    assert_eq!(served(8), "ab");
    // Added by a command, and not in the file.
    assert!(
        proxy
            .ask(&format!("add server app/c {}", a.at))
            .contains("New server registered.")
    );
    assert_eq!(proxy.ask("enable server app/c"), "\n");
    let answer = proxy.reload(&lines(&["b"]));
    assert!(
        answer.contains("app/c, which a command has added"),
        "{answer}"
    );
    assert_eq!(served(8), "b");
    proxy.reload(&lines(&[]));
    assert_eq!(Client::connect(address(&front)).get("/").status, 503);
}

/// Deletes a server that is in maintenance, once nobody uses it.
fn until_deleted(proxy: &Reloaded, server: &str) {
    let removable = proxy.ask(&format!("wait 30s srv-removable {server}"));
    assert!(removable.contains("Done"), "{removable}");
    let deleted = proxy.ask(&format!("del server {server}"));
    assert!(deleted.contains("deleted"), "{deleted}");
}

#[test]
fn a_frontend_that_returns_has_its_present_listeners() {
    let front = listener();
    let ports = [Port::reserve(), Port::reserve()];
    let first = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let lines = |count: usize| {
        let binds = ports[..count]
            .iter()
            .map(|port| format!(" bind 127.0.0.1:{}\n", port.number));
        format!(
            "{first}frontend g\n{} http-request return status 200\n",
            binds.collect::<String>()
        )
    };
    let proxy = Reloaded::start(first, &[("FRONT", &front)]);
    for step in [lines(1), lines(2), lines(1), first.to_owned(), lines(1)] {
        proxy.reload(&step);
    }
    let at = SocketAddr::from(([127, 0, 0, 1], ports[0].number));
    assert_eq!(Client::connect(at).get("/").status, 200);
    let info = proxy.ask("show info");
    assert!(
        info.contains("\nPanics: 0") || !info.contains("Panics"),
        "{info}"
    );
    assert!(info.contains("\nListeners: 3\n"), "{info}");
    // A soft stop ends it.
    proxy.proxy.running.signal(libc::SIGUSR1);
    assert!(proxy.proxy.running.end().status.success());
}

#[test]
fn earlier_configurations_hold_no_descriptors() {
    let (front, a) = (listener(), named("a"));
    let lines = |number: usize| {
        format!(
            "resolvers r\n nameserver n 127.0.0.1:9\ndefaults named\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n log 127.0.0.1:9 local0\n\
             frontend f from named\n bind \"fd@${{FRONT}}\"\n http-request set-header x-a {number}\n default_backend b\n\
             backend b from named\n server s {} resolvers r\n server t name.invalid:80 resolvers r init-addr none\n",
            a.at
        )
    };
    let proxy = Reloaded::start(&lines(0), &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").text(), "a");
    proxy.reload(&lines(1));
    let before = proxy.descriptors();
    for number in 2..12 {
        proxy.reload(&lines(number));
        assert_eq!(client.get("/").text(), "a");
    }
    let after = proxy.descriptors();
    assert!(after <= before + 4, "{before} descriptors, then {after}");
    assert!(before < 100, "{before} descriptors");
}

#[test]
fn a_connection_ends_when_its_line_admits_other_clients() {
    let front = listener();
    let lines = |option: &str, page: &str| {
        format!(
            "frontend f\n bind \"fd@${{FRONT}}\" {option}\n http-request return status 200 content-type text/plain string {page}\n"
        )
    };
    let proxy = Reloaded::start(&lines("", "one"), &[("FRONT", &front)]);
    let mut kept = Client::connect(address(&front));
    let mut idle = Client::connect(address(&front));
    for client in [&mut kept, &mut idle] {
        assert_eq!(client.get("/").text(), "one");
    }
    proxy.reload(&lines("accept-proxy", "two"));
    let last = kept.get("/");
    assert_eq!(
        (last.text().as_str(), last.field("connection")),
        ("one", Some("close"))
    );
    assert!(kept.is_closed() && idle.is_closed());
    let mut fresh = Client::connect(address(&front));
    fresh.send("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    assert_eq!(fresh.get("/").text(), "two");
}

#[test]
fn slots_of_servers_are_counted_across_reloads() {
    let front = listener();
    let (origin, held, release) = Origin::holding(|_| ok("a"));
    let lines = |server: &str| {
        format!("frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n{server}")
    };
    let server = |maxconn: u32| format!(" server s {} maxconn {maxconn}\n", origin.at);
    let proxy = Reloaded::start(&lines(&server(1)), &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /hold HTTP/1.1\r\nhost: t\r\n\r\n");
    drop(accept(&held, "the request"));
    // The server goes and returns; the request still has its slot.
    proxy.reload(&lines(""));
    proxy.reload(&lines(&server(1)));
    let mut queued = Client::connect(address(&front));
    queued.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n");
    eventually("a request waits", || {
        proxy.row("b", "BACKEND").filter(|row| row[QUEUED] == "1")
    });
    // A higher limit serves it at once.
    proxy.reload(&lines(&server(2)));
    assert_eq!(queued.response().expect("an answer").text(), "a");
    accept(&release, "the request")
        .write_all(b".")
        .expect("sent");
    assert_eq!(first.response().expect("an answer").text(), "a");
}

#[test]
fn a_table_that_peers_share_changes_only_with_a_new_process() {
    let front = listener();
    let lines = |size: u32, page: &str| {
        format!(
            "peers p\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 content-type text/plain string {page}\n\
             backend t\n stick-table type ip size {size} expire 1h store conn_cnt peers p\n"
        )
    };
    let proxy = Reloaded::start(&lines(10, "one"), &[("FRONT", &front)]);
    proxy.write(&lines(20, "two"));
    let answer = proxy.ask("reload");
    assert!(answer.contains("a table that peers share"), "{answer}");
    assert_eq!(get(address(&front), "/"), "one");
    proxy.reload(&lines(10, "two"));
    assert_eq!(get(address(&front), "/"), "two");
}
