//! How QUIC connections end, and when their listeners close.

use net::timers::NEVER_MS;
use net::{Close, DatagramSock, Driver, ListenerId};

use super::super::Turn;
use super::remains::AtWork;
use super::{Place, Quics, count, server_sock, transmit};
use crate::link::{Named, QuicLink};
use crate::phases::Core;

/// HTTP/3's code for a request that is not answered any more (RFC 9114 §8.1).
const REQUEST_CANCELLED: u64 = 0x10c;

/// How long a connection that has ended here waits until its peer has everything, milliseconds.
const LEAVE_MS: u64 = 5_000;

/// How long a connection that is closed then answers its peer, milliseconds.
const CLOSED_MS: u64 = 1_000;

/// How long the connections of QUIC go on after the listener that they need was removed,
/// milliseconds. Clients that begin a connection meanwhile may be refused, although another listener
/// has the port.
pub(in crate::engine) const QUIC_CLOSE_MS: u64 = 2_000;

impl Quics {
    /// Closes a listener when all its connections are over. `ends_ms`: it closes then in any case,
    /// monotonic milliseconds.
    fn close(&mut self, listener: ListenerId, ends_ms: u64) {
        if self.closing.iter().all(|(closing, _)| *closing != listener) {
            self.closing.push((listener, ends_ms));
        }
    }

    /// When a listener closes at the latest, monotonic milliseconds.
    pub fn closes_ms(&self) -> u64 {
        let closing = self.closing.iter().map(|(_, at_ms)| *at_ms);
        closing.min().unwrap_or(NEVER_MS)
    }

    /// Whether all connections have ended, and their peers have been told.
    pub fn is_over(&self) -> bool {
        self.places.values().all(|place| match place {
            Place::Link(_) => false,
            Place::Leaving(quic, _) => quic.connection.is_closed(),
        })
    }

    /// A connection without a link is over: gives up its timer and its socket, and counts it.
    pub(super) fn forget(&mut self, core: &mut Core, quic: &mut QuicLink) {
        core.timers.remove(quic.timer);
        self.unused.extend(server_sock(quic));
        count::tell_end(&core.ambient, quic);
    }

