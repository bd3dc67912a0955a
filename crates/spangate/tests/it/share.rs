//! Stick tables whose counters several Spangates share through a store (`stick-table … share`).

mod reload;
mod store;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use self::store::{Keeps, Redis, no_store};
use crate::common::cli::{ask_any, until_any_holds};
use crate::common::http::Client;
use crate::common::{
    DEADLINE, Folder, Proxy, address, eventually, join, listener, now, run, spawn,
};

/// The keys of the test with many keys.
const KEYS: usize = 10_000;
/// Requests that are sent at once.
const PIPELINED: usize = 100;

struct Node {
    proxy: Proxy,
    socket: PathBuf,
    front: TcpListener,
}

impl Node {
    /// A process that shares its tables through this store.
    fn start(share: &str) -> Node {
        let folder = Folder::new();
        let socket = folder.path("cli");
        let front = listener();
        let config = format!(
            "global
 nbthread 2
 stats socket {} level admin
defaults
 mode http
 timeout client 40s
 timeout server 5s
 timeout connect 1s
backend t
 stick-table type string len 40 size 100k expire 10m store http_req_cnt,http_req_rate(1m),gpc(2),gpt(1),bytes_in_cnt,conn_cur share {share}
backend bytes
 stick-table type binary len 8 size 1k expire 10m store gpc0 share {share} every 20ms prefix other
frontend fe
 bind \"fd@${{FE}}\"
 http-request track-sc1 req.hdr(x-key),b64dec table bytes if {{ req.hdr(x-key) -m found }}
 http-request sc-inc-gpc0(1) if {{ req.hdr(x-key) -m found }} !{{ path /use }}
 http-request track-sc0 path table t
 http-request sc-inc-gpc(1,0)
 http-request sc-set-gpt(0,0) 7 if {{ path_beg /tag }}
 http-request deny deny_status 429 if {{ path_beg /limited }} {{ sc_http_req_cnt(0) gt 20 }}
 http-request return status 200
",
            socket.display(),
        );
        let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
        Node {
            proxy,
            socket,
            front,
        }
    }

    fn client(&self) -> Client {
        Client::connect(address(&self.front))
    }

    fn get(&self, path: &str) -> u16 {
        let mut client = self.client();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        client.response().expect("an answer").status
    }

    /// Waits until an entry of the table has all of these.
    fn until(&self, key: &str, parts: &[&str]) -> String {
        let line = format!("show table t key {key}");
        until_any_holds(&self.socket, &line, |answer| {
            parts.iter().all(|part| answer.contains(part))
        })
    }

    /// A number of `show share`.
    fn number(&self, table: &str, name: &str) -> u64 {
        let answer = ask_any(&self.socket, "show share");
        let line = answer
            .lines()
            .find(|line| line.starts_with(&format!("table={table} ")));
        let line = line.unwrap_or_else(|| panic!("no table in {answer}"));
        let mut words = line.split(' ');
        let found = words.find_map(|word| word.strip_prefix(&format!("{name}=")));
        found
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {answer}"))
    }

    /// Ends it at once.
    fn stop(self) {
        self.proxy.stop();
    }
}

#[test]
fn two_processes_count_together() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    for _ in 0..10 {
        assert_eq!(one.get("/a"), 200);
    }
    for _ in 0..7 {
        assert_eq!(other.get("/a"), 200);
    }
    for node in [&one, &other] {
        let bytes = format!(
            "bytes_in_cnt={}",
            17 * "GET /a HTTP/1.1\r\nhost: x\r\n\r\n".len()
        );
        node.until(
            "/a",
            &[
                "http_req_cnt=17 ",
                "gpc1=17",
                "http_req_rate(60000)=17 ",
                &bytes,
            ],
        );
    }
    // Connections of this moment are those of each process.
    one.until("/a", &["conn_cur=0 "]);
    assert_eq!(other.get("/tag"), 200);
    assert_eq!(one.get("/tag"), 200);
    one.until("/tag", &["gpt0=7", "http_req_cnt=2 "]);
    // A value that a command sets is set for all.
    let answer = ask_any(&one.socket, "set table t key /a data.gpc[1] 0");
    assert!(answer.trim().is_empty(), "{answer}");
    other.until("/a", &["gpc1=0", "http_req_cnt=17 "]);
    let keys = redis.ask("PTTL spangate/t/k//a").expect("an answer");
    let left_ms: i64 = keys.trim_start_matches(':').trim().parse().expect("a time");
    assert!((1..=603_000).contains(&left_ms), "{keys}");
    one.stop();
    other.stop();
}

