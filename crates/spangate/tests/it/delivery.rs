//! No record of the filter `opentelemetry` is lost silently: under load, with failing receivers,
//! and at the end.

use crate::common;

use std::collections::HashSet;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;

use common::cli::{Account, ask, until_holds};
use common::http::Client;
use common::origin::Origin;
use common::otlp::{Receiver, filter, settings};
use common::{Folder, Output, Proxy, accept, address, join, listener, spawn};

/// A filter file with three spans per request.
const OTEL: &str = "
otel-instrumentation i
    config {yml}
    scopes session request response end
otel-scope session
    span \"session\" root
    otel-event on-client-session-start
otel-scope request
    span \"request\" parent \"session\"
        attribute \"path\" path
    otel-event on-frontend-http-request
otel-scope response
    span \"response\" parent \"request\"
    otel-event on-http-response
otel-scope end
    finish *
    otel-event on-stream-stop
";
const SPANS: usize = 3;

/// Records wait only for a full batch, in a queue of this size.
fn batches(at: SocketAddr, queue: u32) -> String {
    let batch = format!(
        "type: batch, max_queue_size: {queue}, max_export_batch_size: 16, schedule_delay: 60000"
    );
    let yml = settings(at, "shop").replace("type: single", &batch);
    let yml: Vec<&str> = yml
        .lines()
        .filter(|line| !line.contains("metrics") && !line.contains("logs"))
        .collect();
    yml.join("\n") + "\n"
}

/// The running program and its runtime interface.
struct Running {
    proxy: Proxy,
    at: SocketAddr,
    cli: PathBuf,
}

fn start(yml: &str, workers: u32, server: SocketAddr) -> Running {
    let folder = Folder::new();
    let line = filter(&folder, OTEL, yml);
    let cli = folder.path("cli.sock");
    let front = listener();
    let config = format!(
        "global
    nbthread {workers}
    stats socket {} level admin
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 20s
listen l
    bind \"fd@${{FRONT}}\"
{line}    server s {server}
",
        cli.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    Running {
        proxy,
        at: address(&front),
        cli,
    }
}

impl Running {
    fn end(self, signal: i32) -> Output {
        self.proxy.running.signal(signal);
        let output = self.proxy.running.end();
        assert!(output.status.success(), "{}", output.stderr);
        output
    }
}

/// The number of different spans that arrived.
fn distinct(receiver: &Receiver) -> usize {
    let spans = receiver.spans.iter();
    let ids: HashSet<_> = spans.map(|(_, span)| span.span_id.clone()).collect();
    assert_eq!(ids.len(), receiver.spans.len());
    ids.len()
}

#[test]
fn every_span_of_four_workers_arrives() {
    const CLIENTS: usize = 8;
    const REQUESTS: usize = 40;
    let (origin, mut receiver) = (Origin::echo(), Receiver::start());
    let running = start(&batches(receiver.at, 65_536), 4, origin.at);
    let at = running.at;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            spawn(move || {
                let mut client = Client::connect(at);
                (0..REQUESTS).all(|_| client.get("/").status == 200)
            })
        })
        .collect();
    for client in &clients {
        assert!(join(client, "a client"));
        // Other commands are answered meanwhile.
        assert!(ask(&running.cli, "status").contains("pipeline     : traces "));
    }
    // The workers hand over their records, which are then exported.
    assert_eq!(ask(&running.cli, "flush"), "filter 'f' : flushed\n\n");
    let all = (CLIENTS * REQUESTS * SPANS) as u64;
    assert_eq!(
        Account::read(&ask(&running.cli, "status"), "traces"),
        Account {
            started: all,
            exported: all,
            lost: 0,
            queued: 0,
            in_flight: 0
        }
    );
    receiver.rest();
    assert_eq!(distinct(&receiver) as u64, all);
    let output = running.end(libc::SIGTERM);
    assert!(!output.stderr.contains("otel"), "{}", output.stderr);
}

