//! The request on its way in: its head read, its rules run, its backend chosen, made ready to leave.

use config::model::{BackendTarget, ConnectionMode, Mode};
use http::h1::{self, Framing, Strictness};
use http::{Method, Version};
use net::Driver;

use super::phases::Step;
use super::transfer::{Coding, Transfer};
use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::rules::{Outcome, RuleSet};
use crate::running::deadline;

impl Stream {
    /// A request's head was read.
    pub fn has_request(&self) -> bool {
        self.txn.is_http && self.phase != Phase::RequestHead && !self.txn.request_line.is_empty()
    }

    /// A response's head is there: the server's or our own.
    pub fn has_response(&self) -> bool {
        self.response.status() != 0
    }
}

impl Core {
    /// Reads the request's head; 0 while it is not whole.
    pub fn read_request_head<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        bytes: &[u8],
    ) -> usize {
        let limits = cx.running.limits();
        if stream.head_in_parts && !stream.resume.is_worth_it(bytes, limits) {
            return 0;
        }
        match h1::parse_request(bytes, limits, strictness(cx, stream), &mut stream.request) {
            Ok(None) => {
                if !std::mem::replace(&mut stream.head_in_parts, true) {
                    stream.resume = h1::Resume::default();
                    stream.resume.is_worth_it(bytes, limits);
                }
                0
            }
            Ok(Some(parsed)) => {
                stream.parsed = parsed;
                self.request_read(cx, stream);
                parsed.consumed
            }
            Err(error) => {
                stream.txn.bytes_in = bytes.len() as u64;
                stream.ended_by(b'P', b'R');
                self.refuse_request(cx, stream, error.status());
                bytes.len()
            }
        }
    }

    fn request_read<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.head_in_parts = false;
        let Stream {
            request,
            txn,
            parsed,
            ..
        } = stream;
        txn.method = request.method();
        txn.bytes_in = parsed.consumed as u64;
        txn.timing.request_complete_ms = Some(cx.driver.now().ms());
        let line = &mut txn.request_line;
        line.clear();
        for part in [request.method_bytes(), b" ", request.target(), b" "] {
            line.extend_from_slice(part);
        }
        line.extend_from_slice(request.version_bytes());
        line.truncate(cx.running.config.global.tune.http_logurilen_bytes);
        stream.old_client = request.version_bytes() == b"HTTP/1.0";
        stream.wants_tunnel = parsed.upgrade || txn.method == Method::Connect;
        stream.keep_client = parsed.keep_alive;
        stream.upload = Transfer::new(
            parsed.framing,
            Coding::Discard,
            cx.running.limits(),
            strictness(cx, stream),
        );
        for capture in &cx.running.proxy(stream.frontend).capture_request {
            let value = stream.request.find(capture.header.as_bytes()).last();
            let value = value.map(|(_, value)| value[..value.len().min(capture.len)].into());
            stream.txn.captured_request.push(value);
        }
        let frontend = cx.running.proxy(stream.frontend);
        let monitored = frontend.monitor_uri.as_deref();
        if monitored.is_some_and(|uri| uri.as_bytes() == stream.request.target()) {
            stream.phase = Phase::FrontendContent;
            stream.ended_by(b'P', b'R');
            return self.monitor(cx, stream);
        }
        if let Some(client) = stream.client {
            // While a server works on it the client owes nothing.
            self.set_deadline(client, net::timers::NEVER_MS);
        }
        stream.phase = Phase::FrontendContent;
        self.run(cx, stream);
    }

    pub fn frontend_content<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = if stream.txn.is_http {
            Phase::FrontendRequest
        } else {
            Phase::SwitchBackend
        };
        self.content_rules(cx, stream, stream.frontend, next)
    }

    pub fn backend_content<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = if stream.txn.is_http {
            Phase::BackendRequest
        } else {
            Phase::SelectServer
        };
        if stream.backend == stream.frontend {
            return Step::Go(next);
        }
        self.content_rules(cx, stream, stream.backend, next)
    }

    pub fn frontend_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.request_rules(cx, stream, stream.frontend, Phase::SwitchBackend)
    }

    pub fn backend_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = Phase::BufferBody;
        if stream.backend == stream.frontend {
            return Step::Go(next);
        }
        self.request_rules(cx, stream, stream.backend, next)
    }

    fn request_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        proxy: usize,
        next: Phase,
    ) -> Step {
        for set in [RuleSet::Request, RuleSet::Redirect] {
            match self.http_rules(cx, stream, proxy, set) {
                Outcome::Continue => {}
                Outcome::Ended => return Step::Wait,
            }
        }
        Step::Go(next)
    }

    /// `use_backend` in order, then `default_backend`; a `listen` serves itself.
    pub fn switch_backend<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let proxy = cx.running.proxy(stream.frontend);
        let mut chosen = None;
        for rule in &proxy.use_backend {
            let holds = match &rule.condition {
                Some(condition) => self.holds(cx, stream, condition),
                None => true,
            };
            if holds {
                chosen = match &rule.target {
                    BackendTarget::Static(backend) => Some(*backend),
                    BackendTarget::Dynamic(format) => {
                        let mut name = Vec::new();
                        self.render(cx, stream, format, &mut name);
                        let named = |proxy: &config::model::Proxy| {
                            proxy.is_backend && proxy.name.as_bytes() == name && !proxy.disabled
                        };
                        // A name that no backend has falls through (manual §4.2 use_backend).
                        cx.running.config.proxies.iter().position(named)
                    }
                };
                if chosen.is_some() || matches!(rule.target, BackendTarget::Dynamic(_)) {
                    break;
                }
            }
        }
        let backend = chosen
            .or(proxy.default_backend)
            .or(proxy.is_backend.then_some(stream.frontend));
        let Some(backend) = backend else {
            stream.ended_by(b'S', b'C');
            self.fail(cx, stream, 503);
            return Step::Wait;
        };
        stream.backend = backend;
        stream.txn.backend = Some(backend as u32);
        stream.backend_counted = true;
        self.count(crate::shared::Count::Backend(backend));
        if cx.running.proxy(backend).mode == Mode::Http && !stream.txn.is_http {
            // A TCP frontend before an HTTP backend: what comes is read as HTTP from here on.
            return self.upgrade_to_http(cx, stream);
        }
        Step::Go(Phase::BackendContent)
    }

    fn upgrade_to_http<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let Some(client) = stream.client else {
            return Step::Wait;
        };
        stream.txn.is_http = true;
        stream.phase = Phase::RequestHead;
        let timeouts = &cx.running.timeouts[stream.backend];
        self.set_deadline(client, deadline(cx.now(), timeouts.http_request));
        // The bytes that wait are its first request.
        self.poked.push(client);
        Step::Wait
    }

    /// Waits for a request's body, as far as a buffer takes it.
    pub fn buffer_body<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = Step::Go(Phase::PrepareRequest);
        let wanted = cx.running.proxy(stream.backend).options.http_buffer_request
            || cx
                .running
                .proxy(stream.frontend)
                .options
                .http_buffer_request;
        let Some(client) = stream.client else {
            return Step::Wait;
        };
        if !wanted || stream.upload.done {
            return next;
        }
        self.expect_continue(cx, stream);
        let Some(entry) = self.conns.get(client) else {
            return Step::Wait;
        };
        let room = cx
            .running
            .config
            .global
            .tune
            .bufsize_bytes
            .saturating_sub(stream.request.wire_bytes());
        let whole = match stream.parsed.framing {
            Framing::Length(bytes) => entry.input.len() as u64 >= bytes,
            _ => is_whole(stream.parsed.framing, &entry.input),
        };
        if whole || entry.input.len() >= room {
            self.set_deadline(client, net::timers::NEVER_MS);
            return next;
        }
        if !std::mem::replace(&mut stream.inspecting, true) {
            let timeouts = &cx.running.timeouts[stream.frontend];
            self.set_deadline(client, deadline(cx.now(), timeouts.http_request));
        }
        Step::Wait
    }

    /// Answers `Expect: 100-continue` where the body is wanted here, before a server is asked.
    fn expect_continue<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(client) = stream.client
            && std::mem::take(&mut stream.parsed.expect_continue)
        {
            stream.request.remove_all(b"expect");
            self.send(cx, client, b"HTTP/1.1 100 Continue\r\n\r\n", &[]);
        }
    }

    /// What the proxy itself changes of a request: who it comes from, and how its connection goes on.
    pub fn prepare_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.add_forwarding_headers(cx, stream);
        let frontend = cx.running.proxy(stream.frontend);
        let backend = cx.running.proxy(stream.backend);
        let mode = connection_mode(frontend.connection_mode, backend.connection_mode);
        stream.keep_client &= mode != ConnectionMode::Close;
        stream.keep_server = mode == ConnectionMode::KeepAlive;
        if !stream.keep_server && !stream.wants_tunnel && !backend.options.http_pretend_keepalive {
            stream.request.append(b"connection", b"close");
        }
        // Requests leave as HTTP/1.1, whatever the client spoke (RFC 9110 §2.5).
        stream.request.set_version(Version::Http11);
        if let Some(format) = &frontend.unique_id_format
            && let Some(header) = &frontend.unique_id_header
        {
            self.make_unique_id(cx, stream, format);
            if let Some(id) = &stream.txn.unique_id {
                stream.request.append(header.as_bytes(), id);
            }
        }
        Step::Go(Phase::SelectServer)
    }
}

