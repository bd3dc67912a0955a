//! Clients at a steady rate over kept connections of HTTPS: what of their requests failed, and what they sent again.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::client::TlsStream;

use crate::Failure;
use crate::client;
use crate::https::latency::Latencies;
use crate::https::{Offer, PATIENCE, config, connect, request};

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where the proxy listens.
    pub address: SocketAddr,
    /// What is fetched.
    pub path: &'static str,
    /// Kept connections.
    pub connections: u32,
    /// Requests a second, of all connections together.
    pub per_second: u32,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Tally {
    /// The time of each request that was answered.
    pub latencies: Latencies,
    /// Requests that had to be sent again: their kept connection was closed before any byte of an answer came, as every client of
    /// HTTP/1.1 has to expect (RFC 9112 §9.3.1).
    pub repeated: u64,
    /// Requests that were answered with an error, in part, or not at all.
    pub failed: u64,
    /// The first failure, for people.
    pub example: Option<String>,
}

/// Sends requests until `stop` is set.
///
/// # Errors
/// When the client cannot be set up.
pub fn run(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Tally, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config = config(Offer::Usual, &["http/1.1"], true)?;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let clients = LocalSet::new();
    for _ in 0..plan.connections {
        let client = Client {
            plan: *plan,
            config: Arc::clone(&config),
            stream: None,
            buffer: Vec::new(),
        };
        clients.spawn_local(client.run(Rc::clone(&tally), Arc::clone(stop)));
    }
    runtime.block_on(clients);
    Ok(tally.take())
}

impl Tally {
    /// A request failed for this reason.
    pub fn fail(&mut self, why: String) {
        self.failed += 1;
        self.example.get_or_insert(why);
    }
}

struct Client {
    plan: Plan,
    config: Arc<ClientConfig>,
    stream: Option<TlsStream<TcpStream>>,
    buffer: Vec<u8>,
}

/// How an exchange ended without an answer.
enum Broken {
    /// The kept connection was closed, and not a byte came: a client sends the request again.
    Closed,
    Failed(io::Error),
}

impl Client {
    async fn run(mut self, tally: Rc<RefCell<Tally>>, stop: Arc<AtomicBool>) {
        let pause = Duration::from_secs(1) * self.plan.connections / self.plan.per_second.max(1);
        let mut ticks = interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let start = crate::clock::now();
            let mut outcome = self.exchange().await;
            if matches!(outcome, Err(Broken::Closed)) {
                tally.borrow_mut().repeated += 1;
                outcome = self.exchange().await;
            }
            let mut tally = tally.borrow_mut();
            match outcome {
                Ok(()) => tally.latencies.record(crate::clock::now() - start),
                Err(broken) => {
                    self.stream = None;
                    let text = match broken {
                        Broken::Closed => "a new connection was closed".to_owned(),
                        Broken::Failed(error) => error.to_string(),
                    };
                    tally.fail(text);
                }
            }
        }
    }

    async fn exchange(&mut self) -> Result<(), Broken> {
        match timeout(PATIENCE, self.exchange_in_time()).await {
            Ok(outcome) => outcome,
            Err(late) => Err(Broken::Failed(late.into())),
        }
    }

    async fn exchange_in_time(&mut self) -> Result<(), Broken> {
        let kept = self.stream.take();
        let is_kept = kept.is_some();
        let mut stream = match kept {
            Some(stream) => stream,
            None => connect(self.plan.address, &self.config)
                .await
                .map_err(Broken::Failed)?,
        };
        self.buffer.clear();
        let sent = async {
            stream.write_all(&request(self.plan.path, false)).await?;
            stream.flush().await
        };
        let mut outcome = sent.await;
        while outcome.is_ok() {
            if client::complete(&self.buffer)
                .map_err(Broken::Failed)?
                .is_some()
            {
                let closes = memchr::memmem::find(&self.buffer, b"onnection: close").is_some();
                self.stream = Some(stream).filter(|_| !closes);
                return Ok(());
            }
            outcome = match stream.read_buf(&mut self.buffer).await {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
        }
        match outcome {
            Err(_) if is_kept && self.buffer.is_empty() => Err(Broken::Closed),
            Err(error) => Err(Broken::Failed(error)),
            Ok(()) => Ok(()),
        }
    }
}
