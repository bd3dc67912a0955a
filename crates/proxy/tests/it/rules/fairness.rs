//! Nobody is served at the cost of others, and nobody loses what is on its way: turns, deadlines
//! that progress renews, early answers, half-closed connections, queues, and limits of all workers
//! together.

use std::sync::Arc;

use net::{Engine as _, ListenerId};
use spangate_proxy::RuntimeConfig;

use super::script::{DEFAULTS, Play, play};
use crate::driver::{SimDriver, deliver};
use crate::setups::runtime_config;

/// Requests that a client pipelines, and the most that it is answered at a time.
const PIPELINED: usize = 100;
const A_TURN_MAX: usize = 16;

fn configured(global: &str, lines: &str) -> Arc<RuntimeConfig> {
    runtime_config(&format!("{global}{DEFAULTS}{lines}\n"))
}

fn count(play: &Play, place: usize, what: &[u8]) -> usize {
    let bytes = play.driver.pipes[place].outbox.peek();
    bytes
        .windows(what.len())
        .filter(|window| *window == what)
        .count()
}

#[test]
fn who_pipelines_without_pause_takes_turns_with_the_others() {
    let mut play = Play::new(&configured("", "http-request return status 200"));
    let (greedy, other) = (play.place("c1").unwrap(), play.place("c2").unwrap());
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    play.driver.pipes[greedy].write(&request.repeat(PIPELINED));
    play.driver.pipes[other].write(request);
    let answers = |play: &Play| count(play, greedy, b"HTTP/1.1 200");
    deliver(&mut play.engine, &mut play.driver, greedy, usize::MAX);
    assert!(answers(&play) <= A_TURN_MAX, "{}", answers(&play));
    deliver(&mut play.engine, &mut play.driver, other, usize::MAX);
    assert_eq!(count(&play, other, b"HTTP/1.1 200"), 1, "in the same round");
    let mut rounds = 1;
    while net::Engine::<SimDriver>::has_work(&play.engine) {
        let before = answers(&play);
        play.engine.on_round_end(&mut play.driver);
        assert!(answers(&play) <= before + A_TURN_MAX);
        rounds += 1;
        assert!(rounds < PIPELINED, "it does not end");
    }
    play.settle();
    assert_eq!(answers(&play), PIPELINED);
}

#[test]
fn progress_renews_the_time_of_whoever_takes_bytes() {
    let steps = |who: &str| format!("wait 900\n{who} takes 1\n").repeat(6);
    play(
        "a slow client",
        "timeout client 1s",
        &format!(
            "c1 > GET / HTTP/1.1|host: a||\ns1 ok\nfull c1\ns1 > HTTP/1.1 200 OK|content-length: 30||x\n{}c1 open\nwait 1000\nlog 200 cD--",
            steps("c1")
        ),
    );
    play(
        "a slow server",
        "timeout server 1s\ntimeout client 1s",
        &format!(
            "c1 > POST / HTTP/1.1|host: a|content-length: 30||x\ns1 connects\nfull s1\ns1 ok\n{}c1 open\nwait 1000\nlog 504 sH--",
            steps("s1")
        ),
    );
}

#[test]
fn an_answer_before_the_end_of_an_upload_is_not_lost() {
    let mut play = Play::new(&configured("", "server one 127.0.0.1:81"));
    let say = |play: &mut Play, line: &str| {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    };
    say(
        &mut play,
        "c1 > POST / HTTP/1.1|host: a|content-length: 30||x",
    );
    play.settle();
    say(&mut play, "s1 ok");
    play.settle();
    // The server has answered and closed; the next send finds that out before the answer is read.
    let (client, server) = (play.place("c1").unwrap(), play.place("s1").unwrap());
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    play.driver.pipes[server].write(answer);
    play.driver.pipes[server].peer_reset = true;
    play.driver.pipes[client].write(b"yyyy");
    deliver(&mut play.engine, &mut play.driver, client, usize::MAX);
    play.settle();
    say(&mut play, "c1 <~ HTTP/1.1 413 Too Large|");
}

#[test]
fn what_a_half_closed_client_did_not_take_yet_is_not_lost() {
    let bytes = "x".repeat(21_000);
    play(
        "both ends behind what waits",
        "mode tcp\nlog-format %ts",
        &format!(
            "c1 > hi\ns1 ok\ns1 < hi\nc1 fin\ns1 end\nfull c1\ns1 > {bytes}\ns1 fin\nc1 takes 116\nc1 open\ndrain c1\nc1 < {bytes}\nc1 end\nlog --"
        ),
    );
}

