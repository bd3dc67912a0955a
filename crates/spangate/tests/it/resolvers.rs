//! Names that are resolved while the process runs (manual §5.3, §4.4 do-resolve).

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};

use crate::commands::{named, start};
use crate::common::dns::{NXDOMAIN, NameServer, Record, ip};
use crate::common::http::{Client, Message};
use crate::common::origin::{Origin, ok};
use crate::common::{DEFAULTS, Folder, accept, address, eventually, listener};

/// A section with short times, whose name server is `server`.
fn section(server: &NameServer) -> String {
    format!(
        "resolvers dns\n nameserver one {}\n timeout resolve 100ms\n timeout retry 100ms\n resolve_retries 1\n\
         hold nx 0\n hold refused 0\n hold timeout 300ms\n hold other 0\n hold obsolete 0\n",
        server.at
    )
}

fn get(front: &TcpListener, host: &str) -> Message {
    let mut client = Client::connect(address(front));
    client.send(format!(
        "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    ));
    client.response().expect("an answer")
}

/// Asks until the answer is this one.
fn until_answer(front: &TcpListener, status: u16, body: &str) {
    eventually(&format!("{status} {body}"), || {
        let answer = get(front, "t");
        (answer.status == status && answer.text().starts_with(body)).then_some(())
    });
}

/// The fields of a server in `show servers state`: name, address, administrative state, name of the
/// host, port, service.
fn states(text: &str) -> Vec<[String; 6]> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with(['1', '#']) || line.len() > 40);
    let lines = lines.filter(|line| !line.starts_with('#') && line.contains(' '));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            [3, 4, 6, 17, 18, 19].map(|place| fields[place].to_owned())
        })
        .collect()
}

fn is_state(found: &[[String; 6]], expected: &[[&str; 6]]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| found == expected)
}

#[test]
fn a_server_follows_its_name() {
    let (front, stats) = (listener(), listener());
    let (dns, one) = (NameServer::start(), named("one"));
    let port = one.at.port();
    dns.set("app.test", &[]);
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n server s app.test:{port} resolvers dns init-addr none resolve-prefer ipv4\n\
         frontend stats\n bind \"fd@${{STATS}}\"\n http-request use-service prometheus-exporter\n",
        section(&dns)
    );
    let (proxy, ask) = start(&config, &[("FRONT", &front), ("STATS", &stats)]);
    until_answer(&front, 503, "");
    dns.set("app.test", &[ip("127.0.0.1")]);
    until_answer(&front, 200, "one");
    let state =
        |addr, admin| ["s", addr, admin, "app.test", &*port.to_string(), "-"].map(str::to_owned);
    assert_eq!(
        states(&ask("show servers state l")),
        [state("127.0.0.1", "0")]
    );
    // A server that answers at another address.
    dns.set("app.test", &[ip("127.0.0.2")]);
    eventually("the other address", || {
        (states(&ask("show servers state l")) == [state("127.0.0.2", "0")]).then_some(())
    });
    // The name vanishes: nothing is held here.
    dns.fail("app.test", NXDOMAIN);
    until_answer(&front, 503, "");
    assert_eq!(states(&ask("show servers state l")), [state("-", "32")]);
    dns.set("app.test", &[ip("127.0.0.1")]);
    until_answer(&front, 200, "one");
    // A name server that does not answer changes nothing within its hold period, and takes the
    // server down after it.
    dns.mute("app.test");
    until_answer(&front, 503, "");
    let counters = ask("show resolvers dns");
    assert!(
        counters.starts_with("Resolvers section dns\n nameserver one:\n  sent:        "),
        "{counters}"
    );
    for name in ["valid", "nx", "timeout"] {
        let line = counters
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name}:")));
        assert!(
            line.is_some_and(|line| !line.ends_with(" 0")),
            "{name}: {counters}"
        );
    }
    assert_eq!(
        ask("show resolvers other"),
        "Can't find that resolvers section\n"
    );
    proxy.running.signal(libc::SIGTERM);
    let told = proxy.running.end().stderr;
    for text in [
        "l/s: IP changed from '(none)' to '127.0.0.1' by 'dns/one'.",
        "Server l/s ('app.test') is UP/READY (resolves again).",
        "Server l/s administratively READY thanks to valid DNS answer.",
        "l/s: IP changed from '127.0.0.1' to '127.0.0.2' by 'dns/one'.",
        "Server l/s is going DOWN for maintenance (DNS NX status).",
        "Server l/s is going DOWN for maintenance (DNS timeout status).",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

#[test]
fn a_template_takes_the_addresses_of_a_name() {
    let (front, dns) = (listener(), NameServer::start());
    dns.set("app.test", &[ip("127.0.0.1"), ip("127.0.0.2")]);
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n server-template t 3 app.test:80 resolvers dns init-addr none resolve-prefer ipv4\n",
        section(&dns)
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    let shows = |expected: &[[&str; 6]]| {
        eventually(&format!("{expected:?}"), || {
            is_state(&states(&ask("show servers state l")), expected).then_some(())
        });
    };
    let up = |name, ip| [name, ip, "0", "app.test", "80", "-"];
    let down = |name| [name, "-", "32", "app.test", "80", "-"];
    shows(&[up("t1", "127.0.0.1"), up("t2", "127.0.0.2"), down("t3")]);
    dns.set(
        "app.test",
        &[ip("127.0.0.2"), ip("127.0.0.3"), ip("127.0.0.4")],
    );
    // Servers keep the addresses that remain.
    eventually("three addresses", || {
        let found = states(&ask("show servers state l"));
        let mut addresses: Vec<&str> = found.iter().map(|state| &*state[1]).collect();
        let keeps = addresses[1] == "127.0.0.2";
        addresses.sort_unstable();
        (keeps && addresses == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]).then_some(())
    });
}

