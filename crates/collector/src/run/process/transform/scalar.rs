//! Fields that are no attributes.

use otlp::tracestate;
use otlp::write;
use ottl::{Failure, Form, Found, Value};

use super::super::edit::{joined, last_bytes, replace_field};
use super::number;

/// Members of a tracestate, and characters of a member's key and value (W3C Trace Context,
/// "tracestate").
const MEMBERS_MAX: usize = 32;
const MEMBER_CHARACTERS_MAX: usize = 256;

/// Appends a message with another value in a field; what is zero or empty is left out, as encoders
/// do.
///
/// # Errors
/// The value is not one of the field's.
pub fn write(
    message: &[u8],
    form: Form,
    keys: &[Found<'_>],
    value: &Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match (form, value) {
        (Form::Text(number), Value::Text(text)) => {
            replace_field(message, number, out, |out| bytes(out, number, text));
        }
        (Form::Whole, Value::Text(text)) => out.extend_from_slice(text),
        (Form::Number(number), Value::Int(value)) => {
            // Counts go up to 2^32, enums from -2^31.
            let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(value);
            let value = fits.then_some(*value as u64).ok_or(Failure::Math)?;
            replace_field(message, number, out, |out| uint(out, number, value));
        }
        (Form::Fixed32(number), Value::Int(value)) => {
            let value = u32::try_from(*value).map_err(|_| Failure::Math)?;
            replace_field(message, number, out, |out| {
                if value != 0 {
                    write::fixed32(out, number, value);
                }
            });
        }
        (Form::Nanoseconds(number), Value::Int(ns))
        | (Form::Time(number), Value::Time(ns) | Value::Zoned(ns, _)) => {
            let ns = *ns as u64;
            replace_field(message, number, out, |out| {
                if ns != 0 {
                    write::fixed64(out, number, ns);
                }
            });
        }
        (Form::Id(number, len), Value::Bytes(id)) => {
            if id.len() != len {
                return Err(Failure::Syntax);
            }
            replace_field(message, number, out, |out| write::bytes(out, number, id));
        }
        (Form::IdText(number, len), Value::Text(text)) => {
            let id = syntax::hex::decode(text).filter(|id| id.len() == len);
            let id = id.ok_or(Failure::Syntax)?;
            replace_field(message, number, out, |out| write::bytes(out, number, &id));
        }
        (Form::Kind(number, prefix), Value::Text(text)) => {
            let kind = ottl::kind_of(text, prefix).ok_or(Failure::Syntax)?;
            replace_field(message, number, out, |out| uint(out, number, kind));
        }
        (Form::StatusCode(number), Value::Int(code)) => {
            let code = i32::try_from(*code).map_err(|_| Failure::Math)?;
            status(message, number, out, 3, |out| uint(out, 3, code as u64))?;
        }
        (Form::StatusMessage(number), Value::Text(text)) => {
            status(message, number, out, 2, |out| bytes(out, 2, text))?;
        }
        (Form::TraceState(number), Value::Text(text)) => {
            let state = match keys.first() {
                None => text.to_vec(),
                Some(Found::Name(key)) => {
                    let old = last_bytes(message, number << 3 | 2).map_err(|_| Failure::Type)?;
                    with_member(old.unwrap_or_default(), key, text)?
                }
                Some(Found::Index(_)) => return Err(Failure::Type),
            };
            replace_field(message, number, out, |out| bytes(out, number, &state));
        }
        (Form::AnyText(number), Value::Text(text)) => {
            replace_field(message, number, out, |out| {
                write::message(out, number, |out| write::bytes(out, 1, text));
            });
        }
        (form, value) => number::write(message, form, value, out)?,
    }
    Ok(())
}

fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    if !value.is_empty() {
        write::bytes(out, number, value);
    }
}

fn uint(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        write::uint(out, number, value);
    }
}

/// Another field of a span's `Status`.
fn status(
    span: &[u8],
    number: u32,
    out: &mut Vec<u8>,
    field: u32,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), Failure> {
    let old = joined(span, number << 3 | 2).map_err(|_| Failure::Type)?;
    let mut status = Vec::new();
    replace_field(
        old.as_deref().unwrap_or_default(),
        field,
        &mut status,
        write,
    );
    replace_field(span, number, out, |out| write::bytes(out, number, &status));
    Ok(())
}

/// A tracestate with a member in front; an older one of its key is gone.
fn with_member(state: &[u8], key: &[u8], value: &[u8]) -> Result<Vec<u8>, Failure> {
    let is_key =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(byte);
    let is_value = |byte: &u8| matches!(byte, b' '..=b'~') && !b",=".contains(byte);
    let fits = |text: &[u8]| (1..=MEMBER_CHARACTERS_MAX).contains(&text.len());
    if !fits(key) || !key.iter().all(is_key) || !fits(value) || !value.iter().all(is_value) {
        return Err(Failure::Syntax);
    }
    let mut new = [key, b"=", value].concat();
    let others = tracestate::members(state).filter(|(name, _)| *name != key);
    for (name, value) in others.take(MEMBERS_MAX - 1) {
        new.push(b',');
        new.extend_from_slice(name);
        new.push(b'=');
        new.extend_from_slice(value);
    }
    Ok(new)
}