#[test]
fn each_free_slot_serves_one_who_waits_and_deadlines_are_those_of_the_arrival() {
    let ask = |client: usize| format!("c{client} > GET /{client} HTTP/1.1|host: a||\n");
    let done = "HTTP/1.1 204 No Content||";
    let asked: String = (1..=6).map(ask).collect();
    play(
        "two slots, six clients",
        "server one 127.0.0.1:81 maxconn 2\nhttp-reuse never",
        &format!(
            "{asked}s1 ok\ns2 ok\ns3 none\nwait 3000\ns1 > {done}\ns2 > {done}\ns3 ok\ns4 ok\ns3 <~ GET /3\ns4 <~ GET /4\ns5 none\nwait 999\nc5 open\nwait 1\nc5 <~ HTTP/1.1 503\nc6 <~ HTTP/1.1 503"
        ),
    );
}

#[test]
fn limits_and_turns_are_those_of_all_workers() {
    let lines = "server one 127.0.0.1:81\nserver two 127.0.0.1:82\nbalance roundrobin";
    let runtime_config = configured("global\n maxconn 3\n", lines);
    let shared = Arc::new(runtime_config.share(2));
    let mut workers = [0, 1].map(|worker| Play::of(&runtime_config, &shared, worker));
    let listener = ListenerId(0);
    for (worker, admits) in [(0, true), (1, true), (0, true), (1, false), (0, false)] {
        let Play { engine, driver, .. } = &mut workers[worker];
        assert_eq!(engine.admit(driver, listener), admits);
    }
    for worker in [0, 0, 1] {
        let Play { engine, driver, .. } = &mut workers[worker];
        engine.retract(driver, listener);
    }
    let ports = ["127.0.0.1:81", "127.0.0.1:82", "127.0.0.1:81"];
    for ((worker, server), port) in [(0, "s1"), (1, "s1"), (0, "s2")].into_iter().zip(ports) {
        let play = &mut workers[worker];
        let client = if server == "s1" { "c1" } else { "c2" };
        for line in [
            &format!("{client} > GET / HTTP/1.1|host: a||"),
            &format!("{server} to {port}"),
        ] {
            play.line(line)
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            play.settle();
        }
    }
}

#[test]
fn a_worker_without_an_idle_connection_takes_one_of_another() {
    let lines = "server one 127.0.0.1:81\nhttp-reuse always";
    let runtime_config = configured("", lines);
    let shared = Arc::new(runtime_config.share(2));
    let mut workers = [0, 1].map(|worker| Play::of(&runtime_config, &shared, worker));
    let mut play = |worker: usize, script: &str| {
        let play = &mut workers[worker];
        for line in script.lines() {
            let done = play.line(line);
            done.unwrap_or_else(|error| panic!("worker {worker}: {line}: {error}"));
            play.settle();
            play.engine.audit().expect("the books are right");
        }
        std::mem::take(&mut play.driver.woken)
    };
    let ask = "GET / HTTP/1.1|host: a||";
    let answer = "HTTP/1.1 200 OK|content-length: 0||";
    play(
        0,
        &format!("c1 > {ask}\ns1 ok\ns1 > {answer}\nc1 <~ HTTP/1.1 200"),
    );
    // The other worker asks, is answered, and uses it.
    let woken = play(1, &format!("c1 > {ask}"));
    assert_eq!(woken, [net::WorkerId(0)]);
    let woken = play(0, "wait 0\ns1 gone");
    assert_eq!(woken, [net::WorkerId(1)]);
    play(
        1,
        &format!("wait 0\ns1 <~ {}GET / HTTP/1.1", "GET / HTTP/1.1|host: a||"),
    );
    play(1, &format!("s1 > {answer}\nc1 <~ HTTP/1.1 200"));
    // Who gets no answer in time opens a connection.
    play(
        0,
        &format!("c2 > {ask}\nwait 99\ns2 none\nwait 1\ns2 ok\ns2 > {answer}\nc2 <~ HTTP/1.1 200"),
    );
    // An answer that comes too late makes an idle connection.
    play(1, "wait 0\ns1 gone");
    play(0, "wait 0\ns3 open");
}
