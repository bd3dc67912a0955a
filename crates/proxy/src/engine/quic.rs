//! QUIC connections: their datagrams and their end, and the beginning of those of clients. What is on
//! their streams is fed to the mux like the bytes of any connection.

mod arrivals;
mod audit;
mod clients;
mod count;
mod ends;
mod remains;
mod servers;
mod watch;

use std::collections::HashSet;
use std::sync::Arc;

use net::timers::NEVER_MS;
use net::{Close, DatagramSock, Datagrams, Driver, ListenerId, Outgoing, SockId};
use quic::{Arrival, Connection, Endpoint, Owner as QuicOwner, Packet, Server, Setup};
use rustc_hash::FxHashMap;
use sample::ConnError;
use stats::Column;

use super::secure::{failed_facts, tls_facts};
use super::{Engine, Turn};
use crate::ids::{ConnId, Timers};
use crate::link::{QuicLink, Role, Stage};
use crate::phases::account::TlsEnd;
use crate::phases::{ConnWait, Core};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Pace;
use clients::Origin;
pub(super) use ends::QUIC_CLOSE_MS;
use remains::AtWork;
pub(super) use remains::Remains;
pub use watch::{QuicView, QuicsAsked, QuicsPart};

/// How many bytes of records are read from a connection before others get their turn.
const RECORDS_BYTES_MAX: usize = 64 << 10;
const NS_PER_MS: u64 = 1_000_000;
/// The QUIC connections of a worker.
#[derive(Debug)]
pub(crate) struct Quics {
    pub(super) endpoint: Endpoint,
    /// The endpoint accepts clients.
    is_serving: bool,
    /// By their names at the endpoint.
    pub(super) places: FxHashMap<usize, Place>,
    /// All names so far are smaller.
    names_end: usize,
    /// What the clients of listeners get, and what it was made of.
    servers: Vec<(ListenerId, Origin, Server)>,
    /// Scratch buffers; empty between uses.
    arrivals: Vec<Arrival>,
    records: Vec<u8>,
    packets: Vec<u8>,
    /// Connections whose datagrams found no room, by the sockets.
    waiting: HashSet<(DatagramSock, usize)>,
    /// Sockets of connections to servers that are over.
    unused: Vec<SockId>,
    /// Connections without links that may have something to send.
    moved: Vec<usize>,
    /// Listeners that close, each at this time at the latest, monotonic milliseconds.
    closing: Vec<(ListenerId, u64)>,
    /// Handshakes that are under way.
    handshakes: usize,
    /// The connection without a link that is worked on. It is not in `places` meanwhile.
    at_work: Option<AtWork>,
    remains: Remains,
}

/// Where a connection is.
#[derive(Debug)]
pub(super) enum Place {
    Link(ConnId),
    /// Its link has ended; it ends at this time at the latest, monotonic milliseconds.
    Leaving(Box<QuicLink>, u64),
}

impl Quics {
    fn new(worker: u8, seed: [u8; 32], config: &RuntimeConfig, remains: Remains) -> Box<Quics> {
        let setup = Setup {
            keys: &config.quic.keys,
            owner: QuicOwner {
                worker,
                process: config.process.number,
            },
            seed,
        };
        Box::new(Quics {
            endpoint: Endpoint::new(&setup),
            is_serving: false,
            places: FxHashMap::default(),
            names_end: 0,
            servers: Vec::new(),
            arrivals: Vec::new(),
            records: Vec::new(),
            packets: Vec::new(),
            waiting: HashSet::new(),
            unused: Vec::new(),
            moved: Vec::new(),
            closing: Vec::new(),
            handshakes: 0,
            at_work: None,
            remains,
        })
    }
}

