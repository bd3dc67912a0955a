//! The version of HTTP that a connection speaks: by what TLS has agreed on, by the configuration,
//! or by a client's first bytes.

use config::model::Proto;
use http::Method;
use http::h2::PREFACE;
use net::Driver;

use super::Turn;
use super::incoming::Feed;
use crate::ids::{ConnId, QuicUser, StreamId};
use crate::link::{HttpMajor, Role};
use crate::phases::ConnWait;
use crate::shared::FrontCount;

impl<D: Driver> Turn<'_, D> {
    /// Whether an established connection uses HTTP/2: negotiated, or required by its line.
    pub(super) fn speaks_h2(&self, link: ConnId) -> bool {
        let Some(entry) = self.cx.core.links.get(link) else {
            return false;
        };
        let (proto, is_http) = match &entry.role {
            Role::Client(client) => (
                self.cx.runtime_config.bind(client.bind).proto,
                client.is_http,
            ),
            Role::Server(server) => {
                let line = self.cx.servers.at(server.server);
                (server.proto.or(line.proto), entry.is_http())
            }
            Role::Stream(_) => return false,
        };
        match proto {
            _ if !is_http => false,
            Some(Proto::H2) => true,
            Some(Proto::H1 | Proto::Tcp) => false,
            None => entry
                .secure
                .as_ref()
                .is_some_and(|secure| secure.session.protocol() == Some(b"h2")),
        }
    }

    /// Switches a client's connection to HTTP/2.
    pub(super) fn client_becomes_h2(&mut self, link: ConnId) {
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        let idle_ping = self.cx.runtime_config.bind(bind).idle_ping;
        self.cx.accounts().tell_bind(bind, FrontCount::SessionsH2);
        let ambient = &self.cx.core.ambient;
        let row = ambient.shared.front_row(ambient.worker, bind.frontend);
        row.begin_h2();
        let links = &mut self.cx.core.links;
        links.client_speaks_h2(self.cx.io, link, idle_ping);
        if self.cx.is_stopping() {
            // Its handshake outlasted the order to drain, which reached only the connections that
            // were there by then.
            self.cx.take_no_more_exchanges(link);
        }
        // The connection may wait as long for its first request as one of HTTP/1.
        self.cx.wait_idle_on(link, ConnWait::Request(bind.frontend));
    }

    /// Begins HTTP/3 on a client's connection.
    pub(super) fn client_becomes_h3(&mut self, link: ConnId) {
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        let ambient = &self.cx.core.ambient;
        let user = QuicUser::Frontend(bind.frontend);
        if let Some(row) = ambient.shared.quic_row(ambient.worker, user) {
            row.begin();
        }
        let links = &mut self.cx.core.links;
        links.client_speaks_h3(self.cx.io, link);
        if self.cx.is_stopping() {
            // See `client_becomes_h2`.
            self.cx.take_no_more_exchanges(link);
        }
        self.cx.wait_idle_on(link, ConnWait::Request(bind.frontend));
    }

    /// Switches a client's connection, which is before a message, to HTTP/2 if its bytes begin with
    /// the preface of it (RFC 9113 §3.3). None if the bytes are HTTP/1.
    pub(super) fn detect_version(&mut self, link: ConnId, bytes: &[u8]) -> Option<Feed> {
        let links = &self.cx.core.links;
        // A stream that waits for its head was a TCP stream.
        let was_tcp = links.stream(link);
        let client = links.client(link)?;
        let proto = client.proto;
        let options = &self.cx.runtime_config.proxy(client.frontend()).options;
        let is_first = client.streams == u32::from(was_tcp.is_some());
        let is_h1 = matches!(proto, Some(Proto::H1 | Proto::Tcp));
        if is_first && !is_h1 && !options.disable_h2_upgrade {
            if bytes.starts_with(PREFACE) {
                if let Some(stream) = was_tcp {
                    self.with_stream(stream, |cx, stream| cx.forget(stream));
                }
                self.client_becomes_h2(link);
                return Some(Feed::Used(0));
            }
            if bytes.len() < PREFACE.len() && PREFACE.starts_with(bytes) {
                if was_tcp.is_none() {
                    self.request_began(link);
                }
                return Some(Feed::More(0));
            }
        }
        let requires_h2 = proto == Some(Proto::H2);
        requires_h2.then(|| {
            match was_tcp {
                Some(stream) => self.with_stream(stream, |cx, stream| cx.abandon(stream)),
                None => self.cx.close_client(link),
            }
            Feed::Gone
        })
    }

    /// A server's connection is established and speaks HTTP/2 or HTTP/3: the stream that waits for it
    /// has its first exchange.
    pub(super) fn server_multiplexes(&mut self, link: ConnId) {
        self.begin_multiplexing(link);
        self.multiplexed_server_stands(link);
    }

    /// Makes the first exchange of a connection of HTTP/2 or HTTP/3, for the stream that waits for the
    /// connection. Returns the stream.
    pub(super) fn begin_multiplexing(&mut self, link: ConnId) -> Option<StreamId> {
        let core = &mut *self.cx.core;
        let stream = core.links.stream(link)?;
        let server = core.links.server(link)?;
        let backend = server.server.backend;
        let idle_ping = self.cx.servers.at(server.server).idle_ping;
        let begun = core
            .links
            .server_multiplexes(link, idle_ping, &mut core.timers);
        let (exchange, greeting) = begun?;
        let (shared, worker) = (&core.ambient.shared, core.ambient.worker);
        let major = core.links.speaks(link);
        if major == HttpMajor::H2 {
            shared.back_row(worker, backend).begin_h2();
        } else if let Some(row) = shared.quic_row(worker, QuicUser::Backend(backend)) {
            row.begin();
        }
        self.with_stream(stream, |_, stream| {
            stream.server.set_link(exchange);
            stream.account.server = major;
        });
        self.cx.core.links.send_whole(self.cx.io, link, &greeting);
        Some(stream)
    }

    /// The first exchange of a connection may begin, and others after it.
    pub(super) fn multiplexed_server_stands(&mut self, link: ConnId) {
        let core = &mut *self.cx.core;
        let exchange = core.links.exchanges(link).next();
        let stream = exchange.and_then(|exchange| core.links.stream(exchange));
        let (Some(exchange), Some(stream)) = (exchange, stream) else {
            return self.cx.close_server(link);
        };
        let Some(server) = core.links.server_mut(link) else {
            return;
        };
        server.connecting = false;
        if !server.private && !server.is_ending {
            core.backends.share(&mut core.links, link);
        }
        self.with_stream(stream, |cx, stream| {
            let is_upgrade = stream.wants_tunnel && stream.request.method() != Method::Connect;
            if !cx.core.links.awaits_server(exchange, is_upgrade) {
                cx.server_connected(stream);
            }
        });
    }
}
