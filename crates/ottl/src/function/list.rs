//! Lists and maps.

use super::text::{find, text};
use super::{Function, eval};
use crate::eval::Failure;
use crate::value::{self, Op, Value, compare};
use otlp::scan::Any;
use std::cmp::Ordering;

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
    eval("Sort", &["target", "?order"], |args| {
        sort(&args[0], &args[1])
    }),
    eval("Values", &["target"], |args| match &args[0] {
        Value::Map(..) => value::list(args[0].entries().map(|(_, value)| Any::read(value).into())),
        _ => Err(Failure::Type),
    }),
];

fn len(value: &Value<'_>) -> Result<usize, Failure> {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => Ok(bytes.len()),
        Value::List(_) => Ok(value.items().count()),
        Value::Map(..) => Ok(value.entries().count()),
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
