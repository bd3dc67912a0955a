//! `option tracing`: the spans of a request and of its tries, with OpenTelemetry's semantic
//! conventions for HTTP.

use std::net::IpAddr;

use config::model::UseBackend;
use http::Name;
use net::{Addr, Now};
use telemetry::program::http::{Key, span_name};
use telemetry::program::{Direction, Evaluated, SpanKind, StatusCode};
use telemetry::propagation;
use telemetry::record::{Arena, Owner, Parent, SpanIndex, Tracer};

use super::Worker;
use super::propagation::from_format;
use crate::ids::{ProxyId, ServerId};
use crate::logging::Scene;
use crate::stream::{Attached, Requests, Stream};

/// Sets a text attribute.
fn text(attached: &mut Attached, span: SpanIndex, key: Key, text: &[u8]) {
    let text = attached.trace.arena.text(text);
    set(attached, span, key, Evaluated::Text(text));
}

fn int(attached: &mut Attached, span: SpanIndex, key: Key, value: i64) {
    set(attached, span, key, Evaluated::Int(value));
}

fn set(attached: &mut Attached, span: SpanIndex, key: Key, value: Evaluated) {
    attached
        .trace
        .attribute(Owner::Span(span), key.text(), value);
}

fn written(arena: &mut Arena, write: impl FnOnce(&mut Vec<u8>)) -> Evaluated {
    Evaluated::Text(arena.write(write))
}

/// Sets the attributes of an address, and of its port if there is one.
fn address(attached: &mut Attached, span: SpanIndex, keys: (Key, Option<Key>), addr: &Addr) {
    let Some(ip) = addr.ip() else { return };
    let value = written(&mut attached.trace.arena, |out| {
        sample::text::push_ip(out, ip)
    });
    set(attached, span, keys.0, value);
    if let Some(key) = keys.1 {
        int(attached, span, key, i64::from(addr.port()));
    }
}

/// Sets the attributes of the requested URL.
fn asked(attached: &mut Attached, span: SpanIndex, request: &http::Head, tls: bool) {
    let method = request.method_bytes();
    if span_name(method) == 0 {
        text(attached, span, Key::RequestMethod, b"_OTHER");
        text(attached, span, Key::RequestMethodOriginal, method);
    } else {
        text(attached, span, Key::RequestMethod, method);
    }
    text(attached, span, Key::UrlPath, request.path());
    if let Some(query) = request.query().filter(|query| !query.is_empty()) {
        text(attached, span, Key::UrlQuery, query);
    }
    if let Some(value) = request.get(Name::Host) {
        host(attached, span, value, tls);
    }
    if let Some(agent) = request.get(Name::UserAgent) {
        text(attached, span, Key::UserAgent, agent);
    }
    let version = request.version_bytes();
    let version = version.strip_prefix(b"HTTP/").unwrap_or(version);
    text(attached, span, Key::ProtocolVersion, version);
}

/// Sets the attributes of a host and its port, from `Host`; the port defaults to that of the
/// scheme.
fn host(attached: &mut Attached, span: SpanIndex, value: &[u8], tls: bool) {
    let end = value.iter().rposition(|byte| *byte == b':');
    let written = end.and_then(|end| {
        let port = std::str::from_utf8(&value[end + 1..]).ok()?;
        Some((&value[..end], port.parse::<u16>().ok()?))
    });
    let (name, port) = match written {
        Some((name, port)) => (name, Some(port)),
        None => (value, None),
    };
    text(attached, span, Key::ServerAddress, name);
    let port = port.unwrap_or(if tls { 443 } else { 80 });
    int(attached, span, Key::ServerPort, i64::from(port));
}

