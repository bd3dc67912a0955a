//! Bandwidth limits: `filter bwlim-in`, `filter bwlim-out` and the action `set-bandwidth-limit`
//! (manual §9.7, §4.4).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::values;
use crate::keywords::actions::ActionParser;
use crate::model::{
    Amount, BandwidthLimit, BandwidthRate, BandwidthSwitch, Direction, FilterPlace, HttpAction,
    StreamAction, TcpAction,
};
use crate::tree::Statement;
use sample::{Place, table_key};
use tables::Data;

/// `set-bandwidth-limit <name> [limit <size>|<expr>] [period <time>|<expr>]`
pub const SET: ActionParser = ActionParser::Both(
    |build, cursor, place| {
        let switch = set(build, cursor, place)?;
        Ok(HttpAction::Stream(StreamAction::SetBandwidthLimit(switch)))
    },
    |build, cursor, place| {
        let switch = set(build, cursor, place)?;
        Ok(TcpAction::Stream(StreamAction::SetBandwidthLimit(switch)))
    },
);

/// A limit of a section, before its line is read.
pub struct Declared {
    name: String,
    is_shared: bool,
}

/// The limits of a section, in order. Rules may name one that is declared further down.
pub fn declared(statements: &[Statement]) -> Vec<Declared> {
    let lines = statements.iter().map(Line::new);
    let limits = lines.filter(|line| {
        line.keyword() == "filter" && matches!(line.arg(1), "bwlim-in" | "bwlim-out")
    });
    let declared = limits.map(|line| Declared {
        name: line.arg(2).to_owned(),
        is_shared: line.texts(3).contains(&"key"),
    });
    declared.collect()
}

/// The words of a `filter bwlim-*` line.
#[derive(Default)]
struct Words {
    limit: Option<u32>,
    default_limit: Option<u32>,
    default_period: Option<u32>,
    min_bytes: u32,
    key: Option<sample::Expr>,
    key_at: usize,
    table: Option<String>,
}

/// `filter bwlim-in|bwlim-out <name> default-limit <size> default-period <time> [min-size <size>]`,
/// or with `limit <size> key <expr> [table <table>]` instead of the two defaults.
pub fn filter(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let kind = line.arg(1);
    if build.is_defaults() {
        return Err(line.fault(1, format!("'{kind}' : not allowed in 'defaults' section.")));
    }
    let name = line.need(2, || format!("'{kind}' : a name is expected as argument."))?;
    let limits = &build.proxy.bandwidth_limits;
    if limits.iter().any(|limit| limit.name == name) {
        let proxy = &build.proxy.name;
        return Err(line.fault(
            2,
            format!("bwlim filter '{name}' already declared for proxy '{proxy}'."),
        ));
    }
    let direction = match kind {
        "bwlim-in" => Direction::Up,
        _ => Direction::Down,
    };
    let mut cursor = Cursor { line: *line, at: 3 };
    let words = words(build, &mut cursor, kind)?;
    let min_bytes = words.min_bytes;
    let rate = match words.key {
        Some(_) => shared_rate(build, line, words, direction, name)?,
        None => own_rate(line, &words, kind)?,
    };
    build.proxy.bandwidth_limits.push(BandwidthLimit {
        name: name.to_owned(),
        direction,
        min_bytes,
        rate,
        place: FilterPlace::First,
    });
    Ok(())
}

fn words(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, kind: &str) -> Parse<Words> {
    let mut words = Words::default();
    loop {
        let word = cursor.take();
        match word {
            "" => break,
            "limit" => words.limit = Some(size(cursor, word)?),
            "default-limit" => words.default_limit = Some(size(cursor, word)?),
            "min-size" => words.min_bytes = size(cursor, word)?,
            "default-period" => {
                let text = cursor.value("a time")?;
                let time = values::time(text)
                    .map_err(|bad| cursor.fault(values::time_message(bad, text, word)))?;
                words.default_period = Some(time.as_millis() as u32);
            }
            "key" => {
                words.key_at = cursor.at;
                let place = build.place(
                    Place::FE_HTTP_REQUEST | Place::FE_HTTP_RESPONSE,
                    Place::BE_HTTP_REQUEST | Place::BE_HTTP_RESPONSE,
                );
                words.key = Some(build.shared.next_expr(cursor, place)?);
            }
            "table" => words.table = Some(cursor.value("the name of a table")?.to_owned()),
            _ => {
                let message = format!("'{kind}' : unknown argument '{word}'.");
                return Err(cursor.fault(message));
            }
        }
    }
    let of_stream = words.default_limit.is_some() || words.default_period.is_some();
    let is_shared = words.limit.is_some() || words.key.is_some() || words.table.is_some();
    if of_stream && is_shared {
        Err(cursor.line.fault(
            3,
            format!("'{kind}' : cannot mix per-stream and shared parameter."),
        ))
    } else {
        Ok(words)
    }
}

