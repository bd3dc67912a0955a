//! A real nameserver: dnsmasq, if it is installed.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use spangate_resolvers::run::{Runner, Setup};
use spangate_resolvers::{
    Family, Name, Nameserver, Outcome, Question, Records, Section, Transport,
};

/// Most time for any wait.
const DEADLINE: Duration = Duration::from_secs(40);

/// Reports that a test is skipped; `make test` counts the lines of the file that SPANGATE_SKIPPED
/// names.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(path) = std::env::var_os("SPANGATE_SKIPPED") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(path)
            .expect("the list of what is skipped");
        writeln!(file, "{why}").expect("a line");
    }
}

struct Dnsmasq {
    process: Child,
    address: SocketAddr,
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "that a program listens has no event"
)]
/// Starts it at a free port. None if it is not installed, or this user may not run it.
fn start(records: &[String]) -> Option<Dnsmasq> {
    for _ in 0..10 {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Command::new("dnsmasq")
            .args([
                "--keep-in-foreground",
                "--no-resolv",
                "--no-hosts",
                "--bind-interfaces",
            ])
            .args([
                "--conf-file=/dev/null",
                "--pid-file=",
                "--listen-address=127.0.0.1",
            ])
            .args([
                "--no-dhcp-interface=lo",
                "--local=/test/",
                "--user=",
                "--group=",
            ])
            .arg(format!("--port={}", address.port()))
            .args(records)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Dnsmasq {
            process: process.ok()?,
            address,
        };
        // The port may have been taken meanwhile.
        let begin = Instant::now();
        while begin.elapsed() < DEADLINE && server.process.try_wait().unwrap().is_none() {
            if std::net::TcpStream::connect(address).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    None
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

struct World {
    runner: Runner,
    events: Receiver<Outcome>,
}

impl World {
    fn start(address: SocketAddr, transport: Transport) -> World {
        let mut section = Section::new("dnsmasq");
        section.nameservers.push(Nameserver {
            name: "local".to_owned(),
            address,
            transport,
        });
        section.resolve_retries = 1;
        section.timeout_retry_ms = 2000;
        section.accepted_payload_bytes = match transport {
            Transport::Udp => 512,
            Transport::Tcp => 65_535,
        };
        let (sender, events) = channel();
        let runner = Runner::start(Setup {
            sections: vec![section],
            random: Box::new(|| RandomState::new().hash_one(0)),
            on_event: Box::new(move |event| {
                let _ = sender.send(event.outcome);
            }),
        });
        World {
            runner: runner.unwrap(),
            events,
        }
    }

    fn outcome(&self, host: &str, question: Question) -> Outcome {
        let handle = self.runner.handle();
        let subscription = handle.subscribe(0, name(host), question);
        let outcome = self.events.recv_timeout(DEADLINE).unwrap();
        handle.unsubscribe(subscription);
        outcome
    }

    fn records(&self, host: &str, question: Question) -> Records {
        match self.outcome(host, question) {
            Outcome::Found { records, .. } => Records::clone(&records),
            other => panic!("{host}: {other:?}"),
        }
    }
}

#[test]
fn dnsmasq_answers() {
    let mut records: Vec<String> = [
        "--host-record=a.test,127.1.2.3,2001:db8::5",
        "--host-record=four.test,127.1.2.4",
        "--cname=alias.test,a.test",
        "--srv-host=_http._tcp.test,a.test,8080,1,512",
        "--srv-host=_http._tcp.test,four.test,8081,0,10",
    ]
    .map(str::to_owned)
    .to_vec();
    records.extend((1..=100).map(|host| format!("--host-record=big.test,10.0.0.{host}")));
    let Some(server) = start(&records) else {
        skipped("dnsmasq cannot be run");
        return;
    };
    for transport in [Transport::Udp, Transport::Tcp] {
        let world = World::start(server.address, transport);
        let v4 = Question::Address { prefer: Family::V4 };
        let v6 = Question::Address { prefer: Family::V6 };
        assert_eq!(world.records("a.test", v4).addresses, [ip("127.1.2.3")]);
        assert_eq!(world.records("A.test", v6).addresses, [ip("2001:db8::5")]);
        assert_eq!(world.records("alias.test", v4).addresses, [ip("127.1.2.3")]);
        // There is no AAAA record: the other family.
        assert_eq!(world.records("four.test", v6).addresses, [ip("127.1.2.4")]);
        assert_eq!(world.records("big.test", v4).addresses.len(), 100);
        let services = world.records("_http._tcp.test", Question::Service).services;
        assert_eq!(services.len(), 2);
        assert_eq!(services[0].target, name("four.test"));
        assert_eq!((services[0].port, services[0].weight), (8081, 10));
        assert_eq!(services[0].addresses, [ip("127.1.2.4")]);
        assert_eq!((services[1].port, services[1].weight), (8080, 512));
        assert!(services[1].addresses.contains(&ip("127.1.2.3")));
        let missing = world.outcome("missing.test", v4);
        assert!(matches!(missing, Outcome::Held(_)), "{missing:?}");
        let (sender, answer) = channel();
        world
            .runner
            .handle()
            .ask(0, name("a.test"), Family::V4, move |address| {
                sender.send(address).unwrap();
            });
        assert_eq!(answer.recv_timeout(DEADLINE), Ok(Some(ip("127.1.2.3"))));
        let counters = world.runner.handle().snapshot()[0].nameservers[0].counters;
        let is_truncated = counters.truncated > 0;
        assert_eq!(is_truncated, transport == Transport::Udp, "{counters:?}");
        assert_eq!(
            (counters.invalid, counters.snd_error),
            (0, 0),
            "{counters:?}"
        );
        world.runner.stop();
    }
}
