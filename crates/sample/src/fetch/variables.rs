//! All variables of a scope at once (manual §7.3.2 dump_all_vars), for debugging a configuration.

use super::{CONSTANT, Cursor, Fetch, fetch};
use crate::args::ArgKind::Str;
use crate::args::{Arg, spec, str_at};
use crate::text::{push_int, push_ip};
use crate::{Bytes, Kind, Scope, Value, VarRef, VarScope};

pub(crate) const FETCHES: &[Fetch] = &[fetch(
    "dump_all_vars",
    spec(0, &[Str, Str, Str]),
    Kind::Str,
    &CONSTANT,
    "variables of a scope, or of all, as name=value",
    dump,
)
.checked(check_scope)];

/// The scopes in the order of the output.
const SHOWN: &[(&str, VarScope)] = &[
    ("sess", VarScope::Sess),
    ("txn", VarScope::Txn),
    ("req", VarScope::Req),
    ("res", VarScope::Res),
    ("proc", VarScope::Proc),
];

fn check_scope(args: &mut [Arg]) -> Result<(), String> {
    let scope = String::from_utf8_lossy(str_at(args, 0)).into_owned();
    if scope.is_empty() || scope == "check" || SHOWN.iter().any(|(name, _)| *name == scope) {
        return Ok(());
    }
    Err(format!(
        "invalid scope '{scope}', must be one of: sess, txn, req, res, proc"
    ))
}

fn dump<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let (wanted, prefix) = (str_at(args, 0), str_at(args, 1));
    let delimiter = match args.get(2) {
        Some(Arg::Str(text)) => text,
        _ => &b", "[..],
    };
    let mut out = Bytes::buffer();
    let names = scope.world.var_names();
    for (scope_name, of) in SHOWN {
        if !wanted.is_empty() && wanted != scope_name.as_bytes() {
            continue;
        }
        let of_scope = names.into_iter().flat_map(|names| names.of(*of));
        for (slot, name) in of_scope.filter(|(_, name)| name.as_bytes().starts_with(prefix)) {
            let Some(value) = scope.var(VarRef { scope: *of, slot }) else {
                continue;
            };
            if !out.is_empty() {
                out.extend(delimiter);
            }
            out.extend(scope_name.as_bytes());
            out.push(b'.');
            out.extend(name.as_bytes());
            out.push(b'=');
            push_value(out.as_vec(), &value);
            if out.too_long() {
                return None;
            }
        }
    }
    Some(Value::Str(out.into()))
}

fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => push_int(out, *number),
        Value::Ipv4(ip) => push_ip(out, (*ip).into()),
        Value::Ipv6(ip) => push_ip(out, (*ip).into()),
        Value::Str(text) | Value::Method(_, text) => push_quoted(out, text),
        Value::Bin(bytes) => syntax::hex::push(out, bytes),
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\n' => out.extend_from_slice(b"\\n"),
            8 => out.extend_from_slice(b"\\b"),
            0 => out.extend_from_slice(b"\\0"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
}
