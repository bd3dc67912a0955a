//! Responses made here: error pages, `return`, `deny`, redirects, the monitor's answer.

use config::model::{
    ErrorPage, HttpAction, Redirect, RedirectKind, RedirectOptions, Reply, ReplyBody,
};
use http::h1::{self, Strictness};
use http::{Head, Method};
use net::Driver;
use telemetry::Event;

use crate::engine::{Core, Cx};
use crate::error_pages;
use crate::stream::transfer::{Coding, Transfer};
use crate::stream::{Phase, Stream};

impl Core {
    /// Ends a stream with an error page, or cuts it where its response has begun.
    pub fn fail<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, status: u16) {
        if !stream.txn.is_http || stream.answered {
            return self.cut(cx, stream);
        }
        self.error_page(cx, stream, status);
    }

    /// Refuses a request whose rest is not understood or will not come: nothing after it on this connection can be either.
    pub fn refuse_request<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        status: u16,
    ) {
        stream.keep_client = false;
        stream.upload.done = true;
        self.fail(cx, stream, status);
    }

    fn error_page<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, status: u16) {
        let configured = [stream.backend, stream.frontend]
            .into_iter()
            .find_map(|proxy| {
                let pages = &cx.running.proxy(proxy).error_pages;
                pages
                    .iter()
                    .find(|(of, _)| *of == status)
                    .map(|(_, page)| page)
            });
        stream.txn.status = status;
        match configured {
            Some(ErrorPage::Reply(reply)) if matches!(reply.body, ReplyBody::Default) => {
                self.builtin_page(cx, stream, status)
            }
            Some(ErrorPage::Reply(reply)) => self.reply(cx, stream, reply),
            Some(ErrorPage::Raw(raw)) => self.raw_page(cx, stream, status, raw),
            Some(ErrorPage::Redirect {
                status: code,
                location,
            }) => {
                begin(&mut stream.response, *code);
                stream.response.append(b"cache-control", b"no-cache");
                put_length(&mut stream.response, 0);
                stream.response.append(b"location", location.as_bytes());
                self.answer(cx, stream, b"");
            }
            None => self.builtin_page(cx, stream, status),
        }
    }

    fn builtin_page<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, status: u16) {
        let reason = error_pages::page_reason(status);
        let text = error_pages::text(status).unwrap_or_default();
        let body = format!("<html><body><h1>{status} {reason}</h1>\n{text}\n</body></html>\n");
        begin(&mut stream.response, status);
        stream.response.set_status(status, reason.as_bytes());
        put_length(&mut stream.response, body.len());
        stream.response.append(b"cache-control", b"no-cache");
        stream.response.append(b"content-type", b"text/html");
        // What was not understood, or did not come, leaves nothing to go on with.
        stream.keep_client &= !matches!(status, 400 | 408);
        self.answer(cx, stream, body.as_bytes());
    }

    /// A whole response from a file (`errorfile`), checked when the configuration was loaded.
    fn raw_page<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        status: u16,
        raw: &[u8],
    ) {
        if raw.is_empty() {
            // manual §4.2 errorfile: an empty file closes the connection without an answer.
            return self.cut(cx, stream);
        }
        let limits = h1::Limits {
            head_bytes_max: raw.len() + 1,
            fields_max: usize::MAX,
        };
        match h1::parse_response(
            raw,
            Method::Get,
            limits,
            Strictness::Relaxed,
            &mut stream.response,
        ) {
            Ok(Some(parsed)) => {
                for name in [&b"content-length"[..], b"transfer-encoding", b"connection"] {
                    stream.response.remove_all(name);
                }
                stream.keep_client &= parsed.keep_alive;
                let body = &raw[parsed.consumed..];
                put_length(&mut stream.response, body.len());
                self.answer(cx, stream, body);
            }
            _ => self.builtin_page(cx, stream, status),
        }
    }

    /// `return`, `deny`, `tarpit`: what the rule says (manual §4.4).
    pub fn reply<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, reply: &Reply) {
        let mut body = Vec::new();
        match &reply.body {
            ReplyBody::Default => return self.error_page(cx, stream, reply.status),
            ReplyBody::Raw(raw) => {
                stream.txn.status = reply.status;
                return self.raw_page(cx, stream, reply.status, raw);
            }
            ReplyBody::Empty => {}
            ReplyBody::Fixed(bytes) => body.extend_from_slice(bytes),
            ReplyBody::Format(format) => self.render(cx, stream, format, &mut body),
        }
        let mut response = std::mem::take(&mut stream.response);
        begin(&mut response, reply.status);
        // The old response is out of the rules' sight from here on; the request is not.
        for (name, format) in &reply.headers {
            let mut value = std::mem::take(&mut self.text);
            self.render(cx, stream, format, &mut value);
            if !value.is_empty() {
                response.append(name.as_bytes(), &value);
            }
            value.clear();
            self.text = value;
        }
        put_length(&mut response, body.len());
        if let Some(kind) = reply.content_type.as_ref().filter(|_| !body.is_empty()) {
            response.append(b"content-type", kind.as_bytes());
        }
        stream.response = response;
        stream.txn.status = reply.status;
        self.answer(cx, stream, &body);
    }

    /// `redirect` (manual §4.2): whether it applies. `when`: the second letter of the termination state.
    pub fn redirect<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        redirect: &Redirect,
        when: u8,
    ) -> bool {
        let options = &redirect.options;
        let mut location = std::mem::take(&mut self.text);
        match &redirect.kind {
            RedirectKind::Location(format) => {
                self.render(cx, stream, format, &mut location);
                if location.is_empty() && options.ignore_empty {
                    self.text = location;
                    return false;
                }
                if options.keep_query {
                    append_query(&stream.request, &mut location);
                }
            }
            RedirectKind::Prefix(format) => {
                self.render(cx, stream, format, &mut location);
                append_path(&stream.request, options, &mut location);
            }
            RedirectKind::Scheme(format) => {
                self.render(cx, stream, format, &mut location);
                location.extend_from_slice(b"://");
                location
                    .extend_from_slice(stream.request.get(http::Name::Host).unwrap_or_default());
                append_path(&stream.request, options, &mut location);
            }
        }
        // The response that it replaces is still seen by what its cookie is made of.
        let mut cookie = Vec::new();
        if let Some(format) = &options.set_cookie {
            self.render(cx, stream, format, &mut cookie);
        }
        begin(&mut stream.response, redirect.code);
        put_length(&mut stream.response, 0);
        stream.response.append(b"location", &location);
        if matches!(redirect.code, 302 | 303 | 307) {
            stream.response.append(b"cache-control", b"no-cache");
        }
        if options.set_cookie.is_some() {
            stream.response.append(b"set-cookie", &cookie);
        }
        location.clear();
        self.text = location;
        stream.ended_by(b'L', when);
        stream.request_processed(cx.now());
        stream.txn.status = redirect.code;
        self.answer(cx, stream, b"");
        true
    }

    /// `auth`: 401, or 407 to one that takes us for its proxy, with the challenge of the rule at `place`.
    pub fn ask_credentials<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        place: (usize, usize),
    ) {
        stream.challenge = Some(place);
        let status = if stream.txn.is_proxied { 407 } else { 401 };
        self.error_page(cx, stream, status);
    }

    /// Puts the challenge of `auth` into the page that is about to leave, in place of the page's own.
    fn challenge<D: Driver>(&self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let Some((proxy, place)) = stream.challenge.take() else {
            return;
        };
        let proxy = cx.running.proxy(proxy);
        let rule = &proxy.http_request[place];
        if let HttpAction::Auth { realm } = &rule.action {
            let realm = realm.as_deref().unwrap_or(proxy.name.as_bytes());
            let name: &[u8] = match stream.txn.is_proxied {
                true => b"proxy-authenticate",
                false => b"www-authenticate",
            };
            stream.response.remove_all(name);
            let challenge = [b"Basic realm=\"", realm, b"\""].concat();
            stream.response.append(name, &challenge);
        }
    }

    /// The redirect of a server with `redir`: to its prefix, with the request's path and query.
    pub fn redirect_to_server<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        prefix: &[u8],
    ) {
        let mut location = std::mem::take(&mut self.text);
        // A lone slash leaves the place as it is.
        if prefix != b"/" {
            location.extend_from_slice(prefix);
        }
        location.extend_from_slice(stream.request.path_and_query());
        begin(&mut stream.response, 302);
        stream.response.append(b"cache-control", b"no-cache");
        put_length(&mut stream.response, 0);
        stream.response.append(b"location", &location);
        location.clear();
        self.text = location;
        stream.ended_by(b'L', b'C');
        stream.txn.status = 302;
        self.answer(cx, stream, b"");
    }

    /// `monitor-uri`, `monitor fail`: answered before any rule, not counted as traffic.
    pub fn monitor<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.logged = true;
        let conditions = &cx.running.proxy(stream.frontend).monitor_fail;
        let fails = conditions
            .iter()
            .any(|condition| self.holds(cx, stream, condition));
        self.error_page(cx, stream, if fails { 503 } else { 200 });
    }

    /// Sends the response that was put together, with its body.
    fn answer<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, body: &[u8]) {
        let Some(client) = stream.client else { return };
        self.give_up_queue(cx, stream);
        stream.waiting_rule = None;
        stream.paused = false;
        stream.wants_tunnel = false;
        stream.keep_server = false;
        self.challenge(cx, stream);
        let status = stream.response.status();
        if stream.parsed.expect_continue && !stream.upload.done {
            // The client still waits to be asked for its body: it may as well never send it.
            stream.keep_client = false;
        }
        // A request that was not read has no stream yet in HAProxy: no rule sees its answer.
        if stream.phase != Phase::RequestHead && !stream.rules_failed {
            self.respond(cx, stream);
            self.trace(cx, stream, Event::HttpReply);
            (stream.head_read, stream.body_read) = (0, body.len());
            if !self.after_response_rules(cx, stream) {
                return self.error_page(cx, stream, 500);
            }
        }
        self.finish_response_head(cx, stream);
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        h1::write_response(&stream.response, &mut out);
        let options = &cx.running.proxy(stream.frontend).options;
        let bogus = options.h1_case_adjust_bogus_client;
        crate::names::adjust_case(cx.running, bogus, &mut out);
        let body = if is_bodiless(status) || stream.txn.method == Method::Head {
            &[][..]
        } else {
            body
        };
        stream.txn.bytes_out += (out.len() + body.len()) as u64;
        self.send(cx, client, &out, body);
        out.clear();
        self.scratch = out;
        stream.answered = true;
        stream.download = Transfer::finished();
        // What is left of the request is read and thrown away, so that the connection can go on.
        stream.upload.open = true;
        self.release_server(cx, stream);
        stream.upload.coding = Coding::Discard;
        if !stream.upload.done {
            // The part of it that is here already.
            self.poked.push(client);
        }
        stream.phase = Phase::Transfer;
        self.run(cx, stream);
    }
}

