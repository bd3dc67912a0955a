//! QUIC connections: their datagrams and their end, and the beginning of those of clients. What is on
//! their streams is fed to the mux like the bytes of any connection.

mod count;
mod watch;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config::model::QuicBind;
use net::relay::RelayedDatagrams;
use net::timers::NEVER_MS;
use net::{
    Accepted, Addr, Close, DatagramSock, Datagrams, Driver, ListenerId, Outgoing, SockId, WorkerId,
};
use quic::{
    Accepted as Accept, Arrival, Connection, Endpoint, Incoming, Owner as QuicOwner, Packet, Reply,
    Run, Server, Setup,
};
use sample::{ConnError, Session};
use stats::Column;
use tls::quic::QuicAcceptor;

use super::secure::{failed_facts, tls_facts};
use super::{Engine, Turn};
use crate::ids::{BindId, ConnId, Owner, Timers};
use crate::link::{NO_SOCKET, Named, QuicLink, QuicUser, Role, Stage};
use crate::phases::account::TlsEnd;
use crate::phases::{ConnWait, Core};
use crate::rules::Initial;
use crate::runtime_config::{BindAcceptors, RuntimeConfig};
use crate::shared::{Forwarded, FrontCount, Pace};
pub use watch::{QuicView, QuicsAsked, QuicsPart};

/// HTTP/3's code for a request that is not answered any more (RFC 9114 §8.1).
const REQUEST_CANCELLED: u64 = 0x10c;
/// How long a connection that has ended here waits until its peer has everything, milliseconds.
const LEAVE_MS: u64 = 5_000;
/// How long a connection that is closed then answers its peer, milliseconds.
const CLOSED_MS: u64 = 1_000;
/// How long the connections of QUIC go on after the listener that they need was removed,
/// milliseconds. Clients that begin a connection meanwhile may be refused, although another listener
/// has the port.
pub(super) const QUIC_CLOSE_MS: u64 = 2_000;
/// How many bytes of records are read from a connection before others get their turn.
const RECORDS_BYTES_MAX: usize = 64 << 10;
/// Where the ports of users begin (RFC 6335).
const PRIVILEGED_PORTS_END: u16 = 1024;
const NS_PER_MS: u64 = 1_000_000;
/// A connection id has one byte for the number of its worker.
const WORKERS_MASK: u32 = 0xff;

/// The QUIC connections of a worker.
#[derive(Debug)]
pub(crate) struct Quics {
    pub(super) endpoint: Endpoint,
    /// The endpoint accepts clients.
    is_serving: bool,
    /// By their names at the endpoint.
    pub(super) places: HashMap<usize, Place>,
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
}

/// Who reads a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketPlace {
    Here,
    Worker(WorkerId),
    /// The place of an earlier process in `earlier`.
    Process(usize),
}

/// Where a connection is.
#[derive(Debug)]
pub(super) enum Place {
    Link(ConnId),
    /// Its link has ended; it ends at this time at the latest, monotonic milliseconds.
    Leaving(Box<QuicLink>, u64),
}

impl Quics {
    fn new(worker: u8, seed: [u8; 32], config: &RuntimeConfig) -> Box<Quics> {
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
            places: HashMap::new(),
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
        })
    }
}

/// What [`Server`] was made of.
#[derive(Clone, Debug)]
struct Origin {
    address: SocketAddr,
    acceptors: Arc<BindAcceptors>,
    options: QuicBind,
    /// The number of the configuration.
    generation: u32,
}

impl Origin {
    fn is_same(&self, other: &Origin) -> bool {
        // The options are those of the configuration.
        Arc::ptr_eq(&self.acceptors, &other.acceptors) && self.generation == other.generation
    }
}

/// What the clients of a line get; none without certificates, and for a line that is not bound.
fn origin_of(config: &RuntimeConfig, bind: BindId) -> Option<Origin> {
    let address = config
        .quic_address(bind)
        .filter(|_| config.is_bound(bind))?;
    Some(Origin {
        address,
        acceptors: Arc::clone(&*config.tls.bind(bind)?),
        options: config.bind(bind).quic,
        generation: config.generation,
    })
}

fn server_of(config: &RuntimeConfig, origin: &Origin) -> Option<Server> {
    let tls = QuicAcceptor::new(origin.acceptors.clone())?;
    let limits = config.quic.limits(&origin.options);
    Some(Server::new(tls, &limits, &config.quic.keys))
}

