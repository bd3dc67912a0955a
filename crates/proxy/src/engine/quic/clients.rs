//! QUIC connections of clients: their beginning.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config::model::QuicBind;
use net::{Accepted, Addr, Driver, ListenerId};
use quic::{Accepted as Accept, Incoming, Reply, Server};
use sample::Session;
use stats::Column;
use tls::quic::QuicAcceptor;

use super::super::Turn;
use super::{Quics, count, outgoing};
use crate::ids::{BindId, Owner, QuicUser};
use crate::link::{NO_SOCKET, QuicLink};
use crate::rules::Initial;
use crate::runtime_config::{BindAcceptors, RuntimeConfig};
use crate::shared::FrontCount;

/// Where the ports of users begin (RFC 6335).
const PRIVILEGED_PORTS_END: u16 = 1024;

/// The parts of the configuration that a [`Server`] is made of.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub address: SocketAddr,
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

/// The address of this side that a client sent its first packet to.
fn local_address(incoming: &Incoming, origin: &Origin) -> SocketAddr {
    let ip = incoming.local();
    let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    SocketAddr::new(ip, origin.address.port())
}

impl<D: Driver> Turn<'_, D> {
    /// The same, with an endpoint that accepts clients of a listener. None if the listener has none.
    pub(super) fn take_serving_quics(&mut self, listener: ListenerId) -> Option<Box<Quics>> {
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
    pub(super) fn accept_quic(
        &mut self,
        quics: &mut Quics,
        listener: ListenerId,
        incoming: Incoming,
    ) {
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
        let (Some(place), true) = (place, self.admits_quic(bind, quics.handshakes)) else {
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
    pub(super) fn tell_quic(&self, bind: BindId, column: Column) {
        let user = QuicUser::Frontend(bind.frontend);
        count::tell(&self.cx.core.ambient, user, column, 1);
    }

    /// Sends a datagram of the endpoint itself.
    pub(super) fn reply(&mut self, listener: ListenerId, reply: &Reply) {
        let datagrams = outgoing(reply.packet());
        self.cx.io.send_datagrams(listener.into(), datagrams);
    }
}