impl Worker {
    /// A request begins: starts its span with the attributes of the client's request.
    pub(super) fn begin_request(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
    ) {
        let filter = &scene.eval.runtime_config.tracing.filters[attached.filter];
        let formats = &scene.eval.runtime_config.config.otel[attached.filter].formats;
        let found = formats
            .iter()
            .find_map(|format| from_format(attached, &mut self.came, &stream.request, *format));
        let parent = found.map(|found| Parent {
            context: found.context,
            state: found.state,
            baggage: found.baggage,
        });
        let head = filter.head();
        let began = stream.txn.timing.request_start.unwrap_or(scene.eval.now);
        // An invalid request has no method.
        let was_read = !stream.txn.request_line.is_empty();
        let method = if was_read {
            stream.request.method_bytes()
        } else {
            b""
        };
        let started = attached.trace.start_span(
            span_name(method),
            SpanKind::Server,
            parent,
            Direction::Request,
            began,
            Tracer {
                ids: &mut self.ids,
                head,
            },
        );
        attached.requests = Requests {
            server: started,
            ..Requests::default()
        };
        let Some(span) = started.filter(|span| attached.trace.span(*span).is_recorded) else {
            return;
        };
        let session = Some(&*scene.eval.session);
        let tls = session.is_some_and(|session| session.tls.is_some());
        let scheme: &[u8] = if tls { b"https" } else { b"http" };
        text(attached, span, Key::UrlScheme, scheme);
        if was_read {
            asked(attached, span, &stream.request, tls);
        }
        if let Some(session) = session {
            let src = session.src_of(Some(&stream.txn));
            address(attached, span, (Key::ClientAddress, None), src);
            let peer = session.connection_src.as_deref().unwrap_or(&session.src);
            let keys = (Key::PeerAddress, Some(Key::PeerPort));
            address(attached, span, keys, peer);
        }
    }

    /// A try begins: starts its span, whose context is sent to the server.
    pub(super) fn begin_try(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        at: Now,
    ) {
        let Some(server) = attached.requests.server else {
            return;
        };
        // Ends a previous try that failed without an event.
        end_try(attached, stream, at, None);
        let filter = &scene.eval.runtime_config.tracing.filters[attached.filter];
        let head = filter.head();
        let parent = attached.trace.span(server);
        let parent = Parent {
            context: parent.context,
            state: parent.state,
            baggage: parent.baggage,
        };
        let started = attached.trace.start_span(
            span_name(stream.request.method_bytes()),
            SpanKind::Client,
            Some(parent),
            Direction::Request,
            at,
            Tracer {
                ids: &mut self.ids,
                head,
            },
        );
        let tries = attached.requests.tries;
        attached.requests.tries += 1;
        attached.requests.client = started;
        let told = attached.trace.span(started.unwrap_or(server));
        let arena = &attached.trace.arena;
        let (state, baggage) = (arena.get(told.state), arena.get(told.baggage));
        let request = &mut stream.request;
        for format in &scene.eval.runtime_config.config.otel[attached.filter].formats {
            for field in format.writes() {
                request.remove_all(field.name().as_bytes());
            }
            propagation::inject(*format, &told.context, state, baggage, |field, value| {
                request.append(field.name().as_bytes(), value);
            });
        }
        let Some(span) = started.filter(|span| attached.trace.span(*span).is_recorded) else {
            return;
        };
        let request = &stream.request;
        text(attached, span, Key::RequestMethod, request.method_bytes());
        if tries > 0 {
            int(attached, span, Key::ResendCount, i64::from(tries));
        }
        let target = stream.txn.server_dst.as_ref();
        let line = stream
            .route
            .target
            .and_then(|server| scene.eval.servers.find(server));
        let addr = target.or(match line.map(|line| &line.address) {
            Some(config::model::ServerAddress::Fixed(addr)) => Some(addr),
            _ => None,
        });
        if let Some(addr) = addr {
            let keys = (Key::ServerAddress, Some(Key::ServerPort));
            address(attached, span, keys, addr);
            let keys = (Key::PeerAddress, Some(Key::PeerPort));
            address(attached, span, keys, addr);
            if let Some(ip) = addr.ip() {
                let path = request.path_and_query();
                let value = written(&mut attached.trace.arena, |out| {
                    full_url(out, ip, addr.port(), path);
                });
                set(attached, span, Key::UrlFull, value);
            }
        }
        if let Some(line) = line {
            text(attached, span, Key::Server, line.name.as_bytes());
        }
    }

    /// Ends the span of the request.
    pub(super) fn end_request(stream: &Stream, attached: &mut Attached, at: Now) {
        end_try(attached, stream, at, Some(stream.txn.server_status));
        if let Some(span) = attached.requests.server {
            attached.trace.span_mut(span).end_mono_ns = at.mono_ns.max(1);
        }
    }

