//! What must hold between entry points: the links between connections, streams and pools. Tests check it after every event.

use net::ConnId;

use crate::conn::{Client, Role, Server};
use crate::engine::{Core, Engine};
use crate::stream::{Phase, Stream};

impl Engine {
    /// Checks the engine's own books. Looks at every connection: for tests.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn audit(&self) -> Result<(), String> {
        let core = self.core();
        require(core.scratch.is_empty(), || "output was left over".into())?;
        require(core.woken.is_empty() && core.poked.is_empty(), || {
            "work was left over".into()
        })?;
        for (conn, role) in core.conns.all() {
            match role {
                Role::Client(client) => core.audit_client(conn, client)?,
                Role::Server(server) => core.audit_server(conn, server)?,
                Role::Free => {}
            }
        }
        core.streams
            .all()
            .try_for_each(|stream| core.audit_stream(stream))
    }
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Core {
    fn audit_client(&self, conn: ConnId, client: &Client) -> Result<(), String> {
        let tied = client.stream.is_none_or(|id| {
            self.streams
                .get(id)
                .is_some_and(|stream| stream.client == Some(conn))
        });
        require(tied, || format!("{conn:?} is not its stream's: {client:?}"))?;
        let kept = client.kept.is_none_or(|kept| {
            self.conns
                .server_ref(kept)
                .is_some_and(|server| server.keeper == Some(conn))
        });
        require(kept, || format!("{conn:?} does not keep {:?}", client.kept))
    }

    fn audit_server(&self, conn: ConnId, server: &Server) -> Result<(), String> {
        let idle = &self.backends[server.backend].idle[server.server];
        let pooled = server
            .pool_place
            .map(|place| idle.get(place as usize) == Some(&conn));
        let kept = server.keeper.map(|keeper| {
            self.conns
                .client_ref(keeper)
                .is_some_and(|client| client.kept == Some(conn))
        });
        let tied = server.stream.map(|id| {
            self.streams
                .get(id)
                .is_some_and(|stream| stream.server == Some(conn))
        });
        let ties = [pooled, kept, tied].into_iter().flatten();
        require(
            ties.clone().count() == 1 && ties.clone().all(|tie| tie),
            || format!("{conn:?} has not one right owner: {server:?}"),
        )
    }

    fn audit_stream(&self, stream: &Stream) -> Result<(), String> {
        let client = stream
            .client
            .and_then(|client| self.conns.client_ref(client));
        let client_knows = client.is_some_and(|client| client.stream == Some(stream.id));
        let server_knows = stream.server.is_none_or(|server| {
            self.conns
                .server_ref(server)
                .is_some_and(|server| server.stream == Some(stream.id))
        });
        require(client_knows && server_knows, || {
            format!(
                "stream {} in {:?} is unknown to its connections",
                stream.id, stream.phase
            )
        })?;
        require(stream.tracing.attached.iter().all(Option::is_some), || {
            format!("a filter of stream {} was left at work", stream.id)
        })?;
        require(stream.queued == (stream.phase == Phase::Queue), || {
            format!(
                "stream {} in {:?}, queued: {}",
                stream.id, stream.phase, stream.queued
            )
        })
    }
}
