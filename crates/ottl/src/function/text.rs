//! Texts.

use super::{Function, case, eval};
use crate::eval::Failure;
use crate::value::{self, VALUE_BYTES_MAX, Value};
use otlp::scan::Any;
use otlp::text::text_of;
use std::borrow::Cow;
use syntax::hex;

/// Target cases of `ConvertCase`.
pub const CASES: &[&str] = &["lower", "upper", "snake", "camel"];

pub const FUNCTIONS: &[Function] = &[
    eval("Concat", &["values", "delimiter"], |args| {
        concat(&args[0], &args[1])
    }),
    eval("ConvertCase", &["target", "to_case"], |args| {
        match text(&args[1])? {
            b"lower" => changed(&args[0], str::to_lowercase),
            b"upper" => changed(&args[0], str::to_uppercase),
            b"snake" => changed(&args[0], case::snake),
            b"camel" => changed(&args[0], case::camel),
            _ => Err(Failure::Syntax),
        }
    }),
    eval("ToLowerCase", &["target"], |args| {
        changed(&args[0], str::to_lowercase)
    }),
    eval("ToUpperCase", &["target"], |args| {
        changed(&args[0], str::to_uppercase)
    }),
    eval("ToSnakeCase", &["target"], |args| {
        changed(&args[0], case::snake)
    }),
    eval("ToCamelCase", &["target"], |args| {
        changed(&args[0], case::camel)
    }),
    eval("Split", &["target", "delimiter"], |args| {
        split(text(&args[0])?, text(&args[1])?)
    }),
    eval("String", &["value"], |args| {
        Ok(match text_like(&args[0])? {
            Some(text) => Value::text(text),
            None => Value::Nil,
        })
    }),
    eval(
        "Substring",
        &["target", "start", "length", "?utf8_safe"],
        |args| substring(text(&args[0])?, &args[1], &args[2], &args[3]),
    ),
    eval("Trim", &["target", "?replacement"], |args| {
        let (target, ends) = (utf8(&args[0])?, optional(&args[1], " ")?);
        Ok(Value::text(target.trim_matches(|char| ends.contains(char))))
    }),
    eval("TrimPrefix", &["value", "prefix"], |args| {
        let (target, prefix) = (text(&args[0])?, text(&args[1])?);
        Ok(Value::text(target.strip_prefix(prefix).unwrap_or(target)))
    }),
    eval("TrimSuffix", &["value", "suffix"], |args| {
        let (target, suffix) = (text(&args[0])?, text(&args[1])?);
        Ok(Value::text(target.strip_suffix(suffix).unwrap_or(target)))
    }),
];

/// A value that must be a text.
pub fn text<'v>(value: &'v Value<'_>) -> Result<&'v [u8], Failure> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Failure::Type),
    }
}

/// One that must be UTF-8 too.
pub fn utf8<'v>(value: &'v Value<'_>) -> Result<&'v str, Failure> {
    std::str::from_utf8(text(value)?).map_err(|_| Failure::Syntax)
}

/// A text that need not be there.
pub fn optional<'v>(value: &'v Value<'_>, default: &'v str) -> Result<&'v str, Failure> {
    match value {
        Value::Nil => Ok(default),
        value => utf8(value),
    }
}

/// A value as a text: bytes in hexadecimal, maps and lists as JSON; nil is none.
pub fn text_like<'v>(value: &'v Value<'_>) -> Result<Option<Cow<'v, [u8]>>, Failure> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Text(text) => (&**text).into(),
        Value::Bytes(bytes) => hex::text(bytes).into_bytes().into(),
        Value::Bool(value) => value.to_string().into_bytes().into(),
        Value::Int(value) => value.to_string().into_bytes().into(),
        Value::Float(value) => value.to_string().into_bytes().into(),
        Value::Map(..) | Value::List(_) => {
            let mut any = Vec::new();
            value.encode(&mut any)?;
            text_of(Any::read(&any)).into()
        }
        Value::Time(_) | Value::Zoned(..) | Value::Duration(_) | Value::Messages(..) => {
            return Err(Failure::Type);
        }
    }))
}

fn concat<'a>(values: &Value<'_>, delimiter: &Value<'_>) -> Result<Value<'a>, Failure> {
    if !matches!(values, Value::List(_)) {
        return Err(Failure::Type);
    }
    let delimiter = text(delimiter)?;
    let mut joined = Vec::new();
    let mut first = true;
    for value in values.items() {
        // Lists and maps are left out, as they may be large.
        if matches!(value, Any::Array(_) | Any::Map(_)) {
            continue;
        }
        if !std::mem::take(&mut first) {
            joined.extend_from_slice(delimiter);
        }
        match text_like(&value.into())? {
            Some(text) => joined.extend_from_slice(&text),
            None => joined.extend_from_slice(b"<nil>"),
        }
        if joined.len() > VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    Ok(Value::text(joined))
}

fn changed<'a>(value: &Value<'_>, change: fn(&str) -> String) -> Result<Value<'a>, Failure> {
    Ok(Value::text(change(utf8(value)?)))
}

/// With an empty delimiter, each character is a part.
fn split<'a>(target: &[u8], delimiter: &[u8]) -> Result<Value<'a>, Failure> {
    let text = |part: &'_ [u8]| Value::text(part);
    if delimiter.is_empty() {
        let target = std::str::from_utf8(target).map_err(|_| Failure::Syntax)?;
        return value::list(target.chars().map(|char| text(char.to_string().as_bytes())));
    }
    let mut parts = Vec::new();
    let mut rest = target;
    while let Some(at) = find(rest, delimiter) {
        parts.push(text(&rest[..at]));
        rest = &rest[at + delimiter.len()..];
    }
    parts.push(text(rest));
    value::list(parts)
}

/// Where a text is first in another.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

fn substring<'a>(
    target: &[u8],
    start: &Value<'_>,
    length: &Value<'_>,
    utf8_safe: &Value<'_>,
) -> Result<Value<'a>, Failure> {
    let (Value::Int(start), Value::Int(length)) = (start, length) else {
        return Err(Failure::Type);
    };
    let number = |value: &i64| usize::try_from(*value).map_err(|_| Failure::Index);
    let (mut from, length) = (number(start)?, number(length)?);
    let mut to = from.checked_add(length).ok_or(Failure::Index)?;
    if length == 0 || to > target.len() {
        return Err(Failure::Index);
    }
    if *utf8_safe == Value::Bool(true) {
        let is_inner = |at: usize| target.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        while from < to && is_inner(from) {
            from += 1;
        }
        while to > from && is_inner(to) {
            to -= 1;
        }
    }
    Ok(Value::text(&target[from..to]))
}
