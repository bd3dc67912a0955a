//! Lists of values.

use otlp::write;
use ottl::{ENTRIES, Failure, Subject, Term, VALUE_BYTES_MAX, Value};

use super::super::edit::{Fields, Value as Wire};

/// An `ArrayValue` whose item at a place became another one.
///
/// # Errors
/// There is no such item, or `change` fails.
pub fn with_item(
    array: &[u8],
    index: usize,
    change: impl FnOnce(&[u8]) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, Failure> {
    let (mut out, mut at, mut change) = (Vec::new(), 0, Some(change));
    for field in Fields::new(array).map_while(Result::ok) {
        let Wire::Bytes(item) = field.value else {
            out.extend_from_slice(field.whole);
            continue;
        };
        match (field.key == ENTRIES && at == index, &mut change) {
            (true, change @ Some(_)) => {
                if let Some(change) = change.take() {
                    write::bytes(&mut out, 1, &change(item)?);
                }
            }
            _ => out.extend_from_slice(field.whole),
        }
        at += usize::from(field.key == ENTRIES);
    }
    match change {
        None => Ok(out),
        Some(_) => Err(Failure::Index),
    }
}

/// A list with more values at its end; what is no list is its first value.
///
/// # Errors
/// A value cannot be one of a list.
pub fn appended<'a>(
    old: &Value<'_>,
    values: &'a [Term],
    subject: &Subject<'a, '_, '_>,
) -> Result<Value<'a>, Failure> {
    let mut out = Vec::new();
    match old {
        Value::Nil => {}
        Value::List(array) => out.extend_from_slice(array),
        Value::Map(..) => return Err(Failure::Type),
        old => push(&mut out, old)?,
    }
    for value in values {
        push(&mut out, &value.get(subject)?)?;
        if out.len() > VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    Ok(Value::List(out.into()))
}

fn push(out: &mut Vec<u8>, value: &Value<'_>) -> Result<(), Failure> {
    let mut outcome = Ok(());
    write::message(out, 1, |out| outcome = value.encode(out));
    outcome
}

/// A list without some of its items: those from one place up to another, which stays; without that
/// the first alone.
///
/// # Errors
/// It is no list, or has no such places.
pub fn deleted<'a>(
    old: &Value<'a>,
    start: &'a Term,
    end: Option<&'a Term>,
    subject: &Subject<'a, '_, '_>,
) -> Result<Value<'a>, Failure> {
    let Value::List(array) = old else {
        return Err(Failure::Type);
    };
    let place = |term: &'a Term| match term.get(subject)? {
        Value::Int(place) => usize::try_from(place).map_err(|_| Failure::Index),
        _ => Err(Failure::Type),
    };
    let start = place(start)?;
    let end = match end {
        Some(end) => place(end)?,
        None => start.checked_add(1).ok_or(Failure::Index)?,
    };
    let count = old.items().count();
    if start > end || end > count || start >= count {
        return Err(Failure::Index);
    }
    let (mut out, mut at) = (Vec::new(), 0);
    for field in Fields::new(array).map_while(Result::ok) {
        if field.key != ENTRIES || !(start..end).contains(&at) {
            out.extend_from_slice(field.whole);
        }
        at += usize::from(field.key == ENTRIES);
    }
    Ok(Value::List(out.into()))
}