/// The address that a client has begun a connection with.
fn local_address(incoming: &Incoming, origin: &Origin) -> SocketAddr {
    let ip = incoming.local();
    let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    SocketAddr::new(ip, origin.address.port())
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
        if let Some(quics) = self.state.quics.as_mut() {
            quics.at(&mut self.core, handle as usize, |connection| {
                connection.expire(now_ns);
            });
        }
    }

    /// A socket has room for datagrams again.
    pub(super) fn datagrams_have_room(&mut self, sock: DatagramSock) {
        let Some(quics) = self.state.quics.as_mut() else {
            return;
        };
        let of_sock = quics.waiting.extract_if(|(of, _)| *of == sock);
        let mut handles: Vec<usize> = of_sock.map(|(_, handle)| handle).collect();
        handles.sort_unstable();
        for handle in handles {
            quics.at(&mut self.core, handle, |_| ());
        }
    }
}

impl Quics {
    /// Closes a listener when all connections are over, and at this time at the latest.
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
                if quic.connection.is_drained() {
                    core.timers.remove(quic.timer);
                    self.unused.extend(server_sock(quic));
                    count::tell_end(&core.ambient, quic);
                    self.places.remove(&handle);
                } else {
                    self.leaving_moves(handle);
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

    /// A connection whose link has ended may have to send something.
    fn leaving_moves(&mut self, handle: usize) {
        if !self.moved.contains(&handle) {
            self.moved.push(handle);
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Reads a run of datagrams. Those of connections of other workers go there: the kernel's
    /// choice depends on the order of the sockets of a port. Those of connections of earlier
    /// processes go to them.
    fn read_datagrams(&mut self, datagrams: &Datagrams<'_>) {
        let run = Run {
            peer: datagrams.peer,
            local: datagrams.local,
            ecn: datagrams.ecn,
            segment: datagrams.segment.max(1),
            bytes: datagrams.bytes,
        };
        let DatagramSock::Listener(listener) = datagrams.sock else {
            return self.read_run(datagrams.sock, &run);
        };
        let mut all = run.bytes.chunks(run.segment);
        if all.all(|packet| self.place_of(packet) == PacketPlace::Here) {
            return self.read_run(datagrams.sock, &run);
        }
        for packet in run.bytes.chunks(run.segment) {
            let one = Run {
                bytes: packet,
                ..run
            };
            match self.place_of(packet) {
                PacketPlace::Here => self.read_run(datagrams.sock, &one),
                PacketPlace::Worker(worker) => {
                    let forwarded = Box::new(Forwarded {
                        listener,
                        peer: run.peer,
                        local: run.local,
                        ecn: run.ecn,
                        bytes: packet.into(),
                    });
                    let shared = &self.cx.core.ambient.shared;
                    shared.post_datagram(worker, forwarded, &mut |worker| self.cx.io.wake(worker));
                }
                PacketPlace::Process(place) => self.relay(place, listener, &one),
            }
        }
    }

    /// Sends a datagram to an earlier process.
    fn relay(&self, place: usize, listener: ListenerId, run: &Run<'_>) {
        let config = self.cx.runtime_config;
        if let Some(listener) = config.quic_address(self.bind_of(listener)) {
            config.process.earlier[place].send(&RelayedDatagrams {
                listener,
                peer: run.peer,
                local: run.local,
                ecn: run.ecn,
                segment: run.bytes.len(),
                bytes: run.bytes,
            });
        }
    }

    /// Reads a datagram that another worker has received.
    pub(super) fn read_forwarded(&mut self, datagram: &Forwarded) {
        let run = Run {
            peer: datagram.peer,
            local: datagram.local,
            ecn: datagram.ecn,
            segment: datagram.bytes.len(),
            bytes: &datagram.bytes,
        };
        self.read_run(datagram.listener.into(), &run);
    }

    /// Who has the connection of a packet.
    fn place_of(&self, packet: &[u8]) -> PacketPlace {
        let Some(owner) = quic::owner_of(packet) else {
            return PacketPlace::Here;
        };
        let process = &self.cx.runtime_config.process;
        if owner.process != process.number {
            let mut earlier = process.earlier.iter();
            let place = earlier.position(|earlier| earlier.number() == owner.process);
            let place = place.filter(|place| !process.earlier[*place].is_over());
            return place.map_or(PacketPlace::Here, PacketPlace::Process);
        }
        let ambient = &self.cx.core.ambient;
        let worker = WorkerId(owner.worker.into());
        let is_other = worker.0 != ambient.worker.0 & WORKERS_MASK;
        if is_other && (worker.0 as usize) < ambient.shared.workers().count() {
            PacketPlace::Worker(worker)
        } else {
            PacketPlace::Here
        }
    }

    fn read_run(&mut self, sock: DatagramSock, run: &Run<'_>) {
        let now = self.cx.now();
        let quics = match sock {
            DatagramSock::Listener(listener) => self.take_serving_quics(listener),
            DatagramSock::Server(_) => self.state.quics.take(),
        };
        let Some(mut quics) = quics else {
            return;
        };
        let mut arrivals = std::mem::take(&mut quics.arrivals);
        quics.endpoint.receive(now.mono_ns, run, &mut arrivals);
        for arrival in arrivals.drain(..) {
            match (arrival, sock) {
                (Arrival::Connection(handle, datagram), _) => {
                    if quics.is_at(self.cx.core, handle.0, sock) {
                        quics.at(self.cx.core, handle.0, |connection| {
                            connection.feed(now.mono_ns, datagram);
                        });
                    }
                }
                (Arrival::Incoming(incoming), DatagramSock::Listener(listener)) => {
                    self.accept_quic(&mut quics, listener, incoming);
                }
                (Arrival::Reply(reply), DatagramSock::Listener(listener)) => {
                    if reply.is_reset() {
                        self.tell_quic(self.bind_of(listener), Column::QuicStlessRstSent);
                    }
                    self.reply(listener, &reply);
                }
                // A server begins no connections, and learns nothing of ours.
                (Arrival::Incoming(incoming), DatagramSock::Server(_)) => {
                    quics.endpoint.ignore(incoming);
                }
                (Arrival::Reply(_), DatagramSock::Server(_)) => {}
            }
        }
        quics.arrivals = arrivals;
        self.state.quics = Some(quics);
    }

    /// Takes the QUIC connections of this worker out of its state. The caller puts them back.
    pub(super) fn take_quics(&mut self) -> Box<Quics> {
        if let Some(quics) = self.state.quics.take() {
            return quics;
        }
        let worker = self.cx.core.ambient.worker.0 as u8;
        let number = self.cx.core.ambient.random.next();
        let seed = self.cx.runtime_config.quic.keys.seed(worker, number);
        Quics::new(worker, seed, self.cx.runtime_config)
    }

    /// The same, with an endpoint that accepts clients of a listener. None if the listener has none.
    fn take_serving_quics(&mut self, listener: ListenerId) -> Option<Box<Quics>> {
        if let Some(quics) = self.state.quics.take_if(|quics| quics.is_serving) {
            return Some(quics);
        }
        let bind = *self.cx.runtime_config.listeners.get(listener.0 as usize)?;
        let origin = origin_of(self.cx.runtime_config, bind)?;
        let server = server_of(self.cx.runtime_config, &origin)?;
        let mut quics = self.take_quics();
        quics.endpoint.set_server(server);
        quics.is_serving = true;
        Some(quics)
    }

    /// A client begins a connection.
    fn accept_quic(&mut self, quics: &mut Quics, listener: ListenerId, incoming: Incoming) {
        let bind = self.bind_of(listener);
        let config = self.cx.runtime_config;
        if incoming.answers_retry() {
            self.tell_quic(bind, Column::QuicRetryValidated);
        }
        let closes = quics.closing.iter().any(|(of, _)| *of == listener);
        if closes || self.cx.is_stopping() {
            // The client goes on over TCP at once.
            let reply = quics.endpoint.refuse(incoming);
            return self.reply(listener, &reply);
        }
        let is_odd =
            config.quic.rejects_privileged && incoming.peer().port() < PRIVILEGED_PORTS_END;
        let Some(origin) = origin_of(config, bind).filter(|_| !is_odd) else {
            return self.drop_initial(quics, bind, incoming);
        };
        let accepted = Accepted {
            listener,
            peer: Addr::Inet(incoming.peer()),
            local: Addr::Inet(local_address(&incoming, &origin)),
        };
        let verdict = self.initial_rules(bind, &accepted);
        match verdict {
            Initial::Accept | Initial::Retry => {}
            Initial::Drop => return self.drop_initial(quics, bind, incoming),
            Initial::Reject => {
                let reply = quics.endpoint.refuse(incoming);
                return self.reply(listener, &reply);
            }
        }
        let asks = quics.handshakes >= config.quic.retry_threshold
            || origin.options.forces_retry
            || verdict == Initial::Retry;
        if asks && !incoming.is_validated() {
            if let Some(reply) = quics.endpoint.retry(incoming) {
                self.tell_quic(bind, Column::QuicRetrySent);
                self.reply(listener, &reply);
            }
            return;
        }
        let place = self.cx.core.ambient.shared.enter_tls();
        // Without a place, the client asks again and waits meanwhile.
        let (Some(place), true) = (place, self.admits_quic(bind)) else {
            return self.drop_initial(quics, bind, incoming);
        };
        let known = quics.servers.iter().position(|(of, ..)| *of == listener);
        let server = match known.map(|at| &quics.servers[at]) {
            Some((_, of, server)) if of.is_same(&origin) => server.clone(),
            _ => {
                let Some(server) = server_of(config, &origin) else {
                    return self.drop_initial(quics, bind, incoming);
                };
                if let Some(at) = known {
                    quics.servers.swap_remove(at);
                }
                quics.servers.push((listener, origin, server.clone()));
                server
            }
        };
        let now = self.cx.now();
        let is_validated = incoming.is_validated();
        match quics.endpoint.accept(now.mono_ns, incoming, &server) {
            Accept::Connection(connection) => {
                let handle = connection.handle().0;
                let timer = self.cx.core.timers.add(Owner::Quic(handle as u32));
                let user = QuicUser::Frontend(bind.frontend);
                let mut quic = QuicLink::new(connection, listener.into(), user, timer, place);
                quics.handshakes += 1;
                if !is_validated {
                    quic.is_half_open = true;
                    self.tell_quic(bind, Column::QuicHalfOpenConn);
                }
                if let Some(conn) = self.accepted(NO_SOCKET, accepted, Some(quic)) {
                    quics.add(handle, conn);
                    self.cx.core.links.touch(conn);
                }
            }
            Accept::Refused(reply) => {
                // The first packet has all of a hello that is refused.
                self.tell_quic(bind, Column::QuicHdshkFail);
                self.cx.accounts().tell_bind(bind, FrontCount::TlsFailed);
                self.cx.core.ambient.shared.dismiss(bind);
                if let Some(reply) = reply {
                    self.reply(listener, &reply);
                }
            }
        }
    }

    /// Runs `quic-initial`, for each packet that would begin a connection.
    fn initial_rules(&mut self, bind: BindId, accepted: &Accepted) -> Initial {
        let frontend = bind.frontend;
        let rules = &self.cx.runtime_config.proxy(frontend).quic_initial;
        if rules.is_empty() {
            return Initial::Accept;
        }
        let (peer, local) = (accepted.peer.clone(), accepted.local.clone());
        let place = bind.place as u32;
        let mut session = Session::new(self.cx.now(), peer, local, frontend.number(), place);
        self.cx
            .with_new_session(&mut session, |cx| cx.initial_rules(frontend, rules))
    }

    /// Ignores a packet that would begin a connection.
    fn drop_initial(&self, quics: &mut Quics, bind: BindId, incoming: Incoming) {
        self.tell_quic(bind, Column::QuicDroppedPkt);
        quics.endpoint.ignore(incoming);
    }

    /// Counts an event at a line.
    fn tell_quic(&self, bind: BindId, column: Column) {
        let user = QuicUser::Frontend(bind.frontend);
        count::tell(&self.cx.core.ambient, user, column, 1);
    }

    /// Sends a datagram of the endpoint itself.
    fn reply(&mut self, listener: ListenerId, reply: &Reply) {
        let datagrams = outgoing(reply.packet());
        self.cx.io.send_datagrams(listener.into(), datagrams);
    }

    /// A connection may have news, or something to read.
    fn look_at(&mut self, conn: ConnId) {
        let Some(quic) = self.cx.core.links.quic_mut(conn) else {
            return;
        };
        let news = quic.connection.news();
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
                Role::Server(server) => !server.connecting,
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
        if news.is_lost {
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
        if let Some(quic) = core.links.quic_mut(conn) {
            transmit(self.cx.io, &mut core.timers, &mut quics, quic);
        }
        self.state.quics = Some(quics);
    }

    /// Connections whose links have ended go on until their peers have everything.
    fn let_leave(&mut self) {
        let Some(mut quics) = self.state.quics.take() else {
            return;
        };
        let now_ms = self.cx.now_ms();
        for mut quic in self.cx.core.links.take_leaving() {
            let handle = quic.connection.handle().0;
            if !quic.is_established && server_sock(&quic).is_none() {
                quics.handshakes = quics.handshakes.saturating_sub(1);
            }
            count::end_half_open(&self.cx.core.ambient, &mut quic);
            // Another connection may have its name.
            if quic.connection.is_drained() {
                self.cx.core.timers.remove(quic.timer);
                quics.unused.extend(server_sock(&quic));
                count::tell_end(&self.cx.core.ambient, &mut quic);
                continue;
            }
            quic.early_ends_ms = None;
            quic.connection.abandon(REQUEST_CANCELLED);
            quics
                .places
                .insert(handle, Place::Leaving(quic, now_ms + LEAVE_MS));
            quics.leaving_moves(handle);
        }
        let core = &mut *self.cx.core;
        for handle in std::mem::take(&mut quics.moved) {
            // The name may be that of another connection by now.
            let Some(Place::Leaving(..)) = quics.places.get(&handle) else {
                continue;
            };
            let Some(Place::Leaving(mut quic, ends_ms)) = quics.places.remove(&handle) else {
                continue;
            };
            // Nobody reads what still comes.
            while quic.connection.receive().is_some() {}
            let mut ends_ms = ends_ms;
            if !quic.connection.is_closed() && (quic.connection.is_quiet() || now_ms >= ends_ms) {
                quic.end();
                ends_ms = now_ms + CLOSED_MS;
            }
            transmit(self.cx.io, &mut core.timers, &mut quics, &mut quic);
            if quic.connection.is_closed() {
                quic.free_place();
                // Nothing comes to the socket of a connection to a server any more.
                if now_ms >= ends_ms || server_sock(&quic).is_some() {
                    quic.connection.forget();
                    quics.settle(&mut quic.connection);
                }
            }
            if quic.connection.is_drained() {
                core.timers.remove(quic.timer);
                quics.unused.extend(server_sock(&quic));
                count::tell_end(&core.ambient, &mut quic);
                continue;
            }
            let due_ms = core.timers.deadline_ms(quic.timer).min(ends_ms);
            core.timers.set(quic.timer, due_ms);
            quics.places.insert(handle, Place::Leaving(quic, ends_ms));
        }
        for sock in quics.unused.drain(..) {
            self.cx.io.close_datagrams(sock);
        }
        let is_over = quics.is_over();
        quics.closing.retain(|(listener, at_ms)| {
            let closes = is_over || *at_ms <= now_ms;
            if closes {
                self.cx.io.unlisten(*listener);
            }
            !closes
        });
        self.state.quics = Some(quics);
    }

    /// Closes the connections of listeners whose time is over.
    fn end_connections_of_closing(&mut self) {
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

    /// Closes all connections, so that their peers do not wait for them until a timeout.
    pub(super) fn end_quics(&mut self) {
        self.end_connections(|_| true);
        self.let_leave();
    }

    /// The endpoint is lost: its connections end, because the next one does not know them. Clients
    /// get a reset from it.
    pub(super) fn lose_quics(&mut self) {
        for slot in 0..self.cx.core.links.slots() {
            let links = &mut self.cx.core.links;
            if let Some(Named::Conn(conn)) = links.at(slot).and_then(|link| links.name(link))
                && links.quic_mut(conn).is_some()
            {
                self.closed(conn, Close::Reset);
            }
        }
        let core = &mut *self.cx.core;
        for mut quic in core.links.take_leaving() {
            core.timers.remove(quic.timer);
            if let Some(sock) = server_sock(&quic) {
                self.cx.io.close_datagrams(sock);
            }
            count::tell_end(&core.ambient, &mut quic);
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

    /// Listeners that close and that the configuration has again stay open.
    pub(super) fn open_returned_quics(&mut self) {
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
    pub(super) fn close_lost_quic(&mut self, listener: ListenerId) -> bool {
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
    pub(super) fn close_listener(&mut self, listener: ListenerId, ends_ms: u64) {
        let address = self.cx.runtime_config.quic_address(self.bind_of(listener));
        match &mut self.state.quics {
            Some(quics) if address.is_some() => quics.close(listener, ends_ms),
            _ => self.cx.io.unlisten(listener),
        }
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
