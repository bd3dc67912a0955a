//! Collectors within the proxy's process (sections `collector`). Each has a thread and a runtime of
//! its own. The filters' exporters reach it without a socket. Collectors start before privileges
//! are dropped. They end after the last exports, so that sampling decisions include the workers'
//! last spans.

mod door;
mod ports;
mod read;

pub(crate) use collector::config::Config as Read;
pub(crate) use read::read;

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::config::model::{CollectorSection, Config};
use collector::config::{Signal, gates};
use collector::dashboard::{self, Store};
use collector::run::part::{PartName, Pending};
use collector::run::{Collector, Host, Listeners, Log, Setup, Sharing, View};
use door::Door;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::collect::{account, log, tell_accounts};
use crate::sys::{self, Signals};
use crate::warning;

/// Per cent of the memory that the pending traces of all collectors may take, unless a
/// `memory_limiter` sets a lower limit. The proxy needs the rest.
const MEMORY_PERCENT: u64 = 30;
/// Most time to wait at the end for tasks that depend on other processes.
const RUNTIME_END_MAX: Duration = Duration::from_secs(1);

/// A collector of the process: its name and its view for reports.
pub(crate) type Watched = (String, Arc<View>);

/// The collectors of the process.
pub(crate) struct Collectors {
    running: Vec<Running>,
    alive: Arc<AtomicUsize>,
}

struct Running {
    name: String,
    orders: UnboundedSender<Order>,
    door: Arc<Door>,
    view: Arc<View>,
}

enum Order {
    /// Another process listens now.
    StopListening,
    /// No more records arrive.
    End,
}

impl Collectors {
    /// Starts the collector of each section; starts no thread without one. Each collector calls
    /// `ended` at its end.
    ///
    /// # Errors
    /// Which collector cannot be started, and why.
    pub fn start(config: &Config, read: Vec<Read>, ended: fn()) -> Result<Collectors, String> {
        let sections = &config.collectors;
        let alive = Arc::new(AtomicUsize::new(0));
        let host = |section: &CollectorSection| Host {
            memory_percent: (MEMORY_PERCENT / sections.len() as u64).max(1),
            sharing: Sharing::Shared,
            listeners: Listeners::default(),
            root_wait: section.root_wait,
        };
        let mut collectors = Collectors {
            running: Vec::new(),
            alive: Arc::clone(&alive),
        };
        let traces = dashboard::store_for(&read, None);
        let mut taken = ports::of_proxies(config);
        for (section, read) in sections.iter().zip(read) {
            let failed = |why: String| format!("Starting collector '{}': {why}.", section.name);
            let runtime = runtime(section).map_err(|error| failed(error.to_string()))?;
            let (log, collector) = {
                let _within = runtime.enter();
                open(section, &read, &host(section), traces.clone()).map_err(failed)?
            };
            ports::claim(section, &collector, &mut taken).map_err(failed)?;
            let (orders, receiver) = unbounded_channel();
            collectors.running.push(Running {
                name: section.name.clone(),
                orders,
                door: Arc::new(Door::new(collector.of_proxy(), runtime.handle().clone())),
                view: Arc::clone(&collector.view),
            });
            alive.fetch_add(1, Ordering::Relaxed);
            let alive = Alive(Arc::clone(&alive), ended);
            let thread = std::thread::Builder::new().name(thread_name(&section.name));
            let work = move || live(runtime, collector, receiver, &log, alive);
            thread
                .spawn(work)
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(collectors)
    }

    /// The connections from exporters to the collectors, by name.
    pub fn doors(&self) -> export::Collectors {
        let door = |one: &Running| {
            let door: Arc<dyn export::InProcess> = Arc::<Door>::clone(&one.door);
            (one.name.clone(), door)
        };
        self.running.iter().map(door).collect()
    }

    /// The views of the collectors, by name.
    pub fn views(&self) -> Vec<Watched> {
        let view = |one: &Running| (one.name.clone(), Arc::clone(&one.view));
        self.running.iter().map(view).collect()
    }

    /// Closes the listeners of the collectors. They still accept what the proxy records.
    pub fn stop_listening(&self) {
        self.order(|| Order::StopListening);
    }

    /// Has the collectors decide on pending traces and send them, within the time limits of a
    /// collector's end. With `may_give_up`, a second SIGINT aborts this. A worker must not abort:
    /// the SIGINT that a terminal sends reaches it a second time from its master.
    pub fn end(self, signals: &Signals, may_give_up: bool) {
        self.order(|| Order::End);
        while self.alive.load(Ordering::Acquire) > 0 {
            if signals.wait() == Some(libc::SIGINT) && may_give_up {
                return warning("Interrupted again : records that wait in collectors are lost.");
            }
        }
    }

    fn order(&self, order: impl Fn() -> Order) {
        for one in &self.running {
            // A collector that has ended ignores orders.
            let _ = one.orders.send(order());
        }
    }
}

/// The panics that ended a request to a collector.
pub(crate) fn panics((_, view): &Watched) -> u64 {
    let balances = view.accounts.iter().map(|account| account.balance());
    balances.map(|balance| balance.panics).sum()
}

/// Writes a collector's accounts in the format of `show collectors`.
pub(crate) fn describe((name, view): &Watched, out: &mut String) -> fmt::Result {
    writeln!(out, "collector '{name}'")?;
    let signals = Signal::ALL.into_iter().zip(&view.accounts);
    for (signal, balance) in signals.map(|(signal, account)| (signal, account.balance())) {
        let signal = signal.to_string();
        writeln!(out, "  {signal:<8} : {}", account(&balance))?;
    }
    for one in &view.parts {
        let Some(Pending { traces, spans }) = one.part.pending() else {
            continue;
        };
        let PartName { pipeline, id } = &one.name;
        writeln!(
            out,
            "  waiting  : {traces} traces of {spans} spans in {id} of {pipeline}"
        )?;
    }
    let (used, most) = (view.budget.used_bytes(), view.budget.bytes_max());
    writeln!(out, "  memory   : {used} of {most} bytes")
}

/// Counts a running thread; the drop at its end counts it down, after a panic too.
struct Alive(Arc<AtomicUsize>, fn());

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
        self.1();
    }
}

