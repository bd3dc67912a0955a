//! Prepares the request for the server and sends its head.

use config::model::ConnectionMode;
use http::{Method, Version};
use net::Driver;
use telemetry::Event;

use super::names::tell_server_name;
use super::{Cause, Cx};
use crate::ids::ExchangeId;
use crate::link::Asking;
use crate::link::{Asked, HttpMajor};
use crate::runtime_config::Skips;
use crate::stream::{Early, Phase, Step, Stream, Until};

impl<D: Driver> Cx<'_, D> {
    /// Applies the changes that the proxy itself makes: forwarding headers and how the connections
    /// continue.
    pub(super) fn prepare_request(&mut self, stream: &mut Stream) -> Step {
        self.trace(stream, Event::HttpProcessRequest);
        stream.request_processed(self.now());
        if stream.up.cut {
            self.fail(stream, Cause::ClientAborted);
            return Step::Wait;
        }
        let frontend = self.runtime_config.proxy(stream.frontend);
        let backend = self.runtime_config.proxy(stream.backend);
        if !stream.skips.has(Skips::REQUEST_FIELDS) {
            self.add_request_fields(stream);
        }
        // manual §4.2: `httpclose` closes the connection on its own side; `http-server-close`, on
        // either side, closes the server's.
        stream.close_client |= frontend.connection_mode == ConnectionMode::Close;
        stream.route.keep = frontend.connection_mode != ConnectionMode::ServerClose
            && backend.connection_mode == ConnectionMode::KeepAlive;
        stream.request.set_version(if stream.is_old {
            Version::Http10
        } else {
            Version::Http11
        });
        stream.up.drops_trailers = backend.options.http_drop_request_trailers;
        stream.replay.retriable =
            backend.retry_on.keeps_requests() && !stream.replay.never && !stream.wants_tunnel;
        stream.replay.keeps = stream.replay.retriable;
        let events = [
            Event::TcpRdpCookieRequest,
            Event::ProcessStickingRulesRequest,
            Event::HttpHeadersRequest,
        ];
        self.trace_all(stream, events);
        stream.go(Phase::SelectServer)
    }

    /// Adds header fields to the request: its identifier and the client's addresses. Selects the
    /// compression of the request and of the response.
    #[inline(never)]
    fn add_request_fields(&mut self, stream: &mut Stream) {
        let frontend = self.runtime_config.proxy(stream.frontend);
        if let Some(header) = &frontend.unique_id_header {
            self.with_eval(stream, |eval, stream| {
                eval.unique_id(stream);
            });
            if let Some(id) = stream.txn.unique_id.get() {
                stream.request.append(header.as_bytes(), id);
            }
        }
        if self.runtime_config.compresses {
            self.choose_codings(stream);
        }
        self.add_forwarding_headers(stream);
    }

    /// Sends the request's head to the server.
    pub(super) fn send_request(&mut self, stream: &mut Stream) -> Step {
        let Some(server) = stream.server.link() else {
            return Step::Wait;
        };
        if stream.route.early == Early::Sent {
            stream.route.early = Early::Accepted;
            return self.request_left(stream, server, true);
        }
        if stream.route.early == Early::Accepted {
            // That was an earlier attempt.
            stream.route.early = Early::No;
        }
        match self.write_head(stream, server) {
            Asking::Sent { .. } => self.request_left(stream, server, false),
            Asking::Full => {
                // The connection stopped taking requests after it was chosen.
                self.drop_server(stream);
                stream.route.fresh_only = true;
                stream.go(Phase::Connect(Until::default()))
            }
            Asking::Unsupported => {
                self.fail(stream, Cause::BadResponse);
                Step::Wait
            }
        }
    }

    /// Sends a request without a body as early data, if the server permits a stream: the stream goes
    /// on waiting for the handshake.
    pub fn send_early(&mut self, stream: &mut Stream) {
        let Some(server) = stream.server.link() else {
            return;
        };
        if !self.core.links.has_room(server) {
            return;
        }
        if let Asking::Sent { .. } = self.write_head(stream, server) {
            stream.route.early = Early::Sent;
            let trailers = &stream.up.trailers;
            self.core.links.send_end(self.io, server, trailers);
        }
    }

    /// Writes the request's head to an exchange.
    #[inline]
    fn write_head(&mut self, stream: &mut Stream, server: ExchangeId) -> Asking {
        self.trace_server(stream);
        let backend = self.runtime_config.proxy(stream.backend);
        tell_server_name(backend, self.servers, stream);
        if let Some(compressor) = stream.up.compressor_mut() {
            // The request may have been sent before, to a connection that failed.
            compressor.restart();
        }
        let method = stream.sent_method();
        let how = Asked {
            framing: stream.txn.request_body.framing,
            keep: stream.route.keep,
            pretend: backend.options.http_pretend_keepalive,
            tunnel: stream.wants_tunnel,
        };
        let spelling = self
            .runtime_config
            .spelling(backend.options.h1_case_adjust_bogus_server);
        let links = &mut self.core.links;
        let request = &mut stream.request;
        let asking = links.send_request(self.io, server, request, method, how, spelling);
        if let Asking::Sent { wire } = asking {
            stream.txn.bytes_to_server += wire as u64;
            if stream.account.server != HttpMajor::H1
                && let Some(connection) = self.core.links.connection_of(server)
            {
                stream.txn.server_mux = self.core.links.mux_facts(server);
                self.tell_h2(connection);
            }
        }
        asking
    }

    /// The head of a request has been sent; its body follows. `has_ended`: the end of the request has
    /// been sent too.
    fn request_left(&mut self, stream: &mut Stream, server: ExchangeId, has_ended: bool) -> Step {
        // Only a request without a body can be sent again from here.
        stream.replay.resendable = stream.up.done && stream.replay.body.is_empty();
        // An HTTP/2 server may still refuse the request (GOAWAY, REFUSED_STREAM) without having
        // processed it.
        stream.replay.keeps |= !stream.wants_tunnel && self.core.links.shares_connection(server);
        stream.route.asked_ns = self.io.now().mono_ns;
        stream.phase = Phase::ResponseHead;
        // The server has its full timeout for the response, whatever it sent before.
        stream.activity.server.restart();
        if !stream.replay.body.is_empty() {
            self.send_again(stream);
        } else if stream.up.done {
            self.trace(stream, Event::HttpEndRequest);
            stream.up.is_open = true;
            // On such a stream, bytes after a request for a tunnel belong to the tunnel.
            let is_tunnel = stream.wants_tunnel && self.core.links.shares_connection(server);
            if !is_tunnel && !has_ended {
                self.core
                    .links
                    .send_end(self.io, server, &stream.up.trailers);
            }
        } else {
            self.open_upload(stream);
        }
        match stream.phase {
            // The stream may have ended meanwhile.
            Phase::ResponseHead => Step::Wait,
            _ => Step::Go,
        }
    }
}

impl Stream {
    /// The method that was sent to the server; a rule may have set it.
    pub fn sent_method(&self) -> Method {
        self.request.method()
    }
}
