//! State of the proxy: proxies and servers by a computed name, the result of the stream; captures
//! and debug output of samples.

use super::{Convert, bytes_of, convert};
use crate::args::ArgKind::{AclOfWhen, CurrentProxy, Int, Str};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::captured::CaptureSlot;
use crate::cast::until_nul;
use crate::facts::{ProxySide, ServerFacts};
use crate::{Kind, Scope, Txn, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "nbsrv",
        NONE,
        Kind::Str,
        Kind::Int,
        "usable servers of the backend with this name",
        |_, value, scope| {
            let name = bytes_of(value)?;
            let backend = scope
                .world
                .proxy_named(until_nul(&name), ProxySide::Backend)?;
            Some(Value::Int(
                scope.world.proxy(backend)?.usable_servers.into(),
            ))
        },
    )
    .scoped(),
    convert(
        "fe_exists",
        NONE,
        Kind::Str,
        Kind::Bool,
        "whether there is a frontend with this name",
        |_, value, scope| {
            let name = bytes_of(value)?;
            let found = scope
                .world
                .proxy_named(until_nul(&name), ProxySide::Frontend);
            Some(Value::Bool(found.is_some()))
        },
    )
    .scoped(),
    convert(
        "srv_is_up",
        spec(0, &[CurrentProxy]),
        Kind::Str,
        Kind::Bool,
        "whether the server of this name is up",
        |args, value, scope| Some(Value::Bool(server(args, value, scope)?.is_up)),
    )
    .scoped(),
    convert(
        "srv_queue",
        spec(0, &[CurrentProxy]),
        Kind::Str,
        Kind::Int,
        "requests in the queue of the server of this name",
        |args, value, scope| Some(Value::Int(server(args, value, scope)?.queue.into())),
    )
    .scoped(),
    convert(
        "when",
        spec(1, &[Str, AclOfWhen, Str]),
        Kind::Any,
        Kind::Any,
        "itself where a condition holds, else nothing",
        |args, value, scope| {
            let place = usize::try_from(int_at(args, 0)?).ok()?;
            let (_, holds) = CONDITIONS.get(place / 2)?;
            (holds(args, scope) != (place % 2 == 1)).then_some(value)
        },
    )
    .scoped()
    .checked(condition),
    convert(
        "capture-req",
        spec(1, &[Int]),
        Kind::Str,
        Kind::Str,
        "itself, captured in a slot of the request",
        |args, value, scope| capture(args, value, scope, false),
    )
    .scoped(),
    convert(
        "capture-res",
        spec(1, &[Int]),
        Kind::Str,
        Kind::Str,
        "itself, captured in a slot of the response",
        |args, value, scope| capture(args, value, scope, true),
    )
    .scoped(),
    convert(
        "debug",
        spec(0, &[Str, Str]),
        Kind::Any,
        Kind::Any,
        "itself; there are no rings yet that would show it",
        |_, value, _| Some(value),
    )
    .kind_kept(),
];

/// `backend/server`, or a server of the section's own backend.
fn server<'a>(args: &[Arg], value: Value<'_>, scope: &Scope<'a>) -> Option<ServerFacts<'a>> {
    let text = bytes_of(value)?;
    let name = until_nul(&text);
    let (backend, name) = match memchr::memchr(b'/', name) {
        Some(slash) => {
            let backend = scope
                .world
                .proxy_named(&name[..slash], ProxySide::Backend)?;
            (backend, &name[slash + 1..])
        }
        None => match args.first()? {
            Arg::Proxy(current) => (*current, name),
            _ => return None,
        },
    };
    scope
        .world
        .server(backend, scope.world.server_named(backend, name)?)
}

/// Fails if the frontend has no such slot. A text that is too long is truncated.
fn capture<'a>(
    args: &[Arg],
    value: Value<'a>,
    scope: &Scope<'a>,
    of_response: bool,
) -> Option<Value<'a>> {
    let index = usize::try_from(int_at(args, 0)?).ok()?;
    let slot = CaptureSlot { of_response, index };
    let room = scope.world.capture_len(scope.session.frontend, slot)?;
    let text = bytes_of(value)?;
    scope.txn?.captured.put(slot, &text[..text.len().min(room)]);
    Some(Value::Str(text))
}

