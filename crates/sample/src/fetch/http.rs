//! The HTTP request and response (manual §7.3.6).
//!
//! A fetch whose head is not there yet may have a value later: it says so to the cursor.

use ::http::{Head, Method, Version};

use super::{ANY_HEAD, Cursor, Fetch, REQUEST, REQUEST_HEAD, RESPONSE, RESPONSE_HEAD, fetch};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::bytes::Buffer;
use crate::cast::{ip_of, method_of, written};
use crate::fetch::stream::path_of;
use crate::text::read_int;
use crate::{Bytes, Kind, Scope, Value};

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
        "the request's version: 1.0, 1.1",
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
    // ---- fields of the request
    fetch(
        "hdr",
        FIELD,
        Kind::Str,
        &ANY_HEAD,
        "as req.hdr",
        request_value,
    )
    .checked(occurrence),
    fetch(
        "req.hdr",
        FIELD,
        Kind::Str,
        &REQUEST_HEAD,
        "a comma-separated value of a field",
        request_value,
    )
    .checked(occurrence),
    fetch(
        "req.fhdr",
        FIELD,
        Kind::Str,
        &REQUEST_HEAD,
        "a field's whole value",
        |args, scope, cursor| field(args, request(scope, cursor)?, cursor),
    )
    .checked(occurrence),
    fetch(
        "hdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.hdr_cnt",
        request_value_count,
    ),
    fetch(
        "req.hdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "how many values a field has",
        request_value_count,
    ),
    fetch(
        "req.fhdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "how often a field comes",
        |args, scope, cursor| {
            Some(Value::Int(
                lines(request(scope, cursor)?, str_at(args, 0)).count() as i64,
            ))
        },
    ),
    fetch(
        "hdr_ip",
        FIELD,
        Kind::Addr,
        &REQUEST_HEAD,
        "as req.hdr_ip",
        request_ip,
    )
    .checked(occurrence),
    fetch(
        "req.hdr_ip",
        FIELD,
        Kind::Addr,
        &REQUEST_HEAD,
        "a value as an address",
        request_ip,
    )
    .checked(occurrence),
    fetch(
        "hdr_val",
        FIELD,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.hdr_val",
        request_number,
    )
    .checked(occurrence),
    fetch(
        "req.hdr_val",
        FIELD,
        Kind::Int,
        &REQUEST_HEAD,
        "a value as a number",
        request_number,
    )
    .checked(occurrence),
    fetch(
        "req.hdr_names",
        COUNT,
        Kind::Str,
        &REQUEST_HEAD,
        "the names of all fields",
        |args, scope, cursor| names(args, request(scope, cursor)?),
    ),
    fetch(
        "req.hdrs",
        NONE,
        Kind::Bin,
        &REQUEST_HEAD,
        "all fields as text",
        |_, scope, cursor| all(request(scope, cursor)?),
    ),
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
    // ---- fields of the response
    fetch(
        "shdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "as res.hdr",
        response_value,
    )
    .checked(occurrence),
    fetch(
        "res.hdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "a comma-separated value of a field",
        response_value,
    )
    .checked(occurrence),
    fetch(
        "res.fhdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "a field's whole value",
        |args, scope, cursor| field(args, response(scope, cursor)?, cursor),
    )
    .checked(occurrence),
    fetch(
        "shdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.hdr_cnt",
        response_value_count,
    ),
    fetch(
        "res.hdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how many values a field has",
        response_value_count,
    ),
    fetch(
        "res.fhdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how often a field comes",
        |args, scope, cursor| {
            Some(Value::Int(
                lines(response(scope, cursor)?, str_at(args, 0)).count() as i64,
            ))
        },
    ),
    fetch(
        "shdr_ip",
        FIELD,
        Kind::Addr,
        &RESPONSE_HEAD,
        "as res.hdr_ip",
        response_ip,
    )
    .checked(occurrence),
    fetch(
        "res.hdr_ip",
        FIELD,
        Kind::Addr,
        &RESPONSE_HEAD,
        "a value as an address",
        response_ip,
    )
    .checked(occurrence),
    fetch(
        "shdr_val",
        FIELD,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.hdr_val",
        response_number,
    )
    .checked(occurrence),
    fetch(
        "res.hdr_val",
        FIELD,
        Kind::Int,
        &RESPONSE_HEAD,
        "a value as a number",
        response_number,
    )
    .checked(occurrence),
    fetch(
        "res.hdr_names",
        COUNT,
        Kind::Str,
        &RESPONSE_HEAD,
        "the names of all fields",
        |args, scope, cursor| names(args, response(scope, cursor)?),
    ),
    fetch(
        "res.hdrs",
        NONE,
        Kind::Bin,
        &RESPONSE_HEAD,
        "all fields as text",
        |_, scope, cursor| all(response(scope, cursor)?),
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
        "res.cook_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how often a cookie is set",
        |args, scope, cursor| cookie_count(response(scope, cursor)?, str_at(args, 0), false),
    ),
];

