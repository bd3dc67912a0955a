//! Stick tables: the data of tracked entries and of the client's address (manual §7.3.2, §7.3.3).
//!
//! Each value has up to five names: for a counter that an argument names (`sc_…`), for the first
//! three (`sc0_…` to `sc2_…`), and for the client's address in a table (`src_…`). A counter's fetch
//! may name another table, in which the same key is looked up.

use ::tables::{Data, Entry, EntryRef, General, Table};

use super::{CLIENT, Cursor, Fetch, INTERNAL, fetch};
use crate::args::ArgKind::{Int, Table as TableArg};
use crate::args::{Arg, Spec, int_at, spec};
use crate::table_key::{sample_of, with_key};
use crate::{Kind, Scope, Value};

/// The owner of a value: a counter by its number, or one of these.
type Whose = u8;
/// The counter that the first argument names.
const NAMED: Whose = 10;
/// The client's address.
const ADDRESS: Whose = 11;

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "table_cnt",
        spec(1, &[TableArg]),
        Kind::Int,
        &INTERNAL,
        "entries of a stick table",
        |args, scope, _| {
            let table = table_at(args, 0)?;
            Some(Value::Int(table.used(scope.now.ms()).into()))
        },
    ),
    fetch(
        "table_avl",
        spec(1, &[TableArg]),
        Kind::Int,
        &INTERNAL,
        "entries that a stick table has room for",
        |args, scope, _| {
            let table = table_at(args, 0)?;
            let used = table.used(scope.now.ms());
            let free = i64::from(table.definition().size) - i64::from(used);
            Some(Value::Int(free))
        },
    ),
    fetch(
        "src_updt_conn_cnt",
        spec(1, &[TableArg]),
        Kind::Int,
        &CLIENT,
        "connections of the client's address in a stick table, this one counted",
        |args, scope, _| {
            let table = table_at(args, 0)?;
            let add = |entry: &mut Entry<'_>| {
                let count = entry.add(Data::ConnCnt, 0, 1);
                entry.touch();
                count
            };
            let now_ms = scope.now.ms();
            let key = Value::from(scope.src().ip()?);
            let count = with_key(key, table.definition(), |key| {
                table.with_new(key, now_ms, add)
            });
            count??.map(Value::Int)
        },
    ),
    array("sc1_clr_gpc", FIXED_ARRAY, CLEARED, clear_array::<1>),
];

const CLEARED: &str = "a general counter, which is 0 afterwards";
const FIXED_ARRAY: Spec = spec(1, &[Int, TableArg]);

const fn array(name: &'static str, args: Spec, doc: &'static str, eval: super::FetchFn) -> Fetch {
    fetch(name, args, Kind::Int, &INTERNAL, doc, eval)
}

