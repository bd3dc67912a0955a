//! Fields of requests and responses: by line (`fhdr`) or by comma-separated value (`hdr`).

use std::net::IpAddr;

use ::http::{FieldName, Head};

use super::values::{Values, trim};
use super::{request, response};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::bytes::Buffer;
use crate::fetch::{ANY_HEAD, Cursor, Fetch, REQUEST_HEAD, RESPONSE_HEAD, fetch};
use crate::text::{ipv4_prefix, read_int};
use crate::{Bytes, Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "hdr",
        FIELD,
        Kind::Str,
        &ANY_HEAD,
        "as req.hdr, on the response's way as res.hdr",
        |args, scope, cursor| {
            if scope.from_server {
                response_value(args, scope, cursor)
            } else {
                request_value(args, scope, cursor)
            }
        },
    )
    .checked(name_and_occurrence),
    fetch(
        "req.hdr",
        FIELD,
        Kind::Str,
        &REQUEST_HEAD,
        "a comma-separated value of a field",
        request_value,
    )
    .checked(name_and_occurrence),
    fetch(
        "req.fhdr",
        FIELD,
        Kind::Str,
        &REQUEST_HEAD,
        "a field's whole value",
        |args, scope, cursor| field(args, request(scope, cursor)?, cursor),
    )
    .checked(name_and_occurrence),
    fetch(
        "hdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.hdr_cnt",
        request_value_count,
    )
    .checked(field_name),
    fetch(
        "req.hdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "how many values a field has",
        request_value_count,
    )
    .checked(field_name),
    fetch(
        "req.fhdr_cnt",
        COUNT,
        Kind::Int,
        &REQUEST_HEAD,
        "how often a field comes",
        |args, scope, cursor| {
            Some(Value::Int(
                Lines::of(args, request(scope, cursor)?).count() as i64
            ))
        },
    )
    .checked(field_name),
    fetch(
        "hdr_ip",
        FIELD,
        Kind::Addr,
        &REQUEST_HEAD,
        "as req.hdr_ip",
        request_ip,
    )
    .checked(name_and_occurrence),
    fetch(
        "req.hdr_ip",
        FIELD,
        Kind::Addr,
        &REQUEST_HEAD,
        "a value as an address",
        request_ip,
    )
    .checked(name_and_occurrence),
    fetch(
        "hdr_val",
        FIELD,
        Kind::Int,
        &REQUEST_HEAD,
        "as req.hdr_val",
        request_number,
    )
    .checked(name_and_occurrence),
    fetch(
        "req.hdr_val",
        FIELD,
        Kind::Int,
        &REQUEST_HEAD,
        "a value as a number",
        request_number,
    )
    .checked(name_and_occurrence),
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
        "req.hdrs_bin",
        NONE,
        Kind::Bin,
        &REQUEST_HEAD,
        "all fields, each name and value behind its length",
        |_, scope, cursor| all_sized(request(scope, cursor)?),
    ),
    fetch(
        "shdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "as res.hdr",
        response_value,
    )
    .checked(name_and_occurrence),
    fetch(
        "res.hdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "a comma-separated value of a field",
        response_value,
    )
    .checked(name_and_occurrence),
    fetch(
        "res.fhdr",
        FIELD,
        Kind::Str,
        &RESPONSE_HEAD,
        "a field's whole value",
        |args, scope, cursor| field(args, response(scope, cursor)?, cursor),
    )
    .checked(name_and_occurrence),
    fetch(
        "shdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.hdr_cnt",
        response_value_count,
    )
    .checked(field_name),
    fetch(
        "res.hdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how many values a field has",
        response_value_count,
    )
    .checked(field_name),
    fetch(
        "res.fhdr_cnt",
        COUNT,
        Kind::Int,
        &RESPONSE_HEAD,
        "how often a field comes",
        |args, scope, cursor| {
            Some(Value::Int(
                Lines::of(args, response(scope, cursor)?).count() as i64,
            ))
        },
    )
    .checked(field_name),
    fetch(
        "shdr_ip",
        FIELD,
        Kind::Addr,
        &RESPONSE_HEAD,
        "as res.hdr_ip",
        response_ip,
    )
    .checked(name_and_occurrence),
    fetch(
        "res.hdr_ip",
        FIELD,
        Kind::Addr,
        &RESPONSE_HEAD,
        "a value as an address",
        response_ip,
    )
    .checked(name_and_occurrence),
    fetch(
        "shdr_val",
        FIELD,
        Kind::Int,
        &RESPONSE_HEAD,
        "as res.hdr_val",
        response_number,
    )
    .checked(name_and_occurrence),
    fetch(
        "res.hdr_val",
        FIELD,
        Kind::Int,
        &RESPONSE_HEAD,
        "a value as a number",
        response_number,
    )
    .checked(name_and_occurrence),
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
        "res.hdrs_bin",
        NONE,
        Kind::Bin,
        &RESPONSE_HEAD,
        "all fields, each name and value behind its length",
        |_, scope, cursor| all_sized(response(scope, cursor)?),
    ),
];

const FIELD: crate::args::Spec = spec(0, &[Str, Int]);
const COUNT: crate::args::Spec = spec(0, &[Str]);

