//! Entries in updates (peers protocol 2.1, "Entry update message format").

use std::sync::Arc;

use tables::{ARRAY_MAX, Data, Definition, Entry, KeyType, Shape, Stored, StoredValue, Table};

use crate::dictionary::{Received, Sent};
use crate::layout::Layout;
use crate::message::UpdateKind;
use crate::reader::Reader;
use crate::{Malformed, varint};

/// How an update is sent.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its number.
    pub id: u32,
    /// It says when the entry expires.
    pub is_timed: bool,
}

/// The body of an update with its number.
pub fn body(table: &Table, entry: &Entry<'_>, form: Form, sent: &mut Sent) -> Vec<u8> {
    let of = table.definition();
    let mut out = form.id.to_be_bytes().to_vec();
    if form.is_timed {
        let left_ms = u32::try_from(entry.expires_in_ms()).unwrap_or(u32::MAX);
        out.extend(left_ms.to_be_bytes());
    }
    put_key(&mut out, of, entry.key());
    for data in Data::all() {
        let Some(column) = of.column(data) else {
            continue;
        };
        if data.shape() == Shape::Name {
            match table.server_name(entry) {
                Some(name) => sent.put(&mut out, &name),
                None => varint::put(&mut out, 0),
            }
            continue;
        }
        for index in 0..column.elements {
            match entry.stored(data, index) {
                Some(Stored::Number(number)) => varint::put(&mut out, number),
                Some(Stored::Rate {
                    age_ms,
                    current,
                    previous,
                }) => {
                    varint::put(&mut out, age_ms.into());
                    varint::put(&mut out, current.into());
                    varint::put(&mut out, previous.into());
                }
                None => varint::put(&mut out, 0),
            }
        }
    }
    out
}

fn put_key(out: &mut Vec<u8>, of: &Definition, key: &[u8]) {
    if of.key == KeyType::String {
        varint::put(out, key.len() as u64);
    }
    out.extend_from_slice(&of.shown(key));
}

/// A received update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// Its number, if it has one.
    pub id: Option<u32>,
    /// When the entry expires, milliseconds.
    pub expires_in_ms: Option<u32>,
    /// The key.
    pub key: &'a [u8],
    /// The values, without elements of arrays that no table has.
    pub values: Vec<StoredValue>,
    /// The name of a server.
    pub server: Option<Arc<str>>,
}

/// Reads the body of an update.
///
/// # Errors
/// It does not fit the layout.
pub fn parse<'a>(
    body: &'a [u8],
    kind: UpdateKind,
    layout: &Layout,
    names: &mut Received,
) -> Result<Incoming<'a>, Malformed> {
    let mut reader = Reader(body);
    let id = kind.has_id.then(|| reader.fixed()).transpose()?;
    let expires_in_ms = kind.is_timed.then(|| reader.fixed()).transpose()?;
    let key = match layout.key {
        Some(KeyType::String) => reader.text()?,
        Some(KeyType::Integer) => reader.bytes(size_of::<u32>())?,
        Some(KeyType::Ip | KeyType::Ipv6 | KeyType::Binary) => {
            reader.bytes(usize::try_from(layout.key_bytes).map_err(|_| Malformed)?)?
        }
        None => return Err(Malformed),
    };
    let mut update = Incoming {
        id,
        expires_in_ms,
        key,
        values: Vec::new(),
        server: None,
    };
    for column in &layout.columns {
        if column.data.shape() == Shape::Name {
            update.server = names.get(&mut reader)?;
            continue;
        }
        // The message ends before an element that it does not have, however many were announced.
        for index in 0..column.elements {
            let value = StoredValue {
                data: column.data,
                index: index as u32,
                stored: value(column.data, &mut reader)?,
            };
            if index < u64::from(ARRAY_MAX) {
                update.values.push(value);
            }
        }
    }
    Ok(update)
}

fn value(data: Data, reader: &mut Reader<'_>) -> Result<Stored, Malformed> {
    let first = reader.varint()?;
    if data.shape() != Shape::Rate {
        return Ok(Stored::Number(first));
    }
    Ok(Stored::Rate {
        // As in HAProxy, numbers are cut to 32 bits.
        age_ms: first as u32,
        current: reader.varint()? as u32,
        previous: reader.varint()? as u32,
    })
}
