//! A light load, so that the dashboard has data to show.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::random::Random;
use crate::sys;

/// Connections, each with one request at a time.
const CLIENTS: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest pause, so that a client notices the end.
const PAUSE_MAX_S: f64 = 2.0;
/// Pause before a failed connection is retried.
const AGAIN: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The requested targets, and their frequency.
const TARGETS: &[(&str, f64)] = &[
    ("/", 20.0),
    ("/products", 20.0),
    ("/products/42", 25.0),
    ("/search?q=tea", 12.0),
    ("/cart", 15.0),
    ("/checkout", 7.5),
    ("/slow", 0.3),
    ("/error", 0.2),
];

/// Runs until [`Load::end`].
pub struct Load {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts the load: this many requests per second in total.
///
/// # Errors
/// A thread cannot be started.
pub fn start(to: SocketAddr, rate: u32) -> io::Result<Load> {
    let mut load = Load {
        ended: Arc::default(),
        threads: Vec::new(),
    };
    let clients = if rate == 0 { 0 } else { CLIENTS };
    for _ in 0..clients {
        let ended = Arc::clone(&load.ended);
        let pause_s = f64::from(CLIENTS) / f64::from(rate);
        let builder = std::thread::Builder::new().name("demo-load".to_owned());
        load.threads.push(builder.spawn(move || {
            let mut random = Random::new();
            while !ended.load(Ordering::Relaxed) {
                if client(to, pause_s, &ended, &mut random).is_err() {
                    sys::pause(AGAIN);
                }
            }
        })?);
    }
    Ok(load)
}

impl Load {
    pub fn end(self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A panic of the thread was reported.
            let _ = thread.join();
        }
    }
}

/// Serves one connection until it breaks.
fn client(to: SocketAddr, pause_s: f64, ended: &AtomicBool, random: &mut Random) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    while !ended.load(Ordering::Relaxed) {
        let target = pick(random);
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: shop.example\r\nuser-agent: spangate-demo-load\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        answer(&mut stream)?;
        sys::pause(Duration::from_secs_f64(
            random.exponential(pause_s).min(PAUSE_MAX_S),
        ));
    }
    Ok(())
}

fn pick(random: &mut Random) -> &'static str {
    let all: f64 = TARGETS.iter().map(|(_, weight)| weight).sum();
    let mut left = random.share() * all;
    for (target, weight) in TARGETS {
        left -= weight;
        if left < 0.0 {
            return target;
        }
    }
    TARGETS[0].0
}

/// Reads an answer with a Content-Length, whatever its status.
fn answer(stream: &mut TcpStream) -> io::Result<()> {
    let mut came = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(&came, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&came[..end]).to_ascii_lowercase();
            let length = { head.lines() }
                .find_map(|line| {
                    line.strip_prefix("content-length:")?
                        .trim()
                        .parse::<usize>()
                        .ok()
                })
                .ok_or_else(|| io::Error::other("no length"))?;
            if came.len() >= end + 4 + length {
                return Ok(());
            }
        }
        let count = stream.read(&mut piece)?;
        if count == 0 || came.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::other("the response is truncated or too large"));
        }
        came.extend_from_slice(&piece[..count]);
    }
}
