//! Lists and maps.

use super::text::{find, text};
use super::{Function, eval};
use crate::eval::Failure;
use crate::value::{self, Op, Value, compare};
use otlp::scan::{Any, Attributes};
use std::cmp::Ordering;
use std::collections::HashMap;

pub const FUNCTIONS: &[Function] = &[
    eval("Coalesce", &["values"], |args| match &args[0] {
        Value::List(_) => {
            let mut items = args[0].items();
            let found = items.find(|item| !matches!(item, Any::Empty));
            Ok(found.map_or(Value::Nil, |item| Value::from(item).into_owned()))
        }
        _ => Err(Failure::Type),
    }),
    eval("Index", &["target", "value"], |args| {
        index(&args[0], &args[1])
    }),
    eval("Keys", &["target"], |args| match &args[0] {
        Value::Map(..) => value::list(args[0].entries().map(|(key, _)| Value::text(key))),
        _ => Err(Failure::Type),
    }),
    eval("Len", &["target"], |args| {
        len(&args[0]).map(|len| Value::Int(len as i64))
    }),
    eval(
        "SliceToMap",
        &["target", "?key_path", "?value_path"],
        |args| slice_to_map(&args[0], &args[1], &args[2]),
    ),
    eval("Sort", &["target", "?order"], |args| {
        sort(&args[0], &args[1])
    }),
    eval("Values", &["target"], |args| match &args[0] {
        Value::Map(..) => value::list(args[0].entries().map(|(_, value)| Any::read(value).into())),
        _ => Err(Failure::Type),
    }),
];

/// A map of the items of a list that are maps: by a text within each, or by their places; of the
/// items themselves, or of a value within each. Items without the key or the value are left out; of
/// a key that is there twice the last item counts.
fn slice_to_map<'a>(
    target: &Value<'_>,
    key_path: &Value<'_>,
    value_path: &Value<'_>,
) -> Result<Value<'a>, Failure> {
    if !matches!(target, Value::List(_)) {
        return Err(Failure::Type);
    }
    let (key_path, value_path) = (names(key_path)?, names(value_path)?);
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut places = HashMap::new();
    for (at, item) in target.items().enumerate() {
        if !matches!(item, Any::Map(_)) {
            continue;
        }
        let key = match within(item, &key_path) {
            Some(_) if key_path.is_empty() => at.to_string().into_bytes(),
            Some(Any::Text(key)) => key.to_vec(),
            _ => continue,
        };
        let Some(found) = within(item, &value_path) else {
            continue;
        };
        let mut any = Vec::new();
        Value::from(found).encode(&mut any)?;
        let place = *places.entry(key.clone()).or_insert(entries.len());
        if place == entries.len() {
            entries.push((key, any));
        } else {
            entries[place].1 = any;
        }
    }
    let mut out = Vec::new();
    for (key, any) in &entries {
        value::entry(&mut out, key, any);
        if out.len() > value::VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    Ok(Value::Map(out.into(), value::ENTRIES))
}

/// The texts of a list; none where there is no list.
fn names(path: &Value<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    if !matches!(path, Value::Nil | Value::List(_)) {
        return Err(Failure::Type);
    }
    let name = |item| match item {
        Any::Text(name) => Ok(name.to_vec()),
        _ => Err(Failure::Type),
    };
    path.items().map(name).collect()
}

/// Follows keys through nested maps.
fn within<'v>(item: Any<'v>, path: &[Vec<u8>]) -> Option<Any<'v>> {
    path.iter().try_fold(item, |item, key| match item {
        Any::Map(message) => Attributes::new(message, value::ENTRIES).get(key),
        _ => None,
    })
}

fn len(value: &Value<'_>) -> Result<usize, Failure> {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => Ok(bytes.len()),
        Value::List(_) => Ok(value.items().count()),
        Value::Map(..) => Ok(value.entries().count()),
        Value::Messages(..) => Ok(value.messages()),
        _ => Err(Failure::Type),
    }
}

fn index<'a>(target: &Value<'_>, wanted: &Value<'_>) -> Result<Value<'a>, Failure> {
    let found = match target {
        Value::Text(target) => find(target, text(wanted)?),
        Value::List(_) => target
            .items()
            .position(|item| compare(Op::Eq, &item.into(), wanted)),
        _ => return Err(Failure::Type),
    };
    Ok(Value::Int(found.map_or(-1, |at| at as i64)))
}

/// Numbers are sorted as numbers; with anything else among them, all are sorted as texts, and
/// become texts.
fn sort<'a>(target: &Value<'_>, order: &Value<'_>) -> Result<Value<'a>, Failure> {
    if !matches!(target, Value::List(_)) {
        return Err(Failure::Type);
    }
    let descending = match order {
        Value::Nil => false,
        order => match text(order)? {
            b"asc" => false,
            b"desc" => true,
            _ => return Err(Failure::Syntax),
        },
    };
    let mut values: Vec<Value<'_>> = target.items().map(Value::from).collect();
    let alike = |is: fn(&Value<'_>) -> bool| values.iter().all(is);
    let numbers = alike(|value| matches!(value, Value::Int(_) | Value::Float(_)));
    if !numbers && !alike(|value| matches!(value, Value::Bool(_))) {
        for value in &mut values {
            let text = super::text_like(value)?.unwrap_or_default().into_owned();
            *value = Value::text(text);
        }
    }
    values.sort_by(|left, right| {
        let ordering = match (compare(Op::Lt, left, right), compare(Op::Gt, left, right)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        };
        if descending {
            ordering.reverse()
        } else {
            ordering
        }
    });
    value::list(values)
}
