//! `in_table` and `table_*`: look up a sample as a key of a stick table (manual §7.3.1).

use ::tables::{Data, Entry, General};

use super::{Convert, convert};
use crate::args::ArgKind::{Int, Table as TableArg};
use crate::args::{Arg, Spec, int_at, spec};
use crate::fetch::tables::{cleared, increased, index_at, kilobytes_of, table_at};
use crate::table_key::with_key;
use crate::{Kind, Scope, Value};

const OF_TABLE: Spec = spec(1, &[TableArg]);
const ARRAY: Spec = spec(2, &[Int, TableArg]);
const OR_DEFAULT: Spec = spec(1, &[TableArg, Int]);

/// Converters with a number as result: name, arguments, description, function.
macro_rules! numbers {
    ($($name:literal $args:ident $doc:literal $eval:expr;)*) => {
        pub(crate) const CONVERTERS: &[Convert] = &[
            convert(
                "in_table",
                OF_TABLE,
                Kind::Any,
                Kind::Bool,
                "whether a stick table has an entry of this key",
                |args, value, scope| {
                    let found = with_entry(args, 0, value, scope, |_| ());
                    Some(Value::Bool(found.is_some()))
                },
            )
            .scoped(),
            $(convert($name, $args, Kind::Any, Kind::Int, $doc, $eval).scoped(),)*
        ];
    };
}

numbers! {
    "table_bytes_in_rate" OF_TABLE "bytes from the key's clients in the last period" value::<{ Data::BytesInRate as u8 }>;
    "table_bytes_out_rate" OF_TABLE "bytes to the key's clients in the last period" value::<{ Data::BytesOutRate as u8 }>;
    "table_clr_gpc" ARRAY "a general counter of the key, which is 0 afterwards" |args, key, scope| {
        let index = index_at(args)?;
        changed(args, 1, key, scope, |entry| cleared(entry, Data::Gpc, index))
    };
    "table_clr_gpc0" OF_TABLE "the key's first general counter, which is 0 afterwards" |args, key, scope| {
        changed(args, 0, key, scope, |entry| cleared(entry, Data::Gpc0, 0))
    };
    "table_clr_gpc1" OF_TABLE "the key's second general counter, which is 0 afterwards" |args, key, scope| {
        changed(args, 0, key, scope, |entry| cleared(entry, Data::Gpc1, 0))
    };
    "table_conn_cnt" OF_TABLE "connections of the key so far" value::<{ Data::ConnCnt as u8 }>;
    "table_conn_cur" OF_TABLE "connections of the key now" value::<{ Data::ConnCur as u8 }>;
    "table_conn_rate" OF_TABLE "connections of the key in the last period" value::<{ Data::ConnRate as u8 }>;
    "table_expire" OR_DEFAULT "milliseconds until the key's entry ends" |args, key, scope| {
        let found = with_entry(args, 0, key, scope, |entry| entry.expires_in_ms());
        or_default(args, found)
    };
    "table_glitch_cnt" OF_TABLE "oddities of the key's connections so far" value::<{ Data::GlitchCnt as u8 }>;
    "table_glitch_rate" OF_TABLE "oddities of the key's connections in the last period" value::<{ Data::GlitchRate as u8 }>;
    "table_gpc" ARRAY "a general counter of the key" element::<{ Data::Gpc as u8 }>;
    "table_gpc0" OF_TABLE "the key's first general counter" value::<{ Data::Gpc0 as u8 }>;
    "table_gpc0_rate" OF_TABLE "growth of the key's first general counter in the last period" value::<{ Data::Gpc0Rate as u8 }>;
    "table_gpc1" OF_TABLE "the key's second general counter" value::<{ Data::Gpc1 as u8 }>;
    "table_gpc1_rate" OF_TABLE "growth of the key's second general counter in the last period" value::<{ Data::Gpc1Rate as u8 }>;
    "table_gpc_rate" ARRAY "growth of a general counter of the key in the last period" element::<{ Data::GpcRate as u8 }>;
    "table_gpt" ARRAY "a general tag of the key" element::<{ Data::Gpt as u8 }>;
    "table_gpt0" OF_TABLE "the key's first general tag" value::<{ Data::Gpt0 as u8 }>;
    "table_http_err_cnt" OF_TABLE "the key's requests at the client's fault so far" value::<{ Data::HttpErrCnt as u8 }>;
    "table_http_err_rate" OF_TABLE "the key's requests at the client's fault in the last period" value::<{ Data::HttpErrRate as u8 }>;
    "table_http_fail_cnt" OF_TABLE "the key's responses at the server's fault so far" value::<{ Data::HttpFailCnt as u8 }>;
    "table_http_fail_rate" OF_TABLE "the key's responses at the server's fault in the last period" value::<{ Data::HttpFailRate as u8 }>;
    "table_http_req_cnt" OF_TABLE "HTTP requests of the key so far" value::<{ Data::HttpReqCnt as u8 }>;
    "table_http_req_rate" OF_TABLE "HTTP requests of the key in the last period" value::<{ Data::HttpReqRate as u8 }>;
    "table_idle" OR_DEFAULT "milliseconds since the key's entry was touched" |args, key, scope| {
        let found = with_entry(args, 0, key, scope, |entry| entry.idle_ms());
        or_default(args, found)
    };
    "table_inc_gpc" ARRAY "a general counter of the key, increased" |args, key, scope| {
        let index = index_at(args)?;
        changed(args, 1, key, scope, |entry| increased(entry, General::Gpc(index)))
    };
    "table_inc_gpc0" OF_TABLE "the key's first general counter, increased" |args, key, scope| {
        changed(args, 0, key, scope, |entry| increased(entry, General::Gpc0))
    };
    "table_inc_gpc1" OF_TABLE "the key's second general counter, increased" |args, key, scope| {
        changed(args, 0, key, scope, |entry| increased(entry, General::Gpc1))
    };
    "table_kbytes_in" OF_TABLE "kilobytes from the key's clients so far" |args, key, scope| {
        number(args, 0, key, scope, |entry| kilobytes_of(entry, Data::BytesInCnt))
    };
    "table_kbytes_out" OF_TABLE "kilobytes to the key's clients so far" |args, key, scope| {
        number(args, 0, key, scope, |entry| kilobytes_of(entry, Data::BytesOutCnt))
    };
    "table_server_id" OF_TABLE "the number of the server that the key sticks to" value::<{ Data::ServerId as u8 }>;
    "table_sess_cnt" OF_TABLE "sessions of the key so far" value::<{ Data::SessCnt as u8 }>;
    "table_sess_rate" OF_TABLE "sessions of the key in the last period" value::<{ Data::SessRate as u8 }>;
    "table_trackers" OF_TABLE "how many connections and streams track the key" |args, key, scope| {
        number(args, 0, key, scope, |entry| Some(entry.trackers().into()))
    };
}