/// An entry that is used and does not change must not end in the store before it ends here.
#[test]
fn an_entry_in_use_lives_on_in_the_store() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let node = Node::start(&redis.url());
    let ask = |path: &str| {
        let mut client = node.client();
        let key = "x-key: YWJjZGVmZ2g=";
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{key}\r\n\r\n"));
        client.response().expect("an answer").status
    };
    let left_ms = || {
        let answer = redis.ask("PTTL other/bytes/k/abcdefgh")?;
        answer.trim_start_matches(':').trim().parse::<i64>().ok()
    };
    ask("/");
    eventually("it is in the store", || left_ms().filter(|left| *left > 0));
    let set = redis.ask("PEXPIRE other/bytes/k/abcdefgh 30000");
    assert_eq!(set.as_deref(), Some(":1\r\n"));
    ask("/use");
    eventually("it lives on", || left_ms().filter(|left| *left > 500_000));
    let counted = redis.ask("HGET other/bytes/k/abcdefgh gpc0");
    assert_eq!(counted.as_deref(), Some("$1\r\n1\r\n"));
    node.stop();
}

/// What somebody else writes into an entry concerns that entry alone, and is told.
#[test]
fn an_entry_that_is_none_leaves_the_others_alone() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    redis.ask("HSET spangate/t/k//bad gpt[0] 4294967296");
    redis.ask("SET spangate/t/k//string hello");
    for path in ["/bad", "/string", "/good"] {
        one.get(path);
        other.get(path);
    }
    for node in [&one, &other] {
        node.until("/good", &["http_req_cnt=2 "]);
        eventually("it is told", || {
            (node.number("t", "refused") >= 2).then_some(())
        });
        let state = ask_any(&node.socket, "show share");
        assert!(state.contains("state=connected"), "{state}");
        assert!(!state.contains("last_refusal=- "), "{state}");
        assert_eq!(node.number("t", "failures"), 0);
    }
    one.stop();
    other.stop();
}

#[test]
fn a_rule_counts_the_requests_of_all() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    for node in [&one, &other] {
        for _ in 0..10 {
            assert_eq!(node.get("/limited"), 200);
        }
    }
    for node in [&one, &other] {
        node.until("/limited", &["http_req_cnt=20 "]);
    }
    // Fewer than the limit came to each, and the next one is beyond it.
    assert_eq!(one.get("/limited"), 429);
    other.until("/limited", &["http_req_cnt=21 "]);
    assert_eq!(other.get("/limited"), 429);
    assert_eq!(other.get("/other"), 200);
    one.stop();
    other.stop();
}

#[test]
fn keys_may_have_any_bytes() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    for (count, key) in [(1, "DQokMQAK/w=="), (2, "AA=="), (3, "//////////8=")] {
        for node in [&one, &other] {
            for _ in 0..count {
                let mut client = node.client();
                client.send(format!(
                    "GET /b HTTP/1.1\r\nhost: x\r\nx-key: {key}\r\n\r\n"
                ));
                assert_eq!(client.response().expect("an answer").status, 200);
            }
        }
    }
    for node in [&one, &other] {
        let expected = [
            "key=0D0A2431000AFF00 ",
            "key=0000000000000000 ",
            "key=FFFFFFFFFFFFFFFF ",
            "gpc0=2\n",
            "gpc0=4\n",
            "gpc0=6\n",
        ];
        until_any_holds(&node.socket, "show table bytes", |answer| {
            expected.iter().all(|part| answer.contains(part))
        });
    }
    one.stop();
    other.stop();
}

