//! Lookups with scripted nameservers on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::run::tests::nameserver::{Reaction, Scripted, closed_port};
use crate::scripted::{
    NXDOMAIN, REFUSED, Record, Reply, SERVFAIL, TYPE_A, TYPE_AAAA, question, type_of,
};

const KUBERNETES: &str = "search ns.svc.test svc.test test\noptions ndots:5 attempts:1\n";
const HOSTS: &str = "10.1.0.1 known.test known\n::1 localhost\n127.0.0.1 localhost\n";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The name that a query asks for.
fn name_of(query: &[u8]) -> String {
    let mut rest = question(query);
    let mut labels = Vec::new();
    while let [length, inside @ ..] = rest
        && *length > 0
    {
        let (label, after) = inside.split_at(usize::from(*length));
        labels.push(String::from_utf8(label.to_vec()).unwrap());
        rest = after;
    }
    labels.join(".")
}

/// A nameserver that notes what it is asked.
struct Noted {
    server: Scripted,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Noted {
    fn start(reply: impl Fn(&str, u16) -> Option<Reply> + Send + 'static) -> Noted {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let notes = Arc::clone(&asked);
        let server = Scripted::udp(move |query| {
            let name = name_of(query);
            notes.lock().unwrap().push(name.clone());
            match reply(&name, type_of(query)) {
                Some(reply) => Reaction::reply(&reply, query),
                None => Reaction::Silence,
            }
        });
        Noted { server, asked }
    }

    /// One name with an address of each family; other names do not exist.
    fn of(only: &'static str) -> Noted {
        Noted::start(move |name, record_type| {
            Some(match (name == only, record_type) {
                (true, TYPE_A) => Reply::of(vec![Record::a(only, "10.0.0.1")]),
                (true, TYPE_AAAA) => Reply::of(vec![Record::aaaa(only, "2001:db8::1")]),
                (true, _) | (false, _) => Reply::error(NXDOMAIN),
            })
        })
    }

    /// The names in the questions since the last call. Each name is asked for twice, and listed
    /// once.
    fn names(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.dedup();
        asked
    }
}

fn system(conf: &str, nameservers: &[SocketAddr]) -> System {
    let mut conf = parse_resolv_conf(conf);
    conf.nameservers = nameservers
        .iter()
        .map(|&address| Nameserver {
            name: address.to_string(),
            address,
            transport: Transport::Udp,
        })
        .collect();
    System::new(Hosts::parse(HOSTS), conf, "host.own.test")
}

/// The addresses, sorted.
fn look_up(system: &System, host: &str) -> Result<Vec<IpAddr>, LookupError> {
    let found = system.lookup_blocking(host, 4317)?;
    assert!(found.iter().all(|address| address.port() == 4317));
    let mut addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    addresses.sort();
    Ok(addresses)
}

#[test]
fn addresses_are_their_own_answer() {
    let server = Noted::of("x.test");
    let system = system("", &[server.server.address]);
    for (host, address) in [
        ("10.0.0.9", "10.0.0.9:4317"),
        ("2001:db8::9", "[2001:db8::9]:4317"),
        ("[2001:db8::9]", "[2001:db8::9]:4317"),
        ("fe80::1%2", "[fe80::1%2]:4317"),
    ] {
        let found = system.lookup_blocking(host, 4317).unwrap();
        assert_eq!(found, [address.parse().unwrap()], "{host}");
    }
    for host in ["", "a b", "a..b", ".", "*", "[10.0.0.9", "10.0.0.9:80"] {
        let found = look_up(&system, host);
        assert!(
            matches!(found, Err(LookupError::NotAName(_))),
            "{host}: {found:?}"
        );
    }
    // What looks like an address and is none is not asked for.
    for host in ["10.0.0", "1", "10.0.0.256"] {
        assert_eq!(look_up(&system, host), Err(LookupError::NotFound), "{host}");
    }
    assert!(server.names().is_empty());
}

#[test]
fn localhost_is_never_asked_for() {
    let server = Noted::of("localhost");
    let system = system(KUBERNETES, &[server.server.address]);
    let loopback = [ip("127.0.0.1"), ip("::1")];
    for host in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert_eq!(look_up(&system, host).unwrap(), loopback, "{host}");
    }
    assert!(server.names().is_empty());
    // A file of hosts may have one family; another address does not count.
    let mut limited = self::system(KUBERNETES, &[server.server.address]);
    limited.hosts = Hosts::parse("10.0.0.1 localhost\n127.0.0.1 localhost\n");
    assert_eq!(look_up(&limited, "localhost").unwrap(), [ip("127.0.0.1")]);
    assert!(look_up(&limited, "localhost.test").is_err());
}

