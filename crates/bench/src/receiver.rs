//! `receiver`: an OTLP/HTTP endpoint that counts what it receives, and discards it.
//!
//! One blocking thread per connection: exporters have few. Messages are read completely, and parsed
//! only as far as needed to count records. So the receiver takes little CPU from the machine on
//! which a proxy is measured.

mod json;
mod message;
#[cfg(test)]
mod tests;

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use lexopt::{Arg, ValueExt};

use crate::Failure;
use crate::sys;
use message::Body;
use otlp::{Signal, count};

/// The options.
pub const HELP: &str =
    "[OPTIONS]: serves an OTLP/HTTP endpoint that counts spans, log records and data points, until Ctrl-C
--listen ADDR      address (127.0.0.1:4318); GET /counts returns the counts as JSON; from GET /down to GET /up it answers 503";

/// Most connections at a time; further ones are closed.
const CONNECTIONS_MAX: usize = 1024;
/// Most bytes of one read from a socket.
const READ_BYTES: usize = 256 * 1024;
/// The interval of checks whether the program must end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The path of each signal.
const PATHS: &[(&str, Signal)] = &[
    ("/v1/traces", Signal::Traces),
    ("/v1/logs", Signal::Logs),
    ("/v1/metrics", Signal::Metrics),
];

/// Runs the command.
///
/// # Errors
/// An option is invalid, or the address cannot be used.
pub fn run(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 4318));
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("listen") => listen = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    println!("the receiver listens on {}", start(listen)?);
    while !sys::interrupted() {
        sys::pause(LOOK_EVERY);
    }
    Ok(())
}

/// Receives on `listen` until the process ends. Returns the address with its port.
///
/// # Errors
/// It cannot listen, or a thread cannot be started.
pub fn start(listen: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen)?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared::default());
    std::thread::Builder::new()
        .name("receiver".into())
        .spawn(move || accept(&listener, &shared))?;
    Ok(address)
}

/// The counters.
#[derive(Debug, Default)]
struct Shared {
    /// Counted messages.
    messages: AtomicU64,
    /// Their bytes.
    bytes: AtomicU64,
    /// Refused messages.
    refused: AtomicU64,
    /// Records, by [`Signal`].
    records: [AtomicU64; 3],
    connections: AtomicUsize,
    /// Nothing is accepted or counted.
    down: AtomicBool,
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        let open = Open::new(shared);
        if shared.connections.load(Relaxed) > CONNECTIONS_MAX {
            continue;
        }
        // If the thread cannot be started, the connection closes.
        let _ = std::thread::Builder::new()
            .name("connection".into())
            .spawn(move || serve(stream, &open.0));
    }
}

/// An open connection, counted.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// Answers the requests of a connection until it ends or a request is invalid.
fn serve(stream: TcpStream, shared: &Shared) {
    // Answers are small and written in one piece.
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let mut body = Vec::new();
    while let Ok(Some(head)) = message::read(&mut stream, &mut body) {
        let answer = match head.method.as_str() {
            "GET" if head.path == "/counts" => counts(shared),
            "GET" if head.path == "/down" => turn(shared, true),
            "GET" if head.path == "/up" => turn(shared, false),
            "POST" if shared.down.load(Relaxed) => {
                answer("503 Service Unavailable", "text/plain", "")
            }
            "POST" => receive(&head.path, head.body, &body, shared),
            _ => answer("404 Not Found", "text/plain", ""),
        };
        if stream.get_mut().write_all(answer.as_bytes()).is_err() || head.closes {
            return;
        }
    }
}

/// Counts a message.
fn receive(path: &str, kind: Body, body: &[u8], shared: &Shared) -> String {
    let refuse = |status: &str| {
        shared.refused.fetch_add(1, Relaxed);
        answer(status, "text/plain", "")
    };
    let Some((_, signal)) = PATHS.iter().find(|(known, _)| *known == path) else {
        return refuse("404 Not Found");
    };
    let (records, content_type) = match kind {
        Body::Protobuf => (count::records(*signal, body).ok(), "application/x-protobuf"),
        Body::Json => (json::records(*signal, body), "application/json"),
        Body::Other => return refuse("415 Unsupported Media Type"),
    };
    let Some(records) = records else {
        return refuse("400 Bad Request");
    };
    shared.messages.fetch_add(1, Relaxed);
    shared.bytes.fetch_add(body.len() as u64, Relaxed);
    shared.records[*signal as usize].fetch_add(records, Relaxed);
    // An empty message: everything was accepted.
    let message = if kind == Body::Json { "{}" } else { "" };
    answer("200 OK", content_type, message)
}

fn turn(shared: &Shared, down: bool) -> String {
    shared.down.store(down, Relaxed);
    answer("200 OK", "text/plain", "")
}

fn counts(shared: &Shared) -> String {
    let records = |signal: Signal| shared.records[signal as usize].load(Relaxed);
    let counts = serde_json::json!({
        "spans": records(Signal::Traces),
        "logs": records(Signal::Logs),
        "points": records(Signal::Metrics),
        "messages": shared.messages.load(Relaxed),
        "bytes": shared.bytes.load(Relaxed),
        "refused": shared.refused.load(Relaxed),
    });
    answer("200 OK", "application/json", &counts.to_string())
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
