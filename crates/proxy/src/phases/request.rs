//! The start of a request: begins the stream, reads the head, chooses the backend.

use config::model::{BackendTarget, Proto};
use http::h1::{self, Framing, Parsed, Strictness};
use http::{Head, Method, Version};
use net::Driver;
use sample::{BodyFacts, LogOrigin};
use tables::Event as Tally;
use telemetry::Event;

use super::{Cause, Cx};
use crate::ids::{ExchangeId, ProxyId};
use crate::link::Rules as ReadRules;
use crate::runtime_config::{RuntimeConfig, Skips, deadline};
use crate::shared::{Count, FrontCount, Pace};
use crate::stream::{HeadRead, Inspection, Phase, Rules, Step, Stream, Until};

/// The rules for reading requests of a frontend's clients.
#[inline]
pub(crate) fn request_read_rules(runtime_config: &RuntimeConfig, frontend: ProxyId) -> ReadRules {
    let options = &runtime_config.proxy(frontend).options;
    ReadRules {
        limits: runtime_config.limits(),
        strictness: if options.accept_unsafe_violations_in_http_request {
            Strictness::Relaxed
        } else {
            Strictness::Strict
        },
    }
}

impl Stream {
    /// A stream that has just begun follows this configuration.
    #[inline]
    pub(crate) fn follow(&mut self, runtime_config: &RuntimeConfig) {
        self.generation = runtime_config.generation;
        let log_plan = runtime_config.log_plan(self.frontend);
        self.log.moments = log_plan.moments;
        self.log.written = log_plan.is_silent;
        self.skips = runtime_config.frontend_skips(self.frontend);
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Begins a stream on a client's connection.
    pub fn begin_stream(&mut self, stream: &mut Stream, link: ExchangeId, number: u64) {
        let now = self.now();
        self.core.links.set_stream(link, Some(stream.id));
        let Some(client) = self.core.links.client_mut(link) else {
            return;
        };
        client.streams += 1;
        let (frontend, bind) = (client.frontend(), client.bind);
        stream.client = Some(link);
        stream.frontend = frontend;
        stream.backend = frontend;
        stream.follow(self.runtime_config);
        let txn = &mut stream.txn;
        txn.id = number;
        txn.first_request = client.streams == 1;
        txn.is_http = client.is_http;
        // The time of the first stream includes the handshakes.
        txn.timing.start = if txn.first_request {
            client.session.accepted
        } else {
            client.idle_since
        };
        txn.timing.request_start = Some(client.request_began.take().unwrap_or(now));
        if self.core.links.shares_connection(link) {
            txn.client_mux = self.core.links.mux_facts(link);
        } else if txn.first_request && txn.is_http {
            self.accounts().tell_bind(bind, FrontCount::SessionsH1);
        }
    }

    /// The head of a request is complete and in the stream. `behind`: the number of bytes at hand
    /// after the head.
    pub fn request_read(&mut self, stream: &mut Stream, parsed: Parsed, behind: usize) {
        if is_preface(&stream.request) {
            return self.request_refused(stream, parsed.consumed, 405);
        }
        self.mark(Pace::Requests(stream.frontend));
        stream.account.request_counted = true;
        stream.read = HeadRead {
            bytes: parsed.consumed,
            body: framed(parsed.framing, behind),
        };
        self.log_at(stream, LogOrigin::Accept);
        let Stream { request, txn, .. } = &mut *stream;
        txn.method = request.method();
        txn.request_body = BodyFacts {
            framing: parsed.framing,
            ..BodyFacts::default()
        };
        txn.bytes_in = parsed.consumed as u64;
        let line = &mut txn.request_line;
        line.clear();
        request.append_request_line(line);
        line.truncate(self.runtime_config.config.global.tune.http_logurilen_bytes);
        let is_old = request.version() == Version::Http10 && request.version_bytes() == b"HTTP/1.0";
        stream.is_old = is_old;
        stream.wants_tunnel = parsed.upgrade || stream.txn.method == Method::Connect;
        if matches!(parsed.framing, Framing::None | Framing::Length(0)) {
            self.upload_came(stream);
        }
        let frontend = self.runtime_config.proxy(stream.frontend);
        stream.begin_cookie_state(self.runtime_config.proxy(stream.backend));
        stream.txn.is_proxied = frontend.options.http_use_proxy_header
            && !stream.request.has_composed_target()
            && !stream.request.target().starts_with(b"/")
            && !stream.request.target().starts_with(b"*");
        stream.capture_request_fields(frontend);
        let next = if stream.was_tcp {
            self.accounts().tell_tables(stream, Tally::Request);
            Phase::FrontendBody(Until::default())
        } else if stream.skips.has(Skips::FRONTEND_REQUEST) {
            Phase::SwitchBackend
        } else {
            Phase::FrontendContent(Inspection::default())
        };
        stream.phase = next;
        let monitored = frontend.monitor_uri.as_deref();
        if monitored.is_some_and(|uri| is_monitored(uri, &stream.request)) {
            stream.ended_by(b'P', b'R');
            self.accounts().tell_front(stream, FrontCount::Intercepted);
            self.monitor(stream);
        }
    }

    /// A request's head is invalid.
    pub fn request_refused(&mut self, stream: &mut Stream, bytes: usize, status: u16) {
        self.request_unread(stream, bytes, Cause::BadRequest(status));
    }

    /// A request ends without a head that could be used: invalid, incomplete or not begun. Its
    /// `bytes` count nowhere, as in HAProxy; the request does.
    pub fn request_unread(&mut self, stream: &mut Stream, bytes: usize, cause: Cause) {
        self.mark(Pace::Requests(stream.frontend));
        stream.account.request_counted = true;
        stream.unread_bytes = bytes;
        self.accounts().tell_tables(stream, Tally::Request);
        if cause != Cause::ClientTimeout {
            self.accounts().tell_tables(stream, Tally::ClientError);
        }
        self.fail(stream, cause);
    }

    /// Looks for an HTTP request in the bytes of a TCP stream, for rules that read one (manual
    /// §7.3.5 req.proto_http).
    #[inline(never)]
    pub fn sniff_http(&mut self, stream: &mut Stream) {
        if stream.txn.is_http || stream.sniffed.is_http || stream.txn.never_http {
            return;
        }
        let rules = request_read_rules(self.runtime_config, stream.frontend);
        let bytes = &stream.up.waiting;
        if bytes.is_empty() || !stream.sniffed.resume.is_worth_it(bytes, rules.limits) {
            return;
        }
        match h1::parse_request(bytes, rules.limits, rules.strictness, &mut stream.request) {
            Ok(Some(_)) => stream.sniffed.is_http = true,
            Ok(None) => {}
            Err(_) => stream.txn.never_http = true,
        }
    }

    pub(super) fn frontend_content(&mut self, stream: &mut Stream, inspection: Inspection) -> Step {
        self.trace_begin(stream);
        self.trace(stream, Event::FrontendTcpRequest);
        let next = if stream.txn.is_http {
            Phase::FrontendBody(Until::default())
        } else {
            Phase::SwitchBackend
        };
        let step = self.content_rules(stream, stream.frontend, inspection, next);
        if step == Step::Go && matches!(stream.phase, Phase::FrontendBody(_)) {
            self.accounts().tell_tables(stream, Tally::Request);
            self.log_at(stream, LogOrigin::Request);
        }
        step
    }

    pub(super) fn backend_content(&mut self, stream: &mut Stream, inspection: Inspection) -> Step {
        let next = if stream.txn.is_http {
            Phase::BackendBody(Until::default())
        } else {
            Phase::AssignServer
        };
        if stream.backend == stream.frontend {
            return stream.go(next);
        }
        self.trace(stream, Event::BackendTcpRequest);
        let step = self.content_rules(stream, stream.backend, inspection, next);
        if self.runtime_config.has_tables && step == Step::Go {
            let now_ms = self.now_ms();
            let tracked = &stream.txn.tracked;
            tracked.count_backends(Tally::Request, now_ms);
        }
        step
    }

    pub(super) fn frontend_request(&mut self, stream: &mut Stream, rules: Rules) -> Step {
        self.trace(stream, Event::FrontendHttpRequest);
        self.request_rules(stream, stream.frontend, rules, Phase::SwitchBackend)
    }

    pub(super) fn backend_request(&mut self, stream: &mut Stream, rules: Rules) -> Step {
        let next = Phase::AssignServer;
        if stream.backend == stream.frontend {
            return stream.go(next);
        }
        self.trace(stream, Event::BackendHttpRequest);
        self.request_rules(stream, stream.backend, rules, next)
    }

    /// Evaluates `use_backend` in order, then `default_backend`; a `listen` section serves its own
    /// requests.
    pub(super) fn switch_backend(&mut self, stream: &mut Stream) -> Step {
        self.trace(stream, Event::SwitchingRulesRequest);
        if stream.backend_counted {
            // The backend was chosen before the stream switched to HTTP.
            return self.backend_chosen(stream);
        }
        if self.runtime_config.sniffs_http(stream.frontend) {
            self.sniff_http(stream);
        }
        let Some(backend) = self.choose_backend(stream) else {
            self.fail(stream, Cause::NoBackend);
            return Step::Wait;
        };
        let is_http = stream.txn.is_http;
        let backend_is_http = self.runtime_config.is_http(backend);
        if is_http && !backend_is_http {
            // Only a TCP frontend may name such a backend, for its streams that stay TCP.
            self.fail(stream, Cause::WrongMode);
            return Step::Wait;
        }
        if backend != stream.frontend {
            stream.forget_server_limits();
            stream.begin_cookie_state(self.runtime_config.proxy(backend));
        }
        stream.backend = backend;
        stream.skips = stream.skips.and(self.runtime_config.backend_skips(backend));
        stream.txn.backend = Some(backend.number());
        stream.backend_counted = true;
        self.core.count(Count::Backend(backend));
        self.mark(Pace::Streams(backend));
        let ambient = &self.core.ambient;
        ambient.shared.feed_retries(backend, self.now_ms());
        self.trace_backend(stream);
        if is_http == backend_is_http {
            self.backend_chosen(stream)
        } else {
            self.upgrade(stream, None)
        }
    }

    fn choose_backend(&mut self, stream: &mut Stream) -> Option<ProxyId> {
        let runtime_config = self.runtime_config;
        let proxy = runtime_config.proxy(stream.frontend);
        let is_http = stream.txn.is_http;
        let mut forced = None;
        sample::regex::forget_undecided();
        for (place, rule) in (0..).zip(&proxy.use_backend) {
            let holds = match &rule.condition {
                Some(condition) => self
                    .with_eval(stream, |eval, stream| eval.holds(stream, condition))
                    .unwrap_or(false),
                None => true,
            };
            if sample::regex::take_undecided() {
                // The default backend may be the one that the rule keeps the request from.
                return None;
            }
            if !holds {
                continue;
            }
            let named = match &rule.target {
                BackendTarget::Static(backend) => Some(ProxyId::at(*backend)),
                BackendTarget::Dynamic(format) => {
                    let mut name = Vec::new();
                    self.with_eval(stream, |eval, stream| {
                        eval.render(stream, format, &mut name);
                    });
                    // If no backend of this mode has the name, the default is used (manual §4.2
                    // use_backend). Static names were checked when the configuration was loaded.
                    let shared = &self.core.ambient.shared;
                    runtime_config.backend_named(&name, is_http, |id| shared.is_backend_deleted(id))
                }
            };
            match named {
                Some(backend) if self.may_switch_to(stream, backend, &mut forced) => {
                    stream.route.switched_by = Some(place);
                    return Some(backend);
                }
                // The backend is not eligible: the next rule is tried.
                Some(_) => {}
                None => break,
            }
        }
        let default = proxy.default_backend.map(ProxyId::at);
        let default = default
            .filter(|to| *to == stream.frontend || self.may_switch_to(stream, *to, &mut forced));
        default.or(proxy.is_backend.then_some(stream.frontend))
    }

    fn backend_chosen(&mut self, stream: &mut Stream) -> Step {
        if !self
            .runtime_config
            .proxy(stream.backend)
            .persist_rules
            .is_empty()
        {
            self.with_eval(stream, |eval, stream| {
                crate::persistence::persist_rules(eval, stream);
            });
        }
        if stream.txn.is_http && stream.skips.has(Skips::BACKEND_REQUEST) {
            return stream.go(Phase::PrepareRequest);
        }
        stream.go(Phase::BackendContent(Inspection::default()))
    }

    /// Switches a TCP stream and all later ones of its connection to HTTP (manual §4.4
    /// switch-mode). The bytes received so far are read again as a request; then the frontend's
    /// HTTP rules run.
    #[inline(never)]
    pub(super) fn upgrade(&mut self, stream: &mut Stream, proto: Option<Proto>) -> Step {
        let client = stream.client.and_then(|link| self.core.links.client(link));
        let bind = client.map(|client| self.runtime_config.bind(client.bind));
        let demanded = bind.and_then(|bind| bind.proto);
        if demanded == Some(Proto::Tcp) {
            // `proto none`: the bytes are not to be parsed.
            self.abandon(stream);
            return Step::Wait;
        }
        stream.txn.is_http = true;
        stream.was_tcp = true;
        (stream.sniffed.is_http, stream.txn.never_http) = (false, false);
        let came = std::mem::take(&mut stream.up.waiting);
        (stream.up.came, stream.up.done) = (false, false);
        stream.txn.bytes_in = 0;
        let Some(link) = stream.client else {
            return Step::Wait;
        };
        self.core.links.become_http1(link, stream.id, &came);
        if let Some(client) = self.core.links.client_mut(link) {
            client.is_http = true;
            client.proto = proto.or(demanded);
        }
        let timeout_ms = self.runtime_config.timeouts(stream.frontend).http_request;
        self.core.work.links.push_back(link.into());
        stream.go(Phase::RequestHead(Until(deadline(self.now(), timeout_ms))))
    }

    /// Whether requests may be sent to a backend. A disabled or unpublished one needs a
    /// `force-be-switch` that holds, which is evaluated at most once (`forced`). A deleted one,
    /// which is unpublished as well, is never allowed.
    fn may_switch_to(
        &mut self,
        stream: &mut Stream,
        backend: ProxyId,
        forced: &mut Option<bool>,
    ) -> bool {
        let is_published = self.core.ambient.shared.is_published(backend);
        if is_published && !self.runtime_config.proxy(backend).disabled {
            return true;
        }
        if self.core.ambient.shared.is_backend_deleted(backend) {
            return false;
        }
        let conditions = &self.runtime_config.proxy(stream.frontend).force_be_switch;
        *forced.get_or_insert_with(|| {
            self.with_eval(stream, |eval, stream| {
                conditions
                    .iter()
                    .any(|condition| eval.holds(stream, condition))
            })
            .unwrap_or(false)
        })
    }
}

/// Whether a request is the HTTP/2 preface where HTTP/2 is not enabled (RFC 9113 §3.4).
fn is_preface(request: &Head) -> bool {
    request.method() == Method::Other
        && request.method_bytes() == b"PRI"
        && request.target() == b"*"
}

/// manual §4.2 monitor-uri: a path is compared with the request's path and query, anything else
/// with its whole target.
pub(crate) fn is_monitored(uri: &[u8], request: &Head) -> bool {
    uri == request.target() || (uri.starts_with(b"/") && uri == request.path_and_query())
}

/// How many of the `bytes` after a head can belong to its body.
pub(super) fn framed(framing: Framing, bytes: usize) -> usize {
    match framing {
        Framing::None => 0,
        Framing::Length(length) => bytes.min(usize::try_from(length).unwrap_or(usize::MAX)),
        Framing::Chunked | Framing::UntilClose => bytes,
    }
}
