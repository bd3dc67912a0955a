//! Bytes of the request and response buffers (manual §7.3.5).

use super::{ANY_BUFFER, Cursor, Fetch, INTERNAL, REQUEST_BUFFER, RESPONSE_BUFFER, at_hand, fetch};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::read_int;
use crate::{Kind, SAMPLE_BYTES_MAX, Scope, Value};

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
        |args, scope, cursor| payload(args, scope, at_hand(scope), cursor),
    ),
    fetch(
        "req.payload_lv",
        LENGTH_VALUE,
        Kind::Bin,
        &REQUEST_BUFFER,
        "bytes whose length stands in the request buffer",
        |args, scope, cursor| payload_lv(args, scope, scope.request_data, cursor),
    )
    .checked(length_value),
    fetch(
        "res.payload_lv",
        LENGTH_VALUE,
        Kind::Bin,
        &RESPONSE_BUFFER,
        "bytes whose length stands in the response buffer",
        |args, scope, cursor| payload_lv(args, scope, scope.response_data, cursor),
    )
    .checked(length_value),
    fetch(
        "payload_lv",
        LENGTH_VALUE,
        Kind::Bin,
        &ANY_BUFFER,
        "the same of the buffer that is inspected",
        |args, scope, cursor| payload_lv(args, scope, at_hand(scope), cursor),
    )
    .checked(length_value),
];

fn len<'a>(data: &[u8], cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    Some(Value::Int(data.len() as i64))
}

/// The position of the length, its number of bytes, and the start of the value: directly after the
/// length, at a position, or with a sign at that distance after the length.
const LENGTH_VALUE: crate::args::Spec = spec(2, &[Int, Int, Str]);

/// Replaces the third argument by the position of the value.
fn length_value(args: &mut [Arg]) -> Result<(), String> {
    let (at, size) = (int_at(args, 0).unwrap_or(0), int_at(args, 1).unwrap_or(0));
    if at < 0 {
        return Err("payload offset1 must be positive".into());
    }
    if size <= 0 {
        return Err("payload length must be > 0".into());
    }
    let text = str_at(args, 2);
    if text.is_empty() {
        return Ok(());
    }
    let (offset, used) = read_int(text);
    if used != text.len() {
        return Err("payload offset2 is not a number".into());
    }
    let behind = at.saturating_add(size);
    if behind.saturating_add(offset) < 0 {
        return Err("payload offset2 too negative".into());
    }
    let is_relative = matches!(text[0], b'+' | b'-');
    args[2] = Arg::Int(if is_relative { behind + offset } else { offset });
    Ok(())
}

/// A length that can never arrive is no match at once; one that has not arrived yet may come.
fn payload_lv<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    data: &'a [u8],
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    if scope.txn.is_none_or(|txn| txn.is_http) {
        return None;
    }
    let at = usize::try_from(int_at(args, 0)?).ok()?;
    let size = usize::try_from(int_at(args, 1)?).ok()?;
    let behind = at.checked_add(size)?;
    let Some(digits) = data.get(at..behind) else {
        cursor.may_change = true;
        return None;
    };
    let length = digits
        .iter()
        .fold(0_u32, |length, byte| length << 8 | u32::from(*byte)) as usize;
    let start = match int_at(args, 2) {
        Some(start) => usize::try_from(start).ok()?,
        None => behind,
    };
    if length == 0 || length > SAMPLE_BYTES_MAX || start > SAMPLE_BYTES_MAX - length {
        return None;
    }
    let bytes = data.get(start..start + length);
    cursor.may_change = bytes.is_none();
    bytes.map(|bytes| Value::Bin(bytes.into()))
}

/// As in HAProxy, raw bytes have no meaning in mode HTTP: there is no value.
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

#[cfg(test)]
mod tests {
    use crate::Verdict::{False, True, Wait};
    use crate::testing::{Facts, fails};

    fn tcp(bytes: &[u8]) -> Facts {
        let mut facts = Facts::new();
        facts.txn.is_http = false;
        facts.request_data = bytes.to_vec();
        facts
    }

    #[test]
    fn lengths_and_values() {
        let facts = tcp(b"xx\x00\x03abcdef");
        for (expr, wanted) in [
            ("req.payload(0,2),hex", Some("7878")),
            ("req.payload(4,0)", Some("abcdef")),
            ("req.payload_lv(2,2)", Some("abc")),
            ("payload_lv(2,2,+1)", Some("bcd")),
            ("payload_lv(2,2,-1),hex", Some("036162")),
            ("payload_lv(2,2,7)", Some("def")),
            ("payload_lv(2,2,8)", None),
            ("payload_lv(2,1)", None),
            ("payload_lv(3,1)", Some("abc")),
            ("res.payload_lv(3,1)", None),
            ("req.len", Some("10")),
        ] {
            assert_eq!(facts.text(expr).as_deref(), wanted, "{expr}");
        }
    }

    #[test]
    fn arguments_that_make_no_sense() {
        for (expr, why) in [
            ("payload_lv(-1,2)", "payload offset1 must be positive"),
            ("payload_lv(1,0)", "payload length must be > 0"),
            ("payload_lv(1,2,x)", "payload offset2 is not a number"),
            ("payload_lv(1,2,-9)", "payload offset2 too negative"),
        ] {
            assert!(fails(expr).ends_with(why), "{expr}: {}", fails(expr));
        }
    }

    #[test]
    fn verdicts_wait_for_what_may_come() {
        for (words, bytes, wanted) in [
            ("req.payload(0,3) -m str abc", &b"ab"[..], Wait),
            ("req.payload(0,3) -m str abc", b"abc", True),
            ("req.payload(0,3) -m str abc", b"abd", False),
            ("req.payload(0,20000) -m found", b"abc", False),
            ("req.payload_lv(0,1) -m str ab", b"\x02a", Wait),
            ("req.payload_lv(0,1) -m str ab", b"\x02ab", True),
            ("req.payload_lv(0,2) -m found", b"\xff\xff", False),
            ("req.len gt 3", b"abc", Wait),
            ("req.len gt 3", b"abcd", True),
        ] {
            let mut facts = tcp(bytes);
            facts.last_chance = false;
            assert_eq!(facts.verdict(words), wanted, "{words}");
        }
    }
}
