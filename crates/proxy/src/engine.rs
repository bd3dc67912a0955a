//! The engine's entry points and the state of one worker.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use net::timers::{NEVER_MS, Timers};
use net::{Accepted, Close, ConnId, Driver, ListenerId, Now, Sent};

use crate::backend::Backend;
use crate::conn::{Conns, Role};
use crate::running::Running;
use crate::shared::{Count, Pace, Shared};
use crate::stream::{StreamId, Streams};
use crate::world::View;

/// What the process tells a worker.
#[derive(Clone, Debug)]
pub enum Message {
    /// Stop accepting, finish what runs, then end (`SIGUSR1`). Listeners close after `grace_ms`; at `hard_stop_ms` from now the rest is cut.
    Drain {
        /// Milliseconds before the listeners close.
        grace_ms: u64,
        /// Milliseconds until connections are cut, if ever.
        hard_stop_ms: Option<u64>,
    },
    /// End at once.
    Stop,
    /// Hand over what filters have recorded of streams that are over. It is done when nobody has the sender any more.
    HandOver(Sender<()>),
}

/// One worker's data path.
#[derive(Debug)]
pub struct Engine {
    running: Arc<Running>,
    core: Core,
}

/// What an entry point works with, beside the engine's own state.
pub(crate) struct Cx<'a, D> {
    pub driver: &'a mut D,
    pub running: &'a Running,
}

impl<D: Driver> Cx<'_, D> {
    pub fn now(&self) -> Now {
        self.driver.now()
    }
}

/// One worker's state.
#[derive(Debug)]
pub(crate) struct Core {
    pub worker: usize,
    pub shared: Arc<Shared>,
    pub conns: Conns,
    pub streams: Streams,
    pub backends: Vec<Backend>,
    pub timers: Timers,
    pub life: Life,
    pub random: Cell<u64>,
    /// Output of the moment; empty between entry points.
    pub scratch: Vec<u8>,
    /// A rule's text of the moment.
    pub text: Vec<u8>,
    pub rules: crate::rules::Memory,
    /// Streams that can go on, after the one at hand.
    pub woken: Vec<StreamId>,
    /// Clients whose input may hold their next request.
    pub poked: Vec<ConnId>,
    /// Listeners stopped because their frontend is full.
    pub full_listeners: Vec<(ListenerId, usize)>,
    /// When a listener that was too fast is looked at again.
    pub room_at_ms: u64,
    pub next_stream: std::ops::Range<u64>,
    pub logging: crate::logging::Logging,
    pub tracing: crate::tracing::Worker,
}

/// Where the worker stands in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    #[default]
    Serving,
    /// Listeners close at the first moment, connections are cut at the second.
    Draining {
        close_at_ms: u64,
        cut_at_ms: u64,
        closed: bool,
    },
    Stopped,
}

/// Stream numbers taken from the shared counter at a time.
const STREAM_ID_BLOCK: u64 = 1024;
/// How long a client connection that was just used may go on while draining, so that a request already under way to us is
/// answered rather than reset.
pub(crate) const DRAIN_IDLE_MS: u64 = 1000;

impl Engine {
    /// A worker's engine. `seed` is its only source of randomness.
    #[must_use]
    pub fn new(running: Arc<Running>, shared: Arc<Shared>, worker: usize, seed: u64) -> Self {
        let proxies = &running.config.proxies;
        let backends = proxies
            .iter()
            .map(|proxy| Backend::new(proxy, worker))
            .collect();
        let core = Core {
            worker,
            shared,
            conns: Conns::default(),
            streams: Streams::default(),
            backends,
            timers: Timers::default(),
            life: Life::Serving,
            random: Cell::new(seed),
            scratch: Vec::with_capacity(4096),
            text: Vec::with_capacity(256),
            rules: crate::rules::Memory::default(),
            woken: Vec::new(),
            poked: Vec::new(),
            full_listeners: Vec::new(),
            room_at_ms: NEVER_MS,
            next_stream: 0..0,
            logging: crate::logging::Logging::default(),
            tracing: crate::tracing::Worker::new(&running, worker, seed),
        };
        Engine { running, core }
    }

    /// Streams being worked on.
    #[must_use]
    pub fn streams_in_use(&self) -> usize {
        self.core.streams.in_use()
    }

