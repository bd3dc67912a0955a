//! A panic ends only the connection or request that it happened on.
//!
//! Streams and connections stay in their tables while they are worked on. So everything that a
//! stream holds (a slot, its counts, a place in a queue) is known after a panic and released.

use std::panic::{AssertUnwindSafe, catch_unwind};

use net::Driver;

use super::{AtWork, Engine, Turn};
use crate::ids::{ConnId, ExchangeId, LinkId, StreamId};
use crate::link::{Named, Role, Stage};
use crate::phases::{Cause, Cx};
use crate::stream::{Phase, Stream};

/// A panic, which the process' panic hook has already reported.
pub(super) struct Panicked;

/// Runs work that may panic.
#[inline]
pub(super) fn run(work: impl FnOnce()) -> Result<(), Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

impl Engine {
    /// Ends the stream and the connections that a panic concerns.
    #[cold]
    #[inline(never)]
    pub(super) fn contain<D: Driver>(&mut self, driver: &mut D) {
        let AtWork {
            link,
            is_dead,
            stream,
            client,
        } = std::mem::take(&mut self.state.at_work);
        let of_link = |link: LinkId| self.core.links.stream(link);
        let stream = stream.or_else(|| link.and_then(of_link));
        self.core.ambient.shared.count_panic();
        self.core.text.clear();
        self.core.out.clear();
        // The regular way: with a response if none was sent.
        let ended = self.end_stream(driver, stream, |cx, stream| {
            // The failure must not start a retry.
            stream.replay.retriable = false;
            cx.fail(stream, Cause::Internal);
        });
        if ended.is_err() {
            let _ = self.end_stream(driver, stream, |_, stream| stream.log.written = true);
        }
        let _ = self.end_stream(driver, stream, |cx, stream| cx.abandon(stream));
        let is_closing = |link: &ExchangeId| {
            let client = self.core.links.client(*link);
            client.is_some_and(|client| client.stage == Stage::Closing)
        };
        let client = client.filter(|client| !is_closing(client));
        for link in [client.map(LinkId::from), link].into_iter().flatten() {
            let _ = run(|| self.turn(driver).close_link(link));
        }
        if let Some(link) = link.filter(|_| is_dead) {
            let _ = run(|| {
                let mut turn = self.turn(driver);
                match turn.cx.core.links.name(link) {
                    Some(Named::Conn(conn)) if turn.cx.core.links.is_client(conn) => {
                        turn.cx.forget_client(conn);
                    }
                    Some(Named::Conn(conn)) => turn.cx.forget_server(conn),
                    Some(Named::Exchange(_)) | None => {}
                }
            });
        }
        for slot in 0..self.core.links.slots() {
            let _ = run(|| self.turn(driver).close_untied(slot));
        }
        // The panic has lost the endpoint, or there never was one.
        if self.state.quics.is_none() {
            let _ = run(|| self.turn(driver).lose_quics());
        }
        self.core.links.list_touched();
        let _ = run(|| self.turn(driver).settle());
    }

    /// Ends a stream in the given way.
    fn end_stream<D: Driver>(
        &mut self,
        driver: &mut D,
        stream: Option<StreamId>,
        end: impl FnOnce(&mut Cx<'_, D>, &mut Stream),
    ) -> Result<(), Panicked> {
        let Some(id) = stream else { return Ok(()) };
        run(|| {
            self.turn(driver).with_stream(id, |cx, stream| {
                if !matches!(stream.phase, Phase::Done) {
                    end(cx, stream);
                }
            });
        })
    }
}

impl<D: Driver> Turn<'_, D> {
    /// Ends a connection or an exchange, except a server's connection that another stream uses.
    fn close_link(&mut self, link: LinkId) {
        match self.cx.core.links.name(link) {
            Some(Named::Conn(conn)) => self.close_conn(conn),
            Some(Named::Exchange(exchange)) => self.cx.end_exchange(exchange),
            None => {}
        }
    }

    fn close_conn(&mut self, link: ConnId) {
        let links = &self.cx.core.links;
        if links.multiplexes(link) {
            if links.is_client(link) {
                self.lose_exchanges(link)
            } else {
                return self.server_connection_ended(link);
            }
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        match &entry.role {
            Role::Client(_) => {
                self.cx.core.links.set_stream(link.only_exchange(), None);
                self.cx.close_client(link);
            }
            // It may be in the middle of its end; then only its timer would close it.
            Role::Server(server) if server.pool_place.is_some() => self.cx.close_server(link),
            Role::Server(_) => {
                let stream = entry.stream();
                if stream.is_none_or(|id| self.streams.get(id).is_none()) {
                    self.cx.close_server(link);
                }
            }
            Role::Stream(_) => {}
        }
    }

    /// Ends what is in a slot if its stream does not refer to it, or if it is a server's connection
    /// without a stream.
    fn close_untied(&mut self, slot: u32) {
        let links = &self.cx.core.links;
        match links.at(slot).and_then(|link| links.name(link)) {
            Some(Named::Conn(conn)) => self.close_untied_conn(conn),
            Some(Named::Exchange(exchange)) => self.end_untied_exchange(exchange),
            None => {}
        }
    }

    fn close_untied_conn(&mut self, link: ConnId) {
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let stream = entry.stream();
        let stream = stream.map(|id| self.streams.get(id));
        let exchange = link.only_exchange();
        match &entry.role {
            Role::Client(_) => {
                let is_lost = |stream: Option<&Stream>| {
                    stream.is_none_or(|stream| stream.client != Some(exchange))
                };
                if stream.is_some_and(is_lost) {
                    self.cx.core.links.set_stream(exchange, None);
                    self.cx.close_client(link);
                }
            }
            // It has no streams and is in no pool or list, so it was about to be closed.
            Role::Server(server) if self.cx.core.links.multiplexes(link) => {
                let is_lost = server.shared_place.is_none() && server.keeper.is_none();
                if is_lost && entry.is_free() {
                    self.cx.close_server(link);
                }
            }
            Role::Server(server) => {
                let is_tied = stream
                    .flatten()
                    .is_some_and(|stream| stream.server.link() == Some(exchange));
                let is_pooled = server.pool_place.is_some();
                let is_kept = server
                    .keeper
                    .and_then(|keeper| self.cx.core.links.client(keeper))
                    .is_some_and(|client| client.kept.contains(&link));
                if !is_tied && !is_pooled && !is_kept {
                    self.cx.close_server(link);
                }
            }
            Role::Stream(_) => {}
        }
    }

    fn end_untied_exchange(&mut self, exchange: ExchangeId) {
        let links = &self.cx.core.links;
        let Some(entry) = links.get(exchange) else {
            return;
        };
        let drains = entry.discards_rest();
        let stream = entry.stream().and_then(|id| self.streams.get(id));
        let tied = stream.and_then(|stream| {
            let is_client = stream.client == Some(exchange);
            let is_tied = is_client || stream.server.link() == Some(exchange);
            is_tied.then_some((stream.id, is_client))
        });
        let connection = links.connection_of(exchange);
        let is_orphan = connection.is_none_or(|connection| links.get(connection).is_none());
        match tied {
            None if drains && !is_orphan => {}
            None => self.cx.end_exchange(exchange),
            Some((id, is_client)) if is_orphan => {
                self.with_stream(id, |cx, stream| {
                    if is_client {
                        cx.client_lost(stream)
                    } else {
                        cx.server_lost(stream, net::Close::Reset, true)
                    }
                });
            }
            Some(_) => {}
        }
    }
}
