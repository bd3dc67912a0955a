//! The end of a process: nothing that it accepted is lost, and it ends when it is told to at the latest.

use crate::common;

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use common::http::Client;
use common::origin::{Origin, ok};
use common::{DEFAULTS, Port, Proxy, accept, address, join, listener, spawn, uninterrupted};

/// Sends requests until it is told to stop, on one connection as long as that is kept; how many were answered.
/// Every one must be.
fn keep_asking(to: SocketAddr, stop: &AtomicBool, answered: &AtomicU32) -> Result<u32, String> {
    let mut count = 0;
    let mut client = Client::connect(to);
    while !stop.load(SeqCst) {
        let path = format!("/{count}");
        let answer = client
            .try_get(&path)
            .ok_or_else(|| format!("request {count} is lost"))?;
        if answer.status != 200 || !answer.text().starts_with(&format!("GET {path} ")) {
            return Err(format!("request {count}: {}", answer.line));
        }
        count += 1;
        answered.fetch_add(1, SeqCst);
        if answer.field("connection") == Some("close") {
            client = Client::connect(to);
        }
    }
    Ok(count)
}

#[test]
fn a_second_process_takes_over_without_a_lost_request() {
    const CLIENTS: usize = 4;
    const REQUESTS: u32 = 200;
    let (origin, held, release) = Origin::holding(|request| ok(&request.line));
    let reserved = Port::reserve();
    let port = reserved.number;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let config = format!(
        "{DEFAULTS}\nlisten l\n bind 127.0.0.1:{port}\n server s {}\n",
        origin.at
    )
    .replace("nbthread 1", "nbthread 2");
    let old = Proxy::start(&config, &[]);
    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            spawn(move || keep_asking(to, &stop, &answered))
        })
        .collect();
    let wait_for = |more: u32| {
        let from = answered.load(SeqCst);
        // A client that fails ends: then nobody counts any more.
        while answered.load(SeqCst) < from + more {
            std::thread::yield_now();
            for client in &clients {
                if let Ok(Err(error)) = client.try_recv() {
                    panic!("{error}");
                }
            }
        }
    };
    wait_for(REQUESTS);
    let mut slow = Client::connect(to);
    slow.send("GET /hold HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&held, "it is being served");
    let new = Proxy::start(&config, &[]);
    wait_for(REQUESTS);
    old.running.signal(libc::SIGUSR1);
    wait_for(REQUESTS);
    drop(accept(&release, "it waits for the word"));
    let answer = slow.response().expect("an answer");
    assert_eq!(answer.text(), "GET /hold HTTP/1.1");
    let output = old.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    wait_for(REQUESTS);
    stop.store(true, SeqCst);
    let counts: Vec<u32> = clients
        .iter()
        .map(|client| join(client, "a client").unwrap_or_else(|error| panic!("{error}")))
        .collect();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    new.stop();
}

/// A server that never answers, and tells when it was asked.
fn silent() -> (Origin, std::net::TcpListener) {
    let asked = listener();
    let at = address(&asked);
    let origin = Origin::raw(move |mut stream| {
        let _ = uninterrupted(|| stream.read(&mut [0; 100]));
        drop(TcpStream::connect(at));
        let _ = stream.read_to_end(&mut Vec::new());
    });
    (origin, asked)
}

#[test]
fn a_drain_has_an_end() {
    let (origin, asked) = silent();
    let front = listener();
    let config = format!(
        "global\n hard-stop-after 200ms\n{DEFAULTS}\nlisten l\n bind \"fd@${{FRONT}}\"\n server s {}\n",
        origin.at
    );
    let proxy = Proxy::start(&config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    accept(&asked, "it is being served");
    proxy.running.signal(libc::SIGUSR1);
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert!(client.is_closed());
}

#[test]
fn with_grace_it_still_accepts() {
    let reserved = Port::reserve();
    let port = reserved.number;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let config = format!(
        "global\n grace 1500ms\n{DEFAULTS}\nfrontend f\n bind 127.0.0.1:{port}\n http-request return status 200\n"
    );
    let proxy = Proxy::start(&config, &[]);
    proxy.running.signal(libc::SIGUSR1);
    // A fresh connection that is told to close was accepted after the signal.
    while Client::connect(to).get("/").field("connection") != Some("close") {}
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert!(TcpStream::connect(to).is_err(), "nobody listens any more");
}

#[test]
fn idle_clients_end_with_the_drain_or_with_their_next_response() {
    let (plain, patient) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}
frontend plain
    bind \"fd@${{PLAIN}}\"
    http-request return status 200
frontend patient
    option idle-close-on-response
    bind \"fd@${{PATIENT}}\"
    http-request return status 200
"
    );
    let proxy = Proxy::start(&config, &[("PLAIN", &plain), ("PATIENT", &patient)]);
    let mut idle = Client::connect(address(&plain));
    let mut waiting = Client::connect(address(&patient));
    assert_eq!(idle.get("/").status, 200);
    assert_eq!(waiting.get("/").status, 200);
    proxy.running.signal(libc::SIGUSR1);
    assert!(idle.is_closed());
    let answer = waiting.get("/");
    assert_eq!(
        (answer.status, answer.field("connection")),
        (200, Some("close"))
    );
    assert!(waiting.is_closed());
    let output = proxy.running.end();
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}