/// The names of one kind: a prefix, the owners of the values, the arguments of each, and the data.
macro_rules! family {
    ($list:ident $prefix:literal $whose:ident $args:expr, $source:expr) => {
        pub(crate) const $list: &[Fetch] = &family!(@entries $prefix $whose $args, $source;
            "bytes_in_rate" "bytes from the client in the last period" (value::<{ Data::BytesInRate as u8 }, $whose>);
            "bytes_out_rate" "bytes to the client in the last period" (value::<{ Data::BytesOutRate as u8 }, $whose>);
            "clr_gpc0" "the first general counter, which is 0 afterwards" (clear::<{ Data::Gpc0 as u8 }, $whose>);
            "clr_gpc1" "the second general counter, which is 0 afterwards" (clear::<{ Data::Gpc1 as u8 }, $whose>);
            "conn_cnt" "connections so far" (value::<{ Data::ConnCnt as u8 }, $whose>);
            "conn_cur" "connections now" (value::<{ Data::ConnCur as u8 }, $whose>);
            "conn_rate" "connections in the last period" (value::<{ Data::ConnRate as u8 }, $whose>);
            "get_gpc0" "the first general counter" (value::<{ Data::Gpc0 as u8 }, $whose>);
            "get_gpc1" "the second general counter" (value::<{ Data::Gpc1 as u8 }, $whose>);
            "get_gpt0" "the first general tag" (value::<{ Data::Gpt0 as u8 }, $whose>);
            "glitch_cnt" "oddities of the protocol so far" (value::<{ Data::GlitchCnt as u8 }, $whose>);
            "glitch_rate" "oddities of the protocol in the last period" (value::<{ Data::GlitchRate as u8 }, $whose>);
            "gpc0_rate" "the first general counter's growth in the last period" (value::<{ Data::Gpc0Rate as u8 }, $whose>);
            "gpc1_rate" "the second general counter's growth in the last period" (value::<{ Data::Gpc1Rate as u8 }, $whose>);
            "http_err_cnt" "requests at the client's fault so far" (value::<{ Data::HttpErrCnt as u8 }, $whose>);
            "http_err_rate" "requests at the client's fault in the last period" (value::<{ Data::HttpErrRate as u8 }, $whose>);
            "http_fail_cnt" "responses at the server's fault so far" (value::<{ Data::HttpFailCnt as u8 }, $whose>);
            "http_fail_rate" "responses at the server's fault in the last period" (value::<{ Data::HttpFailRate as u8 }, $whose>);
            "http_req_cnt" "HTTP requests so far" (value::<{ Data::HttpReqCnt as u8 }, $whose>);
            "http_req_rate" "HTTP requests in the last period" (value::<{ Data::HttpReqRate as u8 }, $whose>);
            "inc_gpc0" "the first general counter, increased" (increase::<{ Data::Gpc0 as u8 }, $whose>);
            "inc_gpc1" "the second general counter, increased" (increase::<{ Data::Gpc1 as u8 }, $whose>);
            "kbytes_in" "kilobytes from the client so far" (kilobytes::<{ Data::BytesInCnt as u8 }, $whose>);
            "kbytes_out" "kilobytes to the client so far" (kilobytes::<{ Data::BytesOutCnt as u8 }, $whose>);
            "sess_cnt" "sessions so far" (value::<{ Data::SessCnt as u8 }, $whose>);
            "sess_rate" "sessions in the last period" (value::<{ Data::SessRate as u8 }, $whose>);
        );
    };
    (@entries $prefix:literal $whose:ident $args:expr, $source:expr; $($name:literal $doc:literal ($eval:expr);)*) => {
        [$(fetch(concat!($prefix, $name), $args, Kind::Int, $source, concat!($doc, ", of a tracked key or an address"), $eval)),*]
    };
}

/// Values that only counters have.
macro_rules! counter {
    ($list:ident $prefix:literal $whose:ident $args:expr, $key:expr) => {
        pub(crate) const $list: &[Fetch] = &[
            fetch(
                concat!($prefix, "key"),
                $key,
                Kind::Any,
                &INTERNAL,
                "the key that is tracked",
                |args, scope, _| {
                    let (held, _) = tracked(args, scope, $whose)?;
                    let of = held.table().definition();
                    held.with(scope.now.ms(), |entry| sample_of(entry.key(), of))
                },
            ),
            fetch(
                concat!($prefix, "tracked"),
                $args,
                Kind::Bool,
                &INTERNAL,
                "whether the counter tracks something",
                |args, scope, _| {
                    let tracks = match tracked(args, scope, $whose) {
                        Some((held, Some(table))) => is_comparable(held, table),
                        Some((_, None)) => true,
                        None => false,
                    };
                    Some(Value::Bool(tracks))
                },
            ),
            fetch(
                concat!($prefix, "trackers"),
                $args,
                Kind::Int,
                &INTERNAL,
                "how many connections and streams track the same key",
                |args, scope, _| number(args, scope, $whose, |entry| Some(entry.trackers().into())),
            ),
        ];
    };
}

const OTHER_TABLE: Spec = spec(0, &[TableArg]);
const NUMBER: Spec = spec(1, &[Int, TableArg]);
const ARRAY: Spec = spec(2, &[Int, Int, TableArg]);
const OF_TABLE: Spec = spec(1, &[TableArg]);
const ARRAY_OF_TABLE: Spec = spec(2, &[Int, TableArg]);

