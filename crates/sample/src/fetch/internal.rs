//! Constants and the state of the process (manual §7.3.2).

use super::{CONSTANT, Cursor, Fetch, INTERNAL, fetch};
use crate::args::ArgKind::{Acls, Int, Ipv4, Ipv6, Str, Var};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::{method_of, written};
use crate::text::push_hex;
use crate::{Bytes, Kind, Scope, Value, Verdict};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "always_true",
        NONE,
        Kind::Bool,
        &CONSTANT,
        "true",
        |_, _, _| Some(Value::Bool(true)),
    ),
    fetch(
        "always_false",
        NONE,
        Kind::Bool,
        &CONSTANT,
        "false",
        |_, _, _| Some(Value::Bool(false)),
    ),
    fetch(
        "bool",
        spec(1, &[Str]),
        Kind::Bool,
        &CONSTANT,
        "the boolean of the argument",
        truth,
    )
    .checked(read_bool),
    fetch(
        "int",
        spec(1, &[Int]),
        Kind::Int,
        &CONSTANT,
        "the integer of the argument",
        constant,
    ),
    fetch(
        "ipv4",
        spec(1, &[Ipv4]),
        Kind::Ipv4,
        &CONSTANT,
        "the IPv4 address of the argument",
        constant,
    ),
    fetch(
        "ipv6",
        spec(1, &[Ipv6]),
        Kind::Ipv6,
        &CONSTANT,
        "the IPv6 address of the argument",
        constant,
    ),
    fetch(
        "str",
        spec(1, &[Str]),
        Kind::Str,
        &CONSTANT,
        "the text of the argument",
        constant,
    ),
    fetch(
        "bin",
        spec(1, &[Str]),
        Kind::Bin,
        &CONSTANT,
        "the bytes of a hexadecimal argument",
        binary,
    )
    .checked(read_hex),
    fetch(
        "meth",
        spec(1, &[Str]),
        Kind::Method,
        &CONSTANT,
        "the method of the argument",
        method,
    ),
    fetch(
        "env",
        spec(1, &[Str]),
        Kind::Str,
        &CONSTANT,
        "an environment variable, as it was at the start",
        env,
    ),
    fetch(
        "acl",
        spec(1, &[Acls]),
        Kind::Bool,
        &CONSTANT,
        "whether all these ACLs match",
        acl,
    ),
    fetch(
        "var",
        spec(1, &[Var, Str]),
        Kind::Any,
        &CONSTANT,
        "a variable, or a default",
        var,
    ),
    fetch(
        "date",
        spec(0, &[Int, Str]),
        Kind::Int,
        &CONSTANT,
        "seconds since the epoch, or ms, us",
        date,
    )
    .checked(unit_second),
    fetch(
        "date_us",
        NONE,
        Kind::Int,
        &CONSTANT,
        "microseconds in the current second",
        |_, scope, cursor| {
            cursor.may_change = true;
            Some(Value::Int((scope.now.wall_ns / 1_000 % 1_000_000) as i64))
        },
    ),
    fetch(
        "hostname",
        NONE,
        Kind::Str,
        &CONSTANT,
        "the host's name",
        |_, scope, _| Some(Value::text(scope.world.hostname())),
    ),
    fetch(
        "pid",
        NONE,
        Kind::Int,
        &CONSTANT,
        "the process id",
        |_, scope, _| Some(Value::Int(scope.world.pid().into())),
    ),
    fetch(
        "proc",
        NONE,
        Kind::Int,
        &CONSTANT,
        "the process number: 1",
        |_, _, _| Some(Value::Int(1)),
    ),
    fetch(
        "nbproc",
        NONE,
        Kind::Int,
        &CONSTANT,
        "the number of processes: 1",
        |_, _, _| Some(Value::Int(1)),
    ),
    fetch(
        "thread",
        NONE,
        Kind::Int,
        &CONSTANT,
        "this worker, from 0",
        |_, scope, _| Some(Value::Int(scope.world.thread().into())),
    ),
    fetch(
        "tgroup",
        NONE,
        Kind::Int,
        &CONSTANT,
        "the thread group: 1",
        |_, _, _| Some(Value::Int(1)),
    ),
    fetch(
        "rand",
        spec(0, &[Int]),
        Kind::Int,
        &CONSTANT,
        "a random number below the argument or 2^32",
        rand,
    ),
    fetch(
        "uuid",
        spec(0, &[Int]),
        Kind::Str,
        &CONSTANT,
        "a UUID of version 4 or 7",
        uuid,
    )
    .checked(uuid_version),
    fetch(
        "uptime",
        NONE,
        Kind::Int,
        &CONSTANT,
        "seconds since the start",
        |_, scope, _| Some(Value::Int(scope.world.uptime_seconds() as i64)),
    ),
    fetch(
        "act_conn",
        NONE,
        Kind::Int,
        &CONSTANT,
        "connections of the process",
        |_, scope, _| Some(Value::Int(scope.world.actconn().into())),
    ),
    fetch(
        "quic_enabled",
        NONE,
        Kind::Bool,
        &CONSTANT,
        "whether lines with QUIC are bound: `tune.quic.listen`",
        |_, scope, _| Some(Value::Bool(scope.world.quic_enabled())),
    ),
    fetch(
        "stopping",
        NONE,
        Kind::Bool,
        &INTERNAL,
        "whether the process drains",
        |_, scope, _| Some(Value::Bool(scope.world.stopping())),
    ),
];

/// The fetches whose value is known at compile time.
const CONSTANTS: &[&str] = &[
    "always_true",
    "always_false",
    "bool",
    "int",
    "ipv4",
    "ipv6",
    "str",
    "bin",
    "meth",
    "env",
];