fn value<'a, const DATA: u8>(
    args: &'a [Arg],
    key: Value<'a>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    number(args, 0, key, scope, |entry| {
        entry.get(Data::numbered(DATA), 0)
    })
}

fn element<'a, const DATA: u8>(
    args: &'a [Arg],
    key: Value<'a>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    let index = index_at(args)?;
    number(args, 1, key, scope, |entry| {
        entry.get(Data::numbered(DATA), index)
    })
}

/// A number of the key's entry in the table at `at`: 0 without an entry, None if the table does not
/// store the number.
fn number<'a>(
    args: &'a [Arg],
    at: usize,
    key: Value<'a>,
    scope: &Scope<'a>,
    work: impl FnOnce(&mut Entry<'_>) -> Option<i64>,
) -> Option<Value<'a>> {
    let found = with_entry(args, at, key, scope, work);
    found.unwrap_or(Some(0)).map(Value::Int)
}

/// The same for a number that changes: creates an entry for the key.
fn changed<'a>(
    args: &'a [Arg],
    at: usize,
    key: Value<'a>,
    scope: &Scope<'a>,
    work: impl FnOnce(&mut Entry<'_>) -> Option<i64>,
) -> Option<Value<'a>> {
    let table = table_at(args, at)?;
    let now_ms = scope.now.ms();
    let found = with_key(key, table.definition(), |key| {
        table.with_new(key, now_ms, work)
    });
    found.flatten().unwrap_or(Some(0)).map(Value::Int)
}

fn with_entry<'a, R>(
    args: &'a [Arg],
    at: usize,
    key: Value<'a>,
    scope: &Scope<'a>,
    work: impl FnOnce(&mut Entry<'_>) -> R,
) -> Option<R> {
    let table = table_at(args, at)?;
    let now_ms = scope.now.ms();
    with_key(key, table.definition(), |key| table.with(key, now_ms, work))?
}

/// A time; without an entry, the second argument.
fn or_default<'a>(args: &[Arg], found: Option<u64>) -> Option<Value<'a>> {
    match found {
        Some(ms) => Some(Value::Int(i64::try_from(ms).unwrap_or(i64::MAX))),
        None => int_at(args, 1).map(Value::Int),
    }
}