    /// The request is kept: adds its outcome and the reasons to its span.
    pub(super) fn describe_request(
        &self,
        scene: &Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
    ) {
        let recorded = |span: &SpanIndex| attached.trace.span(*span).is_recorded;
        let Some(span) = attached.requests.server.filter(recorded) else {
            return;
        };
        let txn = &stream.txn;
        if txn.status != 0 {
            int(attached, span, Key::StatusCode, i64::from(txn.status));
        }
        let [who, when, ..] = txn.termination;
        // A client's fault is not an error of the server's span (semantic conventions, HTTP, span
        // status).
        let failed = txn.status >= 500 || (txn.status == 0 && who != b'C');
        if failed {
            attached.trace.span_mut(span).status = StatusCode::Error;
        }
        if failed || who != 0 && who != b'L' && who != b'P' {
            let kind = error_type(&mut attached.trace.arena, txn.status, who);
            set(attached, span, Key::ErrorType, kind);
        }
        name_by_route(scene, stream, attached, span);
        self.explain(scene, stream, attached, span);
        let state = [who, when].map(|letter| if letter == 0 { b'-' } else { letter });
        text(attached, span, Key::Termination, &state);
    }

    /// Adds the attributes that only the proxy knows.
    fn explain(
        &self,
        scene: &Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
        span: SpanIndex,
    ) {
        let txn = &stream.txn;
        let name = |proxy: ProxyId| scene.eval.runtime_config.proxy(proxy).name.as_bytes();
        text(attached, span, Key::Frontend, name(stream.frontend));
        if txn.backend.is_some() {
            text(attached, span, Key::Backend, name(stream.backend));
        }
        let server = txn.server.and_then(|server| {
            let server = ServerId::at(stream.backend, server as usize);
            scene.eval.servers.find(server)
        });
        if let Some(server) = server {
            text(attached, span, Key::Server, server.name.as_bytes());
            let reused = Evaluated::Bool(txn.server_reused);
            set(attached, span, Key::ServerReused, reused);
            let balance = || {
                scene
                    .eval
                    .runtime_config
                    .proxy(stream.backend)
                    .balance
                    .facts()
                    .name
            };
            let choice = stream.route.persist.choice().unwrap_or_else(balance);
            text(attached, span, Key::ServerChoice, choice.as_bytes());
        }
        let frontend = scene.eval.runtime_config.proxy(stream.frontend);
        let is_switched = txn.backend.is_some() && stream.backend != stream.frontend;
        let switched = match switching_rule(scene, stream) {
            Some(rule) => Some(rule.place),
            None => frontend.default_backend_place.filter(|_| is_switched),
        };
        let rules = &scene.eval.runtime_config.proxy(stream.backend).use_server;
        let server_rule = stream.route.persist.rule();
        let server_rule = server_rule.and_then(|rule| rules.get(rule));
        let bound = server_rule.filter(|_| server.is_some());
        let answered = stream.route.answered_by;
        for (key, place) in [
            (Key::BackendRule, switched),
            (Key::ServerRule, bound.map(|rule| rule.place)),
            (Key::Rule, answered.or(txn.last_rule)),
        ] {
            let Some(place) = place else { continue };
            let file = scene
                .eval
                .runtime_config
                .config
                .files
                .get(place.file as usize);
            let value = written(&mut attached.trace.arena, |out| {
                out.extend_from_slice(file.map_or("", String::as_str).as_bytes());
                out.push(b':');
                sample::text::push_uint(out, u64::from(place.line));
            });
            set(attached, span, key, value);
        }
        if txn.retries > 0 {
            int(attached, span, Key::Retries, i64::from(txn.retries));
        }
        if txn.redispatched {
            set(attached, span, Key::Redispatched, Evaluated::Bool(true));
        }
        let waited = txn.server_queue.max(txn.backend_queue);
        if waited > 0 {
            int(attached, span, Key::QueuePosition, i64::from(waited));
        }
        let timing = &txn.timing;
        let began = timing.request_start.map(Now::ms);
        let moments = [
            (Key::RequestMs, began, timing.request_complete_ms),
            (Key::QueueMs, timing.request_complete_ms, timing.queued_ms),
            (Key::ConnectMs, timing.queued_ms, timing.connected_ms),
            (
                Key::ResponseMs,
                timing.connected_ms,
                timing.response_start_ms,
            ),
        ];
        for (key, from, to) in moments {
            if let (Some(from), Some(to)) = (from, to) {
                int(attached, span, key, to.saturating_sub(from) as i64);
            }
        }
        int(attached, span, Key::BytesIn, txn.bytes_in as i64);
        int(attached, span, Key::BytesOut, txn.bytes_out as i64);
    }
}