/// A condition of `when`.
type Holds = fn(&[Arg], &Scope<'_>) -> bool;

const CONDITIONS: &[(&str, Holds)] = &[
    ("stopping", |_, scope| scope.world.stopping()),
    ("normal", |_, scope| !scope.txn.is_some_and(failed)),
    ("error", |_, scope| scope.txn.is_some_and(failed)),
    ("forwarded", |_, scope| scope.txn.is_some_and(forwarded)),
    ("toapplet", |_, scope| scope.txn.is_some_and(served)),
    ("processed", |_, scope| {
        scope.txn.is_some_and(|txn| forwarded(txn) || served(txn))
    }),
    (
        "acl",
        |args, scope| matches!(args.get(1), Some(Arg::Condition(condition)) if condition.matches(scope)),
    ),
];

/// What `option dontlog-normal` counts as an error (manual §8.1).
fn failed(txn: &Txn) -> bool {
    txn.redispatched
        || txn.retries > 0
        || !matches!(txn.termination[0], 0 | b'L')
        || (txn.is_http && txn.status >= 500)
}

/// Whether the request was sent to a server.
fn forwarded(txn: &Txn) -> bool {
    txn.had_server()
}

/// Whether an internal service answered.
fn served(txn: &Txn) -> bool {
    txn.service.is_some()
}

/// Replaces the condition by twice its index in [`CONDITIONS`], plus one if it is negated.
fn condition(args: &mut [Arg]) -> Result<(), String> {
    let (negated, word) = match str_at(args, 0) {
        [b'!', word @ ..] => (true, word),
        word => (false, word),
    };
    let named = |(name, _): &(&str, Holds)| name.as_bytes() == word;
    let Some(place) = CONDITIONS.iter().position(named) else {
        let names: Vec<&str> = CONDITIONS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "expects a supported keyword among {{{}}} but got '{}'",
            names.join(","),
            String::from_utf8_lossy(word)
        ));
    };
    if word == b"acl" && args.len() < 2 {
        return Err("'acl' selector requires an extra argument with the ACL name".into());
    }
    args[0] = Arg::Int(place as i64 * 2 + i64::from(negated));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{Facts, convert_text, none};

    #[test]
    fn proxies_and_servers_by_name() {
        for (expr, wanted) in [
            ("str(static),nbsrv", "2"),
            ("str(www),fe_exists", "1"),
            ("str(static),fe_exists", "0"),
            ("str(static/srv1),srv_is_up", "1"),
            ("str(static/srv2),srv_queue", "0"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        for expr in [
            "str(nowhere),nbsrv",
            "str(static/srv9),srv_is_up",
            "str(srv1),srv_is_up",
        ] {
            none(expr);
        }
    }

    #[test]
    fn captures_are_cut_and_kept() {
        let mut facts = Facts::new();
        let captured = facts.text("str(a-long-text),capture-req(0),upper");
        assert_eq!(captured.as_deref(), Some("A-LONG-TEXT"));
        assert_eq!(facts.text("capture.req.hdr(0)").as_deref(), Some("a-lon"));
        facts.text("str(x),capture-req(0),capture-res(1)");
        facts.settle();
        assert_eq!(facts.text("capture.req.hdr(0)").as_deref(), Some("x"));
        assert!(facts.txn.captured_request.iter().eq([Some(&b"x"[..])]));
        assert!(
            facts
                .txn
                .captured_response
                .iter()
                .eq([None, Some(&b"x"[..])])
        );
        assert_eq!(facts.text("str(x),capture-req(2)"), None);
    }

    #[test]
    fn samples_pass_when_a_condition_holds() {
        let mut facts = Facts::new();
        facts.txn.is_http = true;
        for (status, condition, passes) in [
            (200, "normal", true),
            (200, "error", false),
            (200, "!error", true),
            (503, "error", true),
            (503, "!normal", true),
            (200, "stopping", false),
            (200, "forwarded", false),
            (200, "!processed", true),
            (200, "acl,TRUE", true),
            (200, "!acl,TRUE", false),
        ] {
            facts.txn.status = status;
            let text = facts.text(&format!("int(5),when({condition}),add(1)"));
            assert_eq!(text.as_deref(), passes.then_some("6"), "{condition}");
        }
        facts.txn.service = Some("STATS");
        assert_eq!(
            facts
                .text("str(a),when(toapplet),debug(x,stderr),upper")
                .as_deref(),
            Some("A")
        );
    }
}
