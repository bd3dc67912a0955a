//! The runner with scripted nameservers on loopback.

pub(crate) mod nameserver;

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nameserver::{Reaction, Scripted};
use tokio::time::Instant;

use super::*;
use crate::resolver::Status;
use crate::scripted::{NXDOMAIN, Record, Reply, TYPE_AAAA, question, type_of};
use crate::section::{Nameserver, Transport};

const HOST: &str = "www.example.com";

/// Most time for any wait.
const DEADLINE: Duration = Duration::from_secs(40);

const ADDRESS: Question = Question::Address { prefer: Family::V4 };

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn section(nameservers: &[(SocketAddr, Transport)]) -> Section {
    let nameservers = nameservers.iter().enumerate();
    Section {
        nameservers: nameservers
            .map(|(index, &(address, transport))| Nameserver {
                name: format!("ns{index}"),
                address,
                transport,
            })
            .collect(),
        // Short, so that tests see many resolutions.
        timeout_resolve_ms: 20,
        timeout_retry_ms: 500,
        ..Section::new("test")
    }
}

struct World {
    runner: Runner,
    events: Receiver<SubscriptionEvent>,
}

impl World {
    fn start(section: Section) -> World {
        let (sender, events) = channel();
        let setup = Setup {
            sections: vec![section],
            random: Box::new(|| RandomState::new().hash_one(0)),
            on_event: Box::new(move |event| {
                let _ = sender.send(event);
            }),
        };
        let runner = Runner::start(setup).unwrap();
        World { runner, events }
    }

    fn subscribe(&self, host: &str) -> SubscriptionId {
        self.runner.handle().subscribe(0, name(host), ADDRESS)
    }

    fn outcome(&self) -> Outcome {
        self.events.recv_timeout(DEADLINE).unwrap().outcome
    }