fn size(cursor: &mut Cursor<'_>, name: &str) -> Parse<u32> {
    let text = cursor.value("a size in bytes")?;
    let bytes =
        values::size(text).map_err(|bad| cursor.fault(values::size_message(bad, text, name)))?;
    Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// A value that must be given and must not be 0.
fn needed(line: &Line<'_>, value: Option<u32>, kind: &str, name: &str) -> Parse<u32> {
    match value {
        Some(value @ 1..) => Ok(value),
        _ => Err(line.fault(
            line.count(),
            format!("'{kind}' : <{name}> option is missing."),
        )),
    }
}

fn own_rate(line: &Line<'_>, words: &Words, kind: &str) -> Parse<BandwidthRate> {
    if words.limit.is_some() || words.table.is_some() {
        let message = format!("'{kind}' : <key> option is missing.");
        return Err(line.fault(line.count(), message));
    }
    Ok(BandwidthRate::Stream {
        period_ms: needed(line, words.default_period, kind, "default-period")?,
        bytes: needed(line, words.default_limit, kind, "default-limit")?,
    })
}

fn shared_rate(
    build: &ProxyBuild<'_, '_>,
    line: &Line<'_>,
    words: Words,
    direction: Direction,
    name: &str,
) -> Parse<BandwidthRate> {
    let bytes = needed(line, words.limit, line.arg(1), "limit")?;
    let proxy = &build.proxy.name;
    let table_name = words.table.as_deref().unwrap_or(proxy);
    let Ok(table) = build.shared.compiler.table(table_name) else {
        return Err(line.fault(
            2,
            format!(
                "Proxy {proxy} : unable to find table '{table_name}' referenced by bwlim filter '{name}'."
            ),
        ));
    };
    let (stored, stored_as) = match direction {
        Direction::Up => (Data::BytesInRate, "bytes_in_rate"),
        Direction::Down => (Data::BytesOutRate, "bytes_out_rate"),
    };
    if table.definition().column(stored).is_none() {
        return Err(line.fault(
            2,
            format!(
                "Proxy {proxy} : stick-table '{table_name}' uses a data type incompatible with bwlim filter '{name}'. It must be '{stored_as}'."
            ),
        ));
    }
    let Some(key) = words
        .key
        .filter(|key| table_key::is_compatible(key, table.definition().key))
    else {
        return Err(line.fault(
            words.key_at,
            format!(
                "Proxy {proxy} : stick-table '{table_name}' uses a key type incompatible with bwlim filter '{name}'."
            ),
        ));
    };
    Ok(BandwidthRate::Shared { bytes, key, table })
}

fn set(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<BandwidthSwitch> {
    let name = cursor.value("the name of a bwlim filter")?;
    let mut limits = build.bandwidth_limits.iter();
    let Some(limit) = limits.position(|known| known.name == name) else {
        return Err(cursor.fault(format!(
            "unable to find bwlim filter '{name}' referenced by set-bandwidth-limit rule."
        )));
    };
    let mut switch = BandwidthSwitch {
        limit,
        bytes: None,
        period_ms: None,
    };
    loop {
        let fixed = match cursor.peek() {
            "limit" => |text: &str| values::size(text).ok().map(|bytes| bytes as u32),
            "period" => |text: &str| values::time(text).ok().map(|time| time.as_millis() as u32),
            _ => return Ok(switch),
        };
        let word = cursor.take();
        if build.bandwidth_limits[limit].is_shared {
            return Err(cursor.fault(format!(
                "set-bandwidth-limit rule cannot define a {word} for a shared bwlim filter."
            )));
        }
        let amount = match fixed(cursor.peek()) {
            Some(amount) => {
                cursor.take();
                Amount::Fixed(amount)
            }
            None => Amount::Expr(build.shared.next_expr(cursor, place)?),
        };
        match word {
            "limit" => switch.bytes = Some(amount),
            _ => switch.period_ms = Some(amount),
        }
    }
}