fn outgoing(packet: Packet<'_>) -> Outgoing<'_> {
    Outgoing {
        peer: packet.peer,
        source: packet.source,
        ecn: packet.ecn,
        segment: packet.segment,
        bytes: packet.bytes,
    }
}

impl Engine {
    /// Datagrams of a listener have come.
    pub(super) fn datagrams_came<D: Driver>(&mut self, driver: &mut D, datagrams: &Datagrams<'_>) {
        self.enter(driver, None, |turn| turn.read_datagrams(datagrams));
    }

    /// Reads what has come on the connections, and sends what they have to send.
    pub(super) fn send_datagrams<D: Driver>(&mut self, driver: &mut D) {
        loop {
            if let Some(dial) = self.core.links.next_dial() {
                self.enter(driver, Some(dial.conn.into()), |turn| turn.dial(dial));
            } else if let Some(conn) = self.core.links.next_touched() {
                self.enter(driver, Some(conn.into()), |turn| {
                    turn.look_at(conn);
                    turn.transmit(conn);
                });
            } else {
                break;
            }
        }
        self.enter(driver, None, |turn| {
            turn.end_connections_of_closing();
            turn.let_leave();
        });
    }

    /// The time of a connection has come.
    pub(super) fn quic_timeout<D: Driver>(&mut self, driver: &mut D, handle: u32) {
        let now_ns = driver.now().mono_ns;
        self.enter(driver, None, |turn| {
            turn.with_quics(|quics, core| {
                quics.at(core, handle as usize, |connection| {
                    connection.expire(now_ns);
                });
            });
        });
    }

    /// A socket has room for datagrams again.
    pub(super) fn datagrams_have_room<D: Driver>(&mut self, driver: &mut D, sock: DatagramSock) {
        self.enter(driver, None, |turn| {
            turn.with_quics(|quics, core| {
                let of_sock = quics.waiting.extract_if(|(of, _)| *of == sock);
                let mut handles: Vec<usize> = of_sock.map(|(_, handle)| handle).collect();
                handles.sort_unstable();
                for handle in handles {
                    quics.at(core, handle, |_| ());
                }
            });
        });
    }
}

impl Quics {
    /// How many connections there are.
    pub(super) fn connections(&self) -> usize {
        self.places.len()
    }

    /// Works on a connection, which may have to send something then.
    fn at(&mut self, core: &mut Core, handle: usize, work: impl FnOnce(&mut Connection)) {
        match self.places.get_mut(&handle) {
            Some(Place::Link(conn)) => {
                let conn = *conn;
                if let Some(quic) = core.links.quic_mut(conn) {
                    work(&mut quic.connection);
                    self.settle(&mut quic.connection);
                    core.links.touch(conn);
                }
            }
            Some(Place::Leaving(quic, _)) => {
                work(&mut quic.connection);
                self.endpoint.settle(&mut quic.connection);
                if !quic.connection.is_drained() {
                    self.leaving_moves(handle);
                } else if let Some(Place::Leaving(mut quic, _)) = self.places.remove(&handle) {
                    self.forget(core, &mut quic);
                }
            }
            None => {}
        }
    }

    /// Exchanges news with the endpoint. When the endpoint has forgotten a connection, the place of that
    /// connection is given up at once: the next connection may get the same name, although the link of
    /// the first one still exists.
    fn settle(&mut self, connection: &mut Connection) {
        let was_drained = connection.is_drained();
        self.endpoint.settle(connection);
        if connection.is_drained() && !was_drained {
            self.places.remove(&connection.handle().0);
        }
    }

    /// A link has a connection.
    pub(super) fn add(&mut self, handle: usize, conn: ConnId) {
        self.places.insert(handle, Place::Link(conn));
        self.names_end = self.names_end.max(handle + 1);
    }

    /// Whether the datagrams of a connection come to this socket. A server answers at no other one.
    fn is_at(&self, core: &Core, handle: usize, sock: DatagramSock) -> bool {
        let of = match self.places.get(&handle) {
            Some(Place::Link(conn)) => core.links.quic(*conn).map(|quic| quic.sock),
            Some(Place::Leaving(quic, _)) => Some(quic.sock),
            None => None,
        };
        match (of, sock) {
            (Some(DatagramSock::Listener(_)), DatagramSock::Listener(_)) => true,
            (of, _) => of == Some(sock),
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Takes the QUIC connections of this worker out of its state. The caller puts them back.
    pub(super) fn take_quics(&mut self) -> Box<Quics> {
        if let Some(quics) = self.state.quics.take() {
            return quics;
        }
        let worker = self.cx.core.ambient.worker.0 as u8;
        let number = self.cx.core.ambient.random.next();
        let seed = self.cx.runtime_config.quic.keys.seed(worker, number);
        let remains = self.state.quic_remains.clone();
        Quics::new(worker, seed, self.cx.runtime_config, remains)
    }

    /// Works on the QUIC connections, if there are any. A panic loses them.
    fn with_quics(&mut self, work: impl FnOnce(&mut Quics, &mut Core)) {
        if let Some(mut quics) = self.state.quics.take() {
            work(&mut quics, self.cx.core);
            self.state.quics = Some(quics);
        }
    }

    /// A connection may have news, or something to read.
    fn look_at(&mut self, conn: ConnId) {
        let Some(quic) = self.cx.core.links.quic_mut(conn) else {
            return;
        };
        let news = quic.connection.news();
        // One that was closed here and that its peer has closed too is not lost by that.
        let is_over = news.is_lost || quic.connection.is_drained();
        if news.is_early_refused {
            self.early_data_refused(conn);
        }
        if news.is_established {
            self.quic_established(conn);
        } else if news.is_early {
            self.quic_is_early(conn);
        }
        let mut records = match &mut self.state.quics {
            Some(quics) => std::mem::take(&mut quics.records),
            None => return,
        };
        let mut read = 0;
        loop {
            let links = &mut self.cx.core.links;
            let is_ready = links.get(conn).is_some_and(|link| match &link.role {
                _ if link.is_held_at_all() => false,
                Role::Client(client) => client.stage == Stage::Ready,
                // With early data, its mux begins before the handshake is complete.
                Role::Server(server) => !server.connecting || link.multiplexes(),
                Role::Stream(_) => false,
            });
            let Some(quic) = links.quic_mut(conn).filter(|_| is_ready) else {
                break;
            };
            records.clear();
            quic.receive(RECORDS_BYTES_MAX, &mut records);
            if records.is_empty() {
                break;
            }
            read += records.len();
            // The codec may give some of them back, which it can use now.
            self.receive_plain(conn, &records);
            if read >= RECORDS_BYTES_MAX {
                self.later(conn);
                break;
            }
        }
        records.clear();
        if let Some(quics) = &mut self.state.quics {
            quics.records = records;
        }
        if is_over {
            self.quic_lost(conn);
        } else {
            self.end_late_handshake(conn);
        }
    }

    /// A client has sent early data (`allow-0rtt`): its session begins before the handshake is
    /// complete. `timeout client-hs` still limits the handshake, as in HAProxy.
    fn quic_is_early(&mut self, conn: ConnId) {
        let Some(client) = self.cx.core.links.client(conn) else {
            return;
        };
        let ends_ms = self.cx.wait_ends_ms(ConnWait::Handshake(client.frontend()));
        let links = &mut self.cx.core.links;
        let Some(quic) = links.quic_mut(conn) else {
            return;
        };
        let Some(agreed) = quic.connection.agreed().facts else {
            return;
        };
        quic.early_ends_ms = Some(ends_ms);
        if let Some(client) = links.client_mut(conn) {
            let mut facts = tls_facts(agreed);
            facts.has_early = true;
            client.session.tls = Some(Arc::new(facts));
        }
        self.begin_session(conn);
    }

    /// Ends a connection whose early data was served and whose handshake takes too long.
    fn end_late_handshake(&mut self, conn: ConnId) {
        let now_ms = self.cx.now_ms();
        let quic = self.cx.core.links.quic_mut(conn);
        let is_late = |quic: &&mut QuicLink| quic.early_ends_ms.is_some_and(|end| end <= now_ms);
        if let Some(quic) = quic.filter(is_late) {
            quic.end();
            self.cx.accounts().tell_tls(conn, TlsEnd::Failed);
            self.closed(conn, Close::Reset);
        }
    }

    /// The handshake is complete.
    fn quic_established(&mut self, conn: ConnId) {
        let Some(quic) = self.cx.core.links.quic_mut(conn) else {
            return;
        };
        let Some(agreed) = quic.connection.agreed().facts else {
            return;
        };
        quic.is_established = true;
        quic.early_ends_ms = None;
        count::end_half_open(&self.cx.core.ambient, quic);
        let is_server = server_sock(quic).is_some();
        let facts = tls_facts(agreed);
        if is_server {
            return self.quic_to_server_stands(conn, facts);
        }
        if let Some(quics) = &mut self.state.quics {
            quics.handshakes = quics.handshakes.saturating_sub(1);
        }
        self.cx.accounts().tell_tls(conn, TlsEnd::Done);
        if facts.resumed {
            self.cx.accounts().tell_tls(conn, TlsEnd::Resumed);
        } else {
            self.cx.mark(Pace::TlsClientKeys);
        }
        let Some(client) = self.cx.core.links.client_mut(conn) else {
            return;
        };
        client.session.tls = Some(Arc::new(facts));
        if client.stage == Stage::Handshake {
            self.begin_session(conn);
        } else {
            self.early_data_was_good(conn);
        }
    }

    /// A connection is lost, or its handshake has failed.
    fn quic_lost(&mut self, conn: ConnId) {
        if self.cx.core.links.server(conn).is_some() {
            return self.quic_to_server_lost(conn);
        }
        let stage = self.cx.core.links.client(conn).map(|client| client.stage);
        let Some(quic) = self.cx.core.links.quic_mut(conn) else {
            return;
        };
        if !quic.is_established {
            self.cx.accounts().tell_tls(conn, TlsEnd::Failed);
        }
        // With early data, its session has begun.
        if stage != Some(Stage::Handshake) {
            return self.closed(conn, Close::Reset);
        }
        let quic = self.cx.core.links.quic_mut(conn);
        let user = quic.as_ref().map(|quic| quic.user);
        let failure = quic.and_then(|quic| quic.connection.agreed().failure);
        if let (Some(user), Some(_)) = (user, &failure) {
            count::tell(&self.cx.core.ambient, user, Column::QuicHdshkFail, 1);
        }
        let why = match &failure {
            Some(_) => ConnError::TlsHandshake,
            None => ConnError::TlsAbort,
        };
        if let Some(client) = self.cx.core.links.client_mut(conn) {
            client.session.tls = Some(Arc::new(failed_facts(None, failure.as_ref())));
        }
        self.fail_session(conn, why, failure.is_none());
    }

    /// Sends what a connection has to send, and sets its timer.
    fn transmit(&mut self, conn: ConnId) {
        let Some(mut quics) = self.state.quics.take() else {
            return;
        };
        let core = &mut *self.cx.core;
        core.links.untouch(conn);
        if let Some(quic) = core.links.quic_mut(conn) {
            transmit(self.cx.io, &mut core.timers, &mut quics, quic);
        }
        self.state.quics = Some(quics);
    }
}

/// The socket that a connection to a server has for itself.
pub(super) fn server_sock(quic: &QuicLink) -> Option<SockId> {
    match quic.sock {
        DatagramSock::Server(sock) => Some(sock),
        DatagramSock::Listener(_) => None,
    }
}

/// Sends the datagrams of a connection as far as its socket has room, and sets its timer.
fn transmit<D: Driver>(io: &mut D, timers: &mut Timers, quics: &mut Quics, quic: &mut QuicLink) {
    let now_ns = io.now().mono_ns;
    quic.close_if_asked(now_ns);
    loop {
        if !io.datagram_room(quic.sock) {
            quic.without_room += 1;
            quics
                .waiting
                .insert((quic.sock, quic.connection.handle().0));
            break;
        }
        match quic.connection.transmit(now_ns, &mut quics.packets) {
            Some(packet) => io.send_datagrams(quic.sock, outgoing(packet)),
            None => break,
        }
    }
    quics.settle(&mut quic.connection);
    let due_ns = quic.connection.deadline_ns();
    let due_ms = due_ns.map_or(NEVER_MS, |ns| ns.div_ceil(NS_PER_MS));
    let due_ms = due_ms.min(quic.early_ends_ms.unwrap_or(NEVER_MS));
    timers.set(quic.timer, due_ms);
}
