//! Runners over loopback.
#![expect(
    clippy::disallowed_methods,
    reason = "sockets of the system have the system's time"
)]

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use tables::{Data, Definition, KeyType, Table};

use super::*;

/// How long a test waits for anything.
const WAIT: Duration = Duration::from_secs(20);

fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1_000 + START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn table() -> Arc<Table> {
    let mut definition = Definition::new("t", KeyType::String, 1_000);
    definition.store(Data::Gpc0, &[], |_| None).expect("stored");
    Arc::new(Table::new(definition))
}

fn add(table: &Table, key: &str) {
    table.with_new(key.as_bytes(), clock(), |entry| {
        entry.add(Data::Gpc0, 0, 1);
        entry.touch();
    });
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

struct Process {
    runner: Runner,
    table: Arc<Table>,
    over: mpsc::Receiver<()>,
}

fn start(local: &str, addresses: &[SocketAddr], listener: TcpListener, follows: bool) -> Process {
    let table = table();
    let peers = ["a", "b"]
        .iter()
        .zip(addresses)
        .map(|(name, address)| PeerAddress {
            setup: PeerSetup {
                name: (*name).to_owned(),
                shown: address.to_string(),
                shard: 0,
            },
            address: Address::Inet(*address),
            connector: None,
        });
    let (sender, over) = mpsc::channel();
    let runner = Runner::start(RunnerSetup {
        sections: vec![SectionSetup {
            name: "p".to_owned(),
            local: local.to_owned(),
            peers: peers.collect(),
            listeners: vec![Listener::Inet(listener)],
            accept: None,
            tables: vec![TableSetup {
                table: Arc::clone(&table),
                write_to: None,
            }],
            shards: 0,
            follows_another: follows,
        }],
        clock,
        random,
        on_over: Box::new(move || {
            let _ = sender.send(());
        }),
    });
    Process {
        runner: runner.expect("a thread"),
        table,
        over,
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

#[test]
fn two_processes_share_a_table_and_a_third_one_follows() {
    let ((listen_a, a), (listen_b, b)) = (listen(), listen());
    let again = listen_a.try_clone().expect("a descriptor");
    let one = start("a", &[a, b], listen_a, false);
    let other = start("b", &[a, b], listen_b, false);
    add(&one.table, "x");
    add(&other.table, "y");
    until("updates arrive", || {
        one.table.used(clock()) == 2 && other.table.used(clock()) == 2
    });
    // An update after the tables slept.
    until("no updates", || {
        let view = one.runner.handle().snapshot();
        view[0].peers.iter().any(|peer| peer.is_connected)
    });
    add(&other.table, "z");
    until("the update arrives", || one.table.used(clock()) == 3);
    // The first one is replaced.
    let new = start("a", &[a, b], again, true);
    one.runner.stop_softly(None);
    one.over
        .recv_timeout(WAIT)
        .expect("the end of the old process");
    assert_eq!(new.table.used(clock()), 3);
    until("nothing is missing", || {
        new.runner.handle().snapshot()[0].flags == 3
    });
    one.runner.stop();
    add(&new.table, "w");
    until("the update arrives", || other.table.used(clock()) == 4);
    new.runner.stop();
    other.runner.stop();
}