/// The kernel keeps fifteen bytes of the name.
fn thread_name(name: &str) -> String {
    format!("collector-{name}")
}

fn runtime(section: &CollectorSection) -> std::io::Result<Runtime> {
    let mut builder = match section.threads {
        1 => Builder::new_current_thread(),
        threads => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads.into());
            builder
        }
    };
    builder.thread_name(thread_name(&section.name));
    builder.enable_all().build()
}

fn open(
    section: &CollectorSection,
    read: &Read,
    host: &Host,
    traces: Option<Arc<Store>>,
) -> Result<(Log, Collector), String> {
    let mut logs = read.telemetry.logs.clone();
    let field = ("collector".to_owned(), section.name.clone());
    logs.initial_fields.push(field);
    let log = log::open(&logs).map_err(|why| format!("service::telemetry::logs: {why}"))?;
    let mut lists = section.feature_gates.iter().rev();
    let record_policy = lists.find_map(|list| gates::parse(list).ok()?.record_policy);
    let setup = Setup {
        log: log.clone(),
        seed: sys::random_seed(),
        record_policy: record_policy.unwrap_or(false),
        memory_used_bytes: sys::memory_used_bytes,
        traces,
    };
    let collector = Collector::start_in(read, setup, host).map_err(|error| error.0)?;
    Ok((log, collector))
}

/// Runs a collector on its thread until it ends.
fn live(
    runtime: Runtime,
    collector: Collector,
    mut orders: UnboundedReceiver<Order>,
    log: &Log,
    _alive: Alive,
) {
    for (name, at) in collector.addresses() {
        if let Some(at) = at {
            log.info(&format!("{name} listens on {at}"));
        }
    }
    let balances = runtime.block_on(async {
        while let Some(Order::StopListening) = orders.recv().await {
            collector.stop_listening();
        }
        collector.end().await
    });
    tell_accounts(log, &balances);
    runtime.shutdown_timeout(RUNTIME_END_MAX);
}