/// The `use_backend` rule that chose the backend; none if no such rule did.
fn switching_rule<'r>(scene: &Scene<'r>, stream: &Stream) -> Option<&'r UseBackend> {
    let frontend = scene.eval.runtime_config.proxy(stream.frontend);
    frontend.use_backend.get(stream.route.switched_by? as usize)
}

/// Sets the route of a request: the option's value, or the path pattern of the `use_backend` rule
/// that chose the backend. The route is an attribute and part of the span's name.
fn name_by_route(scene: &Scene<'_>, stream: &Stream, attached: &mut Attached, span: SpanIndex) {
    let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
    let arena = &mut attached.trace.arena;
    let route = match &program.route {
        Some(route) => {
            let write = |facts: &sample::Scope<'_>| route.text(facts, arena);
            scene.eval.with_scope(stream, true, write)
        }
        None => {
            let condition = switching_rule(scene, stream).and_then(|rule| rule.condition.as_ref());
            let Some(condition) = condition else {
                return;
            };
            let path = stream.request.path();
            arena.write(|out| {
                condition.append_route(path, out);
            })
        }
    };
    if route.is_empty() {
        return;
    }
    set(attached, span, Key::Route, Evaluated::Text(route));
    let method = program
        .spans
        .get(usize::from(attached.trace.span(span).name));
    let method = method.map_or("HTTP", |name| name);
    let arena = &mut attached.trace.arena;
    let name = arena.edit([route], |[route], out| {
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(route);
    });
    attached.trace.span_mut(span).name_text = name;
}

/// Ends the current try with the server's status; none where the try failed before.
pub(super) fn end_try(attached: &mut Attached, stream: &Stream, at: Now, status: Option<u16>) {
    let Some(span) = attached.requests.client.take() else {
        return;
    };
    attached.trace.span_mut(span).end_mono_ns = at.mono_ns.max(1);
    if !attached.trace.span(span).is_recorded {
        return;
    }
    let status = status.unwrap_or(0);
    if status != 0 {
        int(attached, span, Key::StatusCode, i64::from(status));
    }
    if status == 0 || status >= 400 {
        attached.trace.span_mut(span).status = StatusCode::Error;
        let [who, ..] = stream.txn.termination;
        let kind = error_type(&mut attached.trace.arena, status, who);
        set(attached, span, Key::ErrorType, kind);
    }
}

/// `error.type`: the status, or the kind of failure without one.
fn error_type(arena: &mut Arena, status: u16, who: u8) -> Evaluated {
    let what: &[u8] = match (status, who) {
        (400.., _) => {
            return written(arena, |out| sample::text::push_uint(out, u64::from(status)));
        }
        (_, b'c' | b's') => b"timeout",
        (_, b'C') => b"client_abort",
        (_, b'S') => b"server_failure",
        (_, b'R') => b"resource_exhausted",
        (_, b'I') => b"internal_error",
        _ => b"_OTHER",
    };
    Evaluated::Text(arena.text(what))
}

fn full_url(out: &mut Vec<u8>, ip: IpAddr, port: u16, path: &[u8]) {
    out.extend_from_slice(b"http://");
    match ip {
        IpAddr::V4(_) => sample::text::push_ip(out, ip),
        IpAddr::V6(_) => {
            out.push(b'[');
            sample::text::push_ip(out, ip);
            out.push(b']');
        }
    }
    out.push(b':');
    sample::text::push_uint(out, u64::from(port));
    out.extend_from_slice(path);
}