/// Whether the fetch depends only on its arguments.
pub(crate) fn is_constant(fetch: &Fetch) -> bool {
    CONSTANTS.contains(&fetch.name)
}

fn constant<'a>(args: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    Some(match args.first()? {
        Arg::Int(value) => Value::Int(*value),
        Arg::Ipv4(ip) => Value::Ipv4(*ip),
        Arg::Ipv6(ip) => Value::Ipv6(*ip),
        Arg::Str(text) => Value::text(&**text),
        _ => return None,
    })
}

fn truth<'a>(args: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    match args.first()? {
        Arg::Int(value) => Some(Value::Bool(*value != 0)),
        _ => None,
    }
}

fn binary<'a>(args: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    Some(Value::Bin(Bytes::Borrowed(str_at(args, 0))))
}

fn method<'a>(args: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let name = str_at(args, 0);
    Some(Value::Method(method_of(name), name.into()))
}

/// The environment does not change while the process runs, so this is a constant.
fn env<'a>(args: &'a [Arg], _: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let name = std::ffi::OsStr::from_bytes(str_at(args, 0));
    if name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, 0 | b'=')) {
        return None;
    }
    let value = std::env::var_os(name)?.into_vec();
    Some(Value::Str(written(|out| out.extend_from_slice(&value))))
}

fn acl<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let Some(Arg::Condition(condition)) = args.first() else {
        return None;
    };
    match condition.test(scope) {
        Verdict::Wait => {
            cursor.may_change = true;
            None
        }
        verdict => Some(Value::Bool(verdict == Verdict::True)),
    }
}

fn var<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let Some(Arg::Var(var)) = args.first() else {
        return None;
    };
    scope.var(*var).or_else(|| match args.get(1) {
        Some(Arg::Str(default)) => Some(Value::text(&**default)),
        _ => None,
    })
}

fn date<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    let divisor = int_at(args, 1).unwrap_or(NS_PER_SECOND);
    let offset = int_at(args, 0).unwrap_or(0);
    let offset = offset.saturating_mul(NS_PER_SECOND / divisor);
    Some(Value::Int(
        ((scope.now.wall_ns / divisor as u64) as i64).saturating_add(offset),
    ))
}

const NS_PER_SECOND: i64 = 1_000_000_000;

/// Replaces the unit in the argument at `index` by its nanoseconds.
fn read_unit(args: &mut [Arg], index: usize) -> Result<(), String> {
    let Some(Arg::Str(unit)) = args.get(index) else {
        return Ok(());
    };
    let ns = match &**unit {
        b"s" | b"" => NS_PER_SECOND,
        b"ms" => 1_000_000,
        b"us" => 1_000,
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(format!("expects 's', 'ms' or 'us', got '{other}'"));
        }
    };
    args[index] = Arg::Int(ns);
    Ok(())
}

/// The unit is the first argument.
pub(super) fn unit_first(args: &mut [Arg]) -> Result<(), String> {
    if !args.is_empty() && str_at(args, 0).is_empty() {
        return Err("expects 's', 'ms' or 'us', got ''".into());
    }
    read_unit(args, 0)
}

fn unit_second(args: &mut [Arg]) -> Result<(), String> {
    read_unit(args, 1)
}

fn read_bool(args: &mut [Arg]) -> Result<(), String> {
    let value = match str_at(args, 0).to_ascii_lowercase().as_slice() {
        b"true" | b"1" | b"yes" | b"on" => 1,
        b"false" | b"0" | b"no" | b"off" => 0,
        _ => return Err("Expects 'true', 'false', '0' or '1'".into()),
    };
    args[0] = Arg::Int(value);
    Ok(())
}

/// Replaces hexadecimal digits by their bytes.
fn read_hex(args: &mut [Arg]) -> Result<(), String> {
    let text = str_at(args, 0);
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return Err("an even number of hex digit is expected".into());
    }
    let other = text.iter().find(|byte| !byte.is_ascii_hexdigit());
    let bytes = syntax::hex::decode(text).ok_or_else(|| {
        let other = char::from(*other.unwrap_or(&b' '));
        format!("an hex digit is expected (found '{other}')")
    })?;
    args[0] = Arg::Str(bytes.into_boxed_slice());
    Ok(())
}

fn rand<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    let random = scope.world.random() & 0xffff_ffff;
    Some(Value::Int(match int_at(args, 0) {
        Some(range) => (random.wrapping_mul(range as u64) >> 32) as i64,
        None => random as i64,
    }))
}

fn uuid_version(args: &mut [Arg]) -> Result<(), String> {
    match int_at(args, 0) {
        None | Some(4 | 7) => Ok(()),
        Some(other) => Err(format!("Unsupported UUID version: '{other}'")),
    }
}

fn uuid<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    cursor.may_change = true;
    let random = (u128::from(scope.world.random()) << 64) | u128::from(scope.world.random());
    let version = int_at(args, 0).unwrap_or(4);
    let bits = if version == 7 {
        let ms = u128::from(scope.now.wall_ns / 1_000_000) & 0xffff_ffff_ffff;
        (ms << 80) | (random & ((1 << 80) - 1))
    } else {
        random
    };
    // RFC 9562 §4: the version and the variant have fixed positions.
    let bits = (bits & !(0xf << 76)) | (version as u128) << 76;
    let bits = (bits & !(0b11 << 62)) | 0b10 << 62;
    let text = written(|out| {
        for (index, byte) in bits.to_be_bytes().into_iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            push_hex(out, byte);
        }
        out.make_ascii_lowercase();
    });
    Some(Value::Str(text))
}
