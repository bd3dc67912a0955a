//! Connections to all addresses of a name, and calls in turn: gRPC's policy `round_robin`.
//!
//! Nothing happens before the first call. From then on each address has a task that keeps a connection to it: one that
//! fails is left out and tried again, after a longer time each time. A call takes the next connection that there is; it
//! waits while there may be one soon, and fails when every address has. Then the next call has all of them tried at once:
//! however long it was down, what is there again is found.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::lock::lock;
use crate::retry::{jittered, random};

/// Addresses of a name that are used; it may have more.
pub(super) const ADDRESSES_MAX: usize = 256;
/// The name is asked for again after this time, if calls are made.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The same if it was not answered, and earlier addresses are used.
const ASK_FAILED: Duration = Duration::from_secs(1);
/// Time for a connection (gRPC: `MIN_CONNECT_TIMEOUT`).
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Before an address that failed is tried again, at first and at most; it grows by three fifths (gRPC: connection backoff).
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(120);

/// What lanes need of the world.
pub(super) trait World: Send + Sync + 'static {
    /// A connection; copies are the same one.
    type Connection: Clone + Send + 'static;

    /// The addresses of the name, or why they are not known.
    fn ask(&self) -> impl Future<Output = Result<Vec<SocketAddr>, String>> + Send;

    /// Connects, or says why that failed.
    fn connect(
        &self,
        to: SocketAddr,
    ) -> impl Future<Output = Result<Self::Connection, String>> + Send;
}

/// See the module.
pub(super) struct Lanes<W: World> {
    shared: Arc<Shared<W>>,
    /// What asks for addresses, from the first call on; it ends with this.
    asking: Mutex<JoinSet<()>>,
}

struct Shared<W: World> {
    world: W,
    table: Mutex<Table<W::Connection>>,
    /// Something of the table is another now.
    changed: Notify,
    /// The name should be asked for.
    asked: Notify,
}

struct Table<C> {
    name: Name,
    lanes: Vec<Arc<Lane<C>>>,
    /// Whose turn it is.
    next: usize,
}

/// What is known of the name while there are no addresses.
enum Name {
    Asked,
    Unknown(String),
}

struct Lane<C> {
    address: SocketAddr,
    state: Mutex<State<C>>,
    /// The state was changed by somebody else than its task.
    wake: Notify,
}

enum State<C> {
    Connecting,
    /// Connected, for the so-manieth time.
    Ready(C, u64),
    Down(String),
}

/// A connection that a call may use.
pub(super) struct Taken<C> {
    pub connection: C,
    lane: Arc<Lane<C>>,
    number: u64,
}

/// What there is for a call.
enum Pick<C> {
    Lane(Taken<C>),
    /// There may be one soon.
    Wait,
    /// All have failed; the last reason.
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
                    // Those who start together do not all begin with the same.
                    next: random() as usize % ADDRESSES_MAX,
                }),
                changed: Notify::new(),
                asked: Notify::new(),
            }),
            asking: Mutex::default(),
        }
    }

    /// The connection whose turn it is. May take as long as a connection takes to be made. To be called within the runtime.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn take(&self) -> Result<Taken<W::Connection>, String> {
        self.begin();
        let shared = &self.shared;
        // Whoever comes when all is lost has it tried once more.
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

    /// A connection has turned out to be none any more: its address is connected to anew, and others have their turn.
    pub(super) fn broken(&self, taken: &Taken<W::Connection>) {
        let mut state = lock(&taken.lane.state);
        if matches!(*state, State::Ready(_, number) if number == taken.number) {
            *state = State::Connecting;
            taken.lane.wake.notify_one();
        }
    }

    /// How many addresses there are.
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
                // In use: the name may have changed.
                self.asked.notify_one();
                return found;
            }
        }
        match is_any_soon {
            true => Pick::Wait,
            false => found,
        }
    }

    /// Has tried at once what has failed.
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

    /// The lanes to these addresses, from now on; those that are new.
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

    /// Waits until a state is over; a wake may be one of an earlier state.
    async fn leaves(&self, is_it: fn(&State<C>) -> bool) {
        while is_it(&lock(&self.state)) {
            self.wake.notified().await;
        }
    }
}

/// Asks for the addresses, again and again, and keeps a task for each.
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

/// Keeps a connection to an address.
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
            let _ = tokio::time::timeout(jittered(again), poked).await;
            again = (again * 8 / 5).min(AGAIN_MAX);
            *lock(&lane.state) = State::Connecting;
        }
    }
}
