//! Functions ("converters").

use super::eval::{Failure, Subject};
use super::parser::{Parser, Term};
use super::path::hex;
use super::value::Value;
use super::{Error, lexer::Token};
use crate::policy::compile_regex;
use crate::scan::{Any, Attributes};
use regex_automata::meta::Regex;

/// A call.
#[derive(Debug)]
pub struct Function {
    kind: Kind,
    args: Vec<Term>,
}

#[derive(Debug)]
enum Kind {
    IsMatch(Box<Regex>),
    Is(fn(&Value<'_>) -> bool),
    IsRootSpan,
    Len,
    Concat,
    HasPrefix,
    HasSuffix,
    ToLowerCase,
    ToUpperCase,
    Int,
    String,
    Literal(Value<'static>),
}

/// The functions that there are: name, and how many arguments each has.
pub const FUNCTIONS: &[(&str, usize)] = &[
    ("Concat", 2),
    ("Duration", 1),
    ("HasPrefix", 2),
    ("HasSuffix", 2),
    ("Int", 1),
    ("IsBool", 1),
    ("IsDouble", 1),
    ("IsInt", 1),
    ("IsList", 1),
    ("IsMap", 1),
    ("IsMatch", 2),
    ("IsRootSpan", 0),
    ("IsString", 1),
    ("Len", 1),
    ("SpanID", 1),
    ("String", 1),
    ("ToLowerCase", 1),
    ("ToUpperCase", 1),
    ("TraceID", 1),
];

/// Parses a call; its name is the next token.
pub fn parse(parser: &mut Parser<'_, '_>) -> Result<Function, Error> {
    let start = parser.error("");
    let fail = |why: String| Error::new(start.at, why);
    let Some(Token::Word(name)) = parser.next() else {
        return Err(fail("a function is expected here".to_owned()));
    };
    let Some((_, count)) = FUNCTIONS.iter().find(|(known, _)| known == name) else {
        return Err(fail(format!("the function {name} is not supported")));
    };
    let args = arguments(parser)?;
    if args.len() != *count {
        return Err(fail(format!("{name} takes {count} arguments")));
    }
    let kind = match name.as_str() {
        "IsMatch" => match &args[1] {
            Term::Literal(Value::Text(text)) => {
                let pattern = String::from_utf8_lossy(text).into_owned();
                Kind::IsMatch(Box::new(compile_regex(&[pattern]).map_err(fail)?))
            }
            _ => return Err(fail("the pattern of IsMatch must be a text".to_owned())),
        },
        "IsString" => Kind::Is(|value| matches!(value, Value::Text(_))),
        "IsInt" => Kind::Is(|value| matches!(value, Value::Int(_))),
        "IsDouble" => Kind::Is(|value| matches!(value, Value::Float(_))),
        "IsBool" => Kind::Is(|value| matches!(value, Value::Bool(_))),
        "IsMap" => Kind::Is(|value| matches!(value, Value::Map(..))),
        "IsList" => Kind::Is(|value| matches!(value, Value::List(_))),
        "IsRootSpan" => Kind::IsRootSpan,
        "Len" => Kind::Len,
        "HasPrefix" => Kind::HasPrefix,
        "HasSuffix" => Kind::HasSuffix,
        "ToLowerCase" => Kind::ToLowerCase,
        "ToUpperCase" => Kind::ToUpperCase,
        "Int" => Kind::Int,
        "String" => Kind::String,
        "Concat" if matches!(args[0], Term::List(_)) => Kind::Concat,
        "Concat" => return Err(fail("Concat takes a list `[...]` first".to_owned())),
        "Duration" => match &args[0] {
            Term::Literal(Value::Text(text)) => {
                let duration = duration_ns(text);
                Kind::Literal(Value::Duration(duration.ok_or_else(|| {
                    fail("a duration is written as \"1h30m\" or \"1.5s\"".to_owned())
                })?))
            }
            _ => return Err(fail("Duration takes a text".to_owned())),
        },
        id => match &args[0] {
            Term::Literal(Value::Bytes(bytes))
                if bytes.len() == if id == "SpanID" { 8 } else { 16 } =>
            {
                Kind::Literal(Value::Bytes(bytes.clone()))
            }
            _ => return Err(fail(format!("{id} takes its bytes, `0x...`"))),
        },
    };
    Ok(Function { kind, args })
}

fn arguments(parser: &mut Parser<'_, '_>) -> Result<Vec<Term>, Error> {
    parser.expect("(")?;
    let mut args = Vec::new();
    while !parser.sign(")") {
        if !args.is_empty() {
            parser.expect(",")?;
        }
        args.push(parser.term()?);
    }
    Ok(args)
}

impl Function {
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        let arg = |at: usize| match self.args.get(at) {
            Some(term) => term.get(subject),
            None => Err(Failure::Type),
        };
        Ok(match &self.kind {
            Kind::IsMatch(regex) => match text_like(&arg(0)?)? {
                Some(text) => Value::Bool(regex.is_match(&*text)),
                None => Value::Bool(false),
            },
            Kind::Is(is) => Value::Bool(is(&arg(0)?)),
            Kind::IsRootSpan => Value::Bool(subject.span.is_root()),
            Kind::Len => Value::Int(len(&arg(0)?)? as i64),
            Kind::HasPrefix => Value::Bool(text(&arg(0)?)?.starts_with(text(&arg(1)?)?)),
            Kind::HasSuffix => Value::Bool(text(&arg(0)?)?.ends_with(text(&arg(1)?)?)),
            Kind::ToLowerCase => changed(&arg(0)?, str::to_lowercase)?,
            Kind::ToUpperCase => changed(&arg(0)?, str::to_uppercase)?,
            Kind::Int => int(&arg(0)?)?,
            Kind::String => match text_like(&arg(0)?)? {
                Some(text) => Value::Text(text.into_owned().into()),
                None => Value::Nil,
            },
            Kind::Concat => self.concat(subject)?,
            Kind::Literal(value) => value.clone(),
        })
    }

    fn concat<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        let [Term::List(parts), delimiter] = self.args.as_slice() else {
            return Err(Failure::Type);
        };
        let delimiter = delimiter.get(subject)?;
        let mut joined = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                joined.extend_from_slice(text(&delimiter)?);
            }
            match text_like(&part.get(subject)?)? {
                Some(text) => joined.extend_from_slice(&text),
                None => joined.extend_from_slice(b"<nil>"),
            }
        }
        Ok(Value::Text(joined.into()))
    }
}

