//! Jaeger's protobuf: `PostSpansRequest` (`api_v2/collector.proto`, `api_v2/model.proto`).

use otlp::wire::Value;

use super::model::{Log, Process, Reference, Span, unknown_tag};
use crate::run::translate::request::Request;
use crate::run::translate::span::{Any, Attributes};
use crate::run::translate::{SPAN_PARTS_MAX, fields};

/// Makes OTLP of a `PostSpansRequest`.
///
/// # Errors
/// What is wrong with it.
pub fn read(message: &[u8]) -> Result<Vec<u8>, String> {
    let mut request = Request::default();
    fields(message, |number, value| match (number, value) {
        (1, Value::Bytes(message)) => batch(message, &mut request),
        (1, _) => Err(WRONG_TYPE.to_owned()),
        _ => Ok(()),
    })?;
    Ok(request.finish())
}

const WRONG_TYPE: &str = "a field has the wrong type";

/// A `Batch`: its process counts for spans that have none.
fn batch(message: &[u8], request: &mut Request) -> Result<(), String> {
    let mut resource = Vec::new();
    fields(message, |number, value| {
        if let (2, Value::Bytes(message)) = (number, value) {
            resource = process(message)?.resource();
        }
        Ok(())
    })?;
    fields(message, |number, value| match (number, value) {
        (1, Value::Bytes(message)) => {
            let (mut span, own) = span(message)?;
            let scope = span.take_scope();
            let trace_state = span.take_trace_state();
            let resource = own.as_deref().unwrap_or(&resource);
            span.translate((resource, &scope), trace_state, request);
            Ok(())
        }
        (1 | 2, value) if !matches!(value, Value::Bytes(_)) => Err(WRONG_TYPE.to_owned()),
        _ => Ok(()),
    })
}

/// Counts an element of a span or a process.
fn count(parts: &mut usize) -> Result<(), String> {
    *parts += 1;
    if *parts > SPAN_PARTS_MAX {
        Err(format!(
            "a span has more than {SPAN_PARTS_MAX} tags and logs"
        ))
    } else {
        Ok(())
    }
}

fn process(message: &[u8]) -> Result<Process<'_>, String> {
    let mut process = Process::default();
    let mut parts = 0;
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(name)) => process.service = String::from_utf8_lossy(name),
            (2, Value::Bytes(message)) => tag(message, &mut process.tags)?,
            (1 | 2, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        count(&mut parts)
    })?;
    Ok(process)
}

/// A span, and the resource of its own process.
fn span(message: &[u8]) -> Result<(Span<'_>, Option<Vec<u8>>), String> {
    let mut span = Span::default();
    let mut own = None;
    let mut parts = 0;
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(id)) => span.trace_id = trace_id(id)?,
            (2, Value::Bytes(id)) => span.id = span_id(id)?,
            (3, Value::Bytes(name)) => span.name = String::from_utf8_lossy(name),
            (4, Value::Bytes(message)) => span.references.push(reference(message)?),
            (5, Value::Varint(flags)) => span.flags = flags as u32,
            (6, Value::Bytes(message)) => span.start_ns = time(message)?.max(0) as u64,
            (7, Value::Bytes(message)) => span.duration_ns = time(message)?,
            (8, Value::Bytes(message)) => tag(message, &mut span.tags)?,
            (9, Value::Bytes(message)) => span.logs.push(log(message, &mut parts)?),
            (10, Value::Bytes(message)) => own = Some(process(message)?.resource()),
            (1..=10, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        count(&mut parts)
    })?;
    Ok((span, own))
}

/// 16 bytes, or 8 of a short one; none is zero.
fn trace_id(bytes: &[u8]) -> Result<[u8; 16], String> {
    let mut id = [0; 16];
    match bytes.len() {
        len @ (0 | 8 | 16) => id[16 - len..].copy_from_slice(bytes),
        _ => return Err("a trace's identifier has not 16 bytes".to_owned()),
    }
    Ok(id)
}

fn span_id(bytes: &[u8]) -> Result<[u8; 8], String> {
    if bytes.is_empty() {
        Ok([0; 8])
    } else {
        let id = bytes.try_into();
        id.map_err(|_| "a span's identifier has not 8 bytes".to_owned())
    }
}

fn reference(message: &[u8]) -> Result<Reference, String> {
    let mut reference = Reference::default();
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(id)) => reference.trace_id = trace_id(id)?,
            (2, Value::Bytes(id)) => reference.span_id = span_id(id)?,
            (3, Value::Varint(kind)) => reference.follows_from = kind != 0,
            (1..=3, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(reference)
}

/// Nanoseconds of a `Timestamp` or `Duration`.
fn time(message: &[u8]) -> Result<i64, String> {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Varint(value)) => seconds = value as i64,
            (2, Value::Varint(value)) => nanos = value as i64,
            (1 | 2, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

fn log<'a>(message: &'a [u8], parts: &mut usize) -> Result<Log<'a>, String> {
    let mut log = Log::default();
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(message)) => log.time_ns = time(message)?.max(0) as u64,
            (2, Value::Bytes(message)) => tag(message, &mut log.fields)?,
            (1 | 2, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        count(parts)
    })?;
    Ok(log)
}

/// A `KeyValue`: its type says which of its values counts.
fn tag<'a>(message: &'a [u8], tags: &mut Attributes<'a>) -> Result<(), String> {
    let (mut key, mut kind): (&[u8], u64) = (b"", 0);
    let (mut text, mut flag, mut int, mut double): (&[u8], _, _, _) = (b"", false, 0, 0.0);
    let mut binary: &[u8] = b"";
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Varint(value)) => kind = value,
            (3, Value::Bytes(bytes)) => text = bytes,
            (4, Value::Varint(value)) => flag = value != 0,
            (5, Value::Varint(value)) => int = value as i64,
            (6, Value::Fixed64(bits)) => double = f64::from_bits(bits),
            (7, Value::Bytes(bytes)) => binary = bytes,
            (1..=7, _) => return Err(WRONG_TYPE.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    let value = match kind {
        0 => Any::text(text),
        1 => Any::Bool(flag),
        2 => Any::Int(int),
        3 => Any::Double(double),
        4 => Any::Bytes(binary),
        other => unknown_tag(other),
    };
    tags.add(String::from_utf8_lossy(key), value);
    Ok(())
}