    /// The worker ends, and with it the streams that it still has: what it has recorded goes now.
    #[cold]
    #[inline(never)]
    pub fn finish<D: Driver>(&mut self, driver: &mut D) {
        let Engine { running, core } = self;
        core.end_records(&mut Cx { driver, running });
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    fn enter<D: Driver>(&mut self, driver: &mut D, work: impl FnOnce(&mut Core, &mut Cx<'_, D>)) {
        let Engine { running, core } = self;
        let mut cx = Cx { driver, running };
        work(core, &mut cx);
        core.settle(&mut cx);
    }
}

impl<D: Driver> net::Engine<D> for Engine {
    type Message = Message;

    fn on_accept(&mut self, driver: &mut D, conn: ConnId, accepted: Accepted) {
        self.enter(driver, |core, cx| core.accepted(cx, conn, accepted));
    }

    fn on_connected(&mut self, driver: &mut D, conn: ConnId) {
        self.enter(driver, |core, cx| core.server_connected(cx, conn));
    }

    fn on_data(&mut self, driver: &mut D, conn: ConnId, data: &[u8]) {
        self.enter(driver, |core, cx| {
            match core.conns.get(conn).map(|entry| &entry.role) {
                Some(Role::Client(_)) => core.client_data(cx, conn, data),
                Some(Role::Server(_)) => core.server_data(cx, conn, data),
                _ => {}
            }
        });
    }

    fn on_drained(&mut self, driver: &mut D, conn: ConnId) {
        self.enter(driver, |core, cx| core.drained(cx, conn));
    }

    fn on_eof(&mut self, driver: &mut D, conn: ConnId) {
        self.enter(driver, |core, cx| {
            let Some(entry) = core.conns.get(conn) else {
                return;
            };
            entry.eof = true;
            match entry.role {
                Role::Client(_) => core.client_eof(cx, conn),
                Role::Server(_) => core.server_eof(cx, conn),
                Role::Free => {}
            }
        });
    }

    fn on_close(&mut self, driver: &mut D, conn: ConnId, why: Close) {
        self.enter(driver, |core, cx| {
            match core.conns.get(conn).map(|entry| &entry.role) {
                Some(Role::Client(_)) => core.client_lost(cx, conn),
                Some(Role::Server(_)) => core.server_lost(cx, conn, why),
                _ => {}
            }
        });
    }

    fn on_timer(&mut self, driver: &mut D) {
        self.enter(driver, |core, cx| {
            let now_ms = cx.now().ms();
            core.advance_life(cx);
            core.look_for_room(cx);
            core.trace_timers(cx);
            while let Some(slot) = core.timers.expired(now_ms) {
                let Some(conn) = core.conns.in_slot(slot) else {
                    continue;
                };
                match core.conns.get(conn).map(|entry| &entry.role) {
                    Some(Role::Client(_)) => core.client_timeout(cx, conn),
                    Some(Role::Server(_)) => core.server_timeout(cx, conn),
                    _ => {}
                }
                core.settle(cx);
            }
        });
    }

    fn next_deadline_ms(&mut self) -> Option<u64> {
        let life_ms = match self.core.life {
            Life::Draining {
                close_at_ms,
                closed: false,
                ..
            } => close_at_ms,
            Life::Draining { cut_at_ms, .. } => cut_at_ms,
            _ => NEVER_MS,
        };
        let timer_ms = self.core.timers.next_ms().unwrap_or(NEVER_MS);
        let next_ms = timer_ms.min(life_ms).min(self.core.room_at_ms);
        let next_ms = next_ms.min(self.core.tracing.next_ms());
        (next_ms != NEVER_MS).then_some(next_ms)
    }

    fn on_round_end(&mut self, driver: &mut D) {
        if !self.core.full_listeners.is_empty() || self.core.shared.anyone_waits() {
            self.enter(driver, |core, cx| {
                core.wake_queues(cx);
                core.reopen_listeners(cx);
            });
        }
    }

    fn on_message(&mut self, driver: &mut D, message: Message) {
        self.enter(driver, |core, cx| match message {
            Message::Drain {
                grace_ms,
                hard_stop_ms,
            } => core.drain(cx, grace_ms, hard_stop_ms),
            Message::Stop => core.life = Life::Stopped,
            Message::HandOver(_) => core.flush_records(cx.running),
        });
    }

    fn is_finished(&self) -> bool {
        match self.core.life {
            Life::Serving => false,
            Life::Draining { closed, .. } => {
                closed && self.core.streams.in_use() == 0 && self.core.clients() == 0
            }
            Life::Stopped => true,
        }
    }
}

impl Core {
    /// Goes on with what the work at hand made possible, until nothing is left.
    fn settle<D: Driver>(&mut self, cx: &mut Cx<'_, D>) {
        loop {
            if let Some(id) = self.woken.pop() {
                self.resume(cx, id);
            } else if let Some(conn) = self.poked.pop() {
                match self.conns.get(conn).map(|entry| &entry.role) {
                    Some(Role::Server(_)) => self.take_server_input(cx, conn),
                    _ => self.take_input(cx, conn),
                }
            } else {
                return;
            }
        }
    }

    /// Runs a stream's phases from where it waits.
    pub fn resume<D: Driver>(&mut self, cx: &mut Cx<'_, D>, id: StreamId) {
        if let Some(mut stream) = self.streams.take(id) {
            self.run(cx, &mut stream);
            self.flush_head(cx, &mut stream);
            self.streams.put(stream);
        }
    }

    /// Sends to a connection and keeps the books: bytes, backlog, and the feeding side paused while there is one.
    pub fn send<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        head: &[u8],
        body: &[u8],
    ) -> Sent {
        let sent = cx.driver.send(conn, head, body);
        if sent == Sent::Backlog
            && let Some(entry) = self.conns.get(conn)
        {
            entry.backlog = true;
        }
        sent
    }

    pub fn pause<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        if let Some(entry) = self.conns.get(conn)
            && !entry.paused
        {
            entry.paused = true;
            cx.driver.pause(conn);
        }
    }

