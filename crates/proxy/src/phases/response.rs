//! The response on its way to the client: reads its head, runs its rules, and sends it.

use config::model::{ConnectionMode, Direction};
use http::h1::{self, Framing, Strictness};
use http::{Method, Name, Version};
use net::Driver;
use sample::{BodyFacts, LogOrigin};
use telemetry::Event;

use super::request::framed;
use super::retry::Failure;
use super::{Cause, Cx};
use crate::backend::Observed;
use crate::ids::ProxyId;
use crate::link::{Answered, Rules as ReadRules, is_interim};
use crate::rules::status::is_bodiless;
use crate::runtime_config::{RuntimeConfig, Skips};
use crate::stream::{Early, HeadRead, Phase, Rules, Step, Stream, Until};

/// How many interim responses of one request are dropped because its client does not read. A server
/// that sends more is not waiting for anything.
const INTERIM_DROPPED_MAX: u16 = 64;

/// The rules for reading responses of a backend's servers.
#[inline]
pub(crate) fn response_read_rules(runtime_config: &RuntimeConfig, backend: ProxyId) -> ReadRules {
    let options = &runtime_config.proxy(backend).options;
    ReadRules {
        limits: runtime_config.limits(),
        strictness: if options.accept_unsafe_violations_in_http_response {
            Strictness::Relaxed
        } else {
            Strictness::Strict
        },
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Records the latency of the stream's server, which has responded or failed now.
    #[cold]
    pub(super) fn observe_latency(&mut self, stream: &Stream, at_ns: u64) {
        if let Some(server) = stream.route.target {
            let latency_ns = at_ns.saturating_sub(stream.route.asked_ns);
            let observed = Observed { latency_ns, at_ns };
            self.core.backends.observe(server, observed);
        }
    }

    /// The head of a response is complete and in the stream. `behind`: the number of bytes at hand
    /// after the head.
    pub fn response_read(&mut self, stream: &mut Stream, parsed: h1::Parsed, behind: usize) {
        let status = stream.response.status();
        stream.read = HeadRead {
            bytes: parsed.consumed,
            body: framed(parsed.framing, behind),
        };
        let is_too_early = status == 425 && stream.route.early == Early::Accepted;
        // Whoever has sent the request early hears of it (RFC 8470 §5.2).
        if is_too_early
            && stream.replay.resendable
            && stream.request.get(http::Name::EarlyData).is_none()
        {
            return self.send_after_handshake(stream);
        }
        // The server has received the request.
        stream.replay.resendable = false;
        stream.replay.keeps &= stream.replay.retriable;
        if is_interim(status) {
            // The interim response tells the client that a server has the request.
            (stream.replay.retriable, stream.replay.keeps) = (false, false);
            return self.forward_interim(stream);
        }
        if stream.replay.retriable && self.retry(stream, Failure::Status(status)) {
            return;
        }
        let now = self.now();
        stream.txn.timing.response_start_ms = Some(now.ms());
        let balance = &self.runtime_config.proxy(stream.backend).balance;
        if balance.facts().uses_latency {
            self.observe_latency(stream, now.mono_ns);
        }
        stream.txn.status = status;
        stream.txn.server_status = status;
        self.accounts().tell_status(stream, status);
        self.observe_response(stream);
        stream.txn.response_body = BodyFacts {
            framing: parsed.framing,
            ..BodyFacts::default()
        };
        let tunnel =
            status == 101 || (stream.txn.method == Method::Connect && (200..300).contains(&status));
        // An upgrade begins after the end of the request (RFC 9110 §7.8).
        let is_early = status == 101 && !stream.up.done;
        if tunnel && (!stream.wants_tunnel || is_early || !self.is_accepted(stream)) {
            self.end_server_after(stream);
            return self.fail(stream, Cause::BadResponse);
        }
        stream.wants_tunnel = tunnel;
        let is_bodiless = matches!(parsed.framing, Framing::None | Framing::Length(0));
        if is_bodiless && (tunnel || !self.has_end_to_come(stream)) {
            stream.down.came = true;
            stream.txn.response_body.is_whole = true;
        }
        // The framing is faulty (RFC 9112 §6.1): the client's connection is closed as well, as in
        // HAProxy.
        stream.close_client |=
            parsed.framing == Framing::Chunked && stream.response.version() == Version::Http10;
        stream.capture_response_fields(self.runtime_config.proxy(stream.frontend));
        stream.phase = if stream.skips.has(Skips::RESPONSE) {
            Phase::SendResponse
        } else {
            Phase::BackendResponse(Rules::default())
        };
        self.run(stream);
    }

    /// The server does not answer early data (425, RFC 8470 §5.2), and the client did not choose to
    /// send any: the request is sent again.
    #[cold]
    fn send_after_handshake(&mut self, stream: &mut Stream) {
        stream.route.early = Early::Barred;
        stream.response.clear();
        self.drop_server(stream);
        stream.phase = Phase::Connect(Until::default());
        self.run(stream);
    }

    /// Whether the server's end of the stream is still to come.
    fn has_end_to_come(&mut self, stream: &Stream) -> bool {
        let server = stream.server.link();
        server.is_some_and(|server| self.core.links.has_end_to_come(server))
    }

    /// Whether an HTTP/1 server that accepts WebSocket has seen the key that was made for it (RFC
    /// 6455 §4.1).
    fn is_accepted(&mut self, stream: &Stream) -> bool {
        let client = stream.client;
        let proof = client.and_then(|client| self.core.links.upgrade_proof(client));
        proof.is_none_or(|proof| {
            stream.response.get(Name::SecWebsocketAccept) == Some(proof.as_bytes())
        })
    }

    /// Forwards 100, 102 and 103 to clients that know them; the final response follows.
    fn forward_interim(&mut self, stream: &mut Stream) {
        let status = stream.response.status();
        self.accounts().tell_response(stream, status);
        if let Some(client) = stream.client {
            let frontend = self.runtime_config.proxy(stream.frontend);
            let spelling = self
                .runtime_config
                .spelling(frontend.options.h1_case_adjust_bogus_client);
            let links = &mut self.core.links;
            // The hold below stops an HTTP/1 server. The streams of an HTTP/2 server share its
            // connection, which is read on.
            if links.owes_much(client) {
                stream.interim_dropped += 1;
                if stream.interim_dropped > INTERIM_DROPPED_MAX {
                    return self.fail(stream, Cause::BadResponse);
                }
            } else {
                let wire = links.send_interim(self.io, client, &stream.response, spelling);
                stream.txn.bytes_out += wire as u64;
            }
            if links.is_backlogged(client)
                && let Some(server) = stream.server.link()
            {
                // However many interim responses there are, they wait until the client takes them.
                links.await_turn(client);
                links.hold(self.io, server, crate::link::Hold::Peer);
                stream.receiver_took(Direction::Down, true, self.now_ms());
            }
        }
        stream.response.clear();
    }

    /// The server's bytes are not a valid response.
    pub fn response_refused(&mut self, stream: &mut Stream) {
        self.end_server_after(stream);
        if !self.retry(stream, Failure::Junk) {
            self.fail(stream, Cause::BadResponse);
        }
    }

    /// Sends the response's head to the client.
    pub(super) fn send_response(&mut self, stream: &mut Stream) -> Step {
        if !self.after_response_rules(stream) {
            self.fail(stream, Cause::RulesFailed);
            return Step::Wait;
        }
        self.trace(stream, Event::HttpHeadersResponse);
        let framing = stream.frame_response();
        let framing = match stream.coding {
            None => framing,
            Some(_) => self.begin_compression(stream, framing),
        };
        let options = &self.runtime_config.proxy(stream.frontend).options;
        stream.down.drops_trailers = options.http_drop_response_trailers;
        self.send_response_head(stream, framing);
        self.log_at(stream, LogOrigin::Response);
        if stream.wants_tunnel {
            return stream.go(Phase::OpenTunnel);
        }
        stream.phase = Phase::Transfer;
        self.open_download(stream);
        Step::Go
    }

    /// Serialises the head of the stream's response and sends it.
    pub(super) fn send_response_head(&mut self, stream: &mut Stream, framing: Framing) {
        let frontend = self.runtime_config.proxy(stream.frontend);
        let how = Answered {
            framing,
            close: stream.close_client
                || self.is_stopping()
                || frontend.connection_mode == ConnectionMode::Close,
            tunnel: stream.wants_tunnel,
            reads_on: !stream.down.came && stream.server.link().is_some(),
        };
        let Some(client) = stream.client else { return };
        stream.answered = true;
        let spelling = self
            .runtime_config
            .spelling(frontend.options.h1_case_adjust_bogus_client);
        let links = &mut self.core.links;
        let wire = links.send_response(self.io, client, &mut stream.response, how, spelling);
        stream.txn.bytes_out += wire as u64;
    }
}

impl Stream {
    /// The framing of the response's body towards the client. A rule may have set a status that
    /// forbids or requires a body (RFC 9112 §6.3), or a request method that differs from the
    /// client's. No recipient may mistake the following bytes for another message.
    fn frame_response(&mut self) -> Framing {
        let framing = self.txn.response_body.framing;
        let status = self.response.status();
        if self.wants_tunnel {
            return framing;
        }
        // The client does not treat a status below 200 as the final response.
        self.close_client |= status < 200;
        let asked = self.txn.method;
        let was_bodiless =
            is_bodiless(self.txn.server_status) || self.sent_method() == Method::Head;
        if asked == Method::Head {
            return Framing::None;
        }
        if is_bodiless(status) {
            if !is_bodiless(self.txn.server_status) {
                // A body that is not sent is not announced, except for the length that a 304 may
                // have.
                let told = match (status, framing) {
                    (304, Framing::Length(length)) => Framing::Length(length),
                    _ => Framing::None,
                };
                self.response.set_framing(told);
            }
            return Framing::None;
        }
        if was_bodiless {
            self.response.set_framing(Framing::Length(0));
            return Framing::Length(0);
        }
        framing
    }
}