/// The lowest negative occurrence, counted from the end.
const OCCURRENCES_BACK_MAX: usize = 10;

fn occurrence(args: &mut [Arg]) -> Result<(), String> {
    match int_at(args, 1) {
        Some(number) if number < -(OCCURRENCES_BACK_MAX as i64) => Err(format!(
            "header occurrence must be >= -{OCCURRENCES_BACK_MAX}"
        )),
        _ => Ok(()),
    }
}

/// Interns the name in the first argument, so that it is not looked up again; no name stays empty.
fn field_name(args: &mut [Arg]) -> Result<(), String> {
    if let Some(first) = args.first_mut()
        && let Arg::Str(name) = first
        && !name.is_empty()
    {
        *first = Arg::Field(FieldName::new(name));
    }
    Ok(())
}

fn name_and_occurrence(args: &mut [Arg]) -> Result<(), String> {
    field_name(args)?;
    occurrence(args)
}

/// Values of fields of a name, or of all fields.
#[derive(Clone)]
struct Lines<'a> {
    head: &'a Head,
    name: Option<&'a FieldName>,
    /// The index of the next field to check.
    from: usize,
}

impl<'a> Lines<'a> {
    fn of(args: &'a [Arg], head: &'a Head) -> Lines<'a> {
        let name = match args.first() {
            Some(Arg::Field(name)) => Some(name),
            _ => None,
        };
        Lines {
            head,
            name,
            from: 0,
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (at, value) = match self.name {
            Some(name) => self.head.next_named(name, self.from)?,
            None => self.head.next_live(self.from)?,
        };
        self.from = at + 1;
        Some(trim(value))
    }
}

/// A value of a field by its occurrence: counted from 1, negative from the end. 0 is each one in
/// turn for callers that iterate, otherwise the last one.
fn value<'a>(args: &'a [Arg], head: &'a Head, cursor: &mut Cursor) -> Option<Value<'a>> {
    let lines = Lines::of(args, head);
    let occurrence = int_at(args, 1).unwrap_or(0);
    if occurrence == 0 && cursor.iterate {
        return next_value(lines, cursor).map(Value::text);
    }
    pick(lines.flat_map(Values::new), occurrence).map(Value::text)
}

/// The next of all values: `index` is the index of the field, `offset` the position in its line.
fn next_value<'a>(mut lines: Lines<'a>, cursor: &mut Cursor) -> Option<&'a [u8]> {
    lines.from = cursor.index;
    while let Some(line) = lines.next() {
        let mut values = Values {
            line,
            at: cursor.offset,
        };
        if let Some(value) = values.next() {
            cursor.index = lines.from - 1;
            cursor.offset = values.at;
            cursor.more = true;
            return Some(value);
        }
        cursor.offset = 0;
    }
    None
}

/// Like [`value`], for whole lines.
fn field<'a>(args: &'a [Arg], head: &'a Head, cursor: &mut Cursor) -> Option<Value<'a>> {
    let mut lines = Lines::of(args, head);
    let occurrence = int_at(args, 1).unwrap_or(0);
    if occurrence == 0 && cursor.iterate {
        lines.from = cursor.index;
        let line = lines.next()?;
        cursor.index = lines.from;
        cursor.more = true;
        return Some(Value::text(line));
    }
    pick(lines, occurrence).map(Value::text)
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
        Lines::of(args, head).flat_map(Values::new).count() as i64,
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

pub(super) fn as_number(value: Value<'_>) -> Option<Value<'_>> {
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
        if let Some(ip) = address(&text) {
            return Some(ip.into());
        }
        if !cursor.more {
            return None;
        }
    }
}

fn address(text: &[u8]) -> Option<IpAddr> {
    match ipv4_prefix(text) {
        Some((ip, used)) => {
            let rest = &text[used..];
            let has_port = rest.strip_prefix(b":").is_some_and(is_port);
            (rest.is_empty() || has_port).then_some(ip.into())
        }
        None => {
            let inner = text
                .strip_prefix(b"[")
                .and_then(|text| text.strip_suffix(b"]"));
            let text = std::str::from_utf8(inner.unwrap_or(text)).ok()?;
            text.parse().ok().map(IpAddr::V6)
        }
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

/// Names and values, each with its length before it; two empty ones at the end (manual §7.3.6
/// req.hdrs_bin).
fn all_sized<'a>(head: &Head) -> Option<Value<'a>> {
    let mut out: Buffer = Bytes::buffer();
    for (_, _, name, value) in head.fields() {
        for part in [name, value] {
            push_varint(out.as_vec(), part.len() as u64);
            out.extend(part);
        }
    }
    out.extend(&[0, 0]);
    (!out.too_long()).then(|| Value::Bin(out.into()))
}

/// A number in SPOE's encoding: one byte below 240. Otherwise, 240 plus the low four bits, then
/// seven bits of the remaining value per byte.
fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    if number < 240 {
        out.push(number as u8);
        return;
    }
    out.push(number as u8 | 240);
    number = (number - 240) >> 4;
    while number >= 128 {
        out.push(number as u8 | 128);
        number = (number - 128) >> 7;
    }
    out.push(number as u8);
}