/// How strict this stream's client is read.
fn strictness<D>(cx: &Cx<'_, D>, stream: &Stream) -> Strictness {
    match cx
        .running
        .proxy(stream.frontend)
        .options
        .accept_unsafe_violations_in_http_request
    {
        true => Strictness::Relaxed,
        false => Strictness::Strict,
    }
}

/// Whether all of a body lies in `input`.
fn is_whole(framing: Framing, input: &[u8]) -> bool {
    let mut decoder = h1::body::BodyDecoder::new(framing);
    let mut trailers = http::Head::default();
    let mut rest = input;
    while !decoder.is_done() {
        match decoder.next(rest, &mut trailers) {
            Ok((_, h1::body::Piece::More)) => return false,
            Ok((used, _)) => rest = &rest[used..],
            // A broken body is whole enough: forwarding it finds the fault.
            Err(_) => return true,
        }
    }
    true
}

/// The stricter of the two sides (manual §4.2 option httpclose).
fn connection_mode(frontend: ConnectionMode, backend: ConnectionMode) -> ConnectionMode {
    use ConnectionMode::{Close, KeepAlive, ServerClose};
    match (frontend, backend) {
        (Close, _) | (_, Close) => Close,
        (ServerClose, _) | (_, ServerClose) => ServerClose,
        (KeepAlive, KeepAlive) => KeepAlive,
    }
}
