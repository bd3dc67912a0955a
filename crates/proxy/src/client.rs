//! Client connections: their bytes fed to streams, kept alive, closed.

use net::timers::NEVER_MS;
use net::{ConnId, Driver};
use sample::ConnError;

use crate::conn::{Role, Stage};
use crate::engine::{Core, Cx, DRAIN_IDLE_MS, Life};
use crate::running::deadline;
use crate::shared::Count;
use crate::stream::{Phase, Stream};

/// How long a client that was told of the end is listened to.
const LINGER_MS: u64 = 1000;

impl Core {
    /// Bytes from a client.
    pub fn client_data<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, data: &[u8]) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        if entry.input.is_empty() {
            let used = self.consume_client(cx, conn, data);
            self.keep_input(cx, conn, &data[used..]);
        } else {
            entry.input.extend_from_slice(data);
            self.take_input(cx, conn);
        }
    }

    /// Offers a client's leftover bytes again.
    pub fn take_input<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        if !entry.input.is_empty() {
            let mut input = std::mem::take(&mut entry.input);
            let used = self.consume_client(cx, conn, &input);
            let Some(entry) = self.conns.get(conn) else {
                return;
            };
            input.take(used);
            entry.input = input;
            self.input_kept(cx, conn);
        }
        self.flush_client_head(cx, conn);
        // The end came behind bytes that had to wait.
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        if !entry.eof {
            return;
        }
        let (over, id) = (
            entry.input.is_empty(),
            entry.client().and_then(|c| c.stream),
        );
        let cut = id
            .and_then(|id| self.streams.get(id))
            .is_some_and(Stream::awaits_upload);
        if over || cut {
            self.client_eof(cx, conn);
        }
    }

    /// The bytes had their turn: a request's head that waited for them leaves.
    fn flush_client_head<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let id = self.conns.client(conn).and_then(|client| client.stream);
        if let Some(id) = id.filter(|id| {
            self.streams
                .get(*id)
                .is_some_and(|stream| stream.head_waits)
        }) && let Some(mut stream) = self.streams.take(id)
        {
            self.flush_request_head(cx, &mut stream);
            self.streams.put(stream);
        }
    }

    fn keep_input<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        if let Some(entry) = self.conns.get(conn) {
            entry.input.extend_from_slice(rest);
            self.input_kept(cx, conn);
        }
    }

    /// Bytes wait in the input: a stream that looks at them has its turn, a full buffer stops the client.
    fn input_kept<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let waiting = entry.input.len();
        if waiting == 0 {
            self.conns.slim(conn);
        } else if let Some(id) = entry.client().and_then(|client| client.stream) {
            let looks = |stream: &Stream| {
                matches!(stream.phase, Phase::FrontendContent | Phase::BackendContent)
                    || stream.awaits_upload()
            };
            if self.streams.get(id).is_some_and(looks) {
                self.woken.push(id);
            }
        }
        self.update_client_flow(cx, conn);
    }

    /// Pauses a client whose bytes have nowhere to go, and lets it go on once they have.
    pub fn update_client_flow<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let full = entry.input.len() >= cx.running.config.global.tune.bufsize_bytes;
        let unread = entry.backlog && !entry.input.is_empty();
        let stream = entry.client().and_then(|client| client.stream);
        let waits = unread && stream.is_none();
        let server = stream
            .and_then(|id| self.streams.get(id))
            .and_then(|stream| stream.server);
        let blocked = server
            .and_then(|server| self.conns.get(server))
            .is_some_and(|server| server.backlog);
        if full || blocked || waits {
            self.pause(cx, conn);
        } else {
            self.unpause(cx, conn);
        }
    }

    /// Feeds bytes to the connection's stages and streams; how many were used.
    fn consume_client<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        bytes: &[u8],
    ) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let Some(entry) = self.conns.get(conn) else {
                return bytes.len();
            };
            let backlog = entry.backlog;
            let Some(client) = entry.client() else {
                return bytes.len();
            };
            let step = match (client.stage, client.stream) {
                (Stage::ProxyHeader, _) => self.read_proxy_header(cx, conn, rest),
                (Stage::Session, _) => 0,
                (Stage::Closing, _) => rest.len(),
                (Stage::Ready, Some(id)) => {
                    let Some(mut stream) = self.streams.take(id) else {
                        return used;
                    };
                    let step = self.feed(cx, &mut stream, rest);
                    self.streams.put(stream);
                    step
                }
                (Stage::Ready, None) if backlog => 0,
                (Stage::Ready, None) => {
                    let Some(mut stream) = self.begin_stream(cx, conn) else {
                        return bytes.len();
                    };
                    let step = self.feed(cx, &mut stream, rest);
                    self.streams.put(stream);
                    step
                }
            };
            used += step;
            let alive = self
                .conns
                .client(conn)
                .map(|client| (client.stage, client.stream));
            match alive {
                None => return bytes.len(),
                // A stream that took nothing waits; so does a header that is not whole.
                Some(_) if step == 0 => return used,
                Some(_) => {}
            }
        }
        used
    }

    /// Begins a stream on a client connection.
    pub fn begin_stream<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
    ) -> Option<Box<Stream>> {
        let number = self.next_stream_number();
        let now = cx.now();
        let client = self.conns.client(conn)?;
        let mut stream = self.streams.begin();
        client.stream = Some(stream.id);
        client.streams += 1;
        stream.client = Some(conn);
        stream.frontend = client.frontend;
        stream.log_moments = cx.running.log_plans[client.frontend].moments;
        stream.backend = client.frontend;
        let txn = &mut stream.txn;
        txn.id = number;
        txn.first_request = client.streams == 1;
        txn.is_http = client.is_http;
        txn.timing.start = client.idle_since;
        txn.timing.request_start = Some(now);
        if client.streams > 1 && txn.is_http {
            let timeouts = &cx.running.timeouts[client.frontend];
            self.set_deadline(conn, deadline(now, timeouts.http_request));
        }
        Some(stream)
    }

    /// Feeds a client's bytes to its stream; how many were used. What a stream cannot use yet stays with the connection.
    fn feed<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, bytes: &[u8]) -> usize {
        match stream.phase {
            Phase::RequestHead => self.read_request_head(cx, stream, bytes),
            Phase::Tunnel => self.tunnel_from_client(cx, stream, bytes),
            _ if stream.upload.open && !stream.upload.done => self.upload(cx, stream, bytes),
            _ => 0,
        }
    }

    /// The client will send no more.
    pub fn client_eof<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let (has_input, backlog) = (!entry.input.is_empty(), entry.backlog);
        let Some(client) = entry.client() else { return };
        match (client.stage, client.stream) {
            (Stage::Closing, _) => {
                if !backlog {
                    self.close_client(cx, conn);
                }
            }
            (_, Some(id)) => {
                if let Some(mut stream) = self.streams.take(id) {
                    self.client_ended(cx, &mut stream, has_input);
                    self.streams.put(stream);
                }
            }
            (Stage::Ready, None) if client.streams == 0 && client.is_http => {
                self.refuse_silent_client(cx, conn, b'C');
            }
            // What it has not taken yet goes first.
            (Stage::Ready, None) if backlog => {}
            (Stage::ProxyHeader, None) if has_input => {
                let why = ConnError::ProxyTruncated;
                self.fail_session(cx, conn, why, false)
            }
            (Stage::ProxyHeader, None) => {
                let why = ConnError::ProxyEmpty;
                self.fail_session(cx, conn, why, true)
            }
            (_, None) => self.close_client(cx, conn),
        }
    }

    /// A client that went, or let its time pass, before its first byte: a line in the log, as HAProxy writes it.
    fn refuse_silent_client<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, who: u8) {
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        let options = &cx.running.proxy(client.frontend).options;
        if options.http_ignore_probes {
            return self.close_client(cx, conn);
        }
        let silent = options.dontlognull;
        let accepted = client.session.accepted;
        let Some(mut stream) = self.begin_stream(cx, conn) else {
            return;
        };
        stream.logged = silent;
        stream.txn.timing.request_start = Some(accepted);
        stream.ended_by(who, b'R');
        let status = if who == b'C' { 400 } else { 408 };
        self.refuse_request(cx, &mut stream, status);
        self.streams.put(stream);
    }

    /// The client's connection is gone.
    pub fn client_lost<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        let ready = client.stage == Stage::Ready;
        let silent = ready && client.streams == 0 && client.is_http;
        if client.stage == Stage::ProxyHeader {
            let why = ConnError::ProxyAbort;
            self.log_failed_session(cx, conn, why, true);
            return self.forget_client(cx, conn);
        }
        let stream = client.stream.and_then(|id| self.streams.take(id));
        if let Some(mut stream) = stream {
            self.client_gone(cx, &mut stream);
            self.streams.put(stream);
        } else if silent {
            self.refuse_silent_client(cx, conn, b'C');
        }
        self.forget_client(cx, conn);
    }

    /// A client connection's deadline came: what for depends on what it waits for.
    pub fn client_timeout<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        match (client.stage, client.stream) {
            (Stage::Ready, Some(id)) => {
                if let Some(mut stream) = self.streams.take(id) {
                    self.stream_timeout(cx, &mut stream);
                    self.streams.put(stream);
                }
            }
            (Stage::Ready, None) if client.streams == 0 => {
                self.refuse_silent_client(cx, conn, b'c')
            }
            (Stage::ProxyHeader, None) => {
                let why = match self.conns.input(conn) {
                    [] => ConnError::ProxyTimeout,
                    _ => ConnError::ProxyTruncated,
                };
                self.fail_session(cx, conn, why, false)
            }
            _ => self.close_client(cx, conn),
        }
    }

    /// A stream is over and its client connection goes on, once the client has taken what was sent to it.
    pub fn next_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let now = cx.now();
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let backlog = entry.backlog;
        let Some(client) = entry.client() else { return };
        client.stream = None;
        client.idle_since = now;
        let frontend = client.frontend;
        if backlog {
            // Answers to a client that reads none of them would pile up.
            self.set_deadline(conn, deadline(now, cx.running.timeouts[frontend].client));
            self.update_client_flow(cx, conn);
        } else {
            self.await_request(cx, conn);
        }
    }

    /// A client without a stream goes on to its next request, or to wait for one.
    pub fn await_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let now = cx.now();
        let draining = self.life != Life::Serving;
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        // Its next bytes may be at hand even where none are kept: the end is looked at when they had their turn.
        let more = !entry.input.is_empty() || entry.eof;
        let Some(client) = entry.client() else { return };
        let wait_ms = cx.running.timeouts[client.frontend].http_keep_alive;
        let wait_ms = if draining {
            wait_ms.min(DRAIN_IDLE_MS)
        } else {
            wait_ms
        };
        self.set_deadline(conn, deadline(now, wait_ms));
        self.update_client_flow(cx, conn);
        if more {
            self.poked.push(conn);
        }
    }

    /// While draining: a client without a request is closed once it has been silent for a while.
    pub fn hurry_idle_client<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let now = cx.now();
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let backlog = entry.backlog;
        let Some(client) = entry.client() else { return };
        let waits_for_response = cx
            .running
            .proxy(client.frontend)
            .options
            .idle_close_on_response;
        let between = client.stage == Stage::Ready && client.stream.is_none();
        // One that has not asked anything yet has its full time to do so.
        if between && client.streams > 0 && !backlog && !waits_for_response {
            let idle_end_ms = client.idle_since.ms() + DRAIN_IDLE_MS;
            if idle_end_ms <= now.ms() {
                self.close_client(cx, conn);
            } else {
                self.set_deadline(conn, idle_end_ms);
            }
        }
    }

    /// Closes a client connection once its last bytes are gone. With `lingers` the client does not know yet that this was
    /// its last answer: what it may still send is read and thrown away until it has seen our end, for a close with bytes
    /// unread would reset the connection and take the answer with it (RFC 9112 §9.6).
    pub fn finish_client<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId, lingers: bool) {
        let now = cx.now();
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let (backlog, eof) = (entry.backlog, entry.eof);
        let Some(client) = entry.client() else { return };
        client.stream = None;
        client.lingers = lingers;
        if !backlog && (!lingers || eof) {
            return self.close_client(cx, conn);
        }
        client.stage = Stage::Closing;
        let wait_ms = match backlog {
            true => cx.running.timeouts[client.frontend].client,
            false => LINGER_MS,
        };
        entry.input.clear();
        cx.driver.shutdown(conn);
        self.set_deadline(conn, deadline(now, wait_ms));
        self.unpause(cx, conn);
    }

    /// The last bytes of a closing client are gone.
    pub fn closing_drained<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let now = cx.now();
        let Some(entry) = self.conns.get(conn) else {
            return;
        };
        let eof = entry.eof;
        if !eof && entry.client().is_some_and(|client| client.lingers) {
            self.set_deadline(conn, deadline(now, LINGER_MS));
        } else {
            self.close_client(cx, conn);
        }
    }

    pub fn close_client<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let nolinger = self
            .conns
            .client(conn)
            .is_some_and(|client| cx.running.proxy(client.frontend).options.nolinger);
        if nolinger {
            cx.driver.abort(conn);
        } else {
            cx.driver.close(conn);
        }
        self.forget_client(cx, conn);
    }

    fn forget_client<D: Driver>(&mut self, cx: &mut Cx<'_, D>, conn: ConnId) {
        let Some(Role::Client(client)) = self.conns.remove(conn) else {
            return;
        };
        debug_assert!(
            client
                .stream
                .is_none_or(|id| self.streams.get(id).is_none())
        );
        self.set_deadline(conn, NEVER_MS);
        if cx.running.config.global.var_limits.process > 0 {
            self.shared.var_bytes_change(client.session.vars.bytes(), 0);
        }
        let bind = cx.running.listeners[client.listener].bind;
        self.uncount(Count::Process);
        self.uncount(Count::Frontend(client.frontend));
        self.uncount(Count::Bind(client.frontend, bind));
        if let Some(kept) = client.kept {
            self.close_server(cx, kept);
        }
        if self.shared.any_listener_is_full() {
            self.reopen_listeners(cx);
            // Those of the other workers may have room too.
            cx.driver.wake_peers();
        }
    }
}
