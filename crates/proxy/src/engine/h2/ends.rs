//! Write progress on HTTP/2 connections, and their ends.

use net::{Close, Driver};

use crate::engine::Turn;
use crate::ids::LinkId;
use crate::link::mux::Mux;
use crate::link::mux::h1::Linger;
use crate::runtime_config::deadline;

/// How many waiting streams of a connection are woken in a round.
const TURNS_A_ROUND_MAX: usize = 8;

impl<D: Driver> Turn<'_, D> {
    // ---- room

    /// A stream may send again, unless it waits for its turn.
    pub(super) fn stream_writable(&mut self, child: LinkId) {
        let Some(entry) = self.cx.core.links.get_mut(child) else {
            return;
        };
        if entry.awaits_turn() || !std::mem::take(&mut entry.blocked) {
            return;
        }
        if let Some(stream) = entry.mux.stream() {
            self.with_stream(stream, |cx, stream| cx.moved_on(stream, child, false));
        }
    }

    /// The peer's settings have changed the windows of all streams.
    pub(super) fn windows_changed(&mut self, link: LinkId) {
        for child in self.cx.core.links.children(link) {
            self.stream_writable(child);
        }
        self.cx.core.links.list_turns(link);
    }

    /// The driver has sent bytes of a connection. This is progress for all streams that wait for
    /// it; if none of its bytes wait any more, they take turns.
    pub(in crate::engine) fn connection_writable(&mut self, link: LinkId, blocked: bool) {
        for child in self.cx.core.links.waiting_streams(link) {
            if let Some(stream) = self.cx.core.links.stream(child) {
                self.with_stream(stream, |cx, stream| cx.moved_on(stream, child, true));
            }
        }
        if !blocked {
            self.cx.core.links.list_turns(link);
            self.cx.core.work.links.push_back(link);
        }
    }

    /// Wakes the next waiting streams of a connection; the others follow in the next round.
    pub(in crate::engine) fn take_turns(&mut self, link: LinkId) {
        for child in self.cx.core.links.next_turns(link, TURNS_A_ROUND_MAX) {
            self.stream_writable(child);
        }
        self.cx.core.links.list_turns(link);
    }

    // ---- ends

    /// Ends all streams of a closed client connection.
    pub(in crate::engine) fn lose_streams(&mut self, link: LinkId) {
        for child in self.cx.core.links.children(link) {
            match self.cx.core.links.stream(child) {
                Some(stream) => self.with_stream(stream, |cx, stream| cx.client_lost(stream)),
                None => self.cx.forget_stream_link(child),
            }
        }
    }

    /// The peer violated the protocol; the connection ends, and the codec has notified the peer.
    pub(super) fn connection_failed(&mut self, link: LinkId) {
        if self.cx.core.links.is_client(link) {
            self.lose_streams(link);
            self.cx.finish_client(link, Linger::Briefly);
        } else {
            self.server_connection_ended(link)
        }
    }

    /// The peer opens or accepts no new streams.
    pub(super) fn connection_is_ending(&mut self, link: LinkId) {
        if let Some(connection) = self.cx.core.links.connection_mut(link) {
            connection.is_ending = true;
            let is_free = connection.children.is_empty();
            let core = &mut *self.cx.core;
            core.backends.unshare(&mut core.links, link);
            if is_free {
                self.cx.connection_is_free(link);
            }
        }
    }

    /// The peer has ended its side of a connection.
    pub(in crate::engine) fn connection_eof(&mut self, link: LinkId) {
        if !self.cx.core.links.is_client(link) {
            return self.server_connection_ended(link);
        }
        self.end_requests(link);
        let entry = self.cx.core.links.get(link);
        if entry.is_some_and(|entry| entry.mux.is_free()) {
            self.cx.close_client(link);
        }
    }

    /// A server's connection has ended. Streams whose response was completely received continue
    /// with its waiting bytes; the connection is forgotten with the last of them.
    pub(in crate::engine) fn server_connection_ended(&mut self, link: LinkId) {
        if let Some(entry) = self.cx.core.links.get_mut(link) {
            entry.eof = true;
            entry.progressed(false);
        }
        let Some(connection) = self.cx.core.links.connection_mut(link) else {
            return;
        };
        connection.is_ending = true;
        let core = &mut *self.cx.core;
        core.backends.unshare(&mut core.links, link);
        let mut waits = false;
        for child in self.cx.core.links.children(link) {
            let Some(entry) = self.cx.core.links.get(child) else {
                continue;
            };
            let began = !entry.input.is_empty();
            let (Mux::Stream(end), Some(stream)) = (&entry.mux, entry.mux.stream()) else {
                continue;
            };
            if end.has_ended {
                waits = true
            } else {
                self.with_stream(stream, |cx, stream| {
                    cx.server_lost(stream, Close::Reset, began);
                })
            }
        }
        if !waits {
            self.cx.close_server(link);
        }
    }

    /// A client has ended its side: its incomplete requests fail.
    fn end_requests(&mut self, link: LinkId) {
        let Some(connection) = self.cx.core.links.connection_mut(link) else {
            return;
        };
        connection.is_ending = true;
        for child in self.cx.core.links.children(link) {
            let end = self.cx.core.links.stream_end_mut(child);
            let Some((stream, has_ended)) = end.map(|end| (end.stream, end.has_ended)) else {
                continue;
            };
            let Some(stream) = stream else {
                self.cx.forget_stream_link(child);
                continue;
            };
            // No credit follows, so that a response which needs more can never be complete.
            let is_stuck = self.cx.core.links.awaits_credit(child);
            self.with_stream(stream, |cx, stream| {
                if has_ended && !is_stuck {
                    cx.client_ended(stream, true)
                } else {
                    cx.client_lost(stream)
                }
            });
        }
    }

    /// The deadline of a connection without streams has passed.
    pub(in crate::engine) fn connection_timeout(&mut self, link: LinkId) {
        let now_ms = self.cx.now().ms();
        let Some(connection) = self.cx.core.links.connection_mut(link) else {
            return;
        };
        if !connection.children.is_empty() {
            return;
        }
        if now_ms >= connection.idle.ends_ms {
            return self.cx.end_connection(link);
        }
        connection.release_spare(now_ms);
        let mut pings = false;
        if let Some(due) = connection
            .pings
            .as_mut()
            .filter(|due| now_ms >= due.next_ms)
        {
            if due.is_unanswered {
                return self.is_silent(link);
            }
            (due.is_unanswered, pings) = (true, true);
            due.next_ms = now_ms.saturating_add(due.interval_ms);
        }
        let at_ms = connection.idle_deadline_ms();
        self.cx.set_link_deadline(link, at_ms);
        if pings {
            let links = &mut self.cx.core.links;
            links.with_codec(self.cx.io, link, |codec, frames| {
                codec.ping(now_ms, frames);
            });
        }
    }

    /// A peer has not answered a ping: closes without GOAWAY, which the peer would not read.
    fn is_silent(&mut self, link: LinkId) {
        if self.cx.core.links.is_client(link) {
            self.cx.close_client(link)
        } else {
            self.cx.close_server(link)
        }
    }

    /// A peer has answered a ping: restarts the client's inactivity timeout where no timeout for
    /// requests is set.
    pub(super) fn ponged(&mut self, link: LinkId) {
        let now = self.cx.now();
        let links = &mut self.cx.core.links;
        let timeouts = links.client(link).map(|client| {
            let timeouts = &self.cx.runtime_config.proxy(client.frontend()).timeout;
            (
                timeouts.client,
                timeouts.http_request.or(timeouts.http_keep_alive),
            )
        });
        let Some(connection) = links.connection_mut(link) else {
            return;
        };
        let Some(pings) = &mut connection.pings else {
            return;
        };
        pings.is_unanswered = false;
        if let Some((Some(silence), None)) = timeouts {
            connection.idle.ends_ms = deadline(now, silence.as_millis() as u64);
        }
    }

    /// Sets how long a client's connection may wait for its first stream.
    pub(in crate::engine) fn expect_first_stream(&mut self, link: LinkId) {
        let Some(client) = self.cx.core.links.client(link) else {
            return;
        };
        let timeout_ms = self
            .cx
            .runtime_config
            .timeouts(client.frontend())
            .http_request;
        let at_ms = deadline(self.cx.now(), timeout_ms);
        self.cx.set_idle_deadline(link, at_ms);
    }
}
