//! Fields of metrics and data points that are numbers or lists of them.

use otlp::scan::Any;
use otlp::wire::Fields;
use otlp::write;
use ottl::{Failure, Form, Value};

use super::super::edit::{joined, replace_field};

/// Appends a message with another number, or list of numbers, in a field.
///
/// # Errors
/// The value is not one of the field's.
pub fn write(
    message: &[u8],
    form: Form,
    value: &Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match (form, value) {
        (Form::Fixed64(number), Value::Int(value)) => {
            let value = *value as u64;
            replace_field(message, number, out, |out| {
                if value != 0 {
                    write::fixed64(out, number, value);
                }
            });
        }
        (Form::Double(number), Value::Float(value)) => {
            replace_field(message, number, out, |out| {
                write::double(out, number, *value)
            });
        }
        (Form::Sint32(number), Value::Int(value)) => {
            let value = sint32(*value)?;
            replace_field(message, number, out, |out| uint(out, number, value));
        }
        (Form::Fixed64List(number), list) => {
            let numbers = integers(list)?;
            replace_field(message, number, out, |out| packed(out, number, &numbers));
        }
        (Form::DoubleList(number), list) => {
            let numbers = doubles(list)?;
            replace_field(message, number, out, |out| packed(out, number, &numbers));
        }
        (Form::NumberInt(double), Value::Int(value)) => {
            one_value(message, double, out, |out| {
                write::fixed64(out, AS_INT, *value as u64);
            });
        }
        (Form::NumberDouble(double), Value::Float(value)) => {
            one_value(message, double, out, |out| {
                write::double(out, double, *value);
            });
        }
        (Form::BucketOffset(number), Value::Int(value)) => {
            let value = sint32(*value)?;
            within(message, number, 1, out, |out| uint(out, 1, value))?;
        }
        (Form::BucketCounts(number), list) => {
            let counts = integers(list)?;
            within(message, number, 2, out, |out| varints(out, 2, &counts))?;
        }
        (Form::Temporality(number), Value::Int(value)) => {
            let value = i32::try_from(*value).map_err(|_| Failure::Math)?;
            within(message, number, 2, out, |out| uint(out, 2, value as u64))?;
        }
        (Form::Monotonic(number), Value::Bool(value)) => {
            within(message, number, 3, out, |out| {
                uint(out, 3, u64::from(*value))
            })?;
        }
        _ => return Err(Failure::Type),
    }
    Ok(())
}

/// `NumberDataPoint.as_double`
const AS_DOUBLE: u32 = 4;
/// `NumberDataPoint.as_int`, `Exemplar.as_int`
const AS_INT: u32 = 6;

/// Appends a `NumberDataPoint` with another value.
pub fn point_value(point: &[u8], out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    one_value(point, AS_DOUBLE, out, write);
}

/// Appends a message with another value, of which a double has the number `double`: both kinds of
/// values are one field, of which the last counts.
fn one_value(message: &[u8], double: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut write = Some(write);
    for field in Fields::new(message).map_while(Result::ok) {
        let number = field.key >> 3;
        if number != double && number != AS_INT {
            out.extend_from_slice(field.whole);
        } else if let Some(write) = write.take() {
            write(out);
        }
    }
    if let Some(write) = write {
        write(out);
    }
}

/// Appends a message with another field of the message that is its field `number`.
fn within(
    message: &[u8],
    number: u32,
    field: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), Failure> {
    let old = joined(message, number << 3 | 2).map_err(|_| Failure::Type)?;
    let mut inner = Vec::new();
    replace_field(old.as_deref().unwrap_or_default(), field, &mut inner, write);
    replace_field(message, number, out, |out| {
        write::bytes(out, number, &inner)
    });
    Ok(())
}

/// A `sint32` as it is written: its sign is in the lowest bit.
fn sint32(value: i64) -> Result<u64, Failure> {
    let value = i32::try_from(value).map_err(|_| Failure::Math)?;
    Ok(u64::from((value << 1 ^ value >> 31) as u32))
}

fn uint(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        write::uint(out, number, value);
    }
}

/// The integers of a list, without a sign.
fn integers(list: &Value<'_>) -> Result<Vec<u64>, Failure> {
    numbers(list, |item| match item {
        Any::Int(value) => Some(value as u64),
        _ => None,
    })
}

/// The bits of the doubles of a list.
fn doubles(list: &Value<'_>) -> Result<Vec<u64>, Failure> {
    numbers(list, |item| match item {
        Any::Double(value) => Some(value.to_bits()),
        _ => None,
    })
}

fn numbers(list: &Value<'_>, number: impl Fn(Any<'_>) -> Option<u64>) -> Result<Vec<u64>, Failure> {
    if !matches!(list, Value::List(_)) {
        return Err(Failure::Type);
    }
    list.items()
        .map(|item| number(item).ok_or(Failure::Type))
        .collect()
}

/// Appends a list of values of 64 bits; nothing where it is empty.
pub fn packed(out: &mut Vec<u8>, number: u32, values: &[u64]) {
    if !values.is_empty() {
        write::packed(out, number, values.iter().copied());
    }
}

/// Appends a list of varints; nothing where it is empty.
pub fn varints(out: &mut Vec<u8>, number: u32, values: &[u64]) {
    if !values.is_empty() {
        write::message(out, number, |out| {
            values.iter().for_each(|value| write::varint(out, *value));
        });
    }
}