#[test]
fn the_file_of_hosts_comes_before_nameservers() {
    let server = Noted::of("known.test");
    let system = system(KUBERNETES, &[server.server.address]);
    for host in ["known", "Known.Test", "known.test."] {
        assert_eq!(look_up(&system, host).unwrap(), [ip("10.1.0.1")], "{host}");
    }
    assert!(server.names().is_empty());
}

#[test]
fn the_search_list_is_gone_through_in_order() {
    let server = Noted::of("otel.svc.test");
    let system = system(KUBERNETES, &[server.server.address]);
    let both = [ip("10.0.0.1"), ip("2001:db8::1")];
    assert_eq!(look_up(&system, "otel").unwrap(), both);
    assert_eq!(server.names(), ["otel.ns.svc.test", "otel.svc.test"]);
    assert_eq!(look_up(&system, "otel.svc").unwrap(), both);
    let asked = ["otel.svc.ns.svc.test", "otel.svc.svc.test"];
    assert_eq!(server.names(), asked, "the rest is known");
    assert_eq!(look_up(&system, "otel.svc."), Err(LookupError::NotFound));
    assert_eq!(server.names(), ["otel.svc"]);
    assert_eq!(look_up(&system, "none"), Err(LookupError::NotFound));
    let asked = ["none.ns.svc.test", "none.svc.test", "none.test", "none"];
    assert_eq!(server.names(), asked);
    // Negative answers are kept too.
    assert_eq!(look_up(&system, "none"), Err(LookupError::NotFound));
    assert!(server.names().is_empty());
}

#[test]
fn a_name_with_enough_dots_is_asked_for_as_it_is_first() {
    let server = Noted::of("www.example");
    let system = system("search a.test\n", &[server.server.address]);
    assert_eq!(look_up(&system, "www.example").unwrap().len(), 2);
    assert_eq!(server.names(), ["www.example"]);
    assert!(look_up(&system, "w3.example").is_err());
    assert_eq!(server.names(), ["w3.example", "w3.example.a.test"]);
}

/// The next search domain is tried after an empty answer, an unknown name and a failure of the
/// nameserver. It is not tried after a refusal.
#[test]
fn errors_decide_whether_the_search_goes_on() {
    let server = Noted::start(|name, record_type| {
        Some(match (name, record_type) {
            ("empty.ns.svc.test", _) => Reply::default(),
            ("broken.ns.svc.test", _) => Reply::error(SERVFAIL),
            ("closed.ns.svc.test", _) => Reply::error(REFUSED),
            ("broken.svc.test" | "closed.svc.test", TYPE_A) => {
                Reply::of(vec![Record::a(name, "10.0.0.1")])
            }
            (_, _) => Reply::error(NXDOMAIN),
        })
    });
    let system = system(KUBERNETES, &[server.server.address]);
    assert_eq!(look_up(&system, "empty"), Err(LookupError::NoAddress));
    assert_eq!(server.names().len(), 4);
    assert_eq!(look_up(&system, "broken").unwrap(), [ip("10.0.0.1")]);
    assert_eq!(server.names().len(), 2);
    assert_eq!(look_up(&system, "closed"), Err(LookupError::Refused));
    assert_eq!(server.names(), ["closed.ns.svc.test"]);
}

