//! HTTP/2 streams after their message, and their connections.

use http::h2::Code;
use net::Driver;

use super::clients::{DRAIN_IDLE_MS, LINGER_MS};
use super::{Cause, Cx};
use crate::ids::LinkId;
use crate::link::Hold;
use crate::link::mux::Mux;
use crate::link::mux::h1::Linger;
use crate::link::mux::h2::Sending;
use crate::runtime_config::deadline;
use crate::stream::{Phase, Stream};

impl<D: Driver> Cx<'_, D> {
    /// The response to a client's stream is complete. The rest of its request is discarded: clients
    /// that are told to stop sending may lose the response.
    pub fn stream_answered(&mut self, link: LinkId) {
        let Some(entry) = self.core.links.get_mut(link) else {
            return;
        };
        let unused = entry.input.len();
        entry.input.clear();
        let Mux::Stream(end) = &mut entry.mux else {
            return;
        };
        if end.has_ended || end.sending != Sending::Over {
            return self.end_stream_link(link);
        }
        end.stream = None;
        end.drains = true;
        self.core.links.consumed(self.io, link, unused);
        if let Some(client) = self.core.links.client(link) {
            let timeout_ms = self.runtime_config.timeouts(client.frontend()).client;
            self.set_link_deadline(link, deadline(self.now(), timeout_ms));
        }
    }

    /// Ends a stream of a connection; resets it if it is still open.
    pub fn end_stream_link(&mut self, link: LinkId) {
        self.core.links.reset_stream(self.io, link);
        self.forget_stream_link(link);
    }

    /// Forgets a closed stream of a connection.
    pub fn forget_stream_link(&mut self, link: LinkId) {
        let core = &mut *self.core;
        if let Some(connection) = core.links.remove_stream(link, &mut core.timers) {
            self.connection_is_free(connection);
        }
    }

    /// The last stream of a connection has ended: the connection waits for the next one, or ends.
    pub fn connection_is_free(&mut self, link: LinkId) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        let (eof, is_stopping) = (entry.eof, self.is_stopping());
        let Some(connection) = self.core.links.connection_mut(link) else {
            return;
        };
        if eof || connection.is_ending {
            return self.end_connection(link);
        }
        let now = self.now();
        if let Some(client) = self.core.links.client_mut(link) {
            client.idle_since = now;
            let wait_ms = self
                .runtime_config
                .timeouts(client.frontend())
                .http_keep_alive;
            let wait_ms = if is_stopping {
                wait_ms.min(DRAIN_IDLE_MS)
            } else {
                wait_ms
            };
            return self.set_idle_deadline(link, deadline(now, wait_ms));
        }
        let Some(server) = self.core.links.server(link) else {
            return;
        };
        let is_kept = server.shared_place.is_some();
        match is_kept.then(|| self.keep_idle_until(link)).flatten() {
            Some(at_ms) => self.set_idle_deadline(link, at_ms),
            None => self.end_connection(link),
        }
    }

    /// Sets when a connection without streams ends. Its next ping, where idle connections are
    /// pinged, may be due before.
    pub fn set_idle_deadline(&mut self, link: LinkId, ends_ms: u64) {
        let now_ms = self.now().ms();
        let at_ms = match self.core.links.connection_mut(link) {
            Some(connection) => connection.begin_idle(now_ms, ends_ms),
            None => ends_ms,
        };
        self.set_link_deadline(link, at_ms);
    }

    /// Ends a connection without streams. The peer gets a GOAWAY frame first.
    pub fn end_connection(&mut self, link: LinkId) {
        // Ends the connection if the following steps do not complete.
        self.set_idle_deadline(link, deadline(self.now(), LINGER_MS));
        let links = &mut self.core.links;
        links.with_codec(self.io, link, |codec, frames| {
            codec.goaway(Code::NO_ERROR, frames);
        });
        if links.is_client(link) {
            self.finish_client(link, Linger::Briefly)
        } else {
            self.close_server(link)
        }
    }

    /// While draining: a client's connection takes no new streams; its present ones continue.
    pub fn hurry_connection(&mut self, link: LinkId) {
        if self.core.links.get(link).is_some_and(|link| link.shut) {
            return;
        }
        let links = &mut self.core.links;
        links.with_codec(self.io, link, |codec, frames| codec.shutdown(frames));
        let is_free = links.get(link).is_some_and(|link| link.mux.is_free());
        // A client that has not sent a request yet keeps its full timeout.
        let client = links.client(link);
        if is_free && client.is_some_and(|client| client.streams > 0) {
            self.connection_is_free(link);
        }
    }

    /// A server did not process a request (`REFUSED_STREAM`, or a number above the last one of its
    /// GOAWAY frame; RFC 9113 §8.7). The request may be sent again on another connection if the
    /// sent part of its body was kept.
    pub fn stream_refused(&mut self, stream: &mut Stream) {
        let is_new = matches!(stream.phase, Phase::ResponseHead);
        let is_here = stream.replay.resendable || stream.replay.keeps;
        match is_new && is_here && !stream.route.fresh_only {
            true => {
                self.drop_server(stream);
                self.take_upload_back(stream);
                stream.route.fresh_only = true;
                stream.phase = Phase::Connect;
                self.run(stream);
            }
            false if is_new => self.no_response(stream, false),
            false => self.fail(stream, Cause::ServerGone),
        }
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
