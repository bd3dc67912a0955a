//! Connections to all addresses of a name, used by calls in turn: gRPC's policy `round_robin`.
//!
//! Nothing happens before the first call. From then on each address has a task that keeps a
//! connection to it: an address that fails is skipped and tried again, with growing pauses. A call
//! takes the next open connection. It waits while one may open soon, and fails when every address
//! has failed. The next call then makes all tasks reconnect at once, so that an address that works
//! again is found however long it was down.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::lock::lock;
use crate::retry::{random, spread};

/// The most addresses of a name that are used.
pub(super) const ADDRESSES_MAX: usize = 256;
/// The pause between two lookups of the name, if calls are made.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The pause after a failed lookup, while earlier addresses are used.
const ASK_FAILED: Duration = Duration::from_secs(1);
/// The time limit of a connection attempt (gRPC: `MIN_CONNECT_TIMEOUT`).
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// The first and the longest pause before a failed address is tried again; it grows by three fifths
/// (gRPC: connection backoff).
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(120);
/// The share by which a pause is shorter or longer.
const AGAIN_SPREAD: f64 = 0.2;

/// The I/O that lanes need.
pub(super) trait World: Send + Sync + 'static {
    /// A connection; clones share it.
    type Connection: Clone + Send + 'static;

    /// Looks up the addresses of the name.
    fn ask(&self) -> impl Future<Output = Result<Vec<SocketAddr>, String>> + Send;

    /// Connects.
    fn connect(
        &self,
        to: SocketAddr,
    ) -> impl Future<Output = Result<Self::Connection, String>> + Send;
}

/// The connections to the addresses of a name.
pub(super) struct Lanes<W: World> {
    shared: Arc<Shared<W>>,
    /// The task that looks up addresses, from the first call on; it ends when this is dropped.
    asking: Mutex<JoinSet<()>>,
}

struct Shared<W: World> {
    world: W,
    table: Mutex<Table<W::Connection>>,
    /// The table has changed.
    changed: Notify,
    /// A lookup of the name is requested.
    asked: Notify,
}

struct Table<C> {
    name: Name,
    lanes: Vec<Arc<Lane<C>>>,
    /// The index of the next connection.
    next: usize,
}

/// The state of the name while there are no addresses.
enum Name {
    Asked,
    Unknown(String),
}

struct Lane<C> {
    address: SocketAddr,
    state: Mutex<State<C>>,
    /// Signals that someone other than its task changed the state.
    wake: Notify,
}

enum State<C> {
    Connecting,
    /// Connected; the number counts the connections.
    Ready(C, u64),
    Down(String),
}

/// A connection for a call.
pub(super) struct Taken<C> {
    pub connection: C,
    lane: Arc<Lane<C>>,
    number: u64,
}

/// What a call finds.
enum Pick<C> {
    Lane(Taken<C>),
    /// A connection may open soon.
    Wait,
    /// All addresses have failed; the last reason.
    Down(String),
}

impl<W: World> Lanes<W> {
    pub(super) fn new(world: W) -> Lanes<W> {
        Lanes {
            shared: Arc::new(Shared {
                world,
                table: Mutex::new(Table {
                    name: Name::Asked,
                    lanes: Vec::new(),
                    // A random start, so that processes that start together do not all begin with
                    // the same address.
                    next: random() as usize % ADDRESSES_MAX,
                }),
                changed: Notify::new(),
                asked: Notify::new(),
            }),
            asking: Mutex::default(),
        }
    }

    /// The next connection in turn. May wait as long as a connection attempt takes. Must be called
    /// within the runtime.
    ///
    /// # Errors
    /// There is no connection.
    pub(super) async fn take(&self) -> Result<Taken<W::Connection>, String> {
        self.begin();
        let shared = &self.shared;
        // A call that finds all addresses failed makes them try once more.
        let mut may_poke = true;
        loop {
            let changed = shared.changed.notified();
            match shared.pick() {
                Pick::Lane(taken) => return Ok(taken),
                Pick::Wait => {}
                Pick::Down(why) if !may_poke => return Err(why),
                Pick::Down(_) => shared.poke(),
            }
            may_poke = false;
            changed.await;
        }
    }

    /// Reports that a connection is closed: its address is reconnected, and calls use the others.
    pub(super) fn broken(&self, taken: &Taken<W::Connection>) {
        let mut state = lock(&taken.lane.state);
        if matches!(*state, State::Ready(_, number) if number == taken.number) {
            *state = State::Connecting;
            taken.lane.wake.notify_one();
        }
    }

    /// The number of addresses.
    pub(super) fn count(&self) -> usize {
        lock(&self.shared.table).lanes.len()
    }

    fn begin(&self) {
        let mut asking = lock(&self.asking);
        if asking.is_empty() {
            asking.spawn(ask(Arc::clone(&self.shared)));
        }
    }
}

