//! Accepting: the listeners of a worker, whether they accept or not, and their new connections.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::{EpollDriver, Listener, TOKEN_SPECIAL, set_buffers};
use crate::Addr;
use crate::boundary::{Accepted, Engine, ListenerId};
use crate::sys::{self, Accept, Epoll};

/// Connections accepted from one listener before others get their turn, by default.
pub const ACCEPTS_A_TURN_DEFAULT: u32 = 64;
/// How long accepting pauses when descriptors are exhausted.
const EXHAUSTED_PAUSE_MS: u64 = 100;

/// The listeners of a worker.
#[derive(Debug)]
pub(super) struct Listeners {
    states: Vec<State>,
    accepts_a_turn_max: u32,
    /// How many listeners close once their queue is empty.
    closing: usize,
    /// Descriptors are exhausted: nothing is accepted until this time.
    rest_until_ms: Option<u64>,
}

#[derive(Debug)]
struct State {
    /// None after the listener was closed for good.
    fd: Option<Arc<OwnedFd>>,
    id: ListenerId,
    local: Addr,
    shared: bool,
    wildcard: bool,
    wanted: bool,
    armed: bool,
    /// Accepts the waiting connections, then closes.
    closing: bool,
}

impl Listeners {
    pub fn new(listeners: Vec<Listener>, accepts_a_turn_max: u32) -> Listeners {
        let mut all = Listeners {
            states: Vec::new(),
            accepts_a_turn_max: accepts_a_turn_max.max(1),
            closing: 0,
            rest_until_ms: None,
        };
        all.add(listeners);
        all
    }

    /// Adds listeners, which accept when they are armed next. They take the places of closed ones.
    pub fn add(&mut self, listeners: Vec<Listener>) {
        let mut place = 0;
        for listener in listeners {
            let state = State {
                fd: Some(listener.fd),
                id: listener.id,
                wildcard: listener.local.is_unspecified(),
                local: listener.local,
                shared: listener.shared,
                wanted: true,
                armed: false,
                closing: false,
            };
            while self
                .states
                .get(place)
                .is_some_and(|state| state.fd.is_some())
            {
                place += 1;
            }
            match self.states.get_mut(place) {
                Some(free) => *free = state,
                None => self.states.push(state),
            }
        }
    }

    /// Registers the listeners that accept, and deregisters the others.
    pub fn arm(&mut self, epoll: &Epoll) {
        let rests = self.rest_until_ms.is_some();
        for (index, state) in self.states.iter_mut().enumerate() {
            let wanted = state.wanted && !rests;
            let Some(fd) = state.fd.as_ref().map(AsRawFd::as_raw_fd) else {
                continue;
            };
            if wanted == state.armed {
                continue;
            }
            if wanted {
                let exclusive = if state.shared {
                    libc::EPOLLEXCLUSIVE
                } else {
                    0
                };
                let bits = (libc::EPOLLIN | exclusive) as u32;
                let token = TOKEN_SPECIAL | index as u64;
                state.armed = epoll.add(fd, bits, token).is_ok();
            } else {
                epoll.remove(fd);
                state.armed = false;
            }
        }
    }

    pub fn want(&mut self, epoll: &Epoll, listener: ListenerId, on: bool) {
        for state in self.states.iter_mut().filter(|state| state.id == listener) {
            state.wanted = on;
        }
        self.arm(epoll);
    }

    pub fn close(&mut self, listener: ListenerId) {
        let open = self.states.iter_mut().filter(|state| state.fd.is_some());
        for state in open.filter(|state| state.id == listener) {
            self.closing += usize::from(!std::mem::replace(&mut state.closing, true));
        }
    }

    /// Closes a listener at once.
    pub fn abandon(&mut self, epoll: &Epoll, listener: ListenerId) {
        let own = self.states.iter_mut().filter(|state| state.id == listener);
        for state in own {
            if let Some(fd) = state.fd.take() {
                self.closing -= usize::from(state.closing);
                (state.closing, state.armed, state.wanted) = (false, false, false);
                // Another descriptor of the socket may stay open.
                epoll.remove(fd.as_raw_fd());
            }
        }
    }

    /// Whether some listeners close once their queue is empty.
    pub fn are_closing(&self) -> bool {
        self.closing > 0
    }