#[test]
fn services_give_hosts_ports_and_weights() {
    let (front, dns) = (listener(), NameServer::start());
    let (one, two) = (named("one"), named("two"));
    let service = |weight, at: SocketAddr, host| Record::Service(weight, at.port(), host);
    dns.set("a.test", &[ip("127.0.0.1")]);
    dns.set("b.test", &[ip("127.0.0.1")]);
    dns.set(
        "_http._tcp.app.test",
        &[
            service(256, one.at, "a.test"),
            service(2560, two.at, "b.test"),
        ],
    );
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n server-template w 3 _http._tcp.app.test resolvers dns init-addr none resolve-prefer ipv4\n",
        section(&dns)
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    let name = "_http._tcp.app.test";
    let (port_one, port_two) = (one.at.port().to_string(), two.at.port().to_string());
    let found = eventually("both services", || {
        let found = states(&ask("show servers state l"));
        let up = found.iter().filter(|state| state[1] == "127.0.0.1").count();
        (up == 2).then_some(found)
    });
    let mut hosts: Vec<[&str; 3]> = found
        .iter()
        .map(|state| [&*state[3], &*state[4], &*state[5]])
        .collect();
    hosts.sort_unstable();
    let mut expected = [
        ["-", "0", name],
        ["a.test", &*port_one, name],
        ["b.test", &*port_two, name],
    ];
    expected.sort_unstable();
    assert_eq!(hosts, expected);
    let weight = |host: &str| {
        let place = found
            .iter()
            .position(|state| state[3] == host)
            .expect("a server");
        ask(&format!("get weight l/w{}", place + 1))
            .trim_end()
            .to_owned()
    };
    assert_eq!(weight("a.test"), "1 (initial 1)");
    assert_eq!(weight("b.test"), "10 (initial 1)");
    // One of them ends: only the other one gets requests.
    dns.set("_http._tcp.app.test", &[service(256, two.at, "b.test")]);
    eventually("one service", || {
        let found = states(&ask("show servers state l"));
        let up = found.iter().filter(|state| state[1] == "127.0.0.1").count();
        (up == 1).then_some(())
    });
    for _ in 0..4 {
        assert_eq!(get(&front, "t").text(), "two");
    }
}

#[test]
fn a_user_gives_a_server_another_name() {
    let (front, dns, one) = (listener(), NameServer::start(), named("one"));
    dns.set("new.test", &[ip("127.0.0.1")]);
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n server s 127.0.0.9:{} resolvers dns resolve-prefer ipv4\n server plain 127.0.0.1:1\n server srv _a._tcp.b resolvers dns\n",
        section(&dns),
        one.at.port()
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    for (line, answer) in [
        (
            "set server l/s fqdn",
            "set server <b>/<s> fqdn requires a FQDN.\n",
        ),
        (
            "set server l/plain fqdn a",
            "set server <b>/<s> fqdn failed because no resolution is configured.\n",
        ),
        (
            "set server l/srv fqdn a",
            "set server <b>/<s> fqdn failed because SRV resolution is configured.\n",
        ),
        (
            "set server l/s fqdn a/b",
            "invalid fqdn 'a/b' by 'stats socket command'\n",
        ),
        (
            "set server l/s fqdn a..b",
            "could not update l/s FQDN by 'stats socket command'\n",
        ),
        (
            "set server l/s fqdn new.test",
            "l/s changed its FQDN from (null) to new.test by 'stats socket command'\n",
        ),
        (
            "set server l/s fqdn new.test",
            "no need to change the FDQN by 'stats socket command'\n",
        ),
    ] {
        assert_eq!(ask(line), answer, "{line}");
    }
    eventually("the address of the new name", || {
        let found = states(&ask("show servers state l"));
        let server = &found[0];
        (server[1] == "127.0.0.1" && server[2] == "64" && server[3] == "new.test").then_some(())
    });
}