    pub fn unpause<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        if let Some(entry) = self.conns.get(conn)
            && entry.paused
        {
            entry.paused = false;
            cx.driver.resume(conn);
        }
    }

    pub fn set_deadline(&mut self, conn: ConnId, at_ms: u64) {
        self.timers.set(conn.slot, at_ms);
    }

    pub fn view<'a, D: Driver>(&'a self, cx: &'a Cx<'_, D>) -> View<'a> {
        View {
            running: cx.running,
            shared: &self.shared,
            worker: self.worker as u32,
            stopping: self.life != Life::Serving,
            now_ms: cx.now().ms(),
            random: &self.random,
            sockets: Some(cx.driver),
            client: None,
            server: None,
        }
    }

    /// One event of a rate.
    #[inline(always)]
    pub fn mark<D: Driver>(&self, cx: &Cx<'_, D>, what: Pace) {
        self.shared.mark(self.worker, what, cx.now().ms());
    }

    pub fn count(&self, what: Count) {
        self.shared.add(self.worker, what);
    }

    pub fn uncount(&self, what: Count) {
        self.shared.sub(self.worker, what);
    }

    pub fn next_stream_number(&mut self) -> u64 {
        if self.next_stream.is_empty() {
            let first = self.shared.stream_ids(STREAM_ID_BLOCK);
            self.next_stream = first..first + STREAM_ID_BLOCK;
        }
        let number = self.next_stream.start;
        self.next_stream.start += 1;
        number
    }

    /// Client connections of this worker.
    fn clients(&self) -> u32 {
        self.shared.own_count(self.worker, Count::Process)
    }

    fn drain<D: Driver>(&mut self, cx: &mut Cx<'_, D>, grace_ms: u64, hard_stop_ms: Option<u64>) {
        if self.life != Life::Serving {
            return;
        }
        let now_ms = cx.now().ms();
        self.life = Life::Draining {
            close_at_ms: now_ms.saturating_add(grace_ms),
            cut_at_ms: hard_stop_ms.map_or(NEVER_MS, |after| now_ms.saturating_add(after)),
            closed: false,
        };
        self.advance_life(cx);
    }

    fn advance_life<D: Driver>(&mut self, cx: &mut Cx<'_, D>) {
        let Life::Draining {
            close_at_ms,
            cut_at_ms,
            closed,
        } = self.life
        else {
            return;
        };
        let now_ms = cx.now().ms();
        if !closed && now_ms >= close_at_ms {
            self.life = Life::Draining {
                close_at_ms,
                cut_at_ms,
                closed: true,
            };
            for listener in 0..cx.running.listeners.len() {
                cx.driver.unlisten(ListenerId(listener as u32));
            }
            let idle: Vec<ConnId> = self.conns.ids().collect();
            for conn in idle {
                self.hurry_idle_client(cx, conn);
            }
        }
        if now_ms >= cut_at_ms {
            self.life = Life::Stopped;
        }
    }
}