    /// A connection whose link has ended may have to send something.
    pub(super) fn leaving_moves(&mut self, handle: usize) {
        if !self.moved.contains(&handle) {
            self.moved.push(handle);
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Connections whose links have ended go on until their peers have everything.
    pub(super) fn let_leave(&mut self) {
        let Some(mut quics) = self.state.quics.take() else {
            return;
        };
        for quic in self.cx.core.links.take_leaving() {
            self.begin_to_leave(&mut quics, quic);
        }
        for handle in std::mem::take(&mut quics.moved) {
            // The connection may have been forgotten, and its handle given to another one.
            if let Some(Place::Leaving(..)) = quics.places.get(&handle)
                && let Some(Place::Leaving(quic, ends_ms)) = quics.places.remove(&handle)
            {
                self.go_on_leaving(&mut quics, quic, ends_ms);
            }
        }
        while let Some(sock) = quics.unused.pop() {
            self.cx.io.close_datagrams(sock);
        }
        let is_over = quics.is_over();
        let now_ms = self.cx.now_ms();
        quics.closing.retain(|(listener, at_ms)| {
            let closes = is_over || *at_ms <= now_ms;
            if closes {
                self.cx.io.unlisten(*listener);
            }
            !closes
        });
        self.state.quics = Some(quics);
    }

    /// The link of a connection has ended: requests without a whole answer are reset.
    fn begin_to_leave(&mut self, quics: &mut Quics, mut quic: Box<QuicLink>) {
        if !quic.is_established && server_sock(&quic).is_none() {
            quics.handshakes = quics.handshakes.saturating_sub(1);
        }
        count::end_half_open(&self.cx.core.ambient, &mut quic);
        // Another connection may have its name.
        if quic.connection.is_drained() {
            return quics.forget(self.cx.core, &mut quic);
        }
        quic.early_ends_ms = None;
        quic.connection.abandon(REQUEST_CANCELLED);
        let handle = quic.connection.handle().0;
        let ends_ms = self.cx.now_ms() + LEAVE_MS;
        quics.places.insert(handle, Place::Leaving(quic, ends_ms));
        quics.leaving_moves(handle);
    }

    /// Sends the datagrams of a connection without a link. Closes it when its peer has acknowledged
    /// everything, or at `ends_ms`. Forgets it some time after the close.
    fn go_on_leaving(&mut self, quics: &mut Quics, mut quic: Box<QuicLink>, mut ends_ms: u64) {
        let now_ms = self.cx.now_ms();
        quics.at_work = Some(AtWork::new(&quic));
        // Nobody reads what still comes.
        while quic.connection.receive().is_some() {}
        if !quic.connection.is_closed() && (quic.connection.is_quiet() || now_ms >= ends_ms) {
            quic.end();
            ends_ms = now_ms + CLOSED_MS;
        }
        let core = &mut *self.cx.core;
        transmit(self.cx.io, &mut core.timers, quics, &mut quic);
        quics.at_work = None;
        if quic.connection.is_closed() {
            quic.free_place();
            // A connection to a server has a socket of its own, which is closed: nothing that still
            // comes has to be answered.
            if now_ms >= ends_ms || server_sock(&quic).is_some() {
                quic.connection.forget();
                quics.settle(&mut quic.connection);
            }
        }
        if quic.connection.is_drained() {
            return quics.forget(core, &mut quic);
        }
        let due_ms = core.timers.deadline_ms(quic.timer).min(ends_ms);
        core.timers.set(quic.timer, due_ms);
        let handle = quic.connection.handle().0;
        quics.places.insert(handle, Place::Leaving(quic, ends_ms));
    }

    /// Closes the connections of listeners whose time is over.
    pub(super) fn end_connections_of_closing(&mut self) {
        let now_ms = self.cx.now_ms();
        let Some(quics) = &mut self.state.quics else {
            return;
        };
        let closing = quics.closing.iter();
        let over = closing.filter(|(_, at_ms)| *at_ms <= now_ms);
        let over: Vec<ListenerId> = over.map(|(listener, _)| *listener).collect();
        if !over.is_empty() {
            let is_over = |sock| over.iter().any(|listener| sock == (*listener).into());
            self.end_connections(is_over);
        }
    }

    /// Closes all connections. Their peers are told, so that they do not wait for a timeout.
    pub(in crate::engine) fn end_quics(&mut self) {
        self.end_connections(|_| true);
        self.let_leave();
    }

    /// The endpoint is lost: its connections end, because the next one does not know them. Clients
    /// get a reset from it.
    pub(in crate::engine) fn lose_quics(&mut self) {
        for slot in 0..self.cx.core.links.slots() {
            let links = &mut self.cx.core.links;
            if let Some(Named::Conn(conn)) = links.at(slot).and_then(|link| links.name(link))
                && links.quic_mut(conn).is_some()
            {
                self.closed(conn, Close::Reset);
            }
        }
        let lost = self.state.quic_remains.take();
        let core = &mut *self.cx.core;
        // One that waits until its streams have used what came stays without its endpoint.
        core.links.take_quics_off();
        for mut quic in core.links.take_leaving().into_iter().chain(lost.leaving) {
            core.timers.remove(quic.timer);
            if let Some(sock) = server_sock(&quic) {
                self.cx.io.close_datagrams(sock);
            }
            count::tell_end(&core.ambient, &mut quic);
        }
        for timer in lost.timers {
            core.timers.remove(timer);
        }
        for sock in lost.socks {
            self.cx.io.close_datagrams(sock);
        }
        for listener in lost.closing {
            self.cx.io.unlisten(listener);
        }
    }

    /// Closes the connections of some sockets: those with links now, the others when they leave.
    fn end_connections(&mut self, of: impl Fn(DatagramSock) -> bool) {
        let Some(quics) = &mut self.state.quics else {
            return;
        };
        let (mut links, mut leaving) = (Vec::new(), Vec::new());
        for (handle, place) in &mut quics.places {
            match place {
                Place::Link(conn) => links.push((*handle, *conn)),
                Place::Leaving(quic, ends_ms) if of(quic.sock) => {
                    *ends_ms = 0;
                    leaving.push(*handle);
                }
                Place::Leaving(..) => {}
            }
        }
        // In the same order in every run.
        leaving.sort_unstable();
        links.sort_unstable_by_key(|(handle, _)| *handle);
        for handle in leaving {
            quics.leaving_moves(handle);
        }
        for (_, conn) in links {
            let quic = self.cx.core.links.quic_mut(conn);
            if let Some(quic) = quic.filter(|quic| of(quic.sock)) {
                quic.end();
                self.closed(conn, Close::Reset);
            }
        }
    }

    /// Listeners that close and that the configuration has again stay open, unless the worker drains.
    pub(in crate::engine) fn open_returned_quics(&mut self) {
        if self.cx.is_stopping() {
            return;
        }
        let config = self.cx.runtime_config;
        if let Some(quics) = &mut self.state.quics {
            let bind = |listener: &ListenerId| config.listeners[listener.0 as usize];
            quics
                .closing
                .retain(|(listener, _)| !config.is_bound(bind(listener)));
        }
    }

    /// Closes a listener that the configuration lacks, if it is one of QUIC that has had connections:
    /// after [`QUIC_CLOSE_MS`], because they need its socket. Returns whether it is one.
    pub(in crate::engine) fn close_lost_quic(&mut self, listener: ListenerId) -> bool {
        let config = self.cx.runtime_config;
        let Some(quics) = &mut self.state.quics else {
            return false;
        };
        let known = quics.servers.iter().find(|(of, ..)| *of == listener);
        let Some(address) = known.map(|(_, origin, _)| origin.address) else {
            return false;
        };
        let mut others = config
            .listeners
            .iter()
            .filter(|bind| config.is_bound(**bind));
        // The same socket then.
        if others.any(|bind| config.quic_address(*bind) == Some(address)) {
            self.cx.io.stop_receiving(listener);
        }
        quics.close(listener, self.cx.io.now_ms() + QUIC_CLOSE_MS);
        true
    }

    /// Closes a listener. That of QUIC goes on until its connections are over, until `ends_ms` at
    /// the latest, because they need it.
    pub(in crate::engine) fn close_listener(&mut self, listener: ListenerId, ends_ms: u64) {
        let address = self.cx.runtime_config.quic_address(self.bind_of(listener));
        match &mut self.state.quics {
            Some(quics) if address.is_some() => quics.close(listener, ends_ms),
            _ => self.cx.io.unlisten(listener),
        }
    }
}