#[test]
fn rules_wait_for_addresses() {
    let (front, tcp, dns, one) = (listener(), listener(), NameServer::start(), named("one"));
    dns.set("one.test", &[ip("127.0.0.1")]);
    dns.fail("refused.test", 5);
    dns.mute("mute.test");
    let port = one.at.port();
    let config = format!(
        "{}frontend f\n bind \"fd@${{FRONT}}\"\n\
         http-request do-resolve(txn.ip,dns,ipv4) req.hdr(host),host_only\n\
         http-request return status 502 if !{{ var(txn.ip) -m found }}\n\
         default_backend b\n\
         backend b\n http-request set-dst var(txn.ip)\n server s 0.0.0.0:{port}\n\
         listen t\n mode tcp\n bind \"fd@${{TCP}}\"\n tcp-request inspect-delay 5s\n\
         tcp-request content reject unless HTTP\n\
         tcp-request content do-resolve(sess.a,dns,ipv4) str(one.test)\n\
         tcp-request content do-resolve(sess.b,dns,ipv4) str(refused.test)\n\
         tcp-request content reject unless {{ var(sess.a) -m ip 127.0.0.1 }}\n\
         tcp-request content reject if {{ var(sess.b) -m found }}\n\
         tcp-request content set-dst var(sess.a)\n server s 0.0.0.0:{port}\n",
        section(&dns)
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front), ("TCP", &tcp)]);
    for (host, status) in [
        ("one.test", 200),
        ("one.test:80", 200),
        ("refused.test", 502),
        ("unknown.test", 502),
        ("mute.test", 502),
        ("..", 502),
        ("one.test", 200),
    ] {
        assert_eq!(get(&front, host).status, status, "{host}");
    }
    assert_eq!(get(&tcp, "x").text(), "one");
    // A client that leaves during its lookup takes nothing along.
    let mut gone = Client::connect(address(&front));
    gone.send("GET / HTTP/1.1\r\nhost: mute.test\r\n\r\n");
    drop(gone);
    eventually("no streams", || {
        let info = ask("show info");
        info.contains("\nCurrConns: 1\n")
            .then_some(())
            .or_else(|| info.contains("\nCurrConns: 0\n").then_some(()))
    });
    assert_eq!(get(&front, "one.test").status, 200);
}

/// Targets of services are hosts, whatever they are called: nothing recurs.
#[test]
fn services_that_name_services_end_nowhere() {
    let (front, dns) = (listener(), NameServer::start());
    let one = named("one");
    let port = one.at.port();
    dns.set("_a._tcp.test", &[Record::Service(1, port, "_a._tcp.test")]);
    dns.set("_b._tcp.test", &[Record::Service(1, port, "_c._tcp.test")]);
    dns.set("_c._tcp.test", &[Record::Service(1, port, "_b._tcp.test")]);
    dns.set("_d._tcp.test", &[Record::Service(1, port, "_host.test")]);
    dns.set("_host.test", &[ip("127.0.0.1")]);
    let template = |name: &str, service: &str| {
        format!(
            " server-template {name} 3 {service} resolvers dns init-addr none resolve-prefer ipv4\n"
        )
    };
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n{}{}{}{}",
        section(&dns),
        template("a", "_a._tcp.test"),
        template("b", "_b._tcp.test"),
        template("c", "_c._tcp.test"),
        template("d", "_d._tcp.test"),
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    until_answer(&front, 200, "one");
    let found = states(&ask("show servers state l"));
    let up: Vec<&str> = found
        .iter()
        .filter(|state| state[1] != "-")
        .map(|state| &*state[0])
        .collect();
    assert_eq!(up, ["d1"], "{found:?}");
}

