//! Servers that come, move and go while traffic runs.

use std::sync::Arc;

use config::model::Server;
use net::{Addr, Engine as _};
use spangate_proxy::{AddError, DeleteError, RuntimeConfig, ServerChange, Shared};

use super::script::{DEFAULTS, Play};
use crate::setups::{load_running, runtime_config};

/// A server as its line says.
fn server(line: &str) -> Server {
    let mut runtime_config =
        load_running(&format!("backend app\n    mode http\n    server {line}\n"));
    let server = runtime_config
        .config
        .proxies
        .pop()
        .and_then(|mut app| app.servers.pop());
    let mut server = Arc::try_unwrap(server.expect("a server")).expect("nobody else has it");
    if !line.contains(" id ") {
        server.options.id = 0;
    }
    server
}

/// A process with two workers.
struct Process {
    runtime_config: Arc<RuntimeConfig>,
    shared: Arc<Shared>,
    workers: [Play; 2],
}

impl Process {
    fn new(lines: &str) -> Process {
        let runtime_config = runtime_config(&format!("{DEFAULTS}{lines}\n"));
        let shared = Arc::new(runtime_config.share(2));
        let workers = [0, 1].map(|worker| Play::of(&runtime_config, &shared, worker));
        Process {
            runtime_config,
            shared,
            workers,
        }
    }

    fn play(&mut self, worker: usize, script: &str) {
        let play = &mut self.workers[worker];
        for line in script.lines() {
            let done = play.line(line);
            done.unwrap_or_else(|error| panic!("worker {worker}: {line}: {error}"));
            play.settle();
            play.engine.audit().expect("the books are right");
        }
    }

    /// Every worker has a round.
    fn round(&mut self) {
        for play in &mut self.workers {
            play.engine.on_round_end(&mut play.driver);
            play.settle();
        }
    }

    fn add(&self, line: &str) -> Result<usize, AddError> {
        let added = self
            .runtime_config
            .add_server(&self.shared, 0, server(line));
        added.map(|added| added.place)
    }

    fn change(&self, place: usize, change: ServerChange) {
        self.shared.change_server(0, place, change);
    }

    fn names(&self) -> Vec<(usize, String)> {
        let tables = self.shared.server_tables();
        let servers = tables.servers(0);
        servers
            .map(|(place, server)| (place, server.name.clone()))
            .collect()
    }
}

const ASK: &str = " > GET / HTTP/1.1|host: a||";
const ANSWER: &str = " > HTTP/1.1 200 OK|content-length: 0||";

/// Client `client` of a worker asks, and the worker's connection `conn`, to this port, answers.
fn exchange(process: &mut Process, worker: usize, client: usize, conn: usize, port: u16) {
    process.play(
        worker,
        &format!("c{client}{ASK}\ns{conn} to 127.0.0.1:{port}\ns{conn} ok\ns{conn}{ANSWER}\nc{client} <~ HTTP/1.1 200"),
    );
}

#[test]
fn a_server_that_is_added_serves_once_it_is_enabled() {
    let mut process = Process::new("http-reuse never\nserver one 127.0.0.1:81");
    exchange(&mut process, 0, 1, 1, 81);
    let place = process.add("two 127.0.0.1:82 weight 1").expect("added");
    assert_eq!(place, 1);
    assert_eq!(process.names(), [(0, "one".into()), (1, "two".into())]);
    exchange(&mut process, 0, 2, 2, 81);
    process.change(place, ServerChange::Maintenance(false));
    exchange(&mut process, 0, 3, 3, 82);
    exchange(&mut process, 0, 4, 4, 81);
    // The other worker has never heard of it before.
    exchange(&mut process, 1, 1, 1, 82);
}

#[test]
fn names_and_ids_are_given_once() {
    let process = Process::new("server one 127.0.0.1:81 id 2");
    assert!(matches!(
        process.add("one 127.0.0.1:82"),
        Err(AddError::NameTaken)
    ));
    match process.add("two 127.0.0.1:82 id 2") {
        Err(AddError::IdTaken(other)) => assert_eq!(other, "one"),
        other => panic!("{other:?}"),
    }
    for (name, id) in [("two", 1), ("three", 3), ("four", 4)] {
        let place = process.add(&format!("{name} 127.0.0.1:82")).expect("added");
        let tables = process.shared.server_tables();
        let (_, server) = tables.servers(0).find(|(at, _)| *at == place).expect("it");
        assert_eq!(server.id, id, "{name}");
    }
}

