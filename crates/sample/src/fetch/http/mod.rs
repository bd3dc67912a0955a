//! The HTTP request and response (manual §7.3.6): the start line here, the rest in the submodules.
//!
//! A fetch whose head has not arrived yet may have a value later; it sets the cursor's flag for
//! this.

pub(crate) mod auth;
pub(crate) mod bodies;
pub(crate) mod cookies;
pub(crate) mod fields;
pub(crate) mod urls;
pub(crate) mod values;

use std::ops::Range;

use ::http::{Head, Name, Version};

use super::{Cursor, Fetch, REQUEST, REQUEST_HEAD, RESPONSE, fetch};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::{method_of, written};
use crate::fetch::stream::path_of;
use crate::{Kind, Scope, Value};
use fields::as_number;
use values::{Values, lines};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "method",
        NONE,
        Kind::Method,
        &REQUEST,
        "the request's method",
        method,
    ),
    fetch(
        "url",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the request's URI",
        |_, scope, cursor| Some(Value::text(request(scope, cursor)?.target())),
    ),
    fetch(
        "path",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the path, without the query",
        |_, scope, cursor| {
            let (path, _) = path_and_query(request(scope, cursor)?)?;
            Some(Value::text(path))
        },
    ),
    fetch(
        "pathq",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the path with the query",
        |_, scope, cursor| path_of(request(scope, cursor)?.target()).map(Value::text),
    ),
    fetch(
        "query",
        spec(0, &[Str]),
        Kind::Str,
        &REQUEST_HEAD,
        "the query; with_qm keeps its question mark",
        query,
    )
    .checked(query_options),
    fetch(
        "base",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the first Host and the path",
        |_, scope, cursor| base(request(scope, cursor)?, false),
    ),
    fetch(
        "baseq",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the first Host, the path and the query",
        |_, scope, cursor| base(request(scope, cursor)?, true),
    ),
    fetch(
        "url_param",
        URL_PARAM,
        Kind::Str,
        &REQUEST_HEAD,
        "a parameter of the query",
        url_param,
    ),
    fetch(
        "urlp",
        URL_PARAM,
        Kind::Str,
        &REQUEST_HEAD,
        "as url_param",
        url_param,
    ),
    fetch(
        "urlp_val",
        URL_PARAM,
        Kind::Int,
        &REQUEST_HEAD,
        "its value as a number",
        |args, scope, cursor| as_number(url_param(args, scope, cursor)?),
    ),
    fetch(
        "req.ver",
        NONE,
        Kind::Str,
        &REQUEST,
        "the request's version: 1.0, 1.1, 2.0, 3.0",
        request_version,
    ),
    fetch(
        "req_ver",
        NONE,
        Kind::Str,
        &REQUEST,
        "as req.ver",
        request_version,
    ),
    fetch(
        "res.comp",
        NONE,
        Kind::Bool,
        &RESPONSE,
        "whether the response is compressed here",
        |_, scope, _| Some(Value::Bool(scope.txn?.compressed.is_some())),
    ),
    fetch(
        "res.comp_algo",
        NONE,
        Kind::Str,
        &RESPONSE,
        "how the response is compressed here",
        |_, scope, _| scope.txn?.compressed.map(Value::text),
    ),
    fetch(
        "res.ver",
        NONE,
        Kind::Str,
        &RESPONSE,
        "the response's version",
        response_version,
    ),
    fetch(
        "resp_ver",
        NONE,
        Kind::Str,
        &RESPONSE,
        "as res.ver",
        response_version,
    ),
    fetch(
        "status",
        NONE,
        Kind::Int,
        &RESPONSE,
        "the response's status",
        |_, scope, cursor| Some(Value::Int(response(scope, cursor)?.status().into())),
    ),
    fetch(
        "req.proto_http",
        NONE,
        Kind::Bool,
        &REQUEST,
        "whether it is an HTTP request",
        proto_http,
    ),
    fetch(
        "req_proto_http",
        NONE,
        Kind::Bool,
        &REQUEST,
        "as req.proto_http",
        proto_http,
    ),
];

const URL_PARAM: crate::args::Spec = spec(0, &[Str, Str, Str]);

pub(super) fn request<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<&'a Head> {
    let may_come = scope.txn.is_some_and(|txn| !txn.never_http) && !scope.from_server;
    cursor.may_change = scope.request.is_none() && may_come;
    scope.request
}

pub(super) fn response<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<&'a Head> {
    cursor.may_change = scope.response.is_none() && scope.txn.is_some_and(|txn| txn.is_http);
    scope.response
}

/// After the request was forwarded, the method comes from the received request line.
fn method<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    if let Some(head) = request(scope, cursor) {
        return Some(Value::Method(head.method(), head.method_bytes().into()));
    }
    let line = &scope.txn?.request_line[..];
    let name = &line[..memchr::memchr(b' ', line)?];
    let method = method_of(name);
    Some(Value::Method(method, name.into()))
}

