//! Responses of our own: error pages, `return`, `deny`, redirects, the monitor's response.

use std::sync::Arc;

use config::model::{ErrorPage, HttpAction, REALM_DEFAULT, Reply, ReplyBody};
use http::Method;
use http::h1::{self, Framing, Strictness};
use net::Driver;

use super::Cx;
use crate::ids::RuleId;
use crate::rules::RuleSet;
use crate::rules::answers::put_fields;
use crate::rules::status::{self, begin_response, is_bodiless};
use crate::statistics::generated_body::GeneratedBody;
use crate::stream::{HeadRead, Page, Phase, ServerEnd, Stream};

/// The body of a response of our own.
pub(super) enum Body {
    Nothing,
    /// Made for this response.
    Made(Vec<u8>),
    /// Part of the configuration, from this offset on.
    Kept(Arc<[u8]>, usize),
    /// Made while it is sent; its length is not known in advance.
    Growing(Box<GeneratedBody>),
}

impl Body {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::Nothing | Body::Growing(_) => &[],
            Body::Made(bytes) => bytes,
            Body::Kept(bytes, from) => &bytes[*from..],
        }
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Responds with the page for a status: from the configuration, or our own.
    pub(super) fn error_page(&mut self, stream: &mut Stream, status: u16) {
        let runtime_config = self.runtime_config;
        let configured = [stream.backend, stream.frontend]
            .into_iter()
            .find_map(|proxy| {
                let pages = &runtime_config.proxy(proxy).error_pages;
                let page = pages.iter().find(|(of, _)| *of == status);
                page.map(|(_, page)| page)
            });
        stream.txn.status = status;
        match configured {
            Some(ErrorPage::Reply(reply)) if matches!(reply.body, ReplyBody::Default) => {
                self.builtin_page(stream, status);
            }
            Some(ErrorPage::Reply(reply)) => self.reply(stream, reply),
            Some(ErrorPage::Raw(raw)) => self.raw_page(stream, status, raw),
            Some(ErrorPage::Redirect {
                status: code,
                location,
            }) => {
                begin_response(&mut stream.response, *code);
                stream.response.append(b"cache-control", b"no-cache");
                stream.response.set_framing(Framing::Length(0));
                stream.response.append(b"location", location.as_bytes());
                self.answer(stream, Body::Nothing);
            }
            None => self.builtin_page(stream, status),
        }
    }

    fn builtin_page(&mut self, stream: &mut Stream, status: u16) {
        let reason = status::page_reason(status);
        let text = status::text(status).unwrap_or_default();
        let body = format!("<html><body><h1>{status} {reason}</h1>\n{text}\n</body></html>\n");
        let response = &mut stream.response;
        begin_response(response, status);
        response.set_status(status, reason.as_bytes());
        if !is_bodiless(status) {
            response.set_framing(Framing::Length(body.len() as u64));
        }
        response.append(b"cache-control", b"no-cache");
        response.append(b"content-type", b"text/html");
        // The request was not understood or incomplete, so the connection cannot be kept.
        stream.close_client |= matches!(status, 400 | 408);
        self.answer(stream, Body::Made(body.into_bytes()));
    }

    /// Sends a complete response from a file (`errorfile`), which was checked when the
    /// configuration was loaded.
    fn raw_page(&mut self, stream: &mut Stream, status: u16, raw: &Arc<[u8]>) {
        if raw.is_empty() {
            // manual §4.2 errorfile: an empty file closes the connection without a response.
            return self.cut(stream);
        }
        let limits = h1::Limits {
            head_bytes_max: raw.len() + 1,
            fields_max: usize::MAX,
        };
        let response = &mut stream.response;
        match h1::parse_response(raw, Method::Get, limits, Strictness::Relaxed, response) {
            Ok(Some(parsed)) => {
                response.remove_all(b"connection");
                let length = (raw.len() - parsed.consumed) as u64;
                response.set_framing(if is_bodiless(response.status()) {
                    Framing::None
                } else {
                    Framing::Length(length)
                });
                stream.close_client |= !parsed.keep_alive;
                self.answer(stream, Body::Kept(Arc::clone(raw), parsed.consumed));
            }
            _ => self.builtin_page(stream, status),
        }
    }

    /// `return`, `deny`, `tarpit`: responds as the rule says (manual §4.4).
    pub(super) fn reply(&mut self, stream: &mut Stream, reply: &Reply) {
        let body = match &reply.body {
            ReplyBody::Default => return self.error_page(stream, reply.status),
            ReplyBody::Raw(raw) => {
                stream.txn.status = reply.status;
                return self.raw_page(stream, reply.status, raw);
            }
            ReplyBody::Empty => Body::Nothing,
            ReplyBody::Fixed(bytes) => Body::Kept(Arc::clone(bytes), 0),
            ReplyBody::Format(format) => {
                let mut text = Vec::new();
                self.with_eval(stream, |eval, stream| {
                    eval.render(stream, format, &mut text);
                });
                Body::Made(text)
            }
        };
        let mut response = std::mem::take(&mut stream.response);
        begin_response(&mut response, reply.status);
        // From here on rules see the new response and no longer the old one; the request stays
        // visible.
        self.with_eval(stream, |eval, stream| {
            put_fields(eval, stream, reply, &mut response);
        });
        let length = body.bytes().len();
        if !is_bodiless(reply.status) {
            response.set_framing(Framing::Length(length as u64));
        }
        if let Some(kind) = reply.content_type.as_ref().filter(|_| length > 0) {
            response.append(b"content-type", kind.as_bytes());
        }
        stream.response = response;
        stream.txn.status = reply.status;
        self.answer(stream, body);
    }

    /// `auth`: responds with 401, or 407 to a client that uses us as its proxy, and the rule's
    /// challenge.
    pub(super) fn ask_credentials(&mut self, stream: &mut Stream, set: RuleSet, rule: RuleId) {
        let proxy = self.runtime_config.proxy(rule.proxy);
        let default = match set {
            RuleSet::Statistics => REALM_DEFAULT,
            _ => proxy.name.as_bytes(),
        };
        let action = set.rules(proxy).get(rule.place).map(|rule| &rule.action);
        let realm = match action {
            Some(HttpAction::Auth { realm }) => realm.as_deref().unwrap_or(default),
            _ => default,
        };
        stream.challenge = Some(realm.into());
        let status = if stream.txn.is_proxied { 407 } else { 401 };
        self.error_page(stream, status);
    }

    /// Replaces the challenge of the page with that of `auth`.
    fn challenge(stream: &mut Stream) {
        let Some(realm) = stream.challenge.take() else {
            return;
        };
        let name: &[u8] = if stream.txn.is_proxied {
            b"proxy-authenticate"
        } else {
            b"www-authenticate"
        };
        stream.response.remove_all(name);
        let challenge = [b"Basic realm=\"", &realm[..], b"\""].concat();
        stream.response.append(name, &challenge);
    }

    /// Redirects for a server with `redir`: to its prefix with the request's path and query.
    #[inline(never)]
    pub(super) fn redirect_to_server(&mut self, stream: &mut Stream, prefix: &[u8]) {
        let mut location = Vec::new();
        // A single slash adds no prefix.
        if prefix != b"/" {
            location.extend_from_slice(prefix);
        }
        location.extend_from_slice(stream.request.path_and_query());
        begin_response(&mut stream.response, 302);
        stream.response.append(b"cache-control", b"no-cache");
        stream.response.set_framing(Framing::Length(0));
        stream.response.append(b"location", &location);
        stream.ended_by(b'L', b'C');
        stream.txn.status = 302;
        self.answer(stream, Body::Nothing);
    }

    /// `monitor-uri`, `monitor fail`: responds before any rule runs; not counted as traffic.
    pub(super) fn monitor(&mut self, stream: &mut Stream) {
        stream.log.written = true;
        let conditions = &self.runtime_config.proxy(stream.frontend).monitor_fail;
        let fails = self.with_eval(stream, |eval, stream| {
            conditions
                .iter()
                .any(|condition| eval.holds(stream, condition))
        });
        self.error_page(stream, if fails == Some(true) { 503 } else { 200 });
    }

    /// The tarpit delay is over.
    pub(super) fn end_tarpit(&mut self, stream: &mut Stream, rule: RuleId) {
        stream.phase = Phase::Transfer;
        stream.ended_by(b'P', b'T');
        stream.txn.timing.queued_ms = Some(self.now_ms());
        if let Some(reply) = crate::rules::reply_of(self.runtime_config, RuleSet::Request, rule) {
            self.reply(stream, reply);
        }
    }

    /// Sends the prepared response with its body.
    pub(super) fn answer(&mut self, stream: &mut Stream, body: Body) {
        self.give_up_queue(stream);
        stream.wants_tunnel = false;
        Self::challenge(stream);
        // In HAProxy a request that was not read has no stream yet, so no rule sees its response.
        if !matches!(stream.phase, Phase::RequestHead(_)) && !stream.rules_failed {
            self.respond(stream);
            self.trace_reply(stream);
            stream.read = HeadRead {
                bytes: 0,
                body: body.bytes().len(),
            };
            if !self.after_response_rules(stream) {
                return self.error_page(stream, 500);
            }
        }
        self.end_server_after(stream);
        self.release_server(stream);
        // Discards the received part of another response.
        stream.down.reset();
        stream.phase = Phase::Transfer;
        let status = stream.response.status();
        let has_body = !is_bodiless(status) && stream.txn.method != Method::Head;
        // A rule may have changed whether the status allows a body.
        let framing = match &body {
            Body::Growing(_) => Framing::Chunked,
            body => Framing::Length(body.bytes().len() as u64),
        };
        stream.response.set_framing(if is_bodiless(status) {
            Framing::None
        } else {
            framing
        });
        stream.close_client |= status < 200;
        self.send_response_head(stream, if has_body { framing } else { Framing::None });
        stream.down.is_open = true;
        match body {
            Body::Growing(made) if has_body => {
                stream.server = ServerEnd::Generated(made);
                self.send_made(stream);
            }
            body if has_body && framing != Framing::Length(0) => self.send_body(stream, body),
            _ => self.download_came(stream),
        }
        self.run(stream);
    }

    fn send_body(&mut self, stream: &mut Stream, body: Body) {
        let Some(client) = stream.client else { return };
        let bytes = body.bytes();
        let wrote = self.core.links.send_data(self.io, client, bytes);
        stream.txn.bytes_out += wrote.wire as u64;
        if wrote.taken == bytes.len() {
            return self.download_came(stream);
        }
        // The rest is sent as the client takes it.
        let page = match body {
            Body::Nothing | Body::Growing(_) => return,
            Body::Made(bytes) => Page {
                body: bytes.into(),
                sent: wrote.taken,
            },
            Body::Kept(body, from) => Page {
                body,
                sent: from + wrote.taken,
            },
        };
        self.serve_page(stream, page);
    }
}