#[test]
fn the_end_of_a_process_sends_the_last_changes() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    // Nothing is sent before the end.
    let slow = format!("{} every 10s", redis.url());
    let one = Node::start(&slow);
    until_any_holds(&one.socket, "show share", |answer| {
        answer.contains("table=t") && !answer.contains("answers=0")
    });
    for _ in 0..5 {
        assert_eq!(one.get("/a"), 200);
    }
    one.stop();
    // The process that follows counts on.
    let next = Node::start(&redis.url());
    assert_eq!(next.get("/a"), 200);
    next.until("/a", &["http_req_cnt=6 "]);
    next.stop();
}

/// Sends requests to a process until `ends`, and returns how many were answered. Each is answered
/// with 200, at once.
fn load(
    node: &Node,
    ends: &Arc<AtomicBool>,
    sent: &Arc<AtomicU64>,
) -> std::sync::mpsc::Receiver<u64> {
    let (ends, sent, mut client) = (Arc::clone(ends), Arc::clone(sent), node.client());
    spawn(move || {
        let mut count = 0;
        while !ends.load(Ordering::Relaxed) {
            assert_eq!(client.get("/k").status, 200);
            count += 1;
            sent.fetch_add(1, Ordering::Relaxed);
        }
        count
    })
}

fn a_store_that_dies_under_load(keeps: Keeps) {
    let Some(mut redis) = Redis::start(keeps) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    let (ends, sent) = (Arc::default(), Arc::default());
    let loads = [load(&one, &ends, &sent), load(&other, &ends, &sent)];
    let more = |what: &str| {
        let now = sent.load(Ordering::Relaxed);
        eventually(what, || {
            (sent.load(Ordering::Relaxed) > now + 300).then_some(())
        });
    };
    for _ in 0..2 {
        more("requests with a store");
        let answers = one.number("t", "answers");
        eventually("exchanges", || {
            (one.number("t", "answers") > answers + 2).then_some(())
        });
        if keeps == Keeps::Snapshot {
            redis.ask("SAVE");
            let answers = one.number("t", "answers");
            eventually("exchanges", || {
                (one.number("t", "answers") > answers + 2).then_some(())
            });
        }
        redis.kill();
        more("requests without a store");
        eventually("a failure", || {
            (one.number("t", "failures") > 0).then_some(())
        });
        redis.restart();
        more("requests with a store again");
    }
    ends.store(true, Ordering::Relaxed);
    let total: u64 = loads.iter().map(|load| join(load, "the load ends")).sum();
    let expected = format!("http_req_cnt={total} ");
    for node in [&one, &other] {
        node.until("/k", &[&expected]);
        assert_eq!(node.number("t", "lost_batches"), 0);
        assert_eq!(node.number("t", "removed_unsent"), 0);
    }
    if keeps == Keeps::Nothing {
        assert!(one.number("t", "resends") + other.number("t", "resends") > 0);
    } else {
        assert_eq!(one.number("t", "resends"), 0);
    }
    let key = redis.ask("HGET spangate/t/k//k http_req_cnt");
    assert!(
        key.expect("an answer")
            .contains(&format!("\r\n{total}\r\n"))
    );
    one.stop();
    other.stop();
}

#[test]
fn a_store_that_forgets_all_costs_no_request_and_no_count() {
    a_store_that_dies_under_load(Keeps::Nothing);
}

#[test]
fn a_store_that_comes_back_costs_no_request_and_no_count() {
    a_store_that_dies_under_load(Keeps::Everything);
}

#[test]
fn a_store_that_goes_back_to_an_older_state_costs_no_request_and_no_count() {
    a_store_that_dies_under_load(Keeps::Snapshot);
}

