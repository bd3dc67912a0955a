//! Invariants between entry points: the references between connections, streams and pools. Tests
//! check them after every event.

use net::SockId;

use super::Engine;
use crate::ids::{ConnId, ExchangeId, LinkId};
use crate::link::{Client, Link, NO_SOCKET, Role, Server};
use crate::stream::{ServerEnd, Stream};

/// What the engine holds for the peer of one connection, bytes. What waits in the driver, and what
/// waits to be encrypted, is not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBytes {
    /// The connection; none for a slot without one, and for a connection of QUIC.
    pub sock: Option<SockId>,
    /// The connection is one of QUIC.
    pub is_quic: bool,
    /// The place of that connection among all connections of the engine.
    pub place: u32,
    /// It is a client's.
    pub is_client: bool,
    /// It is HTTP/2 or HTTP/3.
    pub is_h2: bool,
    /// The streams that it has now.
    pub streams: usize,
    /// Received bytes of the connection that are not used.
    pub input: usize,
    /// Received payload of its streams that is not used, where it has many at a time.
    pub stream_input: usize,
    /// Payload that waits in its streams, where rules can see it.
    pub payload: usize,
    /// Sent payload that is kept in case the request has to be sent again.
    pub replay: usize,
    /// Its streams' heads.
    pub heads: usize,
    /// Bytes for the streams of QUIC that the peer does not take yet.
    pub queued: usize,
}

impl Engine {
    /// Writes what is held for each peer to `held`, by the driver's slot of its connection; those of
    /// QUIC connections follow. Visits every connection, so it is for tests only.
    pub fn held_bytes(&self, held: &mut Vec<HeldBytes>) {
        held.clear();
        let links = &self.core.links;
        for (id, link) in links.iter() {
            let Some(peer) = peer_of(held, id, link) else {
                continue;
            };
            peer.queued += link
                .quic
                .as_ref()
                .map_or(0, |quic| quic.connection.queued());
            match &link.role {
                Role::Stream(_) => {
                    peer.streams += 1;
                    peer.stream_input += link.input.len();
                }
                role @ (Role::Client(_) | Role::Server(_)) => {
                    peer.input += link.input.len();
                    peer.is_client = matches!(role, Role::Client(_));
                    peer.is_h2 = links.multiplexes(ConnId::of(id));
                    peer.streams += usize::from(link.stream().is_some());
                }
            }
        }
        for stream in self.streams.all() {
            let named = |id: ExchangeId| Some((LinkId::from(id), links.get(id)?));
            let client = stream.client.and_then(named);
            let server = stream.server.link().and_then(named);
            if let Some(peer) = client.and_then(|(id, link)| peer_of(held, id, link)) {
                peer.payload += stream.up.waiting.len();
                peer.replay += stream.replay.body.len();
                peer.heads += stream.request.wire_bytes();
            }
            // A response whose server has gone is the client's.
            let receiver = server.or(client);
            if let Some(peer) = receiver.and_then(|(id, link)| peer_of(held, id, link)) {
                peer.payload += stream.down.waiting.len();
                peer.heads += stream.response.wire_bytes();
            }
        }
    }

