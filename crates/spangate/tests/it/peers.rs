//! Sections `peers` (manual §11.2): tables that processes share, between Spangates and with HAProxy,
//! in both directions and over a reload.

mod tls;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use crate::common::tls::Authority;
use crate::common::{Folder, Port, Proxy, address, listener, skipped};

/// Debian's HAProxy.
const HAPROXY: &str = "/usr/sbin/haproxy";

fn spangate() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_spangate"))
}

/// HAProxy, where there is one. `HAPROXY_PEER` may name another one.
fn haproxy() -> Option<PathBuf> {
    let path =
        std::env::var_os("HAPROXY_PEER").map_or_else(|| PathBuf::from(HAPROXY), PathBuf::from);
    if path.exists() {
        return Some(path);
    }
    skipped(&format!(
        "peers with HAProxy: there is no {}",
        path.display()
    ));
    None
}

/// The processes that share tables: their ports, and their certificates where they use TLS.
struct Mesh {
    ports: Vec<(&'static str, Port)>,
    identity: Option<Identity>,
}

/// An authority, and a certificate of it with its key.
struct Identity {
    authority: Authority,
    own: String,
}

impl Identity {
    fn new() -> Identity {
        let authority = Authority::new("peers");
        let own = authority.issue(&["peer.test"]);
        Identity { authority, own }
    }
}

impl Mesh {
    fn of(names: &[&'static str]) -> Mesh {
        let ports = names.iter().map(|name| (*name, Port::reserve()));
        Mesh {
            ports: ports.collect(),
            identity: None,
        }
    }

    fn reserve() -> Mesh {
        Mesh::of(&["A", "B"])
    }

    fn secured() -> Mesh {
        Mesh {
            identity: Some(Identity::new()),
            ..Mesh::reserve()
        }
    }

    /// Its section for the process `local`, whose files are in this folder.
    fn section(&self, local: &str, folder: &Folder) -> String {
        let mut lines = vec!["peers p".to_owned()];
        if let Some(identity) = &self.identity {
            let ca = folder.write("ca.pem", identity.authority.pem());
            let own = folder.write("own.pem", &identity.own);
            lines.push(format!(
                "default-bind ssl crt {own} ca-file {ca} verify required"
            ));
            lines.push(format!(
                "default-server ssl crt {own} ca-file {ca} verify required verifyhost peer.test"
            ));
        }
        for (name, port) in &self.ports {
            let at = format!("127.0.0.1:{}", port.number);
            match (&self.identity, *name == local) {
                (None, _) => lines.push(format!("peer {name} {at}")),
                (Some(_), true) => lines.extend([format!("bind {at}"), format!("server {name}")]),
                (Some(_), false) => lines.push(format!("server {name} {at}")),
            }
        }
        lines.push(
            "table own type ip size 1k expire 10m store gpt(2),gpc(3),gpc_rate(2,1m)".to_owned(),
        );
        lines.join("\n ") + "\n"
    }

    fn address(&self, name: &str) -> (&'static str, u16) {
        let found = self.ports.iter().find(|(known, _)| *known == name);
        ("127.0.0.1", found.expect("a process of the mesh").1.number)
    }
}

struct Node {
    proxy: Proxy,
    socket: PathBuf,
    front: TcpListener,
    _origin: Origin,
}

impl Node {
    fn start(program: &Path, mesh: &Mesh, name: &str, more: &[&str]) -> Node {
        let folder = Folder::new();
        let socket = folder.path("cli");
        let front = listener();
        let origin = Origin::start(|_| ok("x"));
        let config = format!(
            "global
 nbthread 1
 stats socket {} level admin
defaults
 mode http
 timeout client 5s
 timeout server 5s
 timeout connect 1s
{}
backend t
 stick-table type string len 20 size 100k expire 10m store gpc0,gpt0,http_req_rate(1m),conn_cnt,conn_cur,bytes_in_cnt peers p
backend numbers
 stick-table type integer size 1k store gpc0 peers p
backend bytes
 stick-table type binary len 6 size 1k expire 10m store gpc0 peers p
backend v6
 stick-table type ipv6 size 1k expire 10m store gpc0 peers p
backend be
 stick-table type string size 1k expire 10m store server_key peers p
 stick on path
 server s1 {} id 41
 server s2 {} id 42
frontend fe
 bind \"fd@${{FE}}\"
 http-request track-sc0 path,hex table bytes if {{ path_beg /b }}
 http-request sc-inc-gpc0(0) if {{ path_beg /b }}
 http-request track-sc1 path,field(3,/),regsub(^,10.1.2.) table p/own if {{ path_beg /own/ }}
 http-request sc-inc-gpc(1,1) if {{ path_beg /own/ }}
 http-request sc-set-gpt(1,1) 11 if {{ path_beg /own/ }}
 http-request return status 200 unless {{ path_beg /stick }}
 default_backend be
",
            socket.display(),
            mesh.section(name, &folder),
            origin.at,
            origin.at
        );
        let arguments: Vec<&str> = ["-L", name].iter().chain(more).copied().collect();
        let proxy = Proxy::start_program(program, folder, &config, &[("FE", &front)], &arguments);
        Node {
            proxy,
            socket,
            front,
            _origin: origin,
        }
    }