    /// The addresses of the next event, which must be valid.
    fn addresses(&self) -> Vec<IpAddr> {
        match self.outcome() {
            Outcome::Found { records, .. } => records.addresses.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn ask(&self, host: &str) -> Receiver<Option<IpAddr>> {
        let (sender, answer) = channel();
        self.runner
            .handle()
            .ask(0, name(host), Family::V4, move |address| {
                let _ = sender.send(address);
            });
        answer
    }

    fn counters(&self, nameserver: usize) -> Counters {
        self.runner.handle().snapshot()[0].nameservers[nameserver].counters
    }

    #[expect(clippy::disallowed_methods, reason = "counters have no events")]
    fn await_counters(&self, nameserver: usize, is_reached: impl Fn(Counters) -> bool) {
        let begin = Instant::now();
        while !is_reached(self.counters(nameserver)) {
            assert!(
                begin.elapsed() < DEADLINE,
                "{:?}",
                self.counters(nameserver)
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn one(address: &str) -> Reply {
    Reply::of(vec![Record::a(HOST, address)])
}

#[test]
fn a_name_is_resolved_again_and_again() {
    let server = Scripted::udp(|query| Reaction::reply(&one("10.0.0.1"), query));
    let world = World::start(section(&[(server.address, Transport::Udp)]));
    let subscription = world.subscribe(HOST);
    for _ in 0..3 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    world.runner.handle().count_update(0, 0);
    world.await_counters(0, |counters| counters.update == 1);
    let view = &world.runner.handle().snapshot()[0];
    assert_eq!(view.name, "test");
    assert_eq!(view.nameservers[0].address, server.address);
    assert!(view.nameservers[0].counters.valid >= 3);
    world.runner.handle().unsubscribe(subscription);
    world.runner.stop();
    assert!(server.queries() >= 3);
}

#[test]
fn questions_are_answered_once() {
    let server = Scripted::udp(|query| {
        let reply = if question(query).starts_with(b"\x03www") {
            one("10.0.0.1")
        } else {
            Reply::error(NXDOMAIN)
        };
        Reaction::reply(&reply, query)
    });
    let world = World::start(section(&[(server.address, Transport::Udp)]));
    let first = world.ask(HOST).recv_timeout(DEADLINE).unwrap();
    assert_eq!(first, Some(ip("10.0.0.1")));
    let queries = server.queries();
    let cached = world
        .ask("WWW.example.com.")
        .recv_timeout(DEADLINE)
        .unwrap();
    assert_eq!(cached, first);
    assert_eq!(server.queries(), queries);
    let missing = world.ask("missing.example.com").recv_timeout(DEADLINE);
    assert_eq!(missing, Ok(None));
    let handle = world.runner.handle();
    let (sender, answer) = channel();
    handle.ask(9, name(HOST), Family::V4, move |address| {
        sender.send(address).unwrap();
    });
    assert_eq!(answer.recv_timeout(DEADLINE), Ok(None), "no such section");
    assert!(answer.recv_timeout(DEADLINE).is_err(), "called once");
    assert_eq!(handle.shared.questions.load(Ordering::Relaxed), 0);
}

#[test]
fn at_the_end_questions_get_no_address() {
    let server = Scripted::udp(|_| Reaction::Silence);
    let world = World::start(section(&[(server.address, Transport::Udp)]));
    let (sender, cancelled) = channel();
    let handle = world.runner.handle();
    let question = handle.ask(0, name(HOST), Family::V4, move |address| {
        sender.send(address).unwrap();
    });
    handle.cancel(question);
    let waiting = world.ask(HOST);
    world.await_counters(0, |counters| counters.sent > 0);
    world.runner.stop();
    assert_eq!(waiting.recv_timeout(DEADLINE), Ok(None));
    assert!(cancelled.recv_timeout(DEADLINE).is_err());
    let (sender, late) = channel();
    handle.ask(0, name(HOST), Family::V4, move |address| {
        sender.send(address).unwrap();
    });
    assert_eq!(late.recv_timeout(DEADLINE), Ok(None));
    assert_eq!(handle.shared.questions.load(Ordering::Relaxed), 0);
}

#[test]
fn a_truncated_answer_comes_over_tcp() {
    let large = || {
        let record = |at: u16| Record::a(HOST, &format!("10.0.{}.{}", at / 256, at % 256));
        Reply::of((0..1500).map(record).collect())
    };
    let server = Scripted::both(
        |query| {
            let reply = Reply {
                is_truncated: true,
                ..Reply::default()
            };
            Reaction::reply(&reply, query)
        },
        move |query| Reaction::reply(&large(), query),
    );
    let world = World::start(section(&[(server.address, Transport::Udp)]));
    world.subscribe(HOST);
    assert_eq!(world.addresses().len(), 1500);
    assert_eq!(world.addresses().len(), 1500);
    let counters = world.counters(0);
    assert!(counters.truncated >= 2 && counters.snd_error == 0);
    assert_eq!(server.connections(), 1);
}

#[test]
fn queries_share_a_connection_and_answers_come_in_pieces() {
    let server = Scripted::tcp(|query| {
        let name = crate::scripted::question(query);
        let host = format!("h{}", name[2] - b'0');
        let reply = Reply::of(vec![Record::a(&host, "10.0.0.1")]);
        Reaction::InPieces(reply.to(query))
    });
    let mut settings = section(&[(server.address, Transport::Tcp)]);
    settings.timeout_resolve_ms = 60_000;
    let world = World::start(settings);
    for host in 0..10 {
        world.subscribe(&format!("h{host}"));
    }
    for _ in 0..10 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(world.counters(0).sent, 10);
}

/// A nameserver that closes its connection after each answer loses no query.
#[test]
fn a_connection_that_ends_is_replaced() {
    let server = Scripted::tcp(|query| Reaction::Last(one("10.0.0.1").to(query)));
    let mut settings = section(&[(server.address, Transport::Tcp)]);
    settings.timeout_retry_ms = 30_000;
    let world = World::start(settings);
    world.subscribe(HOST);
    for _ in 0..5 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    assert!(server.connections() >= 5);
}

/// A nameserver may close a connection while a query is on the way: the query is sent again.
#[test]
fn a_query_that_crosses_the_end_of_a_connection_is_repeated() {
    let queries = AtomicUsize::new(0);
    let server = Scripted::tcp(move |query| {
        if queries.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            Reaction::Close
        } else {
            Reaction::reply(&one("10.0.0.1"), query)
        }
    });
    let mut settings = section(&[(server.address, Transport::Tcp)]);
    settings.timeout_retry_ms = 30_000;
    let world = World::start(settings);
    world.subscribe(HOST);
    for _ in 0..5 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    assert_eq!(world.counters(0).snd_error, 0);
    assert!(server.connections() >= 5);
}

/// A nameserver that accepts and closes: the pause between connections holds, queries fail.
#[test]
fn connections_of_no_use_have_pauses_between_them() {
    let server = Scripted::tcp(|_| Reaction::Close);
    let mut settings = section(&[(server.address, Transport::Tcp)]);
    settings.timeout_retry_ms = 5;
    settings.timeout_resolve_ms = 5;
    let begin = Instant::now();
    let world = World::start(settings);
    world.subscribe(HOST);
    for _ in 0..20 {
        assert_eq!(world.outcome(), Outcome::Held(Status::Timeout));
    }
    let connections = server.connections() as u64;
    assert!(connections <= begin.elapsed().as_secs() + 1);
    world.await_counters(0, |counters| counters.snd_error >= 60);
}

#[test]
fn messages_too_big_for_the_section_are_counted() {
    let server = Scripted::tcp(|query| {
        let mut bytes = one("10.0.0.1").to(query);
        bytes.resize(65_535, 0);
        Reaction::Reply(bytes)
    });
    let udp = Scripted::udp(|query| {
        let mut bytes = one("10.0.0.1").to(query);
        bytes.resize(2000, 0);
        Reaction::Reply(bytes)
    });
    let world = World::start(section(&[
        (server.address, Transport::Tcp),
        (udp.address, Transport::Udp),
    ]));
    world.subscribe(HOST);
    for nameserver in 0..2 {
        world.await_counters(nameserver, |counters| counters.too_big > 0);
        assert_eq!(world.counters(nameserver).valid, 0);
    }
}

/// Ports that nobody listens at: a few queries, then the error.
#[test]
fn lost_nameservers_are_asked_at_the_pace_of_retries() {
    let mut settings = section(&[
        (nameserver::closed_port(), Transport::Udp),
        (nameserver::closed_port(), Transport::Tcp),
    ]);
    settings.timeout_retry_ms = 50;
    settings.timeout_resolve_ms = 60_000;
    let world = World::start(settings);
    world.subscribe(HOST);
    assert_eq!(world.outcome(), Outcome::Held(Status::Timeout));
    let udp = world.counters(0);
    assert_eq!(udp.sent + udp.snd_error, 3, "{udp:?}");
    // The connection's failure is known a moment later.
    world.await_counters(1, |tcp| tcp.snd_error == 3 && tcp.sent == 0);
}

#[test]
fn a_nameserver_that_comes_back_is_used_again() {
    let address = nameserver::closed_port();
    let mut settings = section(&[(address, Transport::Tcp)]);
    settings.timeout_retry_ms = 50;
    let world = World::start(settings);
    world.subscribe(HOST);
    assert_eq!(world.outcome(), Outcome::Held(Status::Timeout));
    let server = Scripted::tcp_at(address, |query| Reaction::reply(&one("10.0.0.1"), query));
    let begin = Instant::now();
    while !matches!(world.outcome(), Outcome::Found { .. }) {
        assert!(begin.elapsed() < DEADLINE);
    }
    assert!(server.connections() >= 1);
}

#[test]
fn source_ports_change() {
    let server = Scripted::udp(|query| Reaction::reply(&one("10.0.0.1"), query));
    let mut settings = section(&[(server.address, Transport::Udp)]);
    settings.timeout_resolve_ms = 1;
    let world = World::start(settings);
    world.subscribe(HOST);
    for _ in 0..100 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    assert!(server.ports() >= 3, "{} ports", server.ports());
}

/// Somebody else knows port and id, and answers first.
#[test]
fn answers_from_another_source_are_not_received() {
    let forger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Scripted::udp_from(move |query, from| {
        let forged = one("10.6.6.6").to(query);
        forger.send_to(&forged, from).unwrap();
        Reaction::reply(&one("10.0.0.1"), query)
    });
    let world = World::start(section(&[(server.address, Transport::Udp)]));
    world.subscribe(HOST);
    for _ in 0..5 {
        assert_eq!(world.addresses(), [ip("10.0.0.1")]);
    }
    assert_eq!(world.counters(0).outdated, 0);
}

#[test]
fn families_change_while_it_runs() {
    let server = Scripted::udp(|query| {
        let reply = if type_of(query) == TYPE_AAAA {
            Reply::of(vec![Record::aaaa(HOST, "2001:db8::1")])
        } else {
            Reply::error(NXDOMAIN)
        };
        Reaction::reply(&reply, query)
    });
    let mut settings = section(&[(server.address, Transport::Udp)]);
    settings.families = Families::V4;
    settings.timeout_retry_ms = 20;
    let world = World::start(settings);
    world.subscribe(HOST);
    assert_eq!(world.outcome(), Outcome::Held(Status::Nx));
    world.runner.handle().set_families(Families::Both);
    let begin = Instant::now();
    while world.outcome() == Outcome::Held(Status::Nx) {
        assert!(begin.elapsed() < DEADLINE);
    }
}