#[test]
fn nameservers_that_do_not_answer_are_passed_over() {
    let silent = Noted::start(|_, _| None);
    let server = Noted::of("otel.test");
    let nameservers = [silent.server.address, closed_port(), server.server.address];
    let mut system = system(KUBERNETES, &nameservers);
    system.section.timeout_retry_ms = 30;
    let both = [ip("10.0.0.1"), ip("2001:db8::1")];
    assert_eq!(look_up(&system, "otel.test.").unwrap(), both);
    let mut alone = self::system(KUBERNETES, &[silent.server.address]);
    alone.section.timeout_retry_ms = 30;
    silent.names();
    // What did not answer once is not asked for all domains.
    assert_eq!(look_up(&alone, "otel"), Err(LookupError::Timeout));
    assert_eq!(silent.names(), ["otel.ns.svc.test"]);
}

/// There are nameservers that drop questions for IPv6.
#[test]
fn a_family_without_an_answer_does_not_delay_the_other_one_for_long() {
    let server = Noted::start(|name, record_type| {
        (record_type == TYPE_A).then(|| Reply::of(vec![Record::a(name, "10.0.0.1")]))
    });
    let system = system("options timeout:30", &[server.server.address]);
    let begin = Instant::now();
    assert_eq!(look_up(&system, "otel.").unwrap(), [ip("10.0.0.1")]);
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_lookup_that_is_given_up_is_forgotten() {
    let server = Noted::start(|_, _| None);
    let system = system("options timeout:30", &[server.server.address]);
    let asked = tokio::time::timeout(Duration::from_millis(20), system.lookup("otel.", 1));
    assert!(asked.await.is_err());
    let handle = system.handle().unwrap();
    let begin = Instant::now();
    while handle.waiting() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(40));
        tokio::task::yield_now().await;
    }
}

/// The dashboard carries out commands on a thread that its runtime lends.
#[tokio::test]
async fn a_thread_of_a_runtime_may_wait() {
    let server = Noted::of("otel.test");
    let system = system(KUBERNETES, &[server.server.address]);
    let found = tokio::task::spawn_blocking(move || look_up(&system, "otel.test."));
    assert_eq!(found.await.unwrap().map(|found| found.len()), Ok(2));
}

#[test]
fn files_are_read_once_and_may_be_missing() {
    let folder = std::env::temp_dir().join(format!("spangate-system-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files = Files {
        hosts: folder.join("hosts"),
        resolv_conf: folder.join("resolv.conf"),
        hostname: folder.join("hostname"),
    };
    let without = System::open(&files);
    assert_eq!(without.section.nameservers.len(), 1);
    assert_eq!(
        without.section.nameservers[0].address,
        "127.0.0.1:53".parse().unwrap()
    );
    assert_eq!(without.section.timeout_retry_ms, 5000);
    let loopback = [ip("127.0.0.1"), ip("::1")];
    assert_eq!(look_up(&without, "localhost").unwrap(), loopback);
    std::fs::write(&files.hosts, b"10.1.0.1 a.test\n\xff\n10.1.0.2 b.test\n").unwrap();
    let nameservers = "nameserver 10.0.0.1\n".to_owned()
        + "nameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n";
    std::fs::write(
        &files.resolv_conf,
        nameservers + "options timeout:2 attempts:3\n",
    )
    .unwrap();
    std::fs::write(&files.hostname, "host.own.test\n").unwrap();
    let system = System::open(&files);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(look_up(&system, "b.test").unwrap(), [ip("10.1.0.2")]);
    assert_eq!(system.section.nameservers.len(), NAMESERVERS_MAX);
    assert_eq!(
        (
            system.section.timeout_retry_ms,
            system.section.resolve_retries
        ),
        (2000, 3)
    );
    let name = Name::parse("x").unwrap();
    let candidates = system.search.candidates(&name, false);
    assert_eq!(candidates[0].as_str(), "x.own.test");
}

#[test]
fn families_are_in_the_order_of_routes() {
    let v4 = [ip("127.0.0.1"), ip("127.0.0.2")];
    assert_eq!(in_order(v4.to_vec()), v4);
    // Documentation addresses may have a route or none; loopback of version 4 always has one.
    let mixed = in_order(vec![v4[0], ip("::1"), v4[1]]);
    let expected = if has_route(ip("::1")) {
        [ip("::1"), v4[0], v4[1]]
    } else {
        [v4[0], v4[1], ip("::1")]
    };
    assert_eq!(mixed, expected);
}
