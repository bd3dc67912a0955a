//! Ends: of a stream in order, of one that failed, and of the sides that went away.

use net::timers::NEVER_MS;
use net::{ConnId, Driver};

use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::shared::Count;

impl Core {
    /// Ends a stream: its server is let go, it is logged and counted out, its client goes on or is closed.
    pub fn finish<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if stream.phase == Phase::Done {
            return;
        }
        self.give_up_queue(cx, stream);
        stream
            .txn
            .timing
            .data_end_ms
            .get_or_insert(cx.driver.now().ms());
        self.release_server(cx, stream);
        self.leave_backend(stream);
        // The line's counters name who else is there: `fc` still has this client, `bc` and `sc` no longer this stream.
        self.trace_end(cx, stream);
        self.log_stream(cx, stream);
        self.forget_vars(cx, stream);
        stream.phase = Phase::Done;
        let Some(client) = stream.client.take() else {
            return;
        };
        if let Some(entry) = self.conns.client(client) {
            entry.stream = None;
        }
        if stream.keep_client {
            self.next_request(cx, client);
        } else {
            self.finish_client(cx, client, stream.lingers);
        }
    }

    /// A stream that waits in a queue will get no server: its time there ends now.
    pub fn give_up_queue<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        if stream.queued {
            stream.txn.timing.queued_ms.get_or_insert(cx.now().ms());
            self.leave_queue(stream);
        }
    }

    /// Counts a stream out of its backend.
    pub fn leave_backend(&mut self, stream: &mut Stream) {
        if std::mem::take(&mut stream.backend_counted) {
            self.uncount(Count::Backend(stream.backend));
        }
    }

    /// Ends a stream in the middle of its response: the client learns by the close that it is not whole.
    pub fn cut<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.keep_client = false;
        stream.keep_server = false;
        stream.lingers = false;
        self.scratch.clear();
        self.finish(cx, stream);
    }

    /// The client sent its end. `has_input`: behind bytes that still wait.
    pub fn client_ended<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        has_input: bool,
    ) {
        match stream.phase {
            Phase::Tunnel if has_input => {}
            Phase::Tunnel => self.tunnel_client_ended(cx, stream),
            Phase::RequestHead => {
                stream.ended_by(b'C', b'R');
                self.refuse_request(cx, stream, 400);
            }
            // Nobody waits for the end of the pause.
            _ if stream.request_paused()
                && !has_input
                && cx.running.proxy(stream.backend).aborts_on_close() =>
            {
                self.client_aborted(cx, stream)
            }
            _ if stream.request_paused() => {}
            // The rules still see what came, as in HAProxy; `prepare_request` ends it.
            _ if stream.awaits_upload() => {
                stream.body_cut = !self.body_is_here(cx, stream, None);
                self.run(cx, stream);
            }
            // Before the server stands, and the backend does not work for a client that has left.
            _ if !stream.txn.is_http && cx.running.proxy(stream.backend).aborts_on_close() => {
                stream.ended_by(b'C', phase_letter(stream));
                self.cut(cx, stream);
            }
            _ if !stream.txn.is_http => {}
            Phase::Queue | Phase::TurnAround | Phase::Connect
                if !has_input && cx.running.proxy(stream.backend).aborts_on_close() =>
            {
                stream.ended_by(b'C', phase_letter(stream));
                self.cut(cx, stream);
            }
            Phase::ResponseHead
                if !has_input && cx.running.proxy(stream.backend).aborts_on_close() =>
            {
                self.client_aborted(cx, stream)
            }
            Phase::Tarpit => self.client_aborted(cx, stream),
            _ if !stream.upload.done && !has_input => self.client_aborted(cx, stream),
            _ => {}
        }
    }

    /// Ends a stream whose client will not send the rest of its request, or does not wait for its answer.
    pub fn client_aborted<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.ended_by(b'C', phase_letter(stream));
        self.refuse_request(cx, stream, 400);
    }

    /// The client's connection is gone.
    pub fn client_gone<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let connects = matches!(phase_letter(stream), b'Q' | b'C');
        if stream.txn.is_http && stream.txn.status == 0 && !connects {
            stream.txn.status = 400;
        }
        // HAProxy finds a reset while it forwards the request's end: data, not headers.
        let when = match stream.phase {
            Phase::ResponseHead => b'D',
            _ => phase_letter(stream),
        };
        stream.ended_by(b'C', when);
        self.cut(cx, stream);
    }

    /// A stream's own deadline came.
    pub fn stream_timeout<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let unread = stream
            .client
            .filter(|client| self.conns.get(*client).is_some_and(|entry| entry.backlog));
        self.time_over(cx, stream);
        // A client that did not read in time is not waited for again.
        if let Some(client) = unread.filter(|_| stream.phase == Phase::Done) {
            self.close_client(cx, client);
        }
    }

    fn time_over<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        match stream.phase {
            Phase::RequestHead => {
                stream.ended_by(b'c', b'R');
                self.refuse_request(cx, stream, 408);
            }
            Phase::FrontendContent | Phase::BackendContent => {
                stream.wait_until_ms = cx.now().ms();
                self.run(cx, stream);
            }
            Phase::Queue => {
                self.give_up_queue(cx, stream);
                stream.ended_by(b's', b'Q');
                self.fail(cx, stream, 503);
            }
            Phase::TurnAround => {
                if let Some(client) = stream.client {
                    self.set_deadline(client, NEVER_MS);
                }
                stream.phase = Phase::Connect;
                self.run(cx, stream);
            }
            Phase::Tarpit => self.end_tarpit(cx, stream),
            Phase::Tunnel => {
                stream.ended_by(b'c', b'D');
                self.cut(cx, stream);
            }
            _ if stream.request_paused() => self.run(cx, stream),
            _ if stream.awaits_upload() => {
                stream.ended_by(b'c', b'R');
                self.refuse_request(cx, stream, 408);
            }
            _ => {
                stream.ended_by(b'c', phase_letter(stream));
                self.refuse_request(cx, stream, 400);
            }
        }
    }

    /// Whose time runs after a backlog went: the client's while its body is awaited and may come, the server's while it
    /// may speak. In other phases a deadline means something else.
    fn transfer_deadlines<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &Stream) {
        let now = cx.now();
        let backlog = |core: &mut Core, conn: Option<ConnId>| {
            conn.and_then(|conn| core.conns.get(conn))
                .is_some_and(|entry| entry.backlog)
        };
        let (client_full, server_full) =
            (backlog(self, stream.client), backlog(self, stream.server));
        let uploads = stream.upload.open && !stream.upload.done && !server_full;
        if let Some(client) = stream.client.filter(|_| !client_full) {
            let timeout = stream.client_ms(cx.running);
            let owed = if uploads {
                deadline(now, timeout)
            } else {
                NEVER_MS
            };
            self.set_deadline(client, owed);
        }
        if let Some(server) = stream.server.filter(|_| !client_full) {
            let timeout = stream.server_ms(cx.running);
            self.set_deadline(server, deadline(now, timeout));
        }
    }

    /// A connection's backlog is gone: whoever fed it goes on.
    pub fn drained<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        entry.backlog = false;
        let id = match &entry.role {
            crate::conn::Role::Client(client) if client.stage == crate::conn::Stage::Closing => {
                return self.closing_drained(cx, conn);
            }
            crate::conn::Role::Client(client) if client.stream.is_none() => {
                return self.await_request(cx, conn);
            }
            crate::conn::Role::Client(client) => client.stream,
            crate::conn::Role::Server(server) => server.stream,
            crate::conn::Role::Free => return,
        };
        let Some(mut stream) = id.and_then(|id| self.streams.take(id)) else {
            return;
        };
        if stream.phase == Phase::Tunnel {
            self.tunnel_maybe_over(cx, &mut stream);
        } else if matches!(stream.phase, Phase::ResponseHead | Phase::Transfer) {
            self.transfer_deadlines(cx, &stream);
        }
        let (client, server) = (stream.client, stream.server);
        // A rule holds the response for longer than that.
        let held = stream.paused;
        self.streams.put(stream);
        match (client, server) {
            (Some(client), Some(_)) if client == conn && held => {}
            (Some(client), Some(server)) if client == conn => self.unpause(cx, server),
            (Some(client), _) => {
                self.update_client_flow(cx, client);
                self.poked.push(client);
            }
            _ => {}
        }
    }
}

/// The second character of the termination state (manual §8.5): when it happened.
pub(crate) fn phase_letter(stream: &Stream) -> u8 {
    match stream.phase {
        Phase::RequestHead
        | Phase::FrontendContent
        | Phase::FrontendRequest
        | Phase::SwitchBackend
        | Phase::BackendContent
        | Phase::BackendRequest
        | Phase::FrontendBody
        | Phase::BackendBody
        | Phase::AssignServer
        | Phase::PrepareRequest => b'R',
        Phase::SelectServer | Phase::Queue => b'Q',
        Phase::TurnAround | Phase::Connect | Phase::SendRequest => b'C',
        Phase::ResponseHead => b'H',
        Phase::Tarpit => b'T',
        // All of the response is gone, the rest of its request is still awaited.
        Phase::Transfer if stream.download.done => b'L',
        _ => b'D',
    }
}