impl<W: World> Shared<W> {
    fn pick(&self) -> Pick<W::Connection> {
        let mut table = lock(&self.table);
        let count = table.lanes.len();
        let mut found = match &table.name {
            Name::Asked => Pick::Wait,
            Name::Unknown(why) => Pick::Down(why.clone()),
        };
        let mut is_any_soon = false;
        for step in 0..count {
            let at = (table.next + step) % count;
            let lane = &table.lanes[at];
            match &*lock(&lane.state) {
                State::Connecting => is_any_soon = true,
                State::Down(why) => found = Pick::Down(format!("{}: {why}", lane.address)),
                State::Ready(connection, number) => {
                    let taken = Taken {
                        connection: connection.clone(),
                        lane: Arc::clone(lane),
                        number: *number,
                    };
                    found = Pick::Lane(taken);
                }
            }
            if matches!(found, Pick::Lane(_)) {
                table.next = (at + 1) % count;
                // The connections are in use: the name may have changed.
                self.asked.notify_one();
                return found;
            }
        }
        if is_any_soon { Pick::Wait } else { found }
    }

    /// Makes failed addresses reconnect at once.
    fn poke(&self) {
        let mut table = lock(&self.table);
        if table.lanes.is_empty() {
            table.name = Name::Asked;
            self.asked.notify_one();
        }
        for lane in &table.lanes {
            let mut state = lock(&lane.state);
            if matches!(*state, State::Down(_)) {
                *state = State::Connecting;
                lane.wake.notify_one();
            }
        }
    }

    /// Sets the lanes to these addresses; returns the new ones.
    fn known(&self, mut addresses: Vec<SocketAddr>) -> Vec<Arc<Lane<W::Connection>>> {
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        let mut table = lock(&self.table);
        let mut fresh = Vec::new();
        let lanes = addresses.into_iter().map(|address| {
            let known = table.lanes.iter().find(|lane| lane.address == address);
            known.map(Arc::clone).unwrap_or_else(|| {
                fresh.push(Arc::new(Lane::new(address)));
                Arc::clone(&fresh[fresh.len() - 1])
            })
        });
        table.lanes = lanes.collect();
        fresh
    }

    fn unknown(&self, why: String) {
        lock(&self.table).name = Name::Unknown(why);
        self.changed.notify_waiters();
    }
}

impl<C> Lane<C> {
    fn new(address: SocketAddr) -> Lane<C> {
        Lane {
            address,
            state: Mutex::new(State::Connecting),
            wake: Notify::new(),
        }
    }

    /// Waits until a state has ended; a wake-up may belong to an earlier state.
    async fn leaves(&self, is_it: fn(&State<C>) -> bool) {
        while is_it(&lock(&self.state)) {
            self.wake.notified().await;
        }
    }
}

/// Looks up the addresses repeatedly, and starts a task for each.
async fn ask<W: World>(shared: Arc<Shared<W>>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<SocketAddr, AbortHandle> = HashMap::new();
    loop {
        let answer = match shared.world.ask().await {
            Ok(addresses) if addresses.is_empty() => Err("the name has no address".to_owned()),
            answer => answer,
        };
        match answer {
            Ok(addresses) => {
                for lane in shared.known(addresses) {
                    let (address, shared) = (lane.address, Arc::clone(&shared));
                    running.insert(address, tasks.spawn(keep(shared, lane)));
                }
                let lanes: Vec<_> = lock(&shared.table).lanes.clone();
                running.retain(|address, task| {
                    let is_used = lanes.iter().any(|lane| lane.address == *address);
                    if !is_used {
                        task.abort();
                    }
                    is_used
                });
                while tasks.try_join_next().is_some() {}
                shared.changed.notify_waiters();
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Err(why) => {
                shared.unknown(why);
                if !running.is_empty() {
                    tokio::time::sleep(ASK_FAILED).await;
                }
            }
        }
        shared.asked.notified().await;
    }
}

/// Keeps a connection to an address open.
async fn keep<W: World>(shared: Arc<Shared<W>>, lane: Arc<Lane<W::Connection>>) {
    let mut again = AGAIN_FIRST;
    for number in 0.. {
        let connecting = shared.world.connect(lane.address);
        let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        let is_connected = connected.is_ok();
        *lock(&lane.state) = match connected {
            Ok(connection) => State::Ready(connection, number),
            Err(why) => State::Down(why),
        };
        shared.changed.notify_waiters();
        if is_connected {
            again = AGAIN_FIRST;
            lane.leaves(|state| matches!(state, State::Ready(..))).await;
        } else {
            let poked = lane.leaves(|state| matches!(state, State::Down(_)));
            let _ = tokio::time::timeout(spread(again, AGAIN_SPREAD), poked).await;
            again = (again * 8 / 5).min(AGAIN_MAX);
            *lock(&lane.state) = State::Connecting;
        }
    }
}
