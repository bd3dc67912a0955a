//! The request on its way in: its head read, its rules run, its backend chosen, made ready to leave.

use config::model::{BackendTarget, ConnectionMode};
use http::h1::{self, Framing, Strictness};
use http::{Method, Version};
use net::Driver;
use sample::LogOrigin;
use telemetry::Event;

use super::buffering::framed;
use super::phases::Step;
use super::transfer::{Coding, Transfer};
use super::{Phase, Stream};
use crate::engine::{Core, Cx};
use crate::rules::{Outcome, RuleSet};
use crate::running::deadline;
use crate::shared::{Count, Pace};

impl Stream {
    /// A request's head was read.
    pub fn has_request(&self) -> bool {
        self.txn.is_http && self.phase != Phase::RequestHead && !self.txn.request_line.is_empty()
    }

    /// The request was read and its rules are done, by their end or by one that answers: what `%TR` counts to.
    pub fn request_processed(&mut self, now: net::Now) {
        let complete = &mut self.txn.timing.request_complete_ms;
        complete.get_or_insert(now.ms());
    }

    /// It waits for more of the request's body.
    pub fn awaits_upload(&self) -> bool {
        match self.phase {
            Phase::FrontendBody | Phase::BackendBody => true,
            Phase::FrontendRequest | Phase::BackendRequest => {
                self.waiting_rule.is_some() && !self.paused
            }
            _ => false,
        }
    }

