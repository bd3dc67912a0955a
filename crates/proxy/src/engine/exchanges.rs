//! Events of connections that serve many exchanges, and the ends of all exchanges of a connection.

use net::{Close, Driver};

use super::Turn;
use crate::ids::{ConnId, ExchangeId};
use crate::link::{IdleDue, Linger, Reset};
use crate::phases::ConnWait;
use crate::shared::FrontCount;
use crate::stream::Phase;

/// How many waiting exchanges of a connection are woken in a round.
const TURNS_A_ROUND_MAX: usize = 8;

impl<D: Driver> Turn<'_, D> {
    // ---- room

    /// An exchange may send again, unless it waits for its turn.
    pub(super) fn exchange_writable(&mut self, exchange: ExchangeId) {
        if let Some(stream) = self.cx.core.links.wake(exchange) {
            self.with_stream(stream, |cx, stream| cx.moved_on(stream, exchange, false));
        }
    }

    /// The peer's settings have come: exchanges that wait for them, or for the windows that they
    /// change, continue.
    pub(super) fn peer_settled(&mut self, link: ConnId) {
        for exchange in self.cx.core.links.exchanges(link) {
            if let Some(stream) = self.cx.core.links.settled(exchange) {
                self.with_stream(stream, |cx, stream| cx.server_connected(stream));
            }
        }
        for exchange in self.cx.core.links.exchanges(link) {
            self.exchange_writable(exchange);
        }
    }

    /// The driver has sent bytes of a connection. This is progress for all exchanges that wait for
    /// it. `blocked`: some bytes still wait.
    pub(super) fn exchanges_moved_on(&mut self, link: ConnId, blocked: bool) {
        for exchange in self.cx.core.links.waiting_exchanges(link) {
            if let Some(stream) = self.cx.core.links.stream(exchange) {
                // An exchange that waits for its turn still waits.
                let waits = blocked || self.cx.core.links.shares_connection(exchange);
                self.with_stream(stream, |cx, stream| cx.moved_on(stream, exchange, waits));
            }
        }
        if !blocked && self.cx.core.links.multiplexes(link) {
            self.cx.core.links.list_turns(link);
            self.cx.core.work.links.push_back(link.into());
        }
    }

    /// Wakes the next waiting exchanges of a connection; the others follow in the next round.
    pub(super) fn take_turns(&mut self, link: ConnId) {
        for exchange in self.cx.core.links.next_turns(link, TURNS_A_ROUND_MAX) {
            self.exchange_writable(exchange);
        }
        self.cx.core.links.list_turns(link);
    }

    // ---- events

    /// A peer has ended an exchange before its messages were complete.
    pub(super) fn exchange_reset(&mut self, exchange: ExchangeId, why: Reset) {
        let links = &self.cx.core.links;
        let Some(id) = links.stream(exchange) else {
            return;
        };
        let is_client = links.is_client(exchange);
        let began = links.has_input(exchange);
        self.with_stream(id, |cx, stream| match why {
            _ if is_client => cx.client_lost(stream),
            // The response is complete: the rest of the request is not sent.
            Reset::Answered if matches!(stream.phase, Phase::Transfer) && stream.down.done => {
                cx.end_upload(stream);
            }
            Reset::Answered => stream.up.is_open = false,
            Reset::Unprocessed => cx.exchange_refused(stream),
            Reset::Lost => {
                // The server has seen the request: it must not be sent again.
                stream.replay.resendable = false;
                cx.server_lost(stream, Close::Reset, began);
            }
        });
    }

    /// A peer has glitches: they are counted for the client, or told to the streams of the server's
    /// connection.
    #[cold]
    pub(super) fn peer_has_glitches(&mut self, link: ConnId, count: u32) {
        if self.cx.core.links.is_client(link) {
            return self.cx.tell_glitches(link, count);
        }
        let glitches = self.cx.core.links.glitches(link);
        for exchange in self.cx.core.links.exchanges(link) {
            if let Some(id) = self.cx.core.links.stream(exchange) {
                self.with_stream(id, |_, stream| stream.txn.server_glitches = glitches);
            }
        }
    }

    /// A client's request is invalid; the mux has answered or reset it.
    #[cold]
    pub(super) fn request_refused(&mut self, link: ConnId) {
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        self.cx.accounts().tell_shared_request(link, bind);
        self.cx
            .accounts()
            .tell_bind(bind, FrontCount::FailedRequests);
        self.cx.with_session(link, |cx| {
            let scene = &mut cx.scene;
            let frontend = bind.frontend;
            scene.logging.refused_request(&mut scene.eval, frontend);
        });
    }

    /// A client of many exchanges has sent something, a ping for example: restarts the inactivity
    /// timeout of a connection without exchanges, where no timeout for requests is set.
    pub(super) fn client_is_alive(&mut self, link: ConnId) {
        let links = &self.cx.core.links;
        let Some(client) = links.client(link).filter(|_| links.is_idle(link)) else {
            return;
        };
        let timeouts = &self.cx.runtime_config.proxy(client.frontend()).timeout;
        let of_next = timeouts.http_keep_alive.filter(|_| client.streams > 0);
        if of_next.or(timeouts.http_request).is_none() && !links.is_ending(link) {
            let ends_ms = self.cx.wait_ends_ms(ConnWait::Activity(client.frontend()));
            self.cx.core.links.set_idle_end(link, ends_ms);
        }
    }

    /// The peer will end the connection: it ends with its last exchange.
    pub(super) fn peer_is_ending(&mut self, link: ConnId) {
        let core = &mut *self.cx.core;
        core.backends.unshare(&mut core.links, link);
        if !core.links.get(link).is_some_and(|entry| entry.is_free()) {
            return;
        }
        if core.links.is_client(link) {
            // A client's GOAWAY is about streams of ours (RFC 9113 §6.8): requests may follow in
            // the same bytes.
            self.cx.end_idle_now(link);
        } else {
            self.cx.connection_is_free(link);
        }
    }

    // ---- ends

    /// A client is gone: ends all its exchanges.
    pub(super) fn lose_exchanges(&mut self, link: ConnId) {
        for exchange in self.cx.core.links.exchanges(link) {
            match self.cx.core.links.stream(exchange) {
                Some(stream) => self.with_stream(stream, |cx, stream| cx.client_lost(stream)),
                None => self.cx.forget_exchange(exchange),
            }
        }
    }

    /// The peer violated the protocol; the connection ends, and the mux has notified the peer.
    pub(super) fn connection_failed(&mut self, link: ConnId) {
        if self.cx.core.links.is_client(link) {
            self.lose_exchanges(link);
            self.cx.finish_client(link, Linger::Briefly);
        } else {
            self.server_connection_ended(link);
        }
    }

    /// A client of several exchanges has ended its side: its incomplete requests fail.
    pub(super) fn requests_ended(&mut self, link: ConnId) {
        self.cx.core.links.stop_exchanges(link);
        for exchange in self.cx.core.links.exchanges(link) {
            let links = &mut self.cx.core.links;
            let Some(stream) = links.stream(exchange) else {
                self.cx.forget_exchange(exchange);
                continue;
            };
            // No credit follows, so that a response which needs more can never be complete.
            let can_end = links.has_ended(exchange) && !links.awaits_credit(exchange);
            self.with_stream(stream, |cx, stream| {
                if can_end {
                    cx.client_ended(stream, true)
                } else {
                    cx.client_lost(stream)
                }
            });
        }
        let entry = self.cx.core.links.get(link);
        if entry.is_some_and(|entry| entry.is_free()) {
            self.cx.close_client(link);
        }
    }

    /// A server's connection of many exchanges has ended. Those whose response was completely
    /// received continue with its waiting bytes; the connection is forgotten with the last of them.
    pub(super) fn server_connection_ended(&mut self, link: ConnId) {
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            entry.eof = true;
            entry.progressed(false);
        }
        let core = &mut *self.cx.core;
        core.links.stop_exchanges(link);
        core.backends.unshare(&mut core.links, link);
        let mut waits = false;
        for exchange in self.cx.core.links.exchanges(link) {
            let links = &mut self.cx.core.links;
            let Some(stream) = links.stream(exchange) else {
                continue;
            };
            if links.has_ended(exchange) {
                waits = true;
                continue;
            }
            let began = links.has_input(exchange);
            self.with_stream(stream, |cx, stream| {
                cx.server_lost(stream, Close::Reset, began);
            });
        }
        if !waits {
            self.cx.close_server(link);
        }
    }

    /// The deadline of a connection has passed. Whether it was one of its mux.
    pub(super) fn idle_timeout(&mut self, link: ConnId) -> bool {
        let now_ms = self.cx.now_ms();
        match self.cx.core.links.idle_due(self.cx.io, link, now_ms) {
            IdleDue::Above => return false,
            IdleDue::InUse => {}
            IdleDue::Until(at_ms) => self.cx.set_link_deadline(link, at_ms),
            IdleDue::Ends => self.cx.end_connection(link),
            // It would not read a farewell either.
            IdleDue::Silent if self.cx.core.links.is_client(link) => self.cx.close_client(link),
            IdleDue::Silent => self.cx.close_server(link),
        }
        true
    }
}