const C0: Whose = 0;
const C1: Whose = 1;
const C2: Whose = 2;

family!(FIRST "sc0_" C0 OTHER_TABLE, &INTERNAL);
family!(SECOND "sc1_" C1 OTHER_TABLE, &INTERNAL);
family!(THIRD "sc2_" C2 OTHER_TABLE, &INTERNAL);
family!(ANY "sc_" NAMED NUMBER, &INTERNAL);
family!(SOURCE "src_" ADDRESS OF_TABLE, &CLIENT);

counter!(OF_FIRST "sc0_" C0 OTHER_TABLE, spec(0, &[]));
counter!(OF_SECOND "sc1_" C1 OTHER_TABLE, spec(0, &[]));
counter!(OF_THIRD "sc2_" C2 OTHER_TABLE, spec(0, &[]));
counter!(OF_ANY "sc_" NAMED NUMBER, spec(1, &[Int]));

/// The values of arrays: for a counter, and for an address.
macro_rules! arrays {
    ($list:ident $prefix:literal $whose:ident $args:expr, $source:expr) => {
        pub(crate) const $list: &[Fetch] = &[
            fetch(
                concat!($prefix, "clr_gpc"),
                $args,
                Kind::Int,
                $source,
                CLEARED,
                clear_array::<$whose>,
            ),
            fetch(
                concat!($prefix, "get_gpc"),
                $args,
                Kind::Int,
                $source,
                "a general counter",
                element::<{ Data::Gpc as u8 }, $whose>,
            ),
            fetch(
                concat!($prefix, "get_gpt"),
                $args,
                Kind::Int,
                $source,
                "a general tag",
                element::<{ Data::Gpt as u8 }, $whose>,
            ),
            fetch(
                concat!($prefix, "gpc_rate"),
                $args,
                Kind::Int,
                $source,
                "a general counter's growth in the last period",
                element::<{ Data::GpcRate as u8 }, $whose>,
            ),
            fetch(
                concat!($prefix, "inc_gpc"),
                $args,
                Kind::Int,
                $source,
                "a general counter, increased",
                increase_array::<$whose>,
            ),
        ];
    };
}
arrays!(ARRAYS "sc_" NAMED ARRAY, &INTERNAL);
arrays!(SOURCE_ARRAYS "src_" ADDRESS ARRAY_OF_TABLE, &CLIENT);

// ---- implementations

fn value<'a, const DATA: u8, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    number(args, scope, WHOSE, |entry| {
        entry.get(Data::numbered(DATA), 0)
    })
}

fn kilobytes<'a, const DATA: u8, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    number(args, scope, WHOSE, |entry| {
        kilobytes_of(entry, Data::numbered(DATA))
    })
}

fn clear<'a, const DATA: u8, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    changed(args, scope, WHOSE, |entry| {
        cleared(entry, Data::numbered(DATA), 0)
    })
}

fn increase<'a, const DATA: u8, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    let counter = match Data::numbered(DATA) {
        Data::Gpc1 => General::Gpc1,
        _ => General::Gpc0,
    };
    changed(args, scope, WHOSE, |entry| increased(entry, counter))
}

fn element<'a, const DATA: u8, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    let index = index_at(args)?;
    number(&args[1..], scope, WHOSE, |entry| {
        entry.get(Data::numbered(DATA), index)
    })
}

fn clear_array<'a, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    let index = index_at(args)?;
    changed(&args[1..], scope, WHOSE, |entry| {
        cleared(entry, Data::Gpc, index)
    })
}

fn increase_array<'a, const WHOSE: u8>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    _: &mut Cursor,
) -> Option<Value<'a>> {
    let index = index_at(args)?;
    changed(&args[1..], scope, WHOSE, |entry| {
        increased(entry, General::Gpc(index))
    })
}