fn text<'v>(value: &'v Value<'_>) -> Result<&'v [u8], Failure> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Failure::Type),
    }
}

/// A value as a text; nil is none. (Maps and lists, which the Collector writes as JSON, fail here.)
fn text_like<'v>(value: &'v Value<'_>) -> Result<Option<std::borrow::Cow<'v, [u8]>>, Failure> {
    Ok(Some(match value {
        Value::Nil => return Ok(None),
        Value::Text(text) => (&**text).into(),
        Value::Bytes(bytes) => hex(bytes).into(),
        Value::Bool(value) => value.to_string().into_bytes().into(),
        Value::Int(value) => value.to_string().into_bytes().into(),
        Value::Float(value) => value.to_string().into_bytes().into(),
        Value::Time(_) | Value::Duration(_) | Value::Map(..) | Value::List(_) => {
            return Err(Failure::Type);
        }
    }))
}

fn len(value: &Value<'_>) -> Result<usize, Failure> {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => Ok(bytes.len()),
        Value::List(array) => Ok(Any::items(array).count()),
        Value::Map(message, key) => Ok(Attributes::new(message, *key).count()),
        _ => Err(Failure::Type),
    }
}

fn changed<'a>(value: &Value<'_>, change: fn(&str) -> String) -> Result<Value<'a>, Failure> {
    let text = std::str::from_utf8(text(value)?).map_err(|_| Failure::Type)?;
    Ok(Value::Text(change(text).into_bytes().into()))
}

fn int<'a>(value: &Value<'_>) -> Result<Value<'a>, Failure> {
    Ok(match value {
        Value::Int(value) => Value::Int(*value),
        Value::Float(value) => Value::Int(*value as i64),
        Value::Bool(value) => Value::Int(i64::from(*value)),
        Value::Text(text) => {
            let number = std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok());
            number.map_or(Value::Nil, Value::Int)
        }
        Value::Nil => Value::Nil,
        _ => return Err(Failure::Type),
    })
}

/// A duration as Go writes it: numbers with units, such as `1h30m` or `-1.5s`.
fn duration_ns(text: &[u8]) -> Option<i64> {
    const UNITS: &[(&str, f64)] = &[
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    let text = std::str::from_utf8(text).ok()?;
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit() || c == '.');
        let unit_end = unit_end.map_or(rest.len(), |len| end + len);
        let (_, unit) = UNITS
            .iter()
            .find(|(unit, _)| *unit == &rest[end..unit_end])?;
        sum += number * unit;
        rest = &rest[unit_end..];
    }
    (sum < i64::MAX as f64).then_some(if negative { -(sum as i64) } else { sum as i64 })
}
