//! Bodies of requests and responses, as far as they have arrived (manual §7.3.6).
//!
//! `option http-buffer-request` and `wait-for-body` wait for them; without these, only the part
//! that arrived with the head is available.

use ::http::h1::Framing;

use super::{next_param, request, response};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, spec, str_at};
use crate::facts::BodyFacts;
use crate::fetch::{Cursor, Fetch, REQUEST_HEAD, RESPONSE_HEAD, fetch};
use crate::{Bytes, Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "req.body",
        NONE,
        Kind::Bin,
        &REQUEST_HEAD,
        "the request's body as far as it is here",
        |_, scope, cursor| Some(Value::Bin(of_request(scope, cursor)?.bytes)),
    ),
    fetch(
        "req.body_len",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "its length",
        |_, scope, cursor| length(of_request(scope, cursor)?),
    ),
    fetch(
        "req.body_size",
        NONE,
        Kind::Int,
        &REQUEST_HEAD,
        "the length that was announced, else what is here",
        |_, scope, cursor| size(of_request(scope, cursor)?),
    ),
    fetch(
        "req.body_param",
        spec(0, &[Str, Str]),
        Kind::Str,
        &REQUEST_HEAD,
        "a parameter of a body that is URL-encoded",
        param,
    ),
    fetch(
        "res.body",
        NONE,
        Kind::Bin,
        &RESPONSE_HEAD,
        "the response's body as far as it is here",
        |_, scope, cursor| Some(Value::Bin(of_response(scope, cursor)?.bytes)),
    ),
    fetch(
        "res.body_len",
        NONE,
        Kind::Int,
        &RESPONSE_HEAD,
        "its length",
        |_, scope, cursor| length(of_response(scope, cursor)?),
    ),
    fetch(
        "res.body_size",
        NONE,
        Kind::Int,
        &RESPONSE_HEAD,
        "the length that was announced, else what is here",
        |_, scope, cursor| size(of_response(scope, cursor)?),
    ),
];

/// The available part of a body.
struct Body<'a> {
    bytes: Bytes<'a>,
    /// Its length, as far as it was announced.
    size: u64,
    is_whole: bool,
}

fn of_request<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Body<'a>> {
    request(scope, cursor)?;
    Some(body(scope.txn?.request_body, scope.request_data, cursor))
}

fn of_response<'a>(scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Body<'a>> {
    response(scope, cursor)?;
    Some(body(scope.txn?.response_body, scope.response_data, cursor))
}

fn body<'a>(facts: BodyFacts, data: &'a [u8], cursor: &mut Cursor) -> Body<'a> {
    let here = data.len() as u64;
    let body = match facts.framing {
        Framing::None => Body {
            bytes: Bytes::Borrowed(&[]),
            size: 0,
            is_whole: true,
        },
        Framing::Length(length) => Body {
            bytes: data.into(),
            size: length,
            is_whole: facts.is_whole || length <= here,
        },
        Framing::UntilClose | Framing::Chunked => Body {
            bytes: data.into(),
            size: here + facts.announced,
            is_whole: facts.is_whole,
        },
    };
    cursor.may_change = !body.is_whole;
    body
}

fn length<'a>(body: Body<'_>) -> Option<Value<'a>> {
    Some(Value::Int(body.bytes.len() as i64))
}

fn size<'a>(body: Body<'_>) -> Option<Value<'a>> {
    Some(Value::Int(i64::try_from(body.size).unwrap_or(i64::MAX)))
}

fn param<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let body = of_request(scope, cursor)?.bytes;
    let ignore_case = str_at(args, 1).first() == Some(&b'i');
    let found = next_param(&body, cursor.offset, str_at(args, 0), b'&', ignore_case)?;
    cursor.offset = found.end;
    cursor.more = found.end < body.len();
    Some(Value::Str(body.slice(found.start, found.end)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Facts, response};
    use http::h1::Framing;

    fn post(framing: Framing, body: &str) -> Facts {
        let mut facts = Facts::with_request("POST / HTTP/1.1\nHost: h\nContent-Length: 40\n\n");
        facts.txn.request_body.framing = framing;
        facts.request_data = body.into();
        facts
    }

    fn check(facts: &Facts, cases: &[(&str, Option<&str>)]) {
        for (expr, wanted) in cases {
            assert_eq!(facts.text(expr).as_deref(), *wanted, "{expr}");
        }
    }

    #[test]
    fn a_body_has_the_length_that_was_announced() {
        check(
            &post(Framing::Length(5), "a=1&b"),
            &[
                ("req.body", Some("a=1&b")),
                ("req.body_len", Some("5")),
                ("req.body_size", Some("5")),
            ],
        );
        check(
            &post(Framing::Length(40), "a=1"),
            &[("req.body_len", Some("3")), ("req.body_size", Some("40"))],
        );
        check(
            &post(Framing::None, ""),
            &[("req.body", Some("")), ("req.body_size", Some("0"))],
        );
    }

    #[test]
    fn a_body_in_chunks_is_as_long_as_is_known() {
        let mut facts = post(Framing::Chunked, "a=1&b=23");
        facts.txn.request_body.announced = 4;
        check(
            &facts,
            &[
                ("req.body", Some("a=1&b=23")),
                ("req.body_len", Some("8")),
                ("req.body_size", Some("12")),
                ("req.body_param(b)", Some("23")),
            ],
        );
        facts.last_chance = false;
        assert_eq!(facts.verdict("req.body_len 9"), crate::Verdict::Wait);
        facts.txn.request_body.is_whole = true;
        assert_eq!(facts.verdict("req.body_len 9"), crate::Verdict::False);
    }

    #[test]
    fn parameters_of_a_form() {
        check(
            &post(Framing::Length(17), "a=1&B=x%20y&c=&a=2"),
            &[
                ("req.body_param(a)", Some("1")),
                ("req.body_param", Some("1")),
                ("req.body_param(B),url_dec", Some("x y")),
                ("req.body_param(b)", None),
                ("req.body_param(b,i)", Some("x%20y")),
                ("req.body_param(c)", Some("")),
                ("req.body_param(d)", None),
            ],
        );
        let facts = post(Framing::Length(18), "a=1&B=x%20y&c=&a=2");
        assert_eq!(facts.verdict("req.body_param(a) 2"), crate::Verdict::True);
    }

    #[test]
    fn bodies_of_responses() {
        let mut facts = Facts::new();
        facts.response = Some(response("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n"));
        facts.txn.response_body.framing = Framing::Chunked;
        facts.response_data = b"ok".to_vec();
        check(
            &facts,
            &[("res.body", Some("ok")), ("res.body_size", Some("2"))],
        );
        facts.txn.response_body.framing = Framing::UntilClose;
        check(&facts, &[("res.body_len", Some("2"))]);
        check(&Facts::new(), &[("res.body", None), ("req.body_len", None)]);
    }
}