/// The index of an element: the first argument.
pub(crate) fn index_at(args: &[Arg]) -> Option<u32> {
    u32::try_from(int_at(args, 0)?).ok()
}

/// A total in kilobytes.
pub(crate) fn kilobytes_of(entry: &Entry<'_>, data: Data) -> Option<i64> {
    entry.get(data, 0).map(|bytes| bytes >> 10)
}

/// Clears a counter. Returns its previous value.
pub(crate) fn cleared(entry: &mut Entry<'_>, data: Data, index: u32) -> Option<i64> {
    let before = entry.get(data, index)?;
    entry.set(data, index, 0);
    entry.touch();
    Some(before)
}

/// Increments a counter. 0 if it is not stored, as in HAProxy.
pub(crate) fn increased(entry: &mut Entry<'_>, counter: General) -> Option<i64> {
    Some(entry.add_general(counter, 1).unwrap_or(0))
}

/// The tracked entry of a counter, and the table that is named in addition.
fn tracked<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    whose: Whose,
) -> Option<(&'a EntryRef, Option<&'a Table>)> {
    let (counter, table) = match whose {
        NAMED => (usize::try_from(int_at(args, 0)?).ok()?, 1),
        fixed => (usize::from(fixed), 0),
    };
    Some((scope.tracked(counter)?, table_at(args, table)))
}

/// Whether a tracked key can be a key of a table.
fn is_comparable(held: &EntryRef, table: &Table) -> bool {
    let (mine, its) = (held.table().definition(), table.definition());
    mine.key == its.key && mine.key_bytes == its.key_bytes
}

/// A number of an entry: 0 if the key has no entry, None if nothing is tracked or the table does
/// not store the number.
fn number<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    whose: Whose,
    work: impl FnOnce(&mut Entry<'_>) -> Option<i64>,
) -> Option<Value<'a>> {
    looked_up(args, scope, whose, false, work)
}

/// The same for a number that changes: creates an entry for the client's address.
fn changed<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    whose: Whose,
    work: impl FnOnce(&mut Entry<'_>) -> Option<i64>,
) -> Option<Value<'a>> {
    looked_up(args, scope, whose, true, work)
}

fn looked_up<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    whose: Whose,
    creates: bool,
    work: impl FnOnce(&mut Entry<'_>) -> Option<i64>,
) -> Option<Value<'a>> {
    let now_ms = scope.now.ms();
    let found = if whose == ADDRESS {
        let table = table_at(args, 0)?;
        let address = Value::from(scope.src().ip()?);
        with_key(address, table.definition(), |key| {
            if creates {
                table.with_new(key, now_ms, work)
            } else {
                table.with(key, now_ms, work)
            }
        })
        .flatten()
    } else {
        let (held, table) = tracked(args, scope, whose)?;
        match table {
            Some(table) if !is_comparable(held, table) => return None,
            Some(table) => held.with_in(table, now_ms, work),
            None => Some(held.with(now_ms, work)),
        }
    };
    found.unwrap_or(Some(0)).map(Value::Int)
}

