//! Zipkin's protobuf: `ListOfSpans` (`zipkin.proto`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use otlp::wire::Value;

use super::model::{Endpoint, Span};
use crate::run::translate::span::{Any, Kind};
use crate::run::translate::{SPAN_PARTS_MAX, fields};

/// Reads a list and hands on each span.
///
/// # Errors
/// What is wrong with it.
pub fn read<'a>(body: &'a [u8], mut each: impl FnMut(Span<'a>)) -> Result<(), String> {
    fields(body, |number, value| {
        if let (1, Value::Bytes(message)) = (number, value) {
            each(span(message)?);
        }
        Ok(())
    })
}

fn span(message: &[u8]) -> Result<Span<'_>, String> {
    let mut span = Span::default();
    let (mut has_trace, mut has_id) = (false, false);
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(id)) => {
                span.trace_id = trace_id(id).ok_or("a trace's identifier has not 8 or 16 bytes")?;
                has_trace = span.trace_id != [0; 16];
            }
            (2, Value::Bytes(b"")) => {}
            (2, Value::Bytes(id)) => span.parent_id = span_id(id)?,
            (3, Value::Bytes(id)) => {
                span.id = span_id(id)?;
                has_id = span.id != [0; 8];
            }
            (4, Value::Varint(number)) => span.kind = kind(number),
            (5, Value::Bytes(name)) => span.name = String::from_utf8_lossy(name),
            (6, Value::Fixed64(time)) => span.timestamp_us = time,
            (7, Value::Varint(time)) => span.duration_us = time,
            (8, Value::Bytes(message)) => span.local = endpoint(message)?,
            (9, Value::Bytes(message)) => span.remote = endpoint(message)?,
            (10, Value::Bytes(message)) => span.annotations.push(annotation(message)?),
            (11, Value::Bytes(message)) => tag(message, &mut span)?,
            (12 | 13, Value::Varint(_)) => {}
            (1..=13, _) => return Err("a field has the wrong type".to_owned()),
            _ => {}
        }
        if span.annotations.len().max(span.tags.0.len()) > SPAN_PARTS_MAX {
            Err(format!(
                "a span has more than {SPAN_PARTS_MAX} tags or annotations"
            ))
        } else {
            Ok(())
        }
    })?;
    if has_trace && has_id {
        Ok(span)
    } else {
        Err("a span has no identifiers".to_owned())
    }
}

fn trace_id(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    let start = match bytes.len() {
        8 => 8,
        16 => 0,
        _ => return None,
    };
    id[start..].copy_from_slice(bytes);
    Some(id)
}

fn span_id(bytes: &[u8]) -> Result<[u8; 8], String> {
    let id = bytes.try_into();
    id.map_err(|_| "a span's identifier has not 8 bytes".to_owned())
}

fn kind(number: u64) -> Kind {
    match number {
        1 => Kind::Client,
        2 => Kind::Server,
        3 => Kind::Producer,
        4 => Kind::Consumer,
        _ => Kind::Unspecified,
    }
}

fn endpoint(message: &[u8]) -> Result<Endpoint<'_>, String> {
    let mut endpoint = Endpoint::default();
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(name)) => endpoint.service = String::from_utf8_lossy(name),
            (2 | 3, Value::Bytes(b"")) => {}
            (2, Value::Bytes(bytes)) => {
                let address = <[u8; 4]>::try_from(bytes).map_err(|_| "no address of version 4")?;
                endpoint.v4 = Some(IpAddr::V4(Ipv4Addr::from(address)));
            }
            (3, Value::Bytes(bytes)) => {
                let address = <[u8; 16]>::try_from(bytes).map_err(|_| "no address of version 6")?;
                endpoint.v6 = Some(IpAddr::V6(Ipv6Addr::from(address)));
            }
            (4, Value::Varint(port)) => {
                endpoint.port = u16::try_from(port).map_err(|_| "a port is no port")?;
            }
            (1..=4, _) => return Err("a field has the wrong type".to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(endpoint)
}

fn annotation(message: &[u8]) -> Result<(u64, std::borrow::Cow<'_, str>), String> {
    let mut annotation = (0, "".into());
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Fixed64(time)) => annotation.0 = time,
            (2, Value::Bytes(text)) => annotation.1 = String::from_utf8_lossy(text),
            (1 | 2, _) => return Err("a field has the wrong type".to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(annotation)
}

/// An entry of the map `tags`.
fn tag<'a>(message: &'a [u8], span: &mut Span<'a>) -> Result<(), String> {
    let (mut key, mut text): (&[u8], &[u8]) = (b"", b"");
    fields(message, |number, value| {
        match (number, value) {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => text = bytes,
            (1 | 2, _) => return Err("a field has the wrong type".to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    span.tags.add(String::from_utf8_lossy(key), Any::text(text));
    Ok(())
}