const FIELD: crate::args::Spec = spec(0, &[Str, Int]);
const COUNT: crate::args::Spec = spec(0, &[Str]);
const URL_PARAM: crate::args::Spec = spec(0, &[Str, Str, Str]);

/// How far back from the end an occurrence can be asked for.
const OCCURRENCES_BACK_MAX: usize = 10;

fn occurrence(args: &mut [Arg]) -> Result<(), String> {
    match int_at(args, 1) {
        Some(number) if number < -(OCCURRENCES_BACK_MAX as i64) => Err(format!(
            "header occurrence must be >= -{OCCURRENCES_BACK_MAX}"
        )),
        _ => Ok(()),
    }
}

// ---- heads, start lines

fn request<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<&'a Head> {
    cursor.may_change = scope.request.is_none();
    scope.request
}

fn response<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<&'a Head> {
    cursor.may_change = scope.response.is_none();
    scope.response
}

/// After the request was forwarded, what was received is known by its line.
fn method<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    if let Some(head) = request(scope, cursor) {
        return Some(Value::Method(head.method(), head.method_bytes().into()));
    }
    let line = &scope.txn?.request_line[..];
    let name = &line[..memchr::memchr(b' ', line)?];
    let method = method_of(name);
    debug_assert!(method != Method::Other || !name.is_empty());
    Some(Value::Method(method, name.into()))
}

fn version_text(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        _ => "1.1",
    }
}

fn request_version<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    if let Some(head) = request(scope, cursor) {
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
    request(scope, cursor).map(|_| Value::Bool(true))
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
        other => Err(format!(
            "'query' only supports 'with_qm' option, got '{}'",
            String::from_utf8_lossy(other)
        )),
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
    let path = path_of(head.target()).map(|pathq| {
        let end = if with_query {
            None
        } else {
            memchr::memchr(b'?', pathq)
        };
        &pathq[..end.unwrap_or(pathq.len())]
    });
    let host = lines(head, b"host")
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

// ---- parameters of the query

fn url_param<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let target = request(scope, cursor)?.target();
    let delimiter = str_at(args, 1).first().copied().unwrap_or(b'?');
    let ignore_case = str_at(args, 2).first() == Some(&b'i');
    let list = &target[memchr::memchr(delimiter, target)? + 1..];
    let (value, end) = next_param(list, cursor.offset, str_at(args, 0), delimiter, ignore_case)?;
    cursor.offset = end;
    cursor.more = end < list.len();
    Some(Value::text(value))
}

/// The value of the next parameter of this name (any for none) from a position on, and where it ends.
fn next_param<'a>(
    list: &'a [u8],
    from: usize,
    name: &[u8],
    delimiter: u8,
    ignore_case: bool,
) -> Option<(&'a [u8], usize)> {
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
                return Some((&pair[equal + 1..], at + length));
            }
        }
        at += length + 1;
    }
    None
}

// ---- fields

/// Whole values of the fields of this name, without the blanks around them; all fields for no name.
fn lines<'a>(head: &'a Head, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let all = name
        .is_empty()
        .then(|| head.fields().map(|(_, _, _, value)| value));
    let named = (!name.is_empty()).then(|| head.find(name).map(|(_, value)| value));
    all.into_iter()
        .flatten()
        .chain(named.into_iter().flatten())
        .map(trim)
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = value {
        value = rest;
    }
    value
}

/// The comma-separated values of a field; commas in quoted strings do not separate (RFC 9110 §5.6.1).
struct Values<'a> {
    line: &'a [u8],
    /// Where the next one begins; beyond the end when there is none.
    at: usize,
}

impl<'a> Values<'a> {
    fn new(line: &'a [u8]) -> Values<'a> {
        Values { line, at: 0 }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.line.get(self.at..)?;
        let length = value_end(rest);
        self.at += length + 1;
        Some(trim(&rest[..length]))
    }
}

/// Where a value ends: the first comma outside quotes, or the end.
fn value_end(bytes: &[u8]) -> usize {
    let Some(first) = memchr::memchr2(b',', b'"', bytes) else {
        return bytes.len();
    };
    if bytes[first] == b',' {
        return first;
    }
    let mut quoted = false;
    let mut escaped = false;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return index,
            _ => {}
        }
    }
    bytes.len()
}

/// A value of a field by its occurrence: counted from 1, from the end when negative; 0 is every one in turn for those
/// who iterate, the last one for others.
fn value<'a>(args: &'a [Arg], head: &'a Head, cursor: &mut Cursor) -> Option<Value<'a>> {
    let name = str_at(args, 0);
    let occurrence = int_at(args, 1).unwrap_or(0);
    if occurrence == 0 && cursor.iterate {
        return next_value(name, head, cursor).map(Value::text);
    }
    let values = lines(head, name).flat_map(Values::new);
    pick(values, occurrence).map(Value::text)
}