    /// Checks the engine's own state. Visits every connection, so it is for tests only.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn audit(&self) -> Result<(), String> {
        let core = &self.core;
        require(core.out.is_empty() && core.text.is_empty(), || {
            "output was left over".into()
        })?;
        let work = &core.work;
        let is_done = work.streams.is_empty() && work.links.is_empty() && !work.dismissed;
        require(is_done, || "work was left over".into())?;
        let mut clients = 0;
        for (id, link) in core.links.iter() {
            match &link.role {
                Role::Client(client) => {
                    clients += 1;
                    self.audit_client(ConnId::of(id), link, client)?;
                }
                Role::Server(server) => self.audit_server(ConnId::of(id), link, server)?,
                Role::Stream(connection) => {
                    self.audit_exchange(ExchangeId::of(id), link, *connection)?
                }
            }
        }
        require(clients == core.clients, || {
            format!("{clients} clients, {} counted", core.clients)
        })?;
        self.audit_quics()?;
        self.streams
            .all()
            .try_for_each(|stream| self.audit_stream(stream))
    }

    fn audit_client(&self, id: ConnId, link: &Link, client: &Client) -> Result<(), String> {
        let is_tied = link.stream().is_none_or(|stream| {
            let stream = self.streams.get(stream);
            stream.is_some_and(|stream| stream.client == Some(id.only_exchange()))
        });
        require(is_tied, || format!("{id:?} is not its stream's: {link:?}"))?;
        let is_kept = client.kept.iter().all(|kept| {
            let server = self.core.links.server(*kept);
            server.is_some_and(|server| server.keeper == Some(id))
        });
        require(is_kept, || {
            format!("{id:?} does not keep {:?}", client.kept)
        })
    }

    fn audit_server(&self, id: ConnId, link: &Link, server: &Server) -> Result<(), String> {
        let pooled = server
            .pool_place
            .map(|place| self.core.backends.is_pooled(server.server, place, id));
        let kept = server.keeper.map(|keeper| {
            let client = self.core.links.client(keeper);
            client.is_some_and(|client| client.kept.contains(&id))
        });
        let tied = link.stream().map(|stream| {
            let stream = self.streams.get(stream);
            stream.is_some_and(|stream| stream.server.link() == Some(id.only_exchange()))
        });
        let is_connection = self.core.links.multiplexes(id);
        let shared = is_connection.then(|| server.shared_place.is_some() || !link.is_free());
        let ties = [pooled, kept, tied, shared].into_iter().flatten();
        require(
            ties.clone().count() == 1 && ties.clone().all(|tie| tie),
            || format!("{id:?} has not one right owner: {link:?}"),
        )
    }

    fn audit_exchange(
        &self,
        id: ExchangeId,
        link: &Link,
        connection: ConnId,
    ) -> Result<(), String> {
        let is_child = self
            .core
            .links
            .exchanges(connection)
            .any(|child| child == id);
        require(is_child, || {
            format!("{id:?} is not of its connection: {link:?}")
        })?;
        let drains = link.discards_rest();
        let is_tied = drains
            || link.stream().is_some_and(|stream| {
                let stream = self.streams.get(stream);
                stream.is_some_and(|stream| {
                    stream.client == Some(id) || stream.server.link() == Some(id)
                })
            });
        require(is_tied, || format!("{id:?} is not its stream's: {link:?}"))
    }

    fn audit_stream(&self, stream: &Stream) -> Result<(), String> {
        let knows = |link: ExchangeId| {
            let link = self.core.links.get(link);
            link.is_some_and(|link| link.stream() == Some(stream.id))
        };
        let is_known = stream.client.is_some_and(knows)
            && match &stream.server {
                ServerEnd::Link(link) => knows(*link),
                ServerEnd::Nobody | ServerEnd::Page(_) | ServerEnd::Generated(_) => true,
            };
        require(is_known, || {
            format!(
                "stream {:?} in {:?} is unknown to its connections",
                stream.id, stream.phase
            )
        })?;
        // Whom a stream believes to be blocked is, so that it hears of progress.
        let is_blocked =
            |link: Option<ExchangeId>| link.is_none_or(|link| self.core.links.is_blocked(link));
        let (up, down) = (&stream.up, &stream.down);
        let knows_blocked = (!down.is_blocked || is_blocked(stream.client))
            && (!up.is_blocked || is_blocked(stream.server.link()));
        require(knows_blocked, || {
            format!("stream {:?} waits for room that is there", stream.id)
        })?;
        // Where none of its facts has changed since it stopped, it has no other deadline by now.
        let first_ms = stream
            .deadlines(self.older.config_of(stream, &self.runtime_config))
            .first_ms();
        let timer_ms = self.core.timers.deadline_ms(stream.timer);
        require(timer_ms == first_ms, || {
            format!(
                "stream {:?} in {:?} is due at {first_ms} ms, its timer at {timer_ms} ms",
                stream.id, stream.phase
            )
        })?;
        let is_whole = stream.tracing.attached.iter().all(Option::is_some);
        require(is_whole, || {
            format!("a filter of stream {:?} was left at work", stream.id)
        })
    }
}

/// The entry of the peer of a link: at the driver's slot of its connection, or behind, where a
/// connection that has ended and still has exchanges was in that slot before, and for a connection of
/// QUIC.
fn peer_of<'a>(held: &'a mut Vec<HeldBytes>, id: LinkId, link: &Link) -> Option<&'a mut HeldBytes> {
    let mut own = HeldBytes::default();
    if link.sock == NO_SOCKET {
        own.is_quic = true;
        own.place = match link.role {
            Role::Stream(connection) => LinkId::from(connection).slot,
            Role::Client(_) | Role::Server(_) => id.slot,
        };
    } else {
        own.sock = Some(link.sock);
        let slot = link.sock.slot as usize;
        if held.len() <= slot {
            held.resize(slot + 1, HeldBytes::default());
        }
        let first = &mut held[slot];
        if first.sock.is_none() && !first.is_quic {
            first.sock = own.sock;
        }
        if held[slot].sock == own.sock {
            return held.get_mut(slot);
        }
    }
    let is_own = |peer: &HeldBytes| {
        (peer.sock, peer.is_quic, peer.place) == (own.sock, own.is_quic, own.place)
    };
    let place = held.iter().position(is_own).unwrap_or_else(|| {
        held.push(own);
        held.len() - 1
    });
    held.get_mut(place)
}

pub(super) fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