    /// Descriptors are exhausted: pauses accepting.
    fn rest(&mut self, epoll: &Epoll, now_ms: u64) {
        self.rest_until_ms = Some(now_ms + EXHAUSTED_PAUSE_MS);
        self.arm(epoll);
    }

    pub fn rest_ends_ms(&self) -> Option<u64> {
        self.rest_until_ms
    }

    pub fn end_rest(&mut self, epoll: &Epoll, now_ms: u64) {
        if self.rest_until_ms.is_some_and(|at| now_ms >= at) {
            self.rest_until_ms = None;
            self.arm(epoll);
        }
    }
}

/// The result of one attempt to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Connection,
    Nothing,
    /// The engine accepts no more, or the system has no resources left.
    Full,
}

impl EpollDriver {
    /// A listener has connections: accepts as many as a turn allows.
    pub(super) fn accept_turn<E: Engine<Self>>(
        &mut self,
        engine: &mut E,
        index: usize,
        buffer: &mut [u8],
    ) {
        for _ in 0..self.listeners.accepts_a_turn_max {
            let state = &self.listeners.states[index];
            if !state.armed || self.accept(engine, index, buffer) != Came::Connection {
                return;
            }
        }
    }

    fn accept<E: Engine<Self>>(&mut self, engine: &mut E, index: usize, buffer: &mut [u8]) -> Came {
        let id = self.listeners.states[index].id;
        if !engine.admit(self, id) {
            return Came::Full;
        }
        let state = &self.listeners.states[index];
        let Some(listener) = &state.fd else {
            engine.retract(self, id);
            return Came::Nothing;
        };
        let (fd, peer) = match sys::accept(listener.as_raw_fd()) {
            Accept::Conn(fd, peer) => {
                self.activity.accepted_one();
                (fd, peer)
            }
            Accept::WouldBlock => {
                engine.retract(self, id);
                return Came::Nothing;
            }
            // This connection was gone already; the next one may still be there.
            Accept::Failed => {
                engine.retract(self, id);
                return Came::Connection;
            }
            Accept::Exhausted => {
                engine.retract(self, id);
                self.listeners.rest(&self.epoll, self.now_ms);
                return Came::Full;
            }
        };
        let own = (self.local_addrs && state.wildcard)
            .then(|| sys::local_addr(fd.as_raw_fd()).ok())
            .flatten();
        let accepted = Accepted {
            listener: id,
            peer,
            local: own.unwrap_or_else(|| state.local.clone()),
        };
        let is_tcp = !state.local.is_unix();
        set_buffers(
            fd.as_raw_fd(),
            self.buffers.client_receive,
            self.buffers.client_send,
        );
        let Some(sock) = self.adopt(fd, false, is_tcp) else {
            engine.retract(self, id);
            return Came::Connection;
        };
        // The first bytes have usually arrived already. Reading them now saves a round, and lets
        // the engine close the connection at once without a RST.
        if let Some(entry) = self.socks.get_mut(sock) {
            entry.unread = true;
        }
        engine.on_accept(self, sock, accepted);
        if self.socks.get_mut(sock).is_some() {
            self.read(engine, sock, buffer);
        }
        self.tell_broken(engine, sock);
        Came::Connection
    }

    /// Accepts the connections that wait on closing listeners, so that none is reset, and closes
    /// the listeners that are empty. A listener that is not empty within a turn continues in the
    /// next round.
    pub(super) fn close_listeners<E: Engine<Self>>(&mut self, engine: &mut E, buffer: &mut [u8]) {
        for index in 0..self.listeners.states.len() {
            if !self.listeners.states[index].closing {
                continue;
            }
            let most = self.listeners.accepts_a_turn_max;
            let ended = (0..most)
                .map(|_| self.accept(engine, index, buffer))
                .find(|came| *came != Came::Connection);
            if ended != Some(Came::Nothing) {
                continue;
            }
            let state = &mut self.listeners.states[index];
            (state.closing, state.armed, state.wanted) = (false, false, false);
            self.listeners.closing -= 1;
            if let Some(fd) = state.fd.take() {
                // An inherited socket stays open in other processes: closing this descriptor would
                // leave it registered.
                self.epoll.remove(fd.as_raw_fd());
            }
        }
    }
}