fn begin(response: &mut Head, status: u16) {
    response.clear();
    response.set_version(http::Version::Http11);
    response.set_status(status, error_pages::reason(status).as_bytes());
}

/// Responses that never have a body (RFC 9110 §6.4.1).
pub(crate) fn is_bodiless(status: u16) -> bool {
    status < 200 || status == 204 || status == 304
}

/// Appends the length of the body, where the status may have one.
pub(crate) fn put_length(response: &mut Head, bytes: usize) {
    if !is_bodiless(response.status()) {
        let mut digits = [0; 20];
        response.append(
            b"content-length",
            sample::text::decimal(bytes as u64, &mut digits),
        );
    }
}

fn append_path(request: &Head, options: &RedirectOptions, location: &mut Vec<u8>) {
    let path = match (request.path_and_query(), options.drop_query) {
        ([], _) => b"/",
        (_, true) => request.path(),
        (path, false) => path,
    };
    location.extend_from_slice(path);
    if options.append_slash && !location.ends_with(b"/") {
        location.push(b'/');
    }
}

/// Appends the request's query, if it has one, to what the place brings.
fn append_query(request: &Head, location: &mut Vec<u8>) {
    let Some(query) = request.query().filter(|query| !query.is_empty()) else {
        return;
    };
    match location.iter().position(|byte| *byte == b'?') {
        None => location.push(b'?'),
        Some(at) if at + 1 < location.len() => location.push(b'&'),
        Some(_) => {}
    }
    location.extend_from_slice(query);
}
