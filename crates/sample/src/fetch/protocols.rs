//! Protocols detected by their first bytes: RDP, distcc (manual §7.3.5). In mode HTTP there are
//! none.

use super::{ANY_BUFFER, Cursor, Fetch, REQUEST_BUFFER, fetch};
use super::{raw_buffer, raw_request, sniffed};
use crate::args::ArgKind::{Int, Str};
use crate::args::{Arg, int_at, spec, str_at};
use crate::sniff::distcc::{self, Token};
use crate::sniff::rdp;
use crate::{Kind, SAMPLE_BYTES_MAX, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "req.rdp_cookie",
        NAME,
        Kind::Str,
        &REQUEST_BUFFER,
        "the cookie of an RDP request",
        rdp_cookie,
    ),
    fetch(
        "rdp_cookie",
        NAME,
        Kind::Str,
        &REQUEST_BUFFER,
        "as req.rdp_cookie",
        rdp_cookie,
    ),
    fetch(
        "req.rdp_cookie_cnt",
        NAME,
        Kind::Int,
        &REQUEST_BUFFER,
        "1 when an RDP request has the cookie",
        rdp_cookie_count,
    ),
    fetch(
        "rdp_cookie_cnt",
        NAME,
        Kind::Int,
        &REQUEST_BUFFER,
        "as req.rdp_cookie_cnt",
        rdp_cookie_count,
    ),
    fetch(
        "distcc_param",
        TOKEN,
        Kind::Int,
        &ANY_BUFFER,
        "the parameter of a token of distcc",
        |args, scope, cursor| Some(Value::Int(token(args, scope, cursor)?.parameter.into())),
    )
    .checked(token_name),
    fetch(
        "distcc_body",
        TOKEN,
        Kind::Bin,
        &ANY_BUFFER,
        "the bytes behind a token of distcc",
        |args, scope, cursor| {
            let token = token(args, scope, cursor)?;
            cursor.may_change = !token.is_whole;
            Some(Value::Bin(token.body.into()))
        },
    )
    .checked(token_name),
];

const NAME: crate::args::Spec = spec(0, &[Str]);
const TOKEN: crate::args::Spec = spec(1, &[Str, Int]);

fn rdp_cookie<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let found = raw_request(scope).then(|bytes| rdp::cookie(bytes, str_at(args, 0)));
    sniffed(found, cursor).map(Value::text)
}

fn rdp_cookie_count<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    cursor: &mut Cursor,
) -> Option<Value<'a>> {
    let found = rdp_cookie(args, scope, cursor).is_some();
    (!cursor.may_change).then_some(Value::Int(found.into()))
}

fn token_name(args: &mut [Arg]) -> Result<(), String> {
    match str_at(args, 0).len() {
        4 => Ok(()),
        _ => Err("token name must be exactly 4 characters".into()),
    }
}

fn token<'a>(args: &[Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Token<'a>> {
    let name = str_at(args, 0).first_chunk::<4>()?;
    let occurrence = u32::try_from(int_at(args, 1).unwrap_or(0)).ok()?;
    let found =
        raw_buffer(scope).then(|bytes| distcc::token(bytes, *name, occurrence, SAMPLE_BYTES_MAX));
    sniffed(found, cursor)
}

#[cfg(test)]
mod tests {
    use crate::testing::Facts;

    fn tcp(bytes: &[u8], last_chance: bool) -> Facts {
        let mut facts = Facts::new();
        facts.txn.is_http = false;
        facts.request_data = bytes.to_vec();
        facts.last_chance = last_chance;
        facts
    }

    const RDP: &[u8] = b"\x03\0\0\x2a\x25\xe0\0\0\0\0\0Cookie: mstshash=anna\r\n";

    #[test]
    fn rdp_cookies() {
        let facts = tcp(RDP, true);
        for (expr, wanted) in [
            ("rdp_cookie", Some("anna")),
            ("req.rdp_cookie(MSTShash)", Some("anna")),
            ("req.rdp_cookie(msts)", None),
            ("rdp_cookie_cnt(mstshash)", Some("1")),
            ("req.rdp_cookie_cnt(msts)", Some("0")),
        ] {
            assert_eq!(facts.text(expr).as_deref(), wanted, "{expr}");
        }
        assert_eq!(tcp(&RDP[..20], true).text("rdp_cookie_cnt"), None);
    }

    #[test]
    fn distcc_tokens() {
        let facts = tcp(
            b"DIST00000001ARGV00000003gccARGV00000002-cDOTI00000006int",
            true,
        );
        for (expr, wanted) in [
            ("distcc_param(DIST)", Some("1")),
            ("distcc_param(DOTI)", Some("6")),
            ("distcc_body(ARGV)", Some("gcc")),
            ("distcc_body(ARGV,2)", Some("-c")),
            ("distcc_body(ARGV,3)", None),
            ("distcc_body(DOTI)", Some("int")),
        ] {
            assert_eq!(facts.text(expr).as_deref(), wanted, "{expr}");
        }
    }

    #[test]
    fn a_verdict_waits_for_bytes_that_may_come() {
        use crate::Verdict::{False, True, Wait};
        for (words, bytes, wanted) in [
            ("rdp_cookie_cnt gt 0", &RDP[..20], Wait),
            ("rdp_cookie_cnt gt 0", RDP, True),
            (
                "rdp_cookie_cnt gt 0",
                b"GET / HTTP/1.1\r\nHost: a\r\n",
                False,
            ),
            ("rdp_cookie anna", &RDP[..30], Wait),
            ("distcc_param(DOTI) gt 5", b"DIST00000001", Wait),
            ("distcc_param(DOTI) gt 5", b"DOTI00000006", True),
            ("distcc_param(DOTI) gt 5", b"DOTI00000005", False),
        ] {
            assert_eq!(tcp(bytes, false).verdict(words), wanted, "{words}");
        }
    }

    #[test]
    fn nothing_of_it_in_http() {
        let mut facts = tcp(RDP, true);
        facts.txn.is_http = true;
        assert_eq!(facts.text("rdp_cookie"), None);
        assert_eq!(facts.text("distcc_param(DIST)"), None);
    }
}