#[test]
fn a_server_is_deleted_when_nobody_uses_it() {
    let mut process = Process::new("server one 127.0.0.1:81\nserver two 127.0.0.1:82 weight 0");
    let delete = |process: &Process, place| process.shared.delete_server(0, place).map(drop);
    assert_eq!(delete(&process, 2), Err(DeleteError::NotFound));
    assert_eq!(delete(&process, 0), Err(DeleteError::NotInMaintenance));
    process.play(0, &format!("c1{ASK}\ns1 to 127.0.0.1:81\ns1 ok"));
    process.change(0, ServerChange::Maintenance(true));
    process.round();
    assert_eq!(
        delete(&process, 0),
        Err(DeleteError::InUse),
        "a request is open"
    );
    // Its connection does not become idle.
    process.play(0, &format!("s1{ANSWER}\nc1 <~ HTTP/1.1 200\ns1 end"));
    process.round();
    assert_eq!(delete(&process, 0), Ok(()));
    assert_eq!(process.names(), [(1, "two".into())]);
    assert_eq!(delete(&process, 0), Err(DeleteError::NotFound));
}

#[test]
fn maintenance_closes_idle_connections() {
    let mut process = Process::new("server one 127.0.0.1:81");
    exchange(&mut process, 0, 1, 1, 81);
    exchange(&mut process, 1, 1, 1, 81);
    process.play(0, "s1 open");
    process.change(0, ServerChange::Maintenance(true));
    assert_eq!(
        process.shared.delete_server(0, 0).err(),
        Some(DeleteError::InUse)
    );
    process.round();
    process.play(0, "s1 end");
    process.play(1, "s1 end");
    assert!(process.shared.delete_server(0, 0).is_ok());
}

#[test]
fn a_connection_that_stands_after_maintenance_began_does_not_become_idle() {
    let mut process = Process::new("server one 127.0.0.1:81");
    process.play(0, &format!("c1{ASK}\ns1 to 127.0.0.1:81"));
    process.change(0, ServerChange::Maintenance(true));
    process.round();
    process.play(0, &format!("s1 ok\ns1{ANSWER}\nc1 <~ HTTP/1.1 200\ns1 end"));
    assert!(process.shared.delete_server(0, 0).is_ok());
}

#[test]
fn a_connection_that_is_opened_after_maintenance_began_does_not_become_idle() {
    let mut process = Process::new("server one 127.0.0.1:81");
    exchange(&mut process, 1, 1, 1, 81);
    // The server is chosen; the other worker is asked for its connection.
    process.play(0, &format!("c1{ASK}"));
    process.change(0, ServerChange::Maintenance(true));
    for worker in [1, 0] {
        let play = &mut process.workers[worker];
        play.engine.on_round_end(&mut play.driver);
        play.settle();
    }
    process.play(
        0,
        &format!("s1 to 127.0.0.1:81\ns1 ok\ns1{ANSWER}\nc1 <~ HTTP/1.1 200\ns1 end"),
    );
    assert!(process.shared.delete_server(0, 0).is_ok());
}

#[test]
fn a_place_is_used_again_once_every_worker_has_released_it() {
    let mut process = Process::new("server one 127.0.0.1:81");
    let mut places = Vec::new();
    for round in 0..4 {
        let name = format!("more{round}");
        let place = process.add(&format!("{name} 127.0.0.1:82")).expect("added");
        places.push(place);
        process.shared.delete_server(0, place).expect("deleted");
        match round {
            // Nobody has looked; then one worker; then both.
            0 => {}
            1 => process.workers[0]
                .engine
                .on_round_end(&mut process.workers[0].driver),
            _ => process.round(),
        }
    }
    assert_eq!(places, [1, 2, 3, 1]);
    // Nothing of the server before is left.
    let place = process.add("last 127.0.0.1:83 weight 7").expect("added");
    process.change(place, ServerChange::Maintenance(false));
    process.change(0, ServerChange::Maintenance(true));
    exchange(&mut process, 0, 1, 1, 83);
}

#[test]
fn a_server_that_moves_leaves_its_idle_connections() {
    let mut process = Process::new("server one 127.0.0.1:81");
    exchange(&mut process, 0, 1, 1, 81);
    let to = Addr::Inet("127.0.0.1:99".parse().expect("an address"));
    process
        .shared
        .move_server(0, 0, config::model::ServerAddress::Fixed(to));
    process.round();
    process.play(0, "s1 end");
    exchange(&mut process, 0, 1, 2, 99);
}

#[test]
fn a_connection_to_where_a_server_was_does_not_become_idle() {
    let mut process = Process::new("server one 127.0.0.1:81");
    process.play(0, &format!("c1{ASK}\ns1 to 127.0.0.1:81"));
    let to = Addr::Inet("127.0.0.1:99".parse().expect("an address"));
    process
        .shared
        .move_server(0, 0, config::model::ServerAddress::Fixed(to));
    process.round();
    process.play(0, &format!("s1 ok\ns1{ANSWER}\nc1 <~ HTTP/1.1 200\ns1 end"));
    exchange(&mut process, 0, 1, 2, 99);
}

