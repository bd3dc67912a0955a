//! Actions that respond to a request, or end it without a response (manual §4.4): `redirect`,
//! `silent-drop`, `early-hint`. The phase that sends the response of `return`, `deny` and `tarpit`
//! builds it.

use config::model::{HttpAction, HttpRule, Redirect, RedirectKind, RedirectOptions, Reply};
use http::h1::Framing;
use http::{FieldName, Head, Name};
use sample::LogFormat;

use super::Cx;
use super::status::begin_response;
use crate::evaluation::Eval;
use crate::stream::Stream;

impl Cx<'_> {
    /// `silent-drop`: removes the connection without telling the client.
    pub(super) fn vanish(&mut self, rst_ttl: Option<u8>) {
        let eval = &mut self.scene.eval;
        if let Some(client) = eval.client.take() {
            eval.io.vanish(client.sock, rst_ttl);
        }
    }

    /// `early-hint`: adds a field to a 103 response, which is sent after the last of several such
    /// rules in a row (RFC 8297). HTTP/1.0 clients get no interim responses.
    pub(super) fn early_hint(
        &mut self,
        stream: &Stream,
        name: &FieldName,
        value: &LogFormat,
        next: Option<&HttpRule>,
    ) {
        if stream.is_old {
            return;
        }
        let mut text = std::mem::take(self.scene.eval.text);
        self.eval().render(stream, value, &mut text);
        http::plain_text(&mut text);
        let hints = &mut self.memory.hints;
        hints.set_status(103, b"Early Hints");
        hints.append(name.as_bytes(), &text);
        text.clear();
        *self.scene.eval.text = text;
        // A rule with a condition starts a new response, because its condition may not hold.
        let goes_on = next.is_some_and(|rule| {
            rule.condition.is_none() && matches!(rule.action, HttpAction::EarlyHint { .. })
        });
        if !goes_on {
            self.memory.finish_hints();
        }
    }

    /// `redirect` (manual §4.2). Whether it applies; if so, its response replaces the stream's.
    pub(super) fn redirect(&mut self, stream: &mut Stream, redirect: &Redirect) -> bool {
        let options = &redirect.options;
        let mut location = std::mem::take(self.scene.eval.text);
        let eval = self.eval();
        match &redirect.kind {
            RedirectKind::Location(format) => {
                eval.render(stream, format, &mut location);
                if location.is_empty() && options.ignore_empty {
                    *self.scene.eval.text = location;
                    return false;
                }
                if options.keep_query {
                    append_query(&stream.request, &mut location);
                }
            }
            RedirectKind::Prefix(format) => {
                eval.render(stream, format, &mut location);
                append_path(&stream.request, options, &mut location);
            }
            RedirectKind::Scheme(format) => {
                eval.render(stream, format, &mut location);
                location.extend_from_slice(b"://");
                location.extend_from_slice(stream.request.get(Name::Host).unwrap_or_default());
                append_path(&stream.request, options, &mut location);
            }
        }
        // The expression of the cookie still sees the response that is replaced.
        let mut cookie = Vec::new();
        if let Some(format) = &options.set_cookie {
            eval.render(stream, format, &mut cookie);
        }
        let response = &mut stream.response;
        begin_response(response, redirect.code);
        response.set_framing(Framing::Length(0));
        response.append(b"location", &location);
        if matches!(redirect.code, 302 | 303 | 307) {
            response.append(b"cache-control", b"no-cache");
        }
        if options.set_cookie.is_some() {
            response.append(b"set-cookie", &cookie);
        }
        location.clear();
        *self.scene.eval.text = location;
        stream.txn.status = redirect.code;
        true
    }
}

/// Appends the fields of a reply to its response. Their formats see the response that is replaced.
pub(crate) fn put_fields(eval: &mut Eval<'_>, stream: &Stream, reply: &Reply, response: &mut Head) {
    for (name, format) in &reply.headers {
        let mut value = std::mem::take(eval.text);
        eval.render(stream, format, &mut value);
        if !value.is_empty() {
            response.append(name.as_bytes(), &value);
        }
        value.clear();
        *eval.text = value;
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

/// Appends the request's query, if it has one, to the location.
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