#[test]
fn a_graceful_stop_loses_nothing() {
    let (origin, mut receiver) = (Origin::echo(), Receiver::start());
    let running = start(&batches(receiver.at, 65_536), 2, origin.at);
    let at = running.at;
    let (first, answered) = std::sync::mpsc::channel();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let first = first.clone();
            spawn(move || {
                let mut answers = 0;
                // While the listener exists.
                while let Ok(stream) = TcpStream::connect(at) {
                    let mut client = Client::on(stream);
                    while client
                        .try_get("/")
                        .is_some_and(|answer| answer.status == 200)
                    {
                        answers += 1;
                        let _ = first.send(());
                    }
                }
                answers
            })
        })
        .collect();
    for _ in 0..100 {
        assert!(answered.recv_timeout(common::DEADLINE).is_ok());
    }
    let output = running.end(libc::SIGUSR1);
    let answers: usize = clients.iter().map(|client| join(client, "a client")).sum();
    receiver.rest();
    assert_eq!(distinct(&receiver), answers * SPANS);
    assert!(!output.stderr.contains("otel"), "{}", output.stderr);
}

#[test]
fn what_is_under_way_at_the_end_is_told() {
    let (origin, held, _release) = Origin::holding(|_| Vec::new());
    let mut receiver = Receiver::start();
    let running = start(&batches(receiver.at, 65_536), 1, origin.at);
    let mut client = Client::connect(running.at);
    client.send("GET /hold HTTP/1.1\r\nhost: test\r\n\r\n");
    accept(&held, "the request is at the origin");
    let output = running.end(libc::SIGTERM);
    receiver.rest();
    let names: Vec<_> = receiver.spans.iter().map(|(_, span)| &*span.name).collect();
    assert_eq!(names, ["session", "request"]);
    assert!(!output.stderr.contains("otel"), "{}", output.stderr);
}

#[test]
fn a_receiver_that_asks_for_patience_gets_all_of_it() {
    let busy = |status: &str| {
        format!("HTTP/1.1 {status}\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n").into_bytes()
    };
    let refusals = Mutex::new(vec![
        busy("429 Too Many Requests"),
        busy("503 Service Unavailable"),
    ]);
    let mut receiver = Receiver::answering_with(move || refusals.lock().unwrap().pop());
    let origin = Origin::echo();
    let running = start(&batches(receiver.at, 65_536), 1, origin.at);
    let mut client = Client::connect(running.at);
    for _ in 0..2 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(ask(&running.cli, "flush"), "filter 'f' : flushed\n\n");
    let status = ask(&running.cli, "status");
    let account = Account::read(&status, "traces");
    assert_eq!((account.exported, account.lost), (6, 0), "{status}");
    assert!(status.contains("0 abandoned, 2 retries"), "{status}");
    receiver.rest();
    assert_eq!(distinct(&receiver), 6);
    running.end(libc::SIGTERM);
}

#[test]
fn what_is_refused_for_good_is_lost() {
    let refused = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::answering_with(|| Some(refused.to_vec()));
    let origin = Origin::echo();
    let running = start(&batches(receiver.at, 65_536), 1, origin.at);
    assert_eq!(Client::connect(running.at).get("/").status, 200);
    assert_eq!(ask(&running.cli, "flush"), "filter 'f' : flushed\n\n");
    let status = ask(&running.cli, "status");
    assert!(status.contains("3 export_failed"), "{status}");
    assert!(
        status.contains("last error : status 400 Bad Request\n"),
        "{status}"
    );
    running.end(libc::SIGTERM);
}

#[test]
fn a_receiver_that_hangs_costs_what_does_not_fit() {
    const REQUESTS: usize = 600;
    // The test ends first.
    let hanging = Origin::raw(|_stream| {
        loop {
            std::thread::park();
        }
    });
    let origin = Origin::echo();
    let running = start(&batches(hanging.at, 64), 1, origin.at);
    let mut client = Client::connect(running.at);
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/").status, 200);
    }
    let all = (REQUESTS * SPANS) as u64;
    // The counters are read one after the other while other threads change them.
    let status = until_holds(&running.cli, "status", |status| {
        let account = Account::read(status, "traces");
        account.started == all && account.adds_up()
    });
    let account = Account::read(&status, "traces");
    assert!(account.queued <= 64 && account.lost > 0, "{status}");
    assert!(
        status.contains(&format!("{} queue_full", account.lost)),
        "{status}"
    );
    let rest = account.queued + account.in_flight;
    let output = running.end(libc::SIGTERM);
    let told = format!(
        "of {all} records 0 were exported; lost : {} queue_full, {rest} shutdown.",
        account.lost
    );
    assert!(output.stderr.contains(&told), "{told} in {}", output.stderr);
}
