//! Clients at a steady rate over kept connections. Counts requests that failed, and requests that
//! were sent again.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::Failure;
use crate::https::PATIENCE;
use crate::https::latency::Latencies;

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The address of the proxy.
    pub address: SocketAddr,
    /// The requested path.
    pub path: &'static str,
    /// Kept connections.
    pub connections: u32,
    /// Requests per second, all connections together.
    pub per_second: u32,
}

/// The result of a load.
#[derive(Debug, Default)]
pub struct Tally {
    /// The time of each request that was answered.
    pub latencies: Latencies,
    /// Requests that the client sent again, because the proxy closed the connection before it
    /// processed them.
    pub repeated: u64,
    /// Requests with an error or a partial answer, or without any.
    pub failed: u64,
    /// The first failure as text.
    pub example: Option<String>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Broken {
    /// The proxy did not process it, so a client sends it again. Over HTTP/1.1, the kept connection
    /// closed before the first byte of an answer (RFC 9112 §9.3.1). Over HTTP/2, the stream was
    /// refused or came after GOAWAY (RFC 9113 §8.7).
    Unprocessed,
    /// Any other reason, as text.
    Failed(String),
}

/// A sender of requests, with its share of the rate.
#[derive(Clone)]
pub struct Sender {
    pause: Duration,
    tally: Rc<RefCell<Tally>>,
    stop: Arc<AtomicBool>,
}

impl Sender {
    /// Sends a request at each tick until the load is stopped. `exchange` sends one request and
    /// reads its answer.
    pub async fn run(self, mut exchange: impl AsyncFnMut() -> Result<(), Broken>) {
        let mut in_time = async || match timeout(PATIENCE, exchange()).await {
            Ok(outcome) => outcome,
            Err(late) => Err(Broken::Failed(late.to_string())),
        };
        let mut ticks = interval(self.pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !self.stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let start = crate::clock::now();
            let mut outcome = in_time().await;
            if matches!(outcome, Err(Broken::Unprocessed)) {
                self.tally.borrow_mut().repeated += 1;
                outcome = in_time().await;
            }
            let mut tally = self.tally.borrow_mut();
            match outcome {
                Ok(()) => tally.latencies.record(crate::clock::now() - start),
                Err(Broken::Unprocessed) => tally.fail("not processed, twice".to_owned()),
                Err(Broken::Failed(why)) => tally.fail(why),
            }
        }
    }
}

/// Runs `senders` on this thread until `stop` is set. `spawn` starts each of them.
///
/// # Errors
/// The runtime cannot be created.
pub fn run(
    plan: &Plan,
    senders: u32,
    stop: &Arc<AtomicBool>,
    spawn: impl FnOnce(&LocalSet, Sender),
) -> Result<Tally, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let tasks = LocalSet::new();
    let sender = Sender {
        pause: Duration::from_secs(1) * senders / plan.per_second.max(1),
        tally: Rc::clone(&tally),
        stop: Arc::clone(stop),
    };
    spawn(&tasks, sender);
    runtime.block_on(tasks);
    Ok(tally.take())
}

impl Tally {
    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.example.get_or_insert(why);
    }
}