/// The next of all values: `index` counts the lines, `offset` stands in one.
fn next_value<'a>(name: &'a [u8], head: &'a Head, cursor: &mut Cursor) -> Option<&'a [u8]> {
    for line in lines(head, name).skip(cursor.index) {
        let mut values = Values {
            line,
            at: cursor.offset,
        };
        if let Some(value) = values.next() {
            cursor.offset = values.at;
            cursor.more = true;
            return Some(value);
        }
        cursor.index += 1;
        cursor.offset = 0;
    }
    None
}

/// As [`value`], of whole lines.
fn field<'a>(args: &'a [Arg], head: &'a Head, cursor: &mut Cursor) -> Option<Value<'a>> {
    let name = str_at(args, 0);
    let occurrence = int_at(args, 1).unwrap_or(0);
    if occurrence == 0 && cursor.iterate {
        let line = lines(head, name).nth(cursor.index)?;
        cursor.index += 1;
        cursor.more = true;
        return Some(Value::text(line));
    }
    pick(lines(head, name), occurrence).map(Value::text)
}

fn pick<'a>(mut values: impl Iterator<Item = &'a [u8]>, occurrence: i64) -> Option<&'a [u8]> {
    if occurrence > 0 {
        return values.nth(usize::try_from(occurrence - 1).ok()?);
    }
    let back = usize::try_from(-occurrence.min(-1))
        .ok()
        .filter(|back| *back <= OCCURRENCES_BACK_MAX)?;
    let mut last: [&[u8]; OCCURRENCES_BACK_MAX] = [b""; OCCURRENCES_BACK_MAX];
    let mut count = 0;
    for value in values {
        last[count % OCCURRENCES_BACK_MAX] = value;
        count += 1;
    }
    (back <= count).then(|| last[(count - back) % OCCURRENCES_BACK_MAX])
}

fn request_value<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    value(args, request(scope, cursor)?, cursor)
}

fn response_value<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    value(args, response(scope, cursor)?, cursor)
}

fn count<'a>(args: &[Arg], head: &Head) -> Option<Value<'a>> {
    Some(Value::Int(
        lines(head, str_at(args, 0)).flat_map(Values::new).count() as i64,
    ))
}

fn request_value_count<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    count(args, request(scope, cursor)?)
}

fn response_value_count<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    count(args, response(scope, cursor)?)
}

fn as_number(value: Value<'_>) -> Option<Value<'_>> {
    match value {
        Value::Str(text) => Some(Value::Int(read_int(&text).0)),
        _ => None,
    }
}

fn request_number<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    as_number(request_value(args, scope, cursor)?)
}

fn response_number<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    as_number(response_value(args, scope, cursor)?)
}

/// The next value that is an address: alone, IPv4 with a port, or IPv6 in brackets.
fn as_address<'a>(
    mut next: impl FnMut(&mut Cursor) -> Option<Value<'a>>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    loop {
        cursor.more = false;
        let Value::Str(text) = next(cursor)? else {
            return None;
        };
        if let Some(ip) = ip_of(host_of(&text)) {
            return Some(ip.into());
        }
        if !cursor.more {
            return None;
        }
    }
}

fn host_of(text: &[u8]) -> &[u8] {
    if let [b'[', inner @ .., b']'] = text {
        return inner;
    }
    match memchr::memchr(b':', text) {
        // One colon only: a port follows. With more it is an IPv6 address.
        Some(colon)
            if memchr::memrchr(b':', text) == Some(colon) && is_port(&text[colon + 1..]) =>
        {
            &text[..colon]
        }
        _ => text,
    }
}

fn is_port(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<u16>().is_ok())
}

fn request_ip<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    as_address(|cursor| request_value(args, scope, cursor), cursor)
}

fn response_ip<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    as_address(|cursor| response_value(args, scope, cursor), cursor)
}

fn names<'a>(args: &[Arg], head: &Head) -> Option<Value<'a>> {
    let delimiter = str_at(args, 0).first().copied().unwrap_or(b',');
    let mut text: Buffer = Bytes::buffer();
    for (_, _, name, _) in head.fields() {
        if !text.is_empty() {
            text.push(delimiter);
        }
        text.extend(name);
    }
    (!text.too_long()).then(|| Value::Str(text.into()))
}

fn all<'a>(head: &Head) -> Option<Value<'a>> {
    let mut text: Buffer = Bytes::buffer();
    for (_, _, name, value) in head.fields() {
        for part in [name, b": ", value, b"\r\n"] {
            text.extend(part);
        }
    }
    text.extend(b"\r\n");
    (!text.too_long()).then(|| Value::Bin(text.into()))
}

// ---- cookies

/// A cookie by name: every one in turn for those who iterate, the last one for others; the first of all without a name.
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
    lines(head, if is_request { b"cookie" } else { b"set-cookie" })
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

/// Names and values of the cookies of one field (RFC 6265 §4). A `Set-Cookie` has one; attributes follow it.
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
            if !self.is_request {
                // Only the first pair is the cookie.
                self.at = self.line.len();
            }
            if has_value && name.first() != Some(&b'$') {
                return Some((name, trim(&rest[value_at..value_at + length])));
            }
        }
    }
}

/// Where a cookie's value ends: a semicolon or comma outside quotes.
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

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