#[test]
fn many_keys() {
    let Some(redis) = Redis::start(Keeps::Nothing) else {
        return;
    };
    let (one, other) = (Node::start(&redis.url()), Node::start(&redis.url()));
    for node in [&one, &other] {
        let mut client = node.client();
        for first in (0..KEYS).step_by(PIPELINED) {
            let requests = (first..first + PIPELINED)
                .map(|key| format!("GET /{key} HTTP/1.1\r\nhost: x\r\n\r\n"));
            client.send(requests.collect::<String>());
            for _ in 0..PIPELINED {
                assert_eq!(client.response().expect("an answer").status, 200);
            }
        }
    }
    for node in [&one, &other] {
        until_any_holds(
            &node.socket,
            "show table t data.http_req_cnt eq 2",
            |answer| answer.lines().filter(|line| line.contains("key=/")).count() == KEYS,
        );
        assert_eq!(node.number("t", "waiting"), 0);
    }
    one.stop();
    other.stop();
}

#[test]
fn a_store_may_ask_for_an_account() {
    let Some(redis) = Redis::start_with(Keeps::Nothing, &["--requirepass", "secret"]) else {
        return;
    };
    let account = format!("{} user default password secret db 3", redis.url());
    let (one, other) = (Node::start(&account), Node::start(&account));
    assert_eq!((one.get("/a"), other.get("/a")), (200, 200));
    one.until("/a", &["http_req_cnt=2 "]);
    // It forgets the script only.
    let mut store = redis.connect().expect("the store");
    for command in ["AUTH secret", "SCRIPT FLUSH"] {
        assert_eq!(store.ask(command).as_deref(), Some("+OK\r\n"));
    }
    assert_eq!((one.get("/a"), other.get("/a")), (200, 200));
    one.until("/a", &["http_req_cnt=4 "]);
    assert_eq!(one.number("t", "resends"), 0);
    let keys = ["SELECT 3", "EXISTS spangate/t/k//a"].map(|line| store.ask(line));
    assert_eq!(keys[1].as_deref(), Some(":1\r\n"));
    let refused = Node::start(&format!("{} password wrong", redis.url()));
    assert_eq!(refused.get("/a"), 200);
    until_any_holds(&refused.socket, "show share", |state| {
        state.contains("state=lost") && state.contains("last_error=WRONGPASS")
    });
    for node in [one, other, refused] {
        node.stop();
    }
}

/// The address of the store leads to another service. Requests are answered at once, and
/// `show share` tells the error.
fn not_a_store(answer: &'static [u8], expected: &str) {
    let listener = no_store(answer);
    let node = Node::start(&format!("redis://{}", address(&listener)));
    let started = now();
    for number in 1..=200 {
        assert_eq!(node.get("/a"), 200);
        node.until("/a", &[&format!("http_req_cnt={number} ")]);
    }
    assert!(started.elapsed() < DEADLINE / 2);
    until_any_holds(&node.socket, "show share", |state| state.contains(expected));
    // One entry, which may be in a batch too.
    assert!((1..=2).contains(&node.number("t", "waiting")));
    node.stop();
}

#[test]
fn a_store_that_never_answers_costs_nothing() {
    not_a_store(b"", "last_error=the store does not answer");
}

#[test]
fn a_store_that_answers_nonsense_costs_nothing() {
    not_a_store(
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "last_error=the answer is not that of a store",
    );
    not_a_store(
        b"$5\r\nabcde\r\n",
        "last_error=the answer is not that of a store",
    );
    not_a_store(b"-OOM command not allowed\r\n", "last_error=");
}

#[test]
fn what_the_command_line_says() {
    let folder = Folder::new();
    let check = |words: &str| {
        let text = format!("backend b\n stick-table type ip size 10 store gpc0 {words}\n");
        run(&["-c", "-f", &folder.write("x.cfg", text)])
    };
    let found = check("expire 1m share redis://127.0.0.1");
    if cfg!(feature = "share-redis") {
        assert!(found.status.success(), "{}", found.stderr);
    } else {
        assert!(
            found.stderr.contains("cargo feature 'share-redis'"),
            "{}",
            found.stderr
        );
    }
    let found = check("share redis://127.0.0.1");
    assert!(!found.status.success());
}
