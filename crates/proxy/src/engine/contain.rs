//! A panic ends only the connection or request that it happened on.
//!
//! Streams and connections stay in their tables while they are worked on. So everything that a
//! stream holds (a slot, its counts, a place in a queue) is known after a panic and released.

use std::panic::{AssertUnwindSafe, catch_unwind};

use net::Driver;

use super::{AtWork, Engine, Turn};
use crate::ids::{LinkId, StreamId};
use crate::link::{Role, Stage};
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
        let is_closing = |link: &LinkId| {
            let client = self.core.links.client(*link);
            client.is_some_and(|client| client.stage == Stage::Closing)
        };
        let client = client.filter(|client| !is_closing(client));
        for link in [client, link].into_iter().flatten() {
            let _ = run(|| self.turn(driver).close_link(link));
        }
        if let Some(link) = link.filter(|_| is_dead) {
            let _ = run(|| {
                let mut turn = self.turn(driver);
                if turn.cx.core.links.client(link).is_some() {
                    turn.cx.forget_client(link)
                } else {
                    turn.cx.forget_server(link)
                }
            });
        }
        for slot in 0..self.core.links.slots() {
            let _ = run(|| self.turn(driver).close_untied(slot));
        }
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
    /// Closes a connection, except a server's connection that another stream uses.
    fn close_link(&mut self, link: LinkId) {
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
                self.cx.core.links.set_stream(link, None);
                self.cx.close_client(link);
            }
            // It may be in the middle of its end; then only its timer would close it.
            Role::Server(server) if server.pool_place.is_some() => self.cx.close_server(link),
            Role::Stream(_) => self.cx.end_exchange(link),
            Role::Server(_) => {
                let stream = entry.stream();
                if stream.is_none_or(|id| self.streams.get(id).is_none()) {
                    self.cx.close_server(link);
                }
            }
        }
    }

    /// Closes the connection in a slot if its stream does not refer to it, or if it is a server's
    /// without a stream.
    fn close_untied(&mut self, slot: u32) {
        let Some(link) = self.cx.core.links.at(slot) else {
            return;
        };
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let stream = entry.stream();
        let stream = stream.map(|id| self.streams.get(id));
        match &entry.role {
            Role::Client(_) => {
                let is_lost = |stream: Option<&Stream>| {
                    stream.is_none_or(|stream| stream.client != Some(link))
                };
                if stream.is_some_and(is_lost) {
                    self.cx.core.links.set_stream(link, None);
                    self.cx.close_client(link);
                }
            }
            Role::Stream(connection) => {
                let connection = *connection;
                let drains = entry.discards_rest();
                let tied = stream.flatten().filter(|stream| {
                    stream.client == Some(link) || stream.server.link() == Some(link)
                });
                let tied = tied.map(|stream| (stream.id, stream.client == Some(link)));
                let is_orphan = self.cx.core.links.get(connection).is_none();
                match tied {
                    None if drains && !is_orphan => {}
                    None => self.cx.end_exchange(link),
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
                    .is_some_and(|stream| stream.server.link() == Some(link));
                let keeper = server.keeper;
                let is_pooled = server.pool_place.is_some();
                let is_kept = keeper
                    .and_then(|keeper| self.cx.core.links.client(keeper))
                    .is_some_and(|client| client.kept.contains(&link));
                if !is_tied && !is_pooled && !is_kept {
                    self.cx.close_server(link);
                }
            }
        }
    }
}
