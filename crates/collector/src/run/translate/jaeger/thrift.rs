//! Jaeger's Thrift: `Batch` (`jaeger.thrift`) and `emitBatch` (`agent.thrift`).

use super::model::{Log, Process, Reference, Span, unknown_tag};
use crate::run::translate::micros_to_ns;
use crate::run::translate::request::Request;
use crate::run::translate::span::{Any, Attributes};
use crate::run::translate::thrift::{Fault, Field, Kind, Protocol, Reader};

/// Makes OTLP of a `Batch`.
pub fn batch(bytes: &[u8], protocol: Protocol) -> Result<Vec<u8>, Fault> {
    read_batch(Reader::new(bytes, protocol))
}

/// Makes OTLP of a message `emitBatch`.
pub fn message(bytes: &[u8], protocol: Protocol) -> Result<Vec<u8>, Fault> {
    let mut reader = Reader::new(bytes, protocol);
    if reader.call()? != b"emitBatch" {
        return Err(Fault::Message);
    }
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::Struct) => return read_batch(reader),
            _ => reader.skip(&field)?,
        }
    }
    Err(Fault::Message)
}

fn read_batch(mut reader: Reader<'_>) -> Result<Vec<u8>, Fault> {
    // The process mostly stands before the spans; it need not.
    let resource = find_process(reader)?.resource();
    let mut request = Request::default();
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (2, Kind::List) => {
                for _ in 0..reader.structs()? {
                    let span = span(&mut reader)?;
                    span.translate((&resource, b""), "".into(), &mut request);
                }
            }
            _ => reader.skip(&field)?,
        }
    }
    Ok(request.finish())
}

fn find_process(mut reader: Reader<'_>) -> Result<Process<'_>, Fault> {
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        match (field.id, field.kind) {
            (1, Kind::Struct) => return process(&mut reader),
            _ => reader.skip(&field)?,
        }
    }
    Ok(Process::default())
}

/// Calls `work` with each field of a structure; what it does not take is passed over.
fn fields<'a>(
    reader: &mut Reader<'a>,
    mut work: impl FnMut(&mut Reader<'a>, &Field) -> Result<Taken, Fault>,
) -> Result<(), Fault> {
    let mut last = 0;
    while let Some(field) = reader.field(&mut last)? {
        if let Taken::No = work(reader, &field)? {
            reader.skip(&field)?;
        }
    }
    Ok(())
}

enum Taken {
    Yes,
    No,
}

fn text<'a>(reader: &mut Reader<'a>) -> Result<std::borrow::Cow<'a, str>, Fault> {
    reader.bytes().map(String::from_utf8_lossy)
}

fn process<'a>(reader: &mut Reader<'a>) -> Result<Process<'a>, Fault> {
    let mut process = Process::default();
    fields(reader, |reader, field| {
        match (field.id, field.kind) {
            (1, Kind::Bytes) => process.service = text(reader)?,
            (2, Kind::List) => process.tags = tags(reader)?,
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    })?;
    Ok(process)
}

/// A trace's identifier of its two halves.
fn trace_id(low: i64, high: i64) -> [u8; 16] {
    (u128::from(high as u64) << 64 | u128::from(low as u64)).to_be_bytes()
}

fn micros(time: i64) -> u64 {
    micros_to_ns(time.max(0) as u64)
}

fn span<'a>(reader: &mut Reader<'a>) -> Result<Span<'a>, Fault> {
    reader.begin_span();
    let mut span = Span::default();
    let (mut low, mut high) = (0, 0);
    fields(reader, |reader, field| {
        match (field.id, field.kind) {
            (1, Kind::I64) => low = reader.i64()?,
            (2, Kind::I64) => high = reader.i64()?,
            (3, Kind::I64) => span.id = reader.i64()?.to_be_bytes(),
            (4, Kind::I64) => span.parent_id = reader.i64()?.to_be_bytes(),
            (5, Kind::Bytes) => span.name = text(reader)?,
            (6, Kind::List) => {
                for _ in 0..reader.parts()? {
                    span.references.push(reference(reader)?);
                }
            }
            (7, Kind::I32) => span.flags = reader.i32()? as u32,
            (8, Kind::I64) => span.start_ns = micros(reader.i64()?),
            (9, Kind::I64) => span.duration_ns = reader.i64()?.saturating_mul(1000),
            (10, Kind::List) => span.tags = tags(reader)?,
            (11, Kind::List) => {
                for _ in 0..reader.parts()? {
                    span.logs.push(log(reader)?);
                }
            }
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    })?;
    span.trace_id = trace_id(low, high);
    Ok(span)
}

fn reference(reader: &mut Reader<'_>) -> Result<Reference, Fault> {
    let mut reference = Reference::default();
    let (mut low, mut high) = (0, 0);
    fields(reader, |reader, field| {
        match (field.id, field.kind) {
            (1, Kind::I32) => reference.follows_from = reader.i32()? != 0,
            (2, Kind::I64) => low = reader.i64()?,
            (3, Kind::I64) => high = reader.i64()?,
            (4, Kind::I64) => reference.span_id = reader.i64()?.to_be_bytes(),
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    })?;
    reference.trace_id = trace_id(low, high);
    Ok(reference)
}

fn log<'a>(reader: &mut Reader<'a>) -> Result<Log<'a>, Fault> {
    let mut log = Log::default();
    fields(reader, |reader, field| {
        match (field.id, field.kind) {
            (1, Kind::I64) => log.time_ns = micros(reader.i64()?),
            (2, Kind::List) => log.fields = tags(reader)?,
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    })?;
    Ok(log)
}

fn tags<'a>(reader: &mut Reader<'a>) -> Result<Attributes<'a>, Fault> {
    let mut tags = Attributes::default();
    for _ in 0..reader.parts()? {
        tag(reader, &mut tags)?;
    }
    Ok(tags)
}

/// A `Tag`: its type says which of its values counts.
fn tag<'a>(reader: &mut Reader<'a>, tags: &mut Attributes<'a>) -> Result<(), Fault> {
    let (mut key, mut kind) = ("".into(), 0);
    let (mut string, mut double, mut flag, mut int): (&[u8], _, _, _) = (b"", 0.0, false, 0);
    let mut binary: &[u8] = b"";
    fields(reader, |reader, field| {
        match (field.id, field.kind) {
            (1, Kind::Bytes) => key = text(reader)?,
            (2, Kind::I32) => kind = reader.i32()?,
            (3, Kind::Bytes) => string = reader.bytes()?,
            (4, Kind::Double) => double = reader.double()?,
            (5, Kind::Bool) => flag = reader.flag(field)?,
            (6, Kind::I64) => int = reader.i64()?,
            (7, Kind::Bytes) => binary = reader.bytes()?,
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    })?;
    let value = match kind {
        0 => Any::text(string),
        1 => Any::Double(double),
        2 => Any::Bool(flag),
        3 => Any::Int(int),
        4 => Any::Bytes(binary),
        other => unknown_tag(other as u64),
    };
    tags.add(key, value);
    Ok(())
}
