//! The ends of connections and their timeouts: the outcome of incomplete requests, and which
//! streams are notified.

use net::Driver;
use sample::ConnError;

use super::Turn;
use crate::ids::{ConnId, LinkId, StreamId};
use crate::link::{Named, Role, Stage};
use crate::phases::Cause;
use crate::stream::{Phase, Stream};

/// How many rounds a connection to a server may still take after its client has ended its side:
/// the current one, and the next, which polls.
const CONNECT_ROUNDS: u8 = 2;

impl<D: Driver> Turn<'_, D> {
    /// A client has ended its side, and its bytes were used as far as possible.
    pub(super) fn client_eof(&mut self, link: ConnId) {
        if self.cx.core.links.multiplexes(link) {
            return self.requests_ended(link);
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let (has_input, blocked) = (!entry.input.is_empty(), entry.blocked);
        let (stream, drains) = (entry.stream(), entry.discards_rest());
        let Some(client) = self.cx.core.links.client(link) else {
            return;
        };
        let (stage, is_silent) = (client.stage, client.streams == 0 && client.is_http);
        match (stage, stream) {
            (Stage::Closing, _) => {
                if !blocked {
                    self.cx.close_client(link);
                }
            }
            (_, Some(id)) if self.may_connect_yet(link, id) => self.later(link),
            (_, Some(id)) => {
                // The bytes of an incomplete message are not input.
                let has_input =
                    has_input && matches!(self.streams.get(id), Some(stream) if stream.up.came);
                self.with_stream(id, |cx, stream| cx.client_ended(stream, has_input));
            }
            (Stage::ProxyHeader, None) => {
                let (why, silent) = if has_input {
                    (ConnError::ProxyTruncated, false)
                } else {
                    (ConnError::ProxyEmpty, true)
                };
                self.fail_session(link, why, silent);
            }
            (Stage::Handshake, None) => self.fail_session(link, ConnError::TlsEmpty, true),
            (Stage::Ready, None) if has_input && !drains => {
                self.unfinished_request(link, Cause::ClientAborted);
            }
            (Stage::Ready, None) if is_silent => self.silent_client(link, b'C'),
            // Bytes that the client has not taken yet are sent first.
            (Stage::Ready, None) if blocked => {}
            (Stage::Ready | Stage::Session, None) => self.cx.close_client(link),
        }
    }

    /// A client has ended its side, and bytes before that end wait.
    pub(super) fn client_eof_behind_input(&mut self, link: ConnId) {
        let Some(id) = self.cx.core.links.stream(link) else {
            return;
        };
        if self.may_connect_yet(link, id) {
            return self.later(link);
        }
        self.with_stream(id, |cx, stream| cx.client_ended_behind_input(stream));
    }

    /// Whether a connection to a server may be established already, which the driver reports in the
    /// next round: then the client has left while the request was at the server, as in HAProxy,
    /// whichever of the two is reported first.
    fn may_connect_yet(&mut self, link: ConnId, id: StreamId) -> bool {
        let connects = |stream: &Stream| matches!(stream.phase, Phase::Connect(_));
        let is_connecting = self.streams.get(id).is_some_and(connects);
        let Some(client) = self.cx.core.links.client_mut(link) else {
            return false;
        };
        let rounds = &mut client.rounds_after_end;
        *rounds = rounds.saturating_add(u8::from(is_connecting));
        is_connecting && client.rounds_after_end <= CONNECT_ROUNDS
    }

    /// A client left or timed out before its first byte: logs it as HAProxy does.
    fn silent_client(&mut self, link: ConnId, who: u8) {
        let Some(client) = self.cx.core.links.client(link) else {
            return;
        };
        let options = &self.cx.runtime_config.proxy(client.frontend()).options;
        if options.http_ignore_probes {
            return self.cx.close_client(link);
        }
        let silent = options.dontlognull;
        let accepted = client.session.accepted;
        let id = self.begin_stream(link.only_exchange());
        self.with_stream(id, |cx, stream| {
            stream.log.written = silent;
            stream.txn.timing.request_start = Some(accepted);
            let cause = match who {
                b'C' => Cause::ClientAborted,
                _ => Cause::ClientTimeout,
            };
            cx.request_unread(stream, 0, cause);
        });
    }

    /// The rest of a request's head will not come.
    fn unfinished_request(&mut self, link: ConnId, cause: Cause) {
        let bytes = self
            .cx
            .core
            .links
            .get(link)
            .map_or(0, |link| link.input.len());
        let id = self.begin_stream(link.only_exchange());
        self.with_stream(id, |cx, stream| cx.request_unread(stream, bytes, cause));
    }

    /// A client's connection is closed.
    pub(super) fn client_closed(&mut self, link: ConnId) {
        if self.cx.core.links.multiplexes(link) {
            self.lose_exchanges(link);
            return self.cx.forget_client(link);
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let has_input = !entry.input.is_empty();
        let stream = entry.stream();
        let Some(client) = self.cx.core.links.client(link) else {
            return;
        };
        let is_silent = client.streams == 0 && client.is_http;
        match (client.stage, stream) {
            (Stage::ProxyHeader, _) => self.log_failed_session(link, ConnError::ProxyAbort, true),
            (Stage::Handshake, _) => self.log_failed_session(link, ConnError::TlsAbort, true),
            (Stage::Ready, Some(id)) => self.with_stream(id, |cx, stream| cx.client_lost(stream)),
            (Stage::Ready, None) if has_input => {
                self.unfinished_request(link, Cause::ClientAborted);
            }
            (Stage::Ready, None) if is_silent => self.silent_client(link, b'C'),
            (Stage::Ready | Stage::Session | Stage::Closing, _) => {}
        }
        self.cx.forget_client(link);
    }

    /// A server has ended its side, and its bytes were used as far as possible.
    pub(super) fn server_eof(&mut self, link: ConnId) {
        if self.cx.core.links.multiplexes(link) {
            return self.server_connection_ended(link);
        }
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let began = !entry.input.is_empty();
        let Some(id) = entry.stream() else {
            return self.cx.close_server(link);
        };
        let ends_body = self.cx.core.links.input_ended(link);
        self.with_stream(id, |cx, stream| match stream.phase {
            _ if ends_body => {
                cx.download_came(stream);
                cx.run(stream);
            }
            Phase::Tunnel(_) => cx.tunnel_server_ended(stream),
            // The response is completely received and still has to be sent.
            _ if stream.down.came => {}
            // A rule waits for the body: no more of it will come.
            Phase::BackendResponse(rules) if rules.awaits_body() => {
                stream.down.cut = true;
                cx.run(stream);
            }
            _ => cx.server_lost(stream, net::Close::Reset, began),
        });
    }

    // ---- time

    /// The deadline of a connection has passed; its state says what the deadline was for.
    pub(super) fn link_timeout(&mut self, link: LinkId) {
        match self.cx.core.links.name(link) {
            Some(Named::Conn(conn)) => self.conn_timeout(conn),
            // The rest of its request did not come in time. If a stream uses it, it has been used
            // meanwhile.
            Some(Named::Exchange(exchange)) if self.cx.core.links.stream(exchange).is_none() => {
                self.cx.end_exchange(exchange);
            }
            Some(Named::Exchange(_)) | None => {}
        }
    }

    fn conn_timeout(&mut self, link: ConnId) {
        let Some(entry) = self.cx.core.links.get(link) else {
            return;
        };
        let (has_input, blocked) = (!entry.input.is_empty(), entry.blocked);
        let (is_free, drains) = (entry.stream().is_none(), entry.discards_rest());
        let client = match &entry.role {
            Role::Client(client) => client,
            Role::Server(server) if server.pool_place.is_some() => {
                return self.cx.close_server(link);
            }
            // If its mux has no deadline, the connection has been used meanwhile.
            Role::Server(_) => {
                self.idle_timeout(link);
                return;
            }
            Role::Stream(_) => return,
        };
        let (stage, streams) = (client.stage, client.streams);
        if stage == Stage::Ready && self.idle_timeout(link) {
            return;
        }
        match stage {
            Stage::ProxyHeader => {
                let why = if has_input {
                    ConnError::ProxyTruncated
                } else {
                    ConnError::ProxyTimeout
                };
                self.fail_session(link, why, false);
            }
            Stage::Handshake => self.fail_session(link, ConnError::TlsTimeout, false),
            // Its stream has deadlines of its own.
            Stage::Ready if !is_free => {}
            Stage::Ready if has_input && !blocked && !drains => {
                self.unfinished_request(link, Cause::ClientTimeout);
            }
            Stage::Ready if streams == 0 => self.silent_client(link, b'c'),
            Stage::Ready | Stage::Session | Stage::Closing => self.cx.close_client(link),
        }
    }
}
