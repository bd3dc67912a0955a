//! A demo origin: one thread per connection, because its answers are delayed.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::answer::Site;
use super::random::Random;
use super::spans::{Served, Spans};
use crate::sys;

/// Most connections at a time; more are closed.
const CONNECTIONS_MAX: usize = 512;
/// An idle connection closes after this time.
const IDLE_MAX: Duration = Duration::from_secs(60);
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Most bytes of a body, which is discarded.
const BODY_BYTES_MAX: usize = 1 << 20;
const STACK_BYTES: usize = 128 << 10;

/// Serves a site on a free loopback port until the process ends.
///
/// # Errors
/// It cannot listen, or a thread cannot be started.
pub fn start(site: Site, spans: Spans) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let shared = Arc::new((site, spans, AtomicUsize::new(0)));
    let builder = std::thread::Builder::new().name("demo-origin".to_owned());
    builder.spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            if shared.2.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                shared.2.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let builder = std::thread::Builder::new().name("demo-conn".to_owned());
            let own = Arc::clone(&shared);
            let spawned = builder.stack_size(STACK_BYTES).spawn(move || {
                // A client that has gone needs no message.
                let _ = serve(stream, &own.0, &own.1);
                own.2.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                shared.2.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(address)
}

fn serve(mut stream: TcpStream, site: &Site, spans: &Spans) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_write_timeout(Some(IDLE_MAX))?;
    let mut random = Random::new();
    let mut came = Vec::new();
    while let Some(head) = head(&mut stream, &mut came)? {
        let began = now();
        skip(&mut stream, &mut came, length(&head))?;
        let mut words = head.split(' ');
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or("/"),
        );
        let plan = site.plan(target, &mut random);
        sys::pause(plan.latency);
        stream.write_all(&site.answer(&head, &plan))?;
        if let Some(parent) = field(&head, "traceparent") {
            spans.served(
                &Served {
                    origin: site.name,
                    method,
                    target,
                    plan: &plan,
                    parent,
                    began,
                    ended: now(),
                },
                &mut random,
            );
        }
        if field(&head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return Ok(());
        }
    }
    Ok(())
}

/// The next head, with its empty line; None at the end. Bytes after it stay in `came`.
fn head(stream: &mut TcpStream, came: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(came, b"\r\n\r\n") {
            let rest = came.split_off(end + 4);
            let head = std::mem::replace(came, rest);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        let count = stream.read(&mut piece)?;
        if count == 0 || came.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        came.extend_from_slice(&piece[..count]);
    }
}

/// Reads a body and discards it.
fn skip(stream: &mut TcpStream, came: &mut Vec<u8>, length: usize) -> io::Result<()> {
    if length > BODY_BYTES_MAX {
        return Err(io::Error::other("the body is too large"));
    }
    let here = came.len().min(length);
    came.drain(..here);
    let rest = (length - here) as u64;
    io::copy(&mut stream.take(rest), &mut io::sink())?;
    Ok(())
}

fn length(head: &str) -> usize {
    field(head, "content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The time since the UNIX epoch.
#[expect(clippy::disallowed_methods, reason = "spans tell real times")]
fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
