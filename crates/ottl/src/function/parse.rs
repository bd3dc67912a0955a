//! Texts that hold values.

use super::text::{optional, text, text_like, utf8};
use super::{Build, Function, eval};
use crate::eval::Failure;
use crate::value::{self, ENTRIES, VALUE_BYTES_MAX, Value, entry};
use otlp::scan::Any;
use otlp::write;
use regex_automata::meta::Regex;
use regex_automata::{Input, PatternID};

/// Levels of a JSON text: fewer than those of an attribute, of which it may become a part.
const JSON_DEPTH_MAX: u32 = 32;

pub const FUNCTIONS: &[Function] = &[
    eval("ParseJSON", &["target"], |args| {
        let value = serde_json::from_slice(text(&args[0])?).map_err(|_| Failure::Syntax)?;
        let mut any = Vec::new();
        json(&value, &mut any, JSON_DEPTH_MAX)?;
        if any.len() > VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
        Ok(Value::from(Any::read(&any)).into_owned())
    }),
    eval(
        "ParseKeyValue",
        &["target", "?delimiter", "?pair_delimiter"],
        |args| {
            let (inner, outer) = (optional(&args[1], "=")?, optional(&args[2], " ")?);
            key_values(utf8(&args[0])?, inner, outer)
        },
    ),
    eval(
        "ToKeyValueString",
        &["target", "?delimiter", "?pair_delimiter", "?sort_output"],
        |args| {
            let (inner, outer) = (optional(&args[1], "=")?, optional(&args[2], " ")?);
            to_key_values(&args[0], inner, outer, args[3] == Value::Bool(true))
        },
    ),
    Function {
        name: "ExtractPatterns",
        params: &["target", "pattern"],
        build: Build::Regex(|regex, value| extracted(regex, text(value)?)),
    },
];

fn json(value: &serde_json::Value, out: &mut Vec<u8>, depth: u32) -> Result<(), Failure> {
    use serde_json::Value as Json;
    let depth = depth.checked_sub(1).ok_or(Failure::Depth)?;
    let mut outcome = Ok(());
    match value {
        Json::Null => {}
        Json::Bool(value) => write::uint(out, 2, u64::from(*value)),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => write::uint(out, 3, value as u64),
            (None, Some(value)) => write::double(out, 4, value),
            (None, None) => return Err(Failure::Math),
        },
        Json::String(text) => write::bytes(out, 1, text.as_bytes()),
        Json::Array(items) => write::message(out, 5, |out| {
            for item in items {
                write::message(out, 1, |out| {
                    outcome = outcome.and_then(|()| json(item, out, depth))
                });
            }
        }),
        Json::Object(entries) => write::message(out, 6, |out| {
            for (key, value) in entries {
                write::key_value(out, 1, key.as_bytes(), |out| {
                    outcome = outcome.and_then(|()| json(value, out, depth));
                });
            }
        }),
    }
    outcome
}

/// Pairs as they are written; quotes of either kind hold what would part them.
fn key_values<'a>(text: &str, inner: &str, outer: &str) -> Result<Value<'a>, Failure> {
    if inner.is_empty() || outer.is_empty() || inner == outer || text.is_empty() {
        return Err(Failure::Syntax);
    }
    let mut out = Vec::new();
    for pair in unquoted_parts(text, outer)? {
        let pair = pair.trim();
        if pair.is_empty() {
            continue;
        }
        let mut halves = unquoted_parts(pair, inner)?.into_iter();
        let (Some(key), Some(value), None) = (halves.next(), halves.next(), halves.next()) else {
            return Err(Failure::Syntax);
        };
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).trim().to_owned();
        let mut any = Vec::new();
        write::bytes(&mut any, 1, bare(value).as_bytes());
        entry(&mut out, bare(key).as_bytes(), &any);
    }
    Ok(Value::Map(out.into(), ENTRIES))
}

/// The parts of a text between delimiters that stand in no quotes.
fn unquoted_parts<'t>(text: &'t str, delimiter: &str) -> Result<Vec<&'t str>, Failure> {
    let (mut parts, mut from, mut at, mut quote) = (Vec::new(), 0, 0, None);
    while let Some(char) = text[at..].chars().next() {
        match (char, quote) {
            (char, Some(open)) if char == open => quote = None,
            ('"' | '\'', None) => quote = Some(char),
            (_, None) if text[at..].starts_with(delimiter) => {
                parts.push(&text[from..at]);
                at += delimiter.len();
                from = at;
                continue;
            }
            _ => {}
        }
        at += char.len_utf8();
    }
    if quote.is_some() {
        return Err(Failure::Syntax);
    }
    parts.push(&text[from..]);
    Ok(parts)
}

fn to_key_values<'a>(
    map: &Value<'_>,
    inner: &str,
    outer: &str,
    sorted: bool,
) -> Result<Value<'a>, Failure> {
    if !matches!(map, Value::Map(..)) {
        return Err(Failure::Type);
    }
    if inner == outer {
        return Err(Failure::Syntax);
    }
    let entries = if sorted {
        value::sorted(map)
    } else {
        map.entries().collect()
    };
    let quoted = |text: &[u8], out: &mut Vec<u8>| {
        let has = |part: &str| super::text::find(text, part.as_bytes()).is_some();
        if !has(inner) && !has(outer) {
            return out.extend_from_slice(text);
        }
        out.push(b'"');
        for byte in text {
            if *byte == b'"' {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    };
    let mut out = Vec::new();
    for (at, (key, any)) in entries.into_iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(outer.as_bytes());
        }
        quoted(key, &mut out);
        out.extend_from_slice(inner.as_bytes());
        let any = Value::from(Any::read(any));
        quoted(&text_like(&any)?.unwrap_or_default(), &mut out);
    }
    Ok(Value::text(out))
}

/// The names of an expression's groups, with their numbers.
pub fn group_names(regex: &Regex) -> impl Iterator<Item = (usize, &str)> {
    let names = regex.group_info().pattern_names(PatternID::ZERO);
    names.enumerate().filter_map(|(at, name)| Some((at, name?)))
}

fn extracted<'a>(regex: &Regex, text: &[u8]) -> Result<Value<'a>, Failure> {
    let mut out = Vec::new();
    let mut slots = vec![None; 2 * regex.group_info().group_len(PatternID::ZERO)];
    if regex.search_slots(&Input::new(text), &mut slots).is_some() {
        for (group, name) in group_names(regex) {
            let part = match (slots[2 * group], slots[2 * group + 1]) {
                (Some(from), Some(to)) => &text[from.get()..to.get()],
                // A group that took no part is an empty text.
                _ => b"",
            };
            let mut any = Vec::new();
            write::bytes(&mut any, 1, part);
            entry(&mut out, name.as_bytes(), &any);
        }
    }
    Ok(Value::Map(out.into(), ENTRIES))
}
