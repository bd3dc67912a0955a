//! Invariants between entry points: the references between connections, streams and pools. Tests
//! check them after every event.

use super::Engine;
use crate::ids::{ConnId, ExchangeId};
use crate::link::{Client, Link, Role, Server};
use crate::stream::{ServerEnd, Stream};

impl Engine {
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
        let is_whole = stream.tracing.attached.iter().all(Option::is_some);
        require(is_whole, || {
            format!("a filter of stream {:?} was left at work", stream.id)
        })
    }
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
