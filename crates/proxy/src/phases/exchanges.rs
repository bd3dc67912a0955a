//! Exchanges that share a connection after their message, and connections without exchanges.

use net::Driver;

use super::{Cause, ConnWait, Cx};
use crate::ids::{ConnId, ExchangeId};
use crate::link::{Hold, Linger};
use crate::stream::{Phase, Stream, Until};

impl<D: Driver> Cx<'_, D> {
    /// The response of an exchange that shares its connection is complete: the rest of its request
    /// is discarded for as long as the client sends it. A client that is silent for a moment has
    /// its exchange reset, so that its connection has room for others.
    pub fn exchange_answered(&mut self, exchange: ExchangeId) {
        if !self.core.links.discard_rest(self.io, exchange) {
            return self.end_exchange(exchange);
        }
        self.await_rest(exchange);
    }

    /// Sets how long the rest of a request that was answered early is awaited.
    pub fn await_rest(&mut self, exchange: ExchangeId) {
        match self.core.links.own_connection(exchange) {
            Some(conn) => self.wait_for_client(conn),
            None => self.wait_on(exchange, ConnWait::End),
        }
    }

    /// Ends an exchange with its connection, in the given way, if it has that for itself.
    pub(super) fn leave_exchange(
        &mut self,
        exchange: ExchangeId,
        leave: impl FnOnce(&mut Self, ConnId),
    ) {
        match self.core.links.own_connection(exchange) {
            Some(conn) => leave(self, conn),
            None => self.end_exchange(exchange),
        }
    }

    /// The rest of a request that was answered early has been discarded.
    pub fn exchange_drained(&mut self, exchange: ExchangeId) {
        self.core.links.drained(exchange);
        match self.core.links.own_connection(exchange) {
            Some(conn) => self.next_request(conn),
            None => self.forget_exchange(exchange),
        }
    }

    /// Ends an exchange that shares its connection; resets it if it is still open.
    pub fn end_exchange(&mut self, exchange: ExchangeId) {
        self.core.links.reset_stream(self.io, exchange);
        self.forget_exchange(exchange);
    }

    /// Forgets an ended exchange that shares its connection.
    pub fn forget_exchange(&mut self, exchange: ExchangeId) {
        if let Some(connection) = self.core.links.connection_of(exchange) {
            self.tell_h2(connection);
        }
        let core = &mut *self.core;
        if let Some(connection) = core.links.remove_stream(exchange, &mut core.timers) {
            self.connection_is_free(connection);
        }
    }

    /// The last exchange of a connection has ended: the connection waits for the next one, or ends.
    pub fn connection_is_free(&mut self, link: ConnId) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        if entry.eof || self.core.links.is_ending(link) {
            return self.end_connection(link);
        }
        let now = self.now();
        if let Some(client) = self.core.links.client_mut(link) {
            client.idle_since = now;
            let frontend = client.frontend();
            return self.wait_idle_on(link, ConnWait::NextRequest(frontend));
        }
        let Some(server) = self.core.links.server(link) else {
            return;
        };
        let (id, is_shared) = (server.server, server.shared_place.is_some());
        let wait = is_shared.then(|| self.keep_idle_of(link, id)).flatten();
        match wait {
            Some(wait) => self.wait_idle_on(link, wait),
            None => self.end_connection(link),
        }
    }

    /// Ends a connection without exchanges, and tells the peer first.
    pub fn end_connection(&mut self, link: ConnId) {
        // Ends the connection if the following steps do not complete.
        self.wait_idle_on(link, ConnWait::End);
        let links = &mut self.core.links;
        links.send_goaway(self.io, link);
        if links.is_client(link) {
            self.finish_client(link, Linger::Briefly)
        } else {
            self.close_server(link)
        }
    }

    /// While draining: a client's connection takes no new exchanges; its present ones continue.
    /// Whether the client could be told: otherwise its next response tells it.
    pub fn take_no_more_exchanges(&mut self, link: ConnId) -> bool {
        let links = &mut self.core.links;
        if !links.announce_end(self.io, link) {
            return links.multiplexes(link);
        }
        let is_free = links.get(link).is_some_and(|link| link.is_free());
        // A client that has not sent a request yet keeps its full timeout.
        let client = links.client(link);
        if is_free && client.is_some_and(|client| client.streams > 0) {
            self.connection_is_free(link);
        }
        true
    }

    /// A server did not process a request (`REFUSED_STREAM`, or a number above the last one of its
    /// GOAWAY frame; RFC 9113 §8.7). The request may be sent again on another connection if the
    /// sent part of its body was kept.
    pub fn exchange_refused(&mut self, stream: &mut Stream) {
        let is_new = matches!(stream.phase, Phase::ResponseHead);
        let is_here = stream.replay.resendable || stream.replay.keeps;
        if !is_new {
            return self.fail(stream, Cause::ServerGone);
        }
        if !is_here || stream.route.fresh_only {
            return self.no_response(stream, false);
        }
        self.drop_server(stream);
        self.take_upload_back(stream);
        stream.route.fresh_only = true;
        stream.phase = Phase::Connect(Until::default());
        self.run(stream);
    }

    /// Puts the sent part of a request's body before the unsent part, so that all of it is sent
    /// again. The client is read again.
    fn take_upload_back(&mut self, stream: &mut Stream) {
        let up = &mut stream.up;
        up.is_open = false;
        if !stream.replay.body.is_empty() {
            let rest = std::mem::replace(&mut up.waiting, std::mem::take(&mut stream.replay.body));
            up.waiting.extend_from_slice(&rest);
            up.done = false;
        }
        if let Some(client) = stream.client {
            self.core.links.release(self.io, client, Hold::Peer);
        }
    }
}
