//! Server connections: opened or taken from the idle ones, their bytes fed to streams, kept or closed.

use config::model::ServerAddress;
use net::timers::NEVER_MS;
use net::{Addr, Close, ConnId, Connect, ConnectError, Driver, Labels};
use sample::{ConnError, LogOrigin};

use crate::conn::{Role, Server};
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::shared::{Count, Pace};
use crate::stream::phases::Step;
use crate::stream::retry::Failure;
use crate::stream::{Phase, Stream};

/// The pause before the same server is tried again (manual §4.2 retries), milliseconds.
const TURN_AROUND_MS: u64 = 1000;

impl Core {
    /// A connection to the chosen server: an idle one where that is allowed, else a fresh one.
    pub fn connect_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        if stream.server.is_some() {
            return Step::Wait; // it does not stand yet
        }
        let Some(server) = stream.target else {
            return Step::Go(Phase::SelectServer);
        };
        self.respond(cx, stream);
        let now = cx.now();
        if stream.txn.timing.queued_ms.is_none() {
            stream.txn.timing.queued_ms = Some(now.ms());
        }
        let header = self.proxy_header(cx, stream, server);
        if stream.txn.is_http
            && !stream.fresh_only
            && let Some(conn) = self.take_idle(cx, stream, server, &header)
        {
            self.attach(cx, stream, conn, server);
            stream.on_reused = true;
            stream.txn.server_reused = true;
            stream.txn.timing.connected_ms = Some(now.ms());
            self.trace_try(cx, stream);
            self.log_at(cx, stream, LogOrigin::Connect);
            return Step::Go(Phase::SendRequest);
        }
        match self.open_server(cx, stream, server) {
            Ok(conn) => {
                self.conns.insert(
                    conn,
                    Role::Server(Server {
                        backend: stream.backend,
                        server,
                        stream: None,
                        connecting: true,
                        served: 0,
                        private: self.is_private(cx, stream.backend, server)
                            || stream.labels != Labels::default(),
                        labels: stream.labels,
                        pool_place: None,
                        keeper: None,
                        header,
                    }),
                );
                stream.on_reused = false;
                self.attach(cx, stream, conn, server);
                self.trace_try(cx, stream);
                self.set_deadline(conn, deadline(now, stream.connect_ms(cx.running)));
                Step::Wait
            }
            Err(error) => self.connect_failed(cx, stream, error),
        }
    }

    fn open_server<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        server: usize,
    ) -> Result<ConnId, ConnectError> {
        let backend = cx.running.proxy(stream.backend);
        let line = &backend.servers[server];
        let computed;
        let to = match &line.address {
            ServerAddress::Fixed(addr) => addr,
            ServerAddress::PortOffset { ip, offset } => {
                let client = stream.client.and_then(|client| self.conns.client(client));
                let port = client.map_or(0, |client| {
                    i32::from(client.session.dst_of(Some(&stream.txn)).port())
                }) + offset;
                computed = Addr::Inet((*ip, u16::try_from(port).unwrap_or(0)).into());
                &computed
            }
        };
        stream.txn.server_dst = Some(to.clone());
        let source = line.source.as_ref().or(backend.source.as_ref());
        let from = source.map(|source| &source.addr);
        stream.txn.server_src = from.cloned();
        let interface = source.and_then(|source| source.interface.as_deref());
        cx.driver.connect(&Connect {
            to,
            from,
            interface,
            keepalive: backend.options.srvtcpka,
            labels: stream.labels,
        })
    }

    /// Ties a connection to a stream and counts it.
    #[inline]
    fn attach<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        conn: ConnId,
        server: usize,
    ) {
        stream.server = Some(conn);
        stream.txn.server = Some(server as u32);
        if let Some(entry) = self.conns.server(conn) {
            entry.stream = Some(stream.id);
        }
        if !std::mem::replace(&mut stream.server_counted, true) {
            self.count(Count::Server(stream.backend, server));
        }
        self.mark(cx, Pace::Server(stream.backend, server));
        if cx.running.config.needs.server_source {
            stream.txn.server_src = cx.driver.local_addr(conn);
        }
    }

    fn is_private<D: Driver>(&self, cx: &Cx<'_, D>, backend: usize, server: usize) -> bool {
        let proxy = cx.running.proxy(backend);
        let line = &proxy.servers[server];
        // What the server learns of the client at the connection's start binds it to that client.
        proxy.http_reuse == config::model::HttpReuse::Never || line.send_proxy.is_on()
    }

    /// An outgoing connection stands.
    pub fn server_connected<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(server) = self.conns.server(conn) else {
            return;
        };
        server.connecting = false;
        let header = std::mem::take(&mut server.header);
        let Some(mut stream) = server.stream.and_then(|id| self.streams.take(id)) else {
            return self.close_server(cx, conn);
        };
        stream.txn.timing.connected_ms = Some(cx.now().ms());
        stream.txn.server_error = ConnError::None;
        self.log_at(cx, &mut stream, LogOrigin::Connect);
        if !header.is_empty() {
            self.send(cx, conn, &header, &[]);
            if let Some(server) = self.conns.server(conn) {
                server.header = header;
            }
        }
        stream.phase = if stream.txn.is_http {
            Phase::SendRequest
        } else {
            Phase::OpenTunnel
        };
        self.run(cx, &mut stream);
        self.streams.put(stream);
    }

    /// Bytes from a server.
    pub fn server_data<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, data: &[u8]) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let Some(id) = entry.server().and_then(|server| server.stream) else {
            // An idle connection has nothing to say (a late response, a 408 at its end).
            return self.close_server(cx, conn);
        };
        let mut kept = std::mem::take(&mut entry.input);
        let lent = kept.is_empty();
        if !lent {
            kept.extend_from_slice(data);
        }
        let bytes = if lent { data } else { &kept };
        let Some(mut stream) = self.streams.take(id) else {
            return;
        };
        let used = self.feed_response(cx, &mut stream, conn, bytes);
        self.flush_head(cx, &mut stream);
        self.streams.put(stream);
        let rest = bytes.len() - used;
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        if rest > 0
            && entry
                .server()
                .is_some_and(|server| server.stream != Some(id))
        {
            // More than the response: this connection is out of step.
            return self.close_server(cx, conn);
        }
        if lent {
            kept.extend_from_slice(&data[used..]);
        } else {
            kept.take(used);
        }
        entry.input = kept;
        self.conns.slim(conn);
        // A rule may wait for just these bytes.
        let waits = |stream: &Stream| stream.phase == Phase::BackendResponse;
        if rest > 0 && self.streams.get(id).is_some_and(waits) {
            self.woken.push(id);
        }
    }

    fn feed_response<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        conn: ConnId,
        bytes: &[u8],
    ) -> usize {
        let mut used = 0;
        while used < bytes.len() && stream.server == Some(conn) {
            let rest = &bytes[used..];
            let step = match stream.phase {
                Phase::ResponseHead => self.read_response_head(cx, stream, rest),
                Phase::Transfer if !stream.download.done => self.download(cx, stream, rest),
                Phase::Tunnel => self.tunnel_from_server(cx, stream, rest),
                _ => 0,
            };
            if step == 0 {
                break;
            }
            used += step;
        }
        used
    }

    /// Offers a server's leftover bytes again, and its end behind them.
    pub fn take_server_input<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        if !self.conns.input(conn).is_empty() {
            self.server_data(cx, conn, &[]);
        }
        if let Some(entry) = self.conns.get(conn)
            && entry.eof
            && entry.input.is_empty()
        {
            self.server_eof(cx, conn);
        }
    }

    /// The server will send no more.
    pub fn server_eof<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(Some(id)) = self.conns.server(conn).map(|server| server.stream) else {
            return self.close_server(cx, conn);
        };
        let Some(mut stream) = self.streams.take(id) else {
            return;
        };
        match stream.phase {
            // What waits for a rule gets its last chance.
            Phase::Tunnel if !stream.response_passed && !self.conns.input(conn).is_empty() => {
                self.streams.put(stream);
                self.server_data(cx, conn, &[]);
                return self.server_eof(cx, conn);
            }
            Phase::Transfer if stream.download.until_close => {
                stream.download.done = true;
                stream.keep_server = false;
                self.run(cx, &mut stream);
            }
            Phase::Tunnel => self.tunnel_server_ended(cx, &mut stream),
            // A rule waits for the body: what is here is all of it.
            Phase::BackendResponse => {
                self.run(cx, &mut stream);
                self.flush_head(cx, &mut stream);
            }
            _ => self.server_failed(cx, &mut stream, Close::Reset),
        }
        self.streams.put(stream);
    }

    /// The server's connection is gone.
    pub fn server_lost<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, why: Close) {
        let stream = self.conns.server(conn).and_then(|server| server.stream);
        let stream = stream.and_then(|id| self.streams.take(id));
        let Some(mut stream) = stream else {
            return self.forget_server(cx, conn);
        };
        self.server_failed(cx, &mut stream, why);
        self.streams.put(stream);
        self.forget_server(cx, conn);
    }

    /// A stream's server connection failed it: tried again where that is safe, else told to the client.
    fn server_failed<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, why: Close) {
        stream.txn.server_error = ConnError::Reset;
        match stream.phase {
            Phase::Connect => {
                self.drop_server(cx, stream);
                let error = if why == Close::Refused {
                    ConnectError::Refused
                } else {
                    ConnectError::Resource
                };
                match self.connect_failed(cx, stream, error) {
                    Step::Go(phase) => {
                        stream.phase = phase;
                        self.run(cx, stream);
                    }
                    Step::Wait => {}
                }
            }
            Phase::BackendResponse => {
                stream.ended_by(b'S', b'H');
                self.fail(cx, stream, 502);
            }
            Phase::ResponseHead => {
                stream.keep_server = false;
                if self.may_resend(stream) {
                    self.drop_server(cx, stream);
                    stream.fresh_only = true;
                    stream.phase = Phase::Connect;
                    self.run(cx, stream);
                    return;
                }
                // Silence is the server's fault, half a head is a bad answer.
                let began = stream
                    .server
                    .is_some_and(|conn| !self.conns.input(conn).is_empty());
                let failure = if began { Failure::Junk } else { Failure::Empty };
                let retries = stream.retriable && stream.upload.done;
                if retries && self.retry(cx, stream, failure) {
                    return;
                }
                if stream.on_reused && !retries {
                    // The server closed its idle connection when this request was under way, and only the client can
                    // tell whether it may go out twice: closed without a word, it tries again (as HAProxy does).
                    stream.ended_by(b'S', b'H');
                    self.cut(cx, stream);
                } else {
                    stream.ended_by(if began { b'P' } else { b'S' }, b'H');
                    self.fail(cx, stream, 502);
                }
            }
            Phase::Tunnel => {
                stream.ended_by(b'S', b'D');
                self.cut(cx, stream);
            }
            _ => {
                stream.ended_by(b'S', b'D');
                self.cut(cx, stream);
            }
        }
    }

    /// A connection attempt failed: the same server after a pause, another one, or an error.
    pub fn connect_failed<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        error: ConnectError,
    ) -> Step {
        let retry_on = &cx.running.proxy(stream.backend).retry_on;
        stream.txn.server_error = match error {
            ConnectError::Refused => ConnError::Refused,
            ConnectError::Resource => ConnError::Socket,
            ConnectError::Timeout => ConnError::None,
        };
        stream.tries += 1;
        if stream.tries > stream.retries_max(cx.running) || !retry_on.conn_failure {
            let who = if error == ConnectError::Timeout {
                b's'
            } else {
                b'S'
            };
            stream.ended_by(who, b'C');
            self.fail(cx, stream, 503);
            return Step::Wait;
        }
        stream.txn.retries += 1;
        if self.may_redispatch(cx, stream) {
            self.redispatch(cx, stream);
            return Step::Go(Phase::SelectServer);
        }
        // A refusal comes at once: without a pause all tries would fail within the same moment. A time-out was one.
        if error == ConnectError::Timeout {
            return Step::Go(Phase::Connect);
        }
        if let Some(client) = stream.client {
            let connect_ms = stream.connect_ms(cx.running);
            self.set_deadline(client, deadline(cx.now(), TURN_AROUND_MS.min(connect_ms)));
        }
        Step::Go(Phase::TurnAround)
    }

    /// A server connection's deadline came.
    pub fn server_timeout<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let stream = self.conns.server(conn).and_then(|server| server.stream);
        let Some(mut stream) = stream.and_then(|id| self.streams.take(id)) else {
            return self.close_server(cx, conn);
        };
        match stream.phase {
            Phase::Connect => {
                self.drop_server(cx, &mut stream);
                match self.connect_failed(cx, &mut stream, ConnectError::Timeout) {
                    Step::Go(phase) => {
                        stream.phase = phase;
                        self.run(cx, &mut stream);
                    }
                    Step::Wait => {}
                }
            }
            Phase::Tunnel if stream.inspecting && !stream.response_passed => {
                stream.wait_until_ms = cx.now().ms();
                self.streams.put(stream);
                return self.server_data(cx, conn, &[]);
            }
            Phase::BackendResponse if stream.paused => {
                self.run(cx, &mut stream);
                self.flush_head(cx, &mut stream);
            }
            Phase::ResponseHead | Phase::BackendResponse => {
                let awaited = stream.phase == Phase::ResponseHead;
                if !awaited || !self.retry(cx, &mut stream, Failure::Timeout) {
                    stream.ended_by(b's', b'H');
                    self.fail(cx, &mut stream, 504);
                }
            }
            _ => {
                stream.ended_by(b's', b'D');
                self.cut(cx, &mut stream);
            }
        }
        self.streams.put(stream);
    }

    /// The stream is done with its server connection: idle if it may serve again, else closed. Its slot goes to the next.
    pub fn release_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(conn) = stream.server.take() {
            let reusable = stream.keep_server
                && self
                    .conns
                    .get(conn)
                    .is_some_and(|entry| !entry.eof && !entry.backlog && entry.input.is_empty());
            if reusable {
                self.keep_idle(cx, stream, conn);
            } else {
                self.close_server(cx, conn);
            }
        }
        self.uncount_server(stream);
        self.release_slot(cx, stream);
    }

    /// Closes the stream's server connection and keeps its slot.
    pub fn drop_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        self.trace_failed_try(cx, stream, None);
        if let Some(conn) = stream.server.take() {
            self.close_server(cx, conn);
        }
        self.uncount_server(stream);
    }

    fn uncount_server(&mut self, stream: &mut Stream) {
        if std::mem::take(&mut stream.server_counted)
            && let Some(server) = stream.txn.server
        {
            self.uncount(Count::Server(stream.backend, server as usize));
        }
    }

    pub fn close_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let nolinger = self
            .conns
            .server(conn)
            .is_some_and(|server| cx.running.proxy(server.backend).options.nolinger);
        if nolinger {
            cx.driver.abort(conn);
        } else {
            cx.driver.close(conn);
        }
        self.forget_server(cx, conn);
    }

    fn forget_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        self.leave_pool(conn);
        let Some(Role::Server(server)) = self.conns.remove(conn) else {
            return;
        };
        self.set_deadline(conn, NEVER_MS);
        if let Some(keeper) = server.keeper
            && let Some(client) = self.conns.client(keeper)
            && client.kept == Some(conn)
        {
            client.kept = None;
        }
        let _ = cx;
    }
}