    /// `pause` holds the request.
    pub fn request_paused(&self) -> bool {
        self.paused && matches!(self.phase, Phase::FrontendRequest | Phase::BackendRequest)
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
                stream.head_read = parsed.consumed;
                stream.body_read = framed(parsed.framing, bytes.len() - parsed.consumed);
                self.request_read(cx, stream, bytes.len() > parsed.consumed);
                parsed.consumed
            }
            Err(error) => {
                self.mark(cx, Pace::Requests(stream.frontend));
                stream.txn.bytes_in = bytes.len() as u64;
                stream.ended_by(b'P', b'R');
                self.refuse_request(cx, stream, error.status());
                bytes.len()
            }
        }
    }

    /// The head is whole. `more_at_hand`: bytes came along behind it.
    fn request_read<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        more_at_hand: bool,
    ) {
        stream.head_in_parts = false;
        self.mark(cx, Pace::Requests(stream.frontend));
        self.log_at(cx, stream, LogOrigin::Accept);
        let Stream {
            request,
            txn,
            parsed,
            ..
        } = stream;
        txn.method = request.method();
        txn.request_framing = parsed.framing;
        txn.bytes_in = parsed.consumed as u64;
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
        let frontend = cx.running.proxy(stream.frontend);
        stream.begin_cookie_state(cx.running.proxy(stream.backend));
        stream.txn.is_proxied = frontend.options.http_use_proxy_header
            && !stream.request.target().starts_with(b"/")
            && !stream.request.target().starts_with(b"*");
        for capture in &cx.running.proxy(stream.frontend).capture_request {
            let value = stream.request.find(capture.header.as_bytes()).last();
            let value = value.map(|(_, value)| &value[..value.len().min(capture.len)]);
            stream.txn.captured_request.push(value);
        }
        let monitored = cx.running.proxy(stream.frontend).monitor_uri.as_deref();
        if monitored.is_some_and(|uri| is_monitored(uri, &stream.request)) {
            stream.phase = Phase::FrontendContent;
            stream.ended_by(b'P', b'R');
            return self.monitor(cx, stream);
        }
        if let Some(client) = stream.client {
            // While a server works on it the client owes nothing.
            self.set_deadline(client, net::timers::NEVER_MS);
        }
        stream.phase = stream.after_head.take().unwrap_or(Phase::FrontendContent);
        // An expression looks at bodies: what came along is put where it can be seen, and then the stream has its turn.
        let body_at_hand = more_at_hand && !stream.upload.done;
        if !(body_at_hand && cx.running.config.needs.request_body) {
            self.run(cx, stream);
        }
    }

    /// Looks for an HTTP request in the bytes of a TCP stream, for its rules (manual §7.3.5 req.proto_http).
    pub fn sniff_http<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        if stream.txn.is_http || stream.http_in_tcp || stream.txn.never_http {
            return;
        }
        let limits = cx.running.limits();
        let bytes = stream
            .client
            .map_or(&[][..], |client| self.conns.input(client));
        if bytes.is_empty() || !stream.resume.is_worth_it(bytes, limits) {
            return;
        }
        match h1::parse_request(bytes, limits, strictness(cx, stream), &mut stream.request) {
            Ok(Some(_)) => stream.http_in_tcp = true,
            Ok(None) => {}
            Err(_) => stream.txn.never_http = true,
        }
    }

    pub fn frontend_content<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.trace_begin(cx, stream);
        self.trace(cx, stream, Event::FrontendTcpRequest);
        let next = if stream.txn.is_http {
            Phase::FrontendBody
        } else {
            Phase::SwitchBackend
        };
        let step = self.content_rules(cx, stream, stream.frontend, next);
        if step == Step::Go(Phase::FrontendBody) {
            self.log_at(cx, stream, LogOrigin::Request);
        }
        step
    }

    pub fn backend_content<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = if stream.txn.is_http {
            Phase::BackendBody
        } else {
            Phase::AssignServer
        };
        if stream.backend == stream.frontend {
            return Step::Go(next);
        }
        self.trace(cx, stream, Event::BackendTcpRequest);
        self.content_rules(cx, stream, stream.backend, next)
    }

    pub fn frontend_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.trace(cx, stream, Event::FrontendHttpRequest);
        self.request_rules(cx, stream, stream.frontend, Phase::SwitchBackend)
    }

    pub fn backend_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let next = Phase::AssignServer;
        if stream.backend == stream.frontend {
            return Step::Go(next);
        }
        self.trace(cx, stream, Event::BackendHttpRequest);
        self.request_rules(cx, stream, stream.backend, next)
    }

    #[inline]
    fn request_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        proxy: usize,
        next: Phase,
    ) -> Step {
        if !self.restrict_names(cx, stream, proxy) {
            return Step::Wait;
        }
        for set in [RuleSet::Request, RuleSet::Redirect] {
            match self.http_rules(cx, stream, proxy, set) {
                Outcome::Continue => {}
                Outcome::Ended | Outcome::Wait => return Step::Wait,
            }
        }
        Step::Go(next)
    }

    /// `use_backend` in order, then `default_backend`; a `listen` serves itself.
    pub fn switch_backend<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.trace(cx, stream, Event::SwitchingRulesRequest);
        if stream.backend_counted {
            // Chosen before the stream became HTTP.
            return self.backend_chosen(cx, stream);
        }
        if cx.running.sniffs_http[stream.frontend] {
            self.sniff_http(cx, stream);
        }
        let proxy = cx.running.proxy(stream.frontend);
        let is_http = stream.txn.is_http;
        let mut chosen = None;
        let mut forced = None;
        for rule in &proxy.use_backend {
            let holds = match &rule.condition {
                Some(condition) => self.holds(cx, stream, condition),
                None => true,
            };
            if holds {
                chosen = match &rule.target {
                    BackendTarget::Static(backend) => Some(*backend),
                    BackendTarget::Dynamic(format) => {
                        let mut name = std::mem::take(&mut self.text);
                        self.render(cx, stream, format, &mut name);
                        // A name that no backend of this mode has falls through (manual §4.2 use_backend); one that is
                        // written out was checked when the configuration was loaded.
                        let named = cx.running.backend_named(&name, is_http);
                        name.clear();
                        self.text = name;
                        named
                    }
                };
                // One that is not eligible leaves it to the next rule.
                let passed_over = chosen.is_some();
                chosen = chosen.filter(|to| self.may_switch_to(cx, stream, *to, &mut forced));
                if chosen.is_some() || !passed_over {
                    break;
                }
            }
        }
        let default = || {
            let own = |to: &usize| *to == stream.frontend;
            let default = proxy.default_backend;
            default.filter(|to| own(to) || self.may_switch_to(cx, stream, *to, &mut forced))
        };
        let backend = chosen
            .or_else(default)
            .or(proxy.is_backend.then_some(stream.frontend));
        let Some(backend) = backend else {
            stream.ended_by(b'S', b'C');
            self.fail(cx, stream, 503);
            return Step::Wait;
        };
        let backend_is_http = cx.running.is_http(backend);
        if is_http && !backend_is_http {
            // Only a TCP frontend may have such a backend, for those of its streams that stay TCP.
            stream.ended_by(b'I', b'R');
            self.cut(cx, stream);
            return Step::Wait;
        }
        if backend != stream.frontend {
            stream.forget_server_limits();
            stream.begin_cookie_state(cx.running.proxy(backend));
        }
        stream.backend = backend;
        stream.txn.backend = Some(backend as u32);
        stream.backend_counted = true;
        self.count(Count::Backend(backend));
        self.mark(cx, Pace::Streams(backend));
        self.trace_backend(cx, stream);
        match is_http == backend_is_http {
            true => self.backend_chosen(cx, stream),
            false => self.upgrade(cx, stream),
        }
    }

    fn backend_chosen<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        let backend = cx.running.proxy(stream.backend);
        if !backend.persist_rules.is_empty() {
            self.persist_rules(cx, stream);
        }
        Step::Go(Phase::BackendContent)
    }

    /// A TCP stream goes on as HTTP (manual §4.4 switch-mode), and so do all later ones of its connection. What came is read
    /// again as a request; the frontend's HTTP rules are next.
    pub fn upgrade<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) -> Step {
        stream.txn.is_http = true;
        (stream.http_in_tcp, stream.txn.never_http) = (false, false);
        stream.inspecting = false;
        stream.after_head = Some(Phase::FrontendBody);
        if let Some(conn) = stream.client {
            if let Some(client) = self.conns.client(conn) {
                client.is_http = true;
            }
            let timeouts = &cx.running.timeouts[stream.frontend];
            self.set_deadline(conn, deadline(cx.now(), timeouts.http_request));
            self.poked.push(conn);
        }
        Step::Go(Phase::RequestHead)
    }

    /// Whether requests may go to a backend: one that is disabled or unpublished only where a `force-be-switch` holds,
    /// which is looked up at most once (`forced`).
    fn may_switch_to<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        backend: usize,
        forced: &mut Option<bool>,
    ) -> bool {
        cx.running.proxy(backend).is_eligible()
            || *forced.get_or_insert_with(|| {
                let conditions = &cx.running.proxy(stream.frontend).force_be_switch;
                conditions
                    .iter()
                    .any(|condition| self.holds(cx, stream, condition))
            })
    }

    /// What the proxy itself changes of a request: who it comes from, and how its connection goes on.
    pub fn prepare_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) -> Step {
        self.trace(cx, stream, Event::HttpProcessRequest);
        stream.request_processed(cx.now());
        if stream.body_cut {
            self.client_aborted(cx, stream);
            return Step::Wait;
        }
        let frontend = cx.running.proxy(stream.frontend);
        let backend = cx.running.proxy(stream.backend);
        if let Some(header) = &frontend.unique_id_header
            && self.unique_id(cx, stream).is_some()
            && let Some(id) = stream.txn.unique_id.get()
        {
            stream.request.append(header.as_bytes(), id);
        }
        self.add_forwarding_headers(cx, stream);
        // manual §4.2: `httpclose` closes its own side, `http-server-close` of either the server's.
        stream.keep_client &= frontend.connection_mode != ConnectionMode::Close;
        stream.keep_server = frontend.connection_mode != ConnectionMode::ServerClose
            && backend.connection_mode == ConnectionMode::KeepAlive;
        let version = stream.request_version();
        stream.request.set_version(version);
        // A server may not look for chunks in HTTP/1.0, and take them for its next request.
        let ambiguous = version == Version::Http10 && stream.parsed.framing == Framing::Chunked;
        stream.keep_server &= !ambiguous;
        if !stream.wants_tunnel {
            let keeps =
                stream.keep_server || (backend.options.http_pretend_keepalive && !ambiguous);
            match (keeps, version) {
                (false, Version::Http11) => stream.request.append(b"connection", b"close"),
                (true, Version::Http10) => stream.request.append(b"connection", b"keep-alive"),
                _ => {}
            }
        }
        stream.upload.drops_trailers = backend.options.http_drop_request_trailers;
        let retry_on = &backend.retry_on;
        stream.retriable =
            retry_on.keeps_requests() && !stream.retried_never && !stream.wants_tunnel;
        let events = [
            Event::TcpRdpCookieRequest,
            Event::ProcessStickingRulesRequest,
            Event::HttpHeadersRequest,
        ];
        self.trace_all(cx, stream, events);
        Step::Go(Phase::SelectServer)
    }
}

/// manual §4.2 monitor-uri: a path is compared with the request's path and query, anything else with its whole target.
fn is_monitored(uri: &[u8], request: &http::Head) -> bool {
    uri == request.target() || (uri.starts_with(b"/") && uri == request.path_and_query())
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