fn version_text(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2.0",
        Version::Http3 => "3.0",
    }
}

fn request_version<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let head = request(scope, cursor);
    // The head becomes one of HTTP/1.1 when it is sent to a server.
    if let Some(mux) = scope.txn.and_then(|txn| txn.client_mux) {
        return Some(Value::text(version_text(mux.version)));
    }
    if let Some(head) = head {
        return Some(Value::text(version_text(head.version())));
    }
    let line = &scope.txn?.request_line[..];
    let version = &line[memchr::memrchr(b' ', line)? + 1..];
    version.strip_prefix(b"HTTP/").map(Value::text)
}

fn response_version<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    Some(Value::text(version_text(
        response(scope, cursor)?.version(),
    )))
}

fn proto_http<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    if scope.txn.is_some_and(|txn| txn.is_http) {
        return request(scope, cursor).map(|_| Value::Bool(true));
    }
    // The bytes of a TCP stream may also be a request.
    thread_local! {
        static HEAD: std::cell::RefCell<Head> = std::cell::RefCell::default();
    }
    let parsed = HEAD.with_borrow_mut(|head| {
        ::http::h1::parse_request(
            scope.request_data,
            ::http::h1::Limits::default(),
            ::http::h1::Strictness::Relaxed,
            head,
        )
    });
    match parsed {
        Ok(None) => {
            cursor.may_change = true;
            None
        }
        Ok(Some(_)) => Some(Value::Bool(true)),
        Err(_) => Some(Value::Bool(false)),
    }
}

fn path_and_query(head: &Head) -> Option<(&[u8], Option<&[u8]>)> {
    let pathq = path_of(head.target())?;
    Some(match memchr::memchr(b'?', pathq) {
        Some(mark) => (&pathq[..mark], Some(&pathq[mark + 1..])),
        None => (pathq, None),
    })
}

fn query_options(args: &mut [Arg]) -> Result<(), String> {
    match str_at(args, 0) {
        b"" => Ok(()),
        b"with_qm" => {
            args[0] = Arg::Int(1);
            Ok(())
        }
        _ => Err("supported options are: 'with_qm'".into()),
    }
}

fn query<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let target = request(scope, cursor)?.target();
    let mark = memchr::memchr(b'?', target)?;
    let keep_mark = int_at(args, 0) == Some(1) && mark + 1 < target.len();
    Some(Value::text(
        &target[if keep_mark { mark } else { mark + 1 }..],
    ))
}

fn base<'a>(head: &'a Head, with_query: bool) -> Option<Value<'a>> {
    let path = path_of(head.target()).filter(|path| path.starts_with(b"/"));
    let path = path.map(|pathq| {
        let end = if with_query {
            None
        } else {
            memchr::memchr(b'?', pathq)
        };
        &pathq[..end.unwrap_or(pathq.len())]
    });
    let host = lines(head, Name::Host)
        .next()
        .and_then(|line| Values::new(line).next())
        .filter(|host| !host.is_empty());
    let Some(host) = host else {
        return path.map(Value::text);
    };
    let text = written(|out| {
        out.extend_from_slice(host);
        out.extend_from_slice(path.unwrap_or_default());
    });
    Some(Value::Str(text))
}

fn url_param<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let target = request(scope, cursor)?.target();
    let delimiter = str_at(args, 1).first().copied().unwrap_or(b'?');
    let ignore_case = str_at(args, 2).first() == Some(&b'i');
    let list = &target[memchr::memchr(delimiter, target)? + 1..];
    let found = next_param(list, cursor.offset, str_at(args, 0), delimiter, ignore_case)?;
    cursor.offset = found.end;
    cursor.more = found.end < list.len();
    Some(Value::text(&list[found]))
}

/// The position of the value of the next parameter with this name (any for None), from a position
/// on.
pub(super) fn next_param(
    list: &[u8],
    from: usize,
    name: &[u8],
    delimiter: u8,
    ignore_case: bool,
) -> Option<Range<usize>> {
    let is_delimiter = |byte: &u8| matches!(*byte, b'&' | b';') || *byte == delimiter;
    let mut at = from;
    while at < list.len() {
        let length = list[at..]
            .iter()
            .position(is_delimiter)
            .unwrap_or(list.len() - at);
        let pair = &list[at..at + length];
        if let Some(equal) = memchr::memchr(b'=', pair) {
            let found = &pair[..equal];
            let is_it = name.is_empty()
                || found == name
                || (ignore_case && found.eq_ignore_ascii_case(name));
            if is_it {
                return Some(at + equal + 1..at + length);
            }
        }
        at += length + 1;
    }
    None
}

#[cfg(test)]
mod tests;
