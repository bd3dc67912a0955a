//! The task of a section.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tables::UpdateLog;
use tls::stream::GetConnector;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use super::connections::{Wire, accepted, opened, tcp};
use super::{Accept, Address, Command, Listener, RunnerSetup, SectionSetup};

use crate::section::{ConnId, Section, Setup, SharedTable};

/// The pause between two looks at the updates of busy tables: many updates of one entry become one.
const GATHER_MS: u64 = 1;
/// The pause after a connection could not be accepted, because descriptors are missing.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The longest sleep without a deadline.
const SLEEP_MS_MAX: u64 = 60_000;

/// Runs all sections until the end of the thread.
pub(super) async fn run(setup: RunnerSetup, mut commands: UnboundedReceiver<Command>) {
    let left = Rc::new(Cell::new(setup.sections.len()));
    let all_over = Rc::new(Notify::new());
    let mut states = Vec::new();
    for section in setup.sections {
        let (state, listeners) = State::new(section, setup.clock, setup.random);
        states.push(Rc::clone(&state));
        let (left, all_over) = (Rc::clone(&left), Rc::clone(&all_over));
        tokio::task::spawn_local(async move {
            serve(&state, listeners).await;
            left.set(left.get() - 1);
            if left.get() == 0 {
                all_over.notify_one();
            }
        });
    }
    let mut on_over = Some(setup.on_over);
    loop {
        tokio::select! {
            () = all_over.notified() => {
                if let Some(on_over) = on_over.take() {
                    on_over();
                }
            }
            command = commands.recv() => match command {
                Some(Command::View(sender)) => {
                    let now_ms = (setup.clock)();
                    let views = states.iter().map(|state| state.section.borrow().view(now_ms));
                    // The caller may have given up.
                    let _ = sender.send(views.collect());
                }
                Some(Command::StopSoftly(within_ms)) => {
                    for state in &states {
                        state.stops.set(Some(within_ms));
                        state.changed.notify_one();
                    }
                }
                Some(Command::Stop) | None => return,
            },
        }
    }
}

/// How a peer is reached.
pub(super) struct Remote {
    pub address: Address,
    /// None for plain connections.
    pub connector: Option<GetConnector>,
}

/// A section and its tasks.
pub(super) struct State {
    pub section: RefCell<Section>,
    pub clock: fn() -> u64,
    /// Something may be due.
    pub changed: Notify,
    /// A table has updates.
    updated: Arc<Notify>,
    /// A soft stop was asked for.
    stops: Cell<Option<Option<u64>>>,
    /// Wakes the tasks of connections.
    pub writers: RefCell<BTreeMap<ConnId, Rc<Notify>>>,
    /// By peer.
    pub remotes: Vec<Remote>,
    pub accept: Option<Accept>,
}

impl State {
    fn new(
        setup: SectionSetup,
        clock: fn() -> u64,
        random: fn() -> u64,
    ) -> (Rc<State>, Vec<Listener>) {
        let updated = Arc::new(Notify::new());
        let tables = setup.tables.into_iter().filter_map(|table| {
            let updated = Arc::clone(&updated);
            Some(SharedTable {
                log: UpdateLog::open(table.table, move || updated.notify_one())?,
                write_to: table.write_to,
            })
        });
        let tables = tables.collect();
        let (peers, remotes) = setup
            .peers
            .into_iter()
            .map(|peer| {
                let remote = Remote {
                    address: peer.address,
                    connector: peer.connector,
                };
                (peer.setup, remote)
            })
            .unzip();
        let section = Section::new(
            Setup {
                name: setup.name,
                local: setup.local,
                pid: std::process::id(),
                peers,
                tables,
                shards: setup.shards,
                follows_another: setup.follows_another,
                random: Box::new(random),
            },
            clock(),
        );
        let state = State {
            section: RefCell::new(section),
            clock,
            changed: Notify::new(),
            updated,
            stops: Cell::new(None),
            writers: RefCell::default(),
            remotes,
            accept: setup.accept,
        };
        (Rc::new(state), setup.listeners)
    }

    pub fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// Does what is due, and wakes all connections.
    fn step(self: &Rc<State>) {
        let opened_now = {
            let mut section = self.section.borrow_mut();
            section.tick(self.now_ms());
            section.take_connections()
        };
        for (id, peer) in opened_now {
            tokio::task::spawn_local(opened(Rc::clone(self), id, peer));
        }
        for writer in self.writers.borrow().values() {
            writer.notify_one();
        }
    }
}

/// The time until the next look at the updates of the tables; none while they sleep.
struct Gathering(Option<u64>);

impl Gathering {
    /// Takes updates when it is time.
    fn turn(&mut self, state: &State) {
        let now_ms = state.now_ms();
        if self.0.is_none_or(|at| at > now_ms) {
            return;
        }
        let any = state.section.borrow_mut().collect();
        let sleeps = !any && state.section.borrow().sleep();
        self.0 = (!sleeps).then_some(now_ms + GATHER_MS);
    }
}

/// Runs a section until its soft stop is over.
async fn serve(state: &Rc<State>, listeners: Vec<Listener>) {
    let mut acceptors: Vec<Acceptor> = listeners.into_iter().filter_map(Acceptor::new).collect();
    let mut gathering = Gathering(Some(0));
    loop {
        if let Some(within_ms) = state.stops.take() {
            // The process that follows listens at the same address: this one must not be found.
            acceptors.clear();
            gathering.turn(state);
            let now_ms = state.now_ms();
            state.section.borrow_mut().stop(now_ms, within_ms);
        }
        gathering.turn(state);
        state.step();
        if state.section.borrow().is_over() {
            return;
        }
        let deadline = state.section.borrow().deadline_ms();
        let next = deadline.into_iter().chain(gathering.0).min();
        let now_ms = state.now_ms();
        let sleep_ms = next.map_or(SLEEP_MS_MAX, |at| at.saturating_sub(now_ms));
        tokio::select! {
            () = state.changed.notified() => {}
            () = state.updated.notified() => gathering.0 = gathering.0.or(Some(0)),
            () = tokio::time::sleep(Duration::from_millis(sleep_ms.min(SLEEP_MS_MAX))) => {}
            accepting = accept(&acceptors) => match accepting {
                Ok(wire) => {
                    let id = state.section.borrow_mut().accept(state.now_ms());
                    if let Some(id) = id {
                        tokio::task::spawn_local(accepted(Rc::clone(state), id, wire));
                    }
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// A listener of the runtime.
enum Acceptor {
    Inet(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    fn new(listener: Listener) -> Option<Acceptor> {
        match listener {
            Listener::Inet(listener) => {
                listener.set_nonblocking(true).ok()?;
                TcpListener::from_std(listener).ok().map(Acceptor::Inet)
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true).ok()?;
                UnixListener::from_std(listener).ok().map(Acceptor::Unix)
            }
        }
    }

    async fn accept(&self) -> io::Result<Wire> {
        Ok(match self {
            Acceptor::Inet(listener) => tcp(listener.accept().await?.0),
            Acceptor::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// The next connection of any listener; never without listeners.
async fn accept(acceptors: &[Acceptor]) -> io::Result<Wire> {
    let mut waiting: Vec<_> = acceptors
        .iter()
        .map(|acceptor| Box::pin(acceptor.accept()))
        .collect();
    std::future::poll_fn(|context| {
        for future in &mut waiting {
            if let std::task::Poll::Ready(stream) = future.as_mut().poll(context) {
                return std::task::Poll::Ready(stream);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