#[test]
fn servers_that_prefer_different_families_share_a_name() {
    let (front, dns) = (listener(), NameServer::start());
    dns.set("dual.test", &[ip("127.0.0.31"), ip("::1"), ip("0.0.0.0")]);
    let config = format!(
        "{}listen l\n bind \"fd@${{FRONT}}\"\n server four dual.test:1 resolvers dns init-addr none resolve-prefer ipv4\n server six dual.test:1 resolvers dns init-addr none resolve-prefer ipv6\n server other dual.test:1 resolvers dns init-addr none resolve-prefer ipv4\n",
        section(&dns)
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    eventually("both families", || {
        let found = states(&ask("show servers state l"));
        let addresses: Vec<&str> = found.iter().map(|state| &*state[1]).collect();
        (addresses == ["127.0.0.31", "::1", "-"]).then_some(())
    });
    let rows = ask("show stat l 4 -1");
    assert!(rows.contains("MAINT (resolution)"), "{rows}");
}

/// A client that leaves takes its lookup along.
#[test]
fn clients_that_leave_end_their_lookups() {
    let (front, dns) = (listener(), NameServer::start());
    dns.mute("mute.test");
    let config = format!(
        "resolvers dns\n nameserver one {}\n timeout retry 20s\nfrontend f\n bind \"fd@${{FRONT}}\"\n\
         http-request do-resolve(txn.ip,dns,ipv4) req.hdr(host)\n http-request return status 200\n",
        dns.at
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    let clients: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = Client::connect(address(&front));
            client.send("GET / HTTP/1.1\r\nhost: mute.test\r\n\r\n");
            client
        })
        .collect();
    let shows = |count: usize| {
        eventually(&format!("{count} clients"), || {
            let text = ask("show stat f 1 -1");
            let row = text.lines().find(|line| line.starts_with("f,FRONTEND,"))?;
            (row.split(',').nth(4) == Some(&*count.to_string())).then_some(())
        });
    };
    shows(20);
    drop(clients);
    shows(0);
}

/// Requests that wait for any server fail when there is none left.
#[test]
fn the_queue_of_a_backend_without_servers_empties() {
    let front = listener();
    let (origin, held, release) = Origin::holding(|_| ok("held"));
    let config = format!(
        "listen l\n bind \"fd@${{FRONT}}\"\n timeout queue 30s\n server s {} maxconn 1\n",
        origin.at
    );
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    let mut first = Client::connect(address(&front));
    first.send("GET /hold HTTP/1.1\r\nhost: t\r\n\r\n");
    accept(&held, "the held request");
    let mut second = Client::connect(address(&front));
    second.send("GET / HTTP/1.1\r\nhost: t\r\n\r\n");
    eventually("a request waits", || {
        let text = ask("show stat l 2 -1");
        let row = text.lines().find(|line| line.starts_with("l,BACKEND,"))?;
        (row.split(',').nth(2) == Some("1")).then_some(())
    });
    assert_eq!(ask("set server l/s state maint"), "");
    assert_eq!(second.response().expect("an answer").status, 503);
    accept(&release, "the origin")
        .write_all(b"x")
        .expect("it goes on");
    assert_eq!(first.response().expect("an answer").status, 200);
}

/// A name that a user set, and the hosts of services, outlive a process.
#[test]
fn a_state_file_restores_names_and_addresses() {
    let (front, dns, one) = (listener(), NameServer::start(), named("one"));
    let folder = Folder::new();
    let port = one.at.port();
    let text = format!(
        "1\n# header\n\
         3 l 1 s 127.0.0.1 2 64 1 1 9 1 0 0 0 0 0 0 new.test {port} - 0 0 - - 0\n\
         3 l 2 w1 127.0.0.1 2 64 1 1 9 1 0 0 0 0 0 0 h.test {port} _a._tcp.test 0 0 - - 0\n"
    );
    let file = folder.write("states", text);
    let config = format!(
        "resolvers dns\n nameserver one {}\nglobal\n server-state-file {file}\n{DEFAULTS} load-server-state-from-file global\n\
         listen l\n bind \"fd@${{FRONT}}\"\n server s old.test:{port} resolvers dns init-addr last,none resolve-prefer ipv4\n\
         server-template w 1 _a._tcp.test resolvers dns init-addr last,none resolve-prefer ipv4\n",
        dns.at
    );
    for name in ["new.test", "h.test", "_a._tcp.test"] {
        dns.mute(name);
    }
    let (_proxy, ask) = start(&config, &[("FRONT", &front)]);
    let port = &*port.to_string();
    let found = states(&ask("show servers state l"));
    let expected = [
        ["s", "127.0.0.1", "64", "new.test", port, "-"],
        ["w1", "127.0.0.1", "64", "h.test", port, "_a._tcp.test"],
    ];
    assert!(is_state(&found, &expected), "{found:?}");
    for _ in 0..2 {
        assert_eq!(get(&front, "t").text(), "one");
    }
}
