//! Cookies of requests and responses (RFC 6265 §4).

use ::http::{Head, Name};

use super::fields::as_number;
use super::values::{lines, trim};
use super::{request, response};
use crate::args::ArgKind::Str;
use crate::args::{Arg, spec, str_at};
use crate::bytes::Buffer;
use crate::fetch::{ANY_HEAD, Cursor, Fetch, REQUEST_HEAD, RESPONSE_HEAD, fetch};
use crate::{Bytes, Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "cook",
        COUNT,
        Kind::Str,
        &REQUEST_HEAD,
        "as req.cook",
        request_cookie,
    ),
    fetch(
        "req.cook",
        COUNT,
        Kind::Str,
        &REQUEST_HEAD,
        "a cookie's value",
        request_cookie,
    ),
    fetch(
        "cookie",
        COUNT,
        Kind::Str,
        &ANY_HEAD,
        "as req.cook, on the response's way as res.cook",
        |args, scope, cursor| {
            if scope.from_server {
                response_cookie(args, scope, cursor)
            } else {
                request_cookie(args, scope, cursor)
            }
        },
    ),
    fetch(
        "cook_val",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.cook_val",
        request_cookie_number,
    ),
    fetch(
        "req.cook_val",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "a cookie's value as a number",
        request_cookie_number,
    ),
    fetch(
        "cook_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.cook_cnt",
        request_cookie_count,
    ),
    fetch(
        "req.cook_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "how often a cookie comes",
        request_cookie_count,
    ),
    fetch(
        "scook",
        COUNT,
        Kind::Str,
        &RESPONSE_HEAD,
        "as res.cook",
        response_cookie,
    ),
    fetch(
        "res.cook",
        COUNT,
        Kind::Str,
        &RESPONSE_HEAD,
        "the value of a cookie that is set",
        response_cookie,
    ),
    fetch(
        "scook_val",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.cook_val",
        response_cookie_number,
    ),
    fetch(
        "res.cook_val",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "the value of a cookie that is set, as a number",
        response_cookie_number,
    ),
    fetch(
        "scook_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.cook_cnt",
        response_cookie_count,
    ),
    fetch(
        "res.cook_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how often a cookie is set",
        response_cookie_count,
    ),
    fetch(
        "req.cook_names",
        COUNT,
        Kind::Str,
        &REQUEST_HEAD,
        "the names of all cookies",
        |args, scope, cursor| names(args, request(scope, cursor)?, true),
    ),
    fetch(
        "res.cook_names",
        COUNT,
        Kind::Str,
        &RESPONSE_HEAD,
        "the names of all cookies that are set",
        |args, scope, cursor| names(args, response(scope, cursor)?, false),
    ),
];

const COUNT: crate::args::Spec = spec(0, &[Str]);

/// A cookie by name: each in turn for callers that iterate, otherwise the last one. Without a name,
/// the first of all.
fn cookie<'a>(
    args: &'a [Arg],
    head: &'a Head,
    is_request: bool,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    let name = str_at(args, 0);
    if cursor.iterate {
        return next_cookie(head, name, is_request, cursor).map(Value::text);
    }
    let mut values = cookie_lines(head, is_request)
        .flat_map(|line| Cookies {
            line,
            at: 0,
            is_request,
        })
        .filter(|(found, _)| name.is_empty() || *found == name)
        .map(|(_, value)| value);
    if name.is_empty() {
        values.next()
    } else {
        values.last()
    }
    .map(Value::text)
}

fn next_cookie<'a>(
    head: &'a Head,
    name: &[u8],
    is_request: bool,
    cursor: &mut Cursor,
) -> Option<&'a [u8]> {
    for line in cookie_lines(head, is_request).skip(cursor.index) {
        let mut cookies = Cookies {
            line,
            at: cursor.offset,
            is_request,
        };
        while let Some((found, value)) = cookies.next() {
            cursor.offset = cookies.at;
            if name.is_empty() || found == name {
                cursor.more = true;
                return Some(value);
            }
        }
        cursor.index += 1;
        cursor.offset = 0;
    }
    None
}

fn cookie_lines(head: &Head, is_request: bool) -> impl Iterator<Item = &[u8]> {
    let name = if is_request {
        Name::Cookie
    } else {
        Name::SetCookie
    };
    lines(head, name)
}

fn cookie_count<'a>(head: &Head, name: &[u8], is_request: bool) -> Option<Value<'a>> {
    let cookies = cookie_lines(head, is_request).flat_map(|line| Cookies {
        line,
        at: 0,
        is_request,
    });
    Some(Value::Int(
        cookies
            .filter(|(found, _)| name.is_empty() || *found == name)
            .count() as i64,
    ))
}

/// Names and values of the cookies in one field (RFC 6265 §4). A `Set-Cookie` has one cookie, and
/// attributes follow it.
struct Cookies<'a> {
    line: &'a [u8],
    at: usize,
    is_request: bool,
}

impl<'a> Iterator for Cookies<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.line.get(self.at..).filter(|rest| !rest.is_empty())?;
            let equal = rest.iter().position(|byte| match byte {
                b'=' | b';' => true,
                b',' => self.is_request,
                _ => false,
            });
            let has_value = equal.is_some_and(|equal| rest[equal] == b'=');
            let name = trim(&rest[..equal.unwrap_or(rest.len())]);
            let value_at = equal.map_or(rest.len(), |equal| equal + 1);
            let length = if has_value {
                cookie_end(&rest[value_at..])
            } else {
                0
            };
            self.at += if has_value {
                value_at + length + 1
            } else {
                value_at
            };
            if has_value && name.first() != Some(&b'$') {
                if !self.is_request {
                    // The rest are attributes of the cookie.
                    self.at = self.line.len();
                }
                return Some((name, trim(&rest[value_at..value_at + length])));
            }
        }
    }
}

/// The end of a cookie's value: a semicolon or comma outside of quotes.
fn cookie_end(bytes: &[u8]) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b';' if !quoted => return index,
            _ => {}
        }
    }
    bytes.len()
}

fn request_cookie<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    cookie(args, request(scope, cursor)?, true, cursor)
}

fn response_cookie<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    cookie(args, response(scope, cursor)?, false, cursor)
}

fn request_cookie_number<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    as_number(request_cookie(args, scope, cursor)?)
}

fn request_cookie_count<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    cookie_count(request(scope, cursor)?, str_at(args, 0), true)
}

fn response_cookie_number<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    as_number(response_cookie(args, scope, cursor)?)
}

fn response_cookie_count<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    cookie_count(response(scope, cursor)?, str_at(args, 0), false)
}

fn names<'a>(args: &[Arg], head: &Head, is_request: bool) -> Option<Value<'a>> {
    let delimiter = str_at(args, 0).first().copied().unwrap_or(b',');
    let mut text: Buffer = Bytes::buffer();
    let cookies = cookie_lines(head, is_request).flat_map(|line| Cookies {
        line,
        at: 0,
        is_request,
    });
    for (name, _) in cookies {
        if !text.is_empty() {
            text.push(delimiter);
        }
        text.extend(name);
    }
    (!text.too_long()).then(|| Value::Str(text.into()))
}
