//! How streams end: in order, by an abort, or because a side has closed.

use net::{Close, Driver};
use telemetry::Event;

use super::{Cause, Cx};
use crate::ids::ExchangeId;
use crate::link::Follows;
use crate::link::{After, Linger};
use crate::logging::Scene;
use crate::shared::{Count, NameTicket};
use crate::stream::{Due, Lookup, LookupState, Phase, Stream, Until};

impl<D: Driver> Cx<'_, D> {
    /// Ends a stream: releases its server, logs and uncounts it, and keeps or closes its client's
    /// connection.
    pub fn finish(&mut self, stream: &mut Stream) {
        if let Some(client) = self.let_go(stream) {
            let after = match self.core.links.finish_exchange(client) {
                Some(Follows::Connection(after)) => after,
                Some(Follows::Others) => return self.exchange_answered(client),
                None => return,
            };
            let after = match after {
                After::Next if stream.close_client => After::End(Linger::Briefly),
                After::Drain if stream.close_client => After::End(Linger::WhileItSends),
                after => after,
            };
            self.after_stream(client.own_connection(), after);
        }
    }

    /// Aborts a stream during its response: the close tells the client that the response is
    /// incomplete.
    pub fn cut(&mut self, stream: &mut Stream) {
        self.end_server_after(stream);
        if let Some(client) = self.let_go(stream) {
            self.core.links.set_stream(client, None);
            self.leave_exchange(client, |cx, conn| cx.finish_client(conn, Linger::No));
        }
    }

    /// Ends a stream that a rule rejects: its client's connection is closed, with all that share
    /// it.
    pub(super) fn reject(&mut self, stream: &mut Stream) {
        let links = &self.core.links;
        let shared = stream.client.and_then(|client| links.connection_of(client));
        self.cut(stream);
        if let Some(conn) = shared {
            self.core.links.expel(self.io, conn);
            self.core.work.links.push_back(conn.into());
        }
    }

    /// Ends a stream whose client is gone, or was closed without a response.
    pub(super) fn vanish(&mut self, stream: &mut Stream) {
        self.end_server_after(stream);
        if let Some(client) = self.let_go(stream) {
            self.leave_exchange(client, Self::forget_client);
        }
    }

    /// Ends a TCP stream whose connection turns out to be HTTP/2: it is not logged, and the
    /// client's connection stays open.
    pub fn forget(&mut self, stream: &mut Stream) {
        stream.log.written = true;
        stream.ignored = true;
        if let Some(client) = self.let_go(stream) {
            self.core.links.set_stream(client, None);
        }
    }

    /// Ends a stream and closes its client's connection, and discards unsent bytes.
    pub fn abandon(&mut self, stream: &mut Stream) {
        self.end_server_after(stream);
        if let Some(client) = self.let_go(stream) {
            self.leave_exchange(client, Self::close_client);
        }
    }

    /// Releases all that a stream holds and logs it. Returns its client's connection.
    fn let_go(&mut self, stream: &mut Stream) -> Option<ExchangeId> {
        if matches!(stream.phase, Phase::Done) {
            return None;
        }
        self.give_up_queue(stream);
        if !stream.lookups.is_empty() {
            self.give_up_lookups(stream);
        }
        let now_ms = self.now_ms();
        stream.txn.timing.data_end_ms.get_or_insert(now_ms);
        self.release_server(stream);
        if !stream.ignored {
            self.accounts().account(stream, now_ms);
        }
        let had_backend = std::mem::take(&mut stream.backend_counted);
        if had_backend {
            self.core.uncount(Count::Backend(stream.backend));
        }
        // The log line's counters: `fc` still includes this client, `bc` and `sc` no longer include
        // this stream.
        let is_traced = self.runtime_config.tracing.any;
        if is_traced || !stream.log.written {
            self.with_rules(stream, |cx, stream| {
                if is_traced {
                    cx.tracing.end(&mut cx.scene, stream);
                }
                let Scene { eval, logging } = &mut cx.scene;
                if !stream.log.written {
                    logging.end(eval, stream);
                }
            });
        }
        if self.runtime_config.measures_latency && !stream.ignored {
            let kept = self.core.tracing.kept.take();
            self.accounts().measure(stream, kept, had_backend);
        }
        if self.runtime_config.config.global.var_limits.process > 0 {
            let shared = &self.core.ambient.shared;
            shared.var_bytes_change(stream.txn.var_bytes(), 0);
        }
        if self.runtime_config.has_tables {
            self.accounts().end_tracking(stream);
        }
        if stream.up.filters.is_some() || stream.down.filters.is_some() {
            self.end_filters(stream);
        }
        stream.phase = Phase::Done;
        stream.client.take()
    }

    /// The request is processed: its variables end, and those of the response begin.
    #[inline]
    pub(super) fn respond(&mut self, stream: &mut Stream) {
        let txn = &mut stream.txn;
        if std::mem::replace(&mut txn.responding, true)
            || (txn.req_vars.is_empty() && !txn.assigned.any())
        {
            return;
        }
        self.with_eval(stream, |eval, stream| eval.end_request_vars(stream));
    }

    /// The answer that the stream waits for is no longer needed.
    #[cold]
    fn give_up_lookups(&self, stream: &Stream) {
        let is_asked = |lookup: &Lookup| matches!(lookup.state, LookupState::Asked);
        if stream.lookups.iter().any(is_asked)
            && let Some(resolver) = self.core.ambient.shared.name_resolver()
        {
            resolver.cancel(NameTicket(stream.reference(self.core.ambient.worker)));
        }
    }

    /// The client has sent its end; all bytes before it were used or wait in the stream.
    /// `has_input`: some of them still wait with the connection.
    pub fn client_ended(&mut self, stream: &mut Stream, has_input: bool) {
        let aborts = self.runtime_config.proxy(stream.backend).aborts_on_close();
        match stream.phase {
            Phase::Tunnel(_) if has_input => {}
            Phase::Tunnel(_) => self.tunnel_client_ended(stream),
            Phase::RequestHead(_) => self.fail(stream, Cause::ClientAborted),
            // With `abortonclose` a client that closes during a pause ends the stream.
            phase if phase.is_request_paused() => {
                let ends = !has_input && aborts;
                ends.then(|| self.fail(stream, Cause::ClientAborted));
            }
            phase if phase.awaits_handshake() => self.fail(stream, Cause::ClientAborted),
            // The rules still see the bytes that came, as in HAProxy; `prepare_request` ends the
            // stream.
            phase if phase.awaits_upload() => {
                stream.up.cut = !stream.up.came;
                self.run(stream);
            }
            // The server is not connected yet, and with `abortonclose` the backend does not serve a
            // client that has left.
            phase if !stream.txn.is_http => {
                if aborts && !has_input && stream.up.waiting.is_empty() {
                    stream.ended_by(b'C', phase.letter(false));
                    return self.cut(stream);
                }
                stream.up.came = !has_input;
                if phase.inspects_request() {
                    self.run(stream);
                }
            }
            _ if self.is_given_up(stream) => self.give_up(stream),
            Phase::Tarpit(_) => self.fail(stream, Cause::ClientAborted),
            _ if !stream.up.came && !has_input => self.fail(stream, Cause::ClientAborted),
            _ => {}
        }
    }

    /// Whether the end of its client's data ends a stream, although requests or a body may wait
    /// before that end (`abortonclose`): no response has come.
    fn is_given_up(&self, stream: &Stream) -> bool {
        let awaits_response = matches!(
            stream.phase,
            Phase::Queue(_)
                | Phase::TurnAround(_)
                | Phase::Connect(_)
                | Phase::TakeOver(_)
                | Phase::ResponseHead
        );
        let backend = self.runtime_config.proxy(stream.backend);
        stream.txn.is_http && awaits_response && backend.aborts_on_close()
    }

    fn give_up(&mut self, stream: &mut Stream) {
        if matches!(stream.phase, Phase::ResponseHead) {
            return self.fail(stream, Cause::ClientAborted);
        }
        stream.ended_by(b'C', stream.letter());
        self.cut(stream);
    }

    /// A client has ended its side behind bytes that the stream does not use now.
    pub fn client_ended_behind_input(&mut self, stream: &mut Stream) {
        if self.is_given_up(stream) {
            self.give_up(stream);
        }
    }

    /// A deadline of the stream has passed.
    pub fn stream_timeout(&mut self, stream: &mut Stream) {
        let deadlines = stream.deadlines(self.runtime_config);
        match deadlines.due(self.now_ms()) {
            // The deadline has been moved meanwhile.
            None => {}
            Some(Due::Pace) => self.pace_over(stream),
            Some(Due::Wait) => self.wait_over(stream),
            Some(Due::Client) => self.client_timeout(stream),
            Some(Due::Server) => self.server_timeout(stream),
        }
    }

    /// The deadline of the phase has passed.
    fn wait_over(&mut self, stream: &mut Stream) {
        match stream.phase {
            Phase::RequestHead(_) => self.fail(stream, Cause::ClientTimeout),
            Phase::Queue(_) => {
                self.give_up_queue(stream);
                stream.phase = Phase::SelectServer;
                self.fail(stream, Cause::QueueTimeout);
            }
            Phase::TurnAround(_) | Phase::TakeOver(_) => {
                stream.phase = Phase::Connect(Until::default());
                self.run(stream);
            }
            Phase::Connect(_) => self.connect_timeout(stream),
            Phase::Tarpit(tarpit) => self.end_tarpit(stream, tarpit.rule),
            Phase::Tunnel(_) => self.inspect_waiting_response(stream),
            phase
                if phase.is_request_paused()
                    || phase.is_response_paused()
                    || phase.awaits_handshake() =>
            {
                self.run(stream);
            }
            phase if phase.inspects_request() => self.run(stream),
            phase if phase.awaits_upload() => self.fail(stream, Cause::ClientTimeout),
            // The response's body did not come in time.
            _ => self.fail(stream, Cause::ServerTimeout),
        }
    }

    fn client_timeout(&mut self, stream: &mut Stream) {
        let client = stream.client;
        let is_stuck = client.is_some_and(|client| self.core.links.is_blocked(client));
        match stream.phase {
            _ if is_stuck => self.client_stuck(stream),
            Phase::Tunnel(_) => self.tunnel_client_silent(stream),
            _ => self.fail(stream, Cause::ClientTimeout),
        }
    }

    /// The server's inactivity timeout has passed.
    fn server_timeout(&mut self, stream: &mut Stream) {
        let server = stream.server.link();
        let is_stuck = server.is_some_and(|server| self.core.links.is_blocked(server));
        match stream.phase {
            Phase::Tunnel(_) if !is_stuck => self.tunnel_server_silent(stream),
            Phase::ResponseHead => {
                if !self.retry(stream, super::retry::Failure::Timeout) {
                    self.fail(stream, Cause::ServerTimeout);
                }
            }
            _ => self.fail(stream, Cause::ServerTimeout),
        }
    }

    /// The server's connection is closed, or ended where that does not end a body.
    pub fn server_lost(&mut self, stream: &mut Stream, why: Close, began: bool) {
        stream.txn.server_error = sample::ConnError::Reset;
        match stream.phase {
            Phase::Connect(_) => self.connect_lost(stream, why),
            Phase::ResponseHead => self.no_response(stream, began),
            Phase::Transfer if stream.down.done => self.end_upload(stream),
            _ => self.fail(stream, Cause::ServerGone),
        }
    }

    /// The process ends while this stream is active: encodes its recorded data.
    pub fn kill(&mut self, stream: &mut Stream) {
        if let [who @ 0, ..] = &mut stream.txn.termination {
            *who = b'K';
        }
        self.with_rules(stream, |cx, stream| cx.tracing.end(&mut cx.scene, stream));
    }

    /// Reports `on-idle-timeout` for a stream.
    pub fn trace_idle(&mut self, stream: &mut Stream, filter: usize) {
        self.with_rules(stream, |cx, stream| {
            cx.tracing.idle(&mut cx.scene, stream, filter);
        });
    }

    /// No part of the request reached a server: reports the events for a response of our own to the
    /// scopes.
    pub(super) fn trace_reply(&mut self, stream: &mut Stream) {
        self.trace(stream, Event::HttpReply);
    }
}