/// A table argument.
pub(crate) fn table_at(args: &[Arg], index: usize) -> Option<&Table> {
    match args.get(index) {
        Some(Arg::Table(table)) => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::tables::{Event, Table};

    use crate::testing::{Facts, compiler, counters, fails};
    use crate::{Compiler, Place};

    /// The text of an expression about a table that the compiler knows.
    fn text(compiler: &mut Compiler, facts: &Facts, expr: &str) -> Option<String> {
        let (expr, _) = compiler
            .expr(&[expr], Place::ALL)
            .unwrap_or_else(|error| panic!("{expr}: {error}"));
        let mut out = Vec::new();
        let has_value = expr.append_text(&facts.scope(), &mut out);
        has_value.then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn what_is_tracked_is_read() {
        let mut compiler = compiler();
        let mut facts = Facts::new();
        let now_ms = facts.scope().now.ms();
        let table = Arc::new(Table::new(counters("t")));
        let other = Arc::new(Table::new(counters("other")));
        let numbers = ::tables::Definition::new("numbers", ::tables::KeyType::Integer, 10);
        for table in [&table, &other, &Arc::new(Table::new(numbers))] {
            compiler.declare_table(Arc::clone(table));
        }
        let held = table.hold(b"10.0.1.2", now_ms).expect("room");
        let late = [Event::Request, Event::BytesIn(5_000)];
        facts.session.tracked.track(1, held, false, now_ms, late);
        let held = table.hold(b"b", now_ms).expect("room");
        facts.txn.tracked.track(4, held, false, now_ms, []);
        other.with_new(b"10.0.1.2", now_ms, |entry| {
            entry.set(::tables::Data::Gpt, 0, 77)
        });
        for (expr, wanted) in [
            ("sc1_conn_cur", Some("1")),
            ("sc1_http_req_cnt", Some("1")),
            ("sc_http_req_rate(1)", Some("1")),
            ("sc1_kbytes_in", Some("4")),
            ("sc1_bytes_in_rate", Some("5000")),
            ("sc0_conn_cur", None),
            ("sc0_tracked", Some("0")),
            ("sc1_tracked", Some("1")),
            ("sc1_tracked(numbers)", Some("0")),
            ("sc_key(4)", Some("b")),
            ("sc1_key", Some("10.0.1.2")),
            ("sc1_trackers", Some("1")),
            // The same key in another table.
            ("sc1_get_gpt0(other)", Some("77")),
            ("sc_get_gpt0(4,other)", Some("0")),
            ("sc1_get_gpt0(numbers)", None),
            ("src_get_gpt0(other)", Some("77")),
            ("src_conn_cnt(t)", Some("1")),
            // The entry does not store these.
            ("src_conn_cnt(numbers)", Some("0")),
            ("sc_inc_gpc(2,1)", Some("1")),
            ("sc_inc_gpc(2,1)", Some("2")),
            ("sc_gpc_rate(2,1)", Some("2")),
            ("sc_clr_gpc(2,1)", Some("2")),
            ("sc_get_gpc(2,1)", Some("0")),
            ("sc_get_gpc(3,1)", None),
            ("sc1_inc_gpc0", Some("1")),
            ("sc_get_gpc(0,1)", Some("1")),
            ("sc1_clr_gpc(0)", Some("1")),
            ("src_inc_gpc1(t)", Some("1")),
            ("src_updt_conn_cnt(t)", Some("2")),
            ("str(10.0.1.2),table_gpc1(t)", Some("1")),
            ("str(c),table_gpc1(t)", Some("0")),
            ("str(c),in_table(t)", Some("0")),
            ("str(b),in_table(t)", Some("1")),
            ("str(b),table_trackers(t)", Some("1")),
            ("str(b),table_expire(t)", Some("60000")),
            ("str(c),table_expire(t)", None),
            ("str(c),table_idle(t,-1)", Some("-1")),
            ("str(c),table_inc_gpc(1,t)", Some("1")),
            ("str(c),table_gpc(1,t)", Some("1")),
            ("table_cnt(t)", Some("3")),
            ("table_avl(t)", Some("97")),
            ("table_cnt(numbers)", Some("0")),
            ("table_cnt", Some("0")),
        ] {
            let found = text(&mut compiler, &facts, expr);
            assert_eq!(found.as_deref(), wanted, "{expr}");
        }
        facts.session.tracked.end(now_ms);
        facts.txn.tracked.end(now_ms);
        let current = text(&mut compiler, &facts, "str(b),table_conn_cur(t)");
        assert_eq!(current.as_deref(), Some("0"));
    }

    #[test]
    fn unknown_tables_are_refused() {
        let message = fails("src_conn_cnt(nowhere)");
        assert!(
            message.contains("unable to find table 'nowhere'"),
            "{message}"
        );
        let message = fails("str(a),in_table(nowhere)");
        assert!(
            message.contains("unable to find table 'nowhere'"),
            "{message}"
        );
    }
}
