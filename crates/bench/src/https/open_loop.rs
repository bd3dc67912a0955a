//! Load at a constant rate over kept connections. Each request has a scheduled time, whatever the
//! proxy does. Its latency counts from that time, so that a stalled proxy does not get fewer
//! requests (no coordinated omission).

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::PATIENCE;
use super::connect::{Offer, config, connect};
use super::exchange::{exchange, request};
use super::latency::Latencies;
use super::line::Line;
use super::schedule::Schedule;
use crate::Failure;
use crate::clock;
use crate::sys::{self, Timer};

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The address of the proxy.
    pub address: SocketAddr,
    /// The requested path.
    pub path: &'static str,
    /// Requests per second, all threads together.
    pub per_second: u32,
    /// The duration.
    pub seconds: u32,
    /// Kept connections, all threads together.
    pub connections: u32,
    /// Threads of the generator.
    pub threads: u32,
    /// Most requests that wait for a connection, all threads together.
    pub waiting_max: u32,
}

/// The result of a load.
#[derive(Debug, Default)]
pub struct Tally {
    /// From the scheduled time of each request to its answer.
    pub latencies: Latencies,
    /// From the scheduled time of each request until the generator processed it. It is part of the
    /// latency, but not caused by the proxy.
    pub lateness: Latencies,
    /// Requests without a good answer within [`PATIENCE`].
    pub errors: u64,
    /// Requests that were dropped, because all connections were busy and the queue was full.
    pub dropped: u64,
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        self.latencies.merge(other.latencies);
        self.lateness.merge(other.lateness);
        self.errors += other.errors;
        self.dropped += other.dropped;
    }
}

/// Connects, calls `begin` and runs the load. Returns its result and that of `begin`.
///
/// # Errors
/// A connection cannot be made, or the generator cannot be set up.
pub fn run<T>(plan: &Plan, begin: impl FnOnce() -> T) -> Result<(Tally, T), Failure> {
    let (readiness, ready) = mpsc::channel();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..plan.threads {
            let readiness = readiness.clone();
            let (go, begun) = mpsc::channel();
            let work = move || generator(plan, number, readiness, &begun);
            let name = format!("load-{number}");
            let handle = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)?;
            threads.push((handle, go));
        }
        drop(readiness);
        // Ends when each thread has dropped its sender.
        let _ = ready.recv();
        let started = begin();
        for (_, go) in &threads {
            // A failed thread no longer listens; its result has the error.
            let _ = go.send(());
        }
        let mut all = Tally::default();
        for (handle, _) in threads {
            let one = handle.join().map_err(|_| "the generator panicked")?;
            all.merge(one?);
        }
        Ok((all, started))
    })
}

/// One thread of the generator. It drops `readiness` after it has connected, and starts when
/// `begun` has a message.
fn generator(
    plan: &Plan,
    number: u32,
    readiness: Sender<()>,
    begun: &Receiver<()>,
) -> io::Result<Tally> {
    let mine = |all: u32| (all + plan.threads - 1 - number) / plan.threads;
    let (runtime, config, streams) = prepare(plan, mine(plan.connections))?;
    drop(readiness);
    if begun.recv().is_err() {
        return Ok(Tally::default());
    }
    let shared = Rc::new(Shared {
        plan: *plan,
        config,
        start: clock::now(),
        line: RefCell::new(Line::new(mine(plan.waiting_max) as usize)),
        wake: Notify::new(),
        tally: RefCell::default(),
    });
    let tasks = LocalSet::new();
    for stream in streams {
        tasks.spawn_local(serve(Rc::clone(&shared), stream));
    }
    let schedule = Schedule::new(plan.per_second, plan.seconds, number, plan.threads);
    runtime.block_on(tasks.run_until(arrivals(Rc::clone(&shared), schedule)))?;
    runtime.block_on(tasks);
    let mut tally = shared.tally.take();
    tally.dropped = shared.line.borrow().dropped();
    Ok(tally)
}

type Stream = TlsStream<TcpStream>;

fn prepare(plan: &Plan, connections: u32) -> io::Result<(Runtime, Arc<ClientConfig>, Vec<Stream>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config =
        config(Offer::Usual, &[], false).map_err(|error| io::Error::other(error.to_string()))?;
    let request = request(plan.path, false);
    let streams = runtime.block_on(async {
        let mut streams = Vec::new();
        let mut buffer = Vec::new();
        for _ in 0..connections {
            let one = async {
                let mut stream = connect(plan.address, &config).await?;
                // This also makes the proxy's connection to the origin.
                exchange(&mut stream, &request, &mut buffer).await?;
                io::Result::Ok(stream)
            };
            streams.push(timeout(PATIENCE, one).await??);
        }
        io::Result::Ok(streams)
    })?;
    Ok((runtime, config, streams))
}

/// State that the tasks of one thread share.
struct Shared {
    plan: Plan,
    config: Arc<ClientConfig>,
    start: Instant,
    line: RefCell<Line>,
    wake: Notify,
    tally: RefCell<Tally>,
}

/// Adds each request to the queue at its scheduled time.
async fn arrivals(shared: Rc<Shared>, mut schedule: Schedule) -> io::Result<()> {
    let timer = Timer::new()?;
    while let Some(next) = schedule.due() {
        let now = clock::now() - shared.start;
        if sys::interrupted() {
            break;
        }
        if now < next {
            timer.wait(next - now).await?;
            continue;
        }
        while let Some(due) = schedule.take(now) {
            shared.tally.borrow_mut().lateness.record(now - due);
            if shared.line.borrow_mut().offer(due) {
                shared.wake.notify_one();
            }
        }
        // When the generator is late, the next request is always due: the connections must get a
        // turn.
        tokio::task::yield_now().await;
    }
    shared.line.borrow_mut().close();
    shared.wake.notify_waiters();
    Ok(())
}

/// One connection: takes requests from the queue until it is closed and empty.
async fn serve(shared: Rc<Shared>, stream: Stream) {
    let request = request(shared.plan.path, false);
    let mut stream = Some(stream);
    let mut buffer = Vec::new();
    while let Some(due) = shared.next().await {
        let due = shared.start + due;
        let left = PATIENCE.saturating_sub(clock::now() - due);
        let kept = stream.take();
        let one = async {
            let mut stream = match kept {
                Some(stream) => stream,
                None => connect(shared.plan.address, &shared.config).await?,
            };
            exchange(&mut stream, &request, &mut buffer).await?;
            io::Result::Ok(stream)
        };
        let outcome = match timeout(left, one).await {
            Ok(outcome) => outcome,
            Err(late) => Err(late.into()),
        };
        let mut tally = shared.tally.borrow_mut();
        match outcome {
            Ok(kept) => {
                tally.latencies.record(clock::now() - due);
                stream = Some(kept);
            }
            Err(_) => tally.errors += 1,
        }
    }
}

impl Shared {
    async fn next(&self) -> Option<Duration> {
        loop {
            // Created before the check, so that no wake-up in between is lost.
            let woken = self.wake.notified();
            {
                let mut line = self.line.borrow_mut();
                match line.take() {
                    Some(due) => return Some(due),
                    None if line.closed() => return None,
                    None => line.enter(),
                }
            }
            woken.await;
            self.line.borrow_mut().leave();
        }
    }
}