#[test]
fn thousands_of_servers_come_and_go() {
    let mut process = Process::new("http-reuse never\nserver one 127.0.0.1:81 disabled");
    let mut places = Vec::new();
    for round in 0..1000 {
        let place = process
            .add(&format!("more{round} 127.0.0.1:82"))
            .expect("added");
        process.change(place, ServerChange::Maintenance(false));
        exchange(&mut process, round % 2, round + 1, round / 2 + 1, 82);
        process.change(place, ServerChange::Maintenance(true));
        process.round();
        process.shared.delete_server(0, place).expect("deleted");
        process.round();
        places.push(place);
    }
    assert!(places.iter().all(|place| *place <= 2), "{places:?}");
}

/// Another thread may change a server that was deleted after the thread looked it up.
#[test]
fn changes_to_a_deleted_server_do_not_keep_its_place() {
    use config::model::ServerAddress;

    let mut process = Process::new("server one 127.0.0.1:81");
    let to = Addr::Inet("127.0.0.1:99".parse().expect("an address"));
    let mut places = Vec::new();
    for name in ["two", "three", "four", "five"] {
        let place = process.add(&format!("{name} 127.0.0.1:82"));
        let place = place.expect("added");
        process.shared.delete_server(0, place).expect("deleted");
        match name {
            "two" => {
                let to = ServerAddress::Fixed(to.clone());
                process.shared.move_server(0, place, to);
            }
            "three" => {
                process.shared.edit_server(0, place, |_| {});
            }
            "four" => process.shared.host_server(0, place, "host"),
            _ => {}
        }
        process.round();
        places.push(place);
    }
    assert_eq!(places, [1; 4]);
}

#[test]
fn least_latency_leaves_a_server_that_becomes_slow_and_comes_back() {
    let mut process = Process::new(
        "balance least-latency\nhttp-reuse never\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82",
    );
    // Both are tried; the second one is slow.
    exchange(&mut process, 0, 1, 1, 81);
    process.play(
        0,
        &format!("c2{ASK}\ns2 to 127.0.0.1:82\ns2 ok\nwait 500\ns2{ANSWER}\nc2 <~ HTTP/1.1 200"),
    );
    process.play(
        0,
        &format!("c3{ASK}\ns3 to 127.0.0.1:81\ns3 ok\nwait 20\ns3{ANSWER}"),
    );
    for client in 4..10 {
        let asked = format!("c{client}{ASK}\ns{client} to 127.0.0.1:81\ns{client} ok\n");
        process.play(0, &format!("{asked}wait 20\ns{client}{ANSWER}"));
    }
    // One that works on many requests is slower than its average.
    for client in 10..34 {
        process.play(0, &format!("c{client}{ASK}\ns{client} to 127.0.0.1:81"));
    }
    process.play(0, &format!("c34{ASK}\ns34 to 127.0.0.1:82"));
}

/// `set maxconn server` between none and some, beside requests: each request gives back the slot
/// that it took, and no other.
#[test]
fn a_changing_limit_loses_no_slot() {
    const REQUESTS: usize = 3_000;
    let mut process = Process::new("server one 127.0.0.1:81 maxconn 3");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let shared = Arc::clone(&process.shared);
    let play = &mut process.workers[0];
    play.driver.opening = crate::driver::Opening::Fails(net::ConnectError::Refused);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for limit in [0, 3] {
                    shared.change_server(0, 0, ServerChange::Maxconn(limit));
                }
            }
        });
        for nth in 0..REQUESTS {
            let done = play.line(&format!(
                "c{nth} > GET / HTTP/1.1|host: a|connection: close||"
            ));
            done.expect("a client");
            play.settle();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    process.round();
    let answered = |pipe: &crate::driver::Pipe| pipe.outbox.peek().starts_with(b"HTTP/1.1 503");
    let pipes = &process.workers[0].driver.pipes;
    assert_eq!(pipes.iter().filter(|pipe| answered(pipe)).count(), REQUESTS);
    process.play(0, "wait 20000");
    assert!(
        process.shared.is_quiet(),
        "a slot is lost or was given twice"
    );
}

/// A request that tried a server before it was deleted delays the reuse of its place, but not until
/// the next change of servers.
#[test]
fn a_place_is_released_when_the_last_request_that_knows_it_ends() {
    let lines = "retries 1\noption redispatch 1\nserver one 127.0.0.1:81\nserver two 127.0.0.1:82";
    let mut process = Process::new(lines);
    process.play(
        0,
        "c1 > GET / HTTP/1.1|host: a||\ns1 to 127.0.0.1:81\ns1 refuse\ns2 to 127.0.0.1:82\ns2 ok",
    );
    process.change(0, ServerChange::Maintenance(true));
    process.round();
    process.shared.delete_server(0, 0).expect("deleted");
    process.round();
    process.play(
        0,
        "s2 > HTTP/1.1 204 No Content||\nc1 <~ HTTP/1.1 204\nwait 1000",
    );
    process.play(1, "wait 1000");
    assert_eq!(process.add("three 127.0.0.1:83").ok(), Some(0));
}
