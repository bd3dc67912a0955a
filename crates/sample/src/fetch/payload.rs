//! Bytes of the request and response buffers (manual §7.3.5), and bodies (§7.3.6).

use super::{
    ANY_BUFFER, Cursor, Fetch, INTERNAL, REQUEST_BODY, REQUEST_BUFFER, RESPONSE_BODY,
    RESPONSE_BUFFER, fetch,
};
use crate::args::ArgKind::Int;
use crate::args::{Arg, NONE, int_at, spec};
use crate::{Bytes, Kind, SAMPLE_BYTES_MAX, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "wait_end",
        NONE,
        Kind::Bool,
        &INTERNAL,
        "true at the end of the inspection, nothing before",
        |_, scope, cursor| {
            cursor.may_change = true;
            scope.last_chance.then_some(Value::Bool(true))
        },
    ),
    fetch(
        "req.len",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "bytes in the request buffer",
        |_, scope, cursor| len(scope.request_data, cursor),
    ),
    fetch(
        "req_len",
        NONE,
        Kind::Int,
        &REQUEST_BUFFER,
        "as req.len",
        |_, scope, cursor| len(scope.request_data, cursor),
    ),
    fetch(
        "res.len",
        NONE,
        Kind::Int,
        &RESPONSE_BUFFER,
        "bytes in the response buffer",
        |_, scope, cursor| len(scope.response_data, cursor),
    ),
    fetch(
        "req.payload",
        spec(2, &[Int, Int]),
        Kind::Bin,
        &REQUEST_BUFFER,
        "bytes of the request buffer",
        |args, scope, cursor| payload(args, scope, scope.request_data, cursor),
    ),
    fetch(
        "res.payload",
        spec(2, &[Int, Int]),
        Kind::Bin,
        &RESPONSE_BUFFER,
        "bytes of the response buffer",
        |args, scope, cursor| payload(args, scope, scope.response_data, cursor),
    ),
    fetch(
        "payload",
        spec(2, &[Int, Int]),
        Kind::Bin,
        &ANY_BUFFER,
        "bytes of the buffer that is inspected",
        |args, scope, cursor| {
            let data = if scope.request_data.is_empty() {
                scope.response_data
            } else {
                scope.request_data
            };
            payload(args, scope, data, cursor)
        },
    ),
    fetch(
        "req.body",
        NONE,
        Kind::Bin,
        &REQUEST_BODY,
        "the request's body as far as it is here",
        |_, scope, cursor| body(scope.request.is_some(), scope.request_data, cursor),
    ),
    fetch(
        "req.body_len",
        NONE,
        Kind::Int,
        &REQUEST_BODY,
        "its length",
        |_, scope, cursor| {
            scope.request?;
            len(scope.request_data, cursor)
        },
    ),
    fetch(
        "res.body",
        NONE,
        Kind::Bin,
        &RESPONSE_BODY,
        "the response's body as far as it is here",
        |_, scope, cursor| body(scope.response.is_some(), scope.response_data, cursor),
    ),
    fetch(
        "res.body_len",
        NONE,
        Kind::Int,
        &RESPONSE_BODY,
        "its length",
        |_, scope, cursor| {
            scope.response?;
            len(scope.response_data, cursor)
        },
    ),
];

fn len<'a>(data: &[u8], cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    Some(Value::Int(data.len() as i64))
}

fn body<'a>(is_there: bool, data: &'a [u8], cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    is_there.then_some(Value::Bin(Bytes::Borrowed(data)))
}

/// Raw bytes have no meaning in HTTP: nothing there, as in HAProxy.
fn payload<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    data: &'a [u8],
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    if scope.txn.is_some_and(|txn| txn.is_http) {
        return None;
    }
    let offset = usize::try_from(int_at(args, 0)?).ok()?;
    let size = usize::try_from(int_at(args, 1)?).ok()?;
    if size > SAMPLE_BYTES_MAX || offset > SAMPLE_BYTES_MAX - size {
        return None;
    }
    if size == 0 {
        cursor.may_change = true;
        return data.get(offset..).map(|bytes| Value::Bin(bytes.into()));
    }
    let bytes = data.get(offset..offset + size);
    cursor.may_change = bytes.is_none();
    bytes.map(|bytes| Value::Bin(bytes.into()))
}