    fn ask(&self, line: &str) -> String {
        ask_any(&self.socket, line)
    }

    /// Waits until an entry of a table has all of these.
    fn until(&self, table: &str, key: &str, parts: &[&str]) -> String {
        until_any_holds(
            &self.socket,
            &format!("show table {table} key {key}"),
            |answer| parts.iter().all(|part| answer.contains(part)),
        )
    }

    fn get(&self, path: &str) -> u16 {
        let mut client = Client::connect(address(&self.front));
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        client.response().expect("an answer").status
    }

    /// Ends it at once; HAProxy ends by the signal.
    fn stop(self) {
        self.proxy.running.signal(libc::SIGTERM);
        self.proxy.running.end();
    }

    /// Stops listening and ends after its connections, as at a reload.
    fn ends(self) {
        let output = self.proxy.running.end();
        assert!(
            output.status.success(),
            "{:?}: {}",
            output.status,
            output.stderr
        );
    }
}

/// The entries that one process writes appear in the other one.
fn follows(from: &Node, to: &Node, key: &str) {
    let set = |table: &str, key: &str, values: &str| {
        let answer = from.ask(&format!("set table {table} key {key} {values}"));
        assert!(answer.trim().is_empty(), "{answer}");
    };
    set(
        "t",
        key,
        "data.gpc0 5 data.gpt0 4000000000 data.http_req_rate 7 data.conn_cnt 3 data.bytes_in_cnt 123456789012",
    );
    to.until(
        "t",
        key,
        &[
            "gpc0=5",
            "gpt0=4000000000",
            "http_req_rate(60000)=7",
            "conn_cnt=3",
            "conn_cur=0",
            "bytes_in_cnt=123456789012",
        ],
    );
    set("numbers", "77", "data.gpc0 8");
    to.until("numbers", "77", &["key=77", "gpc0=8"]);
    set("v6", "2001:db8::1", "data.gpc0 9");
    to.until("v6", "2001:db8::1", &["key=2001:db8::1", "gpc0=9"]);
}

/// Servers and binary keys come from requests.
fn requests_follow(from: &Node, to: &Node, name: &str) {
    assert_eq!(from.get(&format!("/own/{name}")), 200);
    to.until(
        "p/own",
        &format!("10.1.2.{name}"),
        &[
            "gpt0=0",
            "gpt1=11",
            "gpc0=0",
            "gpc1=1",
            "gpc2=0",
            "gpc0_rate(60000)=0",
            "gpc1_rate(60000)=1",
        ],
    );
    assert_eq!(from.get(&format!("/b{name}")), 200);
    until_any_holds(&to.socket, "show table bytes", |answer| {
        answer.contains("gpc0=1")
    });
    assert_eq!(from.get(&format!("/stick{name}")), 200);
    let answer = from.ask(&format!("show table be key /stick{name}"));
    let server = answer
        .split("server_id=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let expected = format!("server_id={}", server.unwrap_or("none"));
    let shown = answer
        .split("server_key=")
        .nth(1)
        .map(str::trim)
        .unwrap_or("none");
    let key = format!("server_key={shown}");
    to.until("be", &format!("/stick{name}"), &[&expected, &key]);
}

fn share(one: &Path, two: &Path, mesh: &Mesh) {
    let a = Node::start(one, mesh, "A", &[]);
    a.ask("set table t key early data.gpc0 2");
    let b = Node::start(two, mesh, "B", &[]);
    b.until("t", "early", &["gpc0=2"]);
    follows(&a, &b, "x");
    follows(&b, &a, "y");
    requests_follow(&a, &b, "1");
    requests_follow(&b, &a, "2");
    for node in [&a, &b] {
        let peers = node.ask("show peers");
        assert!(peers.contains("last_status=ESTA"), "{peers}");
    }
    b.stop();
    // While it is away, it misses something.
    a.ask("set table t key missed data.gpc0 6");
    let b = Node::start(two, mesh, "B", &[]);
    b.until("t", "missed", &["gpc0=6"]);
    b.until("t", "early", &["gpc0=2"]);
    a.stop();
    b.stop();
}

#[test]
fn spangates_share_tables() {
    share(&spangate(), &spangate(), &Mesh::reserve());
}

#[test]
fn spangates_share_tables_over_tls() {
    share(&spangate(), &spangate(), &Mesh::secured());
}

#[test]
fn a_haproxy_learns_from_a_spangate_and_back() {
    let Some(haproxy) = haproxy() else { return };
    share(&spangate(), &haproxy, &Mesh::reserve());
    share(&spangate(), &haproxy, &Mesh::secured());
}

#[test]
fn a_spangate_learns_from_a_haproxy_and_back() {
    let Some(haproxy) = haproxy() else { return };
    share(&haproxy, &spangate(), &Mesh::reserve());
    share(&haproxy, &spangate(), &Mesh::secured());
}

/// Makes entries at each process, and waits until all processes have all of them.
fn spread(nodes: &[(&str, Node)], prefix: &str) {
    for (from, node) in nodes {
        let answer = node.ask(&format!("set table t key {prefix}{from} data.gpc0 3"));
        assert!(answer.trim().is_empty(), "{answer}");
        // The last byte of an address, the same in all rounds.
        assert_eq!(node.get(&format!("/own/{}", from.as_bytes()[0])), 200);
    }
    for (_, node) in nodes {
        for (from, _) in nodes {
            node.until("t", &format!("{prefix}{from}"), &["gpc0=3"]);
            let address = format!("10.1.2.{}", from.as_bytes()[0]);
            node.until("p/own", &address, &["gpt1=11", "gpc1="]);
        }
    }
}

/// Four processes, of which the last one runs this program. Entries made anywhere arrive
/// everywhere, and a process that was away learns what it missed.
fn share_in_four(fourth: &Path, identity: Option<Identity>) {
    let mesh = Mesh {
        identity,
        ..Mesh::of(&["A", "B", "C", "D"])
    };
    let start = |name| {
        let own = spangate();
        let program = if name == "D" { fourth } else { &own };
        (name, Node::start(program, &mesh, name, &[]))
    };
    let mut nodes = Vec::from(["A", "B", "C", "D"].map(start));
    spread(&nodes, "first");
    for name in ["A", "D"] {
        let place = nodes.iter().position(|(known, _)| *known == name);
        let (_, away) = nodes.remove(place.expect("a process of the mesh"));
        away.stop();
        let prefix = format!("without{name}");
        spread(&nodes, &prefix);
        let others: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        let again = start(name);
        for other in others {
            again.1.until("t", &format!("{prefix}{other}"), &["gpc0=3"]);
        }
        nodes.push(again);
        spread(&nodes, &format!("with{name}"));
    }
    for (_, node) in nodes {
        node.stop();
    }
}

#[test]
fn four_spangates_share_tables() {
    share_in_four(&spangate(), None);
}

#[test]
fn three_spangates_and_a_haproxy_share_tables() {
    let Some(haproxy) = haproxy() else { return };
    share_in_four(&haproxy, None);
    share_in_four(&haproxy, Some(Identity::new()));
}

/// A reload from one program to another.
fn reload(old: &Path, new: &Path, mesh: &Mesh) {
    const ENTRIES: usize = 500;
    let one = Node::start(old, mesh, "A", &[]);
    let lines = (0..ENTRIES).map(|number| format!("set table t key k{number} data.gpc0 {number}"));
    for lines in lines.collect::<Vec<_>>().chunks(50) {
        one.ask(&lines.join(";"));
    }
    // Alone, it knows all after five seconds; HAProxy teaches only then.
    until_any_holds(&one.socket, "show peers", |answer| {
        let flags = answer.split("flags=0x").nth(1);
        flags.is_some_and(|flags| {
            flags
                .split(' ')
                .next()
                .is_some_and(|flags| flags.ends_with('3'))
        })
    });
    let pid = one.proxy.running.pid().to_string();
    let two = Node::start(new, mesh, "A", &["-sf", &pid]);
    one.ends();
    let all = two.ask("show table t");
    for number in 0..ENTRIES {
        assert!(
            all.contains(&format!(" gpc0={number} ")),
            "{number} is missing"
        );
    }
    two.stop();
}

#[test]
fn a_reload_keeps_entries() {
    reload(&spangate(), &spangate(), &Mesh::reserve());
}

#[test]
fn a_reload_keeps_entries_over_tls() {
    reload(&spangate(), &spangate(), &Mesh::secured());
}

#[test]
fn an_exchange_of_the_program_keeps_entries() {
    let Some(haproxy) = haproxy() else { return };
    for mesh in [Mesh::reserve(), Mesh::secured()] {
        reload(&haproxy, &spangate(), &mesh);
        reload(&spangate(), &haproxy, &mesh);
    }
}

/// Peers that are no peers do not disturb the others, nor requests.
#[test]
fn bad_peers_disturb_nobody() {
    let mesh = Mesh::reserve();
    let a = Node::start(&spangate(), &mesh, "A", &[]);
    let connect = || TcpStream::connect(mesh.address("A")).expect("the peers' port");
    let garbage = [
        &b"HAProxyS 2.1\nA\nB 1 1\n"[..],
        &[10, 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ]
    .concat();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], &garbage] {
        let mut stream = connect();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        let _ = stream.write_all(bytes);
        // It is answered and closed.
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.is_empty());
    }
    let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
    assert_eq!(a.get("/"), 200);
    let b = Node::start(&spangate(), &mesh, "B", &[]);
    follows(&a, &b, "x");
    follows(&b, &a, "y");
    drop(silent);
    a.stop();
    b.stop();
}
